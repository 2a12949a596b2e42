// optim_rare_step: the rules that few programs use.
#include "kernels/cuda/optim/rule.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors/optim_rare.h"

namespace TT_NS {

int32_t cuda::optim_rare_step(const void* plan, void* stream, void*) {
  const OptimPlan& p = *static_cast<const OptimPlan*>(plan);
  switch (p.rule) {
    case kOptimAdadelta: return launch_step(step_of<Adadelta>, p, stream);
    case kOptimAdamax: return launch_step(step_of<Adamax>, p, stream);
    case kOptimNadam: return launch_step(step_of<Nadam>, p, stream);
    case kOptimRadam: return launch_step(step_of<Radam>, p, stream);
    case kOptimAsgd: return launch_step(step_of<Asgd>, p, stream);
    case kOptimRprop: return launch_step(step_of<Rprop>, p, stream);
    default: return launch_step(step_of<Lion>, p, stream);
  }
}

}  // namespace TT_NS
