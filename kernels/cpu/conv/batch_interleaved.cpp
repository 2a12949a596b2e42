// conv_interleave, conv_interleaved, conv_interleaved_weight: convolutions of few channels. A
// vector holds the same element of several images, so that no lane is idle however few the channels
// are:
//
//   src          (n, channels, rows, columns)
//                  | conv_interleave: transposes 16 images x 16 columns
//   interleaved  [block of 16 images][rows + border][columns + border][channels][16 images]
//                  | conv_interleaved: a tile of kTilePixels pixels x up to 6 channels of y
//                  |   acc[channel][pixel] += weight (one number) * x (a vector of images)
//   dst          (n, channels, rows, columns), transposed back 16 pixels at a time
//
// A window's row is one run of k1 * ci vectors, as columns and channels are contiguous.
#include "base/platform.h"
TT_IGNORE_UNINITIALIZED
#include "kernels/cpu/matmul/vec.h"
#include "kernels/cpu/simd/images.h"
#include "plan/conv_plan.h"

TT_ISA_BEGIN

constexpr int kL = kLanes<float>;
static_assert(kImages == int(kConvLanes));
constexpr int kTileCols = int(kConvInterleavedCols);  // channels of y of a tile
#if TT_VEC_BYTES == 64
constexpr int kTilePixels = 4;  // pixels of y of a tile
constexpr int kTileVecs = 1;    // vectors of images that it computes at a time
constexpr int kTileTerms = 4;   // elements of a window of a tile of the weight's gradient
#else
constexpr int kTilePixels = 1;
constexpr int kTileVecs = 2;
constexpr int kTileTerms = 2;
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
    transpose_block(tile, kImages, part, kImages);
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
        transpose_block(to, step, from + e, image);
        to += n * step;
        continue;
      }
      if (whole) transpose_block(tile, kImages, from + e, image);
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
  const float* x[kTilePixels];     // where their windows begin
  const float* w;                  // [k0][run][kM]
  const float* start;              // [kM]: what the sums start with
  int64_t first, last;             // rows of the window that are read
  int64_t from, to;                // terms of each that are read
  int64_t run;                     // terms of a row of the window
  int64_t row;                     // elements between rows of the window
  float* out;                      // of the first pixel and channel: a vector of images
  int64_t out_pixel, out_channel;  // elements between pixels and channels of out
};

template <int kM> TT_NOINLINE void pixel_tile(const PixelTile& t) {
  constexpr int kAcc = kTilePixels * kTileVecs;
  for (int lane = 0; lane < kImages; lane += kTileVecs * kL) {
    Vec<float> acc[kM][kTilePixels][kTileVecs];
    TT_UNROLL
    for (int m = 0; m < kM; m++) {
      TT_UNROLL
      for (int i = 0; i < kAcc; i++) acc[m][i / kTileVecs][i % kTileVecs] = splat(t.start[m]);
    }
    for (int64_t r = t.first; r < t.last; r++) {
      const float* x[kTilePixels];
      TT_UNROLL
      for (int i = 0; i < kTilePixels; i++) x[i] = t.x[i] + r * t.row + lane;
      const float* w = t.w + (r * t.run + t.from) * kM;
      for (int64_t k = t.from * kImages; k < t.to * kImages; k += kImages, w += kM) {
        Vec<float> v[kTilePixels][kTileVecs];
        TT_UNROLL
        for (int i = 0; i < kAcc; i++)
          v[i / kTileVecs][i % kTileVecs] = load(x[i / kTileVecs] + k + i % kTileVecs * kL);
        TT_UNROLL
        for (int m = 0; m < kM; m++) {
          const Vec<float> s = splat(w[m]);
          TT_UNROLL
          for (int i = 0; i < kAcc; i++)
            acc[m][i / kTileVecs][i % kTileVecs] =
                fma(s, v[i / kTileVecs][i % kTileVecs], acc[m][i / kTileVecs][i % kTileVecs]);
        }
      }
    }
    TT_UNROLL
    for (int m = 0; m < kM; m++) {
      TT_UNROLL
      for (int i = 0; i < kAcc; i++)
        store(t.out + m * t.out_channel + i / kTileVecs * t.out_pixel + lane + i % kTileVecs * kL,
              acc[m][i / kTileVecs][i % kTileVecs]);
    }
  }
}

constexpr void (*kPixelTiles[kTileCols])(const PixelTile&) = {
    pixel_tile<1>, pixel_tile<2>, pixel_tile<3>, pixel_tile<4>, pixel_tile<5>, pixel_tile<6>};

// The taps of a window at `at` that read the image [lead, end), and not the border: [tap_from,
// tap_to) of k taps, dil apart.
TT_INLINE int64_t tap_from(int64_t lead, int64_t at, int64_t dil) {
  return at >= lead ? 0 : ceil_div(lead - at, dil);
}
TT_INLINE int64_t tap_to(int64_t end, int64_t at, int64_t dil, int64_t k) {
  const int64_t n = at >= end ? 0 : (end - at - 1) / dil + 1;
  return min(n, k);
}

