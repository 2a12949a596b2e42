// grid_take and grid_put: the elements around positions, weighted along each dimension. A thread
// takes kGridChannels channels of a point. A put is the transpose: the taps of all points are
// sorted by the element that they read, and segments.h adds those of each element.
//   x: (n, c, in 0, in 1, in 2); grid: (n, points, dims); y: (n, c, points)
#include "kernels/cuda/index/segments.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors/grid.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxTaps = 16;

// The taps of a point, all combinations of those along the dimensions.
template <class T> struct PointTaps {
  AxisTaps<T> axis[kGridDims];

  __device__ __forceinline__ PointTaps(const GridPlan& p, int64_t point) {
    point_taps(p, reinterpret_cast<const T*>(p.grid) + point * p.dims, axis);
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

// A thread takes a point: the sums over all channels of each tap, then their weights' derivatives.
template <class T> __global__ void __launch_bounds__(kThreads)
    slopes_of(const __grid_constant__ GridPlan p) {
  const int64_t elements = p.in[0] * p.in[1] * p.in[2];
  GridPlan derived = p;
  for (int64_t i = first_item(); i < p.n * p.points; i += item_step()) {
    const int64_t image = quotient(i, p.points);
    const int64_t point = i - image * p.points;
    T sums[kMaxTaps];
    for (int t = 0; t < kMaxTaps; t++) sums[t] = 0;
    const PointTaps<T> taps(p, i);
    for (int64_t c = 0; c < p.c; c++) {
      const T* x = reinterpret_cast<const T*>(p.x) + (image * p.c + c) * elements;
      const T y = reinterpret_cast<const T*>(p.y)[(image * p.c + c) * p.points + point];
      int t = 0;
      taps.each(p, [&](int64_t at, T) {
        sums[t] += at < 0 ? T(0) : x[at] * y;
        t++;
      });
    }
    for (int d = 0; d < p.dims; d++) {
      derived.order[kGridDims - 1 - d] = 1;
      T slope = 0;
      int t = 0;
      PointTaps<T>(derived, i).each(p, [&](int64_t, T weight) { slope += sums[t++] * weight; });
      reinterpret_cast<T*>(p.slopes)[i * p.dims + d] = slope;
      derived.order[kGridDims - 1 - d] = 0;
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
int32_t grid_slopes(const void* plan, void* stream, void*) {
  const GridPlan& p = grid_plan(plan);
  const int64_t items = p.n * p.points;
  if (items == 0) return TT_OK;
  auto kernel = p.dtype == TT_F64 ? slopes_of<double> : slopes_of<float>;
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
