// eigh: as many matrices at once as a vector has lanes, one in each, or a thread for each matrix.
#include "kernels/functors/linalg/eigh.h"

#include "kernels/cpu/linalg/lanes.h"
#include "kernels/cpu/simd/transpose.h"

TT_ISA_BEGIN

#if TT_VEC_BYTES > 16
// Tridiagonal matrices of HermitianRooms: d and e or, with kSquares, the squares of e.
template <bool kSquares> struct TridiagonalBlocks {
  int64_t n;
  double *d, *e;
  double share;  // split_share
  bool mirrored;

  // Reverses the blocks that LAPACK takes from the last row; see Hermitian::diagonalise.
  // place: (n): row place[i] of the matrix is row i here, and the other way round.
  TT_NOINLINE void arrange(double* place) const {
    Mask split = {};
    for (int64_t i = 0; i < n - 1; i++) {
      const F beside = load(e + i * L);
      split |= beside * beside <= split_limit(i);
    }
    if (any_of(split)) {
      for (int64_t lane = 0; lane < L; lane++) arrange_lane(place, lane);
      return;
    }
    const F first = size_of(load(d));
    const F last = size_of(load(d + (n - 1) * L));
    const Mask reversed = mirrored ? ~(first < last) : last < first;  // is_taken_from_last
    for (int64_t i = 0; i < n; i++)
      store(place + i * L, chosen(reversed, splat(double(n - 1 - i)), splat(double(i))));
    reverse_rows(d, n, reversed);
    reverse_rows(e, n - 1, reversed);
  }
  TT_INLINE F split_limit(int64_t i) const {
    const F on = size_of(load(d + i * L) * load(d + (i + 1) * L));
    return fma(on, splat(share), splat(kNegligibleSquare));
  }
  TT_INLINE void arrange_lane(double* place, int64_t lane) const {
    double* const on = d + lane;
    double* const beside = e + lane;
    double* const places = place + lane;
    int64_t to = 0;
    for (int64_t from = 0; from < n; from = to + 1) {
      for (to = from; to < n - 1; to++) {
        if (!splits(beside[to * L], on[to * L], on[(to + 1) * L], share)) continue;
        beside[to * L] = 0;
        break;
      }
      const bool reversed = is_taken_from_last(on[from * L], on[to * L], mirrored);
      for (int64_t i = from; i <= to; i++) places[i * L] = double(reversed ? from + to - i : i);
      if (!reversed) continue;
      for (int64_t i = from, j = to; i < j; i++, j--) {
        exchange(on[i * L], on[j * L]);
        exchange(beside[i * L], beside[(j - 1) * L]);
      }
    }
  }
  // The block of each lane that begins with `from`.
  struct Blocks {
    F end;       // the first i that is split from i + 1, whose e becomes 0
    F last;      // d there
    int64_t to;  // the largest end
  };
  TT_INLINE Blocks find_blocks(int64_t from) const {
    Blocks blocks = {splat(double(n - 1)), load(d + (n - 1) * L), n - 1};
    Mask found = {};
    for (int64_t i = from; i < n - 1; i++) {
      const F d_i = load(d + i * L);
      const F e_i = load(e + i * L);
      const F square = kSquares ? e_i : F(e_i * e_i);
      const Mask split = square <= split_limit(i);
      store(e + i * L, chosen(split, F{}, e_i));
      const Mask ends = split & ~found;
      blocks.end = chosen(ends, splat(double(i)), blocks.end);
      blocks.last = chosen(ends, d_i, blocks.last);
      found |= split;
      if (sign_bits(found) != (1 << L) - 1) continue;
      blocks.to = i;
      break;
    }
    return blocks;
  }
  // Calls step(from, blocks), up to kMaxSteps times for each row, while a block is left. Returns
  // the lanes that have converged, as bits.
  template <class Step> TT_INLINE uint32_t each_block(const Step& step) const {
    Mask lost = {};
    for (int64_t from = 0; from < n - 1; from++) {
      const F first = splat(double(from));
      for (int steps = 0;; steps++) {
        Blocks blocks = find_blocks(from);
        blocks.end = chosen(lost, first, blocks.end);
        const Mask busy = blocks.end > first;
        if (!any_of(busy)) break;
        if (steps == kMaxSteps) {
          lost |= busy;
          break;
        }
        step(from, blocks);
      }
    }
    return ~sign_bits(lost);
  }
};

