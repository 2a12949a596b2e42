// reduce_sum: sums and means of every dtype.
#include "kernels/cpu/math/math.h"
#include "kernels/cpu/reduce/walk.h"
#include "kernels/cpu/simd/short_rows.h"

TT_ISA_BEGIN

// Adds what is left of a stream to acc, a block at a time. parts: numbers of an element.
template <class Real, auto kAdd>
TT_NOINLINE Lanes<Real> sum_of_blocks(Stream& stream, Lanes<Real> acc, int64_t parts) {
  Cascade<Real> cascade;
  const Real* x = nullptr;
  cascade.push(acc);
  while (const int64_t n = stream.next(&x)) {
    acc.fill(0);
    kAdd(&acc, x, n * parts);
    cascade.push(acc);
  }
  return cascade.total();
}

// Sums of columns, n numbers of each row; low, high: [n]. Eight rows are added as a tree into low;
// after kFlush of them, low is added to high. A column has at most kReduceMaxColumnSplit rows, so
// errors stay small.
template <class Real> struct ColumnSums {
  static constexpr int kRows = 8;
  static constexpr int kFlush = 16;
  alignas(64) Real low[kReduceMaxTile / sizeof(Real)], high[kReduceMaxTile / sizeof(Real)];
  int pending;

  TT_INLINE void start(int64_t n) {
    for (int64_t i = 0; i < n; i++) low[i] = high[i] = 0;
    pending = 0;
  }
  TT_INLINE void add(const void* const* row, int k, int64_t n) {
    if (k == kRows) {
      const Real* r[kRows];
      for (int i = 0; i < kRows; i++) r[i] = static_cast<const Real*>(row[i]);
      for (int64_t i = 0; i < n; i++)
        low[i] += ((r[0][i] + r[1][i]) + (r[2][i] + r[3][i])) +
                  ((r[4][i] + r[5][i]) + (r[6][i] + r[7][i]));
    } else {
      for (int j = 0; j < k; j++) {
        const Real* r = static_cast<const Real*>(row[j]);
        for (int64_t i = 0; i < n; i++) low[i] += r[i];
      }
    }
    if (++pending < kFlush) return;
    pending = 0;
    for (int64_t i = 0; i < n; i++) {
      high[i] += low[i];
      low[i] = 0;
    }
  }
};

// An element is kParts numbers of type Real: 1, or 2 for complex.
template <class Elem, class Real> struct Sum {
  using T = Elem;
  using P = Elem;
  static constexpr int kRows = ColumnSums<Real>::kRows;
  static constexpr int kParts = int(sizeof(Elem) / sizeof(Real));
  static constexpr bool kFloats = Real(0.5) != 0;
  static constexpr bool kPuts = kParts == 1;

  static P row(Stream& stream, int64_t) { return row_by<add_run<Real, Itself>>(stream); }
  template <auto kAdd> static TT_INLINE P row_by(Stream& stream) {
    const T* x = nullptr;
    const int64_t n = stream.next(&x);
    Lanes<Real> acc;
    acc.fill(0);
    kAdd(&acc, reinterpret_cast<const Real*>(x), n * kParts);
    if (stream.left) acc = sum_of_blocks<Real, kAdd>(stream, acc, kParts);
    T r;
    acc.fold(reinterpret_cast<Real*>(&r), kParts);
    return r;
  }

  struct Columns : ColumnSums<Real> {
    using ColumnSums<Real>::low;
    using ColumnSums<Real>::high;

    void start(const ReduceOps&, int64_t n, int64_t) { ColumnSums<Real>::start(n * kParts); }
    void rows(const T* const* row, int k, int64_t n, int64_t) {
      const auto* const rows = reinterpret_cast<const void* const*>(row);
      if constexpr (kParts == 1) this->add(rows, k, n);
      else
        Parts<Sum<Real, Real>>::rows(static_cast<ColumnSums<Real>*>(this), rows, k, n * kParts, 0);
    }
    void put(const ReducePlan& p, const ReduceOps&, int64_t n, T* out) const {
      if constexpr (kFloats && kPuts) {
        for (int64_t i = 0; i < n; i++) out[i] = (high[i] + low[i]) / Real(p.divisor);
      } else if constexpr (kPuts) {
        for (int64_t i = 0; i < n; i++) out[i] = T(high[i] + low[i]);
      }
    }
    P get(int64_t i) const {
      T r;
      Real part[kParts];
      for (int j = 0; j < kParts; j++) part[j] = high[i * kParts + j] + low[i * kParts + j];
      memcpy(&r, part, sizeof r);
      return r;
    }
  };

  static TT_INLINE P combine(P a, P b) {
    Real x[kParts], y[kParts];
    memcpy(x, &a, sizeof a);
    memcpy(y, &b, sizeof b);
    for (int j = 0; j < kParts; j++) x[j] += y[j];
    memcpy(&a, x, sizeof a);
    return a;
  }
  static TT_INLINE void finish(const ReducePlan& p, const ReduceOps&, P r, char* out, char*) {
    Real x[kParts];
    memcpy(x, &r, sizeof r);
    if constexpr (kFloats)
      for (int j = 0; j < kParts; j++) x[j] /= Real(p.divisor);
    memcpy(&r, x, sizeof r);
    store_one(out, r, p.out_dtype);
  }
};

