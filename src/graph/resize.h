// Graphs of one computation for several sizes of one or more dimensions.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

struct DynamicDim {
  int32_t input, dim;
};

// The sizes that differ between graphs, and how other numbers follow from them: as sums of their
// products with whole factors, c0 + c1 a for one dimension, c0 + c1 a + c2 b + c3 a b for two.
class Growth {
 public:
  static constexpr int64_t kMaxDims = 3;
  static constexpr int64_t kMaxTerms = 1 << kMaxDims;  // factors of a number, and graphs
  // Term i is the product of the sizes of those dimensions whose bit i has.
  using Terms = int64_t[kMaxTerms];

  // Finds the dimensions, in the order of inputs. Fails with INVALID_ARG unless there are 2, 4 or 8
  // graphs for 1, 2 or 3 of them.
  explicit Growth(Span<const Graph* const> graphs);
  // Whether the sizes of the graphs tell all factors.
  static bool fits(Span<const Graph* const> graphs);

  int64_t n_terms() const { return int64_t(1) << n_dims_; }
  int64_t n_dims() const { return n_dims_; }
  const DynamicDim& dim(int64_t i) const { return dims_[i]; }
  // The terms of a number that is v[i] in graph i. Returns false if it does not grow evenly.
  bool terms(const int64_t* v, Terms& out) const;
  // The number for other sizes of the dimensions. Returns false if it is too large.
  bool at(Ints sizes, const Terms& terms, int64_t* out) const;

 private:
  Growth() = default;
  void find(Span<const Graph* const> graphs);
  bool product(Ints sizes, int64_t term, int64_t* out) const;

  int64_t n_graphs_ = 0;
  int64_t n_dims_ = 0;
  DynamicDim dims_[kMaxDims] = {};
  int64_t sizes_[kMaxTerms][kMaxDims] = {};  // of each graph
};

// The computation for other sizes of the dimensions that differ between the graphs. Fails with
// NOT_IMPLEMENTED, naming a node, if it depends on them otherwise than by sizes that grow linearly,
// numbers of a few known formulas, such as 1 / n, and the random numbers of dropout.
// same: whether two distinct objects of nodes mean the same.
using SameObject = bool (*)(const Object&, const Object&);
Ref<Graph> resize_graph(Span<const Graph* const> graphs, Ints sizes, SameObject same);

}  // namespace TT_NS
