// The sums of conv_weight of bf16 by the tiles of AMX, if plan.tiles.
//
//                        pixels
//              ┌───────────────────────┐       ┌──────────────────┐       ┌────────────┐
//  32 channels │ src at a tap, turned  │   ×   │ y, in pairs of   │   =   │ sums (f32) │
//     of src   │                       │       │ pixels           │       └────────────┘
//              └───────────────────────┘       └──────────────────┘
// If src has whole blocks of channels, y is turned instead, once for all taps, and the sums are the
// other way round: blocks of 32 x 32 that are turned at the end.
#include "kernels/cpu/conv/bf16_amx.h"
#include "kernels/cpu/conv/bf16_amx_lines.h"
#include "kernels/cpu/matmul/bf16_pack.h"
#include "kernels/cpu/simd/amx.h"
#include "kernels/cpu/simd/room.h"
#include "kernels/cpu/simd/transpose.h"

#if TT_AMX

TT_ISA_BEGIN

using Words = Vec<int32_t>;
constexpr int64_t kStep = kConvTilesStep;
constexpr int64_t kPanelStep = kStep / 2 * 32;  // pairs of a step of 32 columns or channels

// Taps and channels of src whose sums a unit makes.
struct WeightRange {
  int64_t t0, t1, i0, i1;
};

// Turns 32 columns of 32 pixels, two of which make a pair: [2][16 columns][16 pairs]. row(q) is the
// words of pixel q.
template <class Row> TT_INLINE void turn_step(const Row& row, int32_t* out) {
  Words low[kAmxRows], high[kAmxRows];
  TT_UNROLL
  for (int q = 0; q < kAmxRows; q++) {
    const Words even = row(2 * q);
    const Words odd = row(2 * q + 1);
    low[q] = zip_words(even, odd, 0);
    high[q] = zip_words(even, odd, 16);
  }
  transpose<int32_t>(low);
  transpose<int32_t>(high);
  TT_UNROLL
  for (int q = 0; q < kAmxRows; q++) {
    store(out + q * kAmxRows, low[q]);
    store(out + (kAmxRows + q) * kAmxRows, high[q]);
  }
}

// Turns a block of 32 x 32 sums in rows of ld.
void turn_block(float* block, int64_t ld) {
  alignas(64) float copy[kAmxBlock * kAmxBlock];
  for (int r = 0; r < kAmxBlock; r++)
    memcpy(copy + r * kAmxBlock, block + r * ld, kAmxBlock * sizeof(float));
  transpose_block<kAmxBlock>(block, ld, copy, kAmxBlock);
}
// Turns the blocks of sums of a range, columns [j0, j1).
void turn_sums(float* sums, int64_t ld, int64_t run, const WeightRange& of, int64_t j0,
               int64_t j1) {
  for (int64_t t = of.t0; t < of.t1; t++)
    for (int64_t i = of.i0; i < of.i1; i += kAmxBlock)
      for (int64_t j = j0; j < j1; j += kAmxBlock) turn_block(sums + (t * run + i) * ld + j, ld);
}

constexpr int64_t kChunkSteps = kConvChunk / kStep;
static_assert(kConvWeightTilesRoom >= (kConvTilesCols + kAmxBlock) * kConvChunk * 2);

// By chunks of kConvChunk pixels, whose channels are paired tap by tap.
struct WeightTileUnit {
  const ConvWeightPlan& p;
  ConvSource<Bf16, kConvChunk> source;
  const int64_t cols, ld;
  const Bf16* const y;
  float* const sums;
  const Bf16* indirection[kConvChunk + kConvSlack];  // of the current tap
  const Room room;
  const bool turns_y;    // of_y has the layout of of_x, panel by panel, and of_x that of a panel
  Bf16Pair* const of_y;  // [panels][steps][16 pairs of pixels][32 columns]
  int32_t* const of_x;   // [steps][2][16 channels][16 pairs of pixels]

  WeightTileUnit(const ConvWeightPlan& plan, int64_t split, int64_t group)
      : p(plan),
        source(p.gather, p.src, p.zeros, group),
        cols(p.s.co),
        ld(round_up(cols, kConvCols)),
        y(reinterpret_cast<const Bf16*>(p.y) + group * cols),
        sums(reinterpret_cast<float*>(p.sums) +
             (split * p.s.groups + group) * p.s.taps() * p.s.ci * ld),
        room(p.rooms),
        turns_y(p.gather.run % kAmxBlock == 0),
        of_y(room.as<Bf16Pair>()),
        of_x(reinterpret_cast<int32_t*>(of_y + kConvTilesCols * kConvChunk / 2)) {}

