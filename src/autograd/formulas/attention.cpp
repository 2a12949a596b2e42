// Gradients of attention, composed of differentiable operators.
//   s = scale * q k^T + mask, p = softmax(s), z = p * keep, out = z v; g is the gradient of out
//   dv = z^T g, dz = (g v^T) * keep, ds = p * (dz - sum(dz * p)),
//   dq = scale * ds k, dk = scale * ds^T q
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "autograd/formulas/forward.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

namespace {
// The operands of one call in float32 or float64; key and value are repeated to the heads of query.
struct Attention {
  TensorRef q, k, v, g, p, keep, ds;
  int64_t group;
  double scale;
  static constexpr int64_t kLast[1] = {3};

  static TensorRef widened(const Tensor& t) {
    return t.item_size() == 2 ? op::to_dtype(t, Dtype::kF32) : TensorRef::share(&t);
  }
  static TensorRef transposed(const Tensor& t) { return op::transpose(t, 2, 3); }
  TensorRef repeat_heads(TensorRef t) const {
    if (group == 1) return t;
    const int64_t wide[5] = {t->size(0), t->size(1), group, t->size(2), t->size(3)};
    const int64_t flat[4] = {wide[0], wide[1] * group, wide[3], wide[4]};
    return op::reshape(op::expand(op::unsqueeze(t, 2), wide), flat);
  }
  TensorRef sum_heads(TensorRef t) const {
    if (group == 1) return t;
    const int64_t wide[5] = {t->size(0), t->size(1) / group, group, t->size(2), t->size(3)};
    const int64_t dim[1] = {2};
    return op::sum_dim(op::reshape(t, wide), dim);
  }

  Attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor* mask,
            double dropout_p, bool causal, double factor, const Rng& rng)
      : group(key.size(1) ? query.size(1) / key.size(1) : 1), scale(factor) {
    q = widened(query);
    k = repeat_heads(widened(key));
    v = repeat_heads(widened(value));
    const Scalar minus_inf(-kInf);
    const int64_t square[2] = {query.size(2), key.size(2)};
    TensorRef s = op::matmul_stack(q * scale, transposed(k));
    if (mask)
      s = mask->dtype == Dtype::kBool ? op::masked_fill(s, op::logical_not(*mask), minus_inf)
                                      : s + *mask;
    if (causal)
      s = op::masked_fill(s, op::triu(op::ones(square, Dtype::kBool, q->device), 1), minus_inf);
    TensorRef masked_rows = op::all_dim(op::eq(s, minus_inf), kLast, true);  // queries without keys
    p = op::masked_fill(op::softmax(op::masked_fill(s, masked_rows, 0), 3), masked_rows, 0);
    if (dropout_p > 0) keep = op::attention_keep(q, square[1], dropout_p, rng);
  }
  TensorRef dropped(TensorRef t) const { return keep ? t * keep : std::move(t); }
  // Softmax has a symmetric Jacobian matrix: the gradient of s for that of p, or p's tangent for
  // that of s.
  TensorRef through_softmax(const Tensor& t) const {
    return p * (t - op::sum_dim(t * p, kLast, true));
  }
  Attention& backward(const Tensor& grad) {
    g = widened(grad);
    ds = through_softmax(*dropped(op::matmul_stack(g, transposed(v))));
    return *this;
  }
};
}  // namespace

TensorTriple attention_grads(const Tensor& g, const Tensor& query, const Tensor& key,
                             const Tensor& value, const Tensor* mask, const Tensor& out,
                             const Tensor& lse, double dropout_p, bool causal, double scale,
                             const Rng& rng) {
  if (ctx().exclude & bit(kKeyAutograd))
    return op::attention_backward(g, query, key, value, mask, out, lse, dropout_p, causal, scale,
                                  rng);
  Attention a(query, key, value, mask, dropout_p, causal, scale, rng);
  a.backward(g);
  TensorRef z = a.dropped(a.p);
  return {op::matmul_stack(a.ds, a.k) * scale,
          a.sum_heads(op::matmul_stack(a.transposed(a.ds), a.q) * scale),
          a.sum_heads(op::matmul_stack(a.transposed(z), a.g))};
}

TensorRef attention_mask_grad(const Tensor& g, const Tensor& query, const Tensor& key,
                              const Tensor& value, const Tensor* mask, double dropout_p,
                              bool causal, double scale, const Rng& rng) {
  return std::move(
      Attention(query, key, value, mask, dropout_p, causal, scale, rng).backward(g).ds);
}

static void add_to(TensorRef& sum, TensorRef term) { sum = sum ? sum + term : std::move(term); }

TensorRef attention_forward(TensorSpan tangents, const Tensor& query, const Tensor& key,
                            const Tensor& value, const Tensor* mask, double dropout_p, bool causal,
                            double scale, const Rng& rng) {
  const Attention a(query, key, value, mask, dropout_p, causal, scale, rng);
  TensorRef ds, out;
  if (tangents[0]) ds = op::matmul_stack(a.widened(*tangents[0]) * scale, a.transposed(a.k));
  if (tangents[1]) {
    const TensorRef dk = a.repeat_heads(a.widened(*tangents[1]));
    add_to(ds, op::matmul_stack(a.q * scale, a.transposed(dk)));
  }
  if (tangents[3]) add_to(ds, TensorRef::share(tangents[3]));
  if (ds) out = op::matmul_stack(a.dropped(a.through_softmax(*ds)), a.v);
  if (tangents[2]) {
    const TensorRef dv = a.repeat_heads(a.widened(*tangents[2]));
    add_to(out, op::matmul_stack(a.dropped(a.p), dv));
  }
  return out;
}

}  // namespace TT_NS::formula
