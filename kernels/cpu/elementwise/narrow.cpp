// Operators of 8- and 16-bit numbers that are computed without blocks of 32-bit numbers. Each
// iteration computes a vector; which operator is a branch in it, so that all share one loop.
//
//   integers   a vector of the operands' own dtype: what wraps has the same low bits in any width
//   halves     as floats, rounded once
#include "kernels/cpu/elementwise/narrow.h"

TT_ISA_BEGIN

template <class T> TT_INLINE Vec<T> integer_value(NarrowOp op, Vec<T> a, Vec<T> b, Vec<T> lowest) {
  using Words = Vec<Unsigned<T>>;
  const Vec<T> sign = splat(T(1u << (8 * sizeof(T) - 1)));
  switch (op) {
    case NarrowOp::kAnd: return a & b;
    case NarrowOp::kOr: return a | b;
    case NarrowOp::kXor: return a ^ b;
    case NarrowOp::kFlipSign: return a ^ sign;
    case NarrowOp::kClearSign: return a & ~sign;
    case NarrowOp::kCopysign: return (a & ~sign) | (b & sign);
    case NarrowOp::kAdd: return Vec<T>(Words(a) + Words(b));
    case NarrowOp::kMul: return Vec<T>(Words(a) * Words(b));
    case NarrowOp::kSub: return Vec<T>(Words(a) - Words(b));
    case NarrowOp::kRSub: return Vec<T>(Words(b) - Words(a));
    case NarrowOp::kNeg: return Vec<T>(Words{} - Words(a));
    case NarrowOp::kAbs: return chosen(a < T(0), Vec<T>(Words{} - Words(a)), a);
    case NarrowOp::kMaximum: return chosen(less(a, b, lowest), b, a);
    case NarrowOp::kMinimum: return chosen(less(b, a, lowest), b, a);
    default: break;
  }
  if constexpr (sizeof(T) == 1) {
    Vec<T> mask = Vec<T>(a == b);
    if (op == NarrowOp::kLt || op == NarrowOp::kGe) mask = less(a, b, lowest);
    if (op == NarrowOp::kGt || op == NarrowOp::kLe) mask = less(b, a, lowest);
    const bool inverts = op == NarrowOp::kNe || op == NarrowOp::kLe || op == NarrowOp::kGe;
    return (inverts ? ~mask : mask) & splat(T(1));
  }
  return a;
}

// n: a multiple of the lanes, here and in halves.
template <class T> TT_INLINE void integers(NarrowOp op, bool is_unsigned, char* out, const char* a,
                                           const char* b, int64_t n) {
  auto* o = reinterpret_cast<T*>(out);
  const auto* x = reinterpret_cast<const T*>(a);
  const auto* y = reinterpret_cast<const T*>(b);
  const Vec<T> lowest = splat(T(is_unsigned ? 0x80 : 0));
  for (int64_t i = 0; i < n; i += kLanes<T>)
    store(o + i, integer_value<T>(op, load(x + i), load(y + i), lowest));
}

// ---- halves ----

TT_INLINE Floats float_values(NarrowOp op, Floats a, Floats b, Vec<float> alpha) {
  using V = Vec<float>;
  switch (op) {
    case NarrowOp::kAdd: return both(a, b, [=](V x, V y) { return x + alpha * y; });
    case NarrowOp::kSub: return both(a, b, [=](V x, V y) { return x - alpha * y; });
    case NarrowOp::kRSub: return both(a, b, [=](V x, V y) { return y - alpha * x; });
    case NarrowOp::kMul: return both(a, b, [](V x, V y) { return x * y; });
    case NarrowOp::kDiv: return both(a, b, [](V x, V y) { return x / y; });
    case NarrowOp::kMaximum:
      return both(a, b, [](V x, V y) { return chosen((x < y) | (y != y), y, x); });
    default:  // kMinimum
      return both(a, b, [](V x, V y) { return chosen((x > y) | (y != y), y, x); });
  }
}

// b is a number if it has floats: all are the same, and keep their precision.
void halves(NarrowOp op, float alpha, bool is_bf16, char* out, const char* a, const char* b,
            bool b_is_float, int64_t n) {
  const auto number = load(reinterpret_cast<const float*>(b));
  const Vec<float> scale = splat(alpha);
  for (int64_t i = 0; i < 2 * n; i += TT_VEC_BYTES) {
    const Floats x = load_halves(is_bf16, a + i);
    Floats y = {number, number};
    if (!b_is_float) y = load_halves(is_bf16, b + i);
    store_halves(is_bf16, out + i, float_values(op, x, y, scale));
  }
}

