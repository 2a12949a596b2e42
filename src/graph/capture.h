// Capture: records the operators of a ctx, below autograd, as a Graph, while they run as ever.
#pragma once

#include "core/graph_hooks.h"
#include "graph/ir.h"

namespace TT_NS {

struct CaptureOptions {
  // The host may read elements: what it does with them is frozen into the graph.
  bool allow_reads = false;
  // What cannot be recorded fails no call, but ends the recording (end_capture returns nothing).
  bool lenient = false;
  // Operators compute nothing but shapes, and draw no random numbers. Tensors that they made and
  // that are alive at the end become state, which each run of a plan writes.
  bool deferred = false;
  CaptureVisitor* visitor = nullptr;  // must outlive the capture
};

// Begins a capture on the running ctx. Fails with INVALID_ARG if one is running.
void begin_capture(TensorSpan inputs, const CaptureOptions& options);
// Makes the memory of t, which nothing has used yet, one more input of the running capture. Returns
// which; -1: operators have used or made it, or nothing is recorded any more.
int32_t add_capture_input(const Tensor& t);
// How many calls of operators the running capture has recorded; -1: nothing is recorded any more.
int64_t num_captured_nodes();
// Ends the capture; if it fails, too. Of a lenient capture that has ended its recording: empty, and
// *reason says why.
Ref<Graph> end_capture(TensorSpan outputs, Text* reason = nullptr);
// Ends the capture, if there is one, without a graph.
void drop_capture(Ctx& c) noexcept;

}  // namespace TT_NS
