// grid_sample and affine_grid. Sampling gathers the elements around each position and adds them up
// with their weights, in differentiable operators.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

namespace TT_NS::impl {

// ---- positions along one dimension, in elements of the input ----

struct Axis {
  int64_t size;
  int64_t padding;
  bool align;
};

// From [-1, 1] to elements: -1 and 1 are the centres of the outer elements, or their outer edges.
static TensorRef position_of(const Tensor& grid, const Axis& axis) {
  const double n = double(axis.size);
  const double factor = axis.align ? (n - 1) / 2 : n / 2;
  return op::add(*op::mul(*op::add(grid, Scalar(1)), Scalar(factor)),
                 Scalar(axis.align ? 0 : -0.5));
}
// x within the borders; elsewhere the border, which has no gradient.
static TensorRef clipped(const Tensor& x, int64_t size) {
  const Scalar low(0);
  const Scalar high(size - 1);
  TensorRef inside = op::logical_and(*op::gt(x, low), *op::lt(x, high));
  return op::where(*inside, x, *op::clamp(*op::detach(x), &low, &high));
}
// x reflected at the borders until it is within them.
static TensorRef reflected(const Tensor& x, const Axis& axis) {
  const double low = axis.align ? 0 : -0.5;
  const double span = axis.align ? double(axis.size - 1) : double(axis.size);
  if (span == 0) return op::mul(x, Scalar(0));
  TensorRef from_low = op::sub(x, Scalar(low));
  TensorRef distance = op::where(*op::lt(*from_low, Scalar(0)), *op::neg(*from_low), *from_low);
  TensorRef flips = op::floor(*op::div(*op::detach(*distance), Scalar(span)));
  TensorRef rest = op::fmod(*distance, Scalar(span));
  TensorRef odd = op::ne(*op::remainder(*flips, Scalar(2)), Scalar(0));
  TensorRef inside = op::where(*odd, *op::rsub(*rest, Scalar(span)), *rest);
  return op::add(*inside, Scalar(low));
}
static TensorRef padded(const Tensor& x, const Axis& axis) {
  if (axis.padding == kGridPaddingZeros) return TensorRef::share(&x);
  if (axis.padding == kGridPaddingBorder) return clipped(x, axis.size);
  return clipped(*reflected(x, axis), axis.size);
}
// Replaces nan and what an index cannot hold by a position outside.
static TensorRef representable(const Tensor& x) {
  constexpr double kLimit = 2147483648.0;
  TensorRef good = op::lt(*op::abs(x), Scalar(kLimit));
  return op::masked_fill(x, *op::logical_not(*good), Scalar(-100));
}

// ---- taps: the elements that are read ----

// One element per position, (N, 1, P): its index, whether it is inside, and its weight.
struct Tap {
  TensorRef index, outside, weight;

