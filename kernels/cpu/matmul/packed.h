// Packed matmul of real types, after GotoBLAS: panels of a and b, and a micro-kernel that
// multiplies one panel of each. Instantiated by f32.cpp, f64.cpp, int.cpp and bf16.cpp.
//
//   panel of a: [nk][kMr]     panel of b: [nk][kNr]     tile of c: [kMr][kNr]
//
// S: stored type of an operand; T: compute type; P: packed type, which is T, or Bf16Pair or
// Bf16Quad for two or four k positions that one instruction multiplies and adds.
#pragma once

#include "kernels/cpu/matmul/epilogue.h"
#include "kernels/cpu/matmul/pack.h"
#include "kernels/cpu/simd/mmla.h"
#include "kernels/cpu/simd/tile_sums.h"

TT_ISA_BEGIN

// The tile of a micro-kernel: kMaxMr rows by kNv vectors.
constexpr int kMaxMr = kPackedTileRows;
constexpr int kNv = 2;
template <class T> constexpr int kNr = kNv* kLanes<T>;
template <class T> constexpr bool kCanCopy = T(0.5) != T(0);
// Most rows of a panel of a. Integers are rare: fewer micro-kernels are instantiated for them.
template <class T> constexpr int kPanelRows = kCanCopy<T> || kMaxMr < 6 ? kMaxMr : 6;
template <> constexpr int kPanelRows<Bf16Pair> = kMaxMr;

// Elements of P for nk k positions.
template <class P> TT_INLINE int64_t packed_depth(int64_t nk) { return nk; }
template <> TT_INLINE int64_t packed_depth<Bf16Pair>(int64_t nk) { return (nk + 1) / 2; }
#if TT_MMLA_BF16
template <> constexpr int kPanelRows<Bf16Quad> = kMaxMr;
template <> constexpr int kNr<Bf16Quad> = kNr<float>;
template <> TT_INLINE int64_t packed_depth<Bf16Quad>(int64_t nk) { return (nk + 3) / 4; }
#endif

// The most elements of P along k whose products are added in one chain; more are added in equal
// chains, whose rounding errors are smaller. 0: in one, which is exact or errs less than the
// rounding of results to halves.
template <class P> constexpr int64_t kChain = 0;
template <> constexpr int64_t kChain<float> = 128;
template <class P> TT_INLINE int64_t chain_of(int64_t nk) {
  return kChain<P> != 0 && nk > kChain<P> ? ceil_div(nk, ceil_div(nk, kChain<P>)) : nk;
}

template <class T, class P> struct MicroArgs {
  int64_t nk;     // elements of P along k
  int64_t chain;  // chain_of(nk)
  const P* a;     // [nk][kMr]
  const P* b;     // [nk] rows of kVecs vectors, b_row apart if kCopy, else contiguous
  int64_t b_row;
  P* copy;  // kCopy: the packed panel of b, written for the micro-kernels that follow
  T* out;   // [kMr][ld]
  int64_t ld;
  const T* addend;     // out = a·b + addend, which may be out; NULL: out = a·b
  int64_t addend_row;  // distance of its rows, 0 if it has one
  const char* next;    // what is needed next: every kFetchEvery steps two lines are fetched
  int64_t next_step;   // bytes from fetch to fetch
};
// Steps along k between two prefetches of the next panel and of a row of out.
constexpr int kFetchEvery = 4;

// An unpacked b is prefetched this many rows ahead, then the first rows of the next columns: rows
// may be a page apart, which no hardware prefetcher follows.
constexpr int kAhead = 24;

// The elements of a column of a panel of a. Where a factor may be a lane of a register, whole
// vectors are loaded.
template <class P, int kMr> struct RowFactors {
  static constexpr int kL = kLanes<P>;
  static constexpr int kWhole = kLaneFactors<P> ? kMr / kL : 0;
  const P* a;
  Vec<P> loaded[kWhole + 1];

  TT_INLINE explicit RowFactors(const P* column) : a(column) {
    if constexpr (kWhole > 0) {
      TT_UNROLL
      for (int v = 0; v < kWhole; v++) loaded[v] = kept_whole(load(a + v * kL));
    }
  }
  template <class Unit> TT_INLINE auto get(int i) const {
    if constexpr (kWhole > 0)
      if (i < kWhole * kL) return Unit::lane(loaded[i / kL], i % kL);
    return Unit::factor(a[i]);
  }
};

