// How operators that are neither elementwise nor composite act on all samples at once. A rule
// either calls its operator on tensors with the samples in front, or computes the same by
// other operators.
#include "modes/vmap_call.h"
#include "ops/gen/ops.h"

#include <string.h>

namespace TT_NS {

namespace {

const Tensor& tensor(const BatchCall& b, int32_t i) { return *b.args[i].tensor; }
const Tensor* optional(const BatchCall& b, int32_t i) {
  return b.args[i].kind == Value::kTensor ? b.args[i].tensor : nullptr;
}
bool batched(const BatchCall& b, int32_t i) { return b.is_batched_here(b.args[i]); }
// Whether a tensor among arguments [from, n) is batched.
bool any_batched(const BatchCall& b, int32_t from) {
  for (int32_t i = from; i < b.n_args(); i++) {
    if (batched(b, i)) return true;
    if (b.args[i].kind != Value::kTensorList) continue;
    for (int64_t k = 0; k < b.args[i].n; k++)
      if (b.args[i].tensors[k] && batch_at(*b.args[i].tensors[k], b.level)) return true;
  }
  return false;
}
TensorRef all_of(const BatchCall& b, int32_t i) { return whole_batch(tensor(b, i), b.level); }
// The same without strides of 0: kernels read the statistics of a forward pass as dense rows.
TensorRef dense_of(const BatchCall& b, int32_t i) { return op::contiguous(*all_of(b, i)); }
// Gives a result that is batched already, or the same for all samples.
bool give(const BatchCall& b, TensorRef result) {
  b.outs.push_back(std::move(result));
  return true;
}
bool give_all(const BatchCall& b, const TensorRef& all) {
  return give(b, new_batched(*all, b.level));
}

struct OwnArgs {
  SmallVec<Value, 16> values;
  explicit OwnArgs(const BatchCall& b) {
    for (int32_t i = 0; i < b.n_args(); i++) values.push_back(b.args[i]);
  }
};

// Of operators that keep a leading dimension of their first tensor as it is.
bool leading(const BatchCall& b) {
  if (!batched(b, 0) || any_batched(b, 1)) return false;
  OwnArgs own(b);
  const TensorRef all = b.batch(0);
  own.values[0] = to_value(*all);
  call_and_wrap(b, own.values.data());
  return true;
}
// Of copies whose memory format would count dimensions.
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

// Of tensors with equal batches of matrices.
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
Ints ints(const BatchCall& b, int32_t i) { return {b.args[i].ints, b.args[i].n}; }
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

// ---- layers ----

// Merges the samples with the first dimension, calls, and takes them apart.
bool folded(const BatchCall& b, int64_t trailing) {
  if (!batched(b, 0) || any_batched(b, 1)) return false;
  const Tensor& t = tensor(b, 0);
  if (t.ndim == trailing) return leading(b);
  if (t.ndim != trailing + 1) return false;
  const int64_t n = t.size(0);
  OwnArgs own(b);
  const TensorRef merged = op::flatten(*b.batch(0), 0, 1);
  own.values[0] = to_value(*merged);
  BatchCall inner = {b.c, own.values.data(), b.level, b.outs};
  TensorList found;
  call_operator(inner, own.values.data(), found);
  for (const TensorRef& r : found) {
    const bool of_rows = r->ndim && r->size(0) == b.level.size * n;  // not statistics of channels
    if (of_rows) give_all(b, op::unflatten(*r, 0, Shape({b.level.size, n})));
    else give(b, r);
  }
  return true;
}
bool image(const BatchCall& b) { return folded(b, 3); }
bool columns(const BatchCall& b) { return folded(b, 2); }

// The elements of all samples of an optional tensor of one dimension; empty if it is absent.
TensorRef all_channels(const BatchCall& b, int32_t i) {
  return optional(b, i) ? op::flatten(*all_of(b, i), 0, 1) : TensorRef();
}

// Statistics are those of a channel, so that the channels of all samples are those of one batch:
// [B, N, C, …] as [N, B * C, …]. Running statistics of a training step are updated a sample at a
// time.
bool batch_norm_of_channels(const BatchCall& b) {
  const bool training = b.args[5].i != 0;
  const Tensor& x = tensor(b, 0);
  if ((training && optional(b, 3)) || x.ndim < 2 || !x.numel) return false;
  const TensorRef merged = op::flatten(*op::transpose(*all_of(b, 0), 0, 1), 1, 2);
  const TensorRef weight = all_channels(b, 1);
  const TensorRef bias = all_channels(b, 2);
  const TensorRef mean = all_channels(b, 3);
  const TensorRef var = all_channels(b, 4);
  const TensorPair found = op::native_batch_norm(*merged, weight.get(), bias.get(), mean.get(),
                                                 var.get(), training, b.args[6].f);
  const Shape apart({b.level.size, x.size(1)});
  give_all(b, op::transpose(*op::unflatten(*found.first, 1, apart), 0, 1));
  return give_all(b, op::transpose(*op::unflatten(*found.second, 1, apart), 0, 1));
}
bool batch_norm(const BatchCall& b) {
  const bool training = b.args[5].i != 0;
  const int64_t ndim = tensor(b, 0).ndim;
  if (!training && ndim >= 2 && folded(b, ndim - 1)) return true;
  return batch_norm_of_channels(b);
}

// Merges the samples of all tensors with their first dimensions, calls, and takes them apart.
bool merged(const BatchCall& b) {
  OwnArgs own(b);
  SmallVec<TensorRef, 8> owned;
  for (int32_t i = 0; i < b.n_args(); i++) {
    if (!optional(b, i)) continue;
    if (!tensor(b, i).ndim) return false;
    owned.push_back(op::flatten(*dense_of(b, i), 0, 1));
    own.values[i] = to_value(*owned.back());
  }
  TensorList found;
  call_operator(b, own.values.data(), found);
  const Shape apart({b.level.size, tensor(b, 0).size(0)});
  for (const TensorRef& r : found)
    give(b, r ? new_batched(*op::unflatten(*r, 0, apart), b.level) : TensorRef());
  return true;
}
bool images(const BatchCall& b) { return tensor(b, 0).ndim == 3 ? all_whole(b) : merged(b); }

// ---- gradients ----

// Of a part of a tensor, whose size is the second argument.
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
bool layer_norm_backward(const BatchCall& b) {
  const bool of_parameters = b.args[8].i || b.args[9].i;
  if (of_parameters || batched(b, 5)) return false;
  OwnArgs own(b);
  SmallVec<TensorRef, 4> owned;
  for (int32_t i : {0, 1, 3, 4}) {
    owned.push_back(dense_of(b, i));
    own.values[i] = to_value(*owned.back());
  }
  call_and_wrap(b, own.values.data());
  return true;
}
// Of the input, where only gradients have samples.
bool convolution_backward(const BatchCall& b) {
  const bool of_parameters = b.args[10].i || b.args[11].i;
  const Tensor& grad = tensor(b, 0);
  if (of_parameters || any_batched(b, 1) || grad.ndim != tensor(b, 2).ndim) return false;
  const TensorRef grads = op::flatten(*b.batch(0), 0, 1);
  const TensorRef inputs = op::flatten(*all_of(b, 1), 0, 1);
  OwnArgs own(b);
  own.values[0] = to_value(*grads);
  own.values[1] = to_value(*inputs);
  TensorList found;
  call_operator(b, own.values.data(), found);
  give_all(b, op::unflatten(*found[0], 0, Shape({b.level.size, grad.size(0)})));
  give(b, {});
  return give(b, {});
}

// For norms of rows: their statistics have one dimension, all rows of the input.
bool rows_of_samples(const BatchCall& b) {
  if (!batched(b, 0) || any_batched(b, 1)) return false;
  OwnArgs own(b);
  const TensorRef all = b.batch(0);
  const int64_t columns = numel_of({b.args[1].ints, b.args[1].n});
  const int64_t rows = columns ? tensor(b, 0).numel / columns : 0;
  own.values[0] = to_value(*all);
  TensorList found;
  call_operator(b, own.values.data(), found);
  give_all(b, found[0]);
  for (int64_t i = 1; i < found.size(); i++)
    give_all(b, op::unflatten(*found[i], 0, Shape({b.level.size, rows})));
  return true;
}
bool layer_norm(const BatchCall& b) {
  if (rows_of_samples(b)) return true;
  const Tensor* weight = optional(b, 2);
  const Tensor* bias = optional(b, 3);
  TensorTriple found = op::native_layer_norm(tensor(b, 0), {b.args[1].ints, b.args[1].n}, nullptr,
                                             nullptr, b.args[4].f);
  if (weight) found.first = op::mul(*found.first, *weight);
  if (bias) found.first = op::add(*found.first, *bias);
  give(b, std::move(found.first));
  give(b, std::move(found.second));
  return give(b, std::move(found.third));
}

bool rms_norm(const BatchCall& b) {
  if (rows_of_samples(b)) return true;
  TensorPair found =
      op::native_rms_norm(tensor(b, 0), {b.args[1].ints, b.args[1].n}, nullptr, b.args[3].f);
  if (const Tensor* weight = optional(b, 2)) found.first = op::mul(*found.first, *weight);
  give(b, op::to(*found.first, tensor(b, 0).dtype));
  return give(b, std::move(found.second));
}

// The images of all samples are normalized as one batch.
bool group_norm(const BatchCall& b) {
  if (!batched(b, 0)) return false;
  const TensorRef all = b.batch(0);
  const int64_t images = all->size(1);
  if (images == 0) return false;
  const int64_t groups = b.args[1].i;
  TensorTriple found =
      op::native_group_norm(*op::flatten(*all, 0, 1), groups, nullptr, nullptr, b.args[4].f);
  TensorRef out =
      new_batched(*op::unflatten(*found.first, 0, Shape({b.level.size, images})), b.level);
  Shape column;
  column.resize(all->ndim - 2, 1);
  column[0] = all->size(2);
  if (const Tensor* weight = optional(b, 2)) out = op::mul(*out, *op::reshape(*weight, column));
  if (const Tensor* bias = optional(b, 3)) out = op::add(*out, *op::reshape(*bias, column));
  give(b, op::to(*out, all->dtype));
  for (const TensorRef& stats : {found.second, found.third})
    give_all(b, op::unflatten(*stats, 0, Shape({b.level.size, images * groups})));
  return true;
}

// The gradient of the input of the images of all samples. Weights may have samples: they scale the
// gradient of what is normalized.
bool group_norm_backward(const BatchCall& b) {
  const bool of_parameters = b.args[8].i || b.args[9].i;
  const Tensor& x = tensor(b, 1);
  if (of_parameters || !x.numel) return false;
  TensorRef grad = TensorRef::share(&tensor(b, 0));
  Shape column;
  column.resize(x.ndim - 1, 1);
  column[0] = x.size(1);
  if (const Tensor* weight = optional(b, 3)) grad = op::mul(*grad, *op::reshape(*weight, column));
  const TensorRef grads = whole_batch(*grad, b.level);
  const auto images = [&](const TensorRef& all) {
    return op::flatten(*op::contiguous(*all), 0, 1);
  };
  const TensorTriple found = op::group_norm_backward(
      *images(grads), *images(all_of(b, 1)), b.args[2].i, nullptr, *images(all_of(b, 4)),
      *images(all_of(b, 5)), b.args[6].f, true, false, false);
  give_all(b, op::unflatten(*found.first, 0, Shape({b.level.size, x.size(0)})));
  give(b, {});
  return give(b, {});
}

// ---- recurrent layers ----

// The matrices of a recurrent layer, whose weights the samples share. They have the rows of all
// steps, step after step; each row becomes one of every sample, so that the first rows of a step
// continue those of the step before, as in packed sequences.
class SampleRows {
 public:
  SampleRows(const VmapLevel& level, Ints batch_sizes) : level_(level) {
    for (int64_t n : batch_sizes) sizes_.push_back(n * level.size);
  }
  bool ok() const { return sizes_.size() && sizes_[0]; }
  Ints batch_sizes() const { return sizes_; }
  // From [samples, rows, n] to [rows * samples, n]. A matrix may be empty.
  TensorRef joined(const Tensor& all) const {
    return op::reshape(*op::transpose(all, 0, 1), Shape({all.size(0) * all.size(1), all.size(2)}));
  }
  // From [rows * samples, n] to [samples, rows, n].
  TensorRef apart(const Tensor& all) const {
    const Shape by_row({all.size(0) / level_.size, level_.size, all.size(1)});
    return new_batched(*op::transpose(*op::reshape(all, by_row), 0, 1), level_);
  }

