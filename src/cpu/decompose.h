// Decompositions of large matrices by tt's own products and kernels for panels of columns: OpenBLAS
// has fast kernels for the processors that its version knows, which those with AVX-512 may not be.
// Values without vectors are LAPACK's, of tt's reductions. Dtypes are float32, float64, complex64
// and complex128.
#pragma once

#include "cpu/lapack.h"

namespace TT_NS {

// Whether the functions below serve matrices of d. Those of singular values are for real ones.
bool decomposes(Dtype d) noexcept;
// Row-major a (m, n): L below the diagonal, and U. pivots: from 1; info: 0, or the first zero of U
void own_lu(Dtype d, int64_t m, int64_t n, void* a, int32_t* pivots, int32_t* info);
// Row-major a (n, n) and b (n, k): replaces b by the solution of a X = b, or, of real ones,
// a^T X = b.
void own_solve_triangular(Dtype d, int64_t n, int64_t k, const void* a, void* b, bool upper,
                          bool adjoint, bool unit);
// The inverse x (n, n) of the matrix with these factors.
void own_inverse(Dtype d, int64_t n, const void* lu, const int32_t* pivots, void* x);
// Row-major a (m, n): R, and the reflections below the diagonal. tau: min(m, n)
void own_qr(Dtype d, int64_t m, int64_t n, void* a, void* tau);
// q (m, n): the first columns of the product of the k reflections in columns of a (m, n)
void own_q(Dtype d, int64_t m, int64_t n, int64_t k, const void* a, const void* tau, void* q);
// As lapack_eigh.
int64_t own_eigh(Dtype d, int64_t n, void* a, void* w, bool upper, bool vectors);
// Row-major a (m, n), u (m, k), vt (k, n); s (k), k = min(m, n).
void own_svd(Dtype d, int64_t m, int64_t n, const void* a, void* u, void* s, void* vt);
// The values alone, by LAPACK from tt's reduction to bidiagonal form.
int64_t own_svdvals(Dtype d, int64_t m, int64_t n, const void* a, void* s);

}  // namespace TT_NS
