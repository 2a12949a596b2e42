// Graphs of one computation for two sizes of a dimension.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

// The first size of an input that differs: a in the first graph, b in the second.
struct DynamicDim {
  int32_t input, dim;
  int64_t a, b;

  // Whether a number that is va and vb grows by a whole multiple of the size.
  bool grows(int64_t va, int64_t vb, int64_t* times) const;
};
DynamicDim dynamic_dim(const Graph& a, const Graph& b);

// The computation for another size. Fails with NOT_IMPLEMENTED, naming a node, if it depends on the
// size in another way than by sizes that grow evenly, numbers of a few known formulas, such as
// 1 / n, and the random numbers of dropout.
// same: whether two objects of nodes, which are not one, stand for the same.
using SameObject = bool (*)(const Object&, const Object&);
Ref<Graph> resize_graph(const Graph& a, const Graph& b, int64_t size, SameObject same);

}  // namespace TT_NS
