// Bands: launches that follow each other and work on the same rows (images, rows of a matrix) run
// band by band, so that what one computes is in the cache when the next reads it: a convolution,
// the pooling behind it and its activation; a sum of residuals and the normalization of its rows.
// Launches that follow a product run on the rows of each of its blocks as soon as that is complete.
// Kernels and their units are those of the plan without bands, so the results have the same bits.
#pragma once

#include "graph/plan/accesses.h"
#include "graph/plan/plan.h"

namespace TT_NS {

// A run of launches [first, end) of a list.
struct BandRange {
  int64_t first = 0;
  int64_t end = 0;
  int64_t rows = 0;
  int64_t row_bytes = 0;  // that all of them touch
};

// Keeps memory of a chain apart: filled by the first run of a lowering, when memory that the chain
// has read would be given to what it writes.
class BandLives {
 public:
  void note_placement(int64_t placement, const char* data, int64_t bytes);
  void note_release(const char* data);
  // The placement that is alive at this address and begins there, or -1.
  int64_t placement_at(const char* data) const;
  // Called for each step, in order. k NULL: a step that is no launch.
  void note_step(const Kernel* k, const void* plan, int64_t units);
  void drop_step(int64_t step) { steps_.erase(step); }
  // The placement has the memory of another.
  void note_shared(int64_t placement, int64_t of);
  // Extends the life of the memory that a chain uses to the whole chain, as long as the arena stays
  // below `limit`. Returns the size of the arena; `bytes`: its size before. step_times: as in Plan.
  int64_t place(SmallVec<Placement, 1>& placements, Span<const int64_t> step_times, int64_t bytes,
                int64_t limit);

 private:
  struct Alive {
    uint64_t at = 0;
    int64_t bytes = 0;
    int64_t placement = -1;
  };
  int64_t next_to(uint64_t at) const;
  uint64_t name_of(uint64_t at) const;
  void extend(SmallVec<Placement, 1>& placements, Span<const int64_t> step_times,
              const BandRange& r) const;

  SmallVec<Alive, 16> alive_;  // by address
  SmallVec<LaunchRows, 1> steps_;
};

// Replaces chains of a plan whose tiles have been made by one launch each.
void make_bands(Plan& p);

}  // namespace TT_NS
