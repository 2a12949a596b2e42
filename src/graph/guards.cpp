#include "graph/guards.h"

#include "plan/recurrent_plan.h"
#include "plan/resize_plan.h"

#include <string.h>

namespace TT_NS {

namespace {

class Args {
 public:
  Args(const OpSchema& schema, const Value* values) : schema_(schema), values_(values) {}

  const Value& arg(const char* name) const {
    for (int32_t i = 0; i < schema_.n_args; i++)
      if (strcmp(schema_.args[i].name, name) == 0) return values_[i];
    fail(TT_INTERNAL, "{} has no argument {}", schema_.name, name);
  }
  bool has(const char* name) const { return arg(name).kind == Value::kTensor; }
  const Tensor& tensor(const char* name) const { return *arg(name).tensor; }
  Ints sizes(const char* name) const { return tensor(name).sizes(); }
  Ints ints(const char* name) const {
    const Value& v = arg(name);
    return v.kind == Value::kInts ? Ints(v.ints, v.n) : Ints();
  }
  int64_t integer(const char* name) const { return arg(name).i; }
  int64_t ndim(const char* name) const { return tensor(name).ndim; }
  int64_t numel(const char* name) const { return tensor(name).numel; }
  Dtype dtype(const char* name) const { return tensor(name).dtype; }
  // Sizes from the end: 1 is the last.
  int64_t last(const char* name, int64_t i) const { return sizes(name)[ndim(name) - i]; }

  bool same_sizes(const char* a, const char* b) const { return same(sizes(a), sizes(b)); }
  bool same_dtype(const char* a, const char* b) const { return dtype(a) == dtype(b); }
  bool is_absent_or(const char* name, Ints want) const {
    return !has(name) || same(sizes(name), want);
  }
  bool is_vector(const char* name, int64_t n) const { return is_absent_or(name, Ints(&n, 1)); }
  // Row-major, of the dtype of another tensor.
  bool is_parameter(const char* name, Ints want, const char* of) const {
    return !has(name) ||
           (same(sizes(name), want) && same_dtype(name, of) && tensor(name).contiguous());
  }
  // What forward keeps for backward: row-major, float64 if the named tensor is, else float32.
  bool is_kept(const char* name, const char* of) const {
    const Dtype kept = dtype(of) == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
    return dtype(name) == kept && tensor(name).contiguous();
  }
  bool is_dim(const char* name, int64_t ndim) const {
    const int64_t n = max<int64_t>(ndim, 1);
    return integer(name) >= -n && integer(name) < n;
  }
  bool in(const char* name, int64_t low, int64_t high) const {
    return integer(name) >= low && integer(name) <= high;
  }
  bool is_square(const char* name) const {
    return ndim(name) >= 2 && last(name, 1) == last(name, 2);
  }

