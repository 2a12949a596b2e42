// searchsorted.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"
#include "plan/sort_build.h"

namespace TT_NS::impl {

static void check_rows(const Tensor& sorted, const Tensor& self) {
  if (sorted.ndim == 0)
    fail_arg(TT_SHAPE, "sorted_sequence",
             "sorted_sequence is 0-dim: must have at least 1 dimension");
  if (sorted.ndim == 1) return;
  bool match = sorted.ndim == self.ndim;
  for (int64_t d = 0; match && d + 1 < self.ndim; d++) match = sorted.size(d) == self.size(d);
  if (!match)
    fail_arg(TT_SHAPE, "sorted_sequence",
             "sorted_sequence is {}, self is {}: must have 1 dimension, or the same sizes but for "
             "the last",
             sorted.sizes(), self.sizes());
}

static void check_sorter(const Tensor& sorted, const Tensor& sorter) {
  check_same_device(sorted, "sorted_sequence", sorter, "sorter");
  if (!same(sorted.sizes(), sorter.sizes()))
    fail_arg(TT_SHAPE, "sorter", "sorter is {}, sorted_sequence is {}: must be equal",
             sorter.sizes(), sorted.sizes());
  if (sorter.dtype != Dtype::kI64)
    fail_arg(TT_DTYPE, "sorter", "sorter is {}: must be int64", fmt(sorter.dtype));
  check_indices(sorter, "sorter", 0, sorted.size(-1));
}

// Returns the dtype of the comparison.
static Dtype common_dtype(const Tensor& sorted, const Tensor& self) {
  const Dtype d = result_type({&sorted, &self});
  if (is_complex(d) || d == Dtype::kBool)
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self and sorted_sequence promote to {}: must be real",
             fmt(d));
  if (category(d) < 2) return Dtype::kI64;
  return d == Dtype::kF64 ? d : Dtype::kF32;
}

TensorRef searchsorted(Call, const Tensor& sorted_sequence, const Tensor& self, bool out_int32,
                       bool right, int64_t side, const Tensor* sorter) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_same_device(sorted_sequence, "sorted_sequence", self, "self");
  check_rows(sorted_sequence, self);
  if (right && side == kSideLeft)
    fail_arg(TT_INVALID_ARG, "side", "side is left and right is true: they contradict each other");
  const int64_t n = sorted_sequence.size(-1);
  if (out_int32 && n >= INT32_MAX)
    fail_arg(TT_INVALID_ARG, "out_int32",
             "out_int32 is true, sorted_sequence is {}: positions exceed int32",
             sorted_sequence.sizes());
  if (sorter) check_sorter(sorted_sequence, *sorter);
  const Dtype d = common_dtype(sorted_sequence, self);
  TensorRef sorted = cast_input(sorted_sequence, d);
  TensorRef values = cast_input(self, d);
  TensorRef order = sorter ? dense_input(*sorter) : TensorRef();
  TensorRef out = new_tensor(self.sizes(), out_int32 ? Dtype::kI32 : Dtype::kI64, self.device);
  if (out->numel == 0) return out;
  SearchPlan plan;
  build_search(&plan, int32_t(d), sorted->ndim == 1 ? 1 : self.numel / self.size(-1), n, self.numel,
               right || side == kSideRight, out_int32);
  plan.sorted = sorted->data;
  plan.values = values->data;
  plan.out = out->data;
  plan.sorter = order ? order->as<int64_t>() : nullptr;
  launch_stages(kernel_search_sorted, self.device, &plan.run);
  return out;
}

TensorRef bucketize(Call, const Tensor& self, const Tensor& boundaries, bool out_int32,
                    bool right) {
  if (boundaries.ndim != 1)
    fail_arg(TT_SHAPE, "boundaries", "boundaries is {}: must have 1 dimension", boundaries.sizes());
  return op::searchsorted(boundaries, self, out_int32, right);
}

}  // namespace TT_NS::impl
