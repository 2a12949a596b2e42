// Values of a warp or block as one: shuffles of any struct, combination in a fixed order.
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/functors/target.h"

namespace TT_NS {
namespace {

constexpr int kWarp = 32;
constexpr uint32_t kAllLanes = 0xffffffffu;

// The value of the lane `delta` above; of this lane if there is none.
template <class P> __device__ __forceinline__ P shuffle_down(const P& value, unsigned delta) {
  static_assert(sizeof(P) % 4 == 0);
  constexpr int kWords = int(sizeof(P) / 4);
  uint32_t words[kWords];
  __builtin_memcpy(words, &value, sizeof value);
#pragma unroll
  for (int i = 0; i < kWords; i++) words[i] = __shfl_down_sync(kAllLanes, words[i], delta);
  P result;
  __builtin_memcpy(static_cast<void*>(&result), words, sizeof result);
  return result;
}

// The value of another lane.
template <class P> __device__ __forceinline__ P shuffle_from(const P& value, int lane) {
  static_assert(sizeof(P) % 4 == 0);
  constexpr int kWords = int(sizeof(P) / 4);
  uint32_t words[kWords];
  __builtin_memcpy(words, &value, sizeof value);
#pragma unroll
  for (int i = 0; i < kWords; i++) words[i] = __shfl_sync(kAllLanes, words[i], lane);
  P result;
  __builtin_memcpy(static_cast<void*>(&result), words, sizeof result);
  return result;
}

// Lane 0 gets the combination of all lanes, as a tree: combine(lower, higher).
template <class P, class Combine>
__device__ __forceinline__ P combine_warp(P value, const Combine& combine) {
#pragma unroll
  for (unsigned delta = kWarp / 2; delta > 0; delta /= 2)
    value = combine(value, shuffle_down(value, delta));
  return value;
}

}  // namespace
}  // namespace TT_NS
