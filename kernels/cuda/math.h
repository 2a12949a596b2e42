// Real functions of the device: CUDA's library under the names that functors use.
#pragma once

#include <math.h>

#include "kernels/functors/functor.h"

TT_FUNCTORS_BEGIN
namespace math {

#define TT_DEVICE_MATH(name)                         \
  TT_FN float name(float x) { return ::name##f(x); } \
  TT_FN double name(double x) { return ::name(x); }
TT_DEVICE_MATH(exp)
TT_DEVICE_MATH(log)
TT_DEVICE_MATH(tanh)
TT_DEVICE_MATH(sqrt)
TT_DEVICE_MATH(sin)
TT_DEVICE_MATH(cos)
TT_DEVICE_MATH(trunc)
TT_DEVICE_MATH(floor)
TT_DEVICE_MATH(ceil)
TT_DEVICE_MATH(rint)
TT_DEVICE_MATH(fabs)
TT_DEVICE_MATH(exp2)
TT_DEVICE_MATH(expm1)
TT_DEVICE_MATH(log2)
TT_DEVICE_MATH(log10)
TT_DEVICE_MATH(log1p)
TT_DEVICE_MATH(tan)
TT_DEVICE_MATH(asin)
TT_DEVICE_MATH(acos)
TT_DEVICE_MATH(atan)
TT_DEVICE_MATH(asinh)
TT_DEVICE_MATH(acosh)
TT_DEVICE_MATH(atanh)
TT_DEVICE_MATH(sinh)
TT_DEVICE_MATH(cosh)
TT_DEVICE_MATH(erf)
TT_DEVICE_MATH(erfc)
#undef TT_DEVICE_MATH
#define TT_DEVICE_MATH(name)                                     \
  TT_FN float name(float x, float y) { return ::name##f(x, y); } \
  TT_FN double name(double x, double y) { return ::name(x, y); }
TT_DEVICE_MATH(pow)
TT_DEVICE_MATH(fmod)
TT_DEVICE_MATH(hypot)
TT_DEVICE_MATH(copysign)
#undef TT_DEVICE_MATH

template <class T> TT_FN T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }

// One instruction each, with relative errors up to 2^-22; what is below 2^-126 is 0.
#if defined(__CUDA_ARCH__)
TT_FN float quick_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TT_FN float quick_inverse(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else
TT_FN float quick_exp2(float x) { return ::exp2f(x); }
TT_FN float quick_inverse(float x) { return 1.0f / x; }
#endif
// For results that are rounded to halves: relative errors up to 2^-17.
TT_FN float quick_exp(float x) { return quick_exp2(x * 1.44269504f); }
TT_FN float quick_quotient(float x, float y) { return x * quick_inverse(y); }
TT_FN float quick_sigmoid(float x) { return quick_inverse(1.0f + quick_exp(-x)); }

// Phi(-|x|) and exp(-x^2/2), in place of the template in functors/activation.h. With t = |x|
// Phi(-t) = exp(-t^2/2) u p(u), u = 1 / (1 + 0.3 t), after A&S 26.2.17; p is fitted to t
// in [0, 14.5] with relative errors up to 4e-9. exp(-t^2/2) = 2^(z + low).
TT_FN float normal_tail(float x, float* bell) {
  const float t = ::fminf(fabs(x), 20.0f);  // where both are 0
  const float u = quick_inverse(::fmaf(0.3f, t, 1.0f));
  constexpr double kFactor = -0.72134752044448170368;  // -log2(e) / 2
  constexpr float k = float(kFactor);
  const float square = t * t;
  const float z = square * k;
  float low = ::fmaf(square, k, -z);
  low = ::fmaf(square, float(kFactor - double(k)), low);
  low = ::fmaf(::fmaf(t, t, -square), k, low);
  const float power = quick_exp2(z);
  *bell = ::fmaf(power * low, 0.69314718f, power);
  float p = ::fmaf(u, -0.02062346227f, 0.1124355793f);
  p = ::fmaf(u, p, -0.2282135189f);
  p = ::fmaf(u, p, 0.1917844117f);
  p = ::fmaf(u, p, -0.07942339778f);
  p = ::fmaf(u, p, 0.0961567834f);
  p = ::fmaf(u, p, 0.07838966697f);
  p = ::fmaf(u, p, 0.1102354228f);
  p = ::fmaf(u, p, 0.1195718125f);
  return *bell * u * ::fmaf(u, p, 0.119686693f);
}

template <class T> TT_FN T vector_hypot(T a, T b) { return hypot(a, b); }
template <class T> TT_FN T log1p_exp(T x) { return log1p(exp(x)); }
template <class T> TT_FN T expm1_of_negative(T x) { return expm1(x); }
template <class T> TT_FN bool is_hard_fmod(T, T) { return false; }
template <class T> TT_FN T short_fmod(T a, T b) { return fmod(a, b); }
template <class T> TT_FN bool is_hard_angle(T) { return false; }
template <class T> TT_FN T sin_hard(T x) { return sin(x); }
template <class T> TT_FN T cos_hard(T x) { return cos(x); }
template <class T> TT_FN T tan_hard(T x) { return tan(x); }
TT_FN void sin_cos(float x, float* s, float* c) { ::sincosf(x, s, c); }
TT_FN void sin_cos(double x, double* s, double* c) { ::sincos(x, s, c); }

}  // namespace math
TT_FUNCTORS_END
