// layer_norm and its backward; rms_norm, which has no means.
//   x, y, g, dx: (rows, n); weight, bias, dweight, dbias: (n); mean, rstd: (rows)
// dweight and dbias are sums over rows: chunks of rows to workspace [2][n_chunks][n], then their
// sum. Where registers hold rows, they are computed in the pass over rows that computes dx, else by
// columns.
#include "kernels/cuda/norm/column_sums.h"
#include "kernels/cuda/norm/group_norm.h"
#include "kernels/cuda/norm/team.h"
#include "kernels/cuda/rows.h"
#include "plan/norm_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

// ---- forward ----

struct LayerNormArguments {
  RowGeometry g;
  LayerNormPlan p;
};

template <class T>
__device__ __forceinline__ void put_stats(const LayerNormPlan& p, int64_t row, T mean, T rstd) {
  const int64_t at = row * item_size(p.stat_dtype);
  if (p.mean) store_element(p.mean + at, p.stat_dtype, mean);
  store_element(p.rstd + at, p.stat_dtype, rstd);
}
struct TeamArguments {
  int packs;
  LayerNormPlan p;
};
// W: the stored type of the weight and the bias, which many rows find in the cache.
template <class S, class W> __global__ void __launch_bounds__(kTeamThreads, kTeamBlocks<S>)
    normalize_held(const __grid_constant__ TeamArguments a) {
  device::wait_for_previous();
  using T = Compute<S>;
  constexpr int kN = kPackOf<S>;
  TT_SHARED(T, slots, kTeamSlots);
  const LayerNormPlan& p = a.p;
  const int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= p.rows) return;
  TeamRow<S> x;
  x.load(p.x, row, a.packs);
  T part = 0;
  T mean = 0;
  if (p.mean) {
    team_packs(a.packs, [&](int u, int) {
#pragma unroll
      for (int j = 0; j < kN; j++) part += x.number(u, j);
    });
    mean = team_total(part, slots, 0) / T(p.n);
    part = 0;
  }
  team_packs(a.packs, [&](int u, int) {
#pragma unroll
    for (int j = 0; j < kN; j++) part += (x.number(u, j) - mean) * (x.number(u, j) - mean);
  });
  const T rstd = T(1) / math::sqrt(team_total(part, slots, 1) / T(p.n) + T(p.eps));
  Pack<S, kN>* const y = reinterpret_cast<Pack<S, kN>*>(p.y) + row * a.packs;
  team_packs(a.packs, [&](int u, int i) {
    T weight[kN], bias[kN];
    load_known<W>(weight, p.weight, int64_t(i) * kN, T(1));
    load_known<W>(bias, p.bias, int64_t(i) * kN, T(0));
    Pack<S, kN> pack;
#pragma unroll
    for (int j = 0; j < kN; j++)
      pack.v[j] = stored_as<S>((x.number(u, j) - mean) * rstd * weight[j] + bias[j]);
    y[i] = pack;
  });
  if (threadIdx.x == 0) put_stats(p, row, mean, rstd);
}
template <class S> __global__ void __launch_bounds__(kRowThreads)
    normalize(const __grid_constant__ LayerNormArguments a) {
  using T = Compute<S>;
  TT_SHARED(T, shared, kRowShared);
  TT_SHARED_DYNAMIC(char, kept_rows);
  const LayerNormPlan& p = a.p;
  const auto plus = [](T u, T v) { return u + v; };
  for_lines(a.g, [&](const Row& r) {
    const S* const x = reinterpret_cast<const S*>(p.x) + r.at;
    S* const y = reinterpret_cast<S*>(p.y) + r.at;
    S* const kept = r.kept<S>(kept_rows);
    T part = 0;
    read_row(r, Rows<S, 1>{{x}, 1, {kept}}, [&]<int kN>(int64_t, const T(&v)[1][kN]) {
#pragma unroll
      for (int j = 0; j < kN; j++) part += v[0][j];
    });
    T mean = r.combined(part, shared, plus) / T(p.n);
    if (!p.mean) mean = 0;
    const Rows<S, 1> again = {{kept ? kept : x}, 1, {nullptr}};
    part = 0;
    read_row(r, again, [&]<int kN>(int64_t, const T(&v)[1][kN]) {
#pragma unroll
      for (int j = 0; j < kN; j++) part += (v[0][j] - mean) * (v[0][j] - mean);
    });
    const T rstd = T(1) / math::sqrt(r.combined(part, shared, plus) / T(p.n) + T(p.eps));
    write_row(r, again, y, 1, [&]<int kN>(int64_t i, const T(&v)[1][kN], T(&d)[kN]) {
      T weight[kN], bias[kN];
      load_numbers<T, kN>(weight, p.weight, p.weight_dtype, i, T(1));
      load_numbers<T, kN>(bias, p.bias, p.weight_dtype, i, T(0));
#pragma unroll
      for (int j = 0; j < kN; j++) d[j] = (v[0][j] - mean) * rstd * weight[j] + bias[j];
    });
    if (r.leads()) put_stats(p, r.index, mean, rstd);
  });
}

