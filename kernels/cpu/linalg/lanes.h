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
template <bool kComplex> struct LaneNumber { using Type = F; };
template <> struct LaneNumber<true> { using Type = C; };

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
