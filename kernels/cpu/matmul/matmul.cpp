// Entry points of the packed path: they compute units of one MatmulBlock, by dtype.
#include "kernels/cpu/matmul/packed.h"

TT_ENTRY_BEGIN

#define TT_DISPATCH(stage, dtype)                                 \
  switch (dtype) {                                                \
    case TT_F32: matmul_f32_##stage(k, begin, end); break;        \
    case TT_F64: matmul_f64_##stage(k, begin, end); break;        \
    case TT_C64: matmul_c64_##stage(k, begin, end); break;        \
    case TT_C128: matmul_c128_##stage(k, begin, end); break;      \
    case TT_I32: matmul_i32_##stage(k, begin, end); break;        \
    case TT_I64: matmul_i64_##stage(k, begin, end); break;        \
    case TT_F16: matmul_f16_##stage(k, begin, end); break;        \
    case TT_BF16:                                                 \
      if (k.bf16_pairs) matmul_bf16_pairs_##stage(k, begin, end); \
      else matmul_bf16_##stage(k, begin, end);                    \
      break;                                                      \
    default: return TT_NOT_IMPLEMENTED;                           \
  }                                                               \
  return TT_OK;

int32_t matmul_pack(const void* block, int64_t begin, int64_t end) noexcept {
  const MatmulBlock& k = *static_cast<const MatmulBlock*>(block);
  TT_DISPATCH(pack, k.factors)
}

int32_t matmul_tiles(const void* block, int64_t begin, int64_t end) noexcept {
  const MatmulBlock& k = *static_cast<const MatmulBlock*>(block);
  if (k.bf16_pairs && k.plan->dtype == TT_F32) {
    matmul_bf16_pairs_sums(k, begin, end);
    return TT_OK;
  }
  TT_DISPATCH(tiles, k.plan->dtype)
}

TT_ENTRY_END
