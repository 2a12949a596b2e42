// Eigenvalues and eigenvectors.
#include "cpu/decompose.h"
#include "ops/linalg/matrices.h"

namespace TT_NS::impl {

// From here on tt's divide and conquer is faster, and LAPACK.
constexpr int64_t kOwnEigh = 40;
constexpr int64_t kLargeEigh = 64;
// Groups of matrices pay while their rooms stay in the second-level cache.
constexpr int64_t kMostEighRoom = 512 << 10;

struct EighPlan {
  Dtype dtype;
  int64_t batch, n;
  BatchData a, values;
  int32_t* info;
  bool upper, vectors;
};
static void compute_eigh(const EighPlan& p) {
  for (int64_t i = 0; i < p.batch; i++) {
    p.info[i] = 1;
    if (are_finite(p.dtype, p.a.at(i), p.a.step))
      p.info[i] = int32_t((decomposes(p.dtype) ? own_eigh : lapack_eigh)(
          p.dtype, p.n, p.a.at(i), p.values.at(i), p.upper, p.vectors));
  }
}
constexpr Kernel kLapackEigh = lapack_kernel<EighPlan, compute_eigh>("lapack_eigh");

static TensorPair eigh_large(const Tensor& self, bool upper, bool vectors) {
  const TensorRef a = by_columns(self);
  const int64_t n = a->size(-1);
  TensorRef values = new_tensor(vector_shape(batch_of(*a), n), real_of(self.dtype), a->device);
  const TensorRef info = op::zeros(batch_of(*a), Dtype::kI32, a->device);
  const EighPlan plan = {.dtype = a->dtype,
                         .batch = info->numel,
                         .n = n,
                         .a = matrices_of(*a),
                         .values = vectors_of(*values),
                         .info = info->as<int32_t>(),
                         .upper = upper,
                         .vectors = vectors};
  launch(kLapackEigh, kCpuDevice, &plan, 1);
  check_info(*info, kNoResult);
  const int64_t none[1] = {0};
  TensorRef basis = new_tensor(vectors ? self.sizes() : Ints(none, 1), self.dtype, self.device);
  if (vectors) copy_elements(*basis, *transposed(*a));
  return {std::move(values), std::move(basis)};
}

TensorPair native_eigh(Call, const Tensor& self, bool upper, bool vectors) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t n = self.size(-1);
  if (uses_lapack(self, decomposes(self.dtype) ? kOwnEigh : kLargeEigh))
    return eigh_large(self, upper, vectors);
  const int64_t batch = numel_of(batch_of(self));
  const int64_t threads = pool_threads(ctx().rt->pool);
  const bool small = n <= kLargeEigh;  // others may overflow the product
  const int64_t numbers = small ? eigh_lanes_work(n, is_complex(self.dtype), vectors) : 0;
  const int64_t room_bytes = numbers * 8 * kMatrixGroup;
  const bool groups =
      small && self.is_cpu() && batch >= kMatrixGroup && room_bytes <= kMostEighRoom;
  const bool single = real_of(self.dtype) == Dtype::kF32;
  const bool floats = groups && single;
  const TensorRef a = floats ? dense_input(self) : working_copy(self, precise(self.dtype));
  TensorRef values = new_tensor(vector_shape(batch_of(self), n), Dtype::kF64, self.device);
  const int64_t none[1] = {0};
  TensorRef basis = new_tensor(vectors ? self.sizes() : Ints(none, 1), a->dtype, self.device);
  const TensorRef info = new_tensor(batch_of(self), Dtype::kI32, self.device);
  if (values->numel) {
    MatrixPlan plan = matrix_plan(*a, batch, 10 * n * n * n);
    one_stage(&plan.run, batch, round_up(row_grain(10 * n * n * n), kMatrixGroup));
    plan.work_size = groups ? 0 : eigh_work(n, plan.complex);
    const TensorRef work = new_scratch(batch * plan.work_size * 8, self.device);
    plan.work = reinterpret_cast<double*>(work->data);
    const Workspace rooms(build_rooms(&plan.rooms, groups ? room_bytes : 0, threads), self.device);
    plan.rooms.memory = rooms.data();
    plan.floats = floats ? reinterpret_cast<const float*>(a->data) : nullptr;
    plan.upper = upper;
    plan.vectors = vectors;
    plan.single = single;
    plan.b = doubles(*basis);
    plan.w = doubles(*values);
    plan.info = info->as<int32_t>();
    launch_stages(kernel_eigh, self.device, &plan.run);
    check_info(*info, kNoResult);
  }
  return {converted(std::move(values), real_of(self.dtype)),
          converted(std::move(basis), self.dtype)};
}

TensorPair linalg_eigh(Call, const Tensor& self, int64_t UPLO) {
  check_square(self, "self");
  return op::native_eigh(self, UPLO == kTriangleU, true);
}
TensorRef linalg_eigvalsh(Call, const Tensor& self, int64_t UPLO) {
  check_square(self, "self");
  return op::native_eigh(self, UPLO == kTriangleU, is_tracked(self)).first;
}

