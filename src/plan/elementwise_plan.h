// ElementPlan: an elementwise loop nest over one output and up to three inputs. POD, also device
// code.
#pragma once

#include "plan/kernel.h"

namespace TT_NS {

constexpr int kMaxPlanDims = 64;
constexpr int kMaxOperands = 4;  // operand 0 is the output

struct ElementPlan {
  int64_t n;  // elements of the output = work units
  int32_t n_operands;
  int32_t compute;  // dtype in which the functor computes: f32 f64 i32 i64 c64 c128; bool for
                    // logical functors; bool u8 i32 i64 for bitwise ones; any dtype for those that
                    // only move values (where, fill …)
  bool dense;  // every operand is a run of n elements of unit stride in the functor's native dtype
  bool scalar_in[kMaxOperands];  // (dense only) this operand is a single element: stride 0
  int32_t ndim;  // not dense: dims after coalescing, 1 … 64; dimension 0 is the innermost
  int32_t dtype[kMaxOperands];  // stored dtype of each operand
  char* ptr[kMaxOperands];
  tt_scalar param[2];  // the functor's scalars (alpha, min, max, exponent …); kind 0 = not given
  // A number as operand: its value in dtype[k]. ptr[k] points here on the CPU and is NULL on
  // devices.
  alignas(16) char scalar[kMaxOperands][16];
  // only if not dense, else uninitialised
  int64_t size[kMaxPlanDims];
  int64_t stride[kMaxOperands][kMaxPlanDims];  // bytes
};

// Kernel::rebase: numbers as operands of a copied plan are its own.
inline void rebase_element_plan(void* plan, const void* from) noexcept {
  auto* p = static_cast<ElementPlan*>(plan);
  const auto* old = static_cast<const ElementPlan*>(from);
  for (int32_t k = 0; k < p->n_operands; k++)
    if (old->ptr[k] == old->scalar[k]) p->ptr[k] = p->scalar[k];
}

}  // namespace TT_NS
