// reduce_max, reduce_min, reduce_prod, reduce_any, reduce_all: folds with an associative step.
#include "cpu/reduce_extreme.h"
#include "cpu/reduce_walk.h"

TT_ISA_BEGIN

template <class R>
TT_INLINE Complex<R> times(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class E>
TT_INLINE E times(E a, E b) {
  return E(a * b);
}
TT_INLINE int64_t times(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

template <class E>
struct Prod {
  using T = E;
  static TT_INLINE T identity() {
    if constexpr (sizeof(E) >= 8 && __is_class(E)) return {1, 0};
    else return E(1);
  }
  static TT_INLINE T step(T a, T x) { return times(a, x); }
};

struct Any {
  using T = uint8_t;
  static TT_INLINE T identity() { return 0; }
  static TT_INLINE T step(T a, T x) { return a | x; }
};
struct All {
  using T = uint8_t;
  static TT_INLINE T identity() { return 1; }
  static TT_INLINE T step(T a, T x) { return a & x; }
};

// Lanes are folded in order, so the result depends on shapes only.
template <class S>
struct Fold {
  using T = typename S::T;
  using P = T;
  static constexpr int kRows = 4;
  static constexpr int kWidth = sizeof(T) == 1 ? 256 : 64;

  static P row(Stream<T>& stream, int64_t) {
    alignas(64) T lane[kWidth];
    for (int i = 0; i < kWidth; i++) lane[i] = S::identity();
    const T* x = nullptr;
    while (const int64_t n = stream.next(&x)) step_lanes<S, kWidth>(lane, x, n);
    P r = lane[0];
    for (int i = 1; i < kWidth; i++) {
      r = S::step(r, lane[i]);
      TT_SCALAR_LOOP;
    }
    return r;
  }
  struct Columns {
    alignas(64) T acc[kReduceMaxTile / sizeof(T)];
    void start(int64_t n) {
      for (int64_t i = 0; i < n; i++) acc[i] = S::identity();
    }
    void rows(const T* const* row, int k, int64_t n, int64_t) {
      for (int j = 0; j < k; j++) {
        const T* r = row[j];
        for (int64_t i = 0; i < n; i++) acc[i] = S::step(acc[i], r[i]);
      }
    }
    P get(int64_t i) const { return acc[i]; }
  };

  static TT_INLINE P combine(P a, P b) { return S::step(a, b); }
  static TT_INLINE void finish(const ReducePlan& p, P r, char* out, char*) { store_one(out, r, p.out_dtype); }
};

// Rows of floats go through the vector scan.
template <class S, bool kMax>
struct FloatExtreme : Fold<S> {
  using T = float;
  using P = float;
  static P row(Stream<float>& stream, int64_t) {
    float r = S::identity();
    const float* x = nullptr;
    while (const int64_t n = stream.next(&x)) r = S::step(r, extreme<kMax, true>(x, n, S::identity()));
    return r;
  }
};
template <template <class> class S>
struct ExtremeOf;
template <>
struct ExtremeOf<Max> {
  using F32 = FloatExtreme<Max<float>, true>;
};
template <>
struct ExtremeOf<Min> {
  using F32 = FloatExtreme<Min<float>, false>;
};

template <template <class> class S>
inline int32_t run_extreme(const ReducePlan& p, int64_t begin, int64_t end) {
  switch (p.dtype) {
    case TT_F16:
    case TT_BF16:
    case TT_F32: return run_reduce<typename ExtremeOf<S>::F32>(p, begin, end);
    case TT_F64: return run_reduce<Fold<S<double>>>(p, begin, end);
    case TT_I64: return run_reduce<Fold<S<int64_t>>>(p, begin, end);
    default: return run_reduce<Fold<S<int32_t>>>(p, begin, end);
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(reduce_max)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_extreme<Max>(*static_cast<const ReducePlan*>(plan), begin, end);
}

TT_KERNEL(reduce_min)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_extreme<Min>(*static_cast<const ReducePlan*>(plan), begin, end);
}

TT_KERNEL(reduce_prod)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ReducePlan& p = *static_cast<const ReducePlan*>(plan);
  switch (p.dtype) {
    case TT_F16:
    case TT_BF16:
    case TT_F32: return run_reduce<Fold<Prod<float>>>(p, begin, end);
    case TT_F64: return run_reduce<Fold<Prod<double>>>(p, begin, end);
    case TT_C64: return run_reduce<Fold<Prod<C64>>>(p, begin, end);
    case TT_C128: return run_reduce<Fold<Prod<C128>>>(p, begin, end);
    default: return run_reduce<Fold<Prod<int64_t>>>(p, begin, end);
  }
}

TT_KERNEL(reduce_any)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_reduce<Fold<Any>>(*static_cast<const ReducePlan*>(plan), begin, end);
}

TT_KERNEL(reduce_all)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_reduce<Fold<All>>(*static_cast<const ReducePlan*>(plan), begin, end);
}

TT_ENTRY_END
