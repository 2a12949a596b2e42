// The passes of sorts by radix (radix.h), and the sort of few pairs by one block.
#include "kernels/cuda/sort/pairs.h"

namespace TT_NS {
namespace {

constexpr int kScanThreads = 1024;

// Digits of a piece.
template <class K> __global__ void __launch_bounds__(kRadixThreads)
    radix_count(const RadixPass<K, uint32_t> p) {
  constexpr int kEach = kRadixEach<K>;
  TT_SHARED(unsigned, counts, kDigits);
  const int thread = int(threadIdx.x);
  const RadixPiece piece(p.pieces);
  const int64_t first = piece.piece * (kRadixThreads * kEach) + thread;
  const K* const key = p.key + piece.row * p.n;
  K k[kEach];
#pragma unroll
  for (int e = 0; e < kEach; e++) {
    const int64_t i = first + e * kRadixThreads;
    k[e] = i < p.n ? key[i] : K(0);
  }
  if (thread < kDigits) counts[thread] = 0;
  __syncthreads();
#pragma unroll
  for (int e = 0; e < kEach; e++)
    if (first + e * kRadixThreads < p.n) atomicAdd(&counts[p.digit(k[e])], 1u);
  __syncthreads();
  if (thread < kDigits) p.counts[piece.count_of(thread)] = counts[thread];
}

// The sum of the values of the block's threads before this one; all: of all of them.
template <class T> __device__ __forceinline__ T sum_before(T value, T* warps, T* all) {
  const int lane = int(threadIdx.x) % kWarp;
  const int warp = int(threadIdx.x) / kWarp;
  T sum = value;
#pragma unroll
  for (unsigned delta = 1; delta < kWarp; delta *= 2) {
    const T below = __shfl_up_sync(kAllLanes, sum, delta);
    if (lane >= int(delta)) sum += below;
  }
  if (lane == kWarp - 1) warps[warp] = sum;
  __syncthreads();
  *all = 0;
  for (int w = 0; w < int(blockDim.x) / kWarp; w++) {
    if (w < warp) sum += warps[w];
    *all += warps[w];
  }
  __syncthreads();
  return sum - value;
}

// Turns n numbers, kDigits apart, into the sums of those before them, and returns the sum of all.
template <class T> __device__ __forceinline__ T scan_column(T* numbers, int64_t n) {
  constexpr int kAtOnce = 16;
  T sum = 0;
  for (int64_t first = 0; first < n; first += kAtOnce) {
    T value[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) value[j] = first + j < n ? numbers[(first + j) * kDigits] : 0;
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) {
      if (first + j < n) numbers[(first + j) * kDigits] = sum;
      sum += value[j];
    }
  }
  return sum;
}
// Adds the sum of the lower digits to the n numbers of each digit.
template <class T>
__device__ __forceinline__ void add_lower_digits(T* numbers, int64_t n, T own, T* warps) {
  T all;
  const T before = sum_before(own, warps, &all);
#pragma unroll 16
  for (int64_t i = 0; i < n; i++) numbers[i * kDigits] += before;
}

// A block for each chunk, a thread for each digit.
__global__ void __launch_bounds__(kDigits)
    scan_pieces(uint32_t* counts, int64_t* totals, int64_t pieces, int64_t chunks) {
  TT_SHARED(uint32_t, warps, kDigits / kWarp);
  const int64_t row = quotient(blockIdx.x, chunks);
  const int64_t first = (blockIdx.x - row * chunks) * kScanPieces;
  const int64_t n = pieces - first < kScanPieces ? pieces - first : kScanPieces;
  uint32_t* const mine = counts + (row * pieces + first) * kDigits + threadIdx.x;
  const uint32_t sum = scan_column(mine, n);
  if (totals) totals[int64_t(blockIdx.x) * kDigits + threadIdx.x] = sum;
  else add_lower_digits(mine, n, sum, warps);
}
// A block for each row.
__global__ void __launch_bounds__(kDigits) scan_chunks(int64_t* totals, int64_t chunks) {
  TT_SHARED(int64_t, warps, kDigits / kWarp);
  int64_t* const mine = totals + blockIdx.x * chunks * kDigits + threadIdx.x;
  add_lower_digits(mine, chunks, scan_column(mine, chunks), warps);
}

__global__ void __launch_bounds__(kScanThreads)
    scan_numbers(int64_t* numbers, int64_t n, int64_t* total) {
  TT_SHARED(int64_t, warps, kScanThreads / kWarp);
  int64_t before = 0;
  for (int64_t from = 0; from < n; from += blockDim.x) {
    const int64_t i = from + threadIdx.x;
    const int64_t value = i < n ? numbers[i] : 0;
    int64_t all;
    const int64_t sum = before + sum_before(value, warps, &all);
    if (i < n) numbers[i] = sum;
    before += all;
  }
  if (total && threadIdx.x == 0) *total = before;
}

template <class K> __global__ void __launch_bounds__(kBlockMost / kBlockEach)
    sort_few_pairs(K* keys, uint32_t* places, int n, int bits) {
  TT_SHARED_DYNAMIC(unsigned char, room);
  const BlockSort<K> block(room);
  const int step = int(blockDim.x);
  for (int i = int(threadIdx.x); i < step * kBlockEach; i += step)
    block.key[i] = i < n ? keys[i] : ~K(0);
  block.sort(bits);
  for (int i = int(threadIdx.x); i < n; i += step) {
    keys[i] = block.key[i];
    places[i] = block.at[i];
  }
}

struct PairOut {
  char *keys, *places;
  template <class K, class At>
  __device__ __forceinline__ void put(int64_t, int64_t place, K key, At at) const {
    reinterpret_cast<K*>(keys)[place] = key;
    reinterpret_cast<At*>(places)[place] = at;
  }
};

template <class K> int32_t launch_count(const RadixRows& r, int shift, void* stream) {
  const RadixPass<K, uint32_t> p = pass_of<K, uint32_t>(r, shift);
  return device::launch(radix_count<K>, unsigned(r.rows * p.pieces), kRadixThreads, 0, stream, p);
}
template <class K> int32_t launch_few(const RadixRows& r, int bits, void* stream) {
  return device::launch(sort_few_pairs<K>, 1, block_sort_threads(r.n), block_sort_bytes<K>(r.n),
                        stream, reinterpret_cast<K*>(r.key[0]),
                        reinterpret_cast<uint32_t*>(r.at[0]), int(r.n), bits);
}
int64_t pieces_of(const RadixRows& r) { return ceil_div(r.n, radix_piece(r.wide_key)); }
int64_t chunks_of(const RadixRows& r) { return ceil_div(pieces_of(r), kScanPieces); }

}  // namespace