  // at: positions without a fraction, within the borders or to be ignored.
  Tap(const Tensor& at, TensorRef its_weight, int64_t size) : weight(std::move(its_weight)) {
    const Scalar low(0);
    const Scalar high(size - 1);
    outside = op::logical_or(*op::lt(at, low), *op::gt(at, high));
    index = op::to_dtype(*op::clamp(at, &low, &high), Dtype::kI64);
  }
};
using Taps = SmallVec<Tap, 4>;

static void add_nearest(Taps* taps, const Tensor& x, const Axis& axis) {
  TensorRef at = op::round(*representable(*op::detach(*padded(x, axis))));
  // The weight is 1, and its gradient 0.
  TensorRef none = op::masked_fill(x, *op::ones_like(x, Dtype::kBool), Scalar(0));
  taps->push_back(Tap(*at, op::add(*none, Scalar(1)), axis.size));
}
static void add_linear(Taps* taps, const Tensor& x, const Axis& axis) {
  TensorRef p = representable(*padded(x, axis));
  TensorRef low = op::floor(*op::detach(*p));
  TensorRef weight = op::sub(*p, *low);
  taps->push_back(Tap(*low, op::rsub(*weight, Scalar(1)), axis.size));
  taps->push_back(Tap(*op::add(*low, Scalar(1)), std::move(weight), axis.size));
}
// Keys' kernel with a = -3/4, at distances in [0, 1] and [1, 2].
static TensorRef cubic_near(const Tensor& d) {
  constexpr double a = -0.75;
  TensorRef y = op::sub(*op::mul(d, Scalar(a + 2)), Scalar(a + 3));
  return op::add(*op::mul(*op::mul(*y, d), d), Scalar(1));
}
static TensorRef cubic_far(const Tensor& d) {
  constexpr double a = -0.75;
  TensorRef y = op::sub(*op::mul(d, Scalar(a)), Scalar(5 * a));
  y = op::add(*op::mul(*y, d), Scalar(8 * a));
  return op::sub(*op::mul(*y, d), Scalar(4 * a));
}
static void add_cubic(Taps* taps, const Tensor& x, const Axis& axis) {
  TensorRef p = representable(x);
  TensorRef low = op::floor(*op::detach(*p));
  TensorRef t = op::sub(*p, *low);
  TensorRef rest = op::rsub(*t, Scalar(1));
  TensorRef weights[4] = {cubic_far(*op::add(*t, Scalar(1))), cubic_near(*t), cubic_near(*rest),
                          cubic_far(*op::add(*rest, Scalar(1)))};
  for (int64_t k = 0; k < 4; k++) {
    TensorRef at = padded(*op::add(*low, Scalar(k - 1)), axis);
    taps->push_back(Tap(*at, std::move(weights[k]), axis.size));
  }
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

// The sum over the taps of one dimension after the other: `index`, `weight` and `outside` are those
// of the dimensions so far.
struct Sampler {
  const Tensor& flat;  // (N, C, elements)
  const Taps* taps;
  const int64_t* sizes;
  int64_t dims;
  TensorRef sum;

  void add(int64_t d, const Tensor* index, const Tensor* weight, const Tensor* outside) {
    if (d == dims) return add_elements(*index, *weight, *outside);
    for (const Tap& tap : taps[d]) {
      if (d == 0) {
        add(1, tap.index.get(), tap.weight.get(), tap.outside.get());
        continue;
      }
      TensorRef at = op::add(*tap.index, *index, Scalar(sizes[d]));
      TensorRef product = op::mul(*weight, *tap.weight);
      TensorRef out = op::logical_or(*outside, *tap.outside);
      add(d + 1, at.get(), product.get(), out.get());
    }
  }
  void add_elements(const Tensor& index, const Tensor& weight, const Tensor& outside) {
    const int64_t shape[3] = {flat.size(0), flat.size(1), index.size(2)};
    TensorRef value = op::gather(flat, 2, *op::expand(index, shape));
    TensorRef part = op::mul(*op::masked_fill(*value, outside, Scalar(0)), weight);
    sum = sum ? op::add(*sum, *part) : std::move(part);
  }
};

TensorRef grid_sample(Call, const Tensor& input, const Tensor& grid, int64_t mode,
                      int64_t padding_mode, Opt<bool> align_corners) {
  check_grid(input, grid, mode);
  const int64_t dims = input.ndim - 2;
  Shape result(input.sizes().slice(0, 2));
  result.append(grid.sizes().slice(1, dims + 1));
  checked_numel(result, input.dtype, "grid");
  const bool narrow = input.item_size() == 2;  // rounded once, at the end
  TensorRef x = narrow ? op::to_dtype(input, Dtype::kF32) : TensorRef::share(&input);
  TensorRef g = narrow ? op::to_dtype(grid, Dtype::kF32) : TensorRef::share(&grid);
  const int64_t points[4] = {grid.size(0), 1, numel_of(result.span().slice(2, dims + 2)), dims};
  g = op::reshape(*g, points);
  const int64_t elements = numel_of(input.sizes().slice(2, input.ndim));
  const int64_t planes[3] = {input.size(0), input.size(1), elements};
  x = op::reshape(*x, planes);
  Taps taps[3];
  for (int64_t d = 0; d < dims; d++) {
    const Axis axis = {input.size(2 + d), padding_mode, align_corners.or_else(false)};
    // The last number of a position is that of the first dimension.
    TensorRef at = position_of(*op::select(*g, 3, dims - 1 - d), axis);
    if (mode == kGridModeNearest) add_nearest(&taps[d], *at, axis);
    else if (mode == kGridModeBilinear) add_linear(&taps[d], *at, axis);
    else add_cubic(&taps[d], *at, axis);
  }
  Sampler sampler{*x, taps, input.sizes().ptr + 2, dims, {}};
  sampler.add(0, nullptr, nullptr, nullptr);
  TensorRef y = op::reshape(*sampler.sum, result);
  return narrow ? op::to_dtype(*y, input.dtype) : std::move(y);
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
