// index_accumulate: a[index] += b; index_combine: a[index] = their product, maximum or minimum.
// Items are sorted by their place in a; segments.h folds each run.
#include "kernels/cuda/index/index.h"
#include "kernels/cuda/index/segments.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

// Each sum of halves is rounded, as on the CPU.
template <> __device__ __forceinline__ F16 plus(F16 x, F16 y) {
  return narrow_f16(widen(x) + widen(y));
}
template <> __device__ __forceinline__ BF16 plus(BF16 x, BF16 y) {
  return narrow_bf16(widen(x) + widen(y));
}

// An element whose "sums" are products or extremes, as kernels/cpu/index/index.cpp has them.
template <class E> struct Times { E v; };
template <class E, bool kMax> struct Extreme { E v; };
__device__ __forceinline__ F16 product(F16 x, F16 y) { return narrow_f16(widen(x) * widen(y)); }
__device__ __forceinline__ BF16 product(BF16 x, BF16 y) { return narrow_bf16(widen(x) * widen(y)); }
__device__ __forceinline__ uint16_t product(uint16_t x, uint16_t y) {
  return uint16_t(uint32_t(x) * y);
}
template <class T> __device__ __forceinline__ T product(T x, T y) { return T(x * y); }

__device__ __forceinline__ float wide_of(F16 x) { return widen(x); }
__device__ __forceinline__ float wide_of(BF16 x) { return widen(x); }
template <class T> __device__ __forceinline__ T wide_of(T x) { return x; }

template <class E> __device__ __forceinline__ Times<E> plus(Times<E> x, Times<E> y) {
  return {product(x.v, y.v)};
}
template <class E, bool kMax>
__device__ __forceinline__ Extreme<E, kMax> plus(Extreme<E, kMax> x, Extreme<E, kMax> y) {
  const auto a = wide_of(x.v);
  const auto b = wide_of(y.v);
  const bool second = kMax ? b > a : b < a;
  return second || b != b ? y : x;
}

// Neighbours that have one index.
template <class E, int kElements> struct alignas(16) Pack { E v[kElements]; };
template <class E, int kElements>
__device__ __forceinline__ Pack<E, kElements> plus(Pack<E, kElements> x, Pack<E, kElements> y) {
#pragma unroll
  for (int i = 0; i < kElements; i++) x.v[i] = plus(x.v[i], y.v[i]);
  return x;
}

// Reading several addends at once pays where sums are long: gradients of floats.
template <class E> constexpr int kAddedAtOnce = 1;
template <> constexpr int kAddedAtOnce<float> = 8;
template <class E, int kElements> constexpr int kAddedAtOnce<Pack<E, kElements>> = 4;

template <class E> struct IndexSums {
  using T = E;
  static constexpr int kAtOnce = kAddedAtOnce<E>;
  struct Feature {
    int64_t at[2];
  };
  IndexArguments index;
  SortedItems items;
  int64_t n, features, unit;

  __device__ __forceinline__ Feature feature(int64_t f) const {
    Feature x;
    index.features.find(f, x.at);
    return x;
  }
  __device__ __forceinline__ T addend(int64_t i, const Feature& f) const {
    int64_t at[3];
    index.items.find(items.at(i), at);
    return *reinterpret_cast<const E*>(index.b + at[1] + f.at[1]);
  }
  __device__ __forceinline__ T* target(uint64_t key, const Feature& f) const {
    return reinterpret_cast<E*>(index.a + int64_t(key) * unit + f.at[0]);
  }
};

// Packs of neighbours that have one index, of items and features in one dimension each.
template <class E> struct PackSums {
  using T = E;
  using Feature = int64_t;  // bytes
  static constexpr int kAtOnce = kAddedAtOnce<E>;
  char* a;
  const char* b;
  NarrowItems items;
  int64_t n, features, unit, step;  // bytes of a key, from item to item of b

  __device__ __forceinline__ Feature feature(int64_t f) const { return f * int64_t(sizeof(E)); }
  __device__ __forceinline__ T addend(int64_t i, Feature f) const {
    return *reinterpret_cast<const E*>(b + items.at(i) * step + f);
  }
  __device__ __forceinline__ T* target(uint32_t key, Feature f) const {
    return reinterpret_cast<E*>(a + key * unit + f);
  }
};

