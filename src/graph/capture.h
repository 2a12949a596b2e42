// Capture: records the operators of a ctx, below autograd, as a Graph, while they run as ever.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

struct CaptureOptions {
  // The host may read elements: what it does with them is frozen into the graph.
  bool allow_reads = false;
};

// Begins a capture on the running ctx. Fails with INVALID_ARG if one is running.
void begin_capture(TensorSpan inputs, const CaptureOptions& options);
// Ends the capture; if it fails, too.
Ref<Graph> end_capture(TensorSpan outputs);
// Ends the capture, if there is one, without a graph.
void drop_capture(Ctx& c) noexcept;

}  // namespace TT_NS
