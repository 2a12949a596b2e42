// A captured graph as an ONNX model (opset 20), written without protobuf.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

using Bytes = SmallVec<char, 1>;

// Writes the ModelProto of g to out. Values become tensors named v0, v1, …; inputs in0, …; outputs
// out0, …. Fails with NOT_IMPLEMENTED, which names the operator, where ONNX has no counterpart:
// state that the graph writes, random numbers, complex numbers, operators without a translation.
// other: the same computation for another size of a dimension, which has the name `dim` in the
// model; NULL: sizes are those of g.
void export_onnx(const Graph& g, const Graph* other, const char* dim, Bytes& out);

}  // namespace TT_NS