// Short rows of floats to floats: the result of row() and finish() without the walk.
TT_INLINE bool is_short(const ReducePlan& p) {
  return p.length < kFewToSum && p.length > 0 && p.dtype == TT_F32 && p.out_dtype == TT_F32 &&
         p.path == kReduceRows && p.n_red == 1 && p.red_stride[0] == 4 && p.n_kept <= 1 &&
         p.splits == 1;
}
#if TT_VECTOR_MATH
// Rows of 17 to 31 floats, which other instruction sets transpose: sixteen rows at a time here.
TT_INLINE bool is_wide_column_tile(const ReducePlan& p) {
  return p.path == kReduceColumns && p.length > 16 && p.length < 32 && p.dtype == TT_F32 &&
         p.out_dtype == TT_F32 && p.n_red == 1 && p.red_stride[0] == 4 && p.n_kept == 1 &&
         p.out_stride[0] == 4 && p.splits == 1;
}
// Sixteen rows at a time, of at most 64 floats; returns the first output that is left.
TT_NOINLINE int64_t sum_sixteens(const ReducePlan& p, int64_t begin, int64_t end) {
  const int64_t step = p.n_kept ? p.kept_stride[0] : 0;
  int64_t o = begin;
  with_short_row(p.length, [&](auto row) TT_INLINE_BODY {
    for (; o + 16 <= end; o += 16) {
      const F32v sums = fold_rows([&](int i) TT_INLINE_BODY {
        F32v v[row.kN];
        const float* x = reinterpret_cast<const float*>(p.in + (o + i) * step);
        TT_UNROLL_BY(4)
        for (int k = 0; k < row.kN; k++) v[k] = row.get(x, k);
        return add_vectors<row.kN>(v);
      });
      store(reinterpret_cast<float*>(p.out + o * 4), F32v(sums / splat(float(p.divisor))));
    }
  });
  return o;
}
#else
TT_INLINE bool is_wide_column_tile(const ReducePlan&) { return false; }
inline int64_t sum_sixteens(const ReducePlan&, int64_t begin, int64_t) { return begin; }
#endif
template <class Term> TT_NOINLINE void sum_short(const ReducePlan& p, int64_t begin, int64_t end) {
  const int64_t step = p.n_kept ? p.kept_stride[0] : 0;
  const int64_t out_step = p.n_kept ? p.out_stride[0] : 0;
  const int64_t n = p.length;
  if constexpr (kIsSame<Term, Itself>)
    if (n <= kShortRow && out_step == 4) begin = sum_sixteens(p, begin, end);
  for (int64_t o = begin; o < end; o++) {
    const float* x = reinterpret_cast<const float*>(p.in + o * step);
    const float mean = sum_few<Term>(x, n) / float(p.divisor);
    const float r = p.root ? math::sqrt(mean) : mean;
    memcpy(p.out + o * out_step, &r, 4);
  }
}