#if TT_MMLA_BF16
// micro() of quads: accumulators are 2 by 2, and an odd last row has a pair of its own.
template <class T, int kMr, int kVecs>
TT_INLINE void micro_quads(const MicroArgs<T, Bf16Quad>& args) {
  using Quads = Vec<Bf16Quad>;
  constexpr int kRowPairs = (kMr + 1) / 2;
  constexpr int kColPairs = 2 * kVecs;
  const Bf16Quad *a = args.a, *b = args.b;
  const char* next = args.next;
  const T* fetch = args.out;
  const T* const last = args.out + (kMr - 1) * args.ld;
  Vec<T> acc[kRowPairs][kColPairs] = {};
  for (int64_t p = args.nk; p > 0; p--, a += kMr, b += 2 * kColPairs) {
    Quads cols[kColPairs];
    TT_UNROLL
    for (int c = 0; c < kColPairs; c++) cols[c] = load(b + 2 * c);
    if (p % kFetchEvery == 0) {
      TT_PREFETCH_L2(next);
      next += 64;
      TT_PREFETCH_WRITE(fetch);
      fetch = fetch == last ? last : fetch + args.ld;
    }
    TT_UNROLL
    for (int r = 0; r < kRowPairs; r++) {
      if (r >= 2) TT_KEEP_ORDER;  // two rows wait in registers, not all
      const Quads rows = 2 * r + 1 < kMr ? load(a + 2 * r) : Quads{a[2 * r]};
      TT_UNROLL
      for (int c = 0; c < kColPairs; c++) acc[r][c] = fma(rows, cols[c], acc[r][c]);
    }
  }
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) {
      const Vec<T> x = acc[i / 2][2 * v], y = acc[i / 2][2 * v + 1];
      Vec<T> sums = i % 2 ? shuffled<2, 3, 6, 7>(x, y) : shuffled<0, 1, 4, 5>(x, y);
      if (args.addend) sums = load(args.addend + i * args.addend_row + v * kLanes<T>) + sums;
      store(args.out + i * args.ld + v * kLanes<T>, sums);
    }
  }
}
#endif

// Writes the sums of a tile, plus the addend.
template <class T, int kMr, int kVecs> TT_INLINE void write_tile(Vec<T> (&acc)[kMr][kVecs],
                                                                 const T* plus, int64_t plus_row,
                                                                 T* to, int64_t ld) {
  constexpr int kL = kLanes<T>;
  if (plus) {
    TT_UNROLL
    for (int i = 0; i < kMr; i++, plus += plus_row) {
      TT_UNROLL
      for (int v = 0; v < kVecs; v++) acc[i][v] = load(plus + v * kL) + acc[i][v];
    }
  }
  TT_UNROLL
  for (int i = 0; i < kMr; i++, to += ld) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) store(to + v * kL, acc[i][v]);
  }
}

// What micro() prefetches as it goes along k: rows of out, and what is needed next.
template <class T, int kMr, int kVecs> struct Prefetches {
  const char* next;
  int64_t next_step;
  const T* row;  // of out
  const T* last;
  int64_t ld;

  template <class P> TT_INLINE explicit Prefetches(const MicroArgs<T, P>& args)
      : next(args.next),
        next_step(args.next_step),
        row(args.out),
        last(args.out + (kMr - 1) * args.ld),
        ld(args.ld) {}
  TT_INLINE void step(bool fetches_next) {
    if (fetches_next) {
      TT_PREFETCH_L2(next);
      TT_PREFETCH_L2(next + 64);
      next += next_step;
    }
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) TT_PREFETCH_WRITE(row + v * kLanes<T>);
    row = row == last ? last : row + ld;
  }
};

// The steps along k that are left, and their operands.
template <class T, class P, int kMr, int kVecs> struct PanelSteps {
  int64_t left;
  const P *a, *b;
  int64_t b_row;
  P* copy;
  const P* ahead;  // in an unpacked b
  Prefetches<T, kMr, kVecs> prefetches;
};

