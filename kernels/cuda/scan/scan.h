// Cumulative operators along dim of [outer][dim][inner]. Rows are cut into chunks, by the shape
// alone: a first kernel combines the elements of each chunk, a second one the chunks before each
// chunk, a third one computes the results. A single chunk needs the third only, and so do many
// rows, whose blocks take one chunk after the other.
//
//   rows      inner is 1: a block for each chunk of kScanChunk elements, or for each row,
//             kScanItems neighbouring ones a thread
//   columns   else: a thread for each chunk of a column
//
// A scan S has
//   V: stored type; P: partial, of whole words; R: stored type of the result
//   P empty(), P of(V, int64_t i), P joined(P before, P after), R result(P)
#pragma once

#include "kernels/cuda/row.h"

namespace TT_NS {
namespace {

constexpr int kScanThreads = 256;
constexpr int kScanItems = 8;
constexpr int64_t kScanChunk = kScanThreads * kScanItems;
constexpr int64_t kManyRows = 512;  // enough blocks for a device

struct ScanArguments {
  int64_t outer, dim, inner;
  int64_t chunk, n_chunks;
  bool whole_rows;  // a block takes all chunks of a row
  bool packs;       // rows begin at multiples of 16 bytes
  const char* in;
  char* out;
  char* parts;  // [outer][n_chunks][inner] partials
};

// The combination of the values of the threads before this one, in their order; *total: that of
// all threads.
template <class S> __device__ __forceinline__ typename S::P before_thread(typename S::P value,
                                                                          typename S::P* shared,
                                                                          typename S::P* total) {
  using P = typename S::P;
  const int lane = int(threadIdx.x) % kWarp;
  const int warp = int(threadIdx.x) / kWarp;
  for (int delta = 1; delta < kWarp; delta *= 2) {
    const P lower = shuffle_from(value, lane >= delta ? lane - delta : lane);
    if (lane >= delta) value = S::joined(lower, value);
  }
  P before = shuffle_from(value, lane > 0 ? lane - 1 : 0);
  if (lane == 0) before = S::empty();
  if (lane == kWarp - 1) shared[warp] = value;
  __syncthreads();
  P warps = S::empty();
  for (int w = 0; w < warp; w++) warps = S::joined(warps, shared[w]);
  P all = warps;
  for (int w = warp; w < kScanThreads / kWarp; w++) all = S::joined(all, shared[w]);
  *total = all;
  __syncthreads();
  return S::joined(warps, before);
}

// ---- rows ----

// kScanItems neighbouring elements of a row, of which those from `to` on are missing.
template <class T> struct ScanItems {
  static constexpr int kN = kPackOf<T> < kScanItems ? kPackOf<T> : kScanItems;
  T v[kScanItems];

  __device__ __forceinline__ void load(const T* row, int64_t from, int64_t to, bool packs) {
    if (packs && from + kScanItems <= to) {
#pragma unroll
      for (int k = 0; k < kScanItems; k += kN) {
        const auto pack = *reinterpret_cast<const Pack<T, kN>*>(row + from + k);
#pragma unroll
        for (int j = 0; j < kN; j++) v[k + j] = pack.v[j];
      }
      return;
    }
#pragma unroll
    for (int k = 0; k < kScanItems; k++)
      if (from + k < to) v[k] = row[from + k];
  }
  __device__ __forceinline__ void store(T* row, int64_t from, int64_t to, bool packs) const {
    if (packs && from + kScanItems <= to) {
#pragma unroll
      for (int k = 0; k < kScanItems; k += kN) {
        Pack<T, kN> pack;
#pragma unroll
        for (int j = 0; j < kN; j++) pack.v[j] = v[k + j];
        *reinterpret_cast<Pack<T, kN>*>(row + from + k) = pack;
      }
      return;
    }
#pragma unroll
    for (int k = 0; k < kScanItems; k++)
      if (from + k < to) row[from + k] = v[k];
  }
};

// kResults: the results; else the total of each chunk.
template <class S, bool kResults> __global__ void __launch_bounds__(kScanThreads)
    scan_rows(const __grid_constant__ ScanArguments a) {
  using P = typename S::P;
  TT_SHARED(P, shared, kScanThreads / kWarp);
  const int64_t chunks = kResults && a.whole_rows ? a.n_chunks : 1;
  const int64_t units = a.n_chunks / chunks;  // of a row
  for (int64_t u = blockIdx.x; u < a.outer * units; u += gridDim.x) {
    const int64_t row = u / units;
    const auto* const in = reinterpret_cast<const typename S::V*>(a.in) + row * a.dim;
    auto* const out = reinterpret_cast<typename S::R*>(a.out) + row * a.dim;
    P carry = S::empty();
    if (kResults && units > 1) carry = reinterpret_cast<const P*>(a.parts)[u];
    const int64_t first = (u - row * units) * kScanChunk;
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
      const int64_t from = first + chunk * kScanChunk + int64_t(threadIdx.x) * kScanItems;
      ScanItems<typename S::V> items;
      items.load(in, from, a.dim, a.packs);
      P own = S::empty();
#pragma unroll
      for (int k = 0; k < kScanItems; k++)
        if (from + k < a.dim) own = S::joined(own, S::of(items.v[k], from + k));
      P total;
      P part = S::joined(carry, before_thread<S>(own, shared, &total));
      if constexpr (!kResults) {
        if (threadIdx.x == 0) reinterpret_cast<P*>(a.parts)[u] = total;
      } else {
        ScanItems<typename S::R> results;
#pragma unroll
        for (int k = 0; k < kScanItems; k++) {
          if (from + k >= a.dim) break;
          part = S::joined(part, S::of(items.v[k], from + k));
          results.v[k] = S::result(part);
        }
        results.store(out, from, a.dim, a.packs);
        carry = S::joined(carry, total);
      }
    }
  }
}
// Replaces the partials of a row by those before each chunk; a block for each row.
template <class S> __global__ void __launch_bounds__(kScanThreads)
    scan_chunks(const __grid_constant__ ScanArguments a) {
  using P = typename S::P;
  TT_SHARED(P, shared, kScanThreads / kWarp);
  for (int64_t row = blockIdx.x; row < a.outer; row += gridDim.x) {
    P* const parts = reinterpret_cast<P*>(a.parts) + row * a.n_chunks;
    P carry = S::empty();
    for (int64_t first = 0; first < a.n_chunks; first += kScanThreads) {
      const int64_t i = first + threadIdx.x;
      P total;
      const P value = i < a.n_chunks ? parts[i] : S::empty();
      const P before = before_thread<S>(value, shared, &total);
      if (i < a.n_chunks) parts[i] = S::joined(carry, before);
      carry = S::joined(carry, total);
    }
  }
}

// ---- columns ----

enum ScanStep { kChunkTotals, kChunkStarts, kScanResults };

// A thread for each (outer, chunk, inner); of kChunkStarts for each (outer, inner).
template <class S, ScanStep kStep> __global__ void __launch_bounds__(kScanThreads)
    scan_columns(const __grid_constant__ ScanArguments a) {
  using P = typename S::P;
  const int64_t chunks = kStep == kChunkStarts ? 1 : a.n_chunks;
  const int64_t u = int64_t(blockIdx.x) * kScanThreads + threadIdx.x;
  if (u >= a.outer * chunks * a.inner) return;
  const int64_t o = u / (chunks * a.inner);
  const int64_t i = u % a.inner;
  P* const parts = reinterpret_cast<P*>(a.parts);
  P part = S::empty();
  if constexpr (kStep == kChunkStarts) {
    for (int64_t c = 0; c < a.n_chunks; c++) {
      P* const at = parts + (o * a.n_chunks + c) * a.inner + i;
      const P own = *at;
      *at = part;
      part = S::joined(part, own);
    }
    return;
  }
  const int64_t from = u / a.inner % chunks * a.chunk;
  const int64_t to = from + a.chunk < a.dim ? from + a.chunk : a.dim;
  const auto* in = reinterpret_cast<const typename S::V*>(a.in);
  if (kStep == kScanResults && chunks > 1) part = parts[u];
  for (int64_t k = from; k < to; k++) {
    const int64_t at = (o * a.dim + k) * a.inner + i;
    part = S::joined(part, S::of(in[at], k));
    if constexpr (kStep == kScanResults)
      reinterpret_cast<typename S::R*>(a.out)[at] = S::result(part);
  }
  if constexpr (kStep == kChunkTotals) parts[u] = part;
}

// ---- on the host ----

inline ScanArguments scan_arguments(int64_t outer, int64_t dim, int64_t inner) {
  ScanArguments a = {};
  a.outer = outer;
  a.dim = dim;
  a.inner = inner;
  a.chunk = kScanChunk;
  if (inner > 1) {
    const int64_t most = min(int64_t(1 << 16) / max<int64_t>(outer * inner, 1), dim / 32);
    a.chunk = ceil_div(max<int64_t>(dim, 1), max<int64_t>(most, 1));
  }
  a.n_chunks = max<int64_t>(ceil_div(dim, a.chunk), 1);
  a.whole_rows = inner == 1 && (a.n_chunks == 1 || outer >= kManyRows);
  return a;
}
inline size_t scan_workspace(int64_t outer, int64_t dim, int64_t inner) {
  const ScanArguments a = scan_arguments(outer, dim, inner);
  return a.n_chunks > 1 && !a.whole_rows ? size_t(outer * a.n_chunks * inner) * 16 : 0;
}

template <class S> int32_t launch_scan(int64_t outer, int64_t dim, int64_t inner, const char* in,
                                       char* out, void* stream, void* workspace) {
  static_assert(sizeof(typename S::P) <= 16);
  if (outer * dim * inner == 0) return TT_OK;
  ScanArguments a = scan_arguments(outer, dim, inner);
  a.in = in;
  a.out = out;
  a.parts = static_cast<char*>(workspace);
  const auto launch = [&](void (*kernel)(ScanArguments), int64_t blocks) {
    const unsigned grid = unsigned(min(blocks, kMaxRowGrid));
    return device::launch(kernel, grid, kScanThreads, 0, stream, a);
  };
  const int64_t chunks = outer * a.n_chunks;
  if (inner == 1) {
    a.packs = is_aligned(in) && is_aligned(out) && dim * int64_t(sizeof(typename S::V)) % 16 == 0 &&
              dim * int64_t(sizeof(typename S::R)) % 16 == 0;
    if (a.whole_rows) return launch(scan_rows<S, true>, outer);
    if (const int32_t status = launch(scan_rows<S, false>, chunks)) return status;
    if (const int32_t status = launch(scan_chunks<S>, outer)) return status;
    return launch(scan_rows<S, true>, chunks);
  }
  const int64_t blocks = ceil_div(chunks * inner, int64_t(kScanThreads));
  if (a.n_chunks > 1) {
    const int64_t columns = ceil_div(outer * inner, int64_t(kScanThreads));
    if (const int32_t status = launch(scan_columns<S, kChunkTotals>, blocks)) return status;
    if (const int32_t status = launch(scan_columns<S, kChunkStarts>, columns)) return status;
  }
  return launch(scan_columns<S, kScanResults>, blocks);
}

}  // namespace
}  // namespace TT_NS
