// The weight of conv as panels: kConvNr columns, term by term.
#pragma once

#include "kernels/cpu/conv/tile.h"

TT_ISA_BEGIN

// Terms [from, to) of a tap for columns [j, min(j + kConvNr, end)) of a group.
template <class T> void pack_columns(const ConvPlan& p, int64_t group, int64_t j, int64_t end,
                                     const int64_t* tap, int64_t from, int64_t to, T* out) {
  const bool forward = p.mode == kConvForward;
  const int64_t col_step = forward ? p.w_co : p.w_ci;
  const int64_t term_step = forward ? p.w_ci : p.w_co;
  const T* w = reinterpret_cast<const T*>(p.weight) + group * p.s.co * p.w_co + j * col_step +
               from * term_step;
  for (int d = 0; d < kConvDims; d++) w += tap[d] * p.w_k[d];
  pack_panel(w, col_step, term_step, int(min<int64_t>(end - j, kConvNr<T>)), kConvNr<T>, to - from,
             out);
}

// Whether the taps of a weight lie side by side in memory, as those of conv2d mostly do.
TT_INLINE bool taps_are_neighbours(const ConvPlan& p) {
  int64_t step = 1;
  for (int d = kConvDims - 1; d >= 0; d--) {
    if (p.s.k[d] > 1 && p.w_k[d] != step) return false;
    step *= p.s.k[d];
  }
  return step > 1;
}

// Packs columns j … of such a weight, each part of which is read once: [taps][terms][kConvNr].
constexpr int64_t kPackedPiece = 64;
template <class T> struct TapPacker {
  static constexpr int kNr = kConvNr<T>;
  const ConvPlan& p;
  const int64_t taps, terms, col_step, term_step;
  const T* w;  // of column j
  const int width;
  alignas(64) T piece[kPackedPiece * kNr];

  TapPacker(const ConvPlan& plan, int64_t group, int64_t j, int64_t end)
      : p(plan),
        taps(p.s.taps()),
        terms(conv_depth(p.s, p.mode)),
        col_step(p.mode == kConvForward ? p.w_co : p.w_ci),
        term_step(p.mode == kConvForward ? p.w_ci : p.w_co),
        w(reinterpret_cast<const T*>(p.weight) + group * p.s.co * p.w_co + j * col_step),
        width(int(min<int64_t>(end - j, kNr))) {}

  TT_INLINE void put(T* out, int64_t tap, int64_t term, const T* row) const {
    memcpy(out + (tap * terms + term) * kNr, row, sizeof(T) * kNr);
  }
  // The terms of a column follow each other: y from x.
  void pack_columns_of_terms(T* out) {
    const int64_t n = terms * taps;
    int64_t tap = 0, term = 0;
    for (int64_t q = 0; q < n; q += kPackedPiece) {
      const int64_t some = min(kPackedPiece, n - q);
      pack_panel(w + q, col_step, 1, width, kNr, some, piece);
      for (int64_t i = 0; i < some; i++) {
        put(out, tap, term, piece + i * kNr);
        if (++tap < taps) continue;
        tap = 0;
        term++;
      }
    }
  }
  // The columns of a term do: x from y.
  void pack_terms_of_columns(T* out) {
    for (int64_t term = 0; term < terms; term++) {
      pack_panel(w + term * term_step, col_step, 1, width, kNr, taps, piece);
      for (int64_t tap = 0; tap < taps; tap++) put(out, tap, term, piece + tap * kNr);
    }
  }
};

// Packs the block of kConvCols columns from j0 on: [panels][taps][terms][kConvNr].
template <class T> void pack_block(const ConvPlan& p, int64_t group, int64_t j0, T* out) {
  const int64_t cols = conv_cols(p.s, p.mode);
  const int64_t depth = conv_depth(p.s, p.mode);
  const int64_t taps = p.s.taps();
  const bool together = taps_are_neighbours(p);
  for (int64_t j = j0; j < cols && j < j0 + kConvCols; j += kConvNr<T>) {
    TapPacker<T> packer(p, group, j, cols);
    if (together && packer.term_step == taps) {
      packer.pack_columns_of_terms(out);
    } else if (together && taps <= kPackedPiece) {
      packer.pack_terms_of_columns(out);
    } else {
      for (int64_t t = 0; t < taps; t++)
        pack_columns<T>(p, group, j, cols, ConvTap(t, p.s.k).at, 0, depth,
                        out + t * depth * kConvNr<T>);
    }
    out += taps * depth * kConvNr<T>;
  }
}
// Units: blocks of kConvCols columns of a group.
template <class T> void pack_panels(const ConvPlan& p, int64_t begin, int64_t end) {
  const int64_t col_blocks = ceil_div(conv_cols(p.s, p.mode), kConvCols);
  const int64_t terms = p.s.taps() * conv_depth(p.s, p.mode);
  for (int64_t u = begin; u < end; u++)
    pack_block(p, u / col_blocks, u % col_blocks * kConvCols,
               reinterpret_cast<T*>(p.packed) + u * kConvCols * terms);
}

// Groups of one channel: [taps][groups].
template <class T> void pack_depthwise(const ConvPlan& p) {
  T* out = reinterpret_cast<T*>(p.packed);
  for (int64_t t = 0; t < p.s.taps(); t++) {
    const ConvTap tap(t, p.s.k);
    const T* w = reinterpret_cast<const T*>(p.weight);
    for (int d = 0; d < kConvDims; d++) w += tap.at[d] * p.w_k[d];
    for (int64_t g = 0; g < p.s.groups; g++) *out++ = w[g * p.w_co];
  }
}

TT_ISA_END