// ---- backward ----
// With h = (x - mean) rstd and u = g weight: dx = rstd (u - mean(u) - h mean(u h)).

struct LayerNormBackwardArguments {
  RowGeometry g;
  LayerNormBackwardPlan p;
};

template <class T> struct RowStats {
  T mean, rstd;
  __device__ __forceinline__ RowStats(T mean, T rstd) : mean(mean), rstd(rstd) {}
  __device__ __forceinline__ RowStats(const LayerNormBackwardPlan& p, int64_t row)
      : mean(p.mean ? load_element<T>(p.mean + row * item_size(p.stat_dtype), p.stat_dtype) : T(0)),
        rstd(load_element<T>(p.rstd + row * item_size(p.stat_dtype), p.stat_dtype)) {}
};

// The sums of u and u h over kN elements; v: of g and x.
template <class T, int kN>
__device__ __forceinline__ TwoSums<T> gradient_sums(const RowStats<T>& s, const T (&weight)[kN],
                                                    const T (&v)[2][kN]) {
  TwoSums<T> part = {0, 0};
#pragma unroll
  for (int j = 0; j < kN; j++) {
    const T u = v[0][j] * weight[j];
    part.a += u;
    part.b += u * ((v[1][j] - s.mean) * s.rstd);
  }
  return part;
}
template <class T> struct RowSlope {
  T mean_u, slope;
  __device__ __forceinline__ RowSlope(const LayerNormBackwardPlan& p, const RowStats<T>& s,
                                      const TwoSums<T>& sums)
      : mean_u(p.mean ? sums.a / T(p.n) : T(0)), slope(s.rstd * s.rstd * (sums.b / T(p.n))) {}
  // dx, exactly 0 if n is 1.
  __device__ __forceinline__ T of(const RowStats<T>& s, T weight, T g, T x) const {
    return (s.mean - x) * slope + (g * weight - mean_u) * s.rstd;
  }
};

struct TeamGradientArguments {
  int packs, stages;
  LayerNormBackwardPlan p;
  void* parts;  // [2][gridDim.x][n] of the compute type, or NULL
};

