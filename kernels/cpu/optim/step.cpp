// optim_step: the rules of SGD, Adam, RMSprop and Adagrad.
#include "kernels/cpu/optim/rule.h"

TT_ISA_BEGIN

template <class F> TT_INLINE int32_t run_plan(const void* plan, int64_t begin, int64_t end, F run) {
  const OptimPlan& p = *static_cast<const OptimPlan*>(plan);
  ItemWalk<OptimItem> walk(p.items, p.n_items, begin);
  for (int64_t u = begin; u < end; u++) {
    int64_t from, to;
    const OptimItem& item = walk.item(u, &from, &to);
    run(p.rule, item, from, to);
  }
  return TT_OK;
}
template <template <class> class R>
TT_INLINE int32_t run_one_rule(const void* plan, int64_t begin, int64_t end) {
  return run_plan(plan, begin, end,
                  [](int32_t, const OptimItem& item, int64_t from, int64_t to)
                      TT_INLINE_BODY { run_item<R>(item, from, to); });
}

TT_ISA_END

TT_ENTRY_BEGIN

#if TT_MINIMAL  // a kernel for each rule, so that a program has those of its optimizers only
int32_t optim_sgd(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_one_rule<Sgd>(plan, begin, end);
}
int32_t optim_adam(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_one_rule<Adam>(plan, begin, end);
}
int32_t optim_rmsprop(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_one_rule<Rmsprop>(plan, begin, end);
}
int32_t optim_adagrad(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_one_rule<Adagrad>(plan, begin, end);
}
#endif

TT_KERNEL(optim_step)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_plan(plan, begin, end,
                  [](int32_t rule, const OptimItem& item, int64_t from, int64_t to) TT_INLINE_BODY {
                    switch (rule) {
                      case kOptimSgd: return run_item<Sgd>(item, from, to);
                      case kOptimAdam: return run_item<Adam>(item, from, to);
                      case kOptimRmsprop: return run_item<Rmsprop>(item, from, to);
                      default: return run_item<Adagrad>(item, from, to);
                    }
                  });
}

TT_ENTRY_END
