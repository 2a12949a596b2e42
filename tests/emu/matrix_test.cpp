// The decompositions that blocks share with the CPU (kernels/functors/linalg): what they return is
// put together again, for matrices of one warp and of several, in three orders of threads.
#include <dlfcn.h>
#include <math.h>

#include <algorithm>
#include <complex>

#include "check.h"
#include "kernels/cuda/linalg/cublas.h"
#include "kernels/cuda/linalg/cusolver.h"
#include "plan/linalg_plan.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

using Number = std::complex<double>;

// A dense matrix (rows, columns); in memory real numbers if not complex.
struct Matrix {
  int64_t m, n;
  std::vector<Number> x;
  Matrix(int64_t rows, int64_t columns) : m(rows), n(columns), x(size_t(rows * columns)) {}
  Number& at(int64_t i, int64_t j) { return x[size_t(i * n + j)]; }
  const Number& at(int64_t i, int64_t j) const { return x[size_t(i * n + j)]; }
};
Matrix random_matrix(int64_t m, int64_t n, bool complex, Numbers* numbers) {
  Matrix a(m, n);
  for (Number& v : a.x) {
    const double re = numbers->whole(-99, 99) / 64.0;
    v = {re, complex ? numbers->whole(-99, 99) / 64.0 : 0};
  }
  return a;
}
Matrix adjoint_of(const Matrix& a, bool conjugate = true) {
  Matrix b(a.n, a.m);
  for (int64_t i = 0; i < a.m; i++)
    for (int64_t j = 0; j < a.n; j++) b.at(j, i) = conjugate ? conj(a.at(i, j)) : a.at(i, j);
  return b;
}
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.m, b.n);
  for (int64_t i = 0; i < a.m; i++)
    for (int64_t k = 0; k < a.n; k++)
      for (int64_t j = 0; j < b.n; j++) c.at(i, j) += a.at(i, k) * b.at(k, j);
  return c;
}
double distance(const Matrix& a, const Matrix& b) {
  double worst = 0;
  for (size_t i = 0; i < a.x.size(); i++) {
    const double d = abs(a.x[i] - b.x[i]);
    if (!(d <= worst)) worst = d;
  }
  return worst;
}
Matrix identity(int64_t n) {
  Matrix a(n, n);
  for (int64_t i = 0; i < n; i++) a.at(i, i) = 1;
  return a;
}
// The part of a on and above diagonal `first`, or on and below it.
Matrix triangle(const Matrix& a, bool upper, int64_t first = 0) {
  Matrix b(a.m, a.n);
  for (int64_t i = 0; i < a.m; i++)
    for (int64_t j = 0; j < a.n; j++)
      if (upper ? j >= i + first : j <= i + first) b.at(i, j) = a.at(i, j);
  return b;
}
Matrix hermitian(int64_t n, bool complex, Numbers* numbers) {
  Matrix a = random_matrix(n, n, complex, numbers);
  const Matrix b = adjoint_of(a);
  for (size_t i = 0; i < a.x.size(); i++) a.x[i] += b.x[i];
  return a;
}

// Arrays as a plan has them.
std::vector<double> packed(const Matrix& a, bool complex) {
  std::vector<double> v;
  for (const Number& x : a.x) {
    v.push_back(x.real());
    if (complex) v.push_back(x.imag());
  }
  return v;
}
Matrix unpacked(const std::vector<double>& v, int64_t m, int64_t n, bool complex) {
  Matrix a(m, n);
  for (size_t i = 0; i < a.x.size(); i++)
    a.x[i] = complex ? Number(v[2 * i], v[2 * i + 1]) : Number(v[i], 0);
  return a;
}

struct Case {
  const char* name;
  int64_t n;
  int64_t k;  // right-hand sides, or what columns have more than rows
  bool complex;
};
constexpr Case kCases[] = {{"small", 5, 1, false},
                           {"small complex", 6, 3, true},
                           {"one", 1, 1, true},
                           {"many warps", 33, 1, false},
                           {"many warps complex", 34, 33, true}};

// Buffers of one call; each run starts from `a` and `b`.
struct Call {
  const Case& t;
  MatrixPlan p = {};
  std::vector<double> a, b, w, work, det;
  std::vector<int32_t> pivots, info;

