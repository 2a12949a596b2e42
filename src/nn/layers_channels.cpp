// Normalisation of channels.
#include "nn/batch_norm.h"
#include "nn/gen/layers.h"
#include "nn/hook.h"
#include "nn/lazy.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "ops/undo.h"

namespace TT_NS {

namespace {

enum Slots { kWeight, kBias, kMean, kVar, kBatches };

template <class A> constexpr LazyLayer lazy_norm(int8_t min_ndim, int8_t max_ndim, int8_t dim) {
  return {.weight_ndim = 1,
          .min_ndim = min_ndim,
          .max_ndim = max_ndim,
          .dim = dim,
          .construct = construct_sized<A, &A::num_features>,
          .size_in = [](const Module&, const Tensor& t) { return t.size(0); }};
}
template <class A> constexpr LazyLayer kLazyNorm = {};
template <> constexpr LazyLayer kLazyNorm<BatchNorm1dArgs> = lazy_norm<BatchNorm1dArgs>(2, 3, 1);
template <> constexpr LazyLayer kLazyNorm<BatchNorm2dArgs> = lazy_norm<BatchNorm2dArgs>(4, 4, 1);
template <> constexpr LazyLayer kLazyNorm<BatchNorm3dArgs> = lazy_norm<BatchNorm3dArgs>(5, 5, 1);
template <>
constexpr LazyLayer kLazyNorm<SyncBatchNormArgs> = lazy_norm<SyncBatchNormArgs>(2, kMaxDims, 1);
template <>
constexpr LazyLayer kLazyNorm<InstanceNorm1dArgs> = lazy_norm<InstanceNorm1dArgs>(2, 3, -2);
template <>
constexpr LazyLayer kLazyNorm<InstanceNorm2dArgs> = lazy_norm<InstanceNorm2dArgs>(3, 4, -3);
template <>
constexpr LazyLayer kLazyNorm<InstanceNorm3dArgs> = lazy_norm<InstanceNorm3dArgs>(4, 5, -4);

template <class A> void build_batch_norm(Module& m, const A& a) {
  const Place place(a.dtype, a.device);
  if (a.num_features == kLazySize)
    return make_lazy(m, kLazyNorm<A>, place, a.affine, a.affine && a.bias,
                     a.track_running_stats ? 2 : 0);
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
  if (input.ndim < min_dims || input.ndim > max_dims) {
    const char* rule = min_dims == max_dims ? "input is {}: {} takes {} dimensions"
                                            : "input is {}: {} takes {} to {} dimensions";
    fail_arg(TT_INVALID_ARG, "input", rule, input.sizes(), m.type->name, min_dims, max_dims);
  }
  const bool tracks = a.track_running_stats && m.slots[kMean].tensor && m.slots[kVar].tensor;
  const bool batch = m.training || !tracks;
  Tensor* mean = m.slots[kMean].tensor.get();
  Tensor* var = m.slots[kVar].tensor.get();
  Tensor* batches = m.slots[kBatches].tensor.get();
  double momentum = m.cumulative ? -1 : a.momentum;
  if (m.training && tracks && momentum < 0) {  // cumulative average over the batches
    if (!batches || batches->numel != 1)
      fail_arg(TT_INVALID_ARG, "m",
               "{} has no num_batches_tracked of one element: its cumulative average needs it",
               m.type->name);
    momentum = 1 / (read_scalar(*batches).real() + 1);
  }
  TensorRef out;
  const bool hooked = batch && !m.hooks.empty();
  if (const Ref<Hook> h = hooked ? m.hooks.next(kBatchNormHook, 0, 0) : Ref<Hook>()) {
    const bool updates = m.training && tracks;
    const BatchNormCall call = {updates ? mean : nullptr,
                                updates ? var : nullptr,
                                m.slot_opt(kWeight),
                                m.slot_opt(kBias),
                                momentum,
                                a.eps};
    out = reinterpret_cast<BatchNormHook>(h->fn)(h->user, input, call);
  } else {
    out = op::batch_norm(input, tracks ? mean : nullptr, tracks ? var : nullptr,
                         m.slot_opt(kWeight), m.slot_opt(kBias), batch, momentum, a.eps);
  }
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

// dims: the number of dimensions of a batch; without one, the input has one dimension less.
template <class A>
TensorList run_instance_norm(Module& m, const A& a, const Tensor& input, int64_t dims) {
  const bool batched = input.ndim == dims;
  if (!batched && input.ndim != dims - 1)
    fail_arg(TT_INVALID_ARG, "input", "input is {}: {} takes {} or {} dimensions", input.sizes(),
             m.type->name, dims - 1, dims);
  const int64_t channels = input.size(batched ? 1 : 0);
  if (a.affine && channels != a.num_features)
    fail_arg(TT_INVALID_ARG, "input", "input is {}: has {} channels, num_features is {}",
             input.sizes(), channels, a.num_features);
  const bool tracks = a.track_running_stats && m.slots[kMean].tensor && m.slots[kVar].tensor;
  const double momentum = a.momentum < 0 ? 0 : a.momentum;
  TensorRef x = batched ? TensorRef::share(&input) : op::unsqueeze(input, 0);
  TensorRef out =
      op::instance_norm(*x, tracks ? m.slots[kMean].tensor.get() : nullptr,
                        tracks ? m.slots[kVar].tensor.get() : nullptr, m.slot_opt(kWeight),
                        m.slot_opt(kBias), m.training || !tracks, momentum, a.eps);
  return one(batched ? std::move(out) : op::reshape(*out, input.sizes()));
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

void build(Module& m, const SyncBatchNormArgs& a) { build_batch_norm(m, a); }
TensorList forward_of(Module& m, const SyncBatchNormArgs& a, TensorSpan in) {
  return run_batch_norm(m, a, *in[0], 2, kMaxDims);
}
void describe_of(const Module&, const SyncBatchNormArgs& a, Text& t) { describe_batch_norm(a, t); }

void build(Module& m, const InstanceNorm1dArgs& a) { build_batch_norm(m, a); }
void build(Module& m, const InstanceNorm2dArgs& a) { build_batch_norm(m, a); }
void build(Module& m, const InstanceNorm3dArgs& a) { build_batch_norm(m, a); }
TensorList forward_of(Module& m, const InstanceNorm1dArgs& a, TensorSpan in) {
  return run_instance_norm(m, a, *in[0], 3);
}
TensorList forward_of(Module& m, const InstanceNorm2dArgs& a, TensorSpan in) {
  return run_instance_norm(m, a, *in[0], 4);
}
TensorList forward_of(Module& m, const InstanceNorm3dArgs& a, TensorSpan in) {
  return run_instance_norm(m, a, *in[0], 5);
}
void describe_of(const Module&, const InstanceNorm1dArgs& a, Text& t) { describe_batch_norm(a, t); }
void describe_of(const Module&, const InstanceNorm2dArgs& a, Text& t) { describe_batch_norm(a, t); }
void describe_of(const Module&, const InstanceNorm3dArgs& a, Text& t) { describe_batch_norm(a, t); }

// ---- running statistics as means over batches ----

bool normalizes_batches(const Module& m) {
  for (const char* name : {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"})
    if (is_layer(m, name)) return true;
  return false;
}

StatisticsUpdate::StatisticsUpdate(Module& root)
    : modules_(modules_of(root)), training_(root.training) {
  for (const ModuleRef& m : modules_) {
    check_not_frozen(*m);
    // Without statistics there is nothing to do; a call around this one has set the mode.
    if (!normalizes_batches(*m) || !m->slots[kMean].tensor || !m->slots[kVar].tensor) continue;
    if (m->cumulative) continue;
    if (!m->slots[kBatches].tensor || m->slots[kBatches].tensor->numel != 1)
      fail_arg(TT_INVALID_ARG, "m",
               "{} has no num_batches_tracked of one element: its cumulative average needs it",
               m->type->name);
    layers_.push_back(m);
  }
  const MaskGuard no_grad(bit(kKeyAutograd));
  for (const ModuleRef& m : layers_) {
    for (const int64_t i : {kMean, kVar, kBatches}) {
      Tensor& t = *m->slots[i].tensor;
      remember_values(t);
      op::fill_(t, Scalar(i == kVar ? 1.0 : 0.0));
    }
  }
  for (const ModuleRef& m : layers_) m->cumulative = true;
  for (const ModuleRef& m : modules_) m->training = true;
}

StatisticsUpdate::~StatisticsUpdate() {
  for (const ModuleRef& m : layers_) m->cumulative = false;
  for (const ModuleRef& m : modules_)
    if (!m->frozen) m->training = training_;
}

// The sums over channels are a pooling of the images (channels, pixels).
TensorList forward_of(Module&, const CrossMapLRN2dArgs& a, TensorSpan in) {
  const Tensor& x = *in[0];
  if (x.ndim != 4) fail_arg(TT_SHAPE, "input", "input is {}: must be (N, C, H, W)", x.sizes());
  check_positive(a.size, "size");
  const int64_t side = (a.size - 1) / 2;
  const int64_t pads[4] = {0, 0, side, side};
  const int64_t window[2] = {2 * side + 1, 1};
  const int64_t stride[2] = {1, 1};
  const int64_t no_padding[2] = {0, 0};
  TensorRef squares = op::unsqueeze(*op::flatten(*op::square(x), 2, 3), 1);
  TensorRef means = op::avg_pool2d(*op::constant_pad_nd(*squares, pads, 0), window, stride,
                                   no_padding, false, true, a.size);
  TensorRef sums = op::add(*op::mul(*op::reshape(*means, x.sizes()), a.alpha), a.k);
  return one(op::div(x, *op::pow(*sums, a.beta)));
}

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

}  // namespace TT_NS
