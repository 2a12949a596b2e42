// Convolutions of bf16 by the tiles of AMX: kConvTiles.
//
//                  taps × channels of src               columns
//              ┌───────────────────────┐       ┌──────────────────┐       ┌────────────┐
//    32 pixels │ the windows of src,   │   ×   │ panels of 32, in │   =   │ sums (f32) │
//      of dst  │ in copied lines, or   │       │ pairs of terms   │       └────────────┘
//              │ copied side by side   │       └──────────────────┘
//              └───────────────────────┘
#include "kernels/cpu/conv/bf16_amx.h"
#include "kernels/cpu/conv/bf16_amx_lines.h"
#include "kernels/cpu/matmul/bf16_pack.h"
#include "kernels/cpu/simd/amx.h"
#include "kernels/cpu/simd/room.h"

#if TT_AMX

TT_ISA_BEGIN

using Words = Vec<int32_t>;
constexpr int64_t kStep = kConvTilesStep;
constexpr int64_t kPanelStep = kStep / 2 * 32;  // pairs of a step of a panel of columns
static_assert(kConvCols == kAmxBlock && kConvTilesRows % kAmxBlock == 0);

// ---- conv ----

// Elements between the taps of a row. Taps of kConvData are far apart in the weight, which is
// packed tap by tap: pairs must not join two.
TT_INLINE int64_t tap_pitch(const ConvTile<Bf16>& tile) {
  const int64_t terms = tile.to - tile.from;
  return tile.p.mode == kConvForward ? terms : round_up(terms, int64_t(2));
}
TT_INLINE int64_t steps_of(const ConvTile<Bf16>& tile) {
  return ceil_div(tile.n_taps * tap_pitch(tile), kStep);
}
// Steps of the phases before this one.
TT_NOINLINE int64_t steps_before(const ConvPlan& p, int64_t number) {
  int64_t steps = 0;
  for (int64_t i = 0; i < number; i++) {
    const Phase phase(p, i);
    ConvTile<Bf16> tile(p, phase, 0);
    while (tile.next_terms()) steps += steps_of(tile);
  }
  return steps;
}

// The current terms of 32 columns of a group, from column j on.
void pack_tile_columns(const ConvTile<Bf16>& tile, int64_t j, Bf16Pair* out) {
  const ConvPlan& p = tile.p;
  const int w = int(min<int64_t>(tile.cols - j, kAmxBlock));
  const int64_t pitch = tap_pitch(tile);
  const int64_t terms = tile.to - tile.from;
  const Bf16* weight = reinterpret_cast<const Bf16*>(p.weight) + tile.group * p.s.co * p.w_co;
  const auto at_tap = [&](int64_t t) {
    int64_t offset = 0;
    for (int d = 0; d < kConvDims; d++) offset += tile.tap[t][d] * p.w_k[d];
    return weight + offset;
  };
  // The weight is [co][taps][ci] in memory: all terms of a column of kConvForward are neighbours.
  const int64_t pairs = ceil_div(tile.n_taps * pitch, int64_t(2));
  if (p.mode == kConvForward) {
    pack_panel(at_tap(0) + j * p.w_co + tile.from, p.w_co, 1, w, kAmxBlock, tile.n_taps * terms,
               out);
  } else {
    for (int64_t t = 0; t < tile.n_taps; t++)
      pack_panel(at_tap(t) + j + tile.from * p.w_co, 1, p.w_co, w, kAmxBlock, terms,
                 out + t * pitch / 2 * kAmxBlock);
  }
  const int64_t room = steps_of(tile) * kPanelStep;
  memset(out + pairs * kAmxBlock, 0, size_t(room - pairs * kAmxBlock) * sizeof(Bf16Pair));
}

