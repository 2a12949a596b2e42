// conv_spread, conv_batch, conv_batch_weight: convolutions of few channels, whose vectors hold a
// pixel of kConvLanes images.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored \
    "-Wmaybe-uninitialized"  // gcc 12: of its own AVX-512 intrinsics (bug 105593)
#endif
#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/matmul/vec.h"
#include "plan/conv_plan.h"

TT_ISA_BEGIN

constexpr int kL = kLanes<float>;
constexpr int kN = int(kConvLanes);
constexpr int kCols = int(kConvBatchCols);
#if defined(__AVX512F__)
constexpr int kPixels = 4, kWide = 1,
              kTerms = 4;  // of a product's tile: pixels, vectors of a pixel; terms of a gradient's
#else
constexpr int kPixels = 1, kWide = 2, kTerms = 2;
#endif

// The i-th of n nearly equal pieces of [0, size) starts here.
TT_INLINE int64_t piece(int64_t size, int64_t n, int64_t i) { return size * i / n; }

// to[r * to_step + c] = from[c * from_step + r] for r, c < kN.
TT_INLINE void turn(float* to, int64_t to_step, const float* from, int64_t from_step) {
  for (int r = 0; r < kN; r += kL)
    for (int c = 0; c < kN; c += kL)
      transpose_tile<uint32_t, kL>(reinterpret_cast<char*>(to + r * to_step + c), to_step * 4,
                                   reinterpret_cast<const char*>(from + c * from_step + r),
                                   from_step * 4);
}
TT_INLINE void move(float* to, const float* from) {
  for (int i = 0; i < kN; i += kL) store(to + i, load(from + i));
}

// ---- spread ----

struct Spread {
  const ConvSpreadPlan& p;
  const int64_t block, plane;  // elements of a block, of an image's channel
  alignas(64) float tile[kN * kN], part[kN * kN];

  explicit Spread(const ConvSpreadPlan& plan)
      : p(plan), block(p.full[0] * p.full[1] * p.channels * kN), plane(p.size[0] * p.size[1]) {}

  void zero_border(float* to) {
    const int64_t step = p.channels * kN;
    for (int64_t r = 0; r < p.full[0]; r++) {
      const bool inside = uint64_t(r - p.lead[0]) < uint64_t(p.size[0]);
      for (int64_t c = 0; c < p.full[1]; c++, to += step) {
        if (inside && c == p.lead[1]) {
          c += p.size[1];
          to += p.size[1] * step;
        }
        if (c >= p.full[1]) break;
        for (int i = 0; i < kN; i += kL) store(to + i, Vec<float>{});
      }
    }
  }
  // Elements [e, e + n) of a channel of some images, each kN of the tile.
  void turn_part(const float* from, int64_t images, int64_t n) {
    for (int i = 0; i < kN * kN; i++) part[i] = 0;
    for (int64_t i = 0; i < images; i++)
      for (int64_t e = 0; e < n; e++) part[i * kN + e] = from[i * p.channels * plane + e];
    turn(tile, kN, part, kN);
  }
  void run(int64_t b, int64_t c) {
    const int64_t left = p.n - b * kN;
    const int64_t images = left < kN ? left : kN;
    const int64_t step = p.channels * kN;
    const float* from = reinterpret_cast<const float*>(p.src) + (b * kN * p.channels + c) * plane;
    float* to = reinterpret_cast<float*>(p.dst) + b * block + c * kN;
    const bool border = p.full[0] != p.size[0] || p.full[1] != p.size[1];
    const bool rows = p.full[1] == p.size[1];
    if (border) zero_border(to);
    to += (p.lead[0] * p.full[1] + p.lead[1]) * step;
    int64_t col = 0;
    for (int64_t e = 0, n; e < plane; e += n) {
      n = plane - e < kN ? plane - e : kN;
      const bool whole = images == kN && n == kN;
      if (whole && rows) {
        turn(to, step, from + e, p.channels * plane);
        to += n * step;
        continue;
      }
      if (whole) turn(tile, kN, from + e, p.channels * plane);
      else turn_part(from + e, images, n);
      for (int64_t i = 0; i < n; i++) {
        move(to, tile + i * kN);
        to += step;
        if (!rows && ++col == p.size[1]) {
          col = 0;
          to += (p.full[1] - p.size[1]) * step;
        }
      }
    }
  }
};

