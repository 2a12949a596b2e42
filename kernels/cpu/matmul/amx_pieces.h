// Products of float32 and float16 by the tiles of AMX. A float32 is the sum of three bf16, its
// pieces, a float16, whose significand has 11 bits, that of two:
//
//   x = x0 + x1 + x2, each of 8 bits, rounded to nearest
//   x y = x0 y0 + x0 y1 + x1 y0 + x1 y1 + x0 y2 + x2 y0, and at most 2^-23 of it, which is left out
//
//   rows     [steps of 32 numbers][pieces][16 rows][16 pairs of numbers]
//   columns  [steps of 32 numbers][pieces][16 pairs of numbers][16 columns]
//
// Rows and columns may pair the numbers of a step in any order, which must be the same for both.
#pragma once

#include "kernels/cpu/simd/amx.h"
#include "plan/pieces.h"

#if TT_AMX

TT_ISA_BEGIN

constexpr int64_t kPieceStep = 32;  // numbers along k
constexpr int kPieces = 3;          // of a float32
constexpr int kHalfPieces = 2;      // of a float16
constexpr int64_t kPieceStepBytes = kPieces * kAmxTileBytes;
constexpr int64_t kHalfPieceStepBytes = kHalfPieces * kAmxTileBytes;

// x rounded to 8 bits, by bits: a number below 2^127.
TT_INLINE Vec<float> rounded_to_piece(Vec<float> x) {
  return Vec<float>((Vec<uint32_t>(x) + 0x8000u) & 0xffff0000u);
}
// Stores the pieces of 16 pairs of numbers, `next` bytes apart.
template <int kOf = kPieces> TT_INLINE void put_pairs_of_pieces(Vec<float> x, Vec<float> y,
                                                                char* out,
                                                                int64_t next = kAmxTileBytes) {
  using Words = Vec<uint32_t>;
  TT_UNROLL
  for (int i = 0; i < kOf; i++, out += next) {
    const bool last = i + 1 == kOf;  // exact
    const Vec<float> a = last ? x : rounded_to_piece(x);
    const Vec<float> b = last ? y : rounded_to_piece(y);
    store(reinterpret_cast<uint32_t*>(out), Words(a) >> 16 | (Words(b) & 0xffff0000u));
    x -= a;
    y -= b;
  }
}

// The magnitudes of numbers: bits without the sign, whose order is that of the numbers. Zeros do
// not count.
class PieceMagnitudes {
 public:
  using Words = Vec<uint32_t>;
  TT_INLINE void add(Vec<float> x) {
    const Words m = Words(x) & 0x7fffffffu;
    most_ = chosen(m > most_, m, most_);
    const Words before = m - 1u;  // of 0: above all others
    least_ = chosen(before < least_, before, least_);
  }
  // Of a float16 the largest magnitude suffices.
  TT_INLINE void add_half(Vec<float> x) {
    const Words m = Words(x) & 0x7fffffffu;
    most_ = chosen(m > most_, m, most_);
  }
  // The least is all ones if there is none.
  PieceRange range() const {
    PieceRange r = {~0u, 0};
    for (int l = 0; l < kLanes<float>; l++) {
      r.least = min(r.least, uint32_t(least_[l]));
      r.most = max(r.most, uint32_t(most_[l]));
    }
    if (r.least != ~0u) r.least++;
    return r;
  }

 private:
  Words most_ = {};
  Words least_ = ~Words{};
};

// Rows and columns of a block of sums: one or two tiles each, `next` bytes apart.
struct PieceTiles {
  const char* at;
  int64_t next;
  TT_INLINE void next_step() { at += kPieceStepBytes; }
};

// Tile `number` of a piece.
template <int kTile> TT_INLINE void load_piece(PieceTiles x, int piece, int number) {
  amx_load<kTile>(x.at + piece * kAmxTileBytes + number * x.next, kAmxRowBytes);
}
template <int kTile> TT_INLINE void load_piece_once(PieceTiles x, int piece, int number) {
  amx_load_once<kTile>(x.at + piece * kAmxTileBytes + number * x.next, kAmxRowBytes);
}

