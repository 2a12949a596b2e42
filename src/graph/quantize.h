// Quantisation of a graph after training: convolutions and linear layers in 8-bit integers.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

struct QuantizeOptions {
  // Activations get the range with the smallest sum of squared errors, not the range from the
  // smallest to the largest number.
  bool histogram = false;
  // Linear layers take the range of each row from the row itself, in each run, and no samples.
  bool per_row = false;
};

// A graph in which convolutions of images and linear layers whose weight is a constant are
// quantised: weights as int8 with a scale for each output, activations as uint8 with a scale and a
// zero point. samples: inputs of g, run after run, from which replays find the ranges.
Ref<Graph> quantized(const Graph& g, TensorSpan samples, const QuantizeOptions& options);

}  // namespace TT_NS
