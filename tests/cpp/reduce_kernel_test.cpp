// Reductions: every kernel, dtype and ISA against a reference in double, over contiguous and
// strided nests.
#include "kernel_harness.h"
#include "plan/reduce_build.h"
#include "tests/c/harness/share.h"

#include <string>

DECLARE_KERNEL(reduce_sum)
DECLARE_KERNEL(reduce_prod)
DECLARE_KERNEL(reduce_max)
DECLARE_KERNEL(reduce_min)
DECLARE_KERNEL(reduce_any)
DECLARE_KERNEL(reduce_all)
DECLARE_KERNEL(reduce_max_index)
DECLARE_KERNEL(reduce_min_index)

using namespace kernel_test;

namespace {

enum Kind { kSum, kProd, kMax, kMin, kAny, kAll, kMaxIndex, kMinIndex };

struct Case {
  std::vector<int64_t> size;
  uint64_t reduced;
  std::vector<int> permute;  // memory order of the dims, outermost first; empty: contiguous
};

struct Result {
  Buffer out, index;
};

KernelRow row_of(Kind k) {
  switch (k) {
    case kSum: return KERNEL_ROW(reduce_sum);
    case kProd: return KERNEL_ROW(reduce_prod);
    case kMax: return KERNEL_ROW(reduce_max);
    case kMin: return KERNEL_ROW(reduce_min);
    case kAny: return KERNEL_ROW(reduce_any);
    case kAll: return KERNEL_ROW(reduce_all);
    case kMaxIndex: return KERNEL_ROW(reduce_max_index);
    default: return KERNEL_ROW(reduce_min_index);
  }
}

int32_t out_dtype(Kind k, int32_t d) {
  if (k == kAny || k == kAll) return TT_BOOL;
  if ((k == kSum || k == kProd) && !is_float(d)) return TT_I64;
  return d;
}

std::vector<int64_t> strides_of(const Case& c, int64_t item) {
  if (c.permute.empty()) return contiguous_strides(c.size, item);
  std::vector<int64_t> s(c.size.size());
  for (size_t i = c.permute.size(); i-- > 0;) {
    s[size_t(c.permute[i])] = item;
    item *= c.size[size_t(c.permute[i])];
  }
  return s;
}

int64_t product(const std::vector<int64_t>& v) {
  int64_t n = 1;
  for (int64_t x : v) n *= x;
  return n;
}

Result run(Kind k, const Case& c, Buffer& in, int isa, int64_t piece, double divisor = 1,
           ReduceTerm term = kReduceElements) {
  const std::vector<int64_t> stride = strides_of(c, kItemSize[in.dtype]);
  ReducePlan plan;
  const int32_t od = out_dtype(k, in.dtype);
  build_reduce(&plan, {int32_t(c.size.size()), c.size.data(), stride.data(), c.reduced, in.dtype,
                       od, nullptr, nullptr, k >= kMaxIndex, term});
  Result r{Buffer(od, plan.n_out), Buffer(TT_I64, plan.n_out)};
  std::vector<char> workspace(size_t(reduce_workspace_bytes(&plan)) + 16);
  plan.in = in.data();
  plan.out = r.out.data();
  plan.index = k >= kMaxIndex ? r.index.data() : nullptr;
  plan.workspace = workspace.data();
  plan.divisor = divisor;
  plan.root = term == kReduceSquares;
  EXPECT_EQ(run_split(row_of(k).isa[isa], &plan, piece), 0);
  return r;
}

// The reference: one value, the sum of magnitudes and a position per output, in the order of the
// dims.
struct Reference {
  std::vector<Value> value;
  std::vector<double> magnitude;
  std::vector<int64_t> position;
};

Reference reference(Kind k, const Case& c, Buffer& in) {
  const std::vector<int64_t> stride = strides_of(c, 1);
  int64_t n_out = 1;
  for (size_t d = 0; d < c.size.size(); d++)
    if (!(c.reduced >> d & 1)) n_out *= c.size[d];
  const Value start = k == kProd || k == kAll ? 1 : 0;
  Reference r{std::vector<Value>(size_t(n_out), start), std::vector<double>(size_t(n_out), 0),
              std::vector<int64_t>(size_t(n_out), -1)};
  std::vector<int64_t> at(c.size.size(), 0);
  for (int64_t e = 0; e < product(c.size); e++) {
    int64_t rest = e, offset = 0, o = 0, pos = 0, o_scale = 1, p_scale = 1;
    for (size_t d = c.size.size(); d-- > 0;) {
      const int64_t i = rest % c.size[d];
      rest /= c.size[d];
      offset += i * stride[d];
      if (c.reduced >> d & 1) {
        pos += i * p_scale;
        p_scale *= c.size[d];
      } else {
        o += i * o_scale;
        o_scale *= c.size[d];
      }
    }
    const Value x = in[offset];
    Value& v = r.value[size_t(o)];
    r.magnitude[size_t(o)] += std::abs(x);
    int64_t& best = r.position[size_t(o)];
    switch (k) {
      case kSum: v += x; break;
      case kProd: v *= x; break;
      case kAny: v = v != 0.0 || x != 0.0; break;
      case kAll: v = v != 0.0 && x != 0.0; break;
      default: {
        const bool better = k == kMax || k == kMaxIndex ? x.real() > v.real() : x.real() < v.real();
        if (best < 0 || (!std::isnan(v.real()) && (better || std::isnan(x.real())))) {
          v = x;
          best = pos;
        }
      }
    }
  }
  return r;
}

void check(Kind k, const Case& c, Buffer& in, const std::string& text) {
  Reference ref = reference(k, c, in);
  Result first = run(k, c, in, 0, 0);
  ASSERT_EQ(first.out.n, int64_t(ref.value.size()));
  for (int64_t i = 0; i < first.out.n; i++) {
    const Value want = ref.value[size_t(i)];
    const Value got = first.out[i];
    if (k == kSum && is_float(in.dtype)) {
      const int32_t compute =
          in.dtype == TT_F16 || in.dtype == TT_BF16 ? int32_t(TT_F32) : in.dtype;
      const double bound = epsilon(compute) * 8 * ref.magnitude[size_t(i)] +
                           epsilon(in.dtype) * std::abs(want) + 1e-7 * epsilon(in.dtype);
      ASSERT_LE(std::abs(got - want), bound) << text << " out " << i;
    } else if (k == kProd && is_float(in.dtype)) {
      ASSERT_LE(std::abs(got - want),
                (epsilon(in.dtype) + epsilon(TT_F32) * 64) * std::abs(want) + 1e-7)
          << text << " out " << i;
    } else if (std::isnan(want.real())) {
      ASSERT_TRUE(std::isnan(got.real())) << text << " out " << i;
    } else {
      ASSERT_EQ(got, want) << text << " out " << i;
    }
    if (k >= kMaxIndex) {
      ASSERT_EQ(first.index.real(i), double(ref.position[size_t(i)])) << text << " out " << i;
    }
  }
  const bool exact = !(k == kProd && is_float(in.dtype));
  for (int isa = 0; isa <= best_isa(); isa++)
    for (int64_t piece : {int64_t(0), int64_t(1), int64_t(3)}) {
      Result again = run(k, c, in, isa, piece);
      if (isa == 0 || exact) {
        ASSERT_TRUE(again.out.same_bytes(first.out))
            << text << " isa " << isa << " piece " << piece;
      }
      if (k >= kMaxIndex) {
        ASSERT_TRUE(again.index.same_bytes(first.index)) << text << " isa " << isa;
      }
    }
}

const Case kCases[] = {
    {{}, 0, {}},
    {{7}, 1, {}},
    {{64}, 1, {}},
    {{1000}, 1, {}},
    {{5, 3}, 2, {}},
    {{5, 3}, 1, {}},
    {{4, 4}, 3, {}},
    {{3, 100}, 1, {}},
    {{100, 3}, 2, {}},
    {{200, 300}, 1, {}},
    {{300, 70}, 2, {}},
    {{9, 8, 33}, 2, {}},
    {{9, 8, 33}, 5, {}},
    {{9, 8, 33}, 3, {}},
    {{9, 8, 33}, 6, {}},
    {{9, 8, 33}, 5, {2, 0, 1}},
    {{9, 8, 33}, 1, {1, 2, 0}},
    {{9, 8, 33}, 7, {2, 1, 0}},
    {{2, 3, 4, 5, 6}, 0x15, {3, 0, 4, 1, 2}},
    {{1, 6, 1, 7}, 8, {}},
    {{12, 1500}, 1, {}},
    {{3, 40, 600}, 2, {}},
    {{6, 5}, 0, {}},
    {{900, 5}, 1, {}},  // few columns: several rows at once
    {{700, 12}, 1, {}},
    {{3, 500, 20}, 2, {}},
};

class ReduceTest : public testing::TestWithParam<int32_t> {};

TEST_P(ReduceTest, AllCases) {
  const int32_t dtype = GetParam();
  for (const Case& c : kCases) {
    Buffer in(dtype, product(c.size));
    fill_random(&in, 7);
    for (int k = kSum; k <= kMinIndex; k++) {
      if (is_complex(dtype) && (k == kMax || k == kMin || k >= kMaxIndex)) continue;
      if (k == kProd && !is_complex(dtype)) {
        Buffer near_one(dtype, in.n);
        near_one.fill([&](int64_t i) {
          return is_float(dtype) ? 1 + 0.02 * std::sin(double(i)) : double(1 + (i % 97 == 5));
        });
        if (in.n <= 1000 || is_float(dtype))
          check(Kind(k), c, near_one, std::string("prod ") + dtype_text(dtype));
        continue;
      }
      if (k == kProd && in.n > 1000) continue;
      check(Kind(k), c, in,
            std::string(dtype_text(dtype)) + " kind " + std::to_string(k) + " case " +
                std::to_string(&c - kCases));
      if (HasFatalFailure()) return;
    }
    Buffer sparse(dtype, in.n);
    for (int value : {0, 1}) {
      sparse.fill([&](int64_t i) { return double(i == in.n - 2 ? !value : value); });
      check(kAny, c, sparse, "any");
      check(kAll, c, sparse, "all");
    }
  }
}

// Long sequences are split over workspace; columns too.
TEST_P(ReduceTest, Split) {
  const int32_t dtype = GetParam();
  const Case cases[] = {{{300001}, 1, {}},      {{2, 270000}, 2, {}}, {{20000, 33}, 1, {}},
                        {{40000, 9}, 1, {}},    {{270000, 3}, 1, {}}, {{30000, 5}, 1, {}},
                        {{9, 40000}, 2, {1, 0}}};
  for (const Case& c : cases) {
    Buffer in(dtype, product(c.size));
    fill_random(&in, 11);
    for (Kind k : {kSum, kMax, kMinIndex, kAny}) {
      if (left_out()) continue;
      if (is_complex(dtype) && k != kSum && k != kAny) continue;
      check(k, c, in, std::string("split ") + dtype_text(dtype) + " kind " + std::to_string(k));
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ReduceTest, testing::Range(int32_t(TT_BOOL), int32_t(TT_C128) + 1),
                         [](const testing::TestParamInfo<int32_t>& i) {
                           return dtype_text(i.param);
                         });

double term_of(ReduceTerm term, double x) {
  switch (term) {
    case kReduceNonzero: return x != 0;
    case kReduceMagnitudes: return std::fabs(x);
    default: return x * x;
  }
}

TEST(Reduce, SumsOfTerms) {
  std::vector<Case> cases(std::begin(kCases), std::end(kCases));
  cases.push_back({{300001}, 1, {}});
  cases.push_back({{300, 1100}, 1, {}});
  cases.push_back({{20000, 33}, 1, {}});
  for (int32_t dtype : {TT_F16, TT_BF16, TT_F32, TT_F64})
    for (const Case& c : cases)
      for (ReduceTerm term : {kReduceNonzero, kReduceMagnitudes, kReduceSquares}) {
        if (dtype != TT_F32 && product(c.size) > 100000) continue;
        Buffer in(dtype, product(c.size));
        fill_random(&in, 13);
        for (int64_t i = 2; i < in.n; i += 7) in.put(i, 0);
        Buffer terms(TT_F64, in.n);
        terms.fill([&](int64_t i) { return term_of(term, in.real(i)); });
        const Reference ref = reference(kSum, c, terms);
        const double bound = 8 * epsilon(dtype == TT_F64 ? TT_F64 : TT_F32);
        Result first = run(kSum, c, in, 0, 0, 1, term);
        for (int64_t i = 0; i < first.out.n; i++) {
          double want = ref.value[size_t(i)].real();
          if (term == kReduceSquares) want = std::sqrt(want);
          const double scale = term == kReduceSquares ? want : ref.magnitude[size_t(i)];
          ASSERT_LE(std::fabs(first.out.real(i) - want),
                    bound * scale + epsilon(dtype) * std::fabs(want))
              << dtype_text(dtype) << " term " << term << " out " << i;
        }
        for (int isa = 1; isa <= best_isa(); isa++)
          ASSERT_TRUE(run(kSum, c, in, isa, 3, 1, term).out.same_bytes(first.out))
              << dtype_text(dtype) << " term " << term << " isa " << isa;
      }
}

TEST(Reduce, NanAndInfinity) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (int32_t dtype : {TT_F16, TT_BF16, TT_F32, TT_F64})
    for (int64_t n : {3, 70, 5000, 300000})
      for (int64_t at : {int64_t(0), n / 2, n - 1}) {
        if (left_out()) continue;
        Buffer in(dtype, n);
        fill_random(&in, 3);
        const Case c{{n}, 1, {}};
        in.put(at, nan);
        if (at + 1 < n) in.put(at + 1, nan);
        for (Kind k : {kMax, kMin, kMaxIndex, kMinIndex}) check(k, c, in, "nan");
        EXPECT_TRUE(std::isnan(run(kSum, c, in, 0, 0).out.real(0)));
        in.fill([&](int64_t) { return -inf; });
        for (Kind k : {kMax, kMin, kMaxIndex, kMinIndex}) check(k, c, in, "-inf");
        in.put(at, inf);
        for (Kind k : {kMax, kMin, kMaxIndex, kMinIndex}) check(k, c, in, "inf");
      }
  Buffer columns(TT_F32, 40 * 50);
  fill_random(&columns, 5);
  for (int64_t i : {3, 707, 708, 1999}) columns.put(i, nan);
  for (Kind k : {kMax, kMin, kMaxIndex, kMinIndex})
    check(k, {{40, 50}, 1, {}}, columns, "nan columns");
}

TEST(Reduce, FirstOfEqualValues) {
  for (int32_t dtype : {TT_BOOL, TT_U8, TT_I32, TT_I64, TT_F32, TT_F64}) {
    Buffer in(dtype, 30000);
    in.fill([](int64_t i) { return double(i % 7 == 3); });
    for (Kind k : {kMaxIndex, kMinIndex}) {
      check(k, {{30000}, 1, {}}, in, "ties");
      check(k, {{300, 100}, 1, {}}, in, "tie columns");
      check(k, {{100, 300}, 3, {1, 0}}, in, "ties, positions in logical order");
    }
  }
}

TEST(Reduce, Empty) {
  for (int32_t dtype = TT_BOOL; dtype <= TT_C128; dtype++) {
    Buffer in(dtype, 0);
    for (int isa = 0; isa <= best_isa(); isa++) {
      EXPECT_EQ(run(kSum, {{0}, 1, {}}, in, isa, 0).out[0], 0.0);
      EXPECT_EQ(run(kProd, {{0}, 1, {}}, in, isa, 0).out[0], 1.0);
      EXPECT_EQ(run(kAny, {{4, 0}, 2, {}}, in, isa, 0).out[3], 0.0);
      EXPECT_EQ(run(kAll, {{0, 40}, 1, {}}, in, isa, 0).out[39], 1.0);
      EXPECT_EQ(run(kSum, {{0, 4}, 2, {}}, in, isa, 0).out.n, 0);
    }
  }
  Buffer in(TT_F32, 0);
  EXPECT_TRUE(std::isnan(run(kSum, {{0}, 1, {}}, in, 0, 0, 0).out.real(0)));
}

TEST(Reduce, MeanDivides) {
  Buffer in(TT_F32, 12);
  in.fill([](int64_t i) { return double(i); });
  for (int isa = 0; isa <= best_isa(); isa++) {
    Result r = run(kSum, {{3, 4}, 1, {}}, in, isa, 0, 3);
    for (int64_t i = 0; i < 4; i++) EXPECT_EQ(r.out.real(i), double(4 + i));
  }
}

// A sum of 2^24 ones cannot be had by adding one at a time in f32.
TEST(Reduce, LongSumIsAccurate) {
  const int64_t n = (1 << 24) + 1000;
  Buffer in(TT_F32, n);
  in.fill([](int64_t) { return 0.1; });
  const double want = double(0.1f) * double(n);
  EXPECT_NEAR(run(kSum, {{n}, 1, {}}, in, best_isa(), 0).out.real(0), want, want * 1e-6);
  EXPECT_NEAR(run(kSum, {{n / 8, 8}, 1, {}}, in, best_isa(), 0).out.real(0), want / 8,
              want / 8 * 1e-6);
}

// Outputs may have strides of their own, and inputs stride 0.
TEST(Reduce, OutputStridesAndExpandedInput) {
  Buffer in(TT_F32, 6);
  Buffer out(TT_F32, 40);
  Buffer index(TT_I64, 40);
  in.fill([](int64_t i) { return double(i * i); });
  for (int isa = 0; isa <= best_isa(); isa++) {
    const int64_t size[] = {2, 5, 3};
    const int64_t stride[] = {12, 0, 4};
    const int64_t out_stride[] = {4, 40};
    const int64_t index_stride[] = {80, 8};
    ReducePlan plan;
    build_reduce(&plan, {3, size, stride, 2, TT_F32, TT_F32, out_stride, index_stride, true});
    plan.in = in.data();
    plan.out = out.data();
    plan.index = index.data();
    EXPECT_EQ(run_split(KERNEL_ROW(reduce_max_index).isa[isa], &plan, 1), 0);
    plan.index = nullptr;
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 3; j++) {
        EXPECT_EQ(out.real(i + 10 * j), double((3 * i + j) * (3 * i + j)));
        EXPECT_EQ(index.real(10 * i + j), 0);
      }
    EXPECT_EQ(run_split(KERNEL_ROW(reduce_sum).isa[isa], &plan, 2), 0);
    EXPECT_EQ(out.real(1 + 10 * 2), 125);
  }
}

}  // namespace
