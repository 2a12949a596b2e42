// Tiles: neighbouring dense elementwise launches of one length run block by block, with the kernels
// that they have, so that what one computes is in the cache when the next reads it. Memory that
// lives within a region only is a block of scratch memory. The results have the same bits.
#pragma once

#include "graph/plan/plan.h"

namespace TT_NS {

// Replaces such launches of a plan that has been lowered by one launch for each region.
void make_tiles(Plan& p);
// Whether a step is such a launch; its plan is a TileRegion.
bool is_region(const PlanStep& s);

}  // namespace TT_NS
