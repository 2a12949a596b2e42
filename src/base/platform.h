// Build macros and, from compiler/, those of the compiler. Everything of tt lives in namespace
// TT_NS (renamed by the TT_PREFIX build option).
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef TT_NS
#define TT_NS tt
#endif

namespace TT_NS {
template <class T> struct Itself {
  using Type = T;  // an argument that takes no part in deduction
};
template <class A, class B> constexpr bool kIsSame = false;
template <class A> constexpr bool kIsSame<A, A> = true;
}  // namespace TT_NS

#if defined(_MSC_VER)
#include "base/compiler/msvc.h"
#else
#include "base/compiler/gnu.h"
#endif

// Largest block of memory: a size_t of half the address space. Sizes of tensors are int64_t on
// every target and are compared with this before they become a size_t.
#define TT_MAX_BYTES (int64_t(1) << (sizeof(size_t) == 8 ? 47 : 31))

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
