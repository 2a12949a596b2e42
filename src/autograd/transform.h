// Transforms of functions of tensors: products with Jacobian matrices, and the matrices. A
// transform may call another one, and runs inside vmap: then it computes for all samples at once.
#pragma once

#include "core/tensor.h"

namespace TT_NS {

struct BackwardArgs;

// A function of tensors: of the application, or a transform of one.
struct TensorFunction {
  TensorList (*call)(void* self, TensorSpan inputs);
  void* self;
};
using ApplicationFn = tt_status (*)(void* user, tt_ctx* ctx, const tt_tensor* const* inputs,
                                    int64_t n, tt_tensor** outs, int64_t cap, int64_t* n_outs);
constexpr int64_t kMaxFunctionOuts = 1024;
TensorList call_function(ApplicationFn fn, void* user, TensorSpan inputs);

struct ResultsAndProducts {
  TensorList results, products;
};
// The gradients of outputs that may be dual or batched tensors, as tt_grad returns them. The graph
// is kept.
TensorList gradients_of_parts(const BackwardArgs& a);
// products[i] belongs to inputs[i]: cotangents x Jacobian; empty if the input has no gradient. An
// absent cotangent contributes nothing; none at all (n = 0) is 1 for the first result, which must
// have one element.
ResultsAndProducts vjp(const TensorFunction& f, TensorSpan inputs, TensorSpan cotangents);
// products[i] belongs to results[i]: Jacobian x tangents; empty if the result has no gradient.
// Computed operator by operator (forward.h).
ResultsAndProducts jvp(const TensorFunction& f, TensorSpan inputs, TensorSpan tangents);
// The same by two backward passes over the whole function: the gradient of its gradient. A product
// is also empty if the result does not depend on the inputs.
ResultsAndProducts jvp_by_gradients(const TensorFunction& f, TensorSpan inputs,
                                    TensorSpan tangents);
// Item r * inputs.n + i is the Jacobian matrix of result r and input i: result.shape + input.shape.
TensorList jacobian(const TensorFunction& f, TensorSpan inputs);
// Item i * inputs.n + j is the matrix of second derivatives with respect to inputs i and j. The
// first result counts, which must have one element.
TensorList hessian(const TensorFunction& f, TensorSpan inputs);

}  // namespace TT_NS
