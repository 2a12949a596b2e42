// Functors of activations and of their gradients in terms of the input x; g: the gradient of the
// result.
#pragma once

#include "kernels/functors/series.h"
#include "kernels/functors/unary.h"

TT_FUNCTORS_BEGIN
namespace math {

#if TT_ON_DEVICE
template <class T> TT_FN T normal_tail(T x, T* bell) {
  const T t = fabs(x);
  *bell = exp(T(-0.5) * t * t);
  return T(0.5) * erfc(t * T(0.7071067811865476));
}
template <class T> TT_FN T if_negative(T x, T a, T b) { return x < T(0) ? a : b; }
template <class T> TT_FN T gelu(T x) {
  T bell;
  const T tail = normal_tail(x, &bell);
  return x * if_negative(x, tail, T(1) - tail);
}
TT_FN float product_rest(float a, float b, float p) { return ::fmaf(a, b, -p); }
TT_FN double product_rest(double a, double b, double p) { return ::fma(a, b, -p); }
template <class T> TT_FN T gate(T v, T lost) {
  const T s = sigmoid(v);
  return s + s * (T(1) - s) * lost;
}
template <class T> TT_FN T gated(T x, T v, T lost) { return x * gate(v, lost); }
template <class T> TT_FN T mish(T x) {
  const T end = T(sizeof(T) == 4 ? 20 : 40);
  const T e = exp(x > end ? end : x);
  const T n = e * (e + T(2));
  return x * (n / (n + T(2)));
}
// For halves. Phi(-t) = exp(-t^2/2) p(u) with u = 1 / (1 + 0.38 t), after the form of A&S 26.2.17;
// p is fitted to t in [0, 15], with relative errors up to 4e-5.
TT_FN float quick_normal_tail(float x, float* bell) {
  const float t = fabs(x);
  const float u = quick_quotient(1.0f, ::fmaf(0.38f, t, 1.0f));
  *bell = quick_exp(-0.5f * t * t);
  float p = ::fmaf(u, -0.08992964f, 0.18887959f);
  p = ::fmaf(u, p, 0.09197713f);
  p = ::fmaf(u, p, 0.15783034f);
  return *bell * u * ::fmaf(u, p, 0.15122504f);
}
#else
TT_FN double if_negative(double x, double a, double b) { return x < 0 ? a : b; }
#endif

}  // namespace math

// ---- piecewise linear ----

struct Relu {  // of -0 it is 0, so that the largest of results is the result of the largest
  static constexpr NarrowOp kNarrow = NarrowOp::kRelu;
  template <class T> static TT_FN T op(T a, const Param<T>&) { return a <= T(0) ? T(0) : a; }
};
struct ThresholdBackward {  // g where x > param 0 (0 if absent); nan passes g
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    return x <= p.v[0] ? T(0) : g;
  }
};
struct HardtanhBackward {  // g strictly between param 0 and param 1; nan passes g
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    return x <= p.v[0] || x >= p.v[1] ? T(0) : g;
  }
};
struct LeakyRelu {  // param 0: the slope below 0
  static constexpr NarrowOp kNarrow = NarrowOp::kLeakyRelu;
  template <class T> static TT_FN T op(T x, const Param<T>& p) { return x > T(0) ? x : x * p.v[0]; }
};
struct LeakyReluBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    return x > T(0) ? g : g * p.v[0];
  }
};
struct Hardsigmoid {
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    return at_most(at_least(x + T(3), T(0)), T(6)) / T(6);
  }
};
struct HardsigmoidBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) {
    return x > T(-3) && x < T(3) ? g / T(6) : T(0);
  }
};
struct Hardswish {
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    return x * at_most(at_least(x + T(3), T(0)), T(6)) / T(6);
  }
};
struct HardswishBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) {
    const T not_low = x < T(3) ? g * (x / T(3) + T(0.5)) : g;
    return x <= T(-3) ? T(0) : not_low;
  }
};

struct Hardshrink {  // param 0: the bound below which |x| gives 0; nan stays nan
  template <class T> static TT_FN T op(T x, const Param<T>& p) {
    return x >= -p.v[0] && x <= p.v[0] ? T(0) : x;
  }
};
struct ShrinkBackward {  // of hardshrink and softshrink
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    return x >= -p.v[0] && x <= p.v[0] ? T(0) : g;
  }
};
struct Softshrink {  // param 0: lambda, by which |x| is reduced
  template <class T> static TT_FN T op(T x, const Param<T>& p) {
    if (x > p.v[0]) return x - p.v[0];
    return x < -p.v[0] ? x + p.v[0] : x * T(0);
  }
};
struct Threshold {  // param 1 where x <= param 0
  template <class T> static TT_FN T op(T x, const Param<T>& p) { return x <= p.v[0] ? p.v[1] : x; }
};
struct Prelu {  // slope w below 0
  template <class T> static TT_FN T op(T x, T w, const Param<T>&) { return x > T(0) ? x : w * x; }
};

// ---- exponentials ----

