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
    for (int64_t j = j0; j < cols && j < j0 + kConvCols; j += kConvNr<T>)
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
