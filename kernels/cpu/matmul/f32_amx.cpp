// Matmul of float32 and float16 by the tiles of AMX, as sums of bf16. Panels and units are those of
// plan/matmul_pieces.h; rows, columns and positions that are not there are 0. Strides are in bytes.
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
constexpr int64_t kItem = sizeof(float);
constexpr int64_t kHalfItem = 2;  // of a float16
static_assert(kPiecePanel == kAmxBlock && kPiecePanel == kPieceStep && kAmxBlock == 2 * kL);
static_assert(matmul_pieces_of(TT_F32) == kPieces && matmul_pieces_of(TT_F16) == kHalfPieces);

// Numbers of float32, or of float16 if an item has two bytes.
TT_INLINE Floats load_numbers(const char* x, int64_t item, Part<float> part) {
  if (item == kHalfItem) return load_f16(x, part);
  return load(reinterpret_cast<const float*>(x), part);
}
TT_INLINE void store_numbers(char* out, int64_t item, Floats v, Part<float> part) {
  if (item == kHalfItem) store_f16(out, v, part);
  else store(reinterpret_cast<float*>(out), v, part);
}
TT_INLINE float number_at(const char* x, int64_t item) {
  return load_numbers(x, item, Part<float>(1))[0];
}

// ---- packing ----

constexpr int64_t kAheadSteps = 4;  // so far ahead an operand is prefetched

// 32 x 32 numbers of an operand, or fewer.
struct NumberBlock {
  const char* at;
  int64_t row, col;
  int64_t item;
};
// Rows of 32 float32.
struct FloatRows {
  const char* at;
  int64_t row;
};

// Transposes 32 rows of 32 numbers.
void turn_block(float* out, FloatRows x) {
  transpose_block<kAmxBlock>(out, kAmxBlock, reinterpret_cast<const float*>(x.at), x.row / kItem);
}
// Copies numbers of any strides to rows of 32, with zeros where there are none.
void copy_numbers(const NumberBlock& x, int rows, int cols, float* out) {
  for (int r = 0; r < kAmxBlock; r++)
    for (int j = 0; j < kAmxBlock; j += kL, out += kL) {
      const int n = r < rows ? clamp(cols - j, 0, kL) : 0;
      const char* const from = x.at + r * x.row + j * x.col;
      Floats v = {};
      if (x.col == x.item) v = load_numbers(from, x.item, Part<float>(n));
      else
        for (int l = 0; l < n; l++) v[l] = number_at(from + l * x.col, x.item);
      store(out, v);
    }
}
// The same numbers as rows of float32, copied to `room` if x lacks some or is something else.
FloatRows in_rows(const NumberBlock& x, int rows, int cols, float* room) {
  const bool in_order = x.col == x.item;
  if (in_order && x.item == kItem && rows == kAmxBlock && cols == kAmxBlock) return {x.at, x.row};
  if (x.row != x.item || in_order) {
    copy_numbers(x, rows, cols, room);
  } else {
    const NumberBlock turned = {x.at, x.col, x.row, x.item};
    turn_block(room, in_rows(turned, cols, rows, room + kBlockSums));
  }
  return {reinterpret_cast<const char*>(room), kAmxBlock * kItem};
}

// Prefetches numbers, the first and the last line of each row or column of neighbours.
TT_INLINE void prefetch_numbers(const NumberBlock& x) {
  const int64_t step = x.col == x.item ? x.row : x.col;
  if (x.col != x.item && x.row != x.item) return;
  const char* at = x.at;
  for (int r = 0; r < kAmxBlock; r++, at += step) {
    TT_PREFETCH_L2(at);
    TT_PREFETCH_L2(at + (kAmxBlock - 1) * x.item);
  }
}

