// clip_norm and clip_scale: the norm over all gradients, and their scaling by it. clip_unscale:
// their scaling by max_norm; total: 1 if an element was not finite.
// A block writes the sum of its elements to workspace, [units][pieces]; one block joins them.
#include "kernels/cuda/optim/items.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

constexpr int64_t kPieces = kOptimUnit / kItemPiece;

struct ClipArguments {
  double norm_type, max_norm;
  int32_t total_dtype;
  char* total;
  double* partial;
  int64_t n_partial;
};
using ClipItems = ItemList<ClipItem>;

// How sums are combined: the sum, or the largest, nan if there is one.
struct Join {
  bool largest;
  __device__ __forceinline__ double operator()(double x, double y) const {
    if (!largest) return x + y;
    return y > x || y != y ? y : x;
  }
};
// In thread 0.
__device__ __forceinline__ double joined(double value, double* shared, const Join& join) {
  value = combine_warp(value, join);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
  __syncthreads();
  if (threadIdx.x < kWarp) {
    value = shared[threadIdx.x % (kItemThreads / kWarp)];
    for (int half = kItemThreads / kWarp / 2; half > 0; half /= 2) {
      const double other = shuffle_down(value, unsigned(half));
      value = join(value, other);
    }
  }
  return value;
}
__device__ __forceinline__ Join join_of(const ClipArguments& a) {
  return {a.norm_type == __builtin_inf()};
}

// Calls f(x) for the numbers of a piece, in packs of 16 bytes where they are aligned; kWrites: what
// f makes of x is stored.
template <bool kWrites, class S, class F>
__device__ __forceinline__ void each_stored(char* grad, int64_t from, int64_t to, const F& f) {
  const auto step = [&]<int kN>(int64_t i) {
    auto* const at = reinterpret_cast<Pack<S, kN>*>(reinterpret_cast<S*>(grad) + i);
    Pack<S, kN> pack = *at;
#pragma unroll
    for (int j = 0; j < kN; j++) {
      Compute<S> x = number_of(pack.v[j]);
      f(x);
      if constexpr (kWrites) pack.v[j] = stored_as<S>(x);
    }
    if constexpr (kWrites) *at = pack;
  };
  constexpr int kN = kPackOf<S>;
  int64_t rest = from;  // what packs do not hold
  if (reinterpret_cast<uintptr_t>(grad) % 16 == 0) rest += (to - from) / kN * kN;
  for (int64_t i = from + int64_t(threadIdx.x) * kN; i < rest; i += kItemThreads * kN)
    step.template operator()<kN>(i);
  for (int64_t i = rest + threadIdx.x; i < to; i += kItemThreads) step.template operator()<1>(i);
}
template <bool kWrites, class F>
__device__ __forceinline__ void each_number(const ClipItem& item, int64_t from, int64_t to,
                                            const F& f) {
  switch (item.dtype) {
    case TT_F16: return each_stored<kWrites, F16>(item.grad, from, to, f);
    case TT_BF16: return each_stored<kWrites, BF16>(item.grad, from, to, f);
    case TT_F64: return each_stored<kWrites, double>(item.grad, from, to, f);
    default: return each_stored<kWrites, float>(item.grad, from, to, f);
  }
}

__device__ __forceinline__ double power_of(double x, double p) {
  x = math::fabs(x);
  if (p == 2) return x * x;
  return p == 1 || p == __builtin_inf() ? x : math::pow(x, p);
}
__global__ void __launch_bounds__(kItemThreads)
    norm_parts(const __grid_constant__ ClipItems list, const __grid_constant__ ClipArguments a) {
  device::wait_for_previous();
  TT_SHARED(double, shared, kItemThreads / kWarp);
  const Join join = join_of(a);
  for_item(list, [&](const ClipItem& item, int64_t from, int64_t to, int64_t unit) {
    double sum = 0;
    each_number<false>(item, from, to,
                       [&](auto x) { sum = join(sum, power_of(double(x), a.norm_type)); });
    sum = joined(sum, shared, join);
    if (threadIdx.x == 0) a.partial[unit * kPieces + blockIdx.x % kPieces] = sum;
  });
}