// dx, and of the rows of each block the sums of dweight and dbias. Statistics are of the compute
// type; those of the next row are loaded early, too.
template <class S, class W> __global__ void __launch_bounds__(kTeamThreads)
    row_gradients_held(const __grid_constant__ TeamGradientArguments a) {
  device::wait_for_previous();
  using T = Compute<S>;
  constexpr int kN = kPackOf<S>;
  TT_SHARED(TwoSums<T>, slots, kTeamSlots);
  TT_SHARED(TwoSums<T>, of_teams, kTeamRows * kWarp);
  TT_SHARED_DYNAMIC(char, shared);
  const LayerNormBackwardPlan& p = a.p;
  const int64_t step = int64_t(gridDim.x) * blockDim.y;
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  const char* const from[2] = {p.g, p.x};
  ArrivingRows<S, 2> arriving(shared, a.packs, a.stages);
  int64_t fetched = row;
  for (int k = 1; k < a.stages; k++, fetched += step)
    arriving.fetch(from, fetched, fetched < p.rows);
  T weight[kTeamPacks][kN];
  team_packs(a.packs,
             [&](int u, int i) { load_known<W>(weight[u], p.weight, int64_t(i) * kN, T(1)); });
  T dweight[kTeamPacks][kN] = {};
  T dbias[kTeamPacks][kN] = {};
  const T* const means = reinterpret_cast<const T*>(p.mean);
  const T* const rstds = reinterpret_cast<const T*>(p.rstd);
  const auto stats_of = [&](int64_t r) { return RowStats<T>(means ? means[r] : T(0), rstds[r]); };
  RowStats<T> next_s = {0, 0};
  if (row < p.rows) next_s = stats_of(row);
  for (int turn = 0; row < p.rows; row += step, turn ^= 1) {
    const RowStats<T> s = next_s;
    if (row + step < p.rows) next_s = stats_of(row + step);
    arriving.fetch(from, fetched, fetched < p.rows);
    fetched += step;
    TeamRow<S> rows[2];
    arriving.take(rows);
    const TeamRow<S>& g = rows[0];
    const TeamRow<S>& x = rows[1];
    TwoSums<T> part = {0, 0};
    team_packs(a.packs, [&](int u, int) {
#pragma unroll
      for (int j = 0; j < kN; j++) {
        const T h = (x.number(u, j) - s.mean) * s.rstd;
        const T of_row = g.number(u, j) * weight[u][j];
        part.a += of_row;
        part.b += of_row * h;
        dweight[u][j] += g.number(u, j) * h;
        dbias[u][j] += g.number(u, j);
      }
    });
    const RowSlope<T> slope(p, s, team_total(part, slots, turn));
    if (!p.dx) continue;
    Pack<S, kN>* const dx = reinterpret_cast<Pack<S, kN>*>(p.dx) + row * a.packs;
    team_packs(a.packs, [&](int u, int i) {
      Pack<S, kN> pack;
#pragma unroll
      for (int j = 0; j < kN; j++)
        pack.v[j] = stored_as<S>(slope.of(s, weight[u][j], g.number(u, j), x.number(u, j)));
      dx[i] = pack;
    });
  }
  if (!a.parts) return;
  T* const parts = static_cast<T*>(a.parts) + int64_t(blockIdx.x) * p.n;
#pragma unroll
  for (int u = 0; u < kTeamPacks; u++) {
    Pack<T, kN> sums[2];
#pragma unroll
    for (int j = 0; j < kN; j++) {
      TwoSums<T> sum = {dweight[u][j], dbias[u][j]};
      if (blockDim.y > 1) {
        of_teams[threadIdx.y * kWarp + threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0)
          for (int k = 1; k < int(blockDim.y); k++) sum = sum + of_teams[k * kWarp + threadIdx.x];
        __syncthreads();
      }
      sums[0].v[j] = sum.a;
      sums[1].v[j] = sum.b;
    }
    const int i = int(threadIdx.x + u * blockDim.x);
    if (threadIdx.y != 0 || i >= a.packs) continue;
    reinterpret_cast<Pack<T, kN>*>(parts)[i] = sums[0];
    reinterpret_cast<Pack<T, kN>*>(parts + int64_t(gridDim.x) * p.n)[i] = sums[1];
  }
}
template <class S> __global__ void __launch_bounds__(kRowThreads)
    row_gradients(const __grid_constant__ LayerNormBackwardArguments a) {
  using T = Compute<S>;
  TT_SHARED(TwoSums<T>, shared, kRowShared);
  TT_SHARED_DYNAMIC(char, kept_rows);
  const LayerNormBackwardPlan& p = a.p;
  for_lines(a.g, [&](const Row& r) {
    const RowStats<T> s(p, r.index);
    const S* const g = reinterpret_cast<const S*>(p.g) + r.at;
    const S* const x = reinterpret_cast<const S*>(p.x) + r.at;
    S* const kept = r.kept<S>(kept_rows);
    S* const kept_x = kept ? kept + a.g.kept / 2 / int(sizeof(S)) : nullptr;
    TwoSums<T> part = {0, 0};
    read_row(r, Rows<S, 2>{{g, x}, 1, {kept, kept_x}}, [&]<int kN>(int64_t i, const T(&v)[2][kN]) {
      T weight[kN];
      load_numbers(weight, p.weight, p.weight_dtype, i, T(1));
      part = part + gradient_sums(s, weight, v);
    });
    const TwoSums<T> sums =
        r.combined(part, shared, [](const TwoSums<T>& u, const TwoSums<T>& v) { return u + v; });
    const RowSlope<T> slope(p, s, sums);
    const Rows<S, 2> again = {{kept ? kept : g, kept ? kept_x : x}, 1, {nullptr, nullptr}};
    write_row(r, again, reinterpret_cast<S*>(p.dx) + r.at, 1,
              [&]<int kN>(int64_t i, const T(&v)[2][kN], T(&d)[kN]) {
                T weight[kN];
                load_numbers(weight, p.weight, p.weight_dtype, i, T(1));
#pragma unroll
                for (int j = 0; j < kN; j++) d[j] = slope.of(s, weight[j], v[0][j], v[1][j]);
              });
  });
}

struct WeightArguments {
  ColumnShape s;
  LayerNormBackwardPlan p;
  void* parts;  // [2][n_chunks][n] of the compute type; NULL for one chunk
};

