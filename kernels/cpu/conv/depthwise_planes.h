// Groups of one channel with channels first: DepthwisePlanePath computes y from x or x from y,
// DepthwisePlaneWeight the weight's gradient. Vectors hold neighbouring pixels of a plane.
//
//   src plane   rows that a block of rows of dst reads
//     | fill    with their padding, by phases of the stride
//   room        [stride0][stride1] planes of [height][pitch]
//     | add     pixel (row, column) of dst reads room[row * pitch + column + offset] for each tap
//   dst plane
//
// Sums are one chain in the order of the taps, as those of DepthwisePath.
#pragma once

#include "base/arith.h"
#include "kernels/cpu/matmul/vec.h"
#include "kernels/cpu/simd/room.h"
#include "kernels/cpu/simd/tile_sums.h"
#include "plan/conv_plan.h"

TT_ENTRY_BEGIN

// Fills a room for rows [o, o + rows) of the result.
void fill_depthwise_room(const ConvDepthwiseShape& s, float* room, const float* src, int64_t o,
                         int64_t rows) noexcept;

TT_ENTRY_END

TT_ISA_BEGIN

// The rows that results read, in a room.
struct DepthwiseRoom {
  const ConvDepthwiseShape& s;
  float* const room;
  int64_t offset[kConvDepthwiseTaps];  // of each tap, in elements of the room

  DepthwiseRoom(const ConvDepthwiseShape& shape, float* memory) : s(shape), room(memory) {
    for (int64_t t = 0; t < s.k[0] * s.k[1]; t++) {
      const int64_t row = t / s.k[1] * s.dil[0];
      const int64_t column = t % s.k[1] * s.dil[1];
      const int64_t plane = row % s.stride[0] * s.stride[1] + column % s.stride[1];
      offset[t] = plane * s.plane_items() + row / s.stride[0] * s.pitch + column / s.stride[1];
    }
  }

  // Fills the room for rows [o, o + rows) of the result.
  void fill(const float* src, int64_t o, int64_t rows) const {
    fill_depthwise_room(s, room, src, o, rows);
  }
};

// The vectors of rows of a result. The last vector of a row ends where the row does, and repeats
// pixels of the one before; behind the last row, its last vector is repeated. With a height of 2,
// vectors of pairs of rows, of which the last one may repeat a row.
struct PlaneWalk {
  static constexpr int kVectors = 4;
  const ConvDepthwiseShape& s;
  const int64_t rows, height, last;
  int64_t row = 0;
  int64_t column = 0;
  bool done = false;

  PlaneWalk(const ConvDepthwiseShape& shape, int64_t n_rows, int64_t row_height = 1)
      : s(shape),
        rows(n_rows),
        height(row_height),
        last(max<int64_t>(shape.y[1] - kLanes<float>, 0)) {}

  // The next vectors in a room and in the result.
  TT_INLINE void next(const float* room, float* to, const float** x, float** y) {
    for (int g = 0; g < kVectors; g++) {
      x[g] = room + row * s.pitch + column;
      y[g] = to + row * s.y[1] + column;
      if (column < last) {
        column = min<int64_t>(column + kLanes<float>, last);
      } else if (row + height < rows) {
        column = 0;
        row = min(row + height, rows - height);
      } else {
        done = true;
      }
    }
  }
};

struct DepthwisePlanePath {
  static constexpr int kL = kLanes<float>;

  // packed: [groups][taps]
  static void pack(const ConvPlan& p, int64_t, int64_t) {
    const int64_t taps = p.s.k[1] * p.s.k[2];
    auto* to = reinterpret_cast<float*>(p.packed);
    for (int64_t g = 0; g < p.s.groups; g++) {
      const float* w = reinterpret_cast<const float*>(p.weight) + g * p.w_co;
      for (int64_t i = 0; i < taps; i++) {
        const int64_t t = p.mode == kConvData ? taps - 1 - i : i;
        *to++ = w[t / p.s.k[2] * p.w_k[1] + t % p.s.k[2] * p.w_k[2]];
      }
    }
  }

