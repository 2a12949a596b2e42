// Copies of a tensor in which a part is replaced, as by a view that is written.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

namespace TT_NS::impl {

// Writes src to a view of a new tensor.
static void replace(TensorRef view, const Tensor& self, const Tensor& src) {
  check_same_device(self, "self", src, "src");
  if (!same(src.sizes(), view->sizes()))
    fail_arg(TT_SHAPE, "src", "src is {}: must be {}, the shape of what it replaces", src.sizes(),
             view->sizes());
  copy_elements(*view, src);
}

TensorRef select_scatter(Call, const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef out = op::clone(self);
  replace(op::select(out, dim, index), self, src);
  return out;
}

TensorRef slice_scatter(Call, const Tensor& self, const Tensor& src, int64_t dim,
                        Opt<int64_t> start, Opt<int64_t> end, int64_t step) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef out = op::clone(self);
  replace(op::slice(out, dim, start, end, step), self, src);
  return out;
}

TensorRef diagonal_scatter(Call, const Tensor& self, const Tensor& src, int64_t offset,
                           int64_t dim1, int64_t dim2) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef out = op::clone(self);
  replace(op::diagonal(out, offset, dim1, dim2), self, src);
  return out;
}

}  // namespace TT_NS::impl
