// Implementations of the reductions.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "plan/elementwise_build.h"
#include "plan/reduce_build.h"

namespace TT_NS::impl {

// Returns the shape after reducing the dims of the mask.
static Shape reduced_shape(const Tensor& t, uint64_t mask, bool keepdim) {
  Shape out;
  for (int64_t d = 0; d < t.ndim; d++) {
    if (!(mask >> d & 1)) {
      out.push_back(t.size(d));
    } else if (keepdim) {
      out.push_back(1);
    }
  }
  return out;
}

static void run_reduce(const Kernel& k, ReducePlan& plan, const Tensor& in, Tensor* out,
                       Tensor* index, double divisor) {
  Workspace workspace(reduce_workspace_bytes(&plan), in.device);
  plan.in = in.data;
  plan.out = out ? out->data : nullptr;
  plan.index = index ? index->data : nullptr;
  plan.divisor = divisor;
  plan.workspace = workspace.data();
  launch_stages(k, in.device, &plan.run);
}

// Reduces in to out (and index): the kernel writes contiguous results.
static void reduce(const Kernel& k, const Tensor& in, uint64_t mask, Tensor* out, Tensor* index,
                   double divisor = 1) {
  if ((out ? out : index)->numel == 0) return;
  const int64_t item = in.item_size();
  ReduceArgs args{
      .ndim = 1,
      .size = &in.numel,
      .stride = &item,
      .reduced = 1,
      .dtype = int32_t(in.dtype),
      .out_dtype = int32_t(out ? out->dtype : in.dtype),
      .out_stride = nullptr,
      .index_stride = nullptr,
      .ordered = index != nullptr,
  };
  const bool is_one_run = in.dense() && out && out->numel == 1 && (in.contiguous() || !index);
  Shape strides;
  if (!is_one_run) {
    strides = byte_strides(in);
    args.ndim = in.ndim;
    args.size = in.sizes_ptr();
    args.stride = strides.data();
    args.reduced = mask;
  }
  ReducePlan plan;
  build_reduce(&plan, args);
  run_reduce(k, plan, in, out, index, divisor);
}

// The mask of a dimension; a 0-dim tensor has none, but dim must be 0 or -1.
static uint64_t mask_of(const Tensor& t, int64_t dim) {
  const int64_t d = wrap_dim(dim, t.ndim);
  return t.ndim ? uint64_t(1) << d : 0;
}
static uint64_t mask_of_all(const Tensor& t) { return dim_mask({}, t.ndim, true); }

static int64_t reduced_count(const Tensor& t, uint64_t mask) {
  int64_t n = 1;
  for (int64_t d = 0; d < t.ndim; d++)
    if (mask >> d & 1) n *= t.size(d);
  return n;
}

// ---- sum and mean ----

static Dtype sum_dtype(const Tensor& t, Dtype asked) {
  if (asked != Dtype::kNone) return asked;
  return category(t.dtype) < 2 ? Dtype::kI64 : t.dtype;
}

static TensorRef add_up(const Tensor& self, Ints dim, bool keepdim, Dtype out_dtype, bool mean) {
  uint64_t mask = dim_mask(dim, self.ndim, true);
  // The kernel sums integers in int64 anyway.
  const bool widens = category(self.dtype) < 2 && out_dtype == Dtype::kI64;
  TensorRef in =
      self.dtype == out_dtype || widens ? TensorRef::share(&self) : cast_input(self, out_dtype);
  TensorRef out = new_tensor(reduced_shape(self, mask, keepdim), out_dtype, self.device);
  reduce(kernel_reduce_sum, in, mask, out.get(), nullptr,
         mean ? double(reduced_count(self, mask)) : 1);
  return out;
}

TensorRef sum(Call, const Tensor& self, Dtype dtype) {
  if (self.dense() && is_differentiable(self.dtype) && dtype == Dtype::kNone) {
    TensorRef out = new_tensor({}, self.dtype, self.device);
    reduce(kernel_reduce_sum, self, ~uint64_t(0), out.get(), nullptr);
    return out;
  }
  return add_up(self, {}, false, sum_dtype(self, dtype), false);
}
TensorRef sum_dim(Call, const Tensor& self, Ints dim, bool keepdim, Dtype dtype) {
  return add_up(self, dim, keepdim, sum_dtype(self, dtype), false);
}

static Dtype mean_dtype(const Tensor& t, Dtype asked) {
  Dtype d = asked == Dtype::kNone ? t.dtype : asked;
  if (!is_differentiable(d))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: the mean needs a floating or complex dtype",
             fmt(d));
  return d;
}
TensorRef mean(Call, const Tensor& self, Dtype dtype) {
  return add_up(self, {}, false, mean_dtype(self, dtype), true);
}
TensorRef mean_dim(Call, const Tensor& self, Ints dim, bool keepdim, Dtype dtype) {
  return add_up(self, dim, keepdim, mean_dtype(self, dtype), true);
}

