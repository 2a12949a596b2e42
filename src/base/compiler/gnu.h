// What tt needs beyond standard C++ of gcc, clang and nvcc: macros of attributes and pragmas, and
// functions over the compilers' builtins. No other file has a GNU extension, but those that
// structure.platforms lists. msvc.h has the same names.
#pragma once

#define TT_LIKELY(x) __builtin_expect(!!(x), 1)
#define TT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TT_UNREACHABLE() __builtin_unreachable()
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
#define TT_USED __attribute__((used))  // kept although nothing refers to it
#define TT_EXPORTED __attribute__((visibility("default")))
#define TT_RESTRICT __restrict
#define TT_MAY_ALIAS __attribute__((may_alias))  // a type whose objects may share memory with any

// Functions that CUDA's kernels call, too.
#if defined(__CUDACC__)
#define TT_FN __host__ __device__ __forceinline__
#else
#define TT_FN TT_INLINE
#endif

// Functions declared between these two are exported.
#define TT_EXPORTS_BEGIN _Pragma("GCC visibility push(default)")
#define TT_EXPORTS_END _Pragma("GCC visibility pop")

// Model of tt's thread-local object. glibc gives a library that is opened later one instruction per
// access; musl, Windows and macOS do not, and know best themselves.
#if defined(__GLIBC__)
#define TT_TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define TT_TLS_MODEL
#endif

// For the rest of the file: what gcc 12 finds in its own header of AVX-512 (GCC bug 105593).
#if defined(__clang__)
#define TT_IGNORE_UNINITIALIZED
#pragma clang diagnostic ignored "-Wpass-failed"  // loops that call the C library stay scalar
#else
#define TT_IGNORE_UNINITIALIZED _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#endif

// 1: AddressSanitizer watches memory
#if defined(__SANITIZE_ADDRESS__)
#define TT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TT_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef TT_ADDRESS_SANITIZER
#define TT_ADDRESS_SANITIZER 0
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tt needs a little-endian target: files and random streams are read in the order of memory"
#endif

// ---- loops ----

// Unrolls the next loop n times at most.
#define TT_PRAGMA(text) _Pragma(#text)
#define TT_UNROLL_BY(n) TT_PRAGMA(GCC unroll n)
#if defined(__clang__)
#define TT_UNROLL _Pragma("unroll")
#else
#define TT_UNROLL TT_UNROLL_BY(32)
#endif
// Declares the iterations of the next loop independent: an output may be an input, element by
// element, but nothing else overlaps.
#if defined(__clang__)
#define TT_VECTORIZE _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define TT_VECTORIZE _Pragma("GCC ivdep")
#endif
// Keeps a loop scalar where a vectorised one would be larger and no faster.
#define TT_SCALAR_LOOP __asm__ volatile("")
// Two variables that the compiler keeps in registers from here on, and takes for changed.
#define TT_KEEP_IN_REGISTERS(a, b) __asm__("" : "+r"(a), "+r"(b))
#define TT_KEEP_VECTOR(v) __asm__ volatile("" : "+v"(v))  // x86: a vector register
// Fetches the cache line of p, to be read or to be written; L2: no nearer than there.
#define TT_PREFETCH(p) __builtin_prefetch(p)
#define TT_PREFETCH_L2(p) __builtin_prefetch(p, 0, 2)
#define TT_PREFETCH_WRITE(p) __builtin_prefetch(p, 1)
#define TT_PREFETCH_WRITE_L2(p) __builtin_prefetch(p, 1, 2)
#define TT_KEEP_ORDER __asm__ volatile("" : : : "memory")  // loads and stores stay on their side
namespace TT_NS {

// ---- numbers ----

constexpr double kInf = __builtin_inf();
constexpr double kNan = __builtin_nan("");

// The object of type To with the bytes of x.
template <class To, class From> TT_FN constexpr To bit_cast(const From& x) {
  return __builtin_bit_cast(To, x);
}
// Zero bits above the highest one, and below the lowest one, of x > 0.
TT_INLINE int leading_zeros(uint64_t x) { return __builtin_clzll(x); }
TT_INLINE int trailing_zeros(uint64_t x) { return __builtin_ctzll(x); }
TT_INLINE int trailing_zeros(uint32_t x) { return __builtin_ctz(x); }
TT_INLINE int count_ones(uint32_t x) { return __builtin_popcount(x); }
TT_INLINE uint64_t swap_bytes(uint64_t x) { return __builtin_bswap64(x); }

// *r = a + b, a - b, a * b. Returns true, and wraps, if the result is no R.
template <class A, class B, class R> TT_INLINE constexpr bool add_overflow(A a, B b, R* r) {
  return __builtin_add_overflow(a, b, r);
}
template <class A, class B, class R> TT_INLINE constexpr bool sub_overflow(A a, B b, R* r) {
  return __builtin_sub_overflow(a, b, r);
}
template <class A, class B, class R> TT_INLINE constexpr bool mul_overflow(A a, B b, R* r) {
  return __builtin_mul_overflow(a, b, r);
}

#if defined(__SIZEOF_INT128__)
#define TT_HAS_UINT128 1
__extension__ typedef unsigned __int128 uint128;
#else
#define TT_HAS_UINT128 0
#endif

// ---- atomic operations on plain objects ----

template <int order> struct MemoryOrder {};
constexpr MemoryOrder<__ATOMIC_RELAXED> kRelaxed;
constexpr MemoryOrder<__ATOMIC_ACQUIRE> kAcquire;
constexpr MemoryOrder<__ATOMIC_RELEASE> kRelease;
constexpr MemoryOrder<__ATOMIC_ACQ_REL> kAcqRel;
constexpr MemoryOrder<__ATOMIC_SEQ_CST> kSeqCst;

template <class T, int o> TT_INLINE T atomic_load(const T* p, MemoryOrder<o>) {
  return __atomic_load_n(p, o);
}
template <class T, int o>
TT_INLINE void atomic_store(T* p, typename Itself<T>::Type v, MemoryOrder<o>) {
  __atomic_store_n(p, v, o);
}
template <class T, int o>
TT_INLINE T atomic_exchange(T* p, typename Itself<T>::Type v, MemoryOrder<o>) {
  return __atomic_exchange_n(p, v, o);
}
// Stores v if *p is *expected, else loads *p to *expected. Returns whether it stored. The weak form
// may fail without a reason.
template <class T, int o, int f>
TT_INLINE bool atomic_compare_exchange(T* p, T* expected, typename Itself<T>::Type v,
                                       MemoryOrder<o>, MemoryOrder<f>) {
  return __atomic_compare_exchange_n(p, expected, v, false, o, f);
}
template <class T, int o, int f>
TT_INLINE bool atomic_compare_exchange_weak(T* p, T* expected, typename Itself<T>::Type v,
                                            MemoryOrder<o>, MemoryOrder<f>) {
  return __atomic_compare_exchange_n(p, expected, v, true, o, f);
}
// The value before (fetch_add …) or after (add_fetch …) the operation.
#define TT_ATOMIC_OPERATION(name)                                               \
  template <class T, int o>                                                     \
  TT_INLINE T atomic_##name(T* p, typename Itself<T>::Type v, MemoryOrder<o>) { \
    return __atomic_##name(p, v, o);                                            \
  }
