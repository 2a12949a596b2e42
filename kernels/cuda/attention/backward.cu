// attention_backward. The probabilities p are recomputed from q, k and the log-sum-exp. With the
// gradient g, the dropout factors f (1 without dropout) and delta = sum(g * out):
//   z = p f,  dv = z^T g,  dz = g v^T,  ds = p (dz f - delta),  dq = ds k scale,  dk = ds^T q scale
// Blocks of queries compute dq, then blocks of keys dk and dv: the scores are computed twice, and
// each sum has one order.
//
// Halves are multiplied by tensor cores: q k^T and g v^T as they are; z and ds, which are sums, are
// rounded to halves first, as the weights are forward. A warp has 16 rows of a product and half of
// its columns; thread (group, pair) rows group and group + 8 of them, and columns 2 pair and
// 2 pair + 1 of each tile of 8.
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/flash.h"
#include "kernels/cuda/attention/sdpa.h"
#include "kernels/cuda/matmul/mma.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

enum { kShift, kDelta };  // rows of `row`

// delta of each query, a warp for each.
template <class S> __global__ void __launch_bounds__(kThreads)
    attention_delta(const __grid_constant__ AttentionPlan p, typename SumOf<S>::type* delta) {
  using T = typename SumOf<S>::type;
  const int lane = int(threadIdx.x) % kWarp;
  const int64_t step = int64_t(gridDim.x) * (kThreads / kWarp);
  const int64_t n = p.batch * p.heads * p.queries;
  for (int64_t i = int64_t(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp; i < n;
       i += step) {
    const int64_t head = quotient(i, p.queries);
    const int64_t batch = quotient(head, p.heads);
    const int64_t query = i - head * p.queries;
    const int64_t end = query + 1;
    const Rows<S> g(p.grad, batch, head - batch * p.heads, query, end, p.value_width);
    const Rows<S> o(p.out, batch, head - batch * p.heads, query, end, p.value_width);
    T sum = T(0);
    for (int64_t d = lane; d < p.value_width; d += kWarp)
      sum = multiply_add(g.at(0, d), o.at(0, d), sum);
    sum = sum_warp(sum);
    if (lane == 0) delta[i] = sum;
  }
}

// ---- tensor cores ----

struct MmaPlace {
  int row;     // of the block: the thread's first one; the other is row + 8
  int group;   // of the lane
  int pair;    // its first column of a tile
  int column;  // half of the columns that the warp has: 0 or 1
};
__device__ __forceinline__ MmaPlace mma_place() {
  const int lane = int(threadIdx.x) % kWarp;
  const int warp = int(threadIdx.x) / kWarp;
  return {warp % (kSide / 16) * 16 + lane / 4, lane / 4, lane % 4 * 2, warp / (kSide / 16)};
}

template <class S> __device__ __forceinline__ uint32_t two_halves(float low, float high) {
  return uint32_t(narrowed<S>(low).bits) | uint32_t(narrowed<S>(high).bits) << 16;
}

// c[i][j] = row i of a · row j of b.
template <class S> __device__ __forceinline__ void dot_halves(const AttentionShared<float>& shared,
                                                              const Rows<S>& a, const Rows<S>& b,
                                                              float* c) {
  constexpr int kTiles = kSide / 2 / 8;
  constexpr int kHalfPitch = kDepth + kPack;
  static_assert(kHalfPitch * sizeof(S) <= kDepthPitch * sizeof(float));
  S* const x = reinterpret_cast<S*>(shared.x);
  S* const y = reinterpret_cast<S*>(shared.y);
  const auto words = [](const S* p) { return word_at(reinterpret_cast<const uint16_t*>(p)); };
  const MmaPlace at = mma_place();
  float sum[kTiles][4] = {};
  for (int64_t from = 0; from < a.width; from += kDepth) {
#pragma unroll
    for (int e = 0; e < kSide * kDepth / kThreads; e++) {
      const int item = e * kThreads + int(threadIdx.x);
      const int i = item / kDepth;
      const int d = item % kDepth;
      x[i * kHalfPitch + d] = a.stored(i, from + d);
      y[i * kHalfPitch + d] = b.stored(i, from + d);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      uint32_t u[4];
#pragma unroll
      for (int r = 0; r < 4; r++)
        u[r] = words(x + (at.row + 8 * (r & 1)) * kHalfPitch + k + at.pair + 8 * (r >> 1));
#pragma unroll
      for (int j = 0; j < kTiles; j++) {
        const S* const row = y + (at.column * kSide / 2 + j * 8 + at.group) * kHalfPitch;
        const uint32_t v[2] = {words(row + k + at.pair), words(row + k + at.pair + 8)};
        mma<S>(sum[j], u, v);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < kTiles; j++) {
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const int row = at.row + 8 * (r >> 1);
      c[row * kPitch + at.column * kSide / 2 + j * 8 + at.pair + (r & 1)] = sum[j][r];
    }
  }
}

// acc += w r, as add_product: tile j of acc has the columns first + 64 (half of the warp) + 8 j.
template <bool kTurned, class S>
__device__ __forceinline__ void add_halves(const AttentionShared<float>& shared, const float* w,
                                           const Rows<S>& r, int64_t first,
                                           float (&acc)[kRowsEach][kColumnsEach]) {
  constexpr int kHalfPitch = kKeysAtOnce + kPack;
  static_assert(kRowsEach == kColumns / 2 / 8 && kColumnsEach == 4 && kKeysAtOnce == 16);
  static_assert(kColumns * kHalfPitch * sizeof(S) <= kSide * kDepthPitch * sizeof(float));
  S* const x = reinterpret_cast<S*>(shared.x);  // [column][key]
  const auto words = [](const S* p) { return word_at(reinterpret_cast<const uint16_t*>(p)); };
  const MmaPlace at = mma_place();
  for (int k0 = 0; k0 < r.n; k0 += kKeysAtOnce) {
#pragma unroll
    for (int e = 0; e < kKeysAtOnce * kColumns / kThreads; e++) {
      const int item = e * kThreads + int(threadIdx.x);
      const int key = item / kColumns;
      const int column = item % kColumns;
      x[column * kHalfPitch + key] = r.stored(k0 + key, first + column);
    }
    __syncthreads();
    uint32_t u[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int row = at.row + 8 * (e & 1);
      const int k = k0 + at.pair + 8 * (e >> 1);
      const float low = kTurned ? w[k * kPitch + row] : w[row * kPitch + k];
      const float high = kTurned ? w[(k + 1) * kPitch + row] : w[row * kPitch + k + 1];
      u[e] = two_halves<S>(low, high);
    }
#pragma unroll
    for (int j = 0; j < kRowsEach; j++) {
      const S* const row = x + (at.column * kColumns / 2 + j * 8 + at.group) * kHalfPitch;
      const uint32_t v[2] = {words(row + at.pair), words(row + at.pair + 8)};
      mma<S>(acc[j], u, v);
    }
    __syncthreads();
  }
}

// ---- any numbers ----

template <bool kTurned, class S, class T>
__device__ __forceinline__ void add(const AttentionShared<T>& shared, const T* w, const Rows<S>& r,
                                    int64_t first, T (&acc)[kRowsEach][kColumnsEach]) {
  if constexpr (kIsHalf<S>) add_halves<kTurned>(shared, w, r, first, acc);
  else add_product<kTurned>(shared, w, r, first, acc);
}
// Calls each_result for the sums that `add` has made.
template <class S, class T, class F>
__device__ __forceinline__ void each_sum(const T (&acc)[kRowsEach][kColumnsEach], int64_t rows,
                                         int64_t first, int64_t width, const F& f) {
  if constexpr (!kIsHalf<S>) return each_result(acc, rows, first, width, f);
  const MmaPlace at = mma_place();
#pragma unroll
  for (int j = 0; j < kRowsEach; j++) {
#pragma unroll
    for (int r = 0; r < kColumnsEach; r++) {
      const int row = at.row + 8 * (r >> 1);
      const int64_t column = first + at.column * kColumns / 2 + j * 8 + at.pair + (r & 1);
      if (row < rows && column < width) f(row, column, acc[j][r]);
    }
  }
}

// Sets shared.s to the products of queries and keys, shared.d to those of g and v.
template <class S, class T>
__device__ __forceinline__ void both_products(const AttentionShared<T>& shared, const Rows<S>& q,
                                              const Rows<S>& k, const Rows<S>& g,
                                              const Rows<S>& v) {
  if constexpr (kIsHalf<S>) {
    dot_halves(shared, q, k, shared.s);
    dot_halves(shared, g, v, shared.d);
  } else {
    T score[4][4], dz[4][4];
    dot_rows(shared, q, k, score);
    dot_rows(shared, g, v, dz);
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int at = (int(threadIdx.x) / 16 + 16 * i) * kPitch + int(threadIdx.x) % 16 + 16 * j;
        shared.s[at] = score[i][j];
        shared.d[at] = dz[i][j];
      }
    }
  }
}