  explicit Call(const Case& c)
      : t(c), work(size_t(8 * c.n + 400)), pivots(size_t(c.n + 1)), info(1) {
    one_stage(&p.run, 1, 1);
    p.complex = c.complex;
    p.m = p.n = c.n;
    p.work_size = int64_t(work.size());
  }
  void launch(Row row, Bytes bytes = nullptr) {
    p.a = a.data();
    p.b = b.data();
    p.w = w.data();
    p.work = work.data();
    p.det = det.empty() ? nullptr : det.data();
    p.pivots = pivots.data();
    p.info = info.data();
    run(t.name, row, bytes, &p);
  }
  // In several orders of threads; `out`: a, b or w.
  void run_in_orders(Row row, std::vector<double> Call::*out, Bytes bytes = nullptr) {
    const std::vector<double> a0 = a, b0 = b, w0 = w;
    std::vector<double> result = this->*out;
    in_orders(
        t.name, result,
        [&] {
          a = a0;
          b = b0;
          w = w0;
          launch(row, bytes);
          result = this->*out;
        },
        EMU_TSAN || t.n > 33);
  }
};
void expect(const Case& t, double error, int i) { check(error < 1e-10, t.name, i); }

void test_lu(const Case& t) {
  Numbers numbers;
  const Matrix a = random_matrix(t.n, t.n, t.complex, &numbers);
  const Matrix b = random_matrix(t.n, t.k, t.complex, &numbers);
  Call f(t);
  f.a = packed(a, t.complex);
  f.det.resize(6);
  f.run_in_orders(cuda::lu_factor, &Call::a, cuda::lu_factor_workspace);
  const Matrix lu = unpacked(f.a, t.n, t.n, t.complex);
  Matrix lower = triangle(lu, false, -1);
  for (int64_t i = 0; i < t.n; i++) lower.at(i, i) = 1;
  Matrix rows = a;
  Number det = 1;
  for (int64_t i = 0; i < t.n; i++) {
    const int64_t other = f.pivots[size_t(i)] - 1;
    if (other != i) det = -det;
    for (int64_t j = 0; j < t.n && other != i; j++) std::swap(rows.at(i, j), rows.at(other, j));
    det *= lu.at(i, i);
  }
  expect(t, distance(product(lower, triangle(lu, true)), rows), 1);
  const Number found = {f.det[0], t.complex ? f.det[1] : 0};
  expect(t, abs(found - det) / abs(det), 2);
  check(f.info[0] == 0, t.name, 3);
  for (bool adjoint : {false, true}) {
    f.p.k = t.k;
    f.p.adjoint = adjoint;
    f.b = packed(b, t.complex);
    f.run_in_orders(cuda::lu_solve, &Call::b, cuda::lu_solve_workspace);
    const Matrix x = unpacked(f.b, t.n, t.k, t.complex);
    expect(t, distance(product(adjoint ? adjoint_of(a) : a, x), b), 4);
  }
}

void test_cholesky(const Case& t) {
  Numbers numbers;
  const Matrix half = random_matrix(t.n, t.n, t.complex, &numbers);
  Matrix a = product(half, adjoint_of(half));
  for (int64_t i = 0; i < t.n; i++) a.at(i, i) += 1;
  const Matrix b = random_matrix(t.n, t.k, t.complex, &numbers);
  for (bool upper : {false, true}) {
    Call f(t);
    f.p.upper = upper;
    f.a = packed(triangle(a, upper), t.complex);
    f.run_in_orders(cuda::cholesky, &Call::a, cuda::cholesky_workspace);
    const Matrix u = unpacked(f.a, t.n, t.n, t.complex);
    expect(t, distance(upper ? product(adjoint_of(u), u) : product(u, adjoint_of(u)), a), 5);
    check(f.info[0] == 0, t.name, 6);
    f.p.k = t.k;
    f.b = packed(b, t.complex);
    f.run_in_orders(cuda::solve_triangular, &Call::b);
    expect(t, distance(product(u, unpacked(f.b, t.n, t.k, t.complex)), b), 7);
  }
  a.at(t.n - 1, t.n - 1) = -1;
  Call f(t);
  f.a = packed(a, t.complex);
  f.launch(cuda::cholesky, cuda::cholesky_workspace);
  check(f.info[0] == t.n, t.name, 8);
}