// kImages pixels of a block of images, all channels.
struct InterleavedUnit {
  const ConvInterleavedPlan& p;
  const ConvInterleavedShape& s;
  PixelTile tile[kImages / kTilePixels];  // the current pixels
  alignas(64) float sums[kTileCols * kImages * kImages], transposed[kImages * kImages];

  explicit InterleavedUnit(const ConvInterleavedPlan& plan) : p(plan), s(plan.s) {}

  // Limits a tile to the part of the window that is in the image for one of the pixels [at, at +
  // kTilePixels).
  void clip(PixelTile* t, int64_t at, int64_t pixels) const {
    const int64_t end = min<int64_t>(at + kTilePixels, pixels);
    const int64_t r0 = at / s.y[1];
    const int64_t r1 = (end - 1) / s.y[1];
    const int64_t c0 = r0 == r1 ? at % s.y[1] : 0;
    const int64_t c1 = r0 == r1 ? (end - 1) % s.y[1] : s.y[1] - 1;
    t->first = tap_from(s.lead[0], r1 * s.stride[0], s.dil);
    t->last = tap_to(s.lead[0] + s.x[0], r0 * s.stride[0], s.dil, s.k[0]);
    t->from = tap_from(s.lead[1], c1 * s.stride[1], 1) * s.ci;
    t->to = tap_to(s.lead[1] + s.x[1], c0 * s.stride[1], 1, s.k[1]) * s.ci;
  }
  // Loads pixels [begin, end) as the current ones; the last is repeated up to a whole tile.
  void set_pixels(const float* block, int64_t begin, int64_t end) {
    const int64_t pixel = s.ci * kImages;
    const int64_t row = s.full[1] * pixel;
    int64_t r = begin / s.y[1];
    int64_t c = begin % s.y[1];
    for (int64_t i = 0; i < round_up(end - begin, kTilePixels); i++) {
      tile[i / kTilePixels].x[i % kTilePixels] =
          block + r * s.stride[0] * row + c * s.stride[1] * pixel;
      if (begin + i + 1 < end && ++c == s.y[1]) {
        c = 0;
        r++;
      }
    }
    const bool border = s.full[0] != s.x[0] || s.full[1] != s.x[1];
    for (int64_t i = 0; begin + i * kTilePixels < end; i++) {
      PixelTile& t = tile[i];
      t.first = 0;
      t.last = s.k[0];
      t.from = 0;
      t.to = t.run = s.run();
      t.row = s.dil * row;
      if (border) clip(&t, begin + i * kTilePixels, end);
    }
  }

