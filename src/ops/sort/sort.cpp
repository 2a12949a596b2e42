// sort, argsort, topk, unique.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/one_pass.h"
#include "ops/sort/sort.h"
#include "plan/sort_build.h"

#include <string.h>

namespace TT_NS {

TensorPair sorted_rows(const Tensor& self, int64_t d, int64_t k, bool descending,
                       bool want_values) {
  if (is_complex(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: complex numbers have no order",
             fmt(self.dtype));
  const int64_t n = size_along(self, d);
  int64_t inner = 1;
  for (int64_t i = d + 1; i < self.ndim; i++) inner *= self.size(i);
  Shape shape(self.sizes());
  if (self.ndim) shape[d] = k;
  checked_numel(shape, Dtype::kI64, "result");
  TensorRef x = dense_input(self);
  TensorRef values = want_values ? new_tensor(shape, self.dtype, self.device) : TensorRef();
  TensorRef indices = new_tensor(shape, Dtype::kI64, self.device);
  if (indices->numel) {
    SortPlan plan;
    const bool splits = self.device.type != TT_CUDA;  // whose kernels divide all rows at once
    const int64_t bytes = build_sort(&plan, int32_t(self.dtype), self.numel / n / inner, n, inner,
                                     k, descending, splits);
    if (bytes < 0) fail_arg(TT_SHAPE, "self", "self is {}: too large to sort", self.sizes());
    Workspace workspace(bytes, self.device);
    plan.in = x->data;
    plan.values = values ? values->data : nullptr;
    plan.indices = indices->as<int64_t>();
    plan.workspace = workspace.data();
    const int64_t launches = plan.path == kSortRows ? 1 : self.numel / n;
    for (; plan.row < launches; plan.row++) launch_stages(kernel_sort_rows, self.device, &plan.run);
  }
  return {std::move(values), std::move(indices)};
}

// Ranks beyond this number are found faster in sorted rows.
constexpr int64_t kManyRanks = 32;

// The ranks that a kind selects in sorted rows, as the kernel finds them: (rows with size 1 or m).
static TensorRef ranks_in(const Tensor& sorted, int64_t d, SelectKind kind, const Tensor* ranks) {
  const int64_t n = sorted.size(d);
  Shape one(sorted.sizes());
  one[d] = 1;
  TensorRef out;
  if (!ranks) {
    out = op::full(one, (n - 1) / 2, Dtype::kI64, sorted.device);
  } else if (ranks->ndim > 1) {
    out = TensorRef::share(ranks);
  } else {
    Shape column;
    column.resize(sorted.ndim, 1);
    column[d] = ranks->numel;
    one[d] = ranks->numel;
    out = op::contiguous(*op::expand(*op::reshape(*ranks, column), one));
  }
  if (kind == kSelectRanks || !is_differentiable(sorted.dtype)) return out;
  TensorRef numbers = op::sum_dim(*op::eq(sorted, sorted), Ints(&d, 1), true, Dtype::kI64);
  const Scalar zero = 0;
  if (kind == kSelectNanMedian)
    return op::clamp(*op::div(*op::sub(*numbers, 1), 2, kRoundingFloor), &zero);
  TensorRef whole = op::eq(*numbers, n);
  if (kind == kSelectNanOrRanks) numbers = op::full_like(*numbers, n - 1);
  return op::contiguous(*op::where(*whole, *out, *numbers));
}

// The first of the longest runs of equal elements in sorted rows.
static TensorRef modes_in(const Tensor& x, int64_t d) {
  const int64_t n = x.size(d);
  Shape one(x.sizes());
  one[d] = 1;
  TensorRef first = op::ones(one, Dtype::kBool, x.device);
  TensorRef fresh = op::ne(*op::slice(x, d, 1), *op::slice(x, d, 0, n - 1));
  const Tensor* const parts[2] = {first.get(), fresh.get()};
  TensorRef run = op::sub(*op::cumsum(*op::cat(parts, d), d), 1);  // each element's
  TensorRef ones = op::ones(x.sizes(), Dtype::kI64, x.device);
  TensorRef zeros = op::zeros(x.sizes(), Dtype::kI64, x.device);
  TensorRef lengths = op::gather(*op::scatter_add(*zeros, d, *run, *ones), d, *run);
  TensorRef begin = op::argmax(*lengths, d, true);
  return op::sub(*op::add(*begin, *op::gather(*lengths, d, *begin)), 1);
}

// Selects from sorted rows, for devices that have no kernel that selects.
static TensorPair select_sorted(const Tensor& self, int64_t d, SelectKind kind,
                                const Tensor* ranks) {
  TensorPair sorted = sorted_rows(self, d, self.size(d), false, true);
  TensorRef at =
      kind == kSelectMode ? modes_in(*sorted.first, d) : ranks_in(*sorted.first, d, kind, ranks);
  return {op::gather(*sorted.first, d, *at), op::gather(*sorted.second, d, *at)};
}

TensorPair selected_rows(const Tensor& self, int64_t d, SelectKind kind, const Tensor* ranks) {
  const int64_t n = self.size(d);
  Shape shape(self.sizes());
  int64_t m = 1;
  if (ranks && ranks->ndim) m = ranks->size(-1);
  shape[d] = m;
  if (self.numel && (self.device.type == TT_CUDA || m > kManyRanks))
    return select_sorted(self, d, kind, ranks);
  if (is_complex(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: complex numbers have no order",
             fmt(self.dtype));
  checked_numel(shape, Dtype::kI64, "result");
  TensorRef x = dense_input(self);
  TensorRef wanted = ranks ? dense_input(*ranks) : TensorRef();
  TensorRef values = new_tensor(shape, self.dtype, self.device);
  TensorRef indices = new_tensor(shape, Dtype::kI64, self.device);
  if (!indices->numel) return {std::move(values), std::move(indices)};
  int64_t inner = 1;
  for (int64_t i = d + 1; i < self.ndim; i++) inner *= self.size(i);
  SelectPlan plan;
  const int64_t bytes =
      build_select(&plan, kind, int32_t(self.dtype), self.numel / n / inner, n, inner, m);
  if (bytes < 0) fail_arg(TT_SHAPE, "self", "self is {}: too large to select from", self.sizes());
  Workspace workspace(bytes, self.device);
  plan.in = x->data;
  plan.ranks = wanted ? wanted->as<int64_t>() : nullptr;
  plan.rank_step = wanted && wanted->numel > m ? m : 0;
  plan.values = values->data;
  plan.indices = indices->as<int64_t>();
  plan.workspace = workspace.data();
  launch_stages(kernel_select_rows, self.device, &plan.run);
  return {std::move(values), std::move(indices)};
}

}  // namespace TT_NS

namespace TT_NS::impl {

// Sorts; the results have the order of self's dimensions in memory.
static TensorPair sorted_like(const Tensor& self, int64_t dim, bool descending, bool want_values) {
  const int64_t d = wrap_dim(dim, self.ndim);
  const int64_t n = size_along(self, d);
  const Shape strides = is_dense(self.sizes(), self.strides())
                            ? Shape(self.strides())
                            : strides_like(self.sizes(), self.strides());
  if (is_contiguous(self.sizes(), strides)) return sorted_rows(self, d, n, descending, want_values);
  SmallVec<int64_t, 8> order;  // the outermost dimension first
  for (int64_t i = 0; i < self.ndim; i++) {
    int64_t at = i;
    order.push_back(i);
    for (; at > 0 && strides[order[at - 1]] < strides[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  Shape sizes;
  Shape steps;
  for (int64_t i : order) {
    sizes.push_back(self.size(i));
    steps.push_back(self.stride(i));
  }
  int64_t sorted_dim = 0;
  while (order[sorted_dim] != d) sorted_dim++;
  const TensorPair rows =
      sorted_rows(*new_alias(self, sizes, steps), sorted_dim, n, descending, want_values);
  return {rows.first ? new_alias(*rows.first, self.sizes(), strides) : TensorRef(),
          new_alias(*rows.second, self.sizes(), strides)};
}

TensorPair sort(Call, const Tensor& self, int64_t dim, bool descending, bool) {
  return sorted_like(self, dim, descending, true);
}
TensorRef argsort(Call, const Tensor& self, int64_t dim, bool descending, bool) {
  return sorted_like(self, dim, descending, false).second;
}
TensorPair topk(Call, const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  const int64_t d = wrap_dim(dim, self.ndim);
  const int64_t n = size_along(self, d);
  if (k < 0 || k > n)
    fail_arg(TT_INVALID_ARG, "k", "k is {}: must be in [0, {}], the size of dimension {}", k, n, d);
  const int64_t count = self.ndim ? k : 1;  // a 0-dim tensor is its own result, as in PyTorch
  return sorted_rows(self, d, count, largest, true);
}

TensorRef msort(Call, const Tensor& self) { return op::sort(self, 0).first; }

// ---- unique ----

// Makes the results of unique from n sorted elements; fresh[i] tells whether element i + 1 differs
// from its predecessor.
static TensorTriple runs(const Tensor& perm, TensorRef fresh, Ints inverse_shape, bool want_inverse,
                         bool want_counts) {
  const int64_t n = perm.numel;
  const int64_t one[1] = {1};
  const int64_t none[1] = {0};
  const int64_t whole[1] = {n};
  TensorRef first = op::ones(one, Dtype::kBool, perm.device);
  const Tensor* const parts[2] = {first.get(), fresh.get()};
  TensorRef flags = n ? op::cat(parts, 0) : op::zeros(none, Dtype::kBool, perm.device);
  TensorTriple out;
  out.first = op::squeeze_dims(*op::nonzero(*flags), Ints(one, 1));
  out.second = op::zeros(want_inverse ? Ints(whole) : Ints(none), Dtype::kI64, perm.device);
  out.third = op::zeros(none, Dtype::kI64, perm.device);
  if (want_inverse && n)
    out.second = op::scatter(*out.second, 0, perm, *op::sub(*op::cumsum(*flags, 0), 1));
  if (want_inverse) out.second = op::reshape(*out.second, inverse_shape);
  if (want_counts && n) {
    TensorRef end = op::full(one, n, Dtype::kI64, perm.device);
    const Tensor* const bounds[2] = {out.first.get(), end.get()};
    TensorRef all = op::cat(bounds, 0);
    out.third = op::sub(*op::slice(*all, 0, 1), *out.first);
  }
  return out;
}

static TensorTriple unique_elements(const Tensor& self, bool want_inverse, bool want_counts) {
  const int64_t flat[1] = {-1};
  const int64_t n = self.numel;
  TensorRef x = op::reshape(self, flat);
  TensorPair sorted = sorted_rows(x, 0, n, false, true);
  TensorRef fresh =
      n ? op::ne(*op::slice(*sorted.first, 0, 1), *op::slice(*sorted.first, 0, 0, n - 1))
        : TensorRef();
  TensorTriple r = runs(*sorted.second, std::move(fresh), self.sizes(), want_inverse, want_counts);
  r.first = op::index_select(*sorted.first, 0, *r.first);
  return r;
}

// Sorts slices of a dimension by their elements: one stable sort per element, the last element
// first.
static TensorTriple unique_slices(const Tensor& self, int64_t d, bool want_inverse,
                                  bool want_counts) {
  const int64_t n = size_along(self, d);
  const int64_t m = n ? self.numel / n : 0;
  if (self.numel == 0 && n)
    fail_arg(TT_INVALID_ARG, "self", "self is {}: slices without elements cannot be compared",
             self.sizes());
  const int64_t flat[2] = {n, m};
  const int64_t rows[1] = {n};
  const int64_t last[1] = {1};
  Shape order;  // with d first
  order.push_back(d);
  for (int64_t k = 0; k < self.ndim; k++)
    if (k != d) order.push_back(k);
  TensorRef table = op::reshape(*op::permute(self, order), flat);
  TensorRef perm = op::arange(0, n, 1, Dtype::kI64, self.device);
  for (int64_t c = m - 1; c >= 0; c--) {
    TensorRef column = op::index_select(*op::select(*table, 1, c), 0, *perm);
    perm = op::index_select(*perm, 0, *sorted_rows(*column, 0, n, false, false).second);
  }
  TensorRef sorted = op::index_select(*table, 0, *perm);
  TensorRef fresh;
  if (n)
    fresh = op::any_dim(*op::ne(*op::slice(*sorted, 0, 1), *op::slice(*sorted, 0, 0, n - 1)), last);
  TensorTriple r = runs(*perm, std::move(fresh), rows, want_inverse, want_counts);
  r.first = op::index_select(self, d, *op::index_select(*perm, 0, *r.first));
  return r;
}

TensorTriple unique(Call, const Tensor& self, bool, bool return_inverse, bool return_counts,
                    Opt<int64_t> dim) {
  MaskGuard no_grad(bit(kKeyAutograd));
  if (self.device.type == TT_META)
    fail_arg(TT_DEVICE, "self", "self is on meta: the shape of the result depends on its data");
  if (!dim.has) return unique_elements(self, return_inverse, return_counts);
  if (self.ndim == 0) fail_arg(TT_INDEX, "dim", "dim is {}: self has no dimensions", dim.value);
  return unique_slices(self, wrap_dim(dim.value, self.ndim), return_inverse, return_counts);
}

// As unique without sorting: runs of equal neighbours.
static TensorRef runs_of_elements(const Tensor& x, int64_t n) {
  return op::ne(*op::slice(x, 0, 1), *op::slice(x, 0, 0, n - 1));
}
static TensorRef runs_of_slices(const Tensor& self, int64_t d, int64_t n) {
  const int64_t rows[2] = {n, self.numel / n};
  const int64_t last[1] = {1};
  const int64_t from[1] = {d};
  const int64_t to[1] = {0};
  TensorRef table = op::reshape(*op::movedim(self, from, to), rows);
  return op::any_dim(*op::ne(*op::slice(*table, 0, 1), *op::slice(*table, 0, 0, n - 1)), last);
}

// Finds the runs of equal elements of a row. A first pass counts them, a second one writes at most
// as many: another thread may have changed the elements in between.
struct RunsPlan {
  Dtype dtype;
  int64_t n;
  const char* x;
  char* values;               // NULL: the first pass
  int64_t *inverse, *counts;  // NULL if not wanted
  int64_t* runs;
};
// Elements that are compared at a time, in a copy.
constexpr int64_t kRunsBlock = 1024;

// Sets starts[i] where a run starts at element i of x, which has an element in front of it.
template <class T> static int64_t find_starts(const T* x, int64_t n, uint8_t* starts) {
  for (int64_t i = 0; i < n; i++) starts[i] = x[i] != x[i - 1];
  uint32_t count = 0;
  for (int64_t i = 0; i < n; i++) count += starts[i];
  return count;
}
// Calls f(elements, starts, count, at, n) for blocks [at, at + n) of x. The first element starts no
// run.
template <class T, class F> static void for_runs(const T* x, int64_t n, const F& f) {
  T copy[1 + kRunsBlock];
  uint8_t starts[kRunsBlock];
  for (int64_t at = 0; at < n; at += kRunsBlock) {
    const int64_t size = TT_NS::min(kRunsBlock, n - at);
    copy[0] = at ? copy[kRunsBlock] : x[0];
    memcpy(copy + 1, x + at, size_t(size) * sizeof(T));
    int64_t count = find_starts(copy + 1, size, starts);
    if (at == 0) {  // a nan is not equal to itself
      count -= starts[0];
      starts[0] = 0;
    }
    f(copy + 1, starts, count, at, size);
  }
}
template <class T> static void find_runs_of(const RunsPlan& p) {
  const T* x = reinterpret_cast<const T*>(p.x);
  T* values = reinterpret_cast<T*>(p.values);
  int64_t run = 0;
  if (!values) {
    for_runs(x, p.n,
             [&](const T*, const uint8_t*, int64_t count, int64_t, int64_t) { run += count; });
    *p.runs = run + 1;
    return;
  }
  // There is no branch, since the ends of runs cannot be predicted.
  const int64_t last = *p.runs - 1;
  for_runs(x, p.n, [&](const T* y, uint8_t* starts, int64_t count, int64_t at, int64_t n) {
    if (run + count > last) memset(starts, 0, size_t(n));  // another thread writes to x
    const int64_t before = run;
    for (int64_t i = 0; i < n; i++) {
      run += starts[i];
      values[run] = y[i];
    }
    int64_t r = before;
    for (int64_t i = 0; p.inverse && i < n; i++) p.inverse[at + i] = r += starts[i];
    r = before;
    for (int64_t i = 0; p.counts && i < n; i++) p.counts[r += starts[i]] = at + i + 1;
  });
  for (int64_t r = run; p.counts && r > 0; r--) p.counts[r] -= p.counts[r - 1];
}
static void find_runs(const RunsPlan& p) {
  with_real_type(p.dtype, [&](auto x) { find_runs_of<decltype(x)>(p); });
}
constexpr Kernel kRuns = one_pass_kernel<RunsPlan, find_runs>("runs");

static bool has_runs_kernel(const Tensor& x) {
  const bool known = x.dtype == Dtype::kF32 || x.dtype == Dtype::kF64 || x.dtype == Dtype::kI32 ||
                     x.dtype == Dtype::kI64;
  return known && x.numel && x.contiguous() && takes_one_pass(x);
}
static TensorTriple runs_in_one_pass(const Tensor& x, Ints inverse_shape, bool want_inverse,
                                     bool want_counts) {
  int64_t runs = 0;
  const int64_t none = 0;
  RunsPlan plan = {.dtype = x.dtype,
                   .n = x.numel,
                   .x = x.data,
                   .values = nullptr,
                   .inverse = nullptr,
                   .counts = nullptr,
                   .runs = &runs};
  launch(kRuns, kCpuDevice, &plan, 1);
  TensorTriple out;
  out.first = new_tensor(Ints(&runs, 1), x.dtype, x.device);
  out.second = new_tensor(want_inverse ? inverse_shape : Ints(&none, 1), Dtype::kI64, x.device);
  out.third = new_tensor(Ints(want_counts ? &runs : &none, 1), Dtype::kI64, x.device);
  plan.values = out.first->data;
  plan.inverse = want_inverse ? out.second->as<int64_t>() : nullptr;
  plan.counts = want_counts ? out.third->as<int64_t>() : nullptr;
  launch(kRuns, kCpuDevice, &plan, 1);
  return out;
}

TensorTriple unique_consecutive(Call, const Tensor& self, bool return_inverse, bool return_counts,
                                Opt<int64_t> dim) {
  MaskGuard no_grad(bit(kKeyAutograd));
  if (self.device.type == TT_META)
    fail_arg(TT_DEVICE, "self", "self is on meta: the shape of the result depends on its data");
  if (dim.has && self.ndim == 0)
    fail_arg(TT_INDEX, "dim", "dim is {}: self has no dimensions", dim.value);
  const int64_t d = dim.has ? wrap_dim(dim.value, self.ndim) : 0;
  const int64_t flat[1] = {self.numel};
  TensorRef x = dim.has ? TensorRef::share(&self) : op::reshape(self, flat);
  const int64_t n = x->size(d);
  if (self.numel == 0 && n)
    fail_arg(TT_INVALID_ARG, "self", "self is {}: slices without elements cannot be compared",
             self.sizes());
  if (!dim.has && has_runs_kernel(*x))
    return runs_in_one_pass(*x, self.sizes(), return_inverse, return_counts);
  TensorRef fresh;
  if (n) fresh = dim.has ? runs_of_slices(*x, d, n) : runs_of_elements(*x, n);
  const int64_t rows[1] = {n};
  TensorTriple r = runs(*op::arange(0, n, 1, Dtype::kI64, self.device), std::move(fresh),
                        dim.has ? Ints(rows) : self.sizes(), return_inverse, return_counts);
  r.first = op::index_select(*x, d, *r.first);
  return r;
}

}  // namespace TT_NS::impl
