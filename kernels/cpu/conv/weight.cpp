// conv_weight: the gradient of a convolution's weight.
//
//        pixels of y              columns of y                columns
//      ┌─────────────┐         ┌────────────────┐       ┌─────────────────┐
//   ci │ x, read by  │    ×    │ y, the columns │   =   │ sums [taps][ci] │
//      │ indirection │  pixels │ of a group     │    ci │ of a split      │
//      └─────────────┘         └────────────────┘       └─────────────────┘
//
// for each tap, by chunks of kConvChunk pixels. Stage 0 makes the sums of each split of the pixels,
// stage 1 adds the splits and writes them in the weight's layout.
#include "kernels/cpu/conv/bf16_amx.h"
#include "kernels/cpu/conv/depthwise_planes.h"
#if TT_VEC_BYTES == 64
#include "kernels/cpu/conv/group_planes.h"
#endif
#include "kernels/cpu/conv/indirection.h"
#include "kernels/cpu/simd/room.h"
#include "kernels/cpu/simd/tile_sums.h"

TT_ISA_BEGIN

template <class T> struct WeightTile {
  const T* const* x;  // n pixels
  const T* const* y;  // the pixels of y that they are multiplied by
  int64_t n;
  int64_t channel, col;  // the first of the kMr channels of x; of the columns of y
  T* out;                // kMr rows of kVecs vectors, ld elements apart
  int64_t ld;
  bool add;  // to the values in out
};

// acc = x · y over the pixels.
template <class Unit, class T, int kMr, int kVecs>
TT_INLINE void weight_sums(const WeightTile<T>& t, Vec<T> (&acc)[kMr][kVecs]) {
  constexpr int kL = kLanes<T>;
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) acc[i][v] = Vec<T>{};
  }
  const T* fetch = t.out;
  const T* const last = t.out + (kMr - 1) * t.ld;
  for (int64_t k = 0; k < t.n; k++) {
    const T* a = t.x[k] + t.channel;
    const T* b = t.y[k] + t.col;
    if (k % 4 == 0) {
      TT_UNROLL
      for (int v = 0; v < kVecs * TT_VEC_BYTES; v += 64)
        TT_PREFETCH_WRITE(reinterpret_cast<const char*>(fetch) + v);
      fetch = fetch == last ? last : fetch + t.ld;
    }
    Vec<T> y[kVecs];
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) y[v] = load(b + v * kL);
    TT_UNROLL
    for (int i = 0; i < kMr; i++) {
      const auto x = Unit::factor_at(a + i);
      TT_UNROLL
      for (int v = 0; v < kVecs; v++) acc[i][v] = Unit::add_product(x, y[v], acc[i][v]);
    }
  }
}

// out = sum, or out += sum, of x · y.
template <class T, int kMr, int kVecs> TT_NOINLINE void weight_tile(const WeightTile<T>& t) {
  constexpr int kL = kLanes<T>;
  Vec<T> acc[kMr][kVecs];
  sum_tile(acc, [&t](auto unit, auto& sums) TT_INLINE_BODY {
    weight_sums<decltype(unit)>(t, sums);
    return true;
  });
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) {
      T* to = t.out + i * t.ld + v * kL;
      store(to, t.add ? Vec<T>(load(to) + acc[i][v]) : acc[i][v]);
    }
  }
}

template <class T> using WeightMicro = void (*)(const WeightTile<T>&);
template <class T> TT_INLINE WeightMicro<T> weight_micro(int rows, int vecs) {
#define TT_ROW(r)                                            \
  {                                                          \
    weight_tile<T, (r < kConvMr<T> ? r : kConvMr<T>), 1>,    \
        weight_tile<T, (r < kConvMr<T> ? r : kConvMr<T>), 2> \
  }
  static constexpr WeightMicro<T> kTable[14][2] = {
      TT_ROW(1), TT_ROW(2), TT_ROW(3),  TT_ROW(4),  TT_ROW(5),  TT_ROW(6),  TT_ROW(7),
      TT_ROW(8), TT_ROW(9), TT_ROW(10), TT_ROW(11), TT_ROW(12), TT_ROW(13), TT_ROW(14)};
#undef TT_ROW
  return kTable[rows - 1][vecs - 1];
}

