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
DECLARE_KERNEL(sqrt)
DECLARE_KERNEL(rsqrt)
DECLARE_KERNEL(reciprocal)
DECLARE_KERNEL(gelu)
DECLARE_KERNEL(gelu_backward)
DECLARE_KERNEL(gelu_tanh)
DECLARE_KERNEL(silu)
DECLARE_KERNEL(mish)

namespace {
using namespace kernel_test;

constexpr double kMaxUlp = 1.5;
constexpr int64_t kChunk = 4096;

// In units of the last place of want as a float; infinite where one is nan, infinite or of the
// wrong zero sign and the other is not.
double ulps(float got, double want) {
  const float rounded = float(want);
  if (got == rounded) return want == 0 && std::signbit(got) != std::signbit(want) ? INFINITY : 0;
  if (std::isnan(want) && std::isnan(got)) return 0;
  if (!std::isfinite(got) || !std::isfinite(rounded)) return INFINITY;
  int e;
  std::frexp(want, &e);
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

}  // namespace
