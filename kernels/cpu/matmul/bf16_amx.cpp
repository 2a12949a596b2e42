// Matmul of bf16 by the tiles of AMX.
//
//   panel of a: [steps][2][16 rows][32 k]     panel of b: [steps][16 pairs of k][32 or 16 columns]
//
// A panel has 32 rows or columns, a step 32 positions of k; rows, columns and positions that are
// not there are 0. Row block r starts at element r.begin * 2 * depth of the packed a: from 16 rows
// on, that is room for whole tiles.
#include "kernels/cpu/matmul/bf16_pack.h"
#include "kernels/cpu/matmul/packed.h"
#include "kernels/cpu/simd/amx.h"

#if TT_AMX

TT_ISA_BEGIN

constexpr int64_t kStep = kMatmulAmxDepth;  // k positions
constexpr int64_t kStepOfRows = kAmxBlock * kStep;

TT_INLINE int64_t amx_steps(const MatmulBlock& k) { return ceil_div(k.nk, kStep); }

// Two tiles of at most 32 rows whose elements along k are neighbours.
void pack_rows_of_step(const Bf16* x, int64_t row_stride, int rows, int depth, Bf16* out) {
  for (int i = 0; i < kAmxBlock; i++, out += kStep) {
    const auto row = i < rows ? load_words(x + i * row_stride, depth) : Vec<int32_t>{};
    store(reinterpret_cast<int32_t*>(out), row);
  }
}

// The same for any strides: packs pairs side by side, then transposes them.
void pack_any_step(const Bf16* x, int64_t row_stride, int64_t k_stride, int rows, int depth,
                   Bf16* out) {
  alignas(64) Bf16Pair pairs[kAmxRows * kAmxBlock] = {};
  pack_panel(x, row_stride, k_stride, rows, kAmxBlock, depth, pairs);
  int32_t* to = reinterpret_cast<int32_t*>(out);
  for (int tile = 0; tile < 2; tile++, to += kAmxRows * kAmxRows) {
    const int32_t* from = reinterpret_cast<const int32_t*>(pairs) + tile * kAmxRows;
    Vec<int32_t> r[kAmxRows];
    TT_UNROLL
    for (int i = 0; i < kAmxRows; i++) r[i] = load(from + i * kAmxBlock);
    transpose<int32_t>(r);
    TT_UNROLL
    for (int i = 0; i < kAmxRows; i++) store(to + i * kAmxRows, r[i]);
  }
}

void pack_amx_rows(const MatmulBlock& k, PanelRange rows) {
  const MatmulPlan& p = *k.plan;
  const int64_t steps = amx_steps(k);
  Bf16* out = reinterpret_cast<Bf16*>(k.a_pack) + rows.begin * 2 * steps * kStep;
  for (int64_t i = rows.begin; i < rows.end; i += kAmxBlock) {
    const int h = int(min<int64_t>(kAmxBlock, rows.end - i));
    const Bf16* x = reinterpret_cast<const Bf16*>(k.a) + (k.i0 + i) * p.a_row + k.k0 * p.a_col;
    for (int64_t s = 0; s < steps; s++, out += kStepOfRows) {
      const int depth = int(min(kStep, k.nk - s * kStep));
      if (p.a_col == 1) pack_rows_of_step(x + s * kStep, p.a_row, h, depth, out);
      else pack_any_step(x + s * kStep * p.a_col, p.a_row, p.a_col, h, depth, out);
    }
  }
}

void pack_amx_cols(const MatmulBlock& k, PanelRange cols) {
  const MatmulPlan& p = *k.plan;
  const int64_t pairs = amx_steps(k) * kStep / 2;
  const int64_t packed = ceil_div(k.nk, int64_t(2));
  for (int64_t j = cols.begin; j < cols.end; j += kAmxBlock) {
    const int w = int(min<int64_t>(kAmxBlock, cols.end - j));
    const int pitch = panel_width<Bf16Pair>(w);
    const Bf16* x = reinterpret_cast<const Bf16*>(k.b) + k.k0 * p.b_row + (k.j0 + j) * p.b_col;
    Bf16Pair* out = reinterpret_cast<Bf16Pair*>(k.b_pack) + j * pairs;
    pack_panel(x, p.b_col, p.b_row, w, pitch, k.nk, out);
    memset(out + packed * pitch, 0, size_t((pairs - packed) * pitch) * sizeof(Bf16Pair));
  }
}

// Stores the sums of blocks in c, in the block's f32 sums, or in a block that matmul_finish()
// converts.
struct AmxSink {
  const MatmulBlock& k;
  const bool first, last;
  const bool direct;  // c itself holds the sums
  alignas(64) float block[kAmxBlock * kAmxBlock];

