// LAPACK of OpenBLAS, opened by the first decomposition of a large matrix. Matrices are
// column-major and dense, of float32, float64, complex64 or complex128; results replace a. Each
// function returns LAPACK's info: 0, or the position of the failure. Calls run one at a time.
#pragma once

#include "core/dtype.h"

namespace TT_NS {

// Opens the library at its first call.
bool lapack_is_open() noexcept;

// Reads and writes one triangle.
int64_t lapack_cholesky(Dtype d, int64_t n, void* a, bool upper);
// Row-major a (n, n) and b (n, k): replaces b by the solution of a X = b, or a^H X = b.
void lapack_solve_triangular(Dtype d, int64_t n, int64_t k, const void* a, void* b, bool upper,
                             bool adjoint, bool unit);
// a: the eigenvectors, if `vectors`. w: real, ascending
int64_t lapack_eigh(Dtype d, int64_t n, void* a, void* w, bool upper, bool vectors);
// Thin: u (m, k), s (k) real, vt (k, n), k = min(m, n). Without vectors u and vt are not touched.
int64_t lapack_svd(Dtype d, int64_t m, int64_t n, void* a, void* u, void* s, void* vt,
                   bool vectors);
// The eigenvalues of the real tridiagonal matrix of diagonal w and off-diagonal e, ascending: w
// becomes them.
int64_t lapack_tridiagonal_eigvalsh(Dtype d, int64_t n, void* w, void* e);
// The singular values of the real upper bidiagonal matrix of diagonal s and off-diagonal e,
// descending: s becomes them. work: 4 n numbers.
int64_t lapack_bidiagonal_svdvals(Dtype d, int64_t n, void* s, void* e, void* work);
// w: (n), of real matrices as n real and n imaginary parts. v: (n, n), of real matrices with the
// real and the imaginary part of a pair's first vector as columns; NULL: no vectors.
int64_t lapack_eig(Dtype d, int64_t n, void* a, void* w, void* v);

}  // namespace TT_NS
