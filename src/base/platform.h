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
// A function that a static program may leave out; its address is NULL then.
#define TT_WEAK __attribute__((weak))
#define TT_COLD __attribute__((noinline, cold))

// Largest block of memory: a size_t of half the address space. Sizes of tensors are int64_t on
// every target and are compared with this before they become a size_t.
#define TT_MAX_BYTES (int64_t(1) << (sizeof(size_t) == 8 ? 47 : 31))

// Model of tt's thread-local object. glibc gives a library that is opened later one instruction per
// access; musl, Windows and macOS do not, and know best themselves.
#if defined(__GLIBC__)
#define TT_TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define TT_TLS_MODEL
#endif

// 1: the compiler frees thread-local storage before the heaps of the thread are given back;
// os_thread_state keeps the object instead.
#if defined(__MINGW32__) && !defined(__clang__)
#define TT_TLS_EMULATED 1
#else
#define TT_TLS_EMULATED 0
#endif

// lgamma_r is lgamma without its global variable, the sign. Windows has lgamma alone.
#if defined(_WIN32)
#define TT_HAS_LGAMMA_R 0
#else
#define TT_HAS_LGAMMA_R 1
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tt needs a little-endian target: files and random streams are read in the order of memory"
#endif

#ifndef TT_MINIMAL
// 1: for microcontrollers (TT_PROFILE): one thread, and every block comes from malloc
#define TT_MINIMAL 0
#endif
#if TT_MINIMAL
#define TT_THREAD_LOCAL
#else
#define TT_THREAD_LOCAL thread_local
#endif

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
