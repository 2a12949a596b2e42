#include "autograd/formulas.h"

#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

TensorRef scaled(const Tensor& g, const Scalar& k) {
  return k.is_one() && k.category() <= category(g.dtype) ? TensorRef::share(&g) : op::mul(g, k);
}

// d(x^y)/dx = y x^(y-1), and 0 where y is 0 (also at x = 0, where the product would be nan).
TensorRef pow_backward_self(const Tensor& g, const Tensor& self, const Tensor& exponent) {
  TensorRef slope = op::mul(exponent, op::pow(self, op::sub(exponent, 1)));
  return op::masked_fill(*op::mul(g, op::conj(slope)), *op::eq(exponent, 0), 0);
}

// d(x^y)/dy = x^y log x; 0 where x = 0 and y >= 0.
TensorRef pow_backward_exponent(const Tensor& g, const Tensor& self, const Tensor& exponent,
                                const Tensor& y) {
  TensorRef zero = op::eq(self, 0);
  if (!is_complex(exponent.dtype)) zero = op::mul(*zero, *op::ge(exponent, 0));
  return op::mul(g, op::masked_fill(*op::conj(op::mul(y, op::log(self))), *zero, 0));
}

TensorRef pow_scalar_backward(const Tensor& g, const Tensor& self, const Scalar& exponent) {
  if (exponent.is_zero()) return op::zeros_like(g);
  return op::mul(g, op::conj(op::mul(op::pow(self, exponent - 1), exponent)));
}

TensorRef pow_base_backward(const Tensor& g, const Scalar& self, const Tensor& exponent,
                            const Tensor& y) {
  TensorRef base = op::full(
      {}, self, is_complex(exponent.dtype) || self.is_complex() ? complex_of(y.dtype) : y.dtype,
      y.device);
  TensorRef slope = op::conj(op::mul(y, op::log(*base)));
  if (self.is_zero() && !is_complex(exponent.dtype))
    slope = op::masked_fill(slope, *op::ge(exponent, 0), 0);
  return op::mul(g, *slope);
}

TensorRef maximum_backward(const Tensor& g, const Tensor& self, const Tensor& other) {
  TensorRef shared = op::where(*op::eq(self, other), *op::mul(g, 0.5), g);
  return op::masked_fill(shared, *op::lt(self, other), 0);
}

TensorRef minimum_backward(const Tensor& g, const Tensor& self, const Tensor& other) {
  TensorRef shared = op::where(*op::eq(self, other), *op::mul(g, 0.5), g);
  return op::masked_fill(shared, *op::gt(self, other), 0);
}

// The gradient at a bound is 0, as relu's is.
TensorRef clamp_backward(const Tensor& g, const Tensor& self, const Scalar* min,
                         const Scalar* max) {
  TensorRef out = TensorRef::share(&g);
  if (min) out = op::masked_fill(out, *op::logical_not(op::gt(self, *min)), 0);
  if (max) out = op::masked_fill(out, *op::logical_not(op::lt(self, *max)), 0);
  return out;
}

TensorRef permute_backward(const Tensor& g, Ints dims) {
  Shape inverse;
  inverse.resize(dims.n);
  for (int64_t i = 0; i < dims.n; i++) inverse[wrap_dim(dims[i], dims.n)] = i;
  return op::permute(g, inverse);
}

TensorRef squeeze_dim(const Tensor& g, int64_t dim) { return op::squeeze_dims(g, Ints(&dim, 1)); }

TensorRef roll_backward(const Tensor& g, Ints shifts, Ints dims) {
  Shape back;
  for (int64_t i = 0; i < shifts.n; i++) {
    const int64_t n = dims.empty() ? g.numel : g.size(wrap_dim(dims[i], g.ndim));
    back.push_back(n ? -(shifts[i] % n) : 0);
  }
  return op::roll(g, back, dims);
}

static int64_t extent(Ints sizes, Ints strides) {
  int64_t n = 1;
  for (int64_t d = 0; d < sizes.n; d++) {
    if (sizes[d] == 0) return 0;
    n += (sizes[d] - 1) * strides[d];
  }
  return n;
}

// The storage position of every element of a geometry, flattened.
static TensorRef positions(Ints sizes, Ints strides, int64_t offset, Device device) {
  TensorRef p = op::full({}, offset, Dtype::kI64, device);
  for (int64_t d = 0; d < sizes.n; d++) {
    Shape shape;
    shape.resize(sizes.n - d, 1);
    shape[0] = sizes[d];
    TensorRef step = op::mul(*op::arange(0, sizes[d], 1, Dtype::kI64, device), strides[d]);
    p = op::add(p, *op::view(step, shape));
  }
  const int64_t flat = -1;
  return op::reshape(*op::expand(p, sizes), Ints(&flat, 1));
}

