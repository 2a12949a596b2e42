// Packed matmul of complex types, by the micro-kernels of their real type R. One complex k position
// becomes two real ones, which are multiplied by (re, im) and (-im, re) of b:
//
//   a panel of a, [nk][2][w]         re    im
//   a panel of b, [nk][2][2][kL]     (re, im)   (-im, re)
//   re(a) * (re, im)(b) + im(a) * (-im, re)(b) = (re, im)(a * b): two vectors of sums per row
#pragma once

#include "kernels/cpu/matmul/packed.h"

TT_ISA_BEGIN

template <class R> struct Cplx { R re, im; };

// The even and odd elements of x and y.
template <class V> TT_INLINE void unzip(V x, V y, V* even, V* odd) {
  if constexpr (sizeof(V) / sizeof(x[0]) == 16) {
    *even = shuffled<0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30>(x, y);
    *odd = shuffled<1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31>(x, y);
  } else if constexpr (sizeof(V) / sizeof(x[0]) == 8) {
    *even = shuffled<0, 2, 4, 6, 8, 10, 12, 14>(x, y);
    *odd = shuffled<1, 3, 5, 7, 9, 11, 13, 15>(x, y);
  } else if constexpr (sizeof(V) / sizeof(x[0]) == 4) {
    *even = shuffled<0, 2, 4, 6>(x, y);
    *odd = shuffled<1, 3, 5, 7>(x, y);
  } else {
    *even = shuffled<0, 2>(x, y);
    *odd = shuffled<1, 3>(x, y);
  }
}

// out: [nk][re, im][w]; element p of row i is x[i * i_stride + p * k_stride].
template <class R>
void pack_rows(const Cplx<R>* x, int64_t i_stride, int64_t k_stride, int w, int64_t nk, R* out) {
  if (k_stride == 1)
    return pack_panel(reinterpret_cast<const R*>(x), 2 * i_stride, int64_t(1), w, w, 2 * nk, out);
  for (int64_t p = 0; p < nk; p++, out += 2 * w, x += k_stride)
    for (int i = 0; i < w; i++) {
      out[i] = x[i * i_stride].re;
      out[w + i] = x[i * i_stride].im;
    }
}

// out: [nk][re, im, -im, re][kLanes]; lanes from w on are 0.
template <class R>
void pack_columns(const Cplx<R>* x, int64_t i_stride, int64_t k_stride, int w, int64_t nk, R* out) {
  constexpr int kL = kLanes<R>;
  constexpr int kPiece = 64;
  alignas(64) R planes[kPiece * 2 * kL];  // [k position][re, im][lanes]
  const Part<R> lo(min(2 * w, kL));
  const Part<R> hi(2 * w < kL ? 0 : 2 * w - kL);
  for (int64_t from = 0; from < nk; from += kPiece, x += kPiece * k_stride) {
    const int64_t n = matmul_min(kPiece, nk - from);
    if (k_stride == 1)
      pack_panel(reinterpret_cast<const R*>(x), 2 * i_stride, int64_t(1), w, kL, 2 * n, planes);
    for (int64_t p = 0; p < n; p++, out += 4 * kL) {
      const Cplx<R>* at = x + p * k_stride;
      R* to = planes + 2 * p * kL;
      Vec<R> re, im;
      if (k_stride != 1 && i_stride == 1) {
        const R* parts = reinterpret_cast<const R*>(at);
        unzip(load(parts, lo), load(parts + kL, hi), &re, &im);
      } else {
        for (int i = 0; k_stride != 1 && i < kL; i++) {
          to[i] = i < w ? at[i * i_stride].re : R(0);
          to[kL + i] = i < w ? at[i * i_stride].im : R(0);
        }
        re = load(to);
        im = load(to + kL);
      }
      store(out, re);
      store(out + kL, im);
      store(out + 2 * kL, -im);
      store(out + 3 * kL, re);
    }
  }
}

template <class R> TT_INLINE Cplx<R> mul_add(Cplx<R> x, Cplx<R> y, Cplx<R> z) {
  return {x.re * y.re - x.im * y.im + z.re, x.re * y.im + x.im * y.re + z.im};
}

