// cross_entropy, nll_loss and their backwards, with class indices as targets.
//   x, dx: (outer, classes, inner); target, loss, row_weight, lse: (outer, inner), a row each
//   weight: (classes) or NULL
//
// If there are few rows, classes are cut into n_chunks; parts: [2][outer * inner][n_chunks].
#include "kernels/cpu/loss/cross_entropy.h"

#include "kernels/cpu/simd/row_primitives.h"
#include "kernels/cpu/simd/short_rows.h"
#include "plan/loss_plan.h"

TT_ISA_BEGIN

// What the kernels know of a row.
template <class T> struct LossRow {
  const ClassLossPlan& p;
  int64_t item, loss_item, row_step;

  explicit LossRow(const ClassLossPlan& plan)
      : p(plan),
        item(kItemSize[plan.dtype]),
        loss_item(kItemSize[plan.loss_dtype]),
        row_step(plan.inner == 1 ? plan.classes : 1) {}

  // The target of row r, -1 if it is ignored. Another thread may write the targets: each is read
  // once and checked by is_class().
  int64_t target(int64_t r) const {
    const int64_t t = p.target_dtype == TT_I64
                          ? atomic_load(reinterpret_cast<const int64_t*>(p.target) + r, kRelaxed)
                          : atomic_load(reinterpret_cast<const int32_t*>(p.target) + r, kRelaxed);
    return t == p.ignore_index ? -1 : t;
  }
  bool is_class(int64_t t) const { return uint64_t(t) < uint64_t(p.classes); }
  T weight(int64_t t) const {
    return p.weight ? load_one<T>(p.weight + t * kItemSize[p.weight_dtype], p.weight_dtype) : T(1);
  }
  // The index of class c of row r in x. The rows of a unit are row_step elements apart.
  int64_t place(int64_t r, int64_t c) const {
    return (r / p.inner * p.classes + c) * p.inner + r % p.inner;
  }

  // Stores the loss of row r, weight * (high - x[target]); its elements begin at x[first].
  void put(int64_t r, int64_t first, T high) const {
    const int64_t t = target(r);
    T w = 0, loss = 0;
    if (is_class(t)) {
      w = weight(t);
      loss = (high - load_one<T>(p.x + (first + t * p.inner) * item, p.dtype)) * w;
    }
    if (p.loss) store_one(p.loss + r * loss_item, loss, p.loss_dtype);
    if (p.row_weight) store_one(p.row_weight + r * loss_item, w, p.loss_dtype);
  }
  T lse(int64_t r) const { return reinterpret_cast<const T*>(p.lse)[r]; }
  void put_lse(int64_t r, T v) const {
    if (p.lse) reinterpret_cast<T*>(p.lse)[r] = v;
  }
  T scale(int64_t r) const {
    const T s = load_one<T>(p.scale + r * p.scale_stride * loss_item, p.loss_dtype);
    return p.row_weight ? s * load_one<T>(p.row_weight + r * loss_item, p.loss_dtype) : s;
  }
};

// ---- cross_entropy ----

