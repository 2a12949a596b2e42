// Pooling over the last two dimensions.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "plan/pool_build.h"

namespace TT_NS::impl {

// ---- geometry ----

static void check_image(const Tensor& self, bool empty_channels) {
  bool good = self.ndim == 3 || self.ndim == 4;
  for (int64_t d = self.ndim == 3 ? 0 : 1; good && d < self.ndim; d++)
    good = self.size(d) > 0 || (empty_channels && d == self.ndim - 3);
  if (!good)
    fail_arg(TT_SHAPE, "self", "self is {}: must be (C, H, W) or (N, C, H, W), and only N may be 0",
             self.sizes());
}

// Returns the number of windows over n elements. Parameters that would overflow in kernels are
// reduced to equivalent smaller ones.
static int64_t count_windows(int64_t n, int64_t* kernel_size, int64_t* stride, int64_t pad,
                             int64_t* dilation, bool ceil_mode) {
  const int64_t kernel = *kernel_size;
  const int64_t step = *dilation;
  int64_t span, padded;
  if (mul_overflow(kernel - 1, step, &span) || add_overflow(span, 1, &span))
    fail_arg(TT_INVALID_ARG, "kernel_size", "kernel_size {} with dilation {} is too large", kernel,
             step);
  if (pad > kernel / 2)
    fail_arg(TT_INVALID_ARG, "padding", "padding is {}: must be at most half of kernel_size ({})",
             pad, kernel);
  if (add_overflow(n, 2 * pad, &padded))
    fail_arg(TT_INVALID_ARG, "padding", "padding is {}: the padded size overflows", pad);
  const int64_t room = n - span + 2 * pad;  // does not overflow, as 2 pad <= span
  if (room < 0 && !(ceil_mode && room > -*stride))
    fail_arg(TT_SHAPE, "kernel_size",
             "the window spans {} elements and does not fit into {} with padding {}", span, n, pad);
  if (step > padded) *dilation = padded;
  if (span > padded) *kernel_size = (padded - 1) / *dilation + 1;
  if (*stride > n + pad) {
    *stride = n + pad;
    return 1;
  }
  if (!ceil_mode) return room / *stride + 1;
  const int64_t count = (room + *stride - 1) / *stride + 1;
  // The last window must start in the input or in the padding before it.
  return (count - 1) * *stride >= n + pad ? count - 1 : count;
}

static void set_image(PoolPlan* p, Ints size, bool last, int64_t oh, int64_t ow) {
  const int64_t d = size.n - 2;
  p->channels_last = last;
  p->n = size.n == 4 ? size[0] : 1;
  p->c = size[d - 1];
  p->in[0] = size[d];
  p->in[1] = size[d + 1];
  p->out[0] = oh;
  p->out[1] = ow;
}

static PoolPlan strided_windows(Ints size, bool last, Ints kernel_size, Ints stride, Ints padding,
                                Ints dilation, bool ceil_mode) {
  PoolPlan p{};
  if (kernel_size.n == 0)
    fail_arg(TT_INVALID_ARG, "kernel_size", "kernel_size is empty: must be one or two numbers");
  expand_dims_list(kernel_size, 2, 1, 1, "kernel_size", p.kernel);
  expand_dims_list(stride.n ? stride : kernel_size, 2, 1, 1, "stride", p.stride);
  expand_dims_list(padding, 2, 0, 0, "padding", p.pad);
  expand_dims_list(dilation, 2, 1, 1, "dilation", p.dilation);
  int64_t out[2];
  for (int d = 0; d < 2; d++)
    out[d] = count_windows(size[size.n - 2 + d], &p.kernel[d], &p.stride[d], p.pad[d],
                           &p.dilation[d], ceil_mode);
  set_image(&p, size, last, out[0], out[1]);
  return p;
}
static PoolPlan adaptive_windows(Ints size, bool last, Ints output_size) {
  PoolPlan p{};
  int64_t out[2];
  if (output_size.n != 1 && output_size.n != 2)
    fail_arg(TT_INVALID_ARG, "output_size", "output_size is {}: must be one or two numbers",
             output_size);
  expand_dims_list(output_size, 2, 0, 0, "output_size", out);
  p.adaptive = 1;
  set_image(&p, size, last, out[0], out[1]);
  return p;
}

static Shape pooled(Ints size, const PoolPlan& p, Dtype dtype) {
  Shape out(size);
  out[size.n - 2] = p.out[0];
  out[size.n - 1] = p.out[1];
  checked_numel(out, dtype, "output_size");
  return out;
}

// ---- launches ----

// The compute dtype of kernels with indices and of backward kernels.
static Dtype compute_dtype(Dtype d) {
  if (d == Dtype::kF64) return d;
  return is_float(d) ? Dtype::kF32 : Dtype::kI64;
}

static TensorRef run_values(const Kernel& kernel, PoolPlan p, const Tensor& self) {
  TensorRef x = image_input(self, p.channels_last, self.dtype);
  TensorRef y =
      new_image(pooled(self.sizes(), p, self.dtype), p.channels_last, self.dtype, self.device);
  p.dtype = int32_t(self.dtype);
  build_pool(&p);
  Workspace parts(pool_parts_bytes(&p, false), self.device);
  p.x = x->data;
  p.y = y->data;
  p.parts = parts.data();
  if (y->numel) launch_stages(kernel, self.device, &p.run);
  return y;
}
static TensorPair run_indexed(PoolPlan p, const Tensor& self, bool want_index) {
  const Dtype compute = compute_dtype(self.dtype);
  const Shape size = pooled(self.sizes(), p, Dtype::kI64);
  TensorRef x = image_input(self, p.channels_last, compute);
  TensorRef y = new_image(size, p.channels_last, compute, self.device);
  TensorRef index;
  if (want_index) index = new_image(size, p.channels_last, Dtype::kI64, self.device);
  p.dtype = int32_t(compute);
  build_pool(&p);
  Workspace parts(pool_parts_bytes(&p, true), self.device);
  p.x = x->data;
  p.y = y->data;
  p.index = want_index ? index->as<int64_t>() : nullptr;
  p.parts = parts.data();
  if (y->numel) launch_stages(kernel_pool_max_index, self.device, &p.run);
  return {image_input(*y, p.channels_last, self.dtype), std::move(index)};
}
// x: NULL for averages.
static TensorRef run_backward(const Kernel& kernel, PoolPlan p, const Tensor& grad, Ints size,
                              const Tensor* x) {
  if (!grad.numel) return op::zeros(size, grad.dtype, grad.device);
  build_pool_backward(&p, x != nullptr);
  const bool converts = x && grad.is_cpu() && is_float(grad.dtype) && pool_backward_converts(&p);
  const Dtype compute = converts ? grad.dtype : compute_dtype(grad.dtype);
  TensorRef g = image_input(grad, p.channels_last, compute);
  TensorRef dx = new_image(size, p.channels_last, compute, grad.device);
  TensorRef input = x ? image_input(*x, p.channels_last, compute) : TensorRef();
  p.dtype = int32_t(compute);
  Workspace parts(pool_parts_bytes(&p, true), grad.device);
  Workspace index(pool_index_bytes(&p), grad.device);
  p.g = g->data;
  p.x = x ? input->data : nullptr;
  p.y = dx->data;
  p.parts = parts.data();
  p.index = reinterpret_cast<int64_t*>(index.data());
  if (dx->numel) launch_stages(kernel, grad.device, &p.run);
  return image_input(*dx, p.channels_last, grad.dtype);
}

// ---- max ----

static void check_ordered(const Tensor& self, bool integers) {
  if (is_complex(self.dtype) || self.dtype == Dtype::kBool || (!integers && !is_float(self.dtype)))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be floating{}", fmt(self.dtype),
             integers ? " or an integer" : "");
}

