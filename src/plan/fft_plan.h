// Plan of a discrete Fourier transform along one dimension. POD, also device code.
#pragma once

#include "plan/cuda_math.h"
#include "plan/rooms.h"
#include "plan/stages.h"

namespace TT_NS {

// Transforms are computed side by side in kFftLanes<T> lanes: element v of a tile is 64 bytes of
// real parts and 64 bytes of imaginary parts, one per transform.
constexpr int64_t kFftTileBytes = 64;
TT_INLINE constexpr int64_t fft_lanes(int32_t dtype) { return kFftTileBytes / kItemSize[dtype]; }

enum FftKind : int32_t {
  kFftComplex,    // n numbers -> n numbers
  kFftReal,       // n real numbers -> the first n / 2 + 1 numbers of their spectrum
  kFftHermitian,  // those n / 2 + 1 numbers -> n real numbers
};

constexpr int32_t kMaxFftPasses = 48;
constexpr int64_t kMaxFftRadix = 61;  // larger prime factors are left to Bluestein's algorithm

// A transform of length n as Stockham passes of radix[0], radix[1], …, whose product is n.
struct FftPasses {
  int64_t n;
  int32_t n_passes;
  int32_t radix[kMaxFftPasses];
};

// out = scale * the transform of in along dim of a dense array [outer][dim][inner], with the sign
// + in the exponent if `inverse`. An even number of real values is transformed as `length` = n / 2
// complex ones.
//
// Without `second`, a unit is a tile of transforms: lane l has row l of [outer][inner]. If `chirp`
// (Bluestein), the passes have a length of at least 2 n - 1. With `second` (inner is 1), length =
// first.n * second.n, and a transform is taken apart in two steps, so that its own columns fill the
// lanes:
//   columns  of the matrix [first.n][second.n], in tiles; then each number is turned by its root
//   rows     transforms of length second.n, kept as tiles of columns in `middle`
// Stages: 0 fills the tables; 1 runs tiles, whole transforms if `whole`, or else the columns; 2
// runs the rows; 3 completes the spectra of real numbers. (Hermitian: 1 prepares, 2 and 3 run.)
struct FftPlan {
  Stages run;
  int32_t dtype;  // of the parts: f32 or f64
  int32_t kind;   // FftKind
  int32_t inverse, chirp, whole;
  uint16_t math;  // bits of CudaMath
  int64_t outer, n, inner;
  int64_t length;  // of the complex transforms
  FftPasses first, second;
  double scale;
  const char* in;
  char* out;
  char* tables;  // fft_table_numbers(plan) complex numbers
  char* middle;  // fft_middle_bytes(plan): [outer][tiles of first.n][second.n] elements of tiles
  char* packed;  // [outer][length] complex numbers made of Hermitian ones, if not `whole`
  Rooms rooms;   // fft_room_bytes(plan) each
};

TT_INLINE constexpr int64_t fft_inputs(const FftPlan& p) {
  return p.kind == kFftHermitian ? p.n / 2 + 1 : p.n;
}
TT_INLINE constexpr int64_t fft_outputs(const FftPlan& p) {
  return p.kind == kFftReal ? p.n / 2 + 1 : p.n;
}
// Whether numbers are packed in pairs: real transforms of even length.
TT_INLINE constexpr bool fft_is_packed(const FftPlan& p) {
  return p.kind != kFftComplex && p.length != p.n;
}

// The sizes of tables, in complex numbers. Of passes: for each pass of radix r and m
// sub-transforms, m (r - 1) roots, then, if there is no code for r, r roots of its own.
TT_INLINE constexpr bool fft_has_code(int64_t radix) {
  return radix <= 5 || radix == 7 || radix == 8;
}
TT_INLINE constexpr int64_t fft_pass_numbers(const FftPasses& p) {
  int64_t numbers = 0;
  int64_t m = p.n;
  for (int32_t i = 0; i < p.n_passes; i++) {
    const int64_t r = p.radix[i];
    m /= r;
    numbers += m * (r - 1) + (fft_has_code(r) ? 0 : r);
  }
  return numbers;
}
// Where the parts of `tables` begin, in this order: roots of both steps, the roots that turn
// columns (up to kFftTurnTable numbers; beyond, they are computed), those of packing, Bluestein's
// chirp and its spectrum. Every call computes its tables, in its workspace: a vector of roots takes
// a few nanoseconds, so that they are a hundredth of 64 transforms of 4,096 and a third of one, and
// there is no cache to bound, lock and free.
constexpr int64_t kFftTurnTable = 65536;
struct FftTables {
  int64_t first, second, turns, packing, chirp, spectrum, end;
};
TT_INLINE constexpr FftTables fft_tables(const FftPlan& p) {
  FftTables t = {};
  t.second = fft_pass_numbers(p.first);
  t.turns = t.second + fft_pass_numbers(p.second);
  const int64_t lanes = fft_lanes(p.dtype);
  const int64_t turned = round_up(p.second.n, lanes) * p.first.n;
  t.packing = t.turns + (p.second.n && p.length <= kFftTurnTable ? turned : 0);
  t.chirp = t.packing + (fft_is_packed(p) ? p.length / 2 + 1 : 0);
  t.spectrum = t.chirp + (p.chirp ? p.n : 0);
  t.end = t.spectrum + (p.chirp ? p.first.n : 0);
  return t;
}
// Elements of a tile in a room.
TT_INLINE constexpr int64_t fft_tile_length(const FftPlan& p) {
  return max(p.first.n, p.second.n) + 1;
}

}  // namespace TT_NS
