// Reductions of the device, over a ReducePlan. Splits and order depend on the shape alone, so that
// the bits of a result do not depend on the device. Two paths, chosen by the plan and by what is
// aligned:
//
//   rows     a warp or a block reduces the sequence of one output, which is made of runs of
//            memory, 16 bytes at once
//   columns  blockDim.x threads have neighbouring outputs, 16 bytes of them each where they are
//            one run of memory, else one; blockDim.y threads share the sequence of each
//
// If outputs are few, a sequence is split: pieces write partials to workspace [n_out][splits], and
// `join` combines those of each output. The dtype of the elements is dispatched in the kernel, so
// that each reduction is one kernel for each compute type: outside the loops, but for one run of
// memory per output and partials that are plain numbers, for each 16 bytes: loops for each dtype
// take 62 registers instead of 48 there.
//
// A reduction R has
//   T: compute type; Reads: what with_stored gets
//   P: partial of a piece, whose positions begin at 0; Joined: of the sequence; of whole words
//   Base: what all elements of an output are seen from, or Nothing; Base base_of(T first)
//   P identity(args); P group(args, Base, const T (&)[n], int position, int step): elements at
//   position + k * step; P combine(args, P, P)
//   Joined joined(args, P, int64_t from): of the piece that begins there; the three also of Joined
//   void finish(args, Base, Joined, char* out, char* index)
// and, if kRefined<R>, whose partials say in which pack of a run something was found,
//   void add_pack(args, P*, const T (&)[n], int position)
//   P refined(P, const S* elements, int n): elements begin at the position of P
#pragma once

#include "kernels/cuda/convert.h"
#include "kernels/cuda/strided.h"
#include "kernels/cuda/warp.h"
#include "plan/reduce_plan.h"

