// Singular values of bidiagonal matrices, one in each lane of a vector, by qd steps without roots:
// Fernando & Parlett, Numer. Math. 67 (1994). A step takes a matrix R to one with as many rows
// whose R^T R has the eigenvalues of R R^T less a shift; lasq1 of LAPACK.
#pragma once

#include "kernels/cpu/linalg/lanes.h"

TT_ISA_BEGIN

#if TT_VEC_BYTES > 16
// For one value. About six are usual: a group takes as many as its slowest lane.
constexpr int kMaxQdSteps = 100;
// A number beside the diagonal whose square is at most this counts as 0: it changes no singular
// value by more than half of a bit of the largest one.
constexpr double kSplitSquare = 0x1p-106;
// Shifts are reduced by this factor, so that a rounding error does not make a pivot negative.
constexpr double kShiftMargin = 1 - 0x1p-44;

// Matrices that are 0 or have a singular value of at least 1.
struct BidiagonalLanes {
  int64_t n;
  double* q;            // (n): squares of the numbers on the diagonal, less shifts
  double* e;            // (n): squares of those beside it
  double* shifts;       // (n)
  double *q_of, *e_of;  // (n) each: what a step has computed

  // Rows [start, end] of each lane are a block; `first` is the smallest start.
  struct Block {
    F start;
    int64_t first;
  };
  TT_INLINE Block find_block(int64_t end) const {
    Block block = {F{}, 0};
    Mask found = {};
    for (int64_t i = end; i > 0; i--) {
      const Mask ends = (load(e + (i - 1) * L) <= kSplitSquare) & ~found;
      block.start = chosen(ends, splat(double(i)), block.start);
      found |= ends;
      if (sign_bits(found) != (1 << L) - 1) continue;
      block.first = i;
      break;
    }
    return block;
  }

  // The last two rows of a block.
  struct Pair {
    F q, e, q_end;
    F larger, smaller;  // the eigenvalues of their part of R R^T
  };
  TT_INLINE Pair last_pair(int64_t end) const {
    const F x = load(q + (end - 1) * L);
    const F beside = load(e + (end - 1) * L);
    const F y = load(q + end * L);
    const F apart = x + beside - y;
    const F larger = 0.5 * (x + beside + y + vsqrt(fma(apart, apart, 4.0 * (y * beside))));
    const F by = y / chosen(larger > 0, larger, splat(1.0));
    return {x, beside, y, larger, x * by};
  }
  // Replaces blocks of two rows by their eigenvalues.
  TT_INLINE void finish(int64_t end, const Pair& pair, Mask finishes) const {
    store(q + (end - 1) * L, chosen(finishes, pair.larger, pair.q));
    store(q + end * L, chosen(finishes, pair.smaller, pair.q_end));
    store(e + (end - 1) * L, chosen(finishes, F{}, pair.e));
  }
  // An estimate, mostly from below, of the smallest eigenvalue: that of the last two rows, less
  // what the row above may take from it.
  TT_INLINE F estimate(int64_t end, const Pair& pair, Mask wanted) const {
    const F one = splat(1.0);
    const F above = end > 1 ? load(e + (end - 2) * L) : F{};
    const F side = pair.q + pair.e - pair.smaller;
    const F product = pair.q_end * pair.e;
    const F square = pair.q * above * product / chosen(wanted, fma(side, side, product), one);
    const F gap = chosen(wanted, F(pair.larger - pair.smaller), one);
    const F shift = pair.smaller - vmin(vsqrt(square), 4.0 * square / gap);
    return chosen(wanted & (shift > 0), shift, F{});
  }

