// Plan of singular value decompositions. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

// A = U diag(s) V^H for each of `batch` matrices A of m rows and n <= m columns, in f64 or, as
// pairs of doubles, c128. If A has nan or inf, the results are all nan. Units: matrices.
struct SvdPlan {
  Stages run;
  bool complex;
  int64_t m, n;
  double* w;  // [batch][n][m]: columns of A, replaced by those of U
  double* v;  // [batch][n][n]: columns of V
  double* s;  // [batch][n]: not negative, in descending order
};

}  // namespace TT_NS
