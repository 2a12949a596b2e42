#include "dist/reduce.h"

#include "base/arith.h"
#include "core/half.h"

namespace TT_NS {

namespace {

template <class T> struct Complex { T re, im; };
// How an element is stored, and what it is computed in.
template <class T> struct Plain {
  using Stored = T;
  using Value = T;
  static Value load(Stored v) { return v; }
  static Stored store(Value v) { return v; }
};
struct HalfFloat {
  using Stored = uint16_t;
  using Value = float;
  static Value load(Stored v) { return f16_to_float(v); }
  static Stored store(Value v) { return float_to_f16(v); }
};
struct BrainFloat {
  using Stored = uint16_t;
  using Value = float;
  static Value load(Stored v) { return bf16_to_float(v); }
  static Stored store(Value v) { return float_to_bf16(v); }
};
struct Truth {
  using Stored = uint8_t;
  using Value = uint8_t;
  static Value load(Stored v) { return v != 0; }
  static Stored store(Value v) { return v != 0; }
};

template <class T> constexpr bool kIsComplex = false;
template <class T> constexpr bool kIsComplex<Complex<T>> = true;
template <class T> constexpr bool kIsReal = !kIsComplex<T>;

// Integers wrap around.
template <class T> struct UnsignedOf { using Type = T; };
template <class T>
requires(std::is_integral_v<T>) struct UnsignedOf<T> {
  using Type = std::make_unsigned_t<T>;
};

struct Sum {
  template <class T> static T of(T a, T b) {
    if constexpr (kIsComplex<T>) {
      return {a.re + b.re, a.im + b.im};
    } else {
      using U = typename UnsignedOf<T>::Type;
      return T(U(a) + U(b));
    }
  }
};
struct Product {
  template <class T> static T of(T a, T b) {
    if constexpr (kIsComplex<T>) {
      return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    } else if constexpr (std::is_integral_v<T>) {
      return T(uint64_t(a) * uint64_t(b));
    } else {
      return a * b;
    }
  }
};
// nan wins.
struct Min {
  template <class T> static T of(T a, T b) {
    if (a != a) return a;
    return b < a || b != b ? b : a;
  }
};
struct Max {
  template <class T> static T of(T a, T b) {
    if (a != a) return a;
    return b > a || b != b ? b : a;
  }
};
struct BitAnd {
  template <class T> static T of(T a, T b) { return T(a & b); }
};
struct BitOr {
  template <class T> static T of(T a, T b) { return T(a | b); }
};
struct BitXor {
  template <class T> static T of(T a, T b) { return T(a ^ b); }
};

constexpr int64_t kBlock = 16;  // elements: a fixed number, which the compiler makes vectors of

template <class Op, class E> void apply(void* into, const void* from, int64_t n) noexcept {
  using Stored = typename E::Stored;
  auto* TT_RESTRICT a = static_cast<Stored*>(into);
  auto* TT_RESTRICT b = static_cast<const Stored*>(from);
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock)
    for (int64_t k = 0; k < kBlock; k++)
      a[i + k] = E::store(Op::of(E::load(b[i + k]), E::load(a[i + k])));
  for (; i < n; i++) a[i] = E::store(Op::of(E::load(b[i]), E::load(a[i])));
}

template <class E>
void reduce_elements(ReduceOp op, void* into, const void* from, int64_t n) noexcept {
  using T = typename E::Value;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean: return apply<Sum, E>(into, from, n);
    case ReduceOp::kProduct: return apply<Product, E>(into, from, n);
    case ReduceOp::kMin:
      if constexpr (kIsReal<T>) apply<Min, E>(into, from, n);
      return;
    case ReduceOp::kMax:
      if constexpr (kIsReal<T>) apply<Max, E>(into, from, n);
      return;
    case ReduceOp::kBitAnd:
      if constexpr (std::is_integral_v<T>) apply<BitAnd, E>(into, from, n);
      return;
    case ReduceOp::kBitOr:
      if constexpr (std::is_integral_v<T>) apply<BitOr, E>(into, from, n);
      return;
    case ReduceOp::kBitXor:
      if constexpr (std::is_integral_v<T>) apply<BitXor, E>(into, from, n);
      return;
  }
}

template <class E> typename E::Value quotient(typename E::Value v, int64_t divisor) {
  using T = typename E::Value;
  if constexpr (kIsComplex<T>) {
    const auto d = decltype(v.re)(divisor);
    return {v.re / d, v.im / d};
  } else {
    return v / T(divisor);
  }
}

template <class E> typename E::Value scaled(typename E::Value v, float by) {
  using T = typename E::Value;
  if constexpr (kIsComplex<T>) return {v.re * by, v.im * by};
  else return v * T(by);
}

