// LU factors of matrices, and what they give: solutions, inverses, determinants.
#include "cpu/decompose.h"
#include "ops/linalg/matrices.h"

#include <string.h>

namespace TT_NS::impl {

struct Factors {
  TensorRef lu;      // of the working dtype
  TensorRef pivots;  // int32, from 1
  TensorRef info;
  TensorRef det;  // (…, 6) doubles: the determinant, its sign, the logarithm of its modulus
};

// The determinant of the factors, its sign and the logarithm of its modulus, as the kernel writes
// them.
static void write_determinant(int64_t n, int64_t parts, const double* a, const int32_t* pivots,
                              double* out) {
  double sign[2] = {1, 0};
  double det[2] = {1, 0};
  double log = 0;
  const auto multiply = [](double* x, double re, double im) {
    const double first = x[0] * re - x[1] * im;
    x[1] = x[0] * im + x[1] * re;
    x[0] = first;
  };
  for (int64_t i = 0; i < n; i++) {
    const double turn = pivots[i] == i + 1 ? 1 : -1;
    const double re = turn * a[(i * n + i) * parts];
    const double im = parts == 2 ? turn * a[(i * n + i) * parts + 1] : 0;
    const double size = libm::hypot(re, im);
    multiply(det, re, im);
    if (size == 0) sign[0] = sign[1] = 0;
    else multiply(sign, re / size, im / size);
    log += libm::log(size);
  }
  for (int64_t k = 0; k < parts; k++) {
    out[k] = det[k];
    out[2 + k] = sign[k];
  }
  out[4] = log;
}

static MatrixPlan factor_plan(const Tensor& a, const Tensor& pivots, const Tensor& info) {
  const int64_t m = a.size(-2);
  const int64_t n = a.size(-1);
  MatrixPlan plan = matrix_plan(a, info.numel, m * n * TT_NS::min(m, n));
  plan.pivots = pivots.as<int32_t>();
  plan.info = info.as<int32_t>();
  return plan;
}
static void launch_factor(MatrixPlan& plan, Device device, int64_t batch) {
  const Workspace rooms = group_rooms(plan, device, batch, plan.n * (plan.m + plan.k));
  launch_stages(kernel_lu_factor, device, &plan.run);
}
static void factor_by_kernel(const Tensor& a, const Tensor& pivots, const Tensor& info,
                             const TensorRef& det) {
  MatrixPlan plan = factor_plan(a, pivots, info);
  if (det) plan.det = doubles(*det);
  launch_factor(plan, a.device, info.numel);
}

// ---- large matrices: own_lu where it serves them; elsewhere panels of columns, factored in double
// precision, whose rows are exchanged in the whole matrix, and products of matrices (Golub & Van
// Loan, section 3.2.11) ----

constexpr int64_t kPanel = 32;   // columns that are factored one by one
constexpr int64_t kBlock = 128;  // whose panels are factored together

// Applies the pivots of a panel of columns to the columns outside the panel, from row `at` on, and
// writes the pivots and the info of the whole matrix.
struct ExchangePlan {
  uint32_t* a;
  int64_t row, begin, end;  // words: of a row; of the panel in it
  int64_t at, count;
  const int32_t *panel, *panel_info;
  int32_t *pivots, *info;
};
static void exchange_words(uint32_t* x, uint32_t* y, int64_t n) {
  constexpr int64_t kPart = 64;
  uint32_t kept[kPart];
  for (int64_t k = 0; k < n; k += kPart) {
    const size_t bytes = size_t(TT_NS::min(kPart, n - k)) * sizeof(uint32_t);
    memcpy(kept, x + k, bytes);
    memcpy(x + k, y + k, bytes);
    memcpy(y + k, kept, bytes);
  }
}
static void exchange(const ExchangePlan& p) {
  if (!*p.info && *p.panel_info) *p.info = int32_t(p.at + *p.panel_info);
  for (int64_t i = 0; i < p.count; i++) {
    const int64_t other = p.panel[i] - 1;
    p.pivots[p.at + i] = int32_t(p.at + other + 1);
    if (other == i) continue;
    uint32_t* const x = p.a + (p.at + i) * p.row;
    uint32_t* const y = p.a + (p.at + other) * p.row;
    exchange_words(x, y, p.begin);
    exchange_words(x + p.end, y + p.end, p.row - p.end);
  }
}
constexpr Kernel kExchange = lapack_kernel<ExchangePlan, exchange>("lu_exchange");

// The part of a matrix right of and below (row, column).
static TensorRef part_of(const Tensor& a, int64_t row, int64_t rows, int64_t column,
                         int64_t columns) {
  return op::narrow(*op::narrow(a, 0, row, rows), 1, column, columns);
}

// The inverse of a unit lower triangular matrix, whose other elements are not read.
static TensorRef unit_lower_inverse(const Tensor& lower, Dtype dtype) {
  const int64_t n = lower.size(0);
  const TensorRef unit = op::eye(n, n, lower.dtype, lower.device);
  return converted(op::linalg_solve_triangular(lower, *unit, false, true, true), dtype);
}

// Factors the columns [at, at + width), from row `at` on. Returns the inverse of the panel's L.
static TensorRef factor_panel(const Tensor& a, int64_t at, int64_t width, int32_t* pivots,
                              int32_t* info) {
  const int64_t words = a.item_size() / int64_t(sizeof(uint32_t));
  const TensorRef block = part_of(a, at, a.size(0) - at, at, width);
  const TensorRef panel = working_copy(*block, precise(a.dtype));
  const TensorRef exchanges = new_tensor({&width, 1}, Dtype::kI32, a.device);
  const TensorRef panel_info = new_tensor({}, Dtype::kI32, a.device);
  factor_by_kernel(*panel, *exchanges, *panel_info, {});
  op::copy_(*block, *panel);
  const ExchangePlan plan = {.a = reinterpret_cast<uint32_t*>(a.data),
                             .row = a.size(1) * words,
                             .begin = at * words,
                             .end = (at + width) * words,
                             .at = at,
                             .count = width,
                             .panel = exchanges->as<int32_t>(),
                             .panel_info = panel_info->as<int32_t>(),
                             .pivots = pivots,
                             .info = info};
  launch(kExchange, kCpuDevice, &plan, 1);
  return unit_lower_inverse(*op::narrow(*panel, 0, 0, width), a.dtype);
}

// Columns [column, end) lose what the factors of columns [at, at + width) contribute: their rows of
// U, then the rows below these up to `rows`.
static void eliminate(const Tensor& a, const Tensor& lower_inverse, int64_t at, int64_t rows,
                      int64_t column, int64_t end) {
  const int64_t width = lower_inverse.size(0);
  const int64_t columns = end - column;
  if (columns <= 0) return;
  const TensorRef right = part_of(a, at, width, column, columns);
  op::copy_(*right, *op::matmul(lower_inverse, *right));
  const int64_t below = rows - at - width;
  if (below <= 0) return;
  op::addmm_(*part_of(a, at + width, below, column, columns),
             *part_of(a, at + width, below, at, width), *right, Scalar(1.0), Scalar(-1.0));
}

// Panels of a block change the block alone; what is right of it changes once, by a product of the
// block's width.
static void factor_panels(const Tensor& a, int32_t* pivots, int32_t* info) {
  const int64_t m = a.size(0);
  const int64_t n = a.size(1);
  const int64_t steps = TT_NS::min(m, n);
  for (int64_t first = 0; first < steps; first += kBlock) {
    const int64_t end = TT_NS::min(first + kBlock, steps);
    TensorRef inverses[kBlock / kPanel];
    for (int64_t at = first, i = 0; at < end; at += kPanel, i++) {
      inverses[i] = factor_panel(a, at, TT_NS::min(kPanel, end - at), pivots, info);
      eliminate(a, *inverses[i], at, m, at + kPanel, end);
    }
    for (int64_t at = first, i = 0; at < end; at += kPanel, i++)
      eliminate(a, *inverses[i], at, end, end, n);
    if (end == n || end == m) continue;
    op::addmm_(*part_of(a, end, m - end, end, n - end),
               *part_of(a, end, m - end, first, end - first),
               *part_of(a, first, end - first, end, n - end), Scalar(1.0), Scalar(-1.0));
  }
}

struct OwnLuPlan {
  Dtype dtype;
  int64_t batch, m, n;
  BatchData a, pivots;
  int32_t* info;
};
static void compute_lu(const OwnLuPlan& p) {
  for (int64_t i = 0; i < p.batch; i++)
    own_lu(p.dtype, p.m, p.n, p.a.at(i), reinterpret_cast<int32_t*>(p.pivots.at(i)), p.info + i);
}
constexpr Kernel kOwnLu = lapack_kernel<OwnLuPlan, compute_lu>("lu_panels");

struct DeterminantPlan {
  int64_t batch, n, parts;
  BatchData lu, pivots, out;
};
static void compute_determinants(const DeterminantPlan& p) {
  for (int64_t i = 0; i < p.batch; i++)
    write_determinant(p.n, p.parts, reinterpret_cast<const double*>(p.lu.at(i)),
                      reinterpret_cast<const int32_t*>(p.pivots.at(i)),
                      reinterpret_cast<double*>(p.out.at(i)));
}
constexpr Kernel kDeterminants =
    lapack_kernel<DeterminantPlan, compute_determinants>("determinants");

static void factor_each(Factors& f, int64_t count) {
  op::zero_(*f.info);
  const int64_t sizes[] = {count, f.lu->size(-2), f.lu->size(-1)};
  const TensorRef matrices = op::view(*f.lu, {sizes, 3});
  for (int64_t i = 0; i < count; i++)
    factor_panels(*op::select(*matrices, 0, i), f.pivots->as<int32_t>() + i * f.pivots->size(-1),
                  f.info->as<int32_t>() + i);
}
static void factor_large(Factors& f) {
  const int64_t count = f.info->numel;
  if (decomposes(f.lu->dtype)) {
    const OwnLuPlan plan = {.dtype = f.lu->dtype,
                            .batch = count,
                            .m = f.lu->size(-2),
                            .n = f.lu->size(-1),
                            .a = matrices_of(*f.lu),
                            .pivots = vectors_of(*f.pivots),
                            .info = f.info->as<int32_t>()};
    launch(kOwnLu, kCpuDevice, &plan, 1);
  } else {
    factor_each(f, count);
  }
  if (!f.det) return;
  const DeterminantPlan det = {.batch = count,
                               .n = f.lu->size(-1),
                               .parts = is_complex(f.lu->dtype) ? 2 : 1,
                               .lu = matrices_of(*f.lu),
                               .pivots = vectors_of(*f.pivots),
                               .out = vectors_of(*f.det)};
  launch(kDeterminants, kCpuDevice, &det, 1);
}

static Factors new_factors(const Tensor& self, Dtype dtype) {
  Factors f;
  const Ints batch = batch_of(self);
  const int64_t steps = TT_NS::min(self.size(-2), self.size(-1));
  f.lu = new_tensor(self.sizes(), dtype, self.device);
  f.pivots = new_tensor(vector_shape(batch, steps), Dtype::kI32, self.device);
  f.info = new_tensor(batch, Dtype::kI32, self.device);
  return f;
}
// Factors of the working dtype.
static Factors factor(const Tensor& self, bool wants_det = false) {
  Factors f = new_factors(self, wants_det ? precise(self.dtype) : working_dtype(self));
  copy_elements(*f.lu, self);
  if (wants_det) f.det = new_tensor(vector_shape(batch_of(self), 6), Dtype::kF64, self.device);
  if (!f.info->numel) return f;
  if (uses_lapack(self)) {
    factor_large(f);
    return f;
  }
  factor_by_kernel(*f.lu, *f.pivots, *f.info, f.det);
  return f;
}

struct LuSolvePlan {
  Dtype dtype;
  int64_t batch, n, k;
  BatchData lu, pivots, b;
  bool adjoint;
};
// width: words of a row.
static void exchange_rows(uint32_t* rows, int64_t width, const int32_t* pivots, int64_t i) {
  const int64_t other = int64_t(pivots[i]) - 1;
  if (other != i) exchange_words(rows + i * width, rows + other * width, width);
}
static void solve_lu(const LuSolvePlan& p) {
  const int64_t width = p.k * item_size(p.dtype) / int64_t(sizeof(uint32_t));
  for (int64_t i = 0; i < p.batch; i++) {
    const auto* pivots = reinterpret_cast<const int32_t*>(p.pivots.at(i));
    const char* a = p.lu.at(i);
    char* x = p.b.at(i);
    auto* rows = reinterpret_cast<uint32_t*>(x);
    for (int64_t r = 0; !p.adjoint && r < p.n; r++) exchange_rows(rows, width, pivots, r);
    lapack_solve_triangular(p.dtype, p.n, p.k, a, x, p.adjoint, p.adjoint, !p.adjoint);
    lapack_solve_triangular(p.dtype, p.n, p.k, a, x, !p.adjoint, p.adjoint, p.adjoint);
    for (int64_t r = p.n - 1; p.adjoint && r >= 0; r--) exchange_rows(rows, width, pivots, r);
  }
}
constexpr Kernel kLapackLuSolve = lapack_kernel<LuSolvePlan, solve_lu>("lapack_lu_solve");

static void solve_large(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool adjoint) {
  const int64_t n = lu.size(-1);
  const int64_t k = b.size(-1);
  const LuSolvePlan plan = {.dtype = lu.dtype,
                            .batch = b.numel / (n * k),
                            .n = n,
                            .k = k,
                            .lu = matrices_of(lu),
                            .pivots = vectors_of(pivots),
                            .b = matrices_of(b),
                            .adjoint = adjoint};
  launch(kLapackLuSolve, kCpuDevice, &plan, 1);
}

// Replaces b, (…, n, k), by the solution. All have the same batch and are dense.
static void solve_in_place(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool adjoint) {
  if (!b.numel) return;
  if (uses_lapack(lu)) return solve_large(lu, pivots, b, adjoint);
  const int64_t n = lu.size(-1);
  const int64_t k = b.size(-1);
  const int64_t batch = b.numel / (n * k);
  MatrixPlan plan = matrix_plan(lu, batch, n * n * k);
  const Workspace rooms = group_rooms(plan, lu.device, batch, n * (n + k));
  plan.k = k;
  plan.b = doubles(b);
  plan.pivots = pivots.as<int32_t>();
  plan.adjoint = adjoint;
  launch_stages(kernel_lu_solve, lu.device, &plan.run);
}

static void check_pivoted(bool pivot) {
  if (!pivot) fail_arg(TT_INVALID_ARG, "pivot", "pivot is false: must be true");
}

// Factors of self's dtype.
static Factors factor_alone(const Tensor& self) {
  if (!groups_floats(self)) {
    Factors f = factor(self);
    f.lu = converted(std::move(f.lu), self.dtype);
    return f;
  }
  Factors f = new_factors(self, self.dtype);
  const TensorRef floats = dense_input(self);
  MatrixPlan plan = factor_plan(*f.lu, *f.pivots, *f.info);
  plan.floats = floats->as<float>();
  launch_factor(plan, self.device, f.info->numel);
  return f;
}

// Whether groups factor matrices and solve with them. They do not for one right side, for which
// lu_solve sums its products in another order.
static bool solves_in_groups(const Tensor& self, int64_t k) {
  if (!self.numel || k < 2) return false;
  const int64_t n = self.size(-1);
  return in_groups(self, n * n) && in_groups(self, n * (n + k));  // the first bounds the second
}
// Factors self, and replaces x, which is dense, of self's dtype and batch, by the solution of
// self X = x; or by the inverse, and then the factors are unspecified.
static Factors factor_and_solve(const Tensor& self, const Tensor& x, bool inverts) {
  Factors f = new_factors(self, self.dtype);
  const bool single = real_of(self.dtype) == Dtype::kF32;
  const TensorRef floats = single ? dense_input(self) : TensorRef();
  if (!single) copy_elements(*f.lu, self);
  MatrixPlan plan = factor_plan(*f.lu, *f.pivots, *f.info);
  plan.floats = single ? floats->as<float>() : nullptr;
  plan.b = doubles(x);
  plan.k = x.size(-1);
  plan.unit = inverts;
  launch_factor(plan, self.device, f.info->numel);
  return f;
}

TensorTriple linalg_lu_factor_ex(Call, const Tensor& self, bool pivot, bool check_errors) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_matrices(self, "self");
  check_pivoted(pivot);
  Factors f = factor_alone(self);
  if (check_errors) check_info(*f.info, kSingular);
  return {std::move(f.lu), std::move(f.pivots), std::move(f.info)};
}