template <class T> __device__ __forceinline__ void put_weight(const LayerNormBackwardPlan& p,
                                                              int64_t column,
                                                              const TwoSums<T>& sums) {
  const int64_t at = column * item_size(p.weight_dtype);
  if (p.dweight) store_element(p.dweight + at, p.weight_dtype, sums.a);
  if (p.dbias) store_element(p.dbias + at, p.weight_dtype, sums.b);
}
template <class S> __global__ void __launch_bounds__(kRowShared)
    weight_gradients(const __grid_constant__ WeightArguments a) {
  using T = Compute<S>;
  TT_SHARED(TwoSums<T>, shared, kRowShared);
  const LayerNormBackwardPlan& p = a.p;
  for_columns(a.s, [&](const ColumnWork& w) {
    const S* const g = reinterpret_cast<const S*>(p.g);
    const S* const x = reinterpret_cast<const S*>(p.x);
    TwoSums<T> part = {0, 0};
    w.each([&]<int kMany>(const int64_t(&at)[kMany], int64_t row) {
#pragma unroll
      for (int u = 0; u < kMany; u++) {
        const RowStats<T> s(p, row + u * w.parts);
        const T gv = number_of(g[at[u]]);
        part.a += gv * ((number_of(x[at[u]]) - s.mean) * s.rstd);
        part.b += gv;
      }
    });
    const TwoSums<T> sums = w.total(part, shared);
    if (!w.leads()) return;
    if (a.s.n_chunks == 1) return put_weight(p, w.column, sums);
    T* const parts = static_cast<T*>(a.parts) + w.chunk * p.n + w.column;
    parts[0] = sums.a;
    parts[a.s.n_chunks * p.n] = sums.b;
  });
}
// Sums the parts of 32 columns.
template <class T> __global__ void __launch_bounds__(kThreads)
    join_weights(const __grid_constant__ WeightArguments a) {
  device::wait_for_previous();
  TT_SHARED(TwoSums<T>, shared, kThreads);
  const int64_t column = int64_t(blockIdx.x) * kWarp + threadIdx.x;
  const bool inside = column < a.p.n;
  TwoSums<T> sums = {0, 0};
  const T* const parts = static_cast<const T*>(a.parts) + column;
  if (inside) {
#pragma unroll 4
    for (int64_t c = threadIdx.y; c < a.s.n_chunks; c += blockDim.y)
      sums = sums + TwoSums<T>{parts[c * a.p.n], parts[(a.s.n_chunks + c) * a.p.n]};
  }
  shared[threadIdx.y * kWarp + threadIdx.x] = sums;
  __syncthreads();
  if (threadIdx.y != 0 || !inside) return;
  for (int k = 1; k < int(blockDim.y); k++) sums = sums + shared[k * kWarp + threadIdx.x];
  put_weight(a.p, column, sums);
}

int32_t run_join(const WeightArguments& a, void* stream) {
  const auto join = a.p.dtype == TT_F64 ? join_weights<double> : join_weights<float>;
  const int64_t warps = min<int64_t>(a.s.n_chunks, kThreads / kWarp);
  const dim3 block(kWarp, unsigned(warps));
  return device::launch_early(join, blocks_for(a.p.n, kWarp, 1), block, stream, a);
}
int32_t run_weights(const LayerNormBackwardPlan& p, void* stream, void* workspace) {
  const ColumnLaunch l = column_launch(p.n, p.rows, 1, 1);
  const WeightArguments a = {l.s, p, workspace};
  const int32_t status = with_floating(p.dtype, [&](auto s) {
    return device::launch(weight_gradients<decltype(s)>, l.grid, l.block, 0, stream, a);
  });
  if (status != TT_OK || l.s.n_chunks == 1) return status;
  return run_join(a, stream);
}

template <class W> bool weights_are(const LayerNormPlan& p) {
  return (!p.weight && !p.bias) || p.weight_dtype == kStoredDtype<W>;
}
template <class W> bool weights_are(const LayerNormBackwardPlan& p) {
  return !p.weight || p.weight_dtype == kStoredDtype<W>;
}

constexpr int64_t kGradientGroups = 264;  // blocks that sum gradients, at most
constexpr int64_t kGradientRows = 4;      // of each team, at least

