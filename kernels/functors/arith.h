// Functors of arithmetic: ring operations, division, remainders, extremes, powers, the angle of a
// point.
#pragma once

#include "kernels/functors/math.h"
#include "kernels/functors/functor.h"

TT_FUNCTORS_BEGIN

// Integer arithmetic wraps around.
template <class T> TT_FN T wrap_add(T a, T b) {
  if constexpr (kIsInt<T>) return T(Unsigned<T>(a) + Unsigned<T>(b));
  else return a + b;
}
template <class T> TT_FN T wrap_sub(T a, T b) {
  if constexpr (kIsInt<T>) return T(Unsigned<T>(a) - Unsigned<T>(b));
  else return a - b;
}
template <class T> TT_FN T wrap_mul(T a, T b) {
  if constexpr (kIsInt<T>) return T(Unsigned<T>(a) * Unsigned<T>(b));
  else return a * b;
}

// Param 0 is alpha, 1 if absent. A complex alpha with no imaginary part scales both parts, so that
// 1 is exact.
struct Scaled {
  template <class T> static TT_FN void prepare(Param<T>& p) {
    if (p.has[0]) return;
    if constexpr (kIsComplex<T>) p.v[0] = {1, 0};
    else p.v[0] = T(1);
  }
  template <class T> static TT_FN T times_alpha(T b, const Param<T>& p) {
    if constexpr (kIsComplex<T>) return p.v[0].im == 0 ? b * p.v[0].re : p.v[0] * b;
    else return wrap_mul(p.v[0], b);
  }
};

struct Add : Scaled {  // a + alpha * b
  static constexpr NarrowOp kNarrow = NarrowOp::kAdd;
  static constexpr bool kRowsByOne = true;
  static constexpr bool kCommutes = true;
  template <class T> static TT_FN T op(T a, T b, const Param<T>& p) {
    return wrap_add(a, times_alpha(b, p));
  }
};
struct Sub : Scaled {  // a - alpha * b
  static constexpr NarrowOp kNarrow = NarrowOp::kSub;
  static constexpr bool kRowsByOne = true;
  template <class T> static TT_FN T op(T a, T b, const Param<T>& p) {
    return wrap_sub(a, times_alpha(b, p));
  }
};
struct RSub : Scaled {  // b - alpha * a
  static constexpr NarrowOp kNarrow = NarrowOp::kRSub;
  template <class T> static TT_FN T op(T a, T b, const Param<T>& p) {
    return wrap_sub(b, times_alpha(a, p));
  }
};
struct Mul {
  static constexpr NarrowOp kNarrow = NarrowOp::kMul;
  static constexpr bool kRowsByOne = true;
  static constexpr bool kCommutes = true;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return wrap_mul(a, b); }
};

struct Div {  // true division: floating types
  static constexpr NarrowOp kNarrow = NarrowOp::kDiv;
  static constexpr bool kRowsByOne = true;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return a / b; }
};

// Integer division: by 0 it is 0, by -1 it is negation, which wraps. The divisor that the processor
// gets never traps.
template <class T> TT_FN T divide_trunc(T a, T b) {
  const bool special = b == 0 || b == -1;
  const T safe = special ? T(1) : b;
#if TT_ON_DEVICE || TT_MINIMAL
  const T q = T(a / safe);
#else
  T q;
  if constexpr (sizeof(T) < 8) q = T(double(a) / double(safe));  // exact, and has vectors
  else q = T(a / safe);
#endif
  const T nonzero = b == -1 ? wrap_sub(T(0), a) : q;
  return b == 0 ? T(0) : nonzero;
}

struct DivTrunc {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    if constexpr (kIsInt<T>) return divide_trunc(a, b);
    else return math::trunc(a / b);
  }
};

// The remainder of truncated division. Integers: by 0 it is a, by -1 it is 0; nothing traps.
// kHard: also of floats whose quotient is long.
template <bool kHard, class T> TT_FN T truncated_rest(T a, T b) {
  if constexpr (kIsInt<T>) return wrap_sub(a, wrap_mul(divide_trunc(a, b), b));
  else if constexpr (kHard) return math::fmod(a, b);
  else return math::short_fmod(a, b);
}
// Functors of remainders. Base has value<kHard>(a, b).
template <class Base> struct OfRests {
  template <class T>
  requires(!kIsInt<T>) static TT_FN bool is_hard(T a, T b) { return math::is_hard_fmod(a, b); }
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    return Base::template value<false>(a, b);
  }
  template <class T> static TT_FN T op_hard(T a, T b) { return Base::template value<true>(a, b); }
};

