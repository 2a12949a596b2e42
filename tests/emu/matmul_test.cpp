// Products of every dtype, stride and way of kernels/cuda/matmul, also those that the op table's
// samples are too small for. Whole numbers make all sums exact.
#include "check.h"
#include "kernels/cuda/convert.h"
#include "plan/matmul_build.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

struct Case {
  const char* name;
  int64_t batch, m, n, k;
  bool a_turned, b_turned;  // columns are contiguous
  bool addend;              // 2 sum + 3 d
};
constexpr Case kCases[] = {
    {"one tile", 1, 5, 7, 9, false, false, true},
    {"odd sizes", 2, 33, 37, 50, true, false, true},
    {"turned", 1, 65, 40, 64, false, true, false},
    {"no terms", 1, 3, 4, 0, false, false, true},
    {"pieces of k", 1, 9, 10, 1025, false, true, true},
    {"one row, runs of k", 1, 1, 30, 1200, false, true, false},
    {"few rows, runs of k", 2, 3, 9, 700, false, true, true},
    {"few rows, runs of n", 1, 8, 70, 600, false, false, true},
    {"one row, runs of n", 3, 1, 40, 130, true, false, false},
};
constexpr Case kLarge = {"large tiles", 128, 9, 12, 20, false, true, true};

constexpr int32_t kDtypes[] = {TT_F32, TT_F64, TT_F16, TT_BF16, TT_C64, TT_C128, TT_I32, TT_I64};

struct Value {
  double re, im;
};
Value times(Value x, Value y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }

struct Array {
  int32_t dtype;
  std::vector<char> bytes;
  std::vector<Value> values;
  Array(int32_t dtype_, int64_t n, Numbers& numbers)
      : dtype(dtype_), bytes(size_t(n * item_size(dtype_)) + 16), values(size_t(n)) {
    for (int64_t i = 0; i < n; i++) {
      Value v = {double(numbers.whole(-2, 2)), double(numbers.whole(-2, 2))};
      if (!matmul_is_complex(dtype)) v.im = 0;
      values[size_t(i)] = v;
      store_element(bytes.data() + i * item_size(dtype), dtype, c128{v.re, v.im});
    }
  }
};

void test_case(const Case& t, int32_t dtype, bool once = EMU_TSAN) {
  Numbers numbers;
  const Array a(dtype, t.batch * t.m * t.k, numbers);
  const Array b(dtype, t.batch * t.k * t.n, numbers);
  const Array d(dtype, t.batch * t.m * t.n, numbers);
  const int64_t a_size[3] = {t.batch, t.m, t.k}, b_size[3] = {t.batch, t.k, t.n};
  const int64_t c_size[3] = {t.batch, t.m, t.n}, c_stride[3] = {t.m * t.n, t.n, 1};
  const int64_t a_stride[3] = {t.m * t.k, t.a_turned ? 1 : t.k, t.a_turned ? t.m : 1};
  const int64_t b_stride[3] = {t.k * t.n, t.b_turned ? 1 : t.n, t.b_turned ? t.k : 1};
  const int64_t item = item_size(dtype);
  std::vector<char> out(size_t(t.batch * t.m * t.n * item));
  const MatmulOperand x = {a.bytes.data(), 3, a_size, a_stride};
  const MatmulOperand y = {b.bytes.data(), 3, b_size, b_stride};
  const MatmulOperand addend = {d.bytes.data(), 3, c_size, c_stride};
  const MatmulOperand result = {out.data(), 3, c_size, c_stride};
  const MatmulScalar alpha = {2, 0, 2}, beta = {3, 0, 3};
  MatmulPlan plan;
  matmul_build(&plan, dtype, x, y, t.addend ? &addend : nullptr, result,
               t.addend ? alpha : kMatmulOne, t.addend ? beta : MatmulScalar{});
  const auto compute = [&] { run(t.name, cuda::matmul, cuda::matmul_workspace, &plan); };
  in_orders(t.name, out, compute, once);
  for (int64_t i = 0; i < t.batch * t.m * t.n; i++) {
    const int64_t z = i / (t.m * t.n);
    const int64_t row = i / t.n % t.m;
    Value sum = {0, 0};
    for (int64_t k = 0; k < t.k; k++) {
      const int64_t at_a = z * a_stride[0] + row * a_stride[1] + k * a_stride[2];
      const int64_t at_b = z * b_stride[0] + k * b_stride[1] + i % t.n * b_stride[2];
      const Value term = times(a.values[size_t(at_a)], b.values[size_t(at_b)]);
      sum = {sum.re + term.re, sum.im + term.im};
    }
    if (t.addend) {
      const Value more = d.values[size_t(i)];
      sum = {2 * sum.re + 3 * more.re, 2 * sum.im + 3 * more.im};
    }
    char want[16];
    store_element(want, dtype, c128{sum.re, sum.im});
    const bool right = memcmp(want, out.data() + i * item, size_t(item)) == 0;
    check(right, t.name, int(dtype));
    if (!right) return;
  }
}

}  // namespace

int main() {
  if (EMU_TSAN) {
    int dtype = 0;
    for (const Case& t : kCases) test_case(t, kDtypes[dtype++ % 4]);
    return finished();
  }
  int dtype = 0;
  for (const Case& t : kCases) {
    // Every dtype with every kernel, but not with every case.
    const bool all = &t == &kCases[1];
    for (int i = 0; i < (all ? 8 : 2); i++) test_case(t, kDtypes[dtype++ % 8]);
    if (!all) test_case(t, t.m <= 8 ? TT_F16 : TT_BF16);
  }
  test_case(kLarge, TT_F32, true);
  test_case(kLarge, TT_BF16, true);
  return finished();
}
