// Gradients of the operators that index by tensors.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

// src may be larger than index; elements that were not added have gradient 0.
TensorRef scatter_add_src_backward(const Tensor& g, int64_t dim, const Tensor& index,
                                   Ints src_sizes) {
  TensorRef picked = op::gather(g, dim, index);
  if (same(picked->sizes(), src_sizes)) return picked;
  for (int64_t d = 0; d < src_sizes.n; d++)
    if (picked->size(d) != src_sizes[d]) {
      Shape whole(picked->sizes());
      whole[d] = src_sizes[d];
      picked = op::slice_backward(picked, whole, d, 0, picked->size(d), 1);
    }
  return picked;
}

TensorRef index_put_self_backward(const Tensor& g, TensorSpan indices, bool accumulate) {
  if (accumulate) return TensorRef::share(&g);
  return op::index_put(g, indices, op::zeros({}, g.dtype, g.device), false);
}

TensorRef embedding_backward(const Tensor& g, const Tensor& indices, Ints weight_sizes,
                             Opt<int64_t> padding_idx, bool scale_by_freq) {
  const int64_t flat[1] = {-1};
  const int64_t rows[2] = {indices.numel, weight_sizes[1]};
  TensorRef index = op::reshape(indices, flat);
  TensorRef grads = op::reshape(g, rows);
  if (padding_idx.has) {
    const int64_t row = padding_idx.value + (padding_idx.value < 0 ? weight_sizes[0] : 0);
    grads = op::masked_fill(grads, op::unsqueeze(op::eq(index, Scalar(row)), 1), 0);
  }
  if (scale_by_freq) {
    TensorRef counts = op::zeros(Ints(&weight_sizes[0], 1), g.dtype, g.device);
    counts = op::index_add(counts, 0, index, op::ones(Ints(rows, 1), g.dtype, g.device));
    grads = grads / op::unsqueeze(op::index_select(counts, 0, index), 1);
  }
  return op::index_add(op::zeros(weight_sizes, g.dtype, g.device), 0, index, grads);
}

// The elements that are the extreme share the gradient; self takes part if it was included.
TensorPair scatter_extreme_backward(const Tensor& g, const Tensor& self, int64_t dim,
                                    const Tensor& index, const Tensor& src, const Tensor& y,
                                    bool include_self) {
  TensorRef near = TensorRef::share(&src);
  for (int64_t d = 0; d < src.ndim; d++) near = op::slice(near, d, 0, index.size(d));
  auto equal = [&](const Tensor& a, const Tensor& b) {
    return op::to_dtype(op::logical_or(op::eq(a, b), op::logical_and(op::isnan(a), op::isnan(b))),
                        g.dtype);
  };
  TensorRef self_hit = equal(self, y);
  TensorRef src_hit = equal(near, op::gather(y, dim, index));
  if (!include_self) self_hit = op::scatter_fill(self_hit, dim, index, 0);
  TensorRef share = g / op::scatter_add(self_hit, dim, index, src_hit);
  // the share of an element that received nothing and is not itself is never read
  TensorRef self_grad = op::masked_fill(self_hit * share, op::eq(self_hit, 0), 0);
  TensorRef src_grad = src_hit * op::gather(share, dim, index);
  for (int64_t d = 0; d < src.ndim; d++)
    if (src_grad->size(d) != src.size(d)) {
      Shape whole(src_grad->sizes());
      whole[d] = src.size(d);
      src_grad = op::slice_backward(src_grad, whole, d, 0, src_grad->size(d), 1);
    }
  return {std::move(self_grad), std::move(src_grad)};
}

}  // namespace TT_NS::formula