 private:
  const OpSchema& schema_;
  const Value* values_;
};

int64_t wrapped(int64_t dim, int64_t n) { return dim < 0 ? dim + n : dim; }
Shape without(Ints sizes, int64_t dim) {
  Shape out;
  for (int64_t i = 0; i < sizes.n; i++)
    if (i != dim) out.push_back(sizes[i]);
  return out;
}
bool is_at_least(Ints list, int64_t low) {
  for (const int64_t i : list)
    if (i < low || i > INT32_MAX) return false;
  return true;
}
// Sizes of `small` that are 1 or those of `large`, from the last one.
bool broadcasts(Ints small, Ints large) {
  if (small.n > large.n) return false;
  for (int64_t i = 1; i <= small.n; i++)
    if (small[small.n - i] != 1 && small[small.n - i] != large[large.n - i]) return false;
  return true;
}

// ---- families ----

bool pads(const Args& a, Ints result) {
  const Ints x = a.sizes("self");
  const Ints pad = a.ints("pad");
  if (pad.n % 2 || pad.n > 2 * x.n || !a.in("mode", 1, 3) || (result.n && result.n != x.n))
    return false;
  for (int64_t i = 0; i < x.n; i++) {
    const int64_t at = 2 * (x.n - 1 - i);
    const int64_t low = at < pad.n ? pad[at] : 0;
    const int64_t high = at < pad.n ? pad[at + 1] : 0;
    if (x[i] > INT32_MAX || low > INT32_MAX || high > INT32_MAX || (x[i] < 1 && at < pad.n))
      return false;
    if (low < -x[i] || high < -x[i] || x[i] + low + high < 0) return false;
    if (result.n && result[i] != x[i] + low + high) return false;
  }
  return true;
}

bool recurs_back(const Args& a) {
  if (!a.in("mode", kRnnRelu, kGru) || a.ndim("output") != 2 || a.ndim("w_hh") != 2 ||
      !is_at_least(a.ints("batch_sizes"), 0) || a.ints("batch_sizes").n == 0)
    return false;
  const int64_t mode = a.integer("mode");
  const int64_t total = a.sizes("output")[0];
  const int64_t hidden = a.sizes("w_hh")[0] / recurrent_gates(int32_t(mode));
  const int64_t state = a.has("w_hr") ? a.last("w_hr", 2) : hidden;
  const int64_t saved = recurrent_saved(int32_t(mode)) * hidden;
  const int64_t out[] = {total, state};
  const int64_t cells[] = {mode == kLstm ? total : 0, hidden};
  const int64_t kept[] = {saved ? total : 0, saved};
  return same(a.sizes("output"), Ints(out)) && same(a.sizes("cells"), Ints(cells)) &&
         same(a.sizes("saved"), Ints(kept)) && a.is_absent_or("grad", Ints(out)) &&
         (!a.has("grad_cells") || a.same_sizes("grad_cells", "cells")) &&
         a.is_kept("saved", "w_hh") && (!a.has("w_hr") || a.ndim("w_hr") == 2);
}

// The mask has all batches and heads; a row may be that of all queries.
bool masks(const Args& a, Ints query, int64_t keys) {
  if (!a.has("mask")) return true;
  const Ints m = a.sizes("mask");
  const Dtype d = a.dtype("mask");
  return m.n == 4 && m[0] == query[0] && m[1] == query[1] && (m[2] == 1 || m[2] == query[2]) &&
         m[3] == keys && (d == Dtype::kBool || d == Dtype::kF32 || d == a.dtype("query"));
}
bool attends(const Args& a) {
  for (const char* name : {"query", "key", "value"})
    if (a.ndim(name) != 4 || !a.same_dtype(name, "query")) return false;
  const Ints q = a.sizes("query");
  const Ints k = a.sizes("key");
  const Ints v = a.sizes("value");
  return is_float(a.dtype("query")) && q[0] == k[0] && k[0] == v[0] && k[1] == v[1] && k[1] > 0 &&
         q[1] % k[1] == 0 && q[3] == k[3] && k[2] == v[2] && masks(a, q, k[2]);
}
bool attends_back(const Args& a) {
  if (!attends(a)) return false;
  const Ints q = a.sizes("query");
  const int64_t out[] = {q[0], q[1], q[2], a.sizes("value")[3]};
  return same(a.sizes("grad"), Ints(out)) && same(a.sizes("out"), Ints(out)) &&
         a.same_dtype("out", "query") && same(a.sizes("lse"), q.slice(0, 3)) &&
         a.is_kept("lse", "query");
}

int64_t item(Ints list, int64_t i, int64_t missing) {
  if (list.n == 0) return missing;
  return list[list.n == 1 ? 0 : i];
}
// Empty, one integer, or one for each of n dimensions.
bool is_list_for(Ints list, int64_t n) { return list.n <= 1 || list.n == n; }

bool convolves(const Args& a) {
  const int64_t n = a.ndim("input") - 2;
  if (n < 1 || n > 3 || a.ndim("weight") != n + 2 || !a.in("groups", 1, INT32_MAX)) return false;
  for (const char* name : {"stride", "padding", "dilation"})
    if (!is_list_for(a.ints(name), n) || !is_at_least(a.ints(name), name[0] == 'p' ? 0 : 1))
      return false;
  const Ints more = a.ints("output_padding");
  return is_list_for(more, n) && is_at_least(more, 0) && is_at_least(a.sizes("input"), 0) &&
         is_at_least(a.sizes("weight"), 0);
}
bool convolves_back(const Args& a) {
  if (!convolves(a)) return false;
  const Ints x = a.sizes("input");
  const Ints w = a.sizes("weight");
  const Ints g = a.sizes("grad");
  const bool transposed = a.integer("transposed");
  if (g.n != x.n || g[0] != x[0] || g[1] != (transposed ? w[1] * a.integer("groups") : w[0]))
    return false;
  for (int64_t i = 2; i < x.n; i++) {
    const int64_t stride = item(a.ints("stride"), i - 2, 1);
    const int64_t padding = item(a.ints("padding"), i - 2, 0);
    const int64_t reach = item(a.ints("dilation"), i - 2, 1) * (w[i] - 1);
    const int64_t more = item(a.ints("output_padding"), i - 2, 0);
    const int64_t forward = (x[i] + 2 * padding - reach - 1) / stride + 1;
    const int64_t back = (x[i] - 1) * stride - 2 * padding + reach + more + 1;
    if (g[i] != (transposed ? back : forward)) return false;
  }
  return true;
}

bool pools_back(const Args& a, bool dilated) {
  const Ints x = a.sizes("self");
  const Ints g = a.sizes("grad");
  const Ints kernel = a.ints("kernel_size");
  if (x.n < 3 || x.n > 4 || g.n != x.n || kernel.n < 1 || kernel.n > 2) return false;
  for (const char* name : {"kernel_size", "stride", "padding"})
    if (a.ints(name).n > 2 || !is_at_least(a.ints(name), name[0] == 'p' ? 0 : 1)) return false;
  const Ints dilation = dilated ? a.ints("dilation") : Ints();
  if (dilation.n > 2 || !is_at_least(dilation, 1)) return false;
  for (int64_t i = 0; i < x.n - 2; i++)
    if (x[i] != g[i]) return false;
  for (int64_t i = 0; i < 2; i++) {
    const int64_t in = x[x.n - 2 + i];
    const int64_t k = item(kernel, i, 1);
    const int64_t stride = item(a.ints("stride"), i, k);
    const int64_t pad = item(a.ints("padding"), i, 0);
    const int64_t reach = item(dilation, i, 1) * (k - 1) + 1;
    if (in > INT32_MAX || in + 2 * pad < reach || 2 * pad > k) return false;
    int64_t out = (in + 2 * pad - reach) / stride + 1;
    if (a.integer("ceil_mode")) {
      out = (in + 2 * pad - reach + stride - 1) / stride + 1;
      if ((out - 1) * stride >= in + pad) out--;
    }
    if (g[g.n - 2 + i] != out) return false;
  }
  return true;
}
bool pools_adaptive_back(const Args& a) {
  const Ints x = a.sizes("self");
  const Ints g = a.sizes("grad");
  const Ints size = a.ints("output_size");
  if (x.n < 3 || x.n > 4 || g.n != x.n || size.n < 1 || size.n > 2) return false;
  for (int64_t i = 0; i < x.n - 2; i++)
    if (x[i] != g[i]) return false;
  for (int64_t i = 0; i < 2; i++) {
    const int64_t in = x[x.n - 2 + i];
    const int64_t out = item(size, i, -1);
    if (in < 1 || in > INT32_MAX || g[g.n - 2 + i] != (out == -1 ? in : out)) return false;
  }
  return true;
}

bool has_classes(const Args& a) {
  const Ints x = a.sizes("input");
  const int64_t dim = x.n < 2 ? 0 : 1;
  return x.n >= 1 && same(a.sizes("target"), without(x, dim)) && a.dtype("target") == Dtype::kI64;
}
bool loses(const Args& a) {
  return has_classes(a) && is_float(a.dtype("input")) &&
         a.is_vector("weight", a.sizes("input")[a.ndim("input") < 2 ? 0 : 1]) &&
         (!a.has("weight") || a.same_dtype("weight", "input"));
}
bool loses_back(const Args& a) {
  return has_classes(a) && is_float(a.dtype("input")) && a.same_sizes("row_weight", "target") &&
         a.is_kept("row_weight", "input") &&
         (a.numel("grad") == 1 || a.same_sizes("grad", "target"));
}

// Lengths and labels may have any values (ctc_loss of the kernels).
bool aligns(const Args& a) {
  if (a.ndim("log_probs") != 3 || !is_float(a.dtype("log_probs"))) return false;
  if (a.dtype("log_probs") != Dtype::kF32 && a.dtype("log_probs") != Dtype::kF64) return false;
  const Ints x = a.sizes("log_probs");
  for (const char* name : {"targets", "offsets", "input_lengths", "target_lengths"})
    if (a.dtype(name) != Dtype::kI64 || !a.tensor(name).contiguous()) return false;
  for (const char* name : {"offsets", "input_lengths", "target_lengths"})
    if (a.numel(name) != x[1]) return false;
  return a.in("max_target", 0, INT32_MAX) && a.in("blank", 0, x[2] - 1);
}
bool aligns_back(const Args& a) {
  if (!aligns(a)) return false;
  const Ints x = a.sizes("log_probs");
  const int64_t states[] = {x[1], x[0], 2 * a.integer("max_target") + 1};
  return same(a.sizes("log_alpha"), Ints(states)) && a.dtype("log_alpha") == Dtype::kF64 &&
         a.tensor("log_alpha").contiguous() && a.numel("loss") == x[1] &&
         a.same_dtype("loss", "log_probs") && a.tensor("loss").contiguous() &&
         a.numel("grad") == x[1];
}

bool normalizes_channels(const Args& a) {
  if (a.ndim("input") < 2) return false;
  const int64_t n = a.sizes("input")[1];
  const char* const parameters = a.has("weight") ? "weight" : "bias";
  for (const char* name : {"weight", "bias"})
    if (!a.is_parameter(name, Ints(&n, 1), parameters)) return false;
  for (const char* name : {"running_mean", "running_var"})
    if (!a.is_vector(name, n)) return false;
  return a.integer("training") || (a.has("running_mean") && a.has("running_var"));
}
bool normalizes_channels_back(const Args& a) {
  return a.ndim("input") >= 2 && a.same_sizes("grad", "input") &&
         a.is_vector("weight", a.sizes("input")[1]) &&
         a.numel("stats") == 3 * a.sizes("input")[1] && a.is_kept("stats", "input");
}
bool normalizes_rows(const Args& a) {
  const Ints x = a.sizes("input");
  const Ints shape = a.ints("normalized_shape");
  return shape.n >= 1 && shape.n <= x.n && same(x.slice(x.n - shape.n, x.n), shape) &&
         a.is_absent_or("weight", shape);
}
bool normalizes_rows_back(const Args& a, std::initializer_list<const char*> kept) {
  if (!normalizes_rows(a) || !a.same_sizes("grad", "input")) return false;
  int64_t rows = 1;
  for (int64_t i = 0; i < a.ndim("input") - a.ints("normalized_shape").n; i++)
    rows *= a.sizes("input")[i];
  for (const char* name : kept)
    if (a.numel(name) != rows || !a.is_kept(name, "input")) return false;
  return true;
}

bool groups_channels(const Args& a) {
  if (a.ndim("input") < 2 || !is_float(a.dtype("input")) || a.integer("num_groups") < 1)
    return false;
  const int64_t n = a.sizes("input")[1];
  const char* const parameters = a.has("weight") ? "weight" : "bias";
  for (const char* name : {"weight", "bias"})
    if (!a.is_parameter(name, Ints(&n, 1), parameters)) return false;
  return n > 0 && n % a.integer("num_groups") == 0;
}
bool groups_channels_back(const Args& a) {
  if (a.ndim("input") < 2 || !is_float(a.dtype("input")) || a.integer("num_groups") < 1)
    return false;
  const Ints x = a.sizes("input");
  const int64_t rows = x[0] * a.integer("num_groups");
  return x[1] > 0 && x[1] % a.integer("num_groups") == 0 && a.same_sizes("grad", "input") &&
         a.is_vector("weight", x[1]) && a.numel("mean") == rows && a.numel("rstd") == rows &&
         a.is_kept("mean", "input") && a.is_kept("rstd", "input");
}

bool scatters(const Args& a, bool has_source) {
  const Ints x = a.sizes("self");
  const Ints index = a.sizes("index");
  if (a.dtype("index") != Dtype::kI64 || index.n != x.n || !a.is_dim("dim", x.n)) return false;
  const int64_t dim = wrapped(a.integer("dim"), x.n);
  for (int64_t i = 0; i < x.n; i++) {
    if (i != dim && index[i] > x[i]) return false;
    if (has_source && (a.ndim("src") != x.n || index[i] > a.sizes("src")[i])) return false;
  }
  return !has_source || a.same_dtype("src", "self");
}

// Where bags start is clamped by the kernel.
bool reduces_bags(const Args& a) {
  if (a.ndim("weight") != 2 || a.ndim("indices") != 1 || !is_integral(a.dtype("indices")))
    return false;
  const int64_t n = a.numel("indices");
  const int64_t bags = a.integer("bags");
  const bool has_starts = a.has("starts");
  if (has_starts && a.dtype("starts") != Dtype::kI64) return false;
  return a.in("bags", 0, has_starts ? INT32_MAX : n) && a.in("mode", 0, 2) &&
         a.is_vector("starts", bags + 1) && a.is_vector("per_sample_weights", n) &&
         (!a.has("per_sample_weights") || a.same_dtype("per_sample_weights", "weight")) &&
         a.in("skipped", -1, a.sizes("weight")[0] - 1);
}

bool indexes(const Args& a) {
  const Value& list = a.arg("indices");
  if (list.n > a.ndim("self")) return false;
  for (int64_t i = 0; i < list.n; i++)
    if (list.tensors[i] && list.tensors[i]->dtype != Dtype::kI64) return false;
  return true;
}

bool slices_back(const Args& a) {
  const Ints size = a.ints("size");
  const Ints g = a.sizes("grad");
  if (g.n != size.n || !size.n || !a.is_dim("dim", size.n) || !a.in("step", 1, INT64_MAX) ||
      !is_at_least(size, 0))
    return false;
  const int64_t dim = wrapped(a.integer("dim"), size.n);
  const int64_t n = size[dim];
  const auto bound = [&](const char* name, int64_t missing) {
    if (a.arg(name).kind == Value::kNone) return missing;
    const int64_t i = a.integer(name) < 0 ? a.integer(name) + n : a.integer(name);
    return min(max<int64_t>(i, 0), n);
  };
  const int64_t start = bound("start", 0);
  const int64_t end = max(bound("end", n), start);
  const int64_t step = min(a.integer("step"), max<int64_t>(n, 1));
  for (int64_t i = 0; i < size.n; i++)
    if (g[i] != (i == dim ? (end - start + step - 1) / step : size[i])) return false;
  return true;
}
bool selects_back(const Args& a) {
  const Ints size = a.ints("size");
  if (!size.n || !a.is_dim("dim", size.n) || !is_at_least(size, 0)) return false;
  const int64_t dim = wrapped(a.integer("dim"), size.n);
  return a.in("index", -size[dim], size[dim] - 1) && same(a.sizes("grad"), without(size, dim));
}
bool takes_diagonal_back(const Args& a) {
  const Ints size = a.ints("size");
  if (size.n < 2 || !a.is_dim("dim1", size.n) || !a.is_dim("dim2", size.n) ||
      !is_at_least(size, 0) || !a.in("offset", -INT32_MAX, INT32_MAX))
    return false;
  const int64_t one = wrapped(a.integer("dim1"), size.n);
  const int64_t two = wrapped(a.integer("dim2"), size.n);
  if (one == two) return false;
  Shape want;
  for (int64_t i = 0; i < size.n; i++)
    if (i != one && i != two) want.push_back(size[i]);
  const int64_t offset = a.integer("offset");
  const int64_t rows = size[one] + min<int64_t>(offset, 0);
  const int64_t columns = size[two] - max<int64_t>(offset, 0);
  want.push_back(max<int64_t>(min(rows, columns), 0));
  return same(a.sizes("grad"), want);
}
bool changes_strides(const Args& a) {
  const Ints stride = a.ints("stride");
  const Ints x = a.sizes("self");
  return stride.n == x.n && is_at_least(stride, 0) && is_at_least(x, 0);
}

bool multiplies(const Args& a) { return a.ndim("self") >= 2 && a.ndim("other") >= 2; }
bool is_linear(const Args& a) {
  if (a.ndim("input") < 1 || a.ndim("weight") != 2 || !a.same_dtype("input", "weight"))
    return false;
  return a.last("input", 1) == a.sizes("weight")[1] && a.is_vector("bias", a.sizes("weight")[0]) &&
         (!a.has("bias") || a.same_dtype("bias", "weight"));
}

bool samples(const Args& a, const char* image_name, Ints image) {
  const Ints grid = a.sizes("grid");
  const int64_t n = image.n - 2;
  if (n < 2 || n > 3 || grid.n != n + 2 || grid[n + 1] != n || grid[0] != image[0] ||
      !a.in("mode", 0, 2) || !a.in("padding", 0, 2))
    return false;
  const Dtype d = a.dtype("grid");
  double plane = 1;
  for (int64_t i = 2; i < image.n; i++) plane *= double(image[i]);
  if (d != Dtype::kF64 && plane > INT32_MAX) return false;
  return is_at_least(image, 0) && (d == Dtype::kF64 || d == Dtype::kF32) &&
         is_float(a.dtype(image_name));
}
bool samples_in_order(const Args& a, const char* image_name, Ints image) {
  const Ints order = a.ints("order");
  const int64_t n = image.n - 2;
  if (!samples(a, image_name, image) || order.n != n) return false;
  for (const int64_t i : order)
    if (i < 0 || i >= n) return false;
  return true;
}
bool is_sampled(const Args& a, Ints image) {
  const Ints g = a.sizes("grad");
  const Ints grid = a.sizes("grid");
  return g.n == image.n && g[0] == image[0] && g[1] == image[1] &&
         same(g.slice(2, g.n), grid.slice(1, grid.n - 1));
}
bool puts_samples(const Args& a) {
  const Ints size = a.ints("size");
  return samples_in_order(a, "grad", size) && is_sampled(a, size);
}
bool slopes_of_samples(const Args& a) {
  return samples(a, "self", a.sizes("self")) && is_sampled(a, a.sizes("self"));
}
bool are_rows(const Args& a) {
  const Ints x1 = a.sizes("x1");
  const Ints x2 = a.sizes("x2");
  const Dtype d = a.dtype("x1");
  return x1.n == 3 && x2.n == 3 && x1[0] == x2[0] && x1[2] == x2[2] && a.same_dtype("x1", "x2") &&
         (d == Dtype::kF32 || d == Dtype::kF64) && a.arg("p").f >= 0 &&
         (!a.integer("pairs") || x1[1] == x2[1]);
}
bool are_distances(const Args& a) {
  if (!are_rows(a) || !a.same_sizes("grad", "y") || !a.same_dtype("y", "x1")) return false;
  const Ints x1 = a.sizes("x1");
  const int64_t all[3] = {x1[0], x1[1], a.sizes("x2")[1]};
  const int64_t pairs[2] = {x1[0], x1[1] * (x1[1] - 1) / 2};
  return same(a.sizes("y"), a.integer("pairs") ? Ints(pairs, 2) : Ints(all, 3));
}
bool resizes(const Args& a) {
  const Ints size = a.ints("size");
  const bool windows = a.integer("mode") == kResizeLinear || a.integer("mode") >= kResizeCubic;
  const bool fits = is_float(a.dtype("self")) || (a.dtype("self") == Dtype::kU8 && windows);
  return a.ndim("self") == 4 && size.n == 2 && is_at_least(size, 1) && fits &&
         a.in("mode", kResizeNearest, kResizeSmoothCubic) && is_at_least(a.sizes("self"), 0) &&
         a.last("self", 1) > 0 && a.last("self", 2) > 0;
}
bool resizes_back(const Args& a) {
  const Ints size = a.ints("size");
  const Ints image = a.ints("image");
  const Ints g = a.sizes("grad");
  return g.n == 4 && image.n == 4 && size.n == 2 && is_at_least(size, 1) &&
         a.in("mode", kResizeNearest, kResizeSmoothCubic) && is_float(a.dtype("grad")) &&
         is_at_least(image, 0) && image[2] > 0 && image[3] > 0 && g[0] == image[0] &&
         g[1] == image[1] && g[2] == size[0] && g[3] == size[1];
}

bool solves(const Args& a, const char* matrix) {
  return a.is_square(matrix) && a.ndim("other") >= 2 && a.last("other", 2) == a.last(matrix, 1) &&
         a.same_dtype("other", matrix);
}
bool reflects(const Args& a) {
  const Ints x = a.sizes("self");
  const Ints tau = a.sizes("tau");
  return x.n >= 2 && tau.n == x.n - 1 && same(tau.slice(0, tau.n - 1), x.slice(0, x.n - 2)) &&
         tau[tau.n - 1] <= x[x.n - 1] && x[x.n - 1] <= x[x.n - 2] && a.same_dtype("tau", "self");
}
bool transforms(const Args& a, bool complex) {
  const Dtype d = a.dtype("self");
  return a.ndim("self") > 0 && a.is_dim("dim", a.ndim("self")) &&
         (complex ? is_complex(d) : is_float(d));
}
bool has_softmax(const Args& a) {
  return a.is_dim("dim", a.ndim("y")) && a.same_sizes("grad", "y") && a.same_dtype("grad", "y");
}
// Ranks are those of all rows, or of each; the kernel clamps them.
bool selects_ranks(const Args& a) {
  const int64_t n = a.ndim("self");
  if (n < 1 || a.last("self", 1) < 1 || a.dtype("ranks") != Dtype::kI64) return false;
  if (!is_float(a.dtype("self"))) return false;
  return a.ndim("ranks") <= 1 || (a.ndim("ranks") == n && same(a.sizes("ranks").slice(0, n - 1),
                                                               a.sizes("self").slice(0, n - 1)));
}
bool quantizes(const Args& a) {
  return a.same_sizes("scale", "zero_point") && broadcasts(a.sizes("scale"), a.sizes("input"));
}

struct Guard {
  const char* op;
  bool (*holds)(const Args&);
};
bool always(const Args&) { return true; }

// Operators that are neither elementwise nor listed cannot be in files.
constexpr Guard kGuards[] = {
    {"pad_indexed", [](const Args& a) { return pads(a, Ints()); }},
    {"pad_indexed_backward",
     [](const Args& a) { return a.ndim("grad") == a.ndim("self") && pads(a, a.sizes("grad")); }},
    {"native_attention", attends},
    {"attention_backward", attends_back},
    {"attention_keep",
     [](const Args& a) { return a.ndim("query") == 4 && a.in("keys", 0, INT32_MAX); }},
    {"convolution", convolves},
    {"convolution_backward", convolves_back},
    {"to_dtype", always},
    {"to_device", always},
    {"fft_c2c", [](const Args& a) { return transforms(a, true); }},
    {"fft_r2c", [](const Args& a) { return transforms(a, false); }},
    {"fft_c2r",
     [](const Args& a) {
       return transforms(a, true) && a.in("length", 1, INT32_MAX) &&
              a.sizes("self")[wrapped(a.integer("dim"), a.ndim("self"))] ==
                  a.integer("length") / 2 + 1;
     }},
    {"grid_take", [](const Args& a) { return samples_in_order(a, "self", a.sizes("self")); }},
    {"grid_put", puts_samples},
    {"grid_backward", slopes_of_samples},
    {"row_distances", are_rows},
    {"row_distances_backward", are_distances},
    {"index", indexes},
    {"scatter_put", [](const Args& a) { return scatters(a, true); }},
    {"scatter_extreme", [](const Args& a) { return scatters(a, true); }},
    {"scatter_multiply", [](const Args& a) { return scatters(a, true); }},
    {"scatter_counts", [](const Args& a) { return scatters(a, false); }},
    {"bag_reduce", reduces_bags},
    {"optim_step", always},  // checks its tensors; its object was read with it
    {"schedule_step", always},
    {"scaler_scale", always},  // as optim_step
    {"scaler_unscale", [](const Args& a) { return a.arg("grads").n > 0; }},
    {"scaler_update", always},
    {"clip_norm", [](const Args& a) { return a.arg("grads").n > 0 && a.arg("norm_type").f > 0; }},
    {"clip_scale",
     [](const Args& a) {
       return a.arg("grads").n > 0 && a.numel("total") == 1 && is_float(a.dtype("total"));
     }},
    {"check_indices", [](const Args& a) { return a.in("size", 0, INT64_MAX); }},
    {"check_holds", [](const Args& a) { return a.in("status", 1, TT_LINALG); }},
    {"check_info", [](const Args& a) { return a.in("what", 0, 3); }},
    {"scatter_fill", [](const Args& a) { return scatters(a, false); }},
    {"native_nuclear_norm", [](const Args& a) { return a.ndim("self") >= 2; }},
    {"native_svdvals", [](const Args& a) { return a.ndim("self") >= 2; }},
    {"native_svd", [](const Args& a) { return a.ndim("self") >= 2; }},
    {"native_pinv", [](const Args& a) { return a.ndim("self") >= 2; }},
    {"native_qr", [](const Args& a) { return a.ndim("self") >= 2 && a.in("mode", 0, 2); }},
    {"native_eigh", [](const Args& a) { return a.is_square("self"); }},
    {"native_eig", [](const Args& a) { return a.is_square("self"); }},
    {"native_det", [](const Args& a) { return a.is_square("self"); }},
    {"native_slogdet", [](const Args& a) { return a.is_square("self"); }},
    {"native_inv", [](const Args& a) { return a.is_square("self"); }},
    {"native_solve", [](const Args& a) { return solves(a, "self"); }},
    {"native_lu_solve", [](const Args& a) { return solves(a, "LU"); }},
    {"native_householder", reflects},
    {"native_nll_loss", loses},
    {"native_cross_entropy", loses},
    {"nll_loss_backward", [](const Args& a) { return loses_back(a); }},
    {"cross_entropy_backward",
     [](const Args& a) {
       return loses_back(a) && a.same_sizes("lse", "target") && a.is_kept("lse", "input");
     }},
    {"native_ctc_loss", aligns},
    {"ctc_loss_backward", aligns_back},
    {"log1p_exp", always},
    {"matmul_stack", multiplies},
    {"linear_rows", is_linear},
    {"native_batch_norm", normalizes_channels},
    {"batch_norm_backward", normalizes_channels_back},
    {"native_layer_norm",
     [](const Args& a) {
       return normalizes_rows(a) && a.is_absent_or("bias", a.ints("normalized_shape")) &&
              (!a.has("weight") || !a.has("bias") || a.same_dtype("weight", "bias"));
     }},
    {"layer_norm_backward",
     [](const Args& a) {
       return normalizes_rows_back(a, {"mean", "rstd"});
     }},
    {"native_rms_norm", normalizes_rows},
    {"rms_norm_backward", [](const Args& a) { return normalizes_rows_back(a, {"rstd"}); }},
    {"native_group_norm", groups_channels},
    {"group_norm_backward", groups_channels_back},
    {"max_pool2d_backward", [](const Args& a) { return pools_back(a, true); }},
    {"avg_pool2d_backward", [](const Args& a) { return pools_back(a, false); }},
    {"adaptive_max_pool2d_backward", pools_adaptive_back},
    {"adaptive_avg_pool2d_backward", pools_adaptive_back},
    {"take_maxima", [](const Args& a) { return a.ndim("self") >= 2; }},
    {"take_maxima_backward", [](const Args& a) { return a.ndim("self") >= 2; }},
    {"fake_quantize", quantizes},
    {"fake_quantize_mask", quantizes},
    {"native_dropout", always},
    {"mask_scale",
     [](const Args& a) { return is_float(a.dtype("self")) && a.dtype("mask") == Dtype::kBool; }},
    {"recurrent_layer", [](const Args& a) { return a.ndim("gates") == 2; }},
    {"recurrent_layer_backward", recurs_back},
    {"upsample2d", resizes},
    {"upsample2d_backward", resizes_back},
    {"native_softmax", [](const Args& a) { return a.is_dim("dim", a.ndim("self")); }},
    {"native_log_softmax", [](const Args& a) { return a.is_dim("dim", a.ndim("self")); }},
    {"softmax_backward", has_softmax},
    {"log_softmax_backward", has_softmax},
    {"select_backward", selects_back},
    {"select_ranks", selects_ranks},
    {"slice_backward", slices_back},
    {"diagonal_backward", takes_diagonal_back},
    {"as_strided_put", [](const Args& a) { return is_at_least(a.sizes("self"), 0); }},
    {"restride", changes_strides},
};

const Guard* find_guard(const OpSchema& s) {
  for (const Guard& guard : kGuards)
    if (strcmp(guard.op, s.name) == 0) return &guard;
  return nullptr;
}

}  // namespace

bool has_guard(const OpSchema& s) {
  return !s.internal || s.kind == OpKind::kElementwise || find_guard(s);
}

bool is_guarded(const OpSchema& s, const Value* args) {
  if (!s.internal) return true;
  if (const Guard* const guard = find_guard(s)) return guard->holds(Args(s, args));
  return s.kind == OpKind::kElementwise;
}

}  // namespace TT_NS
