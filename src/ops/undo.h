// UndoLog: what a call changes before it is known to succeed, so that the C boundary can undo it:
// generators that moved on, and running statistics. What a callback of the host does through tt is
// logged by the calls that it makes.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

class UndoLog {
 public:
  explicit UndoLog(Ctx& c) : ctx_(c), outer_(c.undo) { c.undo = this; }
  // Undoes what is logged, unless the call has succeeded.
  ~UndoLog() {
    ctx_.undo = outer_;
    if (TT_UNLIKELY(!kept_)) undo();
  }
  UndoLog(const UndoLog&) = delete;
  void keep() { kept_ = true; }

  Rng draw(Generator& g, uint64_t counters);
  void remember(Tensor& t);

 private:
  struct Drawn {
    Ref<Generator> generator;
    Rng begin;
    uint64_t counters;
  };
  struct Written {
    TensorRef tensor;
    TensorRef
        values;  // a clone; of a tensor on a device of the host its byte range, copied to the CPU
    uint32_t version;
  };
  TT_COLD void undo() noexcept;
  void undo_writes() noexcept;

  Ctx& ctx_;
  UndoLog* const outer_;
  bool kept_ = false;
  SmallVec<Drawn, 1> drawn_;
  SmallVec<Written, 1> written_;
};

// Counters of a generator, or of the ctx's own, for the running call: given back if that fails.
Rng reserve_rng(Generator* generator, uint64_t counters);
// t is written by the running call: it gets back its values and its version if that fails.
void remember_values(Tensor& t);

}  // namespace TT_NS