// alpha: of sums and differences of halves.
TT_NOINLINE void run_whole(int32_t dtype, NarrowOp op, float alpha, char* out, const char* a,
                           const char* b, bool b_is_float, int64_t n) {
  if (dtype == TT_I16) return integers<int16_t>(op, false, out, a, b, n);
  if (dtype < TT_I16) return integers<int8_t>(op, dtype == TT_U8, out, a, b, n);
  halves(op, alpha, dtype == TT_BF16, out, a, b, b_is_float, n);
}

// Which operators have a loop for integers, bytes and halves.
constexpr uint32_t bits_of(NarrowOp first, NarrowOp last) {
  return (2u << int(last)) - (1u << int(first));
}
constexpr uint32_t kOfIntegers = bits_of(NarrowOp::kAnd, NarrowOp::kMinimum);
constexpr uint32_t kOfHalves = bits_of(NarrowOp::kNeg, NarrowOp::kCopysign);
constexpr uint32_t kComparisons = bits_of(NarrowOp::kEq, NarrowOp::kGe);

// The dtypes that the loop reads and writes, as for run_elementwise; 0 if there is no loop.
uint32_t narrow_dtypes(const ElementPlan& plan, NarrowOp op) {
  const int32_t dtype = plan.dtype[1];
  const bool is_half = dtype == TT_BF16 || (kHalfConversions && dtype == TT_F16);
  const bool is_byte = dtype == TT_U8 || dtype == TT_I8;
  uint32_t ops = 0;
  if (is_half) ops = kOfHalves;
  if (is_byte || dtype == TT_I16) ops = kOfIntegers;
  if (is_byte) ops |= kComparisons;
  const int32_t out = kComparisons >> int(op) & 1 ? int32_t(TT_BOOL) : dtype;
  const bool widens = plan.compute == (is_half ? TT_F32 : TT_I32);
  const tt_scalar& alpha = plan.param[0];
  const bool scaled = !is_half && alpha.kind && (alpha.kind > TT_SCALAR_INT || alpha.i != 1);
  if (!widens || !(ops >> int(op) & 1) || scaled || plan.dtype[0] != out) return 0;
  const int32_t second = plan.n_operands > 2 ? plan.dtype[2] : dtype;
  const bool is_number = is_half && second == TT_F32 && plan.ptr[2] == plan.scalar[2];
  if (second != dtype && (!is_number || op == NarrowOp::kCopysign)) return 0;
  return uint32_t(out) | uint32_t(dtype) << 8 | uint32_t(second) << 16;
}

TT_ISA_END

TT_ENTRY_BEGIN

void run_narrow_block(const ElementPlan& plan, NarrowOp op, char* out, const char* a, const char* b,
                      int64_t n) noexcept {
  int32_t dtype = plan.dtype[1];
  const bool b_is_float = b && plan.dtype[2] == TT_F32;
  const float alpha = plan.param[0].kind ? scalar_as<float>(plan.param[0]) : 1.0f;
  if (!b) b = a;
  if (op == NarrowOp::kNeg || op == NarrowOp::kAbs) {
    if (dtype >= TT_F16) {
      op = op == NarrowOp::kNeg ? NarrowOp::kFlipSign : NarrowOp::kClearSign;
      dtype = TT_I16;
    } else if (dtype == TT_U8 && op == NarrowOp::kAbs) {
      op = NarrowOp::kOr;  // of a and itself
    }
  }
  if (op == NarrowOp::kCopysign) dtype = TT_I16;  // of halves
  // The last elements are padded to a vector.
  constexpr int64_t kStep = TT_VEC_BYTES;
  const int64_t rest = n % kStep;
  const int64_t whole = n - rest;
  if (whole) run_whole(dtype, op, alpha, out, a, b, b_is_float, whole);
  if (!rest) return;
  const int32_t second = b_is_float ? int32_t(TT_F32) : dtype;
  const int32_t result = plan.dtype[0];
  alignas(64) char padded[2][kStep * 4];
  convert_block(padded[0], dtype, a + whole * kItemSize[dtype], dtype, rest);
  convert_block(padded[1], second, b + whole * kItemSize[second], second, rest);
  run_whole(dtype, op, alpha, padded[0], padded[0], padded[1], b_is_float, kStep);
  convert_block(out + whole * kItemSize[result], result, padded[0], result, rest);
}

int32_t run_narrow(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                   uint32_t native, NarrowOp op, Block narrow) noexcept {
  const uint32_t dtypes = plan.dense ? 0 : narrow_dtypes(plan, op);
  if (dtypes) return run_indirect(plan, begin, end, narrow, dtypes);
  return run_elementwise(plan, begin, end, block, native);
}

TT_ENTRY_END
