// Functors of activations and of their gradients in terms of the input x; g: the gradient of the result.
#pragma once

#include "functors/math.h"

TT_FUNCTORS_BEGIN
namespace math {

#if defined(__CUDACC__)
template <class T> TT_FN T normal_tail(T x, T* bell) {
  const T t = fabs(x);
  *bell = exp(T(-0.5) * t * t);
  return T(0.5) * erfc(t * T(0.7071067811865476));
}
template <class T> TT_FN T if_negative(T x, T a, T b) { return x < T(0) ? a : b; }
#else
TT_FN double if_negative(double x, double a, double b) { return x < 0 ? a : b; }
#endif

}  // namespace math

// ---- pieces of straight lines ----

struct HardtanhBackward {  // g strictly between param 0 and param 1; nan passes g
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) { return x <= p.v[0] || x >= p.v[1] ? T(0) : g; }
};
struct LeakyRelu {  // param 0: the slope below 0
  template <class T> static TT_FN T op(T x, const Param<T>& p) { return x > T(0) ? x : x * p.v[0]; }
};
struct LeakyReluBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) { return x > T(0) ? g : g * p.v[0]; }
};
struct Hardsigmoid {
  template <class T> static TT_FN T op(T x, const Param<T>&) { return at_most(at_least(x + T(3), T(0)), T(6)) / T(6); }
};
struct HardsigmoidBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) { return x > T(-3) && x < T(3) ? g / T(6) : T(0); }
};
struct Hardswish {
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    return x * at_most(at_least(x + T(3), T(0)), T(6)) / T(6);
  }
};
struct HardswishBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) {
    return x <= T(-3) ? T(0) : x < T(3) ? g * (x / T(3) + T(0.5)) : g;
  }
};

// ---- exponentials ----

struct Elu {  // param 0: alpha
  template <class T> static TT_FN T op(T x, const Param<T>& p) {
    return x > T(0) ? x : p.v[0] * math::expm1(x > T(0) ? T(0) : x);
  }
};
struct EluBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    return x > T(0) ? g : g * p.v[0] * math::exp(x > T(0) ? T(0) : x);
  }
};
struct Softplus {  // param 0: beta, param 1: where beta x is greater, the result is x
  template <class T> static TT_FN T op(T x, const Param<T>& p) {
    const T z = x * p.v[0], up = z > T(0) ? z : T(0);
    return z > p.v[1] ? x : (up + math::log1p(math::exp(-math::fabs(z)))) / p.v[0];
  }
};
struct SoftplusBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    const T z = x * p.v[0];
    return z > p.v[1] ? g : g * math::sigmoid(z);
  }
};
struct LogSigmoid {
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    return (x < T(0) ? x : T(0)) - math::log1p(math::exp(-math::fabs(x)));
  }
};
struct LogSigmoidBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) { return g * math::sigmoid(-x); }
};
struct Gated {  // a sigmoid(b): the two halves of glu
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return a * math::sigmoid(b); }
};

struct Softsign {
  template <class T> static TT_FN T op(T x, const Param<T>&) { return x / (T(1) + math::fabs(x)); }
};
struct Silu {
  template <class V> static TT_FN V lanes(V x) { return x * math::sigmoid(x); }
  template <class T> static TT_FN T op(T x, const Param<T>&) { return x * math::sigmoid(x); }
};
struct SiluBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>& p) {
    const T s = math::sigmoid(x);
    if constexpr (kIsComplex<T>) return g * Conj::op(s * (T{1, 0} + x * (T{1, 0} - s)), p);
    else return g * (s * (T(1) + x * (T(1) - s)));
  }
};

// Phi is the distribution function of the standard normal distribution.
struct Gelu {  // x Phi(x)
#if defined(__AVX512F__)
  template <class V> static TT_FN V lanes(V x) { return math::gelu(x); }
#endif
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    T bell;
    const T tail = math::normal_tail(x, &bell);
    return x * math::if_negative(x, tail, T(1) - tail);
  }
};
struct GeluBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) {
    T bell;
    const T tail = math::normal_tail(x, &bell);
    return g * (math::if_negative(x, tail, T(1) - tail) + x * bell * T(0.3989422804014327));
  }
};

// (1 + tanh(u)) / 2 = sigmoid(2 u), 2 u = x (k + c x^2).
constexpr double kGeluK = 1.5957691216057308, kGeluC = kGeluK * 0.044715;
struct GeluTanh {
#if defined(__AVX512F__)
  template <class V> static TT_FN V lanes(V x) {
    return x * math::sigmoid(V(x * math::fma(x * x, math::splat<V>(float(kGeluC)), math::splat<V>(float(kGeluK)))));
  }
#endif
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    return x * math::sigmoid(x * (x * x * T(kGeluC) + T(kGeluK)));
  }
};
struct GeluTanhBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) {
    const T square = x * x, s = math::sigmoid(x * (square * T(kGeluC) + T(kGeluK)));
    return g * (s + x * s * (T(1) - s) * (square * T(3 * kGeluC) + T(kGeluK)));
  }
};

// tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2); e = exp(x), ended where the quotient is 1.
template <class T> constexpr T kMishEnd = T(sizeof(T) == 4 ? 20 : 40);
struct Mish {
  template <class T> static TT_FN T op(T x, const Param<T>&) {
    const T e = math::exp(at_most(x, kMishEnd<T>)), n = e * (e + T(2));
    return x * (n / (n + T(2)));
  }
};
struct MishBackward {
  template <class T> static TT_FN T op(T g, T x, const Param<T>&) {
    const T e = math::exp(at_most(x, kMishEnd<T>)), n = e * (e + T(2)), m = n + T(2);
    const T slope = (n + T(4) * x * (e * (T(1) + e) / m)) / m;
    return x > kMishEnd<T> ? g : g * slope;
  }
};

TT_FUNCTORS_END
