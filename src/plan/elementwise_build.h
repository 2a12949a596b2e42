// Builds an ElementPlan from sizes and strides: broadcast -> reorder by the output's strides ->
// coalesce -> pick the path. No Tensor, no allocation, no failure: the implementation has checked
// that the operands broadcast to the output's shape.
#pragma once

#include "plan/elementwise_plan.h"

namespace TT_NS {

// One operand as passed by the implementation: dimension 0 outermost, strides in elements.
struct ElementOperand {
  char* ptr;
  const int64_t* size;
  const int64_t* stride;
  int32_t ndim;  // at most the output's; missing leading dimensions broadcast
  int32_t dtype;
};

// Operands that are always bool, whatever the compute dtype (bit i = operand i, 0 is the output).
constexpr uint32_t kBoolNone = 0, kBoolOut = 1, kBoolCond = 2, kBoolMask = 4, kBoolAll = 15;

// Returns whether the elements are one row-major run of unit stride. Dimensions of size 1 may have
// any stride.
TT_INLINE bool is_row_major(const int64_t* size, const int64_t* stride, int32_t ndim) {
  int64_t expect = 1;
  for (int d = ndim - 1; d >= 0; d--) {
    if (size[d] != 1 && stride[d] != expect) return false;
    expect *= size[d];
  }
  return true;
}

namespace element_build {

TT_INLINE int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

// Sets the loop nest before coalescing: without dims of size 1, innermost dim first, strides in
// bytes.
inline void load_dims(ElementPlan& p, const ElementOperand* ops) {
  const ElementOperand& out = ops[0];
  int n = 0;
  for (int d = out.ndim - 1; d >= 0; d--) {
    if (out.size[d] == 1) continue;
    p.size[n] = out.size[d];
    for (int k = 0; k < p.n_operands; k++) {
      const int own = d - (out.ndim - ops[k].ndim);
      const bool repeats = own < 0 || ops[k].size[own] == 1;
      p.stride[k][n] = repeats ? 0 : ops[k].stride[own] * kItemSize[ops[k].dtype];
    }
    n++;
  }
  p.ndim = n;
}

TT_INLINE void swap_dims(ElementPlan& p, int a, int b) {
  const int64_t size = p.size[a];
  p.size[a] = p.size[b];
  p.size[b] = size;
  for (int k = 0; k < p.n_operands; k++) {
    const int64_t stride = p.stride[k][a];
    p.stride[k][a] = p.stride[k][b];
    p.stride[k][b] = stride;
  }
}

// Sorts by the stride of the output, smallest innermost; ties (none in a valid output) keep their
// order.
inline void sort_dims(ElementPlan& p) {
  for (int i = 1; i < p.ndim; i++)
    for (int j = i; j > 0 && magnitude(p.stride[0][j]) < magnitude(p.stride[0][j - 1]); j--)
      swap_dims(p, j, j - 1);
}

// Merges dimension d + 1 into d if every operand is contiguous across them.
inline void coalesce_dims(ElementPlan& p) {
  int last = 0;
  for (int d = 1; d < p.ndim; d++) {
    bool continues = true;
    for (int k = 0; k < p.n_operands; k++)
      continues &= p.stride[k][d] == p.stride[k][last] * p.size[last];
    if (continues) {
      p.size[last] *= p.size[d];
      continue;
    }
    last++;
    p.size[last] = p.size[d];
    for (int k = 0; k < p.n_operands; k++) p.stride[k][last] = p.stride[k][d];
  }
  p.ndim = last + 1;
}

// Requires ndim == 1. Sets dense if each operand is a run of its native dtype, or (inputs) a single
// element of it.
inline void detect_dense(ElementPlan& p, uint32_t bool_operands) {
  bool dense = true;
  bool scalar[kMaxOperands] = {};
  for (int k = 0; k < p.n_operands; k++) {
    const int32_t native = bool_operands >> k & 1 ? TT_BOOL : p.compute;
    scalar[k] = k > 0 && p.stride[k][0] == 0;
    dense &= p.dtype[k] == native && (scalar[k] || p.stride[k][0] == kItemSize[native]);
  }
  p.dense = dense;
  for (int k = 0; k < p.n_operands; k++) p.scalar_in[k] = dense && scalar[k];
}

}  // namespace element_build

// ops[0] is the output, ops[1 …] are the inputs. Sets all fields but the params.
inline void build_element_plan(ElementPlan& p, const ElementOperand* ops, int32_t n_operands,
                               int32_t compute, uint32_t bool_operands) {
  p.n_operands = n_operands;
  p.compute = compute;
  const ElementOperand& out = ops[0];
  p.n = 1;
  for (int d = 0; d < out.ndim; d++) p.n *= out.size[d];
  bool dense = true;
  for (int k = 0; k < kMaxOperands; k++) p.scalar_in[k] = false;
  for (int k = 0; k < n_operands; k++) {
    p.ptr[k] = ops[k].ptr;
    p.dtype[k] = ops[k].dtype;
    bool same = ops[k].ndim == out.ndim &&
                ops[k].dtype == (bool_operands >> k & 1 ? int32_t(TT_BOOL) : compute);
    for (int d = 0; same && d < out.ndim; d++) same = ops[k].size[d] == out.size[d];
    dense = dense && same && is_row_major(ops[k].size, ops[k].stride, ops[k].ndim);
  }
  p.dense = dense;
  p.ndim = 0;
  if (dense) return;
  element_build::load_dims(p, ops);
  if (p.ndim == 0) {  // one element
    p.ndim = 1;
    p.size[0] = p.n;
    for (int k = 0; k < n_operands; k++) p.stride[k][0] = kItemSize[p.dtype[k]];
  }
  element_build::sort_dims(p);
  element_build::coalesce_dims(p);
  if (p.ndim == 1) element_build::detect_dense(p, bool_operands);
}

}  // namespace TT_NS
