// Matmul of float32 by the tiles of AMX, as sums of bf16. Panels and units are those of
// plan/matmul_pieces.h; rows, columns and positions that are not there are 0.
#include "kernels/cpu/matmul/epilogue.h"
#include "kernels/cpu/matmul/amx_pieces.h"
#include "kernels/cpu/simd/room.h"
#include "kernels/cpu/simd/transpose.h"
#include "plan/matmul_pieces.h"

#if TT_AMX

TT_ISA_BEGIN

using Floats = Vec<float>;
constexpr int kL = kLanes<float>;
constexpr int64_t kBlockSums = kAmxBlock * kAmxBlock;
constexpr int64_t kChainSteps = kPieceChain / kPieceStep;
static_assert(kPiecePanel == kAmxBlock && kPiecePanel == kPieceStep && kAmxBlock == 2 * kL);
static_assert(kPieceBytes == kPieces * 2);

// ---- packing ----

constexpr int64_t kAheadSteps = 4;  // so far ahead an operand is prefetched

// 32 x 32 numbers of an operand, or fewer.
struct NumberBlock {
  const float* at;
  int64_t row, col;  // strides
};

// Transposes 32 rows of 32 numbers.
void turn_block(float* out, const float* x, int64_t x_row) {
  const int64_t item = sizeof(float);
  for (int r = 0; r < kAmxBlock; r += kL)
    for (int j = 0; j < kAmxBlock; j += kL)
      transpose_tile<uint32_t, kL>(reinterpret_cast<char*>(out + r * kAmxBlock + j),
                                   kAmxBlock * item,
                                   reinterpret_cast<const char*>(x + j * x_row + r), x_row * item);
}
// Copies numbers of any strides to rows of 32, with zeros where there are none.
void copy_numbers(const NumberBlock& x, int rows, int cols, float* out) {
  for (int r = 0; r < kAmxBlock; r++)
    for (int j = 0; j < kAmxBlock; j += kL, out += kL) {
      const int n = r < rows ? clamp(cols - j, 0, kL) : 0;
      const float* const from = x.at + r * x.row + j * x.col;
      Floats v = {};
      if (x.col == 1) v = load(from, Part<float>(n));
      else
        for (int l = 0; l < n; l++) v[l] = from[l * x.col];
      store(out, v);
    }
}
// The same numbers with rows of neighbours, copied to `room` if x lacks some or has other strides.
NumberBlock in_rows(const NumberBlock& x, int rows, int cols, float* room) {
  if (x.col == 1 && rows == kAmxBlock && cols == kAmxBlock) return x;
  const NumberBlock copy = {room, kAmxBlock, 1};
  if (x.row != 1 || x.col == 1) {
    copy_numbers(x, rows, cols, room);
    return copy;
  }
  const NumberBlock turned = in_rows({x.at, x.col, x.row}, cols, rows, room + kBlockSums);
  turn_block(room, turned.at, turned.row);
  return copy;
}

// Prefetches numbers, two lines of each row or column of neighbours.
TT_INLINE void prefetch_numbers(const NumberBlock& x) {
  const int64_t step = x.col == 1 ? x.row : x.col;
  if (x.col != 1 && x.row != 1) return;
  const float* at = x.at;
  for (int r = 0; r < kAmxBlock; r++, at += step) {
    TT_PREFETCH_L2(at);
    TT_PREFETCH_L2(at + kAmxBlock - 1);
  }
}

// Positions q and q + 16 of a step are a pair.
TT_INLINE void pack_row(const float* x, char* out, PieceMagnitudes* seen) {
  const Floats first = load(x);
  const Floats second = load(x + kL);
  seen->add(first);
  seen->add(second);
  put_pairs_of_pieces(first, second, out);
}
void pack_cols_of_step(const NumberBlock& x, char* out, int64_t tile_bytes, PieceMagnitudes* seen) {
  for (int q = 0; q < kL; q++, out += kAmxRowBytes)
    for (int tile = 0; tile < 2; tile++) {
      const Floats first = load(x.at + q * x.row + tile * kL);
      const Floats second = load(x.at + (q + kL) * x.row + tile * kL);
      seen->add(first);
      seen->add(second);
      put_pairs_of_pieces(first, second, out + tile * tile_bytes);
    }
}

