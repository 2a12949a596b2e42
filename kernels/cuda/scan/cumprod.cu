// cumprod along any dimension of a contiguous array, in double (complex numbers: of doubles;
// integers modulo 2^64). Products may leave the range of numbers on the way and come back, so rows
// are multiplied one by one: by one lane of a warp, whose others load and store, or, of columns, by
// a thread each.
#include "kernels/cuda/row.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/strided.h"
#include "plan/scan_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 256;  // elements of a row in shared memory

template <class S> struct Factor {
  using Product = double;
  static __device__ __forceinline__ Product one() { return 1; }
  static __device__ __forceinline__ Product times(Product p, S v) {
    return p * double(number_of(v));
  }
  static __device__ __forceinline__ S rounded(Product p) { return stored_as<S>(Compute<S>(p)); }
};
template <> struct Factor<int64_t> {
  using Product = uint64_t;
  static __device__ __forceinline__ Product one() { return 1; }
  static __device__ __forceinline__ Product times(Product p, int64_t v) { return p * uint64_t(v); }
  static __device__ __forceinline__ int64_t rounded(Product p) { return int64_t(p); }
};
template <class R> struct Factor<Complex<R>> {
  using Product = c128;
  static __device__ __forceinline__ Product one() { return {1, 0}; }
  static __device__ __forceinline__ Product times(Product p, Complex<R> v) {
    return {p.re * double(v.re) - p.im * double(v.im), p.re * double(v.im) + p.im * double(v.re)};
  }
  static __device__ __forceinline__ Complex<R> rounded(Product p) { return {R(p.re), R(p.im)}; }
};

template <class S> __global__ void __launch_bounds__(kWarp)
    multiply_rows(const __grid_constant__ CumprodPlan p) {
  TT_SHARED(S, tile, kTile);
  using F = Factor<S>;
  for (int64_t row = blockIdx.x; row < p.outer; row += gridDim.x) {
    const S* const in = reinterpret_cast<const S*>(p.in) + row * p.dim;
    S* const out = reinterpret_cast<S*>(p.out) + row * p.dim;
    auto product = F::one();
    for (int64_t first = 0; first < p.dim; first += kTile) {
      const int n = int(p.dim - first < kTile ? p.dim - first : kTile);
      for (int i = int(threadIdx.x); i < n; i += kWarp) tile[i] = in[first + i];
      __syncwarp();
      if (threadIdx.x == 0) {
        for (int i = 0; i < n; i++) {
          product = F::times(product, tile[i]);
          tile[i] = F::rounded(product);
        }
      }
      __syncwarp();
      for (int i = int(threadIdx.x); i < n; i += kWarp) out[first + i] = tile[i];
      __syncwarp();
    }
  }
}
template <class S> __global__ void __launch_bounds__(kThreads)
    multiply_columns(const __grid_constant__ CumprodPlan p) {
  using F = Factor<S>;
  const int64_t u = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (u >= p.outer * p.inner) return;
  const int64_t at = u / p.inner * p.dim * p.inner + u % p.inner;
  const S* const in = reinterpret_cast<const S*>(p.in) + at;
  S* const out = reinterpret_cast<S*>(p.out) + at;
  auto product = F::one();
  for (int64_t i = 0; i < p.dim; i++) {
    product = F::times(product, in[i * p.inner]);
    out[i * p.inner] = F::rounded(product);
  }
}

template <class S> int32_t run_products(const CumprodPlan& p, void* stream) {
  if (p.outer * p.dim * p.inner == 0) return TT_OK;
  if (p.inner == 1)
    return device::launch(multiply_rows<S>, unsigned(min(p.outer, kMaxRowGrid)), kWarp, 0, stream,
                          p);
  return device::launch(multiply_columns<S>, blocks_for(p.outer * p.inner, kThreads, 1), kThreads,
                        0, stream, p);
}

}  // namespace

int32_t cuda::cumprod(const void* plan, void* stream, void*) {
  const CumprodPlan& p = *static_cast<const CumprodPlan*>(plan);
  switch (p.dtype) {
    case TT_I64: return run_products<int64_t>(p, stream);
    case TT_C64: return run_products<c64>(p, stream);
    case TT_C128: return run_products<c128>(p, stream);
    default:
      return with_floating(p.dtype, [&](auto s) { return run_products<decltype(s)>(p, stream); });
  }
}

}  // namespace TT_NS