// Units: [group][panels of 32 columns]; a panel holds all phases.
void pack_tile_weight(const ConvPlan& p, int64_t begin, int64_t end) {
  const int64_t panels = ceil_div(conv_cols(p.s, p.mode), kConvCols);
  const int64_t phases = p.phases[0] * p.phases[1] * p.phases[2];
  for (int64_t u = begin; u < end; u++) {
    Bf16Pair* out = reinterpret_cast<Bf16Pair*>(p.packed) + u * p.tiles.steps * kPanelStep;
    for (int64_t i = 0; i < phases; i++) {
      const Phase phase(p, i);
      ConvTile<Bf16> tile(p, phase, u / panels);
      while (tile.next_terms()) {
        if (tile.n_taps) pack_tile_columns(tile, u % panels * kConvCols, out);
        out += steps_of(tile) * kPanelStep;
      }
    }
  }
}

// Rows of a block: 32 windows side by side, and a vector of zeros behind each.
constexpr int64_t kRowItems = 864;  // an odd number of cache lines
static_assert(kRowItems >= kConvDepth + kConvTaps + 2 * kStep);
static_assert(kConvTilesRoom >= int64_t(sizeof(float)) * kConvTilesRows * kConvTilesCols +
                                    kAmxBlock * kRowItems * int64_t(sizeof(Bf16)));

// Copies n terms, from `begin` on, of 32 rows side by side, with zeros up to a whole vector.
TT_NOINLINE void copy_tap(const Bf16* const* rows, int64_t begin, int64_t n, Bf16* out) {
  const int64_t whole = n / kStep * kStep;
  const int rest = int(n - whole);
  for (int i = 0; i < kAmxBlock; i++, out += kRowItems) {
    const Bf16* from = rows[i] + begin;
    int32_t* to = reinterpret_cast<int32_t*>(out);
    for (int64_t k = 0; k < whole; k += kStep)
      store(to + k / 2, load(reinterpret_cast<const int32_t*>(from + k)));
    if (rest) store(to + whole / 2, load_words(from + whole, rest));
  }
}
// Copies the current terms of 32 rows; each tap overwrites the zeros behind the one before.
void copy_windows(const ConvTile<Bf16>& tile, int64_t row, Bf16* out) {
  const int64_t pitch = tap_pitch(tile);
  for (int64_t t = 0; t < tile.n_taps; t++)
    copy_tap(tile.indirection + t * kConvRows + row, tile.from, tile.to - tile.from,
             out + t * pitch);
  for (int i = 0; i < kAmxBlock; i++)
    store(reinterpret_cast<int32_t*>(out + i * kRowItems + tile.n_taps * pitch), Words{});
}

// Steps of a pass over the panels. This many steps of 32 windows fit the first-level cache.
constexpr int64_t kPassSteps = 12;

struct ConvTileUnit {
  ConvTile<Bf16> tile;
  const Room room;
  int64_t ld;              // columns, whole panels
  float* const sums;       // [rows][ld]
  Bf16* const rows;        // [32][kRowItems]
  const Bf16Pair* packed;  // the current terms of the first panel
  int64_t finished = 0;    // rows

  ConvTileUnit(const ConvPlan& p, const Phase& phase, int64_t group, int64_t col_block,
               int64_t steps)
      : tile(p, phase, group),
        room(p.tiles.rooms),
        sums(room.as<float>()),
        rows(reinterpret_cast<Bf16*>(sums + kConvTilesRows * kConvTilesCols)) {
    tile.col_begin = col_block * kConvTilesCols;
    tile.col_end = min(tile.col_begin + kConvTilesCols, tile.cols);
    ld = round_up(tile.col_end - tile.col_begin, kConvCols);
    const int64_t panel = group * ceil_div(tile.cols, kConvCols) + tile.col_begin / kConvCols;
    packed =
        reinterpret_cast<const Bf16Pair*>(p.packed) + (panel * p.tiles.steps + steps) * kPanelStep;
  }

  void run() {
    if (!tile.next_terms() || tile.n_taps == 0) {
      memset(sums, 0, size_t(tile.n_rows * ld) * sizeof(float));
    } else {
      const AmxTiles tiles;
      do add_terms();
      while (tile.next_terms());
    }
    finish_rows(tile.n_rows);
  }

