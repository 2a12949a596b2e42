#include "core/scalar.h"

#include "core/ctx.h"
#include "core/half.h"

#include <string.h>

namespace TT_NS {

static int64_t truncate(double v) { return v >= -0x1p63 && v < 0x1p63 ? int64_t(v) : INT64_MIN; }

static uint64_t large_uint(double v) { return v < 0x1p64 ? uint64_t(v) : UINT64_MAX; }

int64_t Scalar::to_int() const { return kind <= TT_SCALAR_INT ? i : truncate(re); }

Dtype Scalar::natural_dtype() const {
  switch (kind) {
    case TT_SCALAR_BOOL: return Dtype::kBool;
    case TT_SCALAR_INT: return Dtype::kI64;
    case TT_SCALAR_FLOAT: return default_float();
    default: return default_complex();
  }
}

bool valid_scalar(const tt_scalar* s) {
  return s && s->kind >= TT_SCALAR_BOOL && s->kind <= TT_SCALAR_COMPLEX;
}

// Integers wrap in two's complement; bools count as integers.
template <class I, class D>
static Scalar combine(const Scalar& a, const Scalar& b, I ints, D reals) {
  if (a.is_complex() || b.is_complex())
    return Scalar::complex(reals(a.real(), b.real()), reals(a.imag(), b.imag()));
  if (a.is_float() || b.is_float()) return reals(a.real(), b.real());
  return int64_t(ints(uint64_t(a.i), uint64_t(b.i)));
}
Scalar operator+(const Scalar& a, const Scalar& b) {
  return combine(
      a, b, [](uint64_t x, uint64_t y) { return x + y; }, [](double x, double y) { return x + y; });
}
Scalar operator-(const Scalar& a, const Scalar& b) {
  return combine(
      a, b, [](uint64_t x, uint64_t y) { return x - y; }, [](double x, double y) { return x - y; });
}
Scalar operator*(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex())
    return Scalar::complex(a.real() * b.real() - a.imag() * b.imag(),
                           a.real() * b.imag() + a.imag() * b.real());
  return combine(
      a, b, [](uint64_t x, uint64_t y) { return x * y; }, [](double x, double y) { return x * y; });
}
Scalar operator-(const Scalar& a) {
  if (a.is_complex()) return Scalar::complex(-a.re, -a.im);
  if (a.is_float()) return -a.re;
  return int64_t(-uint64_t(a.i));
}

template <class T> static void put(void* out, T v) { memcpy(out, &v, sizeof v); }
template <class T> static T get(const void* p) {
  T v;
  memcpy(&v, p, sizeof v);
  return v;
}

void store_scalar(void* out, Dtype d, const Scalar& s) noexcept {
  switch (d) {
    case Dtype::kBool: return put<uint8_t>(out, !s.is_zero() || s.real() != s.real());
    case Dtype::kU8:
    case Dtype::kI8: return put<int8_t>(out, int8_t(s.to_int()));
    case Dtype::kU16:
    case Dtype::kI16: return put<int16_t>(out, int16_t(s.to_int()));
    case Dtype::kU32:
    case Dtype::kI32: return put<int32_t>(out, int32_t(s.to_int()));
    case Dtype::kU64:
      if (s.category() > 1 && s.re >= 0x1p63) return put<uint64_t>(out, large_uint(s.re));
      [[fallthrough]];
    case Dtype::kI64: return put<int64_t>(out, s.to_int());
    case Dtype::kF16: return put<uint16_t>(out, float_to_f16(float(s.real())));
    case Dtype::kBF16: return put<uint16_t>(out, float_to_bf16(float(s.real())));
    case Dtype::kF32: return put<float>(out, float(s.real()));
    case Dtype::kF64: return put<double>(out, s.real());
    case Dtype::kC64:
      put<float>(out, float(s.real()));
      return put<float>(static_cast<char*>(out) + 4, float(s.imag()));
    case Dtype::kC128:
      put<double>(out, s.real());
      return put<double>(static_cast<char*>(out) + 8, s.imag());
    case Dtype::kNone: return;
  }
}

// Not inlined, for size: every static program links them.
static TT_NOINLINE bool fits_between(double v, double low, double high) {
  return v >= low && v <= high;
}
static TT_NOINLINE bool fits_float(double v, double high) {
  return v != v || v == kInf || v == -kInf || fits_between(v, -high, high);
}
bool fits(const Scalar& s, Dtype d) noexcept {
  const bool exact = s.category() < 2;  // s.i is the value
  if (d != Dtype::kBool && !is_complex(d) && s.imag() != 0) return false;
  const double x = s.real();
  switch (d) {
    case Dtype::kU8: return fits_between(x, -255, 255);
    case Dtype::kI8: return fits_between(x, INT8_MIN, INT8_MAX);
    case Dtype::kI16: return fits_between(x, INT16_MIN, INT16_MAX);
    case Dtype::kI32: return fits_between(x, INT32_MIN, INT32_MAX);
    case Dtype::kI64: return exact || fits_between(x, -0x1p63, 0x1.fffffffffffffp62);
    case Dtype::kU16: return fits_between(x, -UINT16_MAX, UINT16_MAX);
    case Dtype::kU32: return fits_between(x, -double(UINT32_MAX), UINT32_MAX);
    case Dtype::kU64: return exact || fits_between(x, -0x1p63, 0x1.fffffffffffffp63);
    case Dtype::kF16: return fits_float(x, 65504);
    case Dtype::kBF16: return fits_float(x, 0x1.fep127);
    case Dtype::kF32: return fits_float(x, 0x1.fffffep127);
    case Dtype::kC64: return fits_float(x, 0x1.fffffep127) && fits_float(s.imag(), 0x1.fffffep127);
    default: return true;
  }
}

Scalar load_scalar(const void* p, Dtype d) noexcept {
  switch (d) {
    case Dtype::kBool: return get<uint8_t>(p) != 0;
    case Dtype::kU8: return get<uint8_t>(p);
    case Dtype::kI8: return get<int8_t>(p);
    case Dtype::kI16: return get<int16_t>(p);
    case Dtype::kI32: return get<int32_t>(p);
    case Dtype::kI64:
    case Dtype::kU64: return get<int64_t>(p);
    case Dtype::kU16: return get<uint16_t>(p);
    case Dtype::kU32: return get<uint32_t>(p);
    case Dtype::kF16: return double(f16_to_float(get<uint16_t>(p)));
    case Dtype::kBF16: return double(bf16_to_float(get<uint16_t>(p)));
    case Dtype::kF32: return double(get<float>(p));
    case Dtype::kF64: return get<double>(p);
    case Dtype::kC64:
      return Scalar::complex(get<float>(p), get<float>(static_cast<const char*>(p) + 4));
    case Dtype::kC128:
      return Scalar::complex(get<double>(p), get<double>(static_cast<const char*>(p) + 8));
    case Dtype::kNone: break;
  }
  return 0;
}

}  // namespace TT_NS
