// batch_norm and its backward.
//   x, g, y: (outer, channels, inner)
//   channel_sums, forward   mean, rstd and variance of each channel: out [3][channels]
//   channel_sums, backward  sum of g and sum of g (x - mean) rstd: out [2][channels]
//   channel_affine          y, or dx, from them
// Two sums for each channel and chunk of positions go to workspace [2][n_chunks][channels]: mean
// and squared deviations, or the sums of g and g (x - mean).
#include "kernels/cuda/norm/column_sums.h"
#include "kernels/cuda/rows.h"
#include "plan/norm_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

struct ChannelArguments {
  ColumnShape s;
  ChannelSumPlan p;
  void* parts;   // [2][n_chunks][channels] of the compute type
  int64_t unit;  // elements of a position
};

// A position is a pack of kN elements.
template <class S, int kN> __global__ void __launch_bounds__(kRowShared)
    channel_parts(const __grid_constant__ ChannelArguments a) {
  device::wait_for_previous();
  using T = Compute<S>;
  using Numbers = Pack<S, kN>;
  TT_SHARED(Spread<T>, spreads, kRowShared);
  TT_SHARED(TwoSums<T>, products, kRowShared);
  const ChannelSumPlan& p = a.p;
  const Numbers* const x = reinterpret_cast<const Numbers*>(p.x);
  const Numbers* const g = reinterpret_cast<const Numbers*>(p.g);
  for_columns(a.s, [&](const ColumnWork& w) {
    TwoSums<T> sums = {0, 0};
    if (g) {
      const T mean = w.inside ? reinterpret_cast<const T*>(p.mean)[w.column] : T(0);
      w.each([&]<int kMany>(const int64_t(&at)[kMany], int64_t) {
        Numbers xs[kMany], gs[kMany];
#pragma unroll
        for (int u = 0; u < kMany; u++) {
          xs[u] = x[at[u]];
          gs[u] = g[at[u]];
        }
#pragma unroll
        for (int u = 0; u < kMany; u++) {
#pragma unroll
          for (int j = 0; j < kN; j++) {
            const T gv = number_of(gs[u].v[j]);
            sums.a += gv;
            sums.b += gv * (number_of(xs[u].v[j]) - mean);
          }
        }
      });
      sums = w.total(sums, products);
    } else {
      Spread<T> spread = {0, 0, 0};
      w.each([&]<int kMany>(const int64_t(&at)[kMany], int64_t) {
        Numbers xs[kMany];
#pragma unroll
        for (int u = 0; u < kMany; u++) xs[u] = x[at[u]];
        spread = spread + spread_of<S>(xs);
      });
      spread = w.total(spread, spreads);
      sums = {spread.mean, spread.squares};
    }
    if (!w.leads()) return;
    T* const parts = static_cast<T*>(a.parts) + w.chunk * p.channels + w.column;
    parts[0] = sums.a;
    parts[a.s.n_chunks * p.channels] = sums.b;
  });
}

// A warp for each channel.
template <class T> __global__ void __launch_bounds__(kThreads)
    join_channels(const __grid_constant__ ChannelArguments a) {
  device::wait_for_previous();
  const int64_t c = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  const ChannelSumPlan& p = a.p;
  if (c >= p.channels) return;
  const T* const first = static_cast<const T*>(a.parts) + c;
  const T* const second = first + a.s.n_chunks * p.channels;
  T* const out = reinterpret_cast<T*>(p.out) + c;
  const auto plus = [](const auto& u, const auto& v) { return u + v; };
  if (p.g) {
    TwoSums<double> sums = {0, 0};
    for (int64_t k = threadIdx.x; k < a.s.n_chunks; k += kWarp)
      sums = sums + TwoSums<double>{double(first[k * p.channels]), double(second[k * p.channels])};
    sums = combine_warp(sums, plus);
    if (threadIdx.x != 0) return;
    out[0] = T(sums.a);
    out[p.channels] = T(sums.b * double(reinterpret_cast<const T*>(p.rstd)[c]));
    return;
  }
  Spread<double> all = {0, 0, 0};
  for (int64_t k = threadIdx.x; k < a.s.n_chunks; k += kWarp) {
    const int64_t from = k * a.s.chunk;
    const int64_t n = a.s.positions - from < a.s.chunk ? a.s.positions - from : a.s.chunk;
    all = all + Spread<double>{double(n * a.unit), double(first[k * p.channels]),
                               double(second[k * p.channels])};
  }
  all = combine_warp(all, plus);
  if (threadIdx.x != 0) return;
  const double variance = all.squares / all.n;
  out[0] = T(all.mean);
  out[p.channels] = T(1 / math::sqrt(variance + p.eps));
  out[2 * p.channels] = T(variance);
}

// ---- channel_affine: y = (x - mean) a + (g - g_mean) b + shift ----
// Forward: g is NULL. Backward: with sums, x and g count; without (statistics are constants), only
// g.

