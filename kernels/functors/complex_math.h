// Transcendental functions of complex numbers. The host calls the C library, whose special values are those of C99
// Annex G.6; single precision is computed in double and rounded once. The device has exp only.
#pragma once

#include "functors/functor.h"

TT_FUNCTORS_BEGIN
namespace math {

#if defined(__CUDACC__)

template <class R>
TT_FN Complex<R> exp(Complex<R> z) {
  const R m = exp(z.re);
  if (z.im == 0) return {m, z.im};
  R s, c;
  sin_cos(z.im, &s, &c);
  if (m == 0 && z.im - z.im != 0) return {m, 0};  // exp(-inf + i inf or nan) = 0
  if (m - m != 0 && z.im - z.im != 0) return {m, z.im - z.im};
  return {m * c, m * s};
}

#else

TT_FN __complex__ double to_builtin(c128 z) {
  __complex__ double c;
  __real__ c = z.re;
  __imag__ c = z.im;
  return c;
}
TT_FN __complex__ double to_builtin(c64 z) { return to_builtin(c128{z.re, z.im}); }
template <class R> TT_FN Complex<R> from_builtin(__complex__ double c) { return {R(__real__ c), R(__imag__ c)}; }

template <class R> TT_FN Complex<R> exp(Complex<R> z) { return from_builtin<R>(__builtin_cexp(to_builtin(z))); }
template <class R> TT_FN Complex<R> log(Complex<R> z) { return from_builtin<R>(__builtin_clog(to_builtin(z))); }
template <class R> TT_FN Complex<R> tanh(Complex<R> z) { return from_builtin<R>(__builtin_ctanh(to_builtin(z))); }
template <class R> TT_FN Complex<R> sqrt(Complex<R> z) { return from_builtin<R>(__builtin_csqrt(to_builtin(z))); }
template <class R> TT_FN Complex<R> sin(Complex<R> z) { return from_builtin<R>(__builtin_csin(to_builtin(z))); }
template <class R> TT_FN Complex<R> cos(Complex<R> z) { return from_builtin<R>(__builtin_ccos(to_builtin(z))); }
template <class R> TT_FN Complex<R> pow(Complex<R> a, Complex<R> b) {
  if (b.re == 0 && b.im == 0) return {1, 0};
  return from_builtin<R>(__builtin_cpow(to_builtin(a), to_builtin(b)));
}
template <class R> TT_FN Complex<R> sigmoid(Complex<R> z) {
  const c128 e = from_builtin<double>(__builtin_cexp(to_builtin(-z)));
  const c128 y = c128{1, 0} / (c128{1, 0} + e);
  return {R(y.re), R(y.im)};
}

template <class R> TT_FN bool is_hard_angle(Complex<R>) { return false; }
template <class R> TT_FN Complex<R> sin_hard(Complex<R> z) { return sin(z); }
template <class R> TT_FN Complex<R> cos_hard(Complex<R> z) { return cos(z); }

#endif

}  // namespace math
TT_FUNCTORS_END
