// Functions of one 8- or 16-bit number, as narrow.cpp has the other operators: in another file, so
// that programs without them hold none.
#include "kernels/cpu/elementwise/narrow.h"

TT_ISA_BEGIN

// What the numbers of a call clamp to; real_low is the slope of kLeakyRelu and the value of
// kReplaceNan, and both are those of kReplaceInf.
struct Bounds {
  int64_t low, high;
  float real_low, real_high;
};

TT_INLINE bool replaces(NarrowOp op) {
  return op == NarrowOp::kReplaceNan || op == NarrowOp::kReplaceInf;
}

// is_unsigned: the elements are uint8, and T is int8_t.
template <class T> TT_INLINE void clamp_integers(const Bounds& bounds, char* out, const char* a,
                                                 bool is_unsigned, int64_t n) {
  auto* o = reinterpret_cast<T*>(out);
  const auto* x = reinterpret_cast<const T*>(a);
  const Vec<T> lowest = splat(T(is_unsigned ? 0x80 : 0));
  const Vec<T> low = splat(T(bounds.low));
  const Vec<T> high = splat(T(bounds.high));
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    const Vec<T> v = load(x + i);
    const Vec<T> above = chosen(less(v, low, lowest), low, v);
    store(o + i, chosen(less(high, above, lowest), high, above));
  }
}

// Integers are their own floor, ceiling and rounding.
TT_INLINE bool is_rounding(NarrowOp op) { return op >= NarrowOp::kFloor && op <= NarrowOp::kRound; }

// n: a multiple of the lanes.
template <class T> TT_INLINE void integers(NarrowOp op, const Bounds& bounds, char* out,
                                           const char* a, bool is_unsigned, int64_t n) {
  if (op != NarrowOp::kSign) return clamp_integers<T>(bounds, out, a, is_unsigned, n);
  auto* o = reinterpret_cast<T*>(out);
  const auto* x = reinterpret_cast<const T*>(a);
  const Vec<T> lowest = splat(T(is_unsigned ? 0x80 : 0));
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    const Vec<T> v = load(x + i);
    store(o + i, Vec<T>(less(v, Vec<T>{}, lowest) - less(Vec<T>{}, v, lowest)));
  }
}

// ---- halves ----

// As in cpu/math: ties to even; a float from 2^23 on has no fraction.
TT_INLINE Vec<float> with_sign_of(Vec<float> x, Vec<float> sign) {
  return Vec<float>((Vec<int32_t>(x) & INT32_MAX) | (Vec<int32_t>(sign) & INT32_MIN));
}
TT_INLINE Vec<float> rounded(Vec<float> x) {
  const Vec<float> size = with_sign_of(x, Vec<float>{});
  const Vec<float> y = with_sign_of((size + 0x1p23f) - 0x1p23f, x);
  return chosen(size < 0x1p23f, y, x);
}
TT_INLINE Vec<float> floored(Vec<float> x) {
  const Vec<float> y = rounded(x);
  return with_sign_of(chosen(y > x, y - 1.0f, y), x);
}

TT_INLINE Vec<float> clamped(Vec<float> x, Floats bounds) {
  const Vec<float> above = chosen(x < bounds.low, bounds.low, x);
  return chosen(above > bounds.high, bounds.high, above);
}
TT_INLINE Floats function_values(NarrowOp op, Floats a, Floats bounds) {
  using V = Vec<float>;
  switch (op) {
    case NarrowOp::kClamp: return {clamped(a.low, bounds), clamped(a.high, bounds)};
    case NarrowOp::kSqrt: return both(a, a, [](V x, V) { return exact_sqrt(x); });
    case NarrowOp::kRsqrt: return both(a, a, [](V x, V) { return 1.0f / exact_sqrt(x); });
    case NarrowOp::kReciprocal: return both(a, a, [](V x, V) { return 1.0f / x; });
    case NarrowOp::kFloor: return both(a, a, [](V x, V) { return floored(x); });
    case NarrowOp::kCeil: return both(a, a, [](V x, V) { return -floored(-x); });
    case NarrowOp::kTrunc:
      return both(a, a, [](V x, V) { return with_sign_of(floored(with_sign_of(x, V{})), x); });
    case NarrowOp::kRound: return both(a, a, [](V x, V) { return rounded(x); });
    case NarrowOp::kLeakyRelu:
      return both(a, a, [=](V x, V) { return chosen(x > 0.0f, x, x * bounds.low); });
    default:  // kRelu
      return both(a, a, [](V x, V) { return chosen(x <= 0.0f, V{}, x); });
  }
}
void halves(NarrowOp op, bool is_bf16, const Bounds& bounds, char* out, const char* a, int64_t n) {
  const Floats ends = {splat(bounds.real_low), splat(bounds.real_high)};
  for (int64_t i = 0; i < 2 * n; i += TT_VEC_BYTES)
    store_halves(is_bf16, out + i, function_values(op, load_halves(is_bf16, a + i), ends));
}

