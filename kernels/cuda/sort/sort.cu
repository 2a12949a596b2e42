// sort_rows: the first k of n elements of each row in order, with their positions.
//
//   few      rows of at most kFew elements: a warp sorts a row in registers by a network
//   select   few results of longer rows: a block finds a bound of the results' keys by radix, digit
//            by digit, collects what it includes, and sorts that
//   block    other rows that fit in shared memory: a block sorts a row by radix
//   radix    others: all rows at once
//
// Keys of equal elements are told apart by position: sorts are stable.
#include "kernels/cuda/rows.h"
#include "kernels/cuda/sort/bitonic.h"
#include "kernels/cuda/sort/keys.h"
#include "kernels/cuda/sort/pairs.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kFew = 128;
constexpr int kFewRows = 8;  // of a block
constexpr int kSelectThreads = 512;

struct SortArguments {
  const char* in;
  char* values;
  int64_t* indices;
  int64_t n, inner, k;
  int64_t first_row, rows;
  int32_t dtype;
  bool descending;
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
  // The same for elements of 4 bytes, whose bits are given.
  __device__ __forceinline__ void write_element(int64_t rank, int64_t i, uint32_t bits) const {
    const int64_t at = out + rank * p.inner;
    p.indices[at] = i;
    if (p.values) reinterpret_cast<uint32_t*>(p.values)[at] = bits;
  }
};

constexpr uint64_t kNoKey = ~uint64_t(0);

// A key and its position, of which no two are equal.
struct NarrowItem {
  uint64_t bits;
  NarrowItem() = default;
  __device__ __forceinline__ NarrowItem(uint64_t key, uint32_t at) : bits(key << 32 | at) {}
  __device__ __forceinline__ uint32_t at() const { return uint32_t(bits); }
  __device__ __forceinline__ bool operator<(const NarrowItem& o) const { return bits < o.bits; }
};
struct WideItem {
  uint32_t key[2], place;  // words: shuffles move them without padding
  WideItem() = default;
  __device__ __forceinline__ WideItem(uint64_t k, uint32_t at)
      : key{uint32_t(k), uint32_t(k >> 32)}, place(at) {}
  __device__ __forceinline__ uint64_t bits() const { return uint64_t(key[1]) << 32 | key[0]; }
  __device__ __forceinline__ uint32_t at() const { return place; }
  __device__ __forceinline__ bool operator<(const WideItem& o) const {
    return bits() < o.bits() || (bits() == o.bits() && place < o.place);
  }
};

// A warp sorts a row of at most 32 kEach elements by Batcher's bitonic network, "Sorting networks
// and their applications", AFIPS 1968: item e of a lane is at place 32 e + lane.
template <class Item, int kEach> __global__ void __launch_bounds__(kFewRows* kWarp)
    sort_few(const __grid_constant__ SortArguments p) {
  const int lane = int(threadIdx.x) % kWarp;
  const int64_t step = int64_t(gridDim.x) * kFewRows;
  for (int64_t r = int64_t(blockIdx.x) * kFewRows + threadIdx.x / kWarp; r < p.rows; r += step) {
    const SortRow row(p, p.first_row + r);
    Item item[kEach];
#pragma unroll
    for (int e = 0; e < kEach; e++) {
      const int i = e * kWarp + lane;
      item[e] = Item(i < p.n ? row.key(i) : kNoKey, uint32_t(i));
    }
    const auto exchange = [&](int length, int apart, const auto& other) {
      Item next[kEach];
#pragma unroll
      for (int e = 0; e < kEach; e++) {
        const int place = e * kWarp + lane;
        const Item o = other(e);
        const bool keeps_lower = ((place & apart) == 0) == ((place & length) == 0);
        next[e] = (o < item[e]) == keeps_lower ? o : item[e];
      }
#pragma unroll
      for (int e = 0; e < kEach; e++) item[e] = next[e];
    };
#pragma unroll 1
    for (int length = 2; length <= kEach * kWarp; length *= 2) {
#pragma unroll
      for (int apart = kEach / 2; apart > 0; apart /= 2)
        if (apart * kWarp < length)
          exchange(length, apart * kWarp, [&](int e) { return item[e ^ apart]; });
#pragma unroll 1
      for (int apart = length < kWarp ? length / 2 : kWarp / 2; apart > 0; apart /= 2)
        exchange(length, apart, [&](int e) { return shuffle_from(item[e], lane ^ apart); });
    }
#pragma unroll
    for (int e = 0; e < kEach; e++) {
      const int rank = e * kWarp + lane;
      if (rank < p.k) row.write(rank, item[e].at());
    }
  }
}

