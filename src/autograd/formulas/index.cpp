// Gradients of the operators that index by tensors.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "autograd/formulas/forward.h"
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

// The bag of each of n indices; of those behind the last bag, `bags`.
static TensorRef bags_of(const Tensor& indices, const Tensor* starts, int64_t bags) {
  const Opt<Device> device(indices.device);
  if (starts) {
    const int64_t places[1] = {indices.numel + 1};
    TensorRef begin = op::zeros(places, Dtype::kI64, device);
    begin = op::index_add(begin, 0, *starts, op::ones_like(*starts));
    return op::narrow(op::cumsum(begin, 0), 0, 0, indices.numel) - 1;
  }
  const int64_t shape[2] = {bags, bags ? indices.numel / bags : 0};
  const int64_t flat[1] = {indices.numel};
  TensorRef number = op::unsqueeze(op::arange(0, bags, 1, Dtype::kI64, device), 1);
  return op::reshape(op::expand(number, shape), flat);
}
// Rows with one more, of zeros, for the indices that are in no bag.
static TensorRef with_rest(const Tensor& rows) {
  const int64_t shape[2] = {1, rows.size(1)};
  TensorRef rest = op::zeros(shape, rows.dtype, Opt<Device>(rows.device));
  const Tensor* const parts[2] = {&rows, rest.get()};
  return op::cat(parts, 0);
}

// The gradient of the table if bags are sums with the gradients `of_bags`. That of a row is the sum
// over the bags that the row is in: a bag itself, whose indices are found by sorting.
static TensorRef bag_sum_backward(const Tensor& of_bags, int64_t rows, const Tensor& indices,
                                  const Tensor& bag, const Tensor& taken, const Tensor* factors) {
  const int64_t bags = of_bags.size(0);
  const Opt<Device> device(of_bags.device);
  const int64_t places[1] = {rows + 1};
  const int64_t first[1] = {1};
  TensorRef counted = op::logical_and(taken, op::lt(bag, Scalar(bags)));
  TensorRef key = op::where(counted, op::to_dtype(indices, Dtype::kI64),
                            op::full({}, Scalar(rows), Dtype::kI64, device));
  TensorRef order = op::argsort(key, 0, false, true);
  TensorRef counts =
      op::index_add(op::zeros(places, Dtype::kI64, device), 0, key, op::ones_like(key));
  TensorRef zero = op::zeros(first, Dtype::kI64, device);
  TensorRef sums = op::cumsum(counts, 0);
  const Tensor* const parts[2] = {zero.get(), sums.get()};
  TensorRef starts = op::narrow(op::cat(parts, 0), 0, 0, rows + 1);
  const Scalar last(bags - 1);
  TensorRef of_row = op::clamp(op::index_select(bag, 0, order), nullptr, &last);
  TensorRef by = factors ? op::index_select(*factors, 0, order) : TensorRef();
  return op::bag_reduce(of_bags, of_row, starts.get(), rows, kBagModeSum, by.get(), false, -1);
}

// The share of each element of the indexed rows in the maximum of its bag: elements that equal it
// have equal shares, all others 0.
static TensorRef shares_of_maxima(const Tensor& weight, const Tensor& indices, const Tensor& bag,
                                  const Tensor& taken_column, const Tensor& y, const Tensor& none) {
  const Scalar one(1);
  TensorRef rows = op::embedding(weight, indices);
  TensorRef top = op::index_select(with_rest(y), 0, bag);
  TensorRef equal =
      op::logical_or(op::eq(rows, top), op::logical_and(op::isnan(rows), op::isnan(top)));
  TensorRef hit = op::to_dtype(op::logical_and(equal, taken_column), none.dtype);
  TensorRef hits = op::clamp(op::index_add(none, 0, bag, hit), &one);
  return hit / op::index_select(hits, 0, bag);
}

