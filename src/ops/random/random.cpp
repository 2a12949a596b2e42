// Random numbers. Implementations reserve counters of a generator; the C boundary returns them if
// the call fails.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "ops/index/nest.h"
#include "ops/undo.h"
#include "plan/random_build.h"

namespace TT_NS::impl {

static void run(const Kernel& k, const RandomPlan& plan, Device device) {
  if (plan.n == 0) return;
  RandomPlan p = plan;
  launch_stages(k, device, &p.run);
}

// ---- rand, randn ----

static Dtype checked_dtype(Dtype dtype, Dtype otherwise) {
  if (dtype == Dtype::kNone) dtype = otherwise;
  if (!is_differentiable(dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "dtype", "dtype is {}: must be floating or complex", fmt(dtype));
  return dtype;
}

// Fills out with value * scale + shift of the distribution, in memory order.
static TensorRef filled(RandomKind kind, TensorRef out, Generator* generator, double scale = 1,
                        double shift = 0) {
  if (out->device.type == TT_META) return out;
  const Dtype real = real_of(out->dtype);
  const bool pairs = is_complex(out->dtype);
  const int64_t n = pairs ? 2 * out->numel : out->numel;
  const Rng rng = reserve_rng(generator, random_counters(n, kind, int32_t(real)));
  RandomPlan plan;
  build_random(&plan, int32_t(real), n, rng.seed, rng.offset, out->data);
  plan.scale = scale;
  plan.shift = shift;
  plan.exponential = kind == kRandomExponential;
  if (pairs && kind == kRandomNormal) plan.scale *= 0x1.6a09e667f3bcdp-1;  // sqrt(1/2)
  if (pairs) plan.shift = 0;
  run(kind == kRandomNormal ? kernel_random_normal : kernel_random_uniform, plan, out->device);
  if (pairs && shift != 0) {
    MaskGuard no_grad(bit(kKeyAutograd));
    op::add_(*out, Scalar(shift));
  }
  return out;
}

static TensorRef random(RandomKind kind, Ints size, Dtype dtype, Opt<Device> device,
                        Generator* generator) {
  dtype = checked_dtype(dtype, default_float());
  checked_numel(size, dtype, "size");
  return filled(kind, new_tensor(size, dtype, device.or_else(kCpuDevice)), generator);
}
TensorRef rand(Call, Ints size, Dtype dtype, Opt<Device> device, Generator* generator) {
  return random(kRandomUniform, size, dtype, device, generator);
}
TensorRef randn(Call, Ints size, Dtype dtype, Opt<Device> device, Generator* generator) {
  return random(kRandomNormal, size, dtype, device, generator);
}

static TensorRef random_like(RandomKind kind, const Tensor& self, Dtype dtype, Opt<Device> device,
                             Generator* generator) {
  return filled(kind, op::empty_like(self, checked_dtype(dtype, self.dtype), device), generator);
}
TensorRef rand_like(Call, const Tensor& self, Dtype dtype, Opt<Device> device,
                    Generator* generator) {
  return random_like(kRandomUniform, self, dtype, device, generator);
}
TensorRef randn_like(Call, const Tensor& self, Dtype dtype, Opt<Device> device,
                     Generator* generator) {
  return random_like(kRandomNormal, self, dtype, device, generator);
}

// ---- in place ----

// On failure, self is unchanged.
static void overwrite(RandomKind kind, Tensor& self, Generator* generator, double scale,
                      double shift) {
  check_writable(self, "self");
  copy_elements(self, *filled(kind, new_tensor(self.sizes(), self.dtype, self.device), generator,
                              scale, shift));
  self.bump_version();
}

static void check_std(double std) {
  if (!(std >= 0)) fail_arg(TT_INVALID_ARG, "std", "std is {}: must not be negative", std);
}
static void check_drawn(const Tensor& self, bool complex_too) {
  if (!is_float(self.dtype) && !(complex_too && is_differentiable(self.dtype)))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be floating{}", fmt(self.dtype),
             complex_too ? " or complex" : "");
}

void normal_(Call, Tensor& self, double mean, double std, Generator* generator) {
  check_drawn(self, true);
  check_std(std);
  overwrite(kRandomNormal, self, generator, std, mean);
}
void uniform_(Call, Tensor& self, double low, double high, Generator* generator) {
  check_drawn(self, true);
  check_fits(Scalar(low), real_of(self.dtype), "low");
  check_fits(Scalar(high), real_of(self.dtype), "high");
  if (!(low <= high))
    fail_arg(TT_INVALID_ARG, "low", "low is {}, high is {}: low must not be above high", low, high);
  if (!libm::is_finite(high - low) || !fits(Scalar(high - low), real_of(self.dtype)))
    fail_arg(TT_INVALID_ARG, "high", "high - low is {}: {} cannot represent this value", high - low,
             fmt(self.dtype));
  overwrite(kRandomUniform, self, generator, high - low, low);
}
void exponential_(Call, Tensor& self, double lambd, Generator* generator) {
  check_drawn(self, false);
  if (!(lambd > 0)) fail_arg(TT_INVALID_ARG, "lambd", "lambd is {}: must be positive", lambd);
  overwrite(kRandomExponential, self, generator, 1 / lambd, 0);
}

// Doubles of the distribution, in the shape of self.
static TensorRef drawn_doubles(RandomKind kind, const Tensor& self, Generator* generator,
                               double scale = 1, double shift = 0) {
  return filled(kind, new_tensor(self.sizes(), Dtype::kF64, self.device), generator, scale, shift);
}
static void replace(Tensor& self, const Tensor& values) {
  copy_elements(self, values);
  self.bump_version();
}
static void check_positive(double x, const char* arg) {
  if (!(x > 0)) fail_arg(TT_INVALID_ARG, arg, "{} is {}: must be positive", arg, x);
}

void cauchy_(Call, Tensor& self, double median, double sigma, Generator* generator) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_drawn(self, false);
  check_positive(sigma, "sigma");
  check_writable(self, "self");
  constexpr double kPi = 3.14159265358979323846;
  TensorRef angle = drawn_doubles(kRandomUniform, self, generator, kPi, -kPi / 2);
  replace(self, *op::add(*op::mul(*op::tan(*angle), sigma), median));
}
void log_normal_(Call, Tensor& self, double mean, double std, Generator* generator) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_drawn(self, false);
  check_positive(std, "std");
  check_writable(self, "self");
  replace(self, *op::exp(*drawn_doubles(kRandomNormal, self, generator, std, mean)));
}
// The number of whole units in an exponential variable, and 1.
void geometric_(Call, Tensor& self, double p, Generator* generator) {
  MaskGuard no_grad(bit(kKeyAutograd));
  if (self.dtype == Dtype::kBool || is_complex(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be integer or floating",
             fmt(self.dtype));
  if (!(p > 0 && p < 1)) fail_arg(TT_INVALID_ARG, "p", "p is {}: must be in (0, 1)", p);
  check_writable(self, "self");
  TensorRef time = drawn_doubles(kRandomExponential, self, generator, -1 / libm::log1p(-p), 0);
  replace(self, *op::add(*op::floor(*time), 1));
}

// ---- normal with tensors ----

// drawn * std + mean
static TensorRef scale_and_shift(TensorRef drawn, const Operand& mean, const Operand& std,
                                 Generator* generator) {
  MaskGuard no_grad(bit(kKeyAutograd));
  if (std.t && is_complex(std.t->dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "std", "std is {}: must be real", fmt(std.t->dtype));
  const bool read = std.t && std.t->numel && std.t->device.type != TT_META;
  if (read) require_each(*op::ge(*std.t, 0), *std.t, "std", "std has negative values");
  TensorRef z = filled(kRandomNormal, std::move(drawn), generator);
  TensorRef scaled = std.t ? op::mul(*z, *std.t) : op::mul(*z, *std.s);
  TensorRef out = mean.t ? op::add(*scaled, *mean.t) : op::add(*scaled, *mean.s);
  if (out->dtype != z->dtype) out = op::to_dtype(*out, z->dtype);
  return out;
}

TensorRef normal(Call, const Tensor& mean, const Tensor& std, Generator* generator) {
  check_same_device(mean, "mean", std, "std");
  check_dtype_float(mean, "mean");
  const Shape shape = broadcast_shapes(mean.sizes(), std.sizes(), "mean", "std");
  checked_numel(shape, mean.dtype, "result");
  return scale_and_shift(new_tensor(shape, mean.dtype, mean.device), mean, std, generator);
}
TensorRef normal_mean(Call, const Tensor& mean, double std, Generator* generator) {
  check_dtype_float(mean, "mean");
  check_std(std);
  const Scalar s(std);
  return scale_and_shift(new_tensor(mean.sizes(), mean.dtype, mean.device), mean, s, generator);
}
TensorRef normal_std(Call, double mean, const Tensor& std, Generator* generator) {
  check_dtype_float(std, "std");
  const Scalar m(mean);
  return scale_and_shift(new_tensor(std.sizes(), std.dtype, std.device), m, std, generator);
}
TensorRef normal_size(Call, double mean, double std, Ints size, Dtype dtype, Opt<Device> device,
                      Generator* generator) {
  check_std(std);
  dtype = checked_dtype(dtype, default_float());
  checked_numel(size, dtype, "size");
  return filled(kRandomNormal, new_tensor(size, dtype, device.or_else(kCpuDevice)), generator, std,
                mean);
}

// ---- integers ----

static TensorRef integers(TensorRef out, int64_t low, uint64_t range, Generator* generator) {
  if (out->device.type == TT_META) return out;
  const Rng rng = reserve_rng(
      generator, random_counters(out->numel, kRandomInteger, int32_t(out->dtype), range));
  RandomPlan plan;
  build_random(&plan, int32_t(out->dtype), out->numel, rng.seed, rng.offset, out->data);
  plan.low = low;
  plan.range = range;
  run(kernel_random_integers, plan, out->device);
  return out;
}

static void check_range(int64_t low, int64_t high, Dtype d) {
  if (is_complex(d)) fail_arg(TT_NOT_IMPLEMENTED, "dtype", "dtype is {}: must be real", fmt(d));
  if (low >= high)
    fail_arg(TT_INVALID_ARG, "high", "low is {}, high is {}: low must be below high", low, high);
  const bool negative = low < 0 && (d == Dtype::kU8 || d == Dtype::kBool);
  const bool truth = d == Dtype::kBool && high > 2;
  if (negative || !fits(Scalar(low), d))
    fail_arg(TT_INVALID_ARG, "low", "low is {}: {} cannot represent this value", low, fmt(d));
  if (truth || !fits(Scalar(high - 1), d))
    fail_arg(TT_INVALID_ARG, "high", "high is {}: high - 1 is not a value of {}", high, fmt(d));
}

TensorRef randint(Call, int64_t low, int64_t high, Ints size, Dtype dtype, Opt<Device> device,
                  Generator* generator) {
  if (dtype == Dtype::kNone) dtype = Dtype::kI64;
  check_range(low, high, dtype);
  checked_numel(size, dtype, "size");
  return integers(new_tensor(size, dtype, device.or_else(kCpuDevice)), low,
                  uint64_t(high) - uint64_t(low), generator);
}
TensorRef randint_like(Call, const Tensor& self, int64_t low, int64_t high, Dtype dtype,
                       Opt<Device> device, Generator* generator) {
  if (dtype == Dtype::kNone) dtype = self.dtype;
  check_range(low, high, dtype);
  return integers(op::empty_like(self, dtype, device), low, uint64_t(high) - uint64_t(low),
                  generator);
}

// Returns the largest integer up to which a dtype represents all integers.
static int64_t counts_to(Dtype d) {
  switch (d) {
    case Dtype::kBool: return 1;
    case Dtype::kU8: return 255;
    case Dtype::kI8: return 127;
    case Dtype::kI16: return 32767;
    case Dtype::kI32: return INT32_MAX;
    case Dtype::kF16: return 1 << 11;
    case Dtype::kBF16: return 1 << 8;
    case Dtype::kF32: return 1 << 24;
    case Dtype::kF64: return int64_t(1) << 53;
    default: return INT64_MAX;
  }
}

void random_(Call, Tensor& self, int64_t low, Opt<int64_t> high, Generator* generator) {
  check_writable(self, "self");
  const int64_t last = high.has ? high.value - (high.value > INT64_MIN) : counts_to(self.dtype);
  if (high.has) check_range(low, high.value, self.dtype);
  else if (last != INT64_MAX || is_complex(self.dtype))
    check_range(low, last + (last < INT64_MAX), is_float(self.dtype) ? Dtype::kF64 : self.dtype);
  copy_elements(self, *integers(new_tensor(self.sizes(), self.dtype, self.device), low,
                                uint64_t(last) - uint64_t(low) + 1, generator));
  self.bump_version();
}

// ---- bernoulli ----

static int32_t threshold_of(double p, const char* arg, double value) {
  int32_t threshold;
  if (!random_threshold(p, &threshold))
    fail_arg(TT_INVALID_ARG, arg, "{} is {}: must be in [0, 1]", arg, value);
  return threshold;
}

static void check_probabilities(const Tensor& p) {
  if (p.numel == 0 || p.device.type == TT_META) return;
  MaskGuard no_grad(bit(kKeyAutograd));
  require_each(*op::logical_and(*op::ge(p, 0), *op::le(p, 1)), p, "self",
               "self has probabilities outside [0, 1]");
}

// Draws a tensor like self by the probabilities p, or, if that is NULL, by one threshold for all.
static TensorRef draw_bernoulli(const Tensor& self, const Tensor* p, int32_t threshold,
                                Generator* generator) {
  TensorRef out = new_tensor(self.sizes(), self.dtype, self.device);
  if (out->device.type == TT_META) return out;
  const Rng rng =
      reserve_rng(generator, random_counters(out->numel, kRandomBernoulli, int32_t(out->dtype)));
  RandomPlan plan;
  build_random(&plan, int32_t(out->dtype), out->numel, rng.seed, rng.offset, out->data);
  plan.threshold = threshold;
  if (p) {
    plan.p = p->data;
    plan.p_dtype = int32_t(p->dtype);
  }
  run(kernel_random_bernoulli, plan, out->device);
  return out;
}

TensorRef bernoulli(Call, const Tensor& self, Generator* generator) {
  if (!is_float(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: probabilities must be floating",
             fmt(self.dtype));
  check_probabilities(self);
  const TensorRef p = dense_input(self);
  return draw_bernoulli(self, p.get(), 0, generator);
}

TensorRef bernoulli_p(Call, const Tensor& self, double p, Generator* generator) {
  return draw_bernoulli(self, nullptr, threshold_of(p, "p", p), generator);
}

// ---- dropout ----

// Complex tensors: one mask value per element, as for real tensors.
static TensorPair complex_dropout(const Tensor& input, int32_t threshold, double scale,
                                  const Rng& rng) {
  TensorRef mask = new_tensor(input.sizes(), Dtype::kBool, input.device);
  RandomPlan plan;
  build_random(&plan, TT_BOOL, mask->numel, rng.seed, rng.offset, mask->data);
  plan.threshold = threshold;
  run(kernel_random_bernoulli, plan, input.device);
  MaskGuard no_grad(bit(kKeyAutograd));
  return {op::mask_scale(input, *mask, scale), std::move(mask)};
}

// Returns t, or a dense copy in the order of its strides.
static TensorRef ordered_input(const Tensor& t) {
  if (t.dense()) return TensorRef::share(&t);
  TensorRef out = new_ordered_like(t, t.dtype, t.device);
  copy_elements(*out, t);
  return out;
}

TensorPair native_dropout(Call, const Tensor& input, double p, const Rng& rng) {
  const int32_t threshold = threshold_of(1 - p, "p", p);
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  if (is_complex(input.dtype)) return complex_dropout(input, threshold, scale, rng);
  TensorRef x = ordered_input(input);
  TensorRef out = new_ordered_like(*x, input.dtype, input.device);
  TensorRef mask = new_ordered_like(*x, Dtype::kBool, input.device);
  RandomPlan plan;
  build_random(&plan, int32_t(input.dtype), out->numel, rng.seed, rng.offset, out->data);
  plan.x = x->data;
  plan.mask = reinterpret_cast<uint8_t*>(mask->data);
  plan.threshold = threshold;
  plan.scale = scale;
  run(kernel_random_dropout, plan, input.device);
  return {std::move(out), std::move(mask)};
}

TensorRef dropout(Call, const Tensor& input, double p, bool train, Generator* generator) {
  threshold_of(1 - p, "p", p);
  if (p == 0 || !train || input.numel == 0) return TensorRef::share(&input);
  if (!is_differentiable(input.dtype))
    fail_arg(TT_DTYPE, "input", "input is {}: must be floating or complex", fmt(input.dtype));
  const bool draws = input.device.type != TT_META;
  const Rng rng = reserve_rng(
      generator, draws ? random_counters(input.numel, kRandomDropout, int32_t(input.dtype)) : 0);
  return op::native_dropout(input, p, rng).first;
}

}  // namespace TT_NS::impl

namespace TT_NS {

void dropout__impl(Call c, Tensor& input, double p, bool train, Generator* generator) {
  const TensorRef kept = impl::dropout(c, input, p, train, generator);
  if (kept.get() != &input) replace_values(input, *kept);  // else what autograd saved stays valid
}

}  // namespace TT_NS