template <class K> __global__ void __launch_bounds__(kBlockMost / kBlockEach)
    sort_block(const __grid_constant__ SortArguments p) {
  TT_SHARED_DYNAMIC(unsigned char, room);
  const BlockSort<K> block(room);
  const int thread = int(threadIdx.x);
  const int threads = int(blockDim.x);
  for (int64_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
    const SortRow row(p, p.first_row + r);
#pragma unroll
    for (int e = 0; e < kBlockEach; e++) {
      const int i = e * threads + thread;
      block.key[i] = i < p.n ? K(row.key(i)) : ~K(0);
    }
    block.sort(key_bits_of(p.dtype));
    for (int i = thread; i < p.k; i += threads) row.write(i, block.at[i]);
    __syncthreads();
  }
}

// ---- select ----

// Rows, or chunks of them whose results are candidates for those of the row.
template <class K> struct SelectArguments {
  SortArguments sort;
  int64_t n, chunk, chunks;  // elements or candidates of a row, of a chunk; chunks of a row
  const K* keys;             // candidates [rows][n]; NULL: elements
  const uint32_t* places;    // of the candidates in their row
  K* chunk_keys;             // [rows][chunks][k]: what a chunk finds; NULL: results of the row
  uint32_t* chunk_places;
  int32_t padded;  // the power of 2 that k is padded to
  bool held;       // keys are kept in shared memory
};

template <class K> struct RowKeys {
  const SelectArguments<K>& p;
  SortRow row;
  int64_t first;   // of the chunk
  const K* given;  // candidates
  const K* held;
  __device__ __forceinline__ K read(int i) const {
    return given ? given[i] : K(row.key(first + i));
  }
  __device__ __forceinline__ K operator[](int i) const { return held ? held[i] : read(i); }
};

struct Bound {
  unsigned digit;
  unsigned left;   // results among the keys of the digit
  unsigned count;  // those keys
};
// The digit of the last of `left` results, by one warp.
__device__ __forceinline__ void find_digit(const unsigned* counts, unsigned left, Bound* bound) {
  constexpr int kOfLane = kDigits / kWarp;
  const int lane = int(threadIdx.x);
  unsigned own = 0;
#pragma unroll
  for (int j = 0; j < kOfLane; j++) own += counts[lane * kOfLane + j];
  unsigned sum = own;
#pragma unroll
  for (unsigned delta = 1; delta < kWarp; delta *= 2) {
    const unsigned below = __shfl_up_sync(kAllLanes, sum, delta);
    if (lane >= int(delta)) sum += below;
  }
  if (left > sum || left <= sum - own) return;
  left -= sum - own;
  int digit = lane * kOfLane;
  while (left > counts[digit]) left -= counts[digit++];
  *bound = {unsigned(digit), left, counts[digit]};
}

// The number of hits of the threads before this one; *all: of all threads.
__device__ __forceinline__ int hits_before(bool hit, int* warps, int* all) {
  const int lane = int(threadIdx.x) % kWarp;
  const int warp = int(threadIdx.x) / kWarp;
  const uint32_t votes = __ballot_sync(kAllLanes, hit);
  if (lane == 0) warps[warp] = __popc(votes);
  __syncthreads();
  int before = __popc(votes & ((1u << lane) - 1));
  *all = 0;
  for (int w = 0; w < int(blockDim.x) / kWarp; w++) {
    if (w < warp) before += warps[w];
    *all += warps[w];
  }
  __syncthreads();
  return before;
}

