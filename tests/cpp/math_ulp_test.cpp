// Errors of the float functions over the whole float range, through the kernels of every
// instruction set, against double. Every kStep-th bit pattern is taken; TT_TEST_ULP_STEP=1 takes
// all 2^32 (minutes).
#include "kernel_harness.h"
#include "plan/elementwise_build.h"
#include "tests/c/harness/share.h"

#include <cstdlib>

DECLARE_KERNEL(exp)
DECLARE_KERNEL(log)
DECLARE_KERNEL(tanh)
DECLARE_KERNEL(sigmoid)
DECLARE_KERNEL(log2)
DECLARE_KERNEL(log10)
DECLARE_KERNEL(log1p)
DECLARE_KERNEL(exp2)
DECLARE_KERNEL(expm1)
DECLARE_KERNEL(sinh)
DECLARE_KERNEL(cosh)
DECLARE_KERNEL(sin)
DECLARE_KERNEL(cos)
DECLARE_KERNEL(tan)
DECLARE_KERNEL(asin)
DECLARE_KERNEL(acos)
DECLARE_KERNEL(atan)
DECLARE_KERNEL(erf)
DECLARE_KERNEL(erfc)
DECLARE_KERNEL(atanh)
DECLARE_KERNEL(logit)
DECLARE_KERNEL(tanhshrink)
DECLARE_KERNEL(sqrt)
DECLARE_KERNEL(rsqrt)
DECLARE_KERNEL(reciprocal)
DECLARE_KERNEL(gelu)
DECLARE_KERNEL(gelu_backward)
DECLARE_KERNEL(gelu_tanh)
DECLARE_KERNEL(silu)
DECLARE_KERNEL(mish)
DECLARE_KERNEL(lgamma)
DECLARE_KERNEL(digamma)
DECLARE_KERNEL(ndtr)
DECLARE_KERNEL(erfinv)
DECLARE_KERNEL(ndtri)
DECLARE_KERNEL(pow)
DECLARE_KERNEL(logaddexp)
DECLARE_KERNEL(logaddexp2)

