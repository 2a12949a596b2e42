// reduce_sum, also of means; centred.cu computes variances, terms.cu sums of other terms.
#include "kernels/cuda/reduce/fold.h"

namespace TT_NS::cuda {

int32_t reduce_sum(const void* plan, void* stream, void* workspace) {
  const ReducePlan& p = *static_cast<const ReducePlan*>(plan);
  if (p.term == kReduceCentred) return reduce_centred(p, stream, workspace);
  if (p.term != kReduceElements) return reduce_terms(p, stream, workspace);
  return launch_fold<ReduceKind::kSum>(p, stream, workspace);
}
size_t reduce_sum_workspace(const void* plan) { return reduce_workspace(plan); }

}  // namespace TT_NS::cuda