TensorPair linalg_lu_factor(Call, const Tensor& self, bool pivot) {
  TensorTriple f = op::linalg_lu_factor_ex(self, pivot);
  return {std::move(f.first), std::move(f.second)};
}

// The same by operators that a graph has: the solution of P I I X = I is P transposed.
static TensorRef permutation_by_solving(const Tensor& lu, const Tensor& pivots) {
  const int64_t m = lu.size(-2);
  const int64_t count = TT_NS::min(m, lu.size(-1));
  const Ints batch = batch_of(lu);
  TensorRef rest = op::arange(count + 1, m + 1, 1, Dtype::kI32, Opt<Device>(lu.device));
  rest = op::expand(*rest, vector_shape(batch, m - count));
  const Tensor* const parts[] = {&pivots, rest.get()};
  const TensorRef all = op::cat({parts, 2}, -1);
  const TensorRef unit = op::eye(m, m, lu.dtype, lu.device);
  const TensorRef units = op::expand(*unit, matrix_shape(batch, m, m));
  return op::contiguous(*op::transpose(*op::native_lu_solve(*units, *all, *units, false), -2, -1));
}
// P (…, m, m) with P A[…] = A in the order of the exchanges.
static TensorRef permutation_matrix(const Tensor& lu, const Tensor& pivots) {
  const Ints batch = batch_of(lu);
  const int64_t m = lu.size(-2);
  TensorRef p = op::zeros(matrix_shape(batch, m, m), lu.dtype, lu.device);
  if (lu.device.type == TT_META || !p->numel) return p;
  if (ctx().graph && lu.is_cpu()) return permutation_by_solving(lu, pivots);
  const int64_t count = TT_NS::min(m, lu.size(-1));
  note_host_read(pivots);
  const TensorRef rows =
      pivots.is_cpu() ? TensorRef::share(&pivots) : op::to_device(pivots, {TT_CPU, 0});
  TensorRef order = new_tensor(vector_shape(batch, m), Dtype::kI64, {TT_CPU, 0});
  for (int64_t i = 0; i < order->numel / m; i++) {
    int64_t* at = order->as<int64_t>() + i * m;
    for (int64_t r = 0; r < m; r++) at[r] = r;
    for (int64_t r = 0; r < count; r++) {
      const int64_t other = TT_NS::max(int64_t(rows->as<int32_t>()[i * count + r]), int64_t(1)) - 1;
      const int64_t t = at[r];
      at[r] = at[other];
      at[other] = t;
    }
  }
  const TensorRef there = lu.is_cpu() ? std::move(order) : op::to_device(*order, lu.device);
  return op::scatter(*p, -2, *op::unsqueeze(*there, -2), Scalar(1));
}