TensorPair bag_reduce_backward(const Tensor& g, const Tensor& weight, const Tensor& indices,
                               const Tensor* starts, int64_t mode, const Tensor* factors,
                               bool by_freq, int64_t skipped, const Tensor& y, Needs needs) {
  // With this many columns or more, sorting the indices costs less than a row for each of them.
  constexpr int64_t kWideRows = 32;
  const int64_t column[2] = {indices.numel, 1};
  const Scalar one(1);
  TensorRef bag = bags_of(indices, starts, y.size(0));
  TensorRef taken = op::ne(indices, Scalar(skipped));
  TensorRef taken_column = op::reshape(taken, column);
  const bool small = weight.item_size() == 2;
  const Dtype wide = small ? Dtype::kF32 : weight.dtype;
  const int64_t sums_shape[2] = {y.size(0) + 1, mode == kBagModeMax ? y.size(1) : 1};
  TensorRef none = op::zeros(sums_shape, wide, Opt<Device>(weight.device));
  TensorRef of_bags = TensorRef::share(&g);
  if (mode == kBagModeMean) {
    TensorRef counts = op::index_add(none, 0, bag, op::to_dtype(taken_column, wide));
    of_bags = of_bags / op::clamp(op::narrow(counts, 0, 0, y.size(0)), &one);
  }
  const bool sorts = mode != kBagModeMax && !by_freq && y.size(0) && weight.size(1) >= kWideRows;
  TensorPair out;
  if (sorts && needs[0]) {
    if (of_bags->dtype != weight.dtype) of_bags = op::to_dtype(of_bags, weight.dtype);
    out.first = bag_sum_backward(of_bags, weight.size(0), indices, bag, taken, factors);
  }
  const bool by_index = (factors && needs[1]) || (needs[0] && !sorts);
  if (!by_index) return out;
  TensorRef grads = op::index_select(with_rest(of_bags), 0, bag);
  if (mode == kBagModeMax)
    grads = grads * shares_of_maxima(weight, indices, bag, taken_column, y, none);
  if (grads->dtype != weight.dtype) grads = op::to_dtype(grads, weight.dtype);
  if (factors && needs[1]) {
    const int64_t last[1] = {1};
    TensorRef products = op::sum_dim(grads * op::embedding(weight, indices), last);
    out.second = op::masked_fill(products, op::eq(indices, Scalar(skipped)), 0);
  }
  if (!needs[0] || sorts) return out;
  if (factors) grads = grads * op::reshape(*factors, column);
  const Opt<int64_t> padding = skipped < 0 ? Opt<int64_t>() : Opt<int64_t>(skipped);
  out.first = embedding_backward(grads, indices, weight.sizes(), padding, by_freq);
  return out;
}

TensorRef bag_reduce_forward(TensorSpan tangents, const Tensor& weight, const Tensor& indices,
                             const Tensor* starts, int64_t bags, int64_t mode,
                             const Tensor* factors, int64_t skipped, const Tensor& y) {
  if (mode == kBagModeMax) {
    const int64_t column[2] = {indices.numel, 1};
    const int64_t sums_shape[2] = {bags + 1, y.size(1)};
    const Dtype wide = weight.item_size() == 2 ? Dtype::kF32 : weight.dtype;
    TensorRef none = op::zeros(sums_shape, wide, Opt<Device>(weight.device));
    TensorRef bag = bags_of(indices, starts, bags);
    TensorRef taken = op::reshape(op::ne(indices, Scalar(skipped)), column);
    TensorRef share = shares_of_maxima(weight, indices, bag, taken, y, none);
    TensorRef moved = op::embedding(*tangents[0], indices) * share;
    return op::narrow(op::index_add(none, 0, bag, op::to_dtype(moved, wide)), 0, 0, bags);
  }
  const auto reduced = [&](const Tensor& rows, const Tensor* by) {
    return op::bag_reduce(rows, indices, starts, bags, mode, by, false, skipped);
  };
  TensorRef sum = tangents[0] ? reduced(*tangents[0], factors) : TensorRef();
  if (!tangents[1]) return sum;
  TensorRef of_factors = reduced(weight, tangents[1]);
  return sum ? sum + of_factors : of_factors;
}

// src within the sizes of index, and a gradient of that part for all of src.
static TensorRef within(const Tensor& src, const Tensor& index) {
  TensorRef near = TensorRef::share(&src);
  for (int64_t d = 0; d < src.ndim; d++) near = op::slice(near, d, 0, index.size(d));
  return near;
}
static TensorRef for_all(TensorRef part, const Tensor& src) {
  for (int64_t d = 0; d < src.ndim; d++)
    if (part->size(d) != src.size(d)) {
      Shape whole(part->sizes());
      whole[d] = src.size(d);
      part = op::slice_backward(part, whole, d, 0, part->size(d), 1);
    }
  return part;
}

