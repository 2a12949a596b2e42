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
#define TT_INLINE_BODY __attribute__((always_inline))  // of a lambda, behind its parameters
#define TT_NOINLINE __attribute__((noinline))
// No copies for constant arguments either: one body in the file.
#if defined(__clang__)
#define TT_ONE_BODY TT_NOINLINE
#else
#define TT_ONE_BODY __attribute__((noinline, noclone))
#endif
#define TT_COLD __attribute__((noinline, cold))

#ifndef TT_CHECKED
#define TT_CHECKED 0  // 1: quarantined headers, use-after-release and shared ctxs become statuses
#endif

#ifndef TT_HAVE_BASELINE  // the instruction sets that the build holds (TT_ISAS)
#define TT_HAVE_BASELINE 1
#define TT_HAVE_AVX2 1
#define TT_HAVE_AVX512 1
#endif
