// The backward engine: a binary heap of ready nodes by topological number, without a dependency
// pass or recursion.
#pragma once

#include "autograd/node.h"

namespace TT_NS {

struct BackwardArgs {
  TensorSpan outputs;
  TensorSpan grads;   // one per output, NULL items = ones (scalar outputs only); empty = all NULL
  TensorSpan inputs;  // empty: accumulate into all leaves
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;
  // with inputs: accumulate into their .grad (tt_backward), or return the gradients (tt_grad)
  bool accumulate = true;
};

// If !accumulate, returns one gradient per input, empty for unused ones. See include/tt.h for
// failures.
TensorList run_backward(const BackwardArgs& a);

}  // namespace TT_NS