static TensorRef accumulate(TensorRef buffer, const Tensor& g, Ints size, Ints stride,
                            int64_t offset) {
  if (!may_overlap_self(size, stride))
    return op::as_strided_scatter(buffer, g, size, stride, offset);
  const int64_t flat = -1;
  return op::index_add(buffer, 0, *positions(size, stride, offset, g.device),
                       *op::reshape(g, Ints(&flat, 1)));
}

// Adds g into a storage by the view's geometry, divides where the base itself visits an element
// several times, and reads the base's geometry off it (as torch/csrc/autograd describes its
// as_strided backward).
TensorRef as_strided_backward(const Tensor& g, Ints base_sizes, Ints base_strides,
                              int64_t base_offset, Ints size, Ints stride,
                              Opt<int64_t> storage_offset) {
  int64_t offset = storage_offset.or_else(base_offset);
  int64_t start = min(offset, base_offset);
  int64_t view_end = offset + extent(size, stride);
  int64_t base_end = base_offset + extent(base_sizes, base_strides);
  const int64_t n = max(view_end, base_end) - start;
  TensorRef buffer =
      accumulate(op::zeros(Ints(&n, 1), g.dtype, g.device), g, size, stride, offset - start);
  if (may_overlap_self(base_sizes, base_strides)) {
    TensorRef ones = op::ones(base_sizes, g.dtype, g.device);
    TensorRef count = accumulate(op::zeros(Ints(&n, 1), g.dtype, g.device), ones, base_sizes,
                                 base_strides, base_offset - start);
    buffer = op::div_true(buffer, *op::masked_fill(count, *op::eq(count, 0), 1));
  }
  return op::as_strided(buffer, base_sizes, base_strides, base_offset - start);
}

TensorRef sum_dim_backward(const Tensor& g, Ints size, Ints dim, bool keepdim) {
  if (keepdim) return op::expand(g, size);
  Shape kept(size);
  uint64_t mask = dim_mask(dim, size.n, true);
  for (int64_t d = 0; d < size.n; d++)
    if (mask >> d & 1) kept[d] = 1;
  return op::expand(*op::reshape(g, kept), size);
}

// t with the reduced dimensions back, of size 1.
static TensorRef with_dims(const Tensor& t, Ints size, Ints dim, bool keepdim) {
  if (keepdim || size.n == 0) return TensorRef::share(&t);
  Shape kept(size);
  const uint64_t mask = dim_mask(dim, size.n, true);
  for (int64_t d = 0; d < size.n; d++)
    if (mask >> d & 1) kept[d] = 1;
  return op::reshape(t, kept);
}
TensorRef extreme_dims_backward(const Tensor& g, const Tensor& self, const Tensor& y, Ints dim,
                                bool keepdim) {
  TensorRef hit = op::to_dtype(*op::eq(self, *with_dims(y, self.sizes(), dim, keepdim)), g.dtype);
  return op::div_true(*op::mul(*hit, *with_dims(g, self.sizes(), dim, keepdim)),
                      *op::sum_dim(*hit, dim, true));
}
TensorRef cumsum_backward(const Tensor& g, int64_t dim) {
  const Ints dims(&dim, 1);
  return op::flip(*op::cumsum(*op::flip(g, dims), dim), dims);
}
TensorRef logsumexp_backward(const Tensor& g, const Tensor& self, const Tensor& y, Ints dim,
                             bool keepdim) {
  TensorRef share = op::exp(*op::sub(self, *with_dims(y, self.sizes(), dim, keepdim)));
  return op::mul(*with_dims(g, self.sizes(), dim, keepdim), *op::conj(*share));
}

