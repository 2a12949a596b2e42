// Norms and factors of gradients. items: the gradients, of any sizes; partial: one number per unit,
// which stage 1 combines in total.
//   clip_norm      total = the norm over all gradients
//   clip_scale     scales the gradients by max_norm / (total + 1e-6) if that is below 1
//   clip_unscale   scales the gradients by *factor or max_norm; total = 1 if an element was not
//                  finite, or 0
#include "kernels/cpu/simd/row_primitives.h"
#include "plan/optim_plan.h"

TT_ISA_BEGIN

// The sum of |x|^p over a run; for infinite p the largest |x|, nan if there is one.
template <class T> struct NormRun {
  double p;
  double sum = 0;
  RowSum<T> squares;

  void add(const T* x, int64_t n) {
    if (p == 2) return row_add_products(&squares, x, x, n);
    for (int64_t i = 0; i < n; i++) {
      const double a = libm::fabs(double(x[i]));
      if (p == kInf) sum = a > sum || a != a ? a : sum;
      else sum += p == 1 ? a : libm::pow(a, p);
      TT_SCALAR_LOOP;
    }
  }
  double total() const { return p == 2 ? double(row_total(squares)) : sum; }
};

template <class T>
TT_NOINLINE double norm_part(const ClipItem& item, double p, int64_t from, int64_t to) {
  NormRun<T> run{p, 0, {}};
  alignas(64) T buffer[kRowBlock];
  const RowIn<T> x{item.grad + from * kItemSize[item.dtype], item.dtype};
  for_blocks(to - from, [&](int64_t i, int64_t n) { run.add(x.get(i, n, buffer), n); });
  return run.total();
}

// Scales elements [from, to) of an item; calls see(v, n) with each block before.
template <class T, class F> TT_INLINE void scale_blocks(const ClipItem& item, double factor,
                                                        int64_t from, int64_t to, const F& see) {
  alignas(64) T buffer[kRowBlock];
  char* p = item.grad + from * kItemSize[item.dtype];
  const RowIn<T> x{p, item.dtype};
  const RowOut<T> y{p, item.dtype};
  for_blocks(to - from, [&](int64_t i, int64_t n) {
    T* v = y.at(i, buffer);
    x.get(i, n, v);  // in place, or into the buffer
    see(v, n);
    row_scale(v, T(factor), n);
    y.put(i, n, v);
  });
}
template <class T>
TT_NOINLINE void scale_part(const ClipItem& item, double factor, int64_t from, int64_t to) {
  scale_blocks<T>(item, factor, from, to, [](const T*, int64_t) {});
}
// Returns whether an element was inf or nan.
template <class T>
TT_NOINLINE bool unscale_part(const ClipItem& item, double factor, int64_t from, int64_t to) {
  T probe = 0;  // nan as soon as an element is not finite
  scale_blocks<T>(item, factor, from, to, [&](const T* v, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
      probe += v[k] * T(0);
      TT_SCALAR_LOOP;
    }
  });
  return probe != 0;
}

TT_INLINE double norm_of(const ClipPlan& p) {
  double all = 0;
  const bool largest = p.norm_type == kInf;
  for (int64_t i = 0; i < p.n_partial; i++) {
    const double x = p.partial[i];
    if (!largest) all += x;
    else if (x > all || x != x) all = x;
    TT_SCALAR_LOOP;
  }
  if (largest || p.norm_type == 1) return all;
  return p.norm_type == 2 ? libm::sqrt(all) : libm::pow(all, 1 / p.norm_type);
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(clip_norm)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ClipPlan& p = *static_cast<const ClipPlan*>(plan);
  if (p.run.stage == 1) {
    const double norm = norm_of(p);
    if (p.total_dtype == TT_F64) {
      *reinterpret_cast<double*>(p.total) = norm;
    } else {
      const float rounded = float(norm);
      store_f32(p.total, kItemSize[p.total_dtype], &rounded, 1, p.total_dtype);
    }
    return TT_OK;
  }
  ItemWalk<ClipItem> walk(p.items, p.n_items, begin);
  for (int64_t u = begin; u < end; u++) {
    int64_t from, to;
    const ClipItem& item = walk.item(u, &from, &to);
    p.partial[u] = item.dtype == TT_F64 ? norm_part<double>(item, p.norm_type, from, to)
                                        : norm_part<float>(item, p.norm_type, from, to);
  }
  return TT_OK;
}

TT_KERNEL(clip_scale)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ClipPlan& p = *static_cast<const ClipPlan*>(plan);
  const double total = p.total_dtype == TT_F64 ? *reinterpret_cast<const double*>(p.total)
                                               : double(load_one<float>(p.total, p.total_dtype));
  const double factor = p.max_norm / (total + 1e-6);
  if (factor >= 1) return TT_OK;
  ItemWalk<ClipItem> walk(p.items, p.n_items, begin);
  for (int64_t u = begin; u < end; u++) {
    int64_t from, to;
    const ClipItem& item = walk.item(u, &from, &to);
    if (item.dtype == TT_F64) scale_part<double>(item, factor, from, to);
    else scale_part<float>(item, factor, from, to);
  }
  return TT_OK;
}

TT_KERNEL(clip_unscale)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ClipPlan& p = *static_cast<const ClipPlan*>(plan);
  if (p.run.stage == 1) {
    float found = 0;
    for (int64_t i = 0; i < p.n_partial; i++) found = p.partial[i] != 0 ? 1 : found;
    *reinterpret_cast<float*>(p.total) = found;
    return TT_OK;
  }
  const double factor = p.factor ? double(*p.factor) : p.max_norm;
  ItemWalk<ClipItem> walk(p.items, p.n_items, begin);
  for (int64_t u = begin; u < end; u++) {
    int64_t from, to;
    const ClipItem& item = walk.item(u, &from, &to);
    p.partial[u] = item.dtype == TT_F64 ? unscale_part<double>(item, factor, from, to)
                                        : unscale_part<float>(item, factor, from, to);
  }
  return TT_OK;
}

TT_ENTRY_END
