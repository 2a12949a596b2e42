// Functions of three halves, as narrow.cpp has those of two.
#include "kernels/cpu/elementwise/narrow.h"

TT_ISA_BEGIN

TT_INLINE Vec<float> value_of(NarrowOp op, Vec<float> a, Vec<float> b, Vec<float> c,
                              Vec<float> alpha) {
  if (op == NarrowOp::kAddcmul) return a + alpha * b * c;
  if (op == NarrowOp::kAddcdiv) return a + alpha * b / c;
  const Vec<float> step = b - a;
  return chosen((c < 0.5f) & (c > -0.5f), a + c * step, b - step * (1.0f - c));  // kLerp
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

// The dtypes that the loop reads and writes, as for run_elementwise; 0 if there is no loop.
uint32_t three_dtypes(const ElementPlan& plan) {
  const int32_t dtype = plan.dtype[0];
  const bool is_half = dtype == TT_BF16 || (kHalfConversions && dtype == TT_F16);
  if (!is_half || plan.compute != TT_F32) return 0;
  if (plan.dtype[1] != dtype || plan.dtype[2] != dtype) return 0;
  const int32_t third = plan.dtype[3];
  const bool is_number = third == TT_F32 && plan.ptr[3] == plan.scalar[3];
  if (third != dtype && !is_number) return 0;
  return uint32_t(dtype) * 0x010101u | uint32_t(third) << 24;
}

TT_ISA_END

TT_ENTRY_BEGIN

void run_narrow_three_block(const ElementPlan& plan, NarrowOp op, char* out, const char* a,
                            const char* b, const char* c, int64_t n) noexcept {
  const int32_t dtype = plan.dtype[0];
  const int32_t third = plan.dtype[3];
  const bool is_bf16 = dtype == TT_BF16;
  const bool c_is_float = third == TT_F32;
  const float alpha = plan.param[0].kind ? scalar_as<float>(plan.param[0]) : 1.0f;
  // The last elements are padded to a vector.
  constexpr int64_t kStep = TT_VEC_BYTES / 2;
  const int64_t rest = n % kStep;
  const int64_t whole = n - rest;
  if (whole) run_whole_three(is_bf16, op, alpha, out, a, b, c, c_is_float, whole);
  if (!rest) return;
  alignas(64) char padded[3][kStep * 4];
  convert_block(padded[0], dtype, a + whole * 2, dtype, rest);
  convert_block(padded[1], dtype, b + whole * 2, dtype, rest);
  convert_block(padded[2], third, c + (c_is_float ? 0 : whole * 2), third, rest);
  const char* const number = c_is_float ? c : padded[2];
  run_whole_three(is_bf16, op, alpha, padded[0], padded[0], padded[1], number, c_is_float, kStep);
  convert_block(out + whole * 2, dtype, padded[0], dtype, rest);
}

int32_t run_narrow_three(const ElementPlan& plan, int64_t begin, int64_t end, Block block,
                         uint32_t native, NarrowOp, Block narrow) noexcept {
  const uint32_t dtypes = plan.dense ? 0 : three_dtypes(plan);
  if (dtypes) return run_indirect(plan, begin, end, narrow, dtypes);
  return run_elementwise(plan, begin, end, block, native);
}

TT_ENTRY_END
