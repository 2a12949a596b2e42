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

// Whether the weight is [columns][terms][taps] in memory, as that of conv2d mostly is.
TT_INLINE bool taps_are_neighbours(const ConvPlan& p) {
  int64_t step = 1;
  for (int d = kConvDims - 1; d >= 0; d--) {
    if (p.s.k[d] > 1 && p.w_k[d] != step) return false;
    step *= p.s.k[d];
  }
  return p.mode == kConvForward && step > 1 && p.w_ci == step;
}

// Packs columns j … of such a weight, which is read once, in order: [taps][terms][kConvNr].
template <class T> void pack_all_taps(const ConvPlan& p, int64_t group, int64_t j, int64_t end,
                                      int64_t terms, T* out) {
  constexpr int64_t kPiece = 64;
  constexpr int kNr = kConvNr<T>;
  const int64_t taps = p.s.taps();
  const int64_t n = terms * taps;
  const T* w = reinterpret_cast<const T*>(p.weight) + (group * p.s.co + j) * p.w_co;
  const int width = int(min<int64_t>(end - j, kNr));
  alignas(64) T piece[kPiece * kNr];
  int64_t tap = 0, term = 0;
  for (int64_t q = 0; q < n; q += kPiece) {
    const int64_t some = min(kPiece, n - q);
    pack_panel(w + q, p.w_co, 1, width, kNr, some, piece);
    for (int64_t i = 0; i < some; i++) {
      memcpy(out + (tap * terms + term) * kNr, piece + i * kNr, sizeof(T) * kNr);
      if (++tap < taps) continue;
      tap = 0;
      term++;
    }
  }
}

// Units: blocks of kConvCols columns of a group: [panels][taps][terms][kConvNr].
template <class T> void pack_panels(const ConvPlan& p, int64_t begin, int64_t end) {
  const int64_t cols = conv_cols(p.s, p.mode);
  const int64_t depth = conv_depth(p.s, p.mode);
  const int64_t taps = p.s.taps();
  const int64_t col_blocks = ceil_div(cols, kConvCols);
  for (int64_t u = begin; u < end; u++) {
    const int64_t group = u / col_blocks;
    const int64_t j0 = u % col_blocks * kConvCols;
    T* out = reinterpret_cast<T*>(p.packed) + (group * col_blocks * kConvCols + j0) * taps * depth;
    const bool together = taps_are_neighbours(p);
    for (int64_t j = j0; together && j < cols && j < j0 + kConvCols; j += kConvNr<T>) {
      pack_all_taps<T>(p, group, j, cols, depth, out);
      out += taps * depth * kConvNr<T>;
    }
    for (int64_t j = j0; !together && j < cols && j < j0 + kConvCols; j += kConvNr<T>)
      for (int64_t t = 0; t < taps; t++) {
        const ConvTap tap(t, p.s.k);
        pack_columns<T>(p, group, j, cols, tap.at, 0, depth, out);
        out += depth * kConvNr<T>;
      }
  }
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
