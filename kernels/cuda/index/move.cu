// index_get: b = a[index]. index_put: a[index] = b; of positions that share an element of a the
// last one is written: shared memory holds the last item of each target of a row, or a hash table
// that of each key.
#include "kernels/cuda/index/index.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

// 16 bytes of c128 may be at a multiple of 8 only.
template <class E> __device__ __forceinline__ E load(const char* from) {
  if constexpr (sizeof(E) == 16) {
    const uint64_t* const words = reinterpret_cast<const uint64_t*>(from);
    if (reinterpret_cast<uintptr_t>(from) % 16 != 0) return {words[0], words[1]};
  }
  return *reinterpret_cast<const E*>(from);
}
template <class E> __device__ __forceinline__ void store(char* to, const E& value) {
  if constexpr (sizeof(E) == 16) {
    if (reinterpret_cast<uintptr_t>(to) % 16 != 0) {
      reinterpret_cast<uint64_t*>(to)[0] = value.low;
      reinterpret_cast<uint64_t*>(to)[1] = value.high;
      return;
    }
  }
  *reinterpret_cast<E*>(to) = value;
}

// Items of a thread, whose elements are read before the first one is written.
constexpr int kItemsAtOnce = 4;

// Threads x serve features, y items: those of the whole nest, or with `runs` those of its innermost
// dimension, and blocks y the positions of the others.
// kPut: writes a; last: whether an item is the last one of its key, NULL if each is.
template <class E, bool kPut> __global__ void __launch_bounds__(kIndexThreads)
    index_move(const __grid_constant__ IndexArguments p, const uint8_t* last, int64_t runs) {
  constexpr int kItems = kItemsAtOnce;
  const int64_t n = runs ? p.items.size[0] : p.items.n;
  const int64_t n_runs = runs ? runs : 1;
  const int64_t y = blockDim.y;
  for (int64_t run = blockIdx.y; run < n_runs; run += gridDim.y) {
    int64_t base[3] = {0, 0, 0};
    if (runs) p.items.find(run * n, base);
    for (int64_t first = blockIdx.x * y * kItems + threadIdx.y; first < n;
         first += gridDim.x * y * kItems) {
      int64_t index[kItems];
      int64_t at[kItems][2];
      bool moves[kItems];
#pragma unroll
      for (int j = 0; j < kItems; j++) {
        const int64_t i = first + j * y;
        moves[j] = i < n && !(kPut && last && !last[run * n + i]);
        int64_t item[3] = {base[0], base[1], base[2]};
        if (!runs) {
          p.items.find(i < n ? i : 0, item);
        } else {
#pragma unroll
          for (int k = 0; k < 3; k++) item[k] += i * p.items.stride[k][0];
        }
        index[j] = moves[j] ? read_index(p, p.index + item[2]) : 0;
        at[j][0] = item[0];
        at[j][1] = item[1];
      }
#pragma unroll
      for (int j = 0; j < kItems; j++) at[j][0] += position_of_index(p, index[j]) * p.a_step;
      for (int64_t f = threadIdx.x; f < p.features.n; f += blockDim.x) {
        int64_t feature[2];
        p.features.find(f, feature);
        char* const a = p.a + feature[0];
        char* const b = p.b + feature[1];
        E value[kItems] = {};
#pragma unroll
        for (int j = 0; j < kItems; j++)
          if (moves[j]) value[j] = load<E>(kPut ? b + at[j][1] : a + at[j][0]);
#pragma unroll
        for (int j = 0; j < kItems; j++)
          if (moves[j]) store<E>(kPut ? a + at[j][0] : b + at[j][1], value[j]);
      }
    }
  }
}

// Gets elements of rows of neighbours: a block keeps a row in shared memory, which serves any order
// as fast as another.
template <class E> __global__ void __launch_bounds__(kIndexThreads)
    get_rows(const __grid_constant__ IndexArguments p) {
  constexpr int kAtOnce = 8;
  TT_SHARED_DYNAMIC(E, row);
  const int thread = int(threadIdx.x);
  const int size = int(p.index_size);
  const int n = int(p.items.size[0]);
  const int64_t rows = p.items.n / n;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    int64_t base[3];
    p.items.find(r * n, base);
    const E* const from = reinterpret_cast<const E*>(p.a + base[0]);
#pragma unroll 8
    for (int i = thread; i < size; i += kIndexThreads) row[i] = from[i];
    __syncthreads();
    for (int first = thread; first < n; first += kIndexThreads * kAtOnce) {
      int64_t index[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; j++) {
        const int i = first + j * kIndexThreads;
        index[j] = i < n ? read_index(p, p.index + base[2] + i * p.items.stride[2][0]) : 0;
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; j++) {
        const int i = first + j * kIndexThreads;
        if (i < n)
          store<E>(p.b + base[1] + i * p.items.stride[1][0], row[position_of_index(p, index[j])]);
      }
    }
    __syncthreads();
  }
}

