// Kernels over rows: the `dim` elements of one (outer, inner) pair of an array [outer][dim][inner].
// The threads that share a row are its team:
//
//   warp      inner is 1, rows are short: a warp for each row, threadIdx.y is the row in the block
//   block     inner is 1: all threads of the block
//   columns   inner > 1: threads of one threadIdx.x; rows beside each other in memory are
//             neighbouring columns of the block
//
// Where inner is 1 and rows are aligned, a thread reads 16 bytes at once. Memory is read once where
// a row fits in registers (RowGeometry::held, HeldRow), or in shared memory, where it is kept as it
// is read (Row::kept): later passes read it from there, each thread its own elements. Teams depend
// on the shape alone, and so do all results.
#pragma once

#include "kernels/cuda/convert.h"
#include "kernels/cuda/warp.h"
#include "kernels/functors/math.h"

namespace TT_NS {
namespace {

constexpr int kRowThreads = 512;    // of a block, at most
constexpr int kRowShared = 256;     // partial results of a block in shared memory, at most
constexpr int64_t kWarpRow = 1024;  // longest row of a warp
constexpr size_t kMaxKept = device::kAskedShared;  // bytes of rows kept in shared memory
constexpr int kHeldPacks = 4;                      // of each thread, of a row in registers
// Blocks of a multiprocessor, at least, whose threads hold rows: memory is what they wait for.
template <class S> constexpr int kHeldBlocks = sizeof(S) == 8 ? 1 : 2;
constexpr int64_t kMaxRowGrid = int64_t(1) << 30;

// ---- numbers ----

template <class S> struct ComputeOf { using type = float; };
template <> struct ComputeOf<double> { using type = double; };
template <class S> using Compute = typename ComputeOf<S>::type;

template <class S> __device__ __forceinline__ Compute<S> number_of(S s) {
  if constexpr (kIsHalf<S>) return widen(s);
  else return s;
}
template <class S> __device__ __forceinline__ S stored_as(Compute<S> v) {
  if constexpr (__is_same(S, F16)) return narrow_f16(v);
  else if constexpr (__is_same(S, BF16)) return narrow_bf16(v);
  else return v;
}
template <class S> constexpr int32_t kStoredDtype = TT_F32;
template <> inline constexpr int32_t kStoredDtype<F16> = TT_F16;
template <> inline constexpr int32_t kStoredDtype<BF16> = TT_BF16;
template <> inline constexpr int32_t kStoredDtype<double> = TT_F64;

// Calls f(S{}) with the stored type of a floating dtype.
template <class F> int32_t with_floating(int32_t dtype, const F& f) {
  switch (dtype) {
    case TT_F16: return f(F16{});
    case TT_BF16: return f(BF16{});
    case TT_F64: return f(double{});
    default: return f(float{});
  }
}

template <class S> constexpr int kPackOf = int(16 / sizeof(S));
template <class S, int kN> struct alignas(sizeof(S) * kN) Pack { S v[kN]; };

// v = kN elements from element i on, aligned as a pack where kN > 1.
template <class S, class T, int kN>
__device__ __forceinline__ void load_stored(T (&v)[kN], const char* p, int64_t i) {
  constexpr int kPart = kN < kPackOf<S> ? kN : kPackOf<S>;
#pragma unroll
  for (int k = 0; k < kN; k += kPart) {
    const Pack<S, kPart> pack =
        *reinterpret_cast<const Pack<S, kPart>*>(reinterpret_cast<const S*>(p) + i + k);
#pragma unroll
    for (int j = 0; j < kPart; j++) v[k + j] = T(number_of(pack.v[j]));
  }
}
// The same for elements of any floating dtype; `absent` if p is NULL.
template <class T, int kN> __device__ __forceinline__ void load_numbers(T (&v)[kN], const char* p,
                                                                        int32_t dtype, int64_t i,
                                                                        T absent) {
  if (!p) {
#pragma unroll
    for (int k = 0; k < kN; k++) v[k] = absent;
    return;
  }
  switch (dtype) {
    case TT_F16: load_stored<F16>(v, p, i); return;
    case TT_BF16: load_stored<BF16>(v, p, i); return;
    case TT_F64: load_stored<double>(v, p, i); return;
    default: load_stored<float>(v, p, i); return;
  }
}
// The same where the dtype is known.
template <class S, class T, int kN>
__device__ __forceinline__ void load_known(T (&v)[kN], const char* p, int64_t i, T absent) {
  if (p) {
    load_stored<S>(v, p, i);
    return;
  }
#pragma unroll
  for (int k = 0; k < kN; k++) v[k] = absent;
}

// ---- geometry ----

struct RowGeometry {
  int64_t outer, dim, inner;
  int64_t units;  // rows, or tiles of blockDim.x columns
  int64_t tiles;  // of one outer index
  bool columns, packs, warps;
  bool held;     // at most kHeldPacks packs for each thread
  int32_t kept;  // rows in shared memory: bytes of one, or 0
};

// A row as one thread of its team sees it.
struct Row {
  const RowGeometry& g;
  int64_t index;  // o * inner + i
  int64_t at;     // its first element
  int64_t dim;    // 0 outside
  bool inside;    // else there is no such row, but its threads take part in `combined`
  int part, parts;
  bool columns;  // g.columns, which the compiler knows where it is inlined

