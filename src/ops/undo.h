// UndoLog: changes of a call that the C boundary undoes on failure: reserved random numbers and
// running statistics. Calls made by callbacks have their own logs.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

class UndoLog {
 public:
  explicit UndoLog(Ctx& c) : ctx_(c), outer_(c.undo) { c.undo = this; }
  // Undoes the logged changes unless keep() was called.
  ~UndoLog() {
    ctx_.undo = outer_;
    if (TT_UNLIKELY(!kept_)) undo();
  }
  UndoLog(const UndoLog&) = delete;
  void keep() { kept_ = true; }

  Rng reserve(Generator& g, uint64_t counters);
  void remember(Tensor& t);

 private:
  struct RngReservation {
    Ref<Generator> generator;
    Rng begin;
    uint64_t counters;
  };
  struct Written {
    TensorRef tensor;
    TensorRef values;  // a clone; for devices of the application, a CPU copy of the byte range
    uint32_t version;
  };
  TT_COLD void undo() noexcept;
  void undo_writes() noexcept;

  Ctx& ctx_;
  UndoLog* const outer_;
  bool kept_ = false;
  SmallVec<RngReservation, 1> reserved_;
  SmallVec<Written, 1> written_;
};

// Reserves counters of a generator (NULL: the ctx's) for the running call; they are returned if it
// fails.
Rng reserve_rng(Generator* generator, uint64_t counters);
// Call before writing t: its values and version are restored if the running call fails.
void remember_values(Tensor& t);

}  // namespace TT_NS