// acc = the products of all steps but the last `end`; returns what is left.
template <class Unit, bool kCopy, class T, class P, int kMr, int kVecs>
TT_INLINE PanelSteps<T, P, kMr, kVecs> sum_steps(const MicroArgs<T, P>& args,
                                                 PanelSteps<T, P, kMr, kVecs> at, int64_t end,
                                                 Vec<T> (&acc)[kMr][kVecs]) {
  constexpr int kL = kLanes<T>;
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) acc[i][v] = Vec<T>{};
  }
  for (; at.left > end; at.left--, at.a += kMr, at.b += kCopy ? at.b_row : kVecs * kL) {
    Vec<P> row[kVecs];
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) {
      row[v] = load(at.b + v * kL);
      if (kCopy) {
        TT_PREFETCH_L2(at.ahead + v * kL);
        store(at.copy + v * kL, row[v]);
      }
    }
    if (kCopy) {
      at.copy += kVecs * kL;
      at.ahead = at.left == kAhead ? args.b + kVecs * kL : at.ahead + at.b_row;
    }
    if (at.left % kFetchEvery == 0) at.prefetches.step(!kCopy);
    const RowFactors<P, kMr> factors(at.a);
    TT_UNROLL
    for (int i = 0; i < kMr; i++) {
      const auto x = factors.template get<Unit>(i);
      TT_UNROLL
      for (int v = 0; v < kVecs; v++) acc[i][v] = Unit::add_product(x, row[v], acc[i][v]);
    }
  }
  return at;
}

// out (kMr, kVecs vectors) = or += a·b. The sums of chains are added in a tile that stays in the
// first-level cache; out is written once. kCopy: b is the operand itself, and is packed on the way,
// which costs nothing here but would in a pass of its own.
template <class T, class P, int kMr, int kVecs, bool kCopy>
void micro(const MicroArgs<T, P>& args) {
#if TT_MMLA_BF16
  if constexpr (sizeof(P) > sizeof(T)) return micro_quads<T, kMr, kVecs>(args);
#endif
  constexpr int kL = kLanes<T>;
  PanelSteps<T, P, kMr, kVecs> at = {.left = args.nk,
                                     .a = args.a,
                                     .b = args.b,
                                     .b_row = args.b_row,
                                     .copy = args.copy,
                                     .ahead = args.b + kAhead * args.b_row,
                                     .prefetches = Prefetches<T, kMr, kVecs>(args)};
  // Prefetching all rows of out at once fills the miss buffers, and the loop's own loads wait. It
  // is done only where the loop is too short to prefetch them one by one.
  const bool few = args.nk < kFetchEvery * kMr;
  if (few) {
    TT_UNROLL
    for (int i = 0; i < kMr; i++) {
      TT_UNROLL
      for (int v = 0; v < kVecs; v++) TT_PREFETCH_WRITE(args.out + i * args.ld + v * kL);
    }
  }
  constexpr bool kChains = kChain<P> != 0;
  alignas(64) T sums[kChains ? kMr * kVecs * kL : 1];  // of the chains before
  const T* plus = args.addend;
  int64_t plus_row = args.addend_row;
  Vec<T> acc[kMr][kVecs];
  for (;;) {
    const int64_t end = kChains && at.left > args.chain ? at.left - args.chain : 0;
    at = sum_tile(acc, [&args, at, end](auto unit, auto& sums) TT_INLINE_BODY {
      return sum_steps<decltype(unit), kCopy>(args, at, end, sums);
    });
    T* const to = kChains && at.left > 0 ? sums : args.out;
    write_tile(acc, plus, plus_row, to, to == args.out ? args.ld : kVecs * kL);
    if (!kChains || at.left == 0) return;
    plus = sums;
    plus_row = kVecs * kL;
  }
}

template <class T, class P> using Micro = void (*)(const MicroArgs<T, P>&);