TT_INLINE int64_t tile_bytes(const MatmulPieces& k) { return k.panel_bytes() / 2; }

// Columns [begin, end) of b: all panels at a step, since rows may be pages apart.
void pack_cols(const MatmulPieces& k, int64_t begin, int64_t end) {
  const MatmulPlan& p = *k.plan;
  alignas(64) float room[2 * kBlockSums];
  const int64_t first = begin / kAmxBlock;
  const int64_t panels = ceil_div(end - begin, int64_t(kAmxBlock));
  PieceMagnitudes seen;
  const auto* const b = reinterpret_cast<const float*>(k.b);
  const float* const x = b + k.k0 * p.b_row + (k.j0 + begin) * p.b_col;
  for (int64_t at = 0; at < k.nk; at += kPieceStep) {
    const int depth = int(min(kPieceStep, k.nk - at));
    char* out = k.b_pack + first * k.panel_bytes() + at / kPieceStep * kPieceStepBytes;
    for (int64_t n = 0; n < panels; n++, out += k.panel_bytes()) {
      const int64_t j = n * kAmxBlock;
      const float* const from = x + at * p.b_row + j * p.b_col;
      const int cols = int(min<int64_t>(kAmxBlock, end - begin - j));
      const NumberBlock step = in_rows({from, p.b_row, p.b_col}, depth, cols, room);
      prefetch_numbers({from + kAheadSteps * kPieceStep * p.b_row, p.b_row, p.b_col});
      pack_cols_of_step(step, out, tile_bytes(k), &seen);
    }
  }
  const PieceRange range = seen.range();
  for (int64_t n = 0; n < panels; n++) k.b_ranges[first + n] = range;
}

// Packs a panel of rows of a, some numbers at a time. Rows, which may be pages apart, are read a
// few steps at once.
class RowPacker {
 public:
  TT_INLINE explicit RowPacker(const MatmulPieces& block) : k(block) {}

  // rows_of_step: how many rows of a step add_some() packs.
  void begin(int64_t panel, int64_t rows_of_step, char* packed) {
    const MatmulPlan& p = *k.plan;
    const int64_t i = panel * kAmxBlock;
    const auto* const a = reinterpret_cast<const float*>(k.a);
    from = {a + (k.i0 + i) * p.a_row + k.k0 * p.a_col, p.a_row, p.a_col};
    height = int(min<int64_t>(kAmxBlock, k.ni - i));
    direct = p.a_col == 1 && height == kAmxBlock;
    share = rows_of_step;
    owed = 0;
    left = k.nk;
    row = 0;
    out = packed;
    seen = {};
  }
  TT_INLINE void add_some() {
    if (left <= 0) return;
    owed += share;
    if (is_direct()) {
      for (const int64_t n = run(); owed >= n && row < kAmxBlock; owed -= n) add_row(n);
      if (row == kAmxBlock) next(run());
    } else if (owed >= kAmxBlock) {
      owed -= kAmxBlock;
      add_step();
    }
  }
  PieceRange finish() {
    while (is_direct()) {
      while (row < kAmxBlock) add_row(run());
      next(run());
    }
    while (left > 0) add_step();
    return seen.range();
  }

 private:
  TT_INLINE bool is_direct() const { return direct && left >= kPieceStep; }
  // Steps of a row that are read at once.
  TT_INLINE int64_t run() const { return min(kRowSteps, left / kPieceStep); }

  TT_INLINE void add_row(int64_t steps) {
    const float* at = from.at + row * from.row;
    char* to = out + row / kAmxRows * tile_bytes(k) + row % kAmxRows * kAmxRowBytes;
    PieceMagnitudes own = seen;
    for (int64_t s = 0; s < steps; s++, at += kPieceStep, to += kPieceStepBytes) {
      TT_PREFETCH_L2(at + kRowSteps * kPieceStep);
      TT_PREFETCH_L2(at + kRowSteps * kPieceStep + kL);
      pack_row(at, to, &own);
    }
    seen = own;
    row++;
  }
  TT_NOINLINE void add_step() {
    alignas(64) float room[2 * kBlockSums];
    const NumberBlock step = in_rows(from, height, int(min(kPieceStep, left)), room);
    prefetch_numbers({from.at + kAheadSteps * kPieceStep * from.col, from.row, from.col});
    const int64_t tile = tile_bytes(k);
    for (int r = 0; r < kAmxBlock; r++)
      pack_row(step.at + r * step.row, out + r / kAmxRows * tile + r % kAmxRows * kAmxRowBytes,
               &seen);
    next(1);
  }
  TT_INLINE void next(int64_t steps) {
    from.at += steps * kPieceStep * from.col;
    out += steps * kPieceStepBytes;
    left -= steps * kPieceStep;
    row = 0;
  }

