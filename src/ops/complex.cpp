// Complex tensors: views of their parts, and what is made of two real tensors.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

namespace TT_NS::impl {

// Makes a view of another dtype.
static TensorRef make_complex_view(const Tensor& self, Ints sizes, Ints strides, Dtype dtype) {
  atomic_store(&complex_views.as_real, &op_view_as_real, kRelaxed);
  atomic_store(&complex_views.as_complex, &op_view_as_complex, kRelaxed);
  return make_view(self, sizes, strides, self.data, dtype);
}

TensorRef view_as_real(Call, const Tensor& self) {
  if (!is_complex(self.dtype))
    fail_arg(TT_DTYPE, "self", "self is {}: must be complex", fmt(self.dtype));
  Shape sizes(self.sizes());
  Shape strides(self.strides());
  for (int64_t& s : strides)  // overflows only in a tensor without elements
    if (mul_overflow(s, 2, &s)) s = kMaxIdleStride;
  sizes.push_back(2);
  strides.push_back(1);
  checked_numel(sizes, real_of(self.dtype), "result");
  return make_complex_view(self, sizes, strides, real_of(self.dtype));
}
TensorRef view_as_complex(Call, const Tensor& self) {
  if (self.dtype != Dtype::kF32 && self.dtype != Dtype::kF64)
    fail_arg(TT_DTYPE, "self", "self is {}: must be float32 or float64", fmt(self.dtype));
  if (!self.ndim || self.size(-1) != 2 || self.stride(-1) != 1)
    fail_arg(TT_SHAPE, "self",
             "self has shape {} and strides {}: the last dimension must have size 2 and stride 1",
             self.sizes(), self.strides());
  if (self.offset() % 2)
    fail_arg(TT_SHAPE, "self", "self begins at element {} of its storage: must be even",
             self.offset());
  const int64_t bytes = 2 * self.item_size();
  if (self.device.type == TT_CUDA && uintptr_t(self.data) % uintptr_t(bytes))  // memory of others
    fail_arg(TT_INVALID_ARG, "self",
             "self is not aligned to the {} bytes of a complex number, as devices read it", bytes);
  Shape sizes(self.sizes());
  Shape strides(self.strides());
  sizes.pop_back();
  strides.pop_back();
  for (int64_t i = 0; i < sizes.size(); i++) {
    if (strides[i] % 2 && sizes[i] != 1)
      fail_arg(TT_SHAPE, "self", "self has strides {}: all but the last must be even",
               self.strides());
    strides[i] /= 2;
  }
  return make_complex_view(self, sizes, strides, complex_of(self.dtype));
}

TensorRef real(Call, const Tensor& self) {
  return is_complex(self.dtype) ? op::select(*op::view_as_real(self), -1, 0)
                                : TensorRef::share(&self);
}
TensorRef imag(Call, const Tensor& self) {
  if (!is_complex(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be complex", fmt(self.dtype));
  return op::select(*op::view_as_real(self), -1, 1);
}

TensorRef angle(Call, const Tensor& self) {
  return is_complex(self.dtype) ? op::atan2(*op::imag(self), *op::real(self))
                                : op::angle_of_real(self);
}

static void check_parts(const Tensor& a, const char* a_name, const Tensor& b, const char* b_name) {
  if (a.dtype != Dtype::kF32 && a.dtype != Dtype::kF64)
    fail_arg(TT_DTYPE, a_name, "{} is {}: must be float32 or float64", a_name, fmt(a.dtype));
  if (category(b.dtype) < 2)
    fail_arg(TT_NOT_IMPLEMENTED, b_name, "{} is {}: must be {}", b_name, fmt(b.dtype),
             fmt(a.dtype));
  if (a.dtype != b.dtype)
    fail_arg(TT_DTYPE, b_name, "{} is {}, {} is {}: must have the same dtype", b_name, fmt(b.dtype),
             a_name, fmt(a.dtype));
}
static TensorRef joined(const Tensor& real, const Tensor& imag) {
  const Tensor* parts[] = {&real, &imag};
  return op::view_as_complex(*op::stack({parts, 2}, -1));
}
// The dimensions of a dense tensor from the widest stride to the narrowest.
static Shape by_stride(const Tensor& t) {
  Shape dims;
  for (int64_t d = 0; d < t.ndim; d++) {
    int64_t at = d;
    dims.push_back(d);
    for (; at > 0 && t.stride(dims[at - 1]) < t.stride(d); at--) dims[at] = dims[at - 1];
    dims[at] = d;
  }
  return dims;
}
TensorRef complex(Call, const Tensor& real, const Tensor& imag) {
  check_parts(real, "real", imag, "imag");
  Shape shape = broadcast_shapes(real.sizes(), imag.sizes(), "real", "imag");
  TensorRef x = op::expand(real, shape);
  TensorRef y = op::expand(imag, shape);
  if (!x->dense() || x->contiguous()) return joined(*x, *y);
  const Shape dims = by_stride(*x);  // the result has the order of the real parts
  Shape places;
  places.resize(x->ndim, 0);
  for (int64_t d = 0; d < x->ndim; d++) places[dims[d]] = d;
  return op::permute(*joined(*op::permute(*x, dims), *op::permute(*y, dims)), places);
}
TensorRef polar(Call, const Tensor& abs, const Tensor& angle) {
  check_parts(abs, "abs", angle, "angle");
  return joined(*op::mul(abs, *op::cos(angle)), *op::mul(abs, *op::sin(angle)));
}

TensorRef conj(Call, const Tensor& self) {
  return is_complex(self.dtype) ? op::conj_copy(self) : TensorRef::share(&self);
}
TensorRef conj_physical(Call c, const Tensor& self) { return conj(c, self); }
TensorRef resolve_conj(Call, const Tensor& self) { return TensorRef::share(&self); }
TensorRef resolve_neg(Call, const Tensor& self) { return TensorRef::share(&self); }

}  // namespace TT_NS::impl
