// grid_take and grid_put: the elements around positions, weighted along each dimension. A thread
// takes kGridChannels channels of a point. A put is the transpose: the taps of all points are
// sorted by the element that they read, and segments.h adds those of each element.
//   x: (n, c, in 0, in 1, in 2); grid: (n, points, dims); y: (n, c, points)
#include "kernels/cuda/index/segments.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors/math.h"
#include "plan/grid_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kAxisTaps = 4;

// A position along one dimension, in elements, and its derivative by the number in the grid.
template <class T> struct Position { T at, slope; };

// Up to four elements along one dimension, -1 outside, and their weights.
template <class T> struct AxisTaps {
  int n;
  int64_t index[kAxisTaps];
  T weight[kAxisTaps];
};

template <class T> TT_FN Position<T> clipped(Position<T> p, int64_t size) {
  const T last = T(size - 1);
  if (!(p.at > 0)) return {0, 0};  // nan, too
  if (p.at >= last) return {last, 0};
  return p;
}
template <class T> TT_FN Position<T> reflected(Position<T> p, int64_t size, bool align) {
  const T low = align ? T(0) : T(-0.5);
  const T span = align ? T(size - 1) : T(size);
  if (span == 0) return {0, 0};
  T distance = p.at - low;
  if (distance < 0) {
    distance = -distance;
    p.slope = -p.slope;
  }
  const T flips = math::floor(distance / span);
  const T rest = distance - flips * span;
  const bool odd = T(2) * math::floor(flips / 2) != flips;
  if (!odd) return {rest + low, p.slope};
  return {span - rest + low, -p.slope};
}
template <class T> TT_FN Position<T> padded(Position<T> p, const GridPlan& plan, int64_t size) {
  if (plan.padding == kGridZeros) return p;
  if (plan.padding == kGridReflection) p = reflected(p, size, plan.align);
  return clipped(p, size);
}
// Replaces nan and what an index cannot hold by a position outside.
template <class T> TT_FN Position<T> representable(Position<T> p) {
  const bool good = math::fabs(double(p.at)) < 0x1p31;
  return good ? p : Position<T>{T(-100), 0};
}
// 0, or nan at a position that is not finite: what it adds to the weights of elements.
template <class T> TT_FN T undefined(T at) { return at - at; }
template <class T> TT_FN int64_t index_of(T at, int64_t size) {
  return at >= 0 && at <= T(size - 1) ? int64_t(at) : -1;
}
template <class T> TT_FN T power(T x, int n) {
  T y = 1;
  for (int i = 0; i < n; i++) y *= x;
  return y;
}

// The k-th derivatives of Keys' kernel with a = -3/4 at distances d in [0, 1] and in [1, 2].
template <class T> TT_FN T cubic_near(T d, int k) {
  const T a = T(-0.75);
  if (k == 0) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (k == 1) return (3 * (a + 2) * d - 2 * (a + 3)) * d;
  if (k == 2) return 6 * (a + 2) * d - 2 * (a + 3);
  return k == 3 ? 6 * (a + 2) : T(0);
}
template <class T> TT_FN T cubic_far(T d, int k) {
  const T a = T(-0.75);
  if (k == 0) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  if (k == 1) return (3 * a * d - 10 * a) * d + 8 * a;
  if (k == 2) return 6 * a * d - 10 * a;
  return k == 3 ? 6 * a : T(0);
}

