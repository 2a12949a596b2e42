// Folds of a run to one value, for max and min among others. Min is max of elements whose order is
// reversed by flipping bits (`flip`), so one fold serves both.
#pragma once

#include "kernels/cpu/simd/load.h"
#include "kernels/cpu/simd/virtual_lanes.h"

TT_ENTRY_BEGIN

// The largest of x[0 … n), each with the bits of `flip` inverted, or NaN if there is one; the
// result is inverted, too. Between +0 and -0 it depends on their positions, but not on the ISA: the
// fold has 64 lanes everywhere.
float max_block(const float* x, int64_t n, uint64_t flip) noexcept;
double max_block(const double* x, int64_t n, uint64_t flip) noexcept;
int32_t max_block(const int32_t* x, int64_t n, uint64_t flip) noexcept;
int64_t max_block(const int64_t* x, int64_t n, uint64_t flip) noexcept;

TT_ENTRY_END

TT_ISA_BEGIN

template <bool kMax> TT_INLINE F32v pick(F32v x, F32v m) {
  if constexpr (kMax) return vmax(x, m);
  else return vmin(x, m);
}

// The largest (smallest) of x[0 … n) and start. kWithNan: NaN if any is; else NaNs are skipped.
template <bool kMax, bool kWithNan>
TT_NOINLINE float extreme(const float* x, int64_t n, float start) {
  constexpr int L = kLanes<float>;
  constexpr int N = kBlockLanes / L;
  NanMask nan = unordered(F32v{}, F32v{});
  F32v m[N];
  TT_UNROLL_LANES
  for (int k = 0; k < N; k++) m[k] = splat(start);
  int64_t i = 0;
  for (; i + kBlockLanes <= n; i += kBlockLanes) {
    TT_UNROLL_LANES
    for (int k = 0; k < N; k += 2) {
      const F32v a = load(x + i + k * L);
      const F32v b = load(x + i + (k + 1) * L);
      m[k] = pick<kMax>(a, m[k]);
      m[k + 1] = pick<kMax>(b, m[k + 1]);
      if constexpr (kWithNan) nan |= unordered(a, b);
    }
  }
  if (i < n) {
    const LastLanes<float> last(x + i, n - i, start);
    TT_UNROLL_LANES
    for (int k = 0; k < N; k++) {
      const F32v a = last.get(k);
      m[k] = pick<kMax>(a, m[k]);
      if constexpr (kWithNan) nan |= unordered(a, a);
    }
  }
  TT_UNROLL_BY(8)
  for (int h = N / 2; h; h /= 2) {
    TT_UNROLL_LANES
    for (int k = 0; k < h; k++) m[k] = pick<kMax>(m[k + h], m[k]);
  }
  float two[2];
  const auto better = [](auto low, auto high) {
    if constexpr (kMax) return chosen(high > low, high, low);
    else return chosen(high < low, high, low);
  };
  fold_lanes<float, L>(m[0], two, better);
  const float r = better(two[0], two[1]);
  return kWithNan && any(nan) ? float(kNan) : r;
}

template <int kSize> struct BitsOf;
template <> struct BitsOf<1> { using type = uint8_t; };
template <> struct BitsOf<4> { using type = uint32_t; };
template <> struct BitsOf<8> { using type = uint64_t; };

// x with the bits of `flip` inverted. Inverting all bits of an integer, or the sign of a float,
// reverses the order.
template <class T> TT_INLINE T flipped(T x, uint64_t flip) {
  using U = typename BitsOf<int(sizeof(T))>::type;
  return bit_cast<T>(U(bit_cast<U>(x) ^ U(flip)));
}

template <class T> TT_INLINE Vec<T> flipped(Vec<T> x, uint64_t flip) {
  using U = typename BitsOf<int(sizeof(T))>::type;
  return Vec<T>(Vec<U>(x) ^ U(flip));
}

template <class T> constexpr T kLowest = T(T(1) << (8 * sizeof(T) - 1));
template <> constexpr float kLowest<float> = -float(kInf);
template <> constexpr double kLowest<double> = -kInf;

// A step of a fold: T identity(), T step(T accumulated, T x), and kFlips: whether x is flipped. Max
// returns NaN once it has met one: NaN is taken, and nothing compares greater.
template <class E> struct Max {
  using T = E;
  static constexpr bool kFlips = true;
  static constexpr bool kVectors = true;
  static TT_INLINE T identity() { return kLowest<E>; }
  template <class V> static TT_INLINE V step(V a, V x) { return chosen((x > a) | (x != x), x, a); }
};

template <class S>
TT_INLINE typename S::T step_flipped(typename S::T a, typename S::T x, uint64_t flip) {
  if constexpr (S::kFlips) return S::step(a, flipped(x, flip));
  else return S::step(a, x);
}

constexpr int kSome = 16;
// Folds element i into lane[i % kWidth].
template <class S, int kWidth> TT_NOINLINE void step_lanes(typename S::T* TT_RESTRICT lane,
                                                           const typename S::T* x, int64_t n,
                                                           uint64_t flip) {
  using T = typename S::T;
  int64_t i = 0;
  if constexpr (TT_VEC_BYTES > 32 && requires { S::kVectors; }) {
    constexpr int kN = kWidth / kLanes<T>;
    Vec<T> v[kN];
    TT_UNROLL_LANES
    for (int k = 0; k < kN; k++) v[k] = load(lane + k * kLanes<T>);
    for (; i + kWidth <= n; i += kWidth) {
      TT_UNROLL_LANES
      for (int k = 0; k < kN; k++)
        v[k] = S::step(v[k], flipped<T>(load(x + i + k * kLanes<T>), flip));
    }
    TT_UNROLL_LANES
    for (int k = 0; k < kN; k++) store(lane + k * kLanes<T>, v[k]);
  } else {
    for (; i + kWidth <= n; i += kWidth)
      for (int l = 0; l < kWidth; l++) lane[l] = step_flipped<S>(lane[l], x[i + l], flip);
  }
  int l = 0;
  if constexpr (kWidth > kSome)
    for (; i + kSome <= n; i += kSome, l += kSome)
      for (int k = 0; k < kSome; k++) lane[l + k] = step_flipped<S>(lane[l + k], x[i + k], flip);
  for (; i < n; i++, l++) {
    lane[l] = step_flipped<S>(lane[l], x[i], flip);
    TT_SCALAR_LOOP;
  }
}

// Folds a block: kWidth lanes, halved until kSome are left, these in order. The result is flipped,
// as the elements are.
template <class S, int kWidth>
TT_INLINE typename S::T fold_block(const typename S::T* x, int64_t n, uint64_t flip) {
  using T = typename S::T;
  alignas(64) T lane[kWidth];
  for (int i = 0; i < kWidth; i++) lane[i] = S::identity();
  step_lanes<S, kWidth>(lane, x, n, flip);
  int width = kWidth;
  for (; width > kSome; width /= 2)
    for (int i = 0; i < width / 2; i++) lane[i] = S::step(lane[i], lane[i + width / 2]);
  T r = lane[0];
  for (int i = 1; i < width; i++) {
    r = S::step(r, lane[i]);
    TT_SCALAR_LOOP;
  }
  return r;
}

TT_ISA_END
