// int8_matmul: products of matrices of 8-bit integers. Every instruction set gives the same
// integers.
#include "kernels/cpu/quant/int8_tile.h"
#include "kernels/cpu/simd/amx.h"
#include "kernels/cpu/simd/mmla.h"
#include "kernels/cpu/simd/transpose.h"

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

// The sums of each lane's four unsigned bytes.
TT_INLINE Vec<int32_t> byte_sums(Vec<int32_t> quads) {
  using U = Vec<uint32_t>;
  const U pairs = (U(quads) & 0x00ff00ff) + (U(quads) >> 8 & 0x00ff00ff);
  return dot_words(Vec<int32_t>(pairs), splat(int32_t(0x00010001)));
}

#if TT_AMX
// Bytes of 32 columns of two rows as words.
TT_INLINE Vec<int32_t> pair_bytes(const char* even, const char* odd, uint8_t flip_even,
                                  uint8_t flip_odd) {
  using Row = Vector<uint8_t, 32>;
  using Pairs = Vector<uint16_t, 32>;
  Row x, y;
  memcpy(&x, even, sizeof x);
  memcpy(&y, odd, sizeof y);
  return Vec<int32_t>(converted<Pairs>(x ^ flip_even) | converted<Pairs>(y ^ flip_odd) << 8);
}

// The same for a whole panel whose rows are dense: two vectors of quads from four rows.
void pack_rows(const Int8Plan& p, int64_t panel) {
  const int64_t j0 = panel * kInt8Panel;
  int32_t* out = reinterpret_cast<int32_t*>(p.packed_b + panel * kInt8Panel * p.quads * 4);
  const uint8_t flip = p.b_unsigned ? 0 : 128;
  alignas(64) const char zeros[kInt8Panel] = {};
  Vec<int32_t> sum[kInt8Vectors] = {};
  for (int64_t q = 0; q < p.quads; q++, out += kInt8Panel) {
    const char* row[4];
    uint8_t flips[4];  // rows behind k are 0, not 128
    for (int r = 0; r < 4; r++) {
      const bool inside = q * 4 + r < p.k;
      row[r] = inside ? p.b + j0 + (q * 4 + r) * p.b_k : zeros;
      flips[r] = inside ? flip : 0;
    }
    const Vec<int32_t> even = pair_bytes(row[0], row[1], flips[0], flips[1]);
    const Vec<int32_t> odd = pair_bytes(row[2], row[3], flips[2], flips[3]);
    const Vec<int32_t> quads[kInt8Vectors] = {zip_words(even, odd, 0), zip_words(even, odd, 16)};
    for (int v = 0; v < kInt8Vectors; v++) {
      store(out + v * kInt8Lanes, quads[v]);
      sum[v] = sum[v] + byte_sums(quads[v]);
    }
  }
  for (int v = 0; v < kInt8Vectors; v++) store(p.b_sum + j0 + v * kInt8Lanes, sum[v]);
}
#else
using Bytes = Vector<uint8_t, 16>;
using Words = Vector<uint16_t, 8>;

TT_INLINE Bytes load_bytes(const char* p, Bytes flip) {
  Bytes v;
  memcpy(&v, p, sizeof v);
  return v ^ flip;
}
TT_INLINE Words zip_low(Bytes a, Bytes b) {
  return Words(shuffled<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b));
}
TT_INLINE Words zip_high(Bytes a, Bytes b) {
  return Words(shuffled<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b));
}
TT_INLINE void zip_store(Words even, Words odd, uint8_t* out) {
  const Words low = shuffled<0, 8, 1, 9, 2, 10, 3, 11>(even, odd);
  const Words high = shuffled<4, 12, 5, 13, 6, 14, 7, 15>(even, odd);
  memcpy(out, &low, sizeof low);
  memcpy(out + 16, &high, sizeof high);
}