// Sums of rows that share no target: a warp keeps the targets of a row in shared memory and takes
// the row's items in their order, 32 at once. Lanes of one target, which a word beside it tells,
// take turns.
constexpr int kRowRounds = 8;  // of 32 items that are read at once

// What a lane reads of kRowRounds * 32 items, all of it before it looks at one.
template <class E> struct RowItems {
  int64_t index[kRowRounds];
  E value[kRowRounds];

  __device__ __forceinline__ void read(const IndexArguments& p, const int64_t (&base)[3], int first,
                                       int n) {
#pragma unroll
    for (int j = 0; j < kRowRounds; j++) {
      const int i = first + j * kWarp < n ? first + j * kWarp : n - 1;
      index[j] = read_index(p, p.index + base[2] + i * p.items.stride[2][0]);
    }
#pragma unroll
    for (int j = 0; j < kRowRounds; j++) {
      const int i = first + j * kWarp < n ? first + j * kWarp : n - 1;
      value[j] = *reinterpret_cast<const E*>(p.b + base[1] + i * p.items.stride[1][0]);
    }
  }
};

// The number of lower lanes with this lane's position; bits: of a position.
__device__ __forceinline__ int lower_lanes_at(int position, int bits) {
  uint32_t same = __ballot_sync(kAllLanes, position >= 0);
  for (int bit = 0; bit < bits; bit++) {
    const bool set = position >> bit & 1;
    const uint32_t votes = __ballot_sync(kAllLanes, set);
    same &= set ? votes : ~votes;
  }
  return __popc(same & ((1u << (threadIdx.x % kWarp)) - 1));
}

template <class E> __global__ void __launch_bounds__(kWarp)
    add_rows(const __grid_constant__ IndexArguments p, int bits) {
  TT_SHARED_DYNAMIC(int, owner);  // the last lane at a position, then sums
  const int lane = int(threadIdx.x);
  const int size = int(p.index_size);
  E* const sums = reinterpret_cast<E*>(owner + (size + 1) / 2 * 2);
  const int n = int(p.items.size[0]);
  const int64_t rows = p.items.n / n;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    int64_t base[3];
    p.items.find(r * n, base);
    E* const a = reinterpret_cast<E*>(p.a + base[0]);
    RowItems<E> items;
    items.read(p, base, lane, n);
#pragma unroll 8
    for (int i = lane; i < size; i += kWarp) sums[i] = a[i];
    __syncwarp();
    for (int first = 0; first < n; first += kRowRounds * kWarp) {
      RowItems<E> next;
      next.read(p, base, first + kRowRounds * kWarp + lane, n);
#pragma unroll
      for (int j = 0; j < kRowRounds; j++) {
        const bool present = first + j * kWarp + lane < n;
        const int at = present ? int(position_of_index(p, items.index[j])) : -1;
        const E value = items.value[j];
        if (at >= 0) atomicExch(&owner[at], lane);
        __syncwarp();
        const bool clashes = at >= 0 && owner[at] != lane;
        if (!__any_sync(kAllLanes, clashes)) {
          if (at >= 0) sums[at] = plus(sums[at], value);
        } else {
          const int turn = lower_lanes_at(at, bits);
          for (int t = 0; __any_sync(kAllLanes, at >= 0 && turn >= t); t++) {
            if (at >= 0 && turn == t) sums[at] = plus(sums[at], value);
            __syncwarp();
          }
        }
        __syncwarp();
      }
      items = next;
    }
#pragma unroll 8
    for (int i = lane; i < size; i += kWarp) a[i] = sums[i];
    __syncwarp();
  }
}

// The key of an item: its place in a, in units that all places are multiples of.
__global__ void __launch_bounds__(kIndexThreads)
    make_keys(const __grid_constant__ IndexArguments p, const SortedItems items, int64_t unit) {
  for (int64_t i = first_item(); i < p.items.n; i += item_step()) {
    items.put(i, uint64_t(quotient(item_of(p, i).a, unit)));
    if (!p.collides) items.put_place(i, i);
  }
}

// ---- on the host ----

