// Convolutions of float32 by the tiles of AMX, as sums of bf16 (amx_pieces.h): kConvPieces.
//
//   packed pixels, a plane     a line: 32 channels of a pixel in 3 pieces
//   ┌───────────────────┐
//   │ 0 x x x x x x x 0 │      A tile of 16 results reads 16 lines from the tap on. Results whose
//   │ x x x x x x x 0 … │      first line is one of the zeros between rows are left out.
//   └───────────────────┘
//
// A unit packs the pixels that its results read once for all taps, adds chains of at most 128 terms
// in tiles, and these to its sums in their order. Terms are [passes][taps][channels of a pass].
#include "kernels/cpu/conv/f32_amx.h"
#include "kernels/cpu/conv/conv_tile.h"
#include "kernels/cpu/matmul/amx_pieces.h"
#include "kernels/cpu/simd/gather.h"
#include "kernels/cpu/simd/room.h"
#include "kernels/cpu/simd/transpose.h"
#include "plan/pieces.h"

#if TT_AMX

TT_ISA_BEGIN

using Floats = Vec<float>;
constexpr int kL = kLanes<float>;
constexpr int64_t kBlockSums = kAmxBlock * kAmxBlock;
constexpr int64_t kLineBytes = kConvPieceLineBytes;
constexpr int64_t kChainSteps = 4;
static_assert(kLineBytes == kPieces * kAmxRowBytes && kConvTilesStep == kPieceStep);
static_assert(kConvCols == kAmxBlock && kConvPieceLines % kAmxBlock == 0);

// ---- the weight ----

TT_INLINE int64_t panel_bytes(const ConvPieces& b) { return b.steps * 2 * kPieceStepBytes; }
TT_INLINE int64_t count_panels(const ConvPlan& p) {
  return ceil_div(conv_cols(p.s, p.mode), kConvCols);
}
TT_INLINE PieceRange* ranges_of(const ConvPlan& p) {
  const int64_t panels = p.s.groups * count_panels(p);
  return reinterpret_cast<PieceRange*>(p.packed + panels * panel_bytes(p.pieces));
}

// Calls fn(tap, its offsets) for each tap that a phase reads.
template <class Fn> void for_taps(const ConvPlan& p, const Phase& phase, const Fn& fn) {
  for (int64_t t = 0; t < p.s.taps(); t++) {
    const ConvTap tap(t, p.s.k);
    int64_t shift[kConvDims];
    if (phase.shifts(p, tap, shift)) fn(tap, shift);
  }
}
int64_t count_taps(const ConvPlan& p, const Phase& phase) {
  int64_t n = 0;
  for_taps(p, phase, [&](const ConvTap&, const int64_t*) { n++; });
  return n;
}

// The 32 columns of a panel; of() loads 16 of them, of a term.
struct TermColumns {
  int64_t step;         // floats between columns
  Vec<int32_t> at[2];   // of the columns of two tiles; negative: there is none
  Part<float> part[2];  // the same, for neighbours

  TermColumns(int64_t col_step, int64_t width)
      : step(col_step),
        part{Part<float>(int(min<int64_t>(width, kL))),
             Part<float>(int(max<int64_t>(width - kL, 0)))} {
    for (int j = 0; j < kAmxBlock; j++) at[j / kL][j % kL] = j < width ? int32_t(j * col_step) : -1;
  }
  TT_INLINE Floats of(const float* term, int tile) const {
    if (step == 1) return load(term + tile * kL, part[tile]);
    return gathered(term, at[tile]);
  }
};

