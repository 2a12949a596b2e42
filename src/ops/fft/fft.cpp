// Fourier transforms along one dimension: the primitives and what PyTorch makes of them.
#include "ops/fft/fft.h"
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "plan/fft_build.h"

#include <math.h>

namespace TT_NS::impl {

constexpr double kPi = 3.14159265358979323846;

// ---- primitives ----

// The transform of a dense tensor by the kernel.
static TensorRef run_plan(const Tensor& self, int64_t d, FftKind kind, int64_t n, bool inverse,
                          double scale) {
  TensorRef x = dense_input(self);
  Shape shape(self.sizes());
  shape[d] = kind == kFftReal ? n / 2 + 1 : n;
  const Dtype real = real_of(self.dtype);
  const Dtype result = kind == kFftHermitian ? real : complex_of(real);
  checked_numel(shape, result, "result");
  TensorRef out = new_tensor(shape, result, self.device);
  if (out->numel == 0) return out;
  int64_t inner = 1;
  for (int64_t k = d + 1; k < self.ndim; k++) inner *= self.size(k);
  FftPlan plan;
  build_fft(&plan, int32_t(real), kind, inverse, self.numel / self.size(d) / inner, n, inner,
            scale);
  plan.math = ctx().cuda_math;
  const int64_t threads = self.numel > kParallelGrain ? pool_threads(ctx().rt->pool) : 1;
  Workspace rooms(build_rooms(&plan.rooms, fft_room_bytes(&plan), threads), self.device);
  Workspace tables(fft_table_bytes(&plan), self.device);
  Workspace middle(fft_middle_bytes(&plan), self.device);
  Workspace packed(fft_packed_bytes(&plan), self.device);
  plan.in = x->data;
  plan.out = out->data;
  plan.tables = tables.data();
  plan.middle = middle.data();
  plan.packed = packed.data();
  plan.rooms.memory = rooms.data();
  launch_stages(kernel_fft, self.device, &plan.run);
  return out;
}

// Bluestein's algorithm by transforms of a smooth length, along the last dimension: with the chirp
// c[j] = exp(-pi i j^2 / n), y[k] = c[k] sum_j (x[j] c[j]) conj c[k - j].
static TensorRef chirp_transform(const Tensor& x, bool inverse, double scale) {
  const int64_t n = x.size(-1);
  const int64_t m = fft_smooth_length(2 * n - 1);
  checked_numel(Ints(&m, 1), Dtype::kC128, "n");
  TensorRef chirp = new_tensor(Ints(&n, 1), Dtype::kC128, kCpuDevice);
  TensorRef kernel = op::zeros(Ints(&m, 1), Dtype::kC128, kCpuDevice);
  double* c = chirp->as<double>();
  double* filter = kernel->as<double>();
  int64_t square = 0;  // j^2 modulo 2 n
  for (int64_t j = 0; j < n; j++) {
    const double angle = kPi * double(square) / double(n);
    c[2 * j] = cos(angle);
    c[2 * j + 1] = inverse ? sin(angle) : -sin(angle);
    for (int64_t at : {j, j ? m - j : 0}) {
      filter[2 * at] = c[2 * j];
      filter[2 * at + 1] = -c[2 * j + 1];
    }
    square = (square + 2 * j + 1) % (2 * n);
  }
  note_host_write(*chirp);
  note_host_write(*kernel);
  auto placed = [&](const Tensor& t) {
    TensorRef typed = as_dtype(TensorRef::share(&t), x.dtype);
    return x.device == kCpuDevice ? std::move(typed) : op::to_device(*typed, x.device);
  };
  chirp = placed(*chirp);
  TensorRef spectrum = op::fft_c2c(*placed(*kernel), -1, false, 1.0 / double(m));
  const int64_t behind[2] = {0, m - n};
  TensorRef padded = op::constant_pad_nd(*op::mul(x, *chirp), behind);
  TensorRef product = op::mul(*op::fft_c2c(*padded, -1, false, 1), *spectrum);
  TensorRef y = op::slice(*op::fft_c2c(*product, -1, true, scale), -1, 0, n);
  return op::mul(*y, *chirp);
}

static TensorRef moved_last(const Tensor& t, int64_t d) {
  return d == t.ndim - 1 ? TensorRef::share(&t) : op::transpose(t, d, t.ndim - 1);
}

// A real transform by a complex one.
static TensorRef by_complex(const Tensor& x, int64_t d, FftKind kind, int64_t n, bool inverse,
                            double scale) {
  if (kind == kFftReal) {
    TensorRef y = op::fft_c2c(*op::to_dtype(x, complex_of(x.dtype)), d, inverse, scale);
    return op::contiguous(*op::slice(*y, d, 0, n / 2 + 1));
  }
  const Ints along(&d, 1);
  TensorRef mirrored = op::conj(*op::flip(*op::slice(x, d, 1, (n + 1) / 2), along));
  const Tensor* const parts[2] = {&x, mirrored.get()};
  return op::contiguous(*op::real(*op::fft_c2c(*op::cat(parts, d), d, inverse, scale)));
}

// Long transforms run along the last dimension and on lengths without large prime factors.
static TensorRef transform(const Tensor& self, int64_t dim, FftKind kind, int64_t n, bool inverse,
                           double scale) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t d = wrap_dim(dim, self.ndim);
  const bool smooth = is_fft_smooth(n);
  if (self.numel == 0 || n <= (smooth ? kMaxFftTile : kMaxFftChirp))
    return run_plan(self, d, kind, n, inverse, scale);
  if (kind != kFftComplex && (!smooth || n % 2))
    return by_complex(self, d, kind, n, inverse, scale);
  TensorRef x = moved_last(self, d);
  TensorRef y = smooth ? run_plan(*x, self.ndim - 1, kind, n, inverse, scale)
                       : chirp_transform(*x, inverse, scale);
  return op::contiguous(*moved_last(*y, d));
}

