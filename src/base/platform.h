// Compiler and build macros. Everything of tt lives in namespace TT_NS (renamed by the TT_PREFIX
// build option).
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef TT_NS
#define TT_NS tt
#endif

#define TT_LIKELY(x) __builtin_expect(!!(x), 1)
#define TT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TT_INLINE inline __attribute__((always_inline))
#define TT_INLINE_BODY __attribute__((always_inline))  // for lambdas, after their parameters
#define TT_NOINLINE __attribute__((noinline))
// No clones for constant arguments either: the file has one body.
#if defined(__clang__)
#define TT_ONE_BODY TT_NOINLINE
#else
#define TT_ONE_BODY __attribute__((noinline, noclone))
#endif
#define TT_COLD __attribute__((noinline, cold))

#ifndef TT_CHECKED
// 1: released blocks are quarantined; use after release and concurrent use of a ctx fail with a
// status
#define TT_CHECKED 0
#endif

#ifndef TT_HAVE_BASELINE  // the instruction sets in this build (TT_ISAS)
#define TT_HAVE_BASELINE 1
#define TT_HAVE_AVX2 1
#define TT_HAVE_AVX512 1
#endif
