// resize and resize_backward: a table of the two elements that each result reads along each
// dimension, then a thread for each result; in the backward for each element of x, which adds the
// gradients of the results that read it in their order. Modes with windows have a table of those
// (plan/resize_windows.h), and a thread adds the columns of each row of its window, then the rows.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/nest.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors/math.h"
#include "plan/resize_build.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

// The elements that a result reads, and the weight of the second.
template <class T> struct Tap {
  int32_t low, high;
  T weight;
};

struct ResizeArguments {
  ResizePlan p;
  char* table;  // Tap<T>[out 0 + out 1], or of windows
};
template <class T>
__device__ __forceinline__ const Tap<T>* taps_of(const ResizeArguments& a, int d) {
  return reinterpret_cast<const Tap<T>*>(a.table) + (d ? a.p.out[0] : 0);
}

// The position in x of result o of the linear mode.
TT_FN double linear_position(const ResizePlan& p, int d, int64_t o) {
  const double at = p.align ? p.scale[d] * double(o) : p.scale[d] * (double(o) + 0.5) - 0.5;
  const double last = double(p.in[d] - 1);
  if (at < 0) return 0;
  return at > last ? last : at;
}

template <class T> __global__ void __launch_bounds__(kThreads)
    fill_taps(const __grid_constant__ ResizeArguments a) {
  const ResizePlan& p = a.p;
  for (int64_t i = first_item(); i < p.out[0] + p.out[1]; i += item_step()) {
    const int d = i >= p.out[0];
    const int64_t o = d ? i - p.out[0] : i;
    Tap<T> tap;
    if (p.mode != kResizeLinear || p.in[d] == p.out[d]) {
      tap.low = tap.high =
          p.mode == kResizeLinear ? int32_t(o) : nearest_element<T>(resize_axis(p, d), o);
      tap.weight = 0;
    } else {
      const double at = linear_position(p, d, o);
      tap.low = int32_t(at);
      tap.high = tap.low + (tap.low < p.in[d] - 1);
      tap.weight = T(at - double(tap.low));
    }
    reinterpret_cast<Tap<T>*>(a.table)[i] = tap;
  }
}

// Where number i of images of `size` is, and the number of an element of the other images in the
// same plane.
struct Place {
  int64_t plane, channel, row, column;  // plane: an image if channels are last
};
__device__ __forceinline__ Place place_of(const ResizePlan& p, const int64_t (&size)[2],
                                          int64_t i) {
  Place at;
  at.channel = 0;
  if (p.channels_last) {
    const int64_t rest = quotient(i, p.c);
    at.channel = i - rest * p.c;
    i = rest;
  }
  const int64_t rows = quotient(i, size[1]);
  at.column = i - rows * size[1];
  at.plane = quotient(rows, size[0]);
  at.row = rows - at.plane * size[0];
  return at;
}
__device__ __forceinline__ int64_t number_of(const ResizePlan& p, const int64_t (&size)[2],
                                             const Place& at, int64_t row, int64_t column) {
  const int64_t pixel = (at.plane * size[0] + row) * size[1] + column;
  return p.channels_last ? pixel * p.c + at.channel : pixel;
}

// a (1 - w) + b w
TT_FN float between(float a, float b, float w) { return ::fmaf(b, w, a * (1 - w)); }
TT_FN double between(double a, double b, double w) { return ::fma(b, w, a * (1 - w)); }

template <class T> __global__ void __launch_bounds__(kThreads)
    resize_images(const __grid_constant__ ResizeArguments a) {
  const ResizePlan& p = a.p;
  const int64_t item = item_size(p.dtype);
  const int64_t results = p.n * p.c * p.out[0] * p.out[1];
  for (int64_t i = first_item(); i < results; i += item_step()) {
    const Place at = place_of(p, p.out, i);
    const Tap<T> row = taps_of<T>(a, 0)[at.row];
    const Tap<T> column = taps_of<T>(a, 1)[at.column];
    const auto x = [&](int64_t r, int64_t c) {
      return load_element<T>(p.x + number_of(p, p.in, at, r, c) * item, p.dtype);
    };
    T y = x(row.low, column.low);
    if (p.mode == kResizeLinear) {
      const auto along = [&](int64_t r) {  // an element is copied, so that inf makes no nan
        const T first = x(r, column.low);
        const bool two = column.high != column.low;
        return two ? between(first, x(r, column.high), column.weight) : first;
      };
      y = along(row.low);
      if (row.high != row.low) y = between(y, along(row.high), row.weight);
    }
    store_element(p.y + i * item, p.dtype, y);
  }
}

