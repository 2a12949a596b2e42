// Pooling. A thread computes one result, or in a backward one element of dx, to which it adds the
// gradients of the windows over it in their order.
//
//   images   [outer][rows][columns][inner]: inner counts channels if they are last, otherwise 1
//   I        type of the numbers of elements: int32_t for plain windows of float and its halves
//            where a launch can be cut into images
//
// Windows of 2 x 2 side by side have kernels of their own: the backward of maxima finds them again,
// and writes the four elements of each window.
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/nest.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/strided.h"
#include "plan/pool_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostItems = (int64_t(1) << 31) - 1;
// Elements of a row of a window that are loaded before they are used.
template <class I> constexpr int kAtOnce = sizeof(I) == 4 ? 4 : 1;

struct PoolArguments {
  int32_t dtype;
  bool adaptive, count_pad, is_max;
  bool short_index;  // index has int32_t
  int64_t items, outer, inner, in[2], out[2];
  int64_t y_image;  // elements of an image of y
  int64_t grid[2];  // rows and columns of items
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  Divisor by_inner, by_grid[2], by_stride[2];  // for int32_t
  int64_t divisor;
  const char* x;
  const char* g;
  char* y;
  char* index;
};

// Not inlined: kernels of int64_t would mostly be divisions.
__device__ __attribute__((noinline)) int64_t wide_ratio(int64_t n, int64_t by) {
  return quotient(n, by);
}
template <class I> __device__ __forceinline__ I ratio(I n, I by) {
  if constexpr (sizeof(I) == 4) return I(uint32_t(n) / uint32_t(by));
  else return wide_ratio(n, by);
}
template <class I>
__device__ __forceinline__ I divide(I n, const Divisor& narrow, const int64_t& by) {
  if constexpr (sizeof(I) == 4) return I(narrow.divide(uint32_t(n)));
  else return wide_ratio(n, by);
}
// The elements of a dimension that a window covers: begin, begin + step, … below end.
template <class I> struct Window {
  I begin, end, step;
  I full;  // number of elements, padding included
  __device__ __forceinline__ I count() const {
    if (end <= begin) return 0;
    return step == 1 ? end - begin : ratio(end - begin + step - 1, step);
  }
};
template <int d, class I> __device__ __forceinline__ Window<I> window(const PoolArguments& p, I o) {
  const I in = I(p.in[d]);
  if (sizeof(I) == 8 && p.adaptive) {
    const I out = I(p.out[d]);
    const I begin = ratio(o * in, out);
    const I end = ratio((o + 1) * in + out - 1, out);
    return {begin, end, 1, end - begin};
  }
  const I dilation = I(p.dilation[d]);
  I begin = o * I(p.stride[d]) - I(p.pad[d]);
  const I reach = begin + (I(p.kernel[d]) - 1) * dilation + 1;
  const I behind = in + I(p.pad[d]);
  const I full = (reach < behind ? reach : behind) - begin;
  if (begin < 0) begin += dilation == 1 ? -begin : ratio(dilation - 1 - begin, dilation) * dilation;
  return {begin, reach < in ? reach : in, dilation, full};
}

// The windows that may cover element i: [first, end).
template <class I> struct Range { I first, end; };
template <int d, class I>
__device__ __forceinline__ Range<I> windows_over(const PoolArguments& p, I i) {
  const I in = I(p.in[d]);
  const I out = I(p.out[d]);
  if (sizeof(I) == 8 && p.adaptive) return {ratio(i * out, in), ratio((i + 1) * out + in - 1, in)};
  const I stride = I(p.stride[d]);
  const I span = (I(p.kernel[d]) - 1) * I(p.dilation[d]) + 1;
  const I low = i + I(p.pad[d]) - span + 1;  // first element of the first window, at least
  const I first = low <= 0 ? 0 : divide(low + stride - 1, p.by_stride[d], p.stride[d]);
  const I last = divide(i + I(p.pad[d]), p.by_stride[d], p.stride[d]) + 1;
  return {first, last < out ? last : out};
}
template <class I> __device__ __forceinline__ bool covers(const Window<I>& w, I i) {
  if (i < w.begin || i >= w.end) return false;
  if (w.step == 1) return true;
  const I from = i - w.begin;
  return ratio(from, w.step) * w.step == from;
}

