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
    const T above = d >= beta ? g : g * d / beta;
    return d <= -beta ? -g : above;
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
    const T above = d >= delta ? delta * g : g * d;
    return d <= -delta ? -delta * g : above;
  }
};

// x: a probability, y: a target in [0, 1]. Logarithms are at least -100, as in PyTorch.
template <class T> TT_FN T bounded_log(T log) { return log < T(-100) ? T(-100) : log; }
struct BinaryCrossEntropy : Long {
  template <class T> static TT_FN T op(T x, T y, const Param<T>&) {
    const T log_no = bounded_log(math::log1p(-x));
    const T log_yes = bounded_log(math::log(x));
    return (y - T(1)) * log_no - y * log_yes;
  }
};
struct BinaryCrossEntropyBackward {
  template <class T> static TT_FN T op(T g, T x, T y, const Param<T>&) {
    const T variance = (T(1) - x) * x;
    return g * (x - y) / (variance < T(1e-12) ? T(1e-12) : variance);
  }
};

TT_FUNCTORS_END
