// The second derivative of convolutions.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

// g holds the gradients u, a, b of the results. dinput = D(grad, weight) and dweight =
// E(grad, input) are the adjoints of conv(input, weight), so
//   <u, D(grad, weight)> = <conv(u, weight), grad> = <E(grad, u), weight>, and likewise for a.
TensorTriple convolution_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                         const Tensor& weight, Ints stride, Ints padding,
                                         Ints dilation, bool transposed, Ints output_padding,
                                         int64_t groups, Needs needs) {
  const Tensor* u = g[0];
  const Tensor* a = g[1];
  const Tensor* b = g[2];
  auto plus = [](TensorRef x, TensorRef y) { return !x ? std::move(y) : x + y; };
  TensorTriple out;
  if (needs[0]) {
    if (u)
      out.first = op::convolution(*u, op::conj(weight), nullptr, stride, padding, dilation,
                                  transposed, output_padding, groups);
    if (a)
      out.first =
          plus(std::move(out.first), op::convolution(op::conj(input), *a, nullptr, stride, padding,
                                                     dilation, transposed, output_padding, groups));
    if (b) {
      Shape per_channel;
      per_channel.push_back(b->numel);
      for (int64_t d = 2; d < grad.ndim; d++) per_channel.push_back(1);
      out.first =
          plus(std::move(out.first), op::expand(op::reshape(*b, per_channel), grad.sizes()));
    }
  }
  if (needs[1] && a)
    out.second = op::convolution_backward(op::conj(grad), input, *a, stride, padding, dilation,
                                          transposed, output_padding, groups, true, false, false)
                     .first;
  if (needs[2] && u)
    out.third = op::convolution_backward(op::conj(grad), *u, weight, stride, padding, dilation,
                                         transposed, output_padding, groups, false, true, false)
                    .second;
  return out;
}

}  // namespace TT_NS::formula