  void pack_y(int64_t m, int64_t n, int64_t j0, int64_t j1) {
    const int64_t row = cols * p.s.groups;
    const int64_t pairs = ceil_div(n, int64_t(2));
    const int64_t room_pairs = ceil_div(n, kStep) * kStep / 2;
    Bf16Pair* out = of_y;
    for (int64_t j = j0; j < j1; j += kAmxBlock, out += kChunkSteps * kPanelStep) {
      pack_panel(y + m * row + j, 1, row, int(min<int64_t>(j1 - j, kAmxBlock)), kAmxBlock, n, out);
      memset(out + pairs * kAmxBlock, 0,
             size_t((room_pairs - pairs) * kAmxBlock) * sizeof(Bf16Pair));
    }
  }
  // Channels [i, i + h) of the current pixels.
  TT_NOINLINE void turn_x(int64_t steps, int64_t i, int h) {
    for (int64_t s = 0; s < steps; s++) {
      const Bf16* const* from = indirection + s * kStep;
      turn_step([&](int q) { return load_words(from[q] + i, h); }, of_x + s * kPanelStep);
    }
  }
  // Columns [j, j + w) of the n pixels from m on, zeros beyond.
  TT_NOINLINE void turn_y(int64_t m, int64_t n, int64_t j, int w, Bf16Pair* out) {
    const int64_t row = cols * p.s.groups;
    for (int64_t s = 0; s < n; s += kStep, out += kPanelStep) {
      const Bf16* const from = y + (m + s) * row + j;
      turn_step([&](int q) { return s + q < n ? load_words(from + q * row, w) : Words{}; },
                reinterpret_cast<int32_t*>(out));
    }
  }
  // Pairs of the current pixels, channels [i, i + 32).
  TT_NOINLINE void pair_x(int64_t steps, int64_t i) {
    int32_t* out = of_x;
    for (int64_t q = 0; q < steps * kStep; q += 2, out += kAmxBlock) {
      const Words even = load(reinterpret_cast<const int32_t*>(indirection[q] + i));
      const Words odd = load(reinterpret_cast<const int32_t*>(indirection[q + 1] + i));
      store(out, zip_words(even, odd, 0));
      store(out + kAmxRows, zip_words(even, odd, 16));
    }
  }
  // The same products by y turned: the sums are blocks [32 columns][32 channels].
  void add_turned_channels(int64_t tap, int64_t n, int64_t i, int64_t j0, int64_t j1, bool first) {
    const int64_t steps = ceil_div(n, kStep);
    pair_x(steps, i);
    for (int64_t j = j0; j < j1; j += kAmxBlock) {
      const AmxOperands o = {
          .steps = steps,
          .a = of_y + (j - j0) / kAmxBlock * kChunkSteps * kPanelStep,
          .a_row = kAmxRowBytes,
          .a_tile = kAmxTileBytes,
          .a_step = 2 * kAmxTileBytes,
          .b = of_x,
          .b_row = 2 * kAmxRowBytes,
          .b_tile = kAmxRowBytes,
          .b_step = 2 * kAmxTileBytes,
          .out = sums + (tap * p.gather.run + i) * ld + j,
          .out_row = ld * int64_t(sizeof(float)),
          .add = !first,
      };
      amx_block<AmxBf16>(o, true, true);
    }
  }
  // Adds n pixels at a tap to its channels [i, i + h), columns [j0, j1).
  void add_channels(int64_t tap, int64_t n, int64_t i, int h, int64_t j0, int64_t j1, bool first) {
    alignas(64) float block[kAmxBlock * kAmxBlock];
    const bool whole = h % kAmxRows == 0;
    const int64_t steps = ceil_div(n, kStep);
    turn_x(steps, i, h);
    for (int64_t j = j0; j < j1; j += kAmxBlock) {
      float* out = sums + (tap * p.gather.run + i) * ld + j;
      const AmxOperands o = {
          .steps = steps,
          .a = of_x,
          .a_row = kAmxRowBytes,
          .a_tile = kAmxTileBytes,
          .a_step = 2 * kAmxTileBytes,
          .b = of_y + (j - j0) / kAmxBlock * kChunkSteps * kPanelStep,
          .b_row = 2 * kAmxRowBytes,
          .b_tile = kAmxRowBytes,
          .b_step = 2 * kAmxTileBytes,
          .out = whole ? out : block,
          .out_row = (whole ? ld : kAmxBlock) * int64_t(sizeof(float)),
          .add = whole && !first,
      };
      amx_block<AmxBf16>(o, h > kAmxRows, true);
      for (int k = 0; !whole && k < h; k++)
        for (int v = 0; v < kAmxBlock; v += kLanes<float>) {
          const Vec<float> sum = load(block + k * kAmxBlock + v);
          store(out + k * ld + v, first ? sum : sum + load(out + k * ld + v));
        }
    }
  }