// kind 0: one vector of columns; 1: two; 2: two, and b is copied.
template <class T, class P> TT_INLINE Micro<T, P> micro_of(int rows, int kind) {
#define TT_KIND(r, v, c) micro<T, P, (r <= kPanelRows<P> ? r : kPanelRows<P>), v, c && kCanCopy<P>>
#define TT_ROW(r) \
  { TT_KIND(r, 1, false), TT_KIND(r, 2, false), TT_KIND(r, 2, true) }
  static constexpr Micro<T, P> kTable[14][3] = {
      TT_ROW(1), TT_ROW(2), TT_ROW(3),  TT_ROW(4),  TT_ROW(5),  TT_ROW(6),  TT_ROW(7),
      TT_ROW(8), TT_ROW(9), TT_ROW(10), TT_ROW(11), TT_ROW(12), TT_ROW(13), TT_ROW(14)};
#undef TT_ROW
#undef TT_KIND
  return kTable[rows - 1][kind];
}

struct PanelRange {
  int64_t begin, end;
};
// Panel `at` of rows [r.begin, r.end): nearly equal heights of at most kPanelRows.
TT_INLINE PanelRange row_panel(PanelRange r, int64_t panels, int64_t at) {
  return {r.begin + matmul_piece(r.end - r.begin, panels, at),
          r.begin + matmul_piece(r.end - r.begin, panels, at + 1)};
}
TT_INLINE PanelRange row_block(const MatmulBlock& k, int64_t at) {
  const int64_t n = k.row_blocks();
  return {matmul_piece(k.ni, n, at), matmul_piece(k.ni, n, at + 1)};
}
TT_INLINE PanelRange col_block(const MatmulBlock& k, int64_t at) {
  return {at * kMatmulColBlock, matmul_min(k.nj, (at + 1) * kMatmulColBlock)};
}
// Columns of a panel, rounded up to whole vectors.
template <class T> TT_INLINE int panel_width(int64_t cols) {
  return cols > kNr<T> / kNv ? kNr<T> : kNr<T> / kNv;
}

// True iff the first row panel's micro-kernels pack this panel of b.
template <class T> TT_INLINE bool copied_by_tiles(const MatmulBlock& k, int w) {
  return k.copy_b && w == kNr<T>;
}

// Where the rows of a are neighbours in memory, all panels take these k positions before the next
// ones: k positions a page apart share a set of the first-level cache, and none is left for the
// next panel otherwise.
constexpr int64_t kPackedTogether = 8;

template <class S, class P> void pack_a_block(const MatmulBlock& k, PanelRange rows) {
  const MatmulPlan& p = *k.plan;
  const int64_t panels = matmul_ceil(rows.end - rows.begin, kPanelRows<P>);
  const int64_t step = p.a_row == 1 && panels > 1 && kCheapParts ? kPackedTogether : k.nk;
  for (int64_t q = 0; q < k.nk; q += step)
    for (int64_t at = 0; at < panels; at++) {
      const PanelRange r = row_panel(rows, panels, at);
      const int h = int(r.end - r.begin);
      const S* src =
          reinterpret_cast<const S*>(k.a) + (k.i0 + r.begin) * p.a_row + (k.k0 + q) * p.a_col;
      P* out = reinterpret_cast<P*>(k.a_pack) + r.begin * packed_depth<P>(k.nk);
      pack_panel(src, p.a_row, p.a_col, h, h, min(step, k.nk - q), out + packed_depth<P>(q) * h);
    }
}

template <class S, class P> void pack_b_block(const MatmulBlock& k, PanelRange cols) {
  const MatmulPlan& p = *k.plan;
  for (int64_t j = cols.begin; j < cols.end; j += kNr<P>) {
    const int w = int(matmul_min(kNr<P>, cols.end - j));
    if (copied_by_tiles<P>(k, w)) continue;
    const S* src = reinterpret_cast<const S*>(k.b) + k.k0 * p.b_row + (k.j0 + j) * p.b_col;
    pack_panel(src, p.b_col, p.b_row, w, panel_width<P>(w), k.nk,
               reinterpret_cast<P*>(k.b_pack) + j * packed_depth<P>(k.nk));
  }
}

template <class S, class P> void pack_units(const MatmulBlock& k, int64_t begin, int64_t end) {
  const int64_t row_blocks = k.row_blocks();
  for (int64_t u = begin; u < end; u++) {
    if (u < row_blocks) pack_a_block<S, P>(k, row_block(k, u));
    else pack_b_block<S, P>(k, col_block(k, u - row_blocks));
  }
}

