// layer_norm and its backward.
//   x, y, g, dx: (rows, n); weight, bias, dweight, dbias: (n); mean, rstd: (rows)
// dx is computed row by row. dweight and dbias are sums over rows, computed by columns: chunks of
// rows to workspace [2][n_chunks][n], then their sum.
#include "kernels/cuda/norm/column_sums.h"
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
__device__ __forceinline__ void put_stats(const LayerNormPlan& p, const Row& r, T mean, T rstd) {
  if (!r.leads()) return;
  const int64_t at = r.index * item_size(p.stat_dtype);
  store_element(p.mean + at, p.stat_dtype, mean);
  store_element(p.rstd + at, p.stat_dtype, rstd);
}
// W: the stored type of the weight and the bias.
template <class S, class W> __global__ void __launch_bounds__(kRowThreads, kHeldBlocks<S>)
    normalize_held(const __grid_constant__ LayerNormArguments a) {
  using T = Compute<S>;
  constexpr int kN = kPackOf<S>;
  TT_SHARED(T, shared, kRowShared);
  const LayerNormPlan& p = a.p;
  const auto plus = [](T u, T v) { return u + v; };
  for_rows(a.g, [&](const Row& r) {
    const HeldRow<S, 1> row(r, {reinterpret_cast<const S*>(p.x) + r.at});
    T part = 0;
    row.each([&](int, int64_t, const T(&v)[1][kN]) {
#pragma unroll
      for (int j = 0; j < kN; j++) part += v[0][j];
    });
    const T mean = r.combined(part, shared, plus) / T(p.n);
    part = 0;
    row.each([&](int, int64_t, const T(&v)[1][kN]) {
#pragma unroll
      for (int j = 0; j < kN; j++) part += (v[0][j] - mean) * (v[0][j] - mean);
    });
    const T rstd = T(1) / math::sqrt(r.combined(part, shared, plus) / T(p.n) + T(p.eps));
    row.write(reinterpret_cast<S*>(p.y) + r.at, [&](int, int64_t i, const T(&v)[1][kN], T(&d)[kN]) {
      T weight[kN], bias[kN];
      load_known<W>(weight, p.weight, i, T(1));
      load_known<W>(bias, p.bias, i, T(0));
#pragma unroll
      for (int j = 0; j < kN; j++) d[j] = (v[0][j] - mean) * rstd * weight[j] + bias[j];
    });
    put_stats(p, r, mean, rstd);
  });
}
template <class S> __global__ void __launch_bounds__(kRowThreads)
    normalize(const __grid_constant__ LayerNormArguments a) {
  using T = Compute<S>;
  TT_SHARED(T, shared, kRowShared);
  TT_SHARED_DYNAMIC(char, kept_rows);
  const LayerNormPlan& p = a.p;
  const auto plus = [](T u, T v) { return u + v; };
  for_rows(a.g, [&](const Row& r) {
    const S* const x = reinterpret_cast<const S*>(p.x) + r.at;
    S* const y = reinterpret_cast<S*>(p.y) + r.at;
    S* const kept = r.kept<S>(kept_rows);
    T part = 0;
    read_row(r, Rows<S, 1>{{x}, 1, {kept}}, [&]<int kN>(int64_t, const T(&v)[1][kN]) {
#pragma unroll
      for (int j = 0; j < kN; j++) part += v[0][j];
    });
    const T mean = r.combined(part, shared, plus) / T(p.n);
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
    put_stats(p, r, mean, rstd);
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
  __device__ __forceinline__ RowStats(const LayerNormBackwardPlan& p, int64_t row)
      : mean(load_element<T>(p.mean + row * item_size(p.stat_dtype), p.stat_dtype)),
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
      : mean_u(sums.a / T(p.n)), slope(s.rstd * s.rstd * (sums.b / T(p.n))) {}
  // d = dx of kN elements.
  template <int kN> __device__ __forceinline__ void apply(const RowStats<T>& s,
                                                          const T (&weight)[kN],
                                                          const T (&v)[2][kN], T (&d)[kN]) const {
#pragma unroll
    for (int j = 0; j < kN; j++)  // exactly 0 if n is 1
      d[j] = (s.mean - v[1][j]) * slope + (v[0][j] * weight[j] - mean_u) * s.rstd;
  }
};

template <class S, class W> __global__ void __launch_bounds__(kRowThreads, kHeldBlocks<S>)
    row_gradients_held(const __grid_constant__ LayerNormBackwardArguments a) {
  using T = Compute<S>;
  constexpr int kN = kPackOf<S>;
  TT_SHARED(TwoSums<T>, shared, kRowShared);
  const LayerNormBackwardPlan& p = a.p;
  for_rows(a.g, [&](const Row& r) {
    const RowStats<T> s(p, r.index);
    const HeldRow<S, 2> row(
        r, {reinterpret_cast<const S*>(p.g) + r.at, reinterpret_cast<const S*>(p.x) + r.at});
    TwoSums<T> part = {0, 0};
    row.each([&](int, int64_t i, const T(&v)[2][kN]) {
      T weight[kN];
      load_known<W>(weight, p.weight, i, T(1));
      part = part + gradient_sums(s, weight, v);
    });
    const TwoSums<T> sums =
        r.combined(part, shared, [](const TwoSums<T>& u, const TwoSums<T>& v) { return u + v; });
    const RowSlope<T> slope(p, s, sums);
    row.write(reinterpret_cast<S*>(p.dx) + r.at,
              [&](int, int64_t i, const T(&v)[2][kN], T(&d)[kN]) {
                T weight[kN];
                load_known<W>(weight, p.weight, i, T(1));
                slope.apply(s, weight, v, d);
              });
  });
}
template <class S> __global__ void __launch_bounds__(kRowThreads)
    row_gradients(const __grid_constant__ LayerNormBackwardArguments a) {
  using T = Compute<S>;
  TT_SHARED(TwoSums<T>, shared, kRowShared);
  TT_SHARED_DYNAMIC(char, kept_rows);
  const LayerNormBackwardPlan& p = a.p;
  for_rows(a.g, [&](const Row& r) {
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
                slope.apply(s, weight, v, d);
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
    w.each([&](int64_t at, int64_t row) {
      const RowStats<T> s(p, row);
      const T gv = number_of(g[at]);
      part.a += gv * ((number_of(x[at]) - s.mean) * s.rstd);
      part.b += gv;
    });
    const TwoSums<T> sums = w.total(part, shared);
    if (!w.leads()) return;
    if (a.s.n_chunks == 1) return put_weight(p, w.column, sums);
    T* const parts = static_cast<T*>(a.parts) + w.chunk * p.n + w.column;
    parts[0] = sums.a;
    parts[a.s.n_chunks * p.n] = sums.b;
  });
}
template <class T> __global__ void __launch_bounds__(kThreads)
    join_weights(const __grid_constant__ WeightArguments a) {
  const int64_t column = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (column >= a.p.n) return;
  TwoSums<T> sums = {0, 0};
  const T* const parts = static_cast<const T*>(a.parts) + column;
  for (int64_t c = 0; c < a.s.n_chunks; c++)
    sums = sums + TwoSums<T>{parts[c * a.p.n], parts[(a.s.n_chunks + c) * a.p.n]};
  put_weight(a.p, column, sums);
}

int32_t run_weights(const LayerNormBackwardPlan& p, void* stream, void* workspace) {
  const ColumnLaunch l = column_launch(p.n, p.rows, 1);
  const WeightArguments a = {l.s, p, workspace};
  const int32_t status = with_floating(p.dtype, [&](auto s) {
    return device::launch(weight_gradients<decltype(s)>, l.grid, l.block, 0, stream, a);
  });
  if (status != TT_OK || l.s.n_chunks == 1) return status;
  const auto join = p.dtype == TT_F64 ? join_weights<double> : join_weights<float>;
  return device::launch(join, blocks_for(p.n, kThreads, 1), kThreads, 0, stream, a);
}

template <class W> bool weights_are(const LayerNormPlan& p) {
  return (!p.weight && !p.bias) || p.weight_dtype == kStoredDtype<W>;
}
template <class W> bool weights_are(const LayerNormBackwardPlan& p) {
  return !p.weight || p.weight_dtype == kStoredDtype<W>;
}

}  // namespace

namespace cuda {

int32_t layer_norm(const void* plan, void* stream, void*) {
  const LayerNormPlan& p = *static_cast<const LayerNormPlan*>(plan);
  if (p.rows == 0) return TT_OK;
  return with_floating(p.dtype, [&](auto s) {
    using S = decltype(s);
    const bool aligned =
        is_aligned(p.x) && is_aligned(p.y) && is_aligned(p.weight) && is_aligned(p.bias);
    const RowLaunch l = row_launch(p.rows, p.n, 1, sizeof(S), aligned, 1);
    auto kernel = normalize<S>;
    if (l.g.held) {
      if (weights_are<S>(p)) kernel = normalize_held<S, S>;
      else if constexpr (kIsHalf<S>)
        if (weights_are<float>(p)) kernel = normalize_held<S, float>;
    }
    return device::launch(kernel, l.grid, l.block, l.shared_bytes, stream,
                          LayerNormArguments{l.g, p});
  });
}

int32_t layer_norm_backward(const void* plan, void* stream, void* workspace) {
  const LayerNormBackwardPlan& p = *static_cast<const LayerNormBackwardPlan*>(plan);
  int32_t status = TT_OK;
  if (p.dx && p.rows && p.n)
    status = with_floating(p.dtype, [&](auto s) {
      using S = decltype(s);
      const bool aligned =
          is_aligned(p.x) && is_aligned(p.g) && is_aligned(p.dx) && is_aligned(p.weight);
      const RowLaunch l = row_launch(p.rows, p.n, 1, sizeof(S), aligned, 2);
      auto kernel = row_gradients<S>;
      if (l.g.held) {
        if (weights_are<S>(p)) kernel = row_gradients_held<S, S>;
        else if constexpr (kIsHalf<S>)
          if (weights_are<float>(p)) kernel = row_gradients_held<S, float>;
      }
      return device::launch(kernel, l.grid, l.block, l.shared_bytes, stream,
                            LayerNormBackwardArguments{l.g, p});
    });
  if (status != TT_OK || !(p.dweight || p.dbias) || p.n == 0) return status;
  return run_weights(p, stream, workspace);
}
size_t layer_norm_backward_workspace(const void* plan) {
  const LayerNormBackwardPlan& p = *static_cast<const LayerNormBackwardPlan*>(plan);
  if (!(p.dweight || p.dbias) || p.n == 0) return 0;
  const ColumnShape s = column_launch(p.n, p.rows, 1).s;
  return s.n_chunks == 1 ? 0 : size_t(2 * s.n_chunks * p.n * (p.dtype == TT_F64 ? 8 : 4));
}

}  // namespace cuda
}  // namespace TT_NS