  // Adds the n pixels from m on: taps, channels and columns of a part, at most kConvTilesCols.
  void add_pixels(int64_t m, int64_t n, const WeightRange& of, int64_t j0, int64_t j1, bool first) {
    source.set_pixels(p.s, m, n);
    if (turns_y) {
      for (int64_t j = j0; j < j1; j += kAmxBlock)
        turn_y(m, n, j, int(min<int64_t>(j1 - j, kAmxBlock)),
               of_y + (j - j0) / kAmxBlock * kChunkSteps * kPanelStep);
    } else {
      pack_y(m, n, j0, j1);
    }
    for (int64_t t = of.t0; t < of.t1; t++) {
      const ConvTap tap(t, p.gather.taps);
      int64_t shift[kConvDims];
      for (int d = 0; d < kConvDims; d++) shift[d] = tap.at[d] * p.s.dil[d] - p.gather.pad[d];
      source.addresses(round_up(n, kStep), shift, indirection);
      for (int64_t i = of.i0; i < of.i1; i += kAmxBlock) {
        if (turns_y) add_turned_channels(t, n, i, j0, j1, first);
        else add_channels(t, n, i, int(min<int64_t>(of.i1 - i, kAmxBlock)), j0, j1, first);
      }
    }
  }
};

// ---- by copied lines ----
//
//                 rows of a copy                 32 channels
//              ┌───────────────────────┐       ┌──────────────────┐       ┌────────────┐
//  32 columns  │ y, turned; 0 where no │   ×   │ pairs of pixels  │   =   │ sums (f32) │
//     of y     │ window begins         │       │ of a copy of src │       └────────────┘
//              └───────────────────────┘       └──────────────────┘
// Both the pairs that begin at even pixels of the copy and those that begin at odd ones are kept:
// each tap finds its own.

// Lines [line, line + lines) of y in an image.
struct LineSegment {
  int64_t image, line, lines;
  int64_t copy;   // the first pixel of its copy
  int64_t steps;  // of 32 rows
};

class WeightLineUnit {
 public:
  WeightLineUnit(const ConvWeightPlan& plan, const ConvWeightPart& of_part)
      : p(plan),
        l(plan.lines),
        part(of_part),
        ld(round_up(p.s.co, kConvCols)),
        sums(reinterpret_cast<float*>(p.sums) +
             (part.split * p.s.groups + part.group) * p.s.taps() * p.s.ci * ld),
        room(p.rooms),
        of_y(room.as<int32_t>()),
        of_x(of_y + min(ld, kConvTilesCols) * kConvWeightLineRows / 2) {
    for (; taps.n < p.s.taps(); taps.n++) {
      const ConvTap tap(taps.n, p.gather.taps);
      for (int d = 0; d < kConvDims; d++)
        taps.shift[taps.n][d] = tap.at[d] * p.s.dil[d] - p.gather.pad[d];
    }
    taps.place(p.s.stride[1], p.s.stride[2], l.pitch);
  }

  // False if src is not finite: what is multiplied by zeros must be.
  bool run(const WeightRange& of, int64_t j0, int64_t j1) {
    for (int64_t m = part.from; m < part.to;) {
      const bool first = m == part.from;
      m = collect_lines(m);
      for (int64_t j = j0; j < j1; j += kAmxBlock)
        turn_y((j - j0) / kAmxBlock, j, int(min<int64_t>(j1 - j, kAmxBlock)));
      for (int64_t i = of.i0; i < of.i1; i += kAmxBlock) {
        if (!pair_channels(i)) return false;
        for (int64_t j = j0; j < j1; j += kAmxBlock)
          for (int64_t t = of.t0; t < of.t1; t++)
            add_tap(t, sums + (t * p.gather.run + i) * ld + j, (j - j0) / kAmxBlock, first);
      }
    }
    return true;
  }

