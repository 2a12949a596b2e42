// cross_entropy, nll_loss and their backwards over class indices.
#include "cpu/rows.h"

#include "cpu/rows_vec.h"
#include "cpu/running_sum.h"
#include "plan/row_plan.h"

TT_ISA_BEGIN

template <class T> struct LossRow {
  const ClassLossPlan& p;
  int64_t item, loss_item;

  explicit LossRow(const ClassLossPlan& plan)
      : p(plan), item(kItemSize[plan.dtype]), loss_item(kItemSize[plan.loss_dtype]) {}

  // -1: ignored.
  int64_t target(int64_t r) const {
    const int64_t t = p.target_dtype == TT_I64 ? reinterpret_cast<const int64_t*>(p.target)[r]
                                               : reinterpret_cast<const int32_t*>(p.target)[r];
    return t == p.ignore_index ? -1 : t;
  }
  T weight(int64_t t) const {
    if (t < 0) return 0;
    return p.weight ? load_one<T>(p.weight + t * kItemSize[p.weight_dtype], p.weight_dtype) : T(1);
  }
  // Element `c` of row r.
  int64_t place(int64_t r, int64_t c) const { return (r / p.inner * p.classes + c) * p.inner + r % p.inner; }
  T at(int64_t r, int64_t c) const { return load_one<T>(p.x + place(r, c) * item, p.dtype); }

  // The loss of a row is `high` - x[target], weighted.
  void put(int64_t r, T high) const {
    const int64_t t = target(r);
    const T w = weight(t), loss = t < 0 ? T(0) : (high - at(r, t)) * w;
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

// log sum exp in one pass: the sum is rescaled when a block raises the maximum.
template <class T> inline T log_sum_exp(const RowIn<T>& x, int64_t n) {
  alignas(64) T in[kRowBlock];
  RowSum<T> sum;
  T m = T(-__builtin_inf());
  for_blocks(n, [&](int64_t i, int64_t k) {
    const T* v = x.get(i, k, in);
    const T high = row_max(v, k, m);
    if (high > m) {
      if (i) row_scale(sum.lane, math::exp(m - high), 64);
      m = high;
    }
    // No finite maximum yet: only NaNs count.
    row_add_exp(&sum, v, m == T(-__builtin_inf()) ? T(0) : m, k, x.p + (i + k) * kItemSize[x.dtype]);
  });
  return m + math::log(row_total(sum));
}

template <class T> struct CrossEntropy {
  static void row(const LossRow<T>& l, int64_t r) {
    const ClassLossPlan& p = l.p;
    const T lse = log_sum_exp(RowIn<T>{p.x + r * p.classes * l.item, p.dtype}, p.classes);
    l.put_lse(r, lse);
    l.put(r, lse);
  }
  // Rows [r, r + n), neighbours in the inner dimension.
  static void tile(const LossRow<T>& l, int64_t r, int64_t n) {
    const ClassLossPlan& p = l.p;
    alignas(64) T m[kRowTile], v[kRowTile];
    RunningSum<T> sum[kRowTile];
    for (int64_t j = 0; j < n; j++) m[j] = T(-__builtin_inf());
    for (int64_t c = 0; c < p.classes; c++) {
      load_run(v, p.x + l.place(r, c) * l.item, l.item, n, p.dtype);
      for (int64_t j = 0; j < n; j++) m[j] = v[j] > m[j] ? v[j] : m[j];
    }
    for (int64_t c = 0; c < p.classes; c++) {
      load_run(v, p.x + l.place(r, c) * l.item, l.item, n, p.dtype);
      column_exp(v, m, n);
      for (int64_t j = 0; j < n; j++) sum[j].add(double(v[j]));
    }
    for (int64_t j = 0; j < n; j++) {
      const T lse = m[j] + math::log(sum[j].with(0));
      l.put_lse(r + j, lse);
      l.put(r + j, lse);
    }
  }
};

template <class T> struct CrossEntropyBackward {
  static void row(const LossRow<T>& l, int64_t r) {
    const ClassLossPlan& p = l.p;
    const int64_t t = l.target(r), n = p.classes, base = r * n * l.item;
    if (t < 0) {
      __builtin_memset(p.dx + base, 0, size_t(n * l.item));
      return;
    }
    const RowIn<T> x{p.x + base, p.dtype};
    const RowOut<T> dx{p.dx + base, p.dtype};
    const T lse = l.lse(r), scale = l.scale(r);
    alignas(64) T in[kRowBlock], out[kRowBlock];
    RowSum<T> unused;
    for_blocks(n, [&](int64_t i, int64_t k) {
      T* d = dx.at(i, out);
      row_exp(d, x.get(i, k, in), lse, k, &unused);
      if (t >= i && t < i + k) d[t - i] -= 1;
      row_scale(d, scale, k);
      dx.put(i, k, d);
    });
  }
  static void tile(const LossRow<T>& l, int64_t r, int64_t n) {
    const ClassLossPlan& p = l.p;
    alignas(64) T scale[kRowTile], lse[kRowTile], v[kRowTile];
    alignas(64) int64_t target[kRowTile];
    for (int64_t j = 0; j < n; j++) target[j] = l.target(r + j), lse[j] = l.lse(r + j), scale[j] = l.scale(r + j);
    for (int64_t c = 0; c < p.classes; c++) {
      const int64_t at = l.place(r, c) * l.item;
      load_run(v, p.x + at, l.item, n, p.dtype);
      column_exp(v, lse, n);
      for (int64_t j = 0; j < n; j++) v[j] = target[j] < 0 ? T(0) : (v[j] - T(target[j] == c)) * scale[j];
      store_run(p.dx + at, v, n, p.dtype);
    }
  }
};

template <class T> struct NllLoss {
  static void row(const LossRow<T>& l, int64_t r) { l.put(r, T(0)); }
  static void tile(const LossRow<T>& l, int64_t r, int64_t n) {
    for (int64_t j = 0; j < n; j++) l.put(r + j, T(0));
  }
};

template <class T> struct NllLossBackward {
  static void row(const LossRow<T>& l, int64_t r) { tile(l, r, 1); }
  static void tile(const LossRow<T>& l, int64_t r, int64_t n) {
    const ClassLossPlan& p = l.p;
    if (p.inner == 1) {
      __builtin_memset(p.dx + r * p.classes * l.item, 0, size_t(p.classes * l.item));
    } else {
      for (int64_t c = 0; c < p.classes; c++) __builtin_memset(p.dx + l.place(r, c) * l.item, 0, size_t(n * l.item));
    }
    for (int64_t j = 0; j < n; j++) {
      const int64_t t = l.target(r + j);
      if (t >= 0) store_one(p.dx + l.place(r + j, t) * l.item, -l.scale(r + j), p.dtype);
    }
  }
};

template <class T, class Op> inline int32_t run_units(const ClassLossPlan& p, int64_t begin, int64_t end) {
  const LossRow<T> l(p);
  for (int64_t u = begin; u < end; u++) {
    if (p.inner == 1) {
      Op::row(l, u);
      continue;
    }
    const int64_t column = u % p.n_tiles * kRowTile, rest = p.inner - column;
    Op::tile(l, u / p.n_tiles * p.inner + column, rest < kRowTile ? rest : kRowTile);
  }
  return TT_OK;
}

template <template <class> class Op> inline int32_t run_loss(const void* plan, int64_t begin, int64_t end) {
  const ClassLossPlan& p = *static_cast<const ClassLossPlan*>(plan);
  if (p.dtype == TT_F64) return run_units<double, Op<double>>(p, begin, end);
  return run_units<float, Op<float>>(p, begin, end);
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
