// Transcendental functions: real ones from cpu/math on the host, from CUDA's library on the device;
// complex ones defined here. On the host these call the C library, whose special values are those
// of C99 Annex G.6, on the device those of libcu++. Single precision is computed in double and
// rounded once.
#pragma once

#include "kernels/functors/functor.h"
#if defined(__CUDACC__)
#include <cuda/std/complex>
#endif
#if TT_ON_DEVICE
#include "kernels/cuda/math.h"
#else
#include "kernels/cpu/math/math.h"
#endif

TT_FUNCTORS_BEGIN
namespace math {

#if defined(__CUDACC__)

// In double, rounded once.
TT_FN ::cuda::std::complex<double> to_library(c128 z) { return {z.re, z.im}; }
TT_FN ::cuda::std::complex<double> to_library(c64 z) { return {z.re, z.im}; }
template <class R> TT_FN Complex<R> from_library(::cuda::std::complex<double> z) {
  return {R(z.real()), R(z.imag())};
}
#define TT_COMPLEX_FUNCTION(name)                             \
  template <class R> TT_FN Complex<R> name(Complex<R> z) {    \
    return from_library<R>(::cuda::std::name(to_library(z))); \
  }
TT_COMPLEX_FUNCTION(exp)
TT_COMPLEX_FUNCTION(log)
TT_COMPLEX_FUNCTION(tanh)
TT_COMPLEX_FUNCTION(sqrt)
TT_COMPLEX_FUNCTION(sin)
TT_COMPLEX_FUNCTION(cos)
TT_COMPLEX_FUNCTION(asin)
TT_COMPLEX_FUNCTION(acos)
TT_COMPLEX_FUNCTION(atan)
#undef TT_COMPLEX_FUNCTION
template <class R> TT_FN Complex<R> pow(Complex<R> a, Complex<R> b) {
  if (b.re == 0 && b.im == 0) return {1, 0};
  return from_library<R>(::cuda::std::pow(to_library(a), to_library(b)));
}
template <class R> TT_FN Complex<R> sigmoid(Complex<R> z) {
  const c128 e = exp(c128{-z.re, -z.im});
  const c128 y = c128{1, 0} / (c128{1, 0} + e);
  return {R(y.re), R(y.im)};
}

#else

TT_FN libm::ComplexDouble to_libm(c128 z) { return {z.re, z.im}; }
TT_FN libm::ComplexDouble to_libm(c64 z) { return {z.re, z.im}; }
template <class R> TT_FN Complex<R> from_libm(libm::ComplexDouble z) { return {R(z.re), R(z.im)}; }

template <class R> TT_FN Complex<R> exp(Complex<R> z) {
  return from_libm<R>(libm::exp(to_libm(z)));
}
template <class R> TT_FN Complex<R> log(Complex<R> z) {
  return from_libm<R>(libm::log(to_libm(z)));
}
template <class R> TT_FN Complex<R> tanh(Complex<R> z) {
  return from_libm<R>(libm::tanh(to_libm(z)));
}
template <class R> TT_FN Complex<R> sqrt(Complex<R> z) {
  return from_libm<R>(libm::sqrt(to_libm(z)));
}
template <class R> TT_FN Complex<R> sin(Complex<R> z) {
  return from_libm<R>(libm::sin(to_libm(z)));
}
template <class R> TT_FN Complex<R> cos(Complex<R> z) {
  return from_libm<R>(libm::cos(to_libm(z)));
}
template <class R> TT_FN Complex<R> pow(Complex<R> a, Complex<R> b) {
  if (b.re == 0 && b.im == 0) return {1, 0};
  return from_libm<R>(libm::pow(to_libm(a), to_libm(b)));
}
template <class R> TT_FN Complex<R> sigmoid(Complex<R> z) {
  const c128 e = from_libm<double>(libm::exp(to_libm(-z)));
  const c128 y = c128{1, 0} / (c128{1, 0} + e);
  return {R(y.re), R(y.im)};
}

template <class R> TT_FN Complex<R> asin(Complex<R> z) {
  return from_libm<R>(libm::asin(to_libm(z)));
}
template <class R> TT_FN Complex<R> acos(Complex<R> z) {
  return from_libm<R>(libm::acos(to_libm(z)));
}
template <class R> TT_FN Complex<R> atan(Complex<R> z) {
  return from_libm<R>(libm::atan(to_libm(z)));
}
#endif

// By f(z) = -i g(iz), which is how Annex G defines these.
template <class R> TT_FN Complex<R> turned(Complex<R> z) { return {-z.im, z.re}; }
template <class R> TT_FN Complex<R> turned_back(Complex<R> z) { return {z.im, -z.re}; }
template <class R> TT_FN Complex<R> tan(Complex<R> z) { return turned_back(tanh(turned(z))); }
template <class R> TT_FN Complex<R> sinh(Complex<R> z) { return turned_back(sin(turned(z))); }
template <class R> TT_FN Complex<R> cosh(Complex<R> z) { return cos(turned(z)); }
template <class R> TT_FN Complex<R> asinh(Complex<R> z) { return turned_back(asin(turned(z))); }
template <class R> TT_FN Complex<R> atanh(Complex<R> z) { return turned_back(atan(turned(z))); }
// i acos(z) or -i acos(z): the one whose real part is not negative.
template <class R> TT_FN Complex<R> acosh(Complex<R> z) {
  const Complex<R> w = acos(z);
  return libm::has_sign(z.im) ? turned_back(w) : turned(w);
}

template <class R> TT_FN Complex<R> scaled(c128 z, double k) { return {R(z.re * k), R(z.im * k)}; }
template <class R> TT_FN Complex<R> exp2(Complex<R> z) {
  const c128 e = exp(c128{z.re * 0x1.62e42fefa39efp-1, z.im * 0x1.62e42fefa39efp-1});
  return {R(e.re), R(e.im)};
}
template <class R> TT_FN Complex<R> log2(Complex<R> z) {
  return scaled<R>(log(c128{z.re, z.im}), 0x1.71547652b82fep+0);
}
template <class R> TT_FN Complex<R> log10(Complex<R> z) {
  return scaled<R>(log(c128{z.re, z.im}), 0x1.bcb7b1526e50ep-2);
}
// exp(x + iy) - 1 = expm1(x) cos(y) - 2 sin(y/2)^2 + i exp(x) sin(y): no cancellation near 0.
template <class R> TT_FN Complex<R> expm1(Complex<R> z) {
  const double x = z.re;
  const double y = z.im;
  const double half = libm::sin(y * 0.5);
  return {R(libm::expm1(x) * libm::cos(y) - 2.0 * half * half), R(exp(x) * libm::sin(y))};
}
// |1 + z|^2 = 1 + (x (2 + x) + y^2).
template <class R> TT_FN Complex<R> log1p(Complex<R> z) {
  const double x = z.re, y = z.im;
  c128 w = log(c128{1.0 + x, y});
  if (libm::fabs(x) < 0.5 && libm::fabs(y) < 0.5) w.re = 0.5 * libm::log1p(x * (2.0 + x) + y * y);
  return {R(w.re), R(w.im)};
}

template <class R> TT_FN bool is_hard_angle(Complex<R>) { return false; }
template <class R> TT_FN Complex<R> sin_hard(Complex<R> z) { return sin(z); }
template <class R> TT_FN Complex<R> cos_hard(Complex<R> z) { return cos(z); }
template <class R> TT_FN Complex<R> tan_hard(Complex<R> z) { return tan(z); }

}  // namespace math
TT_FUNCTORS_END