// Packs the pairs of terms q and q + 16 of 32 columns.
void pack_weight_step(const float* w, int64_t term_step, int64_t terms, const TermColumns& columns,
                      char* out, int64_t tile_bytes, PieceMagnitudes* seen) {
  for (int64_t q = 0; q < kL; q++, w += term_step, out += kAmxRowBytes)
    for (int tile = 0; tile < 2; tile++) {
      Floats first = {};
      Floats second = {};
      if (q < terms) first = columns.of(w, tile);
      if (q + kL < terms) second = columns.of(w + kL * term_step, tile);
      seen->add(first);
      seen->add(second);
      put_pairs_of_pieces(first, second, out + tile * tile_bytes);
    }
}
// Units: [groups][panels of 32 columns]; a panel holds all phases.
void pack_piece_weight(const ConvPlan& p, int64_t u) {
  const ConvPieces& b = p.pieces;
  const bool forward = p.mode == kConvForward;
  const int64_t col_step = forward ? p.w_co : p.w_ci;
  const int64_t term_step = forward ? p.w_ci : p.w_co;
  const int64_t group = u / count_panels(p);
  const int64_t j = u % count_panels(p) * kConvCols;
  const int64_t depth = conv_depth(p.s, p.mode);
  const auto* const weight =
      reinterpret_cast<const float*>(p.weight) + group * p.s.co * p.w_co + j * col_step;
  const TermColumns columns(col_step, min(conv_cols(p.s, p.mode) - j, kConvCols));
  char* out = p.packed + u * panel_bytes(b);
  PieceMagnitudes seen;
  for (int64_t f = 0; f < p.phases[0] * p.phases[1] * p.phases[2]; f++) {
    const Phase phase(p, f);
    for (int64_t c = 0; c < depth; c += b.pass * kPieceStep)
      for_taps(p, phase, [&](const ConvTap& tap, const int64_t*) {
        const float* at = weight + c * term_step;
        for (int d = 0; d < kConvDims; d++) at += tap.at[d] * p.w_k[d];
        const int64_t end = min(c + b.pass * kPieceStep, depth);
        for (int64_t i = c; i < end; i += kPieceStep, at += kPieceStep * term_step) {
          pack_weight_step(at, term_step, end - i, columns, out, panel_bytes(b) / 2, &seen);
          out += kPieceStepBytes;
        }
      });
  }
  ranges_of(p)[u] = seen.range();
}

// ---- results ----

// Rows of windows: `next` bytes to the second tile, from which steps are anywhere.
struct PieceWindows {
  const char* at;
  int64_t next;
  const int64_t* step;
  TT_INLINE void next_step() { step++; }
};
template <int kTile> TT_INLINE void load_piece(PieceWindows x, int piece, int number) {
  amx_load<kTile>(x.at + *x.step + piece * kAmxRowBytes + number * x.next, kLineBytes);
}

// Sums of 32 x 32 results on their way, while the next block is multiplied.
struct PendingSums {
  const float* from = nullptr;     // of a chain
  float* sum = nullptr;            // they are added to these; NULL: there are none
  const int64_t* place = nullptr;  // of each row in dst, negative: nowhere; NULL: to sum
  float* dst = nullptr;
  Floats bias[2] = {};
  int width = 0;
  int64_t rows = 0;

  TT_INLINE void step() { store_rows(kAmxBlock / kChainSteps); }
  TT_INLINE void store_rows(int64_t most) {
    const int64_t n = min(most, rows);
    if (n <= 0) return;
    if (place) {
      for (int64_t i = 0; i < n; i++) store_result();
    } else {
      for (int64_t i = 0; i < n; i++, from += kAmxBlock, sum += kAmxBlock) {
        store(sum, load(sum) + load(from));
        store(sum + kL, load(sum + kL) + load(from + kL));
      }
    }
    rows -= n;
  }

 private:
  TT_INLINE void store_result() {
    const int64_t at = *place++;
    if (at >= 0)
      for (int v = 0; v * kL < width; v++) {
        Floats x = load(from + v * kL);
        if (sum) x = load(sum + v * kL) + x;
        store(dst + at + v * kL, x + bias[v], Part<float>(min(width - v * kL, kL)));
      }
    from += kAmxBlock;
    if (sum) sum += kAmxBlock;
  }
};

class PieceConvUnit {
 public:
  PieceConvUnit(const ConvPlan& plan, const ConvPieceArea& of)
      : p(plan),
        b(p.pieces),
        area(of),
        phase(p, area.phase),
        depth(conv_depth(p.s, p.mode)),
        step_bytes(b.planes * b.lines * kLineBytes),
        lines(((area.rows - 1) * b.pitch + area.width) * b.images),
        panels(ceil_div(area.col_end - area.col_begin, kConvCols)),
        room(p.pieces.rooms),
        pixels(room.as<char>()),
        sums(reinterpret_cast<float*>(pixels + b.pass * step_bytes)) {}

  bool run() {
    set_taps();
    if (n_taps == 0) return false;
    set_places();
    const PieceRange weights = range_of_weight();
    PieceRange seen = kNoPieces;
    const AmxTiles tiles;
    for (int64_t c = 0; c < depth; c += b.pass * kPieceStep) {
      seen.join(pack_pixels(c, min(b.pass * kPieceStep, depth - c)));
      if (!pieces_express(seen, weights)) return false;
      multiply_pass(c);
    }
    return true;
  }

