// How operators that are neither elementwise nor composite act on all samples at once. A rule
// either calls its operator on tensors with the samples in front, or computes the same by
// other operators.
#include "modes/vmap_rules.h"

#include <string.h>

namespace TT_NS {

namespace batch_rules {

bool leading(const BatchCall& b) {
  if (!batched(b, 0) || any_batched(b, 1)) return false;
  OwnArgs own(b);
  const TensorRef all = b.batch(0);
  own.values[0] = to_value(*all);
  call_and_wrap(b, own.values.data());
  return true;
}
bool all_whole(const BatchCall& b) {
  OwnArgs own(b);
  SmallVec<TensorRef, 4> owned;
  for (int32_t i = 0; i < b.n_args(); i++) {
    if (b.args[i].kind != Value::kTensor) continue;
    owned.push_back(all_of(b, i));
    own.values[i] = to_value(*owned.back());
  }
  call_and_wrap(b, own.values.data());
  return true;
}

namespace {

// For copies, unless their memory format counts dimensions.
bool leading_copy(const BatchCall& b) {
  constexpr int64_t kPreserve = TT_PRESERVE;
  const bool plain = b.n_args() < 2 || b.args[1].kind != Value::kInt || b.args[1].i == kPreserve ||
                     b.args[1].i == TT_CONTIGUOUS;
  return plain && leading(b);
}

// Moves the dimensions that the arguments name by one; `ndim` is the number that they count by.
class ShiftedArgs : public OwnArgs {
 public:
  ShiftedArgs(const BatchCall& b, int64_t ndim) : OwnArgs(b) {
    lists_.reserve(b.n_args());
    for (int32_t i = 0; i < b.n_args(); i++) shift(b.schema().args[i], values[i], ndim);
  }
  bool ok = true;  // false: an argument has no counterpart

 private:
  void shift(const ArgInfo& info, Value& v, int64_t ndim) {
    switch (info.type) {
      case ArgType::kDim: v.i = wrap_dim(v.i, ndim) + 1; break;
      case ArgType::kOptDim:
        if (v.kind == Value::kNone) ok = false;
        else v.i = wrap_dim(v.i, ndim) + 1;
        break;
      case ArgType::kOptDims:
      case ArgType::kDims: shift_dims(v, ndim); break;
      default: break;
    }
  }
  void shift_dims(Value& v, int64_t ndim) {
    lists_.push_back({});
    Shape& dims = lists_.back();
    const bool all = v.kind == Value::kNone || !v.n;
    for (int64_t d = 0; all && d < ndim; d++) dims.push_back(d + 1);
    for (int64_t k = 0; !all && k < v.n; k++) dims.push_back(wrap_dim(v.ints[k], ndim) + 1);
    v = to_value(Ints(dims));
  }

