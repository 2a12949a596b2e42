// A captured graph as an ONNX model (opset 20), written without protobuf.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

using Bytes = SmallVec<char, 1>;

// Writes the ModelProto of a graph to out. Values become tensors named t0, t1, …; inputs in0, …;
// outputs out0, …. Fails with NOT_IMPLEMENTED, which names the operator, where ONNX has no
// counterpart: state that the graph writes, random numbers, complex numbers, operators without a
// translation.
// graphs: one, or one computation for other sizes of 1 to 3 dimensions (see Growth), whose names in
// the model are `dims`.
void export_onnx(Span<const Graph* const> graphs, Span<const char* const> dims, Bytes& out);

}  // namespace TT_NS