// The same for a whole panel whose rows are dense: quads of 16 columns are zipped from four rows.
void pack_rows(const Int8Plan& p, int64_t panel) {
  const int64_t j0 = panel * kInt8Panel;
  uint8_t* out = p.packed_b + panel * kInt8Panel * p.quads * 4;
  const uint8_t shift = p.b_unsigned ? 0 : 128;
  const Bytes flip = Bytes{} + shift;
  alignas(64) uint32_t sum[kInt8Panel] = {};
  alignas(64) const char zeros[kInt8Panel] = {};
  for (int64_t q = 0; q < p.quads; q++, out += kInt8Panel * 4) {
    const char* row[4];
    Bytes mask[4];  // rows behind k are 0, not 128
    for (int r = 0; r < 4; r++) {
      const bool inside = q * 4 + r < p.k;
      row[r] = inside ? p.b + j0 + (q * 4 + r) * p.b_k : zeros;
      mask[r] = inside ? flip : Bytes{};
    }
    for (int c = 0; c < int(kInt8Panel); c += 16) {
      const Bytes a = load_bytes(row[0] + c, mask[0]);
      const Bytes b = load_bytes(row[1] + c, mask[1]);
      const Bytes d = load_bytes(row[2] + c, mask[2]);
      const Bytes e = load_bytes(row[3] + c, mask[3]);
      for (int l = 0; l < 16; l++)
        sum[c + l] += uint32_t(a[l]) + uint32_t(b[l]) + uint32_t(d[l]) + uint32_t(e[l]);
      const Words low_even = zip_low(a, b);
      const Words low_odd = zip_low(d, e);
      zip_store(low_even, low_odd, out + c * 4);
      zip_store(zip_high(a, b), zip_high(d, e), out + c * 4 + 32);
    }
  }
  for (int64_t c = 0; c < kInt8Panel; c++) p.b_sum[j0 + c] = int32_t(sum[c]);
}
#endif

// The same where the elements of a column are neighbours, as those of a weight (out, in): quad
// `first` and those behind it, whose bytes are added to b_sum.
void pack_quads(const Int8Plan& p, int64_t panel, int64_t first) {
  const int64_t j0 = panel * kInt8Panel;
  uint8_t* out = p.packed_b + panel * kInt8Panel * p.quads * 4;
  const uint32_t flip = p.b_unsigned ? 0 : 0x80808080u;
  for (int64_t c = 0; c < kInt8Panel; c++) {
    const char* from = p.b + (j0 + c) * p.b_col;
    const bool inside = j0 + c < p.n;
    auto sum = uint32_t(p.b_sum[j0 + c]);
    for (int64_t q = first; q < p.quads; q++) {
      uint32_t quad = 0;
      const int64_t left = min<int64_t>(4, p.k - q * 4);
      if (inside && left == 4) {
        memcpy(&quad, from + q * 4, 4);
        quad ^= flip;
      } else {
        for (int64_t e = 0; inside && e < left; e++)
          quad |= uint32_t(uint8_t(from[q * 4 + e]) ^ (flip & 255)) << 8 * e;
      }
      sum += (quad & 255) + (quad >> 8 & 255) + (quad >> 16 & 255) + (quad >> 24);
      memcpy(out + (q * kInt8Panel + c) * 4, &quad, 4);
    }
    p.b_sum[j0 + c] = int32_t(sum);
  }
}
// Tiles of kInt8Lanes quads by as many columns are transposed, the rest is packed one by one.
void pack_columns(const Int8Plan& p, int64_t panel) {
  constexpr int64_t kTile = kInt8Lanes;
  const int64_t j0 = panel * kInt8Panel;
  const bool full = j0 + kInt8Panel <= p.n;
  const int64_t quads = full ? p.k / 4 / kTile * kTile : 0;
  char* const out = reinterpret_cast<char*>(p.packed_b) + panel * kInt8Panel * p.quads * 4;
  const Vec<int32_t> flip = splat(int32_t(p.b_unsigned ? 0 : 0x80808080u));
  for (int64_t c = 0; c < kInt8Panel; c += kTile) {
    const char* const from = p.b + (j0 + c) * p.b_col;
    Vec<int32_t> sum = {};
    for (int64_t q = 0; q < quads; q += kTile) {
      auto* to = reinterpret_cast<int32_t*>(out) + q * kInt8Panel + c;
      transpose_tile<uint32_t, int(kTile)>(reinterpret_cast<char*>(to), kInt8Panel * 4,
                                           from + q * 4, p.b_col);
      for (int64_t i = 0; i < kTile; i++, to += kInt8Panel) {
        const Vec<int32_t> v = load(to) ^ flip;
        store(to, v);
        sum = sum + byte_sums(v);
      }
    }
    store(p.b_sum + j0 + c, sum);
  }
  if (quads < p.quads) pack_quads(p, panel, quads);
}