// What to fetch into the second-level cache: pairs of lines, `step` bytes apart.
struct Ahead {
  const char* at;
  int64_t step;
};

// Runs micro-kernels and stores their sums: directly in c, in the block's f32 sums, or in a tile
// that matmul_finish() converts.
template <class T, class P> struct TileSink {
  const MatmulBlock& k;
  const bool first, last;
  const char* const addend;  // what is added to this block's products: d, or earlier sums in c
  const int64_t addend_row;
  const bool direct;  // micro-kernels store in c itself
  alignas(64) T tile[kPanelRows<P> * kNr<T>];

  explicit TileSink(const MatmulBlock& block)
      : k(block),
        first(block.k0 == 0),
        last(block.k0 + block.nk == block.plan->k),
        addend(first ? first_addend(block) : block.c),
        addend_row(first ? block.plan->d_row : block.plan->c_row),
        direct(kItemSize[block.plan->dtype] == sizeof(T) && block.plan->c_col == 1 &&
               !block.plan->scaled && (!first || !addend || is_plain_addend(*block.plan))) {}

  static const char* first_addend(const MatmulBlock& k) { return k.plan->d ? k.d : nullptr; }
  static bool is_plain_addend(const MatmulPlan& p) {
    return p.d_col == 1 && scalar_of<T>(p.beta) == T(1);
  }

  // Computes rows r, columns [j, j + w) from one panel of a and one of b. copy: the panel of b is
  // not packed yet; the micro-kernel reads the operand and packs it.
  void run(PanelRange r, int64_t j, int w, const P* a, P* b, bool copy, Ahead next) {
    const MatmulPlan& p = *k.plan;
    const int h = int(r.end - r.begin);
    const int width = panel_width<T>(w);
    const int64_t i = k.i0 + r.begin;
    const int64_t col = k.j0 + j;
    MicroArgs<T, P> args = {.nk = packed_depth<P>(k.nk),
                            .chain = chain_of<P>(packed_depth<P>(k.nk)),
                            .a = a,
                            .b = b,
                            .b_row = width,
                            .copy = b,
                            .out = tile,
                            .ld = kNr<T>,
                            .addend = nullptr,
                            .addend_row = 0,
                            .next = next.at,
                            .next_step = next.step};
    if (copy) {
      args.b = reinterpret_cast<const P*>(k.b) + k.k0 * p.b_row + col;
      args.b_row = p.b_row;
    }
    const bool to_c = direct && w == width;
    if (to_c) {
      args.out = reinterpret_cast<T*>(k.c) + i * p.c_row + col;
      args.ld = p.c_row;
      if (addend) args.addend = reinterpret_cast<const T*>(addend) + i * addend_row + col;
      args.addend_row = addend_row;
    }
    if (k.sum) {
      args.ld = args.addend_row = matmul_sum_pitch(k.nj);
      args.out = reinterpret_cast<T*>(k.sum) + r.begin * args.ld + j;
      args.addend = first ? nullptr : args.out;
    }
    micro_of<T, P>(h, copy ? 2 : width / kLanes<T> - 1)(args);
    if (to_c || (k.sum && !last)) return;
    matmul_finish(p, k.c, k.d, i, col, h, w, args.out, args.ld, first || k.sum);
  }
};

// The part of the next panel that the at-th micro-kernel on this one prefetches into the
// second-level cache.
template <class P>
TT_INLINE const char* part_of(const P* next, int64_t at, int64_t width, int64_t nk) {
  const int64_t part = nk / kFetchEvery * 64;
  const int64_t whole = width * nk * int64_t(sizeof(P));
  return reinterpret_cast<const char*>(next) + matmul_min(at * part, whole);
}

// What the micro-kernels of row panel `panel` and column panel v fetch of the operand: a quarter of
// the rows of column panel v of the next column block. Row panel 0 reads and packs it from there,
// two lines of each row, which the hardware does not find in time. NULL: there is none.
template <class P>
TT_INLINE Ahead next_operand(const MatmulBlock& k, PanelRange cols, int64_t v, int64_t panel) {
  const MatmulPlan& p = *k.plan;
  const int64_t j = cols.end + v * kNr<P>;
  if (!k.copy_b || panel == 0 || panel > kFetchEvery || j >= k.nj) return {nullptr, 0};
  const int64_t row = k.k0 + (panel - 1) * (k.nk / kFetchEvery);
  const int64_t item = int64_t(sizeof(P));
  return {k.b + (row * p.b_row + k.j0 + j) * item, p.b_row * item};
}

