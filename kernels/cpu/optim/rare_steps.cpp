// optim_rare_step: the rules that few programs use. They are a kernel of their own so that a
// static program with an optimizer of step.cpp does not hold them.
#include "kernels/cpu/optim/rule.h"

#include "kernels/functors/optim_rare.h"

TT_ENTRY_BEGIN

TT_KERNEL(optim_rare_step)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_plan(plan, begin, end,
                  [](int32_t rule, const OptimItem& item, int64_t from, int64_t to) TT_INLINE_BODY {
                    switch (rule) {
                      case kOptimAdadelta: return run_item<Adadelta>(item, from, to);
                      case kOptimAdamax: return run_item<Adamax>(item, from, to);
                      case kOptimNadam: return run_item<Nadam>(item, from, to);
                      case kOptimRadam: return run_item<Radam>(item, from, to);
                      case kOptimAsgd: return run_item<Asgd>(item, from, to);
                      case kOptimRprop: return run_item<Rprop>(item, from, to);
                      default: return run_item<Lion>(item, from, to);
                    }
                  });
}

TT_ENTRY_END
