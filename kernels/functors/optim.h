// The rules of optimizers: SGD, Adam, RMSprop and Adagrad, and what rules share. A rule updates a
// parameter p with gradient g and up to kOptimStates states s: a vector of elements at once on the
// CPU, whose vectors are included before, one element on devices.
#pragma once

#include "kernels/functors/target.h"
#include "plan/optim_plan.h"

#if TT_ON_DEVICE
#include "kernels/functors/functor.h"
#else
#include "kernels/cpu/simd/isa.h"
#define TT_FUNCTORS_BEGIN TT_ISA_BEGIN
#define TT_FUNCTORS_END TT_ISA_END
#endif

TT_FUNCTORS_BEGIN

#if TT_ON_DEVICE
template <class T> using Vec = T;
template <class T> TT_FN T load(const T* p) { return *p; }
template <class T> TT_FN void store(T* p, T v) { *p = v; }
template <class T> TT_FN T splat(T v) { return v; }
template <class T> TT_FN T chosen(bool mask, T a, T b) { return mask ? a : b; }
template <class T> TT_FN T vmax(T x, T m) { return x > m ? x : m; }
TT_FN float vsqrt(float x) { return ::sqrtf(x); }
TT_FN double vsqrt(double x) { return ::sqrt(x); }
TT_FN float vfma(float x, float y, float z) { return ::fmaf(x, y, z); }
TT_FN double vfma(double x, double y, double z) { return ::fma(x, y, z); }
#endif

// Pointers to a run of elements of all arrays.
template <class T> struct Run {
  T* p;
  const T* g;
  T* s[kOptimStates];
};

// What the rules share: the sign of the gradient, the weight decay, which states exist, and which
// are fresh: not initialised, to be read as 0.
template <class T> struct Rule {
  using V = Vec<T>;
  V sign, weight_decay;
  bool decays, nesterov, has[kOptimStates], fresh[kOptimStates];

  TT_FN Rule(const OptimItem& item, double decay) {
    sign = splat(T(item.flags & kOptimMaximize ? -1 : 1));
    weight_decay = splat(T(decay));
    decays = decay != 0;
    nesterov = item.flags & kOptimNesterov;
    for (int k = 0; k < kOptimStates; k++) {
      has[k] = item.state[k];
      fresh[k] = item.fresh >> k & 1;
    }
  }
  TT_FN V grad(const Run<T>& r, V p) const {
    const V g = sign * load(r.g);
    return decays ? vfma(p, weight_decay, g) : g;
  }
  TT_FN V state(const Run<T>& r, int k) const { return fresh[k] ? V{} : load(r.s[k]); }
};

// An exponential moving average to which each gradient contributes `share` in [0, 1].
template <class T> struct Average {
  using V = Vec<T>;
  V share;
  bool near_g;

  TT_FN explicit Average(double s) : share(splat(T(s))), near_g(s >= 0.5) {}
  // m + share (g - m), computed from the nearer end, so that it is exactly g if share is 1.
  TT_FN V operator()(V m, V g) const {
    const V d = g - m;
    return near_g ? vfma(d, share - splat(T(1)), g) : vfma(d, share, m);
  }
};

// The formulas of the rules are those of plan/optim_plan.h.
template <class T> struct Sgd : Rule<T> {
  using typename Rule<T>::V;
  V lr, momentum, gradient_share;

  TT_FN explicit Sgd(const OptimItem& item)
      : Rule<T>(item, item.factors.sgd.weight_decay),
        lr(splat(T(item.factors.sgd.lr))),
        momentum(splat(T(item.factors.sgd.momentum))),
        gradient_share(splat(T(item.factors.sgd.gradient_share))) {}
  TT_FN void operator()(const Run<T>& r) const {
    V p = load(r.p);
    V g = this->grad(r, p);
    if (this->has[0]) {
      const V b = this->fresh[0] ? g : vfma(load(r.s[0]), momentum, g * gradient_share);
      store(r.s[0], b);
      g = this->nesterov ? vfma(b, momentum, g) : b;
    }
    store(r.p, V(p - lr * g));
  }
};

template <class T> struct Adam : Rule<T> {
  using typename Rule<T>::V;
  V step_size, beta2, v_share, root_scale, eps, shrink;
  Average<T> average;

  TT_FN explicit Adam(const OptimItem& item)
      : Rule<T>(item, item.factors.adam.weight_decay),
        step_size(splat(T(item.factors.adam.step_size))),
        beta2(splat(T(item.factors.adam.beta2))),
        v_share(splat(T(item.factors.adam.v_share))),
        root_scale(splat(T(item.factors.adam.root_scale))),
        eps(splat(T(item.factors.adam.eps))),
        shrink(splat(T(item.factors.adam.shrink))),
        average(item.factors.adam.m_share) {}
  TT_FN void operator()(const Run<T>& r) const {
    V p = load(r.p);
    const V g = this->grad(r, p);
    p = p * shrink;
    V m = this->state(r, 0);
    V v = this->state(r, 1);
    m = average(m, g);
    v = vfma(v, beta2, V(g * g * v_share));
    store(r.s[0], m);
    store(r.s[1], v);
    if (this->has[2]) {
      v = vmax(this->state(r, 2), v);
      store(r.s[2], v);
    }
    const V size = vfma(vsqrt(v), root_scale, eps);
    store(r.p, V(p - step_size * m / size));
  }
};

template <class T> struct Rmsprop : Rule<T> {
  using typename Rule<T>::V;
  V lr, alpha, square_share, eps, momentum;
  Average<T> average;

  TT_FN explicit Rmsprop(const OptimItem& item)
      : Rule<T>(item, item.factors.rmsprop.weight_decay),
        lr(splat(T(item.factors.rmsprop.lr))),
        alpha(splat(T(item.factors.rmsprop.alpha))),
        square_share(splat(T(item.factors.rmsprop.square_share))),
        eps(splat(T(item.factors.rmsprop.eps))),
        momentum(splat(T(item.factors.rmsprop.momentum))),
        average(item.factors.rmsprop.square_share) {}
  TT_FN void operator()(const Run<T>& r) const {
    const V p = load(r.p);
    const V g = this->grad(r, p);
    V s = vfma(this->state(r, 0), alpha, V(g * g * square_share));
    store(r.s[0], s);
    if (this->has[1]) {
      const V mean = average(this->state(r, 1), g);
      store(r.s[1], mean);
      s = s - mean * mean;
    }
    V u = g / (vsqrt(s) + eps);
    if (this->has[2]) {
      u = vfma(this->state(r, 2), momentum, u);
      store(r.s[2], u);
    }
    store(r.p, V(p - lr * u));
  }
};

template <class T> struct Adagrad : Rule<T> {
  using typename Rule<T>::V;
  V lr, eps;

  TT_FN explicit Adagrad(const OptimItem& item)
      : Rule<T>(item, item.factors.adagrad.weight_decay),
        lr(splat(T(item.factors.adagrad.lr))),
        eps(splat(T(item.factors.adagrad.eps))) {}
  TT_FN void operator()(const Run<T>& r) const {
    const V p = load(r.p);
    const V g = this->grad(r, p);
    const V sum = vfma(g, g, this->state(r, 0));
    store(r.s[0], sum);
    store(r.p, V(p - lr * g / (vsqrt(sum) + eps)));
  }
};

TT_FUNCTORS_END
