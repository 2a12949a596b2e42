// A captured graph as an ONNX model (opset 20), written without protobuf.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

using Bytes = SmallVec<char, 1>;

// Writes the ModelProto of g to out. Values become tensors named v0, v1, …; inputs in0, …; outputs
// out0, …. Fails with NOT_IMPLEMENTED, which names the operator, where ONNX has no counterpart:
// state that the graph writes, random numbers, complex numbers, operators without a translation.
void export_onnx(const Graph& g, Bytes& out);

}  // namespace TT_NS
