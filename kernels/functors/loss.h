// Functors of losses of one element, and their gradients. g: the gradient of the result.
#pragma once

#include "kernels/functors/activation.h"

TT_FUNCTORS_BEGIN

struct AbsoluteDifference {
  template <class T> static TT_FN T op(T x, T y, const Param<T>&) { return math::fabs(x - y); }
};
struct AbsoluteDifferenceBackward {  // 0 where x = y
  template <class T> static TT_FN T op(T g, T x, T y, const Param<T>&) {
    return g * (T(x > y) - T(x < y));
  }
};
struct SquaredDifference {
  template <class T> static TT_FN T op(T x, T y, const Param<T>&) { return (x - y) * (x - y); }
};

// Param 0 is beta > 0: quadratic where |x - y| < beta, else linear.
struct SmoothL1 {
  template <class T> static TT_FN T op(T x, T y, const Param<T>& p) {
    const T z = math::fabs(x - y);
    const T beta = p.v[0];
    return z < beta ? T(0.5) * z * z / beta : z - T(0.5) * beta;
  }
};
struct SmoothL1Backward {
  template <class T> static TT_FN T op(T g, T x, T y, const Param<T>& p) {
    const T d = x - y;
    const T beta = p.v[0];
    return d <= -beta ? -g : d >= beta ? g : g * d / beta;
  }
};
// As SmoothL1, times delta = param 0.
struct Huber {
  template <class T> static TT_FN T op(T x, T y, const Param<T>& p) {
    const T z = math::fabs(x - y);
    const T delta = p.v[0];
    return z <= delta ? T(0.5) * z * z : delta * (z - T(0.5) * delta);
  }
};
struct HuberBackward {
  template <class T> static TT_FN T op(T g, T x, T y, const Param<T>& p) {
    const T d = x - y;
    const T delta = p.v[0];
    return d <= -delta ? -delta * g : d >= delta ? delta * g : g * d;
  }
};

// Of a probability x and a target y; logarithms end at -100, as PyTorch's.
struct BinaryCrossEntropy {
  template <class T> static TT_FN T op(T x, T y, const Param<T>&) {
    const T no = math::log1p(-x);
    const T yes = math::log(x);
    return (y - T(1)) * (no < T(-100) ? T(-100) : no) - y * (yes < T(-100) ? T(-100) : yes);
  }
};
struct BinaryCrossEntropyBackward {
  template <class T> static TT_FN T op(T g, T x, T y, const Param<T>&) {
    const T spread = (T(1) - x) * x;
    return g * (x - y) / (spread < T(1e-12) ? T(1e-12) : spread);
  }
};

TT_FUNCTORS_END
