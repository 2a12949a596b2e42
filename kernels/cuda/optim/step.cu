// optim_step: the rules of SGD, Adam, RMSprop and Adagrad.
#include "kernels/cuda/optim/rule.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {

int32_t cuda::optim_step(const void* plan, void* stream, void*) {
  const OptimPlan& p = *static_cast<const OptimPlan*>(plan);
  switch (p.rule) {
    case kOptimSgd: return launch_step(step_of<Sgd>, p, stream);
    case kOptimAdam: return launch_step(step_of<Adam>, p, stream);
    case kOptimRmsprop: return launch_step(step_of<Rmsprop>, p, stream);
    default: return launch_step(step_of<Adagrad>, p, stream);
  }
}

}  // namespace TT_NS
