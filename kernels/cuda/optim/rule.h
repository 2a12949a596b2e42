// A step of an optimizer over all its tensors: a rule (kernels/functors/optim.h) updates one
// element after the other, in the bits of the CPU where that has fused multiplication and addition.
#pragma once

#include "kernels/cuda/optim/items.h"
#include "kernels/functors/optim.h"

namespace TT_NS {
namespace {

using OptimItems = ItemList<OptimItem>;
constexpr int kStepBlocks = 4;  // of a multiprocessor, at least: memory is what a step waits for

// Elements i to i + kN, which each array has in one aligned pack.
template <class S, int kN, class R>
__device__ __forceinline__ void update_pack(const OptimItem& item, const R& rule, int64_t i) {
  using T = Compute<S>;
  using All = Pack<S, kN>;
  const auto at = [i](char* p) { return reinterpret_cast<All*>(p) + i / kN; };
  All param = *at(item.param);
  const All grad = reinterpret_cast<const All*>(item.grad)[i / kN];
  All state[kOptimStates];
#pragma unroll
  for (int k = 0; k < kOptimStates; k++)
    if (rule.has[k] && !rule.fresh[k]) state[k] = *at(item.state[k]);
#pragma unroll
  for (int j = 0; j < kN; j++) {
    T p = number_of(param.v[j]);
    const T g = number_of(grad.v[j]);
    T s[kOptimStates];
#pragma unroll
    for (int k = 0; k < kOptimStates; k++)
      s[k] = rule.has[k] && !rule.fresh[k] ? T(number_of(state[k].v[j])) : T(0);
    rule(Run<T>{&p, &g, {&s[0], &s[1], &s[2]}});
    param.v[j] = stored_as<S>(p);
#pragma unroll
    for (int k = 0; k < kOptimStates; k++) state[k].v[j] = stored_as<S>(s[k]);
  }
  *at(item.param) = param;
#pragma unroll
  for (int k = 0; k < kOptimStates; k++)
    if (rule.has[k]) *at(item.state[k]) = state[k];
}
inline __device__ bool is_in_packs(const OptimItem& item) {
  uintptr_t all = reinterpret_cast<uintptr_t>(item.param) | reinterpret_cast<uintptr_t>(item.grad);
#pragma unroll
  for (int k = 0; k < kOptimStates; k++) all |= reinterpret_cast<uintptr_t>(item.state[k]);
  return (all & 15) == 0;
}
// `from` is a multiple of kItemPiece, so that packs begin there, too.
template <class S, class R>
__device__ __forceinline__ void update(const OptimItem& item, int64_t from, int64_t to) {
  constexpr int kN = sizeof(S) == 8 ? 2 : 4;
  const R rule(item);
  int64_t rest = from;
  if (is_in_packs(item)) {
    rest = from + (to - from) / kN * kN;
    for (int64_t i = from + int64_t(threadIdx.x) * kN; i < rest; i += kItemThreads * kN)
      update_pack<S, kN>(item, rule, i);
  }
  for (int64_t i = rest + threadIdx.x; i < to; i += kItemThreads) update_pack<S, 1>(item, rule, i);
}
template <template <class> class R>
__device__ __forceinline__ void update_item(const OptimItem& item, int64_t from, int64_t to) {
  switch (item.dtype) {
    case TT_F16: return update<F16, R<float>>(item, from, to);
    case TT_BF16: return update<BF16, R<float>>(item, from, to);
    case TT_F64: return update<double, R<double>>(item, from, to);
    default: return update<float, R<float>>(item, from, to);
  }
}
template <template <class> class R> __global__ void __launch_bounds__(kItemThreads, kStepBlocks)
    step_of(const __grid_constant__ OptimItems list) {
  device::wait_for_previous();
  for_item(list, [&](const OptimItem& item, int64_t from, int64_t to, int64_t) {
    update_item<R>(item, from, to);
  });
}

inline int32_t launch_step(void (*kernel)(OptimItems), const OptimPlan& p, void* stream) {
  return launch_items(p.items, p.n_items, [&](const OptimItems& list, unsigned grid) {
    return device::launch_early(kernel, grid, kItemThreads, stream, list);
  });
}

}  // namespace
}  // namespace TT_NS
