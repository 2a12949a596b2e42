// QR decompositions and products of Householder reflections.
#include "ops/linalg/matrices.h"

namespace TT_NS::impl {

struct Reflectors {
  TensorRef a;    // of the working dtype: R, and below its diagonal the vectors
  TensorRef tau;  // of the same dtype
};

struct QrPlan {
  Dtype dtype;
  int64_t batch, m, n, k;
  BatchData a, tau;
};
static void compute_qr(const QrPlan& p) {
  for (int64_t i = 0; i < p.batch; i++) lapack_qr(p.dtype, p.m, p.n, p.a.at(i), p.tau.at(i));
}
static void compute_product(const QrPlan& p) {
  for (int64_t i = 0; i < p.batch; i++)
    lapack_householder_product(p.dtype, p.m, p.n, p.k, p.a.at(i), p.tau.at(i));
}
constexpr Kernel kLapackQr = lapack_kernel<QrPlan, compute_qr>("lapack_qr");
constexpr Kernel kLapackProduct =
    lapack_kernel<QrPlan, compute_product>("lapack_householder_product");

static Reflectors reflect(const Tensor& self) {
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  Reflectors r;
  r.a = working_copy(self, working_dtype(self));
  r.tau = new_tensor(vector_shape(batch_of(self), TT_NS::min(m, n)), r.a->dtype, self.device);
  if (!r.tau->numel) return r;
  if (uses_lapack(self)) {
    const TensorRef columns = by_columns(*r.a);
    const int64_t k = TT_NS::min(m, n);
    const QrPlan plan = {.dtype = columns->dtype,
                         .batch = r.tau->numel / k,
                         .m = m,
                         .n = n,
                         .k = k,
                         .a = matrices_of(*columns),
                         .tau = vectors_of(*r.tau)};
    launch(kLapackQr, kCpuDevice, &plan, 1);
    copy_elements(*r.a, *transposed(*columns));
    return r;
  }
  MatrixPlan plan =
      matrix_plan(*r.a, r.tau->numel / TT_NS::min(m, n), 2 * m * n * TT_NS::min(m, n));
  const Workspace work(r.tau->numel / TT_NS::min(m, n) * n * r.a->item_size(), self.device);
  plan.b = doubles(*r.tau);
  plan.work = reinterpret_cast<double*>(work.data());
  plan.work_size = n * r.a->item_size() / 8;
  launch_stages(kernel_householder_qr, self.device, &plan.run);
  return r;
}

// The first columns of the product, as many as a has: (…, m, n), tau (…, k).
static TensorRef product(const Tensor& a, const Tensor& tau) {
  TensorRef q = new_tensor(a.sizes(), a.dtype, a.device);
  if (!q->numel) return q;
  const int64_t n = a.size(-1);
  const int64_t batch = q->numel / (a.size(-2) * n);
  if (uses_lapack(a)) {
    const TensorRef columns = by_columns(a);
    const QrPlan plan = {.dtype = a.dtype,
                         .batch = batch,
                         .m = a.size(-2),
                         .n = n,
                         .k = tau.size(-1),
                         .a = matrices_of(*columns),
                         .tau = vectors_of(tau)};
    launch(kLapackProduct, kCpuDevice, &plan, 1);
    copy_elements(*q, *transposed(*columns));
    return q;
  }
  MatrixPlan plan = matrix_plan(a, batch, 2 * a.size(-2) * n * n);
  const Workspace work(batch * n * a.item_size(), a.device);
  plan.k = tau.size(-1);
  plan.b = doubles(*q);
  plan.w = doubles(tau);
  plan.work = reinterpret_cast<double*>(work.data());
  plan.work_size = n * a.item_size() / 8;
  launch_stages(kernel_householder_product, a.device, &plan.run);
  return q;
}

TensorPair native_qr(Call, const Tensor& self, int64_t mode) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t m = self.size(-2);
  const int64_t k = TT_NS::min(m, self.size(-1));
  const bool complete = mode == kQrModeComplete;
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
  const Dtype d = working_dtype(self);
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
