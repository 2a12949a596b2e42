// Checkpoints of activations: what a function saves for backward is computed again instead of
// kept (Chen et al. 2016), but for the results of chosen operators.
#pragma once

#include "autograd/transform.h"
#include "dispatch/op_info.h"

namespace TT_NS {

// A function of the application with its owner. drop runs once.
struct OwnedFunction {
  ApplicationFn fn;
  void* user;
  void (*drop)(void* user);
};

// Calls the function. Of the tensors that its operators save for backward it keeps the shapes
// alone; the first that backward reads calls the function again, with the same inputs, random
// numbers and autocast. Results of the operators `kept` are kept, too, and the second call has them
// without computing. Takes the function over, also if it fails.
TensorList checkpoint(const OwnedFunction& f, TensorSpan inputs,
                      Span<const OpInfo* const> kept = {});

}  // namespace TT_NS
