// batch_norm, group_norm and their backward.
//   x, g, y: (outer, channels, inner)
//   channel_sums, forward   mean, rstd and variance of each channel: out [3][channels]
//   channel_sums, backward  sum of g and sum of g (x - mean) rstd: out [2][channels]
//   channel_affine          y, or dx, from them
// Two sums for each channel and chunk of positions go to workspace [2][n_chunks][channels]: mean
// and squared deviations, or the sums of g and g (x - mean). In group_norm the columns of
// statistics are groups, those of gradients the channels of all images; several channels share
// statistics.
#include "kernels/cuda/norm/column_sums.h"
#include "kernels/cuda/norm/group_norm.h"
#include "kernels/cuda/rows.h"
#include "plan/norm_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

struct ChannelArguments {
  ColumnShape s;
  ChannelSumPlan p;
  void* parts;     // [2][n_chunks][channels] of the compute type
  int64_t unit;    // elements of a position
  int64_t shared;  // with g: channels that share statistics
  char* out[3];    // mean, rstd, variance or NULL; with g the two sums
};

// A position is a pack: of kEach elements of a channel, or of one element of kChannels channels,
// which are neighbours then.
template <class S, int kChannels, int kEach> __global__ void __launch_bounds__(kRowShared)
    channel_parts(const __grid_constant__ ChannelArguments a) {
  device::wait_for_previous();
  using T = Compute<S>;
  using Numbers = Pack<S, kChannels * kEach>;
  TT_SHARED(Spread<T>, spreads, kRowShared);
  TT_SHARED(TwoSums<T>, products, kRowShared);
  const ChannelSumPlan& p = a.p;
  const Numbers* const x = reinterpret_cast<const Numbers*>(p.x);
  const Numbers* const g = reinterpret_cast<const Numbers*>(p.g);
  for_columns(a.s, [&](const ColumnWork& w) {
    const int64_t first = w.column * kChannels;
    TwoSums<T> sums[kChannels] = {};
    if (g) {
      T mean[kChannels] = {};
#pragma unroll
      for (int c = 0; c < kChannels; c++)
        if (w.inside) mean[c] = reinterpret_cast<const T*>(p.mean)[(first + c) / a.shared];
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
          for (int i = 0; i < kChannels * kEach; i++) {
            const int c = i / kEach;
            const T gv = number_of(gs[u].v[i]);
            sums[c].a += gv;
            sums[c].b += gv * (number_of(xs[u].v[i]) - mean[c]);
          }
        }
      });
#pragma unroll
      for (int c = 0; c < kChannels; c++) sums[c] = w.total(sums[c], products);
    } else {
      Spread<T> spread[kChannels] = {};
      w.each([&]<int kMany>(const int64_t(&at)[kMany], int64_t) {
        Numbers xs[kMany];
#pragma unroll
        for (int u = 0; u < kMany; u++) xs[u] = x[at[u]];
        const T n = spread[0].n;  // of all channels, so that they share a division
#pragma unroll
        for (int c = 0; c < kChannels; c++) {
          Pack<S, kEach> of_channel[kMany];
#pragma unroll
          for (int i = 0; i < kMany * kEach; i++)
            of_channel[i / kEach].v[i % kEach] = xs[i / kEach].v[c * kEach + i % kEach];
          spread[c].n = n;
          spread[c] = spread[c] + spread_of<S>(of_channel);
        }
      });
#pragma unroll
      for (int c = 0; c < kChannels; c++) {
        spread[c] = w.total(spread[c], spreads);
        sums[c] = {spread[c].mean, spread[c].squares};
      }
    }
    if (!w.leads()) return;
    T* const parts = static_cast<T*>(a.parts) + w.chunk * p.channels + first;
#pragma unroll
    for (int c = 0; c < kChannels; c++) {
      parts[c] = sums[c].a;
      parts[a.s.n_chunks * p.channels + c] = sums[c].b;
    }
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
  const auto put = [&](int k, double v) {
    if (a.out[k]) reinterpret_cast<T*>(a.out[k])[c] = T(v);
  };
  const auto plus = [](const auto& u, const auto& v) { return u + v; };
  if (p.g) {
    TwoSums<double> sums = {0, 0};
    for (int64_t k = threadIdx.x; k < a.s.n_chunks; k += kWarp)
      sums = sums + TwoSums<double>{double(first[k * p.channels]), double(second[k * p.channels])};
    sums = combine_warp(sums, plus);
    if (threadIdx.x != 0) return;
    put(0, sums.a);
    put(1, sums.b * double(reinterpret_cast<const T*>(p.rstd)[c / a.shared]));
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
  put(0, all.mean);
  put(1, 1 / math::sqrt(variance + p.eps));
  put(2, variance);
}

