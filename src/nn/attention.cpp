#include "nn/attention.h"

#include "nn/gen/layers.h"
#include "ops/gen/ops.h"

namespace TT_NS {

double xavier_bound(int64_t fan_in, int64_t fan_out) {
  return libm::sqrt(6.0 / (double(fan_in) + double(fan_out)));
}

namespace {

enum Slots { kInWeight, kQueryWeight, kKeyWeight, kValueWeight, kInBias, kBiasK, kBiasV };

// Returns rows [which * n, (which + 1) * n) of t.
TensorRef part(const Tensor* t, int64_t which, int64_t n) {
  return t ? op::narrow(*t, 0, which * n, n) : TensorRef();
}

struct Projected {
  TensorRef q, k, v;
};
Projected project(const Module& m, const MultiheadAttentionArgs& a, const Tensor& q,
                  const Tensor& k, const Tensor& v) {
  const Tensor* weight = m.slot_opt(kInWeight);
  const Tensor* bias = m.slot_opt(kInBias);
  const int64_t e = a.embed_dim;
  if (weight && &q == &k && &k == &v) {
    TensorRef all = op::linear(q, *weight, bias);
    const int64_t last = all->ndim - 1;
    return {op::narrow(*all, last, 0, e), op::narrow(*all, last, e, e),
            op::narrow(*all, last, 2 * e, e)};
  }
  TensorRef made[3];
  const Tensor* inputs[3] = {&q, &k, &v};
  for (int64_t i = 0; i < 3; i++) {
    TensorRef w = weight ? part(weight, i, e) : TensorRef::share(&m.slot(kQueryWeight + i));
    TensorRef b = part(bias, i, e);
    made[i] = op::linear(*inputs[i], *w, b.get());
  }
  return {std::move(made[0]), std::move(made[1]), std::move(made[2])};
}

// (L, N, E) -> (N, heads, L, E / heads), as a view.
TensorRef split_heads(const Tensor& t, int64_t heads) {
  const int64_t sizes[4] = {t.size(0), t.size(1), heads, t.size(2) / heads};
  const int64_t order[4] = {1, 2, 0, 3};
  return op::permute(*op::reshape(t, sizes), order);
}

// Appends `row` (1, 1, E) to each batch of t along dimension 0.
TensorRef with_row(const Tensor& t, const Tensor& row) {
  const int64_t sizes[3] = {1, t.size(1), t.size(2)};
  TensorRef wide = op::expand(row, sizes);
  const Tensor* list[2] = {&t, wide.get()};
  return op::cat(list, 0);
}

// Converts a mask to numbers to add, in the dtype of the scores.
TensorRef additive(const Tensor& mask, Dtype dtype) {
  if (mask.dtype != Dtype::kBool) return op::to(mask, dtype);
  MaskGuard no_grad(bit(kKeyAutograd));
  return op::masked_fill(*op::zeros(mask.sizes(), dtype, mask.device), mask, Scalar(-kInf));
}
// Appends a column that masks nothing.
TensorRef with_column(const Tensor& mask) {
  Shape sizes(mask.sizes());
  sizes.back() = 1;
  TensorRef column = op::zeros(sizes, mask.dtype, mask.device);
  const Tensor* list[2] = {&mask, column.get()};
  return op::cat(list, -1);
}

// Returns the addend of the scores (N, heads, L, S), broadcastable or empty. `extra`: number of
// appended keys, which the masks do not cover.
TensorRef combined_mask(const AttentionCall& call, int64_t n, int64_t heads, int64_t l, int64_t s,
                        int64_t extra, Dtype dtype) {
  TensorRef joint;
  if (const Tensor* mask = call.attn_mask) {
    const bool each = mask->ndim == 3;
    const int64_t plain[2] = {l, s};
    const int64_t own[3] = {n * heads, l, s};
    const int64_t all[4] = {n, heads, l, s};
    if (!same(mask->sizes(), each ? Ints(own) : Ints(plain)))
      fail_arg(TT_SHAPE, "attn_mask", "attn_mask is {}: must be {} or {}", mask->sizes(),
               Ints(plain), Ints(own));
    TensorRef t = additive(*mask, dtype);
    joint = each ? op::reshape(*t, all) : std::move(t);
  }
  if (const Tensor* mask = call.key_padding_mask) {
    const int64_t want[2] = {n, s};
    const int64_t wide[4] = {n, 1, 1, s};
    if (mask->numel != n * s || mask->size(-1) != s)
      fail_arg(TT_SHAPE, "key_padding_mask", "key_padding_mask is {}: must be {}", mask->sizes(),
               Ints(want));
    TensorRef t = op::reshape(*additive(*mask, dtype), wide);
    joint = joint ? op::add(*joint, *t) : std::move(t);
  }
  for (int64_t i = 0; joint && i < extra; i++) joint = with_column(*joint);
  return joint;
}

void check_mask(const Tensor* mask, const char* arg) {
  if (mask && mask->dtype != Dtype::kBool && !is_float(mask->dtype))
    fail_arg(TT_DTYPE, arg, "{} is {}: must be bool or floating", arg, fmt(mask->dtype));
}

void check_inputs(const MultiheadAttentionArgs& a, const AttentionCall& call) {
  const int64_t ndim = call.query->ndim;
  if (ndim != 2 && ndim != 3)
    fail_arg(TT_SHAPE, "query", "query is {}: must have 2 or 3 dimensions", call.query->sizes());
  if (call.key->ndim != ndim)
    fail_arg(TT_SHAPE, "key", "key is {}, query is {}: must have the same number of dimensions",
             call.key->sizes(), call.query->sizes());
  if (call.value->ndim != ndim)
    fail_arg(TT_SHAPE, "value", "value is {}, query is {}: must have the same number of dimensions",
             call.value->sizes(), call.query->sizes());
  if (call.query->size(-1) != a.embed_dim)
    fail_arg(TT_SHAPE, "query", "query is {}: its last size must be embed_dim {}",
             call.query->sizes(), a.embed_dim);
  if (!same(call.key->sizes().slice(0, ndim - 1), call.value->sizes().slice(0, ndim - 1)))
    fail_arg(TT_SHAPE, "value", "value is {}, key is {}: all sizes but the last must be equal",
             call.value->sizes(), call.key->sizes());
  if (call.is_causal && !call.attn_mask)
    fail_arg(TT_INVALID_ARG, "is_causal", "is_causal describes attn_mask, which is not given");
  check_mask(call.key_padding_mask, "key_padding_mask");
  check_mask(call.attn_mask, "attn_mask");
}

// Appends the keys and values that every query sees: the bias, and zeros.
void append_rows(const Module& m, const MultiheadAttentionArgs& a, Projected* p) {
  if (a.add_bias_kv) {
    p->k = with_row(*p->k, m.slot(kBiasK));
    p->v = with_row(*p->v, m.slot(kBiasV));
  }
  if (a.add_zero_attn) {
    const int64_t row[3] = {1, 1, a.embed_dim};
    TensorRef zero = op::zeros(row, p->k->dtype, p->k->device);
    p->k = with_row(*p->k, *zero);
    p->v = with_row(*p->v, *zero);
  }
}

// Returns the heads' outputs side by side (L, N, E) and their weights (N, heads, L, S), which are
// empty unless needed. keys: number of those that the masks cover.
TensorPair attend_heads(const AttentionCall& call, const MultiheadAttentionArgs& a,
                        const Projected& p, int64_t keys, double dropout) {
  const int64_t l = p.q->size(0);
  const int64_t n = p.q->size(1);
  // Then attn_mask adds nothing but for appended rows, which PyTorch leaves out here, too.
  const bool causal = call.is_causal && !call.need_weights && !call.key_padding_mask;
  TensorRef mask;
  if (!causal) mask = combined_mask(call, n, a.num_heads, l, keys, p.k->size(0) - keys, p.q->dtype);
  TensorRef q = split_heads(*p.q, a.num_heads);
  TensorRef k = split_heads(*p.k, a.num_heads);
  TensorRef v = split_heads(*p.v, a.num_heads);
  TensorRef weights, out;
  if (call.need_weights) {
    const double scale = 1 / libm::sqrt(double(a.embed_dim / a.num_heads));
    TensorRef scores = op::matmul(*op::mul(*q, Scalar(scale)), *op::transpose(*k, -2, -1));
    if (mask) scores = op::add(*scores, *mask);
    weights = op::softmax(*scores, -1);
    if (dropout > 0) weights = op::dropout(*weights, dropout, true);
    out = op::matmul(*weights, *v);
  } else {
    out = op::scaled_dot_product_attention(*q, *k, *v, mask.get(), dropout, causal);
  }
  const int64_t order[4] = {2, 0, 1, 3};
  const int64_t sizes[3] = {l, n, a.embed_dim};
  return {op::reshape(*op::permute(*out, order), sizes), std::move(weights)};
}

TensorRef project_out(Module& m, const Tensor& rows) {
  const Tensor* input = &rows;
  const ModuleRef out_proj = m.children[0].module;  // callbacks may replace it
  TensorList results = forward(*out_proj, {&input, 1});
  if (results.size() != 1)
    fail_arg(TT_INVALID_ARG, "m", "out_proj returned {} results: must return one", results.size());
  return std::move(results[0]);
}

}  // namespace

void build(Module& m, const MultiheadAttentionArgs& a) {
  const Place place(a.dtype, a.device);
  const int64_t e = a.embed_dim;
  const int64_t kdim = a.kdim.or_else(e);
  const int64_t vdim = a.vdim.or_else(e);
  if (e < 1 || a.num_heads < 1)
    fail_arg(TT_INVALID_ARG, "embed_dim", "embed_dim is {} and num_heads is {}: must be at least 1",
             e, a.num_heads);
  if (e % a.num_heads)
    fail_arg(TT_INVALID_ARG, "embed_dim", "embed_dim is {}: must be a multiple of num_heads {}", e,
             a.num_heads);
  int64_t three;
  if (mul_overflow(e, 3, &three))
    fail_arg(TT_INVALID_ARG, "embed_dim", "embed_dim is {}: 3 * embed_dim overflows", e);
  const int64_t all[2] = {three, e};
  checked_numel(all, place.dtype, "embed_dim");
  if (kdim == e && vdim == e) {
    m.slots[kInWeight].tensor = uniform_parameter(place, all, xavier_bound(e, three), "embed_dim");
  } else {
    const int64_t fans[3] = {e, kdim, vdim};
    constexpr const char* kArgs[3] = {"embed_dim", "kdim", "vdim"};
    for (int64_t i = 0; i < 3; i++) {
      const int64_t shape[2] = {e, fans[i]};
      m.slots[kQueryWeight + i].tensor =
          uniform_parameter(place, shape, xavier_bound(fans[i], e), kArgs[i]);
    }
  }
  if (a.bias) m.slots[kInBias].tensor = parameter(place, {all, 1}, 0, "embed_dim");
  ModuleRef out = construct(LinearArgs{e, e, a.bias, a.device, a.dtype});
  if (a.bias) {
    const int64_t shape[1] = {e};
    out->slots[1].tensor = parameter(place, shape, 0, "embed_dim");
  }
  set_child(m, "out_proj", *out);
  if (!a.add_bias_kv) return;
  const int64_t row[3] = {1, 1, e};
  for (int64_t i : {kBiasK, kBiasV})
    m.slots[i].tensor = normal_parameter(place, row, libm::sqrt(1.0 / double(e)), "embed_dim");
}

bool is_attention(const Module& m) { return is_layer(m, "MultiheadAttention"); }

TensorPair attend(Module& m, const AttentionCall& call) {
  const auto& a = args_of<MultiheadAttentionArgs>(m);
  check_inputs(a, call);
  const bool batched = call.query->ndim == 3;
  const bool swap = batched && a.batch_first;
  auto rows_first = [&](const Tensor& t) {
    if (!batched) return op::unsqueeze(t, 1);
    return swap ? op::transpose(t, 0, 1) : TensorRef::share(&t);
  };
  TensorRef q = rows_first(*call.query);
  TensorRef k = call.key == call.query ? q : rows_first(*call.key);
  TensorRef v = call.value == call.key ? k : rows_first(*call.value);
  if (k->size(1) != q->size(1))
    fail_arg(TT_SHAPE, "key", "key is {}, query is {}: must have the same batch size",
             call.key->sizes(), call.query->sizes());
  Projected p = project(m, a, *q, *k, *v);
  append_rows(m, a, &p);
  auto [out, weights] = attend_heads(call, a, p, k->size(0), m.training ? a.dropout : 0);
  out = project_out(m, *out);
  if (!batched) out = op::select(*out, 1, 0);
  if (swap) out = op::transpose(*out, 0, 1);
  if (!call.need_weights) return {std::move(out), {}};
  const int64_t head_dim[1] = {1};
  if (call.average_weights) weights = op::mean_dim(*weights, head_dim);
  return {std::move(out), batched ? std::move(weights) : op::select(*weights, 0, 0)};
}

TensorList forward_of(Module& m, const MultiheadAttentionArgs&, TensorSpan in) {
  AttentionCall call = {in[0], in[1], in[2], in_opt(in, 3), in_opt(in, 4)};
  TensorPair made = attend(m, call);
  TensorList list = one(std::move(made.first));
  list.push_back(std::move(made.second));
  return list;
}

}  // namespace TT_NS
