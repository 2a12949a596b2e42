// index_check: the first index out of range. index_offsets: also converts indices to offsets.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/nest.h"
#include "kernels/cuda/rows.h"
#include "plan/index_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kAtOnce = 8;

struct CheckArguments {
  const char* index;
  int64_t size, low, allowed, step;
  int64_t first;  // position of the launch's first index
  int64_t* first_bad;
  int64_t* offsets;  // NULL: none
  int32_t dtype;     // i64, i32, or bool: conditions that hold
  bool add;
  Nest<1> nest;
};

__device__ __forceinline__ void check_index(const CheckArguments& p, int64_t i, int64_t v) {
  const bool inside = uint64_t(v) - uint64_t(p.low) < uint64_t(p.size) - uint64_t(p.low);
  if (!inside && (v != p.allowed || p.allowed == kNoSkip)) {
    atomicMin(reinterpret_cast<long long*>(p.first_bad), (long long)(p.first + i));
    v = 0;
  }
  if (!p.offsets) return;
  const int64_t offset = (v + (v < 0 ? p.size : 0)) * p.step;
  int64_t* const out = p.offsets + p.first + i;
  *out = p.add ? *out + offset : offset;
}

// A block checks kThreads * kAtOnce neighbours; a thread reads its indices before it checks one.
template <class T> __device__ __forceinline__ void check_all(const CheckArguments& p) {
  const int64_t n = p.nest.n;
  const int64_t step = int64_t(gridDim.x) * kThreads * kAtOnce;
  for (int64_t first = int64_t(blockIdx.x) * kThreads * kAtOnce + threadIdx.x; first < n;
       first += step) {
    T v[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; j++) {
      const int64_t i = first + j * kThreads;
      int64_t at[1] = {i * p.nest.stride[0][0]};
      if (p.nest.ndim > 1) p.nest.find(i, at);
      v[j] = i < n ? *reinterpret_cast<const T*>(p.index + at[0]) : T(0);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; j++)
      if (first + j * kThreads < n) check_index(p, first + j * kThreads, v[j]);
  }
}

__global__ void __launch_bounds__(kThreads)
    check_indices(const __grid_constant__ CheckArguments p) {
  if (p.dtype == TT_I64) check_all<int64_t>(p);
  else if (p.dtype == TT_I32) check_all<int32_t>(p);
  else check_all<uint8_t>(p);
}

int32_t run_check(const void* plan, bool offsets, void* stream) {
  const IndexCheckPlan& p = *static_cast<const IndexCheckPlan*>(plan);
  CheckArguments a;
  a.size = p.size;
  a.low = p.low;
  a.allowed = p.allowed;
  a.step = p.step;
  a.first_bad = p.first_bad;
  a.offsets = offsets ? p.offsets : nullptr;
  a.dtype = p.index_dtype;
  a.add = p.add;
  a.nest.clear();
  int32_t d = 0;
  while (d < p.ndim && a.nest.add(p.dim_size[d], {p.stride[d]})) d++;
  int64_t outer = 1;
  for (int32_t e = d; e < p.ndim; e++) outer *= p.dim_size[e];
  if (a.nest.n == 0) return TT_OK;
  for (int64_t i = 0; i < outer; i++) {
    a.index = p.index;
    a.first = i * a.nest.n;
    int64_t rest = i;
    for (int32_t e = d; e < p.ndim; e++) {
      a.index += rest % p.dim_size[e] * p.stride[e];
      rest /= p.dim_size[e];
    }
    const unsigned grid = grid_of(a.nest.n, kThreads * kAtOnce);
    if (const int32_t status = device::launch(check_indices, grid, kThreads, 0, stream, a))
      return status;
  }
  return TT_OK;
}

}  // namespace

namespace cuda {

int32_t index_check(const void* plan, void* stream, void*) {
  return run_check(plan, false, stream);
}
int32_t index_offsets(const void* plan, void* stream, void*) {
  return run_check(plan, true, stream);
}

}  // namespace cuda
}  // namespace TT_NS
