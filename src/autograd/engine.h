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
  // with inputs: gradients do not go on into the histories of inputs
  bool stop_at_inputs = false;
};

// If !accumulate, returns one gradient per input, empty for unused ones. See include/tt.h for
// failures.
TensorList run_backward(const BackwardArgs& a);

// Runs fn(user) once, at the end of the outermost backward that runs on this ctx; not if it fails.
// Either way drop(user) follows. fn may add more. Fails with AUTOGRAD if no backward runs; then
// nothing is dropped.
void at_end_of_backward(void (*fn)(void* user), void (*drop)(void* user) noexcept, void* user);

// Whether the backward that runs on this ctx, if one does, has computed all gradients.
bool is_backward_over() noexcept;

// Edges whose gradients a formula leaves out. A callback in it may run the node again.
class UnwantedEdges {
 public:
  UnwantedEdges(Node& n, uint16_t bits) : n_(n), outer_(n.unwanted) { n.unwanted = bits; }
  ~UnwantedEdges() { n_.unwanted = outer_; }
  UnwantedEdges(const UnwantedEdges&) = delete;

 private:
  Node& n_;
  const uint16_t outer_;
};

}  // namespace TT_NS