// ---- channel_affine: y = (x - mean) a + (g factor - g_mean) b + shift ----
// Forward: g is NULL. Backward: with sums, x and g count; without (statistics are constants), only
// g. In group_norm the sums are of g weight, so that the weight is a factor of g.

struct AffineArguments {
  ChannelAffinePlan p;
  bool small;
  Divisor inner, channels;  // where elements have 31 bits
  int64_t shared;           // channels of an image that share statistics; 0: all images share them
  int64_t stats;            // statistics
  double count;             // elements of each
};

template <class T> struct Coefficients {
  T mean, a, factor, g_mean, b, shift;

  // plane: [outer][channels]; c: its channel.
  __device__ __forceinline__ Coefficients(const AffineArguments& all, int64_t plane, int64_t c) {
    const ChannelAffinePlan& p = all.p;
    const int64_t at = c * item_size(p.weight_dtype);
    const int64_t s = all.shared ? plane / all.shared : c;
    const T w = p.weight ? load_element<T>(p.weight + at, p.weight_dtype) : T(1);
    const T rstd = reinterpret_cast<const T*>(p.rstd)[s];
    mean = reinterpret_cast<const T*>(p.mean)[s];
    a = rstd * w;
    b = g_mean = 0;
    factor = 1;
    shift = p.bias ? load_element<T>(p.bias + at, p.weight_dtype) : T(0);
    if (!p.g) return;
    b = a;
    a = 0;
    if (all.shared) {
      factor = w;
      b = rstd;
    }
    if (!p.sums) return;
    const T n = T(all.count);
    const T* const sums = reinterpret_cast<const T*>(p.sums);
    g_mean = sums[s] / n;
    a = -b * rstd * (sums[all.stats + s] / n);
  }
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
  int64_t plane, c;
  if (arguments.small) {
    const uint32_t small_plane = arguments.inner.divide(uint32_t(i));
    plane = small_plane;
    c = small_plane - arguments.channels.divide(small_plane) * uint32_t(p.channels);
  } else {
    plane = i / p.inner;
    c = plane % p.channels;
  }
  using Numbers = Pack<S, kN>;
  Numbers x = {}, g = {};
  if (!p.g || p.sums) x = *reinterpret_cast<const Numbers*>(reinterpret_cast<const S*>(p.x) + i);
  if (p.g) g = *reinterpret_cast<const Numbers*>(reinterpret_cast<const S*>(p.g) + i);
  Numbers y;
  Coefficients<T> k(arguments, plane, c);
#pragma unroll
  for (int j = 0; j < kN; j++) {
    if (j > 0 && p.inner == 1) k = Coefficients<T>(arguments, plane + j, c + j);
    const T of_g = (number_of(g.v[j]) * k.factor - k.g_mean) * k.b;
    const T rest = p.g ? of_g : k.shift;
    const bool uses_x = !p.g || p.sums;
    y.v[j] = stored_as<S>(uses_x ? (number_of(x.v[j]) - k.mean) * k.a + rest : rest);
  }
  *reinterpret_cast<Numbers*>(reinterpret_cast<S*>(p.y) + i) = y;
}

// What a thread reads at once: elements of a channel along inner, or neighbouring channels.
struct ChannelUnits {
  int64_t each, channels;
};
ChannelUnits units_of(const ChannelSumPlan& p) {
  const int64_t pack = 16 / kItemSize[p.dtype];
  const bool packs = (p.inner > 1 ? p.inner : p.channels) % pack == 0;
  if (!packs || !is_aligned(p.x) || !is_aligned(p.g)) return {1, 1};
  return p.inner > 1 ? ChannelUnits{pack, 1} : ChannelUnits{1, pack};
}
ColumnLaunch sums_launch(const ChannelSumPlan& p) {
  const ChannelUnits units = units_of(p);
  return column_launch(p.channels / units.channels, p.outer, p.inner, units.each);
}

