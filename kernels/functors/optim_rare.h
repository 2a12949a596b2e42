// The rules that few programs use: Adadelta, Adamax, NAdam, RAdam, ASGD, Rprop and Lion.
#pragma once

#include "kernels/functors/optim.h"

TT_FUNCTORS_BEGIN

// The formulas of the rules are those of plan/optim_plan.h.
template <class T> TT_FN Vec<T> sign_of(Vec<T> x) {  // of nan: 0
  const Vec<T> zero = {};
  const Vec<T> if_not_positive = chosen(x < zero, splat(T(-1)), zero);
  return chosen(x > zero, splat(T(1)), if_not_positive);
}

template <class T> struct Adadelta : Rule<T> {
  using typename Rule<T>::V;
  V lr, rho, square_share, eps;

  TT_FN explicit Adadelta(const OptimItem& item)
      : Rule<T>(item, item.factors.adadelta.weight_decay),
        lr(splat(T(item.factors.adadelta.lr))),
        rho(splat(T(item.factors.adadelta.rho))),
        square_share(splat(T(item.factors.adadelta.square_share))),
        eps(splat(T(item.factors.adadelta.eps))) {}
  TT_FN void operator()(const Run<T>& r) const {
    const V p = load(r.p);
    const V g = this->grad(r, p);
    const V s = vfma(this->state(r, 0), rho, V(g * g * square_share));
    V a = this->state(r, 1);
    const V d = vsqrt(V(a + eps)) / vsqrt(V(s + eps)) * g;
    a = vfma(a, rho, V(d * d * square_share));
    store(r.s[0], s);
    store(r.s[1], a);
    store(r.p, V(p - lr * d));
  }
};

template <class T> struct Adamax : Rule<T> {
  using typename Rule<T>::V;
  V step_size, beta2, eps;
  Average<T> average;

  TT_FN explicit Adamax(const OptimItem& item)
      : Rule<T>(item, item.factors.adamax.weight_decay),
        step_size(splat(T(item.factors.adamax.step_size))),
        beta2(splat(T(item.factors.adamax.beta2))),
        eps(splat(T(item.factors.adamax.eps))),
        average(item.factors.adamax.m_share) {}
  TT_FN void operator()(const Run<T>& r) const {
    const V p = load(r.p);
    const V g = this->grad(r, p);
    const V m = average(this->state(r, 0), g);
    const V old = this->state(r, 1) * beta2;
    const V size = chosen(g < V{}, V(-g), g) + eps;
    V u = chosen(old > size, old, size);
    u = chosen(old == old, u, old);  // nan stays
    store(r.s[0], m);
    store(r.s[1], u);
    store(r.p, V(p - step_size * m / u));
  }
};

// What NAdam and RAdam do as Adam: they shrink p and average gradients and their squares.
template <class T> struct MomentRule : Rule<T> {
  using typename Rule<T>::V;
  V beta2, v_share, eps, shrink;
  Average<T> average;

  template <class Factors> TT_FN MomentRule(const OptimItem& item, const Factors& f)
      : Rule<T>(item, f.weight_decay),
        beta2(splat(T(f.beta2))),
        v_share(splat(T(1 - f.beta2))),
        eps(splat(T(f.eps))),
        shrink(splat(T(f.shrink))),
        average(f.m_share) {}
  struct Moments {
    V p, g, m, v;  // p: after it shrank
  };
  TT_FN Moments update(const Run<T>& r) const {
    const V p = load(r.p);
    const V g = this->grad(r, p);
    const V m = average(this->state(r, 0), g);
    const V v = vfma(this->state(r, 1), beta2, V(g * g * v_share));
    store(r.s[0], m);
    store(r.s[1], v);
    return {p * shrink, g, m, v};
  }
};

