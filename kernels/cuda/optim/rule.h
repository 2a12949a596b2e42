// A step of an optimizer over all its tensors: a rule (kernels/functors/optim.h) updates one
// element after the other, in the bits of the CPU where that has fused multiplication and addition.
#pragma once

#include "kernels/cuda/optim/items.h"
#include "kernels/functors/optim.h"

namespace TT_NS {
namespace {

using OptimItems = ItemList<OptimItem>;

template <class S, class R>
__device__ __forceinline__ void update(const OptimItem& item, int64_t from, int64_t to) {
  using T = Compute<S>;
  const R rule(item);
  S* const param = reinterpret_cast<S*>(item.param);
  const S* const grad = reinterpret_cast<const S*>(item.grad);
  // All loads of kN neighbours come before the stores.
  const auto step = [&]<int kN>(int64_t i) {
    using Numbers = Pack<S, kN>;
    Numbers p = *reinterpret_cast<const Numbers*>(param + i);
    const Numbers g = *reinterpret_cast<const Numbers*>(grad + i);
    Numbers s[kOptimStates];
#pragma unroll
    for (int k = 0; k < kOptimStates; k++) {
      s[k] = Numbers{};
      if (rule.has[k] && !rule.fresh[k])
        s[k] = *reinterpret_cast<const Numbers*>(reinterpret_cast<const S*>(item.state[k]) + i);
    }
#pragma unroll
    for (int j = 0; j < kN; j++) {
      T p1 = number_of(p.v[j]);
      const T g1 = number_of(g.v[j]);
      T s1[kOptimStates];
#pragma unroll
      for (int k = 0; k < kOptimStates; k++) s1[k] = number_of(s[k].v[j]);
      rule(Run<T>{&p1, &g1, {&s1[0], &s1[1], &s1[2]}});
      p.v[j] = stored_as<S>(p1);
#pragma unroll
      for (int k = 0; k < kOptimStates; k++) s[k].v[j] = stored_as<S>(s1[k]);
    }
    *reinterpret_cast<Numbers*>(param + i) = p;
#pragma unroll
    for (int k = 0; k < kOptimStates; k++)
      if (rule.has[k]) *reinterpret_cast<Numbers*>(reinterpret_cast<S*>(item.state[k]) + i) = s[k];
  };
  constexpr int kN = sizeof(S) == 8 ? 2 : 4;
  uint64_t all =
      uint64_t(reinterpret_cast<uintptr_t>(param)) | uint64_t(reinterpret_cast<uintptr_t>(grad));
#pragma unroll
  for (int k = 0; k < kOptimStates; k++)
    all |= uint64_t(reinterpret_cast<uintptr_t>(item.state[k]));
  int64_t packed = from;  // the end of whole packs
  if (all % (kN * sizeof(S)) == 0) packed += (to - from) / kN * kN;
  for (int64_t i = from + int64_t(threadIdx.x) * kN; i < packed; i += kItemThreads * kN)
    step.template operator()<kN>(i);
  for (int64_t i = packed + threadIdx.x; i < to; i += kItemThreads) step.template operator()<1>(i);
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
template <template <class> class R> __global__ void __launch_bounds__(kItemThreads)
    step_of(const __grid_constant__ OptimItems list) {
  for_item(list, [&](const OptimItem& item, int64_t from, int64_t to, int64_t) {
    update_item<R>(item, from, to);
  });
}

inline int32_t launch_step(void (*kernel)(OptimItems), const OptimPlan& p, void* stream) {
  return launch_items(p.items, p.n_items, [&](const OptimItems& list, unsigned grid) {
    return device::launch(kernel, grid, kItemThreads, 0, stream, list);
  });
}

}  // namespace
}  // namespace TT_NS
