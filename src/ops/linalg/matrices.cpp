#include "ops/linalg/matrices.h"

#include "ops/index/nest.h"

#include "core/device_checks.h"
#include "core/graph_hooks.h"
#include "cpu/decompose.h"
#include "ops/gen/impls.h"

namespace TT_NS {

void check_precise(const Tensor& t, const char* arg) {
  const bool known = t.dtype == Dtype::kF32 || t.dtype == Dtype::kF64 || is_complex(t.dtype);
  if (!known)
    fail_arg(TT_DTYPE, arg, "{} is {}: must be float32, float64, complex64 or complex128", arg,
             fmt(t.dtype));
}
void check_matrices(const Tensor& t, const char* arg) {
  if (t.ndim < 2)
    fail_arg(TT_SHAPE, arg, "{} is {}: must have at least two dimensions", arg, t.sizes());
  check_precise(t, arg);
}
void check_square(const Tensor& t, const char* arg) {
  check_matrices(t, arg);
  if (t.size(-1) != t.size(-2))
    fail_arg(TT_SHAPE, arg, "{} is {}: its matrices must be square", arg, t.sizes());
}
void check_same_dtype(const Tensor& a, const char* a_name, const Tensor& b, const char* b_name) {
  check_same_device(a, a_name, b, b_name);
  if (a.dtype != b.dtype)
    fail_arg(TT_DTYPE, b_name, "{} is {}, {} is {}: must be equal", a_name, fmt(a.dtype), b_name,
             fmt(b.dtype));
}

Shape matrix_shape(Ints batch, int64_t m, int64_t n) {
  Shape shape(batch);
  shape.push_back(m);
  shape.push_back(n);
  return shape;
}
Shape vector_shape(Ints batch, int64_t n) {
  Shape shape(batch);
  shape.push_back(n);
  return shape;
}
TensorRef with_batch(const Tensor& t, Ints batch) {
  if (same(batch_of(t), batch)) return TensorRef::share(&t);
  return op::expand(t, matrix_shape(batch, t.size(-2), t.size(-1)));
}
TensorRef transposed(const Tensor& t) { return op::transpose(t, -2, -1); }
TensorRef adjoint_of(const Tensor& t) { return op::conj(*transposed(t)); }
TensorRef without_dim(const Tensor& t, int64_t dim) { return op::squeeze_dims(t, Ints(&dim, 1)); }

TensorRef working_copy(const Tensor& t, Dtype d) {
  TensorRef out = new_tensor(t.sizes(), d, t.device);
  copy_elements(*out, t);
  return out;
}
TensorRef converted(TensorRef t, Dtype d) { return t->dtype == d ? t : op::to_dtype(*t, d); }

MatrixPlan matrix_plan(const Tensor& a, int64_t batch, int64_t work) {
  MatrixPlan plan = {};
  one_stage(&plan.run, batch, row_grain(work));
  plan.complex = is_complex(a.dtype);
  plan.math = ctx().cuda_math;
  plan.m = a.size(-2);
  plan.n = a.size(-1);
  plan.a = doubles(a);
  return plan;
}

constexpr int64_t kMostGroupRoom = 128 << 10;  // of larger matrices, one at a time is as quick

constexpr int64_t kGroupItemBytes = kMatrixGroup * int64_t(sizeof(double));

// Whether matrices that take `numbers` doubles each are computed in groups.
static bool in_groups(Device device, int64_t batch, int64_t numbers) {
  const bool small = numbers <= kMostGroupRoom / kGroupItemBytes;
  return device.type == TT_CPU && batch >= kMatrixGroup && small;
}
bool in_groups(const Tensor& t, int64_t numbers) {
  if (!t.numel) return false;
  const int64_t batch = t.numel / (t.size(-1) * t.size(-2));
  return in_groups(t.device, batch, numbers * (is_complex(t.dtype) ? 2 : 1));
}
bool groups_floats(const Tensor& t) {
  return real_of(t.dtype) == Dtype::kF32 && in_groups(t, t.size(-1) * t.size(-2));
}
Workspace group_rooms(MatrixPlan& plan, Device device, int64_t batch, int64_t numbers) {
  if (plan.complex) numbers *= 2;
  if (!in_groups(device, batch, numbers)) return Workspace(0, device);
  one_stage(&plan.run, batch, round_up(plan.run.grain[0], kMatrixGroup));
  const int64_t room_bytes = numbers * kGroupItemBytes;
  Workspace rooms(build_rooms(&plan.rooms, room_bytes, pool_threads(ctx().rt->pool)), device);
  plan.rooms.memory = rooms.data();
  return rooms;
}

// Measured on Zen 4: between 48 and 64 of real matrices where tt's panels serve them, elsewhere 64
// to 96 of complex64, which small kernels compute in double precision, and 128 of complex128. On a
// Xeon panels of complex numbers are faster from 60 on, too.
int64_t large_above(Dtype d) {
  if (decomposes(d)) return 56;
  return d == Dtype::kC64 ? 80 : 128;
}
bool uses_lapack(const Tensor& t, int64_t above) {
  const int64_t small = min(t.size(-1), t.size(-2));
  const int64_t large = max(t.size(-1), t.size(-2));
  return t.is_cpu() && small > above && large < INT32_MAX / 64 && t.numel && lapack_is_open();
}
Dtype working_dtype(const Tensor& t, int64_t above) {
  return uses_lapack(t, above) ? t.dtype : precise(t.dtype);
}
TensorRef by_columns(const Tensor& t) {
  const TensorRef turned = transposed(t);
  TensorRef out = new_tensor(turned->sizes(), t.dtype, t.device);
  copy_elements(*out, *turned);
  return out;
}
template <class T> static bool finite(const T* p, int64_t n) {
  T odd = 0;
  for (int64_t i = 0; i < n; i++) odd += p[i] - p[i];
  return odd == 0;
}
bool are_finite(Dtype d, const char* data, int64_t bytes) {
  if (real_of(d) == Dtype::kF32) return finite(reinterpret_cast<const float*>(data), bytes / 4);
  return finite(reinterpret_cast<const double*>(data), bytes / 8);
}
void fill_nan(Dtype d, char* data, int64_t bytes) {
  const auto nan = float(kNan);
  const bool single = real_of(d) == Dtype::kF32;
  for (int64_t i = 0; single && i < bytes / 4; i++) reinterpret_cast<float*>(data)[i] = nan;
  for (int64_t i = 0; !single && i < bytes / 8; i++) reinterpret_cast<double*>(data)[i] = nan;
}

bool is_tracked(const Tensor& t) {
  // a batched tensor may hold a tracked one
  const bool may_be = t.keys & (bit(kKeyForward) | bit(kKeyVmap));
  if (may_be) return true;
  if (ctx().exclude & bit(kKeyAutograd)) return false;
  return (t.flags & kRequiresGrad) || t.grad_fn || (t.base && t.base->grad_fn);
}

Failure first_failure(const Tensor& info) {
  const TensorRef here = info.is_cpu() ? dense_input(info) : op::to_device(info, {TT_CPU, 0});
  const int32_t* p = here->as<int32_t>();
  for (int64_t i = 0; i < here->numel; i++)
    if (p[i]) return {i, p[i]};
  return {0, 0};
}
static TT_COLD void fail_info(const Failure& f, const Tensor& info, const char* what) {
  char text[160];
  int64_t n = 0;
  for (const char* part : {info.ndim ? "matrix {} of self " : "self ", what})
    for (; *part && n < int64_t(sizeof text) - 1; part++) text[n++] = *part;
  text[n] = 0;
  if (info.ndim) fail_arg(TT_LINALG, "self", text, f.matrix, f.info - 1, f.info - 1);
  fail_arg(TT_LINALG, "self", text, f.info - 1, f.info - 1);
}
// The message about a matrix; {} is a position, counted from 0.
static const char* text_of(int64_t what) {
  switch (what) {
    case kNoResult:
      return "has no result: it has elements that are not finite, or the iteration did not "
             "converge";
    case kNotPositive: return "is not positive definite: its leading block up to row {} is not";
    case kSingularLdl: return "is singular: D[{}][{}] of A = L D L^T is 0";
    default: return "is singular: U[{}][{}] of A = P L U is 0";
  }
}
static void report_info(const DeviceCheck& c, int64_t) {
  const Tensor& info = *c.values;
  const int32_t* p = info.as<int32_t>();
  for (int64_t i = 0; i < info.numel; i++)
    if (p[i]) fail_info({i, p[i]}, info, text_of(c.low));
  fail_arg(TT_LINALG, "self", "a factorization has failed");
}

void check_info(const Tensor& info, InfoText what) {
  if (info.device.type == TT_META) return;
  if (recorded_check({CheckCall::kInfo, info, "self", what})) return;
  if (TT_UNLIKELY(ctx().watched & kWatchWork) && info.is_cpu() && info.contiguous()) {
    DeviceCheck check{.op = tls.op, .arg = "self", .report = report_info, .is_info = true};
    check.values = new_alias(info);
    check.low = what;
    if (!ctx().work->check(*ctx().work, info, check)) return;
  } else {
    note_host_read(info);
  }
  const Failure f = first_failure(info);
  if (f.info) fail_info(f, info, text_of(what));
}

void impl::check_info(Call, const Tensor& info, int64_t what, Str) {
  if (info.dtype != Dtype::kI32 || !info.contiguous())
    fail_arg(TT_DTYPE, "info", "info is {}: must be int32 and contiguous", fmt(info.dtype));
  TT_NS::check_info(info, InfoText(what));
}

TensorRef checked_pivots(const Tensor& pivots, const char* arg, Ints batch, int64_t count,
                         int64_t n) {
  check_index_dtype(pivots, arg);
  const Shape want = vector_shape(batch, count);
  if (!same(pivots.sizes(), want))
    fail_arg(TT_SHAPE, arg, "{} is {}: must be {}", arg, pivots.sizes(), Ints(want));
  if (pivots.device.type == TT_META) return cast_input(pivots, Dtype::kI32);
  if (ctx().graph && pivots.is_cpu()) {
    const TensorRef wide = op::to_dtype(pivots, Dtype::kI64);
    TT_NS::check_indices(*op::abs(*wide), arg, 1, n + 1);
    return op::contiguous(*op::to_dtype(*wide, Dtype::kI32));
  }
  note_host_read(pivots);
  const TensorRef here =
      pivots.is_cpu() ? TensorRef::share(&pivots) : op::to_device(pivots, {TT_CPU, 0});
  // A copy, which no other thread can change after the check.
  const TensorRef wide = new_tensor(here->sizes(), Dtype::kI64, {TT_CPU, 0});
  copy_elements(*wide, *here);
  const int64_t* p = wide->as<int64_t>();
  for (int64_t i = 0; i < wide->numel; i++) {
    if (p[i] == 0 || p[i] > n || p[i] < -n)
      fail_arg(TT_INDEX, arg, "{} has {}: must be a row from 1 to {}", arg, p[i], n);
  }
  return cast_input(*wide, Dtype::kI32);
}

bool is_vector_batch(const Tensor& self, const Tensor& other) {
  if (other.ndim == 1) return true;
  return other.ndim == self.ndim - 1 && same(other.sizes(), self.sizes().slice(0, self.ndim - 1));
}

TensorRef new_scratch(int64_t bytes, Device device) {
  return new_tensor(Ints(&bytes, 1), Dtype::kU8, device);
}

}  // namespace TT_NS