// The results that read element i: [first, end). Their elements ascend.
struct Range {
  int64_t first, end;
};
template <class T>
__device__ __forceinline__ Range readers_of(const Tap<T>* taps, int64_t n, int64_t i) {
  Range r;
  int64_t low = 0;
  int64_t high = n;
  while (low < high) {  // the first whose higher element is not before i
    const int64_t middle = (low + high) / 2;
    if (taps[middle].high < i) low = middle + 1;
    else high = middle;
  }
  r.first = low;
  high = n;
  while (low < high) {  // the first whose lower element is behind i
    const int64_t middle = (low + high) / 2;
    if (taps[middle].low <= i) low = middle + 1;
    else high = middle;
  }
  r.end = low;
  return r;
}
template <class T> __device__ __forceinline__ T weight_of(const Tap<T>& tap, int64_t i) {
  return (tap.low == i ? T(1) - tap.weight : T(0)) + (tap.high == i ? tap.weight : T(0));
}

template <class T> __global__ void __launch_bounds__(kThreads)
    add_gradients(const __grid_constant__ ResizeArguments a) {
  const ResizePlan& p = a.p;
  const int64_t elements = p.n * p.c * p.in[0] * p.in[1];
  const T* g = reinterpret_cast<const T*>(p.x);
  for (int64_t i = first_item(); i < elements; i += item_step()) {
    const Place at = place_of(p, p.in, i);
    const Tap<T>* rows = taps_of<T>(a, 0);
    const Tap<T>* columns = taps_of<T>(a, 1);
    const Range r = readers_of(rows, p.out[0], at.row);
    const Range c = readers_of(columns, p.out[1], at.column);
    T sum = 0;
    for (int64_t o = r.first; o < r.end; o++) {
      const T h = weight_of(rows[o], at.row);
      for (int64_t j = c.first; j < c.end; j++)
        sum += h * weight_of(columns[j], at.column) * g[number_of(p, p.out, at, o, j)];
    }
    reinterpret_cast<T*>(p.y)[i] = sum;
  }
}

// ---- windows ----

// A block for each dimension. W: float, double, or int32_t of bytes.
template <class W> __global__ void __launch_bounds__(kThreads)
    fill_windows(const __grid_constant__ ResizeArguments a) {
  TT_SHARED(double, largest, kThreads);
  const ResizePlan& p = a.p;
  const int d = int(blockIdx.x);
  const int thread = int(threadIdx.x);
  const ResizeTable<W> table(p, a.table, d);
  const ResizeAxis axis = resize_axis(p, d);
  double mine = 0;
  for (int64_t o = thread; p.dtype == TT_U8 && o < p.out[d]; o += kThreads)
    mine = ::fmax(mine, largest_resize_weight(axis, o));
  largest[thread] = mine;
  __syncthreads();
  for (int i = 0; p.dtype == TT_U8 && i < kThreads; i++) mine = ::fmax(mine, largest[i]);
  const int32_t shift = resize_shift(mine);
  if (thread == 0) *table.shift = shift;
  for (int64_t o = thread; o < p.out[d]; o += kThreads) fill_resize_result(table, axis, o, shift);
}

TT_FN float product_sum(float x, float w, float sum) { return ::fmaf(x, w, sum); }
TT_FN double product_sum(double x, double w, double sum) { return ::fma(x, w, sum); }
TT_FN int32_t product_sum(uint8_t x, int32_t w, int32_t sum) { return int32_t(x) * w + sum; }
TT_FN int32_t product_sum(int32_t x, int32_t w, int32_t sum) { return x * w + sum; }
// Bytes are rounded after each dimension.
TT_FN float rounded(float sum, int32_t) { return sum; }
TT_FN double rounded(double sum, int32_t) { return sum; }
TT_FN int32_t rounded(int32_t sum, int32_t shift) {
  return int32_t(bounded(int64_t((sum + (1 << (shift - 1))) >> shift), 0, 255));
}

template <class E, class W> __global__ void __launch_bounds__(kThreads)
    add_windows(const __grid_constant__ ResizeArguments a) {
  const ResizePlan& p = a.p;
  const ResizeTable<W> rows(p, a.table, 0);
  const ResizeTable<W> columns(p, a.table, 1);
  const E* x = reinterpret_cast<const E*>(p.x);
  const int64_t results = p.n * p.c * p.out[0] * p.out[1];
  for (int64_t i = first_item(); i < results; i += item_step()) {
    const Place at = place_of(p, p.out, i);
    W sum = 0;
    for (int64_t k = 0; k < rows.count[at.row]; k++) {
      const int64_t row = bounded(rows.first[at.row] + k, 0, p.in[0] - 1);
      W line = 0;
      for (int64_t l = 0; l < columns.count[at.column]; l++) {
        const int64_t column = bounded(columns.first[at.column] + l, 0, p.in[1] - 1);
        line = product_sum(x[number_of(p, p.in, at, row, column)], columns.at(at.column, l), line);
      }
      sum = product_sum(rounded(line, *columns.shift), rows.at(at.row, k), sum);
    }
    reinterpret_cast<E*>(p.y)[i] = E(rounded(sum, *rows.shift));
  }
}

