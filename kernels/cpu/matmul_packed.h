// The packed product of real types: S stored, T computed. Instantiated per type by matmul_<type>.cpp.
#pragma once

#include "matmul_finish.h"

TT_ISA_BEGIN

// Micro-tile: kMaxMr rows by 2 vectors; as many accumulators as the register file holds beside their operands.
#if defined(__AVX512F__)
constexpr int kMaxMr = 14;
#elif defined(__AVX2__)
constexpr int kMaxMr = 6;
#else
constexpr int kMaxMr = 4;
#endif
constexpr int kNv = 2;
template <class T>
constexpr int kNr = kNv * kLanes<T>;

// out (kMr, kVecs vectors) = or += the product of a panel of a (np terms of kMr) and one of b.
template <class T, int kMr, int kVecs>
void micro(int64_t np, const T* a, const T* b, T* out, int64_t ld, bool add) {
  constexpr int kL = kLanes<T>;
  Vec<T> acc[kMr][kVecs];
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    __builtin_prefetch(out + i * ld, 1);
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) acc[i][v] = Vec<T>{};
  }
  for (int64_t p = 0; p < np; p++, a += kMr, b += kVecs * kL) {
    Vec<T> row[kVecs];
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) row[v] = load(b + v * kL);
    TT_UNROLL
    for (int i = 0; i < kMr; i++) {
      const Vec<T> x = splat(a[i]);
      TT_UNROLL
      for (int v = 0; v < kVecs; v++) acc[i][v] = fma(x, row[v], acc[i][v]);
    }
  }
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) {
      T* to = out + i * ld + v * kL;
      store(to, add ? load(to) + acc[i][v] : acc[i][v]);
    }
  }
}

template <class T>
using Micro = void (*)(int64_t, const T*, const T*, T*, int64_t, bool);

template <class T>
TT_INLINE Micro<T> micro_of(int rows, int vecs) {
#define TT_ROW(r) {micro<T, (r <= kMaxMr ? r : kMaxMr), 1>, micro<T, (r <= kMaxMr ? r : kMaxMr), 2>}
  static constexpr Micro<T> kTable[14][kNv] = {TT_ROW(1), TT_ROW(2),  TT_ROW(3),  TT_ROW(4),  TT_ROW(5),
                                               TT_ROW(6), TT_ROW(7),  TT_ROW(8),  TT_ROW(9),  TT_ROW(10),
                                               TT_ROW(11), TT_ROW(12), TT_ROW(13), TT_ROW(14)};
#undef TT_ROW
  return kTable[rows - 1][vecs - 1];
}

struct PanelRange {
  int64_t begin, end;
};
// Panel `at` of the rows [r.begin, r.end): equal heights of at most kMaxMr.
TT_INLINE PanelRange row_panel(PanelRange r, int64_t panels, int64_t at) {
  return {r.begin + matmul_piece(r.end - r.begin, panels, at), r.begin + matmul_piece(r.end - r.begin, panels, at + 1)};
}
TT_INLINE PanelRange row_block(const MatmulBlock& k, int64_t at) {
  const int64_t n = k.row_blocks();
  return {matmul_piece(k.ni, n, at), matmul_piece(k.ni, n, at + 1)};
}
TT_INLINE PanelRange col_block(const MatmulBlock& k, int64_t at) {
  return {at * kMatmulColBlock, matmul_min(k.nj, (at + 1) * kMatmulColBlock)};
}
// Columns of a panel, rounded up to whole vectors.
template <class T>
TT_INLINE int panel_width(int64_t cols) {
  return cols > kLanes<T> ? kNr<T> : kLanes<T>;
}

template <class S, class T>
void pack_a_block(const MatmulBlock& k, PanelRange rows) {
  const MatmulPlan& p = *k.plan;
  const int64_t panels = matmul_ceil(rows.end - rows.begin, kMaxMr);
  for (int64_t at = 0; at < panels; at++) {
    const PanelRange r = row_panel(rows, panels, at);
    const int h = int(r.end - r.begin);
    const S* src = reinterpret_cast<const S*>(k.a) + (k.i0 + r.begin) * p.a_row + k.p0 * p.a_col;
    pack_panel(src, p.a_row, p.a_col, h, h, k.np, reinterpret_cast<T*>(k.a_pack) + r.begin * k.np);
  }
}