// scale * elu(x): scale and alpha are those for which means 0 and variances 1 are a fixed point
// (Klambauer et al., "Self-Normalizing Neural Networks", 2017).
struct Selu : Long {
  static constexpr double kScale = 1.0507009873554804934193349852946;
  static constexpr double kScaledAlpha = kScale * 1.6732632423543772848170429916717;
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    const T negative = x > T(0) ? T(0) : x;
    return x > T(0) ? T(kScale) * x : T(kScaledAlpha) * math::expm1_of_negative(negative);
  }
};
struct SeluBackward : LongInDouble {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) {
    const T negative = x > T(0) ? T(0) : x;
    return x <= T(0) ? g * T(Selu::kScaledAlpha) * math::exp(negative) : g * T(Selu::kScale);
  }
};
struct Celu : Long {  // param 0: alpha
  template <class T> static TT_FN T op(T x, const Param<T>& p) {
    const T negative = x > T(0) ? T(0) : x;
    return x > T(0) ? x : p.v[0] * math::expm1_of_negative(negative / p.v[0]);
  }
};
struct CeluBackward : LongInDouble {
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    const T negative = x > T(0) ? T(0) : x;
    return x <= T(0) ? g * math::exp(negative / p.v[0]) : g;
  }
};
struct Tanhshrink : Long {  // x - tanh(x): near 0, where they cancel, by a series
#if !TT_ON_DEVICE
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {
    return series::tanhshrink(x);
  }
  template <class V> static TT_FN V lanes(V x) { return math::tanhshrink(x); }
  static TT_FN float op(float x, const Param<float>&) { return math::tanhshrink(x); }
#endif
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    if constexpr (kIsComplex<T>) return x - math::tanh(x);
#if TT_ON_DEVICE
    else return T(series::tanhshrink(double(x)));
#endif
  }
};

struct Elu : Long {  // param 0: alpha
  template <class T> static TT_FN T op(T x, const Param<T>& p) {
    const T negative = x > T(0) ? T(0) : x;
    return x > T(0) ? x : p.v[0] * math::expm1_of_negative(negative);
  }
};
struct EluBackward : LongInDouble {
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    const T negative = x > T(0) ? T(0) : x;
    return x <= T(0) ? g * p.v[0] * math::exp(negative) : g;
  }
};
struct Softplus : Long {  // param 0: beta; param 1: the beta x above which the result is x
  template <class T> static TT_FN T op(T x, const Param<T>& p) {
    const T z = x * p.v[0];
    const T up = z > T(0) ? z : T(0);
    return z > p.v[1] ? x : (up + math::log1p_exp(-math::fabs(z))) / p.v[0];
  }
};
struct SoftplusBackward : LongInDouble {
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    const T z = x * p.v[0];
    return z > p.v[1] ? g : g * math::sigmoid(z);
  }
};
struct LogSigmoid : Long {
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    return (x < T(0) ? x : T(0)) - math::log1p_exp(-math::fabs(x));
  }
};
struct LogSigmoidBackward : LongInDouble {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) { return g * math::sigmoid(-x); }
};
struct Gated : LongInDouble {  // a sigmoid(b): the two halves of glu
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return a * math::sigmoid(b); }
};
struct GatedSlope : LongInDouble {  // g times the slope of a sigmoid(b) by b; e = exp(-|b|)
  template <class T> static TT_FN T op(T g, T a, T b, const Param<T>&) {
    const T e = math::exp(-math::fabs(b));
    const T sum = T(1) + e;
    return g * a * (e / (sum * sum));
  }
};

struct Softsign {
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    if constexpr (kIsComplex<T>) {
      const auto scale = 1 + math::hypot(x.re, x.im);
      return {x.re / scale, x.im / scale};
    } else {
      return x / (T(1) + math::fabs(x));
    }
  }
};
struct Silu : LongInDouble {
  template <class V> static TT_FN V lanes(V x) { return math::gated(x, x, V{}); }
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    if constexpr (kIsComplex<T>) return x * math::sigmoid(x);
    else return math::gated(x, x, T(0));
  }
#if TT_ON_DEVICE
  static TT_FN float op_half(float x, const Param<float>&) { return x * math::quick_sigmoid(x); }
#endif
};
struct SiluBackward : LongInDouble {
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    const T s = math::sigmoid(x);
    if constexpr (kIsComplex<T>) return g * Conj::op(s * (T{1, 0} + x * (T{1, 0} - s)), p);
    else return g * (s * (T(1) + x * (T(1) - s)));
  }
#if TT_ON_DEVICE
  static TT_FN float op_half(float g, float x, const Param<float>&) {
    const float s = math::quick_sigmoid(x);
    return g * (s * (1.0f + x * (1.0f - s)));
  }
#endif
};

