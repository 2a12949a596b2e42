// Pooling: a thread computes one result, or in a backward one element of dx, to which it adds the
// gradients of the windows over it in their order.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/nest.h"
#include "kernels/cuda/rows.h"
#include "plan/pool_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

struct PoolArguments {
  int32_t dtype;
  bool channels_last, adaptive, count_pad, is_max;
  int64_t n, c, in[2], out[2];
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  int64_t divisor;
  const char* x;
  const char* g;
  char* y;
  int64_t* index;
};

// The elements of a dimension that a window covers: begin, begin + step, … below end.
struct Window {
  int64_t begin, end, step;
  int64_t full;  // number of elements, padding included
  __device__ __forceinline__ int64_t count() const {
    return end > begin ? quotient(end - begin + step - 1, step) : 0;
  }
};
template <int d> __device__ __forceinline__ Window window(const PoolArguments& p, int64_t o) {
  const int64_t in = p.in[d];
  if (p.adaptive) {
    const int64_t begin = quotient(o * in, p.out[d]);
    const int64_t end = quotient((o + 1) * in + p.out[d] - 1, p.out[d]);
    return {begin, end, 1, end - begin};
  }
  const int64_t dilation = p.dilation[d];
  int64_t begin = o * p.stride[d] - p.pad[d];
  const int64_t reach = begin + (p.kernel[d] - 1) * dilation + 1;
  const int64_t behind = in + p.pad[d];
  const int64_t full = (reach < behind ? reach : behind) - begin;
  if (begin < 0) begin += quotient(dilation - 1 - begin, dilation) * dilation;
  return {begin, reach < in ? reach : in, dilation, full};
}

// The windows that may cover element i: [first, end).
struct Range {
  int64_t first, end;
};
template <int d> __device__ __forceinline__ Range windows_over(const PoolArguments& p, int64_t i) {
  const int64_t in = p.in[d];
  const int64_t out = p.out[d];
  if (p.adaptive) return {quotient(i * out, in), quotient((i + 1) * out + in - 1, in)};
  const int64_t span = (p.kernel[d] - 1) * p.dilation[d] + 1;
  const int64_t low = i + p.pad[d] - span + 1;  // first element of the first window, at least
  const int64_t first = low <= 0 ? 0 : quotient(low + p.stride[d] - 1, p.stride[d]);
  const int64_t last = quotient(i + p.pad[d], p.stride[d]) + 1;
  return {first, last < out ? last : out};
}
__device__ __forceinline__ bool covers(const Window& w, int64_t i) {
  if (i < w.begin || i >= w.end) return false;
  return w.step == 1 || (i - w.begin) % w.step == 0;
}

// Where number i of an array of images of `size` is: image and channel, row, column.
struct Place {
  int64_t image, channel, row, column;
};
__device__ __forceinline__ Place place_of(const PoolArguments& p, const int64_t (&size)[2],
                                          int64_t i) {
  Place at;
  if (p.channels_last) {
    const int64_t rest = quotient(i, p.c);
    at.channel = i - rest * p.c;
    i = rest;
  }
  const int64_t rows = quotient(i, size[1]);
  at.column = i - rows * size[1];
  const int64_t planes = quotient(rows, size[0]);
  at.row = rows - planes * size[0];
  at.image = planes;
  if (!p.channels_last) {
    at.image = quotient(planes, p.c);
    at.channel = planes - at.image * p.c;
  }
  return at;
}
// The number of (row, column) in the image and channel of `at`, and the distance of columns.
struct Plane {
  int64_t first, step;
};
__device__ __forceinline__ Plane plane_of(const PoolArguments& p, const int64_t (&size)[2],
                                          const Place& at) {
  const int64_t pixels = size[0] * size[1];
  if (p.channels_last) return {at.image * pixels * p.c + at.channel, p.c};
  return {(at.image * p.c + at.channel) * pixels, 1};
}

template <class T> __device__ __forceinline__ T load_at(const char* x, int32_t dtype, int64_t i) {
  return load_element<T>(x + i * item_size(dtype), dtype);
}
template <class T> __device__ __forceinline__ bool beats(T v, T best) { return v > best || v != v; }

// The largest element of each window, and its position in the plane: the first of equal elements,
// the last nan. empty: the position of an empty window.
template <class T> __global__ void __launch_bounds__(kThreads)
    maxima(const __grid_constant__ PoolArguments p, int64_t empty) {
  const int64_t results = p.n * p.c * p.out[0] * p.out[1];
  for (int64_t i = first_item(); i < results; i += item_step()) {
    const Place at = place_of(p, p.out, i);
    const Plane plane = plane_of(p, p.in, at);
    const Window h = window<0>(p, at.row);
    const Window w = window<1>(p, at.column);
    T best = kLowest<T>;
    int64_t found = -1;
    for (int64_t r = h.begin; r < h.end; r += h.step)
      for (int64_t s = w.begin; s < w.end; s += w.step) {
        const int64_t here = r * p.in[1] + s;
        const T v = load_at<T>(p.x, p.dtype, plane.first + here * plane.step);
        if (found >= 0 && !beats(v, best)) continue;
        best = v;
        found = here;
      }
    if (p.y) store_element(p.y + i * item_size(p.dtype), p.dtype, best);
    if (p.index) p.index[i] = found < 0 ? empty : found;
  }
}

__device__ __forceinline__ int64_t divisor_of(const PoolArguments& p, const Window& h,
                                              const Window& w) {
  if (p.divisor) return p.divisor;
  return p.count_pad ? h.full * w.full : h.count() * w.count();
}

