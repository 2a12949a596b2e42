#include "base/arith.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/tensor_message.h"
#include "ops/gen/ops.h"

#include <math.h>

namespace TT_NS {

// ---- reductions ----

Shape OnnxImporter::axes_of(int64_t i, int64_t ndim) const {
  Shape axes = numbers(i, "axes");
  if (axes.empty() && !integer("noop_with_empty_axes", 0))
    for (int64_t d = 0; d < ndim; d++) axes.push_back(d);
  for (int64_t& d : axes) d = dim(d, ndim);
  return axes;
}

TensorRef OnnxImporter::product_of(Shape axes, bool keep) const {
  for (int64_t a = 0; a < axes.size(); a++)  // from the last dimension
    for (int64_t b = a + 1; b < axes.size(); b++)
      if (axes[b] > axes[a]) std::swap(axes[a], axes[b]);
  TensorRef y = TensorRef::share(&in(0));
  for (const int64_t d : axes) y = op::prod_dim(*y, d, keep, in(0).dtype);
  return y;
}

// A result without axes is the input, whatever the reduction.
bool OnnxImporter::reduce() {
  using Axes = const Shape&;
  static constexpr struct {
    const char* type;
    TensorRef (*call)(Node& n, const Tensor& x, Axes axes, bool keep);
  } kReductions[] = {
      {"ReduceL1", [](Node&, const Tensor& x, Axes axes,
                      bool keep) { return op::sum_dim(*op::abs(x), axes, keep, x.dtype); }},
      {"ReduceL2", [](Node&, const Tensor& x, Axes axes,
                      bool keep) { return op::sqrt(*op::sum_dim(*op::mul(x, x), axes, keep)); }},
      {"ReduceLogSumExp",
       [](Node&, const Tensor& x, Axes axes, bool keep) { return op::logsumexp(x, axes, keep); }},
      {"ReduceMax",
       [](Node&, const Tensor& x, Axes axes, bool keep) { return op::amax(x, axes, keep); }},
      {"ReduceMean",
       [](Node&, const Tensor& x, Axes axes, bool keep) { return op::mean_dim(x, axes, keep); }},
      {"ReduceMin",
       [](Node&, const Tensor& x, Axes axes, bool keep) { return op::amin(x, axes, keep); }},
      {"ReduceProd",
       [](Node& n, const Tensor&, Axes axes, bool keep) { return n.product_of(axes, keep); }},
      {"ReduceSum", [](Node&, const Tensor& x, Axes axes,
                       bool keep) { return op::sum_dim(x, axes, keep, x.dtype); }},
      {"ReduceSumSquare",
       [](Node&, const Tensor& x, Axes axes, bool keep) {
         return op::sum_dim(*op::mul(x, x), axes, keep, x.dtype);
       }},
  };
  for (const auto& r : kReductions) {
    if (!is(type_, r.type)) continue;
    const Tensor& x = in(0);
    const Shape axes = axes_of(1, x.ndim);
    give(axes.empty() ? TensorRef::share(&x) : r.call(*this, x, axes, integer("keepdims", 1)));
    return true;
  }
  return false;
}

TensorRef OnnxImporter::position_of_extreme() const {
  if (integer("select_last_index", 0)) refuse("select_last_index");
  const Opt<int64_t> d(dim(integer("axis", 0), in(0).ndim));
  const bool keep = integer("keepdims", 1);
  return is(type_, "ArgMax") ? op::argmax(in(0), d, keep) : op::argmin(in(0), d, keep);
}

TensorRef OnnxImporter::cumulative_sum() const {
  const int64_t d[] = {dim(whole_number(1, 0), in(0).ndim)};
  const bool back = integer("reverse", 0);
  const TensorRef x = back ? op::flip(in(0), Ints(d)) : TensorRef::share(&in(0));
  TensorRef y = op::cumsum(*x, d[0], x->dtype);
  if (integer("exclusive", 0)) y = op::sub(*y, *x);
  return back ? op::flip(*y, Ints(d)) : y;
}

void OnnxImporter::top_k() {
  const int64_t d = dim(integer("axis", -1), in(0).ndim);
  TensorPair made = op::topk(in(0), whole_number(1, 1), d, integer("largest", 1), true);
  give(std::move(made.first));
  give(std::move(made.second));
}

bool OnnxImporter::reduction() {
  static constexpr OneResult kOthers[] = {
      {"ArgMax", [](Node& n) { return n.position_of_extreme(); }},
      {"ArgMin", [](Node& n) { return n.position_of_extreme(); }},
      {"CumSum", [](Node& n) { return n.cumulative_sum(); }},
  };
  if (is(type_, "TopK")) {
    top_k();
    return true;
  }
  return reduce() || give_one(kOthers);
}

// ---- arrangement ----

// A copy of a constant is a constant.
void OnnxImporter::identity() {
  TensorRef x = TensorRef::share(&in(0));
  give(std::move(x), item(inputs_[0]).known);
}

TensorRef OnnxImporter::reshape() const {
  Shape sizes = numbers(1, "shape");
  for (int64_t i = 0; i < sizes.size() && !integer("allowzero", 0); i++)
    if (sizes[i] == 0) sizes[i] = in(0).size(dim(i, in(0).ndim));
  return op::reshape(in(0), sizes);
}

TensorRef OnnxImporter::transpose() const {
  Shape order = numbers(-1, "perm");
  for (int64_t d = in(0).ndim - 1; d >= 0 && !attr("perm"); d--) order.push_back(d);
  return op::permute(in(0), order);
}

TensorRef OnnxImporter::flatten() const {
  const int64_t n = in(0).ndim;
  const int64_t axis = integer("axis", 1);
  const int64_t d = axis == n ? n : dim(axis, n);
  int64_t sizes[2] = {1, 1};
  for (int64_t i = 0; i < n; i++) sizes[i >= d] *= in(0).size(i);
  return op::reshape(in(0), Ints(sizes));
}

// Squeeze and Unsqueeze.
TensorRef OnnxImporter::sizes_of_one() const {
  const int64_t n = in(0).ndim;
  const bool adds = is(type_, "Unsqueeze");
  const Shape axes = numbers(1, "axes");
  const int64_t after = adds ? n + axes.size() : n;
  if (axes.size() > kMaxOnnxDims) refuse("too many axes");
  SmallVec<bool, 16> named;
  named.resize(after);
  for (const int64_t d : axes) named[dim(d, after)] = true;
  Shape sizes;
  for (int64_t i = 0, from = 0; i < after; i++) {
    const bool drops_all = !adds && axes.empty();  // of size 1
    const bool one = drops_all ? in(0).size(i) == 1 : named[i];
    if (one && !adds && in(0).size(i) != 1) refuse("an axis whose size is not 1");
    if (one && adds) sizes.push_back(1);
    else if (!one) sizes.push_back(in(0).size(adds ? from++ : i));
  }
  return op::reshape(in(0), sizes);
}

TensorRef OnnxImporter::expand() const {
  const int64_t n = in(0).ndim;
  Shape sizes = numbers(1);
  while (sizes.size() < n) sizes.insert(0, 1);
  for (int64_t i = 1; i <= n; i++)
    if (sizes[sizes.size() - i] == 1) sizes[sizes.size() - i] = in(0).size(n - i);
  return op::expand(in(0), sizes);
}

TensorRef OnnxImporter::concat() const {
  SmallVec<const Tensor*, 8> list;
  for (int64_t i = 0; i < inputs_.size(); i++) list.push_back(&in(i));
  if (list.empty()) refuse("no inputs");
  return op::cat({list.data(), list.size()}, dim(integer("axis", 0), in(0).ndim));
}

TensorRef OnnxImporter::pad() const {
  const int64_t n = in(0).ndim;
  int64_t mode = 0;  // of enum Padding
  if (text_is("mode", "reflect", false)) mode = 1;
  if (text_is("mode", "edge", false)) mode = 2;
  if (text_is("mode", "wrap", false)) mode = 3;
  if (!mode && !text_is("mode", "constant", true)) refuse("its mode");
  const Shape pads = numbers(1, "pads");
  Shape axes = has(3) ? numbers(3) : Shape();
  for (int64_t d = 0; d < n && !has(3); d++) axes.push_back(d);
  if (pads.size() != 2 * axes.size()) refuse("pads of other dimensions");
  Shape all;
  all.resize(2 * n);
  for (int64_t i = 0; i < axes.size(); i++) {
    const int64_t d = dim(axes[i], n);
    all[d] = pads[i];
    all[n + d] = pads[axes.size() + i];
  }
  if (!mode) return padded(in(0), all, number(2, real("value", 0)));
  Shape list;  // of the dims behind those without pads, from the last one
  int64_t first = 0;
  while (first < n && !all[first] && !all[n + first]) first++;
  for (int64_t d = n - 1; d >= first; d--) {
    list.push_back(all[d]);
    list.push_back(all[n + d]);
  }
  return list.empty() ? TensorRef::share(&in(0)) : op::pad(in(0), list, mode);
}

TensorRef OnnxImporter::triangle() const {
  const int64_t k = whole_number(1, 0);
  return integer("upper", 1) ? op::triu(in(0), k) : op::tril(in(0), k);
}

bool OnnxImporter::arrangement() {
  static constexpr OneResult kArrangements[] = {
      {"Concat", [](Node& n) { return n.concat(); }},
      {"Expand", [](Node& n) { return n.expand(); }},
      {"Flatten", [](Node& n) { return n.flatten(); }},
      {"Pad", [](Node& n) { return n.pad(); }},
      {"Reshape", [](Node& n) { return n.reshape(); }},
      {"Squeeze", [](Node& n) { return n.sizes_of_one(); }},
      {"Tile", [](Node& n) { return op::repeat(n.in(0), n.numbers(1)); }},
      {"Transpose", [](Node& n) { return n.transpose(); }},
      {"Trilu", [](Node& n) { return n.triangle(); }},
      {"Unsqueeze", [](Node& n) { return n.sizes_of_one(); }},
  };
  if (is(type_, "Identity") || is(type_, "Dropout")) {
    identity();
    return true;
  }
  return give_one(kArrangements);
}

// ---- indexing ----

TensorRef OnnxImporter::slice() const {
  const Shape starts = numbers(1, "starts");
  const Shape ends = numbers(2, "ends");
  Shape axes = numbers(3, "axes");
  Shape steps = numbers(4, "steps");
  if (ends.size() != starts.size()) refuse("starts and ends of other lengths");
  for (int64_t i = axes.size(); i < starts.size(); i++) axes.push_back(i);
  while (steps.size() < starts.size()) steps.push_back(1);
  TensorRef y = TensorRef::share(&in(0));
  for (int64_t i = 0; i < starts.size(); i++) {
    const int64_t d = dim(axes[i], y->ndim);
    const int64_t size = y->size(d);
    const int64_t step = steps[i];
    if (step == 0 || step == INT64_MIN) refuse("a step of 0");
    const auto place = [&](int64_t v, int64_t low, int64_t high) {
      if (v < 0) v = v < -size ? -1 - size : v + size;
      return clamp(v, low, high);
    };
    if (step > 0) {
      const int64_t start = place(starts[i], 0, size);
      const int64_t end = place(ends[i], 0, size);
      y = op::slice(*y, d, Opt<int64_t>(start), Opt<int64_t>(max(start, end)), step);
      continue;
    }
    if (size == 0) continue;
    const int64_t start = place(starts[i], 0, size - 1);
    const int64_t end = place(ends[i], -1, size - 1);
    if (size > kMaxMade) refuse("a long slice backwards");
    SmallVec<int64_t, 8> rows;
    for (int64_t at = start; at > end; at += max(step, -size)) rows.push_back(at);
    y = op::index_select(*y, d, *integers({rows.data(), rows.size()}));
  }
  return y;
}

void OnnxImporter::split() {
  const int64_t d = dim(integer("axis", 0), in(0).ndim);
  const int64_t size = in(0).size(d);
  Shape parts = numbers(1, "split");
  const int64_t n = outputs_.size();
  const int64_t each = n ? ceil_div(size, n) : 0;
  for (int64_t i = parts.size(); i < n; i++)
    parts.push_back(clamp(size - i * each, int64_t(0), each));
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) {
    give(op::narrow(in(0), d, at, parts[i]));
    at += parts[i];
  }
}