// The product of a target's other factors: y / f, or for a factor of 0 the product of those that
// are not 0, times the other 0 if there are two. As an expression, for second derivatives.
static TensorRef other_factors(const Tensor& f, const Tensor& zero, const Tensor& y,
                               const Tensor& count, const Tensor& product, const Tensor& zeros) {
  TensorRef of_two = op::masked_fill((zeros - f) * product, op::ne(count, 2), 0);
  TensorRef of_zero = op::where(op::eq(count, 1), product, of_two);
  return op::where(zero, of_zero, y / op::masked_fill(f, zero, 1));
}
// other_factors of the elements of self, and of near, the part of src within the index.
static TensorPair other_factors_of(const Tensor& self, int64_t dim, const Tensor& index,
                                   const Tensor& near, const Tensor& y) {
  TensorRef self_zero = op::eq(self, 0);
  TensorRef src_zero = op::eq(near, 0);
  auto rest = [](const Tensor& x, const Tensor& zero) {
    return op::masked_fill(x, op::logical_not(zero), 0);
  };
  TensorRef count = op::scatter_add(op::to_dtype(self_zero, Dtype::kI64), dim, index,
                                    op::to_dtype(src_zero, Dtype::kI64));
  TensorRef product = op::scatter_multiply(op::masked_fill(self, self_zero, 1), dim, index,
                                           op::masked_fill(near, src_zero, 1));
  TensorRef zeros = op::scatter_add(rest(self, self_zero), dim, index, rest(near, src_zero));
  auto at = [&](const Tensor& t) { return op::gather(t, dim, index); };
  return {other_factors(self, self_zero, y, count, product, zeros),
          other_factors(near, src_zero, at(y), at(count), at(product), at(zeros))};
}
TensorPair scatter_multiply_backward(const Tensor& g, const Tensor& self, int64_t dim,
                                     const Tensor& index, const Tensor& src, const Tensor& y) {
  TensorPair others = other_factors_of(self, dim, index, within(src, index), y);
  TensorRef src_grad = op::gather(g, dim, index) * op::conj(others.second);
  return {g * op::conj(others.first), for_all(std::move(src_grad), src)};
}

// The sum of the tangents of self and src, each element times its factor.
static TensorRef scattered_tangents(TensorSpan tangents, const TensorPair& factors, int64_t dim,
                                    const Tensor& index) {
  TensorRef sum = tangents[0] ? *tangents[0] * factors.first : op::zeros_like(factors.first);
  if (!tangents[1]) return sum;
  return op::scatter_add(sum, dim, index, within(*tangents[1], index) * factors.second);
}
TensorRef scatter_multiply_forward(TensorSpan tangents, const Tensor& self, int64_t dim,
                                   const Tensor& index, const Tensor& src, const Tensor& y) {
  const TensorPair others = other_factors_of(self, dim, index, within(src, index), y);
  return scattered_tangents(tangents, others, dim, index);
}

// 1 for each element of self, and of near, that is equal to the extreme value y of its target.
static TensorPair hits_of(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& near,
                          const Tensor& y, bool include_self) {
  auto equal = [&](const Tensor& a, const Tensor& b) {
    return op::to_dtype(op::logical_or(op::eq(a, b), op::logical_and(op::isnan(a), op::isnan(b))),
                        y.dtype);
  };
  TensorRef self_hit = equal(self, y);
  TensorRef src_hit = equal(near, op::gather(y, dim, index));
  if (!include_self) self_hit = op::scatter_fill(self_hit, dim, index, 0);
  return {std::move(self_hit), std::move(src_hit)};
}
TensorPair scatter_extreme_backward(const Tensor& g, const Tensor& self, int64_t dim,
                                    const Tensor& index, const Tensor& src, const Tensor& y,
                                    bool include_self) {
  TensorPair hits = hits_of(self, dim, index, within(src, index), y, include_self);
  TensorRef share = g / op::scatter_add(hits.first, dim, index, hits.second);
  // the share of an element that received nothing and is not itself is never read
  TensorRef self_grad = op::masked_fill(hits.first * share, op::eq(hits.first, 0), 0);
  TensorRef src_grad = hits.second * op::gather(share, dim, index);
  return {std::move(self_grad), for_all(std::move(src_grad), src)};
}
TensorRef scatter_extreme_forward(TensorSpan tangents, const Tensor& self, int64_t dim,
                                  const Tensor& index, const Tensor& src, const Tensor& y,
                                  bool include_self) {
  const TensorPair hits = hits_of(self, dim, index, within(src, index), y, include_self);
  return scattered_tangents(tangents, hits, dim, index) /
         op::scatter_add(hits.first, dim, index, hits.second);
}

}  // namespace TT_NS::formula
