// The second derivative of convolutions.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "autograd/formulas/forward.h"
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

// The gradients are linear in grad, that of the input in weight, and that of the weight in input.
TensorList convolution_backward_forward(TensorSpan tangents, const Tensor& grad,
                                        const Tensor& input, const Tensor& weight, Ints stride,
                                        Ints padding, Ints dilation, bool transposed,
                                        Ints output_padding, int64_t groups, bool want_input,
                                        bool want_weight, bool want_bias) {
  const Tensor* const dx = tangents[1];
  const Tensor* const dw = tangents[2];
  TensorList sums;
  sums.resize(3);
  const auto add = [&](const Tensor& g, const Tensor& x, const Tensor& w, bool of_input,
                       bool of_weight, bool of_bias) {
    TensorTriple terms =
        op::convolution_backward(g, x, w, stride, padding, dilation, transposed, output_padding,
                                 groups, of_input, of_weight, of_bias);
    TensorRef* const each[3] = {&terms.first, &terms.second, &terms.third};
    for (int64_t i = 0; i < 3; i++)
      if (*each[i]) sums[i] = sums[i] ? sums[i] + *each[i] : std::move(*each[i]);
  };
  if (tangents[0]) add(*tangents[0], input, weight, want_input, want_weight, want_bias);
  const bool of_input = want_input && dw;
  const bool of_weight = want_weight && dx;
  if (of_input || of_weight)
    add(grad, dx ? *dx : input, dw ? *dw : weight, of_input, of_weight, false);
  return sums;
}

}  // namespace TT_NS::formula
