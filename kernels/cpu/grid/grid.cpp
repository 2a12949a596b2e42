// grid_take and grid_put: the elements around positions, weighted along each dimension.
//   x: (n, c, in 0, in 1, in 2); grid: (n, points, dims); y: (n, c, points)
//
//   axis      per dimension, position and tap: an index, -1 outside, and a weight
//     | combine
//   taps      [up to 16][kPoints]: an index in the plane, -1 outside, and the product of weights
//     | take, put   by channels
//   y, x
#include "kernels/cpu/simd/isa.h"

#include "plan/grid_plan.h"

TT_ISA_BEGIN

constexpr int64_t kPoints = 64;  // positions at a time
constexpr int32_t kAxisTaps = 4;
constexpr int32_t kTaps = 16;

// A position along one dimension, in elements, and its derivative by the number in the grid.
template <class T> struct Position { T at, slope; };

// Up to four elements along one dimension, and their weights.
template <class T> struct AxisTaps {
  int64_t index[kAxisTaps];
  T weight[kAxisTaps];
};

template <class T> TT_INLINE Position<T> clipped(Position<T> p, int64_t size) {
  const T last = T(size - 1);
  if (!(p.at > 0)) return {0, 0};  // nan, too
  if (p.at >= last) return {last, 0};
  return p;
}
template <class T> TT_INLINE Position<T> reflected(Position<T> p, int64_t size, bool align) {
  const T low = align ? T(0) : T(-0.5);
  const T span = align ? T(size - 1) : T(size);
  if (span == 0) return {0, 0};
  T distance = p.at - low;
  if (distance < 0) {
    distance = -distance;
    p.slope = -p.slope;
  }
  const T flips = T(libm::floor(double(distance / span)));
  const T rest = distance - flips * span;
  const bool odd = T(2) * T(libm::floor(double(flips / 2))) != flips;
  if (!odd) return {rest + low, p.slope};
  return {span - rest + low, -p.slope};
}
template <class T> TT_INLINE Position<T> padded(Position<T> p, const GridPlan& plan, int64_t size) {
  if (plan.padding == kGridZeros) return p;
  if (plan.padding == kGridReflection) p = reflected(p, size, plan.align);
  return clipped(p, size);
}
// Replaces nan and what an index cannot hold by a position outside.
template <class T> TT_INLINE Position<T> representable(Position<T> p) {
  const bool good = libm::fabs(double(p.at)) < 0x1p31;
  return good ? p : Position<T>{T(-100), 0};
}
// 0, or nan at a position that is not finite: what it adds to the weights of elements.
template <class T> TT_INLINE T undefined(T at) { return at - at; }
template <class T> TT_INLINE int64_t index_of(T at, int64_t size) {
  return at >= 0 && at <= T(size - 1) ? int64_t(at) : -1;
}
template <class T> TT_INLINE T power(T x, int32_t n) {
  T y = 1;
  for (int32_t i = 0; i < n; i++) y *= x;
  return y;
}

// The k-th derivatives of Keys' kernel with a = -3/4 at distances d in [0, 1] and in [1, 2].
template <class T> TT_INLINE T cubic_near(T d, int32_t k) {
  const T a = T(-0.75);
  if (k == 0) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (k == 1) return (3 * (a + 2) * d - 2 * (a + 3)) * d;
  if (k == 2) return 6 * (a + 2) * d - 2 * (a + 3);
  return k == 3 ? 6 * (a + 2) : T(0);
}
template <class T> TT_INLINE T cubic_far(T d, int32_t k) {
  const T a = T(-0.75);
  if (k == 0) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  if (k == 1) return (3 * a * d - 10 * a) * d + 8 * a;
  if (k == 2) return 6 * a * d - 10 * a;
  return k == 3 ? 6 * a : T(0);
}

// Returns the number of taps.
template <class T> TT_INLINE int32_t nearest_taps(Position<T> p, const GridPlan& plan, int64_t size,
                                                  int32_t order, AxisTaps<T>* taps) {
  const Position<T> at = representable(padded(p, plan, size));
  const double rounded = double(at.at) + 0x1.8p52 - 0x1.8p52;  // halves to even
  taps->index[0] = index_of(T(rounded), size);
  taps->weight[0] = order ? T(0) : T(1);
  return 1;
}
template <class T> TT_INLINE int32_t linear_taps(Position<T> p, const GridPlan& plan, int64_t size,
                                                 int32_t order, AxisTaps<T>* taps) {
  const Position<T> inside = padded(p, plan, size);
  const Position<T> at = representable(inside);
  const T low = T(libm::floor(double(at.at)));
  const T rest = at.at - low;
  const T slope = order == 1 ? at.slope : T(0);
  const T odd = order ? T(0) : undefined(inside.at);
  for (int32_t k = 0; k < 2; k++) taps->index[k] = index_of(low + T(k), size);
  taps->weight[0] = order ? -slope : 1 - rest + odd;
  taps->weight[1] = order ? slope : rest + odd;
  return 2;
}
template <class T> TT_INLINE int32_t cubic_taps(Position<T> p, const GridPlan& plan, int64_t size,
                                                int32_t order, AxisTaps<T>* taps) {
  const Position<T> at = representable(p);
  const T low = T(libm::floor(double(at.at)));
  const T rest = at.at - low;
  const T scale = power(at.slope, order);
  const T mirrored = order % 2 ? -scale : scale;  // distances to later elements decrease
  const T odd = order ? T(0) : undefined(p.at);
  taps->weight[0] = cubic_far(rest + 1, order) * scale + odd;
  taps->weight[1] = cubic_near(rest, order) * scale;
  taps->weight[2] = cubic_near(1 - rest, order) * mirrored;
  taps->weight[3] = cubic_far(2 - rest, order) * mirrored;
  for (int32_t k = 0; k < 4; k++)
    taps->index[k] = index_of(padded(Position<T>{low + T(k - 1), 0}, plan, size).at, size);
  return 4;
}
template <class T>
TT_INLINE int32_t axis_taps(T number, const GridPlan& plan, int32_t d, AxisTaps<T>* taps) {
  const int64_t size = plan.in[d];
  const T factor = (plan.align ? T(size - 1) : T(size)) / 2;
  const Position<T> p = {(number + 1) * factor - (plan.align ? T(0) : T(0.5)), factor};
  if (plan.mode == kGridNearest) return nearest_taps(p, plan, size, plan.order[d], taps);
  if (plan.mode == kGridLinear) return linear_taps(p, plan, size, plan.order[d], taps);
  return cubic_taps(p, plan, size, plan.order[d], taps);
}

template <class T> struct GridTaps {
  int64_t index[kTaps][kPoints];
  T weight[kTaps][kPoints];
  int32_t n;

  // Sets the taps of position j: all combinations of those along the dimensions.
  TT_NOINLINE void combine(const AxisTaps<T>* axis, const int32_t* count, int64_t j) {
    n = 0;
    for (int32_t a = 0; a < count[0]; a++)
      for (int32_t b = 0; b < count[1]; b++)
        for (int32_t c = 0; c < count[2]; c++, n++) {
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
      int32_t count[kGridDims];
      const T* numbers = grid + j * p.dims;
      const int32_t leading = kGridDims - p.dims;
      for (int32_t d = 0; d < kGridDims; d++) {
        if (d < leading) {
          axis[d].index[0] = 0;
          axis[d].weight[0] = 1;
          count[d] = 1;
        } else {
          count[d] = axis_taps(numbers[kGridDims - 1 - d], p, d, &axis[d]);
        }
      }
      combine(axis, count, j);
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
