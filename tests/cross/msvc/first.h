// Makes clang see tt's sources as Microsoft's compiler would (pedantic.py): the headers of the
// system come first, by GNU's rules; then the compiler's name is Microsoft's, and GNU's keywords
// are errors.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <complex>
#include <errno.h>
#include <exception>
#include <immintrin.h>
#include <initializer_list>
#include <limits.h>
#include <limits>
#include <math.h>
#include <memory>
#include <new>
#include <numeric>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <type_traits>
#include <utility>
#include <x86intrin.h>

#undef __cpuid
#undef __cpuidex
#define _MSC_VER 1940
#define _M_X64 100

#undef __GNUC__
#undef __clang__
#undef __GLIBC__
#undef __SIZEOF_INT128__
#undef __ATOMIC_RELAXED
#undef __BYTE_ORDER__
#undef __ORDER_LITTLE_ENDIAN__
#undef __VERSION__
#undef __clang_version__
#undef __x86_64__
#pragma GCC poison __attribute__ __asm__ __asm asm typeof __typeof__ __extension__ __int128
#pragma GCC poison __PRETTY_FUNCTION__ __builtin_memcpy __builtin_expect __builtin_unreachable
#pragma GCC poison __builtin_shufflevector __builtin_convertvector __builtin_bit_cast
#pragma GCC poison __builtin_mul_overflow __builtin_add_overflow __atomic_load_n __ATOMIC_RELAXED