template <class S, class T>
void pack_b_block(const MatmulBlock& k, PanelRange cols) {
  const MatmulPlan& p = *k.plan;
  for (int64_t j = cols.begin; j < cols.end; j += kNr<T>) {
    const int w = int(matmul_min(kNr<T>, cols.end - j));
    const S* src = reinterpret_cast<const S*>(k.b) + k.p0 * p.b_row + (k.j0 + j) * p.b_col;
    pack_panel(src, p.b_col, p.b_row, w, panel_width<T>(w), k.np, reinterpret_cast<T*>(k.b_pack) + j * k.np);
  }
}

template <class S, class T>
void pack_units(const MatmulBlock& k, int64_t begin, int64_t end) {
  const int64_t row_blocks = k.row_blocks();
  for (int64_t u = begin; u < end; u++) {
    if (u < row_blocks)
      pack_a_block<S, T>(k, row_block(k, u));
    else
      pack_b_block<S, T>(k, col_block(k, u - row_blocks));
  }
}

// Where a micro-kernel leaves its sums: straight in c, in the block's f32 sums, or in a tile that finish() takes.
template <class S, class T>
struct TileSink {
  const MatmulBlock& k;
  const bool first, last;
  const bool direct;  // c itself holds the sums
  alignas(64) T tile[kMaxMr * kNr<T>];

  explicit TileSink(const MatmulBlock& block)
      : k(block),
        first(block.p0 == 0),
        last(block.p0 + block.np == block.plan->k),
        direct(sizeof(S) == sizeof(T) && block.plan->c_col == 1 && !block.plan->scaled && !(first && block.plan->d)) {}

  void run(PanelRange r, int64_t j, int w, const T* a, const T* b) {
    const int h = int(r.end - r.begin), width = panel_width<T>(w);
    const Micro<T> kernel = micro_of<T>(h, width / kLanes<T>);
    const int64_t i = k.i0 + r.begin, col = k.j0 + j;
    if (direct && w == width) {
      T* c = reinterpret_cast<T*>(k.c) + i * k.plan->c_row + col;
      return kernel(k.np, a, b, c, k.plan->c_row, !first);
    }
    if (k.sum) {
      const int64_t ld = matmul_sum_pitch(k.nj);
      T* sum = reinterpret_cast<T*>(k.sum) + r.begin * ld + j;
      kernel(k.np, a, b, sum, ld, !first);
      if (last) finish<S, T>(*k.plan, k.c, k.d, i, col, h, w, sum, ld, true);
      return;
    }
    kernel(k.np, a, b, tile, kNr<T>, false);
    finish<S, T>(*k.plan, k.c, k.d, i, col, h, w, tile, kNr<T>, first);
  }
};

template <class S, class T>
void tile_units(const MatmulBlock& k, int64_t begin, int64_t end) {
  TileSink<S, T> sink(k);
  const T* a_pack = reinterpret_cast<const T*>(k.a_pack);
  const T* b_pack = reinterpret_cast<const T*>(k.b_pack);
  const int64_t col_blocks = k.col_blocks();
  for (int64_t u = begin; u < end; u++) {
    const PanelRange rows = row_block(k, u / col_blocks), cols = col_block(k, u % col_blocks);
    const int64_t panels = matmul_ceil(rows.end - rows.begin, kMaxMr);
    for (int64_t j = cols.begin; j < cols.end; j += kNr<T>) {
      const int w = int(matmul_min(kNr<T>, cols.end - j));
      for (int64_t at = 0; at < panels; at++) {
        const PanelRange r = row_panel(rows, panels, at);
        sink.run(r, j, w, a_pack + r.begin * k.np, b_pack + j * k.np);
      }
    }
  }
}

TT_ISA_END

#define TT_MATMUL_UNITS(name)                                                              \
  void name##_pack(const MatmulBlock& k, int64_t begin, int64_t end) noexcept;             \
  void name##_tiles(const MatmulBlock& k, int64_t begin, int64_t end) noexcept;

TT_ENTRY_BEGIN
TT_MATMUL_UNITS(matmul_f32)
TT_MATMUL_UNITS(matmul_f16)
TT_MATMUL_UNITS(matmul_bf16)
TT_MATMUL_UNITS(matmul_f64)
TT_MATMUL_UNITS(matmul_i32)
TT_MATMUL_UNITS(matmul_i64)
TT_MATMUL_UNITS(matmul_c64)
TT_MATMUL_UNITS(matmul_c128)
TT_ENTRY_END

#define TT_MATMUL_DEFINE(name, S, T)                                                                              \
  void name##_pack(const MatmulBlock& k, int64_t begin, int64_t end) noexcept { pack_units<S, T>(k, begin, end); } \
  void name##_tiles(const MatmulBlock& k, int64_t begin, int64_t end) noexcept { tile_units<S, T>(k, begin, end); }