// index as int64, from the end if it is negative.
TensorRef OnnxImporter::positions(const Tensor& index, int64_t size) const {
  TensorRef at = TensorRef::share(&index);
  if (is_float(at->dtype)) refuse("positions that are no integers");
  if (at->dtype != Dtype::kI64) at = op::to_dtype(*at, Dtype::kI64);
  return op::where(*op::lt(*at, Scalar(0)), *op::add(*at, Scalar(size)), *at);
}

TensorRef OnnxImporter::gather() const {
  const int64_t n = in(0).ndim;
  const int64_t d = dim(integer("axis", 0), n);
  const int64_t size = in(0).size(d);
  const TensorRef index = positions(in(1), size);
  if (is(type_, "GatherElements")) return op::gather(in(0), d, *index);
  const int64_t all = index->numel;
  const TensorRef y = op::index_select(in(0), d, *op::reshape(*index, Ints(&all, 1)));
  Shape sizes(in(0).sizes().slice(0, d));
  sizes.append(index->sizes());
  sizes.append(in(0).sizes().slice(d + 1, n));
  return op::reshape(*y, sizes);
}

TensorRef OnnxImporter::scatter_elements() const {
  const int64_t d = dim(integer("axis", 0), in(0).ndim);
  const TensorRef index = positions(in(1), in(0).size(d));
  static constexpr struct {
    const char* name;
    int64_t reduce;  // of enum ScatterReduce
  } kReductions[] = {{"add", 0}, {"mul", 1}, {"max", 3}, {"min", 4}};
  for (const auto& r : kReductions)
    if (text_is("reduction", r.name, false))
      return op::scatter_reduce(in(0), d, *index, in(2), r.reduce);
  if (!text_is("reduction", "none", true)) refuse("its reduction");
  return op::scatter(in(0), d, *index, in(2));
}