// ---- y ----

struct BatchTile {
  const float* x[kPixels];  // where their windows begin
  const float* w;           // [k0][run][kM]
  const float* start;       // kM: what the sums start with
  int64_t first, last;      // rows of the window
  int64_t from, to, run;    // terms of each; all of them
  int64_t row;              // elements between rows of the window
  float* out;               // [kM][kN pixels][kN]
};

template <int kM> TT_NOINLINE void batch_tile(const BatchTile& t) {
  for (int lane = 0; lane < kN; lane += kWide * kL) {
    Vec<float> acc[kM][kPixels][kWide];
    TT_UNROLL
    for (int m = 0; m < kM; m++) {
      TT_UNROLL
      for (int i = 0; i < kPixels * kWide; i++) acc[m][i / kWide][i % kWide] = splat(t.start[m]);
    }
    for (int64_t r = t.first; r < t.last; r++) {
      const float* x[kPixels];
      TT_UNROLL
      for (int i = 0; i < kPixels; i++) x[i] = t.x[i] + r * t.row + lane;
      const float* w = t.w + (r * t.run + t.from) * kM;
      for (int64_t k = t.from * kN; k < t.to * kN; k += kN, w += kM) {
        Vec<float> v[kPixels][kWide];
        TT_UNROLL
        for (int i = 0; i < kPixels * kWide; i++)
          v[i / kWide][i % kWide] = load(x[i / kWide] + k + i % kWide * kL);
        TT_UNROLL
        for (int m = 0; m < kM; m++) {
          const Vec<float> s = splat(w[m]);
          TT_UNROLL
          for (int i = 0; i < kPixels * kWide; i++)
            acc[m][i / kWide][i % kWide] =
                fma(s, v[i / kWide][i % kWide], acc[m][i / kWide][i % kWide]);
        }
      }
    }
    TT_UNROLL
    for (int m = 0; m < kM; m++) {
      TT_UNROLL
      for (int i = 0; i < kPixels * kWide; i++)
        store(t.out + (m * kN + i / kWide) * kN + lane + i % kWide * kL,
              acc[m][i / kWide][i % kWide]);
    }
  }
}

constexpr void (*kBatchTiles[kCols])(const BatchTile&) = {
    batch_tile<1>, batch_tile<2>, batch_tile<3>, batch_tile<4>, batch_tile<5>, batch_tile<6>};

// The first of the taps that, at a multiple of dil behind `at`, are not before lead; how many of k
// lie before end.
TT_INLINE int64_t tap_from(int64_t lead, int64_t at, int64_t dil) {
  return at >= lead ? 0 : (lead - at + dil - 1) / dil;
}
TT_INLINE int64_t tap_to(int64_t end, int64_t at, int64_t dil, int64_t k) {
  const int64_t n = at >= end ? 0 : (end - at - 1) / dil + 1;
  return n < k ? n : k;
}

struct BatchUnit {
  const ConvBatchPlan& p;
  const ConvBatchShape& s;
  BatchTile tile[kN / kPixels];  // of the pixels at hand
  alignas(64) float sums[kCols * kN * kN], turned[kN * kN];

  explicit BatchUnit(const ConvBatchPlan& plan) : p(plan), s(plan.s) {}

