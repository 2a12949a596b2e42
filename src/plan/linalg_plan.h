// Plans of matrix decompositions. POD, also device code.
#pragma once

#include "plan/cuda_math.h"
#include "plan/rooms.h"
#include "plan/stages.h"

namespace TT_NS {

// Doubles of a matrix: of eigh's work, and of its rooms.
TT_INLINE constexpr int64_t eigh_work(int64_t n, bool complex) { return (complex ? 6 : 3) * n; }
TT_INLINE constexpr int64_t eigh_lanes_work(int64_t n, bool complex, bool vectors) {
  const int64_t parts = complex ? 2 : 1;
  const int64_t of_vectors = vectors ? parts * n * n + 4 * n : 0;
  return parts * n * n + 2 * parts * n + 2 * n + of_vectors;
}

// A = U diag(s) V^H for each of `batch` matrices A of m rows and n <= m columns, in f64 or, as
// pairs of doubles, c128. If A has nan or inf, the results are all nan. Units: matrices. With
// rooms, of svd_room_bytes(), the CPU decomposes matrices in groups of up to kSvdGroup; the grain
// is a multiple of it, so that groups do not depend on the number of threads.
struct SvdPlan {
  Stages run;
  bool complex;
  bool vectors;  // false: only s is wanted, and w and v have any numbers
  bool single;   // the results are to be as accurate as float32, or complex64, only
  int64_t m, n;
  double* w;  // [batch][n][m]: columns of A, replaced by those of U
  double* v;  // [batch][n][n]: columns of V
  double* s;  // [batch][n]: not negative, in descending order
  Rooms rooms;
};
// A column of V has the sign for which the first element whose square is more than this share of
// the largest one's is positive: kernels that round differently then give the same signs.
constexpr double kSvdLargeSquare = 0.4;
constexpr int64_t kSvdGroup = 8;
constexpr int64_t kSvdFewest = 3;  // in a group: fewer are decomposed one by one
// 0 where groups do not pay.
inline int64_t svd_room_bytes(const SvdPlan& p, int64_t batch) {
  constexpr int64_t kMost = 256 << 10;
  constexpr int64_t kItemBytes = kSvdGroup * int64_t(sizeof(double));
  if (batch < kSvdFewest || p.m > kMost || p.n > kMost) return 0;
  const int64_t parts = p.complex ? 2 : 1;
  const int64_t numbers = parts * p.n * (p.m + p.n);
  if (numbers * kItemBytes > kMost) return 0;
  const int64_t of_gram = p.single ? eigh_lanes_work(p.n, p.complex, true) : 0;
  const int64_t of_bidiagonal = p.vectors ? 0 : parts * p.m + 5 * p.n;
  return kItemBytes * (numbers + of_gram + of_bidiagonal);
}

// One dense algorithm on each of `batch` matrices, in f64 or, as pairs of doubles, c128. Matrices
// are row-major and dense, so that the rows of a matrix of n columns are n elements apart. What the
// pointers and flags mean is said at the head of each kernel. Units: matrices.
//
// With rooms the CPU computes up to kMatrixGroup matrices at once; the grain is then a multiple of
// kMatrixGroup, so that groups do not depend on the number of threads. With rooms, cholesky,
// lu_factor (without det) and eigh also take float32 or complex64 matrices, which they compute in
// double precision, and lu_factor, if b is not NULL, also replaces b, (n, k), of the same dtype, by
// the solution of A X = b. householder_qr with rooms and vectors reads such a, and writes Q, of
// min(m, n) columns, to b and R, of as many rows, to w, in the dtype of a.
constexpr int64_t kMatrixGroup = 8;
struct MatrixPlan {
  Stages run;
  bool complex;
  bool upper;     // which triangle is read
  bool unit;      // solve_triangular: the diagonal is 1; lu_factor: b becomes the inverse of a, and
                  // a any numbers
  bool adjoint;   // lu_solve: solve with the conjugate transpose; ldl: Hermitian, not symmetric
  bool vectors;   // eigh, eig: compute the eigenvectors; householder_qr: Q
  bool single;    // eigh: results need only the accuracy of float32
  bool real;      // eig: the elements of the matrices are real
  uint16_t math;  // bits of CudaMath
  int64_t m, n, k;
  double* a;
  const float* floats;  // NULL, or the matrices; results, in a, b or w, are float32 then
  double* b;
  double* work;  // `work_size` doubles for each matrix
  int64_t work_size;
  double* w;  // real results
  double* det;
  int32_t* pivots;
  int32_t* info;
  Rooms rooms;
};

}  // namespace TT_NS
