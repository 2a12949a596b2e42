// Rows of a table in bags, and the bound of their norms. embedding is in index.cpp.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"

namespace TT_NS::impl {

static void check_table(const Tensor& weight, const char* arg, const Tensor& indices) {
  if (weight.ndim != 2)
    fail_arg(TT_SHAPE, arg, "{} is {}: must be (rows, features)", arg, weight.sizes());
  if (!is_float(weight.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, arg, "{} is {}: must be floating", arg, fmt(weight.dtype));
  check_same_device(weight, arg, indices, "indices");
  check_index_dtype(indices, "indices");
}

void embedding_renorm_(Call, Tensor& self, const Tensor& indices, double max_norm,
                       double norm_type) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_table(self, "self", indices);
  check_writable(self, "self");
  const int64_t flat[1] = {indices.numel};
  TensorRef index = op::reshape(indices, flat);
  TensorRef rows = op::renorm(*op::index_select(self, 0, *index), norm_type, 0, max_norm);
  op::index_copy_(self, 0, *index, *rows);
}

// ---- bags ----

// The indices in one row, and the bag of each; indices behind the last bag have the bag `count`.
struct Bags {
  TensorRef indices, bag;
  int64_t count;

  Bags(const Tensor& all, const Tensor* offsets, bool include_last) {
    const int64_t flat[1] = {all.numel};
    const Opt<Device> device(all.device);
    indices = op::reshape(all, flat);
    if (all.ndim == 2) {
      if (offsets)
        fail_arg(TT_INVALID_ARG, "offsets", "offsets is given, indices is {}: must be 1-dim",
                 all.sizes());
      count = all.size(0);
      TensorRef number = op::arange(0, count, 1, Dtype::kI64, device);
      bag = op::reshape(*op::expand(*op::unsqueeze(*number, 1), all.sizes()), flat);
      return;
    }
    if (all.ndim != 1 || !offsets || offsets->ndim != 1)
      fail_arg(TT_SHAPE, "indices", "indices is {}: must be (bags, n), or (n) with 1-dim offsets",
               all.sizes());
    check_same_device(all, "indices", *offsets, "offsets");
    check_index_dtype(*offsets, "offsets");
    if (include_last && !offsets->numel)
      fail_arg(TT_SHAPE, "offsets", "offsets is empty: its last element must be the end");
    count = offsets->numel - include_last;
    check_offsets(*offsets, all.numel);
    TensorRef place = op::arange(0, all.numel, 1, Dtype::kI64, device);
    TensorRef begin = op::to_dtype(*offsets, Dtype::kI64);
    bag = op::sub(*op::searchsorted(*begin, *place, false, true), Scalar(1));
  }

 private:
  static void check_offsets(const Tensor& offsets, int64_t n) {
    check_indices(offsets, "offsets", 0, n + 1);
    if (!offsets.numel || offsets.device.type == TT_META) return;
    const int64_t first = read_scalar(*op::select(offsets, 0, 0)).i;
    if (first != 0)
      fail_arg(TT_INVALID_ARG, "offsets", "offsets begins with {}: must begin with 0", first);
    TensorRef before = op::slice(offsets, 0, 0, -1);
    TensorRef descends = op::lt(*op::slice(offsets, 0, 1), *before);
    if (read_scalar(*op::any(*descends)).i)
      fail_arg(TT_INVALID_ARG, "offsets", "offsets descends: must be ascending");
  }
};

static void check_weights(const Tensor* per_sample, const Tensor& indices, const Tensor& weight,
                          int64_t mode) {
  if (!per_sample) return;
  if (mode != kBagModeSum)
    fail_arg(TT_NOT_IMPLEMENTED, "per_sample_weights",
             "per_sample_weights is given: only mode sum uses it");
  if (!same(per_sample->sizes(), indices.sizes()))
    fail_arg(TT_SHAPE, "per_sample_weights",
             "per_sample_weights is {}, indices is {}: must be equal", per_sample->sizes(),
             indices.sizes());
  if (per_sample->dtype != weight.dtype)
    fail_arg(TT_DTYPE, "per_sample_weights",
             "per_sample_weights is {}, weight is {}: must be equal", fmt(per_sample->dtype),
             fmt(weight.dtype));
}

TensorRef embedding_bag(Call, const Tensor& weight, const Tensor& indices, const Tensor* offsets,
                        int64_t mode, const Tensor* per_sample_weights, bool scale_grad_by_freq,
                        bool include_last_offset, Opt<int64_t> padding_idx) {
  check_table(weight, "weight", indices);
  check_weights(per_sample_weights, indices, weight, mode);
  const Bags bags(indices, offsets, include_last_offset);
  const Dtype compute = weight.item_size() == 2 ? Dtype::kF32 : weight.dtype;  // rounded once
  TensorRef rows = op::embedding(weight, *bags.indices, padding_idx, scale_grad_by_freq);
  if (rows->dtype != compute) rows = op::to_dtype(*rows, compute);
  const int64_t column[2] = {indices.numel, 1};
  TensorRef counted = op::ones(column, compute, Opt<Device>(weight.device));
  TensorRef skipped;
  if (padding_idx.has) {
    const int64_t row = *padding_idx + (*padding_idx < 0 ? weight.size(0) : 0);
    skipped = op::reshape(*op::eq(*bags.indices, Scalar(row)), column);
    counted = op::masked_fill(*counted, *skipped, Scalar(0));
  }
  // One bag more, for what is left out.
  const int64_t shape[2] = {bags.count + 1, weight.size(1)};
  TensorRef zeros = op::zeros(shape, compute, Opt<Device>(weight.device));
  TensorRef sums;
  if (mode == kBagModeMax) {
    TensorRef bag = op::reshape(*bags.bag, column);
    if (skipped) bag = op::masked_fill(*bag, *skipped, Scalar(bags.count));
    sums = op::scatter_reduce(*zeros, 0, *op::expand(*bag, rows->sizes()), *rows,
                              kScatterReduceAmax, false);
  } else {
    if (skipped) rows = op::masked_fill(*rows, *skipped, Scalar(0));
    if (per_sample_weights) {
      TensorRef factor = op::to_dtype(*op::reshape(*per_sample_weights, column), compute);
      rows = op::mul(*rows, *factor);
    }
    sums = op::index_add(*zeros, 0, *bags.bag, *rows);
  }
  if (mode == kBagModeMean) {
    const int64_t counts_shape[2] = {bags.count + 1, 1};
    const Scalar one(1);
    TensorRef counts = op::zeros(counts_shape, compute, Opt<Device>(weight.device));
    counts = op::index_add(*counts, 0, *bags.bag, *counted);
    sums = op::div(*sums, *op::clamp(*counts, &one));
  }
  TensorRef y = op::narrow_copy(*sums, 0, 0, bags.count);
  return y->dtype == weight.dtype ? std::move(y) : op::to_dtype(*y, weight.dtype);
}

}  // namespace TT_NS::impl