// The positions (n) among rows of data, all of whose first dims are one, of index (…, dims).
TensorRef OnnxImporter::row_numbers(const Tensor& data, const Tensor& index) const {
  const int64_t dims = index.ndim ? index.size(-1) : 0;
  if (dims < 1 || dims > data.ndim || integer("batch_dims", 0)) refuse("its number of dimensions");
  TensorRef at;
  for (int64_t k = 0; k < dims; k++) {
    const TensorRef one = positions(*op::select(index, -1, k), data.size(k));
    at = k ? op::add(*op::mul(*at, Scalar(data.size(k))), *one) : one;
  }
  return op::reshape(*at, Ints(&at->numel, 1));
}

// GatherND and ScatterND.
TensorRef OnnxImporter::rows_of_many() const {
  const Tensor &data = in(0), &index = in(1);
  const TensorRef at = row_numbers(data, index);
  const int64_t dims = index.size(-1);
  const Ints first = data.sizes().slice(0, dims);
  const Ints rest = data.sizes().slice(dims, data.ndim);
  int64_t flat[2] = {1, 1};
  for (const int64_t size : first) flat[0] *= size;
  for (const int64_t size : rest) flat[1] *= size;
  const TensorRef rows = op::reshape(data, Ints(flat));
  if (is(type_, "GatherND")) {
    Shape sizes(index.sizes().slice(0, index.ndim - 1));
    sizes.append(rest);
    return op::reshape(*op::index_select(*rows, 0, *at), sizes);
  }
  const int64_t of_updates[] = {at->numel, flat[1]};
  const TensorRef updates = op::reshape(in(2), Ints(of_updates));
  const bool adds = text_is("reduction", "add", false);
  if (!adds && !text_is("reduction", "none", true)) refuse("its reduction");
  const TensorRef y =
      adds ? op::index_add(*rows, 0, *at, *updates) : op::index_copy(*rows, 0, *at, *updates);
  return op::reshape(*y, data.sizes());
}