  static constexpr int64_t kRowSteps = 4;
  const MatmulPieces& k;
  NumberBlock from = {};
  int height = 0;
  bool direct = false;  // whole rows of neighbours
  int64_t share = 0;
  int64_t owed = 0;  // rows of a step
  int64_t left = 0;  // positions
  int64_t row = 0;   // of the current steps
  char* out = nullptr;
  PieceMagnitudes seen;
};

// ---- units ----

// Rows of 32 sums on their way to a result, or to the sums that it is added to. They are stored
// while the next block is multiplied, in whose shade that costs nothing.
struct PendingRows {
  const float* sum = nullptr;     // [rows][32]
  const float* before = nullptr;  // added to the sums; or NULL
  int64_t rows = 0;
  float* out = nullptr;
  int64_t out_row = 0;
  const float* d = nullptr;  // or NULL
  int64_t d_row = 0;
  bool d_neighbours = false;  // else it has one column
  int width = 0;
  float alpha = 1;
  float beta = 0;

  TT_NOINLINE void store_row() {
    for (int j = 0; j < width; j += kL) {
      const Part<float> part(min(kL, width - j));
      Floats v = load(sum + j);
      if (before) v = load(before + j) + v;
      v = v * splat(alpha);
      if (d) v = fma(splat(beta), d_neighbours ? load(d + j, part) : splat(d[0]), v);
      store(out + j, v, part);
    }
    sum += kAmxBlock;
    if (before) before += kAmxBlock;
    out += out_row;
    if (d) d += d_row;
    rows--;
  }
  TT_INLINE void store_rows(int64_t most) {
    const int64_t n = min(most, rows);
    if (n <= 0) return;
    if (before && width == kAmxBlock && alpha == 1 && !d) return add_rows(n);
    for (int64_t i = 0; i < n; i++) store_row();
  }
  // Whole rows of two sums.
  TT_INLINE void add_rows(int64_t n) {
    const float* x = sum;
    const float* y = before;
    float* to = out;
    for (int64_t i = 0; i < n; i++, x += kAmxBlock, y += kAmxBlock, to += out_row) {
      store(to, load(y) + load(x));
      store(to + kL, load(y + kL) + load(x + kL));
    }
    sum = x;
    before = y;
    out = to;
    rows -= n;
  }
};

// What is done while a block is multiplied.
struct Meanwhile {
  PendingRows pending;
  RowPacker packer;

  TT_INLINE void step() {
    pending.store_rows(kAmxBlock / kChainSteps);
    packer.add_some();
  }
};

class PieceUnit {
 public:
  PieceUnit(const MatmulPieces& block, int64_t unit)
      : k(block),
        chain(ceil_div(k.steps(), ceil_div(k.steps(), kChainSteps))),
        rows{unit % k.row_units() * k.unit_rows, 0},
        cols{unit / k.row_units() * k.unit_cols, 0},
        room(k.rooms),
        panels{room.as<char>(), room.as<char>() + k.panel_bytes()},
        sums(reinterpret_cast<float*>(panels[1] + k.panel_bytes())),
        other{{}, RowPacker(k)} {
    rows.end = min(k.ni, rows.begin + k.unit_rows);
    cols.end = min(k.nj, cols.begin + k.unit_cols);
  }