  // The part of the window that some of the pixels [at, at + kPixels) see of the image itself.
  void cut(BatchTile* t, int64_t at, int64_t pixels) const {
    const int64_t end = at + kPixels < pixels ? at + kPixels : pixels;
    const int64_t r0 = at / s.y[1];
    const int64_t r1 = (end - 1) / s.y[1];
    const int64_t c0 = r0 == r1 ? at % s.y[1] : 0;
    const int64_t c1 = r0 == r1 ? (end - 1) % s.y[1] : s.y[1] - 1;
    t->first = tap_from(s.lead[0], r1 * s.stride[0], s.dil);
    t->last = tap_to(s.lead[0] + s.x[0], r0 * s.stride[0], s.dil, s.k[0]);
    t->from = tap_from(s.lead[1], c1 * s.stride[1], 1) * s.ci;
    t->to = tap_to(s.lead[1] + s.x[1], c0 * s.stride[1], 1, s.k[1]) * s.ci;
  }
  void place(const float* image, int64_t begin, int64_t end) {
    const int64_t pixel = s.ci * kN;
    const int64_t row = s.full[1] * pixel;
    int64_t r = begin / s.y[1];
    int64_t c = begin % s.y[1];
    for (int64_t i = 0; i < conv_round_up(end - begin); i++) {
      tile[i / kPixels].x[i % kPixels] = image + r * s.stride[0] * row + c * s.stride[1] * pixel;
      if (begin + i + 1 < end && ++c == s.y[1]) {
        c = 0;
        r++;
      }
    }
    const bool border = s.full[0] != s.x[0] || s.full[1] != s.x[1];
    for (int64_t i = 0; begin + i * kPixels < end; i++) {
      BatchTile& t = tile[i];
      t.first = 0;
      t.last = s.k[0];
      t.from = 0;
      t.to = t.run = s.run();
      t.row = s.dil * row;
      t.out = sums + i * kPixels * kN;
      if (border) cut(&t, begin + i * kPixels, end);
    }
  }
  static int64_t conv_round_up(int64_t n) { return (n + kPixels - 1) / kPixels * kPixels; }

  // n pixels from `begin` on of channel c, of the images of block b.
  void put(int64_t b, int64_t c, int64_t begin, int64_t n, const float* from) {
    const int64_t plane = s.y[0] * s.y[1];
    const int64_t left = s.n - b * kN;
    const int64_t images = left < kN ? left : kN;
    float* to = reinterpret_cast<float*>(p.dst) + (b * kN * s.co + c) * plane + begin;
    if (n == kN && images == kN) return turn(to, s.co * plane, from, kN);
    turn(turned, kN, from, kN);
    for (int64_t i = 0; i < images; i++)
      for (int64_t e = 0; e < n; e += kL)
        store(to + i * s.co * plane + e, load(turned + i * kN + e),
              Part<float>(int(n - e < kL ? n - e : kL)));
  }
  void run(int64_t b, int64_t begin) {
    const int64_t pixels = s.y[0] * s.y[1];
    const int64_t end = begin + kN < pixels ? begin + kN : pixels;
    const int64_t tiles = s.col_tiles();
    place(reinterpret_cast<const float*>(p.src) + b * s.full[0] * s.full[1] * s.ci * kN, begin,
          end);
    const float* w = reinterpret_cast<const float*>(p.packed);
    const float* bias = reinterpret_cast<const float*>(p.bias);
    for (int64_t j = 0; j < tiles; j++) {
      const int64_t c = piece(s.co, tiles, j);
      const int64_t width = piece(s.co, tiles, j + 1) - c;
      float start[kCols];
      for (int64_t m = 0; m < width; m++) start[m] = bias ? bias[c + m] : 0;
      for (int64_t i = 0; begin + i * kPixels < end; i++) {
        tile[i].w = w + c * s.k[0] * s.run();
        tile[i].start = start;
        kBatchTiles[width - 1](tile[i]);
      }
      for (int64_t m = 0; m < width; m++) put(b, c + m, begin, end - begin, sums + m * kN * kN);
    }
  }
};