template <int kOf>
TT_INLINE void pack_pairs(Floats first, Floats second, char* out, PieceMagnitudes* seen) {
  if constexpr (kOf == kPieces) {
    seen->add(first);
    seen->add(second);
  } else {
    seen->add_half(first);
    seen->add_half(second);
  }
  put_pairs_of_pieces<kOf>(first, second, out);
}
// Positions q and q + 16 of a step are a pair.
template <int kOf> TT_INLINE void pack_row(const char* x, char* out, PieceMagnitudes* seen) {
  const auto* const at = reinterpret_cast<const float*>(x);
  pack_pairs<kOf>(load(at), load(at + kL), out, seen);
}
TT_INLINE void pack_half_row(const char* x, char* out, PieceMagnitudes* seen) {
  pack_pairs<kHalfPieces>(load_f16(x), load_f16(x + kL * kHalfItem), out, seen);
}
// 32 rows of 32 numbers, x_row bytes apart. kHalves: they are float16.
template <int kOf, bool kHalves> TT_NOINLINE void pack_cols_of_step(const char* x, int64_t x_row,
                                                                    char* out, int64_t tile_bytes,
                                                                    PieceMagnitudes* seen) {
  PieceMagnitudes own = *seen;
  const auto numbers = [](const char* at, int from) TT_INLINE_BODY {
    if constexpr (kHalves) return load_f16(at + from * kHalfItem);
    else return load(reinterpret_cast<const float*>(at) + from);
  };
  const char* lower = x + kL * x_row;
  for (int q = 0; q < kL; q++, out += kAmxRowBytes, x += x_row, lower += x_row) {
    pack_pairs<kOf>(numbers(x, 0), numbers(lower, 0), out, &own);
    pack_pairs<kOf>(numbers(x, kL), numbers(lower, kL), out + tile_bytes, &own);
  }
  *seen = own;
}

TT_INLINE bool has_halves(const MatmulPieces& k) { return k.factors == TT_F16; }
TT_INLINE int64_t item_of(const MatmulPieces& k) { return has_halves(k) ? kHalfItem : kItem; }
TT_INLINE int64_t tile_bytes(const MatmulPieces& k) { return k.panel_bytes() / 2; }
TT_INLINE int64_t step_bytes(const MatmulPieces& k) {
  return has_halves(k) ? kHalfPieceStepBytes : kPieceStepBytes;
}