// x moved up by s in dim, ones in front.
static TensorRef moved_up(const Tensor& x, int64_t dim, int64_t s) {
  Shape front(x.sizes());
  front[dim] = s < x.size(dim) ? s : x.size(dim);
  TensorRef ones = op::ones(front, x.dtype, x.device);
  TensorRef rest = op::slice(x, dim, 0, x.size(dim) - front[dim]);
  const Tensor* const parts[2] = {ones.get(), rest.get()};
  return op::cat(parts, dim);
}
// The product of all elements in front of each, in log2(n) steps.
static TensorRef before(const Tensor& x, int64_t dim) {
  TensorRef r = moved_up(x, dim, 1);
  for (int64_t s = 1; s < x.size(dim); s *= 2) r = op::mul(r, *moved_up(r, dim, s));
  return r;
}
// The other elements' product: y / x, or where there are zeros, from both sides.
TensorRef prod_dim_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t dim,
                            bool keepdim) {
  if (self.ndim == 0) return TensorRef::share(&g);
  const int64_t d = wrap_dim(dim, self.ndim);
  TensorRef x = self.dtype == y.dtype ? TensorRef::share(&self) : op::to_dtype(self, y.dtype),
            others;
  TensorRef gk = keepdim ? TensorRef::share(&g) : op::unsqueeze(g, d);
  TensorRef yk = keepdim ? TensorRef::share(&y) : op::unsqueeze(y, d);
  if (self.device.type != TT_META && read_scalar(*op::any(op::eq(*x, 0))).is_zero()) {
    others = op::div_true(*yk, *x);
  } else {
    TensorRef turned = op::flip(*x, Ints(&d, 1));
    others = op::mul(*before(x, d), *op::flip(*before(turned, d), Ints(&d, 1)));
  }
  return op::mul(*gk, *op::conj(*others));
}
TensorRef prod_backward(const Tensor& g, const Tensor& self, const Tensor& y) {
  const int64_t flat[1] = {-1};
  TensorRef x = op::reshape(self, flat);
  return op::reshape(*prod_dim_backward(g, x, y, 0, false), self.sizes());
}

// S[k] = g[k] + x[k + 1] S[k + 1] in log2(n) steps over pairs: S[k] = b[k] + a[k] S[k + s].
static TensorRef reversed_recurrence(const Tensor& g, const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  auto moved_down = [&](const Tensor& t, int64_t s) {  // t from s on, zeros behind
    Shape end(t.sizes());
    end[dim] = s;
    TensorRef zeros = op::zeros(end, t.dtype, t.device);
    TensorRef rest = op::slice(t, dim, s, n);
    const Tensor* const parts[2] = {rest.get(), zeros.get()};
    return op::cat(parts, dim);
  };
  TensorRef a = moved_down(x, 1);
  TensorRef b = TensorRef::share(&g);
  for (int64_t s = 1; s < n; s *= 2) {
    b = op::add(*b, *op::mul(*a, *moved_down(b, s)));
    if (2 * s < n) a = op::mul(*a, *moved_down(a, s));
  }
  return b;
}
// dx[k] = sum over i >= k of g[i] times the other elements' product up to i.
TensorRef cumprod_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t dim) {
  if (self.numel <= 1 || self.size(wrap_dim(dim, self.ndim)) == 1) return TensorRef::share(&g);
  const int64_t d = wrap_dim(dim, self.ndim);
  TensorRef x = op::conj(self.dtype == y.dtype ? self : *op::to_dtype(self, y.dtype));
  if (self.device.type != TT_META && read_scalar(*op::any(op::eq(*x, 0))).is_zero())
    return op::div_true(*cumsum_backward(*op::mul(g, op::conj(y)), d), *x);
  return op::mul(*before(x, d), *reversed_recurrence(g, x, d));
}

TensorRef norm_backward(const Tensor& g, const Tensor& self, const Tensor& y, double p, Ints dim,
                        bool keepdim) {
  TensorRef x = TensorRef::share(&self);
  if (real_of(x->dtype) != y.dtype)
    x = op::to_dtype(self, is_complex(self.dtype) ? complex_of(y.dtype) : y.dtype);
  if (p == 0) return op::zeros(self.sizes(), x->dtype, self.device);
  TensorRef gk = with_dims(g, self.sizes(), dim, keepdim);
  TensorRef yk = with_dims(y, self.sizes(), dim, keepdim);
  if (p == 1) return op::mul(*op::sgn(x), *gk);
  if (p == 2) return op::mul(*gk, *op::masked_fill(*op::div_true(*x, *yk), *op::eq(*yk, 0), 0));
  TensorRef size = op::abs(*x);
  if (p == __builtin_inf() || p == -__builtin_inf()) {
    TensorRef hit = op::to_dtype(*op::logical_or(op::eq(*size, *yk), op::isnan(*size)), y.dtype);
    return op::mul(*op::sgn(x), *op::mul(*op::div_true(*gk, *op::sum_dim(*hit, dim, true)), *hit));
  }
  if (p < 1) {
    TensorRef slope =
        op::masked_fill(*op::mul(*op::sgn(x), *op::pow(*size, Scalar(p - 1))), *op::eq(*x, 0), 0);
    return op::mul(*op::mul(*slope, *gk), *op::pow(*yk, Scalar(1 - p)));
  }
  TensorRef slope = p < 2 ? op::mul(*op::sgn(x), *op::pow(*size, Scalar(p - 1)))
                          : op::mul(*x, *op::pow(*size, Scalar(p - 2)));
  return op::mul(*slope, *op::masked_fill(*op::div_true(*gk, *op::pow(*yk, Scalar(p - 1))),
                                          *op::eq(*yk, 0), 0));
}

