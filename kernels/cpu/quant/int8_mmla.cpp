// Tiles of int8_matmul by the products of matrices of ARM (I8MM): 12 rows by 8 columns.
#include "kernels/cpu/quant/int8_tile.h"
#include "kernels/cpu/simd/mmla.h"

#if TT_MMLA_BYTES

TT_ISA_BEGIN

constexpr int kMmlaRows = 12;
constexpr int kMmlaColumns = 8;
static_assert(kInt8Panel % kMmlaColumns == 0 && kInt8Rows % kMmlaRows == 0);

// sums[2 kPairs][kInt8Panel] of kMmlaColumns columns; a_pair bytes from two rows to the next two.
template <int kPairs> TT_INLINE void mmla_tile(const int8_t* a, int64_t a_pair, const uint8_t* b,
                                               int64_t steps, int32_t* sums) {
  constexpr int kColumnPairs = kMmlaColumns / 2;
  MmlaInts acc[kPairs][kColumnPairs] = {};
  for (int64_t s = 0; s < steps; s++, a += 16, b += kInt8Panel * 8) {
    MmlaInts columns[kColumnPairs];
    TT_UNROLL
    for (int c = 0; c < kColumnPairs; c++) columns[c] = mmla_load(b + 16 * c);
    TT_UNROLL
    for (int r = 0; r < kPairs; r++) {
      if (r >= 2) TT_KEEP_ORDER;  // two rows wait in registers, not all
      const MmlaInts rows = mmla_load(a + r * a_pair);
      TT_UNROLL
      for (int c = 0; c < kColumnPairs; c++) acc[r][c] = mmla_bytes(acc[r][c], columns[c], rows);
    }
  }
  TT_UNROLL
  for (int r = 0; r < kPairs; r++, sums += 2 * kInt8Panel)
    for (int c = 0; c < kColumnPairs; c += 2) {
      const MmlaInts first = mmla_first_row(acc[r][c], acc[r][c + 1]);
      const MmlaInts second = mmla_second_row(acc[r][c], acc[r][c + 1]);
      memcpy(sums + 2 * c, &first, sizeof first);
      memcpy(sums + kInt8Panel + 2 * c, &second, sizeof second);
    }
}

template <int kPairs>
void mmla_rows(const Int8Plan& p, const Int8Columns& cols, int64_t i, int64_t rows, int64_t j) {
  alignas(64) int32_t sums[2 * kPairs * kInt8Panel];
  const int64_t a_row = p.quads * 4;
  const uint8_t* b = p.packed_b + j * a_row;
  for (int64_t c = 0; c < kInt8Panel; c += kMmlaColumns)
    mmla_tile<kPairs>(p.packed_a + i * a_row, 2 * a_row, b + c * 8, p.quads / 2, sums + c);
  for (int64_t r = 0; r < rows; r++)
    int8_store(p, cols, i + r, j, min(kInt8Panel, p.n - j), sums + r * kInt8Panel);
}

TT_ISA_END

TT_ENTRY_BEGIN
void int8_tiles_mmla(const Int8Plan& p, int64_t begin, int64_t end) noexcept {
  const int64_t blocks = int8_blocks(p);
  for (int64_t u = begin; u < end; u++) {
    const int64_t j = u / blocks * kInt8Panel;
    int64_t i = u % blocks * kInt8Rows;
    const int64_t last = min(i + kInt8Rows, p.m);
    const Int8Columns cols(p, j, min(kInt8Panel, p.n - j));
    for (; i + kMmlaRows <= last; i += kMmlaRows) mmla_rows<6>(p, cols, i, kMmlaRows, j);
    for (; i < last; i += 4) {
      if (last - i > 2) mmla_rows<2>(p, cols, i, min<int64_t>(4, last - i), j);
      else mmla_rows<1>(p, cols, i, last - i, j);
    }
  }
}
TT_ENTRY_END

#endif