// The results whose windows have element i of n: [first, end). Windows ascend.
template <class W> __device__ __forceinline__ Range window_readers(const ResizeTable<W>& t,
                                                                   int64_t results, int64_t n,
                                                                   int64_t i) {
  Range r = {0, results};
  int64_t high = results;
  while (r.first < high) {  // the first window whose last element is not before i
    const int64_t middle = (r.first + high) / 2;
    if (bounded(t.first[middle] + t.count[middle], 0, n) <= i) r.first = middle + 1;
    else high = middle;
  }
  int64_t low = r.first;
  while (low < r.end) {  // the first window that begins behind i
    const int64_t middle = (low + r.end) / 2;
    if (bounded(t.first[middle], 0, n - 1) <= i) low = middle + 1;
    else r.end = middle;
  }
  return r;
}
// The weight of element i of n in result o: at the ends, of all elements beyond, too.
template <class W> __device__ __forceinline__ W window_weight(const ResizeTable<W>& t, int64_t o,
                                                              int64_t n, int64_t i) {
  const int64_t place = i - t.first[o];
  const int64_t from = i == 0 || place < 0 ? 0 : place;
  const int64_t last = t.count[o] - 1;
  const int64_t to = i == n - 1 || place > last ? last : place;
  W weight = 0;
  for (int64_t k = from; k <= to; k++) weight += t.at(o, k);
  return weight;
}

template <class T> __global__ void __launch_bounds__(kThreads)
    add_window_gradients(const __grid_constant__ ResizeArguments a) {
  const ResizePlan& p = a.p;
  const ResizeTable<T> rows(p, a.table, 0);
  const ResizeTable<T> columns(p, a.table, 1);
  const int64_t elements = p.n * p.c * p.in[0] * p.in[1];
  const T* g = reinterpret_cast<const T*>(p.x);
  for (int64_t i = first_item(); i < elements; i += item_step()) {
    const Place at = place_of(p, p.in, i);
    const Range r = window_readers(rows, p.out[0], p.in[0], at.row);
    const Range c = window_readers(columns, p.out[1], p.in[1], at.column);
    T sum = 0;
    for (int64_t o = r.first; o < r.end; o++) {
      const T h = window_weight(rows, o, p.in[0], at.row);
      for (int64_t j = c.first; j < c.end; j++)
        sum += h * window_weight(columns, j, p.in[1], at.column) * g[number_of(p, p.out, at, o, j)];
    }
    reinterpret_cast<T*>(p.y)[i] = sum;
  }
}

// ---- launches ----

using Kernel = void (*)(ResizeArguments);

int32_t launch_both(const ResizeArguments& a, Kernel fill, int64_t fills, Kernel kernel,
                    bool backward, void* stream) {
  const ResizePlan& p = a.p;
  const int64_t* const size = backward ? p.in : p.out;
  const int64_t items = p.n * p.c * size[0] * size[1];
  if (items == 0) return TT_OK;
  const int32_t status = device::launch(fill, fills, kThreads, 0, stream, a);
  if (status != TT_OK) return status;
  return device::launch(kernel, grid_of(items, kThreads), kThreads, 0, stream, a);
}
template <class T>
int32_t launch_resize(const ResizePlan& p, bool backward, void* stream, void* workspace) {
  const ResizeArguments a = {p, static_cast<char*>(workspace)};
  if (resize_has_windows(p))
    return launch_both(a, fill_windows<T>, 2,
                       backward ? add_window_gradients<T> : add_windows<T, T>, backward, stream);
  return launch_both(a, fill_taps<T>, grid_of(p.out[0] + p.out[1], kThreads),
                     backward ? add_gradients<T> : resize_images<T>, backward, stream);
}
int32_t run_resize(const void* plan, bool backward, void* stream, void* workspace) {
  const ResizePlan& p = *static_cast<const ResizePlan*>(plan);
  if (p.dtype == TT_U8)
    return launch_both({p, static_cast<char*>(workspace)}, fill_windows<int32_t>, 2,
                       add_windows<uint8_t, int32_t>, false, stream);
  if (p.dtype == TT_F64) return launch_resize<double>(p, backward, stream, workspace);
  return launch_resize<float>(p, backward, stream, workspace);
}
size_t table_bytes(const void* plan) {
  const ResizePlan& p = *static_cast<const ResizePlan*>(plan);
  if (resize_has_windows(p)) return size_t(resize_table_bytes(&p));
  return size_t(p.out[0] + p.out[1]) * sizeof(Tap<double>);
}

}  // namespace

namespace cuda {

int32_t resize(const void* plan, void* stream, void* workspace) {
  return run_resize(plan, false, stream, workspace);
}
int32_t resize_backward(const void* plan, void* stream, void* workspace) {
  return run_resize(plan, true, stream, workspace);
}
size_t resize_workspace(const void* plan) { return table_bytes(plan); }
size_t resize_backward_workspace(const void* plan) { return table_bytes(plan); }

}  // namespace cuda
}  // namespace TT_NS
