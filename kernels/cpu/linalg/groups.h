// Groups of matrices: as many at once as a vector of doubles has lanes, one in each. Every matrix
// gets the bits that it gets by itself. A number of each is F or, if they are complex, C.
#pragma once

#include "base/arith.h"
#include "kernels/cpu/linalg/dense.h"
#include "kernels/cpu/simd/room.h"
#include "kernels/cpu/simd/vec.h"

TT_ENTRY_BEGIN

#if TT_VEC_BYTES > 16
// Transposes contiguous arrays of `count` numbers, one for each lane of a vector: the i-th vector
// of doubles of room has the i-th number of each array. write_group is the inverse.
void read_group(void* room, const double* from, int64_t count) noexcept;
void read_group(void* room, const float* from, int64_t count) noexcept;
void write_group(double* to, const void* room, int64_t count) noexcept;
void write_group(float* to, const void* room, int64_t count) noexcept;
#endif
void convert_floats(double* to, const float* from, int64_t n) noexcept;
void convert_doubles(float* to, const double* from, int64_t n) noexcept;

TT_ENTRY_END

TT_ISA_BEGIN

// Where a plan that reads matrices of floats has its results.
TT_INLINE float* float_results(const MatrixPlan& p) { return reinterpret_cast<float*>(p.a); }

#if TT_VEC_BYTES > 16
constexpr int64_t L = kLanes<double>;
using F = Vec<double>;  // a number of each matrix
using Mask = decltype(F{} < F{});

struct C {
  F re, im;
};

TT_INLINE C operator+(C x, C y) { return {x.re + y.re, x.im + y.im}; }
TT_INLINE C operator-(C x, C y) { return {x.re - y.re, x.im - y.im}; }
TT_INLINE C operator*(C x, F y) { return {x.re * y, x.im * y}; }
TT_INLINE C operator*(C x, C y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
// z - x y, with the bits of numbers' (dense.h)
TT_INLINE F take_product(F x, F y, F z) { return fma(-x, y, z); }
TT_INLINE C take_product(C x, C y, C z) {
  return {fma(-x.re, y.re, fma(x.im, y.im, z.re)), fma(-x.re, y.im, fma(-x.im, y.re, z.im))};
}
TT_INLINE F conj_of(F x) { return x; }
TT_INLINE C conj_of(C x) { return {x.re, -x.im}; }
TT_INLINE F real_part(F x) { return x; }
TT_INLINE F real_part(C x) { return x.re; }
TT_INLINE F size_of(F x) { return vmax(x, -x); }
TT_INLINE F size_of(C x) { return size_of(x.re) + size_of(x.im); }
TT_INLINE C chosen(Mask m, C x, C y) { return {chosen(m, x.re, y.re), chosen(m, x.im, y.im)}; }
TT_INLINE F inverse_of(F x) { return splat(1.0) / x; }
// 1 / x as operator/ divides numbers.
inline TT_NOINLINE C inverse_of(C x) {
  const Mask real_larger = size_of(x.re) >= size_of(x.im);
  const F big = chosen(real_larger, x.re, x.im);
  const F small = chosen(real_larger, x.im, x.re);
  const F one = chosen(real_larger, splat(1.0), F{});
  const F other = chosen(real_larger, F{}, splat(1.0));
  const F ratio = chosen(big == 0, small, F(small / big));
  const F scale = splat(1.0) / (big + small * ratio);
  const F im = (other - one * ratio) * scale;
  return {(one + other * ratio) * scale, chosen(real_larger, im, F(-im))};
}
template <class N> constexpr int64_t kPartsOf = int64_t(sizeof(N) / sizeof(F));
template <class N> TT_INLINE N from_real_lanes(F x) {
  if constexpr (kPartsOf<N> == 2) return {x, F{}};
  else return x;
}

TT_INLINE F larger_or_nan(F x, F y) { return chosen((y > x) | (y != y), y, x); }
TT_INLINE bool any_of(Mask m) { return sign_bits(m) != 0; }

// Reads the arrays of `count` numbers of a plan's matrices from `first` on; writes them back.
template <class N>
TT_INLINE void read_numbers(N* room, const double* of, int64_t first, int64_t count) {
  const int64_t parts = count * kPartsOf<N>;
  read_group(room, of + first * parts, parts);
}
template <class N>
TT_INLINE void write_numbers(double* of, int64_t first, const N* room, int64_t count) {
  const int64_t parts = count * kPartsOf<N>;
  write_group(of + first * parts, room, parts);
}
template <class N> TT_INLINE void read_matrices(N* room, const MatrixPlan& p, int64_t first) {
  const int64_t parts = p.m * p.n * kPartsOf<N>;
  if (p.floats) read_group(room, p.floats + first * parts, parts);
  else read_numbers(room, p.a, first, p.m * p.n);
}
// Writes `count` numbers of each matrix to `of`, which has floats where the plan's matrices are.
template <class N> TT_INLINE void write_results(const MatrixPlan& p, double* of, int64_t first,
                                                const N* room, int64_t count) {
  const int64_t parts = count * kPartsOf<N>;
  if (p.floats) write_group(reinterpret_cast<float*>(of) + first * parts, room, parts);
  else write_numbers(of, first, room, count);
}
template <class N>
TT_INLINE void write_matrices(const MatrixPlan& p, int64_t first, const N* room) {
  write_results(p, p.a, first, room, p.m * p.n);
}

// Calls f(first, width) for n columns, `width` at a time, then `width` / kShrink of what is left; f
// keeps a number of each in registers.
template <int kWidth = 8, int kShrink = 2, class Run>
TT_INLINE void each_columns(int64_t n, const Run& f) {
  int64_t at = 0;
  for (; at + kWidth <= n; at += kWidth) f.template operator()<kWidth>(at);
  if constexpr (kWidth > 1) {
    const int64_t rest = n - at;
    each_columns<kWidth / kShrink, kShrink>(
        rest, [&]<int kRest>(int64_t i) TT_INLINE_BODY { f.template operator()<kRest>(at + i); });
  }
}
template <class N> constexpr int kColumns = kPartsOf<N> == 2 ? int(L) / 2 : 8;
template <class N> constexpr int kShrink = kPartsOf<N> == 2 ? kColumns<N> : 2;

// Row i of b, of k columns, less the sum of a[j] times row j over j in [from, to).
template <class N>
TT_ONE_BODY void subtract_rows(N* b, int64_t i, const N* a, int64_t from, int64_t to, int64_t k) {
  if (k == 1) {
    N sum = {};
    for (int64_t j = from; j < to; j++) sum = sum + a[j] * b[j];
    b[i] = b[i] - sum;
    return;
  }
  each_columns<kColumns<N>, kShrink<N>>(k, [&]<int kWidth>(int64_t at) TT_INLINE_BODY {
    N sums[kWidth];
    for (int c = 0; c < kWidth; c++) sums[c] = b[i * k + at + c];
    for (int64_t j = from; j < to; j++)
      for (int c = 0; c < kWidth; c++) sums[c] = take_product(a[j], b[j * k + at + c], sums[c]);
    for (int c = 0; c < kWidth; c++) b[i * k + at + c] = sums[c];
  });
}
#endif

// The identity in each lane, (m, n).
template <class N> TT_INLINE void set_identities(N* a, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) a[i * n + j] = from_real_lanes<N>(splat(i == j ? 1.0 : 0.0));
}