// Eigenvalues alone, by QL steps without roots, of matrices of norm about 1: Pal, Walker and Kahan;
// Parlett, "The Symmetric Eigenvalue Problem", section 8.15; sterf of LAPACK.
struct EigenvalueLanes : TridiagonalBlocks<true> {
  // c and s are squares of cosines and sines, as e is of numbers beside the diagonal.
  TT_INLINE void step(int64_t from, const Blocks& blocks) const {
    const F one = splat(1.0);
    const F end = blocks.end;
    const Mask busy = end > splat(double(from));
    const F d_from = load(d + from * L);
    const F beside = vsqrt(chosen(busy, load(e + from * L), one));
    const F half = (load(d + (from + 1) * L) - d_from) / (beside + beside);
    const F root = vsqrt(fma(half, half, one));
    const F sigma = d_from - beside / (half + chosen(half < 0, F(-root), root));
    F gamma = blocks.last - sigma;
    F p = gamma * gamma;
    F c = one;
    F s = {};
    for (int64_t i = blocks.to - 1; i >= from; i--) {
      const Mask acts = splat(double(i)) < end;
      const Mask inner = splat(double(i + 1)) < end;
      const Mask some = p > kNegligibleSquare;  // else gamma counts as 0
      const F e_i = chosen(acts, load(e + i * L), one);
      const F d_i = load(d + i * L);
      const F p_some = chosen(some, p, F{});
      const F r = p_some + e_i;
      const F by = one / r;
      const F ratio = r / chosen(some, p, one);  // 1 / c
      store(e + (i + 1) * L, chosen(inner, F(s * r), load(e + (i + 1) * L)));
      const F c_next = p_some * by;
      const F s_next = e_i * by;
      const F gamma_next = fma(c_next, d_i - sigma, -(s_next * gamma));
      const F d_next = gamma + (d_i - gamma_next);
      store(d + (i + 1) * L, chosen(acts, d_next, load(d + (i + 1) * L)));
      const F p_next = chosen(some, F(gamma_next * gamma_next * ratio), F(c * e_i));
      p = chosen(acts, p_next, p);
      gamma = chosen(acts, gamma_next, gamma);
      c = chosen(acts, c_next, c);
      s = chosen(acts, s_next, s);
    }
    store(e + from * L, chosen(busy, F(s * p), load(e + from * L)));
    store(d + from * L, chosen(busy, F(sigma + gamma), d_from));
  }
  // Returns the lanes that have converged, as bits.
  TT_NOINLINE uint32_t find() const {
    for (int64_t i = 0; i < n - 1; i++) store(e + i * L, load(e + i * L) * load(e + i * L));
    return each_block([&](int64_t from, const Blocks& blocks)
                          TT_INLINE_BODY { step(from, blocks); });
  }
};

// z: (n, n), real, whose rows become the eigenvectors.
struct EigenvectorLanes : TridiagonalBlocks<false> {
  double *z, *turns, *place;