// Writes rows that share no target: last[position]: the last item that it is written by, plus 1.
template <class E> __global__ void __launch_bounds__(kIndexThreads)
    put_rows(const __grid_constant__ IndexArguments p) {
  TT_SHARED_DYNAMIC(int32_t, last);
  const int n = int(p.items.size[0]);
  const int64_t rows = p.items.n / n;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int64_t base[3];
    p.items.find(row * n, base);
    const auto position = [&](int i) {
      return position_of_index(p, read_index(p, p.index + base[2] + i * p.items.stride[2][0]));
    };
    for (int i = int(threadIdx.x); i < int(p.index_size); i += kIndexThreads) last[i] = 0;
    __syncthreads();
#pragma unroll 8
    for (int i = int(threadIdx.x); i < n; i += kIndexThreads) atomicMax(&last[position(i)], i + 1);
    __syncthreads();
#pragma unroll 4
    for (int i = int(threadIdx.x); i < n; i += kIndexThreads) {
      const int64_t at = position(i);
      if (last[at] != i + 1) continue;
      store<E>(p.a + base[0] + at * p.a_step, load<E>(p.b + base[1] + i * p.items.stride[1][0]));
    }
    __syncthreads();
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
    // A key that was not entered is that of an index which has changed since.
    while (slot[s].key != key && slot[s].key != kNoKey) s = (s + 1) & (slots - 1);
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
  constexpr int64_t kShortRun = 1024;
  const bool in_runs = p.items.ndim > 1 && p.items.size[0] >= kShortRun;
  const int64_t n = in_runs ? p.items.size[0] : p.items.n;
  const int64_t runs = in_runs ? p.items.n / n : 0;
  const dim3 block = block_of(p.features.n);
  return with_size(item, [&](auto e) {
    using E = decltype(e);
    const dim3 grid(grid_of(n, block.y * kItemsAtOnce), unsigned(clamp<int64_t>(runs, 1, 65535)));
    return device::launch(index_move<E, kPut>, grid, block, 0, stream, p, last, runs);
  });
}

// Whether get_rows serves: an element of a row is read at least once on average.
bool gets_rows(const IndexPlan& p, const IndexArguments& a, int64_t item) {
  if (a.features.n != 1 || a.items.ndim < 2 || a.items.stride[0][0] != 0) return false;
  const int64_t n = a.items.size[0];
  return p.a_step == item && item < 16 && p.index_size > 0 && p.index_size <= n && n < INT32_MAX &&
         p.index_size * item <= int64_t(device::kAskedShared) && n <= 512 * (a.items.n / n);
}

// Whether put_rows serves: it clears a word for each target of a row, and has a block for a row.
bool fits_shared(const IndexPlan& p, const IndexArguments& a) {
  if (!rows_apart(p, a) || p.index_size * 4 > int64_t(device::kAskedShared)) return false;
  const int64_t n = a.items.size[0];
  return p.index_size / 8 <= n && n <= 512 * (a.items.n / n);
}
int32_t launch_rows(const IndexArguments& p, int64_t item, void* stream) {
  return with_size(item, [&](auto e) {
    return device::launch(put_rows<decltype(e)>, grid_of(p.items.n / p.items.size[0], 1),
                          kIndexThreads, size_t(p.index_size) * 4, stream, p);
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
    if (!gets_rows(p, x, item)) return launch_move<false>(x, item, nullptr, stream);
    return with_size(item, [&](auto e) {
      return device::launch(get_rows<decltype(e)>, grid_of(x.items.n / x.items.size[0], 1),
                            kIndexThreads, size_t(p.index_size * item), stream, x);
    });
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
    if (fits_shared(p, x)) return launch_rows(x, item, stream);
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
  if (!a.collides || fits_shared(index_plan(plan), a)) return 0;
  return size_t(slots_of(a.items.n)) * sizeof(Slot) + size_t(a.items.n);
}

}  // namespace cuda
}  // namespace TT_NS
