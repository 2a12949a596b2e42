// ConvTile: a block of result pixels (rows) of one phase and group, to which taps are added. A term
// is one position of the summed dimension: a channel of a tap.
#pragma once

#include "kernels/cpu/conv/gather.h"

TT_ISA_BEGIN

// Result pixels that see the same taps, in one dimension: start, start + step, …. The j-th of them
// reads the source at j * scale + the shift of a tap.
struct PhaseDim {
  int64_t start, count, step;
  int64_t scale;
};

struct Phase {
  PhaseDim dim[kConvDims];
  int64_t pixels;  // of all images

  TT_NOINLINE Phase(const ConvPlan& p, int64_t number) : pixels(p.s.n) {
    const bool forward = p.mode == kConvForward;
    const int64_t* full = forward ? p.s.y : p.s.x;
    for (int d = kConvDims - 1; d >= 0; d--) {
      PhaseDim& of = dim[d];
      of.start = number % p.phases[d];
      of.step = forward ? 1 : p.s.stride[d];
      of.count = of.start < full[d] ? (full[d] - of.start - 1) / of.step + 1 : 0;
      of.scale = forward ? p.s.stride[d] : 1;
      number /= p.phases[d];
      pixels *= of.count;
    }
  }
  // Sets *out to the offset of tap k of dimension d in the source; false: it reads nothing in
  // this phase.
  TT_INLINE bool shift(const ConvPlan& p, int d, int64_t k, int64_t* out) const {
    if (p.mode == kConvForward) {
      *out = k * p.s.dil[d] - p.gather.pad[d];
      return true;
    }
    const int64_t at = dim[d].start + p.gather.pad[d] - k * p.s.dil[d];
    *out = at / p.s.stride[d];
    return at % p.s.stride[d] == 0;
  }
  // The same for all dimensions of a tap.
  TT_INLINE bool shifts(const ConvPlan& p, const ConvTap& tap, int64_t* out) const {
    for (int d = 0; d < kConvDims; d++)
      if (!shift(p, d, tap.at[d], &out[d])) return false;
    return true;
  }
};

// The packed weight of the columns of a tile, for each current tap.
template <class T> struct ConvPanels {
  const T* first[kConvTaps];  // the first panel, from the first term that is added
  int64_t next;               // elements from a panel to the next one
};

