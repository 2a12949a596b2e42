// Edits of graphs. Each rebuilds the graph from its list of calls: the implementations run again
// with kernels left out, so shapes, views and versions after the edit follow from it. A failing
// edit changes nothing. Numbers of values stay valid; a value that is no longer made is empty.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

// g takes the contents of `from`.
void become(Graph& g, Graph& from) noexcept;
// Calls op before node `before`; outs gets the values of the results. Composites become their
// parts. Fails with INVALID_ARG for an operator that writes an argument.
void insert_node(Graph& g, int64_t before, const OpInfo& op, const SmallVec<IrArg, 4>& args,
                 SmallVec<int32_t, 4>& outs);
// Nodes behind the one that makes `with`, and outputs, use it in place of `value`.
void replace_uses(Graph& g, int32_t value, int32_t with);
// Fails with INVALID_ARG if something reads what the node makes or writes.
void remove_node(Graph& g, int64_t node);
void set_outputs(Graph& g, Span<const int32_t> values);
// Rebuilds g after arguments or the geometry of inputs were changed.
void rebuild_graph(Graph& g);

}  // namespace TT_NS
