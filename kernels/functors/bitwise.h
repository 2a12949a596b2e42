// Functors of bitwise logic and shifts. Compute set bitwise: bool, u8, i32, i64.
#pragma once

#include "kernels/functors/functor.h"

TT_FUNCTORS_BEGIN

struct BitwiseAnd {
  static constexpr NarrowOp kNarrow = NarrowOp::kAnd;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return T(a & b); }
};
struct BitwiseOr {
  static constexpr NarrowOp kNarrow = NarrowOp::kOr;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return T(a | b); }
};
struct BitwiseXor {
  static constexpr NarrowOp kNarrow = NarrowOp::kXor;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return T(a ^ b); }
};
struct BitwiseNot {
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsBool<T>) return !a;
    else return T(~a);
  }
};

// A shift by less than 0, or by the width or more, gives 0 (left) or the sign (right).
struct BitwiseLeftShift {
  static constexpr NarrowOp kNarrow = NarrowOp::kLeftShift;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    if constexpr (kIsBool<T>) {
      return a & !b;
    } else {
      constexpr T kWidth = T(8 * sizeof(T));
      const bool over = Unsigned<T>(b) >= Unsigned<T>(kWidth);  // or negative
      const T by = over ? T(0) : b;
      const T shifted = T(Unsigned<T>(a) << by);
      return over ? T(0) : shifted;
    }
  }
};
struct BitwiseRightShift {
  static constexpr NarrowOp kNarrow = NarrowOp::kRightShift;
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    if constexpr (kIsBool<T>) {
      return a & !b;
    } else {
      constexpr T kWidth = T(8 * sizeof(T));
      constexpr T kMaxShift = T(kWidth - 1);
      const bool over = Unsigned<T>(b) >= Unsigned<T>(kWidth);  // or negative
      const T by = over ? kMaxShift : b;
      const T shifted = T(a >> by);
      return over && T(-1) > T(0) ? T(0) : shifted;
    }
  }
};

TT_FUNCTORS_END