 private:
  // Where the taps of this phase begin in planes.
  void set_taps() {
    for_taps(p, phase, [&](const ConvTap& tap, const int64_t* shift) {
      int64_t at[kConvDims], plane[kConvDims];
      for (int d = 0; d < kConvDims; d++) {
        at[d] = conv_piece_offset(shift[d], b.scale[d]);
        plane[d] = shift[d] - at[d] * b.scale[d];
      }
      const int64_t number = (tap.at[0] * b.scale[1] + plane[1]) * b.scale[2] + plane[2];
      const int64_t pixel = b.lead + (at[1] - b.min_tap[1]) * b.pitch + at[2];
      first_depth[tap.at[0]] = shift[0];
      used |= uint64_t(1) << number;
      tap_at[n_taps++] = (number * b.lines + pixel * b.images) * kLineBytes;
    });
  }
  // Where the results of lines go in dst.
  void set_places() {
    const PhaseDim* const dim = phase.dim;
    const int64_t* const full = p.mode == kConvForward ? p.s.y : p.s.x;
    const int64_t cols = conv_cols(p.s, p.mode);
    const int64_t channels = cols * p.s.groups;
    const int64_t first_col = area.group * cols + area.col_begin;
    for (int64_t& at : place) at = -1;
    const int64_t depth_at = dim[0].start + area.depth * dim[0].step;
    for (int64_t i = 0; i < area.images; i++)
      for (int64_t r = 0; r < area.rows; r++) {
        const int64_t row = dim[1].start + (area.row + r) * dim[1].step;
        const int64_t plane = full[0] * full[1] * full[2];
        const int64_t first =
            (depth_at * full[1] + row) * full[2] + dim[2].start + area.left * dim[2].step;
        const int64_t image = (area.image + i) * channels * plane;
        for (int64_t k = 0; k < area.width; k++) {
          const int64_t pixel = first + k * dim[2].step;
          place[(r * b.pitch + k) * b.images + i] =
              image + (b.channels_first ? first_col * plane + pixel : pixel * channels + first_col);
        }
      }
  }
  PieceRange range_of_weight() const {
    PieceRange range = kNoPieces;
    const PieceRange* const of = ranges_of(p) + first_panel();
    for (int64_t j = 0; j < panels; j++) range.join(of[j]);
    return range;
  }
  int64_t first_panel() const { return area.group * count_panels(p) + area.col_begin / kConvCols; }

  // ---- packing ----

