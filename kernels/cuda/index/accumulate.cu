// index_accumulate: a[index] += b, in the same order in every run. Items are sorted by key, so that
// those of one element of a are a run of neighbours, in their order:
//
//   keys      (key, item) of each item, then sorted: few by one block, others by radix
//   pieces    thread (piece of the sorted items, feature) adds the runs that are inside its piece
//             to a; sums of runs that cross a border go to parts [piece][before, after][feature]
//   join      thread (piece, feature) adds the parts of the run that begins in its piece and leaves
//             it
#include "kernels/cuda/index/index.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/sort/bitonic.h"
#include "kernels/cuda/sort/radix.h"

namespace TT_NS {
namespace {

struct SumArguments {
  IndexArguments index;
  RadixPair* pairs;
  char* parts;
  int64_t pieces, piece;
};

// Sums of halves are rounded once.
template <class E> struct PartOf { using type = E; };
template <> struct PartOf<F16> { using type = float; };
template <> struct PartOf<BF16> { using type = float; };
template <class E> using Part = typename PartOf<E>::type;

struct Bool {
  uint8_t bits;
};
template <class E> __device__ __forceinline__ Part<E> read(const char* p) {
  const E e = *reinterpret_cast<const E*>(p);
  if constexpr (kIsHalf<E>) return widen(e);
  else return e;
}
template <class E> __device__ __forceinline__ void write(char* p, Part<E> v) {
  if constexpr (__is_same(E, F16)) *reinterpret_cast<E*>(p) = narrow_f16(v);
  else if constexpr (__is_same(E, BF16)) *reinterpret_cast<E*>(p) = narrow_bf16(v);
  else *reinterpret_cast<E*>(p) = v;
}
template <class T> __device__ __forceinline__ T plus(T x, T y) { return T(x + y); }
template <> __device__ __forceinline__ Bool plus(Bool x, Bool y) {
  return {uint8_t(x.bits | y.bits)};
}

__device__ __forceinline__ uint64_t key_of(const IndexArguments& p, int64_t item, int shift) {
  return uint64_t(item_of(p, item).a) >> shift;
}

__global__ void __launch_bounds__(kIndexThreads)
    make_keys(const __grid_constant__ SumArguments p, int shift) {
  for (int64_t i = first_item(); i < p.index.items.n; i += item_step())
    p.pairs[i] = {key_of(p.index, i, shift), i};
}

__global__ void __launch_bounds__(kIndexThreads)
    sort_few(const __grid_constant__ SumArguments p, int n, int shift) {
  TT_SHARED(uint64_t, key, kBitonicMost);
  TT_SHARED(int32_t, at, kBitonicMost);
  const int items = int(p.index.items.n);
  for (int i = int(threadIdx.x); i < n; i += int(blockDim.x)) {
    key[i] = i < items ? key_of(p.index, i, shift) : ~uint64_t(0);
    at[i] = i;
  }
  __syncthreads();
  bitonic_sort(key, at, n);
  for (int i = int(threadIdx.x); i < items; i += int(blockDim.x)) p.pairs[i] = {key[i], at[i]};
}

template <class E> struct Sums {
  using T = Part<E>;
  const SumArguments& p;
  int64_t piece, feature;
  int64_t feature_at[2];
  int64_t begin, end;

  __device__ __forceinline__ Sums(const SumArguments& p_, int64_t i) : p(p_) {
    piece = quotient(i, p.index.features.n);
    feature = i - piece * p.index.features.n;
    p.index.features.find(feature, feature_at);
    begin = piece * p.piece;
    end = begin + p.piece;
    if (end > p.index.items.n) end = p.index.items.n;
  }
  __device__ __forceinline__ uint64_t key(int64_t i) const { return p.pairs[i].key; }
  __device__ __forceinline__ T addend(int64_t i) const {
    int64_t at[3];
    p.index.items.find(p.pairs[i].at, at);
    return read<E>(p.index.b + at[1] + feature_at[1]);
  }
  __device__ __forceinline__ char* target(int64_t i) const {
    return p.index.a + item_of(p.index, p.pairs[i].at).a + feature_at[0];
  }
  __device__ __forceinline__ T* part(int64_t of_piece, int side) const {
    return reinterpret_cast<T*>(p.parts) + (of_piece * 2 + side) * p.index.features.n + feature;
  }
  // Whether a run goes on from i - 1 to i.
  __device__ __forceinline__ bool goes_on(int64_t i) const {
    return i > 0 && i < p.index.items.n && key(i - 1) == key(i);
  }
};

template <class E> __global__ void __launch_bounds__(kIndexThreads)
    add_pieces(const __grid_constant__ SumArguments p) {
  for (int64_t t = first_item(); t < p.pieces * p.index.features.n; t += item_step()) {
    const Sums<E> s(p, t);
    for (int64_t i = s.begin; i < s.end;) {
      const bool before = i == s.begin && s.goes_on(i);
      int64_t last = i + 1;
      while (last < s.end && s.goes_on(last)) last++;
      const bool after = last == s.end && s.goes_on(last);
      const bool inside = !before && !after;
      Part<E> sum = inside ? read<E>(s.target(i)) : s.addend(i);
      for (int64_t k = i + !inside; k < last; k++) sum = plus(sum, s.addend(k));
      if (inside) write<E>(s.target(i), sum);
      else *s.part(s.piece, before ? 0 : 1) = sum;
      i = last;
    }
  }
}

template <class E> __global__ void __launch_bounds__(kIndexThreads)
    join_pieces(const __grid_constant__ SumArguments p) {
  for (int64_t t = first_item(); t < p.pieces * p.index.features.n; t += item_step()) {
    const Sums<E> s(p, t);
    if (!s.goes_on(s.end)) continue;
    // The run that leaves the piece must begin in it.
    if (s.goes_on(s.begin) && s.key(s.begin) == s.key(s.end - 1)) continue;
    char* const target = s.target(s.end - 1);
    Part<E> sum = plus(read<E>(target), *s.part(s.piece, 1));
    for (int64_t q = s.piece + 1;; q++) {
      sum = plus(sum, *s.part(q, 0));
      const int64_t end = (q + 1) * p.piece;
      if (end >= p.index.items.n || s.key(end) != s.key(s.end)) break;
    }
    write<E>(target, sum);
  }
}

// ---- on the host ----

struct SumRoom {
  int64_t pairs, counts, parts, bytes;  // offsets in the workspace
  int64_t piece, pieces;
};

bool is_few(const IndexArguments& a) { return a.items.n <= kBitonicMost; }

SumRoom room_of(const IndexArguments& a) {
  SumRoom r;
  r.piece = a.features.n >= kWarp ? 256 : 32;
  r.pieces = ceil_div(a.items.n, r.piece);
  r.pairs = radix_pairs_bytes(a.items.n);
  r.counts = is_few(a) ? r.pairs : 2 * r.pairs;
  r.parts = r.counts + (is_few(a) ? 0 : radix_counts_bytes(a.items.n));
  r.bytes = r.parts + r.pieces * 2 * a.features.n * 16;
  return r;
}

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

template <class E> int32_t launch_sums(const SumArguments& p, void* stream) {
  const unsigned grid = grid_of(p.pieces * p.index.features.n, kIndexThreads);
  const int32_t status = device::launch(add_pieces<E>, grid, kIndexThreads, 0, stream, p);
  if (status != TT_OK || p.pieces == 1) return status;
  return device::launch(join_pieces<E>, grid, kIndexThreads, 0, stream, p);
}
int32_t launch_dtype(const SumArguments& p, void* stream) {
  switch (p.index.dtype) {
    case TT_BOOL: return launch_sums<Bool>(p, stream);
    case TT_U8:
    case TT_I8: return launch_sums<uint8_t>(p, stream);
    case TT_I16: return launch_sums<uint16_t>(p, stream);
    case TT_I32: return launch_sums<uint32_t>(p, stream);
    case TT_I64: return launch_sums<uint64_t>(p, stream);
    case TT_F16: return launch_sums<F16>(p, stream);
    case TT_BF16: return launch_sums<BF16>(p, stream);
    case TT_F64: return launch_sums<double>(p, stream);
    case TT_C64: return launch_sums<c64>(p, stream);
    case TT_C128: return launch_sums<c128>(p, stream);
    default: return launch_sums<float>(p, stream);
  }
}

}  // namespace

namespace cuda {

int32_t index_accumulate(const void* plan, void* stream, void* workspace) {
  const IndexPlan& p = *static_cast<const IndexPlan*>(plan);
  SumArguments s;
  const int32_t first = split_nest(p, &s.index);
  const SumRoom room = room_of(s.index);
  char* const base = static_cast<char*>(workspace);
  RadixPair* const pairs = reinterpret_cast<RadixPair*>(base);
  RadixPair* const more = reinterpret_cast<RadixPair*>(base + room.pairs);
  int64_t* const counts = reinterpret_cast<int64_t*>(base + room.counts);
  s.parts = base + room.parts;
  s.pieces = room.pieces;
  s.piece = room.piece;
  int shift = 0;
  while ((int64_t(1) << shift) < kItemSize[p.dtype]) shift++;
  return for_outer(p, s.index, first, [&](const IndexArguments& x) {
    s.pairs = pairs;
    RadixPair* other = more;
    const int64_t items = x.items.n;
    int32_t status;
    if (is_few(x)) {
      const int n = next_power(items);
      const unsigned threads = unsigned(min(max(n / 2, int(kWarp)), kIndexThreads));
      status = device::launch(sort_few, 1, threads, 0, stream, s, n, shift);
    } else {
      status = device::launch(make_keys, grid_of(items, kIndexThreads), kIndexThreads, 0, stream, s,
                              shift);
      if (status == TT_OK)
        status = radix_sort(&s.pairs, &other, counts, items, key_bits(p, shift), 0, stream);
    }
    return status == TT_OK ? launch_dtype(s, stream) : status;
  });
}
size_t index_accumulate_workspace(const void* plan) {
  IndexArguments a;
  split_nest(*static_cast<const IndexPlan*>(plan), &a);
  return size_t(room_of(a).bytes);
}

}  // namespace cuda
}  // namespace TT_NS