// Floats as Python's //: the quotient that matches the sign-corrected remainder, so that it is
// exact near integers.
struct FloorQuotient {
  template <bool kHard, class T> static TT_FN T value(T a, T b) {
    if constexpr (kIsInt<T>) {
      const T q = divide_trunc(a, b);
      const T rest = wrap_sub(a, wrap_mul(q, b));
      return b != 0 && rest != 0 && (rest < 0) != (b < 0) ? wrap_sub(q, T(1)) : q;
    } else {
      const T rest = truncated_rest<kHard>(a, b);
      const T exact = (a - rest) / b;
      const T q = rest != 0 && (rest < 0) != (b < 0) ? exact - T(1) : exact;
      const T down = math::floor(q);
      const T nearest = q - down > T(0.5) ? down + T(1) : down;
      const T plain = a / b;
      const T finite = q != 0 ? nearest : math::copysign(T(0), plain);
      return b == 0 ? plain : finite;
    }
  }
};
struct DivFloor : OfRests<FloorQuotient> {};

struct TruncatedRest {  // has a's sign
  template <bool kHard, class T> static TT_FN T value(T a, T b) {
    return truncated_rest<kHard>(a, b);
  }
};
struct Fmod : OfRests<TruncatedRest> {};
struct FlooredRest {  // has b's sign, as Python's %
  template <bool kHard, class T> static TT_FN T value(T a, T b) {
    const T r = truncated_rest<kHard>(a, b);
    return r != 0 && b != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
  }
};
struct Remainder : OfRests<FlooredRest> {};

struct Neg {
  static constexpr NarrowOp kNarrow = NarrowOp::kNeg;
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsInt<T>) return wrap_sub(T(0), a);
    else return -a;
  }
};

// Extremes and limits propagate nan. Both tests read a, so that nothing is left to compute for a
// limit that a loop repeats.
template <class T> TT_FN T at_least(T a, T low) { return !(a >= low) && a == a ? low : a; }
template <class T> TT_FN T at_most(T a, T high) { return !(a <= high) && a == a ? high : a; }

struct Maximum {
  static constexpr NarrowOp kNarrow = NarrowOp::kMaximum;
  static constexpr bool kRowsByOne = true;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return at_least(a, b); }
};
struct Minimum {
  static constexpr NarrowOp kNarrow = NarrowOp::kMinimum;
  static constexpr bool kRowsByOne = true;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return at_most(a, b); }
};
struct ClampNumbers {
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    const T b = a < p.v[0] ? p.v[0] : a;
    return b > p.v[1] ? p.v[1] : b;
  }
};
struct Nan {
  template <class T> static TT_FN T op(T, const Param<T>&) { return T(kNan); }
};
struct Clamp {  // param 0 = min, param 1 = max, each may be absent; max wins
  static constexpr NarrowOp kNarrow = NarrowOp::kClamp;
  template <class T> static TT_FN void prepare(Param<T>& p) {
    if (!p.has[0]) p.v[0] = kLowest<T>;
    if (!p.has[1]) p.v[1] = kHighest<T>;
  }
  template <class T, class Run> static TT_FN void pick(const Param<T>& p, Run run) {
    if constexpr (kIsFloat<T>)
      if (p.v[0] != p.v[0] || p.v[1] != p.v[1]) return run(Nan{});
    run(ClampNumbers{});
  }
};
struct ClampBetween {
  template <class T> static TT_FN T op(T a, T low, T high, const Param<T>&) {
    const T above = a < low ? low : a;
    const T between = above > high ? high : above;
    if constexpr (kIsInt<T>) return between;
    else return low != low || high != high ? T(kNan) : between;
  }
};

// The share of a gradient that a receives as the larger one of two numbers: half where they are
// equal, all where they are unordered.
template <class T> TT_FN T share_of_larger(T a, T b) {
  const T tied = a == b ? T(0.5) : T(1);
  return a < b ? T(0) : tied;
}
struct GreaterShare {
  template <class T> static TT_FN T op(T g, T a, T b, const Param<T>&) {
    const T tied = a == b ? T(0.5) * g : g;
    return a < b ? T(0) : tied;
  }
};
// The derivatives of ClampBetween: those of a maximum and a minimum, but where both bounds are
// equal, the one operand that a is clamped to has all of the gradient. The bounds have none where a
// is nan.
struct ClampWeightOfNumber {
  template <class T> static TT_FN T op(T a, T low, T high, const Param<T>&) {
    const T between = share_of_larger(high, at_least(a, low)) * share_of_larger(a, low);
    const T fixed = a < low || a > high ? T(0) : T(1);
    return low == high ? fixed : between;
  }
};
struct ClampWeightOfMin {
  template <class T> static TT_FN T op(T a, T low, T high, const Param<T>&) {
    const T between = share_of_larger(high, at_least(a, low)) * share_of_larger(low, a);
    const T fixed = a < low ? T(1) : T(0);
    const T weight = low == high ? fixed : between;
    return a == a ? weight : T(0);
  }
};
struct ClampWeightOfMax {
  template <class T> static TT_FN T op(T a, T low, T high, const Param<T>&) {
    const T between = share_of_larger(at_least(a, low), high);
    const T fixed = a > high ? T(1) : T(0);
    const T weight = low == high ? fixed : between;
    return a == a ? weight : T(0);
  }
};
struct ClampWeight {  // param 0: which operand
  template <class T, class Run> static TT_FN void pick(const Param<T>& p, Run run) {
    if (p.v[0] == T(0)) return run(ClampWeightOfNumber{});
    if (p.v[0] == T(1)) return run(ClampWeightOfMin{});
    run(ClampWeightOfMax{});
  }
};