 private:
  static constexpr int64_t kSteps = kConvWeightLineRows / kStep;
  static constexpr int64_t kPairs = kConvWeightLineCopy / 2 + kAmxBlock;  // of each kind

  const ConvWeightPlan& p;
  const ConvTileLines& l;
  const ConvWeightPart& part;
  LineTaps taps;
  const int64_t ld;
  float* const sums;
  const Room room;
  int32_t* const of_y;  // [panels][kSteps][2][16 columns][16 pairs]
  int32_t* const of_x;  // [2][kPairs][32 channels]
  LineSegment segments[kSteps];
  int64_t n_segments, n_steps, n_copied;
  const Bf16* pixels[kConvWeightLineRows];  // of each row: a pixel of y, or NULL

  // Makes the lines from pixel m on current; returns the pixel that follows.
  int64_t collect_lines(int64_t m) {
    const int64_t row = p.s.co * p.s.groups;
    const auto* const y = reinterpret_cast<const Bf16*>(p.y) + part.group * p.s.co;
    const int64_t high = p.s.y[1];
    const int64_t wide = p.s.y[2];
    n_segments = n_steps = n_copied = 0;
    while (m < part.to && n_segments < kSteps) {
      const int64_t line = m / wide;
      const int64_t lines = min(min(high - line % high, ceil_div(part.to, wide) - line), fit());
      if (lines <= 0) break;
      LineSegment& s = segments[n_segments++];
      s = {line / high, line % high, lines, n_copied, 0};
      const int64_t rows = (lines - 1) * l.pitch + wide;
      s.steps = ceil_div(rows, kStep);
      for (int64_t r = 0; r < s.steps * kStep; r++) {
        const int64_t at = (line + r / l.pitch) * wide + r % l.pitch;
        const bool begins = r < rows && r % l.pitch < wide && at >= part.from && at < part.to;
        pixels[n_steps * kStep + r] = begins ? y + at * row : nullptr;
      }
      n_steps += s.steps;
      n_copied += taps.images * height(s) * l.pitch;
      m = min((line + lines) * wide, part.to);
    }
    return m;
  }
  TT_INLINE int64_t height(const LineSegment& s) const { return s.lines + l.height - l.lines; }
  // Lines for which there is room.
  int64_t fit() const {
    const int64_t rows = (kSteps - n_steps) * kStep - p.s.y[2];
    const int64_t copied = (kConvWeightLineCopy - n_copied) / (taps.images * l.pitch);
    return rows < 0 ? 0 : min(rows / l.pitch + 1, copied - (l.height - l.lines));
  }

  TT_NOINLINE void turn_y(int64_t panel, int64_t j, int w) {
    int32_t* out = of_y + panel * kSteps * kPanelStep;
    for (int64_t s = 0; s < n_steps; s++, out += kPanelStep) {
      const Bf16* const* const from = pixels + s * kStep;
      turn_step([&](int q) { return from[q] ? load_words(from[q] + j, w) : Words{}; }, out);
    }
  }

  // Pairs channels [i, i + 32) of the current lines.
  TT_NOINLINE bool pair_channels(int64_t i) {
    const ConvGather& g = p.gather;
    const int64_t line_step = p.s.stride[1];
    const int64_t column_step = p.s.stride[2];
    const auto* const x = reinterpret_cast<const Bf16*>(p.src) + part.group * g.group + i;
    PixelPairs pairs = {of_x + (kPairs - 1) * kAmxBlock, of_x, Words{}, Words{}};
    for (const LineSegment* s = segments; s < segments + n_segments; s++)
      for (int64_t of = 0; of < taps.images; of++)
        for (int64_t h = 0; h < height(*s); h++) {
          const int64_t line = (s->line + h) * line_step + taps.first_line(of);
          const int64_t from = taps.first_column(of);
          const LinePixels there(g, line, from, column_step, l.pitch);
          const Bf16* at = x + (s->image * g.size[1] + line) * g.row +
                           (from + there.begin * column_step) * g.pixel;
          for (int64_t w = 0; w < there.begin; w++) pairs.add(Words{});
          for (int64_t w = there.begin; w < there.end; w++, at += column_step * g.pixel)
            pairs.add(quads_of_words(at));
          for (int64_t w = there.end; w < l.pitch; w++) pairs.add(Words{});
        }
    for (int64_t w = 0; w < 2 * kStep; w++) pairs.add(Words{});
    return words_are_finite(pairs.seen);
  }
  // The first pair, of no pixel and the first one, is stored before the odd ones.
  struct PixelPairs {
    int32_t* to;     // of the pair that the pixel before begins
    int32_t* other;  // of the next pair
    Words before, seen;