// To compute a block: set_rows(), then for all next_terms(): fill_indirection() if the taps are
// new, and add().
template <class T> struct ConvTile {
  const ConvPlan& p;
  const Phase& phase;
  const int64_t group, cols, depth;  // columns of a group, terms of a tap
  int64_t col_begin, col_end;        // the columns that are computed
  T* aside = nullptr;                // [rows][kConvCols]: where results go; NULL: to dst
  ConvSource<T, kConvRows> source;
  int64_t n_rows = 0;
  int64_t n_taps = 0, next_tap = 0;  // the current taps; where to look for more
  int64_t max_taps = kConvTaps;
  int64_t from = 0, to = 0;  // the current terms of each of them: [from, to)
  bool started = false;
  bool first = true;               // sums start with the bias, not with the values in `out`
  T* out[kConvRows + kConvSlack];  // of each row: column 0
  const T* indirection[kConvTaps * kConvRows + kConvSlack];  // [taps][kConvRows]
  uint32_t tap_mask[kConvRows / kConvMr<T>];  // of each tile: the taps that are not all padding
  int64_t tap[kConvDepthwiseTileTaps][kConvDims], shift[kConvDepthwiseTileTaps][kConvDims];
  alignas(64) T edge[kConvMr<T> * kConvNr<T>];  // a tile that ends within a vector
  alignas(64) T start[kConvNr<T>];

  ConvTile(const ConvPlan& plan, const Phase& of_phase, int64_t of_group)
      : p(plan),
        phase(of_phase),
        group(of_group),
        cols(conv_cols(p.s, p.mode)),
        depth(conv_depth(p.s, p.mode)),
        col_begin(0),
        col_end(cols),
        source(p.gather, p.src, p.zeros, of_group) {}

  // Loads output pixels [begin, end) of the phase as the current rows.
  TT_NOINLINE void set_rows(int64_t begin, int64_t end) {
    const PhaseDim* dim = phase.dim;
    const int64_t grid[kConvDims] = {dim[0].count, dim[1].count, dim[2].count};
    const int64_t* full = p.mode == kConvForward ? p.s.y : p.s.x;
    const int64_t pixel_items = cols * p.s.groups;
    n_rows = end - begin;
    source.clear(dim[2].scale);
    ConvWalk walk;
    walk.start(grid, begin, p.across_images ? p.s.n : 0);
    for (int64_t i = 0, n; i < n_rows; i += n, walk.advance(n)) {
      int64_t pixel = walk.image, c[kConvDims];
      for (int d = 0; d < kConvDims; d++) {
        pixel = pixel * full[d] + dim[d].start + walk.at[d] * dim[d].step;
        c[d] = walk.at[d] * dim[d].scale;
      }
      n = walk.row(n_rows - i);
      T* row = reinterpret_cast<T*>(p.dst) + pixel * pixel_items + group * cols;
      int64_t step = dim[2].step * pixel_items;
      if (aside) {
        row = aside + i * kConvCols - col_begin;
        step = kConvCols;
      }
      fill_addresses(out + i, row, step, n);
      source.add_line(i, n, walk.image, c[0], c[1], c[2]);
    }
  }

  // The addresses that the current rows read at the current taps.
  TT_NOINLINE void fill_indirection() {
    constexpr int kMr = kConvMr<T>;
    const int64_t tiles = ceil_div(n_rows, kMr);
    for (int64_t i = 0; i < tiles; i++) tap_mask[i] = 0;
    for (int64_t t = 0; t < n_taps; t++) {
      const T** row = indirection + t * kConvRows;
      const bool all = source.addresses(tiles * kMr, shift[t], row) == n_rows;
      for (int64_t i = 0; i < tiles; i++) {
        bool any = all;
        for (int64_t k = 0; !any && k < kMr; k++) any = row[i * kMr + k] != source.zeros;
        tap_mask[i] |= uint32_t(any) << t;
      }
    }
  }

  // Adds the current terms to the current rows.
  TT_NOINLINE void add(const ConvPanels<T>& weight) {
    constexpr int kNr = kConvNr<T>;
    constexpr int kMr = kConvMr<T>;
    const T* bias = reinterpret_cast<const T*>(p.bias);
    const T* panels[kConvTaps];
    for (int64_t t = 0; t < n_taps; t++) panels[t] = weight.first[t];
    for (int64_t j = col_begin; j < col_end; j += kNr) {
      for (int64_t i = 0; i < kNr; i++)
        start[i] = first && bias && j + i < cols ? bias[group * cols + j + i] : T(0);
      for (int64_t r = 0; r < n_rows; r += kMr)
        add_tile(r, int(min<int64_t>(n_rows - r, kMr)), j, panels);
      for (int64_t t = 0; t < n_taps; t++) panels[t] += weight.next;
    }
  }

  // Rows [r, r + h), columns [j, j + kConvNr).
  void add_tile(int64_t r, int h, int64_t j, const T* const* panels) {
    constexpr int kL = kLanes<T>;
    constexpr int kMr = kConvMr<T>;
    constexpr int kNr = kConvNr<T>;
    const int64_t w = min<int64_t>(cols - j, kNr);
    const bool whole = w == kNr || w == kL || aside;
    const bool half = h <= kMr / 2;
    const int rows = half ? kMr / 2 : kMr;
    T* to_rows[kMr];
    for (int i = 0; i < rows; i++) to_rows[i] = whole && i < h ? out[r + i] + j : edge + i * kNr;
    GatherTile<T> tile = {
        .rows = indirection + r,
        .pitch = kConvRows,
        .panels = panels,
        .taps = n_taps,
        .from = from,
        .to = to,
        .out = to_rows,
        .start = first || !whole ? start : nullptr,
        .tap_mask = tap_mask[r / kMr],
        .ahead = j == col_begin ? rows * p.gather.pixel : 0,
    };
    if constexpr (sizeof(T) == 4) add_chains(tile, w > kL, half);
    else add_chain(tile, w > kL, half);
    if (whole) return;
    const Part<T> low(int(min<int64_t>(w, kL)));
    const Part<T> high(int(max<int64_t>(w - kL, 0)));
    for (int i = 0; i < h; i++) {
      move_sums(out[r + i] + j, edge + i * kNr, low);
      if (w > kL) move_sums(out[r + i] + j + kL, edge + i * kNr + kL, high);
    }
  }
  static TT_INLINE void add_chain(const GatherTile<T>& tile, bool two_vectors, bool half) {
    constexpr int kMr = kConvMr<T>;
    if (two_vectors && half) gather_tile<T, kMr / 2, 2>(tile);
    else if (two_vectors) gather_tile<T, kMr, 2>(tile);
    else if (half) gather_tile<T, kMr / 2, 1>(tile);
    else gather_tile<T, kMr, 1>(tile);
  }
  // Adds the terms of the tile in chains, each of which is added to out: the rounding errors of one
  // long sum would be larger. A chain is several taps, or an equal part of the terms of one.
  static TT_INLINE void add_chains(GatherTile<T> tile, bool two_vectors, bool half) {
    const int64_t taps = tile.taps;
    const int64_t begin = tile.from;
    const int64_t end = tile.to;
    const int64_t terms = end - begin;
    if (taps * terms <= kConvChain) return add_chain(tile, two_vectors, half);
    const int64_t in_chain = max<int64_t>(kConvChain / (terms + 1), 1);
    const int64_t step = ceil_div(terms, ceil_div(terms, kConvChain));
    const T* const* panels = tile.panels;
    const T* part;  // of the weight of a tap
    for (int64_t t = 0; t < taps; t += in_chain) {
      tile.taps = min(in_chain, taps - t);
      for (tile.from = begin; tile.from < end; tile.from = tile.to) {
        tile.to = min(tile.from + step, end);
        if (tile.from == begin) {
          tile.panels = panels + t;
        } else {
          part = panels[t] + (tile.from - begin) * kConvNr<T>;
          tile.panels = &part;
        }
        add_chain(tile, two_vectors, half);
        tile.start = nullptr;
      }
      tile.rows += tile.taps * kConvRows;
      tile.tap_mask >>= tile.taps;
    }
  }
  TT_INLINE void move_sums(T* to, const T* sums, Part<T> part) const {
    store(to, first ? load(sums) : Vec<T>(load(sums) + load(to, part)), part);
  }

  // Makes the next terms current: all terms of as many taps as kConvTaps and kConvDepth allow, or a
  // part of a tap with more terms than kConvDepth. False: there are no more; true at least once, so
  // that a result without taps gets its bias.
  TT_NOINLINE bool next_terms() {
    const int64_t run = p.gather.run;
    first = !started;
    started = true;
    from = !first && to < run ? to : 0;
    if (from == 0) collect_taps();
    to = n_taps > 1 || run - from <= kConvDepth ? run : from + kConvDepth / 2;
    return n_taps > 0 || first;
  }
  // Collects the next taps that read anything in this phase.
  void collect_taps() {
    const int64_t* taps = p.gather.taps;
    n_taps = 0;
    while (next_tap < taps[0] * taps[1] * taps[2]) {
      const ConvTap k(next_tap++, taps);
      if (!phase.shifts(p, k, shift[n_taps])) continue;
      for (int d = 0; d < kConvDims; d++) tap[n_taps][d] = k.at[d];
      n_taps++;
      if (n_taps == max_taps || (n_taps + 1) * p.gather.run > kConvDepth) return;
    }
  }
};

TT_ISA_END