TensorRef max_pool2d(Call, const Tensor& self, Ints kernel_size, Ints stride, Ints padding,
                     Ints dilation, bool ceil_mode) {
  check_ordered(self, true);
  check_image(self, false);
  const PoolPlan p = strided_windows(self.sizes(), channels_last(self), kernel_size, stride,
                                     padding, dilation, ceil_mode);
  return is_float(self.dtype) ? run_values(kernel_pool_max, p, self)
                              : run_indexed(p, self, false).first;
}
TensorPair max_pool2d_with_indices(Call, const Tensor& self, Ints kernel_size, Ints stride,
                                   Ints padding, Ints dilation, bool ceil_mode) {
  check_ordered(self, true);
  check_image(self, false);
  return run_indexed(strided_windows(self.sizes(), channels_last(self), kernel_size, stride,
                                     padding, dilation, ceil_mode),
                     self, true);
}
TensorRef max_pool2d_backward(Call, const Tensor& grad, const Tensor& self, Ints kernel_size,
                              Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
  const PoolPlan p = strided_windows(self.sizes(), channels_last(self), kernel_size, stride,
                                     padding, dilation, ceil_mode);
  return run_backward(kernel_pool_max_backward, p, grad, self.sizes(), &self);
}
TensorPair adaptive_max_pool2d(Call, const Tensor& self, Ints output_size) {
  check_ordered(self, false);
  bool good = self.ndim == 3 || self.ndim == 4;
  for (int64_t d = 1; good && d < self.ndim; d++) good = self.size(d) > 0;
  if (!good)
    fail_arg(TT_SHAPE, "self",
             "self is {}: must be (C, H, W) or (N, C, H, W), and only the first size may be 0",
             self.sizes());
  return run_indexed(adaptive_windows(self.sizes(), channels_last(self), output_size), self, true);
}

