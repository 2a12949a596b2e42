// Scaled dot-product attention.
#include "base/amx.h"
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "ops/undo.h"
#include "plan/attention_build.h"
#include "plan/random_build.h"

#include <math.h>

namespace TT_NS::impl {

static Dtype compute_dtype(const Tensor& t) {
  return t.dtype == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
}

// Returns t with contiguous rows.
static TensorRef with_rows(const Tensor& t) {
  return t.size(3) <= 1 || t.stride(3) == 1 ? TensorRef::share(&t) : dense_input(t);
}
static AttentionRows rows_of(const Tensor& t) {
  return {t.data, t.byte_stride(0), t.byte_stride(1), t.byte_stride(2)};
}

static void set_dropout(AttentionPlan* p, double dropout_p, const Rng& rng) {
  p->drop = dropout_p > 0;
  p->seed = rng.seed;
  p->offset = rng.offset;
  p->threshold = 0;
  p->keep_scale = dropout_p == 1 ? 0 : 1 / (1 - dropout_p);
  if (!random_threshold(1 - dropout_p, &p->threshold))
    fail_arg(TT_INVALID_ARG, "dropout_p", "dropout_p is {}: must be in [0, 1]", dropout_p);
}

// Tiles of AMX pay with a whole one of each factor.
static bool takes_tiles(const AttentionPlan& p, const Device& device) {
  if (p.dtype != TT_BF16 || device.type != TT_CPU || ctx().isa != kIsaAvx512) return false;
  const int64_t rows = TT_NS::min(p.queries, p.keys);
  const int64_t width = TT_NS::min(p.width, p.value_width);
  return TT_NS::min(rows, width) >= 16 && has_amx_products();
}

static void fill_plan(AttentionPlan* p, const Tensor& q, const Tensor& k, const Tensor& v,
                      const Tensor* mask, double dropout_p, bool causal, double scale,
                      const Rng& rng) {
  p->dtype = int32_t(q.dtype);
  p->math = ctx().cuda_math;
  p->batch = q.size(0);
  p->heads = q.size(1);
  p->key_heads = k.size(1);
  p->queries = q.size(2);
  p->keys = k.size(2);
  p->width = q.size(3);
  p->value_width = v.size(3);
  p->scale = scale;
  p->causal = causal;
  p->tiles = takes_tiles(*p, q.device);
  p->q = rows_of(q);
  p->k = rows_of(k);
  p->v = rows_of(v);
  p->mask = nullptr;
  p->mask_dtype = 0;
  if (mask) {
    p->mask = mask->data;
    p->mask_dtype = int32_t(mask->dtype);
    p->mask_batch = mask->byte_stride(0);
    p->mask_head = mask->byte_stride(1);
    p->mask_query = mask->size(2) == 1 ? 0 : mask->byte_stride(2);
    p->mask_key = mask->byte_stride(3);
  }
  set_dropout(p, dropout_p, rng);
}

// Allocates the result in PyTorch's memory order, which is the query's: (batch, queries, heads,
// width), as the following projection reads it, or row-major.
static TensorRef result_like(const Tensor& q, int64_t width) {
  const int64_t sizes[4] = {q.size(0), q.size(1), q.size(2), width};
  const int64_t strides[4] = {q.size(2) * q.size(1) * width, width, q.size(1) * width, 1};
  checked_numel(sizes, q.dtype, "result");
  const bool heads_inside =
      q.size(1) > 1 && q.stride(1) > 0 && q.stride(1) < q.stride(2) && q.stride(3) == 1;
  if (q.numel == 0 || width == 0 || !heads_inside) return new_tensor(sizes, q.dtype, q.device);
  return new_strided(sizes, strides, q.dtype, q.device);
}

TensorPair native_attention(Call, const Tensor& query, const Tensor& key, const Tensor& value,
                            const Tensor* mask, double dropout_p, bool causal, double scale,
                            const Rng& rng) {
  TensorRef q = with_rows(query);
  TensorRef k = with_rows(key);
  TensorRef v = with_rows(value);
  AttentionPlan plan;
  fill_plan(&plan, q, k, v, mask, dropout_p, causal, scale, rng);
  TensorRef out = result_like(query, value.size(3));
  TensorRef lse = new_tensor(query.sizes().slice(0, 3), compute_dtype(query), query.device);
  if (lse->numel) {
    Workspace workspace(attention_units(&plan, false), query.device);
    plan.out = rows_of(out);
    plan.lse = lse->data;
    plan.workspace = workspace.data();
    launch_stages(kernel_attention, query.device, &plan.run);
  }
  return {std::move(out), std::move(lse)};
}

TensorTriple attention_backward(Call, const Tensor& grad, const Tensor& query, const Tensor& key,
                                const Tensor& value, const Tensor* mask, const Tensor& out,
                                const Tensor& lse, double dropout_p, bool causal, double scale,
                                const Rng& rng) {
  TensorRef q = with_rows(query);
  TensorRef k = with_rows(key);
  TensorRef v = with_rows(value);
  TensorRef o = with_rows(out);
  TensorRef g = grad.dtype == query.dtype ? with_rows(grad) : cast_input(grad, query.dtype);
  AttentionPlan plan;
  fill_plan(&plan, q, k, v, mask, dropout_p, causal, scale, rng);
  const bool widens = query.device.type == TT_CPU && !plan.tiles;
  const Dtype d = widens ? compute_dtype(query) : query.dtype;
  TensorRef dq = new_tensor(q->sizes(), d, q->device);
  TensorRef dk = new_tensor(k->sizes(), d, k->device);
  TensorRef dv = new_tensor(v->sizes(), d, v->device);
  const bool split =
      plan.batch * plan.key_heads < pool_threads(ctx().rt->pool) && plan.queries && plan.keys;
  const int64_t workspace_bytes = attention_units(&plan, true, split);
  if (plan.run.units[0]) {
    Workspace workspace(workspace_bytes, q->device);
    Workspace delta(lse.numel * lse.item_size(), q->device);
    plan.out = rows_of(o);
    plan.grad = rows_of(g);
    plan.lse = lse.data;
    plan.delta = delta.data();
    plan.workspace = workspace.data();
    plan.dq = dq->data;
    plan.dk = dk->data;
    plan.dv = dv->data;
    launch_stages(kernel_attention_backward, q->device, &plan.run);
  }
  if (d == query.dtype) return {std::move(dq), std::move(dk), std::move(dv)};
  return {op::to_dtype(*dq, query.dtype), op::to_dtype(*dk, query.dtype),
          op::to_dtype(*dv, query.dtype)};
}

// 1 / (1 - p) for weights that the kernels keep, else 0: (batch, heads, queries, keys).
TensorRef attention_keep(Call, const Tensor& query, int64_t keys, double dropout_p,
                         const Rng& rng) {
  AttentionPlan rule;
  set_dropout(&rule, dropout_p, rng);
  const int64_t wide[4] = {query.size(0), query.size(1), query.size(2), attention_row_words(keys)};
  checked_numel(wide, Dtype::kF64, "mask");
  TensorRef words = new_tensor(wide, compute_dtype(query), query.device);
  RandomPlan plan;
  build_random(&plan, int32_t(words->dtype), words->numel, rng.seed, rng.offset, words->data);
  plan.threshold = rule.threshold;
  if (words->numel) launch_stages(kernel_random_bernoulli, query.device, &plan.run);
  return op::mul(*op::slice(words, 3, 0, keys), Scalar(rule.keep_scale));
}

// ---- the composite: checks, and reshapes to four dimensions ----

static void check_inputs(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor* mask,
                         bool causal) {
  if (!is_float(q.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "query", "query is {}: must be floating", fmt(q.dtype));
  check_same_device(q, "query", k, "key");
  check_same_device(q, "query", v, "value");
  if (q.dtype != k.dtype || q.dtype != v.dtype)
    fail_arg(TT_DTYPE, "key", "query is {}, key {}, value {}: must have the same dtype",
             fmt(q.dtype), fmt(k.dtype), fmt(v.dtype));
  if (q.ndim < 2 || k.ndim < 2 || v.ndim < 2)
    fail_arg(TT_SHAPE, "query", "query is {}, key {}, value {}: must have at least 2 dimensions",
             q.sizes(), k.sizes(), v.sizes());
  if (q.size(-1) != k.size(-1) || k.size(-2) != v.size(-2))
    fail_arg(TT_SHAPE, "key",
             "query is {}, key {}, value {}: query and key must be equally wide, key and value "
             "equally long",
             q.sizes(), k.sizes(), v.sizes());
  if (!mask) return;
  if (causal)
    fail_arg(TT_INVALID_ARG, "attn_mask",
             "attn_mask is given and is_causal is true: only one of them is allowed");
  check_same_device(q, "query", *mask, "attn_mask");
  if (mask->dtype != Dtype::kBool && mask->dtype != q.dtype && mask->dtype != Dtype::kF32)
    fail_arg(TT_DTYPE, "attn_mask",
             "attn_mask is {}, query is {}: must be bool, float32 or of query's dtype",
             fmt(mask->dtype), fmt(q.dtype));
}

// The leading dimensions of x: all but the last two, and without the heads if there are groups.
static Ints leading_dims(const Tensor& x, int64_t kept) {
  return x.ndim > kept ? x.sizes().slice(0, x.ndim - kept) : Ints{};
}

// Returns x as (batch, heads, rows, width); `outer` are the common dimensions before the heads.
static TensorRef four_dims(const Tensor& x, Ints outer, int64_t heads) {
  Shape whole(outer);
  for (int64_t n : {heads, x.size(-2), x.size(-1)}) whole.push_back(n);
  checked_numel(whole, x.dtype, "broadcast inputs");
  TensorRef wide = same(x.sizes(), whole) ? TensorRef::share(&x) : op::expand(x, whole);
  if (outer.n == 1) return wide;
  const int64_t flat[4] = {numel_of(outer), heads, x.size(-2), x.size(-1)};
  return op::reshape(wide, flat);
}

static int64_t heads_of(const Tensor& x) { return x.ndim > 2 ? x.size(-3) : 1; }

// Heads of query, and of key and value. Without groups all are broadcast to one number.
struct Heads {
  int64_t query, key;
};
static Heads checked_heads(const Tensor& query, const Tensor& key, const Tensor& value,
                           bool enable_gqa) {
  const int64_t heads = heads_of(query);
  const int64_t key_heads = heads_of(key);
  const int64_t value_heads = heads_of(value);
  if (!enable_gqa) {
    const Shape all = broadcast_shapes(
        broadcast_shapes(Ints(&heads, 1), Ints(&key_heads, 1), "query's heads", "key's"),
        Ints(&value_heads, 1), "query's heads", "value's");
    return {all[0], all[0]};
  }
  if (query.ndim < 3 || key_heads != value_heads || key_heads == 0 || heads % key_heads != 0)
    fail_arg(TT_SHAPE, "key",
             "query has {} heads, key {}, value {}: key and value must have equal numbers that "
             "divide query's",
             heads, key_heads, value_heads);
  return {heads, key_heads};
}

// Returns mask, broadcast to the shape of the scores, with four dimensions.
static TensorRef mask_of_scores(const Tensor& mask, Ints scores, int64_t batch, int64_t heads) {
  if (!broadcastable_to(mask.sizes(), scores))
    fail_arg(TT_SHAPE, "attn_mask", "attn_mask is {}: must broadcast to {}", mask.sizes(), scores);
  TensorRef wide = op::expand(mask, scores);
  if (scores.n == 4) return wide;
  const int64_t flat[4] = {batch, heads, scores[scores.n - 2], scores[scores.n - 1]};
  return op::reshape(wide, flat);
}

TensorRef scaled_dot_product_attention(Call, const Tensor& query, const Tensor& key,
                                       const Tensor& value, const Tensor* attn_mask,
                                       double dropout_p, bool is_causal, Opt<double> scale,
                                       bool enable_gqa, Generator* generator) {
  check_inputs(query, key, value, attn_mask, is_causal);
  const Heads heads = checked_heads(query, key, value, enable_gqa);
  const Shape outer = broadcast_shapes(
      broadcast_shapes(leading_dims(query, 3), leading_dims(key, 3), "query", "key"),
      leading_dims(value, 3), "query", "value");
  TensorRef q = four_dims(query, outer, heads.query);
  TensorRef k = four_dims(key, outer, heads.key);
  TensorRef v = four_dims(value, outer, heads.key);
  TensorRef mask;
  Shape result(outer);
  if (query.ndim > 2 || key.ndim > 2 || value.ndim > 2) result.push_back(heads.query);
  result.push_back(query.size(-2));
  result.push_back(key.size(-2));
  if (attn_mask) mask = mask_of_scores(*attn_mask, result, numel_of(outer), heads.query);
  const bool draws = dropout_p > 0 && query.device.type != TT_META;
  const uint64_t rows = uint64_t(q->size(0) * heads.query * q->size(2));
  const Rng rng = reserve_rng(
      generator, draws ? rows * uint64_t(attention_row_words(k->size(2)) / 64) * 16 : 0);
  const double factor = scale.has ? scale.value : pow(double(query.size(-1)), -0.5);
  TensorRef out =
      op::native_attention(q, k, v, mask.get(), dropout_p, is_causal, factor, rng).first;
  result[result.size() - 1] = value.size(-1);
  if (!same(out->sizes(), result)) out = op::reshape(out, result);
  return out;
}

}  // namespace TT_NS::impl