TensorRef fft_c2c(Call, const Tensor& self, int64_t dim, bool inverse, double scale) {
  return transform(self, dim, kFftComplex, self.size(wrap_dim(dim, self.ndim)), inverse, scale);
}
TensorRef fft_r2c(Call, const Tensor& self, int64_t dim, bool inverse, double scale) {
  return transform(self, dim, kFftReal, self.size(wrap_dim(dim, self.ndim)), inverse, scale);
}
TensorRef fft_c2r(Call, const Tensor& self, int64_t dim, int64_t n, bool inverse, double scale) {
  return transform(self, dim, kFftHermitian, n, inverse, scale);
}

}  // namespace TT_NS::impl

// ---- arguments ----

namespace TT_NS {

TensorRef fft_input(const Tensor& self, bool complex_too) {
  if (self.dtype == Dtype::kF16 || self.dtype == Dtype::kBF16)
    fail_arg(TT_DTYPE, "self", "self is {}: must be bool, integers, float32, float64 or complex",
             fmt(self.dtype));
  if (!complex_too && is_complex(self.dtype))
    fail_arg(TT_DTYPE, "self", "self is {}: must be real", fmt(self.dtype));
  if (category(self.dtype) < 2) return op::to_dtype(self, default_float());
  return TensorRef::share(&self);
}
TensorRef fft_complex_input(const Tensor& self) {
  TensorRef x = fft_input(self, true);
  return is_complex(x->dtype) ? std::move(x) : op::to_dtype(*x, complex_of(x->dtype));
}

TensorRef fft_resized(const Tensor& x, int64_t dim, int64_t n) {
  const int64_t size = x.size(dim);
  if (size == n) return TensorRef::share(&x);
  if (size > n) return op::slice(x, dim, 0, n);
  Shape pad;
  pad.resize(2 * (x.ndim - dim), 0);
  pad[pad.size() - 1] = n - size;
  return op::constant_pad_nd(x, pad);
}

double fft_scale(int64_t norm, bool inverse, double n) {
  if (norm == kFftNormOrtho) return 1 / sqrt(n);
  const bool divided = inverse ? norm == kFftNormBackward : norm == kFftNormForward;
  return divided ? 1 / n : 1;
}

void check_fft_length(int64_t n, const char* arg) {
  if (n < 1) fail_arg(TT_INVALID_ARG, arg, "the transform has length {}: must be at least 1", n);
}
int64_t fft_real_length(int64_t coefficients) {
  int64_t length;
  return mul_overflow(coefficients - 1, 2, &length) ? INT64_MAX : length;
}

}  // namespace TT_NS

