// Functors of comparison and logic: bool results. A comparison with nan is false, but for !=.
#pragma once

#include "kernels/functors/functor.h"

TT_FUNCTORS_BEGIN

struct Eq {
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a == b; }
};
struct Ne {
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a != b; }
};
struct Lt {
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a < b; }
};
struct Le {
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a <= b; }
};
struct Gt {
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a > b; }
};
struct Ge {
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a >= b; }
};
struct Isnan {
  template <class T> static TT_FN bool op(T a, const Param<T>&) { return a != a; }
};

// Compute set logical: the operands are truth values.
struct LogicalAnd {
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a & b; }
};
struct LogicalOr {
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a | b; }
};
struct LogicalXor {
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a != b; }
};
struct LogicalNot {
  template <class T> static TT_FN bool op(T a, const Param<T>&) { return !a; }
};

// Compute set bitwise: bool, u8, i32, i64.
struct BitwiseAnd {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return T(a & b); }
};
struct BitwiseOr {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return T(a | b); }
};
struct BitwiseXor {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return T(a ^ b); }
};
struct BitwiseNot {
  template <class T> static TT_FN T op(T a, const Param<T>&) {
    if constexpr (kIsBool<T>) return !a;
    else return T(~a);
  }
};

// Shifts by less than 0 or by the width and more leave nothing but the sign (right) or 0 (left).
struct BitwiseLeftShift {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    if constexpr (kIsBool<T>) {
      return a & !b;
    } else {
      constexpr T kWidth = T(8 * sizeof(T));
      const bool over = b < 0 || b >= kWidth;
      const T by = over ? T(0) : b;
      const T shifted = T(Unsigned<T>(a) << by);
      return over ? T(0) : shifted;
    }
  }
};
struct BitwiseRightShift {
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    if constexpr (kIsBool<T>) {
      return a & !b;
    } else {
      constexpr T kWidth = T(8 * sizeof(T));
      constexpr T kMost = T(kWidth - 1);
      const bool over = b < 0 || b >= kWidth;
      const T by = over ? kMost : b;
      const T shifted = T(a >> by);
      return over && T(-1) > T(0) ? T(0) : shifted;
    }
  }
};

TT_FUNCTORS_END
