// Matmul of bf16 by AVX512_BF16, whose fma takes two k positions at once, or by ARM's BFMMLA, which
// takes four. Without them, or where that fma is slow, the units of f32.cpp are called, which widen
// to f32.
#include "kernels/cpu/matmul/bf16_pack.h"
#include "kernels/cpu/matmul/packed.h"

#include "base/os.h"

#if TT_SVE
namespace TT_NS::baseline {
bool matmul_bf16_groups_pay() noexcept;
TT_MATMUL_UNITS(matmul_bf16_groups)
void matmul_bf16_groups_sums(const MatmulBlock& k, int64_t begin, int64_t end) noexcept;
}  // namespace TT_NS::baseline
#endif

#if TT_PAIR_DOT

TT_ISA_BEGIN

// Ticks of 384 independent fma of factors x.
template <class Factor> TT_NOINLINE int64_t ticks_of_fma(Vec<Factor> x) {
  constexpr int kSums = 12;  // more than are in flight
  Vec<float> sum[kSums] = {};
  const int64_t start = os_ticks();
  for (int round = 0; round < 32; round++) {
    TT_UNROLL
    for (int i = 0; i < kSums; i++) {
      sum[i] = fma(x, x, sum[i]);
      TT_KEEP_VECTOR(sum[i]);
    }
  }
  return os_ticks() - start;
}

TT_ISA_END

#endif

TT_ENTRY_BEGIN
#if TT_MMLA_BF16
// Neoverse V1 and N2 begin as many BFMMLA per cycle as FMAs, each with four times the products.
bool matmul_bf16_groups_pay() noexcept { return true; }
TT_MATMUL_DEFINE_PACKED(matmul_bf16_groups, Bf16, float, Bf16Quad)
void matmul_bf16_groups_sums(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  tile_units<float, Bf16Quad>(k, begin, end);
}
#elif TT_SVE
// BFMMLA of two vectors of NEON per cycle does as much as one of SVE.
bool matmul_bf16_groups_pay() noexcept { return baseline::matmul_bf16_groups_pay(); }
void matmul_bf16_groups_pack(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  baseline::matmul_bf16_groups_pack(k, begin, end);
}
void matmul_bf16_groups_tiles(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  baseline::matmul_bf16_groups_tiles(k, begin, end);
}
void matmul_bf16_groups_sums(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  baseline::matmul_bf16_groups_sums(k, begin, end);
}
#elif TT_PAIR_DOT
bool matmul_bf16_groups_pay() noexcept {
  int64_t pairs = INT64_MAX;
  int64_t floats = INT64_MAX;
  for (int i = 0; i < 16; i++) {  // the least of several, which nothing interrupts
    pairs = min(pairs, ticks_of_fma<Bf16Pair>(Vec<Bf16Pair>{}));
    floats = min(floats, ticks_of_fma<float>(Vec<float>{}));
  }
  return pairs < 2 * floats;
}
TT_MATMUL_DEFINE_PACKED(matmul_bf16_groups, Bf16, float, Bf16Pair)
void matmul_bf16_groups_sums(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  tile_units<float, Bf16Pair>(k, begin, end);
}
#else
bool matmul_bf16_groups_pay() noexcept { return false; }
void matmul_bf16_groups_pack(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  matmul_bf16_pack(k, begin, end);
}
void matmul_bf16_groups_tiles(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  matmul_bf16_tiles(k, begin, end);
}
void matmul_bf16_groups_sums(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  matmul_f32_tiles(k, begin, end);
}
#endif
TT_ENTRY_END
