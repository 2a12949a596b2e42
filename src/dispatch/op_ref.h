// A reference to an operator that keeps it alive: those of the application end with their runtime
// and with the last reference.
#pragma once

#include "base/ref.h"
#include "dispatch/op_info.h"

#include <utility>

namespace TT_NS {

// An operator of the application; the library's are static.
struct OwnedOp {
  OpInfo info;  // first: a tt_op handle points to it
  RefCount refs;
  void (*end)(OwnedOp*) noexcept;
  const char* text;  // its schema
  static void destroy(OwnedOp* o) noexcept { o->end(o); }
};

class OpRef {
 public:
  OpRef() = default;
  OpRef(const OpInfo* op) : op_(op) {
    if (OwnedOp* o = owned()) ref_inc(&o->refs);
  }
  OpRef(const OpRef& o) : OpRef(o.op_) {}
  OpRef(OpRef&& o) noexcept : op_(std::exchange(o.op_, nullptr)) {}
  OpRef& operator=(OpRef o) noexcept {
    std::swap(op_, o.op_);
    return *this;
  }
  ~OpRef() {
    OwnedOp* const o = owned();
    if (o && ref_dec(&o->refs)) o->end(o);
  }
  const OpInfo* get() const { return op_; }
  const OpInfo& operator*() const { return *op_; }
  const OpInfo* operator->() const { return op_; }
  operator const OpInfo*() const { return op_; }

 private:
  OwnedOp* owned() const {
    if (!op_ || !op_->is_custom()) return nullptr;
    return reinterpret_cast<OwnedOp*>(const_cast<OpInfo*>(op_));
  }
  const OpInfo* op_ = nullptr;
};

}  // namespace TT_NS
