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
    for (int d = 0; d < p.ndim; d++) {
      index[d] = d + 1 == p.ndim ? position : position % p.size[d];
      position = d + 1 == p.ndim ? 0 : position / p.size[d];
      for (int k = 0; k < p.n_operands; k++) at[k] += index[d] * p.stride[k][d];
    }
  }

  TT_INLINE int64_t row_left() const { return plan->size[0] - index[0]; }

  // Advances by m elements; m <= row_left().
  TT_INLINE void advance(int64_t m) {
    const ElementPlan& p = *plan;
    index[0] += m;
    for (int k = 0; k < p.n_operands; k++) at[k] += m * p.stride[k][0];
    for (int d = 0; d + 1 < p.ndim && index[d] == p.size[d]; d++) {
      index[d] = 0;
      index[d + 1]++;
      for (int k = 0; k < p.n_operands; k++)
        at[k] += p.stride[k][d + 1] - p.size[d] * p.stride[k][d];
    }
  }

  // Advances by m elements, over any number of rows, to an element that exists.
  TT_INLINE void skip(int64_t m) {
    const ElementPlan& p = *plan;
    for (int d = 0; m > 0; d++) {
      const int64_t to = index[d] + m;
      const int64_t wraps = d + 1 == p.ndim ? 0 : to / p.size[d];
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