  SmallVec<Shape, 2> lists_;
};

bool call_shifted(const BatchCall& b, int64_t ndim) {
  if (!batched(b, 0) || any_batched(b, 1) || !tensor(b, 0).ndim) return false;
  ShiftedArgs own(b, ndim);
  if (!own.ok) return false;
  const TensorRef all = b.batch(0);
  own.values[0] = to_value(*all);
  call_and_wrap(b, own.values.data());
  return true;
}
bool shifted(const BatchCall& b) { return call_shifted(b, tensor(b, 0).ndim); }
// No dimensions are none of them, not all.
bool shifted_some(const BatchCall& b) { return b.args[1].n > 0 && shifted(b); }
bool rolled(const BatchCall& b) { return b.args[2].n > 0 && shifted(b); }

// The same where all tensors have the samples in front, as index and source of scatter_add.
bool shifted_together(const BatchCall& b) {
  if (!tensor(b, 0).ndim) return false;
  ShiftedArgs own(b, tensor(b, 0).ndim);
  SmallVec<TensorRef, 4> owned;
  for (int32_t i = 0; i < b.n_args(); i++) {
    if (b.args[i].kind != Value::kTensor) continue;
    owned.push_back(all_of(b, i));
    own.values[i] = to_value(*owned.back());
  }
  if (!own.ok) return false;
  call_and_wrap(b, own.values.data());
  return true;
}
bool aligned(const BatchCall& b) {
  call_aligned(b);
  return true;
}

// ---- views ----

bool unsqueeze(const BatchCall& b) {
  const int64_t dim = wrap_dim(b.args[1].i, tensor(b, 0).ndim + 1);
  return give_all(b, op::unsqueeze(*b.batch(0), dim + 1));
}
bool squeeze(const BatchCall& b) {
  Shape dims;
  const Tensor& t = tensor(b, 0);
  for (int64_t d = 0; d < t.ndim; d++)
    if (t.size(d) == 1) dims.push_back(d + 1);
  const TensorRef all = b.batch(0);
  return give_all(b, dims.empty() ? op::expand(*all, all->sizes()) : op::squeeze_dims(*all, dims));
}
bool permute(const BatchCall& b) {
  Shape dims;
  dims.push_back(0);
  for (int64_t k = 0; k < b.args[1].n; k++)
    dims.push_back(wrap_dim(b.args[1].ints[k], tensor(b, 0).ndim, "dims") + 1);
  return give_all(b, op::permute(*b.batch(0), dims));
}
bool view(const BatchCall& b) {
  Shape sizes = infer_size({b.args[1].ints, b.args[1].n}, tensor(b, 0).numel, "size");
  sizes.insert(0, b.level.size);
  return give_all(b, op::view(*b.batch(0), sizes));
}
bool expand(const BatchCall& b) {
  const Tensor& t = tensor(b, 0);
  const Ints wanted = {b.args[1].ints, b.args[1].n};
  if (wanted.n < t.ndim) return false;
  Shape sizes, from;
  sizes.push_back(b.level.size);
  from.push_back(b.level.size);
  for (int64_t d = 0; d < wanted.n; d++) {
    const int64_t own = d - (wanted.n - t.ndim);
    from.push_back(own < 0 ? 1 : t.size(own));
    sizes.push_back(wanted[d] == -1 ? from.back() : wanted[d]);
  }
  return give_all(b, op::expand(*op::view(*b.batch(0), from), sizes));
}

// Geometry in memory: that of the first sample, which the others follow at equal distances.
Shape behind(int64_t first, Ints rest) {
  Shape all(rest);
  all.insert(0, first);
  return all;
}
bool as_strided(const BatchCall& b) {
  const TensorRef all = b.batch(0);
  const int64_t offset = b.args[3].kind == Value::kInt ? b.args[3].i : all->offset();
  return give_all(b, op::as_strided(*all, behind(b.level.size, ints(b, 1)),
                                    behind(all->stride(0), ints(b, 2)), Opt<int64_t>(offset)));
}
int64_t extent_of(Ints sizes, Ints strides) {
  int64_t extent = 1;
  for (int64_t d = 0; d < sizes.n; d++) extent += (sizes[d] - 1) * strides[d];
  return extent;
}
bool restride(const BatchCall& b) {
  const Tensor& t = tensor(b, 0);
  if (!t.numel) return false;
  const int64_t extent = extent_of(t.sizes(), ints(b, 1));
  return give_all(b, op::restride(*b.batch(0), behind(extent, ints(b, 1))));
}
bool as_strided_put(const BatchCall& b) {
  const Tensor& t = tensor(b, 0);
  if (!t.numel) return false;
  const int64_t extent = extent_of(t.sizes(), t.strides());
  const TensorRef own = op::restride(*all_of(b, 0), behind(extent, t.strides()));
  return give_all(b, op::as_strided_put(*own, *all_of(b, 1), behind(b.level.size, ints(b, 2)),
                                        behind(extent, ints(b, 3)), b.args[4].i));
}

// The gradient of a part of a tensor, whose sizes are the second argument.
bool part_backward(const BatchCall& b) {
  ShiftedArgs own(b, b.args[1].n);
  Shape sizes({b.args[1].ints, b.args[1].n});
  sizes.insert(0, b.level.size);
  const TensorRef all = b.batch(0);
  own.values[0] = to_value(*all);
  own.values[1] = to_value(Ints(sizes));
  call_and_wrap(b, own.values.data());
  return true;
}

// ---- reductions over everything ----

Shape dims_of_sample(const Tensor& t) {
  Shape dims;
  for (int64_t d = 0; d < t.ndim; d++) dims.push_back(d + 1);
  return dims;
}
Dtype dtype_arg(const BatchCall& b, int32_t i) {
  return b.args[i].kind == Value::kInt ? Dtype(b.args[i].i) : Dtype::kNone;
}
bool sum(const BatchCall& b) {
  const Tensor& t = tensor(b, 0);
  return t.ndim && give_all(b, op::sum_dim(*b.batch(0), dims_of_sample(t), false, dtype_arg(b, 1)));
}
bool mean(const BatchCall& b) {
  const Tensor& t = tensor(b, 0);
  return t.ndim &&
         give_all(b, op::mean_dim(*b.batch(0), dims_of_sample(t), false, dtype_arg(b, 1)));
}
bool prod(const BatchCall& b) {
  const TensorRef rows = op::reshape(*b.batch(0), Shape({b.level.size, tensor(b, 0).numel}));
  return give_all(b, op::prod_dim(*rows, 1, false, dtype_arg(b, 1)));
}
bool any(const BatchCall& b) {
  const Tensor& t = tensor(b, 0);
  return t.ndim && give_all(b, op::any_dim(*b.batch(0), dims_of_sample(t)));
}
bool all(const BatchCall& b) {
  const Tensor& t = tensor(b, 0);
  return t.ndim && give_all(b, op::all_dim(*b.batch(0), dims_of_sample(t)));
}
bool max(const BatchCall& b) {
  const Tensor& t = tensor(b, 0);
  return t.ndim && give_all(b, op::amax(*b.batch(0), dims_of_sample(t)));
}
bool min(const BatchCall& b) {
  const Tensor& t = tensor(b, 0);
  return t.ndim && give_all(b, op::amin(*b.batch(0), dims_of_sample(t)));
}

bool median(const BatchCall& b) {
  const Tensor& t = tensor(b, 0);
  const TensorRef rows = op::reshape(*b.batch(0), Shape({b.level.size, t.numel}));
  return t.numel && give_all(b, op::median_dim(*rows, 1, false).first);
}
bool nanmedian(const BatchCall& b) {
  const Tensor& t = tensor(b, 0);
  const TensorRef rows = op::reshape(*b.batch(0), Shape({b.level.size, t.numel}));
  return t.numel && give_all(b, op::nanmedian_dim(*rows, 1, false).first);
}

// Checks the condition of all samples at once.
bool check_holds(const BatchCall& b) {
  OwnArgs own(b);
  const TensorRef every = op::all(*b.batch(0));
  own.values[0] = to_value(*every);
  call_and_wrap(b, own.values.data());
  return true;
}

// ---- products ----

bool linear_rows(const BatchCall& b) {
  if (leading(b)) return true;
  TensorRef out = op::matmul(tensor(b, 0), *op::transpose(tensor(b, 1), 0, 1));
  const Tensor* bias = optional(b, 2);
  return give(b, bias ? op::add(*out, *bias) : std::move(out));
}
// beta self + alpha (a @ b), for addmm and baddbmm.
bool add_product(const BatchCall& b) {
  const Scalar& beta = *b.args[3].scalar;
  const Scalar& alpha = *b.args[4].scalar;
  if (beta.is_complex() || alpha.is_complex()) return false;
  TensorRef product = op::matmul(tensor(b, 1), tensor(b, 2));
  if (alpha.real() != 1) product = op::mul(*product, alpha);
  if (beta.real() == 0) return give(b, std::move(product));
  return give(b, op::add(*product, *op::mul(tensor(b, 0), beta)));
}

// ---- joining, indexing ----

bool cat(const BatchCall& b) {
  SmallVec<TensorRef, 8> owned;
  SmallVec<const Tensor*, 8> list;
  const int64_t ndim = b.args[0].tensors[0]->ndim;
  if (!ndim) return false;
  for (int64_t k = 0; k < b.args[0].n; k++) {
    const Tensor& t = *b.args[0].tensors[k];
    if (t.ndim != ndim) return false;
    owned.push_back(whole_batch(t, b.level));
    list.push_back(owned.back().get());
  }
  return give_all(b, op::cat({list.data(), list.size()}, wrap_dim(b.args[1].i, ndim) + 1));
}

// Tensors that index the first dimensions of self, without a gap, for all samples. The samples of
// self are indexed by their numbers.
class WholeIndices {
 public:
  WholeIndices(const BatchCall& b, bool with_numbers) {
    const Value& list = b.args[1];
    int64_t used = 0;
    for (; used < list.n && list.tensors[used]; used++)
      ndim = TT_NS::max<int64_t>(ndim, list.tensors[used]->ndim);
    for (int64_t k = 0; k < list.n; k++) {
      if (k >= used && list.tensors[k]) return;
      if (k < used && !is_integral(list.tensors[k]->dtype)) return;
    }
    if (!used) return;
    if (with_numbers) {
      Shape sizes;
      sizes.push_back(b.level.size);
      for (int64_t d = 0; d < ndim; d++) sizes.push_back(1);
      const TensorRef numbers = op::arange(Scalar(int64_t(0)), Scalar(b.level.size),
                                           Scalar(int64_t(1)), Dtype::kI64, tensor(b, 0).device);
      add(op::view(*numbers, sizes));
    }
    for (int64_t k = 0; k < used; k++) {
      const Tensor& t = *list.tensors[k];
      const TensorRef all = batch_at(t, b.level);
      Shape sizes;
      if (all) sizes.push_back(b.level.size);
      for (int64_t d = t.ndim; all && d < ndim; d++) sizes.push_back(1);
      sizes.append(t.sizes());
      add(all ? op::view(*all, sizes) : TensorRef::share(&t));
    }
  }
  TensorSpan span() const { return {list_.data(), list_.size()}; }
  bool empty() const { return list_.empty(); }  // no rule
  int64_t ndim = 0;                             // of the indices of a sample