template <class T> struct WeightUnit {
  const ConvWeightPlan& p;
  ConvSource<T, kConvChunk> source;
  const int64_t cols, ld, y_row;  // ld: columns rounded up
  const T* y;
  T* sums;
  const T* indirection[kConvChunk + kConvSlack];  // of the current tap
  // The pixels of y: whole columns, then the edge; of all pixels, then of those that are no
  // padding.
  const T *all_y[2][kConvChunk + kConvSlack], *inside_y[2][kConvChunk + kConvSlack];
  const Room room;
  T* const edge;  // [kConvChunk][kConvNr]: the last columns of y, filled up with zeros

  WeightUnit(const ConvWeightPlan& plan, int64_t split, int64_t group)
      : p(plan),
        source(p.gather, p.src, p.zeros, group),
        cols(p.s.co),
        ld(round_up(cols, kConvCols)),
        y_row(cols * p.s.groups),
        y(reinterpret_cast<const T*>(p.y) + group * cols),
        sums(reinterpret_cast<T*>(p.sums) +
             (split * p.s.groups + group) * p.s.taps() * p.s.ci * ld),
        room(p.rooms),
        edge(room.as<T>()) {}

  // Whether a tile of y's last w columns can be read in place, as one or two vectors.
  static bool whole(int64_t w) { return w >= kConvNr<T> || w == kLanes<T>; }

  // Drops those of the n pixels that are padding at the current tap.
  void keep_inside(int64_t n) {
    int64_t left = 0;
    for (int64_t i = 0; i < n; i++) {
      const T* x = indirection[i];
      indirection[left] = x;
      inside_y[0][left] = all_y[0][i];
      inside_y[1][left] = all_y[1][i];
      left += x != source.zeros;
    }
  }

  // Adds the products of n pixels to the sums of a tap, columns [j0, j1).
  void add_tap(int64_t tap, const T* const* whole_y, const T* const* edge_y, int64_t n, int64_t j0,
               int64_t j1, bool first) {
    constexpr int kNr = kConvNr<T>;
    constexpr int kMr = kConvMr<T>;
    const int64_t run = p.gather.run;
    const int64_t tiles = ceil_div(run, kMr);
    for (int64_t j = j0; j < j1; j += kNr) {
      const int64_t w = cols - j;
      for (int64_t i = 0; i < tiles; i++) {
        const int64_t from = run * i / tiles;
        const int64_t h = run * (i + 1) / tiles - from;
        const WeightTile<T> tile = {
            .x = indirection,
            .y = whole(w) ? whole_y : edge_y,
            .n = n,
            .channel = from,
            .col = whole(w) ? j : 0,
            .out = sums + (tap * run + from) * ld + j,
            .ld = ld,
            .add = !first,
        };
        weight_micro<T>(int(h), w > kLanes<T> ? 2 : 1)(tile);
      }
    }
  }

  // Adds the n pixels from m on: taps [t0, t1), columns [j0, j1).
  void add_pixels(int64_t m, int64_t n, int64_t t0, int64_t t1, int64_t j0, int64_t j1,
                  bool first) {
    source.set_pixels(p.s, m, n);
    fill_addresses(all_y[0], y + m * y_row, y_row, n);
    fill_addresses<const T>(all_y[1], edge, kConvNr<T>, n);
    const int64_t last = j0 + (j1 - j0 - 1) / kConvNr<T> * kConvNr<T>;  // the last panel
    if (!whole(cols - last))
      pack_panel(y + m * y_row + last, 1, y_row, int(cols - last), kConvNr<T>, n, edge);
    for (int64_t t = t0; t < t1; t++) {
      const ConvTap tap(t, p.gather.taps);
      int64_t shift[kConvDims];
      for (int d = 0; d < kConvDims; d++) shift[d] = tap.at[d] * p.s.dil[d] - p.gather.pad[d];
      const int64_t inside = source.addresses(n, shift, indirection);
      const auto* pixels_y = inside == n ? all_y : inside_y;
      if (inside != n) keep_inside(n);
      add_tap(t, pixels_y[0], pixels_y[1], inside, j0, j1, first);
    }
  }
};