namespace TT_NS {

namespace cuda {
// reduce_sum of kReduceCentred, and of other terms
int32_t reduce_centred(const ReducePlan& plan, void* stream, void* workspace);
int32_t reduce_terms(const ReducePlan& plan, void* stream, void* workspace);
}  // namespace cuda

namespace {

constexpr int kReduceThreads = 256;
constexpr int kReduceEach = 8;    // packs of a thread along a run, about
constexpr int kReduceWidth = 8;   // neighbouring outputs of a thread, at most
constexpr int kReducePacks = 4;   // loads of a thread at once: along a run
constexpr int kReduceAcross = 4;  // of neighbouring outputs
constexpr int kReduceSingle = 8;  // of an element
constexpr int kJoinLoads = 8;     // of a partial

struct Nothing {};
struct AnyFloat {};    // float16 to float64
struct AnyComplex {};  // complex64 and complex128

// Outputs of a thread whose neighbouring elements are one run.
TT_FN constexpr int64_t reduce_width(int64_t item) { return item == 1 ? kReduceWidth : 16 / item; }

// What the kernels of one family do; each names those that it knows.
enum class ReduceKind : int32_t { kSum, kProd, kMax, kMin };

// Dimensions [0, n_kept) are the kept ones, followed by n_red reduced ones; bytes.
struct ReduceArguments {
  ReduceKind kind;
  int32_t dtype, out_dtype;
  int32_t n_kept, n_red;
  bool aligned;                  // neighbouring outputs are read as packs
  bool two;                      // two reduced dimensions, positions fit 31 bits
  Divisor run;                   // of run_size, if two
  int64_t run_size, run_stride;  // the first reduced dimension
  int64_t row_stride;            // the second one, if there is one
  const char* in;
  char* out;
  char* index;
  int32_t term;  // ReduceTerm
  bool root;
  double order;
  char* partials;  // [n_out][splits]; written if splits > 1, and read by join
  double divisor;
  int64_t n_out, length;
  int64_t splits, split_len;
  int64_t units;
  int64_t columns, column_stride;  // columns path: kept dimension 0
  int64_t tiles;                   // pieces of it
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

// kN neighbouring stored elements, in registers: whole words, which are cheaper than bytes.
template <int kBytes> struct WordsOf { using type = uint32_t; };
template <> struct WordsOf<1> { using type = uint8_t; };
template <> struct WordsOf<2> { using type = uint16_t; };
template <> struct WordsOf<8> { using type = uint2; };
template <> struct WordsOf<16> { using type = uint4; };
template <class S, int kN> struct Neighbours {
  using Words = typename WordsOf<int(sizeof(S)) * kN>::type;
  Words words;
  // A single element has the alignment of its parts, as a complex number has; several have that of
  // the pack.
  __device__ __forceinline__ void load(const char* p) {
    if constexpr (kN == 1 && alignof(S) < alignof(Words)) {
      const S one = *reinterpret_cast<const S*>(p);
      __builtin_memcpy(&words, static_cast<const void*>(&one), sizeof one);
    } else {
      words = *reinterpret_cast<const Words*>(p);
    }
  }
  __device__ __forceinline__ void get(S (&v)[kN]) const {
    __builtin_memcpy(static_cast<void*>(v), &words, sizeof words);
  }
};

// Calls f(S{}) with the stored type of dtype, among those that T computes; bool reads any.
template <class T, class F> __device__ __forceinline__ void with_stored(int32_t dtype, const F& f) {
  constexpr bool kAny = __is_same(T, bool);
  constexpr bool kFloats = __is_same(T, AnyFloat);
  constexpr bool kComplex = __is_same(T, AnyComplex);
  if constexpr (kAny || __is_same(T, int64_t)) {
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
  if constexpr (kAny || kFloats || __is_same(T, float)) {
    switch (dtype) {
      case TT_F16: return f(F16{});
      case TT_BF16: return f(BF16{});
      case TT_F32: return f(float{});
      default: break;
    }
  }
  if constexpr (kAny || kFloats || __is_same(T, double))
    if (dtype == TT_F64) return f(double{});
  if constexpr (kAny || kComplex) {
    if (dtype == TT_C64) return f(c64{});
    if (dtype == TT_C128) return f(c128{});
  }
}

// The elements of a group in four chains.
template <class R, class T, int kN>
__device__ __forceinline__ typename R::P group_of(const ReduceArguments& a, const T (&v)[kN]) {
  constexpr int kChains = kN < 4 ? kN : 4;
  typename R::P x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; i++) x[i] = v[i];
#pragma unroll
  for (int i = kChains; i < kN; i++) x[i % kChains] = R::combine(a, x[i % kChains], v[i]);
  if constexpr (kChains == 4) {
    x[0] = R::combine(a, x[0], x[2]);
    x[1] = R::combine(a, x[1], x[3]);
  }
  if constexpr (kChains > 1) x[0] = R::combine(a, x[0], x[1]);
  return x[0];
}

// Whether partials are numbers, which know nothing of positions.
template <class R> constexpr bool kPlain = __is_same(typename R::P, typename R::Joined) &&
                                           __is_same(typename R::Base, Nothing);

template <class R> constexpr bool kRefined = false;

template <class R> struct Reducer {
  using T = typename R::T;
  using P = typename R::P;
  using Base = typename R::Base;
  using Joined = typename R::Joined;
  static constexpr bool kBased = !__is_same(Base, Nothing);
  const ReduceArguments& a;

  template <class X> __device__ __forceinline__ X combine(const X& x, const X& y) const {
    return R::combine(a, x, y);
  }
  template <class X, int kN> __device__ __forceinline__ X tree(X (&x)[kN]) const {
#pragma unroll
    for (int width = kN / 2; width > 0; width /= 2) {
#pragma unroll
      for (int i = 0; i < width; i++) x[i] = combine(x[i], x[i + width]);
    }
    return x[0];
  }

  // The place of position i in the dimensions [first, end).
  __device__ __forceinline__ int64_t offset_of(const int64_t* stride, int first, int end,
                                               int64_t i) const {
    int64_t offset = 0;
#pragma unroll 1
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
  // The place of an element of a sequence.
  __device__ __forceinline__ int64_t place(int64_t i) const {
    if (a.n_red == 1) return i * a.run_stride;
    return a.two ? place_of_two(i) : far_place(a, i);
  }
  __device__ __forceinline__ int64_t place_of_two(int64_t i) const {
    const int64_t row = int64_t(a.run.divide(uint32_t(i)));
    return (i - row * a.run_size) * a.run_stride + row * a.row_stride;
  }
  // Few tensors come here, and code at each load is most of a kernel.
  static __device__ TT_NOINLINE int64_t far_place(const ReduceArguments& a, int64_t i) {
    return Reducer{a}.offset_of(a.stride, a.n_kept, a.n_kept + a.n_red, i);
  }
  // What sequences are seen from whose first elements are the kN at p.
  template <class S, int kN>
  __device__ __forceinline__ void set_base(Base (&base)[kN], const char* p) const {
    if constexpr (kBased) {
#pragma unroll
      for (int c = 0; c < kN; c++)
        base[c] = R::base_of(value_as<T>(reinterpret_cast<const S*>(p)[c]));
    }
  }

  // kPlain: one element, and 16 bytes, whose dtype is asked each time.
  __device__ __forceinline__ P one(const char* p) const {
    P result = R::identity(a);
    with_stored<typename R::Reads>(a.dtype, [&](auto s) {
      using S = decltype(s);
      const T v[1] = {value_as<T>(*reinterpret_cast<const S*>(p))};
      result = R::group(a, Base{}, v, 0, 1);
    });
    return result;
  }
  __device__ __forceinline__ P pack(const uint4& raw) const {
    P result = R::identity(a);
    with_stored<typename R::Reads>(a.dtype, [&](auto s) {
      using S = decltype(s);
      constexpr int kN = int(16 / sizeof(S));
      S stored[kN];
      __builtin_memcpy(static_cast<void*>(stored), &raw, sizeof stored);
      T v[kN];
#pragma unroll
      for (int j = 0; j < kN; j++) v[j] = value_as<T>(stored[j]);
      result = R::group(a, Base{}, v, 0, 1);
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
    if (head > to - from || skew % item) head = to - from;  // else never aligned
    P acc[kReducePacks];
#pragma unroll
    for (int k = 0; k < kReducePacks; k++) acc[k] = R::identity(a);
#pragma unroll 1
    for (int64_t i = from + thread; i < from + head; i += threads)
      acc[0] = combine(acc[0], one(p + i * item));
    const int64_t start = from + head;
    const int64_t packs = (to - start) / per_pack;
    const uint4* const at = reinterpret_cast<const uint4*>(p + start * item);
    int64_t i = thread;
    for (; i + (kReducePacks - 1) * threads < packs; i += kReducePacks * threads) {
      uint4 raw[kReducePacks];
#pragma unroll
      for (int k = 0; k < kReducePacks; k++) raw[k] = at[i + k * threads];
#pragma unroll
      for (int k = 0; k < kReducePacks; k++) acc[k] = combine(acc[k], pack(raw[k]));
    }
#pragma unroll 1
    for (; i < packs; i += threads) acc[0] = combine(acc[0], pack(at[i]));
#pragma unroll 1
    for (i = start + packs * per_pack + thread; i < to; i += threads)
      acc[1] = combine(acc[1], one(p + i * item));
    return tree(acc);
  }

  // Elements [from, to) of a sequence by `threads` threads: one run, which may begin anywhere, or
  // several of whole packs. Nothing is called between loads, which would come one by one then.
  template <class S, bool kOne> __device__ __forceinline__ P along(const char* p, int64_t from,
                                                                   int64_t to, int thread,
                                                                   int threads) const {
    constexpr int kN = int(16 / sizeof(S));
    Base base[1];
    set_base<S>(base, p);
    int64_t head = 0;
    if constexpr (kOne) {
      const uintptr_t first = reinterpret_cast<uintptr_t>(p) + uintptr_t(from) * sizeof(S);
      head = int64_t((16 - (first & 15)) % 16 / sizeof(S));
      if (head > to - from || first % sizeof(S)) head = to - from;  // else never aligned
    }
    const int64_t start = from + head;
    const int packs = int((to - start) / kN);
    const char* const first_pack = p + start * int64_t(sizeof(S));
    const auto load = [&](int i) {
      Neighbours<S, kN> x;
      if constexpr (kOne) x.load(first_pack + int64_t(i) * 16);
      else x.load(p + place_of_two(start + int64_t(i) * kN));
      return x;
    };
    const auto add = [&](P& acc, const Neighbours<S, kN>& x, int i) {
      S stored[kN];
      x.get(stored);
      T v[kN];
#pragma unroll
      for (int j = 0; j < kN; j++) v[j] = value_as<T>(stored[j]);
      const int position = int(start - from) + i * kN;
      if constexpr (kRefined<R>) R::add_pack(a, &acc, v, position);
      else acc = combine(acc, R::group(a, base[0], v, position, 1));
    };
    P acc[kReducePacks];
#pragma unroll
    for (int k = 0; k < kReducePacks; k++) acc[k] = R::identity(a);
    int i = thread;
    for (; i + (kReducePacks - 1) * threads < packs; i += kReducePacks * threads) {
      Neighbours<S, kN> x[kReducePacks];
#pragma unroll
      for (int k = 0; k < kReducePacks; k++) x[k] = load(i + k * threads);
#pragma unroll
      for (int k = 0; k < kReducePacks; k++) add(acc[k], x[k], i + k * threads);
    }
#pragma unroll 1
    for (; i < packs; i += threads) add(acc[0], load(i), i);
    if constexpr (kOne) {
      const int rest = int(to - start) - packs * kN;
#pragma unroll 1
      for (i = thread; i < int(head) + rest; i += threads) {
        const int at = i < head ? i : int(to - from) - int(head) - rest + i;
        const T v[1] = {value_as<T>(reinterpret_cast<const S*>(p)[from + at])};
        acc[0] = combine(acc[0], R::group(a, base[0], v, at, 1));
      }
    }
    return tree(acc);
  }
  // The value of the elements from `from` on, given that of their packs.
  __device__ __forceinline__ P refined(const char* p, int64_t from, const P& value) const {
    P result = value;
    const int64_t first = from + value.position;
    with_stored<typename R::Reads>(a.dtype, [&](auto s) {
      using S = decltype(s);
      const char* const at = p + (a.two ? place_of_two(first) : first * int64_t(sizeof(S)));
      result = R::refined(value, reinterpret_cast<const S*>(at), int(16 / sizeof(S)));
    });
    return result;
  }
  // What `along` does, of kN neighbouring sequences.
  template <class S, int kN>
  __device__ __forceinline__ void across(const char* p, int64_t from, int64_t to, int thread,
                                         int threads, P (&acc)[kReduceWidth]) const {
    constexpr int kLoads = kN == 1 ? kReduceSingle : kReduceAcross;
    Base base[kN];
    set_base<S>(base, p);
#pragma unroll
    for (int c = 0; c < kN; c++) acc[c] = R::identity(a);
    const int n = int(to - from);
    const auto load = [&](S(&stored)[kN], int i) {
      Neighbours<S, kN> x;
      if constexpr (kN == 1) x.load(p + place(from + i));
      else x.load(p + (a.two ? place_of_two(from + i) : (from + i) * a.run_stride));
      x.get(stored);
    };
    int i = thread;
    for (; i + (kLoads - 1) * threads < n; i += kLoads * threads) {
      S stored[kLoads][kN];
#pragma unroll
      for (int k = 0; k < kLoads; k++) load(stored[k], i + k * threads);
#pragma unroll
      for (int c = 0; c < kN; c++) {
        T v[kLoads];
#pragma unroll
        for (int k = 0; k < kLoads; k++) v[k] = value_as<T>(stored[k][c]);
        acc[c] = combine(acc[c], R::group(a, base[c], v, i, threads));
      }
    }
#pragma unroll 1
    for (; i < n; i += threads) {
      S stored[kN];
      load(stored, i);
#pragma unroll
      for (int c = 0; c < kN; c++) {
        const T v[1] = {value_as<T>(stored[c])};
        acc[c] = combine(acc[c], R::group(a, base[c], v, i, threads));
      }
    }
  }

  // A warp's or a block's value in its thread 0. shared: one for each warp.
  template <class X> __device__ __forceinline__ X gather(X value, X* shared, const X& none) const {
    const auto join = [this](const X& x, const X& y) { return combine(x, y); };
    value = combine_warp(value, join);
    if (blockDim.x == kWarp) return value;
    const int warp = int(threadIdx.x) / kWarp;
    const int lane = int(threadIdx.x) % kWarp;
    if (lane == 0) shared[warp] = value;
    __syncthreads();
    if (warp == 0) {
      value = lane < int(blockDim.x) / kWarp ? shared[lane] : none;
      value = combine_warp(value, join);
    }
    __syncthreads();
    return value;
  }

  __device__ __forceinline__ void finish(int64_t output, const Joined& value) const {
    const int64_t at = offset_of(a.out_stride, 0, a.n_kept, output);
    const int64_t index_at = offset_of(a.index_stride, 0, a.n_kept, output);
    Base base[1] = {};
    if constexpr (kBased) {
      const char* in = a.in + offset_of(a.stride, 0, a.n_kept, output);
      with_stored<typename R::Reads>(a.dtype, [&](auto s) { set_base<decltype(s)>(base, in); });
    }
    R::finish(a, base[0], value, a.out ? a.out + at : nullptr,
              a.index ? a.index + index_at : nullptr);
  }
  __device__ __forceinline__ void put(int64_t output, int64_t split, const P& value) const {
    const Joined joined = R::joined(a, value, split * a.split_len);
    if (a.splits == 1) finish(output, joined);
    else reinterpret_cast<Joined*>(a.partials)[output * a.splits + split] = joined;
  }
};

// Outputs of a thread, at most.
template <class T> constexpr int kReduceMost = kReduceWidth;
template <> inline constexpr int kReduceMost<double> = 2;
template <> inline constexpr int kReduceMost<AnyComplex> = 2;
// Blocks of a multiprocessor, at least: memory is what they wait for.
template <class R> constexpr int kReduceResident = 4 - int(sizeof(typename R::P)) / 8;
template <class R> constexpr int kRunsResident = sizeof(typename R::P) > 4 ? 1 : 5;
template <class R> constexpr int kRowsResident = 3 + int(sizeof(typename R::P) == 4);
template <class T> __device__ __forceinline__ T smaller(T x, T y) { return y < x ? y : x; }

// A unit, one piece of one output, is a warp (blockDim.x = kWarp, several units in a block) or a
// block. kOne: sequences are one run of memory, partials plain numbers.
template <class R, bool kOne>
__global__ void __launch_bounds__(kReduceThreads, kOne ? kRunsResident<R> : kRowsResident<R>)
    reduce_rows(const __grid_constant__ ReduceArguments a) {
  device::wait_for_previous();
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
    P value = R::identity(a);
    if constexpr (kOne) {
      value = reducer.run(in, from, to, thread, threads);
    } else {
      with_stored<typename R::Reads>(a.dtype, [&](auto s) {
        using S = decltype(s);
        if (kPlain<R> || a.two)
          value = reducer.template along<S, false>(in, from, to, thread, threads);
        else value = reducer.template along<S, true>(in, from, to, thread, threads);
      });
    }
    value = reducer.gather(value, shared, R::identity(a));
    if (thread != 0) continue;
    if constexpr (kRefined<R>) value = reducer.refined(in, from, value);
    reducer.put(output, split, value);
  }
}

// A unit, one piece of a tile of outputs, is a block.
template <class R> __global__ void __launch_bounds__(kReduceThreads, kReduceResident<R>)
    reduce_columns(const __grid_constant__ ReduceArguments a) {
  device::wait_for_previous();
  using P = typename R::P;
  constexpr int kMost = kReduceMost<typename R::Reads>;
  TT_SHARED(P, shared, kMost * kReduceThreads);
  const Reducer<R> reducer{a};
  const int64_t columns = a.columns;
  const int thread = int(threadIdx.y * blockDim.x + threadIdx.x);
  const int width = a.aligned ? int(reduce_width(item_size(a.dtype))) : 1;
  for (int64_t u = blockIdx.x; u < a.units; u += gridDim.x) {
    const int64_t split = u % a.splits;
    const int64_t rest = u / a.splits;
    const int64_t other = rest / a.tiles;
    const int64_t column = ((rest - other * a.tiles) * blockDim.x + threadIdx.x) * width;
    P value[kReduceWidth];
#pragma unroll
    for (int c = 0; c < kMost; c++) value[c] = R::identity(a);
    if (column < columns) {
      const char* in =
          a.in + column * a.column_stride + reducer.offset_of(a.stride, 1, a.n_kept, other);
      const int64_t from = split * a.split_len;
      const int64_t to = smaller(a.length, from + a.split_len);
      with_stored<typename R::Reads>(a.dtype, [&](auto s) {
        using S = decltype(s);
        constexpr int kN = int(reduce_width(sizeof(S)));
        const int part = int(threadIdx.y);
        const int parts = int(blockDim.y);
        if (kN > 1 && a.aligned) reducer.template across<S, kN>(in, from, to, part, parts, value);
        else reducer.template across<S, 1>(in, from, to, part, parts, value);
      });
    }
    if (blockDim.y > 1) {
#pragma unroll
      for (int c = 0; c < kMost; c++)
        if (c < width) shared[c * kReduceThreads + thread] = value[c];
      __syncthreads();
      for (int half = int(blockDim.y) / 2; half > 0; half /= 2) {
        if (int(threadIdx.y) < half) {
          const int other_thread = thread + half * int(blockDim.x);
#pragma unroll
          for (int c = 0; c < kMost; c++) {
            if (c >= width) break;
            value[c] = reducer.combine(value[c], shared[c * kReduceThreads + other_thread]);
            shared[c * kReduceThreads + thread] = value[c];
          }
        }
        __syncthreads();
      }
    }
    if (threadIdx.y > 0 || column >= columns) continue;
#pragma unroll
    for (int c = 0; c < kMost; c++)
      if (c < width) reducer.put(other * columns + column + c, split, value[c]);
  }
}

// A unit is an output; as in reduce_rows.
template <class R> __global__ void __launch_bounds__(kReduceThreads)
    reduce_join(const __grid_constant__ ReduceArguments a) {
  device::wait_for_previous();
  using Joined = typename R::Joined;
  TT_SHARED(Joined, shared, kReduceThreads / kWarp);
  const Reducer<R> reducer{a};
  const Joined none = R::joined(a, R::identity(a), 0);
  const int64_t step = int64_t(gridDim.x) * blockDim.y;
  for (int64_t u = int64_t(blockIdx.x) * blockDim.y + threadIdx.y; u < a.n_out; u += step) {
    const Joined* part = reinterpret_cast<const Joined*>(a.partials) + u * a.splits;
    Joined value = none;
    const int threads = int(blockDim.x);
    for (int i = int(threadIdx.x); i < int(a.splits); i += kJoinLoads * threads) {
      Joined x[kJoinLoads];
#pragma unroll
      for (int k = 0; k < kJoinLoads; k++)
        x[k] = i + k * threads < int(a.splits) ? part[i + k * threads] : none;
      value = reducer.combine(value, reducer.tree(x));
    }
    value = reducer.gather(value, shared, none);
    if (threadIdx.x == 0) reducer.finish(u, value);
  }
}

// ---- on the host ----

constexpr int64_t kReduceBlocks = 2048;  // pieces of all outputs, about
constexpr int64_t kReduceSpread = 512;   // blocks among which short rows are shared out first
constexpr int64_t kMaxReduceGrid = int64_t(1) << 30;

inline int64_t power_of_two(int64_t n) {  // the next one
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

// Whether everything that packs are read by is a multiple of 16 bytes, from dimension `first` on.
inline bool packs_align(const ReducePlan& p, int kept, int reduced) {
  uint64_t all = uint64_t(reinterpret_cast<uintptr_t>(p.in));
  for (int d = kept; d < p.n_kept; d++) all |= uint64_t(p.kept_stride[d]);
  for (int d = reduced; d < p.n_red; d++) all |= uint64_t(p.red_stride[d]);
  return (all & 15) == 0;
}
// Whether there are two reduced dimensions, and positions fit 31 bits.
inline bool has_two(const ReducePlan& p) { return p.n_red == 2 && p.length < int64_t(1) << 31; }
// Whether sequences are runs of memory: one, or several of whole packs.
inline bool has_runs(const ReducePlan& p) {
  const int64_t item = kItemSize[p.dtype];
  if (p.red_stride[0] != item) return p.length == 1;
  if (p.n_red == 1) return true;
  return has_two(p) && p.red_size[0] * item % 16 == 0 && packs_align(p, 0, 1);
}
// Whether neighbouring outputs are read as packs.
inline bool has_aligned_columns(const ReducePlan& p) {
  const int64_t item = kItemSize[p.dtype];
  return (p.n_red == 1 || has_two(p)) && p.kept_stride[0] == item &&
         p.kept_size[0] % reduce_width(item) == 0 && packs_align(p, 1, 0);
}

struct ReduceShape {
  dim3 block;
  bool runs, aligned;  // packs of a sequence, of neighbouring outputs
  int64_t columns;     // 0: rows path
  int64_t tiles, splits, split_len;
};

// Depends on the sizes of the plan, and on what is aligned.
inline ReduceShape reduce_shape(const ReducePlan& p) {
  ReduceShape s = {};
  s.tiles = 1;
  s.splits = 1;
  s.runs = p.path == kReduceRows && has_runs(p);
  const int64_t item = kItemSize[p.dtype];
  int64_t units = p.n_out;  // before they are split
  int64_t piece;            // elements, at least
  if (s.runs) {
    const int64_t x = power_of_two(ceil_div(p.length * item, 16 * kReduceEach));
    const int64_t threads = clamp<int64_t>(x, kWarp, kReduceThreads);
    const int64_t rows = threads == kWarp ? p.n_out / kReduceSpread : 1;
    s.block = dim3(unsigned(threads), unsigned(clamp<int64_t>(rows, 1, kReduceThreads / kWarp)));
    piece = kReducePacks * 16 / item * kReduceThreads;
  } else {
    s.columns = p.n_kept ? p.kept_size[0] : 1;
    s.aligned = p.path == kReduceColumns && has_aligned_columns(p);
    const int64_t width = s.aligned ? reduce_width(item) : 1;
    const int64_t tiled = s.columns / width;
    const int64_t loads = width == 1 ? kReduceSingle : kReduceAcross;
    // Threads of a sequence, at most.
    const int64_t parts = power_of_two(ceil_div(p.length, loads));
    int64_t y = min<int64_t>(parts, p.path == kReduceColumns ? 8 : kReduceThreads);
    int64_t x = power_of_two(min<int64_t>(tiled, kReduceThreads / y));
    if (y > 1) x = min<int64_t>(x, kWarp);
    if (x < kWarp) y = min<int64_t>(parts, kReduceThreads / x);
    s.block = dim3(unsigned(x), unsigned(y));
    s.tiles = ceil_div(tiled, x);
    units = p.n_out / s.columns * s.tiles;
    piece = 2 * loads * y;
  }
  // a piece's positions fit 31 bits
  const int64_t least = ceil_div(p.length, int64_t(1) << 30);
  const int64_t splits = min(kReduceBlocks / max<int64_t>(units, 1), p.length / piece);
  s.splits = max<int64_t>(max(splits, least), 1);
  s.split_len = round_up(ceil_div(max<int64_t>(p.length, 1), s.splits), 16);
  s.splits = max<int64_t>(ceil_div(p.length, s.split_len), 1);
  return s;
}

inline unsigned reduce_grid(int64_t units, int64_t per_block) {
  return unsigned(min(ceil_div(units, per_block), kMaxReduceGrid));
}

// Halves the threads of long sequences where these fill the device anyway, and partials of several
// words take long to combine: twice as many blocks are resident, and some read meanwhile.
inline void narrow_teams(const ReducePlan& p, ReduceShape* s) {
  const bool fills = s->splits == 1 && p.n_out >= kReduceBlocks;
  if (s->runs && fills && s->block.x == kReduceThreads) s->block.x = kReduceThreads / 2;
}

inline ReduceArguments reduce_arguments(const ReducePlan& p, const ReduceShape& shape,
                                        ReduceKind kind, void* workspace) {
  ReduceArguments a;
  a.kind = kind;
  a.dtype = p.dtype;
  a.out_dtype = p.out_dtype;
  a.n_kept = p.n_kept;
  a.n_red = p.n_red;
  a.aligned = shape.aligned;
  a.run_size = p.red_size[0];
  a.run_stride = p.red_stride[0];
  a.row_stride = p.n_red > 1 ? p.red_stride[1] : 0;
  a.two = has_two(p);
  if (a.two) a.run.set(uint32_t(a.run_size));
  a.in = p.in;
  a.out = p.out;
  a.index = p.index;
  a.partials = static_cast<char*>(workspace);
  a.term = p.term;
  a.root = p.root;
  a.order = p.order;
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
  a.columns = shape.columns;
  a.column_stride = p.n_kept ? p.kept_stride[0] : 0;
  a.units =
      shape.runs ? p.n_out * shape.splits : p.n_out / shape.columns * shape.tiles * shape.splits;
  return a;
}

template <class R>
int32_t launch_reduce(const ReducePlan& p, ReduceKind kind, void* stream, void* workspace) {
  static_assert(sizeof(typename R::P) <= 16 && sizeof(typename R::Joined) <= 16);
  if (p.n_out == 0) return TT_OK;
  ReduceShape shape = reduce_shape(p);
  if (sizeof(typename R::P) > 4) narrow_teams(p, &shape);
  const ReduceArguments a = reduce_arguments(p, shape, kind, workspace);
  int32_t status;
  if (!shape.runs) {
    status =
        device::launch_early(reduce_columns<R>, reduce_grid(a.units, 1), shape.block, stream, a);
  } else {
    void (*kernel)(ReduceArguments) = reduce_rows<R, false>;
    if constexpr (kPlain<R>)
      if (!a.two) kernel = reduce_rows<R, true>;
    status =
        device::launch_early(kernel, reduce_grid(a.units, shape.block.y), shape.block, stream, a);
  }
  if (status != TT_OK || shape.splits == 1) return status;
  const bool by_warp = shape.splits <= kWarp * kJoinLoads;
  const dim3 block = by_warp ? dim3(kWarp, unsigned(min<int64_t>(p.n_out, kReduceThreads / kWarp)))
                             : dim3(kReduceThreads);
  return device::launch_early(reduce_join<R>, reduce_grid(p.n_out, block.y), block, stream, a);
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
