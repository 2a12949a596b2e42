// Kernels over many tensors: their items go to the kernel by value, as many as fit its parameter,
// so that there is no copy and a captured launch keeps them. A block takes a piece of a unit
// (plan/optim_plan.h).
#pragma once

#include "kernels/cuda/row.h"
#include "plan/optim_plan.h"

namespace TT_NS {
namespace {

constexpr int kItemThreads = 256;
constexpr size_t kItemBytes = 32764 - 4096;     // of items in a parameter
constexpr int64_t kItemPiece = kOptimUnit / 4;  // elements of a block

template <class Item> struct ItemList {
  static constexpr int64_t kMost = int64_t(kItemBytes / sizeof(Item));
  int64_t first_unit;  // of the first item
  int32_t n;
  Item items[kMost];
};

// Calls f(item, from, to, unit) with the elements of this block.
template <class Item, class F>
__device__ __forceinline__ void for_item(const ItemList<Item>& list, const F& f) {
  constexpr int64_t kPieces = kOptimUnit / kItemPiece;
  const int64_t unit = list.first_unit + blockIdx.x / kPieces;
  int low = 0;  // the last item with first_unit <= unit; empty ones have that of the next
  for (int high = list.n; high - low > 1;) {
    const int middle = (low + high) / 2;
    if (list.items[middle].first_unit <= unit) low = middle;
    else high = middle;
  }
  const Item& item = list.items[low];
  const int64_t from = (unit - item.first_unit) * kOptimUnit + blockIdx.x % kPieces * kItemPiece;
  const int64_t to = from + kItemPiece < item.n ? from + kItemPiece : item.n;
  f(item, from, to, unit);
}

// Calls launch(list, grid) for the items, as many at once as a parameter holds.
template <class Item, class F> int32_t launch_items(const Item* items, int64_t n, const F& launch) {
  constexpr int64_t kPieces = kOptimUnit / kItemPiece;
  ItemList<Item> list;
  for (int64_t first = 0; first < n; first += list.kMost) {
    list.n = int32_t(min(n - first, list.kMost));
    list.first_unit = items[first].first_unit;
    __builtin_memcpy(static_cast<void*>(list.items), items + first, size_t(list.n) * sizeof(Item));
    const Item& last = list.items[list.n - 1];
    const int64_t units = last.first_unit + optim_units(last.n) - list.first_unit;
    if (units == 0) continue;
    if (const int32_t status = launch(list, unsigned(units * kPieces))) return status;
  }
  return TT_OK;
}

}  // namespace
}  // namespace TT_NS
