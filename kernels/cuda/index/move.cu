// index_get: b = a[index]. index_put: a[index] = b; of positions that share an element of a the
// last one is written: a hash table holds the last item of each key.
#include "kernels/cuda/index/index.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

// 16 bytes of c128 may be at a multiple of 8 only.
template <class E> __device__ __forceinline__ void move(char* to, const char* from) {
  if constexpr (sizeof(E) < 16) {
    *reinterpret_cast<E*>(to) = *reinterpret_cast<const E*>(from);
  } else if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 == 0) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
  } else {
    reinterpret_cast<uint64_t*>(to)[0] = reinterpret_cast<const uint64_t*>(from)[0];
    reinterpret_cast<uint64_t*>(to)[1] = reinterpret_cast<const uint64_t*>(from)[1];
  }
}

// kPut: writes a; last: whether an item is the last one of its key, NULL if each is.
template <class E, bool kPut> __global__ void __launch_bounds__(kIndexThreads)
    index_move(const __grid_constant__ IndexArguments p, const uint8_t* last) {
  for (int64_t i = first_item(); i < p.items.n * p.features.n; i += item_step()) {
    const int64_t item = quotient(i, p.features.n);
    if (kPut && last && !last[item]) continue;
    const IndexItem x = item_of(p, item);
    int64_t at[2];
    p.features.find(i - item * p.features.n, at);
    char* a = p.a + x.a + at[0];
    char* b = p.b + x.b + at[1];
    move<E>(kPut ? a : b, kPut ? b : a);
  }
}

using Word = unsigned long long;  // of CUDA's atomics
constexpr Word kNoKey = ~Word(0);
struct Slot {
  Word key;
  Word last;  // the last item, plus 1
};

__device__ __forceinline__ int64_t first_slot(Word key, int64_t slots) {
  return int64_t((key * 0x9e3779b97f4a7c15ull) >> 20) & (slots - 1);
}

__global__ void __launch_bounds__(kIndexThreads) clear_slots(Slot* slot, int64_t slots) {
  for (int64_t i = first_item(); i < slots; i += item_step()) slot[i] = {kNoKey, 0};
}
__global__ void __launch_bounds__(kIndexThreads)
    enter_items(const __grid_constant__ IndexArguments p, Slot* slot, int64_t slots) {
  for (int64_t i = first_item(); i < p.items.n; i += item_step()) {
    const Word key = Word(item_of(p, i).a);
    for (int64_t s = first_slot(key, slots);; s = (s + 1) & (slots - 1)) {
      const Word seen = atomicCAS(&slot[s].key, kNoKey, key);
      if (seen != kNoKey && seen != key) continue;
      atomicMax(&slot[s].last, Word(i + 1));
      break;
    }
  }
}
__global__ void __launch_bounds__(kIndexThreads)
    find_last(const __grid_constant__ IndexArguments p, const Slot* slot, int64_t slots,
              uint8_t* last) {
  for (int64_t i = first_item(); i < p.items.n; i += item_step()) {
    const Word key = Word(item_of(p, i).a);
    int64_t s = first_slot(key, slots);
    while (slot[s].key != key) s = (s + 1) & (slots - 1);
    last[i] = slot[s].last == Word(i + 1);
  }
}

int64_t slots_of(int64_t items) {
  int64_t slots = 32;
  while (slots < 2 * items) slots *= 2;
  return slots;
}

template <bool kPut>
int32_t launch_move(const IndexArguments& p, int64_t item, const uint8_t* last, void* stream) {
  return with_size(item, [&](auto e) {
    const unsigned grid = grid_of(p.items.n * p.features.n, kIndexThreads);
    return device::launch(index_move<decltype(e), kPut>, grid, kIndexThreads, 0, stream, p, last);
  });
}

const IndexPlan& index_plan(const void* plan) { return *static_cast<const IndexPlan*>(plan); }

}  // namespace

namespace cuda {

int32_t index_get(const void* plan, void* stream, void*) {
  IndexPlan p = index_plan(plan);
  const int64_t item = widen_elements(&p);
  IndexArguments a;
  const int32_t first = split_nest(p, &a);
  return for_outer(p, a, first, [&](const IndexArguments& x) {
    return launch_move<false>(x, item, nullptr, stream);
  });
}

int32_t index_put(const void* plan, void* stream, void* workspace) {
  IndexPlan p = index_plan(plan);
  const int64_t item = widen_elements(&p);
  IndexArguments a;
  const int32_t first = split_nest(p, &a);
  const int64_t slots = slots_of(a.items.n);
  Slot* const slot = static_cast<Slot*>(workspace);
  uint8_t* const last = reinterpret_cast<uint8_t*>(slot + slots);
  return for_outer(p, a, first, [&](const IndexArguments& x) {
    if (!x.collides) return launch_move<true>(x, item, nullptr, stream);
    const unsigned grid = grid_of(x.items.n, kIndexThreads);
    int32_t status = device::launch(clear_slots, grid_of(slots, kIndexThreads), kIndexThreads, 0,
                                    stream, slot, slots);
    if (status == TT_OK)
      status = device::launch(enter_items, grid, kIndexThreads, 0, stream, x, slot, slots);
    if (status == TT_OK)
      status = device::launch(find_last, grid, kIndexThreads, 0, stream, x, slot, slots, last);
    return status == TT_OK ? launch_move<true>(x, item, last, stream) : status;
  });
}
size_t index_put_workspace(const void* plan) {
  IndexArguments a;
  split_nest(index_plan(plan), &a);
  if (!a.collides) return 0;
  return size_t(slots_of(a.items.n)) * sizeof(Slot) + size_t(a.items.n);
}

}  // namespace cuda
}  // namespace TT_NS