TensorTriple lu_unpack(Call, const Tensor& lu, const Tensor& pivots, bool unpack_data,
                       bool unpack_pivots) {
  check_matrices(lu, "LU_data");
  check_same_device(lu, "LU_data", pivots, "LU_pivots");
  const int64_t m = lu.size(-2);
  const int64_t n = lu.size(-1);
  const int64_t k = TT_NS::min(m, n);
  const int64_t none[1] = {0};
  TensorTriple out;
  if (unpack_pivots) {
    MaskGuard no_grad(bit(kKeyAutograd));
    out.first = permutation_matrix(lu, *checked_pivots(pivots, "LU_pivots", batch_of(lu), k, m));
  } else {
    out.first = op::zeros(none, lu.dtype, lu.device);
  }
  if (!unpack_data) {
    out.second = op::zeros(none, lu.dtype, lu.device);
    out.third = op::zeros(none, lu.dtype, lu.device);
    return out;
  }
  TensorRef lower = op::tril(*op::narrow(lu, -1, 0, k), -1);
  out.second = op::add(*lower, *op::eye(m, k, lu.dtype, lu.device));
  out.third = op::triu(*op::narrow(lu, -2, 0, k));
  return out;
}

TensorTriple linalg_lu(Call, const Tensor& self, bool pivot) {
  TensorTriple f = op::linalg_lu_factor_ex(self, pivot);
  return op::lu_unpack(*f.first, *f.second);
}

