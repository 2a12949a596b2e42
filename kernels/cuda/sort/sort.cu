// sort_rows: the first k of n elements of each row in order, with their positions.
//
//   few      rows of at most kBitonicMost elements: a block sorts a row in shared memory
//   select   longer rows, few results: a block finds the key of the last result by radix, digit by
//            digit, collects what precedes it, and sorts that
//   radix    others: all rows at once, by key and then by row
//
// Keys of equal elements are told apart by position: sorts are stable.
#include "kernels/cuda/rows.h"
#include "kernels/cuda/sort/bitonic.h"
#include "kernels/cuda/sort/keys.h"
#include "kernels/cuda/sort/radix.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kSelectThreads = 1024;
constexpr int kSelectBits = 8;

struct SortArguments {
  const char* in;
  char* values;
  int64_t* indices;
  int64_t n, inner, k;
  int64_t first_row, rows;
  int32_t dtype;
  bool descending;
  RadixPair* pairs;
};

struct SortRow {
  const SortArguments& p;
  const char* in;
  int64_t stride;  // bytes
  int64_t out;     // its first result
  __device__ __forceinline__ SortRow(const SortArguments& a, int64_t row) : p(a) {
    const int64_t outer = quotient(row, p.inner);
    const int64_t at = row - outer * p.inner;
    const int64_t item = item_size(p.dtype);
    in = p.in + (outer * p.n * p.inner + at) * item;
    stride = p.inner * item;
    out = outer * p.k * p.inner + at;
  }
  __device__ __forceinline__ uint64_t key(int64_t i) const {
    return sort_key(in + i * stride, p.dtype, p.descending);
  }
  __device__ __forceinline__ void write(int64_t rank, int64_t i) const {
    const int64_t at = out + rank * p.inner;
    p.indices[at] = i;
    if (!p.values) return;
    const char* from = in + i * stride;
    char* to = p.values + at * item_size(p.dtype);
    switch (item_size(p.dtype)) {
      case 1: *to = *from; return;
      case 2: *reinterpret_cast<uint16_t*>(to) = *reinterpret_cast<const uint16_t*>(from); return;
      case 4: *reinterpret_cast<uint32_t*>(to) = *reinterpret_cast<const uint32_t*>(from); return;
      default: *reinterpret_cast<uint64_t*>(to) = *reinterpret_cast<const uint64_t*>(from);
    }
  }
};

constexpr uint64_t kNoKey = ~uint64_t(0);

// padded: the power of 2 that n is padded to.
__global__ void __launch_bounds__(kThreads)
    sort_few(const __grid_constant__ SortArguments p, int padded) {
  TT_SHARED(uint64_t, key, kBitonicMost);
  TT_SHARED(int32_t, at, kBitonicMost);
  for (int64_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
    const SortRow row(p, p.first_row + r);
    for (int i = int(threadIdx.x); i < padded; i += int(blockDim.x)) {
      key[i] = i < p.n ? row.key(i) : kNoKey;
      at[i] = i;
    }
    __syncthreads();
    bitonic_sort(key, at, padded);
    for (int i = int(threadIdx.x); i < p.k; i += int(blockDim.x)) row.write(i, at[i]);
    __syncthreads();
  }
}

// Which thread's items come first: the number of hits of the threads before this one, and of all.
struct Hits {
  int before, all;
};
__device__ __forceinline__ Hits count_hits(bool hit, int* warps) {
  const int lane = int(threadIdx.x) % kWarp;
  const int warp = int(threadIdx.x) / kWarp;
  const uint32_t votes = __ballot_sync(kAllLanes, hit);
  if (lane == 0) warps[warp] = __popc(votes);
  __syncthreads();
  Hits h = {__popc(votes & ((1u << lane) - 1)), 0};
  for (int w = 0; w < int(blockDim.x) / kWarp; w++) {
    if (w < warp) h.before += warps[w];
    h.all += warps[w];
  }
  __syncthreads();
  return h;
}

