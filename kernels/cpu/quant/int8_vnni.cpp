// Tiles of int8_matmul by the dot products of AVX512_VNNI and AVX-VNNI.
#include "kernels/cpu/quant/int8_tile.h"

TT_ISA_BEGIN

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)

#if defined(__AVX512VNNI__)
struct DotByBytes {
  __m512i s;
  TT_INLINE explicit DotByBytes(const int8_t* a) : s(_mm512_set1_epi32(quad_at(a))) {}
  TT_INLINE Ints32 add(Ints32 sum, Ints32 u) const {
    return Ints32(_mm512_dpbusd_epi32(__m512i(sum), __m512i(u), s));
  }
};
#else
struct DotByBytes {
  __m256i s;
  TT_INLINE explicit DotByBytes(const int8_t* a) : s(_mm256_set1_epi32(quad_at(a))) {}
  TT_INLINE Ints32 add(Ints32 sum, Ints32 u) const {
    return Ints32(_mm256_dpbusd_avx_epi32(__m256i(sum), __m256i(u), s));
  }
};
#endif

constexpr int kVnniRows = TT_VEC_BYTES == 64 ? 12 : 3;

#endif

TT_ISA_END

TT_ENTRY_BEGIN
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
bool int8_tiles_vnni(const Int8Plan& p, int64_t begin, int64_t end) noexcept {
  const int32_t isa = TT_VEC_BYTES == 64 ? kIsaAvx512 : kIsaAvx2;
  if (!(p.vnni >> isa & 1)) return false;
  int8_tiles<DotByBytes, kVnniRows>(p, begin, end);
  return true;
}
#else
bool int8_tiles_vnni(const Int8Plan&, int64_t, int64_t) noexcept { return false; }
#endif
TT_ENTRY_END
