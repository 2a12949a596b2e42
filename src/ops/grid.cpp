// grid_sample, by one kernel and its transpose, and affine_grid.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "plan/grid_build.h"

namespace TT_NS::impl {

// ---- the kernels ----

// image: (N, C, H, W) or (N, C, D, H, W).
static GridPlan grid_plan(Ints image, const Tensor& grid, int64_t mode, int64_t padding, bool align,
                          Ints order, bool put) {
  GridPlan p{};
  p.dtype = int32_t(grid.dtype);
  p.mode = int32_t(mode);
  p.padding = int32_t(padding);
  p.align = align;
  p.dims = int32_t(image.n - 2);
  p.n = image[0];
  p.c = image[1];
  const int64_t leading = kGridDims - p.dims;
  for (int64_t d = 0; d < kGridDims; d++) {
    p.in[d] = d < leading ? 1 : image[2 + d - leading];
    p.order[d] = d < leading ? 0 : int32_t(order[d - leading]);
  }
  p.points = numel_of(grid.sizes().slice(1, grid.ndim - 1));
  build_grid(&p, put);
  p.grid = grid.data;
  return p;
}
static Shape sampled(Ints image, const Tensor& grid) {
  Shape shape(image.slice(0, 2));
  shape.append(grid.sizes().slice(1, grid.ndim - 1));
  return shape;
}

TensorRef grid_take(Call, const Tensor& self, const Tensor& grid, int64_t mode, int64_t padding,
                    bool align, Ints order) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef x = cast_input(self, grid.dtype);
  TensorRef g = dense_input(grid);
  TensorRef y = new_tensor(sampled(self.sizes(), grid), grid.dtype, grid.device);
  GridPlan p = grid_plan(self.sizes(), *g, mode, padding, align, order, false);
  p.x = x->data;
  p.y = y->data;
  if (y->numel) launch_stages(kernel_grid_take, grid.device, &p.run);
  return y;
}
TensorRef grid_put(Call, const Tensor& grad, const Tensor& grid, Ints size, int64_t mode,
                   int64_t padding, bool align, Ints order) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef y = cast_input(grad, grid.dtype);
  TensorRef g = dense_input(grid);
  TensorRef x = new_tensor(size, grid.dtype, grid.device);
  fill_elements(*x, Scalar(0));
  GridPlan p = grid_plan(size, *g, mode, padding, align, order, true);
  p.x = x->data;
  p.y = y->data;
  if (y->numel) launch_stages(kernel_grid_put, grid.device, &p.run);
  return x;
}

TensorRef grid_backward(Call, const Tensor& grad, const Tensor& self, const Tensor& grid,
                        int64_t mode, int64_t padding, bool align) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef y = cast_input(grad, grid.dtype);
  TensorRef x = cast_input(self, grid.dtype);
  TensorRef g = dense_input(grid);
  TensorRef slopes = new_tensor(grid.sizes(), grid.dtype, grid.device);
  const int64_t order[kGridDims] = {};
  const Ints values(order, self.ndim - 2);
  GridPlan p = grid_plan(self.sizes(), *g, mode, padding, align, values, false);
  p.x = x->data;
  p.y = y->data;
  p.slopes = slopes->data;
  p.run.units[0] = p.n * p.n_tiles;
  if (slopes->numel) launch_stages(kernel_grid_slopes, grid.device, &p.run);
  return slopes;
}

// ---- grid_sample ----