#if TT_MMLA
// Half of a pair of rows: [quads / 2][8], 16 bytes apart.
void pack_row_of_pair(const Int8Plan& p, int64_t i, uint8_t flip) {
  const char* from = p.a + i * p.a_row;
  int8_t* to = p.packed_a + i / 2 * 2 * p.quads * 4 + i % 2 * 8;
  uint32_t sum = 0;
  for (int64_t k = 0; k < p.quads * 4; k += 8, to += 16) {
    const int64_t left = clamp<int64_t>(p.k - k, 0, 8);
    uint64_t group = 0;
    if (p.a_k == 1 && left == 8) {
      memcpy(&group, from + k, 8);
      group ^= flip * 0x0101010101010101u;
    } else {
      for (int64_t e = 0; e < left; e++)
        group |= uint64_t(uint8_t(from[(k + e) * p.a_k]) ^ flip) << 8 * e;
    }
    memcpy(to, &group, 8);
    for (int e = 0; e < 8; e++) sum += uint32_t(int32_t(to[e]));
  }
  p.a_sum[i] = int32_t(sum);
}
#endif

#if TT_AMX
// 64 bytes of row i of a from k on, signed. Those behind the row are 0.
TT_INLINE Vec<int32_t> signed_bytes(const Int8Plan& p, int64_t i, int64_t k) {
  const uint8_t flip = p.a_unsigned ? 128 : 0;
  const int64_t n = min<int64_t>(kAmxRowBytes, p.k - k);
  const char* from = p.a + i * p.a_row + k * p.a_k;
  alignas(64) char bytes[kAmxRowBytes];
  if (p.a_k != 1 || n < kAmxRowBytes) {
    for (int64_t e = 0; e < n; e++) bytes[e] = from[e * p.a_k];
    for (int64_t e = n; e < kAmxRowBytes; e++) bytes[e] = char(flip);
    from = bytes;
  }
  Vec<int32_t> quads;
  memcpy(&quads, from, sizeof quads);
  return quads ^ splat(int32_t(flip * 0x01010101u));
}
// The sum of a row, 64 bytes at a time.
struct SignedSum {
  Vec<int32_t> of_unsigned = {};  // of bytes + 128
  TT_INLINE void add(Vec<int32_t> quads) {
    of_unsigned = of_unsigned + byte_sums(quads ^ splat(int32_t(0x80808080u)));
  }
  TT_INLINE int32_t total(const Int8Plan& p) const {
    uint32_t sum = 0;
    for (int l = 0; l < kInt8Lanes; l++) sum += uint32_t(of_unsigned[l]);
    return int32_t(sum - 128 * uint32_t(p.quads * 4));
  }
};

// A row of a panel of tiles: 64 bytes of each.
void pack_row_of_tiles(const Int8Plan& p, int64_t i) {
  char* to = reinterpret_cast<char*>(p.packed_a) + i / kAmxBlock * kAmxBlock * p.quads * 4 +
             i % kAmxBlock * kAmxRowBytes;
  SignedSum sum;
  for (int64_t k = 0; k < p.k; k += kAmxRowBytes, to += kAmxBlock * kAmxRowBytes) {
    const Vec<int32_t> quads = signed_bytes(p, i, k);
    store(reinterpret_cast<int32_t*>(to), quads);
    sum.add(quads);
  }
  p.a_sum[i] = sum.total(p);
}

