// conv_interleave, conv_interleaved, conv_interleaved_weight: convolutions of few channels. A
// vector holds the same element of several images, so that no lane is idle however few the channels
// are:
//
//   src          (n, channels, rows, columns)
//                  | conv_interleave: transposes 16 images x 16 columns
//   interleaved  [block of 16 images][rows + border][columns + border][channels][16 images]
//                  | conv_interleaved: a tile of kTilePixels pixels, or of one, x up to 6 channels
//                  |   acc[channel][pixel] += weight (one number) * x (a vector of images)
//   dst          (n, channels, rows, columns), transposed back 16 pixels at a time
//
// A window's row is one run of k1 * ci vectors, as columns and channels are contiguous.
#include "base/platform.h"
TT_IGNORE_UNINITIALIZED
#include "kernels/cpu/conv/image_blocks.h"
#include "kernels/cpu/matmul/vec.h"
#include "kernels/cpu/simd/tile_sums.h"
#include "plan/conv_plan.h"

TT_ISA_BEGIN

constexpr int kL = kLanes<float>;
static_assert(kImages == int(kConvLanes));
constexpr int kTileCols = int(kConvInterleavedCols);  // channels of y of a tile
#if TT_VEC_BYTES == 64
constexpr int kTilePixels = 4;  // pixels of y of a wide tile
constexpr int kTileVecs = 1;    // vectors of images that it computes at a time
constexpr int kTileTerms = 4;   // elements of a window of a tile of the weight's gradient
constexpr int kFewTerms = 3;    // and of a narrow one
#else
constexpr int kTilePixels = 1;
constexpr int kTileVecs = 2;
constexpr int kTileTerms = 2;
constexpr int kFewTerms = TT_VEC_BYTES == 32 ? 1 : kTileTerms;  // of 16 bytes: none are narrow
#endif

// Start of the i-th of n nearly equal pieces of [0, size).
TT_INLINE int64_t piece(int64_t size, int64_t n, int64_t i) { return size * i / n; }

// ---- conv_interleave ----

struct Interleaver {
  const ConvInterleavePlan& p;
  const int64_t block, plane;  // elements of a block, of an image's channel
  const int64_t image;         // elements of an image
  alignas(64) float tile[kImages * kImages], part[kImages * kImages];

  explicit Interleaver(const ConvInterleavePlan& plan)
      : p(plan),
        block(p.full[0] * p.full[1] * p.channels * kImages),
        plane(p.size[0] * p.size[1]),
        image(p.channels * plane) {}