    TT_INLINE void add(Words pixel) {
      seen = larger_magnitudes(seen, pixel);
      store_zipped_quads(before, pixel, to, to + kAmxRows);
      before = pixel;
      int32_t* const next = to + kAmxBlock;
      to = other;
      other = next;
    }
  };

  // Adds the products at a tap to a block of sums [32 columns][32 channels].
  TT_NOINLINE void add_tap(int64_t t, float* out, int64_t panel, bool first) const {
    const int64_t out_row = ld * int64_t(sizeof(float));
    float* const lower = out + kAmxRows * ld;
    if (first) {
      amx_zero<0>();
      amx_zero<1>();
      amx_zero<2>();
      amx_zero<3>();
    } else {
      amx_load<0>(out, out_row);
      amx_load<1>(out + kAmxRows, out_row);
      amx_load<2>(lower, out_row);
      amx_load<3>(lower + kAmxRows, out_row);
    }
    constexpr int64_t kPairRow = 2 * kAmxRowBytes;
    const int32_t* a = of_y + panel * kSteps * kPanelStep;
    for (const LineSegment* s = segments; s < segments + n_segments; s++) {
      const int64_t at = s->copy + taps.image[t] * height(*s) * l.pitch + taps.offset[t];
      const int32_t* b = of_x + (at % 2 * kPairs + at / 2) * kAmxBlock;
      for (int64_t n = s->steps; n > 0; n--, a += kPanelStep, b += kPanelStep) {
        amx_load_once<6>(b, kPairRow);
        amx_load<4>(a, kAmxRowBytes);
        AmxBf16::add<0, 4, 6>();
        amx_load_once<7>(b + kAmxRows, kPairRow);
        AmxBf16::add<1, 4, 7>();
        amx_load<5>(a + kAmxRows * kAmxRows, kAmxRowBytes);
        AmxBf16::add<2, 5, 6>();
        AmxBf16::add<3, 5, 7>();
      }
    }
    amx_store<0>(out, out_row);
    amx_store<1>(out + kAmxRows, out_row);
    amx_store<2>(lower, out_row);
    amx_store<3>(lower + kAmxRows, out_row);
  }
};

// By copied lines; false if src is not finite.
TT_NOINLINE bool add_lines(const ConvWeightPlan& p, const ConvWeightPart& part,
                           const WeightRange& of) {
  WeightLineUnit unit(p, part);
  for (int64_t j = part.j0; j < part.j1; j += kConvTilesCols) {
    const int64_t end = min(j + kConvTilesCols, part.j1);
    if (!unit.run(of, j, end)) return false;
  }
  return true;
}
TT_NOINLINE void add_chunks(const ConvWeightPlan& p, const ConvWeightPart& part,
                            const WeightRange& of) {
  WeightTileUnit unit(p, part.split, part.group);
  for (int64_t j = part.j0; j < part.j1; j += kConvTilesCols) {
    const int64_t end = min(j + kConvTilesCols, part.j1);
    int64_t m = part.from;
    do {
      const int64_t n = min(part.to - m, kConvChunk);
      unit.add_pixels(m, n, of, j, end, m == part.from);
      m += n;
    } while (m < part.to);
    if (unit.turns_y && !p.lines.lines) turn_sums(unit.sums, unit.ld, p.gather.run, of, j, end);
  }
}

// ---- the weight's gradient from blocks of sums that are not turned ----