  // Whether no terms follow the current ones.
  bool is_last() const {
    const ConvGather& g = tile.p.gather;
    return tile.to == g.run && tile.next_tap == g.taps[0] * g.taps[1] * g.taps[2];
  }

  // Adds the current terms to all sums. Those that are complete are rounded at once, while a cache
  // holds them.
  void add_terms() {
    const int64_t blocks = ceil_div(tile.n_rows, int64_t(kAmxBlock));
    for (int64_t t = 0; tile.from == 0 && t < tile.n_taps; t++)
      tile.source.addresses(blocks * kAmxBlock, tile.shift[t], tile.indirection + t * kConvRows);
    const bool last = is_last();
    for (int64_t i = 0; i < tile.n_rows; i += kAmxBlock) {
      copy_windows(tile, i, rows);
      add_windows(i);
      if (last) finish_rows(min(i + kAmxBlock, tile.n_rows));
    }
    packed += steps_of(tile) * kPanelStep;
  }

  // Adds the products of the copied windows, those of rows [i, i + 32).
  TT_NOINLINE void add_windows(int64_t i) {
    const int64_t steps = steps_of(tile);
    const int64_t pass = ceil_div(steps, ceil_div(steps, kPassSteps));
    AmxOperands o = {.steps = pass,
                     .a = rows,
                     .a_row = kRowItems * int64_t(sizeof(Bf16)),
                     .a_tile = kAmxRows * kRowItems * int64_t(sizeof(Bf16)),
                     .a_step = kAmxRowBytes,
                     .b = packed,
                     .b_row = 2 * kAmxRowBytes,
                     .b_tile = kAmxRowBytes,
                     .b_step = 2 * kAmxTileBytes,
                     .out = sums,
                     .out_row = ld * int64_t(sizeof(float)),
                     .add = !tile.first};
    for (int64_t from = 0; from < steps; from += pass) {
      o.steps = min(pass, steps - from);
      o.a = rows + from * kStep;
      o.add = !tile.first || from > 0;
      for (int64_t j = tile.col_begin; j < tile.col_end; j += kConvCols) {
        const int64_t panel = (j - tile.col_begin) / kConvCols * tile.p.tiles.steps;
        o.b = packed + (panel + from) * kPanelStep;
        o.out = sums + i * ld + j - tile.col_begin;
        amx_block<AmxBf16>(o, tile.n_rows - i > kAmxRows, tile.col_end - j > kAmxRows);
      }
    }
  }

  // Rounds the sums of the next rows up to `end`, with the bias, to results.
  TT_NOINLINE void finish_rows(int64_t end) {
    constexpr int kL = kLanes<float>;
    const int64_t n = tile.col_end - tile.col_begin;
    const float* bias = reinterpret_cast<const float*>(tile.p.bias);
    if (bias) bias += tile.group * tile.cols + tile.col_begin;
    for (int64_t j = 0; j < n; j += 2 * kL) {
      Vec<float> add[2] = {};
      for (int h = 0; bias && h < 2; h++)
        add[h] = load(bias + j + h * kL, Part<float>(int(clamp<int64_t>(n - j - h * kL, 0, kL))));
      for (int64_t i = finished; i < end; i++) {
        const float* sum = sums + i * ld + j;
        store_words(tile.out[i] + tile.col_begin + j,
                    narrow_two(load(sum) + add[0], load(sum + kL) + add[1]),
                    int(min<int64_t>(n - j, 2 * kL)));
      }
    }
    finished = end;
  }
};

// Rows [begin, begin + blocks.rows) of a phase. Apart from conv_tile_unit(): a tile takes 40 kB of
// the stack, and steps_before() has one, too.
TT_NOINLINE void run_tile_unit(const ConvPlan& p, const Phase& phase, int64_t u, int64_t begin,
                               int64_t steps) {
  const ConvTiles& path = p.tiles;
  const int64_t group = u / path.col_blocks % p.s.groups;
  ConvTileUnit unit(p, phase, group, u % path.col_blocks, steps);
  unit.tile.set_rows(begin, min(begin + path.blocks.rows, phase.pixels));
  unit.run();
}