// Computes matrices one by one; those of floats in double precision, in `room`.
template <class Group, class One>
TT_NOINLINE int32_t run_singly(const MatrixPlan& p, int64_t begin, int64_t end, double* room) {
  if constexpr (!Group::kReadsFloats) return each_matrix<One>(&p, begin, end);
  MatrixPlan one = {};
  one.upper = p.upper;
  one.m = p.m;
  one.n = p.n;
  one.a = room;
  one.complex = p.complex;
  one.unit = p.unit;
  one.k = p.k;
  const int64_t parts = p.complex ? 2 : 1;
  const int64_t count = p.m * p.n * parts;
  const int64_t count_b = p.n * p.k * parts;
  float* const floats_b = reinterpret_cast<float*>(p.b);
  for (int64_t i = begin; i < end; i++) {
    if (p.floats) {
      convert_floats(room, p.floats + i * count, count);
      if (p.pivots) one.pivots = p.pivots + i * min(p.m, p.n);
      one.info = p.info + i;
      if (p.b) one.b = room + count;
      if (p.b && !p.unit) convert_floats(one.b, floats_b + i * count_b, count_b);
    }
    const int64_t at = p.floats ? 0 : i;
    each_matrix<One>(p.floats ? &one : &p, at, at + 1);
    if (!p.floats) continue;
    if (!p.unit) convert_doubles(float_results(p) + i * count, room, count);
    if (p.b) convert_doubles(floats_b + i * count_b, one.b, count_b);
  }
  return TT_OK;
}

// Computes the matrices of [begin, end), in groups while L are left, by Group::run(plan, first,
// room), which returns false for a group that is to be computed one by one. That group is then as
// it was, but for pivots.
template <class Group, class One>
TT_INLINE int32_t in_groups(const void* plan, int64_t begin, int64_t end) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (!p.rooms.bytes) return run_singly<Group, One>(p, begin, end, nullptr);
  const Room room(p.rooms);
  int64_t i = begin;
#if TT_VEC_BYTES > 16
  for (; i + L <= end; i += L) {
    bool done;
    if (!p.complex) done = Group::run(p, i, room.as<F>());
    else done = Group::run(p, i, room.as<C>());
    if (!done) run_singly<Group, One>(p, i, i + L, room.as<double>());
  }
#endif
  return run_singly<Group, One>(p, i, end, room.as<double>());
}

TT_ISA_END
