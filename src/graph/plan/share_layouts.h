// Convolutions convert their operands to layouts of their own: channels last, padded rows, images
// interleaved. A plan converts an operand once where several convolutions, or a convolution and its
// gradient, convert it alike: the memory of the first conversion lives until the last use.
#pragma once

#include "graph/ir.h"
#include "graph/plan/plan.h"

namespace TT_NS {

// What a conversion reads and writes, and all that its result depends on besides.
struct Conversion {
  const char* src = nullptr;
  const char* dst = nullptr;
  int32_t kind = 0;
  SmallVec<int64_t, 32> form;
};
// Whether a launch converts a layout.
bool read_conversion(const Kernel& k, const void* plan, Conversion* out);

// Filled by the first run of a lowering, in the order of its launches; read by the second.
class SharedLayouts {
 public:
  // ---- the first run ----
  void begin_node(const IrNode& n);
  // The node reads value v at this address.
  void note_argument(int32_t v, const char* data);
  // Memory `placement` begins at `data`; in a convolution only.
  void note_placement(int64_t placement, const char* data);
  void note_launch(const Kernel& k, const void* plan, int64_t step);
  void end_node(const SmallVec<Placement, 1>& placements);
  struct Alias {
    int64_t placement, of;  // memories
    int64_t launch, step;
  };
  // What the launch would write is in memory `of` already.
  void leave_out(const Alias& a) { skipped_.push_back(a); }
  // Picks conversions that are kept, the largest first, as long as they take `limit` bytes at most.
  // Extends the lives of their memories, and calls drop_step(step) for each step that is not needed
  // then, the last first.
  template <class F> void choose(SmallVec<Placement, 1>& placements, int64_t limit, F drop_step) {
    pick(placements, limit);
    for (int64_t i = skipped_.size(); i-- > 0;) drop_step(skipped_[i].step);
  }
  // Calls f(placement, of) for each memory that another takes the place of.
  template <class F> void for_each_shared(F f) const {
    for (const Alias& a : skipped_) f(a.placement, a.of);
  }
  void after_placing(SmallVec<Placement, 1>& placements) const;

  // ---- the second run ----
  void second_run() { n_launches_ = next_ = 0; }
  // Whether the next launch repeats an earlier one. Counts launches.
  bool skips_next();

 private:
  struct Known {  // a conversion that stays
    Conversion what;
    int64_t source = -1;  // value, or -2 - placement
    int64_t placement = -1;
  };
  struct Pending {  // a launch of the running node that repeats a known one
    int64_t launch = -1;
    int64_t step = -1;
    int64_t placement = -1;
    int64_t known = -1;
  };
  struct Address {
    const char* data = nullptr;
    int64_t source = -1;
  };
  void pick(SmallVec<Placement, 1>& placements, int64_t limit);
  int64_t source_of(const char* data) const;

  bool on_ = false;  // the node is a convolution
  int64_t n_launches_ = 0;
  int64_t next_ = 0;
  int64_t first_known_ = 0;         // of this node
  SmallVec<Address, 8> addresses_;  // of arguments and of placements of this node
  SmallVec<Known, 1> known_;
  SmallVec<Pending, 2> pending_;
  bool is_left_out(int64_t placement, int64_t n) const;

  SmallVec<Alias, 1> aliases_;
  SmallVec<Alias, 1> skipped_;  // those that are shared, in order
};

}  // namespace TT_NS
