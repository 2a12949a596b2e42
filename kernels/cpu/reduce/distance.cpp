// row_distances: the norms of order p of the differences between rows of two matrices.
//   x1 (batch, n, m), x2 (batch, r, m), y (batch, n, r) or, for pairs, (batch, n (n - 1) / 2)
//
//   x2       kWidth rows, of at most kDepth elements at a time
//     | transpose
//   panel    (depth, kWidth): a lane for each row of x2
//     | each row of x1, repeated in all lanes
//   sums     (kDistanceRows, kWidth)
//     | finish
//   y
//
// row_distances_backward: a row of dx is the sum over the rows of x2 of a weight times a function
// of the differences, a lane for each column. Of pairs each is visited once, for both rows.
#include "kernels/cpu/simd/vec.h"
#include "plan/elementwise_plan.h"
#include "plan/reduce_plan.h"

TT_ENTRY_BEGIN
int32_t pow_scalar(const void* plan, int64_t begin, int64_t end) noexcept;  // elementwise/arith.cpp
TT_ENTRY_END

TT_ISA_BEGIN

constexpr int64_t kDepth = 128;
template <class T> constexpr int kWidth = int(kDistancePanel / sizeof(T));
template <class T> struct BitsOf { using Type = int32_t; };
template <> struct BitsOf<double> { using Type = int64_t; };
template <class T> using Bits = typename BitsOf<T>::Type;

template <class T> TT_INLINE Vec<T> magnitude(Vec<T> x) {
  constexpr Bits<T> kNoSign = Bits<T>(~(uint64_t(1) << (8 * sizeof(T) - 1)));
  return Vec<T>(Vec<Bits<T>>(x) & splat(kNoSign));
}

// The terms of a difference and how they are joined; all of them give 0 for 0.
template <class T> struct Sum {
  using V = Vec<T>;
  static constexpr bool kIsGiven = false;
  static TT_INLINE V join(V a, V b) { return a + b; }
};
template <class T> struct Magnitude : Sum<T> {
  TT_INLINE Vec<T> of(Vec<T> d) const { return magnitude<T>(d); }
};
template <class T> struct Square : Sum<T> {
  TT_INLINE Vec<T> of(Vec<T> d) const { return d * d; }
};
template <class T> struct Given : Sum<T> {  // the panel has the terms
  static constexpr bool kIsGiven = true;
};
// The bits of a magnitude, of which those of nan are the largest; with `more`, they are negative.
template <class T> struct Largest {
  using V = Vec<Bits<T>>;
  static constexpr bool kIsGiven = false;
  Bits<T> more;
  TT_INLINE V of(Vec<T> d) const { return V(magnitude<T>(d)) + splat(more); }
  static TT_INLINE V join(V a, V b) { return chosen(a > b, a, b); }
};

// Joins the terms of m elements of a row with the sums of a panel.
template <class T, class Term>
TT_NOINLINE void add_terms(const T* x, const T* panel, int64_t m, T* sums, Term term) {
  using V = typename Term::V;
  for (int first = 0; first < kWidth<T>; first += kLanes<T>) {
    const auto at = [&](int64_t k) TT_INLINE_BODY {
      const Vec<T> right = load(panel + k * kWidth<T> + first);
      if constexpr (Term::kIsGiven) return right;
      else return term.of(splat(x[k]) - right);
    };
    const auto four = [&](int64_t k) TT_INLINE_BODY {
      return Term::join(Term::join(at(k), at(k + 1)), Term::join(at(k + 2), at(k + 3)));
    };
    V sum{};
    int64_t k = 0;
    for (; k + 8 <= m; k += 8) sum = Term::join(sum, Term::join(four(k), four(k + 4)));
    for (; k < m; k++) sum = Term::join(sum, at(k));
    V total;
    memcpy(&total, sums + first, sizeof total);
    total = Term::join(total, sum);
    memcpy(sums + first, &total, sizeof total);
  }
}
// x[i] = x[i] ** p
template <class T> TT_NOINLINE void to_power(T* x, int64_t n, double p) {
  ElementPlan plan;
  plan.n = n;
  plan.n_operands = 2;
  plan.dense = true;
  plan.compute = sizeof(T) == 8 ? TT_F64 : TT_F32;
  for (int k = 0; k < 2; k++) {
    plan.scalar_in[k] = false;
    plan.dtype[k] = plan.compute;
    plan.ptr[k] = reinterpret_cast<char*>(x);
  }
  plan.param[0] = {};
  plan.param[0].kind = TT_SCALAR_FLOAT;
  plan.param[0].re = p;
  plan.param[1] = {};
  pow_scalar(&plan, 0, n);
}
TT_INLINE int64_t pairs_before(int64_t i, int64_t n) { return i * (2 * n - i - 1) / 2; }

