// Cumulative operators on the device's kernels: a row of several chunks and of many, columns with
// and without chunks, products that leave the range of numbers.
#include "kernel_test.h"

#include "plan/scan_build.h"
#include "tests/c/harness/share.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

struct Shape {
  int64_t outer, dim, inner;
};
constexpr Shape kShapes[] = {{1, 1, 1},    {3, 40, 1}, {2, 5000, 1},
                             {2, 4104, 1}, {2, 9, 40}, {1, 700, 3}};
// Take seconds: `./dev test` runs one of their four tests with each commit.
constexpr Shape kManyRows = {512, 2052, 1};    // a block takes all chunks of a row
constexpr Shape kManyChunks = {1, 530000, 1};  // more than a block has threads

template <class F> void each_row(const Shape& s, const F& f) {
  for (int64_t r = 0; r < s.outer * s.inner; r++)
    f([&](int64_t i) { return size_t((r / s.inner * s.dim + i) * s.inner + r % s.inner); });
}
char* bytes_of(std::vector<int64_t>& v) { return reinterpret_cast<char*>(v.data()); }

void test_floating(const Shape& s, int32_t dtype) {
  const int64_t n = s.outer * s.dim * s.inner;
  Floats x(dtype, n), sums(dtype, n), logs(dtype, n);
  x.fill(1, -2, 3);
  if (n > 33) x.set(33, -INFINITY);
  ScanPlan p;
  build_scan(&p, dtype, s.outer, s.dim, s.inner);
  p.in = x.data();
  p.out = sums.data();
  LogSumPlan l = {};
  l.dtype = dtype;
  l.outer = s.outer;
  l.dim = s.dim;
  l.inner = s.inner;
  l.in = x.data();
  l.out = logs.data();
  run_in_orders("logcumsumexp", cuda::logcumsumexp, cuda::logcumsumexp_workspace, &l, {&logs});
  if (n > 33) x.set(33, 1);
  run_in_orders("cumsum", cuda::cumsum, cuda::cumsum_workspace, &p, {&sums});
  std::vector<double> want(static_cast<size_t>(n)), want_log(static_cast<size_t>(n));
  each_row(s, [&](auto at) {
    long double sum = 0, exponentials = 0;
    for (int64_t i = 0; i < s.dim; i++) {
      const double v = x[int64_t(at(i))];
      sum += v;
      exponentials += at(i) == 33 ? 0 : expl(v);
      want[at(i)] = double(sum);
      want_log[at(i)] = double(logl(exponentials));
    }
  });
  expect("cumsum", sums, want, 4);
  expect("logcumsumexp", logs, want_log, 4, 1);
}

void test_whole(const Shape& s, bool sums_only = false) {
  const int64_t n = s.outer * s.dim * s.inner;
  std::vector<int64_t> x(static_cast<size_t>(n)), out(x), want(x), want_max(x), want_min(x);
  Numbers numbers;
  for (int64_t& v : x) v = numbers.whole(-9, 9) * 2 + 1;
  each_row(s, [&](auto at) {
    uint64_t sum = 0;
    int64_t high = 0, low = 0;
    for (int64_t i = 0; i < s.dim; i++) {
      sum += uint64_t(x[at(i)]);
      if (x[at(i)] >= x[at(high)]) high = i;
      if (x[at(i)] <= x[at(low)]) low = i;
      want[at(i)] = int64_t(sum);
      want_max[at(i)] = high;
      want_min[at(i)] = low;
    }
  });
  ScanPlan p;
  build_scan(&p, TT_I64, s.outer, s.dim, s.inner);
  p.in = bytes_of(x);
  p.out = bytes_of(out);
  in_orders("cumsum of integers", out,
            [&] { run("cumsum", cuda::cumsum, cuda::cumsum_workspace, &p); });
  check(out == want, "cumsum of integers", int(n));
  if (sums_only) return;
  CumExtremePlan e = {};
  e.dtype = TT_I64;
  e.outer = s.outer;
  e.dim = s.dim;
  e.inner = s.inner;
  e.in = bytes_of(x);
  e.indices = out.data();
  in_orders("cummax", out, [&] { run("cummax", cuda::cummax, cuda::cummax_workspace, &e); });
  check(out == want_max, "cummax", int(n));
  e.smallest = 1;
  in_orders("cummin", out, [&] { run("cummin", cuda::cummax, cuda::cummax_workspace, &e); });
  check(out == want_min, "cummin", int(n));
}

// The products of the second half would be infinite without the first one.
void test_products(int64_t outer, int64_t inner, int32_t dtype) {
  constexpr int64_t kDim = 600;
  const int64_t n = outer * kDim * inner;
  Floats x(dtype, n), y(dtype, n);
  std::vector<double> want(static_cast<size_t>(n));
  const Shape s = {outer, kDim, inner};
  each_row(s, [&](auto at) {
    double product = 1;
    for (int64_t i = 0; i < kDim; i++) {
      x.set(int64_t(at(i)), (i < kDim / 2 ? 0.125 : 8) * (i % 7 ? 1 : -1));
      product *= x[int64_t(at(i))];
      want[at(i)] = dtype == TT_F64 ? product : double(float(product));
    }
  });
  CumprodPlan p = {};
  p.dtype = dtype;
  p.outer = outer;
  p.dim = kDim;
  p.inner = inner;
  p.in = x.data();
  p.out = y.data();
  run_in_orders("cumprod", cuda::cumprod, nullptr, &p, {&y});
  expect("cumprod", y, want, 0);
}

void test_shapes() {
  for (const Shape& s : kShapes) {
    for (int32_t dtype : {TT_F32, TT_F64}) test_floating(s, dtype);
    test_whole(s);
  }
  if (!left_out_in_turn(0)) test_floating(kManyRows, TT_F32);
  if (!left_out_in_turn(1)) test_floating(kManyRows, TT_F64);
  if (!left_out_in_turn(2)) test_whole(kManyRows);
  if (!left_out_in_turn(3)) test_whole(kManyChunks, true);
}

}  // namespace

int main() {
  if (EMU_TSAN) test_floating({1, 2100, 1}, TT_F32);
  else test_shapes();
  for (int32_t dtype : {TT_F32, TT_F64}) {
    test_products(2, 1, dtype);
    test_products(1, 3, dtype);
  }
  return finished();
}
