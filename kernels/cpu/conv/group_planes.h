// Groups of few channels with channels first: y from x or x from y, as depthwise_planes.h does it
// for groups of one channel. A unit fills a room with the rows that each channel of a group has for
// a block of rows of the result, and adds kColumns columns at a time. The last ones are computed
// with some of those before; if there are fewer, some are computed twice.
//
//   sum[column][vector] += weight (one number) * neighbouring pixels of a channel, at a tap
//
// Sums are chains in the order of the other paths: taps, then channels.
#pragma once

#include "kernels/cpu/conv/depthwise_planes.h"

TT_ISA_BEGIN

struct GroupPlanePath {
  static constexpr int kL = kLanes<float>;
  static constexpr int kG = PlaneWalk::kVectors;
  static constexpr int kColumns = 4;
  // Column i of the tile that begins with column c.
  static TT_INLINE int64_t column(int64_t cols, int64_t c, int64_t i) {
    return min(max<int64_t>(min(c, cols - kColumns), 0) + i, cols - 1);
  }

  static void pack(const ConvPlan& p, int64_t, int64_t) {
    const bool data = p.mode == kConvData;
    const int64_t cols = conv_cols(p.s, p.mode);
    const int64_t depth = conv_depth(p.s, p.mode);
    const int64_t terms = p.s.taps() * depth;
    auto* to = reinterpret_cast<float*>(p.packed);
    for (int64_t g = 0; g < p.s.groups; g++) {
      const float* w = reinterpret_cast<const float*>(p.weight) + g * p.s.co * p.w_co;
      for (int64_t c = 0; c < cols; c += kColumns)
        for (int64_t i = 0; i < terms * kColumns; i++) {
          TT_SCALAR_LOOP;
          const int64_t its = column(cols, c, i % kColumns);
          const int64_t channel = i / kColumns % depth;
          const int64_t t = i / kColumns / depth;
          const int64_t o = data ? channel : its;
          const int64_t in = data ? its : channel;
          const int64_t row = t / p.s.k[2];
          *to++ = w[o * p.w_co + in * p.w_ci + row * p.w_k[1] + t % p.s.k[2] * p.w_k[2]];
        }
    }
  }

  static void unit(const ConvPlan& p, int64_t u) {
    const ConvDepthwiseShape& s = p.depthwise.planes;
    const int64_t number = u / s.blocks;  // of the group, through all images
    const int64_t group = number % p.s.groups;
    const int64_t cols = conv_cols(p.s, p.mode);
    const int64_t o = u % s.blocks * s.rows;
    const int64_t rows = min(s.rows, s.y[0] - o);
    const Room memory(p.depthwise.rooms);
    DepthwiseRoom from(s, memory.as<float>());
    const auto* src = reinterpret_cast<const float*>(p.src);
    for (int64_t i = 0; i < s.depth; i++)
      DepthwiseRoom(s, from.room + i * s.channel_items())
          .fill(src + (number * s.depth + i) * s.x[0] * s.x[1], o, rows);
    const int64_t taps = s.k[0] * s.k[1];
    if (p.mode == kConvData) turn(from.offset, taps);
    const int64_t tile = s.depth * taps * kColumns;  // weights
    const float* w = reinterpret_cast<const float*>(p.packed);
    w += group * ceil_div(cols, kColumns) * tile;
    const auto* bias = reinterpret_cast<const float*>(p.bias);
    auto* to = reinterpret_cast<float*>(p.dst) + (number * cols * s.y[0] + o) * s.y[1];
    for (int64_t c = 0; c < cols; c += kColumns, w += tile) {
      float* y[kColumns];
      float start[kColumns];
      for (int i = 0; i < kColumns; i++) {
        const int64_t its = column(cols, c, i);
        y[i] = to + its * s.y[0] * s.y[1];
        start[i] = bias ? bias[group * cols + its] : 0.0f;
      }
      add(from, w, start, y, rows);
    }
  }
  // The window of x from y is that of y from x, turned by half a turn.
  static TT_NOINLINE void turn(int64_t* offset, int64_t n) {
    for (int64_t i = 0; i < n / 2; i++) {
      TT_SCALAR_LOOP;
      const int64_t other = offset[n - 1 - i];
      offset[n - 1 - i] = offset[i];
      offset[i] = other;
    }
  }

