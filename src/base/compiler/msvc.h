// gnu.h's names for Microsoft's compiler. Never compiled by it: written from its documentation, and
// checked by clang, which imitates it (tests/cross/pedantic.py).
#pragma once

#include <intrin.h>

#define TT_LIKELY(x) (!!(x))
#define TT_UNLIKELY(x) (!!(x))
#define TT_UNREACHABLE() __assume(0)
#define TT_INLINE __forceinline
#define TT_INLINE_BODY
#define TT_NOINLINE __declspec(noinline)
#define TT_ONE_BODY TT_NOINLINE
// There are no weak functions: a static program holds all that it may call.
#define TT_WEAK
#define TT_COLD TT_NOINLINE
#define TT_USED
#define TT_EXPORTED __declspec(dllexport)
#define TT_RESTRICT __restrict
#define TT_MAY_ALIAS  // types are no ground for optimisation there
#define TT_FN TT_INLINE
#define TT_EXPORTS_BEGIN  // tt.def has the names
#define TT_EXPORTS_END
#define TT_TLS_MODEL
#define TT_IGNORE_UNINITIALIZED
#if defined(__SANITIZE_ADDRESS__)
#define TT_ADDRESS_SANITIZER 1
#else
#define TT_ADDRESS_SANITIZER 0
#endif

#define TT_UNROLL_BY(n)
#define TT_UNROLL
#define TT_VECTORIZE __pragma(loop(ivdep))
#define TT_SCALAR_LOOP _ReadWriteBarrier()
#define TT_KEEP_ORDER _ReadWriteBarrier()
#define TT_KEEP_IN_REGISTERS(a, b)
#define TT_KEEP_VECTOR(v) _ReadWriteBarrier()
#if defined(_M_X64) || defined(_M_IX86)
#define TT_PREFETCH(p) _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0)
#define TT_PREFETCH_L2(p) _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1)
#define TT_PREFETCH_WRITE(p) TT_PREFETCH(p)
#define TT_PREFETCH_WRITE_L2(p) TT_PREFETCH_L2(p)
#else
#define TT_PREFETCH(p) __prefetch(p)
#define TT_PREFETCH_L2(p) __prefetch(p)
#define TT_PREFETCH_WRITE(p) __prefetch(p)
#define TT_PREFETCH_WRITE_L2(p) __prefetch(p)
#endif

namespace TT_NS {

#if defined(_M_X64)
#define TT_X86_64 1
TT_INLINE void cpu_pause() noexcept { _mm_pause(); }
TT_INLINE int64_t cpu_ticks() noexcept { return int64_t(__rdtsc()); }
#define TT_HAS_CPU_TICKS 1
TT_INLINE uint32_t saved_registers() noexcept { return uint32_t(_xgetbv(0)); }
#else
#define TT_X86_64 0
TT_INLINE void cpu_pause() noexcept { __yield(); }
#define TT_HAS_CPU_TICKS 0
#endif

}  // namespace TT_NS

#include "base/compiler/standard.h"