template <class T> __global__ void __launch_bounds__(kThreads)
    averages(const __grid_constant__ PoolArguments p) {
  const int64_t results = p.n * p.c * p.out[0] * p.out[1];
  for (int64_t i = first_item(); i < results; i += item_step()) {
    const Place at = place_of(p, p.out, i);
    const Plane plane = plane_of(p, p.in, at);
    const Window h = window<0>(p, at.row);
    const Window w = window<1>(p, at.column);
    T sum = 0;
    for (int64_t r = h.begin; r < h.end; r += h.step)
      for (int64_t s = w.begin; s < w.end; s += w.step) {
        const T v = load_at<T>(p.x, p.dtype, plane.first + (r * p.in[1] + s) * plane.step);
        if constexpr (kIsInt<T>) sum = T(Unsigned<T>(sum) + Unsigned<T>(v));
        else sum += v;
      }
    store_element(p.y + i * item_size(p.dtype), p.dtype, sum / T(divisor_of(p, h, w)));
  }
}

// is_max: `index` has the positions of the maxima.
template <class T> __global__ void __launch_bounds__(kThreads)
    gradients(const __grid_constant__ PoolArguments p) {
  const int64_t elements = p.n * p.c * p.in[0] * p.in[1];
  const T* g = reinterpret_cast<const T*>(p.g);
  for (int64_t i = first_item(); i < elements; i += item_step()) {
    const Place at = place_of(p, p.in, i);
    const Plane plane = plane_of(p, p.out, at);
    const int64_t here = at.row * p.in[1] + at.column;
    const Range rows = windows_over<0>(p, at.row);
    const Range columns = windows_over<1>(p, at.column);
    T sum = 0;
    for (int64_t o = rows.first; o < rows.end; o++)
      for (int64_t q = columns.first; q < columns.end; q++) {
        const int64_t result = plane.first + (o * p.out[1] + q) * plane.step;
        if (p.is_max) {
          if (p.index[result] == here) sum += g[result];
          continue;
        }
        const Window h = window<0>(p, o);
        const Window w = window<1>(p, q);
        if (covers(h, at.row) && covers(w, at.column)) sum += g[result] / T(divisor_of(p, h, w));
      }
    reinterpret_cast<T*>(p.y)[i] = sum;
  }
}

// ---- on the host ----

const PoolPlan& pool_plan(const void* plan) { return *static_cast<const PoolPlan*>(plan); }

PoolArguments arguments_of(const PoolPlan& p) {
  PoolArguments a;
  a.dtype = p.dtype;
  a.channels_last = p.channels_last;
  a.adaptive = p.adaptive;
  a.count_pad = p.count_pad;
  a.is_max = false;
  a.n = p.n;
  a.c = p.c;
  for (int d = 0; d < 2; d++) {
    a.in[d] = p.in[d];
    a.out[d] = p.out[d];
    a.kernel[d] = p.kernel[d];
    a.stride[d] = p.stride[d];
    a.pad[d] = p.pad[d];
    a.dilation[d] = p.dilation[d];
  }
  a.divisor = p.divisor;
  a.x = p.x;
  a.g = p.g;
  a.y = p.y;
  a.index = nullptr;
  return a;
}

int32_t launch_maxima(const PoolArguments& a, int64_t results, int64_t empty, void* stream) {
  if (results == 0) return TT_OK;
  auto kernel = maxima<float>;
  if (a.dtype == TT_F64) kernel = maxima<double>;
  if (a.dtype == TT_I64) kernel = maxima<int64_t>;
  return device::launch(kernel, grid_of(results, kThreads), kThreads, 0, stream, a, empty);
}
int32_t launch_gradients(const PoolArguments& a, void* stream) {
  const int64_t elements = a.n * a.c * a.in[0] * a.in[1];
  if (elements == 0) return TT_OK;
  auto kernel = a.dtype == TT_F64 ? gradients<double> : gradients<float>;
  return device::launch(kernel, grid_of(elements, kThreads), kThreads, 0, stream, a);
}

}  // namespace

namespace cuda {

int32_t pool_max(const void* plan, void* stream, void*) {
  const PoolPlan& p = pool_plan(plan);
  return launch_maxima(arguments_of(p), p.results, 0, stream);
}
int32_t pool_max_index(const void* plan, void* stream, void*) {
  const PoolPlan& p = pool_plan(plan);
  PoolArguments a = arguments_of(p);
  a.index = p.index;
  return launch_maxima(a, p.results, 0, stream);
}
int32_t pool_average(const void* plan, void* stream, void*) {
  const PoolPlan& p = pool_plan(plan);
  if (p.results == 0) return TT_OK;
  auto kernel = averages<float>;
  if (p.dtype == TT_F64) kernel = averages<double>;
  if (p.dtype == TT_I64) kernel = averages<int64_t>;
  return device::launch(kernel, grid_of(p.results, kThreads), kThreads, 0, stream, arguments_of(p));
}
int32_t pool_max_backward(const void* plan, void* stream, void* workspace) {
  const PoolPlan& p = pool_plan(plan);
  PoolArguments a = arguments_of(p);
  a.is_max = true;
  a.index = static_cast<int64_t*>(workspace);
  a.y = nullptr;
  if (const int32_t status = launch_maxima(a, p.results, -1, stream)) return status;
  a.y = p.y;
  return launch_gradients(a, stream);
}
size_t pool_max_backward_workspace(const void* plan) { return size_t(pool_plan(plan).results) * 8; }
int32_t pool_average_backward(const void* plan, void* stream, void*) {
  return launch_gradients(arguments_of(pool_plan(plan)), stream);
}

}  // namespace cuda
}  // namespace TT_NS