// Columns [begin, end) of b: all panels at a step, since rows may be pages apart.
void pack_cols(const MatmulPieces& k, int64_t begin, int64_t end) {
  const MatmulPlan& p = *k.plan;
  alignas(64) float room[2 * kBlockSums];
  const int64_t first = begin / kAmxBlock;
  const int64_t panels = ceil_div(end - begin, int64_t(kAmxBlock));
  PieceMagnitudes seen;
  const int64_t item = item_of(k);
  const int64_t row = p.b_row * item;
  const int64_t col = p.b_col * item;
  const char* const x = k.b + k.k0 * row + (k.j0 + begin) * col;
  for (int64_t at = 0; at < k.nk; at += kPieceStep) {
    const int depth = int(min(kPieceStep, k.nk - at));
    char* out = k.b_pack + first * k.panel_bytes() + at / kPieceStep * step_bytes(k);
    for (int64_t n = 0; n < panels; n++, out += k.panel_bytes()) {
      const int64_t j = n * kAmxBlock;
      const char* const from = x + at * row + j * col;
      const int cols = int(min<int64_t>(kAmxBlock, end - begin - j));
      const int64_t tile = tile_bytes(k);
      prefetch_numbers({from + kAheadSteps * kPieceStep * row, row, col, item});
      if (has_halves(k) && p.b_col == 1 && depth == kPieceStep && cols == kAmxBlock) {
        pack_cols_of_step<kHalfPieces, true>(from, row, out, tile, &seen);
        continue;
      }
      const FloatRows step = in_rows({from, row, col, item}, depth, cols, room);
      if (has_halves(k)) pack_cols_of_step<kHalfPieces, false>(step.at, step.row, out, tile, &seen);
      else pack_cols_of_step<kPieces, false>(step.at, step.row, out, tile, &seen);
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
    const int64_t item = item_of(k);
    const char* const a = k.a + ((k.i0 + i) * p.a_row + k.k0 * p.a_col) * item;
    from = {a, p.a_row * item, p.a_col * item, item};
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

  TT_INLINE char* place_of_row(int64_t r) const {
    return out + r / kAmxRows * tile_bytes(k) + r % kAmxRows * kAmxRowBytes;
  }
  TT_INLINE void add_row(int64_t steps) {
    const char* at = from.at + row * from.row;
    char* to = place_of_row(row);
    PieceMagnitudes own = seen;
    if (has_halves(k)) {
      constexpr int64_t kBytes = kPieceStep * kHalfItem;
      for (int64_t s = 0; s < steps; s++, at += kBytes, to += kHalfPieceStepBytes) {
        TT_PREFETCH_L2(at + kRowSteps * kBytes);
        pack_half_row(at, to, &own);
      }
    } else {
      constexpr int64_t kBytes = kPieceStep * kItem;
      for (int64_t s = 0; s < steps; s++, at += kBytes, to += kPieceStepBytes) {
        TT_PREFETCH_L2(at + kRowSteps * kBytes);
        TT_PREFETCH_L2(at + kRowSteps * kBytes + kBytes / 2);
        pack_row<kPieces>(at, to, &own);
      }
    }
    seen = own;
    row++;
  }
  TT_NOINLINE void add_step() {
    alignas(64) float room[2 * kBlockSums];
    const FloatRows step = in_rows(from, height, int(min(kPieceStep, left)), room);
    const char* const ahead = from.at + kAheadSteps * kPieceStep * from.col;
    prefetch_numbers({ahead, from.row, from.col, from.item});
    for (int r = 0; r < kAmxBlock; r++) {
      if (has_halves(k)) pack_row<kHalfPieces>(step.at + r * step.row, place_of_row(r), &seen);
      else pack_row<kPieces>(step.at + r * step.row, place_of_row(r), &seen);
    }
    next(1);
  }
  TT_INLINE void next(int64_t steps) {
    from.at += steps * kPieceStep * from.col;
    out += steps * step_bytes(k);
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
  char* out = nullptr;
  int64_t out_row = 0;
  const char* d = nullptr;  // or NULL
  int64_t d_row = 0;
  int64_t item = kItem;       // of out and d
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
      if (d) v = add_addend(v, j, part);
      store_numbers(out + j * item, item, v, part);
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
    if (width == kAmxBlock && !d) return store_whole_rows(n);
    for (int64_t i = 0; i < n; i++) store_row();
  }
  TT_NOINLINE Floats add_addend(Floats v, int j, Part<float> part) const {
    const Floats of_d =
        d_neighbours ? load_numbers(d + j * item, item, part) : splat(number_at(d, item));
    return fma(splat(beta), of_d, v);
  }
  TT_INLINE void store_whole_rows(int64_t n) {
    const float* x = sum;
    const float* y = before;
    const Floats factor = splat(alpha);
    for (int64_t i = 0; i < n; i++, x += kAmxBlock, out += out_row) {
      Floats low = load(x);
      Floats high = load(x + kL);
      if (y) {
        low = load(y) + low;
        high = load(y + kL) + high;
        y += kAmxBlock;
      }
      low = low * factor;
      high = high * factor;
      if (item == kHalfItem) {
        store_f16(out, low);
        store_f16(out + kL * kHalfItem, high);
      } else {
        float* const to = reinterpret_cast<float*>(out);
        store(to, low);
        store(to + kL, high);
      }
    }
    sum = x;
    before = y;
    rows -= n;
  }
};

// What is done while a block is multiplied.
struct Meanwhile {
  PendingRows pending;
  RowPacker packer;
  int64_t rows_of_step;

  TT_NOINLINE void step() {
    pending.store_rows(rows_of_step);
    packer.add_some();
  }
};

class PieceUnit {
 public:
  PieceUnit(const MatmulPieces& block, int64_t unit)
      : k(block),
        chain(chain_of(k)),
        rows{unit % k.row_units() * k.unit_rows, 0},
        cols{unit / k.row_units() * k.unit_cols, 0},
        room(k.rooms),
        panels{room.as<char>(), room.as<char>() + k.panel_bytes()},
        sums(reinterpret_cast<float*>(panels[1] + k.panel_bytes())),
        other{{}, RowPacker(k), ceil_div(int64_t(kAmxBlock), chain)} {
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
  // Chains of about equal length.
  static int64_t chain_of(const MatmulPieces& k) {
    const int64_t most = matmul_piece_chain(k.factors) / kPieceStep;
    return ceil_div(k.steps(), ceil_div(k.steps(), most));
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
                       .out = reinterpret_cast<char*>(sum),
                       .out_row = kAmxBlock * kItem,
                       .width = kAmxBlock};
    free_chain = !free_chain;
  }
  // A block of results whose columns are neighbours, or rows, which are taken for columns.
  struct Result {
    bool turned;
    char* at;
    int64_t row, rows;
    int width;
    const char* d;  // or NULL
    int64_t d_row, d_col;
  };
  Result result_of(int64_t i, int64_t j, int high, int wide) const {
    const MatmulPlan& p = *k.plan;
    const int64_t row = k.i0 + i;
    const int64_t col = k.j0 + j;
    const int64_t item = kItemSize[p.dtype];
    char* const c = k.c + (row * p.c_row + col * p.c_col) * item;
    const char* const d = p.d ? k.d + (row * p.d_row + col * p.d_col) * item : nullptr;
    const int64_t d_row = p.d_row * item;
    const int64_t d_col = p.d_col * item;
    if (p.c_col != 1 && p.c_row == 1) return {true, c, p.c_col * item, wide, high, d, d_col, d_row};
    return {false, c, p.c_row * item, high, wide, d, d_row, d_col};
  }
  void prefetch(int64_t i, int64_t j, int high, int wide) const {
    const Result c = result_of(i, j, high, wide);
    const int64_t half = kL * kItemSize[k.plan->dtype];
    const char* row = c.at;
    for (int64_t r = 0; r < c.rows; r++, row += c.row) {
      TT_PREFETCH_WRITE(row);
      TT_PREFETCH_WRITE(row + half);
    }
  }
  void finish(int64_t i, int64_t j, int high, int wide, float* sum, const float* before) {
    const MatmulPlan& p = *k.plan;
    const Result c = result_of(i, j, high, wide);
    const int64_t item = kItemSize[p.dtype];
    const bool has_row_order = (p.c_col == 1 || c.turned) && (c.d_col == 0 || c.d_col == item);
    if (before && (!has_row_order || c.turned)) {
      for (int64_t n = 0; n < kBlockSums; n += kL) store(sum + n, load(before + n) + load(sum + n));
      before = nullptr;
    }
    if (!has_row_order)
      return matmul_finish(p, k.c, k.d, k.i0 + i, k.j0 + j, high, wide, sum, kAmxBlock, true);
    if (c.turned) turn_block(turned, {reinterpret_cast<const char*>(sum), kAmxBlock * kItem});
    other.pending = {.sum = c.turned ? turned : sum,
                     .before = before,
                     .rows = c.rows,
                     .out = c.at,
                     .out_row = c.row,
                     .d = c.d,
                     .d_row = c.d_row,
                     .item = item,
                     .d_neighbours = c.d && c.d_col == item,
                     .width = c.width,
                     .alpha = scalar_of<float>(p.alpha),
                     .beta = scalar_of<float>(p.beta)};
  }
  template <int kHigh, int kWide> TT_NOINLINE void multiply(int64_t j, int64_t s, float* out) {
    const int64_t before = s * step_bytes(k);
    const PieceTiles a = {packed + before, tile_bytes(k)};
    const PieceTiles b = {k.b_pack + j / kAmxBlock * k.panel_bytes() + before, tile_bytes(k)};
    const int64_t steps = min(chain, k.steps() - s);
    if (has_halves(k)) multiply_half_pieces<kHigh, kWide>(a, b, steps, other);
    else multiply_pieces<kHigh, kWide>(a, b, steps, other);
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
