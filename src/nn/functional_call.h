// Calls a module with other tensors in place of its parameters and buffers.
#pragma once

#include "nn/module.h"

namespace TT_NS {

// Exchanges the tensors of the slots with those of `with`. Fails before any change.
void exchange_tensors(Module& m, StateDict& with);
// Puts the tensors of `with` into the slots of their names, calls m and puts the former ones back.
// Fails, with m as it was, if a name is unknown. Nothing else may use m meanwhile.
TensorList functional_call(Module& m, const StateDict& with, TensorSpan inputs);

}  // namespace TT_NS
