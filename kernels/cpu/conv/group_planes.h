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
    for (int64_t left = rows * ceil_div(s.y[1], int64_t(kL)); left > 0; left -= kG) {
      const float* x[kG];
      float* y[kG];
      walk.next(from.room, to[0], x, y);
      const bool is_half = left <= kG / 2;
      for (int i = 0; i < kColumns * kG; i++) store(sums + i * kL, splat(bias[i / kG]));
      for (int64_t t = 0; t < taps; t += in_chain) {
        const int64_t end = min(t + in_chain, taps);
        if (is_half) add_chain<kG / 2>(from, x, t, end, weight, sums);
        else add_chain<kG>(from, x, t, end, weight, sums);
      }
      for (int c = 0; c < kColumns; c++)
        for (int g = 0; g < (is_half ? kG / 2 : kG); g++)
          store(y[g] + (to[c] - to[0]), load(sums + at(c, g)), part);
    }
  }
  // Adds the chain of taps [t, end) to the sums of the first kN vectors of each column; the first
  // one begins with them.
  template <int kN> static TT_NOINLINE void add_chain(const DepthwiseRoom& from,
                                                      const float* const* x, int64_t t, int64_t end,
                                                      const float* w, float* sums) {
    const auto each_sum = [](const auto& f) TT_INLINE_BODY {
      TT_UNROLL
      for (int c = 0; c < kColumns; c++) {
        TT_UNROLL
        for (int g = 0; g < kN; g++) f(c, g);
      }
    };
    const int64_t channel = from.s.channel_items();
    const bool first = t == 0;
    Vec<float> sum[kColumns][kN] = {};
    if (first) each_sum([&](int c, int g) TT_INLINE_BODY { sum[c][g] = load(sums + at(c, g)); });
    w += t * from.s.depth * kColumns;
    for (; t < end; t++) {
      int64_t tap = from.offset[t];
      for (int64_t i = 0; i < from.s.depth; i++, tap += channel, w += kColumns) {
        Vec<float> v[kN];
        TT_UNROLL
        for (int g = 0; g < kN; g++) v[g] = load(x[g] + tap);
        each_sum([&](int c, int g)
                     TT_INLINE_BODY { sum[c][g] = fma(v[g], splat(w[c]), sum[c][g]); });
      }
    }
    if (!first)
      each_sum([&](int c, int g) TT_INLINE_BODY { sum[c][g] = load(sums + at(c, g)) + sum[c][g]; });
    each_sum([&](int c, int g) TT_INLINE_BODY { store(sums + at(c, g), sum[c][g]); });
  }
  static constexpr int at(int c, int g) { return (c * kG + g) * kL; }
};

// The weight's gradient of groups of few channels. A unit is a group. Each pixel of kColumns
// columns of y is multiplied by those at kTaps taps of a channel of x. Each block of rows of an
// image has sums of its own, vectors of kL lanes, which are then added to these behind the room:
//
//   sums [ci][tiles of kTaps taps][tiles of kColumns columns][kTaps][kColumns][kL]
struct GroupPlaneWeight {
  static constexpr int kL = kLanes<float>;
  static constexpr int kColumns = kConvGroupPlaneCols;
  static constexpr int kTaps = kConvGroupPlaneTaps;
  static constexpr int64_t kTile = int64_t(kTaps) * kColumns * kL;

  static void unit(const ConvWeightPlan& p, int64_t group) {
    const ConvDepthwiseShape& s = p.planes;
    const Room memory(p.rooms);
    const DepthwiseRoom from(s, memory.as<float>());
    float* const sums = from.room + s.room_items();
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
        add_block(p, from, y + o * s.y[1], rows, sums, first);
        first = false;
      }
    }
    if (!first) write(p, group, sums);
  }
  // Calls f(channel, tap, column, sums) for each tile.
  template <class F>
  static TT_INLINE void each_tile(const ConvWeightPlan& p, float* sums, const F& f) {
    for (int64_t i = 0; i < p.s.ci; i++)
      for (int64_t t = 0; t < p.s.taps(); t += kTaps)
        for (int64_t c = 0; c < p.s.co; c += kColumns, sums += kTile) f(i, t, c, sums);
  }
  static void add_block(const ConvWeightPlan& p, const DepthwiseRoom& from, const float* y,
                        int64_t rows, float* sums, bool first) {
    const int64_t last_tap = p.s.taps() - 1;
    const int64_t last_column = p.s.co - 1;
    each_tile(p, sums, [&](int64_t i, int64_t t, int64_t c, float* tile) TT_INLINE_BODY {
      const float* x[kTaps];
      const float* of_column[kColumns];
      for (int k = 0; k < kTaps; k++)
        x[k] = from.room + i * from.s.channel_items() + from.offset[min(t + k, last_tap)];
      for (int k = 0; k < kColumns; k++)
        of_column[k] = y + min(c + k, last_column) * from.s.y[0] * from.s.y[1];
      if (c + kColumns / 2 > last_column)
        add<kColumns / 2>(from.s, x, of_column, rows, tile, first);
      else add<kColumns>(from.s, x, of_column, rows, tile, first);
    });
  }
  // Adds the first kN columns of a tile, of which the others are not used.
  template <int kN> static TT_NOINLINE void add(const ConvDepthwiseShape& s, const float* const* x,
                                                const float* const* y, int64_t rows, float* sums,
                                                bool first) {
    Vec<float> acc[kTaps][kN] = {};
    for (int64_t r = 0; r < rows; r++) {
      for (int64_t j = 0; j < s.y[1]; j += kL) {
        const Part<float> part(int(min<int64_t>(s.y[1] - j, kL)));
        Vec<float> v[kTaps];
        TT_UNROLL
        for (int k = 0; k < kTaps; k++) v[k] = load(x[k] + r * s.pitch + j, part);
        TT_UNROLL
        for (int c = 0; c < kN; c++) {
          const Vec<float> g = load(y[c] + r * s.y[1] + j, part);
          TT_UNROLL
          for (int k = 0; k < kTaps; k++) acc[k][c] = fma(v[k], g, acc[k][c]);
        }
      }
    }
    TT_UNROLL
    for (int k = 0; k < kTaps; k++) {
      TT_UNROLL
      for (int c = 0; c < kN; c++) {
        float* const to = sums + (k * kColumns + c) * kL;
        store(to, first ? acc[k][c] : Vec<float>(load(to) + acc[k][c]));
      }
    }
  }
  static void write(const ConvWeightPlan& p, int64_t group, float* sums) {
    const ConvDepthwiseShape& s = p.planes;
    each_tile(p, sums, [&](int64_t i, int64_t t, int64_t c, const float* tile) TT_INLINE_BODY {
      for (int64_t k = 0; k < min<int64_t>(kTaps, p.s.taps() - t); k++)
        for (int64_t m = 0; m < min<int64_t>(kColumns, p.s.co - c); m++) {
          float two[2];
          fold_lanes<float, kL>(load(tile + (k * kColumns + m) * kL), two,
                                [](auto a, auto b) { return a + b; });
          float* to = reinterpret_cast<float*>(p.dst);
          to += (group * p.s.co + c + m) * p.w_co + i * p.w_ci;
          to += (t + k) / s.k[1] * p.w_k[1] + (t + k) % s.k[1] * p.w_k[2];
          *to = two[0] + two[1];
        }
    });
  }
};

TT_ISA_END