namespace TT_NS::impl {

static int64_t checked_dim(const Tensor& self, int64_t dim) {
  if (self.ndim == 0) fail_arg(TT_INDEX, "self", "self is 0-dim: must have at least one dimension");
  return wrap_dim(dim, self.ndim);
}

static TensorRef complex_1d(const Tensor& self, Opt<int64_t> n, int64_t dim, int64_t norm,
                            bool inverse) {
  const int64_t d = checked_dim(self, dim);
  const int64_t length = n.or_else(self.size(d));
  check_fft_length(length, "n");
  TensorRef x = fft_resized(*fft_complex_input(self), d, length);
  return op::fft_c2c(*x, d, inverse, fft_scale(norm, inverse, double(length)));
}
static TensorRef real_1d(const Tensor& self, Opt<int64_t> n, int64_t dim, int64_t norm,
                         bool inverse) {
  const int64_t d = checked_dim(self, dim);
  const int64_t length = n.or_else(self.size(d));
  check_fft_length(length, "n");
  TensorRef x = fft_resized(*fft_input(self, false), d, length);
  return op::fft_r2c(*x, d, inverse, fft_scale(norm, inverse, double(length)));
}
static TensorRef hermitian_1d(const Tensor& self, Opt<int64_t> n, int64_t dim, int64_t norm,
                              bool inverse) {
  const int64_t d = checked_dim(self, dim);
  const int64_t length = n.or_else(fft_real_length(self.size(d)));
  check_fft_length(length, "n");
  TensorRef x = fft_resized(*fft_complex_input(self), d, length / 2 + 1);
  return op::fft_c2r(*x, d, length, inverse, fft_scale(norm, inverse, double(length)));
}

TensorRef fft_fft(Call, const Tensor& self, Opt<int64_t> n, int64_t dim, int64_t norm) {
  return complex_1d(self, n, dim, norm, false);
}
TensorRef fft_ifft(Call, const Tensor& self, Opt<int64_t> n, int64_t dim, int64_t norm) {
  return complex_1d(self, n, dim, norm, true);
}
TensorRef fft_rfft(Call, const Tensor& self, Opt<int64_t> n, int64_t dim, int64_t norm) {
  return real_1d(self, n, dim, norm, false);
}
TensorRef fft_irfft(Call, const Tensor& self, Opt<int64_t> n, int64_t dim, int64_t norm) {
  return hermitian_1d(self, n, dim, norm, true);
}
TensorRef fft_hfft(Call, const Tensor& self, Opt<int64_t> n, int64_t dim, int64_t norm) {
  return hermitian_1d(self, n, dim, norm, false);
}
TensorRef fft_ihfft(Call, const Tensor& self, Opt<int64_t> n, int64_t dim, int64_t norm) {
  return real_1d(self, n, dim, norm, true);
}

// ---- frequencies ----

static TensorRef divided(TensorRef numbers, int64_t n, double d) {
  return op::mul(*numbers, 1 / (double(n) * d));
}
static Dtype frequency_dtype(int64_t n, Dtype dtype) {
  if (n < 0) fail_arg(TT_INVALID_ARG, "n", "n is {}: must not be negative", n);
  if (dtype == Dtype::kNone) return default_float();
  if (!is_differentiable(dtype))
    fail_arg(TT_DTYPE, "dtype", "dtype is {}: must be floating or complex", fmt(dtype));
  return dtype;
}
TensorRef fft_fftfreq(Call, int64_t n, double d, Dtype dtype, Opt<Device> device) {
  const Dtype type = frequency_dtype(n, dtype);
  TensorRef low = op::arange(0, n - n / 2, 1, type, device);
  TensorRef high = op::arange(-(n / 2), 0, 1, type, device);
  const Tensor* const parts[2] = {low.get(), high.get()};
  return divided(op::cat(parts, 0), n, d);
}
TensorRef fft_rfftfreq(Call, int64_t n, double d, Dtype dtype, Opt<Device> device) {
  const Dtype type = frequency_dtype(n, dtype);
  return divided(op::arange(0, n / 2 + 1, 1, type, device), n, d);
}

static TensorRef shifted(const Tensor& self, Ints dim, bool back) {
  const uint64_t mask = dim_mask(dim, self.ndim, true);
  Shape dims, shifts;
  for (int64_t d = 0; d < self.ndim; d++)
    if (mask >> d & 1) {
      dims.push_back(d);
      shifts.push_back(back ? self.size(d) - self.size(d) / 2 : self.size(d) / 2);
    }
  return dims.size() ? op::roll(self, shifts, dims) : op::clone(self);
}
TensorRef fft_fftshift(Call, const Tensor& self, Ints dim) { return shifted(self, dim, false); }
TensorRef fft_ifftshift(Call, const Tensor& self, Ints dim) { return shifted(self, dim, true); }

}  // namespace TT_NS::impl