void pack_batch(const ConvBatchPlan& p) {
  const ConvBatchShape& s = p.s;
  const float* w = reinterpret_cast<const float*>(p.weight);
  float* to = reinterpret_cast<float*>(p.packed);
  for (int64_t j = 0, tiles = s.col_tiles(); j < tiles; j++)
    for (int64_t r = 0; r < s.k[0]; r++)
      for (int64_t k = 0; k < s.run(); k++)
        for (int64_t c = piece(s.co, tiles, j); c < piece(s.co, tiles, j + 1); c++)
          *to++ = w[c * p.w_co + k % s.ci * p.w_ci + r * p.w_k[0] + k / s.ci * p.w_k[1]];
}

// ---- the weight's gradient ----

struct SlopeTile {
  const float *x, *y;  // of the first pixel, row and channel of its window; and channel
  int64_t rows, cols;
  int64_t x_row, x_col, y_row, y_col;  // elements between pixels
  float* sums;                         // [kM][kTerms][kN]
  bool first;
};

// sums = or += products of kM channels of y and kTerms elements of x's windows, lane by lane.
template <int kM> TT_NOINLINE void slope_tile(const SlopeTile& t) {
  for (int lane = 0; lane < kN; lane += kL) {
    Vec<float> acc[kM][kTerms];
    TT_UNROLL
    for (int i = 0; i < kM * kTerms; i++)
      acc[i / kTerms][i % kTerms] = t.first ? Vec<float>{} : load(t.sums + i * kN + lane);
    for (int64_t r = 0; r < t.rows; r++) {
      const float* x = t.x + r * t.x_row + lane;
      const float* y = t.y + r * t.y_row + lane;
      for (int64_t c = 0; c < t.cols; c++, x += t.x_col, y += t.y_col) {
        Vec<float> v[kTerms];
        TT_UNROLL
        for (int k = 0; k < kTerms; k++) v[k] = load(x + k * kN);
        TT_UNROLL
        for (int m = 0; m < kM; m++) {
          const Vec<float> g = load(y + m * kN);
          TT_UNROLL
          for (int k = 0; k < kTerms; k++) acc[m][k] = fma(g, v[k], acc[m][k]);
        }
      }
    }
    TT_UNROLL
    for (int i = 0; i < kM * kTerms; i++)
      store(t.sums + i * kN + lane, acc[i / kTerms][i % kTerms]);
  }
}

constexpr void (*kSlopeTiles[kCols])(const SlopeTile&) = {
    slope_tile<1>, slope_tile<2>, slope_tile<3>, slope_tile<4>, slope_tile<5>, slope_tile<6>};

struct SlopeUnit {
  const ConvBatchWeightPlan& p;
  const ConvBatchShape& s;
  alignas(64) float sums[kCols * (kConvBatchRun + kTerms) * kN], part[kN * kN];

  explicit SlopeUnit(const ConvBatchWeightPlan& plan) : p(plan), s(plan.s) {}