// The factor of a real matrix by the order of operations of functors/linalg; zeros elsewhere.
std::vector<double> factor_of(const Matrix& a, bool upper) {
  const int64_t n = a.n;
  Matrix u = triangle(a, true);
  for (int64_t k = 0; k < n; k++) {
    const double root = sqrt(u.at(k, k).real());
    u.at(k, k) = root;
    for (int64_t j = k + 1; j < n; j++) u.at(k, j) = u.at(k, j).real() * (1 / root);
    for (int64_t i = k + 1; i < n; i++)
      for (int64_t j = i; j < n; j++)
        u.at(i, j) = u.at(i, j).real() - u.at(k, i).real() * u.at(k, j).real();
  }
  return packed(upper ? u : adjoint_of(u), false);
}
// Several matrices of one launch, of which each warp has one; the fifth is not positive definite.
void test_choleskys(int64_t n) {
  constexpr int64_t kBatch = 6;
  const Case t = {"several", n, 1, false};
  Numbers numbers;
  std::vector<Matrix> matrices;
  for (int64_t i = 0; i < kBatch; i++) {
    const Matrix half = random_matrix(n, n, false, &numbers);
    matrices.push_back(product(half, adjoint_of(half)));
    for (int64_t j = 0; j < n; j++) matrices.back().at(j, j) += 1;
  }
  matrices[4].at(n / 2, n / 2) = -1;
  for (bool upper : {false, true}) {
    Call f(t);
    f.p.upper = upper;
    one_stage(&f.p.run, kBatch, 1);
    f.info.resize(kBatch);
    for (const Matrix& a : matrices) {
      const std::vector<double> one = packed(triangle(a, upper), false);
      f.a.insert(f.a.end(), one.begin(), one.end());
    }
    f.run_in_orders(cuda::cholesky, &Call::a, cuda::cholesky_workspace);
    for (int64_t i = 0; i < kBatch; i++) {
      check(f.info[size_t(i)] == (i == 4 ? n / 2 + 1 : 0), t.name, 25);
      if (i == 4) continue;
      const auto from = f.a.begin() + i * n * n;
      const Matrix u = unpacked({from, from + n * n}, n, n, false);
      const Matrix other = adjoint_of(u);
      expect(t, distance(upper ? product(other, u) : product(u, other), matrices[size_t(i)]), 26);
      expect(t, distance(triangle(u, upper), u), 27);
      check(std::equal(from, from + n * n, factor_of(matrices[size_t(i)], upper).begin()), t.name,
            28);
    }
  }
}

