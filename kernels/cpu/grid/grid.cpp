// grid_take and grid_put: the elements around positions, weighted along each dimension.
//   x: (n, c, in 0, in 1, in 2); grid: (n, points, dims); y: (n, c, points)
//
//   axis      per dimension, position and tap: an index, -1 outside, and a weight
//     | combine
//   taps      [kPoints][up to 16]: an index in the plane, -1 outside, and the product of weights
//     | take, put   by channels
//   y, x
#include "kernels/functors/grid.h"

TT_ISA_BEGIN

constexpr int64_t kPoints = 64;  // positions at a time
constexpr int32_t kTaps = 16;

template <class T> struct GridTaps {
  int64_t index[kPoints * kTaps];
  T weight[kPoints * kTaps];
  int32_t n;

  // Sets the taps of position j: all combinations of those along the dimensions.
  TT_NOINLINE void combine(const AxisTaps<T>* axis, int64_t j) {
    n = axis[0].n * axis[1].n * axis[2].n;
    int64_t* to = index + j * n;
    T* w = weight + j * n;
    for (int32_t a = 0; a < axis[0].n; a++)
      for (int32_t b = 0; b < axis[1].n; b++) {
        const int64_t rows = axis[0].index[a] * size[1] + axis[1].index[b];
        const bool outside = (axis[0].index[a] | axis[1].index[b]) < 0;
        const T product = axis[0].weight[a] * axis[1].weight[b];
        for (int32_t c = 0; c < axis[2].n; c++) {
          const int64_t column = axis[2].index[c];
          *to++ = outside || column < 0 ? -1 : rows * size[2] + column;
          *w++ = product * axis[2].weight[c];
        }
      }
  }
  // The same for m positions in a plane; kN: the number of taps along a dimension.
  template <int kN, class Axis>
  TT_NOINLINE void fill_plane(const GridPlan& p, const T* grid, int64_t m, const Axis& axis_of) {
    n = kN * kN;
    int64_t* to = index;
    T* w = weight;
    for (int64_t j = 0; j < m; j++) {
      AxisTaps<T> row, column;
      axis_of(position_of(p, grid[2 * j], 2), p, p.in[2], p.order[2], &column);
      axis_of(position_of(p, grid[2 * j + 1], 1), p, p.in[1], p.order[1], &row);
      for (int a = 0; a < kN; a++)
        for (int b = 0; b < kN; b++) {
          const bool outside = (row.index[a] | column.index[b]) < 0;
          *to++ = outside ? -1 : row.index[a] * p.in[2] + column.index[b];
          *w++ = row.weight[a] * column.weight[b];
        }
    }
  }
  // The taps of m positions.
  TT_NOINLINE void fill(const GridPlan& p, const T* grid, int64_t m) {
    size = p.in;
    if constexpr (kIsSame<T, float> && TT_VEC_BYTES > 16) {
      if (p.dims == 2 && p.mode == kGridLinear)
        return fill_plane<2>(p, grid, m, [](auto... of) TT_INLINE_BODY { linear_taps(of...); });
      if (p.dims == 2 && p.mode == kGridNearest)
        return fill_plane<1>(p, grid, m, [](auto... of) TT_INLINE_BODY { nearest_taps(of...); });
    }
    for (int64_t j = 0; j < m; j++) {
      AxisTaps<T> axis[kGridDims];
      point_taps(p, grid + j * p.dims, axis);
      combine(axis, j);
    }
  }
  // kN: n, or 0 for any. Elements outside count as 0.
  template <int kN> TT_NOINLINE void take_by(const T* x, T* y, int64_t m) const {
    const int64_t taps = kN ? kN : n;
    const T zero = 0;
    const int64_t* at = index;
    const T* w = weight;
    for (int64_t j = 0; j < m; j++, at += taps, w += taps) {
      T sum = 0;
      TT_UNROLL_BY(4)
      for (int64_t t = 0; t < taps; t++) sum += *(at[t] < 0 ? &zero : x + at[t]) * w[t];
      y[j] = sum;
    }
  }
  TT_INLINE void take(const T* x, T* y, int64_t m) const {
    if (n == 1) take_by<1>(x, y, m);
    else if (n == 4) take_by<4>(x, y, m);
    else take_by<0>(x, y, m);
  }
  TT_NOINLINE void put(T* x, const T* y, int64_t m) const {
    const int64_t* at = index;
    const T* w = weight;
    for (int64_t j = 0; j < m; j++, at += n, w += n)
      for (int32_t t = 0; t < n; t++)
        if (at[t] >= 0 && w[t] == w[t]) x[at[t]] += y[j] * w[t];
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