// ---- solutions ----

static void check_rows(const Tensor& self, const char* name, const Tensor& other, bool left) {
  check_square(self, name);
  if (other.ndim < 2)
    fail_arg(TT_SHAPE, "other", "other is {}: must have at least two dimensions", other.sizes());
  check_same_dtype(self, name, other, "other");
  const int64_t rows = other.size(left ? -2 : -1);
  if (rows != self.size(-1))
    fail_arg(TT_SHAPE, "other", "{} is {}, other is {}: {} and other.shape[{}] must be equal", name,
             self.sizes(), other.sizes(), self.size(-1), left ? -2 : -1);
}

TensorRef native_lu_solve(Call, const Tensor& lu, const Tensor& pivots, const Tensor& other,
                          bool adjoint) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const Shape batch =
      broadcast_shapes(batch_of(lu), batch_of(other), "LU's batch", "other's batch");
  const int64_t n = lu.size(-1);
  const Shape shape = matrix_shape(batch, n, other.size(-1));
  checked_numel(shape, Dtype::kC128, "result");
  checked_numel(matrix_shape(batch, n, n), Dtype::kC128, "LU");
  const TensorRef rows = checked_pivots(pivots, "pivots", batch_of(lu), n, n);
  const TensorRef there = lu.is_cpu() ? rows : op::to_device(*rows, lu.device);
  const TensorRef factors = cast_input(*with_batch(lu, batch), working_dtype(lu));
  const TensorRef exchanges = dense_input(*op::expand(*there, vector_shape(batch, n)));
  TensorRef x = working_copy(*with_batch(other, batch), factors->dtype);
  solve_in_place(*factors, *exchanges, *x, adjoint);
  return converted(std::move(x), other.dtype);
}

