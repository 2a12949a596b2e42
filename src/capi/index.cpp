// Mixed indexing, x[1, ::2, None, ..., mask]: basic items become views, index tensors a single call
// of index or index_put_.
#include "autograd/batch.h"
#include "capi/api.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "tt.h"

using namespace TT_NS;

namespace {

const Tensor& tensor_of_item(const tt_index& i) {
  return *reinterpret_cast<const Tensor*>(i.tensor);
}
bool is_mask(const Tensor& t) { return t.dtype == Dtype::kBool || t.dtype == Dtype::kU8; }

// Returns the number of dimensions of self that an item indexes.
int64_t dims_taken(const tt_index& i) {
  if (i.kind == TT_IDX_NONE || i.kind == TT_IDX_ELLIPSIS) return 0;
  return i.kind == TT_IDX_TENSOR && is_mask(tensor_of_item(i)) ? tensor_of_item(i).ndim : 1;
}

// Returns whether an index tensor has one element, which can be read.
bool is_single(const Tensor& t) {
  return t.ndim == 0 && t.device.type != TT_META && !is_batched(t);
}

// Applies the items from left to right to a view of self. Where a capture records a write, numbers
// in tensors stay tensors, which each run reads, if all tensors among the items are numbers. So do
// numbers that are read if all tensors among the items ask for it.
class Indexing {
 public:
  Indexing(const Tensor& self, Indices items, bool writes = false)
      : view_(TensorRef::share(&self)) {
    int64_t taken = 0;
    int64_t ellipses = 0;
    int64_t tensors = 0;
    int64_t asking = 0;
    int64_t numbers = 0;
    for (const tt_index& i : items) {
      if (i.kind != TT_IDX_TENSOR) continue;
      tensors++;
      asking += i.has == 1;
      numbers += is_single(tensor_of_item(i)) && !is_mask(tensor_of_item(i));
    }
    keeps_numbers_ = (writes ? numbers : asking) == tensors && ctx().graph;
    for (const tt_index& i : items) {
      taken += dims_taken(i);
      ellipses += i.kind == TT_IDX_ELLIPSIS;
    }
    if (ellipses > 1)
      fail_arg(TT_INDEX, "index", "index has {} ellipses: at most one is allowed", ellipses);
    if (taken > self.ndim)
      fail_arg(TT_INDEX, "index", "index has {} items that index a dimension, self is {}", taken,
               self.sizes());
    left_out_ = self.ndim - taken;
    for (const tt_index& i : items) add(i);
  }

  bool has_tensors() const { return !tensors_.empty(); }
  int64_t kept_numbers() const { return kept_numbers_; }
  // Returns self itself if no item has changed its geometry.
  Tensor& view() const { return *view_; }
  TensorSpan tensors() const { return {tensors_.data(), tensors_.size()}; }

 private:
  void add(const tt_index& i) {
    switch (i.kind) {
      case TT_IDX_INT: return add_int(i.start);
      case TT_IDX_SLICE: return add_slice(i);
      case TT_IDX_NONE: view_ = op::unsqueeze(*view_, dim_++); return;
      case TT_IDX_ELLIPSIS:
        dim_ += left_out_;
        self_dim_ += left_out_;
        return;
      default: return add_tensor(tensor_of_item(i));
    }
  }

  void add_int(int64_t index) {
    const int64_t n = view_->size(dim_);
    if (index < -n || index >= n)
      fail_arg(TT_INDEX, "index", "index {} is out of range: dimension {} of self has size {}",
               index, self_dim_, n);
    view_ = op::select(*view_, dim_, index);
    self_dim_++;
  }

  void add_slice(const tt_index& i) {
    const int64_t step = i.has & 4 ? i.step : 1;
    if (step < 1)
      fail_arg(TT_INVALID_ARG, "index", "the step of a slice is {}: must be at least 1", step);
    const Opt<int64_t> start = i.has & 1 ? Opt<int64_t>(i.start) : Opt<int64_t>();
    const Opt<int64_t> stop = i.has & 2 ? Opt<int64_t>(i.stop) : Opt<int64_t>();
    if (start.has || stop.has || step != 1) view_ = op::slice(*view_, dim_, start, stop, step);
    dim_++;
    self_dim_++;
  }

