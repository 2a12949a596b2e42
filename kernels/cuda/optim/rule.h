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
  for (int64_t i = from + threadIdx.x; i < to; i += kItemThreads) {
    T p = number_of(param[i]);
    const T g = number_of(grad[i]);
    T s[kOptimStates];
#pragma unroll
    for (int k = 0; k < kOptimStates; k++) {
      const bool read = rule.has[k] && !rule.fresh[k];
      s[k] = read ? T(number_of(reinterpret_cast<const S*>(item.state[k])[i])) : T(0);
    }
    rule(Run<T>{&p, &g, {&s[0], &s[1], &s[2]}});
    param[i] = stored_as<S>(p);
#pragma unroll
    for (int k = 0; k < kOptimStates; k++)
      if (rule.has[k]) reinterpret_cast<S*>(item.state[k])[i] = stored_as<S>(s[k]);
  }
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