// Sets shared.s to z and shared.d to ds of the block. If the block has all keys, the probabilities
// are divided by their sum, which the rounding of a large log-sum-exp moves away from 1, and delta
// is the sum of p * dz, whose rounding errors cancel.
template <class S, class T>
__device__ __forceinline__ void score_gradients(const AttentionPlan& p, const AttentionBlock& b,
                                                const AttentionShared<T>& shared, const T* delta,
                                                const Rows<S>& q, const Rows<S>& k,
                                                const Rows<S>& g, const Rows<S>& v) {
  const int lane = int(threadIdx.x) % kWarp;
  const int64_t first = (b.batch * p.heads + b.head) * p.queries + b.query;
  if (threadIdx.x < kSide) {
    const bool present = b.query + int(threadIdx.x) < p.queries;
    T shift = kHighest<T>;
    if (present) shift = reinterpret_cast<const T*>(p.lse)[first + threadIdx.x];
    // A query without keys: the shift is infinite, so that all probabilities are 0.
    shared.row[kShift][threadIdx.x] = shift == kMinusInfinity<T> ? kHighest<T> : shift;
    shared.row[kDelta][threadIdx.x] = present ? delta[first + threadIdx.x] : T(0);
  }
  both_products(shared, q, k, g, v);
  __syncthreads();
#pragma unroll 1
  for (int e = 0; e < kSide * kSide / kThreads; e++) {
    const int item = e * kThreads + int(threadIdx.x);
    const int row = item / kSide;
    T& s = shared.s[row * kPitch + item % kSide];
    s = math::exp(score_of(p, b, row, item % kSide, s) - shared.row[kShift][row]);
  }
  __syncthreads();
  const bool whole = p.keys <= kSide;
  for (int row = int(threadIdx.x) / kWarp; row < kSide; row += kThreads / kWarp) {
    T* const s = shared.s + row * kPitch;
    T* const d = shared.d + row * kPitch;
    T probability[2], gradient[2], factor[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int column = lane + h * kWarp;
      factor[h] = keep_factor<T>(p, b, row, column);
      probability[h] = s[column];
      gradient[h] = d[column] * factor[h];
    }
    T its_delta = shared.row[kDelta][row];
    if (whole) {
      const T sum = sum_warp(probability[0] + probability[1]);
      const T share = sum > T(0) ? T(1) / sum : T(0);
      probability[0] *= share;
      probability[1] *= share;
      its_delta = sum_warp(probability[0] * gradient[0] + probability[1] * gradient[1]);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int column = lane + h * kWarp;
      d[column] = probability[h] * (gradient[h] - its_delta);
      s[column] = probability[h] * factor[h];
    }
  }
  __syncthreads();
}

