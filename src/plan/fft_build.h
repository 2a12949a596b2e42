// Builds the plans of Fourier transforms.
#pragma once

#include "plan/fft_plan.h"
#include "plan/rows.h"

namespace TT_NS {

// Factorises n into radices; returns what remains: 1, or a product of primes above kMaxFftRadix.
inline int64_t build_fft_passes(FftPasses* p, int64_t n) {
  p->n = n;
  p->n_passes = 0;
  int64_t twos = 0;
  for (; n % 2 == 0; n /= 2) twos++;
  // 8s and, for what is not divisible by 3, one or two 4s or a 2
  while (twos > 4 || twos == 3) {
    p->radix[p->n_passes++] = 8;
    twos -= 3;
  }
  for (; twos >= 2; twos -= 2) p->radix[p->n_passes++] = 4;
  if (twos) p->radix[p->n_passes++] = 2;
  for (int64_t r = 3; r <= kMaxFftRadix; r += 2)
    for (; n % r == 0; n /= r) p->radix[p->n_passes++] = int32_t(r);
  return n;
}
inline bool is_fft_smooth(int64_t n) {
  FftPasses passes;
  return build_fft_passes(&passes, n) == 1;
}
// The smallest product of 2, 3 and 5 that is at least n.
inline int64_t fft_smooth_length(int64_t n) {
  int64_t best = 1;
  while (best < n) best *= 2;
  for (int64_t five = 1; five < best; five *= 5)
    for (int64_t three = five; three < best; three *= 3) {
      int64_t length = three;
      while (length < n) length *= 2;
      best = min(best, length);
    }
  return best;
}

// Lengths from which a transform is computed in two steps, and up to which Bluestein's algorithm
// runs in tiles.
constexpr int64_t kMinFftSplit = 64, kMaxFftChirp = 2048, kMaxFftTile = 4096;

// The share of lanes in use if n transforms are distributed over tiles.
inline double fft_lane_use(int64_t n, int64_t lanes) {
  return double(n) / double(round_up(n, lanes));
}
inline double fft_split_use(int64_t n, int64_t columns, int64_t lanes) {
  return fft_lane_use(columns, lanes) * fft_lane_use(n / columns, lanes);
}
// The divisor of n up to its square root, and not below an eighth of it, with the best use of
// lanes; the largest of equal ones; 1 if there is none from 8 on.
inline int64_t fft_split(int64_t n, int64_t lanes) {
  int64_t best = 1;
  double use = 0;
  for (int64_t d = 8; d * d <= n; d++) {
    if (n % d || n / d > 64 * d) continue;
    if (fft_split_use(n, d, lanes) < use) continue;
    best = d;
    use = fft_split_use(n, d, lanes);
  }
  return best;
}
// Whether two steps are faster than tiles of rows. Tiles leave the first-level cache from about 512
// elements on, and a transform in two steps reads its numbers twice.
inline bool fft_should_split(int64_t n, int64_t columns, int64_t rows, int64_t lanes) {
  const double tiles = fft_lane_use(rows, lanes) * (n <= 512 ? 1 : 0.6);
  return n > kMaxFftTile || 0.8 * fft_split_use(n, columns, lanes) > tiles;
}

inline int64_t fft_middle_numbers(const FftPlan* p) {  // of one transform, in complex numbers
  return p->second.n ? round_up(p->first.n, fft_lanes(p->dtype)) * p->second.n : 0;
}
// Two tiles, of transforms in two steps three; of a whole one also its middle and packed numbers.
inline int64_t fft_room_bytes(const FftPlan* p) {
  const int64_t tiles = p->second.n ? 3 : 2;
  int64_t bytes = tiles * 2 * fft_tile_length(*p) * kFftTileBytes;
  if (p->whole) bytes += (fft_middle_numbers(p) + p->length) * 2 * kItemSize[p->dtype];
  return bytes;
}

// Sets all fields but the pointers. Sizes are not 0; a length that is not smooth is at most
// kMaxFftChirp.
inline void build_fft(FftPlan* p, int32_t dtype, FftKind kind, bool inverse, int64_t outer,
                      int64_t n, int64_t inner, double scale) {
  p->dtype = dtype;
  p->math = 0;
  p->kind = kind;
  p->inverse = inverse;
  p->outer = outer;
  p->n = n;
  p->inner = inner;
  p->scale = scale;
  p->length = kind != kFftComplex && n % 2 == 0 ? n / 2 : n;
  p->chirp = !is_fft_smooth(p->length);
  if (p->chirp) p->length = n;
  p->whole = 0;
  p->second.n = 0;
  p->second.n_passes = 0;
  const int64_t lanes = fft_lanes(dtype);
  const int64_t rows = outer * inner;
  const bool splits = inner == 1 && !p->chirp && (kind == kFftComplex || fft_is_packed(*p));
  const int64_t columns = splits && p->length >= kMinFftSplit ? fft_split(p->length, lanes) : 1;
  const int64_t item = 2 * kItemSize[dtype];
  one_stage(&p->run, 1, 1);
  p->run.n = 4;
  if (columns == 1 || !fft_should_split(p->length, columns, rows, lanes)) {
    build_fft_passes(&p->first, p->chirp ? fft_smooth_length(2 * n - 1) : p->length);
    p->run.units[1] = ceil_div(rows, lanes);
    p->run.grain[1] = row_grain(8 * p->first.n * lanes);
    return;
  }
  build_fft_passes(&p->first, columns);
  build_fft_passes(&p->second, p->length / columns);
  const int64_t split_from = 32768;
  p->whole = rows >= 4 ? p->length * item <= (1 << 21) : p->length < split_from;
  if (p->whole) {
    p->run.units[1] = rows;
    p->run.grain[1] = row_grain(8 * p->length);
    return;
  }
  const int32_t begin = p->kind == kFftHermitian && fft_is_packed(*p) ? 2 : 1;
  const int64_t column_tiles = ceil_div(p->second.n, lanes);
  const int64_t row_tiles = ceil_div(p->first.n, lanes);
  if (begin == 2) {
    p->run.units[1] = rows;
    p->run.grain[1] = row_grain(4 * p->length);
  }
  p->run.units[begin] = rows * column_tiles;
  p->run.grain[begin] = row_grain(8 * p->first.n * lanes);
  p->run.units[begin + 1] = rows * row_tiles;
  p->run.grain[begin + 1] = row_grain(8 * p->second.n * lanes);
  if (p->kind == kFftReal && fft_is_packed(*p)) {
    p->run.units[3] = rows;
    p->run.grain[3] = row_grain(4 * p->length);
  }
}

inline int64_t fft_table_bytes(const FftPlan* p) {
  return fft_tables(*p).end * 2 * kItemSize[p->dtype];
}
// The bytes of `middle` and of `packed`, which follows it.
inline int64_t fft_middle_bytes(const FftPlan* p) {
  if (p->whole) return 0;
  return p->outer * fft_middle_numbers(p) * 2 * kItemSize[p->dtype];
}
inline int64_t fft_packed_bytes(const FftPlan* p) {
  if (p->whole || !p->second.n || p->kind != kFftHermitian || !fft_is_packed(*p)) return 0;
  return p->outer * p->length * 2 * kItemSize[p->dtype];
}

}  // namespace TT_NS
