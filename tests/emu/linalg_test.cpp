// Singular value decompositions: U diag(s) V^H is A, U and V have orthonormal columns, s descends;
// also of matrices of low rank, of zeros and with nan.
#include <math.h>

#include "check.h"
#include "plan/linalg_plan.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

enum Kind { kAny, kRankOne, kZero, kWithNan };
struct Case {
  const char* name;
  int64_t batch, m, n;
  bool complex;
  Kind kind;
};
constexpr Case kCases[] = {
    {"odd columns", 2, 9, 5, false, kAny},
    {"complex", 1, 7, 6, true, kAny},
    {"more pairs than warps", 1, 24, 20, false, kAny},
    {"rank one", 1, 6, 4, false, kRankOne},
    {"complex rank one", 1, 5, 3, true, kRankOne},
    {"zeros", 1, 3, 2, false, kZero},
    {"nan", 1, 3, 2, false, kWithNan},
};

struct Number {
  double re, im;
};
// sum of conj(x_i) y_i
Number dot(const double* x, const double* y, int64_t n, int64_t parts) {
  Number sum = {0, 0};
  for (int64_t i = 0; i < n * parts; i += parts) {
    const double xi = parts == 2 ? x[i + 1] : 0;
    const double yi = parts == 2 ? y[i + 1] : 0;
    sum.re += x[i] * y[i] + xi * yi;
    sum.im += x[i] * yi - xi * y[i];
  }
  return sum;
}
double distance_to_orthonormal(const double* columns, int64_t n, int64_t length, int64_t parts) {
  double worst = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < n; k++) {
      const Number d =
          dot(columns + i * length * parts, columns + k * length * parts, length, parts);
      worst = fmax(worst, fabs(d.re - (i == k)) + fabs(d.im));
    }
  return worst;
}

void test_case(const Case& t) {
  Numbers numbers;
  const int64_t parts = t.complex ? 2 : 1;
  std::vector<double> a(size_t(t.batch * t.n * t.m * parts));
  for (size_t i = 0; i < a.size(); i++) {
    const double column = double(i / size_t(t.m * parts) + 1);
    a[i] = t.kind == kZero ? 0 : numbers.whole(-9, 9) / 4.0;
    if (t.kind == kRankOne && i >= size_t(t.m * parts)) a[i] = a[i % size_t(t.m * parts)] * column;
  }
  if (t.kind == kWithNan) a[1] = NAN;
  std::vector<double> w, v(size_t(t.batch * t.n * t.n * parts)), s(size_t(t.batch * t.n));
  SvdPlan p = {};
  one_stage(&p.run, t.batch, 1);
  p.complex = t.complex;
  p.m = t.m;
  p.n = t.n;
  p.v = v.data();
  p.s = s.data();
  w = a;
  in_orders(t.name, w, [&] {
    w = a;
    p.w = w.data();
    run(t.name, cuda::svd, nullptr, &p);
  });
  if (t.kind == kWithNan) return check(isnan(s[0]) && isnan(w[0]) && isnan(v[3]), t.name, 0);
  for (int64_t b = 0; b < t.batch; b++) {
    const double* u = &w[size_t(b * t.n * t.m * parts)];
    const double* x = &v[size_t(b * t.n * t.n * parts)];
    const double* values = &s[size_t(b * t.n)];
    check(distance_to_orthonormal(u, t.n, t.m, parts) < 1e-13, t.name, 1);
    check(distance_to_orthonormal(x, t.n, t.n, parts) < 1e-13, t.name, 2);
    for (int64_t k = 0; k < t.n; k++)
      check(values[k] >= (k + 1 < t.n ? values[k + 1] : 0), t.name, 3);
    // A = sum over k of s_k u_k v_k^H: element (i, j) is column j of a, row i.
    for (int64_t j = 0; j < t.n; j++)
      for (int64_t i = 0; i < t.m; i++) {
        Number sum = {0, 0};
        for (int64_t k = 0; k < t.n; k++) {
          const double* p_u = u + (k * t.m + i) * parts;
          const double* p_v = x + (k * t.n + j) * parts;
          const double ui = parts == 2 ? p_u[1] : 0;
          const double vi = parts == 2 ? -p_v[1] : 0;
          sum.re += values[k] * (p_u[0] * p_v[0] - ui * vi);
          sum.im += values[k] * (p_u[0] * vi + ui * p_v[0]);
        }
        const double* want = &a[size_t(((b * t.n + j) * t.m + i) * parts)];
        const double error = fabs(sum.re - want[0]) + fabs(sum.im - (parts == 2 ? want[1] : 0));
        check(error < 1e-12, t.name, 4);
      }
  }
}

}  // namespace

int main() {
  for (const Case& t : kCases)
    if (!EMU_TSAN || t.n <= 4) test_case(t);
  return finished();
}