// Solves with the factors as tensors of their own, so that they have gradients.
static TensorRef solve_by_parts(const Tensor& lu, const Tensor& pivots, const Tensor& other,
                                bool adjoint) {
  TensorTriple f = op::lu_unpack(lu, pivots);
  if (!adjoint) {
    TensorRef x = op::matmul(*transposed(*f.first), other);
    x = op::linalg_solve_triangular(*f.second, *x, false, true, true);
    return op::linalg_solve_triangular(*f.third, *x, true);
  }
  TensorRef x = op::linalg_solve_triangular(*adjoint_of(*f.third), other, false);
  x = op::linalg_solve_triangular(*adjoint_of(*f.second), *x, true, true, true);
  return op::matmul(*f.first, *x);
}

TensorRef linalg_lu_solve(Call, const Tensor& lu, const Tensor& pivots, const Tensor& other,
                          bool left, bool adjoint) {
  check_rows(lu, "LU", other, left);
  check_same_device(lu, "LU", pivots, "pivots");
  const bool flipped = left ? adjoint : !adjoint;
  const TensorRef right = left ? TensorRef::share(&other) : adjoint_of(other);
  TensorRef x = is_tracked(lu) ? solve_by_parts(lu, pivots, *right, flipped)
                               : op::native_lu_solve(lu, pivots, *right, flipped);
  return left ? std::move(x) : adjoint_of(*x);
}