  void add_tensor(const Tensor& t) {
    const bool mask = is_mask(t);
    const bool single = is_single(t);
    if (single && (mask || !keeps_numbers_)) {
      const Scalar value = read_scalar(t);
      if (!mask && category(t.dtype) == 1) return add_int(value.i);
      if (mask) return add_truth(value.i != 0);
    }
    if (!mask && category(t.dtype) != 1)
      fail_arg(TT_INDEX, "index", "an index tensor is {}: must be an integer or bool tensor",
               fmt(t.dtype));
    kept_numbers_ += single;
    push(&t);
    covered_ += mask ? t.ndim : 1;
    dim_ += mask ? t.ndim : 1;
    self_dim_ += mask ? t.ndim : 1;
  }

  // Adds a dimension of size 1, selected or not.
  void add_truth(bool value) {
    const int64_t shape[1] = {value ? 1 : 0};
    view_ = op::unsqueeze(*view_, dim_);
    owned_.push_back(op::zeros(shape, Dtype::kI64, view_->device));
    push(owned_.back().get());
    covered_++;
    dim_++;
  }

  // The list has one entry per dimension of the view; a mask of k dimensions counts as k entries.
  void push(const Tensor* t) {
    for (; covered_ < dim_; covered_++) tensors_.push_back(nullptr);
    tensors_.push_back(t);
  }

  TensorRef view_;
  SmallVec<const Tensor*, 8> tensors_;
  TensorList owned_;
  int64_t left_out_ = 0;  // dimensions that the ellipsis covers
  int64_t dim_ = 0;       // the next dimension of the view
  int64_t self_dim_ = 0;  // the next dimension of self
  int64_t covered_ = 0;   // dimensions of the view covered by tensors_
  bool keeps_numbers_ = false;
  int64_t kept_numbers_ = 0;
};

// Removes leading dimensions of size 1 beyond the last ndim.
TensorRef without_leading_ones(const Tensor& value, int64_t ndim) {
  int64_t ones = 0;
  while (ones < value.ndim - ndim && value.size(ones) == 1) ones++;
  return ones ? op::reshape(value, value.sizes().slice(ones, value.ndim))
              : TensorRef::share(&value);
}

// Returns the mask, in a shape that broadcasts to the view, if it is all that indexes the view;
// else an empty reference.
TensorRef mask_alone(const Tensor& view, TensorSpan tensors) {
  const Tensor* mask = nullptr;
  int64_t dim = 0;  // of the view, where the mask begins
  for (const Tensor* t : tensors) {
    if (t && (mask || t->dtype != Dtype::kBool)) return {};
    if (t) mask = t;
    else if (!mask) dim++;
  }
  if (!mask || !(mask->device == view.device)) return {};
  if (!same(mask->sizes(), view.sizes().slice(dim, dim + mask->ndim))) return {};
  Shape shape(mask->sizes());
  shape.resize(view.ndim - dim, 1);
  return op::reshape(*mask, shape);
}

}  // namespace

tt_status tt_index_get(tt_ctx* h, const tt_tensor* self, const tt_index* index, int64_t n,
                       tt_tensor** out) {
  clear_out(out);
  return api_call(h, "index_get", [&](Ctx& c) {
    out_arg(out, "out", 4);
    const Tensor& x = tensor_arg(self, "self", 1);
    Indexing i(x, indices_arg(index, n, "index", 2));
    if (i.has_tensors()) return give(c, out, op::index(i.view(), i.tensors()));
    give(c, out, &i.view() == &x ? op::squeeze_dims(x, Ints()) : TensorRef::share(&i.view()));
  });
}

tt_status tt_index_set(tt_ctx* h, tt_tensor* self, const tt_index* index, int64_t n,
                       const tt_tensor* value) {
  return api_call(h, "index_set", [&](Ctx&) {
    Tensor& x = mutable_arg(self, "self", 1);
    Indices items = indices_arg(index, n, "index", 2);
    const Tensor& v = tensor_arg(value, "value", 4);
    Indexing i(x, items, true);
    if (!i.has_tensors()) return op::copy_(i.view(), *without_leading_ones(v, i.view().ndim));
    // Numbers that stay tensors select what ints do, with the rules of copy_.
    const int64_t n_numbers = i.kept_numbers();
    TensorRef given = TensorRef::share(&v);
    if (n_numbers) given = without_leading_ones(v, i.view().ndim - n_numbers);
    TensorRef converted = v.ndim == 0 || n_numbers ? op::to(*given, x.dtype, x.device) : given;
    // A number needs no list of the positions, whose length a capture could not record.
    const TensorRef mask = v.ndim == 0 ? mask_alone(i.view(), i.tensors()) : TensorRef();
    if (mask) return op::masked_fill_(i.view(), *mask, *converted);
    op::index_put_(i.view(), i.tensors(), *converted);
  });
}
