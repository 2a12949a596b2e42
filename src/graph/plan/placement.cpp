// Offsets of memories in an arena: the largest first, each at the lowest place that is free while
// it lives.
#include "graph/plan/plan.h"

#include <algorithm>

namespace TT_NS {

int64_t place_greedily(Span<Placement> all, int64_t alignment) {
  SmallVec<int64_t, 16> order;
  for (int64_t i = 0; i < all.n; i++)
    if (!all[i].shared) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return all[a].bytes != all[b].bytes ? all[a].bytes > all[b].bytes : a < b;
  });
  SmallVec<int64_t, 16> placed;  // by offset
  int64_t end = 0;
  for (const int64_t i : order) {
    Placement& p = all[i];
    int64_t at = 0;
    for (const int64_t j : placed) {
      const Placement& q = all[j];
      if (q.birth > p.death || p.birth > q.death) continue;
      if (q.offset >= at + p.bytes) break;
      at = max(at, round_up(q.offset + q.bytes, alignment));
    }
    p.offset = at;
    end = max(end, round_up(at + p.bytes, alignment));
    int64_t k = placed.size();
    while (k > 0 && all[placed[k - 1]].offset > at) k--;
    placed.insert(k, i);
  }
  return end;
}

}  // namespace TT_NS