// A complex number that multiplies kLanes of them.
template <class R> struct Multiplier {
  Vec<R> re, im;

  explicit TT_INLINE Multiplier(Cplx<R> x) : re(splat(x.re)) {
    R parts[kLanes<R>];
    for (int i = 0; i < kLanes<R>; i++) parts[i] = i % 2 ? x.im : -x.im;
    im = load(parts);
  }
  // x times this, plus z; vectors of pairs
  TT_INLINE Vec<R> operator()(Vec<R> x, Vec<R> z) const {
    return fma(x, re, fma(exchanged_parts(x), im, z));
  }
};

// complex_finish of whole vectors in runs of memory, scaled or with d.
template <class R> void finish_scaled_runs(const MatmulBlock& k, int64_t i0, int64_t j0, int rows,
                                           const R* tile, bool first) {
  constexpr int kL = kLanes<R>;
  const MatmulPlan& p = *k.plan;
  const Multiplier<R> by_alpha({R(p.alpha.re), R(p.alpha.im)});
  const Multiplier<R> by_beta({R(p.beta.re), R(p.beta.im)});
  const bool with_d = first && p.d;
  for (int i = 0; i < rows; i++, tile += 2 * kL) {
    const int64_t row = i0 + i;
    Cplx<R>* c = reinterpret_cast<Cplx<R>*>(k.c) + row * p.c_row + j0;
    const Cplx<R>* d =
        with_d ? reinterpret_cast<const Cplx<R>*>(k.d) + row * p.d_row + j0 : nullptr;
    Vec<R> sums[2];
    zip(load(tile), load(tile + kL), &sums[0], &sums[1]);
    for (int half = 0; half < 2; half++) {
      R* to = reinterpret_cast<R*>(c) + half * kL;
      Vec<R> v = sums[half];
      if (p.scaled) v = by_alpha(v, Vec<R>{});
      if (with_d) v = by_beta(load(reinterpret_cast<const R*>(d) + half * kL), v);
      else if (!first) v = load(to) + v;
      store(to, v);
    }
  }
}

template <class R> void complex_finish(const MatmulBlock& k, int64_t i0, int64_t j0, int rows,
                                       int cols, const R* tile, bool first) {
  constexpr int kL = kLanes<R>;
  const MatmulPlan& p = *k.plan;
  const Cplx<R> alpha = {R(p.alpha.re), R(p.alpha.im)};
  const Cplx<R> beta = {R(p.beta.re), R(p.beta.im)};
  const bool with_d = first && p.d;
  const bool runs = p.c_col == 1 && cols == kL && !p.scaled && !with_d;
  // Not with vectors of 16 bytes: NEON of 32-bit ARM must give the baseline's bits, those of NaN,
  // too (tile_sums.h).
  if constexpr (TT_VEC_BYTES > 16)
    if (p.c_col == 1 && cols == kL && !runs && (!with_d || p.d_col == 1))
      return finish_scaled_runs(k, i0, j0, rows, tile, first);
  for (int i = 0; i < rows; i++, tile += 2 * kL) {
    Cplx<R>* c = reinterpret_cast<Cplx<R>*>(k.c) + (i0 + i) * p.c_row + j0 * p.c_col;
    if (runs) {
      R* to = reinterpret_cast<R*>(c);
      Vec<R> lo, hi;
      zip(load(tile), load(tile + kL), &lo, &hi);
      store(to, first ? lo : load(to) + lo);
      store(to + kL, first ? hi : load(to + kL) + hi);
      continue;
    }
    const Cplx<R>* d =
        with_d ? reinterpret_cast<const Cplx<R>*>(k.d) + (i0 + i) * p.d_row + j0 * p.d_col
               : nullptr;
    for (int j = 0; j < cols; j++) {
      Cplx<R> v = {tile[j], tile[kL + j]};
      if (p.scaled) v = mul_add(v, alpha, {R(0), R(0)});
      if (with_d) {
        v = mul_add(beta, d[j * p.d_col], v);
      } else if (!first) {
        v.re += c[j * p.c_col].re;
        v.im += c[j * p.c_col].im;
      }
      c[j * p.c_col] = v;
    }
  }
}

// Fetches the tile of c into the second-level cache before its sums are computed.
template <class R>
TT_INLINE void fetch_tile(const MatmulBlock& k, int64_t i0, int64_t j0, int rows) {
  constexpr int64_t kItem = 2 * sizeof(R);
  constexpr int64_t kRun = kLanes<R> * kItem;
  const int64_t step = k.plan->c_row * kItem;
  const char* c = k.c + i0 * step + j0 * k.plan->c_col * kItem;
  for (int i = 0; i < rows; i++, c += step)
    for (int64_t at = 0; at < kRun; at += 64) TT_PREFETCH_WRITE_L2(c + at);
}