template <class S> __global__ void __launch_bounds__(kThreads)
    attention_queries(const __grid_constant__ AttentionPlan p, const typename SumOf<S>::type* delta,
                      int64_t blocks) {
  using T = typename SumOf<S>::type;
  TT_SHARED_DYNAMIC(T, memory);
  const AttentionShared<T> shared(memory, true);
  const int64_t head = quotient(blockIdx.x, blocks);
  AttentionBlock b;
  b.batch = quotient(head, p.heads);
  b.head = head - b.batch * p.heads;
  b.query = (blockIdx.x - head * blocks) * kSide;
  const int64_t first = int64_t(blockIdx.y) * kColumns;
  const int64_t key_head = quotient(b.head, quotient(p.heads, p.key_heads));
  const int64_t queries = least(kSide, p.queries - b.query);
  const int64_t end = p.causal ? least(p.keys, b.query + queries) : p.keys;
  const Rows<S> q(p.q, b.batch, b.head, b.query, p.queries, p.width);
  const Rows<S> g(p.grad, b.batch, b.head, b.query, p.queries, p.value_width);
  T acc[kRowsEach][kColumnsEach];
  clear(acc);
  for (b.key = 0; b.key < end; b.key += kSide) {
    const Rows<S> k(p.k, b.batch, key_head, b.key, p.keys, p.width);
    const Rows<S> v(p.v, b.batch, key_head, b.key, p.keys, p.value_width);
    score_gradients(p, b, shared, delta, q, k, g, v);
    add<false>(shared, shared.d, k, first, acc);
  }
  S* const dq = reinterpret_cast<S*>(p.dq) + (head * p.queries + b.query) * p.width;
  each_sum<S>(acc, queries, first, p.width, [&](int row, int64_t column, T x) {
    dq[row * p.width + column] = narrowed<S>(x * T(p.scale));
  });
}

