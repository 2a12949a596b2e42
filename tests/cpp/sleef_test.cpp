// SLEEF's functions in double, through the kernels of every instruction set, against long double;
// without SLEEF the C library's values.
#include "kernel_harness.h"
#include "plan/elementwise_build.h"
#include "cpu/sleef.h"

#include <algorithm>
#include <cfloat>

// clang-format off
#define EACH_FUNCTION(X)                                                       \
  X(Log, log) X(Log2, log2) X(Log10, log10) X(Exp2, exp2) X(Sin, sin)          \
  X(Cos, cos) X(Tan, tan) X(Asin, asin) X(Acos, acos) X(Atan, atan)            \
  X(Sinh, sinh) X(Cosh, cosh) X(Tanh, tanh) X(Erfc, erfc)
// clang-format on
#define DECLARE_EACH(id, name) DECLARE_KERNEL(name)
EACH_FUNCTION(DECLARE_EACH)
DECLARE_KERNEL(pow)
DECLARE_KERNEL(atan2)

namespace {
using namespace kernel_test;

struct Case {
  VectorId id;
  KernelRow row;
  long double (*exact)(long double);
};
#define CASE(id, name) \
  {kVector##id, KERNEL_ROW(name), [](long double x) -> long double { return std::name(x); }},
const Case kCases[] = {EACH_FUNCTION(CASE)};

std::string label(const Case& c, int isa) {
  return std::string(kVectorFunctions[c.id].name) + " on " + isa_name(Isa(isa));
}
double c_library(const Case& c, double x) { return kVectorFunctions[c.id].scalar(x); }
// tt's own functions.
bool is_own(const Case& c, int isa) {
  if (c.id == kVectorTanh) return c.row.isa[isa] != c.row.isa[kIsaBaseline];
  return c.id == kVectorErfc && isa == kIsaAvx512;
}
bool same_bits(double a, double b) { return !std::memcmp(&a, &b, sizeof a) || (a != a && b != b); }

void run(CpuKernel kernel, const double* in, double* out, int64_t n) {
  const int64_t stride = 1;
  const ElementOperand ops[2] = {
      {reinterpret_cast<char*>(out), &n, &stride, 1, TT_F64},
      {reinterpret_cast<char*>(const_cast<double*>(in)), &n, &stride, 1, TT_F64}};
  ElementPlan plan;
  memset(static_cast<void*>(&plan), 0, sizeof plan);
  build_element_plan(plan, ops, 2, TT_F64, kBoolNone);
  ASSERT_EQ(kernel(&plan, 0, n), TT_OK);
}

const double kSpecial[] = {0.0,
                           -0.0,
                           INFINITY,
                           -INFINITY,
                           NAN,
                           1,
                           -1,
                           DBL_TRUE_MIN,
                           -DBL_TRUE_MIN,
                           DBL_MIN,
                           -DBL_MIN,
                           DBL_MAX,
                           -DBL_MAX,
                           0.5,
                           2,
                           -2,
                           10,
                           1000,
                           1024,
                           -1022,
                           -1023,
                           -1074,
                           -1075,
                           -1076,
                           708.9,
                           709,
                           709.1,
                           709.9,
                           -709.9,
                           710.2,
                           -710.2,
                           710.5,
                           -745.1,
                           1e306,
                           1e307,
                           1.5e308,
                           -0x1.fffffffffffffp-1,
                           0x1.0000000000001p+0,
                           14.999,
                           15,
                           -15,
                           15.001,
                           1e13,
                           1e14,
                           -1e15,
                           1e22};

// Any bits, usual magnitudes and everything between them.
std::vector<double> samples(size_t n, uint32_t seed) {
  std::mt19937_64 g(seed);
  std::vector<double> x(std::begin(kSpecial), std::end(kSpecial));
  while (x.size() < n) {
    const uint64_t bits = g();
    const double u = double(int64_t(g())) * 0x1p-63;
    double any;
    memcpy(&any, &bits, sizeof any);
    for (double v : {any, u, 2 * u, 30 * u, 1500 * u, std::ldexp(u, int(bits % 60)),
                     std::ldexp(u, -int(bits % 1070))})
      x.push_back(v);
  }
  return x;
}

double ulps(double got, long double want) {
  const double rounded = double(want);
  if (got == rounded) return want == 0 && std::signbit(got) != std::signbit(rounded) ? INFINITY : 0;
  if (std::isnan(rounded) && std::isnan(got)) return 0;
  if (!std::isfinite(got) || !std::isfinite(rounded)) return INFINITY;
  int e;
  std::frexp(want, &e);
  return double(std::fabs(got - want) / std::ldexp(1.0L, std::max(e, -1021) - 53));
}

void for_each(void (*test)(const Case&, int isa)) {
  for (const Case& c : kCases)
    for (int isa = 0; isa <= best_isa(); isa++) test(c, isa);
}

// The first test of this program: nothing has opened SLEEF.
TEST(Sleef, IsOpenedAtTheFirstUse) {
  EXPECT_STREQ(sleef_state(), TT_SLEEF ? "not loaded" : "off");
  for_each([](const Case& c, int isa) {
    EXPECT_EQ(sleef_function(c.id, Isa(isa)), nullptr);
    if (is_own(c, isa)) return;
    const std::vector<double> x = samples(2000, 1);
    std::vector<double> y(x.size());
    run(c.row.isa[isa], x.data(), y.data(), int64_t(x.size()));
    for (size_t i = 0; i < x.size(); i++)
      ASSERT_TRUE(same_bits(y[i], c_library(c, x[i]))) << label(c, isa) << " at " << x[i];
  });
}

TEST(Sleef, IsWithinOneUlp) {
  if (!sleef_open()) GTEST_SKIP() << "no SLEEF here";
  EXPECT_STREQ(sleef_state(), "open");
  for_each([](const Case& c, int isa) {
    if (!sleef_function(c.id, Isa(isa))) {
      EXPECT_EQ(isa, kIsaBaseline) << label(c, isa);
      return;
    }
    const std::vector<double> x = samples(100000, 2);
    std::vector<double> y(x.size());
    run(c.row.isa[isa], x.data(), y.data(), int64_t(x.size()));
    double worst = 0, where = 0;
    for (size_t i = 0; i < x.size(); i++) {
      const bool far = !(std::fabs(x[i]) <= kVectorFunctions[c.id].far);
      double e = far && !same_bits(y[i], c_library(c, x[i])) ? INFINITY : 0;
      if (!far) e = ulps(y[i], c.exact(x[i]));
      if (e > worst) {
        worst = e;
        where = x[i];
      }
    }
    EXPECT_LE(worst, 1.0) << label(c, isa) << " at " << where;
    std::fprintf(stderr, "%s: %.3f ulp at %a\n", label(c, isa).c_str(), worst, where);
  });
}

TEST(Sleef, AgreesWithTheCLibraryOnSpecialValues) {
  sleef_open();
  for_each([](const Case& c, int isa) {
    for (double x : kSpecial) {
      double y;
      run(c.row.isa[isa], &x, &y, 1);
      EXPECT_LE(ulps(y, c_library(c, x)), 2.5) << label(c, isa) << " at " << x << ": " << y;
      const double want = c_library(c, x);
      EXPECT_TRUE((want != 0 && want != x && !std::isinf(want)) || same_bits(y, want))
          << label(c, isa) << " at " << x;
    }
  });
}

// A result depends neither on the element's position nor on its neighbours, be they near, far or
// nan.
TEST(Sleef, ValuesDependOnTheArgumentOnly) {
  sleef_open();
  for_each([](const Case& c, int isa) {
    std::vector<double> x = samples(4001, 3);
    std::vector<double> y(x.size());
    std::vector<double> again(x.size());
    run(c.row.isa[isa], x.data(), y.data(), int64_t(x.size()));
    for (size_t i = 0; i < x.size(); i++) {
      run(c.row.isa[isa], &x[i], &again[i], 1);
      ASSERT_TRUE(same_bits(y[i], again[i])) << label(c, isa) << " at " << x[i];
    }
    std::vector<size_t> order(x.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(4));
    std::vector<double> turned(x.size());
    for (size_t i = 0; i < order.size(); i++) turned[i] = x[order[i]];
    for (size_t skip : {0, 1, 5}) {
      run(c.row.isa[isa], turned.data() + skip, again.data() + skip, int64_t(x.size() - skip));
      for (size_t i = skip; i < order.size(); i++)
        ASSERT_TRUE(same_bits(again[i], y[order[i]])) << label(c, isa) << " at " << turned[i];
    }
    run(c.row.isa[isa], turned.data(), turned.data(), int64_t(x.size()));  // in place
    for (size_t i = 0; i < order.size(); i++)
      ASSERT_TRUE(same_bits(turned[i], y[order[i]])) << label(c, isa);
  });
}

// ---- functions of two arguments ----

struct PairCase {
  PairVectorId id;
  KernelRow row;
  long double (*exact)(long double, long double);
};
const PairCase kPairCases[] = {{kVectorPow, KERNEL_ROW(pow), std::pow},
                               {kVectorAtan2, KERNEL_ROW(atan2), std::atan2}};

std::string label(const PairCase& c, int isa) {
  return std::string(kPairVectorFunctions[c.id].name) + " on " + isa_name(Isa(isa));
}
double c_library(const PairCase& c, double x, double y) {
  return kPairVectorFunctions[c.id].scalar(x, y);
}

std::vector<double> results(const PairCase& c, int isa, const std::vector<double>& x,
                            const std::vector<double>& y) {
  std::vector<double> out(x.size());
  const int64_t n = int64_t(x.size());
  const int64_t stride = 1;
  const auto operand = [&](const double* p) {
    return ElementOperand{reinterpret_cast<char*>(const_cast<double*>(p)), &n, &stride, 1, TT_F64};
  };
  const ElementOperand ops[3] = {operand(out.data()), operand(x.data()), operand(y.data())};
  ElementPlan plan;
  memset(static_cast<void*>(&plan), 0, sizeof plan);
  build_element_plan(plan, ops, 3, TT_F64, kBoolNone);
  EXPECT_EQ(c.row.isa[isa](&plan, 0, n), TT_OK);
  return out;
}

void for_each_pair(void (*test)(const PairCase&, int isa)) {
  for (const PairCase& c : kPairCases)
    for (int isa = 0; isa <= best_isa(); isa++) test(c, isa);
}

TEST(SleefPairs, AreWithinOneUlp) {
  if (!sleef_open()) GTEST_SKIP() << "no SLEEF here";
  for_each_pair([](const PairCase& c, int isa) {
    EXPECT_EQ(!sleef_function(c.id, Isa(isa)), isa == kIsaBaseline) << label(c, isa);
    const std::vector<double> x = samples(100000, 5);
    std::vector<double> y = x;
    std::shuffle(y.begin(), y.end(), std::mt19937(6));
    const std::vector<double> got = results(c, isa, x, y);
    for (size_t i = 0; i < x.size(); i++)
      ASSERT_LE(ulps(got[i], c.exact(x[i], y[i])), 1.0)
          << label(c, isa) << " at " << x[i] << ", " << y[i] << ": " << got[i];
  });
}

TEST(SleefPairs, HaveTheSpecialValuesOfTheCLibrary) {
  sleef_open();
  for_each_pair([](const PairCase& c, int isa) {
    std::vector<double> x, y;
    for (double a : kSpecial)
      for (double b : kSpecial) {
        x.push_back(a);
        y.push_back(b);
      }
    const std::vector<double> got = results(c, isa, x, y);
    for (size_t i = 0; i < x.size(); i++) {
      const double want = c_library(c, x[i], y[i]);
      const bool rounded = want != 0 && std::isfinite(want);
      EXPECT_TRUE(rounded ? ulps(got[i], want) <= 1 : same_bits(got[i], want))
          << label(c, isa) << " at " << x[i] << ", " << y[i] << ": " << got[i];
    }
  });
}

TEST(SleefPairs, DependOnTheArgumentsOnly) {
  sleef_open();
  for_each_pair([](const PairCase& c, int isa) {
    const std::vector<double> x = samples(2001, 7);
    std::vector<double> y = x;
    std::shuffle(y.begin(), y.end(), std::mt19937(8));
    const std::vector<double> all = results(c, isa, x, y);
    for (size_t i = 0; i < x.size(); i++) {
      const std::vector<double> one = results(c, isa, {x[i]}, {y[i]});
      ASSERT_TRUE(same_bits(all[i], one[0])) << label(c, isa) << " at " << x[i] << ", " << y[i];
    }
  });
}

}  // namespace
