// Dropout of whole channels, and dropout that keeps mean and variance of its input.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

namespace TT_NS::impl {

static void check_probability(double p) {
  if (!(p >= 0 && p <= 1)) fail_arg(TT_INVALID_ARG, "p", "p is {}: must be in [0, 1]", p);
}
static void check_dropped(const Tensor& input) {
  if (category(input.dtype) < 2)
    fail_arg(TT_DTYPE, "input", "input is {}: must be floating or complex", fmt(input.dtype));
}
// (N, C, 1, …): one number per channel.
static Shape per_channel(const Tensor& input) {
  if (input.ndim < 2) fail_arg(TT_SHAPE, "input", "input is {}: must be (N, C, …)", input.sizes());
  Shape shape(input.sizes());
  for (int64_t d = 2; d < input.ndim; d++) shape[d] = 1;
  return shape;
}

// ---- channels ----

static TensorRef channel_dropout(const Tensor& input, double p, bool train, Generator* generator) {
  check_probability(p);
  if (p == 0 || !train || input.numel == 0) return TensorRef::share(&input);
  check_dropped(input);
  TensorRef ones = op::ones(per_channel(input), real_of(input.dtype), Opt<Device>(input.device));
  return op::mul(input, *op::dropout(*ones, p, true, generator));
}
// The same for an input with or without a batch.
static TensorRef channel_dropout(const Tensor& input, int64_t ndim, double p, bool train,
                                 Generator* generator) {
  if (input.ndim == ndim) return channel_dropout(input, p, train, generator);
  if (input.ndim != ndim - 1)
    fail_arg(TT_SHAPE, "input", "input is {}: must have {} or {} dimensions", input.sizes(),
             ndim - 1, ndim);
  check_probability(p);
  if (p == 0 || !train) return TensorRef::share(&input);
  const int64_t batch[1] = {0};
  return op::squeeze_dims(*channel_dropout(*op::unsqueeze(input, 0), p, train, generator), batch);
}

TensorRef dropout1d(Call, const Tensor& input, double p, bool train, Generator* generator) {
  return channel_dropout(input, 3, p, train, generator);
}
// As in PyTorch, three dimensions are (N, C, L).
TensorRef dropout2d(Call, const Tensor& input, double p, bool train, Generator* generator) {
  return channel_dropout(input, p, train, generator);
}
TensorRef dropout3d(Call, const Tensor& input, double p, bool train, Generator* generator) {
  if (input.ndim != 4 && input.ndim != 5) return channel_dropout(input, p, train, generator);
  return channel_dropout(input, 5, p, train, generator);
}

// ---- alpha dropout ----

// Dropped elements become the negative saturation of selu; a and b restore mean 0 and variance 1.
static TensorRef alpha_dropped(const Tensor& input, Ints noise_shape, double p,
                               Generator* generator) {
  constexpr double kAlpha = 1.7580993408473766;
  if (p == 1) return op::mul(input, Scalar(0));
  const double a = 1 / libm::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  TensorRef like = op::empty(noise_shape, real_of(input.dtype), Opt<Device>(input.device));
  TensorRef kept = op::bernoulli_p(*like, 1 - p, generator);
  TensorRef shift = op::mul(*op::sub(*kept, Scalar(1)), Scalar(kAlpha * a));
  shift = op::add(*shift, Scalar(kAlpha * a * p));
  return op::add(*op::mul(input, *op::mul(*kept, Scalar(a))), *shift);
}
TensorRef alpha_dropout(Call, const Tensor& input, double p, bool train, Generator* generator) {
  check_probability(p);
  if (p == 0 || !train || input.numel == 0) return TensorRef::share(&input);
  check_dropped(input);
  return alpha_dropped(input, input.sizes(), p, generator);
}
TensorRef feature_alpha_dropout(Call, const Tensor& input, double p, bool train,
                                Generator* generator) {
  check_probability(p);
  if (p == 0 || !train || input.numel == 0) return TensorRef::share(&input);
  check_dropped(input);
  return alpha_dropped(input, per_channel(input), p, generator);
}

}  // namespace TT_NS::impl

namespace TT_NS {

// Where nothing is dropped nothing is written, and what autograd saved stays valid.
static void replace_dropped(Tensor& input, const Tensor& kept) {
  if (&kept != &input) replace_values(input, kept);
}
void dropout1d__impl(Call c, Tensor& input, double p, bool train, Generator* generator) {
  replace_dropped(input, *impl::dropout1d(c, input, p, train, generator));
}
void dropout2d__impl(Call c, Tensor& input, double p, bool train, Generator* generator) {
  replace_dropped(input, *impl::dropout2d(c, input, p, train, generator));
}
void dropout3d__impl(Call c, Tensor& input, double p, bool train, Generator* generator) {
  replace_dropped(input, *impl::dropout3d(c, input, p, train, generator));
}
void alpha_dropout__impl(Call c, Tensor& input, double p, bool train, Generator* generator) {
  replace_dropped(input, *impl::alpha_dropout(c, input, p, train, generator));
}
void feature_alpha_dropout__impl(Call c, Tensor& input, double p, bool train,
                                 Generator* generator) {
  replace_dropped(input, *impl::feature_alpha_dropout(c, input, p, train, generator));
}

}  // namespace TT_NS
