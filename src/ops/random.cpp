// Random numbers. A front reserves counters of its generator; the generator moves on only when the call has succeeded.
#include "gen/fronts.h"
#include "gen/kernels.h"
#include "gen/ops.h"
#include "ops/elementwise.h"
#include "ops/front.h"
#include "plan/random_build.h"

namespace TT_NS::front {

static Generator& generator_or_own(Generator* g) { return g ? *g : *ctx().gen; }

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

// In the order of out's memory.
static TensorRef filled(RandomKind kind, TensorRef out, Generator* generator) {
  if (out->device.type == TT_META) return out;
  Rng& rng = generator_or_own(generator).next;
  const Dtype real = real_of(out->dtype);
  const int64_t n = is_complex(out->dtype) ? 2 * out->numel : out->numel;
  RandomPlan plan;
  build_random(&plan, int32_t(real), n, rng.seed, rng.offset, out->data);
  run(kind == kRandomUniform ? kernel_random_uniform : kernel_random_normal, plan, out->device);
  if (kind == kRandomNormal && is_complex(out->dtype)) {
    MaskGuard no_grad(bit(kKeyAutograd));
    op::mul_(*out, Scalar(0x1.6a09e667f3bcdp-1));  // sqrt(1/2)
  }
  rng.offset += random_counters(n, kind, int32_t(real));
  return out;
}

static TensorRef random(RandomKind kind, Ints size, Dtype dtype, Opt<Device> device, Generator* generator) {
  dtype = checked_dtype(dtype, Dtype::kF32);
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
TensorRef rand_like(Call, const Tensor& self, Dtype dtype, Opt<Device> device, Generator* generator) {
  return random_like(kRandomUniform, self, dtype, device, generator);
}
TensorRef randn_like(Call, const Tensor& self, Dtype dtype, Opt<Device> device, Generator* generator) {
  return random_like(kRandomNormal, self, dtype, device, generator);
}

// ---- bernoulli ----

static int32_t threshold_of(double p, const char* arg, double value) {
  int32_t threshold;
  if (!random_threshold(p, &threshold)) fail_arg(TT_INVALID_ARG, arg, "{} is {}: must be in [0, 1]", arg, value);
  return threshold;
}

static void check_probabilities(const Tensor& p) {
  if (p.numel == 0 || p.device.type == TT_META) return;
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef low = op::ge(p, 0), high = op::le(p, 1);
  if (!read_scalar(*op::all(low)).i || !read_scalar(*op::all(high)).i)
    fail_arg(TT_INVALID_ARG, "self", "self holds probabilities outside [0, 1]");
}

TensorRef bernoulli(Call, const Tensor& self, Generator* generator) {
  if (!is_float(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: probabilities must be floating", fmt(self.dtype));
  check_probabilities(self);
  TensorRef p = dense_input(self), out = new_tensor(self.sizes(), self.dtype, self.device);
  if (out->device.type == TT_META) return out;
  Rng& rng = generator_or_own(generator).next;
  RandomPlan plan;
  build_random(&plan, int32_t(out->dtype), out->numel, rng.seed, rng.offset, out->data);
  plan.p = p->data, plan.p_dtype = int32_t(p->dtype);
  run(kernel_random_bernoulli, plan, out->device);
  rng.offset += random_counters(out->numel, kRandomBernoulli, int32_t(out->dtype));
  return out;
}

TensorRef bernoulli_p(Call, const Tensor& self, double p, Generator* generator) {
  const int32_t threshold = threshold_of(p, "p", p);
  TensorRef out = new_tensor(self.sizes(), self.dtype, self.device);
  if (out->device.type == TT_META) return out;
  Rng& rng = generator_or_own(generator).next;
  RandomPlan plan;
  build_random(&plan, int32_t(out->dtype), out->numel, rng.seed, rng.offset, out->data);
  plan.threshold = threshold;
  run(kernel_random_bernoulli, plan, out->device);
  rng.offset += random_counters(out->numel, kRandomBernoulli, int32_t(out->dtype));
  return out;
}

// ---- dropout ----

// Complex numbers: the mask as for one real number each.
static TensorPair complex_dropout(const Tensor& input, int32_t threshold, double scale, const Rng& rng) {
  TensorRef mask = new_tensor(input.sizes(), Dtype::kBool, input.device);
  RandomPlan plan;
  build_random(&plan, TT_BOOL, mask->numel, rng.seed, rng.offset, mask->data);
  plan.threshold = threshold;
  run(kernel_random_bernoulli, plan, input.device);
  MaskGuard no_grad(bit(kKeyAutograd));
  return {op::mask_scale(input, *mask, scale), std::move(mask)};
}

TensorPair native_dropout(Call, const Tensor& input, double p, const Rng& rng) {
  const int32_t threshold = threshold_of(1 - p, "p", p);
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  if (is_complex(input.dtype)) return complex_dropout(input, threshold, scale, rng);
  TensorRef x = dense_input(input);
  TensorRef out = new_tensor(input.sizes(), input.dtype, input.device),
            mask = new_tensor(input.sizes(), Dtype::kBool, input.device);
  RandomPlan plan;
  build_random(&plan, int32_t(input.dtype), out->numel, rng.seed, rng.offset, out->data);
  plan.x = x->data, plan.mask = reinterpret_cast<uint8_t*>(mask->data);
  plan.threshold = threshold, plan.scale = scale;
  run(kernel_random_dropout, plan, input.device);
  return {std::move(out), std::move(mask)};
}

TensorRef dropout(Call, const Tensor& input, double p, bool train, Generator* generator) {
  threshold_of(1 - p, "p", p);
  if (p == 0 || !train || input.numel == 0) return TensorRef::share(&input);
  if (!is_differentiable(input.dtype))
    fail_arg(TT_DTYPE, "input", "input is {}: must be floating or complex", fmt(input.dtype));
  Generator& g = generator_or_own(generator);
  TensorRef out = op::native_dropout(input, p, g.next).first;
  if (input.device.type != TT_META) g.next.offset += random_counters(input.numel, kRandomDropout, int32_t(input.dtype));
  return out;
}

}  // namespace TT_NS::front