template <class I> struct Place { I outer, row, column, inner; };
template <class I> __device__ __forceinline__ Place<I> place_of(const PoolArguments& p, I i) {
  const I columns = divide(i, p.by_inner, p.inner);
  const I rows = divide(columns, p.by_grid[1], p.grid[1]);
  const I outer = divide(rows, p.by_grid[0], p.grid[0]);
  return {outer, rows - outer * I(p.grid[0]), columns - rows * I(p.grid[1]),
          i - columns * I(p.inner)};
}
template <class I> __device__ __forceinline__ I item() {
  return I(blockIdx.x) * kThreads + I(threadIdx.x);
}
// The number of (row, column) in the image of `at`; images are `size`.
template <class I> __device__ __forceinline__ I element_at(const PoolArguments& p,
                                                           const int64_t (&size)[2],
                                                           const Place<I>& at, I row, I column) {
  return ((at.outer * I(size[0]) + row) * I(size[1]) + column) * I(p.inner) + at.inner;
}

// Elements are stored as T, or as a narrower floating type.
template <class T, class I>
__device__ __forceinline__ T load_at(const char* x, int32_t dtype, I i) {
  if constexpr (kIsFloat<T>) {
    if (dtype == TT_F16) return widen(reinterpret_cast<const F16*>(x)[i]);
    if (dtype == TT_BF16) return widen(reinterpret_cast<const BF16*>(x)[i]);
    if (sizeof(T) == 8 && dtype == TT_F32) return T(reinterpret_cast<const float*>(x)[i]);
  }
  return reinterpret_cast<const T*>(x)[i];
}
template <class T, class I>
__device__ __forceinline__ void store_at(char* y, int32_t dtype, I i, T v) {
  if (kIsFloat<T> && dtype == TT_F16) reinterpret_cast<F16*>(y)[i] = narrow_f16(float(v));
  else if (kIsFloat<T> && dtype == TT_BF16) reinterpret_cast<BF16*>(y)[i] = narrow_bf16(float(v));
  else if (sizeof(T) == 8 && dtype == TT_F32) reinterpret_cast<float*>(y)[i] = float(v);
  else reinterpret_cast<T*>(y)[i] = v;
}
template <class T> __device__ __forceinline__ bool beats(T v, T best) { return v > best || v != v; }

// The largest element of each window, and its position in the plane: the first of equal elements,
// the last nan. empty: the position of an empty window.
template <class T, class I> __global__ void __launch_bounds__(kThreads)
    maxima(const __grid_constant__ PoolArguments p, int64_t empty) {
  const I i = item<I>();
  if (i >= I(p.items)) return;
  const Place<I> at = place_of(p, i);
  const Window<I> h = window<0>(p, at.row);
  const Window<I> w = window<1>(p, at.column);
  T best = kLowest<T>;
  I found = -1;
#pragma unroll 1
  for (I r = h.begin; r < h.end; r += h.step) {
    const I row = element_at(p, p.in, at, r, I(0));
#pragma unroll 1
    for (I s = w.begin; s < w.end; s += kAtOnce<I> * w.step) {
      T v[kAtOnce<I>];
#pragma unroll
      for (int k = 0; k < kAtOnce<I>; k++) {
        const I column = s + k * w.step;
        if (column < w.end) v[k] = load_at<T>(p.x, p.dtype, row + column * I(p.inner));
      }
#pragma unroll
      for (int k = 0; k < kAtOnce<I>; k++) {
        const I column = s + k * w.step;
        if (column >= w.end || (found >= 0 && !beats(v[k], best))) continue;
        best = v[k];
        found = r * I(p.in[1]) + column;
      }
    }
  }
  if (p.y) store_at(p.y, p.dtype, i, best);
  if (!p.index) return;
  const int64_t position = found < 0 ? empty : int64_t(found);
  if (p.short_index) reinterpret_cast<int32_t*>(p.index)[i] = int32_t(position);
  else reinterpret_cast<int64_t*>(p.index)[i] = position;
}

