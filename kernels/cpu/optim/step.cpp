// optim_step: the rules of SGD, Adam, RMSprop and Adagrad.
#include "kernels/cpu/optim/rule.h"

TT_ISA_BEGIN

// The formulas of the rules are those of plan/optim_plan.h.
template <class T> struct Sgd : Rule<T> {
  using typename Rule<T>::V;
  V lr, momentum, gradient_share;

  TT_INLINE explicit Sgd(const OptimItem& item)
      : Rule<T>(item, item.factors.sgd.weight_decay),
        lr(splat(T(item.factors.sgd.lr))),
        momentum(splat(T(item.factors.sgd.momentum))),
        gradient_share(splat(T(item.factors.sgd.gradient_share))) {}
  TT_INLINE void operator()(const Run<T>& r) const {
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

  TT_INLINE explicit Adam(const OptimItem& item)
      : Rule<T>(item, item.factors.adam.weight_decay),
        step_size(splat(T(item.factors.adam.step_size))),
        beta2(splat(T(item.factors.adam.beta2))),
        v_share(splat(T(item.factors.adam.v_share))),
        root_scale(splat(T(item.factors.adam.root_scale))),
        eps(splat(T(item.factors.adam.eps))),
        shrink(splat(T(item.factors.adam.shrink))),
        average(item.factors.adam.m_share) {}
  TT_INLINE void operator()(const Run<T>& r) const {
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

  TT_INLINE explicit Rmsprop(const OptimItem& item)
      : Rule<T>(item, item.factors.rmsprop.weight_decay),
        lr(splat(T(item.factors.rmsprop.lr))),
        alpha(splat(T(item.factors.rmsprop.alpha))),
        square_share(splat(T(item.factors.rmsprop.square_share))),
        eps(splat(T(item.factors.rmsprop.eps))),
        momentum(splat(T(item.factors.rmsprop.momentum))),
        average(item.factors.rmsprop.square_share) {}
  TT_INLINE void operator()(const Run<T>& r) const {
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

  TT_INLINE explicit Adagrad(const OptimItem& item)
      : Rule<T>(item, item.factors.adagrad.weight_decay),
        lr(splat(T(item.factors.adagrad.lr))),
        eps(splat(T(item.factors.adagrad.eps))) {}
  TT_INLINE void operator()(const Run<T>& r) const {
    const V p = load(r.p);
    const V g = this->grad(r, p);
    const V sum = vfma(g, g, this->state(r, 0));
    store(r.s[0], sum);
    store(r.p, V(p - lr * g / (vsqrt(sum) + eps)));
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(optim_step)(const void* plan, int64_t begin, int64_t end) noexcept {
  const OptimPlan& p = *static_cast<const OptimPlan*>(plan);
  ItemWalk<OptimItem> walk(p.items, p.n_items, begin);
  for (int64_t u = begin; u < end; u++) {
    int64_t from, to;
    const OptimItem& item = walk.item(u, &from, &to);
    switch (p.rule) {
      case kOptimSgd: run_item<Sgd>(item, from, to); break;
      case kOptimAdam: run_item<Adam>(item, from, to); break;
      case kOptimRmsprop: run_item<Rmsprop>(item, from, to); break;
      default: run_item<Adagrad>(item, from, to);
    }
  }
  return TT_OK;
}

TT_ENTRY_END