template <class T> struct Coefficients {
  T mean, a, g_mean, b, shift;

  __device__ __forceinline__ Coefficients(const ChannelAffinePlan& p, int64_t c) {
    const int64_t at = c * item_size(p.weight_dtype);
    const T w = p.weight ? load_element<T>(p.weight + at, p.weight_dtype) : T(1);
    const T rstd = reinterpret_cast<const T*>(p.rstd)[c];
    mean = reinterpret_cast<const T*>(p.mean)[c];
    a = rstd * w;
    b = g_mean = 0;
    shift = p.bias ? load_element<T>(p.bias + at, p.weight_dtype) : T(0);
    if (!p.g) return;
    b = a;
    a = 0;
    if (!p.sums) return;
    const T n = T(p.outer) * T(p.inner);
    const T* const sums = reinterpret_cast<const T*>(p.sums);
    g_mean = sums[c] / n;
    a = -b * rstd * (sums[p.channels + c] / n);
  }
};

struct AffineArguments {
  ChannelAffinePlan p;
  bool small;
  Divisor inner, channels;  // where elements have 31 bits
};

// Elements [i, i + kN) are in one channel, or inner is 1.
template <class S, int kN> __global__ void __launch_bounds__(kThreads)
    affine(const __grid_constant__ AffineArguments arguments) {
  device::wait_for_previous();
  using T = Compute<S>;
  const ChannelAffinePlan& p = arguments.p;
  const int64_t n = p.outer * p.channels * p.inner;
  const int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * kN;
  if (i >= n) return;
  int64_t c;
  if (arguments.small) {
    const uint32_t plane = arguments.inner.divide(uint32_t(i));
    c = plane - arguments.channels.divide(plane) * uint32_t(p.channels);
  } else {
    c = i / p.inner % p.channels;
  }
  using Numbers = Pack<S, kN>;
  Numbers x = {}, g = {};
  if (!p.g || p.sums) x = *reinterpret_cast<const Numbers*>(reinterpret_cast<const S*>(p.x) + i);
  if (p.g) g = *reinterpret_cast<const Numbers*>(reinterpret_cast<const S*>(p.g) + i);
  Numbers y;
  Coefficients<T> k(p, c);
#pragma unroll
  for (int j = 0; j < kN; j++) {
    if (j > 0 && p.inner == 1) k = Coefficients<T>(p, c + j);
    const T of_g = (number_of(g.v[j]) - k.g_mean) * k.b;
    const T rest = p.g ? of_g : k.shift;
    const bool uses_x = !p.g || p.sums;
    y.v[j] = stored_as<S>(uses_x ? (number_of(x.v[j]) - k.mean) * k.a + rest : rest);
  }
  *reinterpret_cast<Numbers*>(reinterpret_cast<S*>(p.y) + i) = y;
}

int64_t unit_of(const ChannelSumPlan& p) {
  const int64_t pack = 16 / kItemSize[p.dtype];
  const bool packs = p.inner > 1 && p.inner % pack == 0 && is_aligned(p.x) && is_aligned(p.g);
  return packs ? pack : 1;
}

}  // namespace

namespace cuda {

int32_t channel_sums(const void* plan, void* stream, void* workspace) {
  const ChannelSumPlan& p = *static_cast<const ChannelSumPlan*>(plan);
  if (p.channels == 0) return TT_OK;
  const int64_t unit = unit_of(p);
  const ColumnLaunch l = column_launch(p.channels, p.outer, p.inner, unit);
  const ChannelArguments a = {l.s, p, workspace, unit};
  const int32_t status = with_floating(p.dtype, [&](auto s) {
    using S = decltype(s);
    const auto kernel = unit > 1 ? channel_parts<S, kPackOf<S>> : channel_parts<S, 1>;
    return device::launch_early(kernel, l.grid, l.block, stream, a);
  });
  if (status != TT_OK) return status;
  const auto join = p.dtype == TT_F64 ? join_channels<double> : join_channels<float>;
  constexpr int kJoined = kThreads / kWarp;
  return device::launch_early(join, blocks_for(p.channels, kJoined, 1), dim3(kWarp, kJoined),
                              stream, a);
}
size_t channel_sums_workspace(const void* plan) {
  const ChannelSumPlan& p = *static_cast<const ChannelSumPlan*>(plan);
  const ColumnShape s = column_launch(p.channels, p.outer, p.inner, unit_of(p)).s;
  return size_t(2 * s.n_chunks * p.channels * (p.dtype == TT_F64 ? 8 : 4));
}

int32_t channel_affine(const void* plan, void* stream, void*) {
  const ChannelAffinePlan& p = *static_cast<const ChannelAffinePlan*>(plan);
  const int64_t n = p.outer * p.channels * p.inner;
  if (n == 0) return TT_OK;
  AffineArguments a = {};
  a.p = p;
  a.small = n < int64_t(1) << 31;
  if (a.small) {
    a.inner.set(uint32_t(p.inner));
    a.channels.set(uint32_t(p.channels));
  }
  return with_floating(p.dtype, [&](auto s) {
    using S = decltype(s);
    constexpr int kN = kPackOf<S>;
    const bool aligned = is_aligned(p.x) && is_aligned(p.g) && is_aligned(p.y);
    const bool packs = aligned && (p.inner == 1 ? p.channels : p.inner) % kN == 0;
    const auto kernel = packs ? affine<S, kN> : affine<S, 1>;
    return device::launch_early(kernel, blocks_for(n, kThreads, packs ? kN : 1), kThreads, stream,
                                a);
  });
}

}  // namespace cuda
}  // namespace TT_NS