// ---- conv by copied lines ----

// Collects the taps of a phase.
LineTaps taps_of_phase(const ConvPlan& p, const Phase& phase) {
  LineTaps taps;
  for (int64_t t = 0; t < p.gather.taps[1] * p.gather.taps[2]; t++) {
    const ConvTap tap(t, p.gather.taps);
    taps.n += phase.shifts(p, tap, taps.shift[taps.n]);
  }
  taps.place(phase.dim[1].scale, phase.dim[2].scale, p.tiles.lines.pitch);
  return taps;
}

// Sums of the rows of a block on their way to results: the pixels of a copied image, of which those
// that begin no window are left out. They are stored while the next block is multiplied.
struct PendingPixels {
  const float* sum = nullptr;  // [rows][32]
  int64_t rows = 0;
  int64_t column = 0;   // of the next row, in its line
  Bf16* out = nullptr;  // of that row
  int64_t columns, pitch;
  int64_t step, line;  // from pixel to pixel and from line to line, less those of a line
  int width = 0;
  Vec<float> bias[2];

  TT_INLINE void store_row() {
    if (column < columns)
      store_words(out, narrow_two(load(sum) + bias[0], load(sum + kAmxRows) + bias[1]), width);
    sum += kAmxBlock;
    out += step;
    rows--;
    if (++column < pitch) return;
    column = 0;
    out += line;
  }
  TT_INLINE void store_rows(int64_t most) {
    for (int64_t n = min(most, rows); n > 0; n--) store_row();
  }
};

// Leaves the sums of a block in tiles 0 to 3: rows are pixels, `row` bytes apart.
template <int kHigh, int kWide>
TT_INLINE void add_line_taps(const char* pixels, int64_t row, const LineTaps& taps,
                             int64_t image_pixels, int64_t run, const char* columns,
                             PendingPixels& pending, int64_t rows_of_step) {
  constexpr int64_t kColumnRow = 2 * kAmxRowBytes;
  amx_zero<0>();
  if constexpr (kWide > 1) amx_zero<1>();
  if constexpr (kHigh > 1) amx_zero<2>();
  if constexpr (kHigh > 1 && kWide > 1) amx_zero<3>();
  const int64_t steps = run / kStep;
  const int64_t lower = kAmxRows * row;
  for (int64_t t = 0; t < taps.n; t++) {
    const char* at = pixels + (taps.image[t] * image_pixels + taps.offset[t]) * row;
    for (int64_t s = steps; s > 0; s--, at += kAmxRowBytes, columns += 2 * kAmxTileBytes) {
      amx_load_once<6>(columns, kColumnRow);
      amx_load<4>(at, row);
      AmxBf16::add<0, 4, 6>();
      if constexpr (kWide > 1) {
        amx_load_once<7>(columns + kAmxRowBytes, kColumnRow);
        AmxBf16::add<1, 4, 7>();
      }
      if constexpr (kHigh > 1) {
        amx_load<5>(at + lower, row);
        AmxBf16::add<2, 5, 6>();
        if constexpr (kWide > 1) AmxBf16::add<3, 5, 7>();
      }
      pending.store_rows(rows_of_step);
    }
  }
}

class ConvLineUnit {
 public:
  ConvLineUnit(const ConvPlan& plan, const Phase& of_phase, int64_t of_group, int64_t of_block)
      : p(plan),
        l(plan.tiles.lines),
        phase(of_phase),
        group(of_group),
        taps(taps_of_phase(plan, of_phase)),
        room(plan.tiles.rooms),
        copy(room.as<Bf16>()),
        pixel(p.gather.run * int64_t(sizeof(Bf16))) {
    image = of_block / l.blocks;
    const int64_t block = of_block % l.blocks;
    const int64_t wide = l.blocks / l.line_blocks;
    line = block / wide * l.lines;
    column = block % wide * l.columns;
    lines = min(l.lines, phase.dim[1].count - line);
    columns = min(l.columns, phase.dim[2].count - column);
  }