template <class R> void complex_pack_units(const MatmulBlock& k, int64_t begin, int64_t end) {
  const MatmulPlan& p = *k.plan;
  const int64_t row_blocks = k.row_blocks();
  R* a_pack = reinterpret_cast<R*>(k.a_pack);
  R* b_pack = reinterpret_cast<R*>(k.b_pack);
  for (int64_t u = begin; u < end; u++) {
    if (u < row_blocks) {
      const PanelRange rows = row_block(k, u);
      const int64_t panels = matmul_ceil(rows.end - rows.begin, kPanelRows<R>);
      for (int64_t at = 0; at < panels; at++) {
        const PanelRange r = row_panel(rows, panels, at);
        const Cplx<R>* a =
            reinterpret_cast<const Cplx<R>*>(k.a) + (k.i0 + r.begin) * p.a_row + k.k0 * p.a_col;
        pack_rows(a, p.a_row, p.a_col, int(r.end - r.begin), k.nk, a_pack + 2 * r.begin * k.nk);
      }
      continue;
    }
    const PanelRange cols = col_block(k, u - row_blocks);
    for (int64_t j = cols.begin; j < cols.end; j += kLanes<R>) {
      const int w = int(matmul_min(kLanes<R>, cols.end - j));
      const Cplx<R>* b =
          reinterpret_cast<const Cplx<R>*>(k.b) + k.k0 * p.b_row + (k.j0 + j) * p.b_col;
      pack_columns(b, p.b_col, p.b_row, w, k.nk, b_pack + 4 * j * k.nk);
    }
  }
}

template <class R> void complex_tile_units(const MatmulBlock& k, int64_t begin, int64_t end) {
  constexpr int kL = kLanes<R>;
  alignas(64) R tile[kPanelRows<R> * kNr<R>];
  R* a_pack = reinterpret_cast<R*>(k.a_pack);
  R* b_pack = reinterpret_cast<R*>(k.b_pack);
  const int64_t nk = 2 * k.nk;
  for (int64_t u = begin; u < end; u++) {
    const MatmulBlock::Place place = k.tile_unit(u);
    const PanelRange rows = row_block(k, place.row);
    const PanelRange cols = col_block(k, place.col);
    const int64_t panels = matmul_ceil(rows.end - rows.begin, kPanelRows<R>);
    const int64_t widths = matmul_ceil(cols.end - cols.begin, kL);
    for (int64_t n = 0; n < panels * widths; n++) {
      const int64_t i = kRowsOutside ? n / widths : n % panels;
      const int64_t v = kRowsOutside ? n % widths : n / panels;
      const PanelRange r = row_panel(rows, panels, i);
      const int64_t j = cols.begin + v * kL;
      const int h = int(r.end - r.begin);
      const int w = int(matmul_min(kL, cols.end - j));
      R* a = a_pack + r.begin * nk;
      R* b = b_pack + 2 * j * nk;
      const char* next = kRowsOutside ? part_of(a_pack + r.end * nk, v, r.end - r.begin, nk)
                                      : part_of<R>(b + kNr<R> * nk, i, kNr<R>, nk);
      fetch_tile<R>(k, k.i0 + r.begin, k.j0 + j, h);
      const MicroArgs<R, R> args = {.nk = nk,
                                    .chain = chain_of<R>(nk),
                                    .a = a,
                                    .b = b,
                                    .b_row = kNr<R>,
                                    .copy = nullptr,
                                    .out = tile,
                                    .ld = kNr<R>,
                                    .addend = nullptr,
                                    .addend_row = 0,
                                    .next = next,
                                    .next_step = 64};
      micro_of<R, R>(h, 1)(args);
      complex_finish(k, k.i0 + r.begin, k.j0 + j, h, w, tile, k.k0 == 0);
    }
  }
}

TT_ISA_END

#define TT_MATMUL_DEFINE_COMPLEX(name, R)                                        \
  void name##_pack(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {  \
    complex_pack_units<R>(k, begin, end);                                        \
  }                                                                              \
  void name##_tiles(const MatmulBlock& k, int64_t begin, int64_t end) noexcept { \
    complex_tile_units<R>(k, begin, end);                                        \
  }
