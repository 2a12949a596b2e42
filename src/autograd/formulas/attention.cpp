// Gradients of attention, composed of differentiable operators.
//   s = scale * q k^T + mask, p = softmax(s), z = p * keep, out = z v; g is the gradient of out
//   dv = z^T g, dz = (g v^T) * keep, ds = p * (dz - sum(dz * p)),
//   dq = scale * ds k, dk = scale * ds^T q
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

namespace {
// The operands of one call in float32 or float64; key and value are repeated to the heads of query.
struct Attention {
  TensorRef q, k, v, g, p, keep, ds;
  int64_t group;
  double scale;

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

  Attention(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
            const Tensor* mask, double dropout_p, bool causal, double factor, const Rng& rng)
      : group(key.size(1) ? query.size(1) / key.size(1) : 1), scale(factor) {
    q = widened(query);
    k = repeat_heads(widened(key));
    v = repeat_heads(widened(value));
    g = widened(grad);
    const Scalar minus_inf(-kInf);
    const int64_t last[1] = {3};
    const int64_t square[2] = {query.size(2), key.size(2)};
    TensorRef s = op::matmul_stack(q * scale, transposed(k));
    if (mask)
      s = mask->dtype == Dtype::kBool ? op::masked_fill(s, op::logical_not(*mask), minus_inf)
                                      : s + *mask;
    if (causal)
      s = op::masked_fill(s, op::triu(op::ones(square, Dtype::kBool, q->device), 1), minus_inf);
    TensorRef masked_rows = op::all_dim(op::eq(s, minus_inf), last, true);  // queries without keys
    p = op::masked_fill(op::softmax(op::masked_fill(s, masked_rows, 0), 3), masked_rows, 0);
    TensorRef dz = op::matmul_stack(g, transposed(v));
    if (dropout_p > 0) {
      keep = op::attention_keep(q, square[1], dropout_p, rng);
      dz = dz * keep;
    }
    ds = p * (dz - op::sum_dim(dz * p, last, true));
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
  Attention a(g, query, key, value, mask, dropout_p, causal, scale, rng);
  TensorRef z = a.keep ? a.p * a.keep : a.p;
  return {op::matmul_stack(a.ds, a.k) * scale,
          a.sum_heads(op::matmul_stack(a.transposed(a.ds), a.q) * scale),
          a.sum_heads(op::matmul_stack(a.transposed(z), a.g))};
}

TensorRef attention_mask_grad(const Tensor& g, const Tensor& query, const Tensor& key,
                              const Tensor& value, const Tensor* mask, double dropout_p,
                              bool causal, double scale, const Rng& rng) {
  return std::move(Attention(g, query, key, value, mask, dropout_p, causal, scale, rng).ds);
}

}  // namespace TT_NS::formula