  static void unit(const ConvPlan& p, int64_t u) {
    const ConvDepthwiseShape& s = p.depthwise.planes;
    const int64_t plane = u / s.blocks;
    const int64_t group = plane % p.s.groups;
    const int64_t o = u % s.blocks * s.rows;
    const int64_t rows = min(s.rows, s.y[0] - o);
    const Room memory(p.depthwise.rooms);
    const DepthwiseRoom from(s, memory.as<float>());
    from.fill(reinterpret_cast<const float*>(p.src) + plane * s.x[0] * s.x[1], o, rows);
    const auto* bias = reinterpret_cast<const float*>(p.bias);
    const float* w = reinterpret_cast<const float*>(p.packed) + group * s.k[0] * s.k[1];
    float* to = reinterpret_cast<float*>(p.dst) + (plane * s.y[0] + o) * s.y[1];
    const float start = bias ? bias[group] : 0.0f;
    if (rows > 1 && s.dil[0] == 1) add_pairs(from, w, start, to, rows);
    else add(from, w, start, to, rows);
  }

  // Pairs of rows of the result, kVectors vectors of each at a time. The second row of a pair reads
  // a row of the room by the tap `stride` rows before that of the first one: what is loaded is used
  // twice.
  static TT_NOINLINE void add_pairs(const DepthwiseRoom& from, const float* w, float bias,
                                    float* to, int64_t rows) {
    constexpr int kG = PlaneWalk::kVectors;
    const ConvDepthwiseShape& s = from.s;
    const Part<float> part(int(min<int64_t>(s.y[1], kL)));
    PlaneWalk walk(s, rows, 2);
    while (!walk.done) {
      const float* x[kG];
      float* y[kG];
      walk.next(from.room, to, x, y);
      Vec<float> sum[2][kG];
      sum_tile(sum, [&from, x, w, bias](auto unit, auto& sums) TT_INLINE_BODY {
        return pair_sums<decltype(unit)>(from, x, w, bias, sums);
      });
      TT_UNROLL
      for (int g = 0; g < kG; g++) {
        store(y[g], sum[0][g], part);
        store(y[g] + s.y[1], sum[1][g], part);
      }
    }
  }
  template <class Unit, int kG>
  static TT_INLINE bool pair_sums(const DepthwiseRoom& from, const float* const (&x)[kG],
                                  const float* w, float bias, Vec<float> (&sum)[2][kG]) {
    const ConvDepthwiseShape& s = from.s;
    const int64_t step = s.stride[0];
    TT_UNROLL
    for (int g = 0; g < kG; g++) sum[0][g] = sum[1][g] = splat(bias);
    for (int64_t i = 0; i < s.k[0] + step; i++) {
      const int64_t row = i % step * s.stride[1] * s.plane_items() + i / step * s.pitch;
      const float* of_first = w + i * s.k[1];
      if (i < min(step, s.k[0])) add_row<Unit, 0, 1>(from, x, row, of_first, sum);
      else if (i < s.k[0]) add_row<Unit, 0, 2>(from, x, row, of_first, sum);
      else if (i >= step) add_row<Unit, 1, 2>(from, x, row, of_first, sum);
    }
    return true;
  }
  // Adds a row of the room to rows [kFrom, kTo) of a pair. w: the row of taps of the first one.
  template <class Unit, int kFrom, int kTo>
  static TT_INLINE void add_row(const DepthwiseRoom& from, const float* const* x, int64_t row,
                                const float* w, Vec<float> (*sum)[PlaneWalk::kVectors]) {
    constexpr int kG = PlaneWalk::kVectors;
    const ConvDepthwiseShape& s = from.s;
    for (int64_t k = 0; k < s.k[1]; k++) {
      Vec<float> v[kG];
      TT_UNROLL
      for (int g = 0; g < kG; g++) v[g] = load(x[g] + row + from.offset[k]);
      TT_UNROLL
      for (int r = kFrom; r < kTo; r++) {
        const auto weight = Unit::factor(w[k - r * s.stride[0] * s.k[1]]);
        TT_UNROLL
        for (int g = 0; g < kG; g++) sum[r][g] = Unit::add_product(weight, v[g], sum[r][g]);
      }
    }
  }

