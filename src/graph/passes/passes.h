// Passes: each rewrites a graph. verify_graph holds before and after.
#pragma once

#include "graph/rewrite.h"

namespace TT_NS {

// Bits of tt_graph_optimize_opts.passes.
enum Pass : uint64_t {
  kPassDce = 1,
  kPassCse = 2,
  kPassFold = 4,
  kPassNormIntoConv = 8,
  kPassPoolBeforeRelu = 16,
  kPassJoinSlices = 32,
  kPassEpilogues = 64,
};
constexpr uint64_t kExactPasses =
    kPassDce | kPassCse | kPassPoolBeforeRelu | kPassJoinSlices | kPassEpilogues;
constexpr uint64_t kAllPasses = kExactPasses | kPassFold | kPassNormIntoConv;

// Removes calls whose results nothing reads and that write nothing from outside. Calls that draw
// random numbers stay, since the numbers of later ones depend on them.
void remove_dead_code(Graph& g);
// Replaces a call that repeats an earlier one by its results.
void share_subexpressions(Graph& g);
// Computes calls that depend on constants only, and lets plans pack constants once. The constants'
// numbers are those of now.
void fold_constants(Graph& g);
// Multiplies the weights of a convolution by the factors of a batch normalization in evaluation
// that follows it. Rounds differently.
void fold_norms_into_convs(Graph& g);
// Makes max_pool2d(relu(x)) relu(max_pool2d(x)), and their gradients alike: relu then sees a
// fraction of the elements. The same bits.
void pool_before_relu(Graph& g);
// Makes a sum of gradients of slices that cover a tensor, each with zeros around it, writes side by
// side; if the sum is only read permuted into a copy, they write that. The same bits.
void join_slices(Graph& g);
// Moves elementwise calls directly behind the product or convolution whose result they read.
void move_epilogues(Graph& g);

// A graph with the passes of the mask applied.
Ref<Graph> optimized(const Graph& g, uint64_t passes);

}  // namespace TT_NS
