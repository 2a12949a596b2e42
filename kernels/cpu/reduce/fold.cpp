// reduce_max, reduce_min, reduce_prod, reduce_any, reduce_all: folds with an associative step.
#include "kernels/cpu/reduce/extreme.h"
#include "kernels/cpu/reduce/walk.h"

TT_ISA_BEGIN

template <class R> TT_INLINE Complex<R> times(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class E> TT_INLINE E times(E a, E b) { return E(a * b); }
TT_INLINE int64_t times(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

template <class E> struct Prod {
  using T = E;
  static constexpr bool kFlips = false;
  static TT_INLINE T identity() {
    if constexpr (__is_class(E)) return {1, 0};
    else return E(1);
  }
  static TT_INLINE T step(T a, T x) { return times(a, x); }
};

// all(x) is not any(not x).
struct Any {
  using T = uint8_t;
  static constexpr bool kFlips = true;
  static TT_INLINE T identity() { return 0; }
  static TT_INLINE T step(T a, T x) { return a | x; }
};

template <class S> struct Fold {
  using T = typename S::T;
  using P = T;
  static constexpr int kRows = 4;
  static constexpr int kWide = sizeof(T) == 1 ? 256 : kBlockLanes;
  static constexpr int kWidth = __is_class(T) ? 4 : kWide;
  static constexpr bool kPuts = !__is_class(T) && sizeof(T) > 1;

  static P row(Stream& stream, int64_t) {
    P r = S::identity();
    const T* x = nullptr;
    while (const int64_t n = stream.next(&x)) r = S::step(r, block(x, n, stream.ops.flip));
    return r;
  }
  static TT_INLINE T block(const T* x, int64_t n, uint64_t flip) {
    if constexpr (S::kFlips && sizeof(T) > 1) return max_block(x, n, flip);
    else return fold_block<S, kWidth>(x, n, flip);
  }

  struct Columns {
    alignas(64) T acc[kReduceMaxTile / sizeof(T)];
    uint64_t flip;
    void start(const ReduceOps& ops, int64_t n, int64_t) {
      for (int64_t i = 0; i < n; i++) acc[i] = S::identity();
      flip = ops.flip;
    }
    void rows(const T* const* row, int k, int64_t n, int64_t) {
      for (int j = 0; j < k; j++) {
        const T* TT_RESTRICT r = row[j];
        for (int64_t i = 0; i < n; i++) acc[i] = step_flipped<S>(acc[i], r[i], flip);
      }
    }
    P get(int64_t i) const { return acc[i]; }
    void put(const ReducePlan&, const ReduceOps&, int64_t n, T* out) const {
      if constexpr (kPuts)
        for (int64_t i = 0; i < n; i++) out[i] = S::kFlips ? flipped(acc[i], flip) : acc[i];
    }
  };

  static TT_INLINE P combine(P a, P b) { return S::step(a, b); }
  static TT_INLINE void finish(const ReducePlan& p, const ReduceOps& ops, P r, char* out, char*) {
    if constexpr (S::kFlips) r = flipped(r, ops.flip);
    store_one(out, r, p.out_dtype);
  }
};

template <class T> using FoldMax = Fold<Max<T>>;

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(reduce_max)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_extreme<FoldMax, false>(*static_cast<const ReducePlan*>(plan), begin, end);
}

TT_KERNEL(reduce_min)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_extreme<FoldMax, true>(*static_cast<const ReducePlan*>(plan), begin, end);
}

TT_KERNEL(reduce_prod)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ReducePlan& p = *static_cast<const ReducePlan*>(plan);
  switch (p.dtype) {
    case TT_F16:
    case TT_BF16:
    case TT_F32: return run_reduce(kParts<Fold<Prod<float>>>, p, begin, end);
    case TT_F64:
      if (is_built(TT_F64)) return run_reduce(kParts<Fold<Prod<double>>>, p, begin, end);
      break;
    case TT_C64:
      if (is_built(TT_C64)) return run_reduce(kParts<Fold<Prod<C64>>>, p, begin, end);
      break;
    case TT_C128:
      if (is_built(TT_C128)) return run_reduce(kParts<Fold<Prod<C128>>>, p, begin, end);
      break;
    default: return run_reduce(kParts<Fold<Prod<int64_t>>>, p, begin, end);
  }
  return TT_NOT_IMPLEMENTED;
}

TT_KERNEL(reduce_any)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_reduce(kParts<Fold<Any>>, *static_cast<const ReducePlan*>(plan), begin, end);
}

TT_KERNEL(reduce_all)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_reduce(kParts<Fold<Any>, 1>, *static_cast<const ReducePlan*>(plan), begin, end);
}

TT_ENTRY_END
