// The primitives of row_primitives.h, compiled once for all kernels over rows.
#include "kernels/cpu/simd/row_primitives.h"

#include "kernels/cpu/reduce/extreme.h"

TT_ISA_BEGIN

template <class T> TT_INLINE Lanes<T> lanes_of(const RowSum<T>* s) {
  Lanes<T> a;
  for (int k = 0; k < a.kN; k++) a.v[k] = load(s->lane + k * kLanes<T>);
  return a;
}
template <class T> TT_INLINE void put_lanes(RowSum<T>* s, const Lanes<T>& a) {
  for (int k = 0; k < a.kN; k++) store(s->lane + k * kLanes<T>, a.v[k]);
}

// Adds n elements to the sum. f(i, s) returns s plus a vector of elements from i on; rest(i, lanes)
// adds the last ones, fewer than 64. The block is summed on its own first.
template <class T, class F, class Rest>
TT_INLINE void add_to(RowSum<T>* sum, int64_t n, const F& f, const Rest& rest) {
  Lanes<T> low;
  low.fill(0);
  int64_t i = 0;
  for (; i + kBlockLanes <= n; i += kBlockLanes) {
    each_vector<Lanes<T>::kN>([&](int k)
                                  TT_INLINE_BODY { low.v[k] = f(i + k * kLanes<T>, low.v[k]); });
  }
  if (i < n) rest(i, &low);
  Lanes<T> all = lanes_of(sum);
  all.add(low);
  put_lanes(sum, all);
}

template <class T> TT_INLINE void add_values(RowSum<T>* sum, const T* x, int64_t n) {
  add_to(
      sum, n, [x](int64_t i, Vec<T> s) TT_INLINE_BODY { return s + load(x + i); },
      [x, n](int64_t i, Lanes<T>* low) TT_INLINE_BODY { add_some(low, x + i, n - i); });
}
template <class T> TT_INLINE void add_products(RowSum<T>* sum, const T* a, const T* b, int64_t n) {
  add_to(
      sum, n,
      [a, b](int64_t i, Vec<T> s) TT_INLINE_BODY { return vfma(load(a + i), load(b + i), s); },
      [a, b, n](int64_t i, Lanes<T>* low) TT_INLINE_BODY {
        const LastLanes<T> c(a + i, n - i, 0), d(b + i, n - i, 0);
        each_vector<Lanes<T>::kN>(
            [&](int k) TT_INLINE_BODY { low->v[k] = vfma(c.get(k), d.get(k), low->v[k]); });
      });
}
template <class T> TT_INLINE void add_squares(RowSum<T>* sum, const T* x, T center, int64_t n) {
  const auto add = [center](Vec<T> v, Vec<T> s) TT_INLINE_BODY {
    const Vec<T> d = v - splat(center);
    return vfma(d, d, s);
  };
  add_to(
      sum, n, [x, &add](int64_t i, Vec<T> s) TT_INLINE_BODY { return add(load(x + i), s); },
      [x, n, center, &add](int64_t i, Lanes<T>* low) TT_INLINE_BODY {
        const LastLanes<T> last(x + i, n - i, center);
        each_vector<Lanes<T>::kN>([&](int k)
                                      TT_INLINE_BODY { low->v[k] = add(last.get(k), low->v[k]); });
      });
}

template <class T> TT_INLINE T total_of(const RowSum<T>& sum) {
  T r;
  lanes_of(&sum).fold(&r, 1);
  return r;
}

template <class T> TT_INLINE void scale(T* v, T factor, int64_t n) {
  for (int64_t i = 0; i < n; i++) v[i] *= factor;
}

// ---- columns ----

template <class T> TT_INLINE void repeat(T* v, const Columns& c) {
  for (int64_t i = c.n; i < c.n * c.copies; i++) {
    v[i] = v[i - c.n];
    TT_SCALAR_LOOP;
  }
}