  void zero_border(float* to) {
    const int64_t step = p.channels * kImages;
    for (int64_t r = 0; r < p.full[0]; r++) {
      const bool inside = uint64_t(r - p.lead[0]) < uint64_t(p.size[0]);
      for (int64_t c = 0; c < p.full[1]; c++, to += step) {
        if (inside && c == p.lead[1]) {
          c += p.size[1];
          to += p.size[1] * step;
        }
        if (c >= p.full[1]) break;
        for (int i = 0; i < kImages; i += kL) store(to + i, Vec<float>{});
      }
    }
  }
  // Transposes n elements of a channel of some images to `tile`; the other images are 0.
  void transpose_part(const float* from, int64_t images, int64_t n) {
    for (int64_t i = 0; i < kImages; i++)
      for (int64_t e = 0; e < kImages; e += kL) {
        const int lanes = i < images ? int(clamp<int64_t>(n - e, 0, kL)) : 0;
        const float* row = lanes ? from + i * image + e : from;
        store(part + i * kImages + e, load(row, Part<float>(lanes)));
      }
    transpose_block<kImages>(tile, kImages, part, kImages);
  }
  // Copies part c of the rows of block b, which is interleaved, into the border.
  void copy_rows(int64_t b, int64_t c) {
    const int64_t step = p.channels * kImages;
    const int64_t row = p.size[1] * step;
    const int64_t lead = p.lead[1] * step;
    const float* from = reinterpret_cast<const float*>(p.src) + b * p.size[0] * row;
    float* to = reinterpret_cast<float*>(p.dst) + b * block;
    for (int64_t r = piece(p.full[0], p.channels, c); r < piece(p.full[0], p.channels, c + 1);
         r++) {
      float* line = to + r * p.full[1] * step;
      float* const end = line + p.full[1] * step;
      const int64_t at = r - p.lead[0];
      if (uint64_t(at) < uint64_t(p.size[0])) {
        for (float* x = line; x < line + lead; x += kL) store(x, Vec<float>{});
        line += lead;
        for (int64_t i = 0; i < row; i += kImages) copy_images(line + i, from + at * row + i);
        line += row;
      }
      for (; line < end; line += kL) store(line, Vec<float>{});
    }
  }
  // Channel c of block b.
  void run(int64_t b, int64_t c) {
    if (p.from_interleaved) return copy_rows(b, c);
    const int64_t images = min<int64_t>(p.n - b * kImages, kImages);
    const int64_t step = p.channels * kImages;
    const float* from =
        reinterpret_cast<const float*>(p.src) + (b * kImages * p.channels + c) * plane;
    float* to = reinterpret_cast<float*>(p.dst) + b * block + c * kImages;
    const bool border = p.full[0] != p.size[0] || p.full[1] != p.size[1];
    const bool gapless = p.full[1] == p.size[1];  // no border within the rows
    if (border) zero_border(to);
    to += (p.lead[0] * p.full[1] + p.lead[1]) * step;
    int64_t col = 0;
    for (int64_t e = 0, n; e < plane; e += n) {
      n = min<int64_t>(plane - e, kImages);
      const bool whole = images == kImages && n == kImages;
      if (whole && gapless) {
        transpose_block<kImages>(to, step, from + e, image);
        to += n * step;
        continue;
      }
      if (whole) transpose_block<kImages>(tile, kImages, from + e, image);
      else transpose_part(from + e, images, n);
      for (int64_t i = 0; i < n; i++) {
        copy_images(to, tile + i * kImages);
        to += step;
        if (!gapless && ++col == p.size[1]) {
          col = 0;
          to += (p.full[1] - p.size[1]) * step;
        }
      }
    }
  }
};

// ---- conv_interleaved ----

struct PixelTile {
  const float* x[kTilePixels];     // the first element that each pixel reads of its window
  const float* w;                  // [k0][run][kM], from the weight of that element on
  const float* start;              // [kM]: what the sums start with
  int64_t rows, terms;             // of the window that are read
  int64_t run;                     // terms of a row of the window
  int64_t row;                     // elements between rows of the window
  float* out;                      // of the first pixel and channel: a vector of images
  int64_t out_pixel, out_channel;  // elements between pixels and channels of out
};

// acc: [channel][pixel and vector of images], of images `lane` and following.
template <class Unit, int kM, int kAcc>
TT_INLINE bool pixel_sums(const PixelTile& t, int lane, Vec<float> (&acc)[kM][kAcc]) {
  constexpr int kPixels = kAcc / kTileVecs;
  TT_UNROLL
  for (int m = 0; m < kM; m++) {
    TT_UNROLL
    for (int i = 0; i < kAcc; i++) acc[m][i] = splat(t.start[m]);
  }
  for (int64_t r = 0; r < t.rows; r++) {
    const float* x[kPixels];
    TT_UNROLL
    for (int i = 0; i < kPixels; i++) x[i] = t.x[i] + r * t.row + lane;
    const float* w = t.w + r * t.run * kM;
    for (int64_t k = 0; k < t.terms * kImages; k += kImages, w += kM) {
      Vec<float> v[kAcc];
      TT_UNROLL
      for (int i = 0; i < kAcc; i++) v[i] = load(x[i / kTileVecs] + k + i % kTileVecs * kL);
      TT_UNROLL
      for (int m = 0; m < kM; m++) {
        const auto s = Unit::factor(w[m]);
        TT_UNROLL
        for (int i = 0; i < kAcc; i++) acc[m][i] = Unit::add_product(s, v[i], acc[m][i]);
      }
    }
  }
  return true;
}

template <int kM, int kPixels> TT_NOINLINE void pixel_tile(const PixelTile& t) {
  constexpr int kAcc = kPixels * kTileVecs;
  for (int lane = 0; lane < kImages; lane += kTileVecs * kL) {
    Vec<float> acc[kM][kAcc];
    sum_tile(acc, [&t, lane](auto unit, auto& sums)
                      TT_INLINE_BODY { return pixel_sums<decltype(unit)>(t, lane, sums); });
    TT_UNROLL
    for (int m = 0; m < kM; m++) {
      TT_UNROLL
      for (int i = 0; i < kAcc; i++)
        store(t.out + m * t.out_channel + i / kTileVecs * t.out_pixel + lane + i % kTileVecs * kL,
              acc[m][i]);
    }
  }
}

