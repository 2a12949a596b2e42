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

// For results that are rounded to halves: relative errors up to 2^-18, and a quotient by more than
// 2^126 is 0.
#if defined(__CUDA_ARCH__)
TT_FN float quick_exp(float x) { return __expf(x); }
TT_FN float quick_quotient(float x, float y) { return __fdividef(x, y); }
#else
TT_FN float quick_exp(float x) { return ::expf(x); }
TT_FN float quick_quotient(float x, float y) { return x / y; }
#endif
TT_FN float quick_sigmoid(float x) { return quick_quotient(1.0f, 1.0f + quick_exp(-x)); }

template <class T> TT_FN bool is_hard_angle(T) { return false; }
template <class T> TT_FN T sin_hard(T x) { return sin(x); }
template <class T> TT_FN T cos_hard(T x) { return cos(x); }
template <class T> TT_FN T tan_hard(T x) { return tan(x); }
TT_FN void sin_cos(float x, float* s, float* c) { ::sincosf(x, s, c); }
TT_FN void sin_cos(double x, double* s, double* c) { ::sincos(x, s, c); }

}  // namespace math
TT_FUNCTORS_END