template <class T> TT_INLINE void find_tops(T* top, const char* x, const Columns& c) {
  alignas(64) T buffer[kRowTile];
  for (int64_t j = 0; j < c.n * c.copies; j++) top[j] = kMinusInfinity<T>;
  for_columns(c, [&](int64_t, int64_t at, int64_t n) {
    const T* v = RowIn<T>{x + at, c.dtype}.get(0, n, buffer);
    TT_VECTORIZE
    for (int64_t j = 0; j < n; j++) top[j] = max(v[j], top[j]);
  });
  for (int64_t i = c.n; i < c.n * c.copies; i++) {
    top[i % c.n] = top[i] > top[i % c.n] ? top[i] : top[i % c.n];
    TT_SCALAR_LOOP;
  }
  repeat(top, c);
}

// Sums down columns: floats in double, doubles compensated as in RunningSum.
template <class T> struct ColumnSums {
  alignas(64) double sum[kRowTile], lost[sizeof(T) == 8 ? kRowTile : 1];

  TT_INLINE explicit ColumnSums(const Columns& c) {
    for (int64_t j = 0; j < c.n * c.copies; j++) {
      sum[j] = 0;
      if constexpr (sizeof(T) == 8) lost[j] = 0;
    }
  }
  TT_INLINE void add(const T* v, int64_t n) {
    TT_VECTORIZE
    for (int64_t j = 0; j < n; j++) {
      if constexpr (sizeof(T) == 4) {
        sum[j] += double(v[j]);
      } else {
        const double x = v[j];
        const double was = sum[j];
        const double next = was + x;
        const double rounded = next - was;
        const double error = lost[j] + ((was - (next - rounded)) + (x - rounded));
        sum[j] = next;
        lost[j] = next - next == 0 ? error : 0;
      }
    }
  }
  TT_INLINE void put(T* out, const Columns& c) const {
    for (int64_t j = 0; j < c.n; j++) {
      RunningSum<double> all;
      for (int64_t i = j; i < c.n * c.copies; i += c.n) {
        all.add(sum[i]);
        if constexpr (sizeof(T) == 8) all.lost += lost[i];
        TT_SCALAR_LOOP;
      }
      out[j] = T(all.with(0));
    }
    repeat(out, c);
  }
};

template <class T>
TT_INLINE void sum_exps(T* out, const T* top, const char* x, char* kept, const Columns& c) {
  alignas(64) T in[kRowTile], e[kRowTile], shift[kRowTile];
  ColumnSums<T> sums(c);
  for (int64_t j = 0; j < c.n * c.copies; j++)
    shift[j] = top[j] == kMinusInfinity<T> ? T(0) : top[j];
  for_columns(c, [&](int64_t, int64_t at, int64_t n) {
    T* y = kept ? reinterpret_cast<T*>(kept + at) : e;
    column_exp(y, RowIn<T>{x + at, c.dtype}.get(0, n, in), shift, n);
    sums.add(y, n);
  });
  sums.put(out, c);
}
template <class T>
TT_INLINE void sum_columns(T* out, const char* g, const char* y, const Columns& c) {
  alignas(64) T gs[kRowTile], ys[kRowTile], products[kRowTile];
  ColumnSums<T> sums(c);
  for_columns(c, [&](int64_t, int64_t at, int64_t n) {
    const T* v = RowIn<T>{g + at, c.dtype}.get(0, n, gs);
    if (y) {
      const T* w = RowIn<T>{y + at, c.dtype}.get(0, n, ys);
      TT_VECTORIZE
      for (int64_t j = 0; j < n; j++) products[j] = v[j] * w[j];
      v = products;
    }
    sums.add(v, n);
  });
  sums.put(out, c);
}

template <class T>
TT_INLINE void join_all(const double* tops, const double* sums, int64_t n, T* top, T* sum) {
  T t[kMaxRowChunks] = {};
  T e[kMaxRowChunks];
  T largest = kMinusInfinity<T>;
  RowSum<T> unused;
  for (int64_t k = 0; k < n; k++) {
    t[k] = T(tops[k]);
    largest = max(t[k], largest);
    TT_SCALAR_LOOP;
  }
  row_exp(e, t, largest == kMinusInfinity<T> ? T(0) : largest, n, &unused);
  RunningSum<double> total;
  for (int64_t k = 0; k < n; k++) {
    total.add(sums[k] * double(e[k]));
    TT_SCALAR_LOOP;
  }
  *top = largest;
  *sum = T(total.with(0));
}

