// grid_take, grid_put, grid_slopes: the elements around positions, weighted along each dimension.
//   x: (n, c, in 0, in 1, in 2); grid: (n, points, dims); y: (n, c, points)
//
//   axis      per dimension, position and tap: an index, -1 outside, and a weight
//     | combine
//   taps      [kPoints][up to 16]: an index in the plane, -1 outside, and the product of weights
//     | take, put   by channels
//   y, x
//
// grid_slopes adds the elements of all channels, times y, per tap, and weighs these sums by the
// derivatives of the weights.
#include "kernels/cpu/simd/gather.h"
#include "kernels/cpu/simd/vec.h"
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
  // The taps of m positions.
  TT_NOINLINE void fill(const GridPlan& p, const T* grid, int64_t m) {
    size = p.in;
    for (int64_t j = 0; j < m; j++) {
      AxisTaps<T> axis[kGridDims];
      point_taps(p, grid + j * p.dims, axis);
      combine(axis, j);
    }
  }
  // y: the weighted sums of the taps, in which elements outside count as 0.
  TT_NOINLINE void take(const T* x, T* y, int64_t m) const {
    const T zero = 0;
    const int64_t* at = index;
    const T* w = weight;
    for (int64_t j = 0; j < m; j++, at += n, w += n) {
      T sum = 0;
      for (int32_t t = 0; t < n; t++) sum += *(at[t] < 0 ? &zero : x + at[t]) * w[t];
      y[j] = sum;
    }
  }
  TT_NOINLINE void put(T* x, const T* y, int64_t m) const {
    const int64_t* at = index;
    const T* w = weight;
    for (int64_t j = 0; j < m; j++, at += n, w += n)
      for (int32_t t = 0; t < n; t++)
        if (at[t] >= 0 && w[t] == w[t]) x[at[t]] += y[j] * w[t];
  }

  // add_products adds y times each tap's element to `sums`, and weigh takes their weighted sums.
  TT_NOINLINE void add_products(const T* x, const T* y, int64_t m) {
    const int64_t* at = index;
    T* sum = sums;
    for (int64_t j = 0; j < m; j++, at += n, sum += n)
      for (int32_t t = 0; t < n; t++)
        if (at[t] >= 0) sum[t] += y[j] * x[at[t]];
  }
  TT_NOINLINE void weigh(T* slopes, int64_t stride, int64_t m) const {
    for (int64_t j = 0; j < m; j++) {
      T sum = 0;
      for (int32_t t = 0; t < n; t++) sum += sums[j * n + t] * weight[j * n + t];
      slopes[j * stride] = sum;
    }
  }
  void clear_sums(int64_t m) { memset(sums, 0, m * kTaps * sizeof(T)); }

 private:
  T sums[kPoints * kTaps];
  const int64_t* size;
};

#if TT_GATHERS
// The same for vectors of positions; index, weight, sums: [tap][kPoints].
struct VectorTaps {
  using V = Vec<float>;
  using I = Vec<int32_t>;
  static constexpr int kL = kLanes<float>;
  alignas(64) int32_t index[kTaps][kPoints];
  alignas(64) float weight[kTaps][kPoints];
  alignas(64) float sums[kTaps][kPoints];
  int32_t n;