template <class T> struct Distances {
  static constexpr Bits<T> kNanToNegative = (Bits<T>(1) << (sizeof(T) == 8 ? 52 : 23)) - 1;
  const DistancePlan& p;
  const Bits<T> more = p.pairs ? 0 : kNanToNegative;
  explicit Distances(const DistancePlan& plan) : p(plan) {}
  alignas(64) T panel[kDepth * kWidth<T>];
  alignas(64) T terms[kDepth * kWidth<T>];
  alignas(64) T sums[kDistanceRows * kWidth<T>];

  TT_INLINE void add(const T* x, int64_t m, T* to) {
    if (p.p == 1) return add_terms(x, panel, m, to, Magnitude<T>{});
    if (p.p == 2) return add_terms(x, panel, m, to, Square<T>{});
    if (p.p == kInf) return add_terms(x, panel, m, to, Largest<T>{more});
    for (int64_t k = 0; k < m; k++) {
      const Vec<T> left = splat(x[k]);
      for (int l = 0; l < kWidth<T>; l += kLanes<T>) {
        const Vec<T> size = magnitude<T>(left - load(panel + k * kWidth<T> + l));
        store(terms + k * kWidth<T> + l, p.p == 0 ? counted(size) : size);
      }
    }
    if (p.p != 0) to_power(terms, m * kWidth<T>, p.p);
    add_terms(x, terms, m, to, Given<T>{});
  }
  static TT_INLINE Vec<T> counted(Vec<T> size) {  // 1 for what is not 0; nan stays
    return chosen(size > Vec<T>{}, splat(T(1)), size);
  }
  TT_INLINE void finish(int64_t n) {
    if (p.p == 2) {
      for (int64_t k = 0; k < n; k += kLanes<T>) store(sums + k, vsqrt(load(sums + k)));
    } else if (p.p == kInf) {
      using V = Vec<Bits<T>>;
      for (int64_t k = 0; k < n; k += kLanes<T>) {
        const V bits = V(load(sums + k)) - splat(more);
        store(sums + k, Vec<T>(chosen(bits > V{}, bits, V{})));
      }
    } else if (p.p != 0 && p.p != 1) {
      to_power(sums, n, 1 / p.p);
    }
  }
  // Distances of the rows [i, i + rows) of x1 from columns of x2, which begin with j.
  TT_INLINE void put(int64_t batch, int64_t i, int64_t rows, int64_t j, int64_t columns) const {
    T* const all = reinterpret_cast<T*>(p.y);
    for (int64_t k = 0; k < rows; k++, i++) {
      const T* const from = sums + k * kWidth<T>;
      const int64_t skipped = p.pairs ? max<int64_t>(i + 1 - j, 0) : 0;
      T* const row = p.pairs ? all + batch * pairs_before(p.n, p.n) + pairs_before(i, p.n) - i - 1
                             : all + (batch * p.n + i) * p.r;
      if (columns == kWidth<T> && !skipped) memcpy(row + j, from, kDistancePanel);
      else memcpy(row + j + skipped, from + skipped, (columns - skipped) * sizeof(T));
    }
  }
  TT_NOINLINE void run(int64_t batch, int64_t i, int64_t j) {
    const int64_t columns = min<int64_t>(kWidth<T>, p.r - j);
    const int64_t last = p.pairs ? j + columns - 1 : p.n;
    const int64_t rows = min(kDistanceRows, min(last, p.n) - i);
    const T* const x1 = reinterpret_cast<const T*>(p.x1) + (batch * p.n + i) * p.m;
    const T* const x2 = reinterpret_cast<const T*>(p.x2) + (batch * p.r + j) * p.m;
    if (rows <= 0) return;
    memset(sums, 0, rows * kDistancePanel);
    for (int64_t k = 0; k < p.m; k += kDepth) {
      const int64_t depth = min(kDepth, p.m - k);
      if (columns < kWidth<T>) memset(panel, 0, depth * kDistancePanel);
      for (int64_t l = 0; l < columns; l++)
        for (int64_t at = 0; at < depth; at++) {
          panel[at * kWidth<T> + l] = x2[l * p.m + k + at];
          TT_SCALAR_LOOP;
        }
      for (int64_t row = 0; row < rows; row++)
        add(x1 + row * p.m + k, depth, sums + row * kWidth<T>);
    }
    finish(rows * kWidth<T>);
    put(batch, i, rows, j, columns);
  }
};
template <class T> void run_distances(const DistancePlan& p, int64_t begin, int64_t end) {
  Distances<T> work(p);
  const int64_t panels = ceil_div(p.r, int64_t(kWidth<T>));
  const int64_t blocks = ceil_div(p.n, kDistanceRows);
  for (int64_t u = begin; u < end; u++)
    work.run(u / panels / blocks, u / panels % blocks * kDistanceRows, u % panels * kWidth<T>);
}