  // Packs n channels, from c on, of all pixels that the unit reads.
  PieceRange pack_pixels(int64_t c, int64_t n) {
    PieceMagnitudes seen;
    const int64_t rows = area.rows + b.max_tap[1] - b.min_tap[1];
    for (int64_t plane = 0; plane < b.planes; plane++) {
      if (!(used >> plane & 1)) continue;
      const int64_t in_row = plane % b.scale[2];
      const int64_t of_row = plane / b.scale[2] % b.scale[1];
      const int64_t tap = plane / b.scale[2] / b.scale[1];
      const int64_t from = area.depth * phase.dim[0].scale + first_depth[tap];
      char* const lines_of_plane = pixels + plane * b.lines * kLineBytes;
      clear(lines_of_plane, b.lead * b.images, 1, n);
      for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < area.images; i++) {
          const int64_t row = (area.row + r + b.min_tap[1]) * b.scale[1] + of_row;
          const bool inside = uint64_t(from) < uint64_t(p.gather.size[0]) &&
                              uint64_t(row) < uint64_t(p.gather.size[1]);
          const int64_t source =
              ((area.image + i) * p.gather.size[0] + from) * p.gather.size[1] + row;
          pack_row(inside ? source : -1, in_row, c, n,
                   lines_of_plane + ((b.lead + r * b.pitch) * b.images + i) * kLineBytes, &seen);
        }
    }
    return seen.range();
  }
  // Packs the pixels of a row of a plane, `row` of the source, -1: zeros. out is the place of the
  // result's first pixel.
  void pack_row(int64_t row, int64_t in_row, int64_t c, int64_t n, char* out,
                PieceMagnitudes* seen) {
    const bool shared = b.col_blocks == 1;
    const int64_t begin = shared ? 0 : b.min_tap[2];
    const int64_t end = begin + b.pitch;
    const int64_t scale = b.scale[2];
    int64_t from = begin;
    int64_t to = begin;
    if (row >= 0) {
      // Pixels k for which 0 <= (left + k) * scale + in_row < size.
      from = clamp(-area.left, begin, end);
      const int64_t size = ceil_div(max<int64_t>(p.gather.size[2] - in_row, 0), scale);
      to = clamp(size - area.left, from, shared ? end - b.lead : end);
    }
    const int64_t next = b.images * kLineBytes;
    clear(out + begin * next, from - begin, b.images, n);
    clear(out + to * next, end - to, b.images, n);
    if (from == to) return;
    const float* x = reinterpret_cast<const float*>(p.src) + area.group * p.gather.group +
                     row * p.gather.row + ((area.left + from) * scale + in_row) * p.gather.pixel +
                     c;
    PieceMagnitudes own = *seen;
    out += from * next;
    for (int64_t k = from; k < to; k++, x += scale * p.gather.pixel, out += next) {
      char* at = out;
      int64_t i = 0;
      for (; i + kPieceStep <= n; i += kPieceStep, at += step_bytes)
        pack_line(load(x + i), load(x + i + kL), at, &own);
      if (i == n) continue;
      const int rest = int(n - i);
      pack_line(load(x + i, Part<float>(min(rest, kL))),
                load(x + i + kL, Part<float>(max(rest - kL, 0))), at, &own);
    }
    *seen = own;
  }
  static TT_INLINE void pack_line(Floats first, Floats second, char* out, PieceMagnitudes* seen) {
    seen->add(first);
    seen->add(second);
    put_pairs_of_pieces(first, second, out, kAmxRowBytes);
  }
  // Clears `count` lines, `step` apart, of n channels.
  void clear(char* out, int64_t count, int64_t step, int64_t n) const {
    for (int64_t k = 0; k < count; k++, out += step * kLineBytes)
      for (int64_t i = 0; i < n; i += kPieceStep)
        memset(out + i / kPieceStep * step_bytes, 0, size_t(kLineBytes));
  }

  // ---- products ----

  // Adds all taps of the packed channels, which begin with c.
  void multiply_pass(int64_t c) {
    const int64_t in_pass = ceil_div(min(b.pass * kPieceStep, depth - c), kPieceStep);
    const int64_t steps = n_taps * in_pass;
    const int64_t chain = ceil_div(steps, ceil_div(steps, kChainSteps));
    const int64_t before = steps_before() + c / kPieceStep * n_taps;
    const bool ends = c + b.pass * kPieceStep >= depth;
    for (int64_t s = 0; s < steps; s += chain) {
      const int64_t n = min(chain, steps - s);
      int64_t step_at[kChainSteps];
      for (int64_t q = 0; q < n; q++)
        step_at[q] = tap_at[(s + q) / in_pass] + (s + q) % in_pass * step_bytes;
      const Chain of = {before + s, n, step_at, c == 0 && s == 0, ends && s + n == steps};
      for (int64_t i = 0; i < lines; i += kAmxBlock)
        for (int64_t j = 0; j < panels; j++) run_chain(of, i, j);
    }
    pending.store_rows(kAmxBlock);
  }
  // Steps of the phases before this one.
  int64_t steps_before() const {
    int64_t taps = 0;
    for (int64_t f = 0; f < area.phase; f++) taps += count_taps(p, Phase(p, f));
    return taps * ceil_div(depth, kPieceStep);
  }

  struct Chain {
    int64_t before, steps;  // of a panel
    const int64_t* step_at;
    bool first, last;
  };
  // Adds a chain to lines [i, i + 32), columns of panel j.
  void run_chain(const Chain& chain, int64_t i, int64_t j) {
    float* const sum = sums + (i / kAmxBlock * panels + j) * kBlockSums;
    float* const out = chain.first && !chain.last ? sum : chains[free_chain];
    const int64_t width = area.col_end - area.col_begin - j * kConvCols;
    if (lines - i > kAmxRows && width > kAmxRows) multiply<2, 2>(chain, i, j, out);
    else if (lines - i > kAmxRows) multiply<2, 1>(chain, i, j, out);
    else if (width > kAmxRows) multiply<1, 2>(chain, i, j, out);
    else multiply<1, 1>(chain, i, j, out);
    pending.store_rows(kAmxBlock);
    if (chain.first && !chain.last) return;
    free_chain = !free_chain;
    pending.from = out;
    pending.sum = chain.first ? nullptr : sum;
    pending.rows = min<int64_t>(lines - i, kAmxBlock);
    if (!chain.last) return;
    if (b.channels_first) return store_planes(i, j, out);
    pending.place = place + i;
    pending.width = int(min(width, kConvCols));
    pending.dst = reinterpret_cast<float*>(p.dst) + j * kConvCols;
    if (!p.bias) return;
    const float* const bias = reinterpret_cast<const float*>(p.bias) +
                              area.group * conv_cols(p.s, p.mode) + area.col_begin + j * kConvCols;
    for (int v = 0; v < 2; v++)
      pending.bias[v] = load(bias + v * kL, Part<float>(clamp(pending.width - v * kL, 0, kL)));
  }
  // Writes the results of lines [i, i + 32) to the planes of panel j.
  TT_NOINLINE void store_planes(int64_t i, int64_t j, float* chain) {
    pending.rows = 0;
    const auto rows = int(min<int64_t>(lines - i, kAmxBlock));
    if (pending.sum)
      for (int64_t n = 0; n < rows * kAmxBlock; n += kL)
        store(chain + n, load(pending.sum + n) + load(chain + n));
    transpose_block<kAmxBlock>(turned, kAmxBlock, chain, kAmxBlock);
    const int64_t* const full = p.mode == kConvForward ? p.s.y : p.s.x;
    const int64_t plane = full[0] * full[1] * full[2];
    const int64_t width = min(area.col_end - area.col_begin - j * kConvCols, kConvCols);
    const float* bias = reinterpret_cast<const float*>(p.bias);
    if (bias) bias += area.group * conv_cols(p.s, p.mode) + area.col_begin + j * kConvCols;
    for (int k = 0, n; k < rows; k += n) {
      const int64_t at = place[i + k];
      n = 1;
      if (at < 0) continue;
      while (n < kL && k + n < rows && place[i + k + n] == at + n) n++;
      float* to = reinterpret_cast<float*>(p.dst) + at + j * kConvCols * plane;
      for (int64_t c = 0; c < width; c++, to += plane) {
        const Floats sum = load(turned + c * kAmxBlock + k, Part<float>(n));
        store(to, bias ? sum + splat(bias[c]) : sum, Part<float>(n));
      }
    }
  }
  template <int kHigh, int kWide>
  TT_NOINLINE void multiply(const Chain& chain, int64_t i, int64_t j, float* out) {
    const PieceWindows rows = {pixels + i * kLineBytes, kAmxRows * kLineBytes, chain.step_at};
    const PieceTiles columns = {
        p.packed + (first_panel() + j) * panel_bytes(b) + chain.before * kPieceStepBytes,
        panel_bytes(b) / 2};
    multiply_pieces<kHigh, kWide>(rows, columns, chain.steps, pending);
    store_sums<kHigh, kWide>(out);
  }

  const ConvPlan& p;
  const ConvPieces& b;
  const ConvPieceArea& area;
  const Phase phase;
  const int64_t depth, step_bytes;  // channels; bytes from 32 of them to the next
  const int64_t lines, panels;
  const Room room;
  char* const pixels;  // [steps of a pass][planes][lines]
  float* const sums;   // [blocks of 32 lines][panels][32][32]
  int64_t n_taps = 0;
  uint64_t used = 0;  // planes that taps read
  int64_t first_depth[kConvPiecePlanes];
  int64_t tap_at[kConvPieceTaps];  // bytes
  PendingSums pending;
  int free_chain = 0;  // whose rows are not pending
  int64_t place[kConvPieceLines + kAmxBlock];
  alignas(64) float chains[2][kBlockSums];
  alignas(64) float turned[kBlockSums];
};

TT_ISA_END

TT_ENTRY_BEGIN

void conv_f32_amx_pack(const ConvPlan& p, int64_t begin, int64_t end) noexcept {
  for (int64_t u = begin; u < end; u++) pack_piece_weight(p, u);
}
bool conv_f32_amx(const ConvPlan& p, const ConvPieceArea& area) noexcept {
  return PieceConvUnit(p, area).run();
}

TT_ENTRY_END

#else  // never called

TT_ENTRY_BEGIN
void conv_f32_amx_pack(const ConvPlan&, int64_t, int64_t) noexcept {}
bool conv_f32_amx(const ConvPlan&, const ConvPieceArea&) noexcept { return false; }
TT_ENTRY_END

#endif
