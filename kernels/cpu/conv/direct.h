// DirectPath: y with few channels from x, both with channels first, without padding. A vector holds
// neighbouring pixels of a row of y, so that no lane is idle however few the channels are:
//
//   acc[channel][group] += weight (one number) * x (kL neighbours of a row, from the tap on)
//
// The last group of a row ends where the row does, and repeats pixels of the one before. Sums are
// added in the order of the other paths: rows of the window, its columns, channels of x.
#pragma once

#include "kernels/cpu/matmul/vec.h"
#include "plan/conv_plan.h"

TT_ISA_BEGIN

struct DirectTile {
  static constexpr int kGroups = 4;
  const float* x[kGroups];  // of each group, at the first tap and channel
  float* y[kGroups];        // of each group, the first channel of the tile
  const float* w;           // [k1][k2][ci][channels of the tile]
  const float* bias;        // or NULL
  int64_t k1, k2, ci;
  int64_t row, col, plane;  // elements of x between taps and channels
  int64_t y_plane;
};

template <int kM> TT_NOINLINE void direct_tile(const DirectTile& t) {
  constexpr int kG = DirectTile::kGroups;
  Vec<float> acc[kM][kG];
  TT_UNROLL
  for (int m = 0; m < kM; m++) {
    const Vec<float> s = t.bias ? splat(t.bias[m]) : Vec<float>{};
    TT_UNROLL
    for (int g = 0; g < kG; g++) acc[m][g] = s;
  }
  const float* w = t.w;
  for (int64_t r = 0; r < t.k1; r++)
    for (int64_t c = 0; c < t.k2; c++) {
      int64_t at = r * t.row + c * t.col;
      for (int64_t i = 0; i < t.ci; i++, w += kM, at += t.plane) {
        Vec<float> v[kG];
        TT_UNROLL
        for (int g = 0; g < kG; g++) v[g] = load(t.x[g] + at);
        TT_UNROLL
        for (int m = 0; m < kM; m++) {
          const Vec<float> s = splat(w[m]);
          TT_UNROLL
          for (int g = 0; g < kG; g++) acc[m][g] = fma(s, v[g], acc[m][g]);
        }
      }
    }
  TT_UNROLL
  for (int m = 0; m < kM; m++) {
    TT_UNROLL
    for (int g = 0; g < kG; g++) store(t.y[g] + m * t.y_plane, acc[m][g]);
  }
}

struct DirectPath {
  static constexpr int kL = kLanes<float>;
  // Columns of the tile that begins with the first of `left`.
  static int64_t width(int64_t left) {
    if (left >= kConvInterleavedCols) return kConvInterleavedCols;
    return min<int64_t>(left, 2);
  }
  static void run_tile(const DirectTile& t, int64_t width) {
    if (width == kConvInterleavedCols) direct_tile<kConvInterleavedCols>(t);
    else if (width == 2) direct_tile<2>(t);
    else direct_tile<1>(t);
  }

  static void pack(const ConvPlan& p, int64_t, int64_t) {
    const ConvShape& s = p.s;
    const auto* w = reinterpret_cast<const float*>(p.weight);
    auto* to = reinterpret_cast<float*>(p.packed);
    for (int64_t c = 0, n; c < s.co; c += n) {
      n = width(s.co - c);
      for (int64_t r = 0; r < s.k[1]; r++)
        for (int64_t k = 0; k < s.k[2] * s.ci; k++)
          for (int64_t i = c; i < c + n; i++)
            *to++ = w[i * p.w_co + k % s.ci * p.w_ci + r * p.w_k[1] + k / s.ci * p.w_k[2]];
    }
  }

  static void unit(const ConvPlan& p, int64_t u) {
    const ConvShape& s = p.s;
    const ConvBlocks& blocks = p.pixels.blocks;
    const int64_t image = u / blocks.count;
    const int64_t first = u % blocks.count * blocks.rows;
    const int64_t rows = min(blocks.rows, s.y[1] - first);
    const int64_t in_row = ceil_div(s.y[2], int64_t(kL));  // groups
    const float* x = reinterpret_cast<const float*>(p.src) + image * s.ci * s.x[1] * s.x[2];
    float* y = reinterpret_cast<float*>(p.dst) + image * s.co * s.y[1] * s.y[2];
    DirectTile t = {};
    t.k1 = s.k[1];
    t.k2 = s.k[2];
    t.ci = s.ci;
    t.row = s.dil[1] * s.x[2];
    t.col = s.dil[2];
    t.plane = s.x[1] * s.x[2];
    t.y_plane = s.y[1] * s.y[2];
    for (int64_t i = 0; i < rows * in_row; i += DirectTile::kGroups) {
      int64_t at[DirectTile::kGroups];
      for (int64_t g = 0; g < DirectTile::kGroups; g++) {
        const int64_t group = min(i + g, rows * in_row - 1);
        const int64_t row = first + group / in_row;
        const int64_t col = min(group % in_row * kL, s.y[2] - kL);
        t.x[g] = x + row * s.stride[1] * s.x[2] + col;
        at[g] = row * s.y[2] + col;
      }
      run_columns(p, &t, y, at);
    }
  }
  static TT_INLINE void run_columns(const ConvPlan& p, DirectTile* t, float* y, const int64_t* at) {
    const ConvShape& s = p.s;
    const auto* bias = reinterpret_cast<const float*>(p.bias);
    for (int64_t c = 0, n; c < s.co; c += n) {
      n = width(s.co - c);
      t->w = reinterpret_cast<const float*>(p.packed) + c * s.k[1] * s.k[2] * s.ci;
      t->bias = bias ? bias + c : nullptr;
      for (int g = 0; g < DirectTile::kGroups; g++) t->y[g] = y + c * t->y_plane + at[g];
      run_tile(*t, n);
    }
  }
};

TT_ISA_END
