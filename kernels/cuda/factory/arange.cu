// fill_arange: out[i] = start + i * step, each computed by itself.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/strided.h"
#include "plan/factory_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) arange(const __grid_constant__ ArangePlan p) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.n) return;
  char* out = p.out + i * item_size(p.dtype);
  if (p.dtype < TT_F16)
    store_element(out, p.dtype,
                  int64_t(uint64_t(p.start_int) + uint64_t(i) * uint64_t(p.step_int)));
  else store_element(out, p.dtype, p.start + double(i) * p.step);
}

}  // namespace

int32_t cuda::fill_arange(const void* plan, void* stream, void*) {
  const ArangePlan& p = *static_cast<const ArangePlan*>(plan);
  if (p.n == 0) return TT_OK;
  return device::launch(arange, blocks_for(p.n, kThreads, 1), kThreads, 0, stream, p);
}

}  // namespace TT_NS
