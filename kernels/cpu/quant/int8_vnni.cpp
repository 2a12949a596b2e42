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

// ---- columns where they are ----

constexpr int kColumns = TT_VEC_BYTES == 64 ? 4 : 2;
constexpr int kStraightRows = 4;  // that share the bytes of columns

TT_INLINE int32_t sum_of(Ints32 v) {
  int32_t two[2];
  fold_lanes<int32_t, kInt8Lanes>(v, two, [](auto x, auto y) { return x + y; });
  return int32_t(uint32_t(two[0]) + uint32_t(two[1]));
}

// Sums of some columns, and of their products with rows.
template <int kRows> struct ColumnSums {
  Ints32 of_bytes[kColumns] = {};
  Ints32 of_rows[kRows][kColumns] = {};

  // Adds a vector of each column, at columns[c] + k, and of each row, a_row bytes apart.
  TT_INLINE void add(const char* const* columns, int64_t k, Ints32 flip, const int8_t* a,
                     int64_t a_row) {
    const Ints32 ones = splat(int32_t(0x01010101));
    Ints32 u[kColumns];
    TT_UNROLL
    for (int c = 0; c < kColumns; c++) {
      u[c] = load(reinterpret_cast<const int32_t*>(columns[c] + k)) ^ flip;
      of_bytes[c] = dot_bytes(of_bytes[c], u[c], ones);
    }
    TT_UNROLL
    for (int r = 0; r < kRows; r++) {
      const Ints32 s = load(reinterpret_cast<const int32_t*>(a + r * a_row));
      TT_UNROLL
      for (int c = 0; c < kColumns; c++) of_rows[r][c] = dot_bytes(of_rows[r][c], u[c], s);
    }
  }
};

// Columns [j, j + kColumns) of a panel, of which those beyond the last one repeat it, by kRows rows
// from i on: sums[r][kInt8Panel] from `first` on, and b_sum.
template <int kRows> TT_INLINE void column_dots(const Int8Plan& p, int64_t i, int64_t panel,
                                                int64_t first, int32_t* sums) {
  constexpr int64_t kStep = TT_VEC_BYTES;
  const int64_t a_row = p.quads * 4;
  const int8_t* const a = p.packed_a + i * a_row;
  const Ints32 flip = splat(int32_t(p.b_unsigned ? 0 : 0x80808080u));
  const char* columns[kColumns];
  for (int64_t c = 0; c < kColumns; c++)
    columns[c] = p.b + min(panel * kInt8Panel + first + c, p.n - 1) * p.b_col;
  ColumnSums<kRows> dots;
  int64_t k = 0;
  for (; k + kStep <= p.k; k += kStep) dots.add(columns, k, flip, a + k, a_row);
  if (k < p.k) {  // bytes behind the last one are 0 after the flip
    alignas(64) char last[kColumns][kStep];
    memset(last, p.b_unsigned ? 0 : 128, sizeof last);
    for (int c = 0; c < kColumns; c++) {
      memcpy(last[c], columns[c] + k, size_t(p.k - k));
      columns[c] = last[c];
    }
    dots.add(columns, 0, flip, a + k, a_row);
  }
  const uint32_t lowered = kDotLowersU ? 128 : 0;
  for (int c = 0; c < kColumns; c++) {
    const uint32_t of_bytes = lowered * uint32_t(round_up(p.k, kStep));
    p.b_sum[panel * kInt8Panel + first + c] =
        int32_t(uint32_t(sum_of(dots.of_bytes[c])) + of_bytes);
    for (int r = 0; r < kRows; r++)
      sums[r * kInt8Panel + first + c] =
          int32_t(uint32_t(sum_of(dots.of_rows[r][c])) + lowered * uint32_t(p.a_sum[i + r]));
  }
}
template <int kRows> TT_INLINE void column_rows(const Int8Plan& p, int64_t i, int64_t panel) {
  alignas(64) int32_t sums[kRows * kInt8Panel];
  const int64_t j = panel * kInt8Panel;
  const int64_t width = min(kInt8Panel, p.n - j);
  for (int64_t c = 0; c < kInt8Panel; c += kColumns) column_dots<kRows>(p, i, panel, c, sums);
  const Int8Columns b(p, j, width);
  for (int64_t r = 0; r < kRows; r++) int8_store(p, b, i + r, j, width, sums + r * kInt8Panel);
}

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
void int8_columns(const Int8Plan& p, int64_t begin, int64_t end) noexcept {
  for (int64_t u = begin; u < end; u++) {
    const Int8Unit unit(p, u);
    const int64_t last = unit.last_row;
    for (int64_t panel = unit.panel; panel < unit.last_panel; panel++) {
      int64_t i = unit.row;
      for (; i + kStraightRows <= last; i += kStraightRows) column_rows<kStraightRows>(p, i, panel);
      for (; i < last; i++) column_rows<1>(p, i, panel);
    }
  }
}
#else
bool int8_tiles_vnni(const Int8Plan&, int64_t, int64_t) noexcept { return false; }
void int8_columns(const Int8Plan&, int64_t, int64_t) noexcept {}  // never called
#endif
TT_ENTRY_END
