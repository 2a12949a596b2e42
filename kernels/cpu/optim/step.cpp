// optim_step: the rules of SGD, Adam, RMSprop and Adagrad.
#include "kernels/cpu/optim/rule.h"

TT_ISA_BEGIN

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
