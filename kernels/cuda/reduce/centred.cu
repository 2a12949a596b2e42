// reduce_sum of squared distances from the mean: variances and means, their roots. In one pass, in
// float64: distances are those from the first element of the sequence. Its own distance from the
// mean is part of the variance, so that what cancels is at most n times the result.
#include "kernels/cuda/reduce/reduce.h"
#include "kernels/functors/math.h"

namespace TT_NS {
namespace {

struct alignas(16) Distances {
  double sum, squares;
};

struct Centred {
  using T = double;
  using Reads = AnyFloat;
  using P = Distances;
  using Joined = Distances;
  using Base = double;
  // Numbers are seen from 0 where the first one is not finite: the mean may be infinite.
  static __device__ __forceinline__ double base_of(double first) {
    return first - first == 0 ? first : 0;
  }
  static __device__ __forceinline__ P identity(const ReduceArguments&) { return {0, 0}; }
  template <int kN> static __device__ __forceinline__ P group(const ReduceArguments&, double base,
                                                              const double (&v)[kN], int, int) {
    const double first = v[0] - base;
    P all = {first, first * first};
#pragma unroll
    for (int i = 1; i < kN; i++) {
      const double d = v[i] - base;
      all.sum += d;
      all.squares = ::fma(d, d, all.squares);
    }
    return all;
  }
  static __device__ __forceinline__ P joined(const ReduceArguments&, const P& x, int64_t) {
    return x;
  }
  static __device__ __forceinline__ P combine(const ReduceArguments&, const P& x, const P& y) {
    return {x.sum + y.sum, x.squares + y.squares};
  }
  static __device__ __forceinline__ void finish(const ReduceArguments& a, double base,
                                                const P& value, char* out, char* index) {
    const double mean = value.sum / double(a.length);
    const double spread = value.squares - value.sum * mean;
    const double variance = (spread < 0 ? 0 : spread) / a.divisor;
    store_element(out, a.out_dtype, a.root ? math::sqrt(variance) : variance);
    if (index) store_element(index, a.out_dtype, base + mean);
  }
};

}  // namespace

namespace cuda {

int32_t reduce_centred(const ReducePlan& plan, void* stream, void* workspace) {
  return launch_reduce<Centred>(plan, ReduceKind::kSum, stream, workspace);
}

}  // namespace cuda
}  // namespace TT_NS