  // The functions below do for a vector of positions what functors/grid.h does for one.
  struct At {
    V at, slope;
  };
  static TT_INLINE At clipped(At p, float last) {
    const V high = splat(last);
    const auto inside = (p.at > V{}) & (p.at < high);
    const V not_above = chosen(p.at >= high, high, p.at);
    return {chosen(p.at > V{}, not_above, V{}), chosen(inside, p.slope, V{})};
  }
  static TT_INLINE At reflected(At p, float size, bool align) {
    const float low = align ? 0.0f : -0.5f;
    const float span = align ? size - 1 : size;
    if (span == 0) return {V{}, V{}};
    const V distance = p.at - low;
    const V size_of = chosen(distance < V{}, -distance, distance);
    const V slope = chosen(distance < V{}, -p.slope, p.slope);
    const V flips = floor_of(size_of / span);
    const V rest = size_of - flips * span;
    const auto even = floor_of(flips * 0.5f) * 2.0f == flips;
    return {chosen(even, rest, span - rest) + low, chosen(even, slope, -slope)};
  }
  static TT_INLINE At padded(At p, const GridPlan& plan, float size) {
    if (plan.padding == kGridZeros) return p;
    if (plan.padding == kGridReflection) p = reflected(p, size, plan.align);
    return clipped(p, size - 1);
  }
  static TT_INLINE At representable(At p, float limit = 0x1p31f) {
    const auto good = (p.at < splat(limit)) & (p.at > splat(-limit));
    return {chosen(good, p.at, splat(-100.0f)), chosen(good, p.slope, V{})};
  }
  static TT_INLINE I index_of(V at, float size) {
    const auto inside = (at >= V{}) & (at <= splat(size - 1));
    return chosen(inside, converted<I>(chosen(inside, at, V{})), splat(int32_t(-1)));
  }
  // The k-th derivatives of the kernel at distances in [0, 1] and in [1, 2].
  static TT_INLINE V cubic_near(V d, int k) {
    if (k == 0) return (d * 1.25f - 2.25f) * d * d + 1.0f;
    if (k == 1) return (d * 3.75f - 4.5f) * d;
    if (k == 2) return d * 7.5f - 4.5f;
    return splat(k == 3 ? 7.5f : 0.0f);
  }
  static TT_INLINE V cubic_far(V d, int k) {
    if (k == 0) return ((d * -0.75f + 3.75f) * d - 6.0f) * d + 3.0f;
    if (k == 1) return (d * -2.25f + 7.5f) * d - 6.0f;
    if (k == 2) return d * -4.5f + 7.5f;
    return splat(k == 3 ? -4.5f : 0.0f);
  }
  struct Axis {
    int n;
    I index[kAxisTaps];
    V weight[kAxisTaps];
  };
  static TT_INLINE void linear(At p, const GridPlan& plan, float size, int order, Axis* axis) {
    const At inside = padded(p, plan, size);
    const At at = representable(inside);
    const V low = floor_of(at.at);
    const V rest = at.at - low;
    const V slope = order == 1 ? at.slope : V{};
    const V odd = inside.at - inside.at;
    axis->index[0] = index_of(low, size);
    axis->index[1] = index_of(low + 1.0f, size);
    axis->weight[0] = order ? -slope : V(1.0f - rest + odd);
    axis->weight[1] = order ? slope : V(rest + odd);
  }
  static TT_INLINE void cubic(At p, const GridPlan& plan, float size, int order, Axis* axis) {
    const At at = representable(p, plan.padding == kGridZeros ? 0x1p31f : float(kInf));
    const V low = floor_of(at.at);
    const V rest = at.at - low;
    V scale = splat(1.0f);
    for (int k = 0; k < order; k++) scale *= at.slope;
    const V mirrored = order % 2 ? -scale : scale;
    const V odd = order ? V{} : V(p.at - p.at);
    axis->weight[0] = cubic_far(rest + 1.0f, order) * scale + odd;
    axis->weight[1] = cubic_near(rest, order) * scale;
    axis->weight[2] = cubic_near(1.0f - rest, order) * mirrored;
    axis->weight[3] = cubic_far(2.0f - rest, order) * mirrored;
    for (int k = 0; k < 4; k++)
      axis->index[k] = index_of(padded({low + float(k - 1), V{}}, plan, size).at, size);
  }
  // numbers: of kL positions.
  static TT_NOINLINE void axis_of(const GridPlan& plan, const float* numbers, int d, Axis* axis) {
    const float size = float(plan.in[d]);
    const float factor = (plan.align ? size - 1 : size) / 2;
    const At p = {(load(numbers) + 1.0f) * factor - (plan.align ? 0.0f : 0.5f), splat(factor)};
    const int order = plan.order[d];
    axis->n = plan.mode == kGridNearest ? 1 : 2;
    if (plan.mode == kGridLinear) return linear(p, plan, size, order, axis);
    if (plan.mode == kGridNearest) {
      axis->index[0] = index_of(nearest_to(representable(padded(p, plan, size)).at), size);
      axis->weight[0] = splat(order ? 0.0f : 1.0f);
      return;
    }
    axis->n = 4;
    cubic(p, plan, size, order, axis);
  }
  TT_NOINLINE void fill(const GridPlan& p, const float* grid, int64_t m) {
    for (int64_t j = 0; j < m; j += kL) {
      alignas(64) float numbers[kGridDims][kL] = {};
      const int64_t some = min<int64_t>(m - j, kL);
      for (int64_t i = 0; i < some; i++)
        for (int d = 0; d < p.dims; d++) numbers[d][i] = grid[(j + i) * p.dims + d];
      Axis depth, row, column;
      axis_of(p, numbers[0], 2, &column);
      axis_of(p, numbers[1], 1, &row);
      depth.n = 1;
      depth.index[0] = I{};
      depth.weight[0] = splat(1.0f);
      if (p.dims == 3) axis_of(p, numbers[2], 0, &depth);
      n = 0;
      for (int a = 0; a < depth.n; a++)
        for (int b = 0; b < row.n; b++) {
          const I rows = depth.index[a] * int32_t(p.in[1]) + row.index[b];
          const I outside = depth.index[a] | row.index[b];
          const V product = depth.weight[a] * row.weight[b];
          for (int c = 0; c < column.n; c++, n++) {
            const I at = rows * int32_t(p.in[2]) + column.index[c];
            const auto is_outside = (outside | column.index[c]) < I{};
            store(&index[n][j], chosen(is_outside, splat(int32_t(-1)), at));
            store(&weight[n][j], product * column.weight[c]);
          }
        }
    }
  }
  TT_NOINLINE void take(const float* x, float* y, int64_t m) const {
    for (int64_t j = 0; j < m; j += kL) {
      V sum{};
      for (int32_t t = 0; t < n; t++) sum += gathered(x, load(&index[t][j])) * load(&weight[t][j]);
      store(y + j, sum, Part<float>(int(min<int64_t>(m - j, kL))));
    }
  }
  TT_NOINLINE void put(float* x, const float* y, int64_t m) const {
    for (int64_t j = 0; j < m; j++)
      for (int32_t t = 0; t < n; t++) {
        const int32_t at = index[t][j];
        const float w = weight[t][j];
        if (at >= 0 && w == w) x[at] += y[j] * w;
      }
  }
  TT_NOINLINE void add_products(const float* x, const float* y, int64_t m) {
    for (int64_t j = 0; j < m; j += kL) {
      const V factor = load(y + j, Part<float>(int(min<int64_t>(m - j, kL))));
      for (int32_t t = 0; t < n; t++)
        store(&sums[t][j], load(&sums[t][j]) + factor * gathered(x, load(&index[t][j])));
    }
  }
  TT_NOINLINE void weigh(float* slopes, int64_t stride, int64_t m) const {
    alignas(64) float results[kPoints];
    for (int64_t j = 0; j < m; j += kL) {
      V sum{};
      for (int32_t t = 0; t < n; t++) sum += load(&sums[t][j]) * load(&weight[t][j]);
      store(results + j, sum);
    }
    for (int64_t j = 0; j < m; j++) slopes[j * stride] = results[j];
  }
  void clear_sums(int64_t) { memset(sums, 0, sizeof sums); }
};
using FloatTaps = VectorTaps;
#else
using FloatTaps = GridTaps<float>;
#endif