 private:
  const VmapLevel& level_;
  Shape sizes_;
};

// Where a call has its matrices: a bit for each argument.
struct RecurrentArgs {
  uint32_t rows;        // of all steps or of one
  int32_t batch_sizes;  // the argument itself
  bool are_rows(int32_t i) const { return rows >> i & 1; }
};

bool call_recurrent(const BatchCall& b, const RecurrentArgs& at) {
  for (int32_t i = 0; i < b.n_args(); i++)
    if (batched(b, i) && !at.are_rows(i)) return false;
  const Value& sizes = b.args[at.batch_sizes];
  const SampleRows rows(b.level, {sizes.ints, sizes.n});
  if (!rows.ok()) return false;
  OwnArgs own(b);
  SmallVec<TensorRef, 8> owned;
  for (int32_t i = 0; i < b.n_args(); i++) {
    if (!at.are_rows(i) || !optional(b, i)) continue;
    owned.push_back(rows.joined(*all_of(b, i)));
    own.values[i] = to_value(*owned.back());
  }
  own.values[at.batch_sizes] = to_value(rows.batch_sizes());
  TensorList found;
  call_operator(b, own.values.data(), found);
  for (const TensorRef& r : found) give(b, rows.apart(*r));
  return true;
}
bool recurrent_layer(const BatchCall& b) {
  enum { kGates, kH0, kC0, kBatchSizes = 6 };
  return call_recurrent(b, {1u << kGates | 1u << kH0 | 1u << kC0, kBatchSizes});
}
bool recurrent_layer_backward(const BatchCall& b) {
  enum { kGrad, kGradCells, kH0, kC0, kOutput = 6, kCells, kSaved, kBatchSizes };
  constexpr uint32_t kGrads = 1u << kGrad | 1u << kGradCells | 1u << kH0 | 1u << kC0;
  constexpr uint32_t kResults = 1u << kOutput | 1u << kCells | 1u << kSaved;
  return call_recurrent(b, {kGrads | kResults, kBatchSizes});
}

// A weight per sample: one convolution with a group per sample. Input: [B, N, C, …], as
// [N, B * C, …]; weight: [B, O, C / groups, …], as [B * O, …].
bool convolution_of_weights(const BatchCall& b) {
  const int64_t size = b.level.size;
  const bool transposed = b.args[6].i != 0;
  if (transposed || tensor(b, 0).ndim != tensor(b, 1).ndim || !size) return false;
  const TensorRef x = op::flatten(*op::transpose(*all_of(b, 0), 0, 1), 1, 2);
  const TensorRef w = op::flatten(*all_of(b, 1), 0, 1);
  const TensorRef bias = optional(b, 2) ? op::flatten(*all_of(b, 2), 0, 1) : TensorRef();
  const TensorRef out = op::convolution(*x, *w, bias.get(), ints(b, 3), ints(b, 4), ints(b, 5),
                                        false, ints(b, 7), b.args[8].i * size);
  const TensorRef apart = op::unflatten(*out, 1, Shape({size, tensor(b, 1).size(0)}));
  return give_all(b, op::transpose(*apart, 0, 1));
}
bool convolution(const BatchCall& b) {
  return folded(b, tensor(b, 1).ndim - 1) || convolution_of_weights(b);
}

// The loss of each row, of all samples at once; then what `reduction` says, per sample.
// rows: [N, C, …] or [C]; target: class numbers.
template <class F> bool class_loss(const BatchCall& b, F loss_of_rows) {
  enum { kNone, kMean, kSum };
  const Tensor& rows = tensor(b, 0);
  const Tensor& target = tensor(b, 1);
  const Tensor* weight = optional(b, 2);
  const int64_t ignored = b.args[3].i;
  const int64_t reduction = b.args[4].i;
  if (!is_integral(target.dtype) || (weight && (batched(b, 2) || reduction == kMean))) return false;
  const bool one = rows.ndim == 1;
  const TensorRef all = all_of(b, 0);
  const TensorRef classes = all_of(b, 1);
  const TensorRef losses =
      loss_of_rows(one ? *all : *op::flatten(*all, 0, 1),
                   one ? *classes : *op::flatten(*classes, 0, 1), weight, ignored, int64_t(kNone));
  const TensorRef apart =
      one ? losses : op::unflatten(*losses, 0, Shape({b.level.size, rows.size(0)}));
  TensorRef found = new_batched(*apart, b.level);
  if (reduction == kSum) found = op::sum(*found);
  if (reduction == kMean) {
    const TensorRef counted = op::to_dtype(*op::ne(target, Scalar(ignored)), rows.dtype);
    found = op::div_true(*op::sum(*found), *op::sum(*counted));
  }
  for (int32_t i = 0; i < b.schema().n_outs; i++) give(b, found);  // the others are not used
  return true;
}
bool nll_loss(const BatchCall& b) {
  return class_loss(
      b, [](const Tensor& x, const Tensor& t, const Tensor* w, int64_t ignored, int64_t reduction) {
        return op::native_nll_loss(x, t, w, ignored, reduction).first;
      });
}
bool cross_entropy(const BatchCall& b) {
  return class_loss(
      b, [](const Tensor& x, const Tensor& t, const Tensor* w, int64_t ignored, int64_t reduction) {
        return op::native_cross_entropy(x, t, w, ignored, reduction).first;
      });
}

bool embedding(const BatchCall& b) {
  if (batched(b, 0)) return false;
  OwnArgs own(b);
  const TensorRef indices = b.batch(1);
  own.values[1] = to_value(*indices);
  call_and_wrap(b, own.values.data());
  return true;
}

// The number of each sample times `step`, as a column for a tensor of `ndim` dimensions.
TensorRef sample_offsets(const BatchCall& b, int64_t step, int64_t ndim) {
  Shape column;
  column.resize(ndim, 1);
  column[0] = b.level.size;
  const TensorRef offsets = op::arange(Scalar(int64_t(0)), Scalar(b.level.size * step),
                                       Scalar(step), Dtype::kI64, Opt<Device>(tensor(b, 0).device));
  return op::view(*offsets, column);
}

// Reduces the bags of all samples at once: the weights of the samples are the rows of one table.
// Frequencies are counted within a sample, and the index of the padding is one of the table.
bool bag_reduce(const BatchCall& b) {
  enum { kWeight, kIndices, kStarts, kBags, kFactors = 5, kByFrequency, kSkipped };
  const int64_t bags = b.args[kBags].i;
  const int64_t rows = tensor(b, kWeight).size(0);
  const int64_t n = tensor(b, kIndices).size(0);
  const bool tables = batched(b, kWeight);
  if (tables ? !rows : b.args[kByFrequency].i) return false;
  if (!bags || !n || !b.level.size) return false;
  OwnArgs own(b);
  TensorRef indices = all_of(b, kIndices);
  TensorRef weight, starts;
  if (tables) {
    weight = op::flatten(*b.batch(kWeight), 0, 1);
    own.values[kWeight] = to_value(*weight);
    const Scalar skipped(b.args[kSkipped].i);
    const TensorRef own_rows = op::to_dtype(*indices, Dtype::kI64);
    indices = op::add(*own_rows, *sample_offsets(b, rows, 2));
    if (skipped.i >= 0)  // all samples have the padding index of the first one
      indices = op::masked_fill(*indices, *op::eq(*own_rows, skipped), skipped);
  }
  indices = op::flatten(*indices, 0, 1);
  own.values[kIndices] = to_value(*indices);
  if (optional(b, kStarts)) {  // each sample ends where the next one begins
    starts = op::add(*op::narrow(*all_of(b, kStarts), 1, 0, bags), *sample_offsets(b, n, 2));
    const TensorRef end =
        op::full(Shape({1}), Scalar(n * b.level.size), Dtype::kI64, Opt<Device>(starts->device));
    const TensorRef flat = op::flatten(*starts, 0, 1);
    const Tensor* const parts[2] = {flat.get(), end.get()};
    starts = op::cat({parts, 2}, 0);
    own.values[kStarts] = to_value(*starts);
  }
  const TensorRef factors = all_channels(b, kFactors);
  own.values[kBags].i = bags * b.level.size;
  if (factors) own.values[kFactors] = to_value(*factors);
  TensorList found;
  call_operator(b, own.values.data(), found);
  return give_all(b, op::unflatten(*found[0], 0, Shape({b.level.size, bags})));
}

// ---- ctc_loss ----

// From [samples, T, N, C] to [T, samples * N, C], and back.
TensorRef joined_columns(const Tensor& all) { return op::flatten(*op::transpose(all, 0, 1), 1, 2); }
TensorRef columns_apart(const Tensor& joined, const VmapLevel& level) {
  const Shape apart({level.size, joined.size(1) / level.size});
  return op::transpose(*op::unflatten(joined, 1, apart), 0, 1);
}
// Sequences of all samples in one call: log_probs is argument `at`, then follow labels, offsets of
// each sequence in the labels, and lengths.
class CtcCall : public OwnArgs {
 public:
  CtcCall(const BatchCall& b, int32_t at) : OwnArgs(b) {
    set(at, joined_columns(*all_of(b, at)));
    TensorRef offsets = all_of(b, at + 2);
    if (batched(b, at + 1)) {
      offsets = op::add(*offsets, *sample_offsets(b, tensor(b, at + 1).numel, 2));
      set(at + 1, op::flatten(*b.batch(at + 1), 0, -1));
    }
    set(at + 2, op::flatten(*offsets, 0, 1));
    for (int32_t i = at + 3; i < at + 5; i++) join(b, i);
  }
  // Joins the samples of an argument that has a row for each sequence.
  void join(const BatchCall& b, int32_t i) { set(i, op::flatten(*all_of(b, i), 0, 1)); }