// *top: the largest of classes [c, c + n) of row r; *total: the sum of exp(x - top). One pass: the
// sum is rescaled when a block raises the maximum.
template <class T>
TT_INLINE void row_exps(const LossRow<T>& l, int64_t r, int64_t c, int64_t n, T* top, T* total) {
  const RowIn<T> x{l.p.x + (r * l.p.classes + c) * l.item, l.p.dtype};
  alignas(64) T in[kRowBlock];
  RowSum<T> sum;
  T m = kMinusInfinity<T>;
  for_blocks(n, [&](int64_t i, int64_t k) {
    const T* v = x.get(i, k, in);
    const T high = row_max(v, k, m);
    if (high > m) {
      if (i) row_scale(sum.lane, math::exp(m - high), 64);
      m = high;
    }
    // No finite maximum yet: only NaNs count.
    row_add_exp(&sum, v, m == kMinusInfinity<T> ? T(0) : m, k, x.p + (i + k) * l.item);
  });
  *top = m;
  *total = row_total(sum);
}
// Rows [r, r + n), classes [c, c + k).
template <class T> struct CrossEntropy {
#if TT_VECTOR_MATH
  // Sixteen rows at a time, whose logarithms are computed as one vector.
  template <class Row>
  static TT_INLINE void short_rows(const LossRow<T>& l, int64_t begin, int64_t n, const Row& row) {
    const float* x = reinterpret_cast<const float*>(l.p.x) + begin * l.p.classes;
    alignas(64) float tops[16] = {}, sums[16] = {}, lse[16];
    F32v v[Row::kN], e[Row::kN];
    for (int64_t first = 0; first < n; first += 16) {
      const int64_t some = min<int64_t>(n - first, 16);
      for (int64_t r = 0; r < some; r++, x += l.p.classes) {
        TT_UNROLL_BY(4)
        for (int k = 0; k < Row::kN; k++) v[k] = row.get(x, k);
        sums[r] = exponentials(row, v, tops + r, e);
      }
      TT_VECTORIZE
      for (int r = 0; r < 16; r++) lse[r] = tops[r] + math::log(sums[r]);
      for (int64_t i = 0; i < some; i++) {
        const int64_t r = begin + first + i;
        l.put_lse(r, lse[i]);
        l.put(r, r * l.p.classes, lse[i]);
      }
    }
  }
#endif

  static void run(const LossRow<T>& l, int64_t r, int64_t n, int64_t c, int64_t k) {
    const ClassLossPlan& p = l.p;
#if TT_VECTOR_MATH
    if constexpr (sizeof(T) == 4) {
      const bool rows = p.inner == 1 && p.n_chunks == 1 && p.dtype == TT_F32;
      if (rows && p.classes > 0 && p.classes <= kShortRow) {
        with_short_row(p.classes, [&](const auto& row) { short_rows(l, r, n, row); });
        return;
      }
    }
#endif
    alignas(64) T top[kRowTile], sum[kRowTile];
    double* tops = p.parts;
    double* sums = tops + (p.parts ? p.outer * p.inner * p.n_chunks : 0);
    if (p.run.stage == 1) {
      for (int64_t i = r * p.n_chunks, j = 0; j < n; j++, i += p.n_chunks)
        join_exps(tops + i, sums + i, p.n_chunks, top + j, sum + j);
    } else if (p.inner > 1) {
      const Columns all = columns_of(p.inner, k, n, p.dtype);
      const char* x = p.x + l.place(r, c) * l.item;
      columns_max(top, x, all);
      columns_sum_exp(sum, top, x, nullptr, all);
    }
    const int64_t first = l.place(r, 0);
    for (int64_t j = 0; j < n; j++) {
      const bool alone = p.inner == 1 && p.run.stage == 0;
      if (alone) row_exps(l, r + j, c, k, top, sum);
      const T high = top[alone ? 0 : j];
      const T total = sum[alone ? 0 : j];
      if (tops && p.run.stage == 0) {
        const int64_t at = (r + j) * p.n_chunks + c / p.chunk;
        tops[at] = double(high);
        sums[at] = double(total);
        continue;
      }
      const T lse = high + math::log(total);
      l.put_lse(r + j, lse);
      l.put(r + j, first + j * l.row_step, lse);
    }
  }
};

// ---- backwards: of rows [r, r + n), classes [c, c + k) ----