TensorQuad native_solve(Call, const Tensor& self, const Tensor& other) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const Shape batch =
      broadcast_shapes(batch_of(self), batch_of(other), "self's batch", "other's batch");
  const int64_t n = self.size(-1);
  checked_numel(matrix_shape(batch, n, other.size(-1)), Dtype::kC128, "result");
  checked_numel(matrix_shape(batch, n, n), Dtype::kC128, "self");
  if (same(batch, batch_of(self)) && solves_in_groups(self, other.size(-1))) {
    TensorRef x = working_copy(*with_batch(other, batch), self.dtype);
    Factors f = factor_and_solve(self, *x, false);
    return {std::move(x), std::move(f.lu), std::move(f.pivots), std::move(f.info)};
  }
  Factors f = factor(self);
  const TensorRef factors = dense_input(*with_batch(*f.lu, batch));
  const TensorRef exchanges = dense_input(*op::expand(*f.pivots, vector_shape(batch, n)));
  TensorRef x = working_copy(*with_batch(other, batch), factors->dtype);
  solve_in_place(*factors, *exchanges, *x, false);
  return {converted(std::move(x), self.dtype), converted(std::move(f.lu), self.dtype),
          std::move(f.pivots), std::move(f.info)};
}

TensorPair linalg_solve_ex(Call, const Tensor& self, const Tensor& other, bool left,
                           bool check_errors) {
  check_square(self, "self");
  const bool vector = is_vector_batch(self, other);
  if (vector && !left)
    fail_arg(TT_INVALID_ARG, "left", "left is false, other is {}: must be matrices", other.sizes());
  const TensorRef right = vector ? op::unsqueeze(other, -1) : TensorRef::share(&other);
  check_rows(self, "self", *right, left);
  TensorQuad f = left ? op::native_solve(self, *right)
                      : op::native_solve(*transposed(self), *transposed(*right));
  if (check_errors) check_info(*f.fourth, kSingular);
  TensorRef x = left ? std::move(f.first) : transposed(*f.first);
  if (vector) x = without_dim(*x, -1);
  return {std::move(x), std::move(f.fourth)};
}