 private:
  void set(int32_t i, TensorRef t) {
    values[i] = to_value(*t);
    owned_.push_back(std::move(t));
  }
  SmallVec<TensorRef, 8> owned_;
};
bool ctc_loss(const BatchCall& b) {
  const int64_t n = tensor(b, 0).size(1);
  if (!n || !b.level.size) return false;
  const CtcCall own(b, 0);
  TensorList found;
  call_operator(b, own.values.data(), found);
  for (const TensorRef& r : found) give_all(b, op::unflatten(*r, 0, Shape({b.level.size, n})));
  return true;
}
bool ctc_loss_backward(const BatchCall& b) {
  enum { kGrad, kLogProbs, kLoss = 6, kLogAlpha };
  if (!tensor(b, kLogProbs).size(1) || !b.level.size) return false;
  CtcCall own(b, kLogProbs);
  for (int32_t i : {int32_t(kGrad), int32_t(kLoss), int32_t(kLogAlpha)}) own.join(b, i);
  TensorList found;
  call_operator(b, own.values.data(), found);
  return give_all(b, columns_apart(*found[0], b.level));
}

// Checks the condition of all samples at once.
bool check_holds(const BatchCall& b) {
  OwnArgs own(b);
  const TensorRef every = op::all(*b.batch(0));
  own.values[0] = to_value(*every);
  call_and_wrap(b, own.values.data());
  return true;
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

BatchRule find_batch_rule(const char* op) {
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
