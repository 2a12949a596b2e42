// nonzero_count: the nonzero elements of each chunk, turned into starts, and their total.
// nonzero_write: their positions. A block serves a chunk. As on the CPU, it writes as many rows as
// were counted, zeros if it finds fewer.
#include "kernels/cuda/index/index.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/sort/radix.h"
#include "plan/index_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kOfWarp = int(kNonzeroChunk / kWarps);  // neighbours
constexpr int kRounds = kOfWarp / kWarp;              // in which a warp looks at 32 of them

struct NonzeroArguments {
  const char* x;
  int64_t* starts;
  int64_t* total;
  int64_t* out;
  int64_t n, row_stride, dim_stride;
  uint64_t mask;  // the bits of 8 bytes that make an element differ from 0: all but signs of floats
  int32_t ndim;
  int64_t size[kMaxPlanDims];
};

template <class E>
__device__ __forceinline__ bool is_hit(const NonzeroArguments& p, int64_t i, int64_t end) {
  if (i >= end) return false;
  if constexpr (sizeof(E) == 16) {
    const uint64_t* const words = reinterpret_cast<const uint64_t*>(p.x) + 2 * i;
    return ((words[0] | words[1]) & p.mask) != 0;
  } else {
    return (reinterpret_cast<const E*>(p.x)[i] & E(p.mask)) != 0;
  }
}
__device__ __forceinline__ int64_t end_of_chunk(const NonzeroArguments& p) {
  const int64_t end = (int64_t(blockIdx.x) + 1) * kNonzeroChunk;
  return end < p.n ? end : p.n;
}

template <class E> __global__ void __launch_bounds__(kThreads)
    count_nonzero(const __grid_constant__ NonzeroArguments p) {
  const int64_t end = end_of_chunk(p);
  TT_SHARED(int, counts, kWarps);
  int count = 0;
#pragma unroll 8
  for (int64_t i = int64_t(blockIdx.x) * kNonzeroChunk + threadIdx.x; i < end; i += kThreads)
    count += is_hit<E>(p, i, end);
  count = combine_warp(count, [](int x, int y) { return x + y; });
  if (threadIdx.x % kWarp == 0) counts[threadIdx.x / kWarp] = count;
  __syncthreads();
  if (threadIdx.x != 0) return;
  int64_t sum = 0;
  for (int w = 0; w < kWarps; w++) sum += counts[w];
  p.starts[blockIdx.x] = sum;
}

__device__ __forceinline__ void put_position(const NonzeroArguments& p, int64_t row,
                                             int64_t position) {
  int64_t* const out = p.out + row * p.row_stride;
  for (int d = p.ndim - 1; d > 0; d--) {
    const int64_t rest = quotient(position, p.size[d]);
    out[d * p.dim_stride] = position - rest * p.size[d];
    position = rest;
  }
  *out = position;
}

template <class E> __global__ void __launch_bounds__(kThreads)
    write_nonzero(const __grid_constant__ NonzeroArguments p) {
  TT_SHARED(int, counts, kWarps);
  const int lane = int(threadIdx.x) % kWarp;
  const int warp = int(threadIdx.x) / kWarp;
  const int64_t end = end_of_chunk(p);
  const int64_t begin = int64_t(blockIdx.x) * kNonzeroChunk + warp * kOfWarp;
  // Lane l keeps the votes of rounds l and l + 32 …
  uint32_t votes[kRounds / kWarp];
  int hits = 0;
#pragma unroll
  for (int k = 0; k < kRounds / kWarp; k++) {
    votes[k] = 0;
#pragma unroll 8
    for (int round = 0; round < kWarp; round++) {
      const int64_t i = begin + (k * kWarp + round) * kWarp + lane;
      const uint32_t v = __ballot_sync(kAllLanes, is_hit<E>(p, i, end));
      if (lane == round) votes[k] = v;
      hits += __popc(v);
    }
  }
  if (lane == 0) counts[warp] = hits;
  __syncthreads();
  int64_t row = p.starts[blockIdx.x];
  const int64_t last = blockIdx.x + 1 < gridDim.x ? p.starts[blockIdx.x + 1] : *p.total;
  int64_t at = row;
  for (int w = 0; w < kWarps; w++) {
    if (w < warp) at += counts[w];
    row += counts[w];
  }
#pragma unroll
  for (int k = 0; k < kRounds / kWarp; k++) {
    for (int round = 0; round < kWarp; round++) {
      const uint32_t v = __shfl_sync(kAllLanes, votes[k], round);
      const int64_t place = at + __popc(v & ((1u << lane) - 1));
      if (v >> lane & 1 && place < last)
        put_position(p, place, begin + (k * kWarp + round) * kWarp + lane);
      at += __popc(v);
    }
  }
  for (row += threadIdx.x; row < last; row += kThreads) put_position(p, row, 0);
}

uint64_t mask_of(int32_t dtype) {
  switch (dtype) {
    case TT_F16:
    case TT_BF16: return 0x7fff;
    case TT_F32: return 0x7fffffff;
    case TT_C64: return 0x7fffffff7fffffffu;
    case TT_F64:
    case TT_C128: return 0x7fffffffffffffffu;
    default: return ~uint64_t(0);
  }
}

NonzeroArguments arguments_of(const NonzeroPlan& p) {
  NonzeroArguments a;
  a.x = p.x;
  a.starts = p.starts;
  a.total = p.total;
  a.out = p.out;
  a.n = p.n;
  a.row_stride = p.row_stride;
  a.dim_stride = p.dim_stride;
  a.mask = mask_of(p.dtype);
  a.ndim = p.ndim;
  for (int32_t d = 0; d < p.ndim; d++) a.size[d] = p.size[d];
  return a;
}
unsigned chunks_of(const NonzeroPlan& p) { return unsigned(ceil_div(p.n, kNonzeroChunk)); }

}  // namespace

namespace cuda {

int32_t nonzero_count(const void* plan, void* stream, void*) {
  const NonzeroPlan& p = *static_cast<const NonzeroPlan*>(plan);
  if (p.n == 0) return TT_OK;
  const unsigned chunks = chunks_of(p);
  const int32_t status = with_size(kItemSize[p.dtype], [&](auto e) {
    return device::launch(count_nonzero<decltype(e)>, chunks, kThreads, 0, stream, arguments_of(p));
  });
  return status == TT_OK ? scan_totals(p.starts, int64_t(chunks), p.total, stream) : status;
}
int32_t nonzero_write(const void* plan, void* stream, void*) {
  const NonzeroPlan& p = *static_cast<const NonzeroPlan*>(plan);
  if (p.n == 0) return TT_OK;
  return with_size(kItemSize[p.dtype], [&](auto e) {
    return device::launch(write_nonzero<decltype(e)>, chunks_of(p), kThreads, 0, stream,
                          arguments_of(p));
  });
}

}  // namespace cuda
}  // namespace TT_NS
