// cummax, cummin and logcumsumexp along any dimension of a contiguous array [outer][dim][inner].
// A unit is a tile of kRowTile inner positions of one outer index, walked along dim.
#include "kernels/cpu/simd/isa.h"

#include "kernels/cpu/math/math.h"
#include "kernels/cpu/simd/load.h"
#include "plan/scan_plan.h"

TT_ISA_BEGIN

// A later element that equals the best one replaces it, and so does every nan.
template <class V, bool kSmallest> TT_INLINE bool replaces(V x, V best) {
  const bool at_least_as_good = kSmallest ? x <= best : x >= best;
  return at_least_as_good | (x != x);
}
// Few elements of a row replace the best one: a predicted branch costs less than a selection.
template <class V, bool kSmallest>
TT_INLINE void extremes_of_row(const V* in, int64_t* out, V* values, int64_t n) {
  V best = in[0];
  int64_t index = 0;
  for (int64_t i = 0; i < n; i++) {
    if (replaces<V, kSmallest>(in[i], best)) {
      best = in[i];
      index = i;
    }
    out[i] = index;
    values[i] = best;
    TT_SCALAR_LOOP;
  }
}
// n <= kRowTile columns of `steps` rows, rows `step` elements apart.
template <class V, bool kSmallest> TT_INLINE void extremes_of_tile(const V* in, int64_t* out,
                                                                   V* values, int64_t steps,
                                                                   int64_t step, int64_t n) {
  V best[kRowTile];
  int64_t index[kRowTile];
  for (int64_t j = 0; j < n; j++) {
    best[j] = in[j];
    index[j] = 0;
  }
  for (int64_t i = 0; i < steps; i++, in += step, out += step, values += step) {
    TT_VECTORIZE
    for (int64_t j = 0; j < n; j++) {
      const V x = in[j];
      const bool is_next = replaces<V, kSmallest>(x, best[j]);
      best[j] = is_next ? x : best[j];
      index[j] = is_next ? i : index[j];
      out[j] = index[j];
      values[j] = best[j];
    }
  }
}
template <class V, bool kSmallest>
TT_NOINLINE int32_t extremes(const CumExtremePlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) {
    const int64_t column = u % p.n_tiles * kRowTile;
    const int64_t n = min(p.inner - column, kRowTile);
    const int64_t at = u / p.n_tiles * p.dim * p.inner + column;
    const V* in = reinterpret_cast<const V*>(p.in) + at;
    int64_t* indices = p.indices + at;
    V* values = reinterpret_cast<V*>(p.values) + at;
    if (p.inner == 1) {
      extremes_of_row<V, kSmallest>(in, indices, values, p.dim);
    } else {
      extremes_of_tile<V, kSmallest>(in, indices, values, p.dim, p.inner, n);
    }
  }
  return TT_OK;
}
template <class V>
TT_INLINE int32_t max_or_min(const CumExtremePlan& p, int64_t begin, int64_t end) {
  return p.smallest ? extremes<V, true>(p, begin, end) : extremes<V, false>(p, begin, end);
}

// The sum of exponentials so far is sum * exp(top); sum is in double.
template <class V> TT_NOINLINE int32_t log_sums(const LogSumPlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) {
    const int64_t column = u % p.n_tiles * kRowTile;
    const int64_t n = min(p.inner - column, kRowTile);
    const int64_t at = u / p.n_tiles * p.dim * p.inner + column;
    const V* in = reinterpret_cast<const V*>(p.in) + at;
    V* out = reinterpret_cast<V*>(p.out) + at;
    double top[kRowTile];
    double sum[kRowTile];
    for (int64_t j = 0; j < n; j++) {
      top[j] = -kInf;
      sum[j] = 0;
    }
    for (int64_t i = 0; i < p.dim; i++, in += p.inner, out += p.inner)
      for (int64_t j = 0; j < n; j++) {
        const double x = double(in[j]);
        if (x == top[j]) {  // also of infinities
          sum[j] += 1;
        } else if (x < top[j]) {
          sum[j] += math::exp(x - top[j]);
        } else {
          sum[j] = sum[j] * math::exp(top[j] - x) + 1;
          top[j] = x;
        }
        out[j] = V(top[j] + math::log(sum[j]));
        TT_SCALAR_LOOP;
      }
  }
  return TT_OK;
}

// log(exp(x) + exp(y)). Its phase is that of the larger term plus a rotation by at most pi, as in
// PyTorch: phases are not wrapped to (-pi, pi].
TT_INLINE C128 log_add(C128 x, C128 y) {
  const C128 low = x.re < y.re ? x : y;
  const C128 high = x.re < y.re ? y : x;
  if (x.re != x.re || x.im != x.im || y.re != y.re || y.im != y.im) return {kNan, kNan};
  const bool infinite = low.re == high.re && libm::is_infinite(high.re);
  if (infinite && high.re < 0) return low;
  const double size = infinite ? 1.0 : libm::exp(low.re - high.re);
  const double a = size * libm::cos(low.im - high.im);
  const double b = size * libm::sin(low.im - high.im);
  return {0.5 * libm::log1p(a * (2.0 + a) + b * b) + high.re, libm::atan2(b, 1.0 + a) + high.im};
}
template <class C> TT_NOINLINE int32_t log_sums_complex(const LogSumPlan& p, int64_t u) {
  const int64_t column = u % p.n_tiles * kRowTile;
  const int64_t n = min(p.inner - column, kRowTile);
  const int64_t at = u / p.n_tiles * p.dim * p.inner + column;
  const C* in = reinterpret_cast<const C*>(p.in) + at;
  C* out = reinterpret_cast<C*>(p.out) + at;
  C128 sum[kRowTile];
  for (int64_t i = 0; i < p.dim; i++, in += p.inner, out += p.inner)
    for (int64_t j = 0; j < n; j++) {
      const C128 x = {in[j].re, in[j].im};
      sum[j] = i ? log_add(sum[j], x) : x;
      out[j] = {decltype(C::re)(sum[j].re), decltype(C::re)(sum[j].im)};
    }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(cummax)(const void* plan, int64_t begin, int64_t end) noexcept {
  const CumExtremePlan& p = *static_cast<const CumExtremePlan*>(plan);
  if (p.dtype == TT_F32) return max_or_min<float>(p, begin, end);
  return p.dtype == TT_F64 ? max_or_min<double>(p, begin, end) : max_or_min<int64_t>(p, begin, end);
}

TT_KERNEL(logcumsumexp)(const void* plan, int64_t begin, int64_t end) noexcept {
  const LogSumPlan& p = *static_cast<const LogSumPlan*>(plan);
  if (p.dtype == TT_C64 || p.dtype == TT_C128) {
    for (int64_t u = begin; u < end; u++)
      p.dtype == TT_C64 ? log_sums_complex<C64>(p, u) : log_sums_complex<C128>(p, u);
    return TT_OK;
  }
  return p.dtype == TT_F32 ? log_sums<float>(p, begin, end) : log_sums<double>(p, begin, end);
}

TT_ENTRY_END
