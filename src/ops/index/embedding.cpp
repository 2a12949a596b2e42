// Rows of a table in bags, and the bound of their norms. embedding is in index.cpp.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
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

// The indices in one row, and where the bags begin in it, with the end of the last one; without
// offsets all bags have equally many.
struct Bags {
  TensorRef indices, starts;
  int64_t count;

  Bags(const Tensor& all, const Tensor* offsets, bool include_last) {
    const int64_t flat[1] = {all.numel};
    indices = op::contiguous(*op::reshape(all, flat));
    if (all.ndim == 2) {
      if (offsets)
        fail_arg(TT_INVALID_ARG, "offsets", "offsets is given, indices is {}: must be 1-dim",
                 all.sizes());
      count = all.size(0);
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
    starts = op::to_dtype(*offsets, Dtype::kI64);
    if (include_last) return;
    const int64_t one[1] = {1};
    TensorRef end = op::full(one, all.numel, Dtype::kI64, Opt<Device>(all.device));
    const Tensor* const parts[2] = {starts.get(), end.get()};
    starts = op::cat(parts, 0);
  }

 private:
  static void check_offsets(const Tensor& offsets, int64_t n) {
    check_indices(offsets, "offsets", 0, n + 1);
    if (!offsets.numel || offsets.device.type == TT_META) return;
    if (checks_later(offsets)) return check_offsets_later(offsets);
    const int64_t first = read_scalar(*op::select(offsets, 0, 0)).i;
    if (first != 0)
      fail_arg(TT_INVALID_ARG, "offsets", "offsets begins with {}: must begin with 0", first);
    TensorRef before = op::slice(offsets, 0, 0, -1);
    TensorRef descends = op::lt(*op::slice(offsets, 0, 1), *before);
    if (read_scalar(*op::any(*descends)).i)
      fail_arg(TT_INVALID_ARG, "offsets", "offsets descends: must be ascending");
  }
  static void check_offsets_later(const Tensor& offsets) {
    require(*op::eq(*op::select(offsets, 0, 0), 0), TT_INVALID_ARG, "offsets",
            "offsets must begin with 0");
    TensorRef ascends = op::ge(*op::slice(offsets, 0, 1), *op::slice(offsets, 0, 0, -1));
    require(*op::all(*ascends), TT_INVALID_ARG, "offsets", "offsets descends: must be ascending");
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
  int64_t skipped = -1;
  if (padding_idx.has) {
    skipped = *padding_idx + (*padding_idx < 0 ? weight.size(0) : 0);
    if (skipped < 0 || skipped >= weight.size(0))
      fail_arg(TT_INVALID_ARG, "padding_idx", "padding_idx is {}: must be in [{}, {})",
               *padding_idx, -weight.size(0), weight.size(0));
  }
  const int64_t flat[1] = {indices.numel};
  TensorRef factors = per_sample_weights ? op::reshape(*per_sample_weights, flat) : TensorRef();
  return op::bag_reduce(weight, *bags.indices, bags.starts.get(), bags.count, mode, factors.get(),
                        scale_grad_by_freq, skipped);
}

TensorRef bag_reduce(Call, const Tensor& weight, const Tensor& indices, const Tensor* starts,
                     int64_t bags, int64_t mode, const Tensor* per_sample_weights, bool,
                     int64_t skipped) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_indices(indices, "indices", 0, weight.size(0));
  const int64_t shape[2] = {bags, weight.size(1)};
  checked_numel(shape, weight.dtype, "result");
  TensorRef out = new_tensor(shape, weight.dtype, weight.device);
  if (!out->numel) return out;
  BagPlan plan;
  build_bags(&plan, int32_t(weight.dtype), int32_t(indices.dtype), bags, indices.numel, shape[1]);
  TensorRef table = weight.stride(1) == 1 ? TensorRef::share(&weight) : dense_input(weight);
  TensorRef index = dense_input(indices);
  TensorRef begin = starts ? dense_input(*starts) : TensorRef();
  TensorRef factors = per_sample_weights ? dense_input(*per_sample_weights) : TensorRef();
  plan.reduce = int32_t(mode);
  plan.per_bag = bags ? indices.numel / bags : 0;
  plan.rows = weight.size(0);
  plan.row_stride = table->stride(0) * table->item_size();
  plan.skipped = skipped;
  plan.table = table->data;
  plan.index = index->data;
  plan.start = begin ? begin->as<int64_t>() : nullptr;
  plan.factor = factors ? factors->data : nullptr;
  plan.out = out->data;
  launch_stages(kernel_bag_reduce, weight.device, &plan.run);
  return out;
}

}  // namespace TT_NS::impl