TensorRef OnnxImporter::one_hot() const {
  const int64_t depth = whole_number(1, 0);
  const int64_t n = in(0).ndim;
  if (depth < 1 || depth > kMaxMade) refuse("its depth");
  if (in(2).ndim != 1 || in(2).numel != 2) refuse("values that are not two");
  const int64_t d = dim(integer("axis", -1), n + 1);
  const TensorRef index = op::unsqueeze(*positions(in(0), depth), d);
  Shape sizes;
  for (int64_t i = 0; i <= n; i++) sizes.push_back(i == d ? depth : 1);
  const TensorRef classes = op::reshape(
      *op::arange(Scalar(0), Scalar(depth), Scalar(1), Dtype::kI64, Opt<Device>(kCpuDevice)),
      sizes);
  const TensorRef off = op::select(in(2), 0, 0);
  const TensorRef on = op::select(in(2), 0, 1);
  return op::where(*op::eq(*index, *classes), *on, *off);
}

bool OnnxImporter::indexing() {
  static constexpr OneResult kIndexing[] = {
      {"Gather", [](Node& n) { return n.gather(); }},
      {"GatherElements", [](Node& n) { return n.gather(); }},
      {"GatherND", [](Node& n) { return n.rows_of_many(); }},
      {"OneHot", [](Node& n) { return n.one_hot(); }},
      {"ScatterElements", [](Node& n) { return n.scatter_elements(); }},
      {"ScatterND", [](Node& n) { return n.rows_of_many(); }},
      {"Slice", [](Node& n) { return n.slice(); }},
  };
  if (is(type_, "Split")) {
    split();
    return true;
  }
  return give_one(kIndexing);
}

// ---- constants ----

TensorRef OnnxImporter::shape_of() const {
  const int64_t n = in(0).ndim;
  const auto place = [&](int64_t v) { return clamp(v < 0 ? max(v, -n) + n : v, int64_t(0), n); };
  const int64_t start = place(integer("start", 0));
  const int64_t end = place(integer("end", n));
  return integers(in(0).sizes().slice(start, max(start, end)));
}