  // The rotations of a step, (x, y) = (c x - s y, s x + c y) for rows i and i + 1 of z, which are
  // real, from i = to - 1 down to `from`. Columns before `column` have been rotated.
  struct Turns {
    double* numbers;  // c and s of each i
    int64_t from, to, column;
  };
  // Rotates up to `count` more columns. Each row is read and written once: the one that the next
  // rotation takes, too, stays in registers.
  TT_INLINE void rotate(Turns& turns, int64_t count) const {
    const int64_t end = min(turns.column + count, n);
    each_columns<2>(end - turns.column, [&]<int kWidth>(int64_t first) TT_INLINE_BODY {
      double* row = z + (turns.to * n + turns.column + first) * L;
      F y[kWidth];
      for (int k = 0; k < kWidth; k++) y[k] = load(row + k * L);
      for (int64_t i = turns.to - 1; i >= turns.from; i--) {
        const F c = load(turns.numbers + 2 * i * L);
        const F s = load(turns.numbers + (2 * i + 1) * L);
        double* below = row;
        row -= n * L;
        for (int k = 0; k < kWidth; k++) {
          const F x = load(row + k * L);
          store(below + k * L, fma(s, x, c * y[k]));
          y[k] = fma(c, x, -(s * y[k]));
        }
      }
      for (int k = 0; k < kWidth; k++) store(row + k * L, y[k]);
    });
    turns.column = max(turns.column, end);
  }
  // Finishes the rows `from` and from + 1 of the lanes `pairs`; see Hermitian::finish.
  TT_NOINLINE void finish(int64_t from, Mask pairs, const Turns& turns_of) const {
    const F one = splat(1.0);
    const F d_from = load(d + from * L);
    const F d_next = load(d + (from + 1) * L);
    const F beside = load(e + from * L);
    const Mask turned = load(place + from * L) > load(place + (from + 1) * L);
    const Mask reversed = mirrored ? ~turned : turned;
    const F first = chosen(reversed, d_next, d_from);
    const F second = chosen(reversed, d_from, d_next);
    const F sum = first + second;
    const F apart = first - second;
    const F twice = beside + beside;
    const F root = vsqrt(fma(apart, apart, twice * twice));
    const F x = apart + chosen(apart < 0, F(-root), root);
    const F norm = vsqrt(fma(x, x, twice * twice));
    const Mask larger = size_of(x) > size_of(twice);
    const Mask negative = (larger & (x < 0)) | (~larger & (twice > 0));
    const F inverse = chosen(negative, F(-one), one) / chosen(pairs, norm, one);
    const F c = -twice * inverse;
    const F s = x * inverse;
    const Mask turns_over = ~((sum < 0) ^ (apart < 0));
    const F value = 0.5 * (sum + chosen(sum < 0, F(-root), root));
    const Mask first_larger = size_of(first) > size_of(second);
    const F most = chosen(first_larger, first, second);
    const F least = chosen(first_larger, second, first);
    const F by = one / chosen(pairs, value, one);
    const F other = take_product(beside * by, beside, most * by * least);
    store(d + from * L, chosen(pairs, chosen(reversed, other, value), d_from));
    store(d + (from + 1) * L, chosen(pairs, chosen(reversed, value, other), d_next));
    store(e + from * L, chosen(pairs, F{}, beside));
    const F sine = chosen(turns_over, c, s);
    double* const numbers = turns_of.numbers + 2 * from * L;
    store(numbers, chosen(pairs, chosen(turns_over, F(-s), c), load(numbers)));
    store(numbers + L, chosen(pairs, chosen(reversed, sine, F(-sine)), load(numbers + L)));
  }
  // A QL step on a block of each lane; see Hermitian::step. Between its numbers, each of which
  // waits for the last one, z is rotated by the step before, whose turns are `last_turns`.
  TT_INLINE void step(int64_t from, const Blocks& blocks, Turns& last_turns,
                      Turns& next_turns) const {
    const F one = splat(1.0);
    const F end = blocks.end;
    const Mask pairs = end == splat(double(from + 1));
    const Mask busy = (end > splat(double(from))) & ~pairs;
    const F beside = load(e + from * L);
    F g = (load(d + (from + 1) * L) - load(d + from * L)) / chosen(busy, F(beside + beside), one);
    const F root = vsqrt(fma(g, g, one));
    g = blocks.last - load(d + from * L) + beside / (g + chosen(g < 0, F(-root), root));
    F s = one;
    F c = one;
    F shift = {};
    Mask stopped = {};
    const int64_t columns = ceil_div(n, blocks.to - from);
    for (int64_t i = blocks.to - 1; i >= from; i--) {
      Mask acts = (splat(double(i)) < end) & ~stopped & ~pairs;
      const F e_i = load(e + i * L);
      const F d_next = load(d + (i + 1) * L);
      const F f = s * e_i;
      const F b = c * e_i;
      const F square = fma(f, f, g * g);
      // Where g is 0, r = f; a larger g has a positive cosine.
      const Mask below = ((g < 0) & (size_of(g) > size_of(f))) | ((g == 0) & (f < 0));
      const F root_of = vsqrt(square);
      const F r = chosen(below, F(-root_of), root_of);
      const Mask stops = acts & (square <= kNegligibleSquare);
      const Mask inner = acts & (splat(double(i + 1)) < end);
      store(e + (i + 1) * L, chosen(inner, r, load(e + (i + 1) * L)));
      stopped |= stops;
      acts &= ~stops;
      const F inverse = one / r;  // of lanes that do not act, any number
      const F s_next = f * inverse;
      const F c_next = g * inverse;
      const F lowered = d_next - shift;
      const F t = fma(load(d + i * L) - lowered, s_next, c_next * (b + b));
      const F shift_next = s_next * t;
      store(d + (i + 1) * L, chosen(acts, F(lowered + shift_next), chosen(stops, lowered, d_next)));
      s = chosen(acts, s_next, s);
      c = chosen(acts, c_next, c);
      shift = chosen(acts, shift_next, shift);
      g = chosen(acts, F(fma(c_next, t, -b)), g);
      store(next_turns.numbers + 2 * i * L, chosen(acts, c, one));
      store(next_turns.numbers + (2 * i + 1) * L, chosen(acts, s, F{}));
      rotate(last_turns, columns);
    }
    next_turns.from = from;
    next_turns.to = blocks.to;
    next_turns.column = 0;
    const Mask whole = busy & ~stopped;
    const F d_from = load(d + from * L);
    store(d + from * L, chosen(whole, F(d_from - shift), d_from));
    store(e + from * L, chosen(whole, g, load(e + from * L)));
    if (any_of(pairs)) finish(from, pairs, next_turns);
  }
  // Returns the lanes that have converged, as bits.
  TT_NOINLINE uint32_t diagonalise() const {
    for (int64_t i = 0; i < n; i++) {
      const F at = load(place + i * L);
      for (int64_t j = 0; j < n; j++)
        store(z + (i * n + j) * L, chosen(at == splat(double(j)), splat(1.0), F{}));
    }
    Turns last_turns = {turns, 0, 0, n};
    Turns next_turns = {turns + 2 * n * L, 0, 0, n};
    const uint32_t converged = each_block([&](int64_t from, const Blocks& blocks) TT_INLINE_BODY {
      step(from, blocks, last_turns, next_turns);
      const Turns done = last_turns;
      last_turns = next_turns;
      next_turns = done;
    });
    rotate(last_turns, n);
    return converged;
  }
};