#if defined(__AVX512F__)
TT_INLINE __mmask16 rest_of(int64_t n) {
  return n >= 16 ? __mmask16(-1) : __mmask16((1u << n) - 1);
}
#endif

#if TT_VECTOR_MATH
TT_INLINE F32v exp_of(F32v x, F32v shift) { return F32v(math::exp(__m512(x - shift))); }

// Adds e = exp(x - shift) to the sum. kKept: stores e in y. kAhead: prefetches memory from `ahead`
// on.
template <bool kKept, bool kAhead> TT_INLINE void exp_sum(float* y, const float* x, float shift,
                                                          int64_t n, RowSum<float>* sum,
                                                          const char* ahead) {
  const F32v s = splat(shift);
  Lanes<float> low;
  low.fill(0);
  int64_t i = 0;
  for (; i + kBlockLanes <= n; i += kBlockLanes) {
    TT_UNROLL_BY(4)
    for (int k = 0; k < 4; k++) {
      const F32v e = exp_of(load(x + i + k * 16), s);
      if constexpr (kKept) store(y + i + k * 16, e);
      if constexpr (kAhead) TT_PREFETCH(ahead + (i + k * 16) * 4);
      low.v[k] += e;
    }
  }
  TT_UNROLL_BY(4)
  for (int k = 0; k < 4; k++) {  // unrolled, so that the lanes stay in registers
    if (i >= n) break;
    const __mmask16 rest = rest_of(n - i);
    const F32v e = exp_of(F32v(_mm512_maskz_loadu_ps(rest, x + i)), s);
    if constexpr (kKept) _mm512_mask_storeu_ps(y + i, rest, __m512(e));
    low.v[k] += F32v(_mm512_maskz_mov_ps(rest, __m512(e)));
    i += 16;
  }
  Lanes<float> all = lanes_of(sum);
  all.add(low);
  put_lanes(sum, all);
}
#endif

TT_ISA_END

TT_ENTRY_BEGIN

float row_max(const float* x, int64_t n, float start) noexcept {
#if defined(__AVX512F__)
  if (n <= 64) {  // a NaN in the first operand gives the second
    const __m512 s = _mm512_set1_ps(start);
    __m512 m = s;
    for (int64_t i = 0; i < n; i += 16)
      m = _mm512_max_ps(_mm512_mask_loadu_ps(s, rest_of(n - i), x + i), m);
    return _mm512_reduce_max_ps(m);
  }
#endif
  return extreme<true, false>(x, n, start);
}

double row_max(const double* x, int64_t n, double start) noexcept {
  double lane[8];
  for (int l = 0; l < 8; l++) lane[l] = start;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; l++) lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
  for (int l = 0; i < n; i++, l++) {
    lane[l] = max(x[i], lane[l]);
    TT_SCALAR_LOOP;
  }
  for (int l = 1; l < 8; l++) {
    lane[0] = max(lane[l], lane[0]);
    TT_SCALAR_LOOP;
  }
  return lane[0];
}

#if TT_VECTOR_MATH
void row_exp(float* y, const float* x, float shift, int64_t n, RowSum<float>* sum,
             const char* ahead) noexcept {
  if (ahead) exp_sum<true, true>(y, x, shift, n, sum, ahead);
  else exp_sum<true, false>(y, x, shift, n, sum, nullptr);
}

void row_add_exp(RowSum<float>* sum, const float* x, float shift, int64_t n,
                 const char* ahead) noexcept {
  exp_sum<false, true>(nullptr, x, shift, n, sum, ahead);
}

