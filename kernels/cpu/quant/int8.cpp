// int8_matmul: products of matrices of 8-bit integers. Every instruction set gives the same
// integers.
#include "kernels/cpu/quant/int8_tile.h"

TT_ISA_BEGIN

void pack_panel(const Int8Plan& p, int64_t panel) {
  const int64_t j0 = panel * kInt8Panel;
  const int64_t width = min(kInt8Panel, p.n - j0);
  uint8_t* out = p.packed_b + panel * kInt8Panel * p.quads * 4;
  const uint8_t flip = p.b_unsigned ? 0 : 128;  // x ^ 128 is x + 128 as an unsigned byte
  uint32_t sum[kInt8Panel] = {};
  const char* from = p.b + j0 * p.b_col;
  for (int64_t k = 0; k < p.quads * 4; k++) {
    uint8_t* to = out + k / 4 * kInt8Panel * 4 + k % 4;
    for (int64_t c = 0; c < kInt8Panel; c++) {
      const bool inside = c < width && k < p.k;
      const uint8_t x = inside ? uint8_t(from[c * p.b_col + k * p.b_k]) ^ flip : 0;
      to[c * 4] = x;
      sum[c] += x;
    }
  }
  for (int64_t c = 0; c < kInt8Panel; c++) p.b_sum[j0 + c] = int32_t(sum[c]);
}

// The same where the elements of a column are neighbours, as those of a weight (out, in).
void pack_columns(const Int8Plan& p, int64_t panel) {
  const int64_t j0 = panel * kInt8Panel;
  uint8_t* out = p.packed_b + panel * kInt8Panel * p.quads * 4;
  const uint32_t flip = p.b_unsigned ? 0 : 0x80808080u;
  for (int64_t c = 0; c < kInt8Panel; c++) {
    const char* from = p.b + (j0 + c) * p.b_col;
    const bool inside = j0 + c < p.n;
    uint32_t sum = 0;
    for (int64_t q = 0; q < p.quads; q++) {
      uint32_t quad = 0;
      const int64_t left = min<int64_t>(4, p.k - q * 4);
      if (inside && left == 4) {
        __builtin_memcpy(&quad, from + q * 4, 4);
        quad ^= flip;
      } else {
        for (int64_t e = 0; inside && e < left; e++)
          quad |= uint32_t(uint8_t(from[q * 4 + e]) ^ (flip & 255)) << 8 * e;
      }
      sum += (quad & 255) + (quad >> 8 & 255) + (quad >> 16 & 255) + (quad >> 24);
      __builtin_memcpy(out + (q * kInt8Panel + c) * 4, &quad, 4);
    }
    p.b_sum[j0 + c] = int32_t(sum);
  }
}

void pack_row(const Int8Plan& p, int64_t i) {
  const char* from = p.a + i * p.a_row;
  int8_t* to = p.packed_a + i * p.quads * 4;
  const uint8_t flip = p.a_unsigned ? 128 : 0;
  int32_t sum = 0;
  for (int64_t k = 0; k < p.k; k++) {
    const int8_t x = int8_t(uint8_t(from[k * p.a_k]) ^ flip);
    to[k] = x;
    sum = int32_t(uint32_t(sum) + uint32_t(int32_t(x)));
  }
  for (int64_t k = p.k; k < p.quads * 4; k++) to[k] = 0;
  p.a_sum[i] = sum;
}

void pack(const Int8Plan& p, int64_t begin, int64_t end) {
  const int64_t panels = int8_panels(p);
  for (int64_t u = begin; u < end; u++) {
    if (u < panels && p.b_k == 1) {
      pack_columns(p, u);
    } else if (u < panels) {
      pack_panel(p, u);
    } else {
      const int64_t i = (u - panels) * kInt8Rows;
      for (int64_t r = i; r < min(i + kInt8Rows, p.m); r++) pack_row(p, r);
    }
  }
}

TT_ISA_END

TT_ENTRY_BEGIN
TT_KERNEL(int8_matmul)(const void* plan, int64_t begin, int64_t end) noexcept {
  const Int8Plan& p = *static_cast<const Int8Plan*>(plan);
  if (p.run.stage == 0) pack(p, begin, end);
  else if (!int8_tiles_vnni(p, begin, end))
    int8_tiles<DotByWords, TT_VEC_BYTES == 64 ? 6 : 2>(p, begin, end);
  return TT_OK;
}
TT_ENTRY_END
