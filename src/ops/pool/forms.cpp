// Power-average pooling, fractional maximum pooling, and the partial inverse of maximum pooling.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "ops/index/nest.h"
#include <cmath>

namespace TT_NS::impl {

// One number per dimension.
struct PerDim {
  int64_t v[3];
  int64_t n;

  PerDim(Ints list, int64_t dims, const char* arg, int64_t fallback, int64_t min_value)
      : v{}, n(dims) {
    expand_dims_list(list, dims, fallback, min_value, arg, v);
  }
  operator Ints() const { return {v, n}; }
};
static void check_required(Ints list, const char* arg) {
  if (!list.n) fail_arg(TT_INVALID_ARG, arg, "{} is empty: must have at least one number", arg);
}
static void check_float(const Tensor& t, const char* arg) {
  if (!is_float(t.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, arg, "{} is {}: must be floating", arg, fmt(t.dtype));
}
// (C, …) or (N, C, …) with `dims` spatial dimensions.
static void check_spatial(const Tensor& t, const char* arg, int64_t dims) {
  bool good = t.ndim == dims + 1 || t.ndim == dims + 2;
  for (int64_t d = t.ndim - dims - 1; good && d < t.ndim; d++) good = t.size(d) > 0;
  if (!good)
    fail_arg(TT_SHAPE, arg,
             "{} is {}: must have {} spatial dimensions behind (C) or (N, C), and only N may be 0",
             arg, t.sizes(), dims);
}

// ---- power average ----

// The p-th root of a sum of p-th powers, from the mean of a window of this many elements.
static TensorRef root_of_mean(const Tensor& mean, double norm_type, const PerDim& kernel) {
  double elements = 1;
  for (int64_t d = 0; d < kernel.n; d++) elements *= double(kernel.v[d]);
  TensorRef sum = op::mul(*op::mul(*op::sign(mean), *op::relu(*op::abs(mean))), Scalar(elements));
  return op::pow(*sum, Scalar(1 / norm_type));
}
static PerDim lp_kernel(const Tensor& input, double norm_type, Ints kernel_size, int64_t dims) {
  check_float(input, "input");
  check_required(kernel_size, "kernel_size");
  if (norm_type == 0) fail_arg(TT_INVALID_ARG, "norm_type", "norm_type is 0: must not be 0");
  return PerDim(kernel_size, dims, "kernel_size", 1, 1);
}

// The norms of windows. An infinite norm is its limit: the largest magnitude of a window, or for
// -infinity the smallest. mean_of and max_of pool a tensor by the operators of these dimensions.
template <class MeanOf, class MaxOf>
static TensorRef norm_of_windows(const Tensor& input, double norm_type, const PerDim& kernel,
                                 MeanOf mean_of, MaxOf max_of) {
  if (!std::isinf(norm_type)) {
    TensorRef power = op::pow(input, Scalar(norm_type));
    return root_of_mean(*mean_of(*power), norm_type, kernel);
  }
  TensorRef magnitude = op::abs(input);
  if (norm_type > 0) return max_of(*magnitude);
  return op::neg(*max_of(*op::neg(*magnitude)));
}

TensorRef lp_pool1d(Call, const Tensor& input, double norm_type, Ints kernel_size, Ints stride,
                    bool ceil_mode) {
  const PerDim kernel = lp_kernel(input, norm_type, kernel_size, 1);
  auto mean_of = [&](const Tensor& t) { return op::avg_pool1d(t, kernel, stride, {}, ceil_mode); };
  auto max_of = [&](const Tensor& t) {
    return op::max_pool1d(t, kernel, stride, {}, {}, ceil_mode);
  };
  return norm_of_windows(input, norm_type, kernel, mean_of, max_of);
}
TensorRef lp_pool2d(Call, const Tensor& input, double norm_type, Ints kernel_size, Ints stride,
                    bool ceil_mode) {
  const PerDim kernel = lp_kernel(input, norm_type, kernel_size, 2);
  auto mean_of = [&](const Tensor& t) { return op::avg_pool2d(t, kernel, stride, {}, ceil_mode); };
  auto max_of = [&](const Tensor& t) {
    return op::max_pool2d(t, kernel, stride, {}, {}, ceil_mode);
  };
  return norm_of_windows(input, norm_type, kernel, mean_of, max_of);
}
TensorRef lp_pool3d(Call, const Tensor& input, double norm_type, Ints kernel_size, Ints stride,
                    bool ceil_mode) {
  const PerDim kernel = lp_kernel(input, norm_type, kernel_size, 3);
  auto mean_of = [&](const Tensor& t) { return op::avg_pool3d(t, kernel, stride, {}, ceil_mode); };
  auto max_of = [&](const Tensor& t) {
    return op::max_pool3d(t, kernel, stride, {}, {}, ceil_mode);
  };
  return norm_of_windows(input, norm_type, kernel, mean_of, max_of);
}

// ---- unpooling ----

// Returns the spatial sizes of the result: output_size, which must be less than a stride away from
// the default.
static PerDim unpooled_size(const Tensor& input, int64_t dims, Ints kernel_size, Ints stride,
                            Ints padding, Ints output_size) {
  check_required(kernel_size, "kernel_size");
  const PerDim kernel(kernel_size, dims, "kernel_size", 1, 1);
  const PerDim step(stride.n ? stride : kernel_size, dims, "stride", 1, 1);
  const PerDim pad(padding, dims, "padding", 0, 0);
  if (output_size.n == dims + 2) output_size = output_size.slice(2, dims + 2);
  if (output_size.n && output_size.n != dims)
    fail_arg(TT_INVALID_ARG, "output_size", "output_size is {}: must have {} or {} numbers",
             output_size, dims, dims + 2);
  PerDim size(output_size, dims, "output_size", 0, 0);
  for (int64_t d = 0; d < dims; d++) {
    int64_t usual, border;
    if (mul_overflow(input.size(d - dims) - 1, step.v[d], &usual) ||
        add_overflow(usual, kernel.v[d], &usual) || mul_overflow(pad.v[d], 2, &border) ||
        sub_overflow(usual, border, &usual))
      fail_arg(TT_INVALID_ARG, "stride", "stride is {}: the size of the result overflows",
               Ints(step));
    if (!output_size.n) size.v[d] = usual;
    int64_t distance;
    if (sub_overflow(size.v[d], usual, &distance) || size.v[d] < 1 || distance <= -step.v[d] ||
        distance >= step.v[d])
      fail_arg(TT_INVALID_ARG, "output_size",
               "size {} of dimension {} must be positive and less than the stride {} away from {}",
               size.v[d], d - dims, step.v[d], usual);
  }
  return size;
}

static TensorRef unpooled(const Tensor& input, const Tensor& indices, int64_t dims,
                          Ints kernel_size, Ints stride, Ints padding, Ints output_size) {
  check_float(input, "input");
  check_spatial(input, "input", dims);
  if (indices.dtype != Dtype::kI64)
    fail_arg(TT_DTYPE, "indices", "indices is {}: must be int64", fmt(indices.dtype));
  if (!same(indices.sizes(), input.sizes()))
    fail_arg(TT_SHAPE, "indices", "indices is {}, input is {}: must be equal", indices.sizes(),
             input.sizes());
  const PerDim size = unpooled_size(input, dims, kernel_size, stride, padding, output_size);
  Shape result(input.sizes().slice(0, input.ndim - dims));
  Shape flat(result);
  result.append(size);
  checked_numel(result, input.dtype, "output_size");
  flat.push_back(numel_of(size));
  TensorRef zeros = op::zeros(flat, input.dtype, input.device);
  const int64_t first = input.ndim - dims;
  TensorRef values =
      op::scatter_put(*zeros, -1, *op::flatten(indices, first, -1), *op::flatten(input, first, -1));
  return op::reshape(*values, result);
}

TensorRef max_unpool1d(Call, const Tensor& input, const Tensor& indices, Ints kernel_size,
                       Ints stride, Ints padding, Ints output_size) {
  return unpooled(input, indices, 1, kernel_size, stride, padding, output_size);
}
TensorRef max_unpool2d(Call, const Tensor& input, const Tensor& indices, Ints kernel_size,
                       Ints stride, Ints padding, Ints output_size) {
  return unpooled(input, indices, 2, kernel_size, stride, padding, output_size);
}
TensorRef max_unpool3d(Call, const Tensor& input, const Tensor& indices, Ints kernel_size,
                       Ints stride, Ints padding, Ints output_size) {
  return unpooled(input, indices, 3, kernel_size, stride, padding, output_size);
}

// ---- fractional ----

// Returns where windows begin along one dimension, [planes][out]: steps of alpha, shifted by the
// plane's sample in [0, 1) and rounded down; the last window ends at the end.
static TensorRef window_starts(const Tensor& samples, int64_t in, int64_t out, int64_t kernel) {
  TensorRef last = op::full({}, Scalar(in - kernel), Dtype::kI64, Opt<Device>(samples.device));
  const int64_t column[2] = {samples.numel, 1};
  last = op::expand(*last, column);
  if (out < 2) return out ? std::move(last) : op::slice(*last, 1, 0, 0);
  const double alpha = double(in - kernel) / double(out - 1);
  TensorRef sample = op::reshape(samples, column);
  TensorRef step = op::arange(0, out - 1, 1, samples.dtype, Opt<Device>(samples.device));
  TensorRef begin = op::floor(*op::mul(*op::add(*step, *sample), Scalar(alpha)));
  begin = op::sub(*begin, *op::floor(*op::mul(*sample, Scalar(alpha))));
  begin = op::to_dtype(*begin, Dtype::kI64);
  const Tensor* const parts[2] = {begin.get(), last.get()};
  return op::cat(parts, 1);
}

// Positions in a plane of the elements of all windows, [planes][windows][elements].
static TensorRef window_elements(const Tensor& input, const Tensor& samples, const PerDim& kernel,
                                 const PerDim& out) {
  const int64_t dims = kernel.n;
  const int64_t planes = samples.size(0);
  const Scalar zero(0);
  TensorRef at;
  for (int64_t d = 0; d < dims; d++) {
    const int64_t in = input.size(d - dims);
    const Scalar last(in - kernel.v[d]);
    // The samples of images are in the order columns, rows.
    TensorRef begin =
        window_starts(*op::select(samples, 1, dims == 2 ? 1 - d : d), in, out.v[d], kernel.v[d]);
    begin = op::clamp(*begin, &zero, &last);
    TensorRef element = op::arange(0, kernel.v[d], 1, Dtype::kI64, Opt<Device>(input.device));
    Shape windows;
    windows.resize(2 * dims + 1, 1);
    windows[0] = planes;
    windows[1 + d] = out.v[d];
    Shape elements;
    elements.resize(2 * dims + 1, 1);
    elements[1 + dims + d] = kernel.v[d];
    TensorRef own = op::add(*op::reshape(*begin, windows), *op::reshape(*element, elements));
    at = d ? op::add(*own, *at, Scalar(in)) : std::move(own);
  }
  const int64_t shape[3] = {planes, numel_of(out), numel_of(kernel)};
  return op::reshape(*at, shape);
}

TensorRef take_maxima(Call, const Tensor& self, const Tensor& indices) {
  MaskGuard no_grad(bit(kKeyAutograd));
  return op::gather(self, 1, indices);
}
TensorRef take_maxima_backward(Call, const Tensor& grad, const Tensor& self,
                               const Tensor& indices) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef zeros = op::zeros(self.sizes(), grad.dtype, Opt<Device>(grad.device));
  return op::scatter_add(*zeros, 1, indices, grad);
}

static TensorPair fractional(const Tensor& input, int64_t dims, Ints kernel_size, Ints output_size,
                             const Tensor* random_samples, Generator* generator) {
  check_float(input, "input");
  check_spatial(input, "input", dims);
  check_required(kernel_size, "kernel_size");
  check_required(output_size, "output_size");
  const PerDim kernel(kernel_size, dims, "kernel_size", 1, 1);
  const PerDim out(output_size, dims, "output_size", 1, 0);
  for (int64_t d = 0; d < dims; d++)
    if (kernel.v[d] > input.size(d - dims) || out.v[d] > input.size(d - dims) - kernel.v[d] + 1)
      fail_arg(TT_INVALID_ARG, "output_size",
               "output_size is {}, kernel_size is {}, input is {}: output_size + kernel_size - 1 "
               "must be at most the size of input",
               Ints(out), Ints(kernel), input.sizes());
  const int64_t n = input.ndim == dims + 2 ? input.size(0) : 1;
  const int64_t per_plane[3] = {n, input.size(-dims - 1), dims};
  if (random_samples) {
    check_same_device(input, "input", *random_samples, "random_samples");
    const Ints given = random_samples->sizes();
    if (random_samples->dtype != input.dtype || given.size() != 3 || given[0] < n ||
        given[1] != per_plane[1] || given[2] != dims)
      fail_arg(TT_SHAPE, "random_samples",
               "random_samples is {} {}: must be {} {}, or of a larger batch", given,
               fmt(random_samples->dtype), Ints(per_plane), fmt(input.dtype));
  }
  const int64_t planes[2] = {n * per_plane[1], dims};
  const int64_t flat[2] = {planes[0],
                           numel_of(input.sizes().slice(-dims + input.ndim, input.ndim))};
  TensorRef x = op::reshape(input, flat);
  TensorRef index;
  {
    MaskGuard no_grad(bit(kKeyAutograd));
    const Dtype compute = input.dtype == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
    TensorRef samples = random_samples
                            ? op::to_dtype(*op::narrow(*random_samples, 0, 0, n), compute)
                            : op::rand(per_plane, compute, Opt<Device>(input.device), generator);
    TensorRef at = window_elements(input, *op::reshape(*samples, planes), kernel, out);
    const int64_t row[2] = {planes[0], at->size(1) * at->size(2)};
    TensorRef values = op::reshape(*op::gather(*x, 1, *op::reshape(*at, row)), at->sizes());
    TensorRef best = op::argmax(*values, Opt<int64_t>(2), true);
    const int64_t windows[2] = {planes[0], at->size(1)};
    index = op::reshape(*op::gather(*at, 2, *best), windows);
  }
  Shape result(input.sizes().slice(0, input.ndim - dims));
  result.append(out);
  return {op::reshape(*op::take_maxima(*x, *index), result), op::reshape(*index, result)};
}

TensorPair fractional_max_pool2d(Call, const Tensor& input, Ints kernel_size, Ints output_size,
                                 const Tensor* random_samples, Generator* generator) {
  return fractional(input, 2, kernel_size, output_size, random_samples, generator);
}
TensorPair fractional_max_pool3d(Call, const Tensor& input, Ints kernel_size, Ints output_size,
                                 const Tensor* random_samples, Generator* generator) {
  return fractional(input, 3, kernel_size, output_size, random_samples, generator);
}

}  // namespace TT_NS::impl