int32_t run_sums(const ChannelSumPlan& p, int64_t shared, char* const (&out)[3], void* stream,
                 void* workspace) {
  const ChannelUnits units = units_of(p);
  const ColumnLaunch l = sums_launch(p);
  const ChannelArguments a = {l.s, p, workspace, units.each, shared, {out[0], out[1], out[2]}};
  const int32_t status = with_floating(p.dtype, [&](auto s) {
    using S = decltype(s);
    auto kernel = channel_parts<S, 1, 1>;
    if (units.each > 1) kernel = channel_parts<S, 1, kPackOf<S>>;
    if (units.channels > 1) kernel = channel_parts<S, kPackOf<S>, 1>;
    return device::launch_early(kernel, l.grid, l.block, stream, a);
  });
  if (status != TT_OK) return status;
  const auto join = p.dtype == TT_F64 ? join_channels<double> : join_channels<float>;
  constexpr int kJoined = kThreads / kWarp;
  return device::launch_early(join, blocks_for(p.channels, kJoined, 1), dim3(kWarp, kJoined),
                              stream, a);
}
int64_t computed_size(int32_t dtype) { return dtype == TT_F64 ? 8 : 4; }
size_t sums_workspace(const ChannelSumPlan& p) {
  const ColumnShape s = sums_launch(p).s;
  return size_t(2 * s.n_chunks * p.channels * computed_size(p.dtype));
}

// shared, stats: of AffineArguments.
int32_t run_affine(const ChannelAffinePlan& p, int64_t shared, int64_t stats, void* stream) {
  const int64_t n = p.outer * p.channels * p.inner;
  if (n == 0) return TT_OK;
  AffineArguments a = {};
  a.p = p;
  a.shared = shared;
  a.stats = stats;
  a.count = double(n) / double(stats);
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

// ---- group_norm ----

struct GroupArguments {
  GroupNormBackwardPlan p;
  const void* parts;  // [2][rows][channels] of the compute type: sums of g and g (x - mean) rstd
  void* sums;         // [2][rows]: the same with weights, over the channels of a row
};

// A warp for each row, then one for every 32 channels, whose sums over images it writes.
template <class T> __global__ void __launch_bounds__(kThreads)
    group_totals(const __grid_constant__ GroupArguments a) {
  device::wait_for_previous();
  const GroupNormBackwardPlan& p = a.p;
  const int64_t warp = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  const int64_t all = p.groups * p.channels;  // channels of an image
  const int64_t item = item_size(p.weight_dtype);
  const T* const first = static_cast<const T*>(a.parts);
  const T* const second = first + p.rows * p.channels;
  TwoSums<double> sum = {0, 0};
  if (warp < p.rows) {
    for (int64_t c = threadIdx.x; c < p.channels; c += kWarp) {
      const char* const weight = p.weight + (warp % p.groups * p.channels + c) * item;
      const double w = p.weight ? load_element<double>(weight, p.weight_dtype) : 1;
      const int64_t at = warp * p.channels + c;
      sum = sum + TwoSums<double>{double(first[at]) * w, double(second[at]) * w};
    }
    sum = combine_warp(sum, [](const auto& u, const auto& v) { return u + v; });
    if (threadIdx.x != 0) return;
    static_cast<T*>(a.sums)[warp] = T(sum.a);
    static_cast<T*>(a.sums)[p.rows + warp] = T(sum.b);
    return;
  }
  const int64_t c = (warp - p.rows) * kWarp + threadIdx.x;
  if (c >= all) return;
  for (int64_t at = c; at < p.rows * p.channels; at += all)
    sum = sum + TwoSums<double>{double(first[at]), double(second[at])};
  if (p.dbias) store_element(p.dbias + c * item, p.weight_dtype, T(sum.a));
  if (p.dweight) store_element(p.dweight + c * item, p.weight_dtype, T(sum.b));
}

ChannelSumPlan statistics_of(const LayerNormPlan& p) {
  ChannelSumPlan s = {};
  s.dtype = p.dtype;
  s.outer = 1;
  s.channels = p.rows;
  s.inner = p.n;
  s.eps = p.eps;
  s.x = p.x;
  return s;
}
ChannelSumPlan sums_of(const GroupNormBackwardPlan& p) {
  ChannelSumPlan s = {};
  s.dtype = p.dtype;
  s.outer = 1;
  s.channels = p.rows * p.channels;
  s.inner = p.inner;
  s.x = p.x;
  s.g = p.g;
  s.mean = p.mean;
  s.rstd = p.rstd;
  return s;
}

}  // namespace