namespace {
using namespace kernel_test;

constexpr double kMaxUlp = 1.5;
constexpr int64_t kChunk = 4096;

// In units of the last place of want as a float; infinite where one is nan, infinite or of the
// wrong zero sign and the other is not.
// scale: a number whose last place counts where it is larger than want's.
double ulps(float got, double want, double scale = 0) {
  const float rounded = float(want);
  if (got == rounded) return want == 0 && std::signbit(got) != std::signbit(want) ? INFINITY : 0;
  if (std::isnan(want) && std::isnan(got)) return 0;
  if (!std::isfinite(got) || !std::isfinite(rounded)) return INFINITY;
  int e;
  std::frexp(std::fmax(std::fabs(want), scale), &e);
  return std::fabs(double(got) - want) / std::ldexp(1.0, std::max(e, -125) - 24);
}

uint64_t step() {
  const char* s = std::getenv("TT_TEST_ULP_STEP");
  const uint64_t n = s ? std::strtoull(s, nullptr, 10) : 0;
  if (n) return n;
  return share() > 1 ? 4093 : 1021;
}

constexpr uint64_t kAllFloats = uint64_t(1) << 32;
// The floats whose bits are first, first + by … below end.
template <class F> void measure(const char* name, const KernelRow& row, F reference,
                                double max_ulp = kMaxUlp, uint64_t first = 0,
                                uint64_t end = kAllFloats, uint64_t by = step()) {
  alignas(64) static float in[kChunk], out[kChunk];
  double worst[kNumIsa] = {}, want[kChunk];
  float where[kNumIsa] = {};
  const int64_t size = kChunk, stride = 1;
  const ElementOperand ops[2] = {{reinterpret_cast<char*>(out), &size, &stride, 1, TT_F32},
                                 {reinterpret_cast<char*>(in), &size, &stride, 1, TT_F32}};
  ElementPlan plan;
  memset(static_cast<void*>(&plan), 0, sizeof plan);
  build_element_plan(plan, ops, 2, TT_F32, kBoolNone);
  for (uint64_t u = first; u < end;) {
    for (int64_t i = 0; i < kChunk; i++, u += by) {
      const uint32_t bits = uint32_t(u < end ? u : first);
      memcpy(&in[i], &bits, 4);
      want[i] = reference(double(in[i]));
    }
    for (int isa = 0; isa <= best_isa(); isa++) {
      if (!row.isa[isa]) continue;
      ASSERT_EQ(row.isa[isa](&plan, 0, kChunk), TT_OK);
      for (int64_t i = 0; i < kChunk; i++) {
        const double error = ulps(out[i], want[i]);
        if (error > worst[isa]) worst[isa] = error, where[isa] = in[i];
      }
    }
  }
  for (int isa = 0; isa <= best_isa(); isa++) {
    if (!row.isa[isa]) continue;
    EXPECT_LE(worst[isa], max_ulp) << name << " on " << isa_name(Isa(isa)) << " at " << where[isa];
    testing::Test::RecordProperty(std::string(name) + "_" + isa_name(Isa(isa)),
                                  std::to_string(worst[isa]));
    std::fprintf(stderr, "%s %s: %.3f ulp at %a\n", name, isa_name(Isa(isa)), worst[isa],
                 double(where[isa]));
  }
}

TEST(MathUlp, Exp) {
  measure("exp", KERNEL_ROW(exp), [](double x) { return std::exp(x); });
}
TEST(MathUlp, Log) {
  measure("log", KERNEL_ROW(log), [](double x) { return std::log(x); });
}
TEST(MathUlp, Tanh) {
  measure("tanh", KERNEL_ROW(tanh), [](double x) { return std::tanh(x); });
}
TEST(MathUlp, Sigmoid) {
  measure("sigmoid", KERNEL_ROW(sigmoid), [](double x) {
    return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
  });
}
#define ULP_TEST(name)                                                       \
  TEST(MathUlp, name) {                                                      \
    measure(#name, KERNEL_ROW(name), [](double x) { return std::name(x); }); \
  }
ULP_TEST(log2)
ULP_TEST(log10)
ULP_TEST(log1p)
ULP_TEST(exp2)
ULP_TEST(expm1)
ULP_TEST(sinh)
ULP_TEST(cosh)
ULP_TEST(sin)
ULP_TEST(cos)
ULP_TEST(tan)
ULP_TEST(asin)
ULP_TEST(acos)
ULP_TEST(atan)
ULP_TEST(erf)
ULP_TEST(erfc)
ULP_TEST(sqrt)
TEST(MathUlp, rsqrt) {
  measure("rsqrt", KERNEL_ROW(rsqrt), [](double x) { return 1 / std::sqrt(x); });
}
TEST(MathUlp, reciprocal) {
  measure("reciprocal", KERNEL_ROW(reciprocal), [](double x) { return 1 / x; });
}

// ---- activations: products of x and a gate ----
constexpr double kMaxUlpOfGated = 4;
TEST(MathUlp, gelu) {
  measure(
      "gelu", KERNEL_ROW(gelu), [](double x) { return x * 0.5 * std::erfc(-x * M_SQRT1_2); },
      kMaxUlpOfGated);
}
// The slope crosses 0 near -0.75, so errors are compared with 1/8 at least.
TEST(MathUlp, gelu_backward) {
  alignas(64) static float x[kChunk], grad[kChunk], out[kChunk];
  const int64_t size = kChunk, stride = 1;
  const ElementOperand ops[3] = {{reinterpret_cast<char*>(out), &size, &stride, 1, TT_F32},
                                 {reinterpret_cast<char*>(grad), &size, &stride, 1, TT_F32},
                                 {reinterpret_cast<char*>(x), &size, &stride, 1, TT_F32}};
  const KernelRow row = KERNEL_ROW(gelu_backward);
  ElementPlan plan;
  memset(static_cast<void*>(&plan), 0, sizeof plan);
  build_element_plan(plan, ops, 3, TT_F32, kBoolNone);
  for (int64_t i = 0; i < kChunk; i++) {
    x[i] = float(i - kChunk / 2) * 0x1.8p-8f;  // up to 12
    grad[i] = 1;
  }
  for (int isa = 0; isa <= best_isa(); isa++) {
    if (!row.isa[isa]) continue;
    ASSERT_EQ(row.isa[isa](&plan, 0, kChunk), TT_OK);
    for (int64_t i = 0; i < kChunk; i++) {
      const double t = x[i];
      const double bell = std::exp(-t * t / 2) / std::sqrt(2 * M_PI);
      const double want = 0.5 * std::erfc(-t * M_SQRT1_2) + t * bell;
      EXPECT_LE(std::fabs(out[i] - want), 0x1p-21 * std::max(std::fabs(want), 0.125))
          << isa_name(Isa(isa)) << " at " << t;
    }
  }
}
TEST(MathUlp, gelu_tail) {  // from -1 to -16
  measure(
      "gelu", KERNEL_ROW(gelu), [](double x) { return x * 0.5 * std::erfc(-x * M_SQRT1_2); },
      kMaxUlpOfGated, 0xbf800000, 0xc1800000, 23);
}
TEST(MathUlp, gelu_tanh) {
  constexpr double kTwice = 2 * M_SQRT2 * 0.564189583547756286948;  // 2 sqrt(2 / pi)
  measure(
      "gelu_tanh", KERNEL_ROW(gelu_tanh),
      [](double x) { return x / (1 + std::exp(-kTwice * (x + 0.044715 * x * x * x))); },
      kMaxUlpOfGated);
}
TEST(MathUlp, silu) {
  measure(
      "silu", KERNEL_ROW(silu), [](double x) { return x / (1 + std::exp(-x)); }, kMaxUlpOfGated);
}
TEST(MathUlp, mish) {
  measure(
      "mish", KERNEL_ROW(mish),
      [](double x) {
        return x * std::tanh(x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)));
      },
      kMaxUlpOfGated);
}