template <class N> struct HermitianLanes : HermitianRoom<N> {
  static constexpr int64_t kStep = kPartsOf<N> * L;  // doubles of a number
  using Base = HermitianRoom<N>;
  using Base::Base;
  using Base::n, Base::a, Base::z, Base::tau, Base::p, Base::d, Base::e, Base::turns, Base::z_row;

  double* at(int64_t i, int64_t j) const { return a + (i * n + j) * kStep; }

  // Makes column k, below the diagonal, v of a reflection, whose beta is e[k]. Returns tau.
  TT_INLINE N reflect(int64_t k) const {
    const LaneReflection<N> r = reflect_lanes<N>(at(k + 1, k), n - k - 1, n * kStep);
    store(e + k * L, r.beta);
    return r.tau;
  }

  // p = factor (the block behind k) v
  TT_INLINE void multiply_block(int64_t k, N factor) const {
    for (int64_t i = k + 1; i < n; i++) put(p + i * kStep, N{});
    for (int64_t i = k + 1; i < n; i++) {
      const N v = get<N>(at(i, k));
      N sum = v * real_part(get<N>(at(i, i)));
      for (int64_t j = k + 1; j < i; j++) {
        const N x = get<N>(at(i, j));
        sum = add_product(x, get<N>(at(j, k)), sum);
        put(p + j * kStep, add_product(conj_of(x), v, get<N>(p + j * kStep)));
      }
      put(p + i * kStep, get<N>(p + i * kStep) + sum);
    }
    for (int64_t i = k + 1; i < n; i++)
      put(p + i * kStep, add_product(factor, get<N>(p + i * kStep), N{}));
  }
  // The block behind k -= v p^H + p v^H
  TT_INLINE void update_block(int64_t k, N factor) const {
    N dot = {};
    for (int64_t i = k + 1; i < n; i++)
      dot = add_product(conj_of(get<N>(p + i * kStep)), get<N>(at(i, k)), dot);
    const N half = add_product(factor, dot, N{}) * splat(-0.5);
    for (int64_t i = k + 1; i < n; i++)
      put(p + i * kStep, add_product(half, get<N>(at(i, k)), get<N>(p + i * kStep)));
    for (int64_t i = k + 1; i < n; i++) {
      const N v = get<N>(at(i, k));
      const N w = get<N>(p + i * kStep);
      for (int64_t j = k + 1; j <= i; j++) {
        const N x = take_product(v, conj_of(get<N>(p + j * kStep)), get<N>(at(i, j)));
        put(at(i, j), take_product(w, conj_of(get<N>(at(j, k))), x));
      }
    }
  }
  TT_NOINLINE void make_tridiagonal() const {
    for (int64_t k = 0; k < n; k++) {
      store(d + k * L, real_part(get<N>(at(k, k))));
      store(e + k * L, F{});
      if (k == n - 1) break;
      const N factor = reflect(k);
      put(tau + k * kStep, factor);
      multiply_block(k, factor);
      update_block(k, factor);
    }
  }

  // Applies the reflections, the last one first, to the rows of z: real eigenvectors of the
  // tridiagonal matrix become those of the matrix.
  TT_NOINLINE void make_vectors() const {
    for (int64_t i = n * n - 1; kPartsOf < N >> 1 && i >= 0; i--)
      put(z + i * kStep, from_real_lanes<N>(load(z + i * L)));
    each_columns<kPartsOf<N> == 1 ? 4 : 2>(n, [&]<int kRows>(int64_t first) TT_INLINE_BODY {
      for (int64_t k = n - 2; k >= 0; k--) {
        N dots[kRows] = {};
        for (int64_t i = k + 1; i < n; i++) {
          const N v = conj_of(get<N>(at(i, k)));
          for (int r = 0; r < kRows; r++)
            dots[r] = add_product(v, get<N>(z_row(first + r) + i * kStep), dots[r]);
        }
        const N factor = get<N>(tau + k * kStep);
        for (int r = 0; r < kRows; r++) dots[r] = add_product(factor, dots[r], N{});
        for (int64_t i = k + 1; i < n; i++) {
          const N v = get<N>(at(i, k));
          for (int r = 0; r < kRows; r++) {
            double* const to = z_row(first + r) + i * kStep;
            put(to, take_product(v, dots[r], get<N>(to)));
          }
        }
      }
    });
  }

  // Chooses the signs of the real eigenvectors (see kMostUndivided). beside: the number beside the
  // diagonal where LAPACK would divide the matrix, before QL steps.
  TT_NOINLINE void choose_signs(F beside, bool mirrored) const {
    const int64_t at = division(n, mirrored);
    const int64_t first = mirrored ? at : at - 1;  // in LAPACK's order
    const int64_t second = mirrored ? at - 1 : at;
    for (int64_t r = 0; r < n; r++) {
      double* const row = z + r * n * L;
      const F behind = load(row + second * L);
      const F sum = load(row + first * L) + chosen(beside < 0, F(-behind), behind);
      for (int64_t i = 0; i < n; i++) {
        const F x = load(row + i * L);
        store(row + i * L, chosen(sum > 0, F(-x), x));
      }
    }
  }

  // Leaves the places of rows in p. Returns the lanes that have converged, as bits.
  TT_NOINLINE uint32_t decompose(bool single, bool mirrored) const {
    make_tridiagonal();
    const bool divided = z && n > kMostUndivided;
    const F beside = divided ? load(e + (division(n, mirrored) - 1) * L) : F{};
    const TridiagonalBlocks<false> blocks = {n, d, e, split_share(single), mirrored};
    blocks.arrange(p);
    if (!z) return EigenvalueLanes{{n, d, e, blocks.share, mirrored}}.find();
    const uint32_t converged = EigenvectorLanes{blocks, z, turns, p}.diagonalise();
    if (divided) choose_signs(beside, mirrored);
    make_vectors();
    return converged;
  }

  // Sorts the values, in the order that rows had, by selection into e, as Hermitian::sort does, and
  // the places of rows as they.
  TT_NOINLINE void sort_values() const {
    for (int64_t i = 0; i < n * L; i++) e[i] = d[int64_t(p[i]) * L + i % L];
    for (int64_t i = 0; i < n - 1; i++) {
      const F value = load(e + i * L);
      const F place = load(p + i * L);
      F best = value;
      F best_place = place;
      F best_at = splat(double(i));
      for (int64_t k = i + 1; k < n; k++) {
        const Mask less = load(e + k * L) < best;
        best = chosen(less, load(e + k * L), best);
        best_place = chosen(less, load(p + k * L), best_place);
        best_at = chosen(less, splat(double(k)), best_at);
      }
      for (int64_t k = i + 1; k < n; k++) {
        const Mask here = best_at == splat(double(k));
        store(e + k * L, chosen(here, value, load(e + k * L)));
        store(p + k * L, chosen(here, place, load(p + k * L)));
      }
      store(e + i * L, best);
      store(p + i * L, best_place);
    }
  }
};