// ---- powers ----

// By squaring; integers wrap. A negative exponent gives the truncated quotient 1 / a^|b|, and 0 for
// a = 0.
template <class T> TT_FN T integer_power(T a, T b) {
  if (b < 0) {
    if (a == -1) return b & 1 ? T(-1) : T(1);
    return a == 1 ? T(1) : T(0);
  }
  T r = 1;
  for (T base = a; b > 0; base = wrap_mul(base, base)) {
    if (b & 1) r = wrap_mul(r, base);
    b = T(b >> 1);
  }
  return r;
}

struct Pow : Long {
  static constexpr PairVectorId kPairVector = kVectorPow;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    if constexpr (kIsInt<T>) return integer_power(a, b);
    else return math::pow(a, b);
  }
};

// PowScalar has a loop of its own for each of these exponents.
struct PowSquare {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return wrap_mul(a, a); }
};
struct PowCube {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return wrap_mul(wrap_mul(a, a), a); }
};
struct PowSqrt {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return math::sqrt(a); }
};
struct PowInvSqrt {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return T(1) / math::sqrt(a); }
};
struct PowInv {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return T(1) / a; }
};
struct PowInvSquare {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return T(1) / (a * a); }
};
struct PowOne {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return a; }
};
// As param 1 is absent, its bits are 0. With them the exponent of a float is a value of its
// element: gcc does not vectorise conditions that are the same for all.
struct PowAny : Long {
  static constexpr PairVectorId kPairVector = kVectorPow;
  template <class T> static TT_FN T op(T a, const Param<T>& p) {
    if constexpr (kIsSame<T, float>) {
      const uint32_t zero = bit_cast<uint32_t>(a) & bit_cast<uint32_t>(p.v[1]);
      return Pow::op(a, bit_cast<float>(bit_cast<uint32_t>(p.v[0]) | zero), p);
    } else {
      return Pow::op(a, p.v[0], p);
    }
  }
};

struct PowScalar {  // a ** param 0; the exponents that PyTorch treats apart have loops of their own
  template <class T, class Run> static TT_FN void pick(const Param<T>& p, Run run) {
    if constexpr (kIsFloat<T>) {
      const T e = p.v[0];
      if (e == T(2)) return run(PowSquare{});
      if (e == T(3)) return run(PowCube{});
      if (e == T(0.5)) return run(PowSqrt{});
      if (e == T(-1)) return run(PowInv{});
      if (e == T(-0.5)) return run(PowInvSqrt{});
      if (e == T(-2)) return run(PowInvSquare{});
      if (e == T(1)) return run(PowOne{});
    } else if constexpr (kIsInt<T>) {
      if (p.v[0] == 2) return run(PowSquare{});
      if (p.v[0] == 3) return run(PowCube{});
    } else {
      if (p.v[0] == T{2, 0}) return run(PowSquare{});
      if (p.v[0] == T{3, 0}) return run(PowCube{});
    }
    run(PowAny{});
  }
};
struct PowScalarBase {  // param 0 ** a; no operator yet: tested by tests/cpp/elementwise_extra.h
  template <class T> static TT_FN T op(T a, const Param<T>& p) { return Pow::op(p.v[0], a, p); }
};

// The angle of the point (x, y) in [-pi, pi]; zeros and infinities as in C's atan2.
struct Atan2 : Long {
  static constexpr PairVectorId kPairVector = kVectorAtan2;
  template <class T> static TT_FN T op(T y, T x, const Param<T>&) {
    const T a = math::fabs(x);
    const T b = math::fabs(y);
    const T low = a < b ? a : b;
    const T high = a < b ? b : a;
    const T equal = high == T(0) ? T(0) : T(1);  // also if both are infinite
    const T t = low == high ? equal : low / high;
    const T p = math::atan(t);
    const T first = b > a ? T(1.5707963267948966) - p : p;
    const T r = math::copysign(T(1), x) < T(0) ? T(3.141592653589793) - first : first;
    return a != a || b != b ? a + b : math::copysign(r, y);
  }
};

TT_FUNCTORS_END
