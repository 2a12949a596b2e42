// What the kinds of optimizer share: checks of arguments, and the object itself.
#pragma once

#include "ops/impl.h"
#include "optim/gen/classes.h"
#include "optim/optimizer.h"

#include <string.h>

namespace TT_NS {

inline uint32_t ascends(double maximize) { return maximize != 0 ? kOptimMaximize : 0u; }

inline void at_least_0(double v, const char* name) {
  if (!(v >= 0)) fail_arg(TT_INVALID_ARG, name, "{} is {}: must be at least 0", name, v);
}
inline void check_beta(double v, int64_t i) {
  if (!(v >= 0 && v < 1))
    fail_arg(TT_INVALID_ARG, "betas", "betas[{}] is {}: must be in [0, 1)", i, v);
}

template <class Args>
OptimizerRef make(const OptimClass& cls, const Args& a, double first_state = kNan) {
  static_assert(sizeof(Optimizer) <= kSmallMax);
  auto* o = new (mem_alloc(sizeof(Optimizer))) Optimizer;
  o->tag = kTagOptimizer;
  o->refs = 1;
  o->cls = &cls;
  o->first_state = first_state;
  OptimizerRef owned = OptimizerRef::adopt(o);
  values_of(a, o->standard);
  if (a.params.n) add_param_group(*o, a.params);
  return owned;
}

// Returns the class of this name, NULL if there is none.
inline const OptimClass* class_named(Span<const OptimClass* const> all, Span<const char> name) {
  for (const OptimClass* cls : all)
    if (strlen(cls->name) == size_t(name.n) && memcmp(cls->name, name.ptr, size_t(name.n)) == 0)
      return cls;
  return nullptr;
}

// An optimizer with the arguments that Adam and its relatives share.
template <class Args> OptimizerRef make_adam(const OptimClass& cls, const Args& a) {
  at_least_0(a.lr, "lr");
  at_least_0(a.eps, "eps");
  check_beta(a.betas.first, 0);
  check_beta(a.betas.second, 1);
  at_least_0(a.weight_decay, "weight_decay");
  return make(cls, a);
}

}  // namespace TT_NS
