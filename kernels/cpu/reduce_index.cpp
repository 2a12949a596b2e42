// reduce_max_index, reduce_min_index: extreme values with the position of their first occurrence.
#include "cpu/reduce_extreme.h"
#include "cpu/reduce_walk.h"

TT_ISA_BEGIN

template <class T>
struct At {
  T value;
  int64_t position;
};

// True iff x replaces the earlier best: it is better, or the first NaN.
template <bool kMax, class T>
TT_INLINE bool replaces(T x, T best) {
  return (kMax ? x > best : x < best) | ((x != x) & (best == best));
}

template <bool kMax, class E>
struct Extreme {
  using T = E;
  using P = At<E>;
  using S = typename PickStep<kMax, E>::type;
  static constexpr int kRows = 4;
  static constexpr int64_t kScan = 4096;  // a run whose extreme is found before its place is looked for

  static TT_INLINE T best_of(const T* x, int64_t n) {
    if constexpr (sizeof(T) == 4 && T(0.5) != 0) return extreme<kMax, true>(x, n, S::identity());
    alignas(64) T lane[kBlockLanes];
    for (int i = 0; i < kBlockLanes; i++) lane[i] = S::identity();
    step_lanes<S, kBlockLanes>(lane, x, n);
    T r = lane[0];
    for (int i = 1; i < kBlockLanes; i++) {
      r = S::step(r, lane[i]);
      TT_SCALAR_LOOP;
    }
    return r;
  }

  // Place of the first element equal to v, or NaN if v is; there is one.
  static TT_NOINLINE int64_t find(const T* x, int64_t n, T v) {
    constexpr int64_t kStep = 64;
    const bool nan = v != v;
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      int hit = 0;
      for (int64_t k = 0; k < kStep; k++) hit |= (x[i + k] == v) | ((x[i + k] != x[i + k]) & nan);
      if (hit) break;
    }
    while (nan ? x[i] == x[i] : x[i] != v) i++;
    return i;
  }

  static P row(Stream<T>& stream, int64_t from) {
    P r{S::identity(), from};
    bool first = true;
    const T* x = nullptr;
    int64_t position = from;
    while (const int64_t n = stream.next(&x)) {
      for (int64_t i = 0; i < n; i += kScan) {
        const int64_t m = n - i < kScan ? n - i : kScan;
        const T v = best_of(x + i, m);
        if (!first && !replaces<kMax>(v, r.value)) continue;
        const int64_t k = i + find(x + i, m, v);
        r = {x[k], position + k};
        first = false;
        if (v != v) return r;
      }
      position += n;
    }
    return r;
  }

  // Positions are kept relative to the unit's first row, which fits 32 bits.
  struct Columns {
    alignas(64) T best[kReduceMaxTile / sizeof(T)];
    alignas(64) int32_t at[kReduceMaxTile / sizeof(T)];
    int64_t first;
    void start(int64_t n) {
      for (int64_t i = 0; i < n; i++) best[i] = S::identity(), at[i] = 0;
      first = -1;
    }
    void rows(const T* const* row, int k, int64_t n, int64_t position) {
      if (first < 0) {
        first = position;
        for (int64_t i = 0; i < n; i++) best[i] = row[0][i];
      }
      for (int j = 0; j < k; j++) {
        const T* x = row[j];
        const int32_t here = int32_t(position - first) + j;
        for (int64_t i = 0; i < n; i++) {
          const bool take = replaces<kMax>(x[i], best[i]);
          best[i] = take ? x[i] : best[i];
          at[i] = take ? here : at[i];
        }
      }
    }
    P get(int64_t i) const { return {best[i], first + at[i]}; }
  };

  static TT_INLINE P combine(P a, P b) { return replaces<kMax>(b.value, a.value) ? b : a; }
  static TT_INLINE void finish(const ReducePlan& p, P r, char* out, char* index) {
    if (out) store_one(out, r.value, p.out_dtype);
    put(index, r.position);
  }
};

template <bool kMax>
inline int32_t run_extreme(const ReducePlan& p, int64_t begin, int64_t end) {
  switch (p.dtype) {
    case TT_F16:
    case TT_BF16:
    case TT_F32: return run_reduce<Extreme<kMax, float>>(p, begin, end);
    case TT_F64: return run_reduce<Extreme<kMax, double>>(p, begin, end);
    case TT_I64: return run_reduce<Extreme<kMax, int64_t>>(p, begin, end);
    default: return run_reduce<Extreme<kMax, int32_t>>(p, begin, end);
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(reduce_max_index)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_extreme<true>(*static_cast<const ReducePlan*>(plan), begin, end);
}

TT_KERNEL(reduce_min_index)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_extreme<false>(*static_cast<const ReducePlan*>(plan), begin, end);
}

TT_ENTRY_END
