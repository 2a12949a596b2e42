// OpenBLAS against tt's own matmul: both providers run the same plans.
#include "base/pool.h"
#include "cpu/blas.h"
#include "cpu/matmul_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

using namespace TT_NS;

namespace {

template <class T> std::vector<T> values(size_t n, unsigned seed) {
  std::vector<T> v(n);
  for (T& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = T(int(seed >> 16) % 2001 - 1000) / T(1000);
  }
  return v;
}

// Runs a (m, k) x (k, n) matmul with either provider; parts is 2 for complex numbers.
template <class T> std::vector<T> multiply(int32_t dtype, int parts, int64_t m, int64_t n,
                                           int64_t k, bool a_turned, bool b_turned, bool blas) {
  std::vector<T> a = values<T>(size_t(m * k * parts), 1);
  std::vector<T> b = values<T>(size_t(k * n * parts), 2);
  std::vector<T> c(size_t(m * n * parts), T(7));
  MatmulPlan p;
  matmul_build_2d(&p, dtype, m, n, k, a.data(), a_turned ? 1 : k, a_turned ? m : 1, b.data(),
                  b_turned ? 1 : n, b_turned ? k : 1, c.data());
  if (blas) {
    EXPECT_TRUE(blas_serves(p, kIsaBaseline));
    p.path = kMatmulBlas;
  }
  std::vector<char> workspace(size_t(matmul_workspace_bytes(p)) + 64);
  p.workspace = reinterpret_cast<void*>((uintptr_t(workspace.data()) + 63) / 64 * 64);
  EXPECT_EQ(run_matmul(p, kIsaBaseline, nullptr), TT_OK);
  return c;
}

template <class T> void compare(int32_t dtype, int parts, double tolerance) {
  for (int turned = 0; turned < 4; turned++) {
    const int64_t m = 600, n = 270, k = 300;
    std::vector<T> own = multiply<T>(dtype, parts, m, n, k, turned & 1, turned & 2, false);
    std::vector<T> blas = multiply<T>(dtype, parts, m, n, k, turned & 1, turned & 2, true);
    double worst = 0;
    for (size_t i = 0; i < own.size(); i++)
      worst = std::max(worst, std::fabs(double(own[i]) - double(blas[i])));
    EXPECT_LE(worst, tolerance) << "dtype " << dtype << " layout " << turned;
  }
}

bool available() {
  std::vector<double> x(size_t(300 * 300));
  MatmulPlan p;
  matmul_build_2d(&p, TT_F64, 300, 300, 300, x.data(), 300, 1, x.data(), 300, 1, x.data());
  return blas_serves(p, kIsaBaseline);
}

}  // namespace

TEST(Blas, AgreesWithOwnProducts) {
  if (!available()) GTEST_SKIP() << "no OpenBLAS here";
  EXPECT_NE(blas_core(), nullptr);
  compare<float>(TT_F32, 1, 3e-4);
  compare<double>(TT_F64, 1, 1e-12);
  compare<float>(TT_C64, 2, 6e-4);
  compare<double>(TT_C128, 2, 2e-12);
}

// OpenBLAS built without threads uses one buffer for concurrent calls.
TEST(Blas, IsCalledByOneThreadAtATime) {
  if (!available()) GTEST_SKIP() << "no OpenBLAS here";
  const int64_t n = 21, k = 64;
  const std::vector<double> a = values<double>(size_t(2 * n * k), 1);
  const std::vector<double> b = values<double>(size_t(2 * n * k), 2);
  const auto run = [&](std::vector<double>* c) {
    MatmulPlan p;
    matmul_build_2d(&p, TT_C128, n, n, k, a.data(), k, 1, b.data(), n, 1, c->data());
    EXPECT_EQ(blas_tiles(&p, 0, blas_units(p)), TT_OK);
  };
  std::vector<double> want(size_t(2 * n * n));
  run(&want);
  const auto repeat = [&](int* wrong) {
    std::vector<double> c(want.size());
    for (int i = 0; i < 50000; i++) {
      run(&c);
      *wrong += c != want;
    }
  };
  int wrong[2] = {};
  std::thread other(repeat, &wrong[1]);
  repeat(&wrong[0]);
  other.join();
  EXPECT_EQ(wrong[0] + wrong[1], 0);
}

TEST(Blas, DeclinesWhatItCannotServe) {
  std::vector<double> x(size_t(400 * 400 * 2));
  MatmulPlan p;
  matmul_build_2d(&p, TT_F64, 200, 200, 200, x.data(), 400, 2, x.data(), 200, 1,
                  x.data());  // no unit stride
  EXPECT_FALSE(blas_serves(p, kIsaBaseline));
  matmul_build_2d(&p, TT_I64, 200, 200, 200, x.data(), 200, 1, x.data(), 200, 1, x.data());
  EXPECT_FALSE(blas_serves(p, kIsaBaseline));
  matmul_build_2d(&p, TT_C128, 200, 200, 200, x.data(), 200, 1, x.data(), 200, 1, x.data());
  EXPECT_TRUE(blas_serves(p, kIsaBaseline));
  EXPECT_FALSE(blas_serves(p, kIsaAvx2));  // on one thread it would be about as fast
  matmul_build_2d(&p, TT_F64, 8, 8, 8, x.data(), 8, 1, x.data(), 8, 1, x.data());  // tiny
  EXPECT_FALSE(blas_serves(p, kIsaBaseline));
}
