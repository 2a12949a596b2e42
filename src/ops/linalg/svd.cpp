// Singular values: native_svd (thin), nuclear_norm.
#include "cpu/decompose.h"
#include "ops/linalg/matrices.h"

namespace TT_NS::impl {

// LAPACK divides larger matrices and conquers, as for eigh (functors/linalg/eigh.h). The signs of
// the vectors of smaller ones follow from the steps that it takes.
constexpr int64_t kMostUndivided = 25;

struct LapackSvdPlan {
  Dtype dtype;
  int64_t batch, m, n;
  BatchData a, u, s, vh;
  int32_t* info;
  bool vectors;
};
static void compute_svd(const LapackSvdPlan& p) {
  for (int64_t i = 0; i < p.batch; i++) {
    if (!are_finite(p.dtype, p.a.at(i), p.a.step)) {
      fill_nan(p.dtype, p.s.at(i), p.s.step);
      for (const BatchData* out : {&p.u, &p.vh})
        if (p.vectors) fill_nan(p.dtype, out->at(i), out->step);
      continue;
    }
    const bool own = decomposes(p.dtype) && !is_complex(p.dtype);
    if (own && !p.vectors)
      p.info[i] = int32_t(own_svdvals(p.dtype, p.n, p.m, p.a.at(i), p.s.at(i)));
    else if (own && TT_NS::min(p.m, p.n) > kMostUndivided)
      own_svd(p.dtype, p.n, p.m, p.a.at(i), p.vh.at(i), p.s.at(i), p.u.at(i));
    else
      p.info[i] = int32_t(
          lapack_svd(p.dtype, p.m, p.n, p.a.at(i), p.u.at(i), p.s.at(i), p.vh.at(i), p.vectors));
  }
}
constexpr Kernel kLapackSvd = lapack_kernel<LapackSvdPlan, compute_svd>("lapack_svd");

// LAPACK's order of columns makes self^T of it, whose factors are those of self exchanged.
static TensorTriple svd_large(const Tensor& self, bool vectors) {
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  const int64_t k = TT_NS::min(m, n);
  const TensorRef a = working_copy(self, self.dtype);
  const int64_t none[2] = {0, 0};
  const Shape columns = vectors ? matrix_shape(batch_of(self), m, k) : Shape(Ints(none, 2));
  const Shape rows = vectors ? matrix_shape(batch_of(self), k, n) : Shape(Ints(none, 2));
  TensorRef u = new_tensor(columns, a->dtype, a->device);
  TensorRef s = new_tensor(vector_shape(batch_of(self), k), real_of(self.dtype), a->device);
  TensorRef vh = new_tensor(rows, a->dtype, a->device);
  const TensorRef info = op::zeros(batch_of(self), Dtype::kI32, a->device);
  const LapackSvdPlan plan = {.dtype = a->dtype,
                              .batch = info->numel,
                              .m = n,
                              .n = m,
                              .a = matrices_of(*a),
                              .u = matrices_of(*vh),
                              .s = vectors_of(*s),
                              .vh = matrices_of(*u),
                              .info = info->as<int32_t>(),
                              .vectors = vectors};
  launch(kLapackSvd, kCpuDevice, &plan, 1);
  check_info(*info, kNoResult);
  return {std::move(u), std::move(s), std::move(vh)};
}

// self = U diag(s) Vh with U (*, m, k), s (*, k), Vh (*, k, n), k = min(m, n). Computed in double;
// a wide matrix is decomposed by its adjoint. Without vectors only s has meaning.
static TensorTriple decomposed(const Tensor& self, bool vectors) {
  MaskGuard no_grad(bit(kKeyAutograd));
  if (self.ndim < 2)
    fail_arg(TT_SHAPE, "self", "self is {}: must have at least two dimensions", self.sizes());
  if (!is_differentiable(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be floating or complex",
             fmt(self.dtype));
  const bool complex = is_complex(self.dtype);
  const int64_t batch = numel_of(batch_of(self));
  // LAPACK gives vectors PyTorch's signs. Jacobi's rotations are faster where small matrices of a
  // batch share vectors.
  const int64_t most = batch >= kSvdFewest ? 24 : 1;
  if (self.dtype != Dtype::kF16 && self.dtype != Dtype::kBF16 && uses_lapack(self, most)) {
    const bool divides = TT_NS::min(self.size(-2), self.size(-1)) > kMostUndivided;
    if (!vectors || (divides && !complex)) return svd_large(self, vectors);
    // Vectors are unique up to a factor, which LAPACK chooses otherwise for the transpose.
    TensorTriple f = svd_large(*transposed(self), true);
    return {by_columns(*f.third), std::move(f.second), by_columns(*f.first)};
  }
  // The transpose has the same values: rows of a square matrix are read as they are.
  const bool square = self.size(-2) == self.size(-1);
  const bool wide = self.size(-2) < self.size(-1) || (square && !vectors);
  const int64_t m = self.size(wide ? -1 : -2);
  const int64_t n = self.size(wide ? -2 : -1);
  Shape shape(self.sizes());
  shape[self.ndim - 2] = n;
  shape[self.ndim - 1] = m;
  const Dtype d = complex ? Dtype::kC128 : Dtype::kF64;
  TensorRef w = new_tensor(shape, d, self.device);
  if (!wide) copy_elements(*w, *op::transpose(self, -2, -1));
  else copy_elements(*w, vectors ? *op::conj(self) : self);
  shape[self.ndim - 1] = n;
  TensorRef v = new_tensor(shape, d, self.device);
  TensorRef s = new_tensor(Ints(shape).slice(0, self.ndim - 1), Dtype::kF64, self.device);
  if (s->numel) {
    SvdPlan plan;
    one_stage(&plan.run, batch, round_up(row_grain(16 * m * n * n), kSvdGroup));
    plan.complex = complex;
    plan.vectors = vectors;
    plan.single = real_of(self.dtype) != Dtype::kF64;
    plan.m = m;
    plan.n = n;
    plan.w = reinterpret_cast<double*>(w->data);
    plan.v = reinterpret_cast<double*>(v->data);
    plan.s = s->as<double>();
    Workspace rooms(
        build_rooms(&plan.rooms, svd_room_bytes(plan, batch), pool_threads(ctx().rt->pool)),
        self.device);
    plan.rooms.memory = rooms.data();
    launch_stages(kernel_svd, self.device, &plan.run);
  }
  if (!vectors) return {std::move(w), converted(std::move(s), real_of(self.dtype)), std::move(v)};
  TensorRef columns = op::transpose(wide ? *v : *w, -2, -1);
  TensorRef rows = op::conj(wide ? *w : *v);
  auto narrow = [&](const Tensor& t, Dtype to) {
    return t.dtype == to ? op::contiguous(t) : op::contiguous(*op::to_dtype(t, to));
  };
  return {narrow(*columns, self.dtype), narrow(*s, real_of(self.dtype)), narrow(*rows, self.dtype)};
}

TensorTriple native_svd(Call, const Tensor& self) { return decomposed(self, true); }
TensorRef native_svdvals(Call, const Tensor& self) { return decomposed(self, false).second; }

// polar: U Vh, the gradient of the norm.
TensorPair native_nuclear_norm(Call, const Tensor& self) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorTriple f = op::native_svd(self);
  const int64_t last[1] = {-1};
  return {op::sum_dim(*f.second, last), op::matmul(*f.first, *f.third)};
}

TensorRef nuclear_norm(Call, const Tensor& self, Ints dim, bool keepdim) {
  if (dim.n != 2 && (dim.n || self.ndim != 2))
    fail_arg(TT_INVALID_ARG, "dim", "dim is {}, self is {}: must be two dimensions", dim,
             self.sizes());
  const int64_t rows = dim.n ? wrap_dim(dim[0], self.ndim) : 0;
  const int64_t columns = dim.n ? wrap_dim(dim[1], self.ndim) : 1;
  if (rows == columns) fail_arg(TT_INVALID_ARG, "dim", "dim is {}: its entries must differ", dim);
  Shape order, kept;
  for (int64_t d = 0; d < self.ndim; d++) {
    const bool reduced = d == rows || d == columns;
    if (!reduced) order.push_back(d);
    kept.push_back(reduced ? 1 : self.size(d));
  }
  order.push_back(rows);
  order.push_back(columns);
  TensorRef norm = op::native_nuclear_norm(*op::permute(self, order)).first;
  return keepdim ? op::reshape(*norm, kept) : std::move(norm);
}

}  // namespace TT_NS::impl
