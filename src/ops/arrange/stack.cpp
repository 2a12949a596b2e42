// Tensors side by side, along diagonals, in grids and in combinations.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

#include <numeric>

namespace TT_NS::impl {

using Pointers = SmallVec<const Tensor*, 8>;

static Pointers pointers(const TensorList& list) {
  Pointers out;
  out.reserve(list.size());
  for (const TensorRef& t : list) out.push_back(t.get());
  return out;
}
static TensorRef join(const TensorList& list, int64_t dim) {
  const Pointers p = pointers(list);
  return op::cat({p.data(), p.size()}, dim);
}
static void check_any(TensorSpan tensors) {
  if (tensors.n == 0)
    fail_arg(TT_INVALID_ARG, "tensors", "tensors is empty: at least one is needed");
}

// ---- hstack, vstack, dstack, column_stack, block_diag ----

TensorRef hstack(Call, TensorSpan tensors) {
  check_any(tensors);
  const TensorList list = op::atleast_1d_list(tensors);
  return join(list, list[0]->ndim == 1 ? 0 : 1);
}
TensorRef vstack(Call, TensorSpan tensors) {
  check_any(tensors);
  return join(op::atleast_2d_list(tensors), 0);
}
TensorRef dstack(Call, TensorSpan tensors) {
  check_any(tensors);
  return join(op::atleast_3d_list(tensors), 2);
}
TensorRef column_stack(Call, TensorSpan tensors) {
  check_any(tensors);
  TensorList list;
  list.reserve(tensors.n);
  for (const Tensor* t : tensors) {
    const int64_t column[2] = {t->numel, 1};
    list.push_back(t->ndim < 2 ? op::reshape(*t, column) : TensorRef::share(t));
  }
  return join(list, 1);
}

TensorRef block_diag(Call, TensorSpan tensors) {
  check_any(tensors);
  TensorList blocks;
  int64_t columns = 0;
  for (const Tensor* t : tensors) {
    if (t->ndim > 2)
      fail_arg(TT_SHAPE, "tensors", "a tensor is {}: must have at most 2 dimensions", t->sizes());
    blocks.push_back(op::atleast_2d(*t));
    if (add_overflow(columns, blocks.back()->size(1), &columns))
      fail_arg(TT_SHAPE, "tensors", "the number of columns overflows");
  }
  int64_t before = 0;
  for (TensorRef& block : blocks) {
    const int64_t width = block->size(1);
    const int64_t pad[2] = {before, columns - before - width};
    block = op::constant_pad_nd(block, pad);
    before += width;
  }
  return join(blocks, 0);
}

// ---- meshgrid, cartesian_prod, combinations ----

TensorList meshgrid(Call, TensorSpan tensors, int64_t indexing) {
  check_any(tensors);
  if (tensors.n > kMaxDims)
    fail_arg(TT_SHAPE, "tensors", "tensors has {} entries, at most {} are supported", tensors.n,
             kMaxDims);
  Shape shape;
  for (const Tensor* t : tensors) {
    if (t->ndim > 1)
      fail_arg(TT_SHAPE, "tensors", "a tensor is {}: must be 0-dim or 1-D", t->sizes());
    if (t->dtype != tensors[0]->dtype)
      fail_arg(TT_DTYPE, "tensors", "tensors are {} and {}: must have one dtype",
               fmt(tensors[0]->dtype), fmt(t->dtype));
    shape.push_back(t->numel);
  }
  const bool swaps = indexing == kIndexingXy && tensors.n > 1;
  TensorList out;
  out.reserve(tensors.n);
  for (int64_t i = 0; i < tensors.n; i++) {
    Shape own;
    own.resize(tensors.n, 1);
    own[i] = shape[i];
    TensorRef grid = op::expand(*op::reshape(*tensors[i], own), shape);
    out.push_back(swaps ? op::transpose(grid, 0, 1) : std::move(grid));
  }
  return out;
}

TensorRef cartesian_prod(Call, TensorSpan tensors) {
  check_any(tensors);
  for (const Tensor* t : tensors)
    if (t->ndim != 1) fail_arg(TT_SHAPE, "tensors", "a tensor is {}: must be 1-D", t->sizes());
  if (tensors.n == 1) return TensorRef::share(tensors[0]);
  TensorList columns = op::meshgrid(tensors, kIndexingIj);
  const int64_t flat[1] = {-1};
  for (TensorRef& c : columns) c = op::reshape(c, c->numel ? Ints(flat) : Ints(&c->numel, 1));
  const Pointers p = pointers(columns);
  return op::stack({p.data(), p.size()}, 1);
}

// The binomial coefficient n over k; INT64_MAX if it is larger.
static int64_t binomial(int64_t n, int64_t k) {
  if (k > n) return 0;
  if (k > n - k) k = n - k;
  int64_t out = 1;
  for (int64_t i = 1; i <= k; i++) {
    // out * (n - k + i) / i is whole: what i does not share with out, it shares with the factor.
    const int64_t shared = std::gcd(out, i);
    const int64_t factor = (n - k + i) / (i / shared);
    if (mul_overflow(out / shared, factor, &out)) return INT64_MAX;
  }
  return out;
}

TensorRef combinations(Call, const Tensor& self, int64_t r, bool with_replacement) {
  if (self.ndim != 1) fail_arg(TT_SHAPE, "self", "self is {}: must be 1-D", self.sizes());
  if (r < 0) fail_arg(TT_INVALID_ARG, "r", "r is {}: must not be negative", r);
  const int64_t n = self.numel;
  const int64_t none[1] = {0};
  if (r == 0) return op::empty(none, self.dtype, self.device);
  const bool any = n > 0 && (with_replacement || r <= n);
  int64_t from = n;
  if (with_replacement && add_overflow(n, r - 1, &from)) from = INT64_MAX;
  const int64_t count = any ? binomial(from, r) : 0;
  int64_t total;
  if (mul_overflow(count, r, &total) || total > INT64_MAX / 16)
    fail_arg(TT_SHAPE, "r", "r is {}, self is {}: too many combinations", r, self.sizes());
  TensorRef index = new_tensor(Ints(&total, 1), Dtype::kI64, kCpuDevice);
  int64_t* at = index->as<int64_t>();
  for (int64_t row = 0; row < count; row++, at += r) {
    int64_t k = r - 1;  // the last position that can move on
    if (row == 0) k = -1;
    else
      while (at[k - r] == (with_replacement ? n - 1 : n - r + k)) k--;
    for (int64_t i = 0; i < r; i++) {
      if (i < k) at[i] = at[i - r];
      else if (i == k) at[i] = at[i - r] + 1;
      else if (i == 0) at[i] = 0;
      else at[i] = at[i - 1] + !with_replacement;
    }
  }
  note_host_write(*index);
  const int64_t shape[2] = {count, r};
  if (!(self.device == kCpuDevice)) index = op::to_device(index, self.device);
  return op::reshape(*op::index_select(self, 0, index), shape);
}

// ---- flips and diagonals ----

TensorRef fliplr(Call, const Tensor& self) {
  if (self.ndim < 2)
    fail_arg(TT_SHAPE, "self", "self is {}: must have at least 2 dimensions", self.sizes());
  const int64_t dims[1] = {1};
  return op::flip(self, dims);
}
TensorRef flipud(Call, const Tensor& self) {
  if (self.ndim < 1) fail_arg(TT_SHAPE, "self", "self is 0-dim: must have at least one dimension");
  const int64_t dims[1] = {0};
  return op::flip(self, dims);
}

TensorRef rot90(Call, const Tensor& self, int64_t k, Ints dims) {
  if (self.ndim < 2)
    fail_arg(TT_SHAPE, "self", "self is {}: must have at least 2 dimensions", self.sizes());
  const int64_t first_two[2] = {0, 1};
  if (dims.empty()) dims = first_two;
  if (dims.n != 2) fail_arg(TT_INVALID_ARG, "dims", "dims is {}: must be two dimensions", dims);
  dim_mask(dims, self.ndim, false, "dims");
  const int64_t turns = (k % 4 + 4) % 4;
  if (turns == 0) return op::clone(self, TT_CONTIGUOUS);
  if (turns == 2) return op::flip(self, dims);
  return op::transpose(*op::flip(self, Ints(&dims[turns == 1 ? 1 : 0], 1)), dims[0], dims[1]);
}

TensorRef diag_embed(Call, const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  if (self.ndim == 0) fail_arg(TT_SHAPE, "self", "self is 0-dim: must have at least one dimension");
  if (self.ndim == kMaxDims)
    fail_arg(TT_SHAPE, "self", "self has {} dims: no more are supported", self.ndim);
  const int64_t a = wrap_dim(dim1, self.ndim + 1, "dim1");
  const int64_t b = wrap_dim(dim2, self.ndim + 1, "dim2");
  if (a == b)
    fail_arg(TT_INVALID_ARG, "dim2", "dim1 is {}, dim2 is {}: must be two dimensions", dim1, dim2);
  int64_t n;
  if (offset == INT64_MIN || add_overflow(self.size(-1), offset < 0 ? -offset : offset, &n))
    fail_arg(TT_SHAPE, "offset", "offset is {}: the size of the result overflows", offset);
  Shape shape;
  int64_t next = 0;
  for (int64_t d = 0; d <= self.ndim; d++)
    shape.push_back(d == a || d == b ? n : self.size(next++));
  checked_numel(shape, self.dtype, "result");
  return op::diagonal_backward(self, shape, offset, a, b);
}

TensorRef diag(Call, const Tensor& self, int64_t diagonal) {
  if (self.ndim != 1 && self.ndim != 2)
    fail_arg(TT_SHAPE, "self", "self is {}: must have 1 or 2 dimensions", self.sizes());
  if (self.ndim == 1) return op::diag_embed(self, diagonal);
  return op::clone(*op::diagonal(self, diagonal), TT_CONTIGUOUS);
}

TensorRef diagflat(Call, const Tensor& self, int64_t offset) {
  return op::diag_embed(*op::ravel(self), offset);
}

// ---- repeat_interleave ----

static void check_output_size(Opt<int64_t> output_size, int64_t n) {
  if (output_size.has && output_size.value != n)
    fail_arg(TT_INVALID_ARG, "output_size", "output_size is {}: must be {}, the sum of repeats",
             output_size.value, n);
}

// Each index of dim becomes an expanded dimension.
TensorRef repeat_interleave(Call, const Tensor& self, int64_t repeats, Opt<int64_t> dim,
                            Opt<int64_t> output_size) {
  if (repeats < 0)
    fail_arg(TT_INVALID_ARG, "repeats", "repeats is {}: must not be negative", repeats);
  TensorRef x = dim.has ? op::atleast_1d(self) : op::ravel(self);
  const int64_t d = dim.has ? wrap_dim(dim.value, self.ndim) : 0;
  Shape shape(x->sizes());
  if (mul_overflow(shape[d], repeats, &shape[d]))
    fail_arg(TT_SHAPE, "repeats", "repeats is {}, self is {}: the size of the result overflows",
             repeats, self.sizes());
  checked_numel(shape, self.dtype, "result");
  check_output_size(output_size, shape[d]);
  if (x->ndim == kMaxDims)
    fail_arg(TT_SHAPE, "self", "self has {} dims: no more are supported", x->ndim);
  TensorRef split = op::unsqueeze(x, d + 1);
  Shape wide(split->sizes());
  wide[d + 1] = repeats;
  return op::reshape(*op::clone(*op::expand(split, wide), TT_CONTIGUOUS), shape);
}

// Position i of the result is a copy of the slice k for which sum(repeats[:k]) <= i first fails to
// hold for k + 1.
TensorRef repeat_interleave_tensor(Call, const Tensor& self, const Tensor& repeats,
                                   Opt<int64_t> dim, Opt<int64_t> output_size) {
  check_index_dtype(repeats, "repeats");
  if (repeats.ndim > 1)
    fail_arg(TT_SHAPE, "repeats", "repeats is {}: must be 0-dim or 1-D", repeats.sizes());
  if (repeats.device.type == TT_META)
    fail_arg(TT_DEVICE, "repeats", "repeats is on meta: the shape of the result depends on it");
  check_same_device(self, "self", repeats, "repeats");
  TensorRef x = dim.has ? op::atleast_1d(self) : op::ravel(self);
  const int64_t d = dim.has ? wrap_dim(dim.value, self.ndim) : 0;
  const int64_t n = x->size(d);
  if (repeats.numel == 1 && (n != 1 || repeats.ndim == 0))
    return op::repeat_interleave(x, read_scalar(repeats).i, d, output_size);
  if (repeats.numel != n)
    fail_arg(TT_SHAPE, "repeats", "repeats is {}: must have {} entries, one for each slice",
             repeats.sizes(), n);
  if (n && read_scalar(*op::min(repeats)).i < 0)
    fail_arg(TT_INVALID_ARG, "repeats", "repeats has negative entries: must not be negative");
  TensorRef ends = op::cumsum(repeats, 0, Dtype::kI64);
  const int64_t total = n ? read_scalar(*op::select(ends, 0, -1)).i : 0;
  check_output_size(output_size, total);
  Shape shape(x->sizes());
  shape[d] = total;
  checked_numel(shape, self.dtype, "repeats");
  TensorRef index =
      op::searchsorted(ends, *op::arange(0, total, 1, Dtype::kI64, self.device), false, true);
  return op::index_select(x, d, index);
}

}  // namespace TT_NS::impl
