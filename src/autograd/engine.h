// The backward engine: a binary heap of ready nodes by topological number; no dependency pass, no
// recursion.
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
  bool accumulate = true;  // with inputs: into their .grad (tt_backward) or returned (tt_grad)
};

// Returns one gradient per input (empty for unused ones) if !accumulate. What each does on failure:
// include/tt.h.
TensorList run_backward(const BackwardArgs& a);

}  // namespace TT_NS