TEST(MathUlp, tanhshrink) {  // from 2^-7 to 32
  const auto reference = [](double x) {
    const long double wide = x;
    return double(wide - std::tanh(wide));
  };
  const KernelRow row = KERNEL_ROW(tanhshrink);
  measure("tanhshrink", row, reference, 3.5, 0x3c000000, 0x42000000);
  measure("tanhshrink", row, reference, 3.5, 0xbc000000, 0xc2000000);
}

// ---- functions of doubles that are tt's own, against long double ----
template <class F> void measure_doubles(const char* name, const KernelRow& row, F reference,
                                        double first, double last, double max_ulp) {
  static double in[kChunk], out[kChunk];
  const int64_t size = kChunk, stride = 1;
  const ElementOperand ops[2] = {{reinterpret_cast<char*>(out), &size, &stride, 1, TT_F64},
                                 {reinterpret_cast<char*>(in), &size, &stride, 1, TT_F64}};
  ElementPlan plan;
  memset(static_cast<void*>(&plan), 0, sizeof plan);
  build_element_plan(plan, ops, 2, TT_F64, kBoolNone);
  for (int64_t i = 0; i < kChunk; i++) in[i] = first + (last - first) * double(i) / kChunk;
  for (int isa = 0; isa <= best_isa(); isa++) {
    if (!row.isa[isa]) continue;
    ASSERT_EQ(row.isa[isa](&plan, 0, kChunk), TT_OK);
    double worst = 0;
    for (int64_t i = 0; i < kChunk; i++) {
      const long double want = reference((long double)(in[i]));
      int e;
      std::frexp(double(want), &e);
      const double unit = std::ldexp(1.0, std::max(e - 53, -1074));
      worst = std::fmax(worst, double(std::fabs(out[i] - want)) / unit);
    }
    EXPECT_LE(worst, max_ulp) << name << " on " << isa_name(Isa(isa));
    std::fprintf(stderr, "%s of double %s: %.3f ulp\n", name, isa_name(Isa(isa)), worst);
  }
}
TEST(MathUlp, doubles) {
  using Wide = long double;
  const auto erf = [](Wide x) -> Wide { return std::erf(x); };
  const auto erfc = [](Wide x) -> Wide { return std::erfc(x); };
  const auto atanh = [](Wide x) -> Wide { return std::atanh(x); };
  const auto logit = [](Wide x) -> Wide { return std::log(x / (1 - x)); };
  const auto exp = [](Wide x) -> Wide { return std::exp(x); };
  const auto log1p = [](Wide x) -> Wide { return std::log1p(x); };
  const auto expm1 = [](Wide x) -> Wide { return std::expm1(x); };
  const auto tanh = [](Wide x) -> Wide { return std::tanh(x); };
  const auto gelu = [](Wide x) -> Wide { return x * std::erfc(-x * std::sqrt(Wide(0.5))) / 2; };
  measure_doubles("erf", KERNEL_ROW(erf), erf, -6.5, 6.5, 1);
  // The C library's erfc, which is used without SLEEF, errs by 2.7; cpp.sleef tests the others.
  measure_doubles("erfc", KERNEL_ROW(erfc), erfc, -6.5, 6.5, 3);
  measure_doubles("erfc", KERNEL_ROW(erfc), erfc, 6.5, 27.5, 3);
  measure_doubles("erfc", KERNEL_ROW(erfc), erfc, -1e-300, 1e-300, 1);
  measure_doubles("erf", KERNEL_ROW(erf), erf, -1e-300, 1e-300, 1.5);
  measure_doubles("atanh", KERNEL_ROW(atanh), atanh, -1, 1, 2);
  measure_doubles("atanh", KERNEL_ROW(atanh), atanh, 1e-300, 1e-3, 2);
  measure_doubles("exp", KERNEL_ROW(exp), exp, -745, 709, 1);
  measure_doubles("exp", KERNEL_ROW(exp), exp, -1, 1, 1);
  measure_doubles("log1p", KERNEL_ROW(log1p), log1p, -0.999, 1, 1);
  measure_doubles("log1p", KERNEL_ROW(log1p), log1p, 1, 1e307, 1);
  measure_doubles("log1p", KERNEL_ROW(log1p), log1p, -1e-300, 1e-300, 1);
  measure_doubles("expm1", KERNEL_ROW(expm1), expm1, -40, 709, 1);
  measure_doubles("expm1", KERNEL_ROW(expm1), expm1, -2, 2, 1);
  measure_doubles("expm1", KERNEL_ROW(expm1), expm1, -1e-300, 1e-300, 1);
  // The baseline takes the C library's tanh, which errs by 1.6, also in the place of others that
  // are not built.
  KernelRow own_tanh = KERNEL_ROW(tanh);
  for (int isa = kNumIsa - 1; isa >= 0; isa--)
    if (own_tanh.isa[isa] == own_tanh.isa[kIsaBaseline]) own_tanh.isa[isa] = nullptr;
  measure_doubles("tanh", own_tanh, tanh, -25, 25, 0.75);
  measure_doubles("tanh", own_tanh, tanh, -1e-3, 1e-3, 0.75);
  measure_doubles("tanh", own_tanh, tanh, -1e-300, 1e-300, 0.75);
  measure_doubles("gelu", KERNEL_ROW(gelu), gelu, -37, 10, 5);
  measure_doubles("gelu", KERNEL_ROW(gelu), gelu, -2, 2, 5);
  // Nearer to 1/2 the logarithm is small, and the rounding of x / (1 - x) most of its error, as in
  // PyTorch.
  measure_doubles("logit", KERNEL_ROW(logit), logit, 0, 0.25, 2);
}
TEST(MathUlp, doubles_at_the_ends) {
  struct Case {
    const char* name;
    KernelRow row;
    double x, y;
  };
  const Case cases[] = {{"erf", KERNEL_ROW(erf), INFINITY, 1},
                        {"erf", KERNEL_ROW(erf), -0.0, -0.0},
                        {"erf", KERNEL_ROW(erf), NAN, NAN},
                        {"erfc", KERNEL_ROW(erfc), INFINITY, 0},
                        {"erfc", KERNEL_ROW(erfc), -INFINITY, 2},
                        {"erfc", KERNEL_ROW(erfc), NAN, NAN},
                        {"atanh", KERNEL_ROW(atanh), -1, -INFINITY},
                        {"atanh", KERNEL_ROW(atanh), -0.0, -0.0},
                        {"atanh", KERNEL_ROW(atanh), 1.5, NAN},
                        {"atanh", KERNEL_ROW(atanh), -INFINITY, NAN},
                        {"logit", KERNEL_ROW(logit), 0, -INFINITY},
                        {"logit", KERNEL_ROW(logit), 1, INFINITY},
                        {"logit", KERNEL_ROW(logit), 1.5, NAN},
                        {"exp", KERNEL_ROW(exp), INFINITY, INFINITY},
                        {"exp", KERNEL_ROW(exp), -INFINITY, 0},
                        {"exp", KERNEL_ROW(exp), 709.9, INFINITY},
                        {"exp", KERNEL_ROW(exp), NAN, NAN},
                        {"log1p", KERNEL_ROW(log1p), -1, -INFINITY},
                        {"log1p", KERNEL_ROW(log1p), -2, NAN},
                        {"log1p", KERNEL_ROW(log1p), INFINITY, INFINITY},
                        {"log1p", KERNEL_ROW(log1p), -INFINITY, NAN},
                        {"log1p", KERNEL_ROW(log1p), -0.0, -0.0},
                        {"log1p", KERNEL_ROW(log1p), 0x1p-1074, 0x1p-1074},
                        {"expm1", KERNEL_ROW(expm1), INFINITY, INFINITY},
                        {"expm1", KERNEL_ROW(expm1), 709.9, INFINITY},
                        {"expm1", KERNEL_ROW(expm1), -INFINITY, -1},
                        {"expm1", KERNEL_ROW(expm1), -0.0, -0.0},
                        {"expm1", KERNEL_ROW(expm1), -0x1p-1074, -0x1p-1074},
                        {"expm1", KERNEL_ROW(expm1), NAN, NAN},
                        {"gelu", KERNEL_ROW(gelu), INFINITY, INFINITY},
                        {"gelu", KERNEL_ROW(gelu), -INFINITY, NAN},
                        {"gelu", KERNEL_ROW(gelu), -100, -0.0},
                        {"erfinv", KERNEL_ROW(erfinv), -0.0, -0.0},
                        {"erfinv", KERNEL_ROW(erfinv), -1, -INFINITY},
                        {"erfinv", KERNEL_ROW(erfinv), 1.5, NAN}};
  for (const Case& c : cases)
    for (int isa = 0; isa <= best_isa(); isa++) {
      if (!c.row.isa[isa]) continue;
      double in = c.x, out = 7;
      const int64_t size = 1, stride = 1;
      const ElementOperand ops[2] = {{reinterpret_cast<char*>(&out), &size, &stride, 1, TT_F64},
                                     {reinterpret_cast<char*>(&in), &size, &stride, 1, TT_F64}};
      ElementPlan plan;
      memset(static_cast<void*>(&plan), 0, sizeof plan);
      build_element_plan(plan, ops, 2, TT_F64, kBoolNone);
      ASSERT_EQ(c.row.isa[isa](&plan, 0, 1), TT_OK);
      EXPECT_TRUE(out == c.y || (std::isnan(out) && std::isnan(c.y))) << c.name << " of " << c.x;
      EXPECT_TRUE(c.y != 0 || std::signbit(out) == std::signbit(c.y)) << c.name << " of " << c.x;
    }
}

