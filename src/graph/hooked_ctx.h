// A ctx whose calls run implementations of nodes for a graph: without modes, with hooks and an
// observer in place of memory and kernels.
#pragma once

#include "core/graph_hooks.h"
#include "dispatch/key.h"

namespace TT_NS {

class HookedCtx {
 public:
  HookedCtx() = default;
  HookedCtx(const HookedCtx&) = delete;
  // What begin() has changed is as before.
  ~HookedCtx() {
    ctx_.include = include_;
    ctx_.exclude = exclude_;
    ctx_.watched = watched_;
    ctx_.work = work_;
    ctx_.graph = graph_;
    ctx_.undo = undo_;
  }
  // Keys of capture are excluded, too: nothing is recorded.
  void begin(GraphHooks& hooks, WorkObserver& observer) {
    ctx_.include = 0;
    ctx_.exclude = ~kBackendKeys | bit(kKeyCapture);
    ctx_.watched = kWatchWork;
    ctx_.work = &observer;
    ctx_.graph = &hooks;
    ctx_.undo = nullptr;
  }
  Ctx* operator->() const { return &ctx_; }

 private:
  Ctx& ctx_ = ctx();
  const KeySet include_ = ctx_.include;
  const KeySet exclude_ = ctx_.exclude;
  const uint8_t watched_ = ctx_.watched;
  WorkObserver* const work_ = ctx_.work;
  GraphHooks* const graph_ = ctx_.graph;
  UndoLog* const undo_ = ctx_.undo;
};

}  // namespace TT_NS
