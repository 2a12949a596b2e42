// Prints a tensor in PyTorch's layout (4 digits, 80 columns, 3 items at each edge beyond 1000
// elements).
#pragma once

#include "core/tensor.h"

namespace TT_NS {

// Facts printed after the values.
struct PrintFacts {
  Device device;        // of the tensor; not printed for the CPU
  const char* grad_fn;  // the operator; NULL: none
  bool requires_grad;   // printed if there is no grad_fn
};

// Writes at most cap bytes including the terminating zero; returns the length of the whole text
// without it. t is on the CPU or META.
int64_t print_tensor(char* out, int64_t cap, const Tensor& t, const PrintFacts& facts) noexcept;

}  // namespace TT_NS
