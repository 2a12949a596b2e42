// kConvScatter: x with few channels from y. Each pixel of y is multiplied by the weights of all
// taps and channels, and the products are added to an image whose rows have their padding. The
// columns are [taps][ci], so that those of one row of a window are one run of the image:
//
//   columns of a panel      | k0 k1 row: k[2] * ci products | next row: …
//                             ↓ added at                      ↓
//   image    [x0][x1][width * ci], width = x2 and its padding
//
// For each block of pixels and panel: the pieces of the panel that fall into one row (cut), then
// for each micro-tile the products (gather_tile) and for each of its pixels the addition (add).
#pragma once

#include "kernels/cpu/conv/gather.h"

TT_ISA_BEGIN

// [columns (tap, ci), in panels][co]
template <class T> void pack_scatter(const ConvPlan& p) {
  const int64_t cols = p.s.taps() * p.s.ci;
  T* out = reinterpret_cast<T*>(p.packed);
  for (int64_t j0 = 0; j0 < cols; j0 += kConvNr<T>) {
    for (int64_t j = j0; j < j0 + kConvNr<T>; j++) {
      const ConvTap tap(j / p.s.ci, p.s.k);
      const T* w = reinterpret_cast<const T*>(p.weight) + j % p.s.ci * p.w_ci;
      for (int d = 0; d < kConvDims; d++) w += tap.at[d] * p.w_k[d];
      for (int64_t r = 0; r < p.s.co; r++)
        out[r * kConvNr<T> + j - j0] = j < cols ? w[r * p.w_co] : T(0);
    }
    out += p.s.co * kConvNr<T>;
  }
}

