// matmul: which kernel computes a product. A product of few rows reads b once, in the order of its
// memory (matmul_dots, matmul_columns); others are computed by tiles, of halves by tensor cores
// (mma.h), of other dtypes without (simt.h). If tiles are few, k is split into pieces, whose sums
// matmul_join adds in order. Where cuBLASLt is, it computes the products that it can serve (lt.h).
#include "kernels/cuda/matmul/lt.h"
#include "kernels/cuda/matmul/mma.h"
#include "kernels/cuda/matmul/simt.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kFewRows = 8;
constexpr int kSlices = kThreads / kWarp;

// Few rows, b's columns contiguous: a warp computes one column of c. Grid: [batch][splits][tiles_n
// of kSlices columns].
template <class S, int kRows> __global__ void __launch_bounds__(kThreads)
    matmul_dots(const __grid_constant__ MatmulArguments p) {
  using T = typename SumOf<S>::type;
  const int lane = int(threadIdx.x) % kWarp;
  const MatmulTile tile = tile_of(p, blockIdx.x);
  const int64_t j = tile.j * kSlices + threadIdx.x / kWarp;
  if (j >= p.n) return;
  const MatmulMatrix x = matrix_of(p, tile.matrix);
  const int64_t from = tile.split * p.split_len;
  const int64_t to = least(p.k, from + p.split_len);
  const S* a = reinterpret_cast<const S*>(x.a);
  const S* b = reinterpret_cast<const S*>(x.b) + j * p.b_col;
  T sum[kRows];
#pragma unroll
  for (int i = 0; i < kRows; i++) sum[i] = T{};
#pragma unroll 4
  for (int64_t k = from + lane; k < to; k += kWarp) {
    const T y = widened(b[k * p.b_row]);
#pragma unroll
    for (int i = 0; i < kRows; i++)
      if (i < p.m) sum[i] = multiply_add(widened(a[i * p.a_row + k * p.a_col]), y, sum[i]);
  }
#pragma unroll
  for (int i = 0; i < kRows; i++) {
    if (i >= p.m) break;
    const T all = combine_warp(sum[i], [](T u, T v) { return sum_of(u, v); });
    if (lane == 0) put_sum<S>(p, x, tile.matrix, tile.split, i, j, all);
  }
}