  // A chain of 32 rows stays in the first-level cache for all columns.
  void run() {
    const int64_t share = ceil_div(kAmxBlock * kAmxBlock, cols.end - cols.begin);
    const int64_t first = rows.begin / kAmxBlock;
    const auto pack = [&](int64_t panel) {
      if (!k.packed_rows) other.packer.begin(panel, share, place_of(panel));
    };
    pack(first);
    for (int64_t i = rows.begin; i < rows.end; i += kAmxBlock) {
      const int64_t panel = i / kAmxBlock;
      const PieceRange range = k.packed_rows ? k.packed_ranges[panel] : other.packer.finish();
      packed = place_of(panel);
      if (i + kAmxBlock < rows.end) pack(panel + 1);
      if (!note_range(panel, range)) continue;
      for (int64_t s = 0; s < k.steps(); s += chain)
        for (int64_t j = cols.begin; j < cols.end; j += kAmxBlock) run_chain(i, j, s, sum_of(i, j));
    }
    other.pending.store_rows(kAmxBlock);
  }

 private:
  struct Span {
    int64_t begin, end;
  };

  char* place_of(int64_t panel) const {
    if (k.packed_rows) return k.packed_rows + panel * k.panel_bytes();
    return panels[(panel - rows.begin / kAmxBlock) % 2];
  }
  // Whether a panel's numbers have pieces, those of all positions up to these.
  bool note_range(int64_t panel, PieceRange range) {
    const int64_t of_cols = cols.begin / k.unit_cols * k.row_panels();
    PieceRange& all = k.a_ranges[of_cols + panel];
    if (k.k0 > 0) range.join(all);
    all = range;
    const bool yes = pieces_express(range, k.b_range);
    if (cols.begin == 0) k.odd[panel] = !yes;
    return yes;
  }
  float* sum_of(int64_t i, int64_t j) {
    if (!k.sum) return sums + (j - cols.begin) / kAmxBlock * kBlockSums;
    return k.sum + (i / kAmxBlock * k.col_panels() + j / kAmxBlock) * kBlockSums;
  }
  // Adds the chain from step s on to the sum of a block of 32 x 32 results.
  void run_chain(int64_t i, int64_t j, int64_t s, float* sum) {
    const auto high = int(min<int64_t>(kAmxBlock, rows.end - i));
    const auto wide = int(min<int64_t>(kAmxBlock, cols.end - j));
    const bool first = k.k0 == 0 && s == 0;
    const bool last = k.k0 + k.nk == k.plan->k && s + chain >= k.steps();
    float* const out = first && !last ? sum : chains[free_chain];
    if (other.pending.before == out) other.pending.store_rows(kAmxBlock);
    if (last) prefetch(i, j, high, wide);
    else if (k.sum && s == 0)
      for (int64_t n = 0; n < kBlockSums; n += kL) TT_PREFETCH_WRITE(sum + n);
    if (high > kAmxRows && wide > kAmxRows) multiply<2, 2>(j, s, out);
    else if (high > kAmxRows) multiply<2, 1>(j, s, out);
    else if (wide > kAmxRows) multiply<1, 2>(j, s, out);
    else multiply<1, 1>(j, s, out);
    other.pending.store_rows(kAmxBlock);
    const float* const before = first ? nullptr : sum;
    if (last) finish(i, j, high, wide, out, before);
    else if (!first)
      other.pending = {.sum = out,
                       .before = before,
                       .rows = high,
                       .out = sum,
                       .out_row = kAmxBlock,
                       .width = kAmxBlock};
    free_chain = !free_chain;
  }
  // A block of results whose columns are neighbours, or rows, which are taken for columns.
  struct Result {
    bool turned;
    float* at;
    int64_t row, rows;
    int width;
    const float* d;  // or NULL
    int64_t d_row, d_col;
  };
  Result result_of(int64_t i, int64_t j, int high, int wide) const {
    const MatmulPlan& p = *k.plan;
    const int64_t row = k.i0 + i;
    const int64_t col = k.j0 + j;
    auto* const c = reinterpret_cast<float*>(k.c) + row * p.c_row + col * p.c_col;
    const auto* d = reinterpret_cast<const float*>(k.d);
    d = p.d ? d + row * p.d_row + col * p.d_col : nullptr;
    if (p.c_col != 1 && p.c_row == 1) return {true, c, p.c_col, wide, high, d, p.d_col, p.d_row};
    return {false, c, p.c_row, high, wide, d, p.d_row, p.d_col};
  }
  void prefetch(int64_t i, int64_t j, int high, int wide) const {
    const Result c = result_of(i, j, high, wide);
    const float* row = c.at;
    for (int64_t r = 0; r < c.rows; r++, row += c.row) {
      TT_PREFETCH_WRITE(row);
      TT_PREFETCH_WRITE(row + kL);
    }
  }
  void finish(int64_t i, int64_t j, int high, int wide, float* sum, const float* before) {
    const MatmulPlan& p = *k.plan;
    const Result c = result_of(i, j, high, wide);
    const bool has_row_order = (p.c_col == 1 || c.turned) && c.d_col <= 1;
    if (before && (!has_row_order || c.turned)) {
      for (int64_t n = 0; n < kBlockSums; n += kL) store(sum + n, load(before + n) + load(sum + n));
      before = nullptr;
    }
    if (!has_row_order)
      return matmul_finish(p, k.c, k.d, k.i0 + i, k.j0 + j, high, wide, sum, kAmxBlock, true);
    if (c.turned) turn_block(turned, sum, kAmxBlock);
    other.pending = {.sum = c.turned ? turned : sum,
                     .before = before,
                     .rows = c.rows,
                     .out = c.at,
                     .out_row = c.row,
                     .d = c.d,
                     .d_row = c.d_row,
                     .d_neighbours = c.d_col == 1,
                     .width = c.width,
                     .alpha = scalar_of<float>(p.alpha),
                     .beta = scalar_of<float>(p.beta)};
  }
  template <int kHigh, int kWide> TT_NOINLINE void multiply(int64_t j, int64_t s, float* out) {
    const int64_t before = s * kPieceStepBytes;
    const PieceTiles a = {packed + before, tile_bytes(k)};
    const PieceTiles b = {k.b_pack + j / kAmxBlock * k.panel_bytes() + before, tile_bytes(k)};
    multiply_pieces<kHigh, kWide>(a, b, min(chain, k.steps() - s), other);
    store_sums<kHigh, kWide>(out);
  }