template <class K> __global__ void __launch_bounds__(kSelectThreads, 2)
    sort_first(const __grid_constant__ SelectArguments<K> p) {
  TT_SHARED_DYNAMIC(uint64_t, key);
  TT_SHARED(unsigned, counts, kDigits);
  TT_SHARED(int, warps, kSelectThreads / kWarp);
  TT_SHARED(Bound, bound, 1);
  TT_SHARED(unsigned, found, 1);
  const int padded = p.padded;
  int32_t* const at = reinterpret_cast<int32_t*>(key + padded);
  K* const held_keys = reinterpret_cast<K*>(at + padded);
  const int thread = int(threadIdx.x);
  const int threads = int(blockDim.x);
  for (int64_t u = blockIdx.x; u < p.sort.rows * p.chunks; u += gridDim.x) {
    const int64_t r = quotient(u, p.chunks);
    const int64_t first = (u - r * p.chunks) * p.chunk;
    const int n = int(p.n - first < p.chunk ? p.n - first : p.chunk);
    const int results = int(p.sort.k < n ? p.sort.k : n);
    const RowKeys<K> keys = {p, SortRow(p.sort, p.sort.first_row + r), first,
                             p.keys ? p.keys + r * p.n + first : nullptr,
                             p.held ? held_keys : nullptr};
    if (p.held) {
#pragma unroll 8
      for (int i = thread; i < n; i += threads) held_keys[i] = keys.read(i);
    }
    for (int i = thread; i < padded; i += threads) {
      key[i] = kNoKey;
      at[i] = INT32_MAX;
    }
    if (thread == 0) found[0] = 0;
    // Results are the keys whose highest digits are at most `prefix`; of those that are equal to it
    // only `left`, unless all.
    const int bits = key_bits_of(p.sort.dtype);
    int shift = bits;
    K prefix = 0;
    unsigned left = unsigned(results);
    bool all = false;
    while (shift > 0 && !all) {
      shift -= kRadixBits;
      for (int d = thread; d < kDigits; d += threads) counts[d] = 0;
      __syncthreads();
      const bool first = shift + kRadixBits == bits;
#pragma unroll 4
      for (int i = thread; i < n; i += threads) {
        const K digits = keys[i] >> shift;
        if (first || digits >> kRadixBits == prefix)
          atomicAdd(&counts[unsigned(digits) & (kDigits - 1)], 1u);
      }
      __syncthreads();
      if (thread < kWarp) find_digit(counts, left, bound);
      __syncthreads();
      prefix = K(first ? 0 : prefix << kRadixBits) | K(bound[0].digit);
      left = bound[0].left;
      all = left == bound[0].count;
    }
#pragma unroll 4
    for (int i = thread; i < n; i += threads) {
      const K k = keys[i];
      const K digits = k >> shift;
      if (digits > prefix || (digits == prefix && !all)) continue;
      const unsigned place = atomicAdd(&found[0], 1u);
      key[place] = k;
      at[place] = i;
    }
    for (int from = 0, equal = 0; !all && from < n && equal < int(left); from += threads) {
      const int i = from + thread;
      const bool hit = i < n && keys[i] == prefix;
      int hits;
      const int rank = equal + hits_before(hit, warps, &hits);
      if (hit && rank < int(left)) {
        key[results - left + rank] = prefix;
        at[results - left + rank] = i;
      }
      equal += hits;
    }
    __syncthreads();
    bitonic_sort(key, at, padded);
    for (int i = thread; i < p.sort.k; i += threads) {
      if (p.chunk_keys) {
        p.chunk_keys[u * p.sort.k + i] = K(key[i]);
        p.chunk_places[u * p.sort.k + i] = uint32_t(first + at[i]);
      } else {
        keys.row.write(i, p.places ? p.places[r * p.n + at[i]] : at[i]);
      }
    }
    __syncthreads();
  }
}

// ---- radix ----

__global__ void __launch_bounds__(kThreads)
    list_keys(const __grid_constant__ SortArguments p, const SortedItems items) {
  for (int64_t t = first_item(); t < p.rows * p.n; t += item_step()) {
    const int64_t r = quotient(t, p.n);
    items.put(t, SortRow(p, p.first_row + r).key(t - r * p.n));
  }
}

struct RowOut {
  SortArguments p;
  template <class K, class At>
  __device__ __forceinline__ void put(int64_t r, int64_t place, K key, At at) const {
    const int64_t rank = place - r * p.n;
    if (rank >= p.k) return;
    const SortRow row(p, p.first_row + r);
    uint32_t bits;
    if (sizeof(K) == 4 && p.dtype == TT_F32 && element_of_key(uint32_t(key), p.descending, &bits))
      row.write_element(rank, int64_t(at), bits);
    else row.write(rank, int64_t(at));
  }
};

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
  return a;
}

enum Way { kByNetwork, kBySelection, kByBlock, kByRadix };
Way way_of(const SortPlan& p) {
  if (p.n <= kFew) return kByNetwork;
  const bool few = p.k <= kBitonicMost && p.n <= INT32_MAX;
  const bool block = sorts_in_block(p.n, key_bits_of(p.dtype) > 32);
  if (few && (!block || (p.n > kBitonicMost && p.k <= p.n / 8))) return kBySelection;
  return block ? kByBlock : kByRadix;
}