TensorRef linalg_solve(Call, const Tensor& self, const Tensor& other, bool left) {
  TensorPair f = op::linalg_solve_ex(self, other, left);
  check_info(*f.second, kSingular);
  return std::move(f.first);
}

// ---- inverses ----

static void compute_inverses(const LuSolvePlan& p) {
  for (int64_t i = 0; i < p.batch; i++)
    own_inverse(p.dtype, p.n, p.lu.at(i), reinterpret_cast<int32_t*>(p.pivots.at(i)), p.b.at(i));
}
constexpr Kernel kOwnInverse = lapack_kernel<LuSolvePlan, compute_inverses>("lu_inverse");

TensorPair native_inv(Call, const Tensor& self) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t n = self.size(-1);
  if (solves_in_groups(self, n)) {
    TensorRef x = new_tensor(self.sizes(), self.dtype, self.device);
    Factors f = factor_and_solve(self, *x, true);
    return {std::move(x), std::move(f.info)};
  }
  Factors f = factor(self);
  TensorRef x = new_tensor(self.sizes(), f.lu->dtype, self.device);
  if (uses_lapack(self) && decomposes(x->dtype)) {
    const LuSolvePlan plan = {.dtype = x->dtype,
                              .batch = f.info->numel,
                              .n = n,
                              .k = n,
                              .lu = matrices_of(*f.lu),
                              .pivots = vectors_of(*f.pivots),
                              .b = matrices_of(*x),
                              .adjoint = false};
    launch(kOwnInverse, kCpuDevice, &plan, 1);
    return {converted(std::move(x), self.dtype), std::move(f.info)};
  }
  copy_elements(*x, *op::expand(*op::eye(n, n, f.lu->dtype, self.device), self.sizes()));
  solve_in_place(*f.lu, *f.pivots, *x, false);
  return {converted(std::move(x), self.dtype), std::move(f.info)};
}
TensorPair linalg_inv_ex(Call, const Tensor& self, bool check_errors) {
  check_square(self, "self");
  TensorPair f = op::native_inv(self);
  if (check_errors) check_info(*f.second, kSingular);
  return f;
}
TensorRef linalg_inv(Call, const Tensor& self) {
  check_square(self, "self");
  TensorPair f = op::native_inv(self);
  check_info(*f.second, kSingular);
  return std::move(f.first);
}

// ---- determinants ----

// Numbers of the determinants: `at` of the six doubles, or two of them as a complex number.
static TensorRef number_of(const Tensor& det, int64_t at, Dtype d) {
  TensorRef parts = op::narrow(det, -1, at, is_complex(d) ? 2 : 1);
  TensorRef number = is_complex(d) ? op::view_as_complex(*parts) : op::select(*parts, -1, 0);
  TensorRef out = new_tensor(number->sizes(), d, det.device);
  copy_elements(*out, *number);
  return out;
}

TensorTriple native_det(Call, const Tensor& self) {
  MaskGuard no_grad(bit(kKeyAutograd));
  Factors f = factor(self, true);
  TensorRef det = number_of(*f.det, 0, self.dtype);
  return {std::move(det), converted(std::move(f.lu), self.dtype), std::move(f.pivots)};
}
TensorRef linalg_det(Call, const Tensor& self) {
  check_square(self, "self");
  return op::native_det(self).first;
}

TensorQuad native_slogdet(Call, const Tensor& self) {
  MaskGuard no_grad(bit(kKeyAutograd));
  Factors f = factor(self, true);
  TensorRef sign = number_of(*f.det, 2, self.dtype);
  TensorRef log = number_of(*f.det, 4, real_of(self.dtype));
  return {std::move(sign), std::move(log), converted(std::move(f.lu), self.dtype),
          std::move(f.pivots)};
}
TensorPair linalg_slogdet(Call, const Tensor& self) {
  check_square(self, "self");
  TensorQuad f = op::native_slogdet(self);
  return {std::move(f.first), std::move(f.second)};
}
TensorPair slogdet(Call, const Tensor& self) { return op::linalg_slogdet(self); }

TensorRef logdet(Call, const Tensor& self) {
  TensorPair f = op::linalg_slogdet(self);
  if (is_complex(self.dtype)) return op::add(*f.second, *op::log(*f.first));
  return op::masked_fill(*f.second, *op::eq(*f.first, Scalar(-1)), Scalar(kNan));
}

}  // namespace TT_NS::impl
