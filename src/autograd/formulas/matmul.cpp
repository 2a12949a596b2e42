// Gradients of matrix products.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

// True if sizes is one matrix, the gradient is a stack, and nothing is empty.
static bool is_shared_matrix(Ints sizes, const Tensor& g, const Tensor& other) {
  return g.ndim > 2 && g.numel && other.numel && numel_of(sizes.slice(0, sizes.n - 2)) == 1;
}

// a: (…, r, m), b: (…, r, n) with equal stacks. Returns a^T b, (m, n), summed over the stack.
static TensorRef stacked_matmul(const Tensor& a, const Tensor& b, Ints shape) {
  const int64_t flat_a[2] = {-1, a.size(-1)};
  const int64_t flat_b[2] = {-1, b.size(-1)};
  TensorRef out =
      op::matmul_stack(op::transpose(op::reshape(a, flat_a), 0, 1), op::reshape(b, flat_b));
  return op::reshape(out, shape);
}

TensorRef matmul_self_backward(const Tensor& g, const Tensor& other, Ints self_sizes) {
  TensorRef adjoint = op::transpose(op::conj(other), -2, -1);
  if (is_shared_matrix(self_sizes, g, other))
    return stacked_matmul(op::transpose(g, -2, -1), adjoint, self_sizes);
  return op::matmul_stack(g, adjoint);
}

TensorRef matmul_other_backward(const Tensor& g, const Tensor& self, Ints other_sizes) {
  TensorRef conjugate = op::conj(self);
  if (is_shared_matrix(other_sizes, g, self)) return stacked_matmul(conjugate, g, other_sizes);
  return op::matmul_stack(op::transpose(conjugate, -2, -1), g);
}

TensorRef linear_weight_backward(const Tensor& g, const Tensor& input) {
  if (input.ndim == 2) return op::matmul_stack(op::transpose(g, 0, 1), op::conj(input));
  const int64_t rows = numel_of(g.sizes().slice(0, g.ndim - 1));
  const int64_t g_shape[2] = {rows, g.size(-1)};
  const int64_t x_shape[2] = {rows, input.size(-1)};
  TensorRef grads = op::reshape(g, g_shape);
  TensorRef x = op::reshape(input, x_shape);
  return op::matmul_stack(op::transpose(grads, 0, 1), op::conj(x));
}

}  // namespace TT_NS::formula