constexpr void (*kPixelTiles[kTileCols])(const PixelTile&) = {
    pixel_tile<1, kTilePixels>, pixel_tile<2, kTilePixels>, pixel_tile<3, kTilePixels>,
    pixel_tile<4, kTilePixels>, pixel_tile<5, kTilePixels>, pixel_tile<6, kTilePixels>};
constexpr void (*kSinglePixels[kTileCols])(const PixelTile&) = {pixel_tile<1, 1>, pixel_tile<2, 1>,
                                                                pixel_tile<3, 1>, pixel_tile<4, 1>,
                                                                pixel_tile<5, 1>, pixel_tile<6, 1>};

// Taps [from, to) of a window along one dimension.
struct Taps {
  int64_t from, to;
  TT_INLINE bool operator!=(const Taps& b) const { return from != b.from || to != b.to; }
  TT_INLINE Taps operator|(const Taps& b) const { return {min(from, b.from), max(to, b.to)}; }
};
// Which of k taps, `dil` apart from `at` on, read the image [0, size) and not its border.
TT_INLINE Taps taps_inside(int64_t at, int64_t size, int64_t k, int64_t dil) {
  const int64_t from = at >= 0 ? 0 : min(ceil_div(-at, dil), k);
  const int64_t to = at >= size ? 0 : min((size - at - 1) / dil + 1, k);
  return {from, max(from, to)};
}

// kImages pixels of a block of images, all channels.
struct InterleavedUnit {
  struct Window {  // of a pixel
    Taps rows, cols;
    int64_t at;  // elements from the block to its first tap, which the border may lack
  };
  struct Tile {
    int64_t pixel, n;  // of the unit
    int64_t weight;    // terms of the packed weight before the first that is read
    PixelTile args;
  };
  const ConvInterleavedPlan& p;
  const ConvInterleavedShape& s;
  bool inside = true;  // all windows are inside of the image
  bool bordered;       // zeros surround it
  int64_t n_tiles = 0;
  Window windows[kImages];
  Tile tiles[kImages];
  alignas(64) float sums[kTileCols * kImages * kImages], transposed[kImages * kImages];

  explicit InterleavedUnit(const ConvInterleavedPlan& plan)
      : p(plan), s(plan.s), bordered(s.full[0] != s.x[0] || s.full[1] != s.x[1]) {
    for (int d = 0; d < 2; d++) {
      const int64_t reach = (s.k[d] - 1) * (d == 0 ? s.dil : 1);
      inside &= s.lead[d] == 0 && (s.y[d] - 1) * s.stride[d] + reach < s.x[d];
    }
  }

  Taps taps(int d, int64_t o) const {
    if (inside) return {0, s.k[d]};
    return taps_inside(o * s.stride[d] - s.lead[d], s.x[d], s.k[d], d == 0 ? s.dil : 1);
  }
  // Loads pixels [begin, end) as the current windows.
  void set_windows(int64_t begin, int64_t end) {
    const int64_t pixel = s.ci * kImages;
    const int64_t row = s.full[1] * pixel;
    const int64_t origin = bordered ? 0 : s.lead[0] * row + s.lead[1] * pixel;
    int64_t r = begin / s.y[1];
    int64_t c = begin % s.y[1];
    Taps rows = taps(0, r);
    for (int64_t i = 0; i < end - begin; i++) {
      windows[i] = {rows, taps(1, c), r * s.stride[0] * row + c * s.stride[1] * pixel - origin};
      if (++c < s.y[1]) continue;
      c = 0;
      rows = taps(0, ++r);
    }
  }
  // Whether the pixels [i, i + kTilePixels) of n are a tile, whose pixels read the same taps:
  // without a border their windows must be cut alike.
  bool is_tile(int64_t i, int64_t n) const {
    if (i + kTilePixels > n) return false;
    const Window& first = windows[i];
    for (int64_t j = i + 1; j < i + kTilePixels && !bordered; j++)
      if (windows[j].rows != first.rows || windows[j].cols != first.cols) return false;
    return true;
  }
  // Divides n current pixels into tiles and single ones.
  void set_tiles(const float* block, int64_t n) {
    const int64_t pixel = s.ci * kImages;
    const int64_t row = s.full[1] * pixel;
    n_tiles = 0;
    for (int64_t i = 0; i < n;) {
      Tile& t = tiles[n_tiles++];
      t.pixel = i;
      t.n = is_tile(i, n) ? kTilePixels : 1;
      Taps rows = windows[i].rows;
      Taps cols = windows[i].cols;
      for (int64_t j = i + 1; j < i + t.n; j++) {
        rows = rows | windows[j].rows;
        cols = cols | windows[j].cols;
      }
      for (int64_t j = 0; j < t.n; j++)
        t.args.x[j] = block + windows[i + j].at + rows.from * s.dil * row + cols.from * pixel;
      t.args.rows = rows.to - rows.from;
      t.args.terms = (cols.to - cols.from) * s.ci;
      t.args.run = s.run();
      t.args.row = s.dil * row;
      t.weight = rows.from * s.run() + cols.from * s.ci;
      i += t.n;
    }
  }