enum GridWork { kGridTake, kGridPut, kGridSlopes };

// Points [from, to) of image i, channels of block b.
template <class T, class Taps> TT_NOINLINE void run_points(const GridPlan& p, int64_t i, int64_t b,
                                                           int64_t from, int64_t to, bool put) {
  Taps taps;
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
// The gradients of the positions [from, to) of image i.
template <class T, class Taps>
TT_NOINLINE void run_slopes(const GridPlan& plan, int64_t i, int64_t from, int64_t to) {
  Taps taps;
  GridPlan p = plan;
  const int64_t elements = p.in[0] * p.in[1] * p.in[2];
  const T* grid = reinterpret_cast<const T*>(p.grid) + i * p.points * p.dims;
  T* slopes = reinterpret_cast<T*>(p.slopes) + i * p.points * p.dims;
  for (int64_t j = from; j < to; j += kPoints) {
    const int64_t m = min(kPoints, to - j);
    taps.clear_sums(m);
    taps.fill(p, grid + j * p.dims, m);
    for (int64_t c = 0; c < p.c; c++)
      taps.add_products(reinterpret_cast<const T*>(p.x) + (i * p.c + c) * elements,
                        reinterpret_cast<const T*>(p.y) + (i * p.c + c) * p.points + j, m);
    for (int32_t d = 0; d < p.dims; d++) {
      int32_t& order = p.order[kGridDims - 1 - d];
      order = 1;
      taps.fill(p, grid + j * p.dims, m);
      taps.weigh(slopes + j * p.dims + d, p.dims, m);
      order = 0;
    }
  }
}
template <class T, class Taps>
void run_units(const GridPlan& p, int64_t begin, int64_t end, GridWork work) {
  for (int64_t u = begin; u < end; u++) {
    if (work == kGridPut) {
      run_points<T, Taps>(p, u / p.n_blocks, u % p.n_blocks, 0, p.points, true);
      continue;
    }
    const int64_t blocks = work == kGridSlopes ? 1 : p.n_blocks;
    const int64_t from = u / blocks % p.n_tiles * p.tile;
    const int64_t to = min(from + p.tile, p.points);
    const int64_t image = u / blocks / p.n_tiles;
    if (work == kGridSlopes) run_slopes<T, Taps>(p, image, from, to);
    else run_points<T, Taps>(p, image, u % blocks, from, to, false);
  }
}
inline int32_t run_grid(const void* plan, int64_t begin, int64_t end, GridWork work) {
  const GridPlan& p = *static_cast<const GridPlan*>(plan);
  if (is_dtype(p.dtype, TT_F64)) run_units<double, GridTaps<double> >(p, begin, end, work);
  else run_units<float, FloatTaps>(p, begin, end, work);
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(grid_take)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_grid(plan, begin, end, kGridTake);
}
// x has been set to zero.
TT_KERNEL(grid_put)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_grid(plan, begin, end, kGridPut);
}
TT_KERNEL(grid_slopes)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_grid(plan, begin, end, kGridSlopes);
}

TT_ENTRY_END