template <class T> struct Nadam : MomentRule<T> {
  using typename Rule<T>::V;
  V g_size, m_size, root_scale;

  TT_FN explicit Nadam(const OptimItem& item)
      : MomentRule<T>(item, item.factors.nadam),
        g_size(splat(T(item.factors.nadam.g_size))),
        m_size(splat(T(item.factors.nadam.m_size))),
        root_scale(splat(T(item.factors.nadam.root_scale))) {}
  TT_FN void operator()(const Run<T>& r) const {
    const auto x = this->update(r);
    const V size = vfma(vsqrt(x.v), root_scale, this->eps);
    store(r.p, V(x.p - g_size * x.g / size - m_size * x.m / size));
  }
};

template <class T> struct Radam : MomentRule<T> {
  using typename Rule<T>::V;
  V step_size;
  bool rectified;

  TT_FN explicit Radam(const OptimItem& item)
      : MomentRule<T>(item, item.factors.radam),
        step_size(splat(T(item.factors.radam.step_size))),
        rectified(item.flags & kOptimRectified) {}
  TT_FN void operator()(const Run<T>& r) const {
    const auto x = this->update(r);
    V d = step_size * x.m;
    if (rectified) d = d / (vsqrt(x.v) + this->eps);
    store(r.p, V(x.p - d));
  }
};

template <class T> struct Asgd : Rule<T> {
  using typename Rule<T>::V;
  V eta, mu, shrink;
  bool restarts;

  TT_FN explicit Asgd(const OptimItem& item)
      : Rule<T>(item, item.factors.asgd.weight_decay),
        eta(splat(T(item.factors.asgd.eta))),
        mu(splat(T(item.factors.asgd.mu))),
        shrink(splat(T(item.factors.asgd.shrink))),
        restarts(item.factors.asgd.mu == 1) {}
  TT_FN void operator()(const Run<T>& r) const {
    V p = load(r.p);
    const V g = this->grad(r, p);
    p = p * shrink - eta * g;
    store(r.p, p);
    const V a = this->state(r, 0);
    store(r.s[0], restarts ? p : vfma(V(p - a), mu, a));
  }
};

template <class T> struct Rprop : Rule<T> {
  using typename Rule<T>::V;
  V first, minus, plus, min_step, max_step;

  TT_FN explicit Rprop(const OptimItem& item)
      : Rule<T>(item, 0),
        first(splat(T(item.factors.rprop.first))),
        minus(splat(T(item.factors.rprop.minus))),
        plus(splat(T(item.factors.rprop.plus))),
        min_step(splat(T(item.factors.rprop.min_step))),
        max_step(splat(T(item.factors.rprop.max_step))) {}
  TT_FN void operator()(const Run<T>& r) const {
    const V zero = {};
    const V p = load(r.p);
    V g = this->grad(r, p);
    const V agreement = g * this->state(r, 0);  // negative: the sign has changed
    V size = this->fresh[1] ? first : load(r.s[1]);
    const V unless_plus = chosen(agreement < zero, minus, splat(T(1)));
    size = size * chosen(agreement > zero, plus, unless_plus);
    size = chosen(size < min_step, min_step, size);
    size = chosen(size > max_step, max_step, size);
    g = chosen(agreement < zero, zero, g);
    store(r.s[0], g);
    store(r.s[1], size);
    store(r.p, V(p - sign_of<T>(g) * size));
  }
};

template <class T> struct Lion : Rule<T> {
  using typename Rule<T>::V;
  V lr, shrink;
  Average<T> near, far;

  TT_FN explicit Lion(const OptimItem& item)
      : Rule<T>(item, 0),
        lr(splat(T(item.factors.lion.lr))),
        shrink(splat(T(item.factors.lion.shrink))),
        near(item.factors.lion.near_share),
        far(item.factors.lion.far_share) {}
  TT_FN void operator()(const Run<T>& r) const {
    const V p = load(r.p);
    const V g = this->grad(r, p);
    const V m = this->state(r, 0);
    store(r.p, V(p * shrink - lr * sign_of<T>(near(m, g))));
    store(r.s[0], far(m, g));
  }
};

TT_FUNCTORS_END
