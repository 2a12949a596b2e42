// The secular equation of divide and conquer,
//
//   f(x) = 1 + sum of z_i^2 / (p_i - x) = 0
//
// one root per lane of a vector. Root j lies between poles j and j + 1; its distance x from the
// nearer one, `near`, is what is computed, so that differences p_i - root are accurate. Two poles
// interpolate f by c + s / (near - x) + r / (far - x): R.-C. Li, "Solving Secular Equations Stably
// and Efficiently" (LAPACK Working Note 89, 1993). Weights that make computed roots exact ones, and
// so vectors orthogonal: Gu & Eisenstat, SIAM J. Matrix Anal. Appl. 15 (1994) and 16 (1995).
#include "kernels/cpu/simd/isa.h"

#include "kernels/cpu/simd/vec.h"
#include "plan/panels.h"

TT_ISA_BEGIN

constexpr int64_t L = kLanes<double>;
constexpr int kMaxSteps = 80;  // four are usual
using F = Vec<double>;
using Mask = decltype(F{} < F{});

TT_INLINE F size_of(F x) { return vmax(x, -x); }

// Pole i beside a pole of each lane: d_i - d, or d_i^2 - d^2.
struct Distances {
  F from, base;
  double by;
  TT_INLINE Distances(const Secular& p, F d)
      : from(d), base(p.squares ? d : splat(1.0)), by(p.squares ? 1 : 0) {}
  TT_INLINE F to(F d) const { return (d - from) * fma(d, splat(by), base); }
};

// The sums of z_i^2 / (p_i - x) up to pole j (psi) and behind it (phi), and their derivatives.
struct Sums {
  F psi = {}, psi_slope = {}, phi = {}, phi_slope = {};
  F partial = {};  // the absolute values of all partial sums: a measure of rounding
};
// Sums for the lanes j, which begin at `at`, without `skipped` poles on either side of the root.
TT_INLINE Sums sum_terms(const Secular& p, int64_t at, F j, double skipped, const Distances& poles,
                         F shift) {
  Sums s;
  const auto term = [&](int64_t i) { return splat(p.z[i]) / (poles.to(splat(p.d[i])) - shift); };
  const auto below = [&](int64_t i, F t) {
    s.psi = fma(t, splat(p.z[i]), s.psi);
    s.psi_slope = fma(t, t, s.psi_slope);
    s.partial -= s.psi;
  };
  const auto above = [&](int64_t i, F t) {
    s.phi = fma(t, splat(p.z[i]), s.phi);
    s.phi_slope = fma(t, t, s.phi_slope);
    s.partial += s.phi;
  };
  int64_t i = 0;
  for (; i < at; i++) below(i, term(i));
  for (; i < min(at + L, p.k); i++)
    below(i, chosen(splat(double(i)) <= j - skipped, F(term(i)), F{}));
  for (i = p.k - 1; i > at + L; i--) above(i, term(i));
  for (; i > at; i--) above(i, chosen(splat(double(i)) > j + skipped, F(term(i)), F{}));
  return s;
}

// The smaller root of c x^2 - a x + b, in size, if a > 0, or that of the other sign.
TT_INLINE F quadratic_root(F a, F b, F c) {
  const F root = vsqrt(size_of(a * a - 4 * b * c));
  return chosen(a > 0, F(2 * b / (a + root)), F((a - root) / (2 * c)));
}

// The poles j and j + 1 beside the roots of a group, and their weights z^2. Lanes behind the last
// root repeat it.
struct Poles {
  F j, d, next, weight, next_weight;
  F last_gap;  // of the last root, which has no next pole; else 0

  // total: the sum of all weights. The last root is at most `total` above its pole.
  TT_INLINE Poles(const Secular& p, int64_t at, double total) {
    double js[L], ds[L], nexts[L], weights[L], next_weights[L], last_gaps[L];
    for (int64_t l = 0; l < L; l++) {
      const int64_t k = min(at + l, p.k - 1);
      const int64_t k_next = min(k + 1, p.k - 1);
      js[l] = double(k);
      ds[l] = p.d[k];
      nexts[l] = p.d[k_next];
      weights[l] = p.z[k] * p.z[k];
      next_weights[l] = k_next > k ? p.z[k_next] * p.z[k_next] : 0;
      last_gaps[l] = k_next > k ? 0 : 2 * total;
    }
    j = load(js);
    d = load(ds);
    next = load(nexts);
    weight = load(weights);
    next_weight = load(next_weights);
    last_gap = load(last_gaps);
  }
};