// Phi is the distribution function of the standard normal distribution.
struct Gelu : LongInDouble {  // x Phi(x)
#if TT_LONG_VECTORS
  static TT_INLINE series::Wide wide(series::Wide x, const Param<double>&) {
    return series::gelu(x);
  }
#endif
#if TT_VECTOR_MATH
  template <class V> static TT_FN V lanes(V x) { return math::gelu(x); }
#endif
  template <class T> static TT_FN T op(T x, const Param<T>&) { return math::gelu(x); }
#if TT_ON_DEVICE
  static TT_FN float op_half(float x, const Param<float>&) {
    float bell;
    const float tail = math::quick_normal_tail(x, &bell);
    return x * math::if_negative(x, tail, 1.0f - tail);
  }
#endif
};
struct GeluBackward : LongInDouble {
#if TT_VECTOR_MATH
  template <class V> static TT_FN V lanes(V g, V x) { return g * math::gelu_slope(x); }
#endif
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) {
    T bell;
    const T tail = math::normal_tail(x, &bell);
    return g * (math::if_negative(x, tail, T(1) - tail) + x * bell * T(0.3989422804014327));
  }
#if TT_ON_DEVICE
  static TT_FN float op_half(float g, float x, const Param<float>&) {
    float bell;
    const float tail = math::quick_normal_tail(x, &bell);
    return g * (math::if_negative(x, tail, 1.0f - tail) + x * bell * 0.39894228f);
  }
#endif
};

// (1 + tanh(u)) / 2 = sigmoid(2 u), 2 u = x (k + c x^2). The constants are in two parts; beyond
// `end` the gate is 0 or 1.
template <class T> struct GeluConstants;
template <> struct GeluConstants<float> {
  static constexpr float k = 0x1.988454p+0f, k_low = -0x1.857936p-25f;
  static constexpr float c = 0x1.2444f2p-4f, c_low = 0x1.49b16ap-29f;
  static constexpr float end = 11;
};
template <> struct GeluConstants<double> {
  static constexpr double k = 0x1.9884533d43651p+0, k_low = -0x1.cbc0d30ebfd15p-54;
  static constexpr double c = 0x1.2444f2a4d8b4bp-4, c_low = -0x1.6c843a29d1c70p-61;
  static constexpr double end = 22;
};
// Returns v = 2 u, rounded, for |x| <= end; *lost: the rounding error, to the precision of T.
template <class T, class V> TT_FN V gelu_exponent(V x, V* lost) {
  using G = GeluConstants<T>;
  const V c = G::c - V{};
  const V square = x * x;
  const V a = square * G::c;
  const V w = a + G::k;
  const V k = w - a;
  const V sum = (a - (w - k)) + (G::k - k);
  const V cube = math::product_rest(square, c, a) + math::product_rest(x, x, square) * G::c;
  const V v = x * w;
  *lost = math::product_rest(x, w, v) + x * (sum + cube + (G::k_low + square * G::c_low));
  return v;
}
struct GeluTanh : LongInDouble {
#if TT_VECTOR_MATH
  template <class V> static TT_FN V lanes(V x) {
    constexpr float kEnd = GeluConstants<float>::end;
    V lost;
    const V v = gelu_exponent<float>(math::at_most(math::at_least(x, -kEnd), kEnd), &lost);
    return math::gated(x, v, lost);
  }
#endif
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    constexpr T kEnd = GeluConstants<T>::end;
    T lost;
    const T not_low = x < -kEnd ? -kEnd : x;
    const T v = gelu_exponent<T>(x > kEnd ? kEnd : not_low, &lost);
    return math::gated(x, v, lost);
  }
#if TT_ON_DEVICE
  static TT_FN float op_half(float x, const Param<float>&) {
    using G = GeluConstants<float>;
    return x * math::quick_sigmoid(x * ::fmaf(x * x, G::c, G::k));
  }
#endif
};
struct GeluTanhBackward : LongInDouble {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) {
    using G = GeluConstants<T>;
    T lost;
    const T not_low = x < -G::end ? -G::end : x;
    const T t = x > G::end ? G::end : not_low;
    const T v = gelu_exponent<T>(t, &lost);
    const T s = math::gate(v, lost);
    return g * (s + t * s * (T(1) - s) * (t * t * (T(3) * G::c) + G::k));
  }
#if TT_ON_DEVICE
  static TT_FN float op_half(float g, float x, const Param<float>&) {
    using G = GeluConstants<float>;
    const float not_low = x < -G::end ? -G::end : x;
    const float t = x > G::end ? G::end : not_low;
    const float s = math::quick_sigmoid(t * ::fmaf(t * t, G::c, G::k));
    return g * ::fmaf(t * s * (1.0f - s), ::fmaf(t * t, 3 * G::c, G::k), s);
  }
#endif
};

struct Mish : LongInDouble {
  template <class T> static TT_FN T op(T x, const Param<T>&) { return math::mish(x); }
};
// tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2), e = exp(x). x is bounded where the slope has
// become 1.
template <class T> constexpr T kMishEnd = T(sizeof(T) == 4 ? 20 : 40);
struct MishBackward : LongInDouble {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) {
    const T e = math::exp(at_most(x, kMishEnd<T>));
    const T n = e * (e + T(2));
    const T m = n + T(2);
    const T slope = (n + T(4) * x * (e * (T(1) + e) / m)) / m;
    return x > kMishEnd<T> ? g : g * slope;
  }
};

TT_FUNCTORS_END
