// Matmul of bf16 by the tiles of AMX. Panels and units are those of plan/matmul_tiles.h; rows,
// columns and positions that are not there are 0.
#include "kernels/cpu/matmul/bf16_pack.h"
#include "kernels/cpu/matmul/epilogue.h"
#include "kernels/cpu/simd/amx.h"
#include "plan/matmul_tiles.h"

#if TT_AMX

TT_ISA_BEGIN

constexpr int64_t kRowPanelBytes = kAmxBlock * kTilesStep * int64_t(sizeof(Bf16));  // of a step
constexpr int64_t kSumRowBytes = kAmxBlock * int64_t(sizeof(float));  // of 32 x 32 sums
static_assert(kTilesPanel == kAmxBlock);

struct Span {
  int64_t begin, end;
};
TT_INLINE Span row_block(const MatmulTiles& k, int64_t at) {
  return {at * k.unit_rows, min(k.ni, (at + 1) * k.unit_rows)};
}
TT_INLINE int64_t row_panel_bytes(const MatmulTiles& k) { return k.steps() * kRowPanelBytes; }
// Tiles of 16 columns, one step after the other.
TT_INLINE int64_t col_tile_bytes(const MatmulTiles& k) { return k.steps() * kAmxTileBytes; }

// ---- packing ----

// Two tiles of at most 32 rows whose elements along k are neighbours.
void pack_rows_of_step(const Bf16* x, int64_t row_stride, int rows, int depth, char* out) {
  for (int i = 0; i < kAmxBlock; i++, out += kAmxRowBytes) {
    const auto row = i < rows ? load_words(x + i * row_stride, depth) : Vec<int32_t>{};
    store(reinterpret_cast<int32_t*>(out), row);
  }
}

