// Gradients of rearranged, joined and padded tensors.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

TensorRef roll_backward(const Tensor& g, Ints shifts, Ints dims) {
  Shape back;
  for (int64_t i = 0; i < shifts.n; i++) {
    const int64_t n = dims.empty() ? g.numel : g.size(wrap_dim(dims[i], g.ndim));
    back.push_back(n ? -(shifts[i] % n) : 0);
  }
  return op::roll(g, back, dims);
}

TensorList cat_backward(const Tensor& g, const ShapeList& shapes, int64_t dim, Needs needs) {
  TensorList out;
  out.resize(shapes.size());
  int64_t d = wrap_dim(dim, g.ndim);
  int64_t at = 0;
  for (int64_t i = 0; i < shapes.size(); i++) {
    const Shape& s = shapes[i];
    if (s.size() == 1 && s[0] == 0) {  // an empty tensor that cat skipped
      if (needs[i]) out[i] = op::zeros(s, g.dtype, g.device);
      continue;
    }
    if (needs[i]) out[i] = op::slice(g, d, at, at + s[d]);
    at += s[d];
  }
  return out;
}

TensorRef constant_unpad(const Tensor& g, Ints pad) {
  Shape back(pad);
  for (int64_t& n : back) n = -n;
  return op::constant_pad_nd(g, back);
}

}  // namespace TT_NS::formula