template <class I> __device__ __forceinline__ int64_t divisor_of(const PoolArguments& p,
                                                                 const Window<I>& h,
                                                                 const Window<I>& w) {
  if (p.divisor) return p.divisor;
  return p.count_pad ? int64_t(h.full) * w.full : int64_t(h.count()) * w.count();
}

template <class T, class I> __global__ void __launch_bounds__(kThreads)
    averages(const __grid_constant__ PoolArguments p) {
  const I i = item<I>();
  if (i >= I(p.items)) return;
  const Place<I> at = place_of(p, i);
  const Window<I> h = window<0>(p, at.row);
  const Window<I> w = window<1>(p, at.column);
  T sum = 0;
#pragma unroll 1
  for (I r = h.begin; r < h.end; r += h.step) {
    const I row = element_at(p, p.in, at, r, I(0));
#pragma unroll 1
    for (I s = w.begin; s < w.end; s += kAtOnce<I>) {
      T v[kAtOnce<I>];
#pragma unroll
      for (int k = 0; k < kAtOnce<I>; k++)
        if (s + k < w.end) v[k] = load_at<T>(p.x, p.dtype, row + (s + k) * I(p.inner));
#pragma unroll
      for (int k = 0; k < kAtOnce<I>; k++)
        if (s + k < w.end) sum = sum_of(sum, v[k]);
    }
  }
  store_at(p.y, p.dtype, i, T(sum / T(divisor_of(p, h, w))));
}

// is_max: `index` has the positions of the maxima.
template <class T, class I> __global__ void __launch_bounds__(kThreads)
    gradients(const __grid_constant__ PoolArguments p) {
  const I i = item<I>();
  if (i >= I(p.items)) return;
  const Place<I> at = place_of(p, i);
  const I here = at.row * I(p.in[1]) + at.column;
  const Range<I> rows = windows_over<0>(p, at.row);
  const Range<I> columns = windows_over<1>(p, at.column);
  T sum = 0;
#pragma unroll 1
  for (I o = rows.first; o < rows.end; o++) {
    const Window<I> h = window<0>(p, o);
#pragma unroll 1
    for (I q = columns.first; q < columns.end; q++) {
      const I result = element_at(p, p.out, at, o, q);
      if (p.is_max) {
        const int64_t found = p.short_index ? reinterpret_cast<const int32_t*>(p.index)[result]
                                            : reinterpret_cast<const int64_t*>(p.index)[result];
        if (found == here) sum += load_at<T>(p.g, p.dtype, result);
        continue;
      }
      const Window<I> w = window<1>(p, q);
      if (covers(h, at.row) && covers(w, at.column))
        sum += load_at<T>(p.g, p.dtype, result) / T(divisor_of(p, h, w));
    }
  }
  store_at(p.y, p.dtype, i, sum);
}

// The same by tiles of planes, which have no inner dimension: a block finds the maxima of all
// windows over its tile, and keeps them and their gradients in shared memory.
struct TileArguments {
  int32_t rows, columns;  // of a tile
  Divisor down, across;   // tiles of a plane
};
constexpr int32_t kTileItems = 1024;
constexpr int32_t kTileWindows = 2560;

