// Tiles of int8_matmul by the dot products of AVX512_VNNI, AVX-VNNI and ARM.
#include "kernels/cpu/quant/int8_tile.h"

TT_ISA_BEGIN

#if TT_BYTE_DOT

struct DotByBytes {
  static constexpr bool kLowersB = kDotLowersU;
  Ints32 s;
  TT_INLINE explicit DotByBytes(const int8_t* a) : s(splat(quad_at(a))) {}
  TT_INLINE Ints32 add(Ints32 sum, Ints32 u) const { return dot_bytes(sum, u, s); }
};

constexpr int kDotRows = TT_VEC_BYTES == 64 ? 12 : TT_VEC_BYTES / 16 + 1;

#endif

TT_ISA_END

TT_ENTRY_BEGIN
#if TT_BYTE_DOT
bool int8_tiles_vnni(const Int8Plan& p, int64_t begin, int64_t end) noexcept {
  int32_t isa = kIsaBaseline;
  if (TT_VEC_BYTES == 32) isa = kIsaAvx2;
  if (TT_VEC_BYTES == 64) isa = kIsaAvx512;
  if (!(p.vnni >> isa & 1)) return false;
  int8_tiles<DotByBytes, kDotRows>(p, begin, end);
  return true;
}
#else
bool int8_tiles_vnni(const Int8Plan&, int64_t, int64_t) noexcept { return false; }
#endif
TT_ENTRY_END
