// One call of an operator with dual arguments: computes its results on the primals, and their
// tangents by its ForwardRule. The handler of forward mode (forward.cpp) passes such calls on.
#pragma once

#include "autograd/forward.h"
#include "dispatch/call.h"

namespace TT_NS {

// The keys of backends and layouts.
constexpr KeySet kHostKeys = bit(kKeyStream) - 1;

// Whether autograd records.
inline bool recording() { return !(ctx().exclude & bit(kKeyAutograd)); }

// While it exists, operators are called on behalf of the caller of a transform.
struct BelowLevel : MaskGuard {
  explicit BelowLevel(const ForwardLevel& level)
      : MaskGuard(level.recording ? 0 : bit(kKeyAutograd)) {
    if (!level.nested) ctx().include &= ~bit(kKeyForward);
  }
};

// Calls an operator whose innermost dual argument is of the level.
void call_dual(Call c, const Value* args, ForwardLevel& level, TensorList& outs);

}  // namespace TT_NS