// Interleaves vectors of 32 words, of each tap: the taps of the first channel, of the second, ….
class TapWords {
 public:
  explicit TapWords(int of_taps) : taps(of_taps) {
    for (int v = 0; v < taps; v++)
      for (int at = 0; at < kStep; at++) {
        const int number = v * int(kStep) + at;
        channel[v][at] = int16_t(number / taps);
        for (int t = 0; t < taps; t++) {
          const uint32_t bit = uint32_t(number % taps == t) << at;
          lanes[v][t] = at ? lanes[v][t] | bit : bit;
        }
      }
  }
  void store_interleaved(const Words* of_tap, Bf16* out) const {
    for (int v = 0; v < taps; v++, out += kStep) {
      const Words from = load(reinterpret_cast<const int32_t*>(channel[v]));
      Words words = {};
      for (int t = 0; t < taps; t++) words = words_at(words, lanes[v][t], from, of_tap[t]);
      store(reinterpret_cast<int32_t*>(out), words);
    }
  }

 private:
  const int taps;
  alignas(64) int16_t channel[kConvTilesLineTaps][kStep];
  uint32_t lanes[kConvTilesLineTaps][kConvTilesLineTaps];
};

// Adds the splits of column j of a group, channels [i, i + 32), tap by tap.
TT_INLINE void add_splits(const ConvWeightPlan& p, int64_t group, int64_t j, int64_t i,
                          Words* out) {
  const int64_t ld = round_up(p.s.co, kConvCols);
  const int64_t group_items = p.s.taps() * p.s.ci * ld;
  const auto* const sums = reinterpret_cast<const float*>(p.sums) + group * group_items;
  const int64_t in_block = j % kAmxBlock;
  for (int64_t t = 0; t < p.s.taps(); t++) {
    const float* at = sums + (t * p.s.ci + i + in_block) * ld + j - in_block;
    Vec<float> low = load(at);
    Vec<float> high = load(at + kAmxRows);
    for (int64_t s = 1; s < p.splits; s++) {
      at += p.s.groups * group_items;
      low = low + load(at);
      high = high + load(at + kAmxRows);
    }
    out[t] = narrow_two(low, high);
  }
}
// Units: [groups][blocks of kConvCols columns]. dst is bf16.
void write_weight(const ConvWeightPlan& p, int64_t u) {
  const int64_t panels = ceil_div(p.s.co, kConvCols);
  const int64_t group = u / panels;
  const int64_t taps = p.s.taps();
  const bool tap_by_tap = p.w_ci == 1;
  const TapWords interleave(tap_by_tap ? 0 : int(taps));
  const int64_t end = min((u % panels + 1) * kConvCols, p.s.co);
  for (int64_t j = u % panels * kConvCols; j < end; j++) {
    Bf16* const row = reinterpret_cast<Bf16*>(p.dst) + (group * p.s.co + j) * p.w_co;
    for (int64_t i = 0; i < p.s.ci; i += kAmxBlock) {
      Words of_tap[kConvTilesLineTaps];
      add_splits(p, group, j, i, of_tap);
      if (!tap_by_tap) {
        interleave.store_interleaved(of_tap, row + i * taps);
        continue;
      }
      for (int64_t t = 0; t < taps; t++) {
        const int64_t k = t / p.s.k[2] * p.w_k[1] + t % p.s.k[2] * p.w_k[2];
        store(reinterpret_cast<int32_t*>(row + i + k), of_tap[t]);
      }
    }
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

void conv_weight_sum_bf16_amx(const ConvWeightPlan& p, int64_t begin, int64_t end) noexcept {
  for (int64_t u = begin; u < end; u++) write_weight(p, u);
}
void conv_weight_bf16_amx(const ConvWeightPlan& p, const ConvWeightPart& part) noexcept {
  const AmxTiles tiles;
  if (!p.lines.lines) return add_chunks(p, part, {part.t0, part.t1, 0, p.gather.run});
  const WeightRange of = {0, p.s.taps(), part.t0 * kAmxBlock, part.t1 * kAmxBlock};
  if (!add_lines(p, part, of)) add_chunks(p, part, of);
}

TT_ENTRY_END

#else  // never called

TT_ENTRY_BEGIN
void conv_weight_sum_bf16_amx(const ConvWeightPlan&, int64_t, int64_t) noexcept {}
void conv_weight_bf16_amx(const ConvWeightPlan&, const ConvWeightPart&) noexcept {}
TT_ENTRY_END

#endif