// Sums of terms that are computed as elements are loaded.
template <class E> struct TermSum : Sum<E, E> {
  static TT_INLINE void finish(const ReducePlan& p, const ReduceOps&, E r, char* out, char*) {
    r /= E(p.divisor);
    store_one(out, p.root ? math::sqrt(r) : r, p.out_dtype);
  }
};
template <class E> constexpr ReduceOps kTermSum = [] {
  ReduceOps parts = kParts<Sum<E, E>>;
  parts.put = nullptr;
  parts.finish = Parts<TermSum<E>>::finish;
  return parts;
}();
template <class E, ReduceTerm kTerm> TT_INLINE E term_of(E x) {
  if constexpr (kTerm == kReduceNonzero) return x != E(0) ? E(1) : E(0);
  else if constexpr (kTerm == kReduceMagnitudes) return math::fabs(x);
  else return x * x;
}
template <class E, ReduceTerm kTerm>
void load_terms(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept {
  E* terms = static_cast<E*>(dst);
  if (dtype == Loads<E>::native && stride == sizeof(E)) {
    const E* x = reinterpret_cast<const E*>(src);
    for (int64_t i = 0; i < n; i++) terms[i] = term_of<E, kTerm>(x[i]);
    return;
  }
  load_run(terms, src, stride, n, dtype);
  for (int64_t i = 0; i < n; i++) terms[i] = term_of<E, kTerm>(terms[i]);
}
template <class E, ReduceTerm kTerm> constexpr ReduceOps kTermParts = [] {
  ReduceOps parts = kTermSum<E>;
  parts.load = load_terms<E, kTerm>;
  parts.native = 0;
  return parts;
}();
template <class E> int32_t run_terms(const ReducePlan& p, int64_t begin, int64_t end) {
  switch (p.term) {
    case kReduceNonzero: return run_reduce(kTermParts<E, kReduceNonzero>, p, begin, end);
    case kReduceMagnitudes: return run_reduce(kTermParts<E, kReduceMagnitudes>, p, begin, end);
    case kReduceSquares: return run_reduce(kTermParts<E, kReduceSquares>, p, begin, end);
    default: return TT_NOT_IMPLEMENTED;
  }
}

#if TT_VEC_BYTES > 32
// Rows of floats, whose terms need no array of their own; shorter vectors would take 10 kB for it.
struct Number {  // nan counts as 0
  static TT_INLINE F32v of(F32v x) { return chosen(x == x, x, F32v{}); }
};
struct Square {
  static TT_INLINE F32v of(F32v x) { return x * x; }
};
template <class Term> constexpr ReduceOps kRowParts = [] {
  ReduceOps parts = kTermSum<float>;
  parts.rows_at_once = 0;  // columns would add elements, not terms
  parts.row = [](Stream& stream, int64_t, void* partial) noexcept {
    *static_cast<float*>(partial) = Sum<float, float>::row_by<add_run<float, Term>>(stream);
  };
  return parts;
}();
template <class Term> int32_t sum_rows(const ReducePlan& p, int64_t begin, int64_t end) {
  if (!is_short(p)) return run_reduce(kRowParts<Term>, p, begin, end);
  sum_short<Term>(p, begin, end);
  return TT_OK;
}
inline int32_t sum_squares(const ReducePlan& p, int64_t begin, int64_t end) {
  // short rows of other strides or dtypes are transposed
  if (p.length <= kShortRow && !is_short(p)) return run_terms<float>(p, begin, end);
  return sum_rows<Square>(p, begin, end);
}
inline int32_t sum_numbers(const ReducePlan& p, int64_t begin, int64_t end) {
  return sum_rows<Number>(p, begin, end);
}
#else
// Sums in which nan counts as 0, in the order of add_run().
TT_NOINLINE void add_numbers(Lanes<float>* acc, const float* x, int64_t n) {
  constexpr int64_t kGroup = 16 * kBlockLanes;
  alignas(64) float numbers[kGroup];
  for (int64_t i = 0; i < n; i += kGroup) {
    const int64_t some = min(n - i, kGroup);
    for (int64_t k = 0; k < some; k++) numbers[k] = x[i + k] == x[i + k] ? x[i + k] : 0;
    add_run(acc, numbers, some);
  }
}
constexpr ReduceOps kNumberParts = [] {
  ReduceOps parts = kParts<Sum<float, float>>;
  parts.rows_at_once = 0;  // columns would add nan
  parts.row = [](Stream& stream, int64_t, void* partial) noexcept {
    *static_cast<float*>(partial) = Sum<float, float>::row_by<add_numbers>(stream);
  };
  return parts;
}();
inline int32_t sum_numbers(const ReducePlan& p, int64_t begin, int64_t end) {
  return run_reduce(kNumberParts, p, begin, end);
}
inline int32_t sum_squares(const ReducePlan& p, int64_t begin, int64_t end) {
  return run_terms<float>(p, begin, end);
}
#endif

// Loads as double: numbers of fewer bytes by way of float32, in the second half of dst.
void load_double(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept {
  if (dtype == TT_F64) return Loads<double>::run(dst, src, stride, n, dtype);
  char* const singles = static_cast<char*>(dst) + n * int64_t(sizeof(float));
  Loads<float>::run(singles, src, stride, n, dtype);
  for (int64_t i = 0; i < n; i++) {
    float x;
    memcpy(&x, singles + i * int64_t(sizeof x), sizeof x);
    put(static_cast<char*>(dst) + i * int64_t(sizeof(double)), double(x));
    TT_SCALAR_LOOP;
  }
}

// Devices without kernels of their own run those of the baseline, which has the shortest vectors.
constexpr bool kServesDevices = kLanes<float> < 8;

// Sums of terms (ReduceTerm); units are outputs. For such devices.
struct Terms {
  static constexpr ReduceOps kOps = {.load = load_double,
                                     .native = Loads<double>::native,
                                     .item = 8,
                                     .partial = 0,
                                     .rows_at_once = 0,
                                     .any_order = false,
                                     .flip = 0,
                                     .row = nullptr,
                                     .start = nullptr,
                                     .rows = nullptr,
                                     .get = nullptr,
                                     .combine = nullptr,
                                     .put = nullptr,
                                     .finish = nullptr};
  static double term_of(const ReducePlan& p, int32_t term, double x, double from) {
    const double d = x - from;
    switch (term) {
      case kReduceElements: return x;
      case kReduceCentred:
      case kReduceSquares: return d * d;
      case kReduceNumbers: return x == x ? x : 0;
      case kReduceNonzero: return x != 0;
      case kReducePowers: return libm::pow(libm::fabs(x), p.order);
      case kReduceExponentials: return libm::exp(d);
      default: return libm::fabs(x);
    }
  }
  // The sum of the terms of a sequence, or their largest or smallest one. from: what is subtracted
  // from each element first.
  static TT_NOINLINE double total(const ReducePlan& p, const char* base, int32_t term,
                                  double from) {
    Stream stream(p, kOps, base, 0, p.length);
    double sum = term == kReduceSmallest ? kInf : 0;
    const double* x = nullptr;
    while (const int64_t n = stream.next(&x)) {
      for (int64_t i = 0; i < n; i++) {
        const double t = term_of(p, term, x[i], from);
        if (term == kReduceLargest) sum = t > sum || t != t ? t : sum;
        else if (term == kReduceSmallest) sum = t < sum || t != t ? t : sum;
        else sum += t;
        TT_SCALAR_LOOP;
      }
    }
    return sum;
  }
  // The largest element, or the finite number that is nearest to it.
  static constexpr double kMaxFinite = 0x1.fffffffffffffp1023;
  static TT_NOINLINE double finite_max(const ReducePlan& p, const char* base) {
    Stream stream(p, kOps, base, 0, p.length);
    double top = -kMaxFinite;
    const double* x = nullptr;
    while (const int64_t n = stream.next(&x)) {
      for (int64_t i = 0; i < n; i++) {
        if (x[i] > top) top = x[i];
        TT_SCALAR_LOOP;
      }
    }
    return min(top, kMaxFinite);
  }
};
void store_total(char* p, double v, int32_t dtype) {
  if (dtype == TT_F64) store_one(p, v, dtype);
  else store_one(p, float(v), dtype);
}
[[maybe_unused]] TT_NOINLINE int32_t sum_terms(const ReducePlan& p, int64_t begin, int64_t end) {
  if (!is_built(TT_F64)) return TT_NOT_IMPLEMENTED;
  Odometer at;
  at.start(p.kept_size, 0, p.n_kept, begin);
  for (int64_t o = begin; o < end; o++) {
    const char* in = p.in + at.offset(p.kept_stride);
    double from = 0;
    if (p.term == kReduceCentred) from = Terms::total(p, in, kReduceElements, 0) / double(p.length);
    if (p.term == kReduceExponentials) from = Terms::finite_max(p, in);
    double result = Terms::total(p, in, p.term, from) / p.divisor;
    if (p.root) result = libm::sqrt(result);
    if (p.term == kReducePowers) result = libm::pow(result, 1 / p.order);
    if (p.term == kReduceExponentials) result = libm::log(result) + from;
    store_total(p.out + at.offset(p.out_stride), result, p.out_dtype);
    if (p.index) store_total(p.index + at.offset(p.index_stride), from, p.out_dtype);
    int64_t unused = 0;
    at.step(p.kept_stride, &unused);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(reduce_sum)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ReducePlan& p = *static_cast<const ReducePlan*>(plan);
  if (p.by_output) {
    if constexpr (kServesDevices) return sum_terms(p, begin, end);
    return TT_NOT_IMPLEMENTED;
  }
  if (p.term != kReduceElements) {
    const bool rows = p.path == kReduceRows && p.dtype != TT_F64;
    if (p.term == kReduceNumbers) return rows ? sum_numbers(p, begin, end) : TT_NOT_IMPLEMENTED;
    if (rows && p.term == kReduceSquares) return sum_squares(p, begin, end);
    if (p.dtype != TT_F64) return run_terms<float>(p, begin, end);
    return is_built(TT_F64) ? run_terms<double>(p, begin, end) : TT_NOT_IMPLEMENTED;
  }
  if (is_short(p)) {
    sum_short<Itself>(p, begin, end);
    return TT_OK;
  }
  if (is_wide_column_tile(p)) {
    sum_short<Itself>(p, begin * p.tile, min(end * p.tile, p.n_out));
    return TT_OK;
  }
  switch (p.dtype) {
    case TT_F16:
    case TT_BF16:
    case TT_F32: return run_reduce(kParts<Sum<float, float>>, p, begin, end);
    case TT_F64:
      if (is_built(TT_F64)) return run_reduce(kParts<Sum<double, double>>, p, begin, end);
      break;
    case TT_C64:
      if (is_built(TT_C64)) return run_reduce(kParts<Sum<C64, float>>, p, begin, end);
      break;
    case TT_C128:
      if (is_built(TT_C128)) return run_reduce(kParts<Sum<C128, double>>, p, begin, end);
      break;
    default: return run_reduce(kParts<Sum<int64_t, uint64_t>>, p, begin, end);
  }
  return TT_NOT_IMPLEMENTED;
}

TT_ENTRY_END
