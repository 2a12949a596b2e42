// The gradient of a convolution's input that has few channels: for each pixel of y the products
// with all weights, whose runs (last dimension's taps and channels) are added to an image with
// padded rows.
#pragma once

#include "kernels/cpu/conv/gather.h"

TT_ISA_BEGIN

// [columns (tap, ci), in panels][co]
template <class T> void pack_scatter(const ConvPlan& p) {
  const int64_t cols = p.s.taps() * p.s.ci;
  T* out = reinterpret_cast<T*>(p.packed);
  const T* w = reinterpret_cast<const T*>(p.weight);
  for (int64_t j0 = 0; j0 < cols; j0 += kConvNr<T>, out += p.s.co * kConvNr<T>) {
    for (int64_t j = j0; j < j0 + kConvNr<T>; j++) {
      const int64_t c = j % p.s.ci;
      const int64_t t = j / p.s.ci;
      const int64_t k1 = t / p.s.k[2];
      const T* from = w + c * p.w_ci + t % p.s.k[2] * p.w_k[2] + k1 % p.s.k[1] * p.w_k[1] +
                      k1 / p.s.k[1] * p.w_k[0];
      for (int64_t r = 0; r < p.s.co; r++)
        out[r * kConvNr<T> + j - j0] = j < cols ? from[r * p.w_co] : T(0);
    }
  }
}

template <class T> struct ScatterImage {
  // Columns [at, at + n) of a panel: they are added `shift` elements behind the pixel's place in
  // row (d0, d1) of its window.
  struct Piece {
    int64_t at, n, d0, d1, shift;
  };
  const ConvPlan& p;
  const T* y;
  T* image;
  int64_t n_rows, n_pieces;
  int64_t coord[kConvDims][kConvRows];
  const T* table[kConvRows];
  Piece piece[kConvNr<T>];
  alignas(64) T tile[kConvMr<T> * kConvNr<T> + kLanes<T>];
  alignas(64) T start[kConvNr<T>];

  ScatterImage(const ConvPlan& plan, int64_t at)
      : p(plan),
        y(reinterpret_cast<const T*>(p.src) + at * p.s.y[0] * p.s.y[1] * p.s.y[2] * p.s.co),
        image(reinterpret_cast<T*>(p.images) + at * p.s.x[0] * p.s.x[1] * p.gather.row) {
    for (int64_t i = 0; i < kConvNr<T>; i++) start[i] = T(0);
    for (int64_t i = 0; i < p.s.x[0] * p.s.x[1] * p.gather.row; i++) image[i] = T(0);
  }

  void place(int64_t begin, int64_t end) {
    n_rows = end - begin;
    ConvWalk at;
    at.start(p.s.y, begin);
    for (int64_t i = 0; i < n_rows; i++, at.advance(1)) {
      for (int d = 0; d < kConvDims; d++) coord[d][i] = at.at[d] * p.s.stride[d] - p.gather.pad[d];
      table[i] = y + (begin + i) * p.s.co;
    }
    for (int64_t i = n_rows; i % kConvMr<T>; i++) table[i] = reinterpret_cast<const T*>(p.zeros);
  }
  void cut(int64_t j, int64_t cols) {
    const int64_t run = p.gather.run;
    const int64_t end = j + kConvNr<T> < cols ? j + kConvNr<T> : cols;
    n_pieces = 0;
    for (int64_t at = j; at < end;) {
      const int64_t row = at / run;
      const int64_t stop = (row + 1) * run < end ? (row + 1) * run : end;
      piece[n_pieces++] = {at - j, stop - at, row / p.s.k[1] * p.s.dil[0],
                           row % p.s.k[1] * p.s.dil[1], at % run};
      at = stop;
    }
  }
  void add(int64_t i, const T* sums) {
    for (int64_t q = 0; q < n_pieces; q++) {
      const Piece& c = piece[q];
      const int64_t r0 = coord[0][i] + c.d0;
      const int64_t r1 = coord[1][i] + c.d1;
      if (uint64_t(r0) >= uint64_t(p.s.x[0]) || uint64_t(r1) >= uint64_t(p.s.x[1])) continue;
      T* to = image + (r0 * p.s.x[1] + r1) * p.gather.row + coord[2][i] * p.s.ci + c.shift;
      for (int64_t v = 0; v < c.n; v += kLanes<T>) {
        const Part<T> part(int(c.n - v < kLanes<T> ? c.n - v : kLanes<T>));
        store(to + v, Vec<T>(load(to + v, part) + load(sums + c.at + v)), part);
      }
    }
  }
  void run() {
    constexpr int kMr = kConvMr<T>;
    constexpr int kNr = kConvNr<T>;
    const int64_t pixels = p.s.y[0] * p.s.y[1] * p.s.y[2];
    const int64_t cols = p.s.taps() * p.s.ci;
    for (int64_t m = 0; m < pixels; m += kConvRows) {
      place(m, m + kConvRows < pixels ? m + kConvRows : pixels);
      for (int64_t j = 0; j < cols; j += kNr) {
        const T* b = reinterpret_cast<const T*>(p.packed) + j * p.s.co;
        cut(j, cols);
        for (int64_t r = 0; r < n_rows; r += kMr) {
          T* rows[kMr];
          for (int i = 0; i < kMr; i++) rows[i] = tile + i * kNr;
          const GatherTile<T> t = {table + r, kConvRows, &b,    1, 0,
                                   p.s.co,    rows,      start, 1, j == 0 ? kMr * p.s.co : 0};
          cols - j > kLanes<T> ? gather_tile<T, kMr, 2>(t) : gather_tile<T, kMr, 1>(t);
          for (int64_t i = r; i < n_rows && i < r + kMr; i++) add(i, tile + (i - r) * kNr);
        }
      }
    }
  }
  // Writes the rows without their padding.
  void finish(T* x) const {
    const T* bias = reinterpret_cast<const T*>(p.bias);
    const int64_t pad = p.s.pad[2];
    const int64_t width = p.gather.size[2];
    const int64_t ci = p.s.ci;
    for (int64_t r = 0; r < p.s.x[0] * p.s.x[1]; r++, x += p.s.x[2] * ci) {
      const T* from = image + r * p.gather.row + pad * ci;
      const int64_t seen = width - pad < 0 ? 0 : width - pad < p.s.x[2] ? width - pad : p.s.x[2];
      for (int64_t i = 0; i < seen * ci; i++) x[i] = from[i];
      for (int64_t i = seen * ci; i < p.s.x[2] * ci; i++) x[i] = T(0);
      for (int64_t i = 0; bias && i < p.s.x[2]; i++)
        for (int64_t c = 0; c < ci; c++) x[i * ci + c] += bias[c];
    }
  }
};

// Units: images.
template <class T> void scatter_units(const ConvPlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) {
    ScatterImage<T> image(p, u);
    image.run();
    image.finish(reinterpret_cast<T*>(p.dst) + u * p.s.x[0] * p.s.x[1] * p.s.x[2] * p.s.ci);
  }
}

TT_ISA_END
