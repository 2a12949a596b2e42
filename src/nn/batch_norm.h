// Batch normalisations of a tree of modules, and their running statistics as means over batches.
#pragma once

#include "nn/module.h"

namespace TT_NS {

bool normalizes_batches(const Module& m);

// During its lifetime a tree is in training mode, and the running statistics of its batch
// normalisations, which are reset before, are means over the batches that they see. If the running
// call fails, the statistics are as before.
class StatisticsUpdate {
 public:
  explicit StatisticsUpdate(Module& root);
  ~StatisticsUpdate();
  StatisticsUpdate(const StatisticsUpdate&) = delete;

 private:
  SmallVec<ModuleRef, 8> modules_;
  SmallVec<ModuleRef, 4> layers_;  // whose mode is set
  const bool training_;
};

}  // namespace TT_NS
