// Functions of three 8- or 16-bit numbers, as narrow.cpp has those of two. Of integers there is
// addcmul, which has the same low bits in any width.
#include "kernels/cpu/elementwise/narrow.h"

TT_ISA_BEGIN

TT_INLINE Vec<float> value_of(NarrowOp op, Vec<float> a, Vec<float> b, Vec<float> c,
                              Vec<float> alpha) {
  if (op == NarrowOp::kAddcmul) return a + alpha * b * c;
  if (op == NarrowOp::kAddcdiv) return a + alpha * b / c;
  const Vec<float> step = b - a;
  return chosen((c < 0.5f) & (c > -0.5f), a + c * step, b - step * (1.0f - c));  // kLerp
}

// lerp by one number c. The terms are those of value_of: only the sign of 1 - c moves.
void run_whole_lerp(bool is_bf16, float c, char* out, const char* a, const char* b, int64_t n) {
  const bool near_first = c < 0.5f && c > -0.5f;
  const Vec<float> factor = splat(near_first ? c : -(1.0f - c));
  for (int64_t i = 0; i < 2 * n; i += TT_VEC_BYTES) {
    const Floats x = load_halves(is_bf16, a + i);
    const Floats y = load_halves(is_bf16, b + i);
    const Floats from = near_first ? x : y;
    store_halves(is_bf16, out + i,
                 {from.low + factor * (y.low - x.low), from.high + factor * (y.high - x.high)});
  }
}

template <class T> void addcmul_integers(int64_t alpha, char* out, const char* a, const char* b,
                                         const char* c, int64_t n) {
  using Words = Vec<Unsigned<T>>;
  const Words scale = splat(Unsigned<T>(alpha));
  const auto words = [](const char* p)
                         TT_INLINE_BODY { return Words(load(reinterpret_cast<const T*>(p))); };
  for (int64_t i = 0; i < n * int64_t(sizeof(T)); i += TT_VEC_BYTES)
    store(reinterpret_cast<T*>(out + i),
          Vec<T>(words(a + i) + scale * words(b + i) * words(c + i)));
}

// n: a multiple of the lanes. c is a number if it has floats: all are the same, and keep their
// precision.
TT_NOINLINE void run_whole_three(bool is_bf16, NarrowOp op, float alpha, char* out, const char* a,
                                 const char* b, const char* c, bool c_is_float, int64_t n) {
  const Vec<float> scale = splat(alpha);
  const auto number = load(reinterpret_cast<const float*>(c));
  for (int64_t i = 0; i < 2 * n; i += TT_VEC_BYTES) {
    const Floats x = load_halves(is_bf16, a + i);
    const Floats y = load_halves(is_bf16, b + i);
    Floats z = {number, number};
    if (!c_is_float) z = load_halves(is_bf16, c + i);
    store_halves(
        is_bf16, out + i,
        {value_of(op, x.low, y.low, z.low, scale), value_of(op, x.high, y.high, z.high, scale)});
  }
}

TT_INLINE bool is_integer(int32_t dtype) {
  return dtype == TT_U8 || dtype == TT_I8 || dtype == TT_I16;
}

// The operator of a call, its dtype and its numbers.
struct Three {
  NarrowOp op;
  int32_t dtype;
  bool c_is_float;
  tt_scalar alpha;
};
TT_INLINE Three three_of(const ElementPlan& plan, NarrowOp op) {
  return {op, plan.dtype[0], plan.dtype[3] == TT_F32, plan.param[0]};
}
TT_NOINLINE void run_whole(const Three& t, char* out, const char* a, const char* b, const char* c,
                           int64_t n) {
  if (is_integer(t.dtype)) {
    const int64_t alpha = t.alpha.kind ? t.alpha.i : 1;
    if (t.dtype == TT_I16) return addcmul_integers<int16_t>(alpha, out, a, b, c, n);
    return addcmul_integers<int8_t>(alpha, out, a, b, c, n);
  }
  const bool is_bf16 = t.dtype == TT_BF16;
  if (t.op == NarrowOp::kLerp && t.c_is_float) {
    float weight;
    memcpy(&weight, c, sizeof weight);
    return run_whole_lerp(is_bf16, weight, out, a, b, n);
  }
  const float alpha = t.alpha.kind ? scalar_as<float>(t.alpha) : 1.0f;
  run_whole_three(is_bf16, t.op, alpha, out, a, b, c, t.c_is_float, n);
}

// The dtypes that the loop reads and writes, as for run_elementwise; 0 if there is no loop.
uint32_t three_dtypes(const ElementPlan& plan, NarrowOp op) {
  const int32_t dtype = plan.dtype[0];
  const bool of_integers = op == NarrowOp::kAddcmul && is_integer(dtype);
  const bool is_half = dtype == TT_BF16 || (kHalfConversions && dtype == TT_F16);
  const bool is_scaled = plan.param[0].kind > TT_SCALAR_INT;
  if (!is_half && (!of_integers || is_scaled)) return 0;
  if (plan.compute != (is_half ? TT_F32 : TT_I32)) return 0;
  if (plan.dtype[1] != dtype || plan.dtype[2] != dtype) return 0;
  const int32_t third = plan.dtype[3];
  const bool is_number = is_half && third == TT_F32 && plan.ptr[3] == plan.scalar[3];
  if (third != dtype && !is_number) return 0;
  return uint32_t(dtype) * 0x010101u | uint32_t(third) << 24;
}

TT_ISA_END

TT_ENTRY_BEGIN

void run_narrow_three_block(const ElementPlan& plan, NarrowOp op, char* out, const char* a,
                            const char* b, const char* c, int64_t n) noexcept {
  const Three call = three_of(plan, op);
  const int32_t dtype = call.dtype;
  const int64_t item = kItemSize[dtype];
  // The last elements are padded to a vector.
  const int64_t step = TT_VEC_BYTES / item;
  const int64_t rest = n % step;
  const int64_t whole = n - rest;
  if (whole) run_whole(call, out, a, b, c, whole);
  if (!rest) return;
  alignas(64) char padded[3][TT_VEC_BYTES];
  convert_block(padded[0], dtype, a + whole * item, dtype, rest);
  convert_block(padded[1], dtype, b + whole * item, dtype, rest);
  if (!call.c_is_float) {
    convert_block(padded[2], dtype, c + whole * item, dtype, rest);
    c = padded[2];
  }
  run_whole(call, padded[0], padded[0], padded[1], c, step);
  convert_block(out + whole * item, dtype, padded[0], dtype, rest);
}

int32_t run_narrow_three(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                         uint32_t native, NarrowOp op, Block narrow) noexcept {
  const uint32_t dtypes = plan.dense ? 0 : three_dtypes(plan, op);
  if (dtypes) return run_indirect(plan, begin, end, narrow, dtypes);
  return run_elementwise(plan, begin, end, block, native);
}

TT_ENTRY_END