// Start of the i-th of n nearly equal pieces of [0, size).
TT_INLINE int64_t conv_piece(int64_t size, int64_t n, int64_t i) {
  return size / n * i + (size % n < i ? size % n : i);
}

template <class T> void add_units(const ConvWeightPlan& p, int64_t begin, int64_t end) {
  int64_t taps = p.gather.taps[0] * p.gather.taps[1] * p.gather.taps[2];
  if (p.lines.lines) taps = p.gather.run / kConvTilesStep;
  const int64_t pixels = p.s.n * p.s.y[0] * p.s.y[1] * p.s.y[2];
  const int64_t blocks = p.tap_blocks * p.col_blocks;
  for (int64_t u = begin; u < end; u++) {
    const int64_t col_block = u % p.col_blocks;
    const int64_t tap_block = u / p.col_blocks % p.tap_blocks;
    const int64_t group = u / blocks % p.s.groups;
    const int64_t split = u / blocks / p.s.groups;
    const int64_t from = conv_piece(pixels, p.splits, split);
    const int64_t to = conv_piece(pixels, p.splits, split + 1);
    const int64_t width = ceil_div(p.s.co, p.col_blocks * kConvCols) * kConvCols;
    const int64_t j0 = col_block * width;
    const int64_t j1 = min(j0 + width, p.s.co);
    if (j0 >= j1) continue;
    const int64_t t0 = conv_piece(taps, p.tap_blocks, tap_block);
    const int64_t t1 = conv_piece(taps, p.tap_blocks, tap_block + 1);
#if TT_VEC_BYTES == 64
    if (p.tiles) {
      conv_weight_bf16_amx(p, {split, group, from, to, t0, t1, j0, j1});
      continue;
    }
#endif
    WeightUnit<T> unit(p, split, group);
    int64_t m = from;
    do {
      const int64_t n = min(to - m, kConvChunk);
      unit.add_pixels(m, n, t0, t1, j0, j1, m == from);
      m += n;
    } while (m < to);
  }
}

// Adds the splits of one tap's channels [c, c + kLanes) and `width` columns, and writes the sums to
// the weight. split_items: elements between the sums of two splits.
template <class T> void sum_block(const ConvWeightPlan& p, const T* from, int64_t split_items,
                                  int64_t c, int64_t width, T* to) {
  constexpr int kL = kLanes<T>;
  const int64_t ld = round_up(p.s.co, kConvCols);
  const int64_t channels = min<int64_t>(p.s.ci - c, kL);
  from += c * ld;
  to += c * p.w_ci;
  for (int64_t j = 0; j < width; j += kL) {
    Vec<T> r[kL];
    for (int64_t k = 0; k < kL; k++) r[k] = k < channels ? load(from + k * ld + j) : Vec<T>{};
    for (int64_t s = 1; s < p.splits; s++)
      for (int64_t k = 0; k < channels; k++)
        r[k] = r[k] + load(from + s * split_items + k * ld + j);
    transpose<T>(r);
    for (int64_t k = 0; k < kL && j + k < width; k++) {
      T* row = to + (j + k) * p.w_co;
      if (p.w_ci == 1) store(row, r[k], Part<T>(int(channels)));
      else
        for (int64_t i = 0; i < channels; i++) row[i * p.w_ci] = r[k][i];
    }
  }
}