// The factors, pivots and info of a matrix of m rows, statement by statement as on the CPU.
struct Factors {
  std::vector<double> lu;
  std::vector<int32_t> pivots;
  int32_t info = 0;
};
Factors lu_of(const Matrix& matrix) {
  const size_t m = size_t(matrix.m);
  const size_t n = size_t(matrix.n);
  Factors f = {packed(matrix, false), {}};
  for (size_t k = 0; k < std::min(m, n); k++) {
    double* const a = f.lu.data();
    size_t best = k;
    for (size_t i = k + 1; i < m; i++)
      if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
    f.pivots.push_back(int32_t(best + 1));
    if (best != k) std::swap_ranges(a + k * n, a + (k + 1) * n, a + best * n);
    if (a[k * n + k] == 0) {
      f.info = f.info ? f.info : int32_t(k + 1);
      continue;
    }
    const double inverse = 1 / a[k * n + k];
    for (size_t i = k + 1; i < m; i++) {
      const double factor = a[i * n + k] * inverse;
      a[i * n + k] = factor;
      for (size_t j = k + 1; j < n; j++) a[i * n + j] = a[i * n + j] - factor * a[k * n + j];
    }
  }
  return f;
}
// Several matrices of one launch, of which each warp has one. The third has equal columns and a
// row of zeros, the fourth a nan, where a pivot is compared and where it is chosen.
void test_lus(int64_t m, int64_t n) {
  constexpr int64_t kBatch = 6;
  Numbers numbers;
  Call f({"several", n, 1, false});
  f.p.m = m;
  one_stage(&f.p.run, kBatch, 1);
  f.info.resize(kBatch);
  f.pivots.resize(size_t(kBatch * std::min(m, n)));
  f.det.resize(m == n ? 6 * kBatch : 0);
  std::vector<Factors> want;
  for (int64_t i = 0; i < kBatch; i++) {
    Matrix a = random_matrix(m, n, false, &numbers);
    for (int64_t j = 0; j < m && i == 2; j++) a.at(j, n - 1) = a.at(j, 0);
    for (int64_t j = 0; j < n && i == 2; j++) a.at(m / 2, j) = 0;
    if (i == 3) a.at(0, 0) = a.at(m - 1, n / 2) = NAN;
    if (i == 4) a.at(m - 1, 0) = NAN;
    const std::vector<double> one = packed(a, false);
    f.a.insert(f.a.end(), one.begin(), one.end());
    want.push_back(lu_of(a));
  }
  f.run_in_orders(cuda::lu_factor, &Call::a, cuda::lu_factor_workspace);
  for (int64_t i = 0; i < kBatch; i++) {
    const Factors& w = want[size_t(i)];
    bool same = f.info[size_t(i)] == w.info;
    for (size_t j = 0; j < w.pivots.size(); j++)
      same &= f.pivots[size_t(i) * w.pivots.size() + j] == w.pivots[j];
    check(same, "pivots of several", int(i));
    for (size_t j = 0; j < w.lu.size(); j++) {
      const double got = f.a[size_t(i) * w.lu.size() + j];
      same &= got == w.lu[j] || (isnan(got) && isnan(w.lu[j]));
    }
    check(same, "factors of several", int(i));
    if (m != n || i == 2) continue;
    double det = 1;
    for (int64_t j = 0; j < n; j++) {
      det *= w.lu[size_t(j * n + j)];
      if (w.pivots[size_t(j)] != j + 1) det = -det;
    }
    const double got = f.det[size_t(6 * i)];
    check(fabs(got - det) <= 1e-12 * fabs(det) || (isnan(det) && isnan(got)), "determinants",
          int(i));
  }
}
// Several solutions of one launch, by LU and with one triangle.
void test_solves(int64_t n, int64_t k) {
  constexpr int64_t kBatch = 5;
  const Case t = {"several solutions", n, k, false};
  Numbers numbers;
  Call f(t);
  one_stage(&f.p.run, kBatch, 1);
  f.p.k = k;
  f.pivots.clear();
  std::vector<Matrix> matrices, sides;
  std::vector<double> rows, b;
  for (int64_t i = 0; i < kBatch; i++) {
    Matrix a = random_matrix(n, n, false, &numbers);
    for (int64_t j = 0; j < n; j++) a.at(j, j) += 3;
    const Factors lu = lu_of(a);
    f.a.insert(f.a.end(), lu.lu.begin(), lu.lu.end());
    f.pivots.insert(f.pivots.end(), lu.pivots.begin(), lu.pivots.end());
    const std::vector<double> given = packed(a, false);
    rows.insert(rows.end(), given.begin(), given.end());
    matrices.push_back(a);
    sides.push_back(random_matrix(n, k, false, &numbers));
    const std::vector<double> side = packed(sides.back(), false);
    b.insert(b.end(), side.begin(), side.end());
  }
  const auto solution = [&](int64_t i) {
    const auto from = f.b.begin() + i * n * k;
    return unpacked({from, from + n * k}, n, k, false);
  };
  for (bool adjoint : {false, true}) {
    f.p.adjoint = adjoint;
    f.b = b;
    f.run_in_orders(cuda::lu_solve, &Call::b, cuda::lu_solve_workspace);
    for (int64_t i = 0; i < kBatch; i++) {
      const Matrix& a = matrices[size_t(i)];
      const Matrix back = product(adjoint ? adjoint_of(a) : a, solution(i));
      check(distance(back, sides[size_t(i)]) < 1e-9, t.name, int(i));
    }
  }
  for (bool upper : {false, true})
    for (bool unit : {false, true}) {
      f.p.upper = upper;
      f.p.unit = unit;
      f.a = rows;
      for (double& v : f.a) v = fabs(v) > 1 ? v : v / 8;  // solutions stay small
      for (int64_t i = 0; i < kBatch * n; i++) f.a[size_t(i * n + i % n)] = 4;
      f.b = b;
      f.run_in_orders(cuda::solve_triangular, &Call::b);
      for (int64_t i = 0; i < kBatch; i++) {
        const auto from = f.a.begin() + i * n * n;
        Matrix a = triangle(unpacked({from, from + n * n}, n, n, false), upper);
        for (int64_t j = 0; j < n && unit; j++) a.at(j, j) = 1;
        const Matrix x = solution(i);
        double most = 1;
        for (const Number& v : x.x) most = std::max(most, abs(v));
        check(distance(product(a, x), sides[size_t(i)]) < 1e-12 * most, t.name, 10 + int(i));
      }
    }
}

