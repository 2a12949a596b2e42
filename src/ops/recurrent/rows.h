// Rows of packed sequences, for the layers and their gradients. Step t has sizes[t] rows, and row i
// of a step belongs to sequence i.
#pragma once

#include "ops/impl.h"
#include "plan/recurrent_build.h"

namespace TT_NS {

// The rows of the step before each step in the order of the direction: those of `values`, or of
// `first` where there is none.
TensorRef recurrent_rows_before(const Tensor& values, const Tensor& first, Ints sizes,
                                bool reverse);
// The row of each sequence that a direction computes first, or last.
TensorRef recurrent_first_rows(const Tensor& values, Ints sizes, bool reverse);
inline TensorRef recurrent_last_rows(const Tensor& values, Ints sizes, bool reverse) {
  return recurrent_first_rows(values, sizes, !reverse);
}

}  // namespace TT_NS