  // Where tile i of the current pixels is computed, for channels c and up of block b: in its place
  // if that is `direct`, else in `sums`.
  void set_out(PixelTile* t, bool direct, int64_t b, int64_t c, int64_t begin, int64_t i) {
    const int64_t pixel = i * kTilePixels;
    if (direct) {
      const int64_t row = b * s.y[0] * s.y[1] + begin + pixel;
      t->out = reinterpret_cast<float*>(p.dst) + (row * s.co + c) * kImages;
      t->out_pixel = s.co * kImages;
      t->out_channel = kImages;
    } else {
      t->out = sums + pixel * kImages;
      t->out_pixel = kImages;
      t->out_channel = kImages * kImages;
    }
  }
  // Writes n pixels from `begin` on of channel c, of the images of block b.
  void write(int64_t b, int64_t c, int64_t begin, int64_t n, const float* from) {
    const int64_t plane = s.y[0] * s.y[1];
    const int64_t images = min<int64_t>(s.n - b * kImages, kImages);
    if (p.to_interleaved) {
      float* out = reinterpret_cast<float*>(p.dst) + ((b * plane + begin) * s.co + c) * kImages;
      for (int64_t i = 0; i < n; i++) copy_images(out + i * s.co * kImages, from + i * kImages);
      return;
    }
    float* to = reinterpret_cast<float*>(p.dst) + (b * kImages * s.co + c) * plane + begin;
    if (n == kImages && images == kImages) return transpose_block(to, s.co * plane, from, kImages);
    transpose_block(transposed, kImages, from, kImages);
    for (int64_t i = 0; i < images; i++)
      for (int64_t e = 0; e < n; e += kL)
        store(to + i * s.co * plane + e, load(transposed + i * kImages + e),
              Part<float>(int(min<int64_t>(n - e, kL))));
  }
  void run(int64_t b, int64_t begin) {
    const int64_t end = min<int64_t>(begin + kImages, s.y[0] * s.y[1]);
    const int64_t tiles = s.col_tiles();
    const int64_t block_items = s.full[0] * s.full[1] * s.ci * kImages;
    set_pixels(reinterpret_cast<const float*>(p.src) + b * block_items, begin, end);
    const float* w = reinterpret_cast<const float*>(p.packed);
    const float* bias = reinterpret_cast<const float*>(p.bias);
    // Pixels of whole tiles that are computed in their place.
    const int64_t direct = p.to_interleaved ? (end - begin) / kTilePixels * kTilePixels : 0;
    for (int64_t j = 0; j < tiles; j++) {
      const int64_t c = piece(s.co, tiles, j);
      const int64_t width = piece(s.co, tiles, j + 1) - c;
      float start[kTileCols];
      for (int64_t m = 0; m < width; m++) start[m] = bias ? bias[c + m] : 0;
      for (int64_t i = 0; begin + i * kTilePixels < end; i++) {
        tile[i].w = w + c * s.k[0] * s.run();
        tile[i].start = start;
        set_out(&tile[i], i * kTilePixels < direct, b, c, begin, i);
        kPixelTiles[width - 1](tile[i]);
      }
      if (begin + direct == end) continue;
      for (int64_t m = 0; m < width; m++)
        write(b, c + m, begin + direct, end - begin - direct,
              sums + (m * kImages + direct) * kImages);
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
  float* sums;                         // [kM][kTileTerms][kImages]
  bool first;                          // sums start with 0
};

// sums = or += products of kM channels of y and kTileTerms elements of x's windows, image by image.
template <int kM> TT_NOINLINE void grad_tile(const GradTile& t) {
  constexpr int kT = kTileTerms;
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
    grad_tile<1>, grad_tile<2>, grad_tile<3>, grad_tile<4>, grad_tile<5>, grad_tile<6>};

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
  // sums: [terms / kTileTerms][channels][kTileTerms][kImages]
  alignas(64) float sums[kTileCols * (kConvInterleavedRun + kTileTerms) * kImages];
  alignas(64) float part[kImages * kImages];

  explicit GradUnit(const ConvInterleavedWeightPlan& plan) : p(plan), s(plan.s) {}

  // Adds a block's rows [r0, r1) of y: channels [c, c + width), row k of the windows.
  void add(int64_t b, int64_t r0, int64_t r1, int64_t c, int64_t width, int64_t k, bool first) {
    const int64_t x_pixel = s.ci * kImages;
    const int64_t x_row = s.full[1] * x_pixel;
    const int64_t y_pixel = s.co * kImages;
    const int64_t y_row = s.y[1] * y_pixel;
    const float* x = reinterpret_cast<const float*>(p.src) +
                     (b * s.full[0] + r0 * s.stride[0] + k * s.dil) * x_row;
    const float* y = reinterpret_cast<const float*>(p.y) + (b * s.y[0] + r0) * y_row + c * kImages;
    for (int64_t e = 0; e < s.run(); e += kTileTerms)
      kGradTiles[width - 1]({
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
  // out[channel * out_row + term] = the sum of the images, kImages sums at a time: they are
  // transposed, and the rows of that are added in pairs.
  void add_images(int64_t width, float* out, int64_t out_row) {
    const int64_t items = round_up(s.run(), kTileTerms) * width;
    for (int64_t i = 0; i < items; i += kImages) {
      for (int64_t k = i; k < items && k < i + kImages; k++)
        copy_images(part + (k - i) * kImages, sums + k * kImages);
      alignas(64) float transposed[kImages * kImages], total[kImages];
      transpose_block(transposed, kImages, part, kImages);
      for (int n = kImages / 2; n; n /= 2)
        for (int r = 0; r < n; r++)
          for (int v = 0; v < kImages; v += kL) {
            float* low = transposed + r * kImages + v;
            const float* high = transposed + (r + n) * kImages + v;
            store(low, Vec<float>(load(low) + load(high)));
          }
      copy_images(total, transposed);
      for (int64_t k = i; k < items && k < i + kImages; k++) {
        const int64_t e = k / (kTileTerms * width) * kTileTerms + k % kTileTerms;
        const int64_t m = k / kTileTerms % width;
        if (e < s.run()) out[m * out_row + e] = total[k - i];
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
    add_images(width, out, row);
  }
};

void add_splits(const ConvInterleavedWeightPlan& p) {
  const ConvInterleavedShape& s = p.s;
  const int64_t split_items = s.co * s.k[0] * s.run();
  const float* from = reinterpret_cast<const float*>(p.sums);
  float* dst = reinterpret_cast<float*>(p.dst);
  for (int64_t c = 0; c < s.co; c++)
    for (int64_t r = 0; r < s.k[0]; r++)
      for (int64_t k = 0; k < s.run(); k++, from++) {
        float sum = *from;
        for (int64_t i = 1; i < p.splits; i++) sum += from[i * split_items];
        dst[c * p.w_co + k % s.ci * p.w_ci + r * p.w_k[0] + k / s.ci * p.w_k[1]] = sum;
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