// (from + into) / divisor: the last step of a mean, in one pass. A power of two is multiplied with,
// which is as exact and takes less time.
template <class E>
void mean_elements(void* into, const void* from, int64_t n, int64_t divisor) noexcept {
  using Stored = typename E::Stored;
  auto* TT_RESTRICT a = static_cast<Stored*>(into);
  auto* TT_RESTRICT b = static_cast<const Stored*>(from);
  const auto each = [=](auto finish) {
    const auto mean = [=](Stored x, Stored y) {
      return E::store(finish(Sum::of(E::load(x), E::load(y))));
    };
    int64_t i = 0;
    for (; i + kBlock <= n; i += kBlock)
      for (int64_t k = 0; k < kBlock; k++) a[i + k] = mean(b[i + k], a[i + k]);
    for (; i < n; i++) a[i] = mean(b[i], a[i]);
  };
  using T = typename E::Value;
  const float reciprocal = 1.0f / float(divisor);
  if (divisor & (divisor - 1)) each([=](T v) { return quotient<E>(v, divisor); });
  else each([=](T v) { return scaled<E>(v, reciprocal); });
}

template <class E> void divide_elements(void* data, int64_t n, int64_t divisor) noexcept {
  auto* p = static_cast<typename E::Stored*>(data);
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock)
    for (int64_t k = 0; k < kBlock; k++)
      p[i + k] = E::store(quotient<E>(E::load(p[i + k]), divisor));
  for (; i < n; i++) p[i] = E::store(quotient<E>(E::load(p[i]), divisor));
}

}  // namespace

const char* reduce_op_name(ReduceOp op) noexcept {
  static constexpr const char* kNames[] = {"",        "sum",     "mean",   "min",    "max",
                                           "product", "bit_and", "bit_or", "bit_xor"};
  return kNames[int32_t(op)];
}

void check_reduce(ReduceOp op, Dtype dtype) {
  const bool bits = op >= ReduceOp::kBitAnd;
  const bool order = op == ReduceOp::kMin || op == ReduceOp::kMax;
  if (op == ReduceOp::kMean && !is_float(dtype) && !is_complex(dtype))
    fail_arg(TT_DTYPE, "op", "a mean of {}: must be of floating or complex numbers", fmt(dtype));
  if (order && is_complex(dtype))
    fail_arg(TT_DTYPE, "op", "{} of {}: complex numbers have no order", reduce_op_name(op),
             fmt(dtype));
  if (bits && dtype != Dtype::kBool && !is_integral(dtype))
    fail_arg(TT_DTYPE, "op", "{} of {}: must be of integers or bool", reduce_op_name(op),
             fmt(dtype));
}

void reduce_into(ReduceOp op, Dtype dtype, void* into, const void* from, int64_t n) noexcept {
  switch (dtype) {
    case Dtype::kNone: return;
    case Dtype::kBool: return reduce_elements<Truth>(op, into, from, n);
    case Dtype::kU8: return reduce_elements<Plain<uint8_t>>(op, into, from, n);
    case Dtype::kI8: return reduce_elements<Plain<int8_t>>(op, into, from, n);
    case Dtype::kI16: return reduce_elements<Plain<int16_t>>(op, into, from, n);
    case Dtype::kI32: return reduce_elements<Plain<int32_t>>(op, into, from, n);
    case Dtype::kI64: return reduce_elements<Plain<int64_t>>(op, into, from, n);
    case Dtype::kU16: return reduce_elements<Plain<uint16_t>>(op, into, from, n);
    case Dtype::kU32: return reduce_elements<Plain<uint32_t>>(op, into, from, n);
    case Dtype::kU64: return reduce_elements<Plain<uint64_t>>(op, into, from, n);
    case Dtype::kF16: return reduce_elements<HalfFloat>(op, into, from, n);
    case Dtype::kBF16: return reduce_elements<BrainFloat>(op, into, from, n);
    case Dtype::kF32: return reduce_elements<Plain<float>>(op, into, from, n);
    case Dtype::kF64: return reduce_elements<Plain<double>>(op, into, from, n);
    case Dtype::kC64: return reduce_elements<Plain<Complex<float>>>(op, into, from, n);
    case Dtype::kC128: return reduce_elements<Plain<Complex<double>>>(op, into, from, n);
  }
}

void mean_into(Dtype dtype, void* into, const void* from, int64_t n, int64_t divisor) noexcept {
  switch (dtype) {
    case Dtype::kF16: return mean_elements<HalfFloat>(into, from, n, divisor);
    case Dtype::kBF16: return mean_elements<BrainFloat>(into, from, n, divisor);
    case Dtype::kF32: return mean_elements<Plain<float>>(into, from, n, divisor);
    case Dtype::kF64: return mean_elements<Plain<double>>(into, from, n, divisor);
    case Dtype::kC64: return mean_elements<Plain<Complex<float>>>(into, from, n, divisor);
    case Dtype::kC128: return mean_elements<Plain<Complex<double>>>(into, from, n, divisor);
    default: return;
  }
}

void divide_by(Dtype dtype, void* data, int64_t n, int64_t divisor) noexcept {
  switch (dtype) {
    case Dtype::kF16: return divide_elements<HalfFloat>(data, n, divisor);
    case Dtype::kBF16: return divide_elements<BrainFloat>(data, n, divisor);
    case Dtype::kF32: return divide_elements<Plain<float>>(data, n, divisor);
    case Dtype::kF64: return divide_elements<Plain<double>>(data, n, divisor);
    case Dtype::kC64: return divide_elements<Plain<Complex<float>>>(data, n, divisor);
    case Dtype::kC128: return divide_elements<Plain<Complex<double>>>(data, n, divisor);
    default: return;
  }
}

}  // namespace TT_NS