// ---- special functions: every 16th step, since their references are slow ----
constexpr double kMaxUlpOfSpecial = 0.51;
TEST(MathUlp, lgamma) {  // next to the zeros below -2 a few results miss by more
  const auto reference = [](double x) { return std::lgamma(x); };
  const uint64_t by = 16 * step();
  measure("lgamma", KERNEL_ROW(lgamma), reference, kMaxUlpOfSpecial, 0, kAllFloats, by);
  measure("lgamma", KERNEL_ROW(lgamma), reference, kMaxUlpOfSpecial, 0x3e000000, 0x41800000,
          by / 8);
  measure("lgamma", KERNEL_ROW(lgamma), reference, 1, 0xc0000000, 0xc1000000, by / 8);
}
double digamma(double x) {
  if (x < 0 && x == std::floor(x)) return NAN;
  if (x < 0) return digamma(1 - x) - M_PI / std::tan(M_PI * (x - std::floor(x)));
  long double sum = 0;
  long double t = x;
  for (; t < 30; t += 1) sum -= 1 / t;
  const long double z = 1 / (t * t);
  const long double series = z * (1.0L / 12 - z * (1.0L / 120 - z * (1.0L / 252 - z / 240)));
  return double(std::isinf(x) ? t : sum + std::log(t) - 0.5L / t - series);
}
TEST(MathUlp, digamma) {
  measure("digamma", KERNEL_ROW(digamma), digamma, kMaxUlpOfSpecial, 0x00000000, 0x7f800001,
          16 * step());
  measure("digamma", KERNEL_ROW(digamma), digamma, 1, 0xbe000000, 0xc1000000, 2 * step());
}
TEST(MathUlp, ndtr) {
  measure(
      "ndtr", KERNEL_ROW(ndtr), [](double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); },
      kMaxUlpOfSpecial, 0, kAllFloats, 16 * step());
}
// The inverse of an increasing function by bisection between low and high.
template <class F> double inverse(double y, double low, double high, F f) {
  for (int i = 0; i < 64; i++) {
    const double x = 0.5 * (low + high);
    (f(x) < y ? low : high) = x;
  }
  return low;
}
TEST(MathUlp, erfinv) {
  const auto reference = [](double y) {
    if (!(std::fabs(y) < 1)) return std::fabs(y) == 1 ? std::copysign(INFINITY, y) : NAN;
    const double q = 1 - std::fabs(y);
    const double far = -inverse(q, -6, 0, [](double x) { return std::erfc(-x); });
    const double near = inverse(std::fabs(y), 0, 6, [](double x) { return std::erf(x); });
    return std::copysign(q < 0.5 ? far : near, y);
  };
  measure("erfinv", KERNEL_ROW(erfinv), reference, kMaxUlpOfSpecial, 0x30000000, 0x3f800002,
          64 * step());
  measure("erfinv", KERNEL_ROW(erfinv), reference, kMaxUlpOfSpecial, 0xbe800000, 0xbf800002,
          8 * step());
}
TEST(MathUlp, ndtri) {
  const auto reference = [](double p) {
    if (!(p > 0 && p < 1)) return p == 0 || p == 1 ? (p - 0.5) * INFINITY : NAN;
    const auto lower = [](double q) {
      return inverse(q, -15, 0, [](double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); });
    };
    return p < 0.5 ? lower(p) : -lower(1 - p);
  };
  measure("ndtri", KERNEL_ROW(ndtri), reference, kMaxUlpOfSpecial, 0, 0x3f800002, 64 * step());
}

