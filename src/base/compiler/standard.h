// gnu.h's functions by the standard library, for a compiler without GNU's builtins. Templates of
// the library are no danger here: there are no weak symbols that could mix instruction sets, if the
// build gives every set its own flags by file, as MSVC's does.
#pragma once

#include <atomic>
#include <bit>
#include <complex>
#include <limits>
#include <math.h>

#define TT_HAS_UINT128 0

namespace TT_NS {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class To, class From> TT_FN constexpr To bit_cast(const From& x) {
  return std::bit_cast<To>(x);
}
TT_INLINE int leading_zeros(uint64_t x) { return std::countl_zero(x); }
TT_INLINE int trailing_zeros(uint64_t x) { return std::countr_zero(x); }
TT_INLINE int trailing_zeros(uint32_t x) { return std::countr_zero(x); }
TT_INLINE int count_ones(uint32_t x) { return std::popcount(x); }
TT_INLINE uint64_t swap_bytes(uint64_t x) {
  uint64_t y = 0;
  for (int i = 0; i < 8; i++) y |= (x >> 8 * i & 0xff) << (56 - 8 * i);
  return y;
}

// *r = a + b, a - b, a * b. Returns true, and wraps, if the result is no int64_t.
TT_INLINE constexpr bool add_overflow(int64_t a, int64_t b, int64_t* r) {
  *r = int64_t(uint64_t(a) + uint64_t(b));
  return ((a ^ *r) & (b ^ *r)) < 0;
}
TT_INLINE constexpr bool sub_overflow(int64_t a, int64_t b, int64_t* r) {
  *r = int64_t(uint64_t(a) - uint64_t(b));
  return ((a ^ b) & (a ^ *r)) < 0;
}
TT_INLINE constexpr bool mul_overflow(int64_t a, int64_t b, int64_t* r) {
  *r = int64_t(uint64_t(a) * uint64_t(b));
  if (a == 0 || b == 0) return false;
  if (a == -1) return b == INT64_MIN;
  if (b == -1) return a == INT64_MIN;
  return *r / b != a;
}
// The same for unsigned results of operands that are not negative.
TT_INLINE constexpr bool add_overflow(uint64_t a, uint64_t b, uint64_t* r) {
  *r = a + b;
  return *r < a;
}
TT_INLINE constexpr bool sub_overflow(uint64_t a, uint64_t b, uint64_t* r) {
  *r = a - b;
  return a < b;
}
TT_INLINE constexpr bool mul_overflow(uint64_t a, uint64_t b, uint64_t* r) {
  *r = a * b;
  return a != 0 && *r / a != b;
}

constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
constexpr std::memory_order kAcquire = std::memory_order_acquire;
constexpr std::memory_order kRelease = std::memory_order_release;
constexpr std::memory_order kAcqRel = std::memory_order_acq_rel;
constexpr std::memory_order kSeqCst = std::memory_order_seq_cst;

template <class T> TT_INLINE T atomic_load(const T* p, std::memory_order o) {
  return std::atomic_ref<T>(*const_cast<T*>(p)).load(o);
}
template <class T>
TT_INLINE void atomic_store(T* p, typename Itself<T>::Type v, std::memory_order o) {
  std::atomic_ref<T>(*p).store(v, o);
}
template <class T>
TT_INLINE T atomic_exchange(T* p, typename Itself<T>::Type v, std::memory_order o) {
  return std::atomic_ref<T>(*p).exchange(v, o);
}
template <class T>
TT_INLINE bool atomic_compare_exchange(T* p, T* expected, typename Itself<T>::Type v,
                                       std::memory_order o, std::memory_order failure) {
  return std::atomic_ref<T>(*p).compare_exchange_strong(*expected, v, o, failure);
}
template <class T>
TT_INLINE bool atomic_compare_exchange_weak(T* p, T* expected, typename Itself<T>::Type v,
                                            std::memory_order o, std::memory_order failure) {
  return std::atomic_ref<T>(*p).compare_exchange_weak(*expected, v, o, failure);
}
#define TT_ATOMIC_OPERATION(name, sign)                                                      \
  template <class T>                                                                         \
  TT_INLINE T atomic_fetch_##name(T* p, typename Itself<T>::Type v, std::memory_order o) {   \
    return std::atomic_ref<T>(*p).fetch_##name(v, o);                                        \
  }                                                                                          \
  template <class T>                                                                         \
  TT_INLINE T atomic_##name##_fetch(T* p, typename Itself<T>::Type v, std::memory_order o) { \
    return T(std::atomic_ref<T>(*p).fetch_##name(v, o) sign v);                              \
  }
TT_ATOMIC_OPERATION(add, +)
TT_ATOMIC_OPERATION(sub, -)
TT_ATOMIC_OPERATION(and, &)
TT_ATOMIC_OPERATION(or, |)
#undef TT_ATOMIC_OPERATION
TT_INLINE void signal_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

namespace libm {

#define TT_LIBM(T, name) \
  TT_FN T name(T x) { return T(::name(x)); }
#define TT_LIBM_2(T, name) \
  TT_FN T name(T x, T y) { return T(::name(x, y)); }
#define TT_LIBM_3(T, name) \
  TT_FN T name(T x, T y, T z) { return T(::name(x, y, z)); }
#include "base/compiler/libm.inc"
#undef TT_LIBM
#undef TT_LIBM_2
#undef TT_LIBM_3
TT_FN bool is_finite(double x) { return std::isfinite(x); }
TT_FN bool is_infinite(double x) { return std::isinf(x); }
TT_FN bool has_sign(double x) { return std::signbit(x); }

struct ComplexDouble {
  double re, im;
};
#define TT_LIBM_COMPLEX(name)                                   \
  TT_INLINE ComplexDouble name(ComplexDouble z) {               \
    const auto w = std::name(std::complex<double>(z.re, z.im)); \
    return {w.real(), w.imag()};                                \
  }
#include "base/compiler/libm_complex.inc"
#undef TT_LIBM_COMPLEX
TT_INLINE ComplexDouble pow(ComplexDouble a, ComplexDouble b) {
  const auto w = std::pow(std::complex<double>(a.re, a.im), std::complex<double>(b.re, b.im));
  return {w.real(), w.imag()};
}

}  // namespace libm
}  // namespace TT_NS
