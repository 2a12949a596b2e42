// Text of a tensor, laid out as PyTorch prints it (4 digits, 80 columns, 3 items at each edge
// beyond 1000 elements).
#pragma once

#include "core/tensor.h"

namespace TT_NS {

// What the text says beside the values.
struct PrintFacts {
  Device device;        // of the tensor; not told for the CPU
  const char* grad_fn;  // the operator; NULL: none
  bool requires_grad;   // told if there is no grad_fn
};

// Writes at most cap bytes, a closing 0 among them; returns the length of the whole text without
// it. t lies on the CPU or META.
int64_t print_tensor(char* out, int64_t cap, const Tensor& t, const PrintFacts& facts) noexcept;

}  // namespace TT_NS