  // Rows of the result, kVectors vectors at a time.
  static TT_NOINLINE void add(const DepthwiseRoom& from, const float* w, float bias, float* to,
                              int64_t rows) {
    constexpr int kG = PlaneWalk::kVectors;
    const ConvDepthwiseShape& s = from.s;
    const Part<float> part(int(min<int64_t>(s.y[1], kL)));
    PlaneWalk walk(s, rows);
    while (!walk.done) {
      const float* x[kG];
      float* y[kG];
      walk.next(from.room, to, x, y);
      Vec<float> sum[1][kG];
      sum_tile(sum, [&from, x, w, bias](auto unit, auto& sums) TT_INLINE_BODY {
        return row_sums<decltype(unit)>(from, x, w, bias, sums);
      });
      TT_UNROLL
      for (int g = 0; g < kG; g++) store(y[g], sum[0][g], part);
    }
  }
  template <class Unit, int kG>
  static TT_INLINE bool row_sums(const DepthwiseRoom& from, const float* const (&x)[kG],
                                 const float* w, float bias, Vec<float> (&sum)[1][kG]) {
    const int64_t taps = from.s.k[0] * from.s.k[1];
    TT_UNROLL
    for (int g = 0; g < kG; g++) sum[0][g] = splat(bias);
    for (int64_t t = 0; t < taps; t++) {
      const int64_t at = from.offset[t];
      const auto weight = Unit::factor(w[t]);
      TT_UNROLL
      for (int g = 0; g < kG; g++)
        sum[0][g] = Unit::add_product(weight, load(x[g] + at), sum[0][g]);
    }
    return true;
  }
};

// A unit is a group. The sums of a block of rows of an image are vectors of their own, which are
// added to those of the others.
struct DepthwisePlaneWeight {
  static constexpr int kL = kLanes<float>;

  // Adds to sum[i] what taps t + i, i < kTaps, have from rows of y.
  template <int kTaps> static TT_NOINLINE void add(const DepthwiseRoom& from, const float* y,
                                                   int64_t rows, int64_t t, Vec<float>* sum) {
    const ConvDepthwiseShape& s = from.s;
    Vec<float> acc[kTaps] = {};
    const float* x[kTaps];
    TT_UNROLL
    for (int i = 0; i < kTaps; i++) x[i] = from.room + from.offset[t + i];
    for (int64_t r = 0; r < rows; r++) {
      for (int64_t j = 0; j < s.y[1]; j += kL) {
        const Part<float> part(int(min<int64_t>(s.y[1] - j, kL)));
        const int64_t at = r * s.pitch + j;
        const Vec<float> g = load(y + r * s.y[1] + j, part);
        TT_UNROLL
        for (int i = 0; i < kTaps; i++) acc[i] = fma(load(x[i] + at, part), g, acc[i]);
      }
    }
    TT_UNROLL
    for (int i = 0; i < kTaps; i++) sum[i] = sum[i] + acc[i];
  }

  static void unit(const ConvWeightPlan& p, int64_t group) {
    const ConvDepthwiseShape& s = p.planes;
    const int64_t taps = s.k[0] * s.k[1];
    const Room memory(p.rooms);
    const DepthwiseRoom from(s, memory.as<float>());
    Vec<float> sum[kConvDepthwiseTaps] = {};
    for (int64_t image = 0; image < p.s.n; image++) {
      const int64_t plane = image * p.s.groups + group;
      for (int64_t o = 0; o < s.y[0]; o += s.rows) {
        const int64_t rows = min(s.rows, s.y[0] - o);
        from.fill(reinterpret_cast<const float*>(p.src) + plane * s.x[0] * s.x[1], o, rows);
        const float* y = reinterpret_cast<const float*>(p.y) + (plane * s.y[0] + o) * s.y[1];
        int64_t t = 0;
        for (; t + 9 <= taps; t += 9) add<9>(from, y, rows, t, sum + t);
        for (; t + 3 <= taps; t += 3) add<3>(from, y, rows, t, sum + t);
        for (; t < taps; t++) add<1>(from, y, rows, t, sum + t);
      }
    }
    float* to = reinterpret_cast<float*>(p.dst) + group * p.w_co;
    for (int64_t t = 0; t < taps; t++) {
      float two[2];
      fold_lanes<float, kL>(sum[t], two, [](auto x, auto y) { return x + y; });
      to[t / s.k[1] * p.w_k[1] + t % s.k[1] * p.w_k[2]] = two[0] + two[1];
    }
  }
};

TT_ISA_END
