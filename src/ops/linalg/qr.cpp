// QR decompositions and products of Householder reflections.
#include "cpu/decompose.h"
#include "ops/linalg/matrices.h"

namespace TT_NS::impl {

struct Reflectors {
  TensorRef a;    // of the working dtype: R, and below its diagonal the vectors
  TensorRef tau;  // of the same dtype
};

// The size above which panels are faster. Measured on a Xeon: between 80 and 110 of complex64,
// which the kernel computes in double precision, and more than 110 of complex128.
static int64_t panels_above(Dtype d) {
  if (!is_complex(d)) return large_above(d);
  return d == Dtype::kC64 ? 80 : 128;
}
static bool in_panels(const Tensor& a) { return uses_lapack(a, panels_above(a.dtype)); }
static Dtype reflected_dtype(const Tensor& a) { return working_dtype(a, panels_above(a.dtype)); }

static void reflect_by_kernel(const Tensor& a, const Tensor& tau) {
  const int64_t m = a.size(-2);
  const int64_t n = a.size(-1);
  const int64_t k = TT_NS::min(m, n);
  const int64_t batch = tau.numel / k;
  MatrixPlan plan = matrix_plan(a, batch, 2 * m * n * k);
  const TensorRef work = new_scratch(batch * n * a.item_size(), a.device);
  const Workspace rooms = group_rooms(plan, a.device, batch, m * n + k);
  plan.b = doubles(tau);
  plan.work = doubles(*work);
  plan.work_size = n * a.item_size() / 8;
  launch_stages(kernel_householder_qr, a.device, &plan.run);
}

// ---- large matrices: the reflections of a panel of columns are applied together, as I - V T V^H
// (Schreiber & Van Loan, "A Storage-Efficient WY Representation for Products of Householder
// Transformations"), which is products of matrices. Panels are computed in double precision. ----

constexpr int64_t kPanel = 32;

struct Panel {
  TensorRef vectors;  // (m, w) of the working dtype: V, its upper triangle filled in
  TensorRef factor;   // (w, w): T
};

// From reflectors below the diagonal and tau, both in double precision.
static Panel panel_of(const Tensor& reflectors, const Tensor& tau, Dtype dtype) {
  const TensorRef unit =
      op::eye(reflectors.size(0), reflectors.size(1), reflectors.dtype, reflectors.device);
  const TensorRef v = op::add(*op::tril(reflectors, -1), *unit);
  // T^-1 is the upper triangle of V^H V, with 1 / tau on the diagonal. Multiplied by tau:
  const TensorRef above = op::triu(*op::matmul(*adjoint_of(*v), *v), 1);
  const TensorRef left = op::mul(*op::unsqueeze(tau, -1), *above);
  TensorRef factor = op::linalg_solve_triangular(*left, *op::diag(tau, 0), true, true, true);
  return {converted(TensorRef::share(v.get()), dtype), converted(std::move(factor), dtype)};
}

// c -= V T V^H c, or V T^H V^H c.
static void apply(const Panel& p, Tensor& c, bool adjoint) {
  const TensorRef factor = adjoint ? adjoint_of(*p.factor) : TensorRef::share(p.factor.get());
  const TensorRef along = op::matmul(*factor, *op::matmul(*adjoint_of(*p.vectors), c));
  op::addmm_(c, *p.vectors, *along, Scalar(1.0), Scalar(-1.0));
}

static TensorRef block_of(const Tensor& a, int64_t row, int64_t column, int64_t columns) {
  const TensorRef rows = op::narrow(a, 0, row, a.size(0) - row);
  return op::narrow(*rows, 1, column, columns);
}

static void reflect_panels(const Tensor& a, const Tensor& tau) {
  const int64_t n = a.size(1);
  const int64_t steps = tau.size(0);
  for (int64_t at = 0; at < steps; at += kPanel) {
    const int64_t width = TT_NS::min(kPanel, steps - at);
    const TensorRef block = block_of(a, at, at, width);
    const TensorRef panel = working_copy(*block, precise(a.dtype));
    const TensorRef of_panel = new_tensor({&width, 1}, panel->dtype, a.device);
    reflect_by_kernel(*panel, *of_panel);
    op::copy_(*block, *panel);
    op::copy_(*op::narrow(tau, 0, at, width), *of_panel);
    const int64_t rest = n - at - width;
    if (!rest) continue;
    apply(panel_of(*panel, *of_panel, a.dtype), *block_of(a, at, at + width, rest), true);
  }
}

// q, (m, n), becomes the first n columns of the product.
static void multiply_panels(const Tensor& a, const Tensor& tau, const Tensor& q) {
  const int64_t n = a.size(1);
  const int64_t steps = tau.size(0);
  op::copy_(const_cast<Tensor&>(q), *op::eye(q.size(0), n, q.dtype, q.device));
  for (int64_t at = (steps - 1) / kPanel * kPanel; at >= 0; at -= kPanel) {
    const int64_t width = TT_NS::min(kPanel, steps - at);
    const TensorRef block = working_copy(*block_of(a, at, at, width), precise(a.dtype));
    const TensorRef of_block = working_copy(*op::narrow(tau, 0, at, width), precise(a.dtype));
    apply(panel_of(*block, *of_block, a.dtype), *block_of(q, at, at, n - at), false);
  }
}

// Calls f(matrix, vector …) for each matrix of a batch.
template <class F> static void for_each_matrix(const Tensor& a, const Tensor& tau, const F& f) {
  const int64_t count = a.numel / (a.size(-1) * a.size(-2));
  const int64_t sizes[] = {count, a.size(-2), a.size(-1)};
  const int64_t vectors[] = {count, tau.size(-1)};
  const TensorRef matrices = op::view(a, {sizes, 3});
  const TensorRef taus = op::view(tau, {vectors, 2});
  for (int64_t i = 0; i < count; i++) f(i, *op::select(*matrices, 0, i), *op::select(*taus, 0, i));
}

struct OwnQrPlan {
  Dtype dtype;
  int64_t batch, m, n, k;
  BatchData a, tau, q;
};
static void compute_qr(const OwnQrPlan& p) {
  for (int64_t i = 0; i < p.batch; i++) own_qr(p.dtype, p.m, p.n, p.a.at(i), p.tau.at(i));
}
static void compute_q(const OwnQrPlan& p) {
  for (int64_t i = 0; i < p.batch; i++)
    own_q(p.dtype, p.m, p.n, p.k, p.a.at(i), p.tau.at(i), p.q.at(i));
}
constexpr Kernel kOwnQr = lapack_kernel<OwnQrPlan, compute_qr>("qr_panels");
constexpr Kernel kOwnQ = lapack_kernel<OwnQrPlan, compute_q>("q_panels");

static OwnQrPlan own_plan(const Tensor& a, const Tensor& tau) {
  OwnQrPlan p = {};
  p.dtype = a.dtype;
  p.batch = a.numel / (a.size(-2) * a.size(-1));
  p.m = a.size(-2);
  p.n = a.size(-1);
  p.k = tau.size(-1);
  p.a = matrices_of(a);
  p.tau = vectors_of(tau);
  return p;
}

static Reflectors reflect(const Tensor& self) {
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  Reflectors r;
  r.a = working_copy(self, reflected_dtype(self));
  r.tau = new_tensor(vector_shape(batch_of(self), TT_NS::min(m, n)), r.a->dtype, self.device);
  if (!r.tau->numel) return r;
  if (!in_panels(self)) {
    reflect_by_kernel(*r.a, *r.tau);
    return r;
  }
  if (decomposes(r.a->dtype)) {
    const OwnQrPlan plan = own_plan(*r.a, *r.tau);
    launch(kOwnQr, kCpuDevice, &plan, 1);
    return r;
  }
  for_each_matrix(*r.a, *r.tau,
                  [](int64_t, const Tensor& a, const Tensor& tau) { reflect_panels(a, tau); });
  return r;
}

// The first columns of the product, as many as a has: (…, m, n), tau (…, k).
static TensorRef product(const Tensor& a, const Tensor& tau) {
  TensorRef q = new_tensor(a.sizes(), a.dtype, a.device);
  if (!q->numel) return q;
  const int64_t n = a.size(-1);
  const int64_t batch = q->numel / (a.size(-2) * n);
  if (in_panels(a) && tau.size(-1) && decomposes(a.dtype)) {
    OwnQrPlan plan = own_plan(a, tau);
    plan.q = matrices_of(*q);
    launch(kOwnQ, kCpuDevice, &plan, 1);
    return q;
  }
  if (in_panels(a) && tau.size(-1)) {
    const int64_t sizes[] = {batch, a.size(-2), n};
    const TensorRef results = op::view(*q, {sizes, 3});
    for_each_matrix(a, tau, [&](int64_t i, const Tensor& one, const Tensor& of_one) {
      multiply_panels(one, of_one, *op::select(*results, 0, i));
    });
    return q;
  }
  MatrixPlan plan = matrix_plan(a, batch, 2 * a.size(-2) * n * n);
  plan.k = tau.size(-1);
  const TensorRef work = new_scratch(batch * n * a.item_size(), a.device);
  const Workspace rooms = group_rooms(plan, a.device, batch, 2 * a.size(-2) * n + plan.k);
  plan.b = doubles(*q);
  plan.w = doubles(tau);
  plan.work = doubles(*work);
  plan.work_size = n * a.item_size() / 8;
  launch_stages(kernel_householder_product, a.device, &plan.run);
  return q;
}

// Numbers of each matrix in a group of householder_qr: two matrices and tau.
static int64_t reduced_numbers(int64_t m, int64_t n) {
  const int64_t k = TT_NS::min(m, n);
  return m * n + m * k + k;
}
// Q and R of small matrices, in groups.
static TensorPair reduced_in_groups(const Tensor& self) {
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  const int64_t k = TT_NS::min(m, n);
  const TensorRef a = dense_input(self);
  TensorRef q = new_tensor(matrix_shape(batch_of(self), m, k), self.dtype, self.device);
  TensorRef r = new_tensor(matrix_shape(batch_of(self), k, n), self.dtype, self.device);
  const int64_t batch = self.numel / (m * n);
  MatrixPlan plan = matrix_plan(*a, batch, 4 * m * n * k);
  const Workspace rooms = group_rooms(plan, self.device, batch, reduced_numbers(m, n));
  plan.vectors = true;
  if (real_of(self.dtype) == Dtype::kF32) plan.floats = a->as<float>();
  plan.b = doubles(*q);
  plan.w = doubles(*r);
  launch_stages(kernel_householder_qr, self.device, &plan.run);
  return {std::move(q), std::move(r)};
}

TensorPair native_qr(Call, const Tensor& self, int64_t mode) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t m = self.size(-2);
  const int64_t k = TT_NS::min(m, self.size(-1));
  const bool complete = mode == kQrModeComplete;
  const bool reduced = mode == kQrModeReduced || (complete && k == m);
  const bool small = self.numel && in_groups(self, self.size(-1) * m);  // bounds reduced_numbers
  if (reduced && small && !in_panels(self) && in_groups(self, reduced_numbers(m, self.size(-1))))
    return reduced_in_groups(self);
  const Shape square = matrix_shape(batch_of(self), m, m);
  if (complete) checked_numel(square, Dtype::kC128, "Q");
  Reflectors r = reflect(self);
  const TensorRef upper = op::triu(*op::narrow(*r.a, -2, 0, complete ? m : k));
  TensorRef q;
  if (mode == kQrModeR) {
    const int64_t none[1] = {0};
    q = new_tensor(none, self.dtype, self.device);
  } else {
    const TensorRef vectors = op::narrow(*r.a, -1, 0, k);
    TensorRef a =
        new_tensor(matrix_shape(batch_of(self), m, complete ? m : k), r.a->dtype, self.device);
    copy_elements(*op::narrow(*a, -1, 0, k), *vectors);
    q = converted(product(*a, *r.tau), self.dtype);
  }
  return {std::move(q), converted(op::contiguous(*upper), self.dtype)};
}

