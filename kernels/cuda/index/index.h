// An IndexPlan on the device, as items and features: an item is a position of the dimensions that
// the index depends on, or in which positions share elements of a; features are the other
// dimensions, in which an item's elements are distinct. The item's place in a is its key.
#pragma once

#include "kernels/cuda/convert.h"
#include "kernels/cuda/nest.h"
#include "plan/index_plan.h"

namespace TT_NS {
namespace {

constexpr int kIndexThreads = 256;

struct IndexArguments {
  char* a;
  char* b;
  const char* index;
  int64_t a_step, index_size;
  int32_t dtype;
  bool narrow;       // indices are i32
  bool collides;     // several items may have one key
  Nest<3> items;     // strides in a, b, index
  Nest<2> features;  // in a, b
};

__device__ __forceinline__ int64_t read_index(const IndexArguments& p, const char* at) {
  return p.narrow ? *reinterpret_cast<const int32_t*>(at) : *reinterpret_cast<const int64_t*>(at);
}
// Returns the position of index i. An index that has left its range since it was checked counts as
// 0.
__device__ __forceinline__ int64_t position_of_index(const IndexArguments& p, int64_t i) {
  if (i < 0) i += p.index_size;
  return uint64_t(i) > uint64_t(p.index_size) - 1 ? 0 : i;
}

struct IndexItem {
  int64_t a, b;  // bytes
};
__device__ __forceinline__ IndexItem item_of(const IndexArguments& p, int64_t i) {
  int64_t at[3];
  p.items.find(i, at);
  return {at[0] + position_of_index(p, read_index(p, p.index + at[2])) * p.a_step, at[1]};
}

// ---- on the host ----

// Makes elements of up to 16 bytes out of neighbours that have one index.
inline int64_t widen_elements(IndexPlan* p) {
  int64_t item = kItemSize[p->dtype];
  if (p->index_stride[0] != 0) return item;
  const auto fits = [&](int64_t unit) {
    if (p->a_stride[0] != item || p->b_stride[0] != item || p->size[0] % 2 != 0) return false;
    uint64_t all = uint64_t(reinterpret_cast<uintptr_t>(p->a)) |
                   uint64_t(reinterpret_cast<uintptr_t>(p->b)) | uint64_t(p->a_step);
    for (int32_t d = 1; d < p->ndim; d++) all |= uint64_t(p->a_stride[d] | p->b_stride[d]);
    return all % uint64_t(unit) == 0;
  };
  if (p->index_size == 0) return item;  // offsets of any multiple of the element
  while (item < 16 && fits(2 * item)) {
    item *= 2;
    p->size[0] /= 2;
    p->a_stride[0] = p->b_stride[0] = item;
  }
  return item;
}

// Returns the first dimension that the launches do not cover: the host loops over those.
inline int32_t split_nest(const IndexPlan& p, IndexArguments* out) {
  out->a_step = p.a_step;
  out->index_size = p.index_size;
  out->dtype = p.dtype;
  out->narrow = p.index_dtype == TT_I32;
  out->collides = false;
  out->items.clear();
  out->features.clear();
  int32_t d = 0;
  for (; d < p.ndim; d++) {
    const bool feature = p.index_stride[d] == 0 && p.a_stride[d] != 0;
    if (feature ? !out->features.add(p.size[d], {p.a_stride[d], p.b_stride[d]})
                : !out->items.add(p.size[d], {p.a_stride[d], p.b_stride[d], p.index_stride[d]}))
      break;
    if (!feature && p.a_stride[d] == 0 && p.size[d] > 1) out->collides = true;
  }
  return d;
}

// Whether dimension 0 of the items is a row whose targets no other row has, and elements move one
// by one.
inline bool rows_apart(const IndexPlan& p, const IndexArguments& a) {
  if (a.features.n != 1 || a.items.ndim == 0 || a.items.stride[0][0] != 0) return false;
  for (int d = 1; d < a.items.ndim; d++)
    if (a.items.stride[0][d] == 0) return false;
  return p.index_size > 0 && p.index_size <= INT32_MAX && a.items.size[0] < INT32_MAX &&
         p.a_step > 0;
}

// Calls run(arguments) for each position of the dimensions that a launch does not cover.
template <class F>
int32_t for_outer(const IndexPlan& p, IndexArguments& a, int32_t first, const F& run) {
  int64_t n = 1;
  for (int32_t d = first; d < p.ndim; d++) n *= p.size[d];
  if (a.items.n == 0 || a.features.n == 0) return TT_OK;
  for (int64_t i = 0; i < n; i++) {
    a.a = p.a;
    a.b = p.b;
    a.index = p.index;
    int64_t rest = i;
    for (int32_t d = first; d < p.ndim; d++) {
      const int64_t at = rest % p.size[d];
      rest /= p.size[d];
      a.a += at * p.a_stride[d];
      a.b += at * p.b_stride[d];
      a.index += at * p.index_stride[d];
    }
    if (const int32_t status = run(a)) return status;
  }
  return TT_OK;
}

// Calls f(E{}) with an unsigned type of this size in bytes.
struct alignas(16) Bytes128 {
  uint64_t low, high;
};
template <class F> int32_t with_size(int64_t bytes, const F& f) {
  switch (bytes) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(Bytes128{});
  }
}

}  // namespace
}  // namespace TT_NS