namespace cuda {

int32_t channel_sums(const void* plan, void* stream, void* workspace) {
  const ChannelSumPlan& p = *static_cast<const ChannelSumPlan*>(plan);
  if (p.channels == 0) return TT_OK;
  const int64_t row = p.channels * computed_size(p.dtype);
  char* const out[3] = {p.out, p.out + row, p.g ? nullptr : p.out + 2 * row};
  return run_sums(p, 1, out, stream, workspace);
}
size_t channel_sums_workspace(const void* plan) {
  return sums_workspace(*static_cast<const ChannelSumPlan*>(plan));
}

int32_t channel_affine(const void* plan, void* stream, void*) {
  const ChannelAffinePlan& p = *static_cast<const ChannelAffinePlan*>(plan);
  return run_affine(p, 0, p.channels, stream);
}

int32_t group_norm(const LayerNormPlan& p, void* stream, void* workspace) {
  char* const out[3] = {p.mean, p.rstd, nullptr};
  const int32_t status = run_sums(statistics_of(p), 1, out, stream, workspace);
  if (status != TT_OK) return status;
  ChannelAffinePlan a = {};
  a.dtype = p.dtype;
  a.weight_dtype = p.weight_dtype;
  a.outer = p.rows / p.groups;
  a.channels = p.groups * (p.n / p.inner);
  a.inner = p.inner;
  a.x = p.x;
  a.mean = p.mean;
  a.rstd = p.rstd;
  a.weight = p.weight;
  a.bias = p.bias;
  a.y = p.y;
  return run_affine(a, p.n / p.inner, p.rows, stream);
}
size_t group_norm_workspace(const LayerNormPlan& p) { return sums_workspace(statistics_of(p)); }

// workspace: what the sums need, the sums of channels, those of rows.
int32_t group_norm_backward(const void* plan, void* stream, void* workspace) {
  const GroupNormBackwardPlan& p = *static_cast<const GroupNormBackwardPlan*>(plan);
  const ChannelSumPlan of_channels = sums_of(p);
  const int64_t item = computed_size(p.dtype);
  char* const parts =
      static_cast<char*>(workspace) + TT_NS::round_up(int64_t(sums_workspace(of_channels)), 16);
  char* const sums = parts + 2 * of_channels.channels * item;
  char* const out[3] = {parts, parts + of_channels.channels * item, nullptr};
  int32_t status = run_sums(of_channels, p.channels, out, stream, workspace);
  if (status != TT_OK) return status;
  const int64_t channels = p.groups * p.channels;
  constexpr int kWarps = kThreads / kWarp;
  const auto totals = p.dtype == TT_F64 ? group_totals<double> : group_totals<float>;
  status = device::launch_early(totals, blocks_for(p.rows + ceil_div(channels, kWarp), kWarps, 1),
                                dim3(kWarp, kWarps), stream, GroupArguments{p, parts, sums});
  if (status != TT_OK || !p.dx) return status;
  ChannelAffinePlan a = {};
  a.dtype = p.dtype;
  a.weight_dtype = p.weight_dtype;
  a.outer = p.rows / p.groups;
  a.channels = channels;
  a.inner = p.inner;
  a.x = p.x;
  a.g = p.g;
  a.mean = p.mean;
  a.rstd = p.rstd;
  a.sums = sums;
  a.weight = p.weight;
  a.y = p.dx;
  return run_affine(a, p.channels, p.rows, stream);
}
size_t group_norm_backward_workspace(const void* plan) {
  const GroupNormBackwardPlan& p = *static_cast<const GroupNormBackwardPlan*>(plan);
  const int64_t sums = 2 * (p.rows * p.channels + p.rows) * computed_size(p.dtype);
  return size_t(TT_NS::round_up(int64_t(sums_workspace(sums_of(p))), 16) + sums);
}

}  // namespace cuda
}  // namespace TT_NS