__global__ void __launch_bounds__(kThreads)
    tile_gradients(const __grid_constant__ PoolArguments p,
                   const __grid_constant__ TileArguments tile) {
  TT_SHARED(int32_t, position, kTileWindows);
  TT_SHARED(float, gradient, kTileWindows);
  const uint32_t rest = tile.across.divide(blockIdx.x);
  const uint32_t plane = tile.down.divide(rest);
  const int32_t row0 = int32_t(rest - plane * tile.down.d) * tile.rows;
  const int32_t column0 = int32_t(blockIdx.x - rest * tile.across.d) * tile.columns;
  const int32_t rows = int32_t(least(tile.rows, p.in[0] - row0));
  const int32_t columns = int32_t(least(tile.columns, p.in[1] - column0));
  const int32_t first_row = windows_over<0>(p, row0).first;
  const int32_t first_column = windows_over<1>(p, column0).first;
  const int32_t down = windows_over<0>(p, row0 + rows - 1).end - first_row;
  const int32_t across = windows_over<1>(p, column0 + columns - 1).end - first_column;
  const float* x = reinterpret_cast<const float*>(p.x) + plane * int32_t(p.in[0] * p.in[1]);
  const float* g = reinterpret_cast<const float*>(p.g) + plane * int32_t(p.out[0] * p.out[1]);
  for (int32_t i = int32_t(threadIdx.x); i < down * across; i += kThreads) {
    const int32_t o = ratio(i, across);
    const int32_t q = i - o * across;
    const Window<int32_t> h = window<0>(p, first_row + o);
    const Window<int32_t> w = window<1>(p, first_column + q);
    float best = kLowest<float>;
    int32_t found = -1;
#pragma unroll 1
    for (int32_t r = h.begin; r < h.end; r += h.step) {
#pragma unroll 1
      for (int32_t s = w.begin; s < w.end; s += kAtOnce<int32_t> * w.step) {
        float v[kAtOnce<int32_t>];
#pragma unroll
        for (int k = 0; k < kAtOnce<int32_t>; k++) {
          const int32_t column = s + k * w.step;
          if (column < w.end) v[k] = x[r * int32_t(p.in[1]) + column];
        }
#pragma unroll
        for (int k = 0; k < kAtOnce<int32_t>; k++) {
          const int32_t column = s + k * w.step;
          if (column >= w.end || (found >= 0 && !beats(v[k], best))) continue;
          best = v[k];
          found = r * int32_t(p.in[1]) + column;
        }
      }
    }
    position[i] = found;
    gradient[i] = g[(first_row + o) * int32_t(p.out[1]) + first_column + q];
  }
  __syncthreads();
  float* dx = reinterpret_cast<float*>(p.y) + plane * int32_t(p.in[0] * p.in[1]);
  for (int32_t i = int32_t(threadIdx.x); i < rows * columns; i += kThreads) {
    const int32_t r = ratio(i, columns);
    const int32_t row = row0 + r;
    const int32_t column = column0 + i - r * columns;
    const int32_t here = row * int32_t(p.in[1]) + column;
    const Range<int32_t> over_row = windows_over<0>(p, row);
    const Range<int32_t> over_column = windows_over<1>(p, column);
    float sum = 0;
#pragma unroll 1
    for (int32_t o = over_row.first; o < over_row.end; o++) {
#pragma unroll 1
      for (int32_t q = over_column.first; q < over_column.end; q++) {
        const int32_t k = (o - first_row) * across + q - first_column;
        if (position[k] == here) sum += gradient[k];
      }
    }
    dx[here] = sum;
  }
}

// ---- windows of 2 x 2 side by side ----

template <class S> struct alignas(2 * sizeof(S)) Pair { S v[2]; };

// The elements of a window: x[row][column]. kPairs: neighbours are an aligned pair.
template <class S, bool kPairs>
__device__ __forceinline__ void load_window(const PoolArguments& p, int32_t first,
                                            typename SumOf<S>::type (&x)[2][2]) {
  const int32_t inner = int32_t(p.inner);
  const S* from = reinterpret_cast<const S*>(p.x) + first;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const S* row = from + r * int32_t(p.in[1]) * inner;
    if constexpr (kPairs) {
      const Pair<S> pair = *reinterpret_cast<const Pair<S>*>(row);
      x[r][0] = widened(pair.v[0]);
      x[r][1] = widened(pair.v[1]);
    } else {
      x[r][0] = widened(row[0]);
      x[r][1] = widened(row[inner]);
    }
  }
}
template <class T> struct Largest {
  T value;
  int at;  // row * 2 + column
};
template <class T> __device__ __forceinline__ Largest<T> largest_of(const T (&x)[2][2]) {
  Largest<T> best = {x[0][0], 0};
#pragma unroll
  for (int k = 1; k < 4; k++)
    if (beats(x[k / 2][k % 2], best.value)) best = {x[k / 2][k % 2], k};
  return best;
}