  // Rows of kColumns columns of the result, which begin at `to`.
  static TT_NOINLINE void add(const DepthwiseRoom& from, const float* weight, const float* bias,
                              float* const* to, int64_t rows) {
    const ConvDepthwiseShape& s = from.s;
    const int64_t taps = s.k[0] * s.k[1];
    const int64_t in_chain = taps * s.depth <= kConvChain ? taps : kConvChain / (s.depth + 1);
    const Part<float> part(int(min<int64_t>(s.y[1], kL)));
    alignas(64) float sums[kColumns * kG * kL];
    PlaneWalk walk(s, rows);
    while (!walk.done) {
      const float* x[kG];
      float* y[kG];
      walk.next(from.room, to[0], x, y);
      for (int i = 0; i < kColumns * kG; i++) store(sums + i * kL, splat(bias[i / kG]));
      for (int64_t t = 0; t < taps; t += in_chain)
        add_chain(from, x, t, min(t + in_chain, taps), weight, sums);
      for (int i = 0; i < kColumns * kG; i++)
        store(y[i % kG] + (to[i / kG] - to[0]), load(sums + i * kL), part);
    }
  }
  // Adds the chain of taps [t, end) to the sums; the first one begins with them.
  static TT_NOINLINE void add_chain(const DepthwiseRoom& from, const float* const* x, int64_t t,
                                    int64_t end, const float* w, float* sums) {
    const int64_t channel = from.s.channel_items();
    const bool first = t == 0;
    Vec<float> sum[kColumns][kG] = {};
    if (first) each_sum([&](int c, int g) TT_INLINE_BODY { sum[c][g] = load(sums + at(c, g)); });
    w += t * from.s.depth * kColumns;
    for (; t < end; t++) {
      int64_t tap = from.offset[t];
      for (int64_t i = 0; i < from.s.depth; i++, tap += channel, w += kColumns) {
        Vec<float> v[kG];
        TT_UNROLL
        for (int g = 0; g < kG; g++) v[g] = load(x[g] + tap);
        each_sum([&](int c, int g)
                     TT_INLINE_BODY { sum[c][g] = fma(v[g], splat(w[c]), sum[c][g]); });
      }
    }
    if (!first)
      each_sum([&](int c, int g) TT_INLINE_BODY { sum[c][g] = load(sums + at(c, g)) + sum[c][g]; });
    each_sum([&](int c, int g) TT_INLINE_BODY { store(sums + at(c, g), sum[c][g]); });
  }
  static constexpr int at(int c, int g) { return (c * kG + g) * kL; }
  template <class F> static TT_INLINE void each_sum(const F& f) {
    TT_UNROLL
    for (int c = 0; c < kColumns; c++) {
      TT_UNROLL
      for (int g = 0; g < kG; g++) f(c, g);
    }
  }
};

// The weight's gradient of groups of few channels. A unit is a group. Each pixel of kColumns
// columns of y is multiplied by those at kTaps taps of a channel of x. The sums of a block of rows
// of an image are added to the weight in the order of the blocks.
struct GroupPlaneWeight {
  static constexpr int kL = kLanes<float>;
  static constexpr int kColumns = 4;
  static constexpr int kTaps = 3;

  static void unit(const ConvWeightPlan& p, int64_t group) {
    const ConvDepthwiseShape& s = p.planes;
    const Room memory(p.rooms);
    const DepthwiseRoom from(s, memory.as<float>());
    bool first = true;
    for (int64_t image = 0; image < p.s.n; image++) {
      const int64_t number = image * p.s.groups + group;
      const auto* x = reinterpret_cast<const float*>(p.src) + number * p.s.ci * s.x[0] * s.x[1];
      const auto* y = reinterpret_cast<const float*>(p.y) + number * p.s.co * s.y[0] * s.y[1];
      for (int64_t o = 0; o < s.y[0]; o += s.rows) {
        const int64_t rows = min(s.rows, s.y[0] - o);
        for (int64_t i = 0; i < p.s.ci; i++)
          DepthwiseRoom(s, from.room + i * s.channel_items())
              .fill(x + i * s.x[0] * s.x[1], o, rows);
        add_block(p, from, y + o * s.y[1], rows, group, first);
        first = false;
      }
    }
  }
  static void add_block(const ConvWeightPlan& p, const DepthwiseRoom& from, const float* y,
                        int64_t rows, int64_t group, bool first) {
    for (int64_t i = 0; i < p.s.ci; i++)
      for (int64_t t = 0; t < p.s.taps(); t += kTaps)
        for (int64_t c = 0; c < p.s.co; c += kColumns)
          add(p, from, y, rows, {.group = group, .channel = i, .tap = t, .column = c}, first);
  }

  struct Tile {
    int64_t group, channel, tap, column;
  };
  static TT_NOINLINE void add(const ConvWeightPlan& p, const DepthwiseRoom& from, const float* y,
                              int64_t rows, const Tile& tile, bool first) {
    const ConvDepthwiseShape& s = from.s;
    const int64_t last_tap = p.s.taps() - 1;
    const int64_t last_column = p.s.co - 1;
    Vec<float> acc[kTaps][kColumns] = {};
    const float* x[kTaps];
    const float* of_column[kColumns];
    for (int k = 0; k < kTaps; k++) {
      const int64_t tap = min(tile.tap + k, last_tap);
      x[k] = from.room + tile.channel * s.channel_items() + from.offset[tap];
    }
    for (int c = 0; c < kColumns; c++)
      of_column[c] = y + min(tile.column + c, last_column) * s.y[0] * s.y[1];
    for (int64_t r = 0; r < rows; r++) {
      for (int64_t j = 0; j < s.y[1]; j += kL) {
        const Part<float> part(int(min<int64_t>(s.y[1] - j, kL)));
        Vec<float> g[kColumns];
        TT_UNROLL
        for (int c = 0; c < kColumns; c++) g[c] = load(of_column[c] + r * s.y[1] + j, part);
        TT_UNROLL
        for (int k = 0; k < kTaps; k++) {
          const Vec<float> v = load(x[k] + r * s.pitch + j, part);
          TT_UNROLL
          for (int c = 0; c < kColumns; c++) acc[k][c] = fma(v, g[c], acc[k][c]);
        }
      }
    }
    for (int k = 0; k < kTaps && tile.tap + k <= last_tap; k++)
      for (int c = 0; c < kColumns && tile.column + c <= last_column; c++) {
        float two[2];
        fold_lanes<float, kL>(acc[k][c], two, [](auto a, auto b) { return a + b; });
        const int64_t t = tile.tap + k;
        float* to = reinterpret_cast<float*>(p.dst);
        to += (tile.group * p.s.co + tile.column + c) * p.w_co + tile.channel * p.w_ci;
        to += t / s.k[1] * p.w_k[1] + t % s.k[1] * p.w_k[2];
        *to = first ? two[0] + two[1] : *to + (two[0] + two[1]);
      }
  }
};

TT_ISA_END
