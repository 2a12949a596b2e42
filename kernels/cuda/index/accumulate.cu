// index_accumulate: a[index] += b; index_combine: a[index] = their product, maximum or minimum.
// Items are sorted by their place in a; segments.h folds each run.
#include "kernels/cuda/index/index.h"
#include "kernels/cuda/index/segments.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

struct Bool {
  uint8_t bits;
};
template <> __device__ __forceinline__ Bool plus(Bool x, Bool y) {
  return {uint8_t(x.bits | y.bits)};
}

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
__device__ __forceinline__ Bool product(Bool x, Bool y) { return {uint8_t(x.bits & y.bits)}; }
__device__ __forceinline__ F16 product(F16 x, F16 y) { return narrow_f16(widen(x) * widen(y)); }
__device__ __forceinline__ BF16 product(BF16 x, BF16 y) { return narrow_bf16(widen(x) * widen(y)); }
__device__ __forceinline__ uint16_t product(uint16_t x, uint16_t y) {
  return uint16_t(uint32_t(x) * y);
}
template <class T> __device__ __forceinline__ T product(T x, T y) { return T(x * y); }

__device__ __forceinline__ uint8_t wide_of(Bool x) { return x.bits; }
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

template <class E> struct IndexSums {
  using T = E;
  struct Feature {
    int64_t at[2];
  };
  IndexArguments index;
  const RadixPair* pairs;
  int64_t n, features;

  __device__ __forceinline__ Feature feature(int64_t f) const {
    Feature x;
    index.features.find(f, x.at);
    return x;
  }
  static __device__ __forceinline__ T read(const char* p) { return *reinterpret_cast<const E*>(p); }
  __device__ __forceinline__ T addend(int64_t i, const Feature& f) const {
    int64_t at[3];
    index.items.find(pairs[i].at, at);
    return read(index.b + at[1] + f.at[1]);
  }
  __device__ __forceinline__ char* target(int64_t i, const Feature& f) const {
    return index.a + item_of(index, pairs[i].at).a + f.at[0];
  }
  __device__ __forceinline__ T before(int64_t i, const Feature& f) const {
    return read(target(i, f));
  }
  __device__ __forceinline__ void finish(int64_t i, const Feature& f, T sum) const {
    *reinterpret_cast<E*>(target(i, f)) = sum;
  }
};

// The key of an item: its place in a, in elements of 1 << shift bytes.
__global__ void __launch_bounds__(kIndexThreads)
    make_keys(const __grid_constant__ IndexArguments p, RadixPair* pairs, int shift) {
  for (int64_t i = first_item(); i < p.items.n; i += item_step())
    pairs[i] = {uint64_t(item_of(p, i).a) >> shift, i};
}

// ---- on the host ----

// Bits of the largest key.
int key_bits(const IndexPlan& p, int shift) {
  int64_t most = (p.index_size - 1) * p.a_step;
  bool known = p.index_size > 0 && p.a_step >= 0;
  for (int32_t d = 0; d < p.ndim; d++) {
    known &= p.a_stride[d] >= 0;
    most += (p.size[d] - 1) * p.a_stride[d];
  }
  return known ? bits_of(uint64_t(most) >> shift) : 64 - shift;
}

template <class E>
int32_t launch_sums(const IndexArguments& a, const PairRoom& room, void* parts, void* stream) {
  return launch_segments(IndexSums<E>{a, room.pairs, a.items.n, a.features.n}, parts, stream);
}
int32_t launch_dtype(const IndexArguments& a, const PairRoom& room, void* parts, void* stream) {
  switch (a.dtype) {
    case TT_BOOL: return launch_sums<Bool>(a, room, parts, stream);
    case TT_U8:
    case TT_I8: return launch_sums<uint8_t>(a, room, parts, stream);
    case TT_U16:
    case TT_I16: return launch_sums<uint16_t>(a, room, parts, stream);
    case TT_U32:
    case TT_I32: return launch_sums<uint32_t>(a, room, parts, stream);
    case TT_U64:
    case TT_I64: return launch_sums<uint64_t>(a, room, parts, stream);
    case TT_F16: return launch_sums<F16>(a, room, parts, stream);
    case TT_BF16: return launch_sums<BF16>(a, room, parts, stream);
    case TT_F64: return launch_sums<double>(a, room, parts, stream);
    case TT_C64: return launch_sums<c64>(a, room, parts, stream);
    case TT_C128: return launch_sums<c128>(a, room, parts, stream);
    default: return launch_sums<float>(a, room, parts, stream);
  }
}

