// Functors of two operands beside arithmetic and comparisons: remainders and the angle of a point.
#pragma once

#include "kernels/functors/arith.h"
#include "kernels/functors/unary.h"

TT_FUNCTORS_BEGIN

// Integers: by zero it is a, by -1 it is 0; nothing traps.
template <class T> TT_FN T rest_of(T a, T b) {
  if constexpr (kIsInt<T>) return wrap_sub(a, wrap_mul(divide_trunc(a, b), b));
  else return math::fmod(a, b);
}
struct Fmod {  // of a's sign
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) { return rest_of(a, b); }
};
struct Remainder {  // of b's sign, as Python's %
  template <class T> static TT_FN T op(T a, T b, const Param<T>&) {
    const T r = rest_of(a, b);
    return r != 0 && b != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
  }
};

struct Atan2 {  // the angle of the point (x, y) in (-pi, pi], with the signs of zeros and
                // infinities of C's atan2
  template <class T> static TT_FN T op(T y, T x, const Param<T>&) {
    const T a = math::fabs(x);
    const T b = math::fabs(y);
    const T low = a < b ? a : b;
    const T high = a < b ? b : a;
    const T t = low == high ? (high == T(0) ? T(0) : T(1)) : low / high;
    const T p = math::atan(t);
    const T first = b > a ? T(1.5707963267948966) - p : p;
    const T r = math::copysign(T(1), x) < T(0) ? T(3.141592653589793) - first : first;
    return a != a || b != b ? a + b : math::copysign(r, y);
  }
};

TT_FUNCTORS_END
