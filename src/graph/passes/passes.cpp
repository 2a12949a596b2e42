#include "graph/passes/passes.h"

namespace TT_NS {

namespace {

struct PassRow {
  uint64_t bit;
  void (*run)(Graph&);
};
// In this order: folding leaves dead code and equal constants behind, and epilogues move behind
// what is left.
constexpr PassRow kPasses[] = {
    {kPassNormIntoConv, fold_norms_into_convs},
    {kPassFold, fold_constants},
    {kPassCse, share_subexpressions},
    {kPassPoolBeforeRelu, pool_before_relu},
    {kPassJoinSlices, join_slices},
    {kPassDce, remove_dead_code},
    {kPassEpilogues, move_epilogues},
};

}  // namespace

Ref<Graph> optimized(const Graph& g, uint64_t passes) {
  Ref<Graph> out = copy_graph(g);
  verify_graph(*out);
  for (const PassRow& p : kPasses) {
    if (!(passes & p.bit)) continue;
    p.run(*out.get());
    verify_graph(*out);
  }
  return out;
}

}  // namespace TT_NS
