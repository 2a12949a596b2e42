// Tiles of int8_matmul by the dot products of AVX512_VNNI, AVX-VNNI and ARM.
#include "kernels/cpu/quant/int8_tile.h"

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || \
    (defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD))
#define TT_BYTE_DOTS 1
#else
#define TT_BYTE_DOTS 0
#endif

TT_ISA_BEGIN

#if TT_BYTE_DOTS

#if defined(__AVX512VNNI__)
struct DotByBytes {
  static constexpr bool kLowersB = false;
  __m512i s;
  TT_INLINE explicit DotByBytes(const int8_t* a) : s(_mm512_set1_epi32(quad_at(a))) {}
  TT_INLINE Ints32 add(Ints32 sum, Ints32 u) const {
    return Ints32(_mm512_dpbusd_epi32(__m512i(sum), __m512i(u), s));
  }
};
#elif defined(__AVXVNNI__)
struct DotByBytes {
  static constexpr bool kLowersB = false;
  __m256i s;
  TT_INLINE explicit DotByBytes(const int8_t* a) : s(_mm256_set1_epi32(quad_at(a))) {}
  TT_INLINE Ints32 add(Ints32 sum, Ints32 u) const {
    return Ints32(_mm256_dpbusd_avx_epi32(__m256i(sum), __m256i(u), s));
  }
};
#else
// Both operands are signed: u ^ 128 is u - 128.
struct DotByBytes {
  static constexpr bool kLowersB = true;
  int8x16_t s;
  TT_INLINE explicit DotByBytes(const int8_t* a)
      : s(vreinterpretq_s8_s32(vdupq_n_s32(quad_at(a)))) {}
  TT_INLINE Ints32 add(Ints32 sum, Ints32 u) const {
    const int8x16_t lowered = veorq_s8(int8x16_t(u), vdupq_n_s8(-128));
    return Ints32(vdotq_s32(int32x4_t(sum), lowered, s));
  }
};
#endif

constexpr int kDotRows = TT_VEC_BYTES == 64 ? 12 : TT_VEC_BYTES / 16 + 1;

#endif

TT_ISA_END

TT_ENTRY_BEGIN
#if TT_BYTE_DOTS
bool int8_tiles_vnni(const Int8Plan& p, int64_t begin, int64_t end) noexcept {
#if defined(__x86_64__)
  const int32_t isa = TT_VEC_BYTES == 64 ? kIsaAvx512 : kIsaAvx2;
#else
  const int32_t isa = kIsaBaseline;
#endif
  if (!(p.vnni >> isa & 1)) return false;
  int8_tiles<DotByBytes, kDotRows>(p, begin, end);
  return true;
}
#else
bool int8_tiles_vnni(const Int8Plan&, int64_t, int64_t) noexcept { return false; }
#endif
TT_ENTRY_END
