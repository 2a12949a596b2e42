// grid_take and grid_put: the elements around positions, weighted along each dimension.
//   x: (n, c, in 0, in 1, in 2); grid: (n, points, dims); y: (n, c, points)
//
//   axis      per dimension, position and tap: an index, -1 outside, and a weight
//     | combine
//   taps      [up to 16][kPoints]: an index in the plane, -1 outside, and the product of weights
//     | take, put   by channels
//   y, x
#include "kernels/functors/grid.h"

TT_ISA_BEGIN

constexpr int64_t kPoints = 64;  // positions at a time
constexpr int32_t kTaps = 16;

template <class T> struct GridTaps {
  int64_t index[kTaps][kPoints];
  T weight[kTaps][kPoints];
  int32_t n;

  // Sets the taps of position j: all combinations of those along the dimensions.
  TT_NOINLINE void combine(const AxisTaps<T>* axis, int64_t j) {
    n = 0;
    for (int32_t a = 0; a < axis[0].n; a++)
      for (int32_t b = 0; b < axis[1].n; b++)
        for (int32_t c = 0; c < axis[2].n; c++, n++) {
          const int64_t plane = axis[0].index[a];
          const int64_t row = axis[1].index[b];
          const int64_t column = axis[2].index[c];
          const bool inside = plane >= 0 && row >= 0 && column >= 0;
          const int64_t at = (plane * size[1] + row) * size[2] + column;
          index[n][j] = inside ? at : -1;
          weight[n][j] = axis[0].weight[a] * axis[1].weight[b] * axis[2].weight[c];
        }
  }
  // The taps of m positions.
  TT_NOINLINE void fill(const GridPlan& p, const T* grid, int64_t m) {
    size = p.in;
    for (int64_t j = 0; j < m; j++) {
      AxisTaps<T> axis[kGridDims];
      point_taps(p, grid + j * p.dims, axis);
      combine(axis, j);
    }
  }
  TT_NOINLINE void take(const T* x, T* y, int64_t m) const {
    for (int64_t j = 0; j < m; j++) y[j] = 0;
    for (int32_t t = 0; t < n; t++)
      for (int64_t j = 0; j < m; j++)
        y[j] += index[t][j] < 0 ? undefined(weight[t][j]) : x[index[t][j]] * weight[t][j];
  }
  TT_NOINLINE void put(T* x, const T* y, int64_t m) const {
    for (int64_t j = 0; j < m; j++)
      for (int32_t t = 0; t < n; t++)
        if (index[t][j] >= 0 && weight[t][j] == weight[t][j]) x[index[t][j]] += y[j] * weight[t][j];
  }

 private:
  const int64_t* size;
};

// Points [from, to) of image i, channels of block b.
template <class T> TT_NOINLINE void run_points(const GridPlan& p, int64_t i, int64_t b,
                                               int64_t from, int64_t to, bool put) {
  GridTaps<T> taps;
  const int64_t elements = p.in[0] * p.in[1] * p.in[2];
  const int64_t first = b * kGridChannels;
  const int64_t last = min(first + kGridChannels, p.c);
  const T* grid = reinterpret_cast<const T*>(p.grid) + i * p.points * p.dims;
  for (int64_t j = from; j < to; j += kPoints) {
    const int64_t m = min(kPoints, to - j);
    taps.fill(p, grid + j * p.dims, m);
    for (int64_t c = first; c < last; c++) {
      T* x = reinterpret_cast<T*>(p.x) + (i * p.c + c) * elements;
      T* y = reinterpret_cast<T*>(p.y) + (i * p.c + c) * p.points + j;
      if (put) taps.put(x, y, m);
      else taps.take(x, y, m);
    }
  }
}
template <class T> void take_units(const GridPlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) {
    const int64_t from = u / p.n_blocks % p.n_tiles * p.tile;
    run_points<T>(p, u / p.n_blocks / p.n_tiles, u % p.n_blocks, from, min(from + p.tile, p.points),
                  false);
  }
}
template <class T> void put_units(const GridPlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++)
    run_points<T>(p, u / p.n_blocks, u % p.n_blocks, 0, p.points, true);
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(grid_take)(const void* plan, int64_t begin, int64_t end) noexcept {
  const GridPlan& p = *static_cast<const GridPlan*>(plan);
  if (is_dtype(p.dtype, TT_F64)) take_units<double>(p, begin, end);
  else take_units<float>(p, begin, end);
  return TT_OK;
}

// x has been set to zero.
TT_KERNEL(grid_put)(const void* plan, int64_t begin, int64_t end) noexcept {
  const GridPlan& p = *static_cast<const GridPlan*>(plan);
  if (is_dtype(p.dtype, TT_F64)) put_units<double>(p, begin, end);
  else put_units<float>(p, begin, end);
  return TT_OK;
}

TT_ENTRY_END
