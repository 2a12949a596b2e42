// Windows of signal processing, and logspace. Windows are computed in double on the CPU.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

#include <math.h>

namespace TT_NS::impl {

constexpr double kPi = 3.14159265358979323846;

// A window of n values: value(i, m) at position i of m intervals. A periodic one is the beginning
// of a symmetric one that is longer by 1.
template <class F> static TensorRef window(int64_t n, bool periodic, Dtype dtype,
                                           const Opt<Device>& device, const F& value) {
  if (n < 0)
    fail_arg(TT_INVALID_ARG, "window_length", "window_length is {}: must not be negative", n);
  if (dtype == Dtype::kNone) dtype = default_float();
  if (!is_differentiable(dtype) || is_complex(dtype))
    fail_arg(TT_DTYPE, "dtype", "dtype is {}: must be floating", fmt(dtype));
  checked_numel(Ints(&n, 1), Dtype::kF64, "window_length");
  TensorRef out = new_tensor(Ints(&n, 1), Dtype::kF64, kCpuDevice);
  double* values = out->as<double>();
  const double m = double(periodic ? n : n - 1);
  for (int64_t i = 0; i < n; i++) values[i] = n == 1 ? 1 : value(double(i), m);
  note_host_write(*out);
  TensorRef typed = dtype == Dtype::kF64 ? std::move(out) : op::to_dtype(*out, dtype);
  const Device to = device.or_else(kCpuDevice);
  return to == kCpuDevice ? std::move(typed) : op::to_device(*typed, to);
}

TensorRef hann_window(Call, int64_t window_length, bool periodic, Dtype dtype, Opt<Device> device) {
  return window(window_length, periodic, dtype, device,
                [](double i, double m) { return 0.5 - 0.5 * cos(2 * kPi * i / m); });
}
TensorRef hamming_window(Call, int64_t window_length, bool periodic, double alpha, double beta,
                         Dtype dtype, Opt<Device> device) {
  return window(window_length, periodic, dtype, device,
                [&](double i, double m) { return alpha - beta * cos(2 * kPi * i / m); });
}
TensorRef blackman_window(Call, int64_t window_length, bool periodic, Dtype dtype,
                          Opt<Device> device) {
  return window(window_length, periodic, dtype, device, [](double i, double m) {
    const double value = 0.42 - 0.5 * cos(2 * kPi * i / m) + 0.08 * cos(4 * kPi * i / m);
    return fabs(value);
  });
}
TensorRef bartlett_window(Call, int64_t window_length, bool periodic, Dtype dtype,
                          Opt<Device> device) {
  return window(window_length, periodic, dtype, device,
                [](double i, double m) { return 1 - fabs(2 * i / m - 1); });
}

// The modified Bessel function of order 0 by its power series; e^-x scales it so that none of its
// terms overflows.
static double scaled_bessel(double x) {
  if (x > 700) return 1 / sqrt(2 * kPi * x) * (1 + 1 / (8 * x) + 9 / (128 * x * x));
  double term = exp(-x);
  double sum = term;
  for (double k = 1; k < 2000 && term > sum * 1e-17; k++) {
    term *= x / (2 * k) * (x / (2 * k));
    sum += term;
  }
  return sum;
}
TensorRef kaiser_window(Call, int64_t window_length, bool periodic, double beta, Dtype dtype,
                        Opt<Device> device) {
  if (!(fabs(beta) <= 1e6))
    fail_arg(TT_INVALID_ARG, "beta", "beta is {}: must be in [-1e6, 1e6]", beta);
  const double all = scaled_bessel(fabs(beta));
  return window(window_length, periodic, dtype, device, [&](double i, double m) {
    const double at = 2 * i / m - 1;
    const double x = fabs(beta) * sqrt(TT_NS::max(0.0, 1 - at * at));
    return scaled_bessel(x) / all * exp(x - fabs(beta));
  });
}

}  // namespace TT_NS::impl
