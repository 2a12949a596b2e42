// ONNX models as graphs.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

// Reads a ModelProto. Its operators become operators of tt, by a capture with kernels left out.
// Nothing in the bytes is trusted: FORMAT where the model is not whole, NOT_IMPLEMENTED, which
// names the operator, where tt has no counterpart. dynamic: the size of dimensions of inputs that
// have no number.
Ref<Graph> import_onnx(Span<const char> bytes, int64_t dynamic);

}  // namespace TT_NS