template <class T> TT_FN void nearest_taps(Position<T> p, const GridPlan& plan, int64_t size,
                                           int order, AxisTaps<T>* taps) {
  const Position<T> at = representable(padded(p, plan, size));
  taps->n = 1;
  taps->index[0] = index_of(math::rint(at.at), size);
  taps->weight[0] = order ? T(0) : T(1);
}
template <class T> TT_FN void linear_taps(Position<T> p, const GridPlan& plan, int64_t size,
                                          int order, AxisTaps<T>* taps) {
  const Position<T> inside = padded(p, plan, size);
  const Position<T> at = representable(inside);
  const T low = math::floor(at.at);
  const T rest = at.at - low;
  const T slope = order == 1 ? at.slope : T(0);
  const T odd = order ? T(0) : undefined(inside.at);
  taps->n = 2;
  for (int k = 0; k < 2; k++) taps->index[k] = index_of(low + T(k), size);
  taps->weight[0] = order ? -slope : 1 - rest + odd;
  taps->weight[1] = order ? slope : rest + odd;
}
template <class T> TT_FN void cubic_taps(Position<T> p, const GridPlan& plan, int64_t size,
                                         int order, AxisTaps<T>* taps) {
  const Position<T> at = representable(p);
  const T low = math::floor(at.at);
  const T rest = at.at - low;
  const T scale = power(at.slope, order);
  const T mirrored = order % 2 ? -scale : scale;  // distances to later elements decrease
  taps->n = 4;
  const T odd = order ? T(0) : undefined(p.at);
  taps->weight[0] = cubic_far(rest + 1, order) * scale + odd;
  taps->weight[1] = cubic_near(rest, order) * scale;
  taps->weight[2] = cubic_near(1 - rest, order) * mirrored;
  taps->weight[3] = cubic_far(2 - rest, order) * mirrored;
  for (int k = 0; k < 4; k++)
    taps->index[k] = index_of(padded(Position<T>{low + T(k - 1), 0}, plan, size).at, size);
}
template <class T> TT_FN void axis_taps(T number, const GridPlan& plan, int d, AxisTaps<T>* taps) {
  const int64_t size = plan.in[d];
  const T factor = (plan.align ? T(size - 1) : T(size)) / 2;
  const Position<T> p = {(number + 1) * factor - (plan.align ? T(0) : T(0.5)), factor};
  if (plan.mode == kGridNearest) nearest_taps(p, plan, size, plan.order[d], taps);
  else if (plan.mode == kGridLinear) linear_taps(p, plan, size, plan.order[d], taps);
  else cubic_taps(p, plan, size, plan.order[d], taps);
}

// The taps of a point, all combinations of those along the dimensions.
template <class T> struct PointTaps {
  AxisTaps<T> axis[kGridDims];

  __device__ __forceinline__ PointTaps(const GridPlan& p, int64_t point) {
    const T* numbers = reinterpret_cast<const T*>(p.grid) + point * p.dims;
#pragma unroll
    for (int d = 0; d < kGridDims; d++) {
      if (d < kGridDims - p.dims) {
        axis[d].n = 1;
        axis[d].index[0] = 0;
        axis[d].weight[0] = 1;
      } else {
        axis_taps(numbers[kGridDims - 1 - d], p, d, &axis[d]);
      }
    }
  }
  // Calls f(index in the image's plane or -1, weight).
  template <class F> __device__ __forceinline__ void each(const GridPlan& p, const F& f) const {
    for (int a = 0; a < axis[0].n; a++)
      for (int b = 0; b < axis[1].n; b++)
        for (int c = 0; c < axis[2].n; c++) {
          const int64_t plane = axis[0].index[a];
          const int64_t row = axis[1].index[b];
          const int64_t column = axis[2].index[c];
          const bool inside = plane >= 0 && row >= 0 && column >= 0;
          f(inside ? (plane * p.in[1] + row) * p.in[2] + column : -1,
            axis[0].weight[a] * axis[1].weight[b] * axis[2].weight[c]);
        }
  }
};

template <class T> __global__ void __launch_bounds__(kThreads)
    take(const __grid_constant__ GridPlan p) {
  const int64_t elements = p.in[0] * p.in[1] * p.in[2];
  for (int64_t i = first_item(); i < p.n * p.n_blocks * p.points; i += item_step()) {
    const int64_t rest = quotient(i, p.points);
    const int64_t point = i - rest * p.points;
    const int64_t image = quotient(rest, p.n_blocks);
    const int64_t first = (rest - image * p.n_blocks) * kGridChannels;
    const PointTaps<T> taps(p, image * p.points + point);
    const int64_t last = first + kGridChannels < p.c ? first + kGridChannels : p.c;
    for (int64_t c = first; c < last; c++) {
      const T* x = reinterpret_cast<const T*>(p.x) + (image * p.c + c) * elements;
      T sum = 0;
      taps.each(p,
                [&](int64_t at, T weight) { sum += at < 0 ? undefined(weight) : x[at] * weight; });
      reinterpret_cast<T*>(p.y)[(image * p.c + c) * p.points + point] = sum;
    }
  }
}