void test_cholesky_alone(const Case& t) {
  Numbers numbers;
  Matrix a = product(random_matrix(t.n, t.n, t.complex, &numbers), identity(t.n));
  a = product(a, adjoint_of(a));
  for (bool upper : {false, true}) {
    Call f(t);
    f.p.upper = upper;
    f.a = packed(triangle(a, upper), t.complex);
    f.launch(cuda::cholesky, cuda::cholesky_workspace);
    const Matrix u = unpacked(f.a, t.n, t.n, t.complex);
    expect(t, distance(upper ? product(adjoint_of(u), u) : product(u, adjoint_of(u)), a), 22);
    expect(t, distance(triangle(u, upper), u), 23);
  }
  a.at(5, 5) = -1;
  Call f(t);
  f.a = packed(a, t.complex);
  f.launch(cuda::cholesky, cuda::cholesky_workspace);
  check(f.info[0] == 6, t.name, 24);
}

void test_qr(const Case& t) {
  Numbers numbers;
  const int64_t m = t.n + t.k;
  const Matrix a = random_matrix(m, t.n, t.complex, &numbers);
  Call f(t);
  f.p.m = m;
  f.a = packed(a, t.complex);
  f.b.resize(size_t(2 * t.n));
  f.run_in_orders(cuda::householder_qr, &Call::a, cuda::householder_qr_workspace);
  Call g(t);
  g.p.m = m;
  g.p.k = t.n;
  g.a = f.a;
  g.w = f.b;
  g.b.resize(f.a.size());
  g.run_in_orders(cuda::householder_product, &Call::b, cuda::householder_product_workspace);
  const Matrix q = unpacked(g.b, m, t.n, t.complex);
  Matrix r(t.n, t.n);
  const Matrix upper = triangle(unpacked(f.a, m, t.n, t.complex), true);
  for (int64_t i = 0; i < t.n; i++)
    for (int64_t j = 0; j < t.n; j++) r.at(i, j) = upper.at(i, j);
  expect(t, distance(product(q, r), a), 9);
  expect(t, distance(product(adjoint_of(q), q), identity(t.n)), 10);
}

// A V = V diag(values)
double eigen_error(const Matrix& a, const Matrix& v, const Matrix& values) {
  Matrix scaled = v;
  for (int64_t i = 0; i < a.n; i++)
    for (int64_t j = 0; j < a.n; j++) scaled.at(i, j) *= values.at(0, j);
  return distance(product(a, v), scaled);
}
void test_eigh(const Case& t) {
  Numbers numbers;
  const Matrix a = hermitian(t.n, t.complex, &numbers);
  Call f(t);
  f.p.upper = t.k > 1;
  f.p.vectors = true;
  f.a = packed(triangle(a, f.p.upper), t.complex);
  f.b.resize(f.a.size());
  f.w.resize(size_t(t.n));
  f.run_in_orders(cuda::eigh, &Call::b, cuda::eigh_workspace);
  const Matrix v = unpacked(f.b, t.n, t.n, t.complex);
  expect(t, eigen_error(a, v, unpacked(f.w, 1, t.n, false)), 11);
  expect(t, distance(product(adjoint_of(v), v), identity(t.n)), 12);
  for (int64_t i = 1; i < t.n; i++) check(f.w[size_t(i - 1)] <= f.w[size_t(i)], t.name, 13);
}
void test_eigh_of_nan(const Case& t) {
  Numbers numbers;
  Matrix a = hermitian(t.n, t.complex, &numbers);
  a.at(3, 2) = NAN;
  Call f(t);
  f.p.vectors = true;
  f.a = packed(a, t.complex);
  f.b.resize(f.a.size());
  f.w.resize(size_t(t.n));
  f.launch(cuda::eigh, cuda::eigh_workspace);
  check(f.info[0] == 1 && isnan(f.w[0]) && isnan(f.b.back() + f.b[0]), t.name, 25);
}
void test_eig(const Case& t) {
  Numbers numbers;
  const Matrix a = random_matrix(t.n, t.n, t.complex, &numbers);
  Call f(t);
  f.p.complex = true;
  f.p.real = !t.complex;
  f.p.vectors = true;
  f.a = packed(a, true);
  f.b.resize(f.a.size());
  f.w.resize(size_t(2 * t.n));
  f.run_in_orders(cuda::eig, &Call::b);
  expect(t, eigen_error(a, unpacked(f.b, t.n, t.n, true), unpacked(f.w, 1, t.n, true)), 14);
  check(f.info[0] == 0, t.name, 15);
}

