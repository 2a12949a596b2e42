// What every functor file needs: its namespace and attributes, and Param, the scalars of one call.
//
// A functor is a struct whose static templates compute one element:
//   template <class T> static T op(T a, T b, const Param<T>& p)
//       arity 2; Param comes last, always
//   template <class T> static void prepare(Param<T>& p)
//       runs before the loop: defaults of absent scalars
//   template <class T, class Run> static void pick(const Param<T>& p, Run run)
//       instead of op: calls run(Functor{}) with the functor that fits the scalars
//   template <class V> static V lanes(V a), or lanes(V a, V b)
//       arity 1 or 2, float: op on vectors (kernels/cpu/simd/lanes.h)
//   static Vec<double> wide(Vec<double> a, const Param<double>& p)
//       arity 1, double, on the host: instead of op
//   static bool is_hard(T a), T op_hard(T a); arity 2: is_hard(T a, T b), op_hard(T a, T b)
//       op holds where is_hard is false; on devices everywhere
//   kLong, kLongInDouble (base classes Long, LongInDouble)
//       op takes many instructions in float, or in double, too, and is vectorised: a loop over
//       whole vectors is its only copy
//   OfReals, OfIntegers
//       the functor that computes real numbers, or integers, in place of op
//   OfFloats
//       the functor that computes floats in double: its op takes doubles
//   kVector, kPairVector
//       arity 1, 2 (or 1 and a scalar), double: op is this function, which SLEEF may compute
//   kNarrow
//       the loop of 8- and 16-bit numbers that computes the same
//   kOfIntegers
//       arity 1, result bool: what it is for every integer
//   kRowsByOne, kCommutes
//       arity 2: rows beside one element each have a loop of their own, or two, for either order;
//       a and b may be exchanged if there are no scalars
// T is a compute type: float double int32_t int64_t c64 c128, bool for logical ones; for the
// compute set `all`, which only moves values, an unsigned type of the element's size. kBoolIn (bit
// i = operand i, inputs count from 1) names the inputs that are bool whatever T is. Bodies are
// branch-free and inline everything, so that loops over them vectorise.
//
// On the host all is in the unnamed namespace of the instruction set's build (simd/isa.h).
#pragma once

#include "kernels/functors/target.h"
#include "plan/elementwise_plan.h"
#include "plan/narrow_op.h"
#include "plan/vector_function.h"

#if TT_ON_DEVICE
#define TT_FUNCTORS_BEGIN \
  namespace TT_NS {       \
  namespace {
#define TT_FUNCTORS_END \
  }                     \
  }
#else
#include "kernels/cpu/simd/isa.h"
#define TT_FUNCTORS_BEGIN TT_ISA_BEGIN
#define TT_FUNCTORS_END TT_ISA_END
#endif

#include "kernels/functors/complex_number.h"

TT_FUNCTORS_BEGIN

struct Long {
  static constexpr bool kLong = true;
};
struct LongInDouble : Long {
  static constexpr bool kLongInDouble = true;
};

struct Bytes16 {
  uint64_t lo, hi;
};

template <class T> struct Traits;
template <> struct Traits<bool> { static constexpr int32_t kDtype = TT_BOOL; };
template <> struct Traits<uint8_t> { static constexpr int32_t kDtype = TT_U8; };
template <> struct Traits<int32_t> { static constexpr int32_t kDtype = TT_I32; };
template <> struct Traits<int64_t> { static constexpr int32_t kDtype = TT_I64; };
template <> struct Traits<float> { static constexpr int32_t kDtype = TT_F32; };
template <> struct Traits<double> { static constexpr int32_t kDtype = TT_F64; };
template <> struct Traits<c64> { static constexpr int32_t kDtype = TT_C64; };
template <> struct Traits<c128> { static constexpr int32_t kDtype = TT_C128; };

template <class T> constexpr bool kIsInt = false;
template <> constexpr bool kIsInt<bool> = true;
template <> constexpr bool kIsInt<uint8_t> = true;
template <> constexpr bool kIsInt<int32_t> = true;
template <> constexpr bool kIsInt<int64_t> = true;
template <class T> constexpr bool kIsBool = false;
template <> constexpr bool kIsBool<bool> = true;
template <class T> constexpr bool kIsFloat = false;
template <> constexpr bool kIsFloat<float> = true;
template <> constexpr bool kIsFloat<double> = true;

template <class T> struct UnsignedOf;
template <> struct UnsignedOf<uint8_t> { using type = uint8_t; };
template <> struct UnsignedOf<int8_t> { using type = uint8_t; };
template <> struct UnsignedOf<int16_t> { using type = uint16_t; };
template <> struct UnsignedOf<int32_t> { using type = uint32_t; };
template <> struct UnsignedOf<int64_t> { using type = uint64_t; };
template <class T> using Unsigned = typename UnsignedOf<T>::type;

// The functor whose loop computes F of numbers of type T.
template <class F, class T> struct FunctorForType { using type = F; };
template <class F, class T>
requires(kIsInt<T>&& requires { typename F::OfIntegers; }) struct FunctorForType<F, T> {
  using type = typename F::OfIntegers;
};
template <class F, class T>
requires(!kIsComplex<T> && requires { typename F::OfReals; }) struct FunctorForType<F, T> {
  using type = typename F::OfReals;
};
template <class F, class T> using FunctorFor = typename FunctorForType<F, T>::type;

// The value of a scalar as T, converted as between dtypes; only a float outside the range of an
// integer type saturates, which the implementation has refused before.
template <class T> TT_FN T scalar_as(const tt_scalar& s) {
  if (s.kind == 0) return T{};
  if constexpr (kIsComplex<T>) {
    using R = typename T::Real;
    if (s.kind <= TT_SCALAR_INT) return {R(s.i), R(0)};
    return {R(s.re), s.kind == TT_SCALAR_COMPLEX ? R(s.im) : R(0)};
  } else if constexpr (kIsFloat<T>) {
    return s.kind <= TT_SCALAR_INT ? T(s.i) : T(s.re);
  } else {
    if (s.kind <= TT_SCALAR_INT) return T(s.i);
    constexpr double kMax = 0x1p63;
    if (s.re != s.re) return T(0);
    if (s.re >= kMax) return T(INT64_MAX);
    return s.re > -kMax ? T(int64_t(s.re)) : T(INT64_MIN);
  }
}

// ElementPlan::param as T. has[i]: whether the scalar was given.
template <class T> struct Param {
  T v[2];
  bool has[2];
};

struct Identity {
  template <class T> static TT_FN T op(T a, const Param<T>&) { return a; }
};

template <class T> constexpr T kLowest = T(kIsSame<T, int32_t> ? INT32_MIN : INT64_MIN);
template <> constexpr float kLowest<float> = -float(kInf);
template <> constexpr double kLowest<double> = -kInf;
template <class T> constexpr T kHighest = T(kIsSame<T, int32_t> ? INT32_MAX : INT64_MAX);
template <> constexpr float kHighest<float> = float(kInf);
template <> constexpr double kHighest<double> = kInf;

template <class T> TT_FN Param<T> load_param(const tt_scalar* s) {
  return {{scalar_as<T>(s[0]), scalar_as<T>(s[1])}, {s[0].kind != 0, s[1].kind != 0}};
}

TT_FUNCTORS_END