  // Adds a block's rows [r0, r1) of y: channels [c, c + width), row k of the windows.
  void add(int64_t b, int64_t r0, int64_t r1, int64_t c, int64_t width, int64_t k, bool first) {
    const int64_t x_pixel = s.ci * kN;
    const int64_t x_row = s.full[1] * x_pixel;
    const int64_t y_pixel = s.co * kN;
    const int64_t y_row = s.y[1] * y_pixel;
    const float* x = reinterpret_cast<const float*>(p.src) +
                     (b * s.full[0] + r0 * s.stride[0] + k * s.dil) * x_row;
    const float* y = reinterpret_cast<const float*>(p.y) + (b * s.y[0] + r0) * y_row + c * kN;
    for (int64_t e = 0; e < s.run(); e += kTerms)
      kSlopeTiles[width - 1]({x + e * kN, y, r1 - r0, s.y[1], s.stride[0] * x_row,
                              s.stride[1] * x_pixel, y_row, y_pixel, sums + e * width * kN, first});
  }
  // The sums of the lanes.
  void fold(int64_t width, float* out, int64_t out_row) {
    const int64_t items = (s.run() + kTerms - 1) / kTerms * kTerms * width;
    for (int64_t i = 0; i < items; i += kN) {
      for (int64_t k = i; k < items && k < i + kN; k++) move(part + (k - i) * kN, sums + k * kN);
      alignas(64) float turned[kN * kN], total[kN];
      turn(turned, kN, part, kN);
      for (int n = kN / 2; n; n /= 2)
        for (int r = 0; r < n; r++)
          for (int v = 0; v < kN; v += kL)
            store(turned + r * kN + v,
                  Vec<float>(load(turned + r * kN + v) + load(turned + (r + n) * kN + v)));
      move(total, turned);
      for (int64_t k = i; k < items && k < i + kN; k++) {
        const int64_t e = k / (kTerms * width) * kTerms + k % kTerms;
        const int64_t m = k / kTerms % width;
        if (e < s.run()) out[m * out_row + e] = total[k - i];
      }
    }
  }
  void run(int64_t split, int64_t j, int64_t k) {
    const int64_t tiles = s.col_tiles();
    const int64_t c = piece(s.co, tiles, j);
    const int64_t width = piece(s.co, tiles, j + 1) - c;
    const int64_t b0 = piece(s.blocks(), p.splits, split);
    const int64_t b1 = piece(s.blocks(), p.splits, split + 1);
    for (int64_t b = b0; b < b1; b++)
      for (int64_t r = 0; r < s.y[0]; r += p.rows)
        add(b, r, r + p.rows < s.y[0] ? r + p.rows : s.y[0], c, width, k, b == b0 && r == 0);
    const int64_t row = s.k[0] * s.run();
    fold(width, reinterpret_cast<float*>(p.sums) + (split * s.co + c) * row + k * s.run(), row);
  }
};

void add_slopes(const ConvBatchWeightPlan& p) {
  const ConvBatchShape& s = p.s;
  const int64_t row = s.k[0] * s.run();
  const int64_t all = s.co * row;
  const float* from = reinterpret_cast<const float*>(p.sums);
  for (int64_t c = 0; c < s.co; c++)
    for (int64_t r = 0; r < s.k[0]; r++)
      for (int64_t k = 0; k < s.run(); k++, from++) {
        float sum = *from;
        for (int64_t i = 1; i < p.splits; i++) sum += from[i * all];
        reinterpret_cast<float*>(
            p.dst)[c * p.w_co + k % s.ci * p.w_ci + r * p.w_k[0] + k / s.ci * p.w_k[1]] = sum;
      }
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(conv_spread)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvSpreadPlan& p = *static_cast<const ConvSpreadPlan*>(plan);
  Spread spread(p);
  for (int64_t u = begin; u < end; u++) spread.run(u / p.channels, u % p.channels);
  return TT_OK;
}

TT_KERNEL(conv_batch)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvBatchPlan& p = *static_cast<const ConvBatchPlan*>(plan);
  if (p.run.stage == 0) {
    pack_batch(p);
    return TT_OK;
  }
  const int64_t pieces = (p.s.y[0] * p.s.y[1] + kN - 1) / kN;
  BatchUnit unit(p);
  for (int64_t u = begin; u < end; u++) unit.run(u / pieces, u % pieces * kN);
  return TT_OK;
}

TT_KERNEL(conv_batch_weight)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvBatchWeightPlan& p = *static_cast<const ConvBatchWeightPlan*>(plan);
  if (p.run.stage == 1) {
    add_slopes(p);
    return TT_OK;
  }
  const int64_t tiles = p.s.col_tiles();
  SlopeUnit unit(p);
  for (int64_t u = begin; u < end; u++)
    unit.run(u / p.s.k[0] / tiles, u / p.s.k[0] % tiles, u % p.s.k[0]);
  return TT_OK;
}

TT_ENTRY_END
