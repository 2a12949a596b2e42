// Functors of comparison and logic: bool results. A comparison with nan is false, but for !=.
#pragma once

#include "kernels/functors/functor.h"

TT_FUNCTORS_BEGIN

struct Eq {
  static constexpr NarrowOp kNarrow = NarrowOp::kEq;
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a == b; }
};
struct Ne {
  static constexpr NarrowOp kNarrow = NarrowOp::kNe;
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a != b; }
};
struct Lt {
  static constexpr NarrowOp kNarrow = NarrowOp::kLt;
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a < b; }
};
struct Le {
  static constexpr NarrowOp kNarrow = NarrowOp::kLe;
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a <= b; }
};
struct Gt {
  static constexpr NarrowOp kNarrow = NarrowOp::kGt;
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a > b; }
};
struct Ge {
  static constexpr NarrowOp kNarrow = NarrowOp::kGe;
  template <class T> static TT_FN bool op(T a, T b, const Param<T>&) { return a >= b; }
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

TT_FUNCTORS_END