// Writes the results of the matrices from `first` on. A number of the vectors has `parts` doubles.
struct EighResults {
  const MatrixPlan& plan;
  int64_t first, parts;
  const double* values;  // (n, lanes), ascending
  const double* places;  // (n, lanes): the rows of their vectors
  const double* rows;    // (lanes, n, n): the vectors
  char* sorted;          // (n, n): room for the vectors of a matrix

  int64_t count() const { return plan.n * plan.n * parts; }

  // `by` has scaled the matrix.
  void write_values(int64_t lane, double by) const {
    double* w = plan.w + (first + lane) * plan.n;
    for (int64_t k = 0; k < plan.n; k++) w[k] = values[k * L + lane] / (by > 0 ? by : 1);
  }
  // Writes the vectors as columns, in order.
  template <class Real> TT_NOINLINE void write_vectors(Real* all, int64_t lane) const {
    const int64_t n = plan.n;
    const int64_t bytes = parts * int64_t(sizeof(Real));
    char* const to = reinterpret_cast<char*>(all + (first + lane) * count());
    for (int64_t k = 0; k < n; k++) {
      const double* row = rows + lane * count() + int64_t(places[k * L + lane]) * n * parts;
      char* element = sorted + k * n * bytes;
      int64_t step = bytes;
      if (bytes > 8) {
        element = to + k * bytes;
        step = n * bytes;
      }
      for (int64_t i = 0; i < n; i++, element += step) {
        const double* const number = row + (plan.upper ? n - 1 - i : i) * parts;
        for (int64_t part = 0; part < parts; part++) {
          const Real x = Real(number[part]);
          memcpy(element + part * int64_t(sizeof x), &x, sizeof x);
        }
      }
    }
    if (bytes == 4) transpose<uint32_t>(to, n * bytes, sorted, n * bytes, n, n);
    if (bytes == 8) transpose<uint64_t>(to, n * bytes, sorted, n * bytes, n, n);
  }
  TT_NOINLINE void write(int64_t lane, bool found, double by) const {
    const int64_t at = first + lane;
    float* const floats = reinterpret_cast<float*>(plan.b);
    plan.info[at] = found ? 0 : 1;
    if (found) {
      write_values(lane, by);
      if (plan.vectors && plan.floats) write_vectors(floats, lane);
      else if (plan.vectors) write_vectors(plan.b, lane);
      return;
    }
    fill_row(plan.w + at * plan.n, plan.n, kNan, Along());
    if (plan.vectors && plan.floats) fill_row(floats + at * count(), count(), float(kNan), Along());
    else if (plan.vectors) fill_row(plan.b + at * count(), count(), kNan, Along());
  }
};

