// Gradients of attention, also composed of differentiable operators: with p = softmax(q k^T scale +
// mask), z = p keep and the gradient g of z v: dv = z^T g, ds = p (dz keep - sum(dz keep p)) with
// dz = g v^T, dq = ds k scale, dk = ds^T q scale.
#include "autograd/formulas.h"

#include "ops/gen/ops.h"

namespace TT_NS::formula {

namespace {
// The inputs of one call, as float32 or float64, key and value with as many heads as query.
struct Attention {
  TensorRef q, k, v, g, p, keep, ds;
  int64_t group;
  double scale;

  static TensorRef widened(const Tensor& t) {
    return t.item_size() == 2 ? op::to_dtype(t, Dtype::kF32) : TensorRef::share(&t);
  }
  static TensorRef turned(const Tensor& t) { return op::transpose(t, 2, 3); }
  TensorRef repeated(TensorRef t) const {
    if (group == 1) return t;
    const int64_t wide[5] = {t->size(0), t->size(1), group, t->size(2), t->size(3)};
    const int64_t flat[4] = {wide[0], wide[1] * group, wide[3], wide[4]};
    return op::reshape(*op::expand(*op::unsqueeze(*t, 2), wide), flat);
  }
  TensorRef summed(TensorRef t) const {  // of the heads of a group
    if (group == 1) return t;
    const int64_t wide[5] = {t->size(0), t->size(1) / group, group, t->size(2), t->size(3)};
    const int64_t dim[1] = {2};
    return op::sum_dim(*op::reshape(*t, wide), dim);
  }

  Attention(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
            const Tensor* mask, double dropout_p, bool causal, double factor, const Rng& rng)
      : group(key.size(1) ? query.size(1) / key.size(1) : 1), scale(factor) {
    q = widened(query);
    k = repeated(widened(key));
    v = repeated(widened(value));
    g = widened(grad);
    const Scalar none(-__builtin_inf());
    const int64_t last[1] = {3};
    const int64_t square[2] = {query.size(2), key.size(2)};
    TensorRef s = op::matmul_stack(*op::mul(*q, Scalar(scale)), *turned(*k));
    if (mask)
      s = mask->dtype == Dtype::kBool ? op::masked_fill(*s, *op::logical_not(*mask), none)
                                      : op::add(*s, *mask);
    if (causal)
      s = op::masked_fill(*s, *op::triu(*op::ones(square, Dtype::kBool, q->device), 1), none);
    TensorRef unseen = op::all_dim(op::eq(*s, none), last, true);  // a query without keys
    p = op::masked_fill(*op::softmax(*op::masked_fill(*s, *unseen, 0), 3), *unseen, 0);
    TensorRef dz = op::matmul_stack(*g, *turned(*v));
    if (dropout_p > 0) {
      keep = op::attention_keep(*q, square[1], dropout_p, rng);
      dz = op::mul(*dz, *keep);
    }
    ds = op::mul(*p, *op::sub(*dz, *op::sum_dim(op::mul(*dz, *p), last, true)));
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
  TensorRef z = a.keep ? op::mul(*a.p, *a.keep) : a.p;
  return {op::mul(*op::matmul_stack(*a.ds, *a.k), Scalar(scale)),
          a.summed(op::mul(*op::matmul_stack(*a.turned(*a.ds), *a.q), Scalar(scale))),
          a.summed(op::matmul_stack(*a.turned(*z), *a.g))};
}

TensorRef attention_mask_grad(const Tensor& g, const Tensor& query, const Tensor& key,
                              const Tensor& value, const Tensor* mask, double dropout_p,
                              bool causal, double scale, const Rng& rng) {
  return std::move(Attention(g, query, key, value, mask, dropout_p, causal, scale, rng).ds);
}

}  // namespace TT_NS::formula