template <bool kMax>
int32_t launch_extremes(const IndexArguments& a, const PairRoom& room, void* parts, void* stream) {
  switch (a.dtype) {
    case TT_BOOL: return launch_sums<Extreme<Bool, kMax>>(a, room, parts, stream);
    case TT_U8: return launch_sums<Extreme<uint8_t, kMax>>(a, room, parts, stream);
    case TT_I8: return launch_sums<Extreme<int8_t, kMax>>(a, room, parts, stream);
    case TT_I16: return launch_sums<Extreme<int16_t, kMax>>(a, room, parts, stream);
    case TT_I32: return launch_sums<Extreme<int32_t, kMax>>(a, room, parts, stream);
    case TT_I64: return launch_sums<Extreme<int64_t, kMax>>(a, room, parts, stream);
    case TT_F16: return launch_sums<Extreme<F16, kMax>>(a, room, parts, stream);
    case TT_BF16: return launch_sums<Extreme<BF16, kMax>>(a, room, parts, stream);
    case TT_F64: return launch_sums<Extreme<double, kMax>>(a, room, parts, stream);
    default: return launch_sums<Extreme<float, kMax>>(a, room, parts, stream);
  }
}
int32_t launch_products(const IndexArguments& a, const PairRoom& room, void* parts, void* stream) {
  switch (a.dtype) {
    case TT_BOOL: return launch_sums<Times<Bool>>(a, room, parts, stream);
    case TT_U8:
    case TT_I8: return launch_sums<Times<uint8_t>>(a, room, parts, stream);
    case TT_I16: return launch_sums<Times<uint16_t>>(a, room, parts, stream);
    case TT_I32: return launch_sums<Times<uint32_t>>(a, room, parts, stream);
    case TT_I64: return launch_sums<Times<uint64_t>>(a, room, parts, stream);
    case TT_F16: return launch_sums<Times<F16>>(a, room, parts, stream);
    case TT_BF16: return launch_sums<Times<BF16>>(a, room, parts, stream);
    case TT_F64: return launch_sums<Times<double>>(a, room, parts, stream);
    case TT_C64: return launch_sums<Times<c64>>(a, room, parts, stream);
    case TT_C128: return launch_sums<Times<c128>>(a, room, parts, stream);
    default: return launch_sums<Times<float>>(a, room, parts, stream);
  }
}

// Calls launch(arguments, sorted items, parts, stream) for each part of the nest.
template <class F>
int32_t run_segments(const IndexPlan& p, void* stream, void* workspace, const F& launch) {
  IndexArguments a;
  const int32_t first = split_nest(p, &a);
  const int64_t items = a.items.n;
  char* const parts = static_cast<char*>(workspace) + PairRoom::bytes(items);
  int shift = 0;
  while ((int64_t(1) << shift) < kItemSize[p.dtype]) shift++;
  return for_outer(p, a, first, [&](const IndexArguments& x) {
    PairRoom room(static_cast<char*>(workspace), items);
    int32_t status = device::launch(make_keys, grid_of(items, kIndexThreads), kIndexThreads, 0,
                                    stream, x, room.pairs, shift);
    if (status == TT_OK) status = room.sort(items, key_bits(p, shift), stream);
    return status == TT_OK ? launch(x, room, parts, stream) : status;
  });
}

}  // namespace

namespace cuda {

int32_t index_accumulate(const void* plan, void* stream, void* workspace) {
  return run_segments(*static_cast<const IndexPlan*>(plan), stream, workspace, launch_dtype);
}
size_t index_accumulate_workspace(const void* plan) {
  IndexArguments a;
  split_nest(*static_cast<const IndexPlan*>(plan), &a);
  return size_t(PairRoom::bytes(a.items.n) + segment_bytes(a.items.n, a.features.n));
}

int32_t index_combine(const void* plan, void* stream, void* workspace) {
  const IndexPlan& p = *static_cast<const IndexPlan*>(plan);
  if (p.combine == kCombineProduct) return run_segments(p, stream, workspace, launch_products);
  if (p.combine == kCombineMax) return run_segments(p, stream, workspace, launch_extremes<true>);
  return run_segments(p, stream, workspace, launch_extremes<false>);
}
size_t index_combine_workspace(const void* plan) { return index_accumulate_workspace(plan); }

}  // namespace cuda
}  // namespace TT_NS
