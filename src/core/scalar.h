// Scalar: a number with its kind (bool, int, float, complex), and arithmetic that is exact where
// possible.
#pragma once

#include "core/dtype.h"

namespace TT_NS {

struct Scalar : tt_scalar {
  constexpr Scalar() : tt_scalar{TT_SCALAR_INT, 0, 0, 0, 0} {}
  constexpr Scalar(const tt_scalar& s) : tt_scalar(s) {}
  Scalar(const void*) = delete;  // a pointer is not a bool
  constexpr Scalar(double v) : tt_scalar{TT_SCALAR_FLOAT, 0, 0, v, 0} {}
  constexpr Scalar(bool v) : tt_scalar{TT_SCALAR_BOOL, 0, v, 0, 0} {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) constexpr Scalar(T v)
      : tt_scalar{TT_SCALAR_INT, 0, int64_t(v), 0, 0} {}
  static Scalar complex(double re, double im) { return tt_scalar{TT_SCALAR_COMPLEX, 0, 0, re, im}; }

  bool is_complex() const { return kind == TT_SCALAR_COMPLEX; }
  bool is_float() const { return kind == TT_SCALAR_FLOAT; }
  bool is_int() const { return kind == TT_SCALAR_INT; }
  bool is_bool() const { return kind == TT_SCALAR_BOOL; }
  int category() const { return kind - 1; }
  double real() const { return kind <= TT_SCALAR_INT ? double(i) : re; }
  double imag() const { return is_complex() ? im : 0; }
  // Truncates; nan and values out of range give INT64_MIN.
  int64_t to_int() const;
  bool is_zero() const { return real() == 0 && imag() == 0; }
  bool is_one() const { return real() == 1 && imag() == 0; }
  // The dtype of a 0-dim tensor of this value.
  Dtype natural_dtype() const;
};
static_assert(sizeof(Scalar) == sizeof(tt_scalar));
// A constant as a Scalar in static storage: reading it never waits for a store to the stack.
template <auto Value> inline constexpr Scalar kScalar{Value};

Scalar operator+(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a, const Scalar& b);
Scalar operator*(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a);
inline Scalar conj(const Scalar& a) { return a.is_complex() ? Scalar::complex(a.re, -a.im) : a; }
bool valid_scalar(const tt_scalar* s);

// Returns whether s has a value in d: no overflow, no lost imaginary part, no nan as an integer.
// Negative numbers may wrap into unsigned integers.
bool fits(const Scalar& s, Dtype d) noexcept;
// Writes s as one element of dtype d; float to int truncates.
void store_scalar(void* out, Dtype d, const Scalar& s) noexcept;
// Reads one element; a uint64 from 2^63 on as an int64 of the same bits.
Scalar load_scalar(const void* p, Dtype d) noexcept;

}  // namespace TT_NS