template <class S> __global__ void __launch_bounds__(kThreads)
    halve(const __grid_constant__ PoolArguments p) {
  using T = typename SumOf<S>::type;
  const int32_t i = item<int32_t>();
  if (i >= int32_t(p.items)) return;
  const Place<int32_t> at = place_of(p, i);
  const int32_t row = 2 * at.row;
  const int32_t column = 2 * at.column;
  T x[2][2];
  load_window<S, false>(p, element_at(p, p.in, at, row, column), x);
  const Largest<T> best = largest_of(x);
  T value = best.value;
  if (!p.is_max) value = (T(0) + x[0][0] + x[0][1] + x[1][0] + x[1][1]) * T(0.25);
  reinterpret_cast<S*>(p.y)[i] = narrowed<S>(value);
  if (p.index)
    reinterpret_cast<int64_t*>(p.index)[i] =
        (row + best.at / 2) * int32_t(p.in[1]) + column + best.at % 2;
}

// A thread has a window, or what is left of one behind the last.
template <class T, bool kPairs> __global__ void __launch_bounds__(kThreads)
    halve_backward(const __grid_constant__ PoolArguments p) {
  const int32_t item_number = item<int32_t>();
  if (item_number >= int32_t(p.items)) return;
  const Place<int32_t> at = place_of(p, item_number);
  const int32_t inner = int32_t(p.inner);
  const int32_t row = 2 * at.row;
  const int32_t column = 2 * at.column;
  const int32_t first = element_at(p, p.in, at, row, column);
  T dx[2][2] = {};
  if (at.row < int32_t(p.out[0]) && at.column < int32_t(p.out[1])) {
    const T g = T(0) + reinterpret_cast<const T*>(p.g)[element_at(p, p.out, at, at.row, at.column)];
    if (p.is_max) {
      T x[2][2];
      load_window<T, kPairs>(p, first, x);
      const int best = largest_of(x).at;
#pragma unroll
      for (int k = 0; k < 4; k++) dx[k / 2][k % 2] = k == best ? g : T(0);
    } else {
#pragma unroll
      for (int k = 0; k < 4; k++) dx[k / 2][k % 2] = g * T(0.25);
    }
  }
  T* to = reinterpret_cast<T*>(p.y) + first;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    if (row + r >= int32_t(p.in[0])) continue;
    T* const here = to + r * int32_t(p.in[1]) * inner;
    if constexpr (kPairs) {
      *reinterpret_cast<Pair<T>*>(here) = {dx[r][0], dx[r][1]};
    } else {
      here[0] = dx[r][0];
      if (column + 1 < int32_t(p.in[1])) here[inner] = dx[r][1];
    }
  }
}

// ---- on the host ----

const PoolPlan& pool_plan(const void* plan) { return *static_cast<const PoolPlan*>(plan); }

PoolArguments arguments_of(const PoolPlan& p, bool is_max, bool backward) {
  PoolArguments a;
  a.dtype = p.dtype;
  a.count_pad = p.count_pad;
  a.is_max = is_max;
  a.short_index = false;
  a.outer = p.channels_last ? p.n : p.n * p.c;
  a.inner = p.channels_last ? p.c : 1;
  // Windows of equal sizes are plain ones.
  const bool even = p.adaptive && p.results && p.in[0] % p.out[0] == 0 && p.in[1] % p.out[1] == 0;
  a.adaptive = p.adaptive && !even;
  for (int d = 0; d < 2; d++) {
    a.in[d] = p.in[d];
    a.out[d] = p.out[d];
    a.kernel[d] = even ? p.in[d] / p.out[d] : p.kernel[d];
    a.stride[d] = even ? a.kernel[d] : p.stride[d];
    a.pad[d] = p.pad[d];
    a.dilation[d] = even ? 1 : p.dilation[d];
  }
  a.y_image = (backward ? p.in[0] * p.in[1] : p.out[0] * p.out[1]) * a.inner;
  a.divisor = p.divisor;
  a.x = p.x;
  a.g = p.g;
  a.y = p.y;
  a.index = nullptr;
  return a;
}
int64_t largest_image(const PoolArguments& a) {
  return max(a.in[0] * a.in[1], a.out[0] * a.out[1]) * a.inner;
}
// Whether int32_t counts the elements of an image, and what windows compute with.
bool is_narrow(const PoolArguments& a) {
  constexpr int64_t kMost = kMostItems / 8;
  if (a.adaptive || a.inner > kMost) return false;
  for (int d = 0; d < 2; d++)
    if (a.in[d] > kMost || a.pad[d] > kMost || a.kernel[d] > kMost || a.stride[d] > kMost ||
        a.dilation[d] > kMost / a.kernel[d])
      return false;
  return a.in[0] * a.in[1] <= kMost && a.out[0] * a.out[1] <= kMost && largest_image(a) <= kMost;
}
bool halves(const PoolArguments& a) {
  for (int d = 0; d < 2; d++)
    if (a.kernel[d] != 2 || a.stride[d] != 2 || a.pad[d] || a.dilation[d] != 1 ||
        a.out[d] > a.in[d] / 2)
      return false;
  return (a.is_max || a.divisor == 0 || a.divisor == 4) && is_narrow(a);
}
// Whether rows are aligned pairs of elements of `bytes`.
bool has_pairs(const PoolArguments& a, int64_t bytes) {
  const uint64_t places = reinterpret_cast<uintptr_t>(a.x) | reinterpret_cast<uintptr_t>(a.y);
  return a.inner == 1 && a.in[1] % 2 == 0 && places % uint64_t(2 * bytes) == 0;
}

