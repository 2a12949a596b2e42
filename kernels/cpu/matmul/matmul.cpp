// Entry points of the packed path: they compute units of one MatmulBlock, by dtype.
#include "kernels/cpu/matmul/packed.h"

TT_ENTRY_BEGIN

#define TT_CASE(has, name, stage)         \
  if (!(has)) return TT_NOT_IMPLEMENTED;  \
  matmul_##name##_##stage(k, begin, end); \
  return TT_OK;
#define TT_DISPATCH(stage, dtype)                         \
  switch (dtype) {                                        \
    case TT_F32: TT_CASE(true, f32, stage)                \
    case TT_F64: TT_CASE(is_built(TT_F64), f64, stage)    \
    case TT_C64: TT_CASE(is_built(TT_C64), c64, stage)    \
    case TT_C128: TT_CASE(is_built(TT_C128), c128, stage) \
    case TT_I32: TT_CASE(kIntegerProducts, i32, stage)    \
    case TT_I64: TT_CASE(kIntegerProducts, i64, stage)    \
    case TT_F16: TT_CASE(is_built(TT_F16), f16, stage)    \
    case TT_BF16:                                         \
      if (is_built(TT_BF16) && k.bf16 == kBf16Groups) {   \
        TT_CASE(true, bf16_groups, stage)                 \
      }                                                   \
      TT_CASE(is_built(TT_BF16), bf16, stage)             \
    default: return TT_NOT_IMPLEMENTED;                   \
  }

int32_t matmul_pack(const void* block, int64_t begin, int64_t end) noexcept {
  const MatmulBlock& k = *static_cast<const MatmulBlock*>(block);
  TT_DISPATCH(pack, k.factors)
}

int32_t matmul_tiles(const void* block, int64_t begin, int64_t end) noexcept {
  const MatmulBlock& k = *static_cast<const MatmulBlock*>(block);
  if (is_built(TT_BF16) && k.bf16 == kBf16Groups && k.plan->dtype == TT_F32) {
    matmul_bf16_groups_sums(k, begin, end);
    return TT_OK;
  }
  TT_DISPATCH(tiles, k.plan->dtype)
}

TT_ENTRY_END
