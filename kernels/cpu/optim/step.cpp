// optim_step: the rules of SGD, Adam, RMSprop and Adagrad.
#include "kernels/cpu/optim/rule.h"

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
