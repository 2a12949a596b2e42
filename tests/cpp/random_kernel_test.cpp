// Philox against published vectors, kernels against the scalar definition, and the distributions.
#include "kernels/functors/philox.h"
#include "kernel_harness.h"
#include "plan/random_build.h"

DECLARE_KERNEL(random_uniform)
DECLARE_KERNEL(random_normal)
DECLARE_KERNEL(random_bernoulli)
DECLARE_KERNEL(random_dropout)
DECLARE_KERNEL(random_integers)

using namespace kernel_test;

namespace {

constexpr uint64_t kSeed = 0x123456789abcdef0u,
                   kOffset = 0xfffffff0u;  // the offset crosses 32 bits

// Random123's kat_vectors, philox4x32 10.
TEST(Philox, KnownAnswers) {
  const struct {
    PhiloxBlock counter;
    uint32_t k0, k1;
    PhiloxBlock want;
  } rows[] = {
      {{{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       0xa4093822,
       0x299f31d0,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const auto& r : rows) {
    const PhiloxBlock got = philox(r.counter, r.k0, r.k1);
    for (int i = 0; i < 4; i++) EXPECT_EQ(got.word[i], r.want.word[i]);
  }
}

RandomPlan plan_of(Buffer* out, uint64_t offset = kOffset) {
  RandomPlan p;
  build_random(&p, out->dtype, out->n, kSeed, offset, out->data());
  return p;
}

void run_all(const KernelRow& row, RandomPlan p, Buffer* out, bool exact, double ulps,
             const char* text) {
  std::vector<Buffer> results;
  for (int isa = 0; isa <= best_isa(); isa++)
    for (int64_t piece : {0, 1, 2}) {
      ASSERT_EQ(run_split(row.isa[isa], &p, piece), 0);
      results.push_back(*out);
      std::memcpy(results.back().data(), out->data(), size_t(out->n * kItemSize[out->dtype]));
      Buffer& first = results[exact ? 0 : size_t(isa) * 3];
      ASSERT_TRUE(results.back().same_bytes(first)) << text << " isa " << isa << " piece " << piece;
      for (int64_t i = 0; i < out->n && !exact; i++)
        ASSERT_NEAR(out->real(i), results[0].real(i),
                    ulps * epsilon(out->dtype) * (1 + std::fabs(out->real(i))))
            << i;
    }
  const char* guard = out->data() + out->n * kItemSize[out->dtype];
  ASSERT_EQ(*guard, 0x5a) << text << " wrote past its end";
}

const int64_t kSizes[] = {1, 15, 64, 100, 1024, 1025, 8192, 20001};

TEST(Random, UniformFollowsTheDefinition) {
  for (int64_t n : kSizes) {
    for (int32_t dtype : {TT_F16, TT_BF16, TT_F32, TT_F64}) {
      Buffer out(dtype, n);
      run_all(KERNEL_ROW(random_uniform), plan_of(&out), &out, true, 0, dtype_text(dtype));
      for (int64_t i = 0; i < n; i++) {
        const uint32_t w = philox_word(kSeed, kOffset, uint64_t(i));
        double want = w >> 8;
        want /= 1 << 24;
        if (dtype == TT_F16) want = double(w >> 21) / 2048;
        if (dtype == TT_BF16) want = double(w >> 24) / 256;
        if (dtype == TT_F64) {
          const uint64_t at = uint64_t(i) / 16 * 32 + uint64_t(i) % 16;
          want = uniform_f64(philox_word(kSeed, kOffset, at), philox_word(kSeed, kOffset, at + 16));
        }
        ASSERT_EQ(out.real(i), want) << dtype_text(dtype) << " " << i;
      }
    }
  }
}

TEST(Random, CountersCoverTheWords) {
  EXPECT_EQ(random_counters(0, kRandomUniform, TT_F32), 0u);
  EXPECT_EQ(random_counters(1, kRandomUniform, TT_F32), 16u);
  EXPECT_EQ(random_counters(64, kRandomNormal, TT_BF16), 16u);
  EXPECT_EQ(random_counters(65, kRandomNormal, TT_F32), 32u);
  EXPECT_EQ(random_counters(64, kRandomUniform, TT_F64), 32u);
  EXPECT_EQ(random_counters(64, kRandomInteger, TT_I64, 0), 32u);
  EXPECT_EQ(random_counters(64, kRandomInteger, TT_I64, 7), 16u);
  // Two arrays drawn one after the other share no value of a longer one drawn at once.
  Buffer a(TT_F32, 100);
  Buffer b(TT_F32, 64);
  Buffer both(TT_F32, 256);
  const uint64_t used = random_counters(a.n, kRandomUniform, TT_F32);
  RandomPlan pa = plan_of(&a);
  RandomPlan pb = plan_of(&b, kOffset + used);
  RandomPlan pc = plan_of(&both);
  for (RandomPlan* p : {&pa, &pb, &pc}) run_split(KERNEL_ROW(random_uniform).isa[0], p, 0);
  for (int64_t i = 0; i < b.n; i++) EXPECT_EQ(b.real(i), both.real(128 + i));
}

TEST(Random, UniformIsFlat) {
  Buffer out(TT_F32, 1 << 20);
  RandomPlan p = plan_of(&out);
  run_split(KERNEL_ROW(random_uniform).isa[best_isa()], &p, 0);
  std::vector<double> bin(1024);
  double sum = 0, lagged = 0;
  for (int64_t i = 0; i < out.n; i++) {
    const double v = out.real(i);
    ASSERT_TRUE(v >= 0 && v < 1);
    bin[size_t(v * 1024)]++;
    sum += v;
    lagged += (v - 0.5) * (out.real((i + 1) % out.n) - 0.5);
  }
  double chi = 0;
  for (double b : bin) chi += (b - 1024) * (b - 1024) / 1024;
  EXPECT_NEAR(chi, 1023, 5 * std::sqrt(2 * 1023.0));
  EXPECT_NEAR(sum / double(out.n), 0.5, 5 / std::sqrt(12.0 * double(out.n)));
  EXPECT_NEAR(lagged / double(out.n), 0, 5 / 12.0 / std::sqrt(double(out.n)));
}

TEST(Random, NormalFollowsTheDefinition) {
  for (int64_t n : kSizes)
    for (int32_t dtype : {TT_F16, TT_BF16, TT_F32, TT_F64}) {
      Buffer out(dtype, n);
      run_all(KERNEL_ROW(random_normal), plan_of(&out), &out, false, 4, dtype_text(dtype));
      for (int64_t i = 0; i < n; i++) {
        const uint64_t g = uint64_t(i) / 32 * 32 + uint64_t(i) % 16;
        double u = (double(philox_word(kSeed, kOffset, g) >> 8) + 1) / (1 << 24);
        double v = double(philox_word(kSeed, kOffset, g + 16) >> 8) / (1 << 24);
        bool sine = i / 16 % 2;
        if (dtype == TT_F64) {
          const uint64_t b = uint64_t(i) / 32 * 64 + uint64_t(i) % 16;
          u = uniform_f64(philox_word(kSeed, kOffset, b), philox_word(kSeed, kOffset, b + 16)) +
              0x1p-53;
          v = uniform_f64(philox_word(kSeed, kOffset, b + 32), philox_word(kSeed, kOffset, b + 48));
        }
        const double angle = 2 * M_PI * v;
        const double want =
            std::sqrt(-2 * std::log(u)) * (sine ? std::sin(angle) : std::cos(angle));
        const double eps = std::max(epsilon(dtype), epsilon(TT_F64) * 16);
        ASSERT_NEAR(out.real(i), want, 3 * eps * (std::fabs(want) + 0.05))
            << dtype_text(dtype) << " " << i;
      }
    }
}

TEST(Random, NormalMoments) {
  Buffer out(TT_F32, 1 << 20);
  RandomPlan p = plan_of(&out);
  run_split(KERNEL_ROW(random_normal).isa[best_isa()], &p, 0);
  double m[5] = {};
  std::vector<double> bin(64);
  for (int64_t i = 0; i < out.n; i++) {
    const double v = out.real(i);
    for (int k = 1; k < 5; k++) m[k] += std::pow(v, k) / double(out.n);
    bin[size_t(std::min(63.0, 64 * 0.5 * std::erfc(-v / std::sqrt(2.0))))]++;
  }
  const double root = std::sqrt(double(out.n));
  EXPECT_NEAR(m[1], 0, 5 / root);
  EXPECT_NEAR(m[2], 1, 5 * std::sqrt(2.0) / root);
  EXPECT_NEAR(m[3], 0, 5 * std::sqrt(15.0) / root);
  EXPECT_NEAR(m[4], 3, 5 * std::sqrt(96.0) / root);
  double chi = 0;
  for (double b : bin) chi += (b - 16384) * (b - 16384) / 16384;
  EXPECT_NEAR(chi, 63, 5 * std::sqrt(126.0));
}

TEST(Random, Bernoulli) {
  for (int32_t dtype = TT_BOOL; dtype <= TT_C128; dtype++) {
    Buffer out(dtype, 20001);
    RandomPlan p = plan_of(&out);
    ASSERT_TRUE(random_threshold(0.3, &p.threshold));
    run_all(KERNEL_ROW(random_bernoulli), p, &out, true, 0, dtype_text(dtype));
    double ones = 0;
    for (int64_t i = 0; i < out.n; i++) {
      const double v = out.real(i);
      ASSERT_EQ(v, double(double(philox_word(kSeed, kOffset, uint64_t(i)) >> 8) < 0.3 * (1 << 24)));
      ones += v;
    }
    EXPECT_NEAR(ones, 6000, 400);
    for (double edge : {0.0, 1.0}) {
      ASSERT_TRUE(random_threshold(edge, &p.threshold));
      run_split(KERNEL_ROW(random_bernoulli).isa[best_isa()], &p, 0);
      for (int64_t i = 0; i < out.n; i++) ASSERT_EQ(out.real(i), edge);
    }
  }
  int32_t t;
  EXPECT_FALSE(random_threshold(-0.1, &t));
  EXPECT_FALSE(random_threshold(1.5, &t));
  EXPECT_FALSE(random_threshold(std::nan(""), &t));
}

TEST(Random, BernoulliOfProbabilities) {
  for (int32_t pd : {TT_F16, TT_BF16, TT_F32, TT_F64}) {
    Buffer out(TT_F32, 5000);
    Buffer probability(pd, 5000);
    probability.fill([](int64_t i) { return double(i % 5) / 4; });
    RandomPlan p = plan_of(&out);
    p.p = probability.data();
    p.p_dtype = pd;
    run_all(KERNEL_ROW(random_bernoulli), p, &out, true, 0, dtype_text(pd));
    for (int64_t i = 0; i < out.n; i++)
      ASSERT_EQ(out.real(i) != 0, double(philox_word(kSeed, kOffset, uint64_t(i)) >> 8) * 0x1p-24 <
                                      probability.real(i));
  }
}

TEST(Random, Dropout) {
  for (int32_t dtype : {TT_F16, TT_BF16, TT_F32, TT_F64})
    for (int64_t n : kSizes) {
      Buffer out(dtype, n);
      Buffer x(dtype, n);
      Buffer mask(TT_BOOL, n);
      fill_random(&x, 9);
      x.put(0, std::numeric_limits<double>::infinity());
      RandomPlan p = plan_of(&out);
      ASSERT_TRUE(random_threshold(0.75, &p.threshold));
      p.scale = 4.0 / 3.0;
      p.x = x.data();
      p.mask = reinterpret_cast<uint8_t*>(mask.data());
      run_all(KERNEL_ROW(random_dropout), p, &out, true, 0, dtype_text(dtype));
      for (int64_t i = 1; i < n; i++) {
        const bool keep = double(philox_word(kSeed, kOffset, uint64_t(i)) >> 8) < 0.75 * (1 << 24);
        ASSERT_EQ(mask.real(i), keep);
        ASSERT_NEAR(out.real(i), keep ? x.real(i) * 4 / 3 : 0,
                    epsilon(dtype) * 2 * std::fabs(x.real(i)));
      }
    }
}

TEST(Random, Integers) {
  for (int32_t dtype = TT_U8; dtype <= TT_F64; dtype++) {
    Buffer out(dtype, 20001);
    RandomPlan p = plan_of(&out);
    p.low = 3;
    p.range = 10;
    run_all(KERNEL_ROW(random_integers), p, &out, true, 0, dtype_text(dtype));
    std::vector<double> bin(10);
    for (int64_t i = 0; i < out.n; i++) {
      const double v = out.real(i);
      ASSERT_TRUE(v >= 3 && v < 13);
      bin[size_t(v - 3)]++;
    }
    double chi = 0;
    for (double b : bin) chi += (b - 2000.1) * (b - 2000.1) / 2000.1;
    EXPECT_LT(chi, 40);
  }
  Buffer out(TT_I64, 3000);
  RandomPlan p = plan_of(&out);
  p.low = std::numeric_limits<int64_t>::min();
  p.range = 0;
  run_all(KERNEL_ROW(random_integers), p, &out, true, 0, "all of i64");
  const int64_t* v = reinterpret_cast<const int64_t*>(out.data());
  int negative = 0;
  for (int i = 0; i < 3000; i++) negative += v[i] < 0;
  EXPECT_NEAR(negative, 1500, 150);
  p.low = -(int64_t(1) << 40);
  p.range = uint64_t(1) << 41;
  run_all(KERNEL_ROW(random_integers), p, &out, true, 0, "wide");
  for (int i = 0; i < 3000; i++)
    ASSERT_TRUE(v[i] >= -(int64_t(1) << 40) && v[i] < int64_t(1) << 40);
}

}  // namespace