  // A lower bound of the smallest eigenvalue: Johnson, Linear Algebra Appl. 112 (1989).
  TT_NOINLINE F bound(const Block& block, int64_t end) const {
    F least = splat(double(n));
    F above = {};
    for (int64_t i = block.first; i <= end; i++) {
      const Mask acts = splat(double(i)) >= block.start;
      const F beside = i < end ? vsqrt(load(e + i * L)) : F{};
      const F rest = vsqrt(load(q + i * L)) - 0.5 * (above + beside);
      least = chosen(acts, vmin(rest, least), least);
      above = chosen(acts, beside, above);
    }
    return chosen(least > 0, F(least * least), F{});
  }

  struct Outcome {
    Mask early;  // a pivot before the last one is negative
    Mask late;   // only the last one is
    F last;      // the last pivot
  };
  TT_INLINE Outcome step(const Block& block, int64_t end, F shift) const {
    const F one = splat(1.0);
    F d = load(q + block.first * L) - shift;
    Mask early = {};
    for (int64_t i = block.first; i < end; i++) {
      const Mask acts = splat(double(i)) >= block.start;
      const F e_i = load(e + i * L);
      const F q_next = load(q + (i + 1) * L);
      const F sum = d + e_i;
      const Mask some = acts & (sum > kNegligibleSquare);
      const F by = one / chosen(some, sum, one);
      early |= acts & (d < 0);
      store(q_of + i * L, sum);
      store(e_of + i * L, chosen(some, F(e_i * q_next * by), F{}));
      d = chosen(some, F(fma(d * q_next, by, -shift)), F(q_next - shift));
    }
    store(q_of + end * L, d);
    return {early, (d < 0) & ~early, d};
  }
  TT_INLINE void accept(const Block& block, int64_t end, F shift, Mask accepted) const {
    for (int64_t i = block.first; i <= end; i++) {
      const Mask takes = accepted & (splat(double(i)) >= block.start);
      store(q + i * L, chosen(takes, load(q_of + i * L), load(q + i * L)));
      if (i < end) store(e + i * L, chosen(takes, load(e_of + i * L), load(e + i * L)));
      store(shifts + i * L, load(shifts + i * L) + chosen(takes, shift, F{}));
    }
  }

  // Separates row `end` from those above it. Returns the lanes that do not converge.
  TT_INLINE Mask separate(int64_t end, Mask wanted) const {
    F again = splat(-1.0);  // the shift of a lane whose last one was too large
    for (int steps = 0; steps < kMaxQdSteps; steps++) {
      const Block block = find_block(end);
      const Pair pair = last_pair(end);
      finish(end, pair, wanted & (block.start == splat(double(end - 1))));
      const Mask busy = wanted & (block.start < splat(double(end - 1)));
      if (!any_of(busy)) return Mask{};
      const Mask repeats = again >= 0;
      const F shift = chosen(repeats, again, estimate(end, pair, busy)) * kShiftMargin;
      const Outcome outcome = step(block, end, shift);
      const Mask fails = busy & (outcome.early | outcome.late);
      accept(block, end, shift, busy & ~fails);
      again = splat(-1.0);
      if (!any_of(fails)) continue;
      // A shift is too large by little more than a negative last number.
      F lower = shift + outcome.last;
      if (any_of(fails & outcome.early)) lower = chosen(outcome.early, bound(block, end), lower);
      again = chosen(fails, chosen(~repeats & (lower > 0), lower, F{}), again);
    }
    return wanted & (find_block(end).start < splat(double(end)));
  }
  // Leaves the squares of the singular values in `shifts`. Returns the lanes that have converged,
  // as bits.
  TT_NOINLINE uint32_t find() const {
    const Mask reversed = load(q) < load(q + (n - 1) * L);
    for (int64_t i = 0; i < n; i++) store(shifts + i * L, F{});
    reverse_rows(q, n, reversed);
    reverse_rows(e, n - 1, reversed);
    Mask lost = {};
    for (int64_t end = n - 1; end > 0; end--) lost |= separate(end, ~lost);
    for (int64_t i = 0; i < n; i++) store(shifts + i * L, load(shifts + i * L) + load(q + i * L));
    return ~sign_bits(lost);
  }
};
#endif

TT_ISA_END
