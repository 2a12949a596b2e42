// Small matrices, one in each lane of a vector: their numbers, real or complex, and eigh's room.
#pragma once

#include "kernels/functors/linalg/dense.h"

#include "kernels/cpu/linalg/groups.h"

TT_ISA_BEGIN

#if TT_VEC_BYTES > 16
TT_INLINE F beside_real(F) { return F{}; }
TT_INLINE F beside_real(C x) { return x.im; }
TT_INLINE F square_of(F x) { return x * x; }
TT_INLINE F square_of(C x) { return fma(x.re, x.re, x.im * x.im); }
// x y + z
TT_INLINE F add_product(F x, F y, F z) { return fma(x, y, z); }
TT_INLINE C add_product(C x, C y, C z) {
  return {fma(x.re, y.re, fma(-x.im, y.im, z.re)), fma(x.re, y.im, fma(x.im, y.re, z.im))};
}

TT_INLINE F chosen_lanes(Mask m, F x, F y) { return chosen(m, x, y); }
TT_INLINE C chosen_lanes(Mask m, C x, C y) {
  return {chosen(m, x.re, y.re), chosen(m, x.im, y.im)};
}

template <class N> TT_INLINE N get(const double* p) {
  if constexpr (kPartsOf<N> == 2) return {load(p), load(p + L)};
  else return load(p);
}
template <class N> TT_INLINE void put(double* p, N x) {
  if constexpr (kPartsOf<N> == 2) {
    store(p, x.re);
    store(p + L, x.im);
  } else {
    store(p, x);
  }
}
// Reverses the order of rows of real numbers in some lanes.
TT_INLINE void reverse_rows(double* rows, int64_t count, Mask reversed) {
  for (int64_t i = 0, j = count - 1; i < j; i++, j--) {
    const F x = load(rows + i * L);
    const F y = load(rows + j * L);
    store(rows + i * L, chosen(reversed, y, x));
    store(rows + j * L, chosen(reversed, x, y));
  }
}

template <bool kComplex> struct LaneNumber { using Type = F; };
template <> struct LaneNumber<true> { using Type = C; };

// A reflection H = I - tau v v^H, for which H^H x is (beta, 0, …), beta real.
template <class N> struct LaneReflection {
  N tau;
  F beta;
};
// Makes the n numbers x, `step` doubles apart, v of their reflection.
template <class N> TT_INLINE LaneReflection<N> reflect_lanes(double* x, int64_t n, int64_t step) {
  const N alpha = get<N>(x);
  F rest = size_of(beside_real(alpha));
  for (int64_t i = 1; i < n; i++) {
    const N y = get<N>(x + i * step);
    rest = vmax(vmax(size_of(real_part(y)), size_of(beside_real(y))), rest);
  }
  const Mask none = rest <= kNegligible;
  const F one = splat(1.0);
  const F top = chosen(none, one, vmax(size_of(real_part(alpha)), rest));
  const F by = chosen(none, F{}, F(one / top));
  F sum = square_of(alpha * by);
  for (int64_t i = 1; i < n; i++) sum += square_of(get<N>(x + i * step) * by);
  const F norm = chosen(none, one, vsqrt(sum));
  const F beta = chosen(real_part(alpha) < 0, norm, F(-norm));
  const N apart = alpha * by - from_real_lanes<N>(beta);
  const N factor = conj_of(apart) * (by / square_of(apart));  // by / apart
  for (int64_t i = 1; i < n; i++) put(x + i * step, add_product(get<N>(x + i * step), factor, N{}));
  put(x, from_real_lanes<N>(one));
  return {apart * chosen(none, F{}, F(-one / beta)), chosen(none, real_part(alpha), F(beta * top))};
}

// What eigh has of a group of matrices, for each lane:
//
//   a: (n, n), the lower triangles; reflector k is left in column k, below the diagonal
//   z: (n, n), if vectors are wanted: rows that become the eigenvectors
//   tau, p: (n)    d, e: (n), real; d becomes the eigenvalues
//   turns: two of (n, 2), real, if vectors are wanted: the rotations of two QL steps
//
// A number is a vector, a complex one its real and its imaginary part.
template <class N> struct HermitianRoom {
  int64_t n;
  double *a, *z, *tau, *p, *d, *e, *turns;

  HermitianRoom(double* room, int64_t size, bool vectors) : n(size), a(room) {
    constexpr int64_t kStep = kPartsOf<N> * L;
    z = vectors ? a + n * n * kStep : nullptr;
    tau = a + (vectors ? 2 : 1) * n * n * kStep;
    p = tau + n * kStep;
    d = p + n * kStep;
    e = d + n * L;
    turns = e + n * L;
  }
  double* z_row(int64_t i) const { return z + i * n * kPartsOf<N> * L; }
};
#endif

TT_ISA_END