  // Where a tile of the pixels from `begin` on is computed, for channels c and up of block b: in
  // its place if the result is interleaved, else in `sums`.
  void set_out(Tile* t, int64_t b, int64_t c, int64_t begin) {
    PixelTile& to = t->args;
    if (p.to_interleaved) {
      const int64_t row = b * s.y[0] * s.y[1] + begin + t->pixel;
      to.out = reinterpret_cast<float*>(p.dst) + (row * s.co + c) * kImages;
      to.out_pixel = s.co * kImages;
      to.out_channel = kImages;
    } else {
      to.out = sums + t->pixel * kImages;
      to.out_pixel = kImages;
      to.out_channel = kImages * kImages;
    }
  }
  // Writes n pixels from `begin` on of channel c as images of block b.
  void write(int64_t b, int64_t c, int64_t begin, int64_t n, const float* from) {
    const int64_t plane = s.y[0] * s.y[1];
    const int64_t images = min<int64_t>(s.n - b * kImages, kImages);
    float* to = reinterpret_cast<float*>(p.dst) + (b * kImages * s.co + c) * plane + begin;
    if (n == kImages && images == kImages)
      return transpose_block<kImages>(to, s.co * plane, from, kImages);
    transpose_block<kImages>(transposed, kImages, from, kImages);
    for (int64_t i = 0; i < images; i++)
      for (int64_t e = 0; e < n; e += kL)
        store(to + i * s.co * plane + e, load(transposed + i * kImages + e),
              Part<float>(int(min<int64_t>(n - e, kL))));
  }
  void run(int64_t b, int64_t begin) {
    const int64_t end = min<int64_t>(begin + kImages, s.y[0] * s.y[1]);
    const int64_t col_tiles = s.col_tiles();
    const int64_t block_items = s.full[0] * s.full[1] * s.ci * kImages;
    set_windows(begin, end);
    set_tiles(reinterpret_cast<const float*>(p.src) + b * block_items, end - begin);
    const float* w = reinterpret_cast<const float*>(p.packed);
    const float* bias = reinterpret_cast<const float*>(p.bias);
    for (int64_t j = 0; j < col_tiles; j++) {
      const int64_t c = piece(s.co, col_tiles, j);
      const int64_t width = piece(s.co, col_tiles, j + 1) - c;
      float start[kTileCols];
      for (int64_t m = 0; m < width; m++) start[m] = bias ? bias[c + m] : 0;
      for (int64_t i = 0; i < n_tiles; i++) {
        Tile& t = tiles[i];
        t.args.w = w + c * s.k[0] * s.run() + t.weight * width;
        t.args.start = start;
        set_out(&t, b, c, begin);
        (t.n == 1 ? kSinglePixels : kPixelTiles)[width - 1](t.args);
      }
      if (p.to_interleaved) continue;
      for (int64_t m = 0; m < width; m++)
        write(b, c + m, begin, end - begin, sums + m * kImages * kImages);
    }
  }
};