TensorPair linalg_qr(Call, const Tensor& self, int64_t mode) {
  check_matrices(self, "self");
  return op::native_qr(self, mode);
}
TensorPair qr(Call, const Tensor& self, bool some) {
  return op::linalg_qr(self, some ? kQrModeReduced : kQrModeComplete);
}

TensorPair geqrf(Call, const Tensor& self) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_matrices(self, "self");
  Reflectors r = reflect(self);
  return {converted(std::move(r.a), self.dtype), converted(std::move(r.tau), self.dtype)};
}

TensorRef native_householder(Call, const Tensor& self, const Tensor& tau) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const Dtype d = reflected_dtype(self);
  return converted(product(*cast_input(self, d), *cast_input(tau, d)), self.dtype);
}

// One reflection after the other, from operators that have gradients.
static TensorRef product_by_parts(const Tensor& self, const Tensor& tau) {
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  TensorRef q = op::expand(*op::eye(m, n, self.dtype, self.device), self.sizes());
  if (!tau.size(-1)) {  // the gradient is 0
    const TensorRef all = op::ones({}, Dtype::kBool, self.device);
    return op::add(*op::masked_fill(self, *all, 0), *q);
  }
  const TensorRef vectors = op::add(*op::tril(self, -1), *op::eye(m, n, self.dtype, self.device));
  for (int64_t k = tau.size(-1) - 1; k >= 0; k--) {
    const TensorRef v = op::narrow(*vectors, -1, k, 1);
    const TensorRef factor = op::unsqueeze(*op::narrow(tau, -1, k, 1), -1);
    const TensorRef along = op::matmul(*adjoint_of(*v), *q);
    q = op::sub(*q, *op::mul(*factor, *op::matmul(*v, *along)));
  }
  return q;
}

TensorRef linalg_householder_product(Call, const Tensor& self, const Tensor& tau) {
  check_matrices(self, "self");
  check_same_dtype(self, "self", tau, "tau");
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  if (m < n) fail_arg(TT_SHAPE, "self", "self is {}: needs as many rows as columns", self.sizes());
  if (tau.ndim != self.ndim - 1 || !same(tau.sizes().slice(0, tau.ndim - 1), batch_of(self)) ||
      tau.size(-1) > n)
    fail_arg(TT_SHAPE, "tau",
             "self is {}, tau is {}: must have self's batch and at most {} columns", self.sizes(),
             tau.sizes(), n);
  if (is_tracked(self) || is_tracked(tau)) return product_by_parts(self, tau);
  return op::native_householder(self, tau);
}

}  // namespace TT_NS::impl
