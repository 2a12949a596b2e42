// Rules of vmap for layers and their gradients: images, convolutions, norms, recurrent layers,
// embeddings, losses.
#include "modes/vmap_rules.h"

namespace TT_NS::batch_rules {

// ---- images, columns ----

// Merges the samples with the first dimension, calls, and takes them apart.
static bool folded(const BatchCall& b, int64_t trailing) {
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

// ---- convolutions ----

// A weight per sample: one convolution with a group per sample. Input: [B, N, C, …], as
// [N, B * C, …]; weight: [B, O, C / groups, …], as [B * O, …].
static bool convolution_of_weights(const BatchCall& b) {
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

// ---- norms ----

// The elements of all samples of an optional tensor of one dimension; empty if it is absent.
static TensorRef all_channels(const BatchCall& b, int32_t i) {
  return optional(b, i) ? op::flatten(*all_of(b, i), 0, 1) : TensorRef();
}

// Statistics are those of a channel, so that the channels of all samples are those of one batch:
// [B, N, C, …] as [N, B * C, …]. Running statistics of a training step are updated a sample at a
// time.
static bool batch_norm_of_channels(const BatchCall& b) {
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

// For norms of rows: their statistics have one dimension, all rows of the input.
static bool rows_of_samples(const BatchCall& b) {
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

static bool call_recurrent(const BatchCall& b, const RecurrentArgs& at) {
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

// ---- embeddings ----

bool embedding(const BatchCall& b) {
  if (batched(b, 0)) return false;
  OwnArgs own(b);
  const TensorRef indices = b.batch(1);
  own.values[1] = to_value(*indices);
  call_and_wrap(b, own.values.data());
  return true;
}

// The number of each sample times `step`, as a column for a tensor of `ndim` dimensions.
static TensorRef sample_offsets(const BatchCall& b, int64_t step, int64_t ndim) {
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

// ---- losses ----

// The loss of each row, of all samples at once; then what `reduction` says, per sample.
// rows: [N, C, …] or [C]; target: class numbers.
template <class F> static bool class_loss(const BatchCall& b, F loss_of_rows) {
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

// From [samples, T, N, C] to [T, samples * N, C], and back.
static TensorRef joined_columns(const Tensor& all) {
  return op::flatten(*op::transpose(all, 0, 1), 1, 2);
}
static TensorRef columns_apart(const Tensor& joined, const VmapLevel& level) {
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

}  // namespace TT_NS::batch_rules