// The matrices [first, first + used), used <= L.
template <class N> struct EighGroup {
  const MatrixPlan& plan;
  int64_t first, used;
  HermitianLanes<N> lanes;
  double by[L];

  static constexpr int64_t kParts = kPartsOf<N>;
  int64_t count() const { return lanes.n * lanes.n * kParts; }  // real numbers of a matrix

  template <class Real> void read_from(const Real* matrices) {
    if (used == L) return read_group(lanes.a, matrices, count());
    for (int64_t i = 0; i < count(); i++) {
      store(lanes.a + i * L, F{});
      for (int64_t lane = 0; lane < used; lane++)
        lanes.a[i * L + lane] = double(matrices[lane * count() + i]);
    }
  }
  // See Hermitian::mirror.
  TT_NOINLINE void mirror() const {
    double* from = lanes.a;
    double* to = lanes.at(lanes.n, 0) - lanes.kStep;
    for (; from < to; from += lanes.kStep, to -= lanes.kStep) {
      const N x = get<N>(from);
      put(from, get<N>(to));
      put(to, x);
    }
  }
  // Reads the triangles of the matrices, scaled.
  TT_NOINLINE void read() {
    const int64_t n = lanes.n;
    if (plan.floats) read_from(plan.floats + first * count());
    else read_from(plan.a + first * count());
    if (plan.upper) mirror();
    F top = {};
    F odd = {};
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j <= i; j++) {
        double* const at = lanes.at(i, j);
        N x = get<N>(at);
        if (i == j) x = from_real_lanes<N>(real_part(x));
        put(at, x);
        const F part = vmax(size_of(real_part(x)), size_of(beside_real(x)));
        top = vmax(part, top);
        odd += (real_part(x) - real_part(x)) + (beside_real(x) - beside_real(x));
      }
    double tops[L];
    double odds[L];
    store(tops, top);
    store(odds, odd);
    for (int64_t lane = 0; lane < L; lane++)
      by[lane] = odds[lane] != 0 ? odds[lane] : scale_of(Team(), tops + lane, 1);
    const F factor = load(by);
    const Mask scales = factor > 0;
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j <= i; j++) {
        const N x = get<N>(lanes.at(i, j)) * factor;
        put(lanes.at(i, j), chosen_lanes(scales, x, N{}));
      }
  }

  void run() {
    read();
    const uint32_t converged = lanes.decompose(plan.single, plan.upper);
    lanes.sort_values();
    if (plan.vectors) write_group(lanes.a, lanes.z, count());
    const EighResults results = {.plan = plan,
                                 .first = first,
                                 .parts = kParts,
                                 .values = lanes.e,
                                 .places = lanes.p,
                                 .rows = lanes.a,
                                 .sorted = reinterpret_cast<char*>(lanes.z)};
    for (int64_t lane = 0; lane < used; lane++)
      results.write(lane, (converged >> lane & 1) && by[lane] >= 0, by[lane]);
  }
};