void pack_interleaved(const ConvInterleavedPlan& p) {
  const ConvInterleavedShape& s = p.s;
  const float* w = reinterpret_cast<const float*>(p.weight);
  float* to = reinterpret_cast<float*>(p.packed);
  for (int64_t j = 0, tiles = s.col_tiles(); j < tiles; j++)
    for (int64_t r = 0; r < s.k[0]; r++)
      for (int64_t k = 0; k < s.run(); k++)
        for (int64_t c = piece(s.co, tiles, j); c < piece(s.co, tiles, j + 1); c++)
          *to++ = w[c * p.w_co + k % s.ci * p.w_ci + r * p.w_k[0] + k / s.ci * p.w_k[1]];
}

// ---- conv_interleaved_weight ----

struct GradTile {
  const float* x;      // of the first pixel: the first row and channel of its window
  const float* y;      // and its first channel
  int64_t rows, cols;  // pixels of y that are added
  int64_t x_row, x_col, y_row, y_col;  // elements between pixels
  float* sums;                         // [kM][kT][kImages]
  bool first;                          // sums start with 0
};

// sums = or += products of kM channels of y and kT elements of x's windows, image by image.
template <int kM, int kT> TT_NOINLINE void grad_tile(const GradTile& t) {
  for (int lane = 0; lane < kImages; lane += kL) {
    Vec<float> acc[kM][kT];
    TT_UNROLL
    for (int i = 0; i < kM * kT; i++)
      acc[i / kT][i % kT] = t.first ? Vec<float>{} : load(t.sums + i * kImages + lane);
    for (int64_t r = 0; r < t.rows; r++) {
      const float* x = t.x + r * t.x_row + lane;
      const float* y = t.y + r * t.y_row + lane;
      for (int64_t c = 0; c < t.cols; c++, x += t.x_col, y += t.y_col) {
        Vec<float> v[kT];
        TT_UNROLL
        for (int k = 0; k < kT; k++) v[k] = load(x + k * kImages);
        TT_UNROLL
        for (int m = 0; m < kM; m++) {
          const Vec<float> g = load(y + m * kImages);
          TT_UNROLL
          for (int k = 0; k < kT; k++) acc[m][k] = fma(g, v[k], acc[m][k]);
        }
      }
    }
    TT_UNROLL
    for (int i = 0; i < kM * kT; i++) store(t.sums + i * kImages + lane, acc[i / kT][i % kT]);
  }
}

constexpr void (*kGradTiles[kTileCols])(const GradTile&) = {
    grad_tile<1, kTileTerms>, grad_tile<2, kTileTerms>, grad_tile<3, kTileTerms>,
    grad_tile<4, kTileTerms>, grad_tile<5, kTileTerms>, grad_tile<6, kTileTerms>};
constexpr void (*kNarrowGradTiles[kTileCols])(const GradTile&) = {
    grad_tile<1, kFewTerms>, grad_tile<2, kFewTerms>, grad_tile<3, kFewTerms>,
    grad_tile<4, kFewTerms>, grad_tile<5, kFewTerms>, grad_tile<6, kFewTerms>};

struct BiasTile {
  const float* y;  // the first pixel's first channel
  int64_t rows, cols;
  int64_t pixel;  // elements
  float* sums;    // [kM][kImages]
};

// sums += kM channels of y, image by image: each row is added up first.
template <int kM> TT_NOINLINE void bias_tile(const BiasTile& t) {
  for (int lane = 0; lane < kImages; lane += kL) {
    const float* y = t.y + lane;
    for (int64_t r = 0; r < t.rows; r++) {
      Vec<float> acc[kM] = {};
      for (int64_t c = 0; c < t.cols; c++, y += t.pixel) {
        TT_UNROLL
        for (int m = 0; m < kM; m++) acc[m] += load(y + m * kImages);
      }
      TT_UNROLL
      for (int m = 0; m < kM; m++) {
        float* sum = t.sums + m * kImages + lane;
        store(sum, Vec<float>(load(sum) + acc[m]));
      }
    }
  }
}
constexpr void (*kBiasTiles[kTileCols])(const BiasTile&) = {
    bias_tile<1>, bias_tile<2>, bias_tile<3>, bias_tile<4>, bias_tile<5>, bias_tile<6>};

