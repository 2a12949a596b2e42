// Attention, rotated heads and normalized sums, as ONNX and as onnxruntime's optimizer writes them.
// Q has shape (batch, heads, rows, width) in this file, K and V have (batch, heads, keys, width).
#include "graph/onnx/importer.h"
#include "ops/gen/ops.h"

#include <math.h>

namespace TT_NS {

namespace {

// (batch, rows, heads * width) as (batch, heads, rows, width).
TensorRef divided(const Tensor& x, int64_t heads) {
  const int64_t sizes[] = {x.size(0), x.size(1), heads, x.size(2) / heads};
  return op::transpose(*op::reshape(x, Ints(sizes)), 1, 2);
}
TensorRef united(const Tensor& x) {
  const int64_t sizes[] = {x.size(0), x.size(2), x.size(1) * x.size(3)};
  return op::reshape(*op::transpose(x, 1, 2), Ints(sizes));
}

TensorRef sum_of(TensorRef a, TensorRef b) {
  if (!a || !b) return a ? std::move(a) : std::move(b);
  return op::add(*a, *b);
}

// 0 where row i sees key j, at j <= past + i, else -inf.
TensorRef causal_bias(int64_t rows, int64_t keys, int64_t past, Dtype dtype) {
  const int64_t sizes[] = {rows, keys};
  const TensorRef all = op::full(Ints(sizes), Scalar(-INFINITY), dtype, kCpuDevice);
  return op::triu(*all, past + 1);
}

TensorRef positions_up_to(int64_t n) {
  return op::arange(Scalar(0), Scalar(n), Scalar(1), Dtype::kI64, Opt<Device>(kCpuDevice));
}

}  // namespace

// The heads that a node with `total` columns has.
int64_t OnnxImporter::heads(const char* name, int64_t total) const {
  const int64_t n = integer(name, 0);
  if (n < 1 || total % n) refuse("a number of heads that does not divide the columns");
  return n;
}

// Input i, divided into heads unless it has these already.
TensorRef OnnxImporter::by_heads(int64_t i, const char* name) const {
  const Tensor& x = in(i);
  if (x.ndim == 4) return TensorRef::share(&x);
  if (x.ndim != 3) refuse("queries, keys or values of other dimensions");
  return divided(x, heads(name, x.size(2)));
}

// What is added to scores by a mask of which keys are seen: 0 or 1 for each, or for each row and
// key, or the numbers of keys.
TensorRef OnnxImporter::bias_of_keys(int64_t i, int64_t batch, int64_t keys) const {
  if (!has(i)) return {};
  const Tensor& mask = in(i);
  if (mask.ndim < 1 || mask.ndim > 3 || mask.size(0) != batch) refuse("a mask of other dimensions");
  TensorRef hidden;
  if (mask.ndim == 1) hidden = op::ge(*positions_up_to(keys), *op::unsqueeze(mask, 1));
  else hidden = op::eq(mask, Scalar(0));
  if (hidden->size(-1) != keys) refuse("a mask of other dimensions");
  const int64_t rows = hidden->ndim == 3 ? hidden->size(1) : 1;
  const int64_t sizes[] = {hidden->size(0), 1, rows, keys};
  const TensorRef filter = op::to_dtype(*op::reshape(*hidden, Ints(sizes)), Dtype::kF32);
  return op::mul(*filter, Scalar(real("mask_filter_value", -10000)));
}

// Keys or values behind those of earlier calls, input i.
TensorRef OnnxImporter::behind_past(int64_t i, TensorRef now) const {
  if (!has(i)) return now;
  const Tensor* both[] = {&in(i), now.get()};
  return op::cat(TensorSpan(both, 2), 2);
}

// softmax(q kᵀ scale + bias) v. causal: row i sees the keys of `past` and those up to the i-th
// behind them.
TensorRef OnnxImporter::attend(const Tensor& q, const Tensor& k, const Tensor& v, TensorRef bias,
                               bool causal, int64_t past) const {
  if (q.ndim != 4 || k.ndim != 4 || v.ndim != 4) refuse("heads of other dimensions");
  if (real("softcap", 0) != 0) refuse("softcap");
  const int64_t rows = q.size(2);
  const int64_t keys = k.size(2);
  const bool plain = causal && !bias && !past;
  if (causal && !plain) bias = sum_of(std::move(bias), causal_bias(rows, keys, past, q.dtype));
  if (bias && bias->dtype != q.dtype) bias = op::to_dtype(*bias, q.dtype);
  Opt<double> scale;
  if (real("scale", 0) != 0) scale = real("scale", 0);
  return op::scaled_dot_product_attention(q, k, v, bias.get(), 0, plain, scale,
                                          k.size(1) != q.size(1));
}

// Attention of onnxruntime: q, k and v side by side in a projection of the input.
void OnnxImporter::packed_attention(const Tensor& qkv, int64_t mask, int64_t past) {
  if (integer("do_rotary", 0) || attr("qkv_hidden_sizes")) refuse("do_rotary or qkv_hidden_sizes");
  if (integer("past_present_share_buffer", 0) || (is(type_, "Attention") && has(6)))
    refuse("a past that shares its buffer");
  if (qkv.ndim != 3 || qkv.size(2) % 3) refuse("a projection of other dimensions");
  const int64_t width = qkv.size(2) / 3;
  const int64_t n = heads("num_heads", width);
  TensorRef part[3];
  for (int64_t i = 0; i < 3; i++) part[i] = divided(*op::narrow(qkv, 2, i * width, width), n);
  if (has(past))
    for (int64_t i = 0; i < 2; i++) {
      const TensorRef before = op::select(in(past), 0, i);
      const Tensor* both[] = {before.get(), part[i + 1].get()};
      part[i + 1] = op::cat(TensorSpan(both, 2), 2);
    }
  TensorRef bias = bias_of_keys(mask, qkv.size(0), part[1]->size(2));
  if (is(type_, "Attention") && has(5)) bias = sum_of(std::move(bias), TensorRef::share(&in(5)));
  const bool causal = integer("unidirectional", 0) != 0;
  const int64_t before = part[1]->size(2) - part[0]->size(2);
  give(united(*attend(*part[0], *part[1], *part[2], std::move(bias), causal, before)));
  const Tensor* both[] = {part[1].get(), part[2].get()};
  if (outputs_.size() > 1 && outputs_[1].n) give(op::stack(TensorSpan(both, 2)));
}

// A single row sees all keys. Of several rows and more keys, onnxruntime on CPUs shows all keys to
// the last row and those up to the i-th to row i: no alignment gives that, so it is refused.
void OnnxImporter::multi_head_attention() {
  if (!has(1) || !has(2)) refuse("packed queries, keys and values");
  if (has(8) || has(9)) refuse("a past that shares its buffer, or beams");
  TensorRef part[3];
  for (int64_t i = 0; i < 3; i++) part[i] = TensorRef::share(&in(i));
  int64_t at = 0;
  for (TensorRef& t : part) {
    if (has(3) && t->ndim == 3) {
      t = op::add(*t, *op::narrow(in(3), 0, at, t->size(2)));
      at += t->size(2);
    } else if (has(3)) {
      refuse("biases of heads");
    }
    if (t->ndim == 3) t = divided(*t, heads("num_heads", t->size(2)));
    if (t->ndim != 4) refuse("queries, keys or values of other dimensions");
  }
  const int64_t rows = part[0]->size(2);
  const int64_t keys = part[1]->size(2);
  const bool causal = integer("unidirectional", 0) && rows > 1;
  if (causal && keys > rows) refuse("unidirectional rows that are fewer than the keys");
  part[1] = behind_past(6, std::move(part[1]));
  part[2] = behind_past(7, std::move(part[2]));
  TensorRef bias = bias_of_keys(4, part[1]->size(0), part[1]->size(2));
  if (has(5)) bias = sum_of(std::move(bias), TensorRef::share(&in(5)));
  const int64_t past = part[1]->size(2) - keys;
  give(united(*attend(*part[0], *part[1], *part[2], std::move(bias), causal, past)));
  give(std::move(part[1]));
  give(std::move(part[2]));
}

// Of prompts: keys behind the length of a row are seen by rows behind it alone, whose results have
// no meaning.
void OnnxImporter::group_query_attention() {
  for (int64_t past = 3; past < 5; past++)
    if (has(past) && in(past).numel) refuse("keys and values of earlier calls");
  if (integer("local_window_size", -1) >= 0 || integer("smooth_softmax", 0) || has(9) || has(10) ||
      has(11))
    refuse("windows, sinks, positions or biases");
  const int64_t groups = integer("kv_num_heads", 0);
  const int64_t n = integer("num_heads", 0);
  if (n < 1 || groups < 1 || in(0).ndim != 3) refuse("numbers of heads");
  TensorRef part[3];
  if (has(1)) {
    for (int64_t i = 0; i < 3; i++) part[i] = by_heads(i, i ? "kv_num_heads" : "num_heads");
  } else {
    if (in(0).size(2) % (n + 2 * groups)) refuse("numbers of heads");
    const TensorRef all = divided(in(0), n + 2 * groups);
    part[0] = op::narrow(*all, 1, 0, n);
    part[1] = op::narrow(*all, 1, n, groups);
    part[2] = op::narrow(*all, 1, n + groups, groups);
  }
  if (part[0]->size(2) != part[1]->size(2)) refuse("other numbers of rows and keys");
  if (integer("do_rotary", 0)) {
    const TensorRef places = positions_up_to(part[0]->size(2));
    const int64_t row[] = {1, places->numel};
    const TensorRef at = op::reshape(*places, Ints(row));
    const bool in_pairs = integer("rotary_interleaved", 0);
    for (int64_t i = 0; i < 2; i++)
      part[i] = rotated(*part[i], *op::embedding(in(7), *at), *op::embedding(in(8), *at), in_pairs);
  }
  give(united(*attend(*part[0], *part[1], *part[2], {}, true, 0)));
  give(std::move(part[1]));
  give(std::move(part[2]));
}

// ONNX's own operator.
void OnnxImporter::attention() {
  if (integer("qk_matmul_output_mode", 0) || (outputs_.size() > 3 && outputs_[3].n))
    refuse("scores as a result");
  if (has(6)) refuse("numbers of keys that are no padding");
  TensorRef q = by_heads(0, "q_num_heads");
  TensorRef k = by_heads(1, "kv_num_heads");
  const int64_t keys = k->size(2);
  k = behind_past(4, std::move(k));
  TensorRef v = behind_past(5, by_heads(2, "kv_num_heads"));
  TensorRef bias;
  if (has(3) && in(3).dtype == Dtype::kBool) {
    const TensorRef zeros = op::zeros({}, q->dtype, Opt<Device>(kCpuDevice));
    const TensorRef low = op::full({}, Scalar(-INFINITY), q->dtype, Opt<Device>(kCpuDevice));
    bias = op::where(in(3), *zeros, *low);
  } else if (has(3)) {
    bias = TensorRef::share(&in(3));
  }
  const bool causal = integer("is_causal", 0) != 0;
  TensorRef y = attend(*q, *k, *v, std::move(bias), causal, k->size(2) - keys);
  give(in(0).ndim == 3 ? united(*y) : std::move(y));
  give(std::move(k));
  give(std::move(v));
}

// Turns pairs of the first columns of each head by angles, whose cosines and sines have shape
// (batch, rows, pairs). in_pairs: neighbours are pairs, else column i and i + pairs.
TensorRef OnnxImporter::rotated(const Tensor& x, const Tensor& cosine, const Tensor& sine,
                                bool in_pairs) const {
  if (x.ndim != 4 || cosine.ndim != 3 || sine.ndim != 3) refuse("angles of other dimensions");
  const int64_t pairs = cosine.size(2);
  if (pairs < 1 || 2 * pairs > x.size(3)) refuse("more angles than columns");
  const TensorRef turned = op::narrow(x, 3, 0, 2 * pairs);
  const TensorRef c = op::unsqueeze(cosine, 1);
  const TensorRef s = op::unsqueeze(sine, 1);
  TensorRef a, b;
  if (in_pairs) {
    a = op::slice(*turned, 3, 0, {}, 2);
    b = op::slice(*turned, 3, 1, {}, 2);
  } else {
    a = op::narrow(*turned, 3, 0, pairs);
    b = op::narrow(*turned, 3, pairs, pairs);
  }
  const TensorRef first = op::sub(*op::mul(*a, *c), *op::mul(*b, *s));
  const TensorRef second = op::add(*op::mul(*a, *s), *op::mul(*b, *c));
  const Tensor* both[] = {first.get(), second.get()};
  TensorRef y = in_pairs ? op::flatten(*op::stack(TensorSpan(both, 2), -1), 3, 4)
                         : op::cat(TensorSpan(both, 2), 3);
  if (2 * pairs == x.size(3)) return y;
  const TensorRef rest = op::narrow(x, 3, 2 * pairs, x.size(3) - 2 * pairs);
  const Tensor* parts[] = {y.get(), rest.get()};
  return op::cat(TensorSpan(parts, 2), 3);
}

// Microsoft's has positions as input 1, before both tables; ONNX's has them behind, or none.
TensorRef OnnxImporter::rotary_embedding() const {
  const int64_t table = is_microsoft_ ? 2 : 1;
  const int64_t at = is_microsoft_ ? 1 : 3;
  if (integer("is_packed_batching", 0) || real("scale", 1) != 1) refuse("packed rows, or a scale");
  const Tensor& x = in(0);
  const bool united_heads = x.ndim == 3;
  int64_t n = integer("num_heads", 0);
  if (united_heads && n < 1 && in(table).size(-1) > 0) n = x.size(2) / (2 * in(table).size(-1));
  if (united_heads && (n < 1 || x.size(2) % n)) refuse("a number of heads that does not fit");
  const TensorRef heads = united_heads ? divided(x, n) : TensorRef::share(&x);
  if (heads->ndim != 4) refuse("an input of other dimensions");
  TensorRef cosine = TensorRef::share(&in(table));
  TensorRef sine = TensorRef::share(&in(table + 1));
  if (has(at)) {
    TensorRef places = TensorRef::share(&in(at));
    if (places->numel == 1 && places->ndim == 1) {
      const TensorRef rows = positions_up_to(heads->size(2));
      places = op::unsqueeze(*op::add(*rows, *places), 0);
    }
    cosine = op::embedding(*cosine, *places);
    sine = op::embedding(*sine, *places);
  }
  TensorRef y = rotated(*heads, *cosine, *sine, integer("interleaved", 0) != 0);
  return united_heads ? united(*y) : y;
}

// ---- normalized sums ----

// Passes results that only training needs: there is no counterpart for them.
void OnnxImporter::skip_results(int64_t n) {
  for (; n > 0; n--, n_given_++)
    if (n_given_ < outputs_.size() && outputs_[n_given_].n) refuse("mean or deviation as a result");
}

TensorRef OnnxImporter::normalized(const Tensor& x, int64_t weight, int64_t bias, bool centred,
                                   double eps) const {
  const int64_t columns = x.ndim ? x.size(-1) : 1;
  const Ints shape(&columns, 1);
  if (!centred) return op::rms_norm(x, shape, &in(weight), Opt<double>(eps));
  return op::layer_norm(x, shape, &in(weight), opt(bias), eps);
}

// The norm of input + skip + bias, and that sum.
void OnnxImporter::skip_norm(bool centred) {
  const int64_t bias = centred ? 4 : 3;
  TensorRef x = op::add(in(0), in(1));
  if (has(bias)) x = op::add(*x, in(bias));
  give(normalized(*x, 2, 3, centred, real("epsilon", 1e-12f)));
  skip_results(2);
  give(std::move(x));
}

// The norm of the sum of a word's, a position's and a segment's row.
void OnnxImporter::embedding_norm() {
  const Tensor& ids = in(0);
  if (ids.ndim != 2) refuse("ids that are no matrix");
  TensorRef x = op::embedding(in(2), ids);
  if (has(8)) x = op::add(*x, *op::embedding(in(3), in(8)));
  else x = op::add(*x, *op::narrow(in(3), 0, 0, ids.size(1)));
  if (has(1)) x = op::add(*x, *op::embedding(in(4), in(1)));
  give(normalized(*x, 5, 6, true, real("epsilon", 1e-12f)));
  const int64_t columns[] = {1};
  const int64_t rows[] = {ids.size(0)};
  if (has(7)) give(op::sum_dim(in(7), Ints(columns), false, Dtype::kI32));
  else give(op::zeros(Ints(rows), Dtype::kI32, Opt<Device>(kCpuDevice)));
  give(std::move(x));
}

bool OnnxImporter::attention_layer() {
  static constexpr Reader kOnnx[] = {
      {"Attention", [](OnnxImporter& n) { n.attention(); }},
      {"RotaryEmbedding", [](OnnxImporter& n) { n.give(n.rotary_embedding()); }},
      {"SimplifiedLayerNormalization", [](OnnxImporter& n) { n.give(n.rms_norm()); }},
  };
  static constexpr Reader kMicrosoft[] = {
      {"Attention",
       [](OnnxImporter& n) {
         TensorRef qkv = op::matmul(n.in(0), n.in(1));
         if (n.has(2)) qkv = op::add(*qkv, n.in(2));
         n.packed_attention(*qkv, 3, 4);
       }},
      {"EmbedLayerNormalization", [](OnnxImporter& n) { n.embedding_norm(); }},
      {"GroupQueryAttention", [](OnnxImporter& n) { n.group_query_attention(); }},
      {"MultiHeadAttention", [](OnnxImporter& n) { n.multi_head_attention(); }},
      {"QAttention", [](OnnxImporter& n) { n.packed_attention(*n.exact_projection(), 5, 8); }},
      {"RotaryEmbedding", [](OnnxImporter& n) { n.give(n.rotary_embedding()); }},
      {"SkipLayerNormalization", [](OnnxImporter& n) { n.skip_norm(true); }},
      {"SkipSimplifiedLayerNormalization", [](OnnxImporter& n) { n.skip_norm(false); }},
  };
  return is_microsoft_ ? read_one(kMicrosoft) : read_one(kOnnx);
}

}  // namespace TT_NS
