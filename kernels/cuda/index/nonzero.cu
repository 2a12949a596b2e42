// nonzero_count: the nonzero elements of each chunk, turned into starts, and their total.
// nonzero_write: their positions. A block serves a chunk. As on the CPU, it writes as many rows as
// were counted, zeros if it finds fewer.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/sort/radix.h"
#include "plan/index_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

struct NonzeroArguments {
  const char* x;
  int64_t* starts;
  int64_t* total;
  int64_t* out;
  int64_t n, row_stride, dim_stride;
  int32_t dtype, ndim;
  int64_t size[kMaxPlanDims];
};

__device__ __forceinline__ bool is_hit(const NonzeroArguments& p, int64_t i, int64_t end) {
  return i < end && load_element<bool>(p.x + i * item_size(p.dtype), p.dtype);
}
__device__ __forceinline__ int64_t end_of_chunk(const NonzeroArguments& p) {
  const int64_t end = (int64_t(blockIdx.x) + 1) * kNonzeroChunk;
  return end < p.n ? end : p.n;
}

__global__ void __launch_bounds__(kThreads)
    count_nonzero(const __grid_constant__ NonzeroArguments p) {
  const int64_t end = end_of_chunk(p);
  int64_t count = 0;
  for (int64_t i = int64_t(blockIdx.x) * kNonzeroChunk; i < end; i += kThreads)
    count += __syncthreads_count(is_hit(p, i + threadIdx.x, end));
  if (threadIdx.x == 0) p.starts[blockIdx.x] = count;
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

__global__ void __launch_bounds__(kThreads)
    write_nonzero(const __grid_constant__ NonzeroArguments p) {
  TT_SHARED(int, counts, kWarps);
  const int lane = int(threadIdx.x) % kWarp;
  const int warp = int(threadIdx.x) / kWarp;
  const int64_t end = end_of_chunk(p);
  int64_t row = p.starts[blockIdx.x];
  const int64_t last = blockIdx.x + 1 < gridDim.x ? p.starts[blockIdx.x + 1] : *p.total;
  for (int64_t i = int64_t(blockIdx.x) * kNonzeroChunk; i < end; i += kThreads) {
    const bool hit = is_hit(p, i + threadIdx.x, end);
    const uint32_t votes = __ballot_sync(kAllLanes, hit);
    if (lane == 0) counts[warp] = __popc(votes);
    __syncthreads();
    int64_t at = row + __popc(votes & ((1u << lane) - 1));
    for (int w = 0; w < kWarps; w++) {
      if (w < warp) at += counts[w];
      row += counts[w];
    }
    if (hit && at < last) put_position(p, at, i + threadIdx.x);
    __syncthreads();
  }
  for (row += threadIdx.x; row < last; row += kThreads) put_position(p, row, 0);
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
  a.dtype = p.dtype;
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
  if (const int32_t status =
          device::launch(count_nonzero, chunks, kThreads, 0, stream, arguments_of(p)))
    return status;
  return scan_totals(p.starts, int64_t(chunks), p.total, stream);
}
int32_t nonzero_write(const void* plan, void* stream, void*) {
  const NonzeroPlan& p = *static_cast<const NonzeroPlan*>(plan);
  if (p.n == 0) return TT_OK;
  return device::launch(write_nonzero, chunks_of(p), kThreads, 0, stream, arguments_of(p));
}

}  // namespace cuda
}  // namespace TT_NS
