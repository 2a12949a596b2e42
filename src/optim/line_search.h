// Line searches: the length of a step along a direction.
#pragma once

#include "core/tensor.h"

namespace TT_NS {

// The loss at one length: its value, its derivative along the direction, and its gradient.
struct Probe {
  double length, loss, slope;
  TensorRef gradient;
};
struct Line {
  Probe (*at)(void* with, double length);  // evaluates the loss
  void* with;
  Probe start;     // at length 0
  double largest;  // element of the direction, by absolute value
};

// Finds a length that meets the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and
// 3.6), beginning with `length`; after 25 rounds, the best one so far.
Probe strong_wolfe(const Line& line, double length);

}  // namespace TT_NS