// Column k of real matrices' vectors is the real part of a pair's first one, k + 1 the imaginary
// part.
template <class T> void unpack_pairs(int64_t n, const T* w, const T* v, T* values, T* basis) {
  for (int64_t k = 0; k < n; k++) {
    values[2 * k] = w[k];
    values[2 * k + 1] = w[n + k];
  }
  for (int64_t k = 0; basis && k < n; k++) {
    const bool paired = w[n + k] != 0 && k + 1 < n;
    for (int64_t i = 0; i < n; i++) {
      const T re = v[k * n + i];
      const T im = paired ? v[(k + 1) * n + i] : 0;
      basis[2 * (k * n + i)] = re;
      basis[2 * (k * n + i) + 1] = im;
      if (!paired) continue;
      basis[2 * ((k + 1) * n + i)] = re;
      basis[2 * ((k + 1) * n + i) + 1] = -im;
    }
    if (paired) k++;
  }
}
struct EigPlan {
  Dtype dtype;
  int64_t batch, n;
  BatchData a;
  BatchData v;  // of real matrices: their eigenvectors as LAPACK has them
  BatchData values, basis;
  char* parts;  // of real matrices: the eigenvalues as LAPACK has them
  int32_t* info;
  bool vectors;
};
template <class T> void compute_real_eig(const EigPlan& p, int64_t i) {
  T* const v = reinterpret_cast<T*>(p.v.at(i));
  T* const parts = reinterpret_cast<T*>(p.parts);
  p.info[i] = int32_t(lapack_eig(p.dtype, p.n, p.a.at(i), parts, p.vectors ? v : nullptr));
  unpack_pairs(p.n, parts, v, reinterpret_cast<T*>(p.values.at(i)),
               p.vectors ? reinterpret_cast<T*>(p.basis.at(i)) : nullptr);
}
static void compute_eig(const EigPlan& p) {
  for (int64_t i = 0; i < p.batch; i++) {
    p.info[i] = 1;
    if (!are_finite(p.dtype, p.a.at(i), p.a.step)) continue;
    if (p.dtype == Dtype::kF32) compute_real_eig<float>(p, i);
    else if (p.dtype == Dtype::kF64) compute_real_eig<double>(p, i);
    else
      p.info[i] = int32_t(
          lapack_eig(p.dtype, p.n, p.a.at(i), p.values.at(i), p.vectors ? p.basis.at(i) : nullptr));
  }
}
constexpr Kernel kLapackEig = lapack_kernel<EigPlan, compute_eig>("lapack_eig");

static TensorPair eig_large(const Tensor& self, bool vectors) {
  const int64_t n = self.size(-1);
  const Dtype d = complex_of(self.dtype);
  const TensorRef a = by_columns(*working_copy(self, self.dtype));
  const TensorRef v = new_tensor(a->sizes(), a->dtype, a->device);
  TensorRef values = new_tensor(vector_shape(batch_of(self), n), d, a->device);
  TensorRef basis = new_tensor(a->sizes(), d, a->device);
  const TensorRef info = op::zeros(batch_of(self), Dtype::kI32, a->device);
  const Workspace parts(2 * n * 8, a->device);
  const EigPlan plan = {.dtype = a->dtype,
                        .batch = info->numel,
                        .n = n,
                        .a = matrices_of(*a),
                        .v = matrices_of(*v),
                        .values = vectors_of(*values),
                        .basis = matrices_of(*basis),
                        .parts = parts.data(),
                        .info = info->as<int32_t>(),
                        .vectors = vectors};
  launch(kLapackEig, kCpuDevice, &plan, 1);
  check_info(*info, kNoResult);
  const int64_t none[1] = {0};
  TensorRef found = new_tensor(vectors ? self.sizes() : Ints(none, 1), d, self.device);
  if (vectors) copy_elements(*found, *transposed(*basis));
  return {std::move(values), std::move(found)};
}

TensorPair native_eig(Call, const Tensor& self, bool vectors) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t n = self.size(-1);
  const Dtype d = Dtype::kC128;
  // tt's kernel, for where there is no LAPACK, chooses other factors of the eigenvectors.
  if (uses_lapack(self, 1)) return eig_large(self, vectors);
  TensorRef a = new_tensor(self.sizes(), d, self.device);
  copy_elements(*a, self);
  TensorRef values = new_tensor(vector_shape(batch_of(self), n), d, self.device);
  const int64_t none[1] = {0};
  TensorRef basis = new_tensor(vectors ? self.sizes() : Ints(none, 1), d, self.device);
  const TensorRef info = new_tensor(batch_of(self), Dtype::kI32, self.device);
  if (values->numel) {
    MatrixPlan plan = matrix_plan(*a, info->numel, 40 * n * n * n);
    plan.work_size = 6 * n;
    const TensorRef work = new_scratch(info->numel * plan.work_size * 8, self.device);
    plan.work = reinterpret_cast<double*>(work->data);
    plan.vectors = vectors;
    plan.real = !is_complex(self.dtype);
    plan.b = doubles(*basis);
    plan.w = doubles(*values);
    plan.info = info->as<int32_t>();
    launch_stages(kernel_eig, self.device, &plan.run);
    check_info(*info, kNoResult);
  }
  return {converted(std::move(values), complex_of(self.dtype)),
          converted(std::move(basis), complex_of(self.dtype))};
}

TensorPair linalg_eig(Call, const Tensor& self) {
  check_square(self, "self");
  return op::native_eig(self, true);
}
TensorRef linalg_eigvals(Call, const Tensor& self) {
  check_square(self, "self");
  return op::native_eig(self, is_tracked(self)).first;
}

}  // namespace TT_NS::impl
