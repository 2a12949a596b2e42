// Gradients of sliding windows.
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

TensorRef im2col_backward(const Tensor& g, Ints self_sizes, Ints kernel_size, Ints dilation,
                          Ints padding, Ints stride) {
  const Ints image = self_sizes.slice(self_sizes.n - 2, self_sizes.n);
  return op::col2im(g, image, kernel_size, dilation, padding, stride);
}

}  // namespace TT_NS::formula