TensorRef OnnxImporter::count_of() const {
  TensorRef t = new_tensor({}, Dtype::kI64, kCpuDevice);
  *t->as<int64_t>() = in(0).numel;
  return t;
}

TensorRef OnnxImporter::given_value() const {
  if (const OnnxAttr* a = attr("value")) return TensorMessage(a->tensor).tensor();
  if (const OnnxAttr* a = attr("value_ints")) return integers(a->ints.span());
  if (const OnnxAttr* a = attr("value_floats")) {
    const int64_t n = a->reals.size();
    TensorRef t = new_tensor(Ints(&n, 1), Dtype::kF32, kCpuDevice);
    for (int64_t i = 0; i < n; i++) t->as<float>()[i] = a->reals[i];
    return t;
  }
  const bool whole = attr("value_int") != nullptr;
  if (!whole && !attr("value_float")) refuse("a constant of another kind");
  TensorRef t = new_tensor({}, whole ? Dtype::kI64 : Dtype::kF32, kCpuDevice);
  const Scalar v = whole ? Scalar(integer("value_int", 0)) : Scalar(real("value_float", 0));
  store_scalar(t->data, t->dtype, v);
  return t;
}

TensorRef OnnxImporter::repeated_value() const {
  const Shape sizes = numbers(0);
  TensorRef one;
  if (const OnnxAttr* a = attr("value")) one = TensorMessage(a->tensor).tensor();
  if (one && one->numel != 1) refuse("a value that is no number");
  const Dtype dtype = one ? one->dtype : Dtype::kF32;
  if (checked_numel(sizes, dtype, "shape") > kMaxMade) refuse("a large constant");
  const Scalar v = one ? load_scalar(one->data, dtype) : Scalar(0.0);
  TensorRef t = new_tensor(sizes, dtype, kCpuDevice);
  for (int64_t i = 0; i < t->numel; i++) store_scalar(t->data + i * item_size(dtype), dtype, v);
  return t;
}

TensorRef OnnxImporter::range() const {
  const double start = number(0, 0);
  const double limit = number(1, 0);
  const double step = number(2, 1);
  const double n = (limit - start) / step;
  const bool whole = !is_float(in(0).dtype);
  const double most = max(fabs(start), fabs(limit));
  if (whole && !(most + fabs(step) < 0x1p53)) refuse("a range of large numbers");
  if (step == 0 || !(n <= double(kMaxMade))) refuse("a long range");
  const int64_t count = n > 0 ? -int64_t(::floor(-n)) : 0;
  TensorRef t = new_tensor(Ints(&count, 1), in(0).dtype, kCpuDevice);
  for (int64_t i = 0; i < count; i++) {
    const double v = start + double(i) * step;
    const Scalar element = whole ? Scalar(int64_t(v)) : Scalar(v);
    store_scalar(t->data + i * item_size(t->dtype), t->dtype, element);
  }
  return t;
}

// The positions of the elements of a constant that are not 0, a row for each dimension.
TensorRef OnnxImporter::places_of_nonzero() const {
  const Tensor& x = in(0);
  if (!item(inputs_[0]).known || x.numel > kSmallConstant || !x.contiguous() || !x.ndim)
    refuse("positions that depend on inputs");
  SmallVec<int64_t, 16> found;
  for (int64_t i = 0; i < x.numel; i++)
    if (load_scalar(x.data + i * x.item_size(), x.dtype).real() != 0) found.push_back(i);
  const int64_t sizes[] = {x.ndim, found.size()};
  TensorRef t = new_tensor(Ints(sizes), Dtype::kI64, kCpuDevice);
  for (int64_t k = 0; k < found.size(); k++)
    for (int64_t d = x.ndim - 1; d >= 0; found[k] /= x.size(d--))
      t->as<int64_t>()[d * found.size() + k] = found[k] % x.size(d);
  return t;
}

// Nodes whose results are constants, since they depend on sizes or attributes alone.
bool OnnxImporter::constant() {
  static constexpr OneResult kConstants[] = {
      {"Constant", [](Node& n) { return n.given_value(); }},
      {"ConstantOfShape", [](Node& n) { return n.repeated_value(); }},
      {"NonZero", [](Node& n) { return n.places_of_nonzero(); }},
      {"Range", [](Node& n) { return n.range(); }},
      {"Shape", [](Node& n) { return n.shape_of(); }},
      {"Size", [](Node& n) { return n.count_of(); }},
  };
  return give_one(kConstants, true);
}

}  // namespace TT_NS