// ---- prod ----

static TensorRef multiply_up(const Tensor& self, uint64_t mask, bool keepdim, Dtype dtype) {
  TensorRef in = self.dtype == dtype ? TensorRef::share(&self) : cast_input(self, dtype);
  TensorRef out = new_tensor(reduced_shape(self, mask, keepdim), dtype, self.device);
  reduce(kernel_reduce_prod, in, mask, out.get(), nullptr);
  return out;
}
TensorRef prod(Call, const Tensor& self, Dtype dtype) {
  return multiply_up(self, mask_of_all(self), false, sum_dtype(self, dtype));
}
TensorRef prod_dim(Call, const Tensor& self, int64_t dim, bool keepdim, Dtype dtype) {
  return multiply_up(self, mask_of(self, dim), keepdim, sum_dtype(self, dtype));
}

TensorRef sum_to_size(Call, const Tensor& self, Ints size) {
  if (!broadcastable_to(size, self.sizes()))
    fail_arg(TT_SHAPE, "size", "size is {}, self is {}: size must broadcast to self", size,
             self.sizes());
  Shape dims;
  int64_t extra = self.ndim - size.n;
  for (int64_t d = 0; d < self.ndim; d++)
    if (d < extra || (size[d - extra] == 1 && self.size(d) != 1)) dims.push_back(d);
  const Dtype d = category(self.dtype) < 2 ? Dtype::kI64 : self.dtype;
  if (self.ndim == 0) return op::clone(*op::to(self, d));
  if (dims.empty()) return TensorRef::share(&self);
  TensorRef summed = op::sum_dim(self, dims, true, d);
  return extra ? op::view(*op::contiguous(summed), size) : summed;
}

// ---- max, min ----

