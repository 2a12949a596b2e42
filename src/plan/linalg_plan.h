// Plan of singular value decompositions. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

// A = U diag(s) V^H for each of `batch` matrices A of m rows and n <= m columns, of f64 or, in
// pairs of doubles, c128. Where A holds nan or inf, all of it is nan. Units: matrices.
struct SvdPlan {
  Stages run;
  bool complex;
  int64_t m, n;
  double* w;  // [batch][n][m]: the columns of A, which become those of U
  double* v;  // [batch][n][n]: the columns of V
  double* s;  // [batch][n]: not negative, the largest first
};

}  // namespace TT_NS