TeamLaunch gradient_launch(const LayerNormBackwardPlan& p) {
  const bool aligned = is_aligned(p.x) && is_aligned(p.g) && is_aligned(p.dx);
  const bool wide = p.weight_dtype == TT_F32 && p.dtype != TT_F64;
  const bool known = !p.weight || p.weight_dtype == p.dtype || wide;
  const bool usable = aligned && known && is_aligned(p.weight);
  const int32_t computed = p.dtype == TT_F64 ? TT_F64 : TT_F32;
  TeamLaunch l = team_launch(p.rows, p.n, kItemSize[p.dtype], usable && p.stat_dtype == computed);
  l.units = min(ceil_div(l.units, kGradientRows), kGradientGroups);
  return l;
}
// Rows in registers.
int32_t run_held(const LayerNormBackwardPlan& p, const TeamLaunch& l, void* stream,
                 void* workspace) {
  const bool sums = p.dweight || p.dbias;
  const TeamStages t = team_stages(l, 2);
  const TeamGradientArguments a = {l.packs, t.stages, p, sums ? workspace : nullptr};
  const int32_t status = with_floating(p.dtype, [&](auto s) {
    using S = decltype(s);
    auto kernel = row_gradients_held<S, S>;
    if constexpr (kIsHalf<S>)
      if (!weights_are<S>(p)) kernel = row_gradients_held<S, float>;
    return device::launch_early_with(kernel, dim3(unsigned(l.units)), l.block, t.shared_bytes,
                                     stream, a);
  });
  if (status != TT_OK || !sums) return status;
  WeightArguments join = {};
  join.p = p;
  join.parts = workspace;
  join.s.n_chunks = l.units;
  return run_join(join, stream);
}

}  // namespace

namespace cuda {

int32_t layer_norm(const void* plan, void* stream, void* workspace) {
  const LayerNormPlan& p = *static_cast<const LayerNormPlan*>(plan);
  if (p.rows == 0) return TT_OK;
  if (p.inner) return group_norm(p, stream, workspace);
  return with_floating(p.dtype, [&](auto s) {
    using S = decltype(s);
    const bool aligned =
        is_aligned(p.x) && is_aligned(p.y) && is_aligned(p.weight) && is_aligned(p.bias);
    const TeamLaunch t = team_launch(p.rows, p.n, sizeof(S), aligned);
    if (t.packs) {
      void (*kernel)(TeamArguments) = nullptr;
      if (weights_are<S>(p)) kernel = normalize_held<S, S>;
      else if constexpr (kIsHalf<S>)
        if (weights_are<float>(p)) kernel = normalize_held<S, float>;
      if (kernel)
        return device::launch_early(kernel, dim3(unsigned(t.units)), t.block, stream,
                                    TeamArguments{t.packs, p});
    }
    const RowLaunch l = row_launch(p.rows, p.n, 1, sizeof(S), aligned, 1);
    return device::launch(normalize<S>, l.grid, l.block, l.shared_bytes, stream,
                          LayerNormArguments{l.g, p});
  });
}

size_t layer_norm_workspace(const void* plan) {
  const LayerNormPlan& p = *static_cast<const LayerNormPlan*>(plan);
  return p.inner ? group_norm_workspace(p) : 0;
}

int32_t layer_norm_backward(const void* plan, void* stream, void* workspace) {
  const LayerNormBackwardPlan& p = *static_cast<const LayerNormBackwardPlan*>(plan);
  if (p.n == 0) return TT_OK;
  const TeamLaunch t = gradient_launch(p);
  if (t.packs && p.rows) return run_held(p, t, stream, workspace);
  int32_t status = TT_OK;
  if (p.dx && p.rows)
    status = with_floating(p.dtype, [&](auto s) {
      using S = decltype(s);
      const bool aligned =
          is_aligned(p.x) && is_aligned(p.g) && is_aligned(p.dx) && is_aligned(p.weight);
      const RowLaunch l = row_launch(p.rows, p.n, 1, sizeof(S), aligned, 2);
      return device::launch(row_gradients<S>, l.grid, l.block, l.shared_bytes, stream,
                            LayerNormBackwardArguments{l.g, p});
    });
  if (status != TT_OK || !(p.dweight || p.dbias)) return status;
  return run_weights(p, stream, workspace);
}
size_t layer_norm_backward_workspace(const void* plan) {
  const LayerNormBackwardPlan& p = *static_cast<const LayerNormBackwardPlan*>(plan);
  if (!(p.dweight || p.dbias) || p.n == 0) return 0;
  const TeamLaunch t = gradient_launch(p);
  const int64_t chunks = t.packs ? t.units : column_launch(p.n, p.rows, 1, 1).s.n_chunks;
  return size_t(2 * chunks * p.n * (p.dtype == TT_F64 ? 8 : 4));
}

}  // namespace cuda
}  // namespace TT_NS