template <class T> void sum_units(const ConvWeightPlan& p, int64_t begin, int64_t end) {
  const int64_t ld = round_up(p.s.co, kConvCols);
  const int64_t rows = p.s.taps() * p.s.ci;
  const int64_t split_items = p.s.groups * rows * ld;
  for (int64_t u = begin; u < end; u++) {
    const int64_t group = u / (ld / kConvCols);
    const int64_t j0 = u % (ld / kConvCols) * kConvCols;
    const int64_t width = min(p.s.co - j0, kConvCols);
    T* dst = reinterpret_cast<T*>(p.dst) + (group * p.s.co + j0) * p.w_co;
    const T* from = reinterpret_cast<const T*>(p.sums) + group * rows * ld + j0;
    for (int64_t c = 0; c < p.s.ci; c += kLanes<T>)
      for (int64_t t = 0; t < p.s.taps(); t++) {
        const ConvTap tap(t, p.s.k);
        T* to = dst;
        for (int d = 0; d < kConvDims; d++) to += tap.at[d] * p.w_k[d];
        sum_block(p, from + t * p.s.ci * ld, split_items, c, width, to);
      }
  }
}

// ---- groups of one channel: vectors of groups ----

template <class T> struct DepthwiseUnit {
  static constexpr int kL = kLanes<T>;
  static constexpr int kTaps = sizeof(T) == 4 ? 9 : 1;  // whose sums are in registers
  static constexpr int64_t kPixels = 64;                // of a chunk, which starts new sums
  static constexpr int64_t kPitch = kPixels + kConvSlack;
  const ConvWeightPlan& p;
  ConvSource<T, kConvChunk> source;
  const T* indirection[kTaps * kPitch];  // of the current taps

  explicit DepthwiseUnit(const ConvWeightPlan& plan)
      : p(plan), source(p.gather, p.src, p.zeros, 0) {}

  // sums[tap][groups] = or += the products of the n pixels from m on with those at the current
  // taps, kN of them.
  template <int kN> TT_NOINLINE void add_taps(int64_t m, int64_t n, T* sums, bool first) const {
    const int64_t groups = p.s.groups;
    const T* y = reinterpret_cast<const T*>(p.y) + m * groups;
    int64_t g = 0;
    for (; g + kL <= groups; g += kL) {
      Vec<T> sum[kN] = {};
      for (int64_t i = 0; i < n; i++) {
        const Vec<T> of_y = load(y + i * groups + g);
        TT_UNROLL
        for (int t = 0; t < kN; t++)
          sum[t] = fma(load(indirection[t * kPitch + i] + g), of_y, sum[t]);
      }
      TT_UNROLL
      for (int t = 0; t < kN; t++) {
        T* to = sums + t * groups + g;
        store(to, first ? sum[t] : Vec<T>(load(to) + sum[t]));
      }
    }
    if (g < groups) add_rest(y + g, n, kN, g, sums + g, first);
  }
  // The groups that fill no vector, tap by tap.
  TT_NOINLINE void add_rest(const T* y, int64_t n, int taps, int64_t g, T* sums, bool first) const {
    const int64_t groups = p.s.groups;
    const Part<T> part(int(groups - g));
    for (int t = 0; t < taps; t++, sums += groups) {
      Vec<T> sum = {};
      for (int64_t i = 0; i < n; i++)
        sum = fma(load(indirection[t * kPitch + i] + g, part), load(y + i * groups, part), sum);
      store(sums, first ? sum : Vec<T>(load(sums, part) + sum), part);
    }
  }
  static int64_t taps_at_once(int64_t left) {
    if (left >= kTaps) return kTaps;
    return left >= 3 ? 3 : 1;
  }
  // Makes taps [t, t + count) current.
  void fill_indirection(int64_t n, int64_t t, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
      const ConvTap tap(t + i, p.s.k);
      int64_t shift[kConvDims];
      for (int d = 0; d < kConvDims; d++) shift[d] = tap.at[d] * p.s.dil[d] - p.gather.pad[d];
      source.addresses(n, shift, indirection + i * kPitch);
    }
  }
  void run(int64_t split) {
    const int64_t pixels = p.s.n * p.s.y[0] * p.s.y[1] * p.s.y[2];
    const int64_t to = conv_piece(pixels, p.splits, split + 1);
    const int64_t taps = p.s.taps();
    T* sums = reinterpret_cast<T*>(p.sums) + split * taps * p.s.groups;
    int64_t m = conv_piece(pixels, p.splits, split);
    bool first = true;
    while (m < to || first) {  // without pixels the sums are 0
      const int64_t n = min(to - m, kPixels);
      source.set_pixels(p.s, m, n);
      for (int64_t t = 0, count; t < taps; t += count) {
        count = taps_at_once(taps - t);
        fill_indirection(n, t, count);
        T* of_taps = sums + t * p.s.groups;
        if (count == 1) add_taps<1>(m, n, of_taps, first);
        else if (count == kTaps) add_taps<kTaps>(m, n, of_taps, first);
        else add_taps<min(3, kTaps)>(m, n, of_taps, first);
      }
      m += n;
      first = false;
    }
  }
};
template <class T> void sum_depthwise(const ConvWeightPlan& p) {
  const int64_t split_items = p.s.taps() * p.s.groups;
  const T* from = reinterpret_cast<const T*>(p.sums);
  for (int64_t t = 0; t < p.s.taps(); t++) {
    const ConvTap tap(t, p.s.k);
    T* to = reinterpret_cast<T*>(p.dst);
    for (int d = 0; d < kConvDims; d++) to += tap.at[d] * p.w_k[d];
    for (int64_t g = 0; g < p.s.groups; g++, from++) {
      T sum = *from;
      for (int64_t s = 1; s < p.splits; s++) sum += from[s * split_items];
      to[g * p.w_co] = sum;
    }
  }
}

