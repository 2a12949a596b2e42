// ONNX models as graphs.
#pragma once

#include "base/name_map.h"
#include "graph/ir.h"

namespace TT_NS {

// The files beside a model that hold tensors.
struct OnnxFiles {
  // Opens the file at a path below the model's folder. Returns its size.
  int64_t (*open)(OnnxFiles&, Name path);
  // Reads bytes [offset, offset + n) of the file that was opened last.
  void (*read)(OnnxFiles&, int64_t offset, char* to, int64_t n);
};

// Reads a ModelProto. Its operators become operators of tt, by a capture with kernels left out.
// Nothing in the bytes is trusted: FORMAT where the model is not whole, NOT_IMPLEMENTED, which
// names the operator, where tt has no counterpart. dynamic: the size of dimensions of inputs that
// have no number. files: NULL: tensors in other files are refused.
Ref<Graph> import_onnx(Span<const char> bytes, int64_t dynamic, OnnxFiles* files);

}  // namespace TT_NS
