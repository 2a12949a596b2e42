// Of Microsoft's header, what tt uses and clang's <immintrin.h> lacks.
#pragma once

extern "C" void _ReadWriteBarrier();
extern "C" void __cpuid(int* words, int leaf);
extern "C" void __cpuidex(int* words, int leaf, int sub);
