// Stable sort of rows of (key, position) pairs in device memory by radix, least significant digit
// first. A pass counts the digits of each piece of a row, scans the counts, and moves the pairs:
//
//   counts   [rows][pieces][digits], then how many pairs of its chunk of pieces come before; of
//            a row of one chunk, how many pairs of the row
//   totals   [rows][chunks][digits]: how many pairs of the row come before those of the chunk;
//            NULL: a row is one chunk
//   piece    neighbours that a block sorts by digit in shared memory, then writes digit by digit
#pragma once

#include "kernels/cuda/nest.h"
#include "kernels/cuda/sort/digits.h"

namespace TT_NS {

// Keys are of 32 bits or wide (64), positions in a row too. arrays[0] has the pairs that are to be
// sorted, then the sorted ones.
struct RadixRows {
  int64_t n, rows;
  bool wide_key, wide_at;
  bool placed;  // positions are stored: before the first pass a pair's position is its place
  char *key[2], *at[2];
  uint32_t* counts;
  int64_t* totals;

  void swap() {
    char* const k = key[0];
    char* const a = at[0];
    key[0] = key[1];
    at[0] = at[1];
    key[1] = k;
    at[1] = a;
    placed = true;
  }
};

namespace {

constexpr int kRadixThreads = 256;
constexpr int64_t kScanPieces = 32;  // of a chunk

// Pairs of a thread; a piece is that of all threads.
template <class K> constexpr int kRadixEach = sizeof(K) == 4 ? 16 : 8;

template <class K, class At> struct RadixPass {
  const K* key;
  const At* at;  // NULL: a pair's position is its place in the row
  uint32_t* counts;
  int64_t* totals;
  int64_t n, pieces;
  int32_t shift;

  __device__ __forceinline__ uint32_t digit(K k) const {
    return uint32_t(k >> shift) & (kDigits - 1);
  }
};

// The piece of a block, and where its count of a digit is.
struct RadixPiece {
  int64_t row, piece, pieces;
  __device__ __forceinline__ explicit RadixPiece(int64_t of_row) : pieces(of_row) {
    row = quotient(blockIdx.x, pieces);
    piece = blockIdx.x - row * pieces;
  }
  __device__ __forceinline__ int64_t count_of(int digit) const {
    return (row * pieces + piece) * kDigits + digit;
  }
  __device__ __forceinline__ int64_t total_of(int digit) const {
    const int64_t chunks = (pieces + kScanPieces - 1) / kScanPieces;
    return (row * chunks + piece / kScanPieces) * kDigits + digit;
  }
};

// Out: put(row, place, key, position), where `place` counts the pairs of all rows.
template <class K, class At, class Out> __global__ void __launch_bounds__(kRadixThreads, 3)
    radix_move(const RadixPass<K, At> p, const __grid_constant__ Out out) {
  constexpr int kEach = kRadixEach<K>;
  constexpr int kPiece = kRadixThreads * kEach;
  constexpr int kWarps = kRadixThreads / kWarp;
  TT_SHARED(int64_t, place, kDigits);
  TT_SHARED(K, sorted, kPiece);
  TT_SHARED(At, position, kPiece);
  TT_SHARED(uint16_t, counts, kWarps * kDigits);
  TT_SHARED(uint16_t, start, kDigits);
  TT_SHARED(uint32_t, lanes, kWarps * kDigits);
  const int thread = int(threadIdx.x);
  const RadixPiece piece(p.pieces);
  const int64_t first = piece.piece * kPiece;
  const int64_t begin = piece.row * p.n + first;
  const int present = int(p.n - first < kPiece ? p.n - first : kPiece);
  K key[kEach];
  At at[kEach];
  uint32_t digit[kEach], rank[kEach];
#pragma unroll
  for (int e = 0; e < kEach; e++) {
    const int i = item_place<kEach>(e);
    key[e] = i < present ? p.key[begin + i] : ~K(0);
    at[e] = p.at && i < present ? p.at[begin + i] : At(first + i);
  }
#pragma unroll
  for (int e = 0; e < kEach; e++) digit[e] = p.digit(key[e]);
  rank_digits<kEach>({counts, start, lanes}, kWarps, digit, rank);
#pragma unroll
  for (int e = 0; e < kEach; e++) {
    sorted[rank[e]] = key[e];
    position[rank[e]] = at[e];
  }
  if (thread < kDigits) {
    const int64_t before = p.totals ? p.totals[piece.total_of(thread)] : 0;
    place[thread] = piece.row * p.n + before + p.counts[piece.count_of(thread)] - start[thread];
  }
  __syncthreads();
#pragma unroll 4
  for (int e = 0; e < kEach; e++) {
    const int i = e * kRadixThreads + thread;
    if (i >= present) break;
    const K k = sorted[i];
    out.put(piece.row, place[p.digit(k)] + i, k, position[i]);
  }
}

// ---- on the host ----

inline int64_t radix_piece(bool wide_key) {
  return kRadixThreads * (wide_key ? kRadixEach<uint64_t> : kRadixEach<uint32_t>);
}
template <class K, class At> RadixPass<K, At> pass_of(const RadixRows& r, int shift) {
  RadixPass<K, At> p;
  p.key = reinterpret_cast<const K*>(r.key[0]);
  p.at = r.placed ? reinterpret_cast<const At*>(r.at[0]) : nullptr;
  p.counts = r.counts;
  p.totals = r.totals;
  p.n = r.n;
  p.pieces = ceil_div(r.n, radix_piece(r.wide_key));
  p.shift = shift;
  return p;
}
// Launches the last step of a pass, whose digits were counted (cuda::count_digits).
template <class Out>
int32_t launch_move(const RadixRows& r, int shift, const Out& out, void* stream) {
  const unsigned grid = unsigned(r.rows * ceil_div(r.n, radix_piece(r.wide_key)));
  if (r.wide_at)
    return device::launch(radix_move<uint64_t, uint64_t, Out>, grid, kRadixThreads, 0, stream,
                          pass_of<uint64_t, uint64_t>(r, shift), out);
  if (r.wide_key)
    return device::launch(radix_move<uint64_t, uint32_t, Out>, grid, kRadixThreads, 0, stream,
                          pass_of<uint64_t, uint32_t>(r, shift), out);
  return device::launch(radix_move<uint32_t, uint32_t, Out>, grid, kRadixThreads, 0, stream,
                        pass_of<uint32_t, uint32_t>(r, shift), out);
}

// Bits that hold numbers up to `most`.
inline int bits_of(uint64_t most) {
  int bits = 0;
  while (bits < 64 && most >> bits) bits++;
  return bits;
}

}  // namespace

namespace cuda {

// Lays out arrays for rows * n pairs, with keys of key_bits bits, in the workspace; NULL: computes
// their sizes alone. Returns the bytes that they take.
int64_t radix_room(RadixRows* r, int64_t n, int64_t rows, int key_bits, void* workspace);
// Counts the digits at `shift` and scans the counts.
int32_t count_digits(const RadixRows& r, int shift, void* stream);
// Sorts arrays[0] by the bits [0, bits) of the keys.
int32_t radix_passes(RadixRows* r, int bits, void* stream);
// Sorts one row of pairs whose keys have at most `bits` bits: few by one block.
int32_t sort_pairs(RadixRows* r, int bits, void* stream);
// Turns n numbers into the sums of those before them, and their sum into *total, unless NULL.
int32_t scan_totals(int64_t* numbers, int64_t n, int64_t* total, void* stream);

}  // namespace cuda
}  // namespace TT_NS