static void check_grid(const Tensor& input, const Tensor& grid, int64_t mode) {
  check_same_device(input, "input", grid, "grid");
  if (!is_float(input.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}: must be floating", fmt(input.dtype));
  if (grid.dtype != input.dtype)
    fail_arg(TT_DTYPE, "grid", "grid is {}, input is {}: must be equal", fmt(grid.dtype),
             fmt(input.dtype));
  const int64_t dims = input.ndim - 2;
  if ((dims != 2 && dims != 3) || grid.ndim != input.ndim || grid.size(-1) != dims ||
      grid.size(0) != input.size(0))
    fail_arg(TT_SHAPE, "grid",
             "grid is {}, input is {}: must be (N, …, 2) for (N, C, H, W) or (N, …, 3) for (N, C, "
             "D, H, W)",
             grid.sizes(), input.sizes());
  for (int64_t d = 2; d < input.ndim; d++)
    if (input.size(d) == 0)
      fail_arg(TT_SHAPE, "input", "input is {}: spatial sizes must not be 0", input.sizes());
  if (mode == kGridModeBicubic && dims == 3)
    fail_arg(TT_NOT_IMPLEMENTED, "mode", "mode is bicubic, input is {}: must have 4 dimensions",
             input.sizes());
}

TensorRef grid_sample(Call, const Tensor& input, const Tensor& grid, int64_t mode,
                      int64_t padding_mode, Opt<bool> align_corners) {
  static_assert(int64_t(kGridModeBilinear) == kGridLinear &&
                kGridModeNearest == int64_t(kGridNearest) &&
                kGridModeBicubic == int64_t(kGridCubic));
  static_assert(kGridPaddingZeros == int64_t(kGridZeros) &&
                kGridPaddingBorder == int64_t(kGridBorder) &&
                kGridPaddingReflection == int64_t(kGridReflection));
  check_grid(input, grid, mode);
  checked_numel(sampled(input.sizes(), grid), input.dtype, "grid");
  const int64_t order[kGridDims] = {};
  const Ints values(order, input.ndim - 2);
  const bool align = align_corners.or_else(false);
  const bool is_large = numel_of(input.sizes().slice(2, input.ndim)) > INT32_MAX;
  const Dtype computed = is_large ? Dtype::kF64 : Dtype::kF32;
  if (input.dtype == computed || input.dtype == Dtype::kF64)
    return op::grid_take(input, grid, mode, padding_mode, align, values);
  TensorRef x = op::to_dtype(input, computed);  // rounded once, at the end
  TensorRef g = op::to_dtype(grid, computed);
  return op::to_dtype(*op::grid_take(*x, *g, mode, padding_mode, align, values), input.dtype);
}

// ---- affine_grid ----

// n positions from -1 to 1: the centres of the outer elements or, not aligned, their outer edges.
static TensorRef line_of(int64_t n, bool align, const Tensor& like) {
  const double last = n > 1 && !align ? double(n - 1) / double(n) : 1;
  if (n == 1) return op::zeros(Ints(&n, 1), like.dtype, Opt<Device>(like.device));
  return op::linspace(Scalar(-last), Scalar(last), n, like.dtype, Opt<Device>(like.device));
}

TensorRef affine_grid(Call, const Tensor& theta, Ints size, Opt<bool> align_corners) {
  const int64_t dims = size.n - 2;
  if (!is_float(theta.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "theta", "theta is {}: must be floating", fmt(theta.dtype));
  if (dims != 2 && dims != 3)
    fail_arg(TT_INVALID_ARG, "size", "size is {}: must be (N, C, H, W) or (N, C, D, H, W)", size);
  for (int64_t n : size)
    if (n < 1) fail_arg(TT_INVALID_ARG, "size", "size is {}: must be positive", size);
  const int64_t matrices[3] = {size[0], dims, dims + 1};
  if (!same(theta.sizes(), Ints(matrices, 3)))
    fail_arg(TT_SHAPE, "theta", "theta is {}, size is {}: must be {}", theta.sizes(), size,
             Ints(matrices, 3));
  Shape grid(size.slice(2, size.n));
  grid.push_back(dims + 1);
  checked_numel(grid, theta.dtype, "size");
  TensorRef base = op::ones(grid, theta.dtype, Opt<Device>(theta.device));
  for (int64_t d = 0; d < dims; d++) {
    Shape along;
    along.resize(dims, 1);
    along[d] = size[2 + d];
    TensorRef line = line_of(size[2 + d], align_corners.or_else(false), theta);
    TensorRef column = op::select(*base, dims, dims - 1 - d);
    op::copy_(*column, *op::reshape(*line, along));
  }
  const int64_t points[2] = {numel_of(size.slice(2, size.n)), dims + 1};
  TensorRef out = op::matmul(*op::reshape(*base, points), *op::transpose(theta, 1, 2));
  Shape result{size[0]};
  result.append(size.slice(2, size.n));
  result.push_back(dims);
  return op::reshape(*out, result);
}

}  // namespace TT_NS::impl
