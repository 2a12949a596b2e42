// Products of operands with a fixed number of dimensions: mm, bmm, mv, dot and outer in terms of
// the general ones; baddbmm. addmm is in matmul.cpp.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::impl {

static void check_inner(const Tensor& a, int64_t n, const Tensor& b, int64_t m,
                        const char* b_name) {
  if (n != m)
    fail_arg(TT_SHAPE, b_name, "self is {}, {} is {}: the inner sizes {} and {} must be equal",
             a.sizes(), b_name, b.sizes(), n, m);
}

TensorRef mm(Call, const Tensor& self, const Tensor& mat2) {
  check_ndim(self, 2, "self");
  check_ndim(mat2, 2, "mat2");
  check_inner(self, self.size(1), mat2, mat2.size(0), "mat2");
  return op::matmul_stack(self, mat2);
}

TensorRef bmm(Call, const Tensor& self, const Tensor& mat2) {
  check_ndim(self, 3, "self");
  check_ndim(mat2, 3, "mat2");
  if (self.size(0) != mat2.size(0))
    fail_arg(TT_SHAPE, "mat2", "self is {}, mat2 is {}: must have equal batch sizes", self.sizes(),
             mat2.sizes());
  check_inner(self, self.size(2), mat2, mat2.size(1), "mat2");
  return op::matmul_stack(self, mat2);
}

TensorRef mv(Call, const Tensor& self, const Tensor& vec) {
  check_ndim(self, 2, "self");
  check_ndim(vec, 1, "vec");
  check_inner(self, self.size(1), vec, vec.size(0), "vec");
  return op::matmul(self, vec);
}

TensorRef dot(Call, const Tensor& self, const Tensor& tensor) {
  check_ndim(self, 1, "self");
  check_ndim(tensor, 1, "tensor");
  check_inner(self, self.size(0), tensor, tensor.size(0), "tensor");
  return op::matmul(self, tensor);
}

TensorRef outer(Call, const Tensor& self, const Tensor& vec2) {
  check_ndim(self, 1, "self");
  check_ndim(vec2, 1, "vec2");
  return op::mul(op::unsqueeze(self, 1), vec2);
}

}  // namespace TT_NS::impl