TensorRef mean_backward(const Tensor& g, Ints size) {
  return op::mul(*op::expand(g, size), 1.0 / double(numel_of(size)));
}

TensorRef mean_dim_backward(const Tensor& g, Ints size, Ints dim, bool keepdim) {
  uint64_t mask = dim_mask(dim, size.n, true);
  int64_t n = 1;
  for (int64_t d = 0; d < size.n; d++)
    if (mask >> d & 1) n *= size[d];
  return op::mul(*sum_dim_backward(g, size, dim, keepdim), 1.0 / double(n));
}

TensorRef max_full_backward(const Tensor& g, const Tensor& self, const Tensor& max) {
  TensorRef hit = op::to_dtype(*op::add(op::eq(self, max), op::ne(self, self)),
                               g.dtype);  // a nan wins, and is not equal to itself
  return op::mul(*op::div_true(*hit, *op::sum(hit)), g);
}

TensorRef pick_backward(const Tensor& g, Ints size, int64_t dim, const Tensor& index,
                        bool keepdim) {
  if (size.n == 0) return TensorRef::share(&g);
  TensorRef zeros = op::zeros(size, g.dtype, g.device);
  if (keepdim) return op::scatter_add(zeros, dim, index, g);
  return op::scatter_add(zeros, dim, *op::unsqueeze(index, dim), *op::unsqueeze(g, dim));
}

// sizes is one matrix, the gradient a stack of them; nothing is empty.
static bool one_of_many(Ints sizes, const Tensor& g, const Tensor& other) {
  return g.ndim > 2 && g.numel && other.numel && numel_of(sizes.slice(0, sizes.n - 2)) == 1;
}
// a: (…, r, p), b: (…, r, q) with equal stacks -> (p, q), summed over the stack.
static TensorRef fold_product(const Tensor& a, const Tensor& b, Ints shape) {
  const int64_t flat_a[2] = {-1, a.size(-1)};
  const int64_t flat_b[2] = {-1, b.size(-1)};
  TensorRef p =
      op::matmul_stack(op::transpose(op::reshape(a, flat_a), 0, 1), op::reshape(b, flat_b));
  return op::reshape(*p, shape);
}
TensorRef matmul_self_backward(const Tensor& g, const Tensor& other, Ints self_sizes) {
  TensorRef turned = op::transpose(op::conj(other), -2, -1);
  if (one_of_many(self_sizes, g, other))
    return fold_product(op::transpose(g, -2, -1), turned, self_sizes);
  return op::matmul_stack(g, turned);
}
TensorRef matmul_other_backward(const Tensor& g, const Tensor& self, Ints other_sizes) {
  TensorRef straight = op::conj(self);
  if (one_of_many(other_sizes, g, self)) return fold_product(straight, g, other_sizes);
  return op::matmul_stack(op::transpose(*straight, -2, -1), g);
}
TensorRef linear_weight_backward(const Tensor& g, const Tensor& input) {
  if (input.ndim == 2) return op::matmul_stack(*op::transpose(g, 0, 1), op::conj(input));
  const int64_t rows_of = numel_of(g.sizes().slice(0, g.ndim - 1));
  const int64_t g_shape[2] = {rows_of, g.size(-1)};
  const int64_t x_shape[2] = {rows_of, input.size(-1)};
  TensorRef rows = op::reshape(g, g_shape);
  TensorRef x = op::reshape(input, x_shape);
  return op::matmul_stack(*op::transpose(*rows, 0, 1), op::conj(*x));
}

TensorRef as_strided_scatter_self(const Tensor& g, Ints strides, Ints size, Ints stride,
                                  int64_t offset) {
  return op::as_strided_scatter(*op::restride(g, strides), *op::zeros(size, g.dtype, g.device),
                                size, stride, offset);
}

}  // namespace TT_NS::formula