template <class S> __global__ void __launch_bounds__(kThreads)
    attention_keys(const __grid_constant__ AttentionPlan p, const typename SumOf<S>::type* delta,
                   int64_t blocks) {
  using T = typename SumOf<S>::type;
  TT_SHARED_DYNAMIC(T, memory);
  const AttentionShared<T> shared(memory, true);
  const int64_t head = quotient(blockIdx.x, blocks);
  AttentionBlock b;
  b.batch = quotient(head, p.key_heads);
  b.key = (blockIdx.x - head * blocks) * kSide;
  const int64_t key_head = head - b.batch * p.key_heads;
  const int64_t group = quotient(p.heads, p.key_heads);
  const int64_t first = int64_t(blockIdx.y) * kColumns;
  const Rows<S> k(p.k, b.batch, key_head, b.key, p.keys, p.width);
  const Rows<S> v(p.v, b.batch, key_head, b.key, p.keys, p.value_width);
  T dk[kRowsEach][kColumnsEach], dv[kRowsEach][kColumnsEach];
  clear(dk);
  clear(dv);
  for (b.head = key_head * group; b.head < (key_head + 1) * group; b.head++)
    for (b.query = p.causal ? b.key : 0; b.query < p.queries; b.query += kSide) {
      const Rows<S> q(p.q, b.batch, b.head, b.query, p.queries, p.width);
      const Rows<S> g(p.grad, b.batch, b.head, b.query, p.queries, p.value_width);
      score_gradients(p, b, shared, delta, q, k, g, v);
      if (first < p.value_width) add<true>(shared, shared.s, g, first, dv);
      if (first < p.width) add<true>(shared, shared.d, q, first, dk);
    }
  const int64_t row = head * p.keys + b.key;
  const int64_t keys = least(kSide, p.keys - b.key);
  each_sum<S>(dk, keys, first, p.width, [&](int i, int64_t column, T x) {
    reinterpret_cast<S*>(p.dk)[(row + i) * p.width + column] = narrowed<S>(x * T(p.scale));
  });
  each_sum<S>(dv, keys, first, p.value_width, [&](int i, int64_t column, T x) {
    reinterpret_cast<S*>(p.dv)[(row + i) * p.value_width + column] = narrowed<S>(x);
  });
}

unsigned columns_of(int64_t width) { return unsigned(max<int64_t>(ceil_div(width, kColumns), 1)); }

template <class S> int32_t launch_backward(const AttentionPlan& p, void* stream, void* workspace) {
  using T = typename SumOf<S>::type;
  T* const delta = static_cast<T*>(workspace);
  const size_t bytes = AttentionShared<T>::bytes(true);
  const int64_t rows = p.batch * p.heads * p.queries;
  if (rows) {
    int32_t status = device::launch(attention_delta<S>, grid_of(rows, kThreads / kWarp), kThreads,
                                    0, stream, p, delta);
    if (status != TT_OK) return status;
    const int64_t blocks = ceil_div(p.queries, kSide);
    const dim3 grid(unsigned(p.batch * p.heads * blocks), columns_of(p.width));
    status = device::launch(attention_queries<S>, grid, kThreads, bytes, stream, p, delta, blocks);
    if (status != TT_OK) return status;
  }
  const int64_t blocks = ceil_div(p.keys, kSide);
  if (p.batch * p.key_heads * blocks == 0) return TT_OK;
  const dim3 grid(unsigned(p.batch * p.key_heads * blocks),
                  columns_of(max(p.width, p.value_width)));
  return device::launch(attention_keys<S>, grid, kThreads, bytes, stream, p, delta, blocks);
}

}  // namespace

namespace cuda {

int32_t attention_backward(const void* plan, void* stream, void* workspace) {
  const AttentionPlan& p = *static_cast<const AttentionPlan*>(plan);
  const int32_t status = sdpa::run(p, sdpa::kBackward, stream, workspace);
  if (status != TT_NOT_IMPLEMENTED) return status;
  if (flash::serves_backward(p)) return flash::backward(p, stream, workspace);
  if (simt::serves_backward(p)) return simt::backward(p, stream, workspace);
  switch (p.dtype) {
    case TT_F16: return launch_backward<F16>(p, stream, workspace);
    case TT_BF16: return launch_backward<BF16>(p, stream, workspace);
    case TT_F64: return launch_backward<double>(p, stream, workspace);
    default: return launch_backward<float>(p, stream, workspace);
  }
}
size_t attention_backward_workspace(const void* plan) {
  const AttentionPlan& p = *static_cast<const AttentionPlan*>(plan);
  const size_t other = sdpa::workspace_bytes(p, sdpa::kBackward);
  if (flash::serves_backward(p)) return max(other, flash::backward_workspace(p));
  if (simt::serves_backward(p)) return max(other, simt::backward_workspace(p));
  return max(other, size_t(p.batch * p.heads * p.queries) * 8);
}

}  // namespace cuda
}  // namespace TT_NS