// Adds products of pieces to sums in tiles 0 to 3, of which kHigh by kWide are used; rows are in
// tiles 4 and 5, columns in 6 and 7. Each tile is loaded right before its products. Rows are
// PieceTiles, or have a load_piece() and a next_step() of their own.
template <int kHigh, int kWide> struct PieceSums {
  TT_INLINE static void clear() {
    amx_zero<0>();
    if constexpr (kWide > 1) amx_zero<1>();
    if constexpr (kHigh > 1) amx_zero<2>();
    if constexpr (kHigh > 1 && kWide > 1) amx_zero<3>();
  }
  template <class Rows>
  TT_INLINE static void add(Rows rows, int of_rows, PieceTiles columns, int of_columns) {
    load_piece_once<6>(columns, of_columns, 0);
    load_piece<4>(rows, of_rows, 0);
    AmxBf16::add<0, 4, 6>();
    if constexpr (kWide > 1) {
      load_piece_once<7>(columns, of_columns, 1);
      AmxBf16::add<1, 4, 7>();
    }
    if constexpr (kHigh > 1) {
      load_piece<5>(rows, of_rows, 1);
      AmxBf16::add<2, 5, 6>();
      if constexpr (kWide > 1) AmxBf16::add<3, 5, 7>();
    }
  }
  // With the rows of the products before.
  TT_INLINE static void add_columns(PieceTiles columns, int of_columns) {
    load_piece_once<6>(columns, of_columns, 0);
    AmxBf16::add<0, 4, 6>();
    if constexpr (kHigh > 1) AmxBf16::add<2, 5, 6>();
    if constexpr (kWide > 1) {
      load_piece_once<7>(columns, of_columns, 1);
      AmxBf16::add<1, 4, 7>();
      if constexpr (kHigh > 1) AmxBf16::add<3, 5, 7>();
    }
  }
  // With the columns of the products before.
  template <class Rows> TT_INLINE static void add_rows(Rows rows, int of_rows) {
    load_piece<4>(rows, of_rows, 0);
    AmxBf16::add<0, 4, 6>();
    if constexpr (kWide > 1) AmxBf16::add<1, 4, 7>();
    if constexpr (kHigh > 1) {
      load_piece<5>(rows, of_rows, 1);
      AmxBf16::add<2, 5, 6>();
      if constexpr (kWide > 1) AmxBf16::add<3, 5, 7>();
    }
  }
};

// Leaves the sums of the products of `steps` steps in tiles 0 to 3. Products of first pieces are
// added last, to sums that are small until then: what is rounded before hardly counts. other.step()
// is called at each step, for work in the shade of the products.
template <int kHigh, int kWide, class Rows = PieceTiles, class Else>
TT_INLINE void multiply_pieces(Rows rows, PieceTiles columns, int64_t steps, Else& other) {
  using Sums = PieceSums<kHigh, kWide>;
  Sums::clear();
  Rows a = rows;
  PieceTiles b = columns;
  for (int64_t s = steps; s > 0; s--, a.next_step(), b.next_step()) {
    Sums::add(a, 0, b, 2);
    Sums::add_columns(b, 1);
    Sums::add_rows(a, 1);
    Sums::add_columns(b, 0);
    Sums::add_rows(a, 2);
    other.step();
  }
  for (int64_t s = steps; s > 0; s--) {
    Sums::add(rows, 0, columns, 0);
    rows.next_step();
    columns.next_step();
  }
}

// The same of numbers that have two pieces. All of their products are added, so none is rounded.
template <int kHigh, int kWide, class Else>
TT_INLINE void multiply_half_pieces(PieceTiles rows, PieceTiles columns, int64_t steps,
                                    Else& other) {
  using Sums = PieceSums<kHigh, kWide>;
  Sums::clear();
  for (int64_t s = steps; s > 0; s--) {
    Sums::add(rows, 1, columns, 1);
    Sums::add_rows(rows, 0);
    Sums::add_columns(columns, 0);
    Sums::add_rows(rows, 1);
    rows.at += kHalfPieceStepBytes;
    columns.at += kHalfPieceStepBytes;
    other.step();
  }
}

// Stores the tiles of sums as rows of 32.
template <int kHigh, int kWide> TT_INLINE void store_sums(float* out) {
  constexpr int64_t kRow = 2 * kAmxRowBytes;
  float* const lower = out + kAmxRows * kAmxBlock;
  amx_store<0>(out, kRow);
  if constexpr (kWide > 1) amx_store<1>(out + kAmxRows, kRow);
  if constexpr (kHigh > 1) amx_store<2>(lower, kRow);
  if constexpr (kHigh > 1 && kWide > 1) amx_store<3>(lower + kAmxRows, kRow);
}

TT_ISA_END

#endif
