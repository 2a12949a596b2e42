// Decompositions of large real matrices by a reduction to a condensed form, which is tt's own, and
// LAPACK's divide and conquer: OpenBLAS has fast kernels for the processors that its version knows,
// and reduces by products of matrices with vectors. float32 and float64.
#pragma once

#include "cpu/lapack.h"

namespace TT_NS {

// Whether the functions below serve matrices of d.
bool condenses(Dtype d) noexcept;
// As lapack_eigh.
int64_t condensed_eigh(Dtype d, int64_t n, void* a, void* w, bool upper, bool vectors);
// Row-major a (m, n), u (m, k), vt (k, n); s (k), k = min(m, n).
int64_t condensed_svd(Dtype d, int64_t m, int64_t n, const void* a, void* u, void* s, void* vt);

}  // namespace TT_NS
