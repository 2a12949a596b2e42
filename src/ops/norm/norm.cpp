// Layer and root mean square normalisation.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "ops/impl.h"
#include "plan/norm_build.h"

namespace TT_NS::impl {

static void check_parameter(const Tensor* p, const char* arg, const Tensor& input,
                            Ints normalized_shape, const Tensor* other) {
  if (!p) return;
  check_same_device(input, "input", *p, arg);
  if (!same(p->sizes(), normalized_shape))
    fail_arg(TT_SHAPE, arg, "{} is {}: must have normalized_shape {}", arg, p->sizes(),
             normalized_shape);
  const bool mixed = p->dtype == Dtype::kF32 && input.item_size() == 2;
  if ((p->dtype != input.dtype && !mixed) || (other && other->dtype != p->dtype))
    fail_arg(TT_DTYPE, arg,
             "{} is {}, input is {}: weight and bias must both have input's dtype, or float32 "
             "for a 16-bit input",
             arg, fmt(p->dtype), fmt(input.dtype));
}

// Returns the number of normalised elements in a row. Fails unless the shape is that of rows.
static int64_t row_length(const Tensor& input, Ints normalized_shape) {
  if (normalized_shape.n == 0)
    fail_arg(TT_SHAPE, "normalized_shape",
             "normalized_shape is empty: at least one dimension is needed");
  const int64_t extra = input.ndim - normalized_shape.n;
  if (extra < 0 || !same(input.sizes().slice(extra, input.ndim), normalized_shape))
    fail_arg(TT_SHAPE, "normalized_shape",
             "normalized_shape is {}, input is {}: must be the last sizes of input",
             normalized_shape, input.sizes());
  return numel_of(normalized_shape);
}

static Dtype stat_dtype(const Tensor& input) {
  return input.dtype == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
}

// The result, means and 1 / sqrt(variance + eps); without means if rows are not centred.
static TensorTriple normalised_rows(const Tensor& input, Ints normalized_shape,
                                    const Tensor* weight, const Tensor* bias, double eps,
                                    bool centred) {
  if (!is_float(input.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}: must be floating", fmt(input.dtype));
  const int64_t n = row_length(input, normalized_shape);
  const int64_t rows = n ? input.numel / n : 0;
  check_parameter(weight, "weight", input, normalized_shape, nullptr);
  check_parameter(bias, "bias", input, normalized_shape, weight);
  TensorRef x = dense_input(input);
  TensorRef w = weight ? dense_input(*weight) : TensorRef();
  TensorRef b = bias ? dense_input(*bias) : TensorRef();
  const int64_t stat_shape[1] = {rows};
  TensorRef y = new_tensor(input.sizes(), input.dtype, input.device);
  TensorRef mean;
  if (centred) mean = new_tensor(stat_shape, stat_dtype(input), input.device);
  TensorRef rstd = new_tensor(stat_shape, stat_dtype(input), input.device);
  if (y->numel) {
    LayerNormPlan plan;
    Dtype parameter = input.dtype;  // of weight and bias
    if (b) parameter = b->dtype;
    if (w) parameter = w->dtype;
    build_layer_norm(&plan, int32_t(input.dtype), int32_t(parameter), int32_t(rstd->dtype), rows, n,
                     eps);
    plan.x = x->data;
    plan.y = y->data;
    plan.mean = centred ? mean->data : nullptr;
    plan.rstd = rstd->data;
    plan.weight = w ? w->data : nullptr;
    plan.bias = b ? b->data : nullptr;
    split_layer_norm(&plan);
    Workspace parts(row_parts_bytes(rows, plan.n_chunks), input.device);
    plan.parts = reinterpret_cast<double*>(parts.data());
    launch_stages(kernel_layer_norm, input.device, &plan.run);
  }
  return {std::move(y), std::move(mean), std::move(rstd)};
}

TensorTriple native_layer_norm(Call, const Tensor& input, Ints normalized_shape,
                               const Tensor* weight, const Tensor* bias, double eps) {
  return normalised_rows(input, normalized_shape, weight, bias, eps, true);
}
TensorPair native_rms_norm(Call, const Tensor& input, Ints normalized_shape, const Tensor* weight,
                           double eps) {
  TensorTriple r = normalised_rows(input, normalized_shape, weight, nullptr, eps, false);
  return {std::move(r.first), std::move(r.third)};
}

// Returns out, channels last if input is.
static TensorRef in_order_of(const Tensor& input, TensorRef out) {
  if (!has_channels_last_strides(input)) return out;
  return op::clone(out, input.ndim == 4 ? TT_CHANNELS_LAST : TT_CHANNELS_LAST_3D);
}

TensorRef rms_norm(Call, const Tensor& input, Ints normalized_shape, const Tensor* weight,
                   Opt<double> eps) {
  row_length(input, normalized_shape);
  if (!is_differentiable(input.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}: must be floating or complex",
             fmt(input.dtype));
  if (weight) {
    check_same_device(input, "input", *weight, "weight");
    if (!same(weight->sizes(), normalized_shape))
      fail_arg(TT_SHAPE, "weight", "weight is {}: must have normalized_shape {}", weight->sizes(),
               normalized_shape);
  }
  const bool wide = input.dtype == Dtype::kF64 || input.dtype == Dtype::kC128;
  const double machine_eps = wide ? 0x1p-52 : 0x1p-23;
  const double floor = eps.has ? *eps : machine_eps;
  const bool mixed = weight && weight->dtype == Dtype::kF32 && input.item_size() == 2;
  if (is_float(input.dtype) && (!weight || weight->dtype == input.dtype || mixed))
    return in_order_of(input, op::native_rms_norm(input, normalized_shape, weight, floor).first);
  // Complex numbers, and weights of another dtype.
  Shape dims;
  for (int64_t d = input.ndim - normalized_shape.n; d < input.ndim; d++) dims.push_back(d);
  TensorRef x =
      input.item_size() == 2 ? op::to_dtype(input, Dtype::kF32) : TensorRef::share(&input);
  TensorRef rms = op::rsqrt(*op::add(*op::mean_dim(*op::mul(*x, *x), dims, true), Scalar(floor)));
  TensorRef y = op::mul(*x, *rms);
  if (weight) y = op::mul(*y, *weight);
  return y->dtype == input.dtype ? std::move(y) : op::to_dtype(*y, input.dtype);
}

static TensorRef sums_of(bool wanted, Ints shape, Dtype dtype, const Tensor& input) {
  if (!wanted) return {};
  TensorRef t = new_tensor(shape, dtype, input.device);
  if (input.numel == 0) fill_elements(*t, 0);
  return t;
}

// mean: NULL if rows are not centred.
static TensorTriple row_gradients(const Tensor& grad, const Tensor& input, Ints normalized_shape,
                                  const Tensor* mean, const Tensor& rstd, const Tensor* weight,
                                  bool want_input, bool want_weight, bool want_bias) {
  const int64_t n = row_length(input, normalized_shape);
  const int64_t rows = n ? input.numel / n : 0;
  const Dtype parameter = weight ? weight->dtype : input.dtype;
  TensorRef g = cast_input(grad, input.dtype);
  TensorRef x = dense_input(input);
  TensorRef w = weight ? dense_input(*weight) : TensorRef();
  TensorRef dx = want_input ? new_tensor(input.sizes(), input.dtype, input.device) : TensorRef();
  TensorRef dw = sums_of(want_weight, normalized_shape, parameter, input);
  TensorRef db = sums_of(want_bias, normalized_shape, parameter, input);
  if (input.numel) {
    LayerNormBackwardPlan plan;
    build_layer_norm_backward(&plan, int32_t(input.dtype), int32_t(parameter), int32_t(rstd.dtype),
                              rows, n, dw || db);
    plan.g = g->data;
    plan.x = x->data;
    plan.mean = mean ? mean->data : nullptr;
    plan.rstd = rstd.data;
    plan.weight = w ? w->data : nullptr;
    plan.dx = dx ? dx->data : nullptr;
    plan.dweight = dw ? dw->data : nullptr;
    plan.dbias = db ? db->data : nullptr;
    split_layer_norm_backward(&plan);
    Workspace parts(row_parts_bytes(rows, plan.n_parts), input.device);
    Workspace workspace(layer_norm_backward_workspace_bytes(&plan), input.device);
    plan.parts = reinterpret_cast<double*>(parts.data());
    plan.workspace = workspace.data();
    launch_stages(kernel_layer_norm_backward, input.device, &plan.run);
  }
  return {std::move(dx), std::move(dw), std::move(db)};
}

TensorTriple layer_norm_backward(Call, const Tensor& grad, const Tensor& input,
                                 Ints normalized_shape, const Tensor& mean, const Tensor& rstd,
                                 const Tensor* weight, double, bool want_input, bool want_weight,
                                 bool want_bias) {
  return row_gradients(grad, input, normalized_shape, &mean, rstd, weight, want_input, want_weight,
                       want_bias);
}
TensorPair rms_norm_backward(Call, const Tensor& grad, const Tensor& input, Ints normalized_shape,
                             const Tensor* weight, const Tensor& rstd, double, bool want_input,
                             bool want_weight) {
  TensorTriple r = row_gradients(grad, input, normalized_shape, nullptr, rstd, weight, want_input,
                                 want_weight, false);
  return {std::move(r.first), std::move(r.second)};
}

}  // namespace TT_NS::impl
