// Layers with a hand-written forward or parameters; all others follow from src/nn/decl/nn.toml.
#include "nn/gen/layers.h"
#include "nn/lazy.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS {

TensorList forward_of(Module&, const IdentityArgs&, TensorSpan in) {
  return one(TensorRef::share(in[0]));
}

constexpr LazyLayer kLazyLinear = {
    .weight_ndim = 2,
    .min_ndim = 1,
    .max_ndim = kMaxDims,
    .dim = -1,
    .construct = construct_sized<LinearArgs, &LinearArgs::in_features>,
    .size_in = [](const Module&, const Tensor& weight) { return weight.size(1); }};

void build(Module& m, const LinearArgs& a) {
  const Place place(a.dtype, a.device);
  check_size(a.out_features, "out_features");
  if (a.in_features == kLazySize) return make_lazy(m, kLazyLinear, place, true, a.bias);
  check_size(a.in_features, "in_features");
  const int64_t weight[2] = {a.out_features, a.in_features};
  const double bound = fan_in_bound(weight);
  m.slots[0].tensor = uniform_parameter(place, weight, bound, "in_features");
  if (a.bias) m.slots[1].tensor = uniform_parameter(place, {weight, 1}, bound, "out_features");
}

void build(Module& m, const BilinearArgs& a) {
  const Place place(a.dtype, a.device);
  check_positive(a.in1_features, "in1_features");
  check_size(a.in2_features, "in2_features");
  check_size(a.out_features, "out_features");
  const int64_t weight[3] = {a.out_features, a.in1_features, a.in2_features};
  const double bound = fan_in_bound({weight, 2});
  m.slots[0].tensor = uniform_parameter(place, weight, bound, "in1_features");
  if (a.bias) m.slots[1].tensor = uniform_parameter(place, {weight, 1}, bound, "out_features");
}

void build(Module& m, const LayerNormArgs& a) {
  const Place place(a.dtype, a.device);
  if (!a.elementwise_affine) return;
  m.slots[0].tensor = parameter(place, a.normalized_shape, 1, "normalized_shape");
  if (a.bias) m.slots[1].tensor = parameter(place, a.normalized_shape, 0, "normalized_shape");
}

void describe_of(const Module& m, const LayerNormArgs& a, Text& t) {
  put(t, nullptr, a.normalized_shape, true);
  put(t, "eps", a.eps);
  put(t, "elementwise_affine", a.elementwise_affine);
  put(t, "bias", m.slot_opt(1) != nullptr);
}

static void check_probability(double p) {
  if (!(p >= 0 && p <= 1)) fail_arg(TT_INVALID_ARG, "p", "p is {}: must be in [0, 1]", p);
}
void build(Module&, const DropoutArgs& a) { check_probability(a.p); }
void build(Module&, const Dropout1dArgs& a) { check_probability(a.p); }
void build(Module&, const Dropout2dArgs& a) { check_probability(a.p); }
void build(Module&, const Dropout3dArgs& a) { check_probability(a.p); }
void build(Module&, const AlphaDropoutArgs& a) { check_probability(a.p); }
void build(Module&, const FeatureAlphaDropoutArgs& a) { check_probability(a.p); }

void build(Module& m, const PReLUArgs& a) {
  const Place place(a.dtype, a.device);
  const int64_t n[1] = {a.num_parameters};
  check_size(a.num_parameters, "num_parameters");
  check_fits(a.init, place.dtype, "init");
  m.slots[0].tensor = parameter(place, n, a.init, "num_parameters");
}

// ---- embedding ----

// Makes the table of rows; the one at padding_idx is 0.
template <class A> static void build_table(Module& m, const A& a) {
  const Place place(a.dtype, a.device);
  const int64_t shape[2] = {a.num_embeddings, a.embedding_dim};
  if (a.sparse)
    fail_arg(TT_NOT_IMPLEMENTED, "sparse", "sparse gradients are not implemented: omit sparse");
  check_size(a.num_embeddings, "num_embeddings");
  check_size(a.embedding_dim, "embedding_dim");
  if (a.padding_idx && (*a.padding_idx < -a.num_embeddings || *a.padding_idx >= a.num_embeddings))
    fail_arg(TT_INVALID_ARG, "padding_idx", "padding_idx is {}: must be in [-{}, {})",
             *a.padding_idx, a.num_embeddings, a.num_embeddings);
  m.slots[0].tensor = normal_parameter(place, shape, 1, "num_embeddings");
  if (!a.padding_idx) return;
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t row = *a.padding_idx < 0 ? *a.padding_idx + a.num_embeddings : *a.padding_idx;
  args_of<A>(m).padding_idx = row;  // what is shown is not negative
  TensorRef pad = op::select(m.slot(0), 0, row);
  op::fill_(*pad, Scalar(0.0));
}

void build(Module& m, const EmbeddingArgs& a) { build_table(m, a); }
void build(Module& m, const EmbeddingBagArgs& a) { build_table(m, a); }

TensorList forward_of(Module& m, const EmbeddingArgs& a, TensorSpan in) {
  const Tensor& indices = *in[0];
  if (a.max_norm) {
    MaskGuard no_grad(bit(kKeyAutograd));
    op::embedding_renorm_(*m.slots[0].tensor, indices, *a.max_norm, a.norm_type);
  }
  return one(op::embedding(m.slot(0), indices, a.padding_idx, a.scale_grad_by_freq));
}

TensorList forward_of(Module& m, const EmbeddingBagArgs& a, TensorSpan in) {
  const Tensor& indices = *in[0];
  if (a.max_norm) {
    MaskGuard no_grad(bit(kKeyAutograd));
    op::embedding_renorm_(*m.slots[0].tensor, indices, *a.max_norm, a.norm_type);
  }
  return one(op::embedding_bag(m.slot(0), indices, in_opt(in, 1), a.mode, in_opt(in, 2),
                               a.scale_grad_by_freq, a.include_last_offset, a.padding_idx));
}

// ---- softmax ----

// PyTorch's default: 0 for tensors of 0, 1 or 3 dimensions, else 1.
static int64_t softmax_dim(const Opt<int64_t>& dim, const Tensor& x) {
  return dim.or_else(x.ndim == 0 || x.ndim == 1 || x.ndim == 3 ? 0 : 1);
}
TensorList forward_of(Module&, const SoftmaxArgs& a, TensorSpan in) {
  return one(op::softmax(*in[0], softmax_dim(a.dim, *in[0])));
}
TensorList forward_of(Module&, const LogSoftmaxArgs& a, TensorSpan in) {
  return one(op::log_softmax(*in[0], softmax_dim(a.dim, *in[0])));
}
TensorList forward_of(Module&, const SoftminArgs& a, TensorSpan in) {
  return one(op::softmin(*in[0], softmax_dim(a.dim, *in[0])));
}
TensorList forward_of(Module&, const Softmax2dArgs&, TensorSpan in) {
  if (in[0]->ndim != 3 && in[0]->ndim != 4)
    fail_arg(TT_INVALID_ARG, "input", "input is {}: must be (N, C, H, W) or (C, H, W)",
             in[0]->sizes());
  return one(op::softmax(*in[0], -3));
}

}  // namespace TT_NS