// Launches kernel(a, more…) for rows by columns items of each image. narrow: it counts by
// int32_t, and has as many images at once as that can count.
template <class... P, class... A> int32_t launch_over(void (*kernel)(PoolArguments, P...),
                                                      bool narrow, int64_t rows, int64_t columns,
                                                      PoolArguments a, void* stream, A... more) {
  const int64_t items = rows * columns * a.inner;
  if (a.outer * items == 0) return TT_OK;
  a.grid[0] = rows;
  a.grid[1] = columns;
  int64_t images = a.outer;
  if (narrow) {
    images = min(images, kMostItems / max(largest_image(a), items));
    a.by_inner.set(uint32_t(a.inner));
    for (int d = 0; d < 2; d++) {
      a.by_grid[d].set(uint32_t(a.grid[d]));
      a.by_stride[d].set(uint32_t(max<int64_t>(a.stride[d], 1)));
    }
  }
  const int64_t item = kItemSize[a.dtype];
  const int64_t results = a.out[0] * a.out[1] * a.inner;
  for (int64_t left = a.outer; left > 0; left -= images) {
    images = min(images, left);
    a.items = images * items;
    const unsigned grid = grid_of(a.items, kThreads);
    const int32_t status = device::launch(kernel, grid, kThreads, 0, stream, a, more...);
    if (status != TT_OK) return status;
    if (a.x) a.x += images * a.in[0] * a.in[1] * a.inner * item;
    if (a.g) a.g += images * results * item;
    if (a.y) a.y += images * a.y_image * item;
    if (a.index) a.index += images * results * (a.short_index ? 4 : 8);
  }
  return TT_OK;
}

