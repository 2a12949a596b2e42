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

// Sums of rows that share no target, each of at most kBlockMost items: dimension 0 of the items is
// a row. A block sorts a row's items by target in shared memory and adds the runs as segments.h
// does: threads add those of a piece, the first of them a run that crosses borders.
//   parts     [pieces]: the sum of the run that reaches a piece's begin from before
template <class E> __global__ void __launch_bounds__(kBlockMost / kBlockEach)
    add_rows(const __grid_constant__ IndexArguments p, int bits) {
  constexpr int kPieces = kBlockMost / kBlockEach;
  TT_SHARED_DYNAMIC(unsigned char, room);
  TT_SHARED(E, parts, kPieces);
  const BlockSort<uint32_t> block(room);
  const int thread = int(threadIdx.x);
  const int threads = int(blockDim.x);
  const int n = int(p.items.size[0]);
  const int64_t rows = p.items.n / n;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int64_t base[3];
    p.items.find(row * n, base);
#pragma unroll
    for (int e = 0; e < kBlockEach; e++) {
      const int i = e * threads + thread;
      const char* const index = p.index + base[2] + i * p.items.stride[2][0];
      block.key[i] = i < n ? uint32_t(position_of_index(p, read_index(p, index))) : ~0u;
    }
    block.sort(bits);
    char* const a = p.a + base[0];
    const char* const b = p.b + base[1];
    const auto addend = [&](int i) {
      return *reinterpret_cast<const E*>(b + block.at[i] * p.items.stride[1][0]);
    };
    const auto target = [&](uint32_t key) { return reinterpret_cast<E*>(a + key * p.a_step); };
    const int begin = thread * kBlockEach;
    const int end = begin + kBlockEach < n ? begin + kBlockEach : n;
    E own[kBlockEach] = {};
#pragma unroll
    for (int e = 0; e < kBlockEach; e++)
      if (begin + e < end) own[e] = addend(begin + e);
    // Runs that begin here: those that end here, too, are finished.
    bool crosses = false;  // the last run goes on
    uint32_t last_key = 0;
    E sum = {};
    bool from_before = begin > 0 && begin < n && block.key[begin - 1] == block.key[begin];
#pragma unroll
    for (int e = 0; e < kBlockEach; e++) {
      const int i = begin + e;
      if (i >= end) continue;
      const uint32_t key = block.key[i];
      const bool starts = e == 0 || block.key[i - 1] != key;
      if (starts) {
        if (e > 0) from_before = false;
        sum = from_before ? own[e] : plus(*target(key), own[e]);
      } else {
        sum = plus(sum, own[e]);
      }
      const bool goes_on = i + 1 < n && block.key[i + 1] == key;
      if (from_before && (!goes_on || i + 1 == end)) parts[thread] = sum;
      else if (!goes_on) *target(key) = sum;
      crosses = goes_on && i + 1 == end && !from_before;
      last_key = key;
    }
    __syncthreads();
    if (crosses) {
      for (int q = thread + 1; q * kBlockEach < n && block.key[q * kBlockEach] == last_key; q++)
        sum = plus(sum, parts[q]);
      *target(last_key) = sum;
    }
    __syncthreads();
  }
}

// The key of an item: its place in a, in units that all places are multiples of.
__global__ void __launch_bounds__(kIndexThreads)
    make_keys(const __grid_constant__ IndexArguments p, const SortedItems items, int64_t unit) {
  for (int64_t i = first_item(); i < p.items.n; i += item_step())
    items.put(i, uint64_t(quotient(item_of(p, i).a, unit)));
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
    case TT_F16: return pack ? launch_sums<Pack<F16, 8>>(s) : launch_sums<F16>(s);
    case TT_BF16: return pack ? launch_sums<Pack<BF16, 8>>(s) : launch_sums<BF16>(s);
    case TT_F64: return launch_sums<double>(s);
    case TT_C64: return launch_sums<c64>(s);
    case TT_C128: return launch_sums<c128>(s);
    default: return pack ? launch_sums<Pack<float, 4>>(s) : launch_sums<float>(s);
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

// Packs of 16 bytes are added as one, if their elements are floats of at most 32 bits. Returns the
// bytes of what is added as one.
int64_t pack_elements(IndexPlan* p) {
  const bool packs = p->dtype == TT_F32 || p->dtype == TT_F16 || p->dtype == TT_BF16;
  IndexPlan packed = *p;
  if (!packs || widen_elements(&packed) < 16) return kItemSize[p->dtype];
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
    if (status == TT_OK) status = room.sort(stream);
    return status == TT_OK ? launch(SumsToLaunch{x, room.items(), item, keys.unit, parts, stream})
                           : status;
  });
}

bool serves_rows(const IndexPlan& p, const IndexArguments& a) {
  const bool adds = p.dtype == TT_F32 || p.dtype == TT_F16 || p.dtype == TT_BF16;
  return adds && rows_apart(p, a) && a.items.size[0] >= 16 && a.items.size[0] <= kBlockMost;
}
template <class E> int32_t launch_rows(const IndexArguments& a, void* stream) {
  const int64_t n = a.items.size[0];
  return device::launch(add_rows<E>, grid_of(a.items.n / n, 1), block_sort_threads(n),
                        block_sort_bytes<uint32_t>(n), stream, a,
                        max(bits_of(uint64_t(a.index_size - 1)), 1));
}

}  // namespace

namespace cuda {

int32_t index_accumulate(const void* plan, void* stream, void* workspace) {
  IndexPlan p = *static_cast<const IndexPlan*>(plan);
  IndexArguments a;
  const int32_t first = split_nest(p, &a);
  if (serves_rows(p, a)) {
    return for_outer(p, a, first, [&](const IndexArguments& x) {
      if (p.dtype == TT_F16) return launch_rows<F16>(x, stream);
      if (p.dtype == TT_BF16) return launch_rows<BF16>(x, stream);
      return launch_rows<float>(x, stream);
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
