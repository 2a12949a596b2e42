// Divide and conquer for the condensed problems of eigenvalues and singular values, over tt's own
// products: Cuppen, Numer. Math. 36 (1981); Gu & Eisenstat, SIAM J. Matrix Anal. Appl. 16 (1995),
// pages 79 and 172. Values are double, vectors are T.
#pragma once

#include "plan/panels.h"

namespace TT_NS {

// kernels/cpu/linalg/secular.cpp
template <class T> struct SecularKernels {
  void (*roots)(const Secular& p) noexcept;
  void (*weights)(const Secular& p, double* z) noexcept;
  void (*vectors)(const SecularVectors<T>& p) noexcept;
};

// Rows of vectors, `row` numbers apart.
template <class T> struct Basis {
  T* data;
  int64_t row;
  T* at(int64_t i, int64_t j) const { return data + i * row + j; }
};

// Decomposes the symmetric tridiagonal matrix of diagonal d and off-diagonal e: d becomes the
// eigenvalues, ascending, and row i of v, which are zeros, eigenvector i.
template <class T>
void divide_eigh(const SecularKernels<T>& kernels, int64_t n, T* d, const T* e, const Basis<T>& v);
// Decomposes the upper bidiagonal matrix of d and e as u^T diag(d) v: d becomes the singular
// values, descending, and rows i of u and v, which are zeros, their vectors.
template <class T> void divide_svd(const SecularKernels<T>& kernels, int64_t n, T* d, const T* e,
                                   const Basis<T>& u, const Basis<T>& v);

}  // namespace TT_NS