// One block.
template <bool kUnscale> __global__ void __launch_bounds__(kItemThreads)
    join_parts(const __grid_constant__ ClipArguments a) {
  device::wait_for_previous();
  TT_SHARED(double, shared, kItemThreads / kWarp);
  const Join join = kUnscale ? Join{true} : join_of(a);
  double all = 0;
  for (int64_t i = threadIdx.x; i < a.n_partial; i += kItemThreads) all = join(all, a.partial[i]);
  all = joined(all, shared, join);
  if (threadIdx.x != 0) return;
  if (!kUnscale && a.norm_type == 2) all = math::sqrt(all);
  else if (!kUnscale && !join.largest && a.norm_type != 1) all = math::pow(all, 1 / a.norm_type);
  store_element(a.total, a.total_dtype, all);
}

__device__ __forceinline__ void scale_part(const ClipItem& item, double factor, int64_t from,
                                           int64_t to) {
  each_number<true>(item, from, to, [&]<class T>(T& x) { x = x * T(factor); });
}
__global__ void __launch_bounds__(kItemThreads)
    scale_parts(const __grid_constant__ ClipItems list, const __grid_constant__ ClipArguments a) {
  device::wait_for_previous();
  const double factor = a.max_norm / (load_element<double>(a.total, a.total_dtype) + 1e-6);
  if (factor >= 1) return;
  for_item(list, [&](const ClipItem& item, int64_t from, int64_t to, int64_t) {
    scale_part(item, factor, from, to);
  });
}
__global__ void __launch_bounds__(kItemThreads)
    unscale_parts(const __grid_constant__ ClipItems list, const __grid_constant__ ClipArguments a) {
  device::wait_for_previous();
  TT_SHARED(double, shared, kItemThreads / kWarp);
  for_item(list, [&](const ClipItem& item, int64_t from, int64_t to, int64_t unit) {
    double found = 0;
    each_number<false>(item, from, to, [&](auto x) {
      if (x - x != 0) found = 1;
    });
    found = joined(found, shared, Join{true});
    if (threadIdx.x == 0) a.partial[unit * kPieces + blockIdx.x % kPieces] = found;
    scale_part(item, a.max_norm, from, to);
  });
}

ClipArguments arguments_of(const ClipPlan& p, void* workspace) {
  return {p.norm_type,          p.max_norm, p.total_dtype, p.total, static_cast<double*>(workspace),
          p.n_partial * kPieces};
}
int32_t over_items(void (*kernel)(ClipItems, ClipArguments), const ClipPlan& p,
                   const ClipArguments& a, void* stream) {
  return launch_items(p.items, p.n_items, [&](const ClipItems& list, unsigned grid) {
    return device::launch_early(kernel, grid, kItemThreads, stream, list, a);
  });
}
size_t parts_bytes(const void* plan) {
  return size_t(static_cast<const ClipPlan*>(plan)->n_partial * kPieces * 8);
}

}  // namespace

namespace cuda {

int32_t clip_norm(const void* plan, void* stream, void* workspace) {
  const ClipPlan& p = *static_cast<const ClipPlan*>(plan);
  const ClipArguments a = arguments_of(p, workspace);
  if (const int32_t status = over_items(norm_parts, p, a, stream)) return status;
  return device::launch_early(join_parts<false>, 1, kItemThreads, stream, a);
}
size_t clip_norm_workspace(const void* plan) { return parts_bytes(plan); }

int32_t clip_scale(const void* plan, void* stream, void*) {
  const ClipPlan& p = *static_cast<const ClipPlan*>(plan);
  return over_items(scale_parts, p, arguments_of(p, nullptr), stream);
}

int32_t clip_unscale(const void* plan, void* stream, void* workspace) {
  const ClipPlan& p = *static_cast<const ClipPlan*>(plan);
  const ClipArguments a = arguments_of(p, workspace);
  if (const int32_t status = over_items(unscale_parts, p, a, stream)) return status;
  return device::launch_early(join_parts<true>, 1, kItemThreads, stream, a);
}
size_t clip_unscale_workspace(const void* plan) { return parts_bytes(plan); }

}  // namespace cuda
}  // namespace TT_NS