// Few rows, b's rows contiguous: lanes are columns of c, warps share k. Grid: [batch][splits]
// [tiles_n of kWarp columns].
template <class S, int kRows> __global__ void __launch_bounds__(kThreads)
    matmul_columns(const __grid_constant__ MatmulArguments p) {
  using T = typename SumOf<S>::type;
  TT_SHARED(T, shared, kRows * kThreads);
  const int lane = int(threadIdx.x) % kWarp;
  const int slice = int(threadIdx.x) / kWarp;
  const MatmulTile tile = tile_of(p, blockIdx.x);
  const MatmulMatrix x = matrix_of(p, tile.matrix);
  const int64_t j = tile.j * kWarp + lane;
  const int64_t from = tile.split * p.split_len;
  const int64_t to = least(p.k, from + p.split_len);
  const S* a = reinterpret_cast<const S*>(x.a);
  const S* b = reinterpret_cast<const S*>(x.b) + j * p.b_col;
  T sum[kRows];
#pragma unroll
  for (int i = 0; i < kRows; i++) sum[i] = T{};
  if (j < p.n) {
#pragma unroll 4
    for (int64_t k = from + slice; k < to; k += kSlices) {
      const T y = widened(b[k * p.b_row]);
#pragma unroll
      for (int i = 0; i < kRows; i++)
        if (i < p.m) sum[i] = multiply_add(widened(a[i * p.a_row + k * p.a_col]), y, sum[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; i++) shared[i * kThreads + int(threadIdx.x)] = sum[i];
  __syncthreads();
  // Warp i adds the slices of row i.
  if (slice >= p.m || slice >= kRows || j >= p.n) return;
  T all = T{};
  for (int s = 0; s < kSlices; s++) all = sum_of(all, shared[slice * kThreads + s * kWarp + lane]);
  put_sum<S>(p, x, tile.matrix, tile.split, slice, j, all);
}

// A thread adds the pieces of one result.
template <class S> __global__ void __launch_bounds__(kThreads)
    matmul_join(const __grid_constant__ MatmulArguments p) {
  using T = typename SumOf<S>::type;
  const int64_t results = p.batch * p.m * p.n;
  const int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= results) return;
  const T* part = reinterpret_cast<const T*>(p.partials) + at;
  T sum = part[0];
  for (int64_t s = 1; s < p.splits; s++) sum = sum_of(sum, part[s * results]);
  const int64_t row = at / p.n;
  const int64_t matrix = row / p.m;
  store_result<S>(p, matrix_of(p, matrix), row - matrix * p.m, at - row * p.n, sum);
}

// ---- on the host ----

// The kernels of one stored type. Tiles are large where many of them are full.
template <class S> struct Tiles {
  static constexpr int kItem = int(sizeof(typename SumOf<S>::type));
  static constexpr int kLargeSide = kItem == 4 ? 128 : 64;
  static constexpr int kDepth = kItem == 16 ? 8 : 16;
  using Large = SimtShape<S, kLargeSide, kLargeSide, kDepth, kLargeSide / 16, kLargeSide / 16>;
  using Small = SimtShape<S, 32, 32, 16, 4, 4>;
};

enum class MatmulWay { kDots, kColumns, kSmallTiles, kLargeTiles };

struct MatmulShape {
  MatmulWay way;
  int64_t side_m, side_n, splits, split_len;
};

constexpr int64_t kEnoughBlocks = 256;
constexpr int64_t kLeastPiece = 512;

// Depends on the shape and dtype alone.
MatmulShape shape_of(const MatmulPlan& p) {
  const bool half = matmul_is_half(p.dtype);
  const bool real = half || p.dtype == TT_F32 || p.dtype == TT_F64;
  const int64_t large = half || matmul_compute_size(p.dtype) == 4 ? 128 : 64;
  const int64_t small = half ? 64 : 32;
  const auto tiles = [&](int64_t side) {
    return p.batch * ceil_div(p.m, side) * ceil_div(p.n, side);
  };
  MatmulShape s = {MatmulWay::kSmallTiles, small, small, 1, 0};
  if (real && p.m <= kFewRows && p.n * p.k >= 64 * 64) {
    const bool dots = p.b_row == 1 && p.b_col != 1;
    s.way = dots ? MatmulWay::kDots : MatmulWay::kColumns;
    s.side_m = kFewRows;
    s.side_n = dots ? kSlices : kWarp;
  } else if (tiles(large) >= kEnoughBlocks / 2) {
    s.way = MatmulWay::kLargeTiles;
    s.side_m = s.side_n = large;
  }
  const int64_t blocks = p.batch * ceil_div(p.m, s.side_m) * ceil_div(p.n, s.side_n);
  const int64_t most = min(kEnoughBlocks / max<int64_t>(blocks, 1), p.k / kLeastPiece);
  if (most > 1) s.splits = most;
  s.split_len = round_up(ceil_div(max<int64_t>(p.k, 1), s.splits), 32);
  s.splits = max<int64_t>(ceil_div(p.k, s.split_len), 1);
  return s;
}

bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// Whether packs of 8 halves of an operand start at multiples of 16 bytes.
bool has_packs(const MatmulPlan& p, bool is_a) {
  const int64_t row = is_a ? p.a_row : p.b_row;
  const int64_t col = is_a ? p.a_col : p.b_col;
  if (!matmul_is_half(p.dtype) || !aligned(is_a ? p.a : p.b)) return false;
  if ((row != 1 || col % kPack != 0) && (col != 1 || row % kPack != 0)) return false;
  for (int32_t i = 0; i < p.n_batch; i++) {
    const MatmulBatchDim& dim = p.batch_dim[i];
    if ((is_a ? dim.a : dim.b) % 16 != 0) return false;
  }
  return true;
}

MatmulArguments arguments_of(const MatmulPlan& p, const MatmulShape& s, void* workspace) {
  MatmulArguments a;
  a.m = p.m;
  a.n = p.n;
  a.k = p.k;
  a.a = p.a;
  a.b = p.b;
  a.c = p.c;
  a.d = p.d;
  a.partials = static_cast<char*>(workspace);
  a.a_row = p.a_row;
  a.a_col = p.a_col;
  a.b_row = p.b_row;
  a.b_col = p.b_col;
  a.c_row = p.c_row;
  a.c_col = p.c_col;
  a.d_row = p.d_row;
  a.d_col = p.d_col;
  a.tiles_m = ceil_div(p.m, s.side_m);
  a.tiles_n = ceil_div(p.n, s.side_n);
  a.splits = s.splits;
  a.split_len = s.split_len;
  a.alpha = p.alpha;
  a.beta = p.beta;
  a.scaled = p.scaled;
  a.a_packs = has_packs(p, true);
  a.b_packs = has_packs(p, false);
  a.n_batch = min(p.n_batch, int32_t(kMatmulDims));
  a.batch = 1;
  for (int32_t i = 0; i < a.n_batch; i++) {
    a.dim[i] = p.batch_dim[i];
    a.batch *= p.batch_dim[i].size;
  }
  return a;
}

template <class S>
int32_t launch_few(const MatmulArguments& a, MatmulWay way, unsigned grid, void* stream) {
  if constexpr (kIsFloat<typename SumOf<S>::type>) {
    const bool one = a.m == 1;
    auto kernel = one ? matmul_columns<S, 1> : matmul_columns<S, kFewRows>;
    if (way == MatmulWay::kDots) kernel = one ? matmul_dots<S, 1> : matmul_dots<S, kFewRows>;
    return device::launch(kernel, grid, kThreads, 0, stream, a);
  }
  return TT_INTERNAL;
}

template <class S>
int32_t launch_tiles(const MatmulArguments& a, bool large, unsigned grid, void* stream) {
  if constexpr (kIsHalf<S>) {
    using Large = MmaShape<S, 128, 128, 64, 32>;
    using Small = MmaShape<S, 64, 64, 32, 32>;
    if (large) return device::launch(matmul_mma<Large>, grid, Large::kThreads, 0, stream, a);
    return device::launch(matmul_mma<Small>, grid, Small::kThreads, 0, stream, a);
  } else {
    using Large = typename Tiles<S>::Large;
    using Small = typename Tiles<S>::Small;
    if (large) return device::launch(matmul_simt<Large>, grid, Large::kThreads, 0, stream, a);
    return device::launch(matmul_simt<Small>, grid, Small::kThreads, 0, stream, a);
  }
}

template <class S>
int32_t launch_matmul(const MatmulArguments& a, const MatmulShape& s, void* stream) {
  const unsigned grid = unsigned(a.batch * a.splits * a.tiles_m * a.tiles_n);
  const bool few = s.way == MatmulWay::kDots || s.way == MatmulWay::kColumns;
  const int32_t status = few ? launch_few<S>(a, s.way, grid, stream)
                             : launch_tiles<S>(a, s.way == MatmulWay::kLargeTiles, grid, stream);
  if (status != TT_OK || a.splits == 1) return status;
  const unsigned blocks = unsigned(ceil_div(a.batch * a.m * a.n, kThreads));
  return device::launch(matmul_join<S>, blocks, kThreads, 0, stream, a);
}

int32_t launch_dtype(int32_t dtype, const MatmulArguments& a, const MatmulShape& s, void* stream) {
  switch (dtype) {
    case TT_F16: return launch_matmul<F16>(a, s, stream);
    case TT_BF16: return launch_matmul<BF16>(a, s, stream);
    case TT_F32: return launch_matmul<float>(a, s, stream);
    case TT_F64: return launch_matmul<double>(a, s, stream);
    case TT_C64: return launch_matmul<c64>(a, s, stream);
    case TT_C128: return launch_matmul<c128>(a, s, stream);
    case TT_I64: return launch_matmul<int64_t>(a, s, stream);
    default: return launch_matmul<int32_t>(a, s, stream);
  }
}

}  // namespace

namespace cuda {

int32_t matmul(const void* plan, void* stream, void* workspace) {
  const MatmulPlan& p = *static_cast<const MatmulPlan*>(plan);
  if (p.batch == 0 || p.m == 0 || p.n == 0) return TT_OK;
  if (cublas_lt::serves(p) && cublas_lt::run(p, stream, workspace) == TT_OK) return TT_OK;
  const MatmulShape s = shape_of(p);
  MatmulArguments a = arguments_of(p, s, workspace);
  // The dimensions that one launch does not cover.
  for (int64_t outer = 0; outer < p.batch / a.batch; outer++) {
    a.a = p.a;
    a.b = p.b;
    a.c = p.c;
    a.d = p.d;
    int64_t rest = outer;
    for (int32_t i = a.n_batch; i < p.n_batch; i++) {
      const MatmulBatchDim& dim = p.batch_dim[i];
      const int64_t at = rest % dim.size;
      rest /= dim.size;
      a.a += at * dim.a;
      a.b += at * dim.b;
      a.c += at * dim.c;
      if (a.d) a.d += at * dim.d;
    }
    if (const int32_t status = launch_dtype(p.dtype, a, s, stream)) return status;
  }
  return TT_OK;
}
size_t matmul_workspace(const void* plan) {
  const MatmulPlan& p = *static_cast<const MatmulPlan*>(plan);
  const int64_t splits = shape_of(p).splits;
  const int64_t sums = splits * p.batch * p.m * p.n * matmul_compute_size(p.dtype);
  const int64_t own = splits == 1 ? 0 : sums;
  return size_t(cublas_lt::serves(p) ? max(own, cublas_lt::kWorkspaceBytes) : own);
}

}  // namespace cuda
}  // namespace TT_NS