struct KeyRange {
  int64_t unit;
  int bits;  // of the largest key
};
KeyRange keys_of(const IndexPlan& p) {
  int64_t unit = p.index_size > 0 ? p.a_step : 1;
  int64_t most = (p.index_size - 1) * p.a_step;
  bool known = p.index_size > 0 && p.a_step > 0;
  for (int32_t d = 0; d < p.ndim; d++) {
    if (p.index_stride[d] == 0 && p.a_stride[d] != 0) continue;  // a feature
    known &= p.a_stride[d] >= 0;
    most += (p.size[d] - 1) * p.a_stride[d];
    for (int64_t rest = p.a_stride[d]; known && rest;) {
      const int64_t next = unit % rest;
      unit = rest;
      rest = next;
    }
  }
  if (!known) return {1, 64};
  return {unit, bits_of(uint64_t(most / unit))};
}

// What a launch adds: sorted items of elements of `item` bytes.
struct SumsToLaunch {
  const IndexArguments& index;
  SortedItems items;
  int64_t item, unit;
  void *parts, *stream;
};
template <class E> int32_t launch_sums(const SumsToLaunch& s) {
  const IndexArguments& a = s.index;
  return launch_segments(IndexSums<E>{a, s.items, a.items.n, a.features.n, s.unit}, s.parts,
                         s.stream);
}
template <class E> int32_t launch_packs(const SumsToLaunch& s) {
  const IndexArguments& x = s.index;
  const PackSums<E> sums = {x.a,          x.b,    NarrowItems(s.items), x.items.n,
                            x.features.n, s.unit, x.items.stride[1][0]};
  return launch_segments(sums, s.parts, s.stream);
}
int32_t launch_dtype(const SumsToLaunch& s) {
  const bool pack = s.item > kItemSize[s.index.dtype];
  switch (s.index.dtype) {
    case TT_BOOL: return launch_sums<Extreme<uint8_t, true>>(s);  // "or"
    case TT_U8:
    case TT_I8: return launch_sums<uint8_t>(s);
    case TT_U16:
    case TT_I16: return launch_sums<uint16_t>(s);
    case TT_U32:
    case TT_I32: return launch_sums<uint32_t>(s);
    case TT_U64:
    case TT_I64: return launch_sums<uint64_t>(s);
    case TT_F16: return pack ? launch_packs<Pack<F16, 8>>(s) : launch_sums<F16>(s);
    case TT_BF16: return pack ? launch_packs<Pack<BF16, 8>>(s) : launch_sums<BF16>(s);
    case TT_F64: return launch_sums<double>(s);
    case TT_C64: return launch_sums<c64>(s);
    case TT_C128: return launch_sums<c128>(s);
    default: return pack ? launch_packs<Pack<float, 4>>(s) : launch_sums<float>(s);
  }
}

template <bool kMax> int32_t launch_extremes(const SumsToLaunch& s) {
  switch (s.index.dtype) {
    case TT_BOOL:
    case TT_U8: return launch_sums<Extreme<uint8_t, kMax>>(s);
    case TT_I8: return launch_sums<Extreme<int8_t, kMax>>(s);
    case TT_I16: return launch_sums<Extreme<int16_t, kMax>>(s);
    case TT_I32: return launch_sums<Extreme<int32_t, kMax>>(s);
    case TT_I64: return launch_sums<Extreme<int64_t, kMax>>(s);
    case TT_F16: return launch_sums<Extreme<F16, kMax>>(s);
    case TT_BF16: return launch_sums<Extreme<BF16, kMax>>(s);
    case TT_F64: return launch_sums<Extreme<double, kMax>>(s);
    default: return launch_sums<Extreme<float, kMax>>(s);
  }
}
int32_t launch_products(const SumsToLaunch& s) {
  switch (s.index.dtype) {
    case TT_BOOL:
    case TT_U8:
    case TT_I8: return launch_sums<Times<uint8_t>>(s);
    case TT_I16: return launch_sums<Times<uint16_t>>(s);
    case TT_I32: return launch_sums<Times<uint32_t>>(s);
    case TT_I64: return launch_sums<Times<uint64_t>>(s);
    case TT_F16: return launch_sums<Times<F16>>(s);
    case TT_BF16: return launch_sums<Times<BF16>>(s);
    case TT_F64: return launch_sums<Times<double>>(s);
    case TT_C64: return launch_sums<Times<c64>>(s);
    case TT_C128: return launch_sums<Times<c128>>(s);
    default: return launch_sums<Times<float>>(s);
  }
}

