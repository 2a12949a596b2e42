// Group normalisation: a row is a group of channels of an image.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "plan/norm_build.h"

namespace TT_NS::impl {

namespace {

struct Groups {
  int64_t rows, channels, inner;  // groups of all images, channels of one, elements of a channel

  Groups(const Tensor& input, int64_t groups)
      : rows(input.size(0) * groups),
        channels(input.size(1) / groups),
        inner(numel_of(input.sizes().slice(2, input.ndim))) {}
};
Dtype stat_dtype(const Tensor& input) {
  return input.dtype == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
}

}  // namespace

TensorTriple native_group_norm(Call, const Tensor& input, int64_t num_groups, const Tensor* weight,
                               const Tensor* bias, double eps) {
  const Groups n(input, num_groups);
  TensorRef x = dense_input(input);
  TensorRef w = weight ? dense_input(*weight) : TensorRef();
  TensorRef b = bias ? dense_input(*bias) : TensorRef();
  TensorRef y = new_tensor(input.sizes(), input.dtype, input.device);
  TensorRef mean = new_tensor(Ints(&n.rows, 1), stat_dtype(input), input.device);
  TensorRef rstd = new_tensor(Ints(&n.rows, 1), stat_dtype(input), input.device);
  if (y->numel) {
    Dtype parameter = input.dtype;  // of weight and bias
    if (b) parameter = b->dtype;
    if (w) parameter = w->dtype;
    LayerNormPlan plan;
    build_layer_norm(&plan, int32_t(input.dtype), int32_t(parameter), int32_t(mean->dtype), n.rows,
                     n.channels * n.inner, eps);
    plan.groups = num_groups;
    plan.inner = n.inner;
    plan.x = x->data;
    plan.y = y->data;
    plan.mean = mean->data;
    plan.rstd = rstd->data;
    plan.weight = w ? w->data : nullptr;
    plan.bias = b ? b->data : nullptr;
    split_layer_norm(&plan);
    Workspace parts(row_parts_bytes(n.rows, plan.n_chunks), input.device);
    plan.parts = reinterpret_cast<double*>(parts.data());
    launch_stages(kernel_layer_norm, input.device, &plan.run);
  }
  return {image_input(*y, channels_last(input), y->dtype), std::move(mean), std::move(rstd)};
}

TensorTriple group_norm_backward(Call, const Tensor& grad, const Tensor& input, int64_t num_groups,
                                 const Tensor* weight, const Tensor& mean, const Tensor& rstd,
                                 double, bool want_input, bool want_weight, bool want_bias) {
  const Groups n(input, num_groups);
  const Dtype parameter = weight ? weight->dtype : input.dtype;
  TensorRef g = cast_input(grad, input.dtype);
  TensorRef x = dense_input(input);
  TensorRef w = weight ? dense_input(*weight) : TensorRef();
  TensorRef dx = want_input ? new_tensor(input.sizes(), input.dtype, input.device) : TensorRef();
  const int64_t channels = input.size(1);
  auto sums_of = [&](bool wanted) {
    if (!wanted) return TensorRef();
    TensorRef t = new_tensor(Ints(&channels, 1), parameter, input.device);
    if (input.numel == 0) fill_elements(*t, 0);
    return t;
  };
  TensorRef dw = sums_of(want_weight);
  TensorRef db = sums_of(want_bias);
  if (input.numel) {
    GroupNormBackwardPlan plan;
    build_group_norm_backward(&plan, int32_t(input.dtype), int32_t(parameter), n.rows, num_groups,
                              n.channels, n.inner, want_input, dw || db);
    Workspace workspace(group_norm_backward_workspace_bytes(&plan), input.device);
    plan.g = g->data;
    plan.x = x->data;
    plan.mean = mean.data;
    plan.rstd = rstd.data;
    plan.weight = w ? w->data : nullptr;
    plan.dx = dx ? dx->data : nullptr;
    plan.dweight = dw ? dw->data : nullptr;
    plan.dbias = db ? db->data : nullptr;
    plan.workspace = workspace.data();
    launch_stages(kernel_group_norm_backward, input.device, &plan.run);
  }
  if (dx) dx = image_input(*dx, channels_last(input), dx->dtype);
  return {std::move(dx), std::move(dw), std::move(db)};
}

}  // namespace TT_NS::impl