// The same for any strides: packs pairs side by side, then transposes them.
void pack_any_step(const Bf16* x, int64_t row_stride, int64_t k_stride, int rows, int depth,
                   char* out) {
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

TT_INLINE const Bf16* row_of_a(const MatmulTiles& k, int64_t i) {
  return reinterpret_cast<const Bf16*>(k.a) + (k.i0 + i) * k.plan->a_row + k.k0 * k.plan->a_col;
}

// Rows [i, i + h), a panel.
void pack_row_panel(const MatmulTiles& k, int64_t i, int h, char* out) {
  const MatmulPlan& p = *k.plan;
  const Bf16* x = row_of_a(k, i);
  for (int64_t at = 0; at < k.nk; at += kTilesStep, out += kRowPanelBytes) {
    const int depth = int(min(kTilesStep, k.nk - at));
    if (p.a_col == 1) pack_rows_of_step(x + at, p.a_row, h, depth, out);
    else pack_any_step(x + at * p.a_col, p.a_row, p.a_col, h, depth, out);
  }
}

// The tiles of 64 columns that are neighbours: two lines of each row, which is what the processor
// fetches at once.
void zip_64_cols(const Bf16* x, int64_t row, int64_t pairs, char* out, int64_t tile_bytes) {
  for (int64_t p = 0; p < pairs; p++, x += 2 * row, out += kAmxRowBytes) {
    store_zipped(x, x + row, out, out + tile_bytes);
    store_zipped(x + kAmxBlock, x + row + kAmxBlock, out + 2 * tile_bytes, out + 3 * tile_bytes);
  }
}

// Columns [cols.begin, cols.end) from the tile at which they begin, at most 64.
void pack_cols(const MatmulTiles& k, Span cols) {
  const MatmulPlan& p = *k.plan;
  const int64_t tile_bytes = col_tile_bytes(k);
  const int64_t pairs = k.nk / 2;
  const int64_t in_pairs = pairs * kAmxRowBytes;
  const Bf16* x =
      reinterpret_cast<const Bf16*>(k.b) + k.k0 * p.b_row + (k.j0 + cols.begin) * p.b_col;
  char* out = k.b_pack + cols.begin / kAmxRows * tile_bytes;
  const bool whole = p.b_col == 1 && cols.end - cols.begin == kTilesPackCols;
  if (whole) zip_64_cols(x, p.b_row, pairs, out, tile_bytes);
  for (int64_t j = cols.begin; j < cols.end; j += kAmxRows, out += tile_bytes) {
    const int w = int(min<int64_t>(kAmxRows, cols.end - j));
    const int64_t from = whole ? 2 * pairs : 0;
    const Bf16* rest = x + (j - cols.begin) * p.b_col + from * p.b_row;
    Bf16Pair* to = reinterpret_cast<Bf16Pair*>(out + from / 2 * kAmxRowBytes);
    pack_panel(rest, p.b_col, p.b_row, w, kAmxRows, k.nk - from, to);
    const int64_t packed = in_pairs + k.nk % 2 * kAmxRowBytes;
    memset(out + packed, 0, size_t(tile_bytes - packed));
  }
}

// ---- results ----

// As narrow_two(), but subnormal numbers stay.
TT_INLINE Vec<int32_t> rounded(Vec<float> low, Vec<float> high) {
  const auto round = [](Vec<float> x) TT_INLINE_BODY {
    using U = Vec<uint32_t>;
    const U bits = U(x);
    const U is_nan = U((bits & 0x7fffffff) > 0x7f800000);
    const U near = bits + 0x7fff + (bits >> 16 & 1);
    return Vec<int32_t>((near & ~is_nan) | ((bits | 0x400000) & is_nan));
  };
  return upper_words(round(low), round(high));
}

// Rows of sums on their way to c, which is bf16. c's columns are neighbours; so are d's, or it has
// one. They are stored while the next block is multiplied, in whose shade that costs nothing.
struct PendingRows {
  const float* sum;  // [rows][32]
  int64_t rows;
  Bf16* c;
  int64_t c_row;
  const Bf16* d;  // or NULL
  int64_t d_row;
  bool d_neighbours;
  bool plain;  // without an epilogue
  int w;
  float alpha, beta;

  TT_INLINE void store_row() {
    Vec<float> low = load(sum);
    Vec<float> high = load(sum + kAmxRows);
    if (plain) {
      store_words(c, narrow_two(low, high), w);
    } else {
      add_epilogue(&low, &high);
      store_words(c, rounded(low, high), w);
    }
    sum += kAmxBlock;
    c += c_row;
    rows--;
  }
  TT_INLINE void store_rows(int64_t most) {
    for (int64_t n = min(most, rows); n > 0; n--) store_row();
  }

 private:
  TT_NOINLINE void add_epilogue(Vec<float>* low, Vec<float>* high) {
    *low = *low * splat(alpha);
    *high = *high * splat(alpha);
    if (!d) return;
    const Vec<int32_t> words = d_neighbours ? load_words(d, w) : splat(int32_t(d->bits * 0x10001u));
    *low = fma(splat(beta), floats_of_words(words, false), *low);
    *high = fma(splat(beta), floats_of_words(words, true), *high);
    d += d_row;
  }
};

// ---- units ----

// What a block does beside its products: prefetches two rows of c and some of the next panel of a,
// a line of each at every step, and stores the rows of the block before.
struct Meanwhile {
  const char* a;  // in the operand
  int64_t a_row;
  int64_t a_rows;
  char* c;
  int64_t c_row;
  int64_t c_rows;  // left
  PendingRows pending;
  int64_t rows_of_step;

  TT_INLINE void step() {
    for (int64_t r = 0; r < a_rows; r++) TT_PREFETCH_L2(a + r * a_row);
    a += kAmxRowBytes;
    if (c_rows > 0) {
      TT_PREFETCH_WRITE(c);
      TT_PREFETCH_WRITE(c + c_row);
      c += 2 * c_row;
      c_rows -= 2;
    }
    pending.store_rows(rows_of_step);
  }
};

// A panel of rows on its way through a unit.
struct RowPanel {
  int64_t i;  // in the block
  int h;
  const char* a;  // the panel, or the operand
  int64_t a_row, a_tile, a_step;
  char* packed;  // if a is the operand
};

class TileUnit {
 public:
  TileUnit(const MatmulTiles& block, int64_t unit)
      : k(block),
        rows(row_block(k, unit % k.row_blocks())),
        cols{unit / k.row_blocks() * k.unit_cols,
             min(k.nj, (unit / k.row_blocks() + 1) * k.unit_cols)},
        scratch(k.scratch + unit * k.unit_bytes) {}

  void run() {
    for (int64_t i = rows.begin; i < rows.end; i += kAmxBlock) run_panel(i);
    pending.store_rows(kAmxBlock);
  }

 private:
  const MatmulTiles& k;
  const Span rows, cols;
  char* const scratch;
  PendingRows pending = {};
  int at = 0;  // the block whose rows are not pending
  alignas(64) float blocks[2][kAmxBlock * kAmxBlock];

  RowPanel row_panel(int64_t i) const {
    const MatmulPlan& p = *k.plan;
    const int h = int(min<int64_t>(kAmxBlock, rows.end - i));
    RowPanel panel = {.i = i,
                      .h = h,
                      .a = scratch,
                      .a_row = kAmxRowBytes,
                      .a_tile = kAmxTileBytes,
                      .a_step = 2 * kAmxTileBytes,
                      .packed = nullptr};
    if (k.a_pack) {
      panel.a = k.a_pack + i / kAmxBlock * row_panel_bytes(k);
      return panel;
    }
    if (h % kAmxRows || k.nk % kTilesStep) {
      pack_row_panel(k, i, h, scratch);
      return panel;
    }
    panel.a = reinterpret_cast<const char*>(row_of_a(k, i));
    panel.a_row = p.a_row * int64_t(sizeof(Bf16));
    panel.a_tile = kAmxRows * panel.a_row;
    panel.a_step = kTilesStep * int64_t(sizeof(Bf16));
    panel.packed = cols.end - cols.begin > kAmxBlock ? scratch : nullptr;
    return panel;
  }

  void run_panel(int64_t i) {
    const RowPanel panel = row_panel(i);
    const int64_t steps = k.steps();
    const int64_t passes = ceil_div(steps, kTilesPass / kTilesStep);
    for (int64_t s = 0; s < passes; s++) {
      const Span at = {matmul_piece(steps, passes, s), matmul_piece(steps, passes, s + 1)};
      RowPanel part = panel;
      for (int64_t j = cols.begin; j < cols.end; j += kAmxBlock) {
        run_block(part, at, j, int(min<int64_t>(kAmxBlock, cols.end - j)));
        if (!panel.packed) continue;
        part.a = scratch;  // the first block has packed it
        part.a_row = kAmxRowBytes;
        part.a_tile = kAmxTileBytes;
        part.a_step = 2 * kAmxTileBytes;
        part.packed = nullptr;
      }
    }
  }

  // Where the sums of a block are between passes, and between blocks of k: in one piece, since rows
  // that are pages apart would displace the panels from the first-level cache.
  float* passing(int64_t j) const {
    char* const sums = scratch + (k.a_pack ? 0 : row_panel_bytes(k));
    return reinterpret_cast<float*>(sums) + (j - cols.begin) * kAmxBlock;
  }
  float* across(int64_t i, int64_t j) const {
    const int64_t width = round_up(k.nj, kTilesPanel);
    return reinterpret_cast<float*>(k.sum) + i * width + j * kAmxBlock;
  }

  // Each block of a panel fetches an equal share of the next panel's rows.
  Meanwhile meanwhile(const RowPanel& panel, Span steps, int64_t j, bool last) const {
    const MatmulPlan& p = *k.plan;
    const int64_t next = panel.i + kAmxBlock;
    const int64_t share = ceil_div(kAmxBlock * kAmxBlock, cols.end - cols.begin);
    const int64_t row = next + (j - cols.begin) / kAmxBlock * share;
    const int64_t rows_left = min(min(k.ni, next + kAmxBlock) - row, share);
    const bool fetches = !k.a_pack && rows_left > 0;
    return {.a = reinterpret_cast<const char*>(row_of_a(k, fetches ? row : panel.i)) +
                 steps.begin * panel.a_step,
            .a_row = p.a_row * int64_t(sizeof(Bf16)),
            .a_rows = fetches ? rows_left : 0,
            .c = c_at(panel.i, j),
            .c_row = p.c_row * kItemSize[p.dtype],
            .c_rows = last && p.c_col == 1 ? panel.h : 0,
            .pending = pending,
            .rows_of_step = ceil_div(kAmxBlock, steps.end - steps.begin)};
  }
  char* c_at(int64_t i, int64_t j) const {
    const MatmulPlan& p = *k.plan;
    return k.c + ((k.i0 + i) * p.c_row + (k.j0 + j) * p.c_col) * kItemSize[p.dtype];
  }

  // Stores the sums of a block, now or while the next one is multiplied.
  void finish(const RowPanel& panel, int64_t j, int w, const float* sums) {
    const MatmulPlan& p = *k.plan;
    const int64_t i = k.i0 + panel.i;
    if (p.dtype != TT_BF16 || p.c_col != 1 || (p.d && p.d_col > 1))
      return matmul_finish(p, k.c, k.d, i, k.j0 + j, panel.h, w, sums, kAmxBlock, true);
    const Bf16* d = reinterpret_cast<const Bf16*>(k.d);
    pending = {.sum = sums,
               .rows = panel.h,
               .c = reinterpret_cast<Bf16*>(c_at(panel.i, j)),
               .c_row = p.c_row,
               .d = p.d ? d + i * p.d_row + (k.j0 + j) * p.d_col : nullptr,
               .d_row = p.d_row,
               .d_neighbours = p.d_col == 1,
               .plain = !p.scaled && !p.d && k.rounds,
               .w = w,
               .alpha = scalar_of<float>(p.alpha),
               .beta = scalar_of<float>(p.beta)};
    at = !at;
  }

  void run_block(const RowPanel& panel, Span steps, int64_t j, int w) {
    const MatmulPlan& p = *k.plan;
    const bool begins = steps.begin == 0;
    const bool ends = steps.end == k.steps();
    const bool last = ends && k.k0 + k.nk == p.k;
    const float* const from = begins && k.sum ? across(panel.i, j) : passing(j);
    float* out = blocks[at];
    if (!last) out = ends ? across(panel.i, j) : passing(j);
    const AmxOperands o = {
        .steps = steps.end - steps.begin,
        .a = panel.a + steps.begin * panel.a_step,
        .a_row = panel.a_row,
        .a_tile = panel.a_tile,
        .a_step = panel.a_step,
        .b = k.b_pack + j / kAmxRows * col_tile_bytes(k) + steps.begin * kAmxTileBytes,
        .b_row = kAmxRowBytes,
        .b_tile = col_tile_bytes(k),
        .b_step = kAmxTileBytes,
        .out = out,
        .out_row = kSumRowBytes,
        .add = !begins || k.k0 > 0,
        .addend = from,
        .addend_row = kSumRowBytes,
        .copy = panel.packed ? panel.packed + steps.begin * kRowPanelBytes : nullptr,
    };
    const bool high = panel.h > kAmxRows;
    const bool wide = w > kAmxRows;
    Meanwhile other = meanwhile(panel, steps, j, last);
    if (o.copy) amx_block<AmxBf16, kAmxStreamsB | kAmxCopiesA>(o, high, wide, other);
    else amx_block<AmxBf16, kAmxStreamsB>(o, high, wide, other);
    other.pending.store_rows(kAmxBlock);
    pending.rows = 0;
    if (last) finish(panel, j, w, out);
  }
};

TT_ISA_END

TT_ENTRY_BEGIN
int32_t matmul_tiles_pack(const void* block, int64_t begin, int64_t end) noexcept {
  const MatmulTiles& k = *static_cast<const MatmulTiles*>(block);
  const int64_t row_blocks = k.packs_a ? k.row_blocks() : 0;
  for (int64_t u = begin; u < end; u++) {
    if (u >= row_blocks) {
      const int64_t j = (u - row_blocks) * kTilesPackCols;
      pack_cols(k, {j, min(k.nj, j + kTilesPackCols)});
      continue;
    }
    const Span rows = row_block(k, u);
    for (int64_t i = rows.begin; i < rows.end; i += kAmxBlock)
      pack_row_panel(k, i, int(min<int64_t>(kAmxBlock, rows.end - i)),
                     k.a_pack + i / kAmxBlock * row_panel_bytes(k));
  }
  return TT_OK;
}
int32_t matmul_tiles_units(const void* block, int64_t begin, int64_t end) noexcept {
  const AmxTiles tiles;
  for (int64_t u = begin; u < end; u++) TileUnit(*static_cast<const MatmulTiles*>(block), u).run();
  return TT_OK;
}
TT_ENTRY_END

#else  // never called

TT_ENTRY_BEGIN
int32_t matmul_tiles_pack(const void*, int64_t, int64_t) noexcept { return TT_NOT_IMPLEMENTED; }
int32_t matmul_tiles_units(const void*, int64_t, int64_t) noexcept { return TT_NOT_IMPLEMENTED; }
TT_ENTRY_END

#endif
