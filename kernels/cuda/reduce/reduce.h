// Reductions of the device, over a ReducePlan. Splits and order depend on the shape alone, so that
// the bits of a result do not depend on the device. Two paths, chosen by the plan:
//
//   rows     a warp or a block reduces the sequence of one output, 16 bytes at once where it is one
//            run of memory, else element by element
//   columns  blockDim.x neighbouring outputs at once; blockDim.y threads share the sequence of each
//
// If outputs are few, a sequence is split: pieces write partials to workspace [n_out][splits], and
// `join` combines those of each output. The dtype of the elements is dispatched per 16 bytes, so
// that each reduction is one kernel for each compute type.
//
// A reduction R has
//   T: compute type; P: partial, of whole words
//   P identity(args), P of(args, T x, int64_t position), P combine(args, P, P)
//   void finish(args, P, char* out, char* index)
#pragma once

#include "kernels/cuda/convert.h"
#include "kernels/cuda/warp.h"
#include "plan/reduce_plan.h"

namespace TT_NS {
namespace {

constexpr int kReduceThreads = 256;
constexpr int kReduceUnroll = 4;
template <class T> constexpr int kColumnLoads = sizeof(T) == 4 ? 8 : 4;  // of a thread at once

// What the kernels of one family do; each names those that it knows.
enum class ReduceKind : int32_t { kSum, kProd, kMax, kMin };

// Dimensions [0, n_kept) are the kept ones, followed by n_red reduced ones; bytes.
struct ReduceArguments {
  ReduceKind kind;
  int32_t dtype, out_dtype;
  int32_t n_kept, n_red;
  bool runs;  // a sequence is one run of memory
  const char* in;
  char* out;
  char* index;
  char* partials;  // [n_out][splits]; written if splits > 1, and read by join
  double divisor;
  int64_t n_out, length;
  int64_t splits, split_len;
  int64_t units;
  int64_t tiles;  // columns path: pieces of kept dimension 0
  int64_t size[kMaxPlanDims + 1], stride[kMaxPlanDims + 1];
  int64_t out_stride[kMaxPlanDims + 1], index_stride[kMaxPlanDims + 1];
};

// Stored types that have no arithmetic type of their own.
struct StoredBool {
  uint8_t bits;
};

template <class T, class S> __device__ __forceinline__ T value_as(S s) {
  if constexpr (__is_same(S, StoredBool)) return convert<T>(int32_t(s.bits != 0));
  else if constexpr (kIsHalf<S>) return convert<T>(widen(s));
  else if constexpr (sizeof(S) < 4) return convert<T>(int32_t(s));
  else return convert<T>(s);
}

// Calls f(S{}) with the stored type of dtype, among those that T computes; bool reads any.
template <class T, class F> __device__ __forceinline__ void with_stored(int32_t dtype, const F& f) {
  constexpr bool kAny = __is_same(T, bool);
  if constexpr (kAny || __is_same(T, int64_t) || __is_same(T, int32_t)) {
    switch (dtype) {
      case TT_BOOL: return f(StoredBool{});
      case TT_U8: return f(uint8_t{});
      case TT_I8: return f(int8_t{});
      case TT_I16: return f(int16_t{});
      case TT_I32: return f(int32_t{});
      default: break;
    }
  }
  if constexpr (kAny || __is_same(T, int64_t))
    if (dtype == TT_I64) return f(int64_t{});
  if constexpr (kAny || __is_same(T, float)) {
    switch (dtype) {
      case TT_F16: return f(F16{});
      case TT_BF16: return f(BF16{});
      case TT_F32: return f(float{});
      default: break;
    }
  }
  if constexpr (kAny || __is_same(T, double))
    if (dtype == TT_F64) return f(double{});
  if constexpr (kAny || __is_same(T, c64))
    if (dtype == TT_C64) return f(c64{});
  if constexpr (kAny || __is_same(T, c128))
    if (dtype == TT_C128) return f(c128{});
}

template <class R> struct Reducer {
  using T = typename R::T;
  using P = typename R::P;
  const ReduceArguments& a;

  __device__ __forceinline__ P combine(const P& x, const P& y) const { return R::combine(a, x, y); }

  // The place of position i in the dimensions [first, end).
  __device__ __forceinline__ int64_t offset_of(const int64_t* stride, int first, int end,
                                               int64_t i) const {
    int64_t offset = 0;
    for (int d = first; d + 1 < end; d++) {
      const int64_t rest = divide(i, a.size[d]);
      offset += (i - rest * a.size[d]) * stride[d];
      i = rest;
    }
    return first < end ? offset + i * stride[end - 1] : 0;
  }
  // Division of 64 bits takes tens of instructions; few tensors need it.
  static __device__ __forceinline__ int64_t divide(int64_t i, int64_t by) {
    if (uint64_t(i | by) >> 32 == 0) return int64_t(uint32_t(i) / uint32_t(by));
    return i / by;
  }
  __device__ __forceinline__ int64_t reduced_offset(int64_t i) const {
    return offset_of(a.stride, a.n_kept, a.n_kept + a.n_red, i);
  }
  __device__ __forceinline__ P one(const char* p, int64_t position) const {
    P result = R::identity(a);
    with_stored<T>(a.dtype, [&](auto s) {
      using S = decltype(s);
      result = R::of(a, value_as<T>(*reinterpret_cast<const S*>(p)), position);
    });
    return result;
  }
  // 16 bytes, combined in four chains.
  __device__ __forceinline__ P pack(const uint4& raw, int64_t position) const {
    P result = R::identity(a);
    with_stored<T>(a.dtype, [&](auto s) {
      using S = decltype(s);
      constexpr int kCount = int(16 / sizeof(S));
      S x[kCount];
      __builtin_memcpy(static_cast<void*>(x), &raw, 16);
      constexpr int kParts = kCount < 4 ? kCount : 4;
      P part[kParts];
#pragma unroll
      for (int i = 0; i < kCount; i++) {
        const P next = R::of(a, value_as<T>(x[i]), position + i);
        part[i % kParts] = i < kParts ? next : combine(part[i % kParts], next);
      }
#pragma unroll
      for (int width = kParts / 2; width > 0; width /= 2) {
#pragma unroll
        for (int i = 0; i < width; i++) part[i] = combine(part[i], part[i + width]);
      }
      result = part[0];
    });
    return result;
  }

  // Elements [from, to) of the run at p, by `threads` threads.
  __device__ __forceinline__ P run(const char* p, int64_t from, int64_t to, int thread,
                                   int threads) const {
    const int64_t item = item_size(a.dtype);
    const int64_t per_pack = 16 / item;
    const int64_t skew = int64_t(reinterpret_cast<uintptr_t>(p + from * item) & 15);
    int64_t head = skew ? (16 - skew) / item : 0;
    if (head > to - from) head = to - from;
    if (skew % item) head = to - from;  // never aligned
    P acc[kReduceUnroll];
#pragma unroll
    for (int k = 0; k < kReduceUnroll; k++) acc[k] = R::identity(a);
    for (int64_t i = from + thread; i < from + head; i += threads)
      acc[0] = combine(acc[0], one(p + i * item, i));
    const int64_t start = from + head;
    const int64_t packs = (to - start) / per_pack;
    const uint4* at = reinterpret_cast<const uint4*>(p + start * item);
    int64_t i = thread;
    for (; i + (kReduceUnroll - 1) * threads < packs; i += kReduceUnroll * threads) {
      uint4 raw[kReduceUnroll];
#pragma unroll
      for (int k = 0; k < kReduceUnroll; k++) raw[k] = at[i + k * threads];
#pragma unroll
      for (int k = 0; k < kReduceUnroll; k++)
        acc[k] = combine(acc[k], pack(raw[k], start + (i + k * threads) * per_pack));
    }
    for (; i < packs; i += threads) acc[0] = combine(acc[0], pack(at[i], start + i * per_pack));
    for (int64_t j = start + packs * per_pack + thread; j < to; j += threads)
      acc[1] = combine(acc[1], one(p + j * item, j));
    return combine(combine(acc[0], acc[1]), combine(acc[2], acc[3]));
  }
  // The same of a strided sequence.
  __device__ __forceinline__ P walk(const char* p, int64_t from, int64_t to, int thread,
                                    int threads) const {
    P acc[2] = {R::identity(a), R::identity(a)};
    int64_t i = from + thread;
    for (; i + threads < to; i += 2 * threads) {
      const P first = one(p + reduced_offset(i), i);
      const P second = one(p + reduced_offset(i + threads), i + threads);
      acc[0] = combine(acc[0], first);
      acc[1] = combine(acc[1], second);
    }
    if (i < to) acc[0] = combine(acc[0], one(p + reduced_offset(i), i));
    return combine(acc[0], acc[1]);
  }
  // The same of a column, whose loads come in groups; more code and registers.
  __device__ __forceinline__ P walk_column(const char* p, int64_t from, int64_t to, int thread,
                                           int threads) const {
    constexpr int kLoads = kColumnLoads<T>;
    P result = R::identity(a);
    with_stored<T>(a.dtype, [&](auto s) {
      using S = decltype(s);
      const bool even = a.n_red == 1;
      const int64_t stride = even ? a.stride[a.n_kept] : 0;
      const auto load = [&](int64_t i) {
        return *reinterpret_cast<const S*>(p + (even ? i * stride : reduced_offset(i)));
      };
      constexpr int kChains = kLoads / 2;
      P acc[kChains];
#pragma unroll
      for (int k = 0; k < kChains; k++) acc[k] = R::identity(a);
      int64_t i = from + thread;
      for (; i + (kLoads - 1) * threads < to; i += kLoads * threads) {
        S x[kLoads];
#pragma unroll
        for (int k = 0; k < kLoads; k++) x[k] = load(i + k * threads);
#pragma unroll
        for (int k = 0; k < kLoads; k++)
          acc[k % kChains] =
              combine(acc[k % kChains], R::of(a, value_as<T>(x[k]), i + k * threads));
      }
      for (; i < to; i += threads) acc[0] = combine(acc[0], R::of(a, value_as<T>(load(i)), i));
#pragma unroll
      for (int width = kChains / 2; width > 0; width /= 2) {
#pragma unroll
        for (int k = 0; k < width; k++) acc[k] = combine(acc[k], acc[k + width]);
      }
      result = acc[0];
    });
    return result;
  }

  // A warp's or a block's value in its thread 0. shared: one partial for each warp.
  __device__ __forceinline__ P gather(P value, P* shared) const {
    const auto join = [this](const P& x, const P& y) { return combine(x, y); };
    value = combine_warp(value, join);
    if (blockDim.x == kWarp) return value;
    const int warp = int(threadIdx.x) / kWarp;
    const int lane = int(threadIdx.x) % kWarp;
    if (lane == 0) shared[warp] = value;
    __syncthreads();
    if (warp == 0) {
      value = lane < int(blockDim.x) / kWarp ? shared[lane] : R::identity(a);
      value = combine_warp(value, join);
    }
    __syncthreads();
    return value;
  }

  __device__ __forceinline__ void finish(int64_t output, const P& value) const {
    const int64_t at = offset_of(a.out_stride, 0, a.n_kept, output);
    const int64_t index_at = offset_of(a.index_stride, 0, a.n_kept, output);
    R::finish(a, value, a.out ? a.out + at : nullptr, a.index ? a.index + index_at : nullptr);
  }
  __device__ __forceinline__ void put(int64_t output, int64_t split, const P& value) const {
    if (a.splits == 1) finish(output, value);
    else reinterpret_cast<P*>(a.partials)[output * a.splits + split] = value;
  }
};

template <class T> __device__ __forceinline__ T smaller(T x, T y) { return y < x ? y : x; }

// A unit, one piece of one output, is a warp (blockDim.x = kWarp, several units in a block) or a
// block.
template <class R> __global__ void __launch_bounds__(kReduceThreads)
    reduce_rows(const __grid_constant__ ReduceArguments a) {
  using P = typename R::P;
  TT_SHARED(P, shared, kReduceThreads / kWarp);
  const Reducer<R> reducer{a};
  const int64_t step = int64_t(gridDim.x) * blockDim.y;
  for (int64_t u = int64_t(blockIdx.x) * blockDim.y + threadIdx.y; u < a.units; u += step) {
    const int64_t output = u / a.splits;
    const int64_t split = u - output * a.splits;
    const char* in = a.in + reducer.offset_of(a.stride, 0, a.n_kept, output);
    const int64_t from = split * a.split_len;
    const int64_t to = smaller(a.length, from + a.split_len);
    const int thread = int(threadIdx.x);
    const int threads = int(blockDim.x);
    P value = a.runs ? reducer.run(in, from, to, thread, threads)
                     : reducer.walk(in, from, to, thread, threads);
    value = reducer.gather(value, shared);
    if (thread == 0) reducer.put(output, split, value);
  }
}

// A unit, one piece of a tile of outputs, is a block; threadIdx.x is the output.
template <class R> __global__ void __launch_bounds__(kReduceThreads)
    reduce_columns(const __grid_constant__ ReduceArguments a) {
  using P = typename R::P;
  TT_SHARED(P, shared, kReduceThreads);
  const Reducer<R> reducer{a};
  const int64_t columns = a.size[0];
  const int thread = int(threadIdx.y * blockDim.x + threadIdx.x);
  for (int64_t u = blockIdx.x; u < a.units; u += gridDim.x) {
    const int64_t split = u % a.splits;
    const int64_t rest = u / a.splits;
    const int64_t other = rest / a.tiles;
    const int64_t column = (rest - other * a.tiles) * blockDim.x + threadIdx.x;
    P value = R::identity(a);
    if (column < columns) {
      const char* in =
          a.in + column * a.stride[0] + reducer.offset_of(a.stride, 1, a.n_kept, other);
      const int64_t from = split * a.split_len;
      const int64_t to = smaller(a.length, from + a.split_len);
      value = reducer.walk_column(in, from, to, int(threadIdx.y), int(blockDim.y));
    }
    if (blockDim.y > 1) {
      shared[thread] = value;
      __syncthreads();
      for (int half = int(blockDim.y) / 2; half > 0; half /= 2) {
        if (int(threadIdx.y) < half) {
          value = reducer.combine(value, shared[thread + half * int(blockDim.x)]);
          shared[thread] = value;
        }
        __syncthreads();
      }
    }
    if (threadIdx.y == 0 && column < columns) reducer.put(other * columns + column, split, value);
  }
}

// A unit is an output; as in reduce_rows.
template <class R> __global__ void __launch_bounds__(kReduceThreads)
    reduce_join(const __grid_constant__ ReduceArguments a) {
  using P = typename R::P;
  TT_SHARED(P, shared, kReduceThreads / kWarp);
  const Reducer<R> reducer{a};
  const int64_t step = int64_t(gridDim.x) * blockDim.y;
  for (int64_t u = int64_t(blockIdx.x) * blockDim.y + threadIdx.y; u < a.n_out; u += step) {
    const P* part = reinterpret_cast<const P*>(a.partials) + u * a.splits;
    P value = R::identity(a);
    for (int64_t i = threadIdx.x; i < a.splits; i += blockDim.x)
      value = reducer.combine(value, part[i]);
    value = reducer.gather(value, shared);
    if (threadIdx.x == 0) reducer.finish(u, value);
  }
}

// ---- on the host ----

constexpr int64_t kReducePiece = 4096;   // elements of a piece, at least
constexpr int64_t kReduceBlocks = 2048;  // pieces of all outputs, about
constexpr int64_t kMaxReduceGrid = int64_t(1) << 30;

inline int64_t power_of_two(int64_t n) {  // the next one
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

struct ReduceShape {
  dim3 block;
  int64_t tiles, splits, split_len;
};

// Depends on the sizes of the plan alone.
inline ReduceShape reduce_shape(const ReducePlan& p) {
  ReduceShape s;
  s.tiles = 1;
  s.splits = 1;
  int64_t units = p.n_out;  // before they are split
  int64_t piece = kReducePiece;
  if (p.path == kReduceColumns) {
    const int64_t columns = p.kept_size[0];
    int64_t y = min<int64_t>(power_of_two(ceil_div(p.length, 8)), 8);
    int64_t x = power_of_two(min<int64_t>(columns, kReduceThreads / y));
    if (y > 1) x = min<int64_t>(x, kWarp);
    if (x < kWarp) y = min<int64_t>(power_of_two(ceil_div(p.length, 8)), kReduceThreads / x);
    s.block = dim3(unsigned(x), unsigned(y));
    s.tiles = ceil_div(columns, x);
    units = p.n_out / columns * s.tiles;
    piece = 16 * y;
  } else {
    const bool by_warp = p.length <= 1024;
    const int64_t rows = by_warp ? min<int64_t>(p.n_out, kReduceThreads / kWarp) : 1;
    s.block = dim3(by_warp ? unsigned(kWarp) : unsigned(kReduceThreads), unsigned(rows));
  }
  const int64_t splits = min(kReduceBlocks / max<int64_t>(units, 1), p.length / piece);
  if (splits > 1) s.splits = splits;
  s.split_len = round_up(ceil_div(max<int64_t>(p.length, 1), s.splits), 16);
  s.splits = max<int64_t>(ceil_div(p.length, s.split_len), 1);
  return s;
}

inline unsigned reduce_grid(int64_t units, int64_t per_block) {
  return unsigned(min(ceil_div(units, per_block), kMaxReduceGrid));
}

template <class R>
int32_t launch_reduce(const ReducePlan& p, ReduceKind kind, void* stream, void* workspace) {
  static_assert(sizeof(typename R::P) <= 16);
  if (p.n_out == 0) return TT_OK;
  const ReduceShape shape = reduce_shape(p);
  ReduceArguments a;
  a.kind = kind;
  a.dtype = p.dtype;
  a.out_dtype = p.out_dtype;
  a.n_kept = p.n_kept;
  a.n_red = p.n_red;
  a.runs = p.n_red == 1 && (p.red_stride[0] == kItemSize[p.dtype] || p.length == 1);
  a.in = p.in;
  a.out = p.out;
  a.index = p.index;
  a.partials = static_cast<char*>(workspace);
  a.divisor = p.divisor;
  a.n_out = p.n_out;
  a.length = p.length;
  a.splits = shape.splits;
  a.split_len = shape.split_len;
  a.tiles = shape.tiles;
  for (int d = 0; d < p.n_kept; d++) {
    a.size[d] = p.kept_size[d];
    a.stride[d] = p.kept_stride[d];
    a.out_stride[d] = p.out_stride[d];
    a.index_stride[d] = p.index_stride[d];
  }
  for (int d = 0; d < p.n_red; d++) {
    a.size[p.n_kept + d] = p.red_size[d];
    a.stride[p.n_kept + d] = p.red_stride[d];
  }
  int32_t status;
  if (p.path == kReduceColumns) {
    a.units = p.n_out / p.kept_size[0] * shape.tiles * shape.splits;
    status = device::launch(reduce_columns<R>, reduce_grid(a.units, 1), shape.block, 0, stream, a);
  } else {
    a.units = p.n_out * shape.splits;
    status = device::launch(reduce_rows<R>, reduce_grid(a.units, shape.block.y), shape.block, 0,
                            stream, a);
  }
  if (status != TT_OK || shape.splits == 1) return status;
  const bool by_warp = shape.splits <= 256;
  const dim3 block = by_warp ? dim3(kWarp, unsigned(min<int64_t>(p.n_out, kReduceThreads / kWarp)))
                             : dim3(kReduceThreads);
  return device::launch(reduce_join<R>, reduce_grid(p.n_out, block.y), block, 0, stream, a);
}

inline size_t reduce_workspace(const void* plan) {
  const ReducePlan& p = *static_cast<const ReducePlan*>(plan);
  const int64_t splits = p.n_out ? reduce_shape(p).splits : 1;
  return splits > 1 ? size_t(splits * p.n_out) * 16 : 0;
}

// The largest or smallest: x is taken if it is better than, or a nan instead of, y.
template <class T> __device__ __forceinline__ bool is_better(ReduceKind kind, T x, T y) {
  return kind == ReduceKind::kMax ? x > y : x < y;
}
template <class T> __device__ __forceinline__ T worst(ReduceKind kind) {
  return kind == ReduceKind::kMax ? kLowest<T> : kHighest<T>;
}

}  // namespace
}  // namespace TT_NS