static void check_real(const Tensor& t) {
  if (is_complex(t.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: complex numbers have no order", fmt(t.dtype));
}
static void check_not_empty(const Tensor& t, uint64_t mask) {
  for (int64_t d = 0; d < t.ndim; d++)
    if ((mask >> d & 1) && t.size(d) == 0)
      fail_arg(t.ndim > 1 ? TT_INDEX : TT_INVALID_ARG, "self",
               "self is {}: dimension {} has size 0 and no maximum or minimum", t.sizes(), d);
}

static TensorRef extreme(const Kernel& k, const Tensor& self, const char* what) {
  check_real(self);
  if (self.numel == 0)
    fail_arg(TT_INVALID_ARG, "self", "self is {}: {} needs at least one element", self.sizes(),
             what);
  TensorRef out = new_tensor({}, self.dtype, self.device);
  reduce(k, self, mask_of_all(self), out.get(), nullptr);
  return out;
}
static TensorPair extreme_dim(const Kernel& k, const Tensor& self, int64_t dim, bool keepdim) {
  check_real(self);
  const uint64_t mask = mask_of(self, dim);
  check_not_empty(self, mask);
  Shape shape = reduced_shape(self, mask, keepdim);
  TensorRef values = new_tensor(shape, self.dtype, self.device);
  TensorRef indices = new_tensor(shape, Dtype::kI64, self.device);
  reduce(k, self, mask, values.get(), indices.get());
  return {std::move(values), std::move(indices)};
}
TensorRef max(Call, const Tensor& self) { return extreme(kernel_reduce_max, self, "maximum"); }
TensorRef min(Call, const Tensor& self) { return extreme(kernel_reduce_min, self, "minimum"); }
TensorPair max_dim(Call, const Tensor& self, int64_t dim, bool keepdim) {
  return extreme_dim(kernel_reduce_max_index, self, dim, keepdim);
}
TensorPair min_dim(Call, const Tensor& self, int64_t dim, bool keepdim) {
  return extreme_dim(kernel_reduce_min_index, self, dim, keepdim);
}

static TensorRef extreme_dims(const Kernel& k, const Tensor& self, Ints dim, bool keepdim) {
  check_real(self);
  const uint64_t mask = dim_mask(dim, self.ndim, true);
  check_not_empty(self, mask);
  TensorRef out = new_tensor(reduced_shape(self, mask, keepdim), self.dtype, self.device);
  reduce(k, self, self.ndim ? mask : 0, out.get(), nullptr);
  return out;
}
TensorRef amax(Call, const Tensor& self, Ints dim, bool keepdim) {
  return extreme_dims(kernel_reduce_max, self, dim, keepdim);
}
TensorRef amin(Call, const Tensor& self, Ints dim, bool keepdim) {
  return extreme_dims(kernel_reduce_min, self, dim, keepdim);
}

static TensorRef position(const Kernel& k, const Tensor& self, Opt<int64_t> dim, bool keepdim) {
  check_real(self);
  const uint64_t mask = dim.has ? mask_of(self, dim.value) : mask_of_all(self);
  if (!dim.has && self.numel == 0)
    fail_arg(TT_INDEX, "self", "self is {}: the reduced dimension must not have size 0",
             self.sizes());
  check_not_empty(self, mask);
  TensorRef indices = new_tensor(reduced_shape(self, mask, keepdim), Dtype::kI64, self.device);
  reduce(k, self, mask, nullptr, indices.get());
  return indices;
}
TensorRef argmax(Call, const Tensor& self, Opt<int64_t> dim, bool keepdim) {
  return position(kernel_reduce_max_index, self, dim, keepdim);
}
TensorRef argmin(Call, const Tensor& self, Opt<int64_t> dim, bool keepdim) {
  return position(kernel_reduce_min_index, self, dim, keepdim);
}

// ---- hash_tensor ----

// A copy of self as [kept, reduced] elements of dtype d.
static TensorRef in_rows(const Tensor& self, uint64_t mask, Dtype d) {
  Shape sizes;
  Shape strides;
  int64_t kept = 1;
  for (bool reduced : {false, true})
    for (int64_t k = 0; k < self.ndim; k++) {
      if ((mask >> k & 1) != uint64_t(reduced)) continue;
      sizes.push_back(self.size(k));
      strides.push_back(self.stride(k));
      if (!reduced) kept *= self.size(k);
    }
  TensorRef rows = new_tensor(sizes, d, self.device);
  copy_elements(*rows, *new_alias(self, sizes, strides));
  const int64_t shape[2] = {kept, kept ? self.numel / kept : 0};
  return new_alias(*rows, Ints(shape, 2), {}, rows->data, rows->dtype);
}

TensorRef hash_tensor(Call, const Tensor& self, Ints dim, bool keepdim, int64_t mode) {
  check_real(self);
  if (mode != 0) fail_arg(TT_INVALID_ARG, "mode", "mode is {}: must be 0", mode);
  const uint64_t mask = dim_mask(dim, self.ndim, true);
  for (int64_t d = 0; d < self.ndim; d++)
    if ((mask >> d & 1) && self.size(d) == 0)
      fail_arg(TT_INDEX, "self", "self is {}: dimension {} has size 0 and no hash", self.sizes(),
               d);
  TensorRef out = new_tensor(reduced_shape(self, mask, keepdim), Dtype::kU64, self.device);
  const TensorRef rows = in_rows(self, mask, is_float(self.dtype) ? Dtype::kF64 : Dtype::kI64);
  // halves are combined until a column is left
  for (int64_t n = rows->size(1); n > 1; n -= n / 2) {
    const int64_t sizes[2] = {rows->size(0), n / 2};
    const int64_t strides[2] = {rows->size(1), 1};
    char* second = rows->data + 8 * (n - n / 2);
    const ElementOperand ops[3] = {{rows->data, sizes, strides, 2, TT_I64},
                                   {rows->data, sizes, strides, 2, TT_I64},
                                   {second, sizes, strides, 2, TT_I64}};
    ElementPlan plan;
    plan.param[0].kind = plan.param[1].kind = 0;
    build_element_plan(plan, ops, 3, TT_I64, kBoolNone);
    if (plan.n) launch(kernel_bitwise_xor, self.device, &plan, plan.n);
  }
  const int64_t kept = rows->size(0);
  const int64_t step = rows->size(1);
  const int64_t one = 1;
  const TensorRef hashes = new_alias(*rows, Ints(&kept, 1), Ints(&step, 1), rows->data, out->dtype);
  copy_elements(*new_alias(*out, Ints(&kept, 1), Ints(&one, 1)), *hashes);
  return out;
}

// ---- any, all ----

static TensorRef truth(const Kernel& k, const Tensor& self, uint64_t mask, bool keepdim) {
  TensorRef out = new_tensor(reduced_shape(self, mask, keepdim), Dtype::kBool, self.device);
  reduce(k, self, mask, out.get(), nullptr);
  if (self.dtype != Dtype::kU8) return out;
  TensorRef bytes = new_tensor(out->sizes(), Dtype::kU8, self.device);
  copy_elements(*bytes, *out);
  return bytes;
}
TensorRef any(Call, const Tensor& self) {
  return truth(kernel_reduce_any, self, mask_of_all(self), false);
}
TensorRef any_dim(Call, const Tensor& self, Ints dim, bool keepdim) {
  return truth(kernel_reduce_any, self, dim_mask(dim, self.ndim, true), keepdim);
}
TensorRef all(Call, const Tensor& self) {
  return truth(kernel_reduce_all, self, mask_of_all(self), false);
}
TensorRef all_dim(Call, const Tensor& self, Ints dim, bool keepdim) {
  return truth(kernel_reduce_all, self, dim_mask(dim, self.ndim, true), keepdim);
}

}  // namespace TT_NS::impl
