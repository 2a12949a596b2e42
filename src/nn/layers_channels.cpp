// Normalisation of channels and pooling.
#include "nn/gen/layers.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "ops/undo.h"

namespace TT_NS {

namespace {

enum Slots { kWeight, kBias, kMean, kVar, kBatches };

template <class A> void build_batch_norm(Module& m, const A& a) {
  const Place place(a.dtype, a.device);
  const int64_t n[1] = {a.num_features};
  checked_numel(n, place.dtype, "num_features");
  if (a.affine) {
    m.slots[kWeight].tensor = parameter(place, n, 1, "num_features");
    if (a.bias) m.slots[kBias].tensor = parameter(place, n, 0, "num_features");
  }
  if (!a.track_running_stats) return;
  m.slots[kMean].tensor = op::zeros(n, place.dtype, place.device);
  m.slots[kVar].tensor = op::ones(n, place.dtype, place.device);
  m.slots[kBatches].tensor = op::zeros({}, Dtype::kI64, place.device);
}

template <class A> TensorList run_batch_norm(Module& m, const A& a, const Tensor& input,
                                             int64_t min_dims, int64_t max_dims) {
  if (input.ndim < min_dims || input.ndim > max_dims)
    fail_arg(TT_INVALID_ARG, "input", "input is {}: {} takes {} to {} dimensions", input.sizes(),
             m.type->name, min_dims, max_dims);
  const bool tracks = a.track_running_stats && m.slots[kMean].tensor && m.slots[kVar].tensor;
  const bool batch = m.training || !tracks;
  Tensor* mean = m.slots[kMean].tensor.get();
  Tensor* var = m.slots[kVar].tensor.get();
  Tensor* batches = m.slots[kBatches].tensor.get();
  double momentum = a.momentum;
  if (m.training && tracks && momentum < 0) {  // cumulative average over the batches
    if (!batches)
      fail_arg(TT_INVALID_ARG, "m",
               "{} has no num_batches_tracked: its cumulative average needs it", m.type->name);
    momentum = 1 / (read_scalar(*batches).real() + 1);
  }
  TensorRef out = op::batch_norm(input, tracks ? mean : nullptr, tracks ? var : nullptr,
                                 m.slot_opt(kWeight), m.slot_opt(kBias), batch, momentum, a.eps);
  if (m.training && tracks && batches) {
    MaskGuard no_grad(bit(kKeyAutograd));
    remember_values(*batches);
    op::add_(*batches, kScalar<1>);
  }
  return one(std::move(out));
}

template <class A> void describe_batch_norm(const A& a, Text& t) {
  put(t, nullptr, a.num_features);
  put(t, "eps", a.eps);
  if (a.momentum < 0) put(t, "momentum", Opt<double>());
  else put(t, "momentum", a.momentum);
  put(t, "affine", a.affine);
  put(t, "bias", a.affine && a.bias);
  put(t, "track_running_stats", a.track_running_stats);
}

// Replaces negative numbers by the input's own sizes.
Shape adaptive_size(const Shape& wanted, const Tensor& input, int64_t n) {
  Shape out(wanted);
  if (out.size() == 1)
    while (out.size() < n) out.push_back(out[0]);
  for (int64_t i = 0; i < out.size() && out.size() <= input.ndim; i++)
    if (out[i] < 0) out[i] = input.size(i - out.size());
  return out;
}

TensorList both(TensorPair p) {
  TensorList l = one(std::move(p.first));
  l.push_back(std::move(p.second));
  return l;
}

}  // namespace

void build(Module& m, const BatchNorm1dArgs& a) { build_batch_norm(m, a); }
void build(Module& m, const BatchNorm2dArgs& a) { build_batch_norm(m, a); }
void build(Module& m, const BatchNorm3dArgs& a) { build_batch_norm(m, a); }
TensorList forward_of(Module& m, const BatchNorm1dArgs& a, TensorSpan in) {
  return run_batch_norm(m, a, *in[0], 2, 3);
}
TensorList forward_of(Module& m, const BatchNorm2dArgs& a, TensorSpan in) {
  return run_batch_norm(m, a, *in[0], 4, 4);
}
TensorList forward_of(Module& m, const BatchNorm3dArgs& a, TensorSpan in) {
  return run_batch_norm(m, a, *in[0], 5, 5);
}
void describe_of(const Module&, const BatchNorm1dArgs& a, Text& t) { describe_batch_norm(a, t); }
void describe_of(const Module&, const BatchNorm2dArgs& a, Text& t) { describe_batch_norm(a, t); }
void describe_of(const Module&, const BatchNorm3dArgs& a, Text& t) { describe_batch_norm(a, t); }

void build(Module& m, const GroupNormArgs& a) {
  const Place place(a.dtype, a.device);
  const int64_t n[1] = {a.num_channels};
  check_positive(a.num_groups, "num_groups");
  if (a.num_channels % a.num_groups)
    fail_arg(TT_INVALID_ARG, "num_channels",
             "num_channels is {}: must be divisible by num_groups ({})", a.num_channels,
             a.num_groups);
  if (!a.affine) return;
  m.slots[0].tensor = parameter(place, n, 1, "num_channels");
  if (a.bias) m.slots[1].tensor = parameter(place, n, 0, "num_channels");
}

void describe_of(const Module&, const GroupNormArgs& a, Text& t) {
  put(t, nullptr, a.num_groups);
  put(t, nullptr, a.num_channels);
  put(t, "eps", a.eps);
  put(t, "affine", a.affine);
  put(t, "bias", a.affine && a.bias);
}

void build(Module& m, const RMSNormArgs& a) {
  const Place place(a.dtype, a.device);
  if (a.elementwise_affine)
    m.slots[0].tensor = parameter(place, a.normalized_shape, 1, "normalized_shape");
}

// ---- pooling ----

void describe_of(const Module&, const AvgPool1dArgs& a, Text& t) {
  put(t, "kernel_size", a.kernel_size, true);
  put(t, "stride", a.stride, true);
  put(t, "padding", a.padding, true);
}

TensorList forward_of(Module&, const MaxPool1dArgs& a, TensorSpan in) {
  if (a.return_indices)
    return both(op::max_pool1d_with_indices(*in[0], a.kernel_size, a.stride, a.padding, a.dilation,
                                            a.ceil_mode));
  return one(op::max_pool1d(*in[0], a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode));
}
TensorList forward_of(Module&, const MaxPool2dArgs& a, TensorSpan in) {
  if (a.return_indices)
    return both(op::max_pool2d_with_indices(*in[0], a.kernel_size, a.stride, a.padding, a.dilation,
                                            a.ceil_mode));
  return one(op::max_pool2d(*in[0], a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode));
}
TensorList forward_of(Module&, const AdaptiveAvgPool1dArgs& a, TensorSpan in) {
  return one(op::adaptive_avg_pool1d(*in[0], adaptive_size(a.output_size, *in[0], 1)));
}
TensorList forward_of(Module&, const AdaptiveAvgPool2dArgs& a, TensorSpan in) {
  return one(op::adaptive_avg_pool2d(*in[0], adaptive_size(a.output_size, *in[0], 2)));
}

}  // namespace TT_NS
