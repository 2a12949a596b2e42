// reduce_max_index, reduce_min_index: extreme values with the position of their first occurrence.
#include "kernels/cpu/reduce/extreme.h"
#include "kernels/cpu/reduce/walk.h"

TT_ISA_BEGIN

template <class T> struct At {
  T value;  // flipped
  int64_t position;
};

// True iff x replaces the earlier best: it is larger, or the first NaN.
template <class T> TT_INLINE bool replaces(T x, T best) {
  return (x > best) | ((x != x) & (best == best));
}

template <class E> struct Extreme {
  using T = E;
  using P = At<E>;
  static constexpr int kRows = 4;
  // A run is scanned for its extreme value, then once more for the position of this value.
  static constexpr int64_t kScan = 4096;

  // The position of the first element that equals v, or is NaN if v is. If another thread changed x
  // meanwhile there may be none: then n - 1.
  static TT_NOINLINE int64_t find(const T* x, int64_t n, T v) {
    constexpr int64_t kStep = 64;
    const bool nan = v != v;
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      int hit = 0;
      for (int64_t k = 0; k < kStep; k++) hit |= (x[i + k] == v) | ((x[i + k] != x[i + k]) & nan);
      if (hit) break;
    }
    while (i < n - 1 && (nan ? x[i] == x[i] : x[i] != v)) i++;
    return i;
  }

  static P row(Stream& stream, int64_t from) {
    const uint64_t flip = stream.ops.flip;
    P r{kLowest<T>, from};
    bool first = true;
    const T* x = nullptr;
    int64_t position = from;
    while (const int64_t n = stream.next(&x)) {
      for (int64_t i = 0; i < n; i += kScan) {
        const int64_t m = min(n - i, kScan);
        const T v = max_block(x + i, m, flip);
        if (!first && !replaces(v, r.value)) continue;
        const int64_t k = i + find(x + i, m, flipped(v, flip));
        r = {flipped(x[k], flip), position + k};
        first = false;
        if (v != v) return r;
      }
      position += n;
    }
    return r;
  }

  // best: [n] values, at: [n] positions relative to the unit's first row, which fit in 32 bits.
  struct Columns {
    alignas(64) T best[kReduceMaxTile / sizeof(T)];
    alignas(64) int32_t at[kReduceMaxTile / 4];
    int64_t first;
    uint64_t flip;
    void start(const ReduceOps& ops, int64_t, int64_t position) {
      first = position;
      flip = ops.flip;
      memset(at, 0, sizeof at);
    }
    void rows(const T* const* row, int k, int64_t n, int64_t position) {
      if (position == first) {
        for (int64_t i = 0; i < n; i++) best[i] = flipped(row[0][i], flip);
      }
      for (int j = 0; j < k; j++) {
        const T* TT_RESTRICT x = row[j];
        const int32_t here = int32_t(position - first) + j;
        for (int64_t i = 0; i < n; i++) {
          const T v = flipped(x[i], flip);
          const bool take = replaces(v, best[i]);
          best[i] = take ? v : best[i];
          at[i] = take ? here : at[i];
        }
      }
    }
    P get(int64_t i) const { return {best[i], first + at[i]}; }
  };

  static TT_INLINE P combine(P a, P b) { return replaces(b.value, a.value) ? b : a; }
  static TT_INLINE void finish(const ReducePlan& p, const ReduceOps& ops, P r, char* out,
                               char* index) {
    if (out) store_one(out, flipped(r.value, ops.flip), p.out_dtype);
    put(index, r.position);
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(reduce_max_index)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_extreme<Extreme, false>(*static_cast<const ReducePlan*>(plan), begin, end);
}

TT_KERNEL(reduce_min_index)(const void* plan, int64_t begin, int64_t end) noexcept {
  return run_extreme<Extreme, true>(*static_cast<const ReducePlan*>(plan), begin, end);
}

TT_ENTRY_END