  __device__ __forceinline__ bool leads() const { return part == 0 && inside; }
  __device__ __forceinline__ bool packs() const { return !columns && g.packs; }
  // Where the row is kept in shared memory, or NULL.
  template <class S> __device__ __forceinline__ S* kept(char* shared) const {
    return g.kept ? reinterpret_cast<S*>(shared + int64_t(threadIdx.y) * g.kept) : nullptr;
  }
  // The combination of the values of all threads of the team, in a fixed order. shared:
  // kRowShared of them.
  template <class P, class Combine>
  __device__ __forceinline__ P combined(P value, P* shared, const Combine& combine) const {
    if (columns) {
      const int thread = int(threadIdx.y * blockDim.x + threadIdx.x);
      shared[thread] = value;
      __syncthreads();
      for (int half = parts / 2; half > 0; half /= 2) {
        if (part < half) {
          value = combine(value, shared[thread + half * int(blockDim.x)]);
          shared[thread] = value;
        }
        __syncthreads();
      }
      value = shared[threadIdx.x];
      __syncthreads();
      return value;
    }
    value = combine_warp(value, combine);
    if (!g.warps) {
      const int warp = int(threadIdx.x) / kWarp;
      const int lane = int(threadIdx.x) % kWarp;
      const int warps = int(blockDim.x) / kWarp;
      if (lane == 0) shared[warp] = value;
      __syncthreads();
      value = shared[lane < warps ? lane : 0];
      for (int half = warps / 2; half > 0; half /= 2) {
        const P other = shuffle_down(value, unsigned(half));
        if (lane < half) value = combine(value, other);
      }
      __syncthreads();
    }
    return shuffle_from(value, 0);
  }
};

// Calls f(row) for each row of this thread; all threads of a team, in a column tile all threads of
// the block, call it equally often.
template <class F> __device__ __forceinline__ void for_columns(const RowGeometry& g, const F& f) {
  for (int64_t u = blockIdx.x; u < g.units; u += gridDim.x) {
    const int64_t o = u / g.tiles;
    const int64_t i = (u - o * g.tiles) * blockDim.x + threadIdx.x;
    const bool inside = i < g.inner;
    f(Row{g, o * g.inner + i, o * g.dim * g.inner + i, inside ? g.dim : 0, inside, int(threadIdx.y),
          int(blockDim.y), true});
  }
}
// Calls f(row) for the rows of a geometry without columns.
template <class F> __device__ __forceinline__ void for_lines(const RowGeometry& g, const F& f) {
  const int64_t step = int64_t(gridDim.x) * blockDim.y;
  for (int64_t u = int64_t(blockIdx.x) * blockDim.y + threadIdx.y; u < g.units; u += step)
    f(Row{g, u, u * g.dim, g.dim, true, int(threadIdx.x), int(blockDim.x), false});
}
template <class F> __device__ __forceinline__ void for_rows(const RowGeometry& g, const F& f) {
  if (g.columns) for_columns(g, f);
  else for_lines(g, f);
}

// ---- elements ----

template <class S, int kIn, int kN> struct Loaded { Pack<S, kN> pack[kIn]; };

// Elements [i, i + kN) of the rows at in.
template <class S, int kN, int kIn>
__device__ __forceinline__ Loaded<S, kIn, kN> load_packs(const S* const (&in)[kIn], int64_t i) {
  Loaded<S, kIn, kN> all;
#pragma unroll
  for (int k = 0; k < kIn; k++) {
    if constexpr (kN > 1) all.pack[k] = *reinterpret_cast<const Pack<S, kN>*>(in[k] + i);
    else all.pack[k].v[0] = in[k][i];
  }
  return all;
}
template <class S, int kN, int kIn>
__device__ __forceinline__ void to_numbers(Compute<S> (&x)[kIn][kN],
                                           const Loaded<S, kIn, kN>& loaded) {
#pragma unroll
  for (int k = 0; k < kIn; k++) {
#pragma unroll
    for (int j = 0; j < kN; j++) x[k][j] = number_of(loaded.pack[k].v[j]);
  }
}

// The rows that a pass reads: `kIn` arrays of one geometry. element i is at first[i * stride].
template <class S, int kIn> struct Rows {
  const S* first[kIn];
  int64_t stride;
  S* keep[kIn];  // shared memory that receives the rows, or NULL
};

// Calls f(i, x) for the elements of this thread, x[k][j] being element i + j of array k.
template <class S, int kIn, class F>
__device__ __forceinline__ void read_row(const Row& r, const Rows<S, kIn>& in, const F& f) {
  using T = Compute<S>;
  constexpr int kN = kPackOf<S>;
  constexpr int kUnroll = kIn == 1 ? 4 : 2;
  if (r.packs()) {
    const auto take = [&](int64_t i, const Loaded<S, kIn, kN>& loaded) {
#pragma unroll
      for (int k = 0; k < kIn; k++)
        if (in.keep[k]) *reinterpret_cast<Pack<S, kN>*>(in.keep[k] + i) = loaded.pack[k];
      T x[kIn][kN];
      to_numbers<S, kN, kIn>(x, loaded);
      f(i, x);
    };
    const int64_t n = r.dim / kN;
    int64_t i = r.part;
    for (; i + (kUnroll - 1) * r.parts < n; i += kUnroll * r.parts) {
      Loaded<S, kIn, kN> loaded[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; u++)
        loaded[u] = load_packs<S, kN, kIn>(in.first, (i + u * r.parts) * kN);
#pragma unroll
      for (int u = 0; u < kUnroll; u++) take((i + u * r.parts) * kN, loaded[u]);
    }
    for (; i < n; i += r.parts) take(i * kN, load_packs<S, kN, kIn>(in.first, i * kN));
    return;
  }
  for (int64_t i = r.part; i < r.dim; i += r.parts) {
    const Loaded<S, kIn, 1> loaded = load_packs<S, 1, kIn>(in.first, i * in.stride);
#pragma unroll
    for (int k = 0; k < kIn; k++)
      if (in.keep[k]) in.keep[k][i] = loaded.pack[k].v[0];
    T x[kIn][1];
    to_numbers<S, 1, kIn>(x, loaded);
    f(i, x);
  }
}

// The same with a result: f(i, x, y) sets y[j], which becomes element i + j of the row at out, of
// stride out_stride.
template <class S, int kIn, class F>
__device__ __forceinline__ void write_row(const Row& r, const Rows<S, kIn>& in, S* out,
                                          int64_t out_stride, const F& f) {
  using T = Compute<S>;
  read_row<S, kIn>(r, in, [&]<int kN>(int64_t i, const T(&x)[kIn][kN]) {
    T y[kN];
    f(i, x, y);
    Pack<S, kN> pack;
#pragma unroll
    for (int j = 0; j < kN; j++) pack.v[j] = stored_as<S>(y[j]);
    if constexpr (kN > 1) *reinterpret_cast<Pack<S, kN>*>(out + i) = pack;
    else out[i * out_stride] = pack.v[0];
  });
}

// The packs of this thread of `kIn` rows in registers; of geometries that are held.
template <class S, int kIn> struct HeldRow {
  static constexpr int kN = kPackOf<S>;
  using T = Compute<S>;
  Loaded<S, kIn, kN> all[kHeldPacks];
  int64_t first, step, n;  // elements

  __device__ __forceinline__ HeldRow(const Row& r, const S* const (&in)[kIn])
      : first(int64_t(r.part) * kN), step(int64_t(r.parts) * kN), n(r.dim) {
#pragma unroll
    for (int u = 0; u < kHeldPacks; u++)
      if (first + u * step < n) all[u] = load_packs<S, kN, kIn>(in, first + u * step);
  }
  // Calls f(u, i, x): pack u has the elements i to i + kN.
  template <class F> __device__ __forceinline__ void each(const F& f) const {
#pragma unroll
    for (int u = 0; u < kHeldPacks; u++) {
      if (first + u * step >= n) break;
      T x[kIn][kN];
      to_numbers<S, kN, kIn>(x, all[u]);
      f(u, first + u * step, x);
    }
  }
  // The same with a result: f(u, i, x, y) sets y[j], which becomes element i + j of the row at out.
  template <class F> __device__ __forceinline__ void write(S* out, const F& f) const {
    each([&](int u, int64_t i, const T(&x)[kIn][kN]) {
      T y[kN];
      f(u, i, x, y);
      Pack<S, kN> pack;
#pragma unroll
      for (int j = 0; j < kN; j++) pack.v[j] = stored_as<S>(y[j]);
      *reinterpret_cast<Pack<S, kN>*>(out + i) = pack;
    });
  }
};

// ---- on the host ----

inline bool is_aligned(const void* p) { return (reinterpret_cast<uintptr_t>(p) & 15) == 0; }

struct RowLaunch {
  RowGeometry g;
  dim3 grid, block;
  size_t shared_bytes;
};

// Rows of elements of `item` bytes; aligned: all arrays begin at multiples of 16 bytes; kept: the
// number of arrays whose rows are kept in shared memory, where they fit there but not in registers.
inline RowLaunch row_launch(int64_t outer, int64_t dim, int64_t inner, int64_t item, bool aligned,
                            int kept) {
  RowLaunch l = {};
  RowGeometry& g = l.g;
  g.outer = outer;
  g.dim = dim;
  g.inner = inner;
  g.columns = inner > 1;
  if (g.columns) {
    int64_t x = 1;
    while (x < inner && x < kWarp) x *= 2;
    int64_t y = 1;
    while (y * x < kRowShared && y * 4 < dim) y *= 2;
    l.block = dim3(unsigned(x), unsigned(y));
    g.tiles = ceil_div(inner, x);
    g.units = outer * g.tiles;
    l.grid = unsigned(min(g.units, kMaxRowGrid));
    return l;
  }
  g.units = outer;
  g.packs = aligned && dim * item % 16 == 0;
  g.warps = dim <= kWarpRow;
  int64_t rows = 1;
  if (g.warps) {
    rows = min<int64_t>(outer, kRowShared / kWarp);
    l.block = dim3(kWarp, unsigned(rows));
  } else {
    const unsigned most = dim <= 4096 ? 256u : unsigned(kRowThreads);
    l.block = dim3(dim <= 2048 ? 128u : most);
  }
  l.grid = unsigned(min(ceil_div(outer, rows), kMaxRowGrid));
  g.held = g.packs && dim * item <= int64_t(l.block.x) * kHeldPacks * 16;
  if (g.held) return l;
  const int64_t bytes = round_up(dim * item, 16) * kept;
  if (bytes * rows > int64_t(kMaxKept)) return l;
  g.kept = int32_t(bytes);
  l.shared_bytes = size_t(bytes * rows);
  return l;
}

}  // namespace
}  // namespace TT_NS
