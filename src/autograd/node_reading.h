// Reading what a node saved, beside backward runs of other threads.
#pragma once

#include "autograd/node.h"

namespace TT_NS {

// The claim of a node that is being read. Runs and other readers wait for its end.
constexpr uintptr_t kReading = 2;

// While it exists, no other thread frees what the node saved. It must be short and must not call
// the application, which could run the node.
class NodeReading {
 public:
  explicit NodeReading(Node& n) noexcept;
  ~NodeReading();
  NodeReading(const NodeReading&) = delete;
  // Returns false if a run of another thread holds the node: what it saved may change meanwhile.
  bool allowed() const { return allowed_; }

 private:
  Node& n_;
  bool marked_ = false;
  bool allowed_ = false;
};

// Returns whether a claim is that of a backward which runs on this ctx.
bool is_running_here(uintptr_t claim) noexcept;  // in engine.cpp

}  // namespace TT_NS