void test_ldl(const Case& t) {
  Numbers numbers;
  for (bool adjoint : {false, true}) {
    Matrix a = hermitian(t.n, t.complex, &numbers);
    if (t.n > 1) a.at(0, 0) = 0;  // a block of size 2
    if (!adjoint) {
      for (int64_t i = 0; i < t.n; i++)
        for (int64_t j = 0; j < i; j++) a.at(j, i) = a.at(i, j);
    }
    const Matrix b = random_matrix(t.n, t.k, t.complex, &numbers);
    Call f(t);
    f.p.adjoint = adjoint;
    f.a = packed(triangle(a, false), t.complex);
    f.run_in_orders(cuda::ldl_factor, &Call::a);
    f.p.k = t.k;
    f.b = packed(b, t.complex);
    f.run_in_orders(cuda::ldl_solve, &Call::b);
    expect(t, distance(product(a, unpacked(f.b, t.n, t.k, t.complex)), b), 16);
  }
}

// Several matrices in one call, the second one of which has no factor.
void test_cholesky_batch(bool complex) {
  constexpr int64_t kBatch = 3, kN = 65;
  const Case t = {complex ? "a batch, complex" : "a batch", kN, 1, complex};
  const size_t size = size_t(kN * kN * (complex ? 2 : 1));
  Numbers numbers;
  for (bool upper : {false, true}) {
    Call f(t);
    one_stage(&f.p.run, kBatch, 1);
    f.info.assign(kBatch, -1);
    f.p.upper = upper;
    std::vector<Matrix> all;
    for (int64_t i = 0; i < kBatch; i++) {
      const Matrix half = random_matrix(kN, kN, complex, &numbers);
      Matrix a = product(half, adjoint_of(half));
      for (int64_t j = 0; j < kN; j++) a.at(j, j) += 1;
      if (i == 1) a.at(kN - 1, kN - 1) = -1;
      all.push_back(a);
      const std::vector<double> x = packed(triangle(a, upper), complex);
      f.a.insert(f.a.end(), x.begin(), x.end());
    }
    f.launch(cuda::cholesky, cuda::cholesky_workspace);
    for (size_t i = 0; i < kBatch; i++) {
      check(f.info[i] == (i == 1 ? kN : 0), t.name, int(i));
      if (i == 1) continue;
      const std::vector<double> x(f.a.begin() + ptrdiff_t(i * size),
                                  f.a.begin() + ptrdiff_t((i + 1) * size));
      const Matrix u = unpacked(x, kN, kN, complex);
      expect(t, distance(upper ? product(adjoint_of(u), u) : product(u, adjoint_of(u)), all[i]), 1);
    }
  }
}

// Factors of several matrices in one call, and solutions with them in two. The second matrix is
// singular, and so has a determinant of 0 and no solution.
void test_lu_batch(bool complex) {
  constexpr int64_t kBatch = 3, kN = 33, kSides = 2;
  const Case t = {complex ? "LU of a batch, complex" : "LU of a batch", kN, kSides, complex};
  Numbers numbers;
  Call f(t);
  one_stage(&f.p.run, kBatch, 1);
  f.info.assign(kBatch, -1);
  f.pivots.resize(kBatch * kN);
  f.det.resize(6 * kBatch);
  std::vector<Matrix> all, sides;
  std::vector<double> b;
  const auto append = [&](std::vector<double>* to, const Matrix& a) {
    const std::vector<double> x = packed(a, complex);
    to->insert(to->end(), x.begin(), x.end());
  };
  const auto part = [&](const std::vector<double>& from, int64_t i, int64_t columns) {
    const int64_t size = kN * columns * (complex ? 2 : 1);
    return unpacked({from.begin() + i * size, from.begin() + (i + 1) * size}, kN, columns, complex);
  };
  for (int64_t i = 0; i < kBatch; i++) {
    all.push_back(random_matrix(kN, kN, complex, &numbers));
    for (int64_t j = 0; j < kN && i == 1; j++) all[1].at(j, 4) = 0;
    append(&f.a, all.back());
    sides.push_back(random_matrix(kN, kSides, complex, &numbers));
    append(&b, sides.back());
  }
  f.launch(cuda::lu_factor, cuda::lu_factor_workspace);
  for (int64_t i = 0; i < kBatch; i++) {
    check(f.info[size_t(i)] == (i == 1 ? 5 : 0), t.name, int(i));
    const Matrix lu = part(f.a, i, kN);
    Matrix rows = all[size_t(i)];
    Matrix lower = triangle(lu, false, -1);
    Number det = 1;
    for (int64_t j = 0; j < kN; j++) {
      const int64_t other = f.pivots[size_t(i * kN + j)] - 1;
      for (int64_t c = 0; c < kN && other != j; c++) std::swap(rows.at(j, c), rows.at(other, c));
      lower.at(j, j) = 1;
      det *= other == j ? lu.at(j, j) : -lu.at(j, j);
    }
    expect(t, distance(product(lower, triangle(lu, true)), rows), 10 + int(i));
    const Number found = {f.det[size_t(6 * i)], complex ? f.det[size_t(6 * i + 1)] : 0};
    check(abs(found - det) <= 1e-10 * abs(det), t.name, 20 + int(i));
  }
  for (bool adjoint : {false, true}) {
    f.p.k = kSides;
    f.p.adjoint = adjoint;
    f.b = b;
    f.pivots[kN] = 0;  // names no row
    f.launch(cuda::lu_solve, cuda::lu_solve_workspace);
    for (int64_t i : {0, 2}) {
      const Matrix& a = all[size_t(i)];
      const Matrix back = product(adjoint ? adjoint_of(a) : a, part(f.b, i, kSides));
      expect(t, distance(back, sides[size_t(i)]), 30 + int(i));
    }
  }
}

