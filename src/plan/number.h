// Real and complex numbers by the same names, for algorithms that are written once for both. Always
// inlined, as base/arith.h is.
#pragma once

#include "base/platform.h"

namespace TT_NS {

template <class R> struct ComplexNumber { R re, im; };

template <class N> struct RealPartOf { using Type = N; };
template <class R> struct RealPartOf<ComplexNumber<R>> { using Type = R; };
template <class N> using RealOf = typename RealPartOf<N>::Type;
// The real numbers that an N consists of.
template <class N> constexpr int64_t kParts = int64_t(sizeof(N) / sizeof(RealOf<N>));
template <class N> TT_INLINE RealOf<N>* parts_of(N* p) { return reinterpret_cast<RealOf<N>*>(p); }
template <class N> TT_INLINE const RealOf<N>* parts_of(const N* p) {
  return reinterpret_cast<const RealOf<N>*>(p);
}

template <class R>
TT_INLINE constexpr ComplexNumber<R> operator+(ComplexNumber<R> x, ComplexNumber<R> y) {
  return {x.re + y.re, x.im + y.im};
}
template <class R>
TT_INLINE constexpr ComplexNumber<R> operator-(ComplexNumber<R> x, ComplexNumber<R> y) {
  return {x.re - y.re, x.im - y.im};
}
template <class R> TT_INLINE constexpr ComplexNumber<R> operator-(ComplexNumber<R> x) {
  return {-x.re, -x.im};
}
template <class R>
TT_INLINE constexpr ComplexNumber<R> operator*(ComplexNumber<R> x, ComplexNumber<R> y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <class R> TT_INLINE constexpr ComplexNumber<R> operator*(ComplexNumber<R> x, R y) {
  return {x.re * y, x.im * y};
}

template <class R> TT_INLINE constexpr R real_part(R x) { return x; }
template <class R> TT_INLINE constexpr R real_part(ComplexNumber<R> x) { return x.re; }
template <class R> TT_INLINE constexpr R conj_of(R x) { return x; }
template <class R> TT_INLINE constexpr ComplexNumber<R> conj_of(ComplexNumber<R> x) {
  return {x.re, -x.im};
}
template <class N> TT_INLINE constexpr N from_real(RealOf<N> x) {
  if constexpr (kParts<N> == 2) return {x, 0};
  else return x;
}
template <class N> TT_INLINE constexpr bool is_zero(N x) {
  if constexpr (kParts<N> == 2) return x.re == 0 && x.im == 0;
  else return x == 0;
}
// |x|, of complex numbers |re| + |im|, as LAPACK compares pivots.
template <class R> TT_INLINE constexpr R magnitude_of(R x) { return x < 0 ? -x : x; }
template <class R> TT_INLINE constexpr R magnitude_of(ComplexNumber<R> x) {
  return magnitude_of(x.re) + magnitude_of(x.im);
}

}  // namespace TT_NS