struct GradUnit {
  const ConvInterleavedWeightPlan& p;
  const ConvInterleavedShape& s;
  const int64_t wide_terms;  // of a row of a window: those of tiles of kTileTerms
  // sums: [tiles][channels][terms of the tile][kImages]; read up to a multiple of kImages
  alignas(64) float sums[(kTileCols * (kConvInterleavedRun + kTileTerms) + kImages) * kImages];

  explicit GradUnit(const ConvInterleavedWeightPlan& plan)
      : p(plan), s(plan.s), wide_terms(terms_of_wide_tiles(plan.s.run())) {}

  // The tiles behind them are narrow. Where no such tiles end with the run, the last one reads past
  // it.
  static int64_t terms_of_wide_tiles(int64_t run) {
    const int64_t narrow = round_up(run, kTileTerms) - run;
    if (kFewTerms == kTileTerms || narrow * kFewTerms > run) return round_up(run, kTileTerms);
    return run - narrow * kFewTerms;
  }
  int64_t terms_at(int64_t e) const { return e < wide_terms ? kTileTerms : kFewTerms; }

  // Adds a block's rows [r0, r1) of y: channels [c, c + width), row k of the windows.
  void add(int64_t b, int64_t r0, int64_t r1, int64_t c, int64_t width, int64_t k, bool first) {
    const int64_t x_pixel = s.ci * kImages;
    const int64_t x_row = s.full[1] * x_pixel;
    const int64_t y_pixel = s.co * kImages;
    const int64_t y_row = s.y[1] * y_pixel;
    const float* x = reinterpret_cast<const float*>(p.src) +
                     (b * s.full[0] + r0 * s.stride[0] + k * s.dil) * x_row;
    const float* y = reinterpret_cast<const float*>(p.y) + (b * s.y[0] + r0) * y_row + c * kImages;
    for (int64_t e = 0; e < s.run(); e += terms_at(e)) {
      const auto* tiles = e < wide_terms ? kGradTiles : kNarrowGradTiles;
      tiles[width - 1]({
          .x = x + e * kImages,
          .y = y,
          .rows = r1 - r0,
          .cols = s.y[1],
          .x_row = s.stride[0] * x_row,
          .x_col = s.stride[1] * x_pixel,
          .y_row = y_row,
          .y_col = y_pixel,
          .sums = sums + e * width * kImages,
          .first = first,
      });
    }
  }
  // total[i] = the sum of the images of item i of kImages: items are transposed, and rows added in
  // pairs.
  static void add_images(const float* items, float* total) {
    alignas(64) float transposed[kImages * kImages];
    transpose_block<kImages>(transposed, kImages, items, kImages);
    for (int v = 0; v < kImages; v += kL) {
      const auto row = [&](int r) { return load(transposed + r * kImages + v); };
      Vec<float> sum[kImages / 2];
      TT_UNROLL
      for (int r = 0; r < kImages / 2; r++) sum[r] = row(r) + row(r + kImages / 2);
      TT_UNROLL
      for (int r = 0; r < kImages / 4; r++) sum[r] += sum[r + kImages / 4];
      static_assert(kImages == 16);
      store(total + v, Vec<float>((sum[0] + sum[2]) + (sum[1] + sum[3])));
    }
  }
  // out[channel * out_row + term] = the sum of the images.
  void write_sums(int64_t width, float* out, int64_t out_row) {
    const int64_t items = max(wide_terms, s.run()) * width;
    alignas(64) float total[kImages];
    int64_t tile = 0;  // its first term; the next item is term t of channel m
    int64_t t = 0;
    int64_t m = 0;
    for (int64_t i = 0; i < items; i += kImages) {
      const int64_t n = min<int64_t>(items - i, kImages);
      add_images(sums + i * kImages, total);
      for (int64_t k = 0; k < n; k++) {
        if (tile + t < s.run()) out[m * out_row + tile + t] = total[k];
        if (++t < terms_at(tile)) continue;
        t = 0;
        if (++m < width) continue;
        m = 0;
        tile += terms_at(tile);
      }
    }
  }
  // The gradient of the bias, tile j of the channels: the sums of each block are added in order,
  // then those of the images in pairs.
  void run_bias(int64_t j) {
    const int64_t tiles = s.col_tiles();
    const int64_t c = piece(s.co, tiles, j);
    const int64_t width = piece(s.co, tiles, j + 1) - c;
    const int64_t pixel = s.co * kImages;
    float* const total = sums;
    float* const of_block = sums + kTileCols * kImages;
    for (int64_t i = 0; i < width * kImages; i++) total[i] = 0;
    for (int64_t b = 0; b < s.blocks(); b++) {
      for (int64_t i = 0; i < width * kImages; i++) of_block[i] = 0;
      const float* y = reinterpret_cast<const float*>(p.y) + b * s.y[0] * s.y[1] * pixel;
      kBiasTiles[width - 1]({
          .y = y + c * kImages,
          .rows = s.y[0],
          .cols = s.y[1],
          .pixel = pixel,
          .sums = of_block,
      });
      for (int64_t i = 0; i < width * kImages; i++) total[i] += of_block[i];
    }
    float* out = reinterpret_cast<float*>(p.bias) + c;
    for (int64_t m = 0; m < width; m++) {
      float* t = total + m * kImages;
      for (int n = kImages / 2; n; n /= 2)
        for (int i = 0; i < n; i++) t[i] += t[i + n];
      out[m] = t[0];
    }
  }
  // Tile j of the channels, row k of the windows.
  void run(int64_t split, int64_t j, int64_t k) {
    const int64_t tiles = s.col_tiles();
    const int64_t c = piece(s.co, tiles, j);
    const int64_t width = piece(s.co, tiles, j + 1) - c;
    const int64_t b0 = piece(s.blocks(), p.splits, split);
    const int64_t b1 = piece(s.blocks(), p.splits, split + 1);
    for (int64_t b = b0; b < b1; b++)
      for (int64_t r = 0; r < s.y[0]; r += p.rows)
        add(b, r, min(r + p.rows, s.y[0]), c, width, k, b == b0 && r == 0);
    const int64_t row = s.k[0] * s.run();
    float* out = reinterpret_cast<float*>(p.sums) + (split * s.co + c) * row + k * s.run();
    write_sums(width, out, row);
  }
};