// ---- functions of two numbers ----
// Pairs are all of special values, random bits, and numbers of magnitudes 2^-8 to 2^8.
// relative_to: a number in terms of the pair, as `scale` of ulps().
template <class F, class G> void measure_pairs(const char* name, const KernelRow& row, F reference,
                                               G relative_to, double max_ulp) {
  static constexpr float kSpecial[] = {0,     -0.0f, 1,        -1,        2,   -2,
                                       3,     -3,    0.5f,     -0.5f,     2.5, -2.5,
                                       1e38f, 1e-45, INFINITY, -INFINITY, NAN, -1e-45};
  constexpr int64_t kSpecials = sizeof kSpecial / sizeof kSpecial[0];
  alignas(64) static float a[kChunk], b[kChunk], out[kChunk];
  const int64_t size = kChunk, stride = 1;
  const ElementOperand ops[3] = {{reinterpret_cast<char*>(out), &size, &stride, 1, TT_F32},
                                 {reinterpret_cast<char*>(a), &size, &stride, 1, TT_F32},
                                 {reinterpret_cast<char*>(b), &size, &stride, 1, TT_F32}};
  ElementPlan plan;
  memset(static_cast<void*>(&plan), 0, sizeof plan);
  build_element_plan(plan, ops, 3, TT_F32, kBoolNone);
  uint64_t state = 1;
  const auto next = [&](int round) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint32_t bits = uint32_t(state >> 32);
    const uint32_t near_one = (bits & 0x87ffffffu) + 0x3c000000u;
    float x;
    memcpy(&x, round % 2 ? &near_one : &bits, 4);
    return x;
  };
  for (int round = 0; round < 24; round++) {
    for (int64_t i = 0; i < kChunk; i++) {
      const bool special = round == 0 && i < kSpecials * kSpecials;
      a[i] = special ? kSpecial[i / kSpecials] : next(round);
      b[i] = special ? kSpecial[i % kSpecials] : next(round);
    }
    for (int isa = 0; isa <= best_isa(); isa++) {
      if (!row.isa[isa]) continue;
      ASSERT_EQ(row.isa[isa](&plan, 0, kChunk), TT_OK);
      for (int64_t i = 0; i < kChunk; i++)
        EXPECT_LE(ulps(out[i], reference(a[i], b[i]), relative_to(a[i], b[i])), max_ulp)
            << name << " on " << isa_name(Isa(isa)) << " at " << a[i] << ", " << b[i];
    }
  }
}
TEST(MathUlp, pow) {
  const auto reference = [](double a, double b) { return std::pow(a, b); };
  const auto none = [](double, double) { return 0.0; };
  measure_pairs("pow", KERNEL_ROW(pow), reference, none, 0.83);  // the C library's bound
}
// A result near 0 is the sum of two terms that cancel, and a - b is rounded before the exponential.
double larger_term(double a, double b) {
  const double high = std::fabs(std::fmax(a, b));
  const double difference = std::fabs(a - b);
  const double low = (1 + difference) * std::exp2(-difference);
  return std::isfinite(a + b) ? std::fmax(high, low) : 0;
}
constexpr double kMaxUlpOfSum = 1.5;
template <class F, class G> double log_of_sum(double a, double b, F exp, G log1p) {
  const double high = std::fmax(a, b);
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return std::isinf(high) ? high : high + log1p(exp(std::fmin(a, b) - high));
}
TEST(MathUlp, logaddexp) {
  const auto reference = [](double a, double b) {
    return log_of_sum(
        a, b, [](double x) { return std::exp(x); }, [](double x) { return std::log1p(x); });
  };
  measure_pairs("logaddexp", KERNEL_ROW(logaddexp), reference, larger_term, kMaxUlpOfSum);
}
TEST(MathUlp, logaddexp2) {
  const auto reference = [](double a, double b) {
    return log_of_sum(
        a, b, [](double x) { return std::exp2(x); },
        [](double x) { return std::log1p(x) * M_LOG2E; });
  };
  measure_pairs("logaddexp2", KERNEL_ROW(logaddexp2), reference, larger_term, kMaxUlpOfSum);
}

}  // namespace