  const MatmulPieces& k;
  const int64_t chain;  // steps
  Span rows, cols;
  const Room room;
  char* const panels[2];  // in turn
  float* const sums;      // [panels of columns][32][32]
  Meanwhile other;
  const char* packed = nullptr;  // the panel of rows
  int free_chain = 0;            // whose rows are not pending
  alignas(64) float chains[2][kBlockSums];
  alignas(64) float turned[kBlockSums];
};

TT_ISA_END

TT_ENTRY_BEGIN
int32_t matmul_pieces_pack(const void* block, int64_t begin, int64_t end) noexcept {
  const MatmulPieces& k = *static_cast<const MatmulPieces*>(block);
  for (int64_t u = begin; u < end; u++)
    pack_cols(k, u * k.pack_cols, min(k.nj, (u + 1) * k.pack_cols));
  return TT_OK;
}
int32_t matmul_pieces_rows(const void* block, int64_t begin, int64_t end) noexcept {
  const MatmulPieces& k = *static_cast<const MatmulPieces*>(block);
  RowPacker rows(k);
  for (int64_t panel = begin; panel < end; panel++) {
    rows.begin(panel, kAmxBlock, k.packed_rows + panel * k.panel_bytes());
    k.packed_ranges[panel] = rows.finish();
  }
  return TT_OK;
}
int32_t matmul_pieces_units(const void* block, int64_t begin, int64_t end) noexcept {
  const AmxTiles tiles;
  for (int64_t u = begin; u < end; u++)
    PieceUnit(*static_cast<const MatmulPieces*>(block), u).run();
  return TT_OK;
}
TT_ENTRY_END

#else  // never called

TT_ENTRY_BEGIN
int32_t matmul_pieces_pack(const void*, int64_t, int64_t) noexcept { return TT_NOT_IMPLEMENTED; }
int32_t matmul_pieces_rows(const void*, int64_t, int64_t) noexcept { return TT_NOT_IMPLEMENTED; }
int32_t matmul_pieces_units(const void*, int64_t, int64_t) noexcept { return TT_NOT_IMPLEMENTED; }
TT_ENTRY_END

#endif