template <class T, class P> void tile_units(const MatmulBlock& k, int64_t begin, int64_t end) {
  TileSink<T, P> sink(k);
  const P* a_pack = reinterpret_cast<const P*>(k.a_pack);
  P* b_pack = reinterpret_cast<P*>(k.b_pack);
  const int64_t nk = packed_depth<P>(k.nk);
  // b was packed before the call: the next column block is not in the second-level cache.
  const bool far = k.plan->path > kMatmulBlas;
  for (int64_t u = begin; u < end; u++) {
    const MatmulBlock::Place place = k.tile_unit(u);
    const PanelRange rows = row_block(k, place.row);
    const PanelRange cols = col_block(k, place.col);
    const int64_t panels = matmul_ceil(rows.end - rows.begin, kPanelRows<P>);
    const int64_t widths = matmul_ceil(cols.end - cols.begin, kNr<P>);
    // Rows outside: a panel of a stays in the first-level cache, panels of b stream from the second
    // level, and c is written along its rows. Else a panel of b stays.
    PanelRange r = {};
    int64_t i = 0;
    int64_t v = 0;
    for (int64_t n = 0; n < panels * widths; n++) {
      if (!kRowsOutside || v == 0) r = row_panel(rows, panels, i);
      const int64_t j = cols.begin + v * kNr<P>;
      const int w = int(matmul_min(kNr<T>, cols.end - j));
      const bool copy = r.begin == 0 && copied_by_tiles<P>(k, w);
      P* b = b_pack + j * nk;
      const char* next = kRowsOutside ? part_of(a_pack + r.end * nk, v, r.end - r.begin, nk)
                                      : part_of<P>(b + kNr<P> * nk, i, kNr<P>, nk);
      if (kRowsOutside && far) next = part_of(b_pack + cols.end * nk, n, kMatmulColBlock, nk);
      Ahead ahead = {next, 64};
      if (kRowsOutside && place.row == 0)
        if (const Ahead operand = next_operand<P>(k, cols, v, i); operand.at) ahead = operand;
      sink.run(r, j, w, a_pack + r.begin * nk, b, copy, ahead);
      int64_t& inner = kRowsOutside ? v : i;
      int64_t& outer = kRowsOutside ? i : v;
      if (++inner < (kRowsOutside ? widths : panels)) continue;
      inner = 0;
      outer++;
    }
  }
}

TT_ISA_END

#define TT_MATMUL_UNITS(name)                                                  \
  void name##_pack(const MatmulBlock& k, int64_t begin, int64_t end) noexcept; \
  void name##_tiles(const MatmulBlock& k, int64_t begin, int64_t end) noexcept;

TT_ENTRY_BEGIN
TT_MATMUL_UNITS(matmul_f32)
TT_MATMUL_UNITS(matmul_f16)
TT_MATMUL_UNITS(matmul_bf16)
TT_MATMUL_UNITS(matmul_bf16_groups)
TT_MATMUL_UNITS(matmul_f64)
TT_MATMUL_UNITS(matmul_i32)
TT_MATMUL_UNITS(matmul_i64)
TT_MATMUL_UNITS(matmul_c64)
TT_MATMUL_UNITS(matmul_c128)
// Tiles of groups of bf16 whose sums are stored in a c of f32.
void matmul_bf16_groups_sums(const MatmulBlock& k, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END

#define TT_MATMUL_DEFINE_PACKED(name, S, T, P)                                   \
  void name##_pack(const MatmulBlock& k, int64_t begin, int64_t end) noexcept {  \
    pack_units<S, P>(k, begin, end);                                             \
  }                                                                              \
  void name##_tiles(const MatmulBlock& k, int64_t begin, int64_t end) noexcept { \
    tile_units<T, P>(k, begin, end);                                             \
  }
#define TT_MATMUL_DEFINE(name, S, T) TT_MATMUL_DEFINE_PACKED(name, S, T, T)