template <class T> struct ScatterPath {
  // Columns [at, at + n) of a panel: they are added `shift` elements after the pixel's place in row
  // (d0, d1) of its window.
  struct Piece {
    int64_t at, n, d0, d1, shift;
  };
  const ConvPlan& p;
  const T* y;
  T* image;
  int64_t n_rows, n_pieces;
  int64_t coord[kConvDims][kConvRows];  // of the current rows' windows in the image
  const T* rows[kConvRows];             // the current pixels of y
  Piece piece[kConvNr<T>];
  alignas(64) T tile[kConvMr<T> * kConvNr<T> + kLanes<T>];
  alignas(64) T zeros[kConvNr<T>];

  static void pack(const ConvPlan& p, int64_t, int64_t) { pack_scatter<T>(p); }

  // Units: images.
  static void unit(const ConvPlan& p, int64_t u) {
    ScatterPath image(p, u);
    image.run();
    image.finish(reinterpret_cast<T*>(p.dst) + u * p.s.x[0] * p.s.x[1] * p.s.x[2] * p.s.ci);
  }

  ScatterPath(const ConvPlan& plan, int64_t u)
      : p(plan),
        y(reinterpret_cast<const T*>(p.src) + u * p.s.y[0] * p.s.y[1] * p.s.y[2] * p.s.co),
        image(reinterpret_cast<T*>(p.scatter.images) + u * p.s.x[0] * p.s.x[1] * p.gather.row) {
    for (int64_t i = 0; i < kConvNr<T>; i++) zeros[i] = T(0);
    for (int64_t i = 0; i < p.s.x[0] * p.s.x[1] * p.gather.row; i++) image[i] = T(0);
  }

  // Loads pixels [begin, end) of y as the current rows; the rest of the last tile reads zeros.
  void set_rows(int64_t begin, int64_t end) {
    n_rows = end - begin;
    ConvWalk walk;
    walk.start(p.s.y, begin);
    for (int64_t i = 0; i < n_rows; i++, walk.advance(1)) {
      for (int d = 0; d < kConvDims; d++)
        coord[d][i] = walk.at[d] * p.s.stride[d] - p.gather.pad[d];
      rows[i] = y + (begin + i) * p.s.co;
    }
    for (int64_t i = n_rows; i % kConvMr<T>; i++) rows[i] = reinterpret_cast<const T*>(p.zeros);
  }
  // Cuts the panel of columns at j into its rows of the window.
  void cut(int64_t j, int64_t cols) {
    const int64_t run = p.gather.run;
    const int64_t end = min(j + kConvNr<T>, cols);
    n_pieces = 0;
    for (int64_t at = j; at < end;) {
      const int64_t row = at / run;
      const int64_t stop = min((row + 1) * run, end);
      piece[n_pieces++] = {
          .at = at - j,
          .n = stop - at,
          .d0 = row / p.s.k[1] * p.s.dil[0],
          .d1 = row % p.s.k[1] * p.s.dil[1],
          .shift = at % run,
      };
      at = stop;
    }
  }
  // Adds the products of row i with the columns of a panel to the image.
  void add(int64_t i, const T* products) {
    for (int64_t q = 0; q < n_pieces; q++) {
      const Piece& c = piece[q];
      const int64_t r0 = coord[0][i] + c.d0;
      const int64_t r1 = coord[1][i] + c.d1;
      if (uint64_t(r0) >= uint64_t(p.s.x[0]) || uint64_t(r1) >= uint64_t(p.s.x[1])) continue;
      T* to = image + (r0 * p.s.x[1] + r1) * p.gather.row + coord[2][i] * p.s.ci + c.shift;
      for (int64_t v = 0; v < c.n; v += kLanes<T>) {
        const Part<T> part(int(min<int64_t>(c.n - v, kLanes<T>)));
        store(to + v, Vec<T>(load(to + v, part) + load(products + c.at + v)), part);
      }
    }
  }
  void run() {
    constexpr int kMr = kConvMr<T>;
    constexpr int kNr = kConvNr<T>;
    const int64_t pixels = p.s.y[0] * p.s.y[1] * p.s.y[2];
    const int64_t cols = p.s.taps() * p.s.ci;
    T* tile_rows[kMr];
    for (int i = 0; i < kMr; i++) tile_rows[i] = tile + i * kNr;
    for (int64_t m = 0; m < pixels; m += kConvRows) {
      set_rows(m, min(m + kConvRows, pixels));
      for (int64_t j = 0; j < cols; j += kNr) {
        const T* panel = reinterpret_cast<const T*>(p.packed) + j * p.s.co;
        cut(j, cols);
        for (int64_t r = 0; r < n_rows; r += kMr) {
          const GatherTile<T> products = {
              .rows = rows + r,
              .pitch = kConvRows,
              .panels = &panel,
              .taps = 1,
              .from = 0,
              .to = p.s.co,
              .out = tile_rows,
              .start = zeros,
              .tap_mask = 1,
              .ahead = j == 0 ? kMr * p.s.co : 0,
          };
          if (cols - j > kLanes<T>) gather_tile<T, kMr, 2>(products);
          else gather_tile<T, kMr, 1>(products);
          for (int64_t i = r; i < n_rows && i < r + kMr; i++) add(i, tile + (i - r) * kNr);
        }
      }
    }
  }
  // Writes the image's rows without their padding to x, and adds the bias.
  void finish(T* x) const {
    const T* bias = reinterpret_cast<const T*>(p.bias);
    const int64_t pad = p.s.pad[2];
    const int64_t ci = p.s.ci;
    const int64_t seen = clamp<int64_t>(p.gather.size[2] - pad, 0, p.s.x[2]);  // pixels of a row
    for (int64_t r = 0; r < p.s.x[0] * p.s.x[1]; r++) {
      const T* from = image + r * p.gather.row + pad * ci;
      for (int64_t i = 0; i < seen * ci; i++) x[i] = from[i];
      for (int64_t i = seen * ci; i < p.s.x[2] * ci; i++) x[i] = T(0);
      for (int64_t i = 0; bias && i < p.s.x[2]; i++)
        for (int64_t c = 0; c < ci; c++) x[i * ci + c] += bias[c];
      x += p.s.x[2] * ci;
    }
  }
};

TT_ISA_END