// Rows as columns of tiles. The row behind the last one is 1 if sums of columns count.
void pack_tile_columns(const Int8Plan& p) {
  const int64_t rows = p.m + needs_column_sums(p);
  for (int64_t i = 0; i < rows; i += kAmxRows) {
    char* to = reinterpret_cast<char*>(p.packed_a) + i / kAmxBlock * kAmxBlock * p.quads * 4 +
               i % kAmxBlock / kAmxRows * kAmxTileBytes;
    const int64_t left = min<int64_t>(kAmxRows, p.m - i);
    SignedSum sums[kAmxRows];
    for (int64_t k = 0; k < p.k; k += kAmxRowBytes, to += 2 * kAmxTileBytes) {
      Vec<int32_t> tile[kAmxRows] = {};
      for (int64_t r = 0; r < left; r++) {
        tile[r] = signed_bytes(p, i + r, k);
        sums[r].add(tile[r]);
      }
      if (i + left < rows && left < kAmxRows)
        memset(&tile[left], 1, size_t(min<int64_t>(kAmxRowBytes, p.k - k)));
      transpose_tile<uint32_t, kAmxRows>(to, kAmxRowBytes, reinterpret_cast<const char*>(tile),
                                         kAmxRowBytes);
    }
    for (int64_t r = 0; r < left; r++) p.a_sum[i + r] = sums[r].total(p);
  }
}
#endif

void pack_row(const Int8Plan& p, int64_t i) {
  const char* from = p.a + i * p.a_row;
  int8_t* to = p.packed_a + i * p.quads * 4;
  const uint8_t flip = p.a_unsigned ? 128 : 0;
#if TT_MMLA
  if (p.mmla) return pack_row_of_pair(p, i, flip);
#endif
#if TT_AMX
  if (p.amx) return pack_row_of_tiles(p, i);
#endif
  if (p.a_k == 1) {
    for (int64_t k = 0; k < p.k; k++) to[k] = int8_t(uint8_t(from[k]) ^ flip);
  } else {
    for (int64_t k = 0; k < p.k; k++) to[k] = int8_t(uint8_t(from[k * p.a_k]) ^ flip);
  }
  for (int64_t k = p.k; k < p.quads * 4; k++) to[k] = 0;
  uint32_t sum = 0;
  for (int64_t k = 0; k < p.k; k++) sum += uint32_t(int32_t(to[k]));
  p.a_sum[i] = int32_t(sum);
}

#if TT_MMLA
// Rearranges [quads][kInt8Panel][4] as [quads / 2][kInt8Panel][8].
void pair_panel(const Int8Plan& p, int64_t panel) {
  char* at = reinterpret_cast<char*>(p.packed_b) + panel * kInt8Panel * p.quads * 4;
  for (int64_t q = 0; q < p.quads; q += 2, at += kInt8Panel * 8) pair_quads<int(kInt8Panel)>(at);
}
#endif

void pack(const Int8Plan& p, int64_t begin, int64_t end) {
#if TT_AMX
  if (has_tile_columns(p)) return pack_tile_columns(p);  // the only unit
#endif
  const int64_t panels = p.straight ? 0 : int8_panels(p);
  for (int64_t u = begin; u < end; u++) {
    if (u >= panels) {
      const int64_t i = (u - panels) * int8_unit_rows(p);
      for (int64_t r = i; r < min(i + int8_unit_rows(p), p.m); r++) pack_row(p, r);
      continue;
    }
    const bool full = (u + 1) * kInt8Panel <= p.n;
    if (p.b_k == 1) pack_columns(p, u);
    else if (p.b_col == 1 && full) pack_rows(p, u);
    else pack_panel(p, u);
#if TT_MMLA
    if (p.mmla) pair_panel(p, u);
#endif
  }
}

TT_ISA_END

TT_ENTRY_BEGIN
TT_KERNEL(int8_matmul)(const void* plan, int64_t begin, int64_t end) noexcept {
  const Int8Plan& p = *static_cast<const Int8Plan*>(plan);
  if (p.run.stage == 0) {
    pack(p, begin, end);
    return TT_OK;
  }
#if TT_MMLA
  if (p.mmla) {
    int8_tiles_mmla(p, begin, end);
    return TT_OK;
  }
#endif
  if (p.straight) {
    if (!int8_columns_amx(p, begin, end)) int8_columns(p, begin, end);
    return TT_OK;
  }
  if (!int8_tiles_amx(p, begin, end) && !int8_tiles_vnni(p, begin, end))
    int8_tiles<DotByWords, TT_VEC_BYTES == 64 ? 6 : 2>(p, begin, end);
  return TT_OK;
}
TT_ENTRY_END
