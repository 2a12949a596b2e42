// Walk: a position in a plan's loop nest and the address of each operand there.
#pragma once

#include "kernels/cpu/simd/isa.h"
#include "plan/elementwise_plan.h"

TT_ISA_BEGIN

struct Walk {
  const ElementPlan* plan;
  int64_t index[kMaxPlanDims];  // only ndim are set
  char* at[kMaxOperands];

  TT_INLINE void start(const ElementPlan& p, int64_t position) {
    plan = &p;
    for (int k = 0; k < p.n_operands; k++) at[k] = p.ptr[k];
    for (int d = 0; d < p.ndim; d++) index[d] = 0;
    skip(position);
  }

  TT_INLINE int64_t row_left() const { return plan->size[0] - index[0]; }

  // Advances by m elements, over any number of rows, to an element that exists.
  TT_INLINE void skip(int64_t m) {
    const ElementPlan& p = *plan;
    for (int d = 0; m > 0; d++) {
      const int64_t to = index[d] + m;
      const bool ends = to >= p.size[d] && d + 1 < p.ndim;
      const int64_t wraps = ends ? to / p.size[d] : 0;
      const int64_t step = m - wraps * p.size[d];  // of this dimension's index
      for (int k = 0; k < p.n_operands; k++) at[k] += step * p.stride[k][d];
      index[d] += step;
      m = wraps;
    }
  }
};

// Returns whether operand k is contiguous over the whole loop nest.
TT_INLINE bool is_linear(const ElementPlan& p, int k) {
  int64_t expect = kItemSize[p.dtype[k]];
  for (int d = 0; d < p.ndim; d++) {
    if (p.stride[k][d] != expect) return false;
    expect *= p.size[d];
  }
  return true;
}

// Returns whether operand k is one row that the outer dimensions repeat.
TT_INLINE bool is_one_row(const ElementPlan& p, int k) {
  for (int d = 1; d < p.ndim; d++)
    if (p.stride[k][d] != 0) return false;
  return true;
}

TT_ISA_END
