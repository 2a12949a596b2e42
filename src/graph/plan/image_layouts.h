// Convolutions of few channels interleave their images, and write results in the order of their
// shape. A plan keeps tensors between them interleaved: results of convolutions, max pooling and
// elementwise operators behind them, and their gradients. Nothing is transposed then, and where no
// border is added nothing is copied. All elements are computed in the same way, so the results have
// the same bits.
//
//   interleave, conv, [to images]            interleave, conv
//   relu, pool                          ->   relu, pool
//   interleave, conv, [to images]            conv, [to images]
//
// Pooling of interleaved images computes relu behind it, and its gradient that of relu.
#pragma once

#include "graph/plan/bands.h"
#include "graph/ir.h"
#include "graph/plan/plan.h"
#include "graph/plan/share_layouts.h"
#include "graph/rewrite.h"

namespace TT_NS {

// Filled by the first run of a lowering, in the order of its launches; read by the second.
class ImageLayouts {
 public:
  explicit ImageLayouts(const Graph& g) : g_(g) {}

  // ---- the first run ----
  void begin_node() { launches_ = {}; }
  // step: that the launch will be.
  void note_launch(const Kernel& k, const void* plan, int64_t step, const BandLives& lives);
  // address_of(v): where a value of the node is.
  template <class F> void end_node(const IrNode& n, F address_of) {
    SmallVec<Value, 8> values;
    const auto add = [&](int32_t v) { values.push_back({v, address_of(v)}); };
    for_each_value(n, add);
    for (const int32_t v : n.outs)
      if (v >= 0) add(v);
    if (launches_.empty() && !is_view(n)) return fix(n);
    take_node({values.data(), values.size()});
    note_relu(n);
  }
  // What the node reads and writes has the order of its shape.
  void fix(const IrNode& n);
  // Decides which storages are interleaved, and tells which launches are not needed.
  void choose(SharedLayouts& shared, SmallVec<Placement, 1>& placements);
  // The size of an arena: convolutions read past the ends of interleaved images.
  int64_t arena_bytes(const SmallVec<Placement, 1>& placements, int64_t bytes) const;

  // ---- the second run ----
  void second_run() { n_launches_ = next_ = 0; }
  void skip_launch() { n_launches_++; }
  // Changes the launch of a step, whose plan is a copy, to what has been chosen. Counts launches.
  void adapt(PlanStep& step, Isa isa);

 private:
  struct Value {
    int32_t value = -1;
    const char* data = nullptr;
  };
  enum class Use : uint8_t { kNone, kInterleave, kConv, kPool, kPoolBackward, kElements, kOther };
  struct Launch {
    Use use = Use::kNone;
    int64_t number = -1;
    int64_t step = -1;
    SmallVec<const char*, 4> data;  // of images: what is read, then what is written
    int64_t src = -1, dst = -1;     // (kInterleave without a border, kElements) placements
  };
  // The storages that a launch of the plan is about; -1: none.
  struct Adapted {
    Use use = Use::kNone;
    int64_t number = -1;
    int64_t step = -1;
    int32_t x = -1;
    int32_t y = -1;
    int64_t src = -1;
    int64_t dst = -1;
    bool relu = false;  // of pooling: computes it, too
  };
  // What max pooling makes of x, or relu of that, or the gradient of that relu.
  struct Pooled {
    int32_t value = -1;
    int32_t x = -1;
    int64_t adapted = -1;                // the launch of the pooling
    SharedLayouts::Alias gradient = {};  // the launch of relu's gradient
  };
  struct Merged {
    int64_t adapted;             // the launch that computes relu or its gradient, too
    SharedLayouts::Alias alias;  // the launch that is not needed then
  };
  struct Bound {  // `storage` may be interleaved only if `with` is
    int32_t storage, with;
  };

  bool is_view(const IrNode& n) const;
  void take_node(Span<const Value> values);
  bool take_launch(const Launch& l, Span<const Value> values, SmallVec<int32_t, 8>* flexible);
  int32_t storage_at(const char* data, Span<const Value> values) const;
  bool is_images(const IrValue& v) const;
  void bind(int32_t storage, int32_t with);
  void note_relu(const IrNode& n);
  bool is_kept(int32_t value, int64_t most_readers) const;

  const Graph& g_;
  SmallVec<Launch, 8> launches_;  // of the running node
  SmallVec<Adapted, 8> adapted_;
  SmallVec<Bound, 8> bounds_;
  SmallVec<Pooled, 4> pools_, relus_, gradients_;  // results of nodes
  SmallVec<Merged, 4> merged_;
  SmallVec<bool, 16> written_;  // of each storage, once there is pooling
  Readers readers_;
  SmallVec<bool, 16> fixed_, used_;  // of each storage
  SmallVec<bool, 16> chosen_;
  SmallVec<int64_t, 4> overread_;  // placements
  int64_t n_launches_ = 0;
  int64_t next_ = 0;
};

}  // namespace TT_NS