TensorRef adaptive_max_pool2d_backward(Call, const Tensor& grad, const Tensor& self,
                                       Ints output_size) {
  return run_backward(kernel_pool_max_backward,
                      adaptive_windows(self.sizes(), channels_last(self), output_size), grad,
                      self.sizes(), &self);
}

// ---- average ----

static PoolPlan average_windows(Ints size, bool last, Ints kernel_size, Ints stride, Ints padding,
                                bool ceil_mode, bool count_include_pad,
                                Opt<int64_t> divisor_override) {
  PoolPlan p = strided_windows(size, last, kernel_size, stride, padding, {}, ceil_mode);
  if (divisor_override.has && *divisor_override == 0)
    fail_arg(TT_INVALID_ARG, "divisor_override", "divisor_override is 0: must not be 0");
  int64_t elements;
  if (!divisor_override.has && mul_overflow(p.kernel[0], p.kernel[1], &elements))
    fail_arg(TT_INVALID_ARG, "kernel_size",
             "kernel_size is {}: the number of elements of a window overflows", kernel_size);
  p.count_pad = count_include_pad;
  p.divisor = divisor_override.or_else(0);
  return p;
}

TensorRef avg_pool2d(Call, const Tensor& self, Ints kernel_size, Ints stride, Ints padding,
                     bool ceil_mode, bool count_include_pad, Opt<int64_t> divisor_override) {
  if (!is_float(self.dtype) && self.dtype != Dtype::kI64)
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be floating or int64", fmt(self.dtype));
  check_image(self, false);
  return run_values(kernel_pool_average,
                    average_windows(self.sizes(), channels_last(self), kernel_size, stride, padding,
                                    ceil_mode, count_include_pad, divisor_override),
                    self);
}
TensorRef avg_pool2d_backward(Call, const Tensor& grad, const Tensor& self, Ints kernel_size,
                              Ints stride, Ints padding, bool ceil_mode, bool count_include_pad,
                              Opt<int64_t> divisor_override) {
  const PoolPlan p = average_windows(self.sizes(), channels_last(self), kernel_size, stride,
                                     padding, ceil_mode, count_include_pad, divisor_override);
  return run_backward(kernel_pool_average_backward, p, grad, self.sizes(), nullptr);
}
TensorRef adaptive_avg_pool2d(Call, const Tensor& self, Ints output_size) {
  check_ordered(self, false);
  bool good = self.ndim == 3 || self.ndim == 4;
  for (int64_t d = self.ndim - 2; good && d < self.ndim; d++) good = self.size(d) > 0;
  if (!good)
    fail_arg(TT_SHAPE, "self",
             "self is {}: must be (C, H, W) or (N, C, H, W), with H and W above 0", self.sizes());
  return run_values(kernel_pool_average,
                    adaptive_windows(self.sizes(), channels_last(self), output_size), self);
}
TensorRef adaptive_avg_pool2d_backward(Call, const Tensor& grad, const Tensor& self,
                                       Ints output_size) {
  return run_backward(kernel_pool_average_backward,
                      adaptive_windows(self.sizes(), channels_last(self), output_size), grad,
                      self.sizes(), nullptr);
}

}  // namespace TT_NS::impl