template <class T> struct CrossEntropyBackward {
  static void row(const LossRow<T>& l, int64_t r, int64_t c, int64_t n) {
    const ClassLossPlan& p = l.p;
    const int64_t t = l.target(r);
    const int64_t base = (r * p.classes + c) * l.item;
    if (t < 0) {
      memset(p.dx + base, 0, size_t(n * l.item));
      return;
    }
    const RowIn<T> x{p.x + base, p.dtype};
    const RowOut<T> dx{p.dx + base, p.dtype};
    const T lse = l.lse(r);
    const T scale = l.scale(r);
    alignas(64) T in[kRowBlock], out[kRowBlock];
    RowSum<T> unused;
    for_blocks(n, [&](int64_t i, int64_t k) {
      T* d = dx.at(i, out);
      row_exp(d, x.get(i, k, in), lse, k, &unused);
      if (t >= c + i && t < c + i + k) d[t - c - i] -= 1;
      row_scale(d, scale, k);
      dx.put(i, k, d);
    });
  }
  static void tile(const LossRow<T>& l, int64_t r, int64_t n, int64_t c, int64_t steps) {
    const ClassLossPlan& p = l.p;
    constexpr int64_t kIgnored = -2 * kRowTile;
    alignas(64) T scale[kRowTile], lse[kRowTile], v[kRowTile];
    alignas(64) int64_t target[kRowTile];
    const Columns all = columns_of(p.inner, steps, n, p.dtype);
    for (int64_t j = 0; j < n; j++) {
      target[j] = l.target(r + j);
      lse[j] = l.lse(r + j);
      scale[j] = l.scale(r + j);
      if (target[j] < 0) target[j] = kIgnored;
    }
    for (int64_t j = n; j < n * all.copies; j++)
      target[j] = target[j - n] - 1;  // relative to the next class
    columns_repeat(lse, all);
    columns_repeat(scale, all);
    const int64_t first = l.place(r, c) * l.item;
    for_columns(all, [&](int64_t i, int64_t at, int64_t width) {
      load_run(v, p.x + first + at, l.item, width, p.dtype);
      column_exp(v, v, lse, width);
      for (int64_t j = 0; j < width; j++)
        v[j] = target[j] < -kRowTile ? T(0) : (v[j] - T(target[j] == c + i)) * scale[j];
      store_run(p.dx + first + at, v, width, p.dtype);
    });
  }
  static void run(const LossRow<T>& l, int64_t r, int64_t n, int64_t c, int64_t k) {
    if (l.p.inner > 1) return tile(l, r, n, c, k);
    for (int64_t j = 0; j < n; j++) row(l, r + j, c, k);
  }
};

template <class T> struct NllLoss {
  static void run(const LossRow<T>& l, int64_t r, int64_t n, int64_t, int64_t) {
    const int64_t first = l.place(r, 0);
    for (int64_t j = 0; j < n; j++) l.put(r + j, first + j * l.row_step, T(0));
  }
};

template <class T> struct NllLossBackward {
  static void run(const LossRow<T>& l, int64_t r, int64_t n, int64_t c, int64_t k) {
    const ClassLossPlan& p = l.p;
    const bool whole = p.inner == 1 || n == p.inner;
    const int64_t width = whole ? n * k : n;
    for (int64_t i = 0; i < (whole ? 1 : k); i++)
      memset(p.dx + l.place(r, c + i) * l.item, 0, size_t(width * l.item));
    for (int64_t j = 0; j < n; j++) {
      const int64_t t = l.target(r + j);
      if (t >= c && t < c + k)
        store_one(p.dx + l.place(r + j, t) * l.item, -l.scale(r + j), p.dtype);
    }
  }
};

// Computes rows [r, r + n), classes [c, c + k). The rows have one outer index unless inner is 1 and
// rows are not cut.
template <class T>
using LossFn = void (*)(const LossRow<T>& l, int64_t r, int64_t n, int64_t c, int64_t k);
template <class T>
TT_NOINLINE int32_t run_units(const ClassLossPlan& p, LossFn<T> run, int64_t begin, int64_t end) {
  const LossRow<T> l(p);
  const int64_t chunks = p.run.stage ? 1 : p.n_chunks;
  if (p.inner == 1 && p.n_chunks == 1) {
    run(l, begin, end - begin, 0, p.classes);
    return TT_OK;
  }
  for (int64_t u = begin; u < end; u++) {
    const int64_t column = u / chunks % p.n_tiles * kRowTile;
    const int64_t rest = p.inner - column;
    const int64_t c = u % chunks * p.chunk;
    run(l, u / chunks / p.n_tiles * p.inner + column, min(rest, kRowTile), c,
        min(p.classes - c, p.chunk));
  }
  return TT_OK;
}

template <template <class> class Op>
inline int32_t run_loss(const void* plan, int64_t begin, int64_t end) {
  const ClassLossPlan& p = *static_cast<const ClassLossPlan*>(plan);
  if (is_dtype(p.dtype, TT_F64)) return run_units<double>(p, Op<double>::run, begin, end);
  return run_units<float>(p, Op<float>::run, begin, end);
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(cross_entropy)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_loss<CrossEntropy>(plan, begin, end);
}
TT_KERNEL(cross_entropy_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_loss<CrossEntropyBackward>(plan, begin, end);
}
TT_KERNEL(nll_loss)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_loss<NllLoss>(plan, begin, end);
}
TT_KERNEL(nll_loss_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_loss<NllLossBackward>(plan, begin, end);
}

TT_ENTRY_END
