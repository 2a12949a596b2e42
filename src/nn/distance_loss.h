// TripletMarginWithDistanceLoss, whose distance is a function of the application.
#pragma once

#include "autograd/transform.h"
#include "nn/module.h"

namespace TT_NS {

// fn NULL: the Euclidean distance. drop runs exactly once, also on failure.
struct DistanceFunction {
  ApplicationFn fn;
  void* user;
  void (*drop)(void* user);
};
ModuleRef triplet_margin_with_distance_loss(const DistanceFunction& f, double margin, bool swap,
                                            int64_t reduction);

}  // namespace TT_NS
