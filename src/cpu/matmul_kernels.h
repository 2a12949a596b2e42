// The CPU kernels of matmul. The baseline replaces instruction sets that the build omits.
#pragma once

#include "plan/matmul_plan.h"

namespace TT_NS {

#define TT_DECLARE_MATMUL(isa)                                                   \
  namespace isa {                                                                \
  int32_t matmul_pack(const void* block, int64_t begin, int64_t end) noexcept;   \
  int32_t matmul_tiles(const void* block, int64_t begin, int64_t end) noexcept;  \
  int32_t matmul_small(const void* plan, int64_t begin, int64_t end) noexcept;   \
  int32_t matmul_rows(const void* plan, int64_t begin, int64_t end) noexcept;    \
  /* Of a MatmulTiles. */                                                        \
  int32_t matmul_tiles_pack(const void*, int64_t begin, int64_t end) noexcept;   \
  int32_t matmul_tiles_units(const void*, int64_t begin, int64_t end) noexcept;  \
  /* Of a MatmulPieces. */                                                       \
  int32_t matmul_pieces_pack(const void*, int64_t begin, int64_t end) noexcept;  \
  int32_t matmul_pieces_rows(const void*, int64_t begin, int64_t end) noexcept;  \
  int32_t matmul_pieces_units(const void*, int64_t begin, int64_t end) noexcept; \
  /* Whether a group of bf16 is multiplied faster than its elements as f32. */   \
  bool matmul_bf16_groups_pay() noexcept;                                        \
  }
TT_DECLARE_MATMUL(baseline)
#if TT_HAVE_AVX2
TT_DECLARE_MATMUL(avx2)
#elif TT_HAVE_SVE256  // takes its place
TT_DECLARE_MATMUL(sve256)
namespace avx2 {
using namespace sve256;
}
#elif TT_HAVE_NEON    // takes its place, but for a few kernels
namespace neon {
using namespace baseline;
int32_t matmul_pack(const void* block, int64_t begin, int64_t end) noexcept;
int32_t matmul_tiles(const void* block, int64_t begin, int64_t end) noexcept;
int32_t matmul_small(const void* plan, int64_t begin, int64_t end) noexcept;
}  // namespace neon
namespace avx2 {
using namespace neon;
}
#else
namespace avx2 {
using namespace baseline;
}
#endif
#if TT_HAVE_AVX512
TT_DECLARE_MATMUL(avx512)
#else
namespace avx512 {
using namespace avx2;
}
#endif
#undef TT_DECLARE_MATMUL

struct MatmulKernels {
  CpuKernel pack, tiles;  // of a MatmulBlock
  CpuKernel small, rows;  // of a MatmulPlan
};
#if TT_MINIMAL
inline constexpr MatmulKernels kMatmulKernels[kNumIsa] = {
    {baseline::matmul_pack, baseline::matmul_tiles, nullptr, nullptr}};
#else
inline constexpr MatmulKernels kMatmulKernels[kNumIsa] = {
    {baseline::matmul_pack, baseline::matmul_tiles, baseline::matmul_small, baseline::matmul_rows},
    {avx2::matmul_pack, avx2::matmul_tiles, avx2::matmul_small, avx2::matmul_rows},
    {avx512::matmul_pack, avx512::matmul_tiles, avx512::matmul_small, avx512::matmul_rows}};
#endif

}  // namespace TT_NS