// ---- the gradient ----

// The slopes of a distance y along a difference d: d / y, or the sign of d, for order infinity
// where |d| is y, for other orders times a power of |d| / y.
enum SlopeRule { kSlopeSign, kSlopeLinear, kSlopeLargest, kSlopePower };
constexpr int64_t kSlopeRows = 128;  // of x2 at a time

// The slopes along kLanes columns: arrays have a vector for each row of x2.
template <class T> struct Slopes {
  static constexpr int kL = kLanes<T>;
  const DistancePlan& p;
  explicit Slopes(const DistancePlan& plan) : p(plan) {}
  alignas(64) T weight[kSlopeRows], distance[kSlopeRows];
  alignas(64) T right[kSlopeRows * kL], powers[kSlopeRows * kL];
  alignas(64) T mirror[kSlopeRows * kL];  // of pairs: the negative slopes of x2

  // The sum over rows [from, to) of x2.
  template <SlopeRule kRule> TT_NOINLINE Vec<T> sum(int64_t from, int64_t to, Vec<T> left) {
    const auto at = [&](int64_t j) TT_INLINE_BODY {
      const Vec<T> d = left - load(right + j * kL);
      const Vec<T> w = splat(weight[j]);
      if constexpr (kRule == kSlopeLinear) return Vec<T>(d * w);
      const Vec<T> size = magnitude<T>(d);
      const Vec<Bits<T>> sign = Vec<Bits<T>>(d) ^ Vec<Bits<T>>(size);
      Vec<T> slope = w;
      if constexpr (kRule == kSlopePower) slope = w * load(powers + j * kL);
      slope = Vec<T>(Vec<Bits<T>>(slope) ^ sign);
      if constexpr (kRule == kSlopeLargest)
        slope = chosen(size == splat(distance[j]), slope, Vec<T>{});
      return Vec<T>(chosen(size > Vec<T>{}, slope, Vec<T>{}));
    };
    Vec<T> even{}, odd{};
    int64_t j = from;
    for (; p.pairs && j < to; j++) {
      const Vec<T> slope = at(j);
      even += slope;
      store(mirror + j * kL, load(mirror + j * kL) - slope);
    }
    for (; j + 2 <= to; j += 2) {
      even += at(j);
      odd += at(j + 1);
    }
    if (j < to) even += at(j);
    return even + odd;
  }
  TT_INLINE Vec<T> sum_of(int64_t from, int64_t to, Vec<T> left) {
    if (p.p == 1) return sum<kSlopeSign>(from, to, left);
    if (p.p == 2) return sum<kSlopeLinear>(from, to, left);
    if (p.p == kInf) return sum<kSlopeLargest>(from, to, left);
    for (int64_t j = from; j < to; j++) {
      const Vec<T> size = magnitude<T>(left - load(right + j * kL));
      store(powers + j * kL, size * splat(distance[j]));
    }
    to_power(powers + from * kL, (to - from) * kL, p.p - 1);
    return sum<kSlopePower>(from, to, left);
  }
  // The weights of rows [from, to), the first of which has the distance at `at`.
  TT_INLINE void weigh(int64_t at, int64_t from, int64_t to) {
    const size_t bytes = size_t(to - from) * sizeof(T);
    memcpy(weight + from, reinterpret_cast<const T*>(p.grad) + at, bytes);
    if (p.p == 1) return;
    memcpy(distance + from, reinterpret_cast<const T*>(p.y) + at, bytes);
    if (p.p == kInf) return;
    for (int64_t k = from / kL * kL; k < to; k += kL) {
      const Vec<T> y = load(distance + k);
      const Vec<T> inverse = chosen(y == Vec<T>{}, y, splat(T(1)) / y);
      if (p.p == 2) store(weight + k, load(weight + k) * inverse);
      else store(distance + k, inverse);
    }
  }
  // Rows [begin, end) of x1, n columns from k on.
  TT_NOINLINE void run(int64_t batch, int64_t begin, int64_t end, int64_t k, int n) {
    const Part<T> part(n);
    const T* const x1 = reinterpret_cast<const T*>(p.x1) + batch * p.n * p.m + k;
    const T* const x2 = reinterpret_cast<const T*>(p.x2) + batch * p.r * p.m + k;
    T* const dx = reinterpret_cast<T*>(p.dx) + batch * p.n * p.m + k;
    const int64_t distances = batch * (p.pairs ? pairs_before(p.n, p.n) : p.n * p.r);
    for (int64_t i = begin; i < end; i++) store(dx + i * p.m, Vec<T>{}, part);
    for (int64_t j = 0; j < p.r && p.p != 0; j += kSlopeRows) {
      const int64_t rows = min(kSlopeRows, p.r - j);
      for (int64_t l = 0; l < rows; l++) {
        store(right + l * kL, load(x2 + (j + l) * p.m, part));
        store(mirror + l * kL, Vec<T>{});
      }
      const int64_t last = p.pairs ? min(end, j + rows - 1) : end;
      for (int64_t i = begin; i < last; i++) {
        const int64_t from = p.pairs ? max<int64_t>(i + 1 - j, 0) : 0;
        const int64_t at = p.pairs ? pairs_before(i, p.n) - i - 1 : i * p.r;
        weigh(distances + at + j + from, from, rows);
        const Vec<T> more = sum_of(from, rows, load(x1 + i * p.m, part));
        store(dx + i * p.m, load(dx + i * p.m, part) + more, part);
      }
      for (int64_t l = 0; l < rows && p.pairs; l++) {
        T* const to = dx + (j + l) * p.m;
        store(to, load(to, part) + load(mirror + l * kL), part);
      }
    }
  }
};
template <class T> void run_slopes(const DistancePlan& p, int64_t begin, int64_t end) {
  Slopes<T> work(p);
  const int64_t panels = ceil_div(p.m, int64_t(kWidth<T>));
  const int64_t step = p.pairs ? p.n : kDistanceRows;
  const int64_t blocks = ceil_div(p.n, step);
  for (int64_t u = begin; u < end; u++) {
    const int64_t row = u / panels % blocks * step;
    const int64_t first = u % panels * kWidth<T>;
    const int64_t last = min(first + kWidth<T>, p.m);
    for (int64_t k = first; k < last; k += kLanes<T>)
      work.run(u / panels / blocks, row, min(row + step, p.n), k,
               int(min<int64_t>(kLanes<T>, last - k)));
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(row_distances)(const void* plan, int64_t begin, int64_t end) noexcept {
  const DistancePlan& p = *static_cast<const DistancePlan*>(plan);
  if (is_dtype(p.dtype, TT_F64)) run_distances<double>(p, begin, end);
  else run_distances<float>(p, begin, end);
  return TT_OK;
}

TT_KERNEL(row_distances_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const DistancePlan& p = *static_cast<const DistancePlan*>(plan);
  if (is_dtype(p.dtype, TT_F64)) run_slopes<double>(p, begin, end);
  else run_slopes<float>(p, begin, end);
  return TT_OK;
}

TT_ENTRY_END