  explicit AmxSink(const MatmulBlock& b)
      : k(b),
        first(b.k0 == 0),
        last(b.k0 + b.nk == b.plan->k),
        direct(b.plan->dtype == TT_F32 && b.plan->c_col == 1 && !b.plan->scaled &&
               !(first && b.plan->d)) {}

  // Rows r, columns [j, j + w) from one panel of each.
  void run(PanelRange r, int64_t j, int w, const char* a, const char* b) {
    const MatmulPlan& p = *k.plan;
    const int h = int(r.end - r.begin);
    const int width = panel_width<float>(w);
    const int64_t i = k.i0 + r.begin;
    const bool whole = h % kAmxRows == 0;
    float* out = block;
    int64_t ld = kAmxBlock;
    bool add = false;
    const bool to_c = direct && whole && w == width;
    if (to_c) {
      out = reinterpret_cast<float*>(k.c) + i * p.c_row + k.j0 + j;
      ld = p.c_row;
      add = !first;
    } else if (k.sum && whole) {
      ld = matmul_sum_pitch(k.nj);
      out = sums_of(r, j);
      add = !first;
    }
    const int64_t b_row = width * int64_t(sizeof(Bf16Pair));
    const AmxOperands o = {
        .steps = amx_steps(k),
        .a = a,
        .a_row = kAmxRowBytes,
        .a_tile = kAmxTileBytes,
        .a_step = 2 * kAmxTileBytes,
        .b = b,
        .b_row = b_row,
        .b_tile = kAmxRowBytes,
        .b_step = kAmxRows * b_row,
        .out = out,
        .out_row = ld * int64_t(sizeof(float)),
        .add = add,
    };
    amx_block<AmxBf16>(o, h > kAmxRows, width > kAmxRows);
    if (to_c) return;
    if (k.sum && !whole) {
      add_rows(sums_of(r, j), h, width);
      out = sums_of(r, j);
      ld = matmul_sum_pitch(k.nj);
    }
    if (k.sum && !last) return;
    matmul_finish(p, k.c, k.d, i, k.j0 + j, h, w, out, ld, first || k.sum);
  }

 private:
  float* sums_of(PanelRange r, int64_t j) const {
    return reinterpret_cast<float*>(k.sum) + r.begin * matmul_sum_pitch(k.nj) + j;
  }
  void add_rows(float* sums, int rows, int width) const {
    for (int i = 0; i < rows; i++, sums += matmul_sum_pitch(k.nj))
      for (int v = 0; v < width; v += kLanes<float>) {
        const Vec<float> x = load(block + i * kAmxBlock + v);
        store(sums + v, first ? x : load(sums + v) + x);
      }
  }
};

void amx_units(const MatmulBlock& k, int64_t begin, int64_t end) {
  AmxSink sink(k);
  const AmxTiles tiles;
  const int64_t depth = amx_steps(k) * kStep;
  for (int64_t u = begin; u < end; u++) {
    const MatmulBlock::Place place = k.tile_unit(u);
    const PanelRange rows = row_block(k, place.row);
    const PanelRange cols = col_block(k, place.col);
    const Bf16* a = reinterpret_cast<const Bf16*>(k.a_pack) + rows.begin * 2 * depth;
    for (int64_t i = rows.begin; i < rows.end; i += kAmxBlock, a += kAmxBlock * depth) {
      const PanelRange r = {i, min(i + kAmxBlock, rows.end)};
      for (int64_t j = cols.begin; j < cols.end; j += kAmxBlock) {
        const Bf16* b = reinterpret_cast<const Bf16*>(k.b_pack) + j * depth;
        sink.run(r, j, int(min<int64_t>(kAmxBlock, cols.end - j)), reinterpret_cast<const char*>(a),
                 reinterpret_cast<const char*>(b));
      }
    }
  }
}

TT_ISA_END

TT_ENTRY_BEGIN
void matmul_bf16_amx_pack(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  const int64_t row_blocks = k.row_blocks();
  for (int64_t u = begin; u < end; u++) {
    if (u < row_blocks) pack_amx_rows(k, row_block(k, u));
    else pack_amx_cols(k, col_block(k, u - row_blocks));
  }
}
void matmul_bf16_amx_tiles(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  amx_units(k, begin, end);
}
void matmul_bf16_amx_sums(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  amx_units(k, begin, end);
}
TT_ENTRY_END

#else  // never called

TT_ENTRY_BEGIN
void matmul_bf16_amx_pack(const MatmulBlock&, int64_t, int64_t) noexcept {}
void matmul_bf16_amx_tiles(const MatmulBlock&, int64_t, int64_t) noexcept {}
void matmul_bf16_amx_sums(const MatmulBlock&, int64_t, int64_t) noexcept {}
TT_ENTRY_END

#endif
