// What passes and editors of graphs share.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

// A graph with the same parts; the tensors of the storages are shared.
Ref<Graph> copy_graph(const Graph& g);
// Numbers storages anew: those of inputs first, the others in their order.
void number_inputs_first(Graph& g);
// Removes the nodes that are not kept, and the values, storages and scopes that nothing refers to
// then. What is kept must not read what only removed nodes make. Inputs and draws stay.
void remove_nodes(Graph& g, Span<const bool> keep);
// Calls f(v), an int32_t&, for each place that refers to a value that is read: arguments of nodes
// from `first` on and outputs.
template <class F> void for_each_read(Graph& g, int64_t first, F f) {
  for (int64_t i = first; i < g.nodes.size(); i++)
    for (IrArg& a : g.nodes[i].args)
      for (int32_t& v : a.values)
        if (v >= 0) f(v);
  for (int32_t& v : g.outputs) f(v);
}
// For each storage: whether a node writes it after it was made.
SmallVec<bool, 16> written_storages(const Graph& g);

// For each storage: the nodes that read it by an argument, in order and once each; the number of
// nodes for an output.
using Readers = SmallVec<SmallVec<int32_t, 2>, 16>;
Readers storage_readers(const Graph& g);
// The tensor of a value that is a constant.
TensorRef constant_of(const Graph& g, int32_t value);
// A new constant. An edit drops it unless a node reads it.
int32_t add_constant(Graph& g, TensorRef t);
// A value of a new storage of `bytes`, as result 0 of a node.
int32_t add_made_value(Graph& g, int64_t bytes, Dtype dtype, Ints sizes, Ints strides,
                       int32_t node);
// Whether this is the operator with this name. Passes compare names where naming the operator
// itself would link it into every program that has passes.
bool is_op(const IrNode& n, const char* name);

}  // namespace TT_NS
