// map_function and map_pairs: functions of doubles over arrays, by SLEEF a vector at a time if it
// is loaded, else by the C library. SLEEF's functions of one argument are called with elements of
// one range of magnitude; per function, a table gives the bounds `near` and `far`:
//
//   0 < |x| < tiny    scalar
//   |x| < near        one call of SLEEF
//   |x| <= far        a second call of SLEEF
//   beyond, nan       scalar
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/simd/vec.h"

#include <float.h>

TT_ISA_BEGIN

#if TT_VEC_BYTES > 16
using V = Vec<double>;
using Mask = Vec<int64_t>;
using Function = V (*)(V);
constexpr Isa kIsa = TT_VEC_BYTES == 64 ? kIsaAvx512 : kIsaAvx2;
constexpr double kNear = 0.5, kBetween = 100;  // replace elements of the other ranges

TT_INLINE uint32_t bits(Mask m) { return sign_bits(Vec<int64_t>(m)); }
TT_INLINE V select(Mask m, V a, V b) { return V((Mask(a) & m) | (Mask(b) & ~m)); }

TT_INLINE Mask is_tiny(const VectorFunction& f, V magnitude) {
  return (magnitude < splat(f.tiny)) & (magnitude > splat(0.0));
}
TT_INLINE Mask near_zero(const VectorFunction& f, V magnitude) {
  return (magnitude < splat(f.near)) & ~is_tiny(f, magnitude);
}

// A vector with elements outside the near range.
TT_NOINLINE V mixed(const VectorFunction& f, Function fn, V x, V magnitude) {
  const Mask near = near_zero(f, magnitude);
  const Mask far = ~(magnitude <= splat(f.far)) | is_tiny(f, magnitude);
  const Mask between = ~(near | far);  // far: nan too
  V y = fn(select(near, x, splat(kNear)));
  if (bits(between)) y = select(between, fn(select(between, x, splat(kBetween))), y);
  for (uint32_t rest = bits(far); rest; rest &= rest - 1) {
    const int k = trailing_zeros(rest);
    y[k] = f.scalar(x[k]);
  }
  return y;
}
TT_INLINE V apply(const VectorFunction& f, Function fn, V x) {
  const V magnitude = V(Mask(x) & INT64_MAX);
  return TT_LIKELY(!bits(~near_zero(f, magnitude))) ? fn(x) : mixed(f, fn, x, magnitude);
}

// The tail is a padded vector, so that no value depends on its position.
TT_INLINE void map_registers(const VectorFunction& f, Function fn, double* out, const double* in,
                             int64_t n) {
  int64_t i = 0;
  for (; i + kLanes<double> <= n; i += kLanes<double>) store(out + i, apply(f, fn, load(in + i)));
  if (i == n) return;
  double tail[kLanes<double>];
  store(tail, splat(kNear));
  memcpy(tail, in + i, size_t(n - i) * sizeof(double));
  store(tail, apply(f, fn, load(tail)));
  memcpy(out + i, tail, size_t(n - i) * sizeof(double));
}

// ---- functions of two arguments ----

using PairFunction = V (*)(V, V);

// SLEEF's pow is infinite a little below the largest number: the C library decides.
TT_NOINLINE V with_overflow(const PairVectorFunction& f, V a, V b, V y, uint32_t infinite) {
  for (; infinite; infinite &= infinite - 1) {
    const int k = trailing_zeros(infinite);
    y[k] = f.scalar(a[k], b[k]);
  }
  return y;
}
TT_INLINE V apply(const PairVectorFunction& f, PairFunction fn, V a, V b) {
  const V y = fn(a, b);
  const uint32_t infinite = bits(V(Mask(y) & INT64_MAX) > splat(DBL_MAX));
  return TT_LIKELY(!infinite) ? y : with_overflow(f, a, b, y, infinite);
}

// b_step: elements from one register of b to the next, 0 where b is one register for all.
TT_INLINE void map_pair_registers(const PairVectorFunction& f, PairFunction fn, double* out,
                                  const double* a, const double* b, int64_t b_step, int64_t n) {
  for (; n >= kLanes<double>; n -= kLanes<double>) {
    store(out, apply(f, fn, load(a), load(b)));
    out += kLanes<double>;
    a += kLanes<double>;
    b += b_step;
  }
  if (!n) return;
  const Part<double> rest{int(n)};
  store(out, apply(f, fn, load(a, rest), load(b, rest)), rest);
}
#endif

TT_ISA_END

TT_ENTRY_BEGIN

void map_function(VectorId id, char* out, const char* in, int64_t n) noexcept {
  const VectorFunction& f = kVectorFunctions[id];
  auto* to = reinterpret_cast<double*>(out);
  const auto* from = reinterpret_cast<const double*>(in);
#if TT_VEC_BYTES > 16
  if (auto fn = reinterpret_cast<Function>(reinterpret_cast<uintptr_t>(sleef_function(id, kIsa))))
    return map_registers(f, fn, to, from, n);
  // The C library's SSE code takes three times as long while upper halves are in use.
  clear_upper_halves();
#endif
  const auto scalar = f.scalar;
  for (int64_t i = 0; i < n; i++) to[i] = scalar(from[i]);
}

void map_pairs(PairVectorId id, char* out, const char* a, const char* b, bool one_b,
               int64_t n) noexcept {
  const PairVectorFunction& f = kPairVectorFunctions[id];
  auto* to = reinterpret_cast<double*>(out);
  const auto* x = reinterpret_cast<const double*>(a);
  const auto* y = reinterpret_cast<const double*>(b);
#if TT_VEC_BYTES > 16
  const auto address = reinterpret_cast<uintptr_t>(sleef_function(id, kIsa));
  if (auto fn = reinterpret_cast<PairFunction>(address)) {
    int64_t y_step = kLanes<double>;
    double same[kLanes<double>];
    if (one_b) {
      store(same, splat(*y));
      y = same;
      y_step = 0;
    }
    return map_pair_registers(f, fn, to, x, y, y_step, n);
  }
  clear_upper_halves();
#endif
  for (int64_t i = 0; i < n; i++) to[i] = f.scalar(x[i], y[one_b ? 0 : i]);
}

TT_ENTRY_END