__global__ void __launch_bounds__(kSelectThreads)
    sort_first(const __grid_constant__ SortArguments p, int padded) {
  TT_SHARED(uint64_t, key, kBitonicMost);
  TT_SHARED(int32_t, order, kBitonicMost);
  TT_SHARED(int64_t, place, kBitonicMost);
  TT_SHARED(unsigned, counts, 1 << kSelectBits);
  TT_SHARED(int, warps, kSelectThreads / kWarp);
  TT_SHARED(int64_t, left, 1);
  TT_SHARED(uint64_t, prefix, 1);
  const int thread = int(threadIdx.x);
  for (int64_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
    const SortRow row(p, p.first_row + r);
    // The digits of the last result's key, from the highest.
    if (thread == 0) {
      left[0] = p.k;
      prefix[0] = 0;
    }
    for (int shift = key_bits_of(p.dtype) - kSelectBits; shift >= 0; shift -= kSelectBits) {
      if (thread < 1 << kSelectBits) counts[thread] = 0;
      __syncthreads();
      const uint64_t known = prefix[0];
      const bool first = shift + kSelectBits == key_bits_of(p.dtype);
      for (int64_t i = thread; i < p.n; i += blockDim.x) {
        const uint64_t k = row.key(i);
        if (first || k >> (shift + kSelectBits) == known)
          atomicAdd(&counts[int(k >> shift) & ((1 << kSelectBits) - 1)], 1u);
      }
      __syncthreads();
      if (thread == 0) {
        int digit = 0;
        while (left[0] > int64_t(counts[digit])) left[0] -= counts[digit++];
        prefix[0] = known << kSelectBits | uint64_t(digit);
      }
      __syncthreads();
    }
    const uint64_t last = prefix[0];
    const int64_t equals = left[0];  // results whose key is `last`: the first ones
    const int64_t less = p.k - equals;
    int64_t n_less = 0, n_equal = 0;
    for (int i = thread; i < padded; i += int(blockDim.x)) {
      key[i] = kNoKey;
      order[i] = i;
    }
    __syncthreads();
    for (int64_t from = 0; from < p.n; from += blockDim.x) {
      const int64_t i = from + thread;
      const uint64_t k = i < p.n ? row.key(i) : kNoKey;
      const bool is_less = i < p.n && k < last;
      const bool is_equal = i < p.n && k == last;
      const Hits a = count_hits(is_less, warps);
      const Hits b = count_hits(is_equal, warps);
      int64_t at = is_less ? n_less + a.before : less + n_equal + b.before;
      if (!is_less && (!is_equal || n_equal + b.before >= equals)) at = p.k;
      if (at < p.k) {
        key[at] = k;
        place[at] = i;
      }
      n_less += a.all;
      n_equal += b.all;
    }
    __syncthreads();
    // Both parts are in the order of positions, so that `order` tells equal keys apart.
    bitonic_sort(key, order, padded);
    for (int i = thread; i < p.k; i += int(blockDim.x)) row.write(i, place[order[i]]);
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads) make_pairs(const __grid_constant__ SortArguments p) {
  for (int64_t t = first_item(); t < p.rows * p.n; t += item_step()) {
    const int64_t r = quotient(t, p.n);
    p.pairs[t] = {SortRow(p, p.first_row + r).key(t - r * p.n), t};
  }
}
__global__ void __launch_bounds__(kThreads) write_pairs(const __grid_constant__ SortArguments p) {
  for (int64_t t = first_item(); t < p.rows * p.k; t += item_step()) {
    const int64_t r = quotient(t, p.k);
    const int64_t rank = t - r * p.k;
    SortRow(p, p.first_row + r).write(rank, p.pairs[r * p.n + rank].at - r * p.n);
  }
}

// ---- on the host ----

SortArguments arguments_of(const SortPlan& p) {
  SortArguments a;
  a.in = p.in;
  a.values = p.values;
  a.indices = p.indices;
  a.n = p.n;
  a.inner = p.inner;
  a.k = p.k;
  const bool all = p.path == kSortRows;
  a.first_row = all ? 0 : p.row;
  a.rows = all ? p.outer * p.inner : 1;
  a.dtype = p.dtype;
  a.descending = p.descending;
  a.pairs = nullptr;
  return a;
}

bool by_radix(const SortPlan& p) { return p.n > kBitonicMost && p.k > kBitonicMost / 2; }

}  // namespace

namespace cuda {

int32_t sort_rows(const void* plan, void* stream, void* workspace) {
  const SortPlan& p = *static_cast<const SortPlan*>(plan);
  SortArguments a = arguments_of(p);
  if (a.rows == 0 || p.k == 0) return TT_OK;
  const unsigned grid = grid_of(a.rows, 1);
  if (p.n <= kBitonicMost) {
    const int padded = next_power(p.n);
    const unsigned threads = unsigned(min(max(padded / 2, int(kWarp)), kThreads));
    return device::launch(sort_few, grid, threads, 0, stream, a, padded);
  }
  if (!by_radix(p))
    return device::launch(sort_first, grid, kSelectThreads, 0, stream, a, next_power(p.k));
  const int64_t n = a.rows * p.n;
  char* const base = static_cast<char*>(workspace);
  a.pairs = reinterpret_cast<RadixPair*>(base);
  RadixPair* other = reinterpret_cast<RadixPair*>(base + radix_pairs_bytes(n));
  int64_t* const counts = reinterpret_cast<int64_t*>(base + 2 * radix_pairs_bytes(n));
  int32_t status = device::launch(make_pairs, grid_of(n, kThreads), kThreads, 0, stream, a);
  if (status == TT_OK)
    status = radix_sort(&a.pairs, &other, counts, n, key_bits_of(p.dtype), 0, stream);
  if (status == TT_OK)
    status = radix_sort(&a.pairs, &other, counts, n, bits_of(uint64_t(a.rows - 1)), p.n, stream);
  if (status != TT_OK) return status;
  return device::launch(write_pairs, grid_of(a.rows * p.k, kThreads), kThreads, 0, stream, a);
}
size_t sort_rows_workspace(const void* plan) {
  const SortPlan& p = *static_cast<const SortPlan*>(plan);
  if (!by_radix(p)) return 0;
  const int64_t n = arguments_of(p).rows * p.n;
  return size_t(2 * radix_pairs_bytes(n) + radix_counts_bytes(n));
}

}  // namespace cuda
}  // namespace TT_NS