void column_exp(float* y, const float* x, const float* shift, int64_t n) noexcept {
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 rest = rest_of(n - i);
    const F32v v = F32v(_mm512_maskz_loadu_ps(rest, x + i));
    const F32v s = F32v(_mm512_maskz_loadu_ps(rest, shift + i));
    _mm512_mask_storeu_ps(y + i, rest, __m512(exp_of(v, s)));
  }
}
#else
void row_exp(float* y, const float* x, float shift, int64_t n, RowSum<float>* sum,
             const char*) noexcept {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) y[i] = math::exp(x[i] - shift);
  add_values(sum, y, n);
}

void row_add_exp(RowSum<float>* sum, const float* x, float shift, int64_t n, const char*) noexcept {
  alignas(64) float e[kRowBlock];
  row_exp(e, x, shift, n, sum);
}

void column_exp(float* y, const float* x, const float* shift, int64_t n) noexcept {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) y[i] = math::exp(x[i] - shift[i]);
}
#endif

void row_exp(double* y, const double* x, double shift, int64_t n, RowSum<double>* sum,
             const char*) noexcept {
  for (int64_t i = 0; i < n; i++) y[i] = math::exp(x[i] - shift);
  add_values(sum, y, n);
}

void row_add_exp(RowSum<double>* sum, const double* x, double shift, int64_t n,
                 const char*) noexcept {
  alignas(64) double e[kRowBlock];
  row_exp(e, x, shift, n, sum);
}

void column_exp(double* y, const double* x, const double* shift, int64_t n) noexcept {
  for (int64_t i = 0; i < n; i++) y[i] = math::exp(x[i] - shift[i]);
}

void columns_max(float* top, const char* x, const Columns& c) noexcept { find_tops(top, x, c); }
void columns_max(double* top, const char* x, const Columns& c) noexcept { find_tops(top, x, c); }
void columns_sum_exp(float* sum, const float* top, const char* x, char* kept,
                     const Columns& c) noexcept {
  sum_exps(sum, top, x, kept, c);
}
void columns_sum_exp(double* sum, const double* top, const char* x, char* kept,
                     const Columns& c) noexcept {
  sum_exps(sum, top, x, kept, c);
}
void columns_sum(float* sum, const char* g, const char* y, const Columns& c) noexcept {
  sum_columns(sum, g, y, c);
}
void columns_sum(double* sum, const char* g, const char* y, const Columns& c) noexcept {
  sum_columns(sum, g, y, c);
}
void join_exps(const double* tops, const double* sums, int64_t n, float* top, float* sum) noexcept {
  join_all(tops, sums, n, top, sum);
}
void join_exps(const double* tops, const double* sums, int64_t n, double* top,
               double* sum) noexcept {
  join_all(tops, sums, n, top, sum);
}
void columns_repeat(float* v, const Columns& c) noexcept { repeat(v, c); }
void columns_repeat(double* v, const Columns& c) noexcept { repeat(v, c); }

void row_add(RowSum<float>* sum, const float* x, int64_t n) noexcept { add_values(sum, x, n); }
void row_add(RowSum<double>* sum, const double* x, int64_t n) noexcept { add_values(sum, x, n); }
void row_add_products(RowSum<float>* sum, const float* a, const float* b, int64_t n) noexcept {
  add_products(sum, a, b, n);
}
void row_add_products(RowSum<double>* sum, const double* a, const double* b, int64_t n) noexcept {
  add_products(sum, a, b, n);
}
void row_add_squares(RowSum<float>* sum, const float* x, float center, int64_t n) noexcept {
  add_squares(sum, x, center, n);
}
void row_add_squares(RowSum<double>* sum, const double* x, double center, int64_t n) noexcept {
  add_squares(sum, x, center, n);
}
void row_scale(float* v, float factor, int64_t n) noexcept { scale(v, factor, n); }
void row_scale(double* v, double factor, int64_t n) noexcept { scale(v, factor, n); }
float row_total(const RowSum<float>& sum) noexcept { return total_of(sum); }
double row_total(const RowSum<double>& sum) noexcept { return total_of(sum); }

TT_ENTRY_END