// Chunks of rows that are too few for a device.
struct SelectChunks {
  int64_t size, number;
};
SelectChunks chunks_of(const SortArguments& a) {
  constexpr int64_t kBlocks = 512;
  constexpr int64_t kLeast = 8192;
  const int64_t size = max(kLeast, ceil_div(a.n * a.rows, kBlocks));
  if (a.n < 2 * size) return {a.n, 1};
  return {size, ceil_div(a.n, size)};
}
template <class K> int32_t launch_select(SelectArguments<K>* p, void* stream) {
  const size_t sorted = size_t(p->padded) * 12;
  const size_t keys = size_t(p->chunk) * sizeof(K);
  p->held = sorted + keys <= device::kAskedShared;
  const unsigned threads = p->chunk <= 8192 ? kThreads : kSelectThreads;
  return device::launch(sort_first<K>, grid_of(p->sort.rows * p->chunks, 1), threads,
                        p->held ? sorted + keys : sorted, stream, *p);
}
template <class K> int32_t select(const SortArguments& a, void* stream, void* workspace) {
  const SelectChunks chunks = chunks_of(a);
  SelectArguments<K> p = {};
  p.sort = a;
  p.n = a.n;
  p.chunk = chunks.size;
  p.chunks = chunks.number;
  p.padded = next_power(a.k);
  if (p.chunks == 1) return launch_select(&p, stream);
  const int64_t candidates = a.rows * p.chunks * a.k;
  p.chunk_keys = static_cast<K*>(workspace);
  p.chunk_places = reinterpret_cast<uint32_t*>(p.chunk_keys + candidates);
  const int32_t status = launch_select(&p, stream);
  p.keys = p.chunk_keys;
  p.places = p.chunk_places;
  p.chunk_keys = nullptr;
  p.n = p.chunk = p.chunks * a.k;
  p.chunks = 1;
  return status == TT_OK ? launch_select(&p, stream) : status;
}
template <class K> int32_t launch_block(const SortArguments& a, void* stream) {
  return device::launch(sort_block<K>, grid_of(a.rows, 1), block_sort_threads(a.n),
                        block_sort_bytes<K>(a.n), stream, a);
}

template <class Item> int32_t launch_few(const SortArguments& a, void* stream) {
  auto kernel = sort_few<Item, 4>;
  if (a.n <= 2 * kWarp) kernel = sort_few<Item, 2>;
  if (a.n <= kWarp) kernel = sort_few<Item, 1>;
  return device::launch(kernel, grid_of(a.rows, kFewRows), kFewRows * kWarp, 0, stream, a);
}

int32_t launch_radix(const SortArguments& a, void* stream, void* workspace) {
  const int bits = key_bits_of(a.dtype);
  RadixRows rows;
  cuda::radix_room(&rows, a.n, a.rows, bits, workspace);
  const SortedItems items = {rows.key[0], rows.at[0], rows.wide_key, rows.wide_at};
  int32_t status =
      device::launch(list_keys, grid_of(a.rows * a.n, 4 * kThreads), kThreads, 0, stream, a, items);
  const int last = bits - kRadixBits;
  if (status == TT_OK) status = cuda::radix_passes(&rows, last, stream);
  if (status == TT_OK) status = cuda::count_digits(rows, last, stream);
  return status == TT_OK ? launch_move(rows, last, RowOut{a}, stream) : status;
}

}  // namespace

namespace cuda {

int32_t sort_rows(const void* plan, void* stream, void* workspace) {
  const SortPlan& p = *static_cast<const SortPlan*>(plan);
  const SortArguments a = arguments_of(p);
  if (a.rows == 0 || p.k == 0) return TT_OK;
  const bool wide = key_bits_of(p.dtype) > 32;
  switch (way_of(p)) {
    case kByNetwork:
      return wide ? launch_few<WideItem>(a, stream) : launch_few<NarrowItem>(a, stream);
    case kBySelection:
      return wide ? select<uint64_t>(a, stream, workspace) : select<uint32_t>(a, stream, workspace);
    case kByBlock:
      return wide ? launch_block<uint64_t>(a, stream) : launch_block<uint32_t>(a, stream);
    default: return launch_radix(a, stream, workspace);
  }
}
size_t sort_rows_workspace(const void* plan) {
  const SortPlan& p = *static_cast<const SortPlan*>(plan);
  const SortArguments a = arguments_of(p);
  const int bits = key_bits_of(p.dtype);
  RadixRows rows;
  switch (way_of(p)) {
    case kBySelection: {
      const SelectChunks chunks = chunks_of(a);
      if (chunks.number == 1) return 0;
      const int64_t pair = bits > 32 ? 12 : 8;
      return size_t(a.rows * chunks.number * a.k * pair);
    }
    case kByRadix: return size_t(radix_room(&rows, p.n, a.rows, bits, nullptr));
    default: return 0;
  }
}

}  // namespace cuda
}  // namespace TT_NS