// The taps of all points: items (image, point, tap).
template <class T> __global__ void __launch_bounds__(kThreads)
    list_taps(const __grid_constant__ GridPlan p, const SortedItems items, T* weights, int n_taps) {
  const int64_t elements = p.in[0] * p.in[1] * p.in[2];
  for (int64_t i = first_item(); i < p.n * p.points; i += item_step()) {
    const int64_t image = quotient(i, p.points);
    int64_t item = i * n_taps;
    PointTaps<T>(p, i).each(p, [&](int64_t at, T weight) {
      const bool counts = at >= 0 && weight == weight;
      const int64_t key = counts ? image * elements + at : p.n * elements;
      items.put(item, uint64_t(key));
      weights[item++] = weight;
    });
  }
}

template <class T_> struct GridSums {
  using T = T_;
  using Feature = int64_t;  // the channel
  static constexpr int kAtOnce = 4;
  SortedItems items;
  int64_t n, features;
  const T* weights;
  char *x, *y;
  int64_t elements, points, images;
  int32_t n_taps;

  __device__ __forceinline__ Feature feature(int64_t f) const { return f; }
  __device__ __forceinline__ T addend(int64_t i, Feature channel) const {
    const int64_t item = items.at(i);
    const int64_t point = quotient(item, n_taps);
    const int64_t image = quotient(point, points);
    const int64_t at = (image * features + channel) * points + point - image * points;
    return reinterpret_cast<const T*>(y)[at] * weights[item];
  }
  // NULL: outside.
  __device__ __forceinline__ T* target(uint64_t sorted_key, Feature channel) const {
    const int64_t key = int64_t(sorted_key);
    const int64_t image = quotient(key, elements);
    if (image == images) return nullptr;
    return reinterpret_cast<T*>(x) + (image * features + channel) * elements +
           (key - image * elements);
  }
};

// ---- on the host ----

int taps_of(const GridPlan& p) {
  if (p.mode == kGridNearest) return 1;
  const int each = p.mode == kGridLinear ? 2 : 4;
  return p.dims == 3 ? each * each * each : each * each;
}
const GridPlan& grid_plan(const void* plan) { return *static_cast<const GridPlan*>(plan); }
int key_bits_of(const GridPlan& p) { return bits_of(uint64_t(p.n * p.in[0] * p.in[1] * p.in[2])); }
int64_t weights_bytes(int64_t items) { return round_up(items * 8, 256); }

template <class T> int32_t launch_put(const GridPlan& p, char* workspace, void* stream) {
  const int n_taps = taps_of(p);
  const int64_t items = p.n * p.points * n_taps;
  const int64_t elements = p.in[0] * p.in[1] * p.in[2];
  const int bits = key_bits_of(p);
  PairRoom room(workspace, items, bits);
  T* const weights = reinterpret_cast<T*>(workspace + PairRoom::bytes(items, bits));
  char* const parts = reinterpret_cast<char*>(weights) + weights_bytes(items);
  int32_t status = device::launch(list_taps<T>, grid_of(p.n * p.points, kThreads), kThreads, 0,
                                  stream, p, room.items(), weights, n_taps);
  if (status == TT_OK) status = room.sort(stream);
  if (status != TT_OK) return status;
  const GridSums<T> sums = {room.items(), items,    p.c,      weights, p.x,
                            p.y,          elements, p.points, p.n,     n_taps};
  return launch_segments(sums, parts, stream);
}

}  // namespace

namespace cuda {

int32_t grid_take(const void* plan, void* stream, void*) {
  const GridPlan& p = grid_plan(plan);
  const int64_t items = p.n * p.n_blocks * p.points;
  if (items == 0) return TT_OK;
  auto kernel = p.dtype == TT_F64 ? take<double> : take<float>;
  return device::launch(kernel, grid_of(items, kThreads), kThreads, 0, stream, p);
}
int32_t grid_put(const void* plan, void* stream, void* workspace) {
  const GridPlan& p = grid_plan(plan);
  if (p.n * p.points * p.c == 0) return TT_OK;
  char* const room = static_cast<char*>(workspace);
  return p.dtype == TT_F64 ? launch_put<double>(p, room, stream)
                           : launch_put<float>(p, room, stream);
}
size_t grid_put_workspace(const void* plan) {
  const GridPlan& p = grid_plan(plan);
  const int64_t items = p.n * p.points * taps_of(p);
  return size_t(PairRoom::bytes(items, key_bits_of(p)) + weights_bytes(items) +
                segment_bytes(items, p.c));
}

}  // namespace cuda
}  // namespace TT_NS