// Large matrices and batches, as cuSOLVER and cuBLAS see them. Argument of the program: the stub
// (solver_stub.cpp).
constexpr Case kLargeCases[] = {{"library", 129, 2, false}, {"library, complex", 130, 3, true}};

int test_library(const char* stub) {
  void* const library = dlopen(stub, RTLD_NOW);
  const int* const calls =
      library ? static_cast<int*>(dlsym(library, "solver_stub_calls")) : nullptr;
  if (!calls) return printf("no stub: %s\n", dlerror()), 1;
  cuda::cusolver::use_library(stub);
  cuda::cublas::use_library(stub);
  for (const Case& t : kLargeCases) {
    const int before = *calls;
    test_lu(t);
    check(*calls - before == 3, t.name, 17);
    test_qr(t);
    check(*calls - before == 5, t.name, 18);
    test_cholesky_alone(t);
    check(*calls - before == 8, t.name, 19);
    test_eigh(t);
    check(*calls - before == 9, t.name, 20);
    test_eigh_of_nan(t);
    check(*calls - before == 10, t.name, 21);
  }
  for (bool complex : {false, true}) {
    const int before = *calls;
    test_cholesky_batch(complex);
    check(*calls - before == 2, "a call for all matrices", complex);
    test_lu_batch(complex);
    check(*calls - before == 5, "a call for all factors, one for solutions", complex);
  }
  MatrixPlan p = {};
  one_stage(&p.run, 1, 1);
  p.m = p.n = 200;
  check(cuda::cusolver::serves(cuda::cusolver::kQr, p), "a large matrix", 0);
  p.math = kOwnLinalg;
  MatrixPlan several = {};
  one_stage(&several.run, 2, 1);
  several.m = several.n = 200;
  check(cuda::cublas::serves(several), "a batch", 0);
  several.math = kOwnLinalg;
  check(!cuda::cublas::serves(several), "a batch for own kernels", 0);
  check(!cuda::cusolver::serves(cuda::cusolver::kQr, p), "a large matrix for own kernels", 0);
  return finished();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return test_library(argv[1]);
  for (const Case& t : kCases) {
    if (EMU_TSAN && t.n > 6) continue;
    test_lu(t);
    test_cholesky(t);
    test_qr(t);
    if (t.n < 34) test_eigh(t);
    if (t.n < 33) test_eig(t);
    test_ldl(t);
  }
  for (int64_t n : {int64_t(1), int64_t(17), int64_t(32)})
    if (!EMU_TSAN || n < 32) test_choleskys(n);
  for (int64_t n : {int64_t(1), int64_t(17), int64_t(32)}) {
    if (EMU_TSAN && n == 32) continue;
    test_lus(n, n);
    test_solves(n, 1);
    test_solves(n, 6);
  }
  test_lus(20, 9);
  test_lus(9, 20);
  return finished();
}
