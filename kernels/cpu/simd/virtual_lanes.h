// Vectors of this ISA, and 64 virtual lanes made of them. Reductions and row kernels add in these
// lanes, so that their results do not depend on the ISA.
#pragma once

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

using F32v = Vec<float>;

// Fused where the instruction set has it; doubles are rounded twice everywhere.
TT_INLINE F32v vfma(F32v a, F32v b, F32v c) { return fma(a, b, c); }
TT_INLINE Vec<double> vfma(Vec<double> a, Vec<double> b, Vec<double> c) { return a * b + c; }
TT_INLINE double vfma(double a, double b, double c) { return a * b + c; }
#if TT_FUSED
TT_INLINE float vfma(float a, float b, float c) { return libm::fmaf(a, b, c); }
#else
TT_INLINE float vfma(float a, float b, float c) { return a * b + c; }
#endif

// A microcontroller has no vectors, and code is dear there.
#if TT_MINIMAL
#define TT_UNROLL_LANES TT_UNROLL_BY(1)
#else
#define TT_UNROLL_LANES TT_UNROLL_BY(32)
#endif

// What is added in place of x: a functor of vectors and of numbers.
struct Itself {
  template <class V> static TT_INLINE V of(V x) { return x; }
};

// Calls f(0) to f(kN - 1), unrolled if kN vectors fit in registers. Otherwise a loop needs a fifth
// of the code, and takes no longer if f does more than one addition.
template <int kN, class F> TT_INLINE void each_vector(F f) {
  if constexpr (kN > 16) {
    TT_UNROLL_BY(4)
    for (int i = 0; i < kN; i++) f(i);
  } else {
    TT_UNROLL_LANES
    for (int i = 0; i < kN; i++) f(i);
  }
}

// 64 lanes of T, in which every sum is kept, whatever the ISA's width.
constexpr int kBlockLanes = 64;
template <class T> struct Lanes {
  static constexpr int kN = kBlockLanes / kLanes<T>;
  Vec<T> v[kN];

  TT_INLINE void fill(T x) {
    TT_UNROLL_LANES
    for (int i = 0; i < kN; i++) v[i] = splat(x);
  }
  template <class Term = Itself> TT_INLINE void add(const T* p) {
    TT_UNROLL_LANES
    for (int i = 0; i < kN; i++) v[i] += Term::of(load(p + i * kLanes<T>));
  }
  TT_INLINE void add(const Lanes& o) {
    TT_UNROLL_LANES
    for (int i = 0; i < kN; i++) v[i] += o.v[i];
  }
  // Adds lane l + 32 to lane l, then l + 16, …, until `parts` lanes are left (1, or 2 for complex
  // numbers): out[parts].
  TT_INLINE void fold(T* out, int parts) const {
    Vec<T> a[kN];
    TT_UNROLL_LANES
    for (int i = 0; i < kN; i++) a[i] = v[i];
    TT_UNROLL_BY(8)
    for (int n = kN / 2; n; n /= 2) {
      TT_UNROLL_BY(16)
      for (int i = 0; i < n; i++) a[i] += a[i + n];
    }
    T two[2];
    fold_lanes<T, kLanes<T>>(a[0], two, [](auto x, auto y) { return x + y; });
    if (parts == 2) {
      out[0] = two[0];
      out[1] = two[1];
    } else {
      out[0] = two[0] + two[1];
    }
  }
};

// The last n <= 64 elements of a run, padded with `fill` to 64 lanes; get(k) is vector k of them.
template <class T> struct LastLanes {
  alignas(64) T lane[kBlockLanes];

  TT_INLINE LastLanes(const T* p, int64_t n, T fill) {
    constexpr int64_t kPiece = 16 / sizeof(T);
    for (int k = 0; k < kBlockLanes; k += kLanes<T>) store(lane + k, splat(fill));
    int64_t i = 0;
    for (; i + kPiece <= n; i += kPiece) memcpy(lane + i, p + i, 16);
    for (; i < n; i++) {
      lane[i] = p[i];
      TT_SCALAR_LOOP;
    }
  }
  TT_INLINE Vec<T> get(int k) const { return load(lane + k * kLanes<T>); }
};
#if defined(__AVX512F__)
template <> struct LastLanes<float> {
  const float* p;
  uint64_t bits;
  F32v fill;

  TT_INLINE LastLanes(const float* x, int64_t n, float f)
      : p(x), bits(~uint64_t(0) >> (64 - n)), fill(splat(f)) {}
  TT_INLINE F32v get(int k) const {
    return F32v(_mm512_mask_loadu_ps(__m512(fill), __mmask16(bits >> 16 * k), p + 16 * k));
  }
};
#endif
template <class Term = Itself, class T>
TT_INLINE void add_some(Lanes<T>* acc, const T* p, int64_t n) {
  const LastLanes<T> last(p, n, 0);
  each_vector<Lanes<T>::kN>([&](int k) TT_INLINE_BODY { acc->v[k] += Term::of(last.get(k)); });
}

// Adds p[0 … n) to the lanes, element i to lane i % 64. Groups of 1024 elements are summed on their
// own first. The term of 0 is 0.
template <class T, class Term = Itself>
TT_NOINLINE void add_run(Lanes<T>* acc, const T* p, int64_t n) {
  constexpr int64_t kGroup = 16 * kBlockLanes;
  int64_t i = 0;
  Lanes<T> high = *acc, low;
  for (; i + kGroup <= n; i += kGroup) {
    low.fill(0);
    for (int64_t k = 0; k < kGroup; k += kBlockLanes) low.template add<Term>(p + i + k);
    high.add(low);
  }
  low.fill(0);
  for (; i + kBlockLanes <= n; i += kBlockLanes) low.template add<Term>(p + i);
  if (i < n) add_some<Term>(&low, p + i, n - i);
  high.add(low);
  *acc = high;
}

// The result of add_run() and fold() for fewer elements than a group.
constexpr int64_t kFewToSum = 1024;
template <class Term = Itself, class T> TT_INLINE T sum_few(const T* p, int64_t n) {
  Lanes<T> acc;
  acc.fill(0);
  int64_t i = 0;
  for (; i + kBlockLanes <= n; i += kBlockLanes) acc.template add<Term>(p + i);
  if (i < n) add_some<Term>(&acc, p + i, n - i);
  T r;
  acc.fold(&r, 1);
  return r;
}

// Pairwise sum of a sequence of Lanes: level i holds the sum of 2^i of them, as a binary counter.
template <class T> struct Cascade {
  static constexpr int kLevels = 40;
  int64_t count = 0;
  Lanes<T> level[kLevels];

  TT_NOINLINE void push(Lanes<T> a) {
    int i = 0;
    for (; count >> i & 1; i++) a.add(level[i]);
    level[i] = a;
    count++;
  }
  Lanes<T> total() const {
    Lanes<T> a;
    a.fill(0);
    for (int i = 0; count >> i; i++)
      if (count >> i & 1) a.add(level[i]);
    return a;
  }
};

TT_ISA_END
