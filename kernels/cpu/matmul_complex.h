// The packed product of complex types: real and imaginary parts in planes, four real multiplications a product.
#include "matmul_packed.h"

TT_ISA_BEGIN

template <class R> struct Cplx { R re, im; };

#if defined(__AVX512F__)
constexpr int kComplexMr = 8;
#else
constexpr int kComplexMr = 4;
#endif

// Panels of a: [term][row] complex; of b: [term][re lanes, im lanes].
template <class R> void pack_b_planes(const Cplx<R>* x, int64_t step, int64_t term, int w, int64_t np, R* out) {
  constexpr int kL = kLanes<R>;
  for (int64_t p = 0; p < np; p++, out += 2 * kL, x += term)
    for (int i = 0; i < kL; i++) {
      out[i] = i < w ? x[i * step].re : R(0);
      out[kL + i] = i < w ? x[i * step].im : R(0);
    }
}

// tile (kRows, [re lanes, im lanes]) = panel of a times panel of b.
template <class R, int kRows> void complex_micro(int64_t np, const Cplx<R>* a, const R* b, R* tile) {
  constexpr int kL = kLanes<R>;
  Vec<R> re[kRows], im[kRows];
  TT_UNROLL
  for (int i = 0; i < kRows; i++) re[i] = im[i] = Vec<R>{};
  for (int64_t p = 0; p < np; p++, a += kRows, b += 2 * kL) {
    const Vec<R> b_re = load(b), b_im = load(b + kL);
    TT_UNROLL
    for (int i = 0; i < kRows; i++) {
      const Vec<R> a_re = splat(a[i].re), a_im = splat(a[i].im);
      re[i] = fnma<R>(a_im, b_im, fma(a_re, b_re, re[i]));
      im[i] = fma(a_im, b_re, fma(a_re, b_im, im[i]));
    }
  }
  TT_UNROLL
  for (int i = 0; i < kRows; i++) store(tile + 2 * i * kL, re[i]), store(tile + (2 * i + 1) * kL, im[i]);
}

template <class R> using ComplexMicro = void (*)(int64_t, const Cplx<R>*, const R*, R*);

template <class R> TT_INLINE ComplexMicro<R> complex_micro_of(int rows) {
#define TT_ROW(r) complex_micro<R, (r <= kComplexMr ? r : kComplexMr)>
  static constexpr ComplexMicro<R> kTable[8] = {TT_ROW(1), TT_ROW(2), TT_ROW(3), TT_ROW(4),
                                                TT_ROW(5), TT_ROW(6), TT_ROW(7), TT_ROW(8)};
#undef TT_ROW
  return kTable[rows - 1];
}

template <class R> TT_INLINE Cplx<R> mul_add(Cplx<R> x, Cplx<R> y, Cplx<R> z) {
  return {x.re * y.re - x.im * y.im + z.re, x.re * y.im + x.im * y.re + z.im};
}

template <class R>
void complex_finish(const MatmulBlock& k, int64_t i0, int64_t j0, int rows, int cols, const R* tile, bool first) {
  constexpr int kL = kLanes<R>;
  const MatmulPlan& p = *k.plan;
  const Cplx<R> alpha = {R(p.alpha.re), R(p.alpha.im)}, beta = {R(p.beta.re), R(p.beta.im)};
  const bool with_d = first && p.d;
  for (int i = 0; i < rows; i++, tile += 2 * kL) {
    Cplx<R>* c = reinterpret_cast<Cplx<R>*>(k.c) + (i0 + i) * p.c_row + j0 * p.c_col;
    const Cplx<R>* d = with_d ? reinterpret_cast<const Cplx<R>*>(k.d) + (i0 + i) * p.d_row + j0 * p.d_col : nullptr;
    for (int j = 0; j < cols; j++) {
      Cplx<R> v = {tile[j], tile[kL + j]};
      if (p.scaled) v = mul_add(v, alpha, {R(0), R(0)});
      if (with_d) v = mul_add(beta, d[j * p.d_col], v);
      else if (!first) v.re += c[j * p.c_col].re, v.im += c[j * p.c_col].im;
      c[j * p.c_col] = v;
    }
  }
}

template <class R> void complex_pack_units(const MatmulBlock& k, int64_t begin, int64_t end) {
  const MatmulPlan& p = *k.plan;
  const int64_t row_blocks = k.row_blocks();
  Cplx<R>* a_pack = reinterpret_cast<Cplx<R>*>(k.a_pack);
  R* b_pack = reinterpret_cast<R*>(k.b_pack);
  for (int64_t u = begin; u < end; u++) {
    if (u < row_blocks) {
      const PanelRange rows = row_block(k, u);
      const int64_t panels = matmul_ceil(rows.end - rows.begin, kComplexMr);
      for (int64_t at = 0; at < panels; at++) {
        const PanelRange r = row_panel(rows, panels, at);
        const int h = int(r.end - r.begin);
        const Cplx<R>* a = reinterpret_cast<const Cplx<R>*>(k.a) + (k.i0 + r.begin) * p.a_row + k.p0 * p.a_col;
        pack_strided(a, p.a_row, p.a_col, h, h, k.np, a_pack + r.begin * k.np);
      }
      continue;
    }
    const PanelRange cols = col_block(k, u - row_blocks);
    for (int64_t j = cols.begin; j < cols.end; j += kLanes<R>) {
      const int w = int(matmul_min(kLanes<R>, cols.end - j));
      const Cplx<R>* b = reinterpret_cast<const Cplx<R>*>(k.b) + k.p0 * p.b_row + (k.j0 + j) * p.b_col;
      pack_b_planes(b, p.b_col, p.b_row, w, k.np, b_pack + 2 * j * k.np);
    }
  }
}

template <class R> void complex_tile_units(const MatmulBlock& k, int64_t begin, int64_t end) {
  alignas(64) R tile[kComplexMr * 2 * kLanes<R>];
  const Cplx<R>* a_pack = reinterpret_cast<const Cplx<R>*>(k.a_pack);
  const R* b_pack = reinterpret_cast<const R*>(k.b_pack);
  for (int64_t u = begin; u < end; u++) {
    const MatmulBlock::Place place = k.tile_unit(u);
    const PanelRange rows = row_block(k, place.row), cols = col_block(k, place.col);
    const int64_t panels = matmul_ceil(rows.end - rows.begin, kComplexMr);
    for (int64_t j = cols.begin; j < cols.end; j += kLanes<R>) {
      const int w = int(matmul_min(kLanes<R>, cols.end - j));
      for (int64_t at = 0; at < panels; at++) {
        const PanelRange r = row_panel(rows, panels, at);
        const int h = int(r.end - r.begin);
        complex_micro_of<R>(h)(k.np, a_pack + r.begin * k.np, b_pack + 2 * j * k.np, tile);
        complex_finish(k, k.i0 + r.begin, k.j0 + j, h, w, tile, k.p0 == 0);
      }
    }
  }
}

TT_ISA_END

TT_ENTRY_BEGIN
void matmul_c64_pack(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  complex_pack_units<float>(k, begin, end);
}
void matmul_c64_tiles(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  complex_tile_units<float>(k, begin, end);
}
void matmul_c128_pack(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  complex_pack_units<double>(k, begin, end);
}
void matmul_c128_tiles(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {
  complex_tile_units<double>(k, begin, end);
}
TT_ENTRY_END
