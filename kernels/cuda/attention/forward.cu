// attention: a block computes kSide queries of a head, by blocks of keys with a running maximum and
// sum (online softmax, Milakov and Gimelshein, arXiv:1805.02867), and kColumns columns of v.
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/flash.h"
#include "kernels/cuda/attention/sdpa.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

// Rows of `row`: the maximum so far, the sum of exp(score - shift) so far, exp(previous maximum -
// shift). shift: the maximum, or 0 if no key takes part.
enum { kMaximum, kSum, kRescale };

template <class S> __global__ void __launch_bounds__(kThreads)
    attention_forward(const __grid_constant__ AttentionPlan p, int64_t blocks) {
  using T = typename SumOf<S>::type;
  TT_SHARED_DYNAMIC(T, memory);
  const AttentionShared<T> shared(memory, false);
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
  const int lane = int(threadIdx.x) % kWarp;
  const int warp = int(threadIdx.x) / kWarp;
  T acc[kRowsEach][kColumnsEach];
  clear(acc);
  if (threadIdx.x < kSide) {
    shared.row[kMaximum][threadIdx.x] = kMinusInfinity<T>;
    shared.row[kSum][threadIdx.x] = T(0);
  }
  __syncthreads();
  for (b.key = 0; b.key < end; b.key += kSide) {
    T c[4][4];
    dot_rows(shared, q, Rows<S>(p.k, b.batch, key_head, b.key, p.keys, p.width), c);
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int row = int(threadIdx.x) / 16 + 16 * i;
        const int column = int(threadIdx.x) % 16 + 16 * j;
        shared.s[row * kPitch + column] = c[i][j];
      }
    }
    __syncthreads();
    for (int row = warp; row < kSide; row += kThreads / kWarp) {
      T* const s = shared.s + row * kPitch;
      const T low = score_of(p, b, row, lane, s[lane]);
      const T high = score_of(p, b, row, lane + kWarp, s[lane + kWarp]);
      const T before = shared.row[kMaximum][row];
      T maximum = max_warp(high > low || high != high ? high : low);
      if (!(maximum > before) && maximum == maximum) maximum = before;
      const T shift = maximum == kMinusInfinity<T> ? T(0) : maximum;
      const T rescale = math::exp(before - shift);
      const T u = math::exp(low - shift);
      const T v = math::exp(high - shift);
      const T sum = sum_warp(u + v);
      s[lane] = u * keep_factor<T>(p, b, row, lane);
      s[lane + kWarp] = v * keep_factor<T>(p, b, row, lane + kWarp);
      __syncwarp();
      if (lane == 0) {
        shared.row[kMaximum][row] = maximum;
        shared.row[kSum][row] = shared.row[kSum][row] * rescale + sum;
        shared.row[kRescale][row] = rescale;
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kRowsEach; i++) {
      const T rescale = shared.row[kRescale][warp + 8 * i];
#pragma unroll
      for (int j = 0; j < kColumnsEach; j++) acc[i][j] *= rescale;
    }
    const Rows<S> v(p.v, b.batch, key_head, b.key, p.keys, p.value_width);
    add_product<false>(shared, shared.s, v, first, acc);
  }
  each_result(acc, queries, first, p.value_width, [&](int row, int64_t column, T x) {
    const T sum = shared.row[kSum][row];
    char* out = p.out.p + b.batch * p.out.batch + b.head * p.out.head + (b.query + row) * p.out.row;
    reinterpret_cast<S*>(out)[column] = narrowed<S>(sum == T(0) ? T(0) : x * (T(1) / sum));
  });
  if (blockIdx.y == 0 && threadIdx.x < queries) {
    const T sum = shared.row[kSum][threadIdx.x];
    const T lse = shared.row[kMaximum][threadIdx.x] + math::log(sum);
    reinterpret_cast<T*>(p.lse)[head * p.queries + b.query + threadIdx.x] =
        sum == T(0) ? kMinusInfinity<T> : lse;
  }
}

template <class S> int32_t launch_forward(const AttentionPlan& p, void* stream) {
  const int64_t blocks = ceil_div(p.queries, kSide);
  const unsigned columns = unsigned(max<int64_t>(ceil_div(p.value_width, kColumns), 1));
  const dim3 grid(unsigned(p.batch * p.heads * blocks), columns);
  const size_t bytes = AttentionShared<typename SumOf<S>::type>::bytes(false);
  return device::launch(attention_forward<S>, grid, kThreads, bytes, stream, p, blocks);
}

}  // namespace

namespace cuda {

int32_t attention(const void* plan, void* stream, void* workspace) {
  const AttentionPlan& p = *static_cast<const AttentionPlan*>(plan);
  if (p.batch * p.heads * p.queries == 0) return TT_OK;
  const int32_t status = sdpa::run(p, sdpa::kForward, stream, workspace);
  if (status != TT_NOT_IMPLEMENTED) return status;
  if (flash::serves(p)) return flash::forward(p, stream);
  if (simt::serves(p)) return simt::forward(p, stream);
  switch (p.dtype) {
    case TT_F16: return launch_forward<F16>(p, stream);
    case TT_BF16: return launch_forward<BF16>(p, stream);
    case TT_F64: return launch_forward<double>(p, stream);
    default: return launch_forward<float>(p, stream);
  }
}
size_t attention_workspace(const void* plan) {
  return sdpa::workspace_bytes(*static_cast<const AttentionPlan*>(plan), sdpa::kForward);
}

}  // namespace cuda
}  // namespace TT_NS
