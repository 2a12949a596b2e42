// Event files of TensorBoard.
#pragma once

#include "core/tensor.h"

namespace TT_NS {

// Where a value is shown: under a tag, at a step; no step if it is negative.
struct SummaryPlace {
  const char* path;  // of the file; it is created if it does not exist
  const char* tag;
  int64_t step;
};
void add_scalar(const SummaryPlace& place, double value);
void add_text(const SummaryPlace& place, const char* text);
// In TensorFlow's bins: powers of 1.1.
void add_histogram(const SummaryPlace& place, const Tensor& values);
// (C, H, W) with 1, 3 or 4 channels: uint8, or floating-point numbers in [0, 1].
void add_image(const SummaryPlace& place, const Tensor& image);

}  // namespace TT_NS