// Replaces nan by real_low, or infinity by real_low and -infinity by real_high.
void replace_halves(NarrowOp op, bool is_bf16, const Bounds& bounds, char* out, const char* a,
                    int64_t n) {
  const int32_t dtype = is_bf16 ? TT_BF16 : TT_F16;
  const float numbers[3] = {bounds.real_low, bounds.real_high, float(kInf)};
  int16_t bits[3];
  convert_block(bits, dtype, numbers, TT_F32, 3);
  using V = Vec<int16_t>;
  const V low = splat(bits[0]);
  const V high = splat(bits[1]);
  const V infinity = splat(bits[2]);
  auto* o = reinterpret_cast<int16_t*>(out);
  const auto* x = reinterpret_cast<const int16_t*>(a);
  for (int64_t i = 0; i < n; i += kLanes<int16_t>) {
    const V v = load(x + i);
    const V size = v & int16_t(INT16_MAX);
    V y = chosen(size > infinity, low, v);
    if (op == NarrowOp::kReplaceInf)
      y = chosen(size == infinity, chosen(v < int16_t(0), high, low), v);
    store(o + i, y);
  }
}

TT_NOINLINE void run_whole_function(int32_t dtype, NarrowOp op, const Bounds& bounds, char* out,
                                    const char* a, int64_t n) {
  if (replaces(op)) return replace_halves(op, dtype == TT_BF16, bounds, out, a, n);
  if (dtype > TT_I16) return halves(op, dtype == TT_BF16, bounds, out, a, n);
  if (is_rounding(op)) {
    memmove(out, a, size_t(n * kItemSize[dtype]));
    return;
  }
  if (dtype == TT_I16) return integers<int16_t>(op, bounds, out, a, false, n);
  integers<int8_t>(op, bounds, out, a, dtype == TT_U8, n);
}

// The range of a dtype of 8 or 16 bits, then what the call clamps to in it.
Bounds range_of(int32_t dtype) {
  const float inf = float(kInf);
  if (dtype == TT_U8) return {0, 255, -inf, inf};
  if (dtype == TT_I8) return {-128, 127, -inf, inf};
  return {INT16_MIN, INT16_MAX, -inf, inf};
}
Bounds clamp_bounds(const ElementPlan& plan, NarrowOp op) {
  const tt_scalar& low = plan.param[0];
  const tt_scalar& high = plan.param[1];
  Bounds b = range_of(plan.dtype[1]);
  if (op == NarrowOp::kRelu) b.low = 0;
  if (op == NarrowOp::kLeakyRelu || replaces(op)) b.real_low = scalar_as<float>(low);
  if (replaces(op)) b.real_high = scalar_as<float>(high);
  if (op != NarrowOp::kClamp) return b;
  if (low.kind) b.low = low.kind <= TT_SCALAR_INT ? low.i : INT64_MIN;
  if (high.kind) b.high = high.kind <= TT_SCALAR_INT ? high.i : INT64_MAX;
  if (low.kind) b.real_low = scalar_as<float>(low);
  if (high.kind) b.real_high = scalar_as<float>(high);
  return b;
}
// Whether the loop clamps as 32-bit numbers do: to bounds of the dtype, none of which is nan.
bool can_clamp(const ElementPlan& plan, NarrowOp op, bool is_half) {
  const Bounds b = clamp_bounds(plan, op);
  if (is_half) return b.real_low == b.real_low && b.real_high == b.real_high;
  const Bounds range = range_of(plan.dtype[1]);
  return min(b.low, b.high) >= range.low && max(b.low, b.high) <= range.high;
}

// The dtypes that the loop reads and writes, as for run_elementwise; 0 if there is no loop.
uint32_t function_dtypes(const ElementPlan& plan, NarrowOp op) {
  const int32_t dtype = plan.dtype[1];
  const bool is_half = dtype == TT_BF16 || (kHalfConversions && dtype == TT_F16);
  const bool is_integer = dtype == TT_U8 || dtype == TT_I8 || dtype == TT_I16;
  const bool of_any = op == NarrowOp::kClamp || op == NarrowOp::kRelu || is_rounding(op);
  const bool has_loop = is_half ? op != NarrowOp::kSign : of_any || op == NarrowOp::kSign;
  if ((!is_half && !is_integer) || !has_loop || plan.dtype[0] != dtype) return 0;
  if (plan.compute != (is_half ? TT_F32 : TT_I32) || !can_clamp(plan, op, is_half)) return 0;
  return uint32_t(dtype) | uint32_t(dtype) << 8;
}

TT_ISA_END

TT_ENTRY_BEGIN

void run_narrow_function_block(const ElementPlan& plan, NarrowOp op, char* out, const char* a,
                               int64_t n) noexcept {
  const int32_t dtype = plan.dtype[1];
  const Bounds bounds = clamp_bounds(plan, op);
  // The last elements are padded to a vector.
  constexpr int64_t kStep = TT_VEC_BYTES;
  const int64_t rest = n % kStep;
  const int64_t whole = n - rest;
  if (whole) run_whole_function(dtype, op, bounds, out, a, whole);
  if (!rest) return;
  alignas(64) char padded[kStep * 2];
  const int64_t at = whole * kItemSize[dtype];
  convert_block(padded, dtype, a + at, dtype, rest);
  run_whole_function(dtype, op, bounds, padded, padded, kStep);
  convert_block(out + at, dtype, padded, dtype, rest);
}

int32_t run_narrow_function(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                            uint32_t native, NarrowOp op, Block narrow) noexcept {
  const uint32_t dtypes = plan.dense ? 0 : function_dtypes(plan, op);
  if (dtypes) return run_indirect(plan, begin, end, narrow, dtypes);
  return run_elementwise(plan, begin, end, block, native);
}

TT_ENTRY_END