template <class T> int32_t conv_weight_of(const ConvWeightPlan& p, int64_t begin, int64_t end) {
  if (p.depthwise_planes) {
    if constexpr (kIsSame<T, float>) {
      for (int64_t u = begin; u < end; u++) {
#if TT_VEC_BYTES == 64
        if (!p.depthwise) {
          GroupPlaneWeight::unit(p, u);
          continue;
        }
#endif
        DepthwisePlaneWeight::unit(p, u);
      }
    }
    return TT_OK;
  }
#if TT_VEC_BYTES == 64
  if (p.lines.lines && p.run.stage == 1) {
    conv_weight_sum_bf16_amx(p, begin, end);
    return TT_OK;
  }
#endif
  if (!p.depthwise) {
    if (p.run.stage == 0) add_units<T>(p, begin, end);
    else sum_units<T>(p, begin, end);
    return TT_OK;
  }
  if (p.run.stage == 1) sum_depthwise<T>(p);
  else
    for (int64_t u = begin; u < end; u++) DepthwiseUnit<T>(p).run(u);
  return TT_OK;
}

TT_ISA_END

#if TT_VEC_BYTES > 16  // integers are rare: one build serves them
namespace TT_NS::baseline {
int32_t conv_weight(const void* plan, int64_t begin, int64_t end) noexcept;
}
#endif

TT_ENTRY_BEGIN

TT_KERNEL(conv_weight)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvWeightPlan& p = *static_cast<const ConvWeightPlan*>(plan);
  if (p.dtype == TT_F32) return conv_weight_of<float>(p, begin, end);
  if (is_dtype(p.dtype, TT_F64)) return conv_weight_of<double>(p, begin, end);
#if TT_VEC_BYTES > 16
  return baseline::conv_weight(plan, begin, end);
#else
  return conv_weight_of<int64_t>(p, begin, end);
#endif
}

TT_ENTRY_END
