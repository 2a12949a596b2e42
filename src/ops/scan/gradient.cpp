// gradient: derivatives along dimensions from values at points.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::impl {

static Shape checked_dims(const Tensor& self, Ints dim, int64_t edge_order) {
  if (self.dtype == Dtype::kBool)
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is bool: must hold numbers");
  if (edge_order != 1 && edge_order != 2)
    fail_arg(TT_INVALID_ARG, "edge_order", "edge_order is {}: must be 1 or 2", edge_order);
  dim_mask(dim, self.ndim, true);  // refuses duplicates
  Shape dims;
  for (int64_t i = 0; i < (dim.n ? dim.n : self.ndim); i++) {
    const int64_t d = dim.n ? wrap_dim(dim[i], self.ndim) : i;
    if (self.ndim == 0 || self.size(d) <= edge_order)
      fail_arg(TT_INVALID_ARG, "self",
               "self is {}: the sizes of the dimensions must be at least edge_order + 1 ({})",
               self.sizes(), edge_order + 1);
    dims.push_back(d);
  }
  return dims;
}

// Values at indices [begin, begin + length) of dimension d; a negative begin counts from the end.
static TensorRef part(const Tensor& x, int64_t d, int64_t begin, int64_t length) {
  return op::narrow(x, d, begin < 0 ? begin + x.size(d) : begin, length);
}

// ---- equal distances ----

// The one-sided difference at the first or last element, times the distance.
static TensorRef edge(const Tensor& x, int64_t d, bool last, int64_t order) {
  const int64_t at = last ? -1 : 0;
  const int64_t step = last ? -1 : 1;
  TensorRef end = part(x, d, at, 1);
  TensorRef next = part(x, d, at + step, 1);
  TensorRef y;
  if (order == 1) {
    y = op::sub(*next, *end);
  } else {
    y = op::add(*op::mul(*end, -1.5), *op::mul(*next, 2));
    y = op::add(*y, *op::mul(*part(x, d, at + 2 * step, 1), -0.5));
  }
  return last ? op::neg(*y) : std::move(y);
}
static TensorRef difference(const Tensor& x, int64_t d, const Scalar& spacing, int64_t order) {
  const int64_t inside = x.size(d) - 2;
  TensorRef first = edge(x, d, false, order);
  TensorRef last = edge(x, d, true, order);
  TensorRef middle = op::sub(*part(x, d, 2, inside), *part(x, d, 0, inside));
  middle = op::mul(*middle, 0.5);
  const Tensor* const parts[3] = {first.get(), middle.get(), last.get()};
  TensorRef y = op::cat(parts, d);
  return op::div(*y, spacing);
}

TensorList gradient(Call, const Tensor& self, const Scalar& spacing, Ints dim, int64_t edge_order) {
  TensorList out;
  for (int64_t d : checked_dims(self, dim, edge_order))
    out.push_back(difference(self, d, spacing, edge_order));
  return out;
}

// ---- given points ----

// Weights of three neighbours: the derivative of the parabola through them, at the first, the
// second or the third.
struct Parabola {
  TensorRef a, b, c;
};
static Parabola parabola(const Tensor& h, const Tensor& k, int64_t at) {  // h, k: the distances
  TensorRef both = op::add(h, k);
  TensorRef left = op::mul(h, *both);
  TensorRef right = op::mul(k, *both);
  TensorRef middle = op::mul(h, k);
  if (at == 0)
    return {op::neg(*op::div(*op::add(*both, h), *left)), op::div(*both, *middle),
            op::neg(*op::div(h, *right))};
  if (at == 1)
    return {op::neg(*op::div(k, *left)), op::div(*op::sub(k, h), *middle), op::div(h, *right)};
  return {op::div(k, *left), op::neg(*op::div(*both, *middle)),
          op::div(*op::add(*both, k), *right)};
}
// The derivative at `length` neighbours of which the first is `at` behind `begin`.
static TensorRef by_parabola(const Tensor& x, int64_t d, const Tensor& distances, int64_t begin,
                             int64_t length, int64_t at) {
  if (begin < 0) begin += x.size(d);
  const Parabola w =
      parabola(*part(distances, d, begin, length), *part(distances, d, begin + 1, length), at);
  TensorRef y = op::mul(*part(x, d, begin, length), *w.a);
  y = op::add(*y, *op::mul(*part(x, d, begin + 1, length), *w.b));
  return op::add(*y, *op::mul(*part(x, d, begin + 2, length), *w.c));
}
static TensorRef two_points(const Tensor& x, int64_t d, const Tensor& distances, int64_t begin) {
  TensorRef rise = op::sub(*part(x, d, begin + 1, 1), *part(x, d, begin, 1));
  return op::div(*rise, *part(distances, d, begin, 1));
}
static TensorRef difference(const Tensor& x, int64_t d, const Tensor& points, int64_t order) {
  const int64_t n = x.size(d);
  if (points.ndim != 1 || points.numel != n)
    fail_arg(TT_SHAPE, "spacing", "the points along dimension {} are {}: must be [{}]", d,
             points.sizes(), n);
  Shape shape;
  shape.resize(x.ndim, 1);
  shape[d] = n - 1;
  TensorRef distances = op::reshape(*op::diff(points), shape);
  TensorRef first =
      order == 1 ? two_points(x, d, *distances, 0) : by_parabola(x, d, *distances, 0, 1, 0);
  TensorRef last =
      order == 1 ? two_points(x, d, *distances, n - 2) : by_parabola(x, d, *distances, n - 3, 1, 2);
  if (n == 2) {
    const Tensor* const ends[2] = {first.get(), last.get()};
    return op::cat(ends, d);
  }
  TensorRef middle = by_parabola(x, d, *distances, 0, n - 2, 1);
  const Tensor* const parts[3] = {first.get(), middle.get(), last.get()};
  return op::cat(parts, d);
}

TensorList gradient_points(Call, const Tensor& self, TensorSpan spacing, Ints dim,
                           int64_t edge_order) {
  const Shape dims = checked_dims(self, dim, edge_order);
  if (spacing.n != dims.size())
    fail_arg(TT_INVALID_ARG, "spacing", "spacing has {} tensors, dim {} entries: must be equal",
             spacing.n, dims.size());
  TensorList out;
  for (int64_t i = 0; i < dims.size(); i++) {
    check_same_device(self, "self", *spacing[i], "spacing");
    out.push_back(difference(self, dims[i], *spacing[i], edge_order));
  }
  return out;
}

}  // namespace TT_NS::impl