namespace cuda {

int64_t radix_room(RadixRows* r, int64_t n, int64_t rows, int key_bits, void* workspace) {
  r->n = n;
  r->rows = rows;
  r->wide_at = n > INT32_MAX;
  r->wide_key = key_bits > 32 || r->wide_at;
  r->placed = false;
  char* next = static_cast<char*>(workspace);
  int64_t bytes = 0;
  const auto take = [&](int64_t numbers, int64_t size) {
    char* const here = next;
    const int64_t taken = TT_NS::round_up(numbers * size, 256);
    bytes += taken;
    if (next) next += taken;
    return here;
  };
  for (char*& key : r->key) key = take(n * rows, r->wide_key ? 8 : 4);
  for (char*& at : r->at) at = take(n * rows, r->wide_at ? 8 : 4);
  r->counts = reinterpret_cast<uint32_t*>(take(rows * pieces_of(*r) * kDigits, 4));
  r->totals = nullptr;
  if (chunks_of(*r) > 1)
    r->totals = reinterpret_cast<int64_t*>(take(rows * chunks_of(*r) * kDigits, 8));
  return bytes;
}

int32_t scan_totals(int64_t* numbers, int64_t n, int64_t* total, void* stream) {
  const unsigned threads = unsigned(min<int64_t>(TT_NS::round_up(n, kWarp), kScanThreads));
  return device::launch(scan_numbers, 1, threads, 0, stream, numbers, n, total);
}

int32_t count_digits(const RadixRows& r, int shift, void* stream) {
  int32_t status = r.wide_key ? launch_count<uint64_t>(r, shift, stream)
                              : launch_count<uint32_t>(r, shift, stream);
  const int64_t chunks = chunks_of(r);
  if (status == TT_OK)
    status = device::launch(scan_pieces, unsigned(r.rows * chunks), kDigits, 0, stream, r.counts,
                            r.totals, pieces_of(r), chunks);
  if (status != TT_OK || !r.totals) return status;
  return device::launch(scan_chunks, unsigned(r.rows), kDigits, 0, stream, r.totals, chunks);
}

int32_t radix_passes(RadixRows* r, int bits, void* stream) {
  for (int shift = 0; shift < bits; shift += kRadixBits) {
    int32_t status = count_digits(*r, shift, stream);
    const PairOut out = {r->key[1], r->at[1]};
    if (status == TT_OK) status = launch_move(*r, shift, out, stream);
    if (status != TT_OK) return status;
    r->swap();
  }
  return TT_OK;
}

int32_t sort_pairs(RadixRows* r, int bits, void* stream) {
  if (!sorts_in_block(r->n, r->wide_key)) return radix_passes(r, bits, stream);
  return r->wide_key ? launch_few<uint64_t>(*r, bits, stream)
                     : launch_few<uint32_t>(*r, bits, stream);
}

}  // namespace cuda
}  // namespace TT_NS