void add_splits(const ConvInterleavedWeightPlan& p) {
  const ConvInterleavedShape& s = p.s;
  const int64_t split_items = s.co * s.k[0] * s.run();
  const float* from = reinterpret_cast<const float*>(p.sums);
  float* dst = reinterpret_cast<float*>(p.dst);
  for (int64_t c = 0; c < s.co; c++)
    for (int64_t r = 0; r < s.k[0]; r++)
      for (int64_t k = 0; k < s.k[1]; k++) {
        float* to = dst + c * p.w_co + r * p.w_k[0] + k * p.w_k[1];
        for (int64_t ci = 0; ci < s.ci; ci++, from++) {
          float sum = *from;
          for (int64_t i = 1; i < p.splits; i++) sum += from[i * split_items];
          to[ci * p.w_ci] = sum;
        }
      }
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(conv_interleave)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvInterleavePlan& p = *static_cast<const ConvInterleavePlan*>(plan);
  Interleaver interleaver(p);
  for (int64_t u = begin; u < end; u++) interleaver.run(u / p.channels, u % p.channels);
  return TT_OK;
}

TT_KERNEL(conv_interleaved)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvInterleavedPlan& p = *static_cast<const ConvInterleavedPlan*>(plan);
  if (p.run.stage == 0) {
    pack_interleaved(p);
    return TT_OK;
  }
  const int64_t pieces = ceil_div(p.s.y[0] * p.s.y[1], kImages);
  InterleavedUnit unit(p);
  for (int64_t u = begin; u < end; u++) unit.run(u / pieces, u % pieces * kImages);
  return TT_OK;
}

TT_KERNEL(conv_interleaved_weight)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvInterleavedWeightPlan& p = *static_cast<const ConvInterleavedWeightPlan*>(plan);
  if (p.run.stage == 1) {
    add_splits(p);
    return TT_OK;
  }
  const int64_t tiles = p.s.col_tiles();
  const int64_t of_weight = p.splits * tiles * p.s.k[0];
  GradUnit unit(p);
  for (int64_t u = begin; u < end; u++) {
    if (u >= of_weight) unit.run_bias(u - of_weight);
    else unit.run(u / p.s.k[0] / tiles, u / p.s.k[0] % tiles, u % p.s.k[0]);
  }
  return TT_OK;
}

TT_ENTRY_END
