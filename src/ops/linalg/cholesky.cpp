// Cholesky factors and triangular systems.
#include "ops/linalg/matrices.h"

namespace TT_NS::impl {

struct CholeskyPlan {
  Dtype dtype;
  int64_t batch, n;
  BatchData a;
  int32_t* info;
  bool upper;
};
static void compute_cholesky(const CholeskyPlan& p) {
  for (int64_t i = 0; i < p.batch; i++)
    p.info[i] = int32_t(lapack_cholesky(p.dtype, p.n, p.a.at(i), p.upper));
}
constexpr Kernel kLapackCholesky = lapack_kernel<CholeskyPlan, compute_cholesky>("lapack_cholesky");

TensorPair linalg_cholesky_ex(Call, const Tensor& self, bool upper, bool check_errors) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_square(self, "self");
  const TensorRef floats = groups_floats(self) ? dense_input(self) : TensorRef();
  TensorRef factor = floats ? new_tensor(self.sizes(), self.dtype, self.device)
                            : working_copy(self, working_dtype(self));
  TensorRef info = new_tensor(batch_of(self), Dtype::kI32, self.device);
  const int64_t n = self.size(-1);
  if (uses_lapack(self)) {  // in LAPACK's order of columns the triangles are exchanged
    const CholeskyPlan plan = {.dtype = factor->dtype,
                               .batch = info->numel,
                               .n = n,
                               .a = matrices_of(*factor),
                               .info = info->as<int32_t>(),
                               .upper = !upper};
    launch(kLapackCholesky, kCpuDevice, &plan, 1);
    factor = upper ? op::triu(*factor) : op::tril(*factor);
  } else if (info->numel) {
    MatrixPlan plan = matrix_plan(*factor, info->numel, n * n * n / 3);
    plan.upper = upper;
    plan.info = info->as<int32_t>();
    plan.floats = floats ? floats->as<float>() : nullptr;
    const Workspace rooms = group_rooms(plan, self.device, info->numel, n * n);
    launch_stages(kernel_cholesky, self.device, &plan.run);
  }
  if (check_errors) check_info(*info, kNotPositive);
  return {converted(std::move(factor), self.dtype), std::move(info)};
}
TensorRef linalg_cholesky(Call, const Tensor& self, bool upper) {
  TensorPair f = op::linalg_cholesky_ex(self, upper);
  check_info(*f.second, kNotPositive);
  return std::move(f.first);
}

struct TriangularPlan {
  Dtype dtype;
  int64_t batch, n, k;
  BatchData a, b;
  bool upper, unit;
};
static void solve_triangular(const TriangularPlan& p) {
  for (int64_t i = 0; i < p.batch; i++)
    lapack_solve_triangular(p.dtype, p.n, p.k, p.a.at(i), p.b.at(i), p.upper, false, p.unit);
}
constexpr Kernel kLapackTriangular =
    lapack_kernel<TriangularPlan, solve_triangular>("lapack_solve_triangular");

// Replaces b, (…, n, k), by the solution. All have the same batch and are dense.
static void solve_in_place(const Tensor& a, const Tensor& b, bool upper, bool unit) {
  if (!b.numel) return;
  const int64_t n = a.size(-1);
  const int64_t k = b.size(-1);
  if (uses_lapack(a)) {
    const TriangularPlan plan = {.dtype = a.dtype,
                                 .batch = b.numel / (n * k),
                                 .n = n,
                                 .k = k,
                                 .a = matrices_of(a),
                                 .b = matrices_of(b),
                                 .upper = upper,
                                 .unit = unit};
    return launch(kLapackTriangular, kCpuDevice, &plan, 1);
  }
  const int64_t batch = b.numel / (n * k);
  MatrixPlan plan = matrix_plan(a, batch, n * n * k);
  const Workspace rooms = group_rooms(plan, a.device, batch, n * (n + k));
  plan.k = k;
  plan.b = doubles(b);
  plan.upper = upper;
  plan.unit = unit;
  launch_stages(kernel_solve_triangular, a.device, &plan.run);
}

// The batch of the solution of a system with these factors.
static Shape solution_batch(const Tensor& a, const char* name, const Tensor& b, const char* b_name,
                            bool left) {
  check_square(a, name);
  if (b.ndim < 2)
    fail_arg(TT_SHAPE, b_name, "{} is {}: must have at least two dimensions", b_name, b.sizes());
  check_same_dtype(a, name, b, b_name);
  if (b.size(left ? -2 : -1) != a.size(-1))
    fail_arg(TT_SHAPE, b_name, "{} is {}, {} is {}: {} and {}.shape[{}] must be equal", name,
             a.sizes(), b_name, b.sizes(), a.size(-1), b_name, left ? -2 : -1);
  const Shape batch = broadcast_shapes(batch_of(a), batch_of(b), name, b_name);
  checked_numel(matrix_shape(batch, b.size(-2), b.size(-1)), Dtype::kC128, "result");
  checked_numel(matrix_shape(batch, a.size(-1), a.size(-1)), Dtype::kC128, name);
  return batch;
}

TensorRef linalg_solve_triangular(Call, const Tensor& self, const Tensor& other, bool upper,
                                  bool left, bool unitriangular) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const Shape batch = solution_batch(self, "self", other, "other", left);
  const TensorRef a = left ? TensorRef::share(&self) : transposed(self);
  const TensorRef b = left ? TensorRef::share(&other) : transposed(other);
  TensorRef x = working_copy(*with_batch(*b, batch), working_dtype(self));
  const TensorRef dense = cast_input(*with_batch(*a, batch), x->dtype);
  solve_in_place(*dense, *x, left ? upper : !upper, unitriangular);
  return converted(left ? std::move(x) : op::contiguous(*transposed(*x)), self.dtype);
}

TensorPair triangular_solve(Call, const Tensor& self, const Tensor& A, bool upper, bool transpose,
                            bool unitriangular) {
  const TensorRef a = transpose && A.ndim >= 2 ? transposed(A) : TensorRef::share(&A);
  TensorRef x = op::linalg_solve_triangular(*a, self, upper != transpose, true, unitriangular);
  return {std::move(x), op::clone(A)};
}

// Replaces x by the solution of L L^H x = b, where L is the factor or its adjoint.
static void solve_twice(const Tensor& factor, const Tensor& x, bool upper) {
  const TensorRef dense = cast_input(factor, x.dtype);
  const TensorRef adjoint = cast_input(*adjoint_of(factor), x.dtype);
  solve_in_place(upper ? *adjoint : *dense, x, false, false);
  solve_in_place(upper ? *dense : *adjoint, x, true, false);
}

TensorRef cholesky_solve(Call, const Tensor& self, const Tensor& input2, bool upper) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const Shape batch = solution_batch(input2, "input2", self, "self", true);
  TensorRef x = working_copy(*with_batch(self, batch), working_dtype(input2));
  solve_twice(*with_batch(input2, batch), *x, upper);
  return converted(std::move(x), self.dtype);
}
TensorRef cholesky_inverse(Call, const Tensor& self, bool upper) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_square(self, "self");
  const int64_t n = self.size(-1);
  TensorRef x = new_tensor(self.sizes(), working_dtype(self), self.device);
  copy_elements(*x, *op::expand(*op::eye(n, n, x->dtype, self.device), self.sizes()));
  solve_twice(self, *x, upper);
  return converted(std::move(x), self.dtype);
}

}  // namespace TT_NS::impl