template <class S> int32_t launch_halve(const PoolArguments& a, void* stream) {
  return launch_over(halve<S>, true, a.out[0], a.out[1], a, stream);
}
bool is_stored_float(int32_t dtype) {
  return dtype == TT_F32 || dtype == TT_F16 || dtype == TT_BF16;
}
// Results of windows of 2 x 2; float and its halves.
int32_t launch_halves(const PoolArguments& a, void* stream) {
  if (a.dtype == TT_F16) return launch_halve<F16>(a, stream);
  if (a.dtype == TT_BF16) return launch_halve<BF16>(a, stream);
  return launch_halve<float>(a, stream);
}
// Floats beyond narrow kernels are computed in double.
bool has_narrow(const PoolArguments& a) { return is_stored_float(a.dtype) && is_narrow(a); }
int32_t launch_maxima(const PoolArguments& a, int64_t empty, void* stream) {
  const bool narrow = has_narrow(a);
  auto kernel = narrow ? maxima<float, int32_t> : maxima<double, int64_t>;
  if (a.dtype == TT_I64) kernel = maxima<int64_t, int64_t>;
  return launch_over(kernel, narrow, a.out[0], a.out[1], a, stream, empty);
}
int32_t launch_averages(const PoolArguments& a, void* stream) {
  const bool narrow = has_narrow(a);
  auto kernel = narrow ? averages<float, int32_t> : averages<double, int64_t>;
  if (a.dtype == TT_I64) kernel = averages<int64_t, int64_t>;
  return launch_over(kernel, narrow, a.out[0], a.out[1], a, stream);
}
int32_t launch_gradients(const PoolArguments& a, void* stream) {
  const bool narrow = has_narrow(a);
  auto kernel = narrow ? gradients<float, int32_t> : gradients<double, int64_t>;
  return launch_over(kernel, narrow, a.in[0], a.in[1], a, stream);
}
bool halves_backward(const PoolArguments& a) { return a.dtype == TT_F32 && halves(a); }
int32_t launch_halves_backward(const PoolArguments& a, void* stream) {
  auto kernel =
      has_pairs(a, sizeof(float)) ? halve_backward<float, true> : halve_backward<float, false>;
  return launch_over(kernel, true, ceil_div(a.in[0], 2), ceil_div(a.in[1], 2), a, stream);
}
// Returns whether windows over a tile fit into shared memory.
bool has_tiles(const PoolArguments& a, TileArguments* t) {
  if (a.dtype != TT_F32 || a.inner != 1 || !is_narrow(a) || a.in[0] * a.in[1] == 0) return false;
  t->columns = int32_t(min<int64_t>(a.in[1], 64));
  t->rows = int32_t(min<int64_t>(a.in[0], kTileItems / t->columns));
  int64_t windows = 1;
  for (int d = 0; d < 2; d++) {
    const int64_t span = (a.kernel[d] - 1) * a.dilation[d] + 1;
    windows *= ceil_div((d ? t->columns : t->rows) + span, a.stride[d]) + 1;
  }
  return windows <= kTileWindows;
}
int32_t launch_tiles(PoolArguments a, TileArguments t, void* stream) {
  const int64_t down = ceil_div(a.in[0], t.rows);
  const int64_t across = ceil_div(a.in[1], t.columns);
  t.down.set(uint32_t(down));
  t.across.set(uint32_t(across));
  // launch_over() cuts the planes; a block counts as kThreads items.
  return launch_over(tile_gradients, true, down, across * kThreads, a, stream, t);
}
int32_t run_maxima(const PoolArguments& a, void* stream) {
  if (is_stored_float(a.dtype) && halves(a)) return launch_halves(a, stream);
  return launch_maxima(a, 0, stream);
}

}  // namespace

namespace cuda {

int32_t pool_max(const void* plan, void* stream, void*) {
  return run_maxima(arguments_of(pool_plan(plan), true, false), stream);
}
int32_t pool_max_index(const void* plan, void* stream, void*) {
  PoolArguments a = arguments_of(pool_plan(plan), true, false);
  a.index = reinterpret_cast<char*>(pool_plan(plan).index);
  return run_maxima(a, stream);
}
int32_t pool_average(const void* plan, void* stream, void*) {
  const PoolArguments a = arguments_of(pool_plan(plan), false, false);
  if (is_stored_float(a.dtype) && halves(a)) return launch_halves(a, stream);
  return launch_averages(a, stream);
}
int32_t pool_max_backward(const void* plan, void* stream, void* workspace) {
  PoolArguments a = arguments_of(pool_plan(plan), true, true);
  if (halves_backward(a)) return launch_halves_backward(a, stream);
  TileArguments tile;
  if (has_tiles(a, &tile)) return launch_tiles(a, tile, stream);
  a.index = static_cast<char*>(workspace);
  a.short_index = is_narrow(a);
  a.y = nullptr;
  if (const int32_t status = launch_maxima(a, -1, stream)) return status;
  a.y = pool_plan(plan).y;
  return launch_gradients(a, stream);
}
size_t pool_max_backward_workspace(const void* plan) {
  const PoolArguments a = arguments_of(pool_plan(plan), true, true);
  TileArguments tile;
  if (halves_backward(a) || has_tiles(a, &tile)) return 0;
  return size_t(pool_plan(plan).results) * (is_narrow(a) ? 4 : 8);
}
int32_t pool_average_backward(const void* plan, void* stream, void*) {
  const PoolArguments a = arguments_of(pool_plan(plan), false, true);
  return halves_backward(a) ? launch_halves_backward(a, stream) : launch_gradients(a, stream);
}

}  // namespace cuda
}  // namespace TT_NS
