// Gradients of the results of a compiled function. The record has a plan of the call, which also
// gives the memories that the gradients need, and a plan of the gradients, which the node of a call
// runs in a backward.
#pragma once

#include "autograd/node.h"
#include "nn/compile/record.h"

namespace TT_NS {

// What a record must know of histories.
struct Histories {
  bool freed = false;    // a part of them, so that a backward fails
  bool watched = false;  // by hooks, by functions of the application, or by tensors that keep their
                         // gradient
};
// Of the history of a result, without those of inputs.
Histories look_into(const Tensor& result, TensorSpan inputs);

// While a call is recorded, behind its last operator: records the gradients of the results with
// respect to inputs and leaves from outside, and returns them.
TensorList record_gradients(const Compiled& f, CompiledRecord& r, TensorSpan inputs,
                            const TensorList& outs);
// Divides the graph of a call and of its gradients, and sets the plans of both.
void set_plans(CompiledRecord& r, const Graph& captured, TensorSpan inputs);
// For another record of the same function: the same results, targets and number of nodes.
Ref<CompiledGradients> new_gradients_like(const CompiledGradients& g);

// The nodes of the results of a replay.
class History {
 public:
  // Before the replay.
  History(const CompiledRecord& r, TensorSpan inputs);
  // outs: results, then memories, which are moved into the node.
  void link(TensorList& outs);

 private:
  const CompiledRecord& r_;
  const TensorSpan inputs_;
  NodeRef node_, spent_;
};

}  // namespace TT_NS