 private:
  void add(TensorRef t) {
    list_.push_back(t.get());
    owned_.push_back(std::move(t));
  }

  SmallVec<TensorRef, 8> owned_;
  SmallVec<const Tensor*, 8> list_;
};

bool index(const BatchCall& b) {
  const WholeIndices indices(b, batched(b, 0));
  if (indices.empty()) return false;
  const TensorRef self = batched(b, 0) ? b.batch(0) : TensorRef::share(&tensor(b, 0));
  return give_all(b, op::index(*self, indices.span()));
}

// All samples of the values that meet the result of the indices, with its number of dimensions.
TensorRef whole_values(const BatchCall& b, int64_t ndim) {
  const Tensor& values = tensor(b, 2);
  const TensorRef all = batch_at(values, b.level);
  if (!all) return TensorRef::share(&values);
  Shape sizes;
  sizes.push_back(b.level.size);
  for (int64_t d = values.ndim; d < ndim; d++) sizes.push_back(1);
  sizes.append(values.sizes());
  return op::view(*all, sizes);
}
bool index_put(const BatchCall& b) {
  const WholeIndices indices(b, true);
  if (indices.empty()) return false;
  const int64_t indexed = indices.span().n - 1;
  const TensorRef values = whole_values(b, indices.ndim + tensor(b, 0).ndim - indexed);
  return give_all(b, op::index_put(*all_of(b, 0), indices.span(), *values, b.args[3].i != 0));
}
bool index_put_(const BatchCall& b) {
  const WholeIndices indices(b, true);
  if (indices.empty()) return false;
  const int64_t indexed = indices.span().n - 1;
  const TensorRef values = whole_values(b, indices.ndim + tensor(b, 0).ndim - indexed);
  op::index_put_(*b.batch(0), indices.span(), *values, b.args[3].i != 0);
  return true;
}

// An index along a dimension with one tensor of positions, as positions of every element.
TensorRef everywhere(const BatchCall& b, const Tensor& like, int64_t dim) {
  const TensorRef positions = b.batch(2);
  Shape sizes(like.sizes());
  Shape column;
  column.resize(like.ndim, 1);
  column[0] = b.level.size;
  column[dim] = positions->size(1);
  sizes[dim] = positions->size(1);
  return op::expand(*op::view(*positions, column), sizes);
}
bool index_select(const BatchCall& b) {
  if (shifted(b)) return true;
  const Tensor& t = tensor(b, 0);
  if (!t.ndim || tensor(b, 2).ndim != 1) return false;
  const TensorRef all = all_of(b, 0);
  const int64_t dim = wrap_dim(b.args[1].i, t.ndim) + 1;
  return give_all(b, op::gather(*all, dim, *everywhere(b, *all, dim)));
}
// The same positions for all samples.
bool index_with(const BatchCall& b) {
  if (batched(b, 2) || !tensor(b, 0).ndim) return false;
  ShiftedArgs own(b, tensor(b, 0).ndim);
  const TensorRef self = all_of(b, 0);
  const TensorRef source = all_of(b, 3);
  own.values[0] = to_value(*self);
  own.values[3] = to_value(*source);
  call_and_wrap(b, own.values.data());
  return true;
}
bool index_add(const BatchCall& b) {
  if (index_with(b)) return true;
  const Tensor& t = tensor(b, 0);
  const bool whole_source = tensor(b, 3).ndim == t.ndim && tensor(b, 2).ndim == 1;
  if (!t.ndim || !whole_source) return false;
  const int64_t dim = wrap_dim(b.args[1].i, t.ndim) + 1;
  const TensorRef source = op::mul(*all_of(b, 3), *b.args[4].scalar);
  return give_all(b, op::scatter_add(*all_of(b, 0), dim, *everywhere(b, *source, dim), *source));
}

// Values in a sorted sequence for all samples, or in one of each.
bool searchsorted(const BatchCall& b) {
  if (b.args[5].kind == Value::kTensor) return false;
  if (batched(b, 0) && tensor(b, 0).ndim != tensor(b, 1).ndim) return false;
  if (!batched(b, 0) && tensor(b, 0).ndim != 1) return false;
  OwnArgs own(b);
  const TensorRef sequence = batched(b, 0) ? b.batch(0) : TensorRef::share(&tensor(b, 0));
  const TensorRef values = all_of(b, 1);
  own.values[0] = to_value(*sequence);
  own.values[1] = to_value(*values);
  call_and_wrap(b, own.values.data());
  return true;
}

struct Row {
  const char* op;
  BatchRule rule;
};
constexpr Row kRows[] = {
    // sorted by name
    {"adaptive_avg_pool2d", image},
    {"adaptive_avg_pool2d_backward", images},
    {"adaptive_max_pool2d", image},
    {"adaptive_max_pool2d_backward", images},
    {"addmm", add_product},
    {"all", all},
    {"all_dim", shifted},
    {"alpha_dropout", leading},
    {"amax", shifted},
    {"amin", shifted},
    {"any", any},
    {"any_dim", shifted},
    {"argmax", shifted},
    {"argmin", shifted},
    {"argsort", shifted},
    {"as_strided", as_strided},
    {"as_strided_put", as_strided_put},
    {"attention_backward", merged},
    {"avg_pool2d", image},
    {"avg_pool2d_backward", images},
    {"baddbmm", add_product},
    {"bag_reduce", bag_reduce},
    {"bernoulli", leading},
    {"bernoulli_p", leading},
    {"bernoulli_p_", leading},
    {"cat", cat},
    {"cauchy_", leading},
    {"check_holds", check_holds},
    {"check_indices", leading},
    {"cholesky_inverse", leading},
    {"cholesky_solve", aligned},
    {"clone", leading_copy},
    {"col2im", columns},
    {"constant_pad_nd", leading},
    {"convolution", convolution},
    {"convolution_backward", convolution_backward},
    {"copy_", aligned},
    {"ctc_loss_backward", ctc_loss_backward},
    {"cummax", shifted},
    {"cummin", shifted},
    {"cumprod", shifted},
    {"cumprod_", shifted},
    {"cumsum", shifted},
    {"cumsum_", shifted},
    {"detach", leading},
    {"diagonal", shifted},
    {"diagonal_backward", part_backward},
    {"diagonal_scatter", shifted_together},
    {"dropout", leading},
    {"embedding", embedding},
    {"empty_like", leading},
    {"expand", expand},
    {"exponential_", leading},
    {"fft_c2c", shifted},
    {"fft_c2r", shifted},
    {"fft_r2c", shifted},
    {"fill_", leading},
    {"flip", shifted_some},
    {"floor_divide", aligned},
    {"floor_divide_", aligned},
    {"floor_divide_scalar", leading},
    {"floor_divide_scalar_", leading},
    {"full_like", leading},
    {"gather", shifted_together},
    {"geometric_", leading},
    {"geqrf", leading},
    {"grid_backward", merged},
    {"grid_take", merged},
    {"group_norm_backward", group_norm_backward},
    {"im2col", image},
    {"index", index},
    {"index_add", index_add},
    {"index_copy", index_with},
    {"index_fill", shifted},
    {"index_put", index_put},
    {"index_put_", index_put_},
    {"index_select", index_select},
    {"isclose", aligned},
    {"isin", leading},
    {"kthvalue", shifted},
    {"layer_norm_backward", layer_norm_backward},
    {"linalg_cholesky_ex", leading},
    {"linalg_lu_factor_ex", leading},
    {"linalg_solve_triangular", aligned},
    {"linear_rows", linear_rows},
    {"log_normal_", leading},
    {"log_softmax_backward", shifted_together},
    {"logcumsumexp", shifted},
    {"logsumexp", shifted},
    {"matmul_stack", aligned},
    {"matrix_exp", leading},
    {"max", max},
    {"max_dim", shifted},
    {"max_pool2d", image},
    {"max_pool2d_backward", images},
    {"max_pool2d_with_indices", image},
    {"mean", mean},
    {"mean_dim", shifted},
    {"median", median},
    {"median_dim", shifted},
    {"min", min},
    {"min_dim", shifted},
    {"mode", shifted},
    {"nanmedian", nanmedian},
    {"nanmedian_dim", shifted},
    {"native_attention", merged},
    {"native_batch_norm", batch_norm},
    {"native_cross_entropy", cross_entropy},
    {"native_ctc_loss", ctc_loss},
    {"native_det", leading},
    {"native_eig", leading},
    {"native_eigh", leading},
    {"native_group_norm", group_norm},
    {"native_householder", all_whole},
    {"native_inv", leading},
    {"native_layer_norm", layer_norm},
    {"native_log_softmax", shifted},
    {"native_lu_solve", all_whole},
    {"native_nll_loss", nll_loss},
    {"native_nuclear_norm", leading},
    {"native_pinv", leading},
    {"native_qr", leading},
    {"native_rms_norm", rms_norm},
    {"native_slogdet", leading},
    {"native_softmax", shifted},
    {"native_solve", all_whole},
    {"native_svd", leading},
    {"native_svdvals", leading},
    {"norm", shifted},
    {"normal_", leading},
    {"normal_mean", leading},
    {"one_hot", leading},
    {"ones_like", leading},
    {"pad_indexed", leading},
    {"permute", permute},
    {"prod", prod},
    {"prod_dim", shifted},
    {"rand_like", leading},
    {"randint_like", leading},
    {"randn_like", leading},
    {"random_", leading},
    {"recurrent_layer", recurrent_layer},
    {"recurrent_layer_backward", recurrent_layer_backward},
    {"restride", restride},
    {"roll", rolled},
    {"row_distances", merged},
    {"row_distances_backward", merged},
    {"rrelu", leading},
    {"scatter_add", shifted_together},
    {"scatter_add_", shifted_together},
    {"scatter_extreme", shifted_together},
    {"scatter_fill", shifted_together},
    {"scatter_multiply", shifted_together},
    {"scatter_put", shifted_together},
    {"searchsorted", searchsorted},
    {"select", shifted},
    {"select_backward", part_backward},
    {"select_scatter", shifted_together},
    {"slice", shifted},
    {"slice_backward", part_backward},
    {"slice_scatter", shifted_together},
    {"softmax_backward", shifted_together},
    {"sort", shifted},
    {"split_with_sizes", shifted},
    {"squeeze", squeeze},
    {"squeeze_dims", shifted_some},
    {"std", shifted},
    {"sum", sum},
    {"sum_dim", shifted},
    {"to_device", leading},
    {"to_dtype", leading},
    {"topk", shifted},
    {"transpose", shifted},
    {"unbind", shifted},
    {"unfold", shifted},
    {"uniform_", leading},
    {"unsqueeze", unsqueeze},
    {"upsample2d", image},
    {"var", shifted},
    {"view", view},
    {"view_as_complex", leading},
    {"view_as_real", leading},
    {"zero_", leading},
    {"zeros_like", leading},
};

}  // namespace

}  // namespace batch_rules

BatchRule find_batch_rule(const char* op) {
  using batch_rules::kRows;
  int64_t low = 0;
  int64_t high = int64_t(sizeof kRows / sizeof *kRows);
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const int order = strcmp(kRows[middle].op, op);
    if (!order) return kRows[middle].rule;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return nullptr;
}

}  // namespace TT_NS