  // Columns [begin, end) of the group, from the panel of the first one on.
  void run(int64_t begin, int64_t end, const Bf16Pair* packed) {
    if (lines <= 0 || columns <= 0) return;
    copy_lines();
    const AmxTiles tiles;
    const int64_t rows = (lines - 1) * l.pitch + columns;
    const int64_t panel = p.tiles.steps * kPanelStep;
    for (int64_t j = begin; j < end; j += kAmxBlock, packed += panel)
      for (int64_t i = 0; i < rows; i += kAmxBlock) {
        add_block(i, rows - i, end - j, reinterpret_cast<const char*>(packed));
        pending.store_rows(kAmxBlock);
        begin_store(i, rows - i, j, int(min<int64_t>(end - j, kAmxBlock)));
      }
    pending.store_rows(kAmxBlock);
  }

 private:
  const ConvPlan& p;
  const ConvTileLines& l;
  const Phase& phase;
  const int64_t group;
  const LineTaps taps;
  const Room room;
  Bf16* const copy;
  const int64_t pixel;  // bytes of one in the copy
  int64_t image, line, column, lines, columns;
  PendingPixels pending;
  int free_sums = 0;  // whose rows are not pending
  alignas(64) float sums[2][kAmxBlock * kAmxBlock];

  void copy_lines() const {
    const int64_t by_line = phase.dim[1].scale;
    const int64_t by_column = phase.dim[2].scale;
    const int64_t height = lines + (l.height - l.lines);
    const int64_t width = columns + (l.pitch - l.columns);
    for (int64_t of = 0; of < taps.images; of++) {
      const int64_t top = line * by_line + taps.first_line(of);
      const int64_t left = column * by_column + taps.first_column(of);
      for (int64_t i = 0; i < height; i++)
        copy_line(top + i * by_line, left, by_column, width,
                  copy + (of * l.height + i) * l.pitch * p.gather.run);
    }
  }
  // Pixels from, from + step, … of a line of the source, zeros where there are none.
  void copy_line(int64_t at, int64_t from, int64_t step, int64_t width, Bf16* out) const {
    const ConvGather& g = p.gather;
    const auto [begin, end] = LinePixels(g, at, from, step, width);
    memset(out, 0, size_t(begin * pixel));
    memset(out + end * g.run, 0, size_t((width - end) * pixel));
    if (begin == end) return;
    const Bf16* x = reinterpret_cast<const Bf16*>(p.src) + group * g.group;
    x += (image * g.size[1] + at) * g.row + (from + begin * step) * g.pixel;
    if (step * g.pixel == g.run) {
      memcpy(out + begin * g.run, x, size_t((end - begin) * pixel));
      return;
    }
    for (int64_t i = begin; i < end; i++, x += step * g.pixel)
      memcpy(out + i * g.run, x, size_t(pixel));
  }

  void add_block(int64_t i, int64_t rows, int64_t cols, const char* packed) {
    const bool high = rows > kAmxRows;
    if (high && cols > kAmxRows) multiply<2, 2>(i, packed);
    else if (high) multiply<2, 1>(i, packed);
    else if (cols > kAmxRows) multiply<1, 2>(i, packed);
    else multiply<1, 1>(i, packed);
  }
  template <int kHigh, int kWide> TT_NOINLINE void multiply(int64_t i, const char* packed) {
    constexpr int64_t kRow = kAmxBlock * int64_t(sizeof(float));
    const int64_t steps = max<int64_t>(taps.n * p.gather.run / kStep, 1);
    add_line_taps<kHigh, kWide>(reinterpret_cast<const char*>(copy) + i * pixel, pixel, taps,
                                l.height * l.pitch, p.gather.run, packed, pending,
                                ceil_div(kAmxBlock, steps));
    float* const out = sums[free_sums];
    float* const lower = out + kAmxRows * kAmxBlock;
    amx_store<0>(out, kRow);
    if constexpr (kWide > 1) amx_store<1>(out + kAmxRows, kRow);
    if constexpr (kHigh > 1) amx_store<2>(lower, kRow);
    if constexpr (kHigh > 1 && kWide > 1) amx_store<3>(lower + kAmxRows, kRow);
  }

