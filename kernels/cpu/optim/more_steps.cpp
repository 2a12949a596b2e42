// optim_more_step: the rules that fewer programs use. They are a kernel of their own so that a
// static program with an optimizer of step.cpp does not hold them.
#include "kernels/cpu/optim/rule.h"

#include "kernels/functors/optim_more.h"

TT_ENTRY_BEGIN

TT_KERNEL(optim_more_step)(const void* plan, int64_t begin, int64_t end) noexcept {
  const OptimPlan& p = *static_cast<const OptimPlan*>(plan);
  ItemWalk<OptimItem> walk(p.items, p.n_items, begin);
  for (int64_t u = begin; u < end; u++) {
    int64_t from, to;
    const OptimItem& item = walk.item(u, &from, &to);
    switch (p.rule) {
      case kOptimAdadelta: run_item<Adadelta>(item, from, to); break;
      case kOptimAdamax: run_item<Adamax>(item, from, to); break;
      case kOptimNadam: run_item<Nadam>(item, from, to); break;
      case kOptimRadam: run_item<Radam>(item, from, to); break;
      case kOptimAsgd: run_item<Asgd>(item, from, to); break;
      case kOptimRprop: run_item<Rprop>(item, from, to); break;
      default: run_item<Lion>(item, from, to);
    }
  }
  return TT_OK;
}

TT_ENTRY_END