// Roots [at, at + L), as far as there are.
TT_NOINLINE void solve_group(const Secular& p, int64_t at, double total) {
  const Poles poles(p, at, total);
  const F j = poles.j;
  const F last_gap = poles.last_gap;
  const Distances from_d(p, poles.d);
  const F gap = from_d.to(poles.next) + last_gap;
  F high = gap * 0.5;
  F low = {};
  // The value in the middle tells which pole is nearer; the nearest two decide about the start.
  Sums s = sum_terms(p, at, j, 1, from_d, high);
  F c = 1 + (s.psi + s.phi);
  const Mask first = (c + 2 * (poles.next_weight - poles.weight) / gap >= 0) | (last_gap > 0);
  const F sign = chosen(first, splat(1.0), splat(-1.0));
  const F near = chosen(first, poles.d, poles.next);
  const F near_weight = chosen(first, poles.weight, poles.next_weight);
  c *= sign;
  // From here on x > 0 is the distance from `near`, and the equation sign f = 0 ascends with it.
  F x = quadratic_root(fma(c, gap, poles.weight + poles.next_weight), near_weight * gap, c);
  high = chosen(last_gap > 0, F(high * (1 + 0x1p-50)), high);
  x = chosen((x > low) & (x <= high), x, F(high * 0.5));
  const Distances from_near(p, near);
  Mask done = {};
  Mask middle = {};
  F before = splat(0x1p1000);
  // Both ways converge quadratically: after a relative step of s, the error is about s^2.
  const F last_step = vsqrt(splat(p.tolerance)) * 0.125;
  for (int step = 0; step < kMaxSteps; step++) {
    s = sum_terms(p, at, j, 0, from_near, sign * x);
    const F w = sign * (1 + (s.psi + s.phi));
    const F slope = s.psi_slope + s.phi_slope;
    const F size = size_of(w);
    const F rounding = 8 * (s.phi - s.psi) + s.partial + 2 + x * slope;
    low = chosen(w < 0, x, low);
    high = chosen(w < 0, high, x);
    done |= (size <= p.tolerance * rounding) | (high - low <= 0x1p-52 * high);
    if (sign_bits(done) == (1 << L) - 1) break;
    // Li's "fixed weight", and his "middle way" while the former gains less than a digit.
    middle = chosen(10 * size > before, Mask(~middle), middle);
    before = size;
    const F far = gap - x;
    const F near_slope = chosen(first, s.psi_slope, s.phi_slope);
    const F far_slope = chosen(first, s.phi_slope, s.psi_slope);
    const F fixed = fma(-far, slope, w) + gap * (near_weight / x / x);
    c = chosen(middle, F(w + x * near_slope - far * far_slope), fixed);
    F moved = x + quadratic_root(fma(far - x, w, x * far * slope), -x * far * w, c);
    moved = chosen((moved > low) & (moved < high), moved, F((low + high) * 0.5));
    const Mask is_last = size_of(moved - x) <= last_step * x;
    x = chosen(done, x, moved);
    done |= is_last;
    if (sign_bits(done) == (1 << L) - 1) break;
  }
  store(p.near + at, near);
  store(p.shift + at, sign * x);
}

// z_i^2 = product of (root j - p_i) / product of (p_j - p_i) over j != i, of elements [at, at + L)
TT_NOINLINE F weights_of(const Secular& p, int64_t at) {
  constexpr int64_t kTogether = 4;
  const F d = load(p.d + at);
  F product = splat(1.0);
  for (int64_t j = 0; j < p.k; j += kTogether) {
    F over = splat(1.0);
    F under = splat(1.0);
    for (int64_t r = j; r < min(j + kTogether, p.k); r++) {
      over *= Distances(p, splat(p.near[r])).to(d) - splat(p.shift[r]);
      const F apart = Distances(p, splat(p.d[r])).to(d);
      under *= chosen(apart == 0, splat(-1.0), apart);
    }
    product *= over / under;
  }
  const F z = load(p.z + at);
  const F root = vsqrt(size_of(product));
  return chosen(z < 0, F(-root), root);
}

template <class T> TT_INLINE void store_numbers(T* p, F x) {
  if constexpr (sizeof(T) == 4) store_as_float(p, x);
  else store(p, x);
}

template <class T> void make_vectors(const SecularVectors<T>& v) {
  const Secular& p = *v.of;
  for (int64_t j = 0; j < p.k; j++) {
    const Distances poles(p, splat(p.near[j]));
    const F shift = splat(p.shift[j]);
    F squares = {};
    for (int64_t i = 0; i < p.k; i += L) {
      const F d = load(p.d + i);
      F x = load(p.z + i) / (poles.to(d) - shift);
      if (v.left) x = chosen(d == 0, splat(-1.0), F(d * x));
      squares = fma(x, x, squares);
      store(v.work + i, x);
    }
    double sum[2];
    fold_lanes<double, L>(squares, sum, [](auto x, auto y) { return x + y; });
    const F by = splat(1 / libm::sqrt(sum[0] + sum[1]));
    for (int64_t i = 0; i < p.k; i += L)
      store_numbers(v.rows + j * v.row + i, load(v.work + i) * by);
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

void secular_roots(const Secular& p) noexcept {
  double total = 0;
  for (int64_t i = 0; i < p.k; i++) total += p.z[i] * p.z[i];
  for (int64_t at = 0; at < p.k; at += L) solve_group(p, at, total);
}
void secular_weights(const Secular& p, double* z) noexcept {
  for (int64_t at = 0; at < p.k; at += L) store(z + at, weights_of(p, at));
}
void secular_vectors(const SecularVectors<float>& p) noexcept { make_vectors(p); }
void secular_vectors(const SecularVectors<double>& p) noexcept { make_vectors(p); }

TT_ENTRY_END