  // Rows from i on, columns [j, j + width).
  void begin_store(int64_t i, int64_t rows, int64_t j, int width) {
    constexpr int kL = kLanes<float>;
    const int64_t cols = conv_cols(p.s, p.mode);
    const int64_t items = cols * p.s.groups;  // of a pixel
    const int64_t* const full = p.mode == kConvForward ? p.s.y : p.s.x;
    const PhaseDim& down = phase.dim[1];
    const PhaseDim& right = phase.dim[2];
    const int64_t first = line + i / l.pitch;
    pending.sum = sums[free_sums];
    pending.rows = min<int64_t>(rows, kAmxBlock);
    pending.column = i % l.pitch;
    pending.columns = columns;
    pending.pitch = l.pitch;
    pending.step = right.step * items;
    pending.line = down.step * full[2] * items - l.pitch * pending.step;
    const int64_t row = (image * full[1] + down.start + first * down.step) * full[2];
    const int64_t at = row + right.start + (column + pending.column) * right.step;
    pending.out = reinterpret_cast<Bf16*>(p.dst) + at * items + group * cols + j;
    pending.width = width;
    const float* bias = reinterpret_cast<const float*>(p.bias);
    if (bias) bias += group * cols + j;
    for (int h = 0; h < 2; h++) {
      const Part<float> part(clamp(width - h * kL, 0, kL));
      pending.bias[h] = bias ? load(bias + h * kL, part) : Vec<float>{};
    }
    free_sums = !free_sums;
  }
};

// Units: [phases][groups][blocks of kConvTilesCols columns][images][blocks of lines].
TT_NOINLINE void conv_line_unit(const ConvPlan& p, int64_t u) {
  const int64_t blocks = p.s.n * p.tiles.lines.blocks;
  const int64_t col_block = u / blocks % p.tiles.col_blocks;
  const int64_t group = u / blocks / p.tiles.col_blocks % p.s.groups;
  const int64_t number = u / blocks / p.tiles.col_blocks / p.s.groups;
  const Phase phase(p, number);
  const int64_t cols = conv_cols(p.s, p.mode);
  const int64_t begin = col_block * kConvTilesCols;
  const int64_t panel = group * ceil_div(cols, kConvCols) + begin / kConvCols;
  const int64_t steps = panel * p.tiles.steps + steps_before(p, number);
  const auto* const packed = reinterpret_cast<const Bf16Pair*>(p.packed) + steps * kPanelStep;
  ConvLineUnit(p, phase, group, u % blocks).run(begin, min(begin + kConvTilesCols, cols), packed);
}

// Units: [phases][blocks of rows][groups][blocks of kConvTilesCols columns].
void conv_tile_unit(const ConvPlan& p, int64_t u) {
  const ConvTiles& path = p.tiles;
  const int64_t block = u / path.col_blocks / p.s.groups;
  const Phase phase(p, block / path.blocks.count);
  const int64_t begin = block % path.blocks.count * path.blocks.rows;
  if (begin >= phase.pixels) return;
  run_tile_unit(p, phase, u, begin, steps_before(p, block / path.blocks.count));
}

TT_ISA_END

TT_ENTRY_BEGIN

void conv_bf16_amx(const ConvPlan& p, int64_t begin, int64_t end) noexcept {
  if (p.run.stage == 0) return pack_tile_weight(p, begin, end);
  for (int64_t u = begin; u < end; u++) {
    if (p.tiles.lines.lines) conv_line_unit(p, u);
    else conv_tile_unit(p, u);
  }
}

TT_ENTRY_END

#else  // never called

TT_ENTRY_BEGIN
void conv_bf16_amx(const ConvPlan&, int64_t, int64_t) noexcept {}
TT_ENTRY_END

#endif