template <class N>
TT_NOINLINE void decompose_groups(const MatrixPlan& p, int64_t begin, int64_t end, double* room) {
  for (int64_t i = begin; i < end; i += L)
    EighGroup<N>{p, i, min(L, end - i), HermitianLanes<N>(room, p.n, p.vectors), {}}.run();
}

TT_INLINE void decompose_small(const MatrixPlan& p, int64_t begin, int64_t end, double* room) {
  if (p.complex) decompose_groups<C>(p, begin, end, room);
  else decompose_groups<F>(p, begin, end, room);
}
TT_INLINE uint32_t decompose_lanes(double* room, int64_t n, bool complex, bool vectors) {
  if (complex) return HermitianLanes<C>(room, n, vectors).decompose(false, false);
  return HermitianLanes<F>(room, n, vectors).decompose(false, false);
}
#else
// Without lanes, one by one; float32 ones in double precision.
TT_INLINE void decompose_small(const MatrixPlan& p, int64_t begin, int64_t end, double* room) {
  const int64_t count = p.n * p.n * (p.complex ? 2 : 1);
  for (int64_t i = begin; i < end; i++) {
    MatrixPlan one = p;
    one.a = p.floats ? room : p.a + i * count;
    one.b = room + count;
    if (!p.floats) one.b = p.b + i * count;
    one.work = room + (p.vectors ? 2 : 1) * count;
    one.w = p.w + i * p.n;
    one.info = p.info + i;
    if (p.floats) convert_floats(one.a, p.floats + i * count, count);
    each_matrix<Eigh>(&one, 0, 1);
    if (p.floats && p.vectors)
      convert_doubles(reinterpret_cast<float*>(p.b) + i * count, one.b, count);
  }
}
TT_INLINE uint32_t decompose_lanes(double*, int64_t, bool, bool) { return 0; }
#endif

TT_ISA_END

TT_ENTRY_BEGIN

uint32_t eigh_lanes(double* room, int64_t n, bool complex, bool vectors) noexcept {
  return decompose_lanes(room, n, complex, vectors);
}
TT_KERNEL(eigh)(const void* plan, int64_t begin, int64_t end) noexcept {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (!p.rooms.bytes) return each_matrix<Eigh>(plan, begin, end);
  const Room room(p.rooms);
  decompose_small(p, begin, end, room.as<double>());
  return TT_OK;
}

TT_ENTRY_END
