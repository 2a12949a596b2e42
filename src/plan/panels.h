// Steps of algorithms on large matrices: panels of columns, and the secular equations of divide and
// conquer. Numbers N are real or complex, T real. PODs. CPU only.
#pragma once

#include "base/arith.h"
#include "plan/number.h"

namespace TT_NS {

// Factors columns [at, at + width) of a, from row `at` on. Rows of a begin at multiples of 64
// bytes, which whole vectors end; so do those of `panel`, (width, height), height >= m.
//   lu_panel  exchanges rows of all of a, writes the panel's factors and its rows of U
//   qr_panel  writes the panel's R and reflections; panel: V, whose ends are 0
template <class N> struct Panel {
  int64_t m, n;
  int64_t at, width;
  N* a;
  int64_t row;
  N* panel;
  int64_t height;
  N* x;  // 2 * width numbers
  int32_t *pivots, *info;
  N* tau;
};

// Replaces the rows of b (n, k), whose rows are as those above, by the solution of a X = b for a
// triangular a of few rows.
template <class N> struct SolveRows {
  int64_t n, k;
  const N* a;
  int64_t a_row, a_column;
  N* b;
  int64_t row;
  bool lower, unit;
  N* x;  // n numbers
};

// A step of the reduction of a matrix to a condensed form: `width` columns are reduced and the
// panels of an update of the rest are computed (Dongarra, Sorensen & Hammarling, "Block Reduction
// of Matrices to Condensed Forms for Eigenvalue Computations", 1989). Rows begin at multiples of 64
// bytes, and their ends are 0. Panel i of `width` rows begins at panel + i * width * row. A
// reflection is I - tau v v^H, whose adjoint is applied from the left; its v has zeros before the
// column that it leaves, where it is 1.
template <class N> struct Condense {
  int64_t m, n;       // the rows and columns of a; tridiagonal: equal
  int64_t at, width;  // the columns
  N* a;               // tridiagonal: of which the triangle right of the diagonal is used
  int64_t row;        // of a and `right`, at least n
  int64_t height;     // the length of the rows of `left`, at least m
  // bidiagonal, real: V and X in `left`, Y and U in `right`: a -= V^T Y + X^T U.
  // tridiagonal: V, W, conj W and conj V in `right`: a -= V^T conj W + W^T conj V
  N *left, *right;
  RealOf<N>*d, *e;  // the diagonal and what is beside it
  N *tau, *tau_u;   // of the reflections from the left and from the right
  N* x;             // `width` + `width` numbers, whole vectors each
};

// The roots x of 1 + sum of z_i^2 / (p_i - x) = 0, one above each pole p_i and below the next, and
// vectors made of them. The poles ascend: d_i, or d_i^2 of d_i >= 0 with `squares`. Numbers are
// about 1 at most. Arrays have whole vectors of 64 bytes; after k elements d is kBeyondPoles and z
// is 0.
constexpr double kBeyondPoles = 16;
struct Secular {
  int64_t k;
  bool squares;
  double tolerance;  // of an equation's value beside the sizes of its terms
  const double *d, *z;
  double *near, *shift;  // root j is near[j] + shift[j], or near[j]^2 + shift[j]
};

// Row j of `rows`, of unit length, has z_i / (p_i - root j); `left` of squares, that times d_i, and
// -1 where d_i is 0.
template <class T> struct SecularVectors {
  const Secular* of;  // d and z in any order, the same for both
  bool left;
  T* rows;
  int64_t row;   // at least k, whole vectors
  double* work;  // k numbers, whole vectors
};

}  // namespace TT_NS