// Packs of 16 bytes are added as one, if their elements are floats of at most 32 bits and PackSums
// serves. Returns the bytes of what is added as one.
int64_t pack_elements(IndexPlan* p) {
  const bool packs = p->dtype == TT_F32 || p->dtype == TT_F16 || p->dtype == TT_BF16;
  const KeyRange keys = keys_of(*p);
  IndexPlan packed = *p;
  if (!packs || keys.bits > 32 || widen_elements(&packed) < 16) return kItemSize[p->dtype];
  IndexArguments a;
  const int32_t covered = split_nest(packed, &a);
  const bool flat = a.items.ndim <= 1 && a.features.ndim <= 1 && covered == packed.ndim;
  if (!flat || a.items.n > INT32_MAX) return kItemSize[p->dtype];
  *p = packed;
  return 16;
}

// Calls launch(what is to be added) for each part of the nest.
template <class F> int32_t run_segments(const IndexPlan& p, int64_t item, void* stream,
                                        void* workspace, const F& launch) {
  IndexArguments a;
  const int32_t first = split_nest(p, &a);
  const int64_t items = a.items.n;
  const KeyRange keys = keys_of(p);
  char* const parts = static_cast<char*>(workspace) + PairRoom::bytes(items, keys.bits);
  return for_outer(p, a, first, [&](const IndexArguments& x) {
    PairRoom room(static_cast<char*>(workspace), items, keys.bits);
    int32_t status = device::launch(make_keys, grid_of(items, kIndexThreads), kIndexThreads, 0,
                                    stream, x, room.items(), keys.unit);
    if (status == TT_OK && x.collides) status = room.sort(stream);
    return status == TT_OK ? launch(SumsToLaunch{x, room.items(), item, keys.unit, parts, stream})
                           : status;
  });
}

// The bytes of a row for add_rows; 0: it does not serve, as where rows are few or targets many.
int64_t row_bytes(const IndexPlan& p, const IndexArguments& a) {
  const int64_t item = kItemSize[p.dtype];
  const bool floats = p.dtype >= TT_F16 && p.dtype <= TT_F64;
  if (!floats || !rows_apart(p, a) || p.a_step != item) return 0;
  const int64_t n = a.items.size[0];
  const int64_t bytes = (p.index_size + 1) / 2 * 8 + p.index_size * item;
  const bool serves = bytes <= int64_t(device::kAskedShared) && p.index_size <= 4 * n;
  return serves && n <= 512 * (a.items.n / n) ? bytes : 0;
}
template <class E> int32_t launch_rows(const IndexArguments& a, int64_t bytes, void* stream) {
  const int64_t rows = a.items.n / a.items.size[0];
  return device::launch(add_rows<E>, grid_of(rows, 1), kWarp, size_t(bytes), stream, a,
                        bits_of(uint64_t(a.index_size - 1)));
}

}  // namespace

namespace cuda {

int32_t index_accumulate(const void* plan, void* stream, void* workspace) {
  IndexPlan p = *static_cast<const IndexPlan*>(plan);
  IndexArguments a;
  const int32_t first = split_nest(p, &a);
  if (const int64_t bytes = row_bytes(p, a)) {
    return for_outer(p, a, first, [&](const IndexArguments& x) {
      switch (p.dtype) {
        case TT_F16: return launch_rows<F16>(x, bytes, stream);
        case TT_BF16: return launch_rows<BF16>(x, bytes, stream);
        case TT_F64: return launch_rows<double>(x, bytes, stream);
        default: return launch_rows<float>(x, bytes, stream);
      }
    });
  }
  const int64_t item = pack_elements(&p);
  return run_segments(p, item, stream, workspace, launch_dtype);
}
size_t index_accumulate_workspace(const void* plan) {
  const IndexPlan& p = *static_cast<const IndexPlan*>(plan);
  IndexArguments a;
  split_nest(p, &a);
  return size_t(PairRoom::bytes(a.items.n, keys_of(p).bits) +
                segment_bytes(a.items.n, a.features.n));
}

int32_t index_combine(const void* plan, void* stream, void* workspace) {
  const IndexPlan& p = *static_cast<const IndexPlan*>(plan);
  const int64_t item = kItemSize[p.dtype];
  if (p.combine == kCombineProduct)
    return run_segments(p, item, stream, workspace, launch_products);
  if (p.combine == kCombineMax)
    return run_segments(p, item, stream, workspace, launch_extremes<true>);
  return run_segments(p, item, stream, workspace, launch_extremes<false>);
}
size_t index_combine_workspace(const void* plan) { return index_accumulate_workspace(plan); }

}  // namespace cuda
}  // namespace TT_NS
