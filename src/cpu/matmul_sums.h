// Adds the partial results of a matmul that was split along k.
#pragma once

#include "plan/matmul_plan.h"

namespace TT_NS {

// sums: [pieces][batch][m][n] of the type in which plan->dtype is computed.
struct MatmulSums {
  const MatmulPlan* plan;
  const char* sums;
  int64_t pieces;
};

// c = alpha * (sum of all pieces, in order: in double, for integers modulo 2^64) + beta * d for
// rows [begin, end) of [batch][m]. A CpuKernel of MatmulSums.
int32_t matmul_add_pieces(const void* sums, int64_t begin, int64_t end) noexcept;

}  // namespace TT_NS
