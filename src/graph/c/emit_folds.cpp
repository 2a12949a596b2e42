// Writes results of rows: sums, products, extremes and their positions, running ones, and order.
#include "graph/c/exporter.h"

#include <string.h>

namespace TT_NS {

namespace {

// `sum` begins with `first`, each element a changes it by `step`, and `last` is the result.
struct Fold {
  const char* name;
  const char* first;
  const char* step;
  const char* last;
};
constexpr Fold kFolds[] = {
    {"sum", "0", "sum += a;", "sum"},
    {"prod", "1", "sum *= a;", "sum"},
    {"any", "0", "sum |= a != 0;", "sum"},
    {"all", "1", "sum &= a != 0;", "sum"},
    {"max", "-INFINITY", "if (a > sum || a != a) sum = a;", "sum"},
    {"min", "INFINITY", "if (a < sum || a != a) sum = a;", "sum"},
    {"max of integers", "INT64_MIN", "if (a > sum) sum = a;", "sum"},
    {"min of integers", "INT64_MAX", "if (a < sum) sum = a;", "sum"},
    {"norm 0", "0", "sum += a != 0 ? 1.0f : 0.0f;", "sum"},
    {"norm 1", "0", "sum += fabsf(a);", "sum"},
    {"norm 2", "0", "sum += a * a;", "sqrtf(sum)"},
    {"norm", "0", "sum += powf(fabsf(a), p);", "powf(sum, 1 / p)"},
    {"largest", "0", "if (fabsf(a) > sum || a != a) sum = fabsf(a);", "sum"},
    {"smallest", "INFINITY", "if (fabsf(a) < sum || a != a) sum = fabsf(a);", "sum"},
    {"logsumexp", "0, high = -INFINITY",
     "if (a > high) {\n      sum = sum * expf(high - a) + 1;\n      high = a;\n    } else {\n"
     "      sum += a == high ? 1 : expf(a - high);\n    }",
     "high + logf(sum)"},
};

const char* norm_fold(double p) {
  if (p == 0) return "norm 0";
  if (p == 1) return "norm 1";
  if (p == 2) return "norm 2";
  if (p - p == 0) return "norm";
  return p > 0 ? "largest" : "smallest";
}
bool is_extreme(const char* fold) { return strcmp(fold, "max") == 0 || strcmp(fold, "min") == 0; }

// Returns the row for the fold that an operator names; p is the order of a norm.
const Fold& find_fold(const char* name, double p, bool as_float) {
  Text row(name);
  if (strcmp(name, "mean") == 0) row = Text("sum");
  if (strcmp(name, "norm") == 0) row = Text(norm_fold(p));
  if (is_extreme(name) && !as_float) row.add(" of integers");
  const Fold* f = kFolds;
  while (strcmp(f->name, row.c_str()) != 0) f++;
  return *f;
}

}  // namespace

// Returns the argument dim as a dimension of the value; 0 for a value without dimensions.
int64_t CExporter::dim_of(const char* name) const {
  const int64_t n = value(tensor(name)).ndim();
  const int64_t dim = integer("dim");
  return dim < 0 && n ? dim + n : dim;
}

// ---- folds ----

// Returns which dims of x, the argument self, the node folds.
SmallVec<bool, 8> CExporter::folded_dims(const IrValue& x) const {
  const bool one = node_has("dim") && arg("dim").kind == Value::kInt;
  const bool whole = !node_has("dim") || (!one && arg("dim").ints.empty());
  SmallVec<bool, 8> folded;
  for (int64_t i = 0; i < x.ndim(); i++) folded.push_back(whole);
  if (whole || !x.ndim()) return folded;
  if (one) {
    folded[dim_of("self")] = true;
    return folded;
  }
  for (const int64_t dim : arg("dim").ints) folded[dim < 0 ? dim + x.ndim() : dim] = true;
  return folded;
}

// Opens loops over the dims of x that are folded, or over the others; returns their number.
int64_t CExporter::open_dims(const IrValue& x, Span<const bool> folded, bool which) {
  int64_t n = 0;
  for (int64_t i = 0; i < x.ndim(); i++) {
    if (folded[i] != which) continue;
    open_loop(i, x.sizes[i]);
    n++;
  }
  if (!n) open_loops({});
  return n;
}

// Writes the element of the result in loops over the dims of x that are not folded. A running fold
// has an element for each position of the folded dims, too.
void CExporter::add_fold_result(Text& out, const IrValue& x, Span<const bool> folded,
                                bool is_running) {
  const IrValue& y = value(node().outs[0]);
  const bool keeps = y.ndim() == x.ndim();
  add_pointer(out, node().outs[0]);
  out.add("[0");
  for (int64_t i = 0, at = 0; i < x.ndim(); i++) {
    if (!folded[i] || is_running) out.add(" + i").add(i).add(" * ").add(y.strides[at]);
    at += !folded[i] || keeps;
  }
  out.add("]");
}

// Folds the elements of some dims, or of one dim up to each element: writes loops over the dims
// that stay around loops over the others.
void CExporter::emit_fold(const char* name, bool is_running) {
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  const bool tests = strcmp(name, "any") == 0 || strcmp(name, "all") == 0;
  const Dtype computed = tests ? x.dtype : y.dtype;
  const bool as_float = is_float(computed);
  if (!c_type(x.dtype) || !c_type(y.dtype) || (is_float(x.dtype) && !as_float))
    refuse("an argument of another dtype");
  if (!tests && !is_extreme(name) && y.dtype == Dtype::kBool) refuse("a result of bool");
  const double p = is("norm") ? number("p") : 0;
  const Fold& fold = find_fold(name, p, as_float);
  const char* type = tests || is_extreme(name) ? "int64_t" : "uint64_t";
  if (as_float) type = c_type(computed);

  const SmallVec<bool, 8> folded = folded_dims(x);
  Text store("    ");
  add_fold_result(store, x, folded, is_running);
  store.add(" = ");
  if (is_float(y.dtype)) store.add(fold.last);
  else store.add("(").add(c_type(y.dtype)).add(")(").add(fold.last).add(")");
  if (strcmp(name, "mean") == 0) {
    int64_t count = 1;
    for (int64_t i = 0; i < x.ndim(); i++) count *= folded[i] ? x.sizes[i] : 1;
    store.add(" / ").add(count).add(y.dtype == Dtype::kF64 ? ".0" : ".0f");
  }
  store.add(";\n");

  const int64_t n_around = open_dims(x, folded, false);
  if (strcmp(fold.name, "norm") == 0) {
    body_.add("    const float p = ");
    add_float(body_, p);
    body_.add(";\n");
  }
  body_.add("    ").add(tests ? "int" : type).add(" sum = ").add(fold.first).add(";\n");
  const int64_t n_inside = open_dims(x, folded, true);
  body_.add("    const ").add(type).add(" a = ");
  if (strcmp(type, c_type(x.dtype)) != 0) body_.add("(").add(type).add(")");
  add_at(body_, tensor("self"), x.ndim());
  body_.add(";\n    ").add(fold.step).add("\n");
  if (is_running) body_.add(store.span());
  close_loops(n_inside);
  if (!is_running) body_.add(store.span());
  close_loops(n_around);
}

// ---- rows ----

// Returns the row of v along dimension dim of x, in loops over x's other dims; v may lack the dim.
CExporter::Row CExporter::row_of(int32_t v, const IrValue& x, int64_t dim) {
  const IrValue& t = value(v);
  if (!c_type(t.dtype)) refuse("an argument of another dtype");
  Row row;
  add_pointer(row.first, v);
  if (!t.ndim()) return row;
  const bool lacks = t.ndim() < x.ndim();
  for (int64_t d = 0, at = 0; d < x.ndim(); d++) {
    if (d == dim && lacks) continue;
    if (d == dim) row.step = t.strides[at];
    else if (t.sizes[at] != 1) row.first.add(" + i").add(d).add(" * ").add(t.strides[at]);
    at++;
  }
  return row;
}
// Returns all elements of v as one row.
CExporter::Row CExporter::whole_row(int32_t v) {
  Row row;
  row.step = 1;
  add_address(row.first, v, true, value(v).dtype);
  return row;
}

// Opens loops over all dims of x but one; returns their number.
int64_t CExporter::open_rows(const IrValue& x, int64_t dim) {
  int64_t n = 0;
  for (int64_t d = 0; d < x.ndim(); d++) {
    if (d == dim) continue;
    open_loop(d, x.sizes[d]);
    n++;
  }
  if (!n) open_loops({});
  return n;
}
void CExporter::declare_row(const char* name, const Row& row, Dtype dtype) {
  body_.add("    const ").add(c_type(dtype)).add(" *const ").add(name);
  body_.add(" = ").add(row.first.span()).add(";\n");
}

// Writes the positions, and the values if the node has them, of extremes of rows: of the first one,
// or of the last one up to each element. nan beats all others.
void CExporter::emit_position(const char* beats, bool is_running) {
  const int32_t self = tensor("self");
  const IrValue& x = value(self);
  const bool whole = !has_arg("dim") || x.ndim() == 0;
  const int64_t dim = whole ? 0 : dim_of("self");
  const bool pair = node().outs.size() == 2;
  const int32_t positions = node().outs[pair];
  const Row row = whole ? whole_row(self) : row_of(self, x, dim);
  const int64_t n = whole ? x.numel() : x.sizes[dim];
  const bool has_nan = x.dtype == Dtype::kF32;
  const int64_t n_loops = whole ? 0 : open_rows(x, dim);
  if (whole) open_loops({});
  declare_row("a", row, x.dtype);
  const Row places = row_of(positions, x, dim);
  body_.add("    long best = 0;\n    for (long k = ").add(is_running ? 0 : 1).add("; k < ").add(n);
  body_.add("; k++) {\n      const ").add(c_type(x.dtype)).add(" u = a[k * ").add(row.step);
  body_.add("], v = a[best * ").add(row.step).add("];\n      if (u ").add(beats).add(" v");
  if (has_nan) body_.add(is_running ? " || u != u" : " || (u != u && v == v)");
  body_.add(") best = k;\n");
  const auto store = [&](const Row& to, const char* what) {
    body_.add("    (").add(to.first.span()).add(")[");
    if (is_running) body_.add("k * ").add(to.step);
    else body_.add("0");
    body_.add("] = ").add(what).add(";\n");
  };
  if (!is_running) body_.add("    }\n");
  Text best("a[best * ");
  best.add(row.step).add("]");
  if (pair && node().outs[0] >= 0) store(row_of(node().outs[0], x, dim), best.c_str());
  store(places, "best");
  if (is_running) body_.add("    }\n");
  close_loops(n_loops);
}

// ---- order ----

// Begins a block that declares the row `a` of self and `order`, the positions of its m least or m
// largest elements, in order. Returns the number of loops.
int64_t CExporter::begin_order(int64_t dim, bool whole, int64_t m, bool descending) {
  constexpr int64_t kFew = 32;  // as many are kept in order while the row is read
  const int32_t self = tensor("self");
  const IrValue& x = value(self);
  const Row row = whole ? whole_row(self) : row_of(self, x, dim);
  int64_t n = 1;
  if (whole) n = x.numel();
  else if (x.ndim()) n = x.sizes[dim];
  const bool keeps_few = m <= kFew && m < n;
  const char* function = keeps_few ? "least_of_row" : "order_of_row";
  const int64_t order = node_scratch(max<int64_t>(keeps_few ? m : n, 1) * 8);
  const int64_t n_loops = whole ? 0 : open_rows(x, dim);
  if (whole) open_loops({});
  declare_row("a", row, x.dtype);
  body_.add("    int64_t *const order = (int64_t *)(scratch + ").add(order).add(");\n    ");
  use("row_before", x.dtype);
  use(function, x.dtype);
  body_.add(function)
      .add("_")
      .add(name_in_functions(x.dtype))
      .add("(a, ")
      .add(row.step)
      .add(", order, ");
  if (keeps_few) body_.add(m);
  else body_.add("(int64_t *)(scratch + ").add(node_scratch(max<int64_t>(n, 1) * 8)).add(")");
  body_.add(", ").add(n).add(", ").add(int64_t(descending)).add(");\n");
  return n_loops;
}

// Writes the element at order[at] of the row and its position to element j of the results.
void CExporter::store_ordered(const char* at, int64_t dim, bool only_positions) {
  const int32_t self = tensor("self");
  const IrValue& x = value(self);
  const bool whole = !node_has("dim") && !is("select_ranks");
  const int64_t step = whole ? 1 : row_of(self, x, dim).step;
  const SmallVec<int32_t, 2>& outs = node().outs;
  const int32_t elements = only_positions ? -1 : outs[0];
  int32_t positions = -1;
  if (only_positions) positions = outs[0];
  else if (outs.size() == 2) positions = outs[1];
  const auto store = [&](int32_t v, bool position) {
    const Row to = row_of(v, x, dim);
    body_.add("    (").add(to.first.span()).add(")[j * ").add(to.step).add("] = ");
    if (position) body_.add("order[").add(at).add("];\n");
    else body_.add("a[order[").add(at).add("] * ").add(step).add("];\n");
  };
  if (elements >= 0) store(elements, false);
  if (positions >= 0) store(positions, true);
}

void CExporter::emit_sort(bool only_positions) {
  const IrValue& x = value(tensor("self"));
  const int64_t dim = dim_of("self");
  int64_t m = 1;  // a number by itself is the result for any k
  if (x.ndim()) m = node_has("k") ? integer("k") : x.sizes[dim];
  const bool descending = integer(node_has("k") ? "largest" : "descending") != 0;
  const int64_t n_loops = begin_order(dim, false, m, descending);
  body_.add("    for (long j = 0; j < ").add(m).add("; j++) {\n");
  store_ordered("j", dim, only_positions);
  body_.add("    }\n");
  close_loops(n_loops);
}

void CExporter::emit_kth() {
  const int64_t k = integer("k");
  const int64_t dim = dim_of("self");
  const int64_t n_loops = begin_order(dim, false, k, false);
  body_.add("    const long j = 0;\n");
  Text at;
  at.add(k - 1);
  store_ordered(at.c_str(), dim, false);
  close_loops(n_loops);
}

// Writes the last element of the first longest run of equal ones in order; every nan is a run.
void CExporter::emit_mode() {
  const IrValue& x = value(tensor("self"));
  const int64_t dim = dim_of("self");
  const int64_t n = x.ndim() ? x.sizes[dim] : 1;
  if (n == 0) refuse("no elements");
  const int64_t n_loops = begin_order(dim, false, n, false);
  const int64_t step = row_of(tensor("self"), x, dim).step;
  const auto element = [&](const char* at) {
    body_.add("a[order[").add(at).add("] * ").add(step).add("]");
  };
  body_.add("    const long j = 0;\n    long begin = 0, longest = 0, last = 0;\n");
  body_.add("    for (long k = 0; k < ").add(n).add("; k++) {\n      if (k + 1 < ").add(n);
  body_.add(" && ");
  element("k");
  body_.add(" == ");
  element("k + 1");
  body_.add(") continue;\n      if (k + 1 - begin > longest) {\n");
  body_.add("        longest = k + 1 - begin;\n        last = k;\n      }\n");
  body_.add("      begin = k + 1;\n    }\n");
  store_ordered("last", dim, false);
  close_loops(n_loops);
}

// Writes the median of each row: the first nan if there is one, unless nans are skipped.
void CExporter::emit_median(bool skips_nan) {
  const IrValue& x = value(tensor("self"));
  const bool whole = !node_has("dim");
  const int64_t dim = whole ? 0 : dim_of("self");
  int64_t n = 1;
  if (whole) n = x.numel();
  else if (x.ndim()) n = x.sizes[dim];
  if (n == 0) refuse("no elements");
  const int64_t n_loops = begin_order(dim, whole, n, false);
  const int64_t step = whole ? 1 : row_of(tensor("self"), x, dim).step;
  body_.add("    const long j = 0;\n    long n = ").add(n).add(";\n");
  if (x.dtype == Dtype::kF32)
    body_.add("    while (n > 0 && isnan(a[order[n - 1] * ").add(step).add("])) n--;\n");
  body_.add("    const long middle = ");
  if (skips_nan) body_.add("n > 0 ? (n - 1) / 2 : 0;\n");
  else body_.add("n < ").add(n).add(" ? n : (n - 1) / 2;\n");
  store_ordered("middle", dim, false);
  close_loops(n_loops);
}

// Writes the elements of the given ranks of each row of a matrix, or nan where the row has one.
void CExporter::emit_select_ranks() {
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  const IrValue& ranks = value(tensor("ranks"));
  const int64_t dim = x.ndim() - 1;
  const int64_t n = x.sizes[dim];
  const int64_t n_loops = begin_order(dim, false, n, false);
  const int64_t step = x.strides[dim];
  body_.add("    for (long j = 0; j < ").add(y.sizes[dim]).add("; j++) {\n    long k = (long)");
  add_pointer(body_, tensor("ranks"));
  body_.add("[");
  if (ranks.ndim() > 1) {
    add_index(body_, Ints{ranks.sizes.data(), ranks.ndim() - 1},
              Ints{ranks.strides.data(), ranks.ndim() - 1}, dim);
    body_.add(" + ");
  }
  const bool one_rank = ranks.numel() == 1 || ranks.sizes[ranks.ndim() - 1] == 1;
  body_.add("j * ").add(one_rank ? 0 : ranks.strides[ranks.ndim() - 1]).add("];\n");
  if (integer("nan_last") && x.dtype == Dtype::kF32)
    body_.add("    if (isnan(a[order[").add(n - 1).add("] * ").add(step).add("])) k = ").add(n - 1);
  body_.add(integer("nan_last") && x.dtype == Dtype::kF32 ? ";\n" : "");
  store_ordered("k", dim, false);
  body_.add("    }\n");
  close_loops(n_loops);
}

// Writes how many elements of a sorted row come before each value.
void CExporter::emit_searchsorted() {
  const IrValue& rows = value(tensor("sorted_sequence"));
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  const char* type = is_float(rows.dtype) || is_float(x.dtype) ? "float" : "int64_t";
  const bool right = integer("right") || integer("side") == 2;
  const int64_t last = rows.ndim() - 1;
  const Ints outer{rows.sizes.data(), last};
  if (!c_type(rows.dtype) || !c_type(x.dtype)) refuse("an argument of another dtype");
  open_loops(y.sizes);
  body_.add("const ").add(type).add(" v = (").add(type).add(")");
  add_at(body_, tensor("self"), y.ndim());
  body_.add(";\n    long low = 0, high = ")
      .add(rows.sizes[last])
      .add(";\n    while (low < high) {\n");
  body_.add("      const long middle = (low + high) / 2;\n      const long at = ");
  const auto row = [&](const char* name, const char* at) {
    const IrValue& t = value(tensor(name));
    add_pointer(body_, tensor(name));
    body_.add("[");
    add_index(body_, outer, Ints{t.strides.data(), last}, last);
    body_.add(" + ").add(at).add(" * ").add(t.strides[last]).add("];\n");
  };
  if (has_arg("sorter")) {
    body_.add("(long)");
    row("sorter", "middle");
  } else {
    body_.add("middle;\n");
  }
  body_.add("      const ").add(type).add(" u = (").add(type).add(")");
  row("sorted_sequence", "at");
  body_.add("      if (u ").add(right ? ">" : ">=").add(" v) high = middle;\n");
  body_.add("      else low = middle + 1;\n    }\n    ");
  add_at(body_, node().outs[0], y.ndim());
  body_.add(" = (").add(c_type(y.dtype)).add(")low;\n");
  close_loops(y.ndim());
}

// Writes whether the list has each element.
void CExporter::emit_isin() {
  const IrValue& x = value(tensor("elements"));
  const IrValue& y = value(node().outs[0]);
  const int32_t list = tensor("test_elements");
  const char* type = is_float(x.dtype) || is_float(value(list).dtype) ? "float" : "int64_t";
  if (!c_type(x.dtype)) refuse("an argument of another dtype");
  const Row row = whole_row(list);
  open_loops(y.sizes);
  body_.add("const ").add(type).add(" v = (").add(type).add(")");
  add_at(body_, tensor("elements"), y.ndim());
  body_.add(";\n    int some = 0;\n    for (long j = 0; j < ").add(value(list).numel());
  body_.add("; j++) some |= (").add(type).add(")(").add(row.first.span()).add(")[j] == v;\n    ");
  add_at(body_, node().outs[0], y.ndim());
  body_.add(integer("invert") ? " = !some;\n" : " = some != 0;\n");
  close_loops(y.ndim());
}

}  // namespace TT_NS