TT_ATOMIC_OPERATION(fetch_add)
TT_ATOMIC_OPERATION(fetch_sub)
TT_ATOMIC_OPERATION(fetch_and)
TT_ATOMIC_OPERATION(fetch_or)
TT_ATOMIC_OPERATION(add_fetch)
TT_ATOMIC_OPERATION(sub_fetch)
TT_ATOMIC_OPERATION(and_fetch)
TT_ATOMIC_OPERATION(or_fetch)
#undef TT_ATOMIC_OPERATION
// Orders this thread's accesses against a handler that interrupts it.
TT_INLINE void signal_fence() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

// ---- the processor ----

#if defined(__x86_64__)
#define TT_X86_64 1
// A hint that the thread waits in a loop.
TT_INLINE void cpu_pause() noexcept { __builtin_ia32_pause(); }
TT_INLINE int64_t cpu_ticks() noexcept { return int64_t(__builtin_ia32_rdtsc()); }
#define TT_HAS_CPU_TICKS 1
// The register state that the system saves on a context switch, if the processor has OSXSAVE.
TT_INLINE uint32_t saved_registers() noexcept {
  uint32_t low;
  __asm__ volatile("xgetbv" : "=a"(low) : "c"(0) : "edx");
  return low;
}
#elif defined(__aarch64__)
TT_INLINE void cpu_pause() noexcept { __asm__ volatile("yield"); }
TT_INLINE int64_t cpu_ticks() noexcept {
  int64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}
#define TT_HAS_CPU_TICKS 1
#else
TT_INLINE void cpu_pause() noexcept {}
#define TT_HAS_CPU_TICKS 0
#endif
#ifndef TT_X86_64
#define TT_X86_64 0
#endif

// ---- the C library's functions, which the compiler knows ----

namespace libm {

#define TT_LIBM(T, name) \
  TT_FN T name(T x) { return __builtin_##name(x); }
#define TT_LIBM_2(T, name) \
  TT_FN T name(T x, T y) { return __builtin_##name(x, y); }
#define TT_LIBM_3(T, name) \
  TT_FN T name(T x, T y, T z) { return __builtin_##name(x, y, z); }
#include "base/compiler/libm.inc"
#undef TT_LIBM
#undef TT_LIBM_2
#undef TT_LIBM_3
TT_FN bool is_finite(double x) { return __builtin_isfinite(x); }
TT_FN bool is_infinite(double x) { return __builtin_isinf(x); }
TT_FN bool has_sign(double x) { return __builtin_signbit(x); }

#if !defined(__CUDACC__)
struct ComplexDouble {
  double re, im;
};
__extension__ typedef __complex__ double BuiltinComplex;  // C99's, which C++ lacks
TT_INLINE BuiltinComplex to_builtin(ComplexDouble z) {
  BuiltinComplex c;
  __real__ c = z.re;
  __imag__ c = z.im;
  return c;
}
TT_INLINE ComplexDouble from_builtin(BuiltinComplex c) { return {__real__ c, __imag__ c}; }
#define TT_LIBM_COMPLEX(name)                              \
  TT_INLINE ComplexDouble name(ComplexDouble z) {          \
    return from_builtin(__builtin_c##name(to_builtin(z))); \
  }
#include "base/compiler/libm_complex.inc"
#undef TT_LIBM_COMPLEX
TT_INLINE ComplexDouble pow(ComplexDouble a, ComplexDouble b) {
  return from_builtin(__builtin_cpow(to_builtin(a), to_builtin(b)));
}
#endif

}  // namespace libm
}  // namespace TT_NS
