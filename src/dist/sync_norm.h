// Batch normalisation by the statistics of the batches of all ranks of a group.
#pragma once

#include "dist/group.h"

namespace TT_NS {

struct SyncNorm {
  Tensor *running_mean, *running_var;  // updated; NULL: not kept
  const Tensor *weight, *bias;         // may be NULL
  double momentum, eps;
};

// input: (N, C, …), of any N on each rank. A collective call; so is its backward.
TensorRef sync_batch_norm(Group& g, const Tensor& input, const SyncNorm& norm);

}  // namespace TT_NS
