// The device's reductions of shapes that the op table's samples are too small for: split sequences
// of both paths, unaligned runs, strides; in three orders of threads, with equal bits, without
// races where it is built with ThreadSanitizer. Expected values are computed one by one; integers
// and whole numbers make them exact in any order.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <vector>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/reduce/reduce.h"
#include "kernels/cuda/rows.h"
#include "plan/reduce_build.h"

using namespace TT_NS;

namespace {

struct Shape {
  const char* name;
  int64_t size[3];
  int64_t stride[3];  // elements
  uint64_t reduced;   // bit d: dimension d
  int64_t offset;     // elements before the first one
};
constexpr Shape kShapes[] = {
    {"one long run", {1, 1, 70001}, {0, 0, 1}, 4, 0},
    {"a run that is not aligned", {1, 3, 9001}, {0, 9001, 1}, 4, 1},
    {"short runs", {1, 37, 65}, {0, 65, 1}, 4, 3},
    {"every second element", {1, 2, 12000}, {0, 24000, 2}, 4, 0},
    {"a few long columns", {1, 5000, 9}, {0, 9, 1}, 2, 0},
    {"many columns", {2, 300, 70}, {21000, 70, 1}, 2, 0},
    {"two reduced dimensions", {80, 3, 90}, {270, 90, 1}, 5, 0},
    {"runs of whole packs", {41, 3, 96}, {288, 96, 1}, 5, 0},
    {"rows of packs", {1, 37, 68}, {0, 68, 1}, 4, 0},
    {"columns in packs", {2, 300, 72}, {21600, 72, 1}, 2, 0},
    {"a few columns in packs", {1, 3000, 8}, {0, 8, 1}, 2, 0},
    {"columns over two dimensions", {30, 90, 40}, {3600, 40, 1}, 3, 0},
    {"columns over two apart", {30, 9, 40}, {800, 80, 1}, 3, 0},
    {"nothing to reduce", {1, 3, 0}, {0, 1, 1}, 4, 0},
};

using Row = int32_t (*)(const void*, void*, void*);
using Bytes = size_t (*)(const void*);

// The largest, smallest and product of each output, and the positions of the extremes.
struct Expected {
  std::vector<int64_t> high, low, high_at, low_at, product;
};
Expected expected_of(const ReducePlan& p, const std::vector<int32_t>& data, const Shape& s) {
  Expected e;
  int64_t kept[3], red[3];
  for (int d = 0; d < 3; d++) {
    red[d] = s.reduced >> d & 1 ? s.size[d] : 1;
    kept[d] = s.reduced >> d & 1 ? 1 : s.size[d];
  }
  for (int64_t o = 0; o < p.n_out; o++) {
    int64_t high = INT64_MIN, low = INT64_MAX, high_at = 0, low_at = 0;
    uint64_t product = 1;
    const int64_t k[3] = {o / (kept[1] * kept[2]), o / kept[2] % kept[1], o % kept[2]};
    for (int64_t i = 0; i < p.length; i++) {
      const int64_t r[3] = {i / (red[1] * red[2]), i / red[2] % red[1], i % red[2]};
      int64_t at = s.offset;
      for (int d = 0; d < 3; d++) at += (k[d] + r[d]) * s.stride[d];
      const int64_t v = data[size_t(at)];
      if (v > high) {
        high = v;
        high_at = i;
      }
      if (v < low) {
        low = v;
        low_at = i;
      }
      product *= uint64_t(v);
    }
    e.high.push_back(high);
    e.low.push_back(low);
    e.high_at.push_back(high_at);
    e.low_at.push_back(low_at);
    e.product.push_back(int64_t(product));
  }
  return e;
}

int g_failed;

void check(const Shape& s, const char* what, uint64_t order, const std::vector<int64_t>& got,
           const std::vector<int64_t>& want) {
  if (got == want) return;
  printf("%s, %s, order %d: wrong\n", s.name, what, int(order));
  g_failed = 1;
}

void run(Row row, Bytes bytes, const ReducePlan& p) {
  std::vector<uint64_t> workspace(bytes(&p) / 8);
  if (row(&p, nullptr, workspace.data()) == TT_OK) return;
  printf("%s\n", emu::last_fault());
  g_failed = 1;
}

void test_shape(const Shape& s, uint64_t order) {
  emu::set_order(order);
  int64_t n = s.offset + 1;
  int64_t bytes[3];
  for (int d = 0; d < 3; d++) {
    if (s.size[d]) n += (s.size[d] - 1) * s.stride[d];
    bytes[d] = s.stride[d] * 4;
  }
  std::vector<int32_t> data(size_t(n), 0);
  uint32_t seed = 1;
  for (int32_t& v : data) {
    seed = seed * 1664525u + 1013904223u;
    v = int32_t(seed >> 20) * 2 - 4001;  // odd: no product becomes 0; extremes repeat
  }
  ReduceArgs args = {3, s.size, bytes, s.reduced, TT_I32, TT_I64, nullptr, nullptr, true};
  ReducePlan p;
  build_reduce(&p, args);
  p.in = reinterpret_cast<const char*>(data.data() + s.offset);
  p.workspace = nullptr;
  const Expected want = expected_of(p, data, s);
  std::vector<int64_t> values(size_t(p.n_out)), positions(size_t(p.n_out));
  p.out = reinterpret_cast<char*>(values.data());
  p.index = nullptr;
  run(cuda::reduce_prod, cuda::reduce_prod_workspace, p);
  check(s, "product", order, values, want.product);
  if (p.length == 0) return;
  run(cuda::reduce_max, cuda::reduce_max_workspace, p);
  check(s, "max", order, values, want.high);
  run(cuda::reduce_min, cuda::reduce_min_workspace, p);
  check(s, "min", order, values, want.low);
  p.index = reinterpret_cast<char*>(positions.data());
  run(cuda::reduce_max_index, cuda::reduce_max_index_workspace, p);
  check(s, "max with position", order, values, want.high);
  check(s, "position of the max", order, positions, want.high_at);
  p.out = nullptr;
  run(cuda::reduce_min_index, cuda::reduce_min_index_workspace, p);
  check(s, "position of the min", order, positions, want.low_at);
}

// Elements that a shape reaches, made from random bits; sets its strides in bytes.
template <class F> std::vector<float> elements_of(const Shape& s, int64_t* bytes, F value) {
  int64_t n = s.offset + 1;
  for (int d = 0; d < 3; d++) {
    n += (s.size[d] - 1) * s.stride[d];
    bytes[d] = s.stride[d] * 4;
  }
  std::vector<float> data(size_t(n), 0);
  uint32_t seed = 1;
  for (float& v : data) {
    seed = seed * 1664525u + 1013904223u;
    v = value(seed);
  }
  return data;
}

// Variances and means of numbers far from 0, the first one farther, against two passes.
void test_moments(const Shape& s, uint64_t order) {
  emu::set_order(order);
  if (s.size[0] * s.size[1] * s.size[2] == 0) return;
  int64_t bytes[3];
  const auto far = [](uint32_t bits) { return 1e5f + float(bits >> 8) * 0x1p-24f; };
  std::vector<float> data = elements_of(s, bytes, far);
  data[size_t(s.offset)] = -1e6f;
  ReduceArgs args = {3, s.size, bytes, s.reduced, TT_F32, TT_F32, nullptr, nullptr, false};
  ReducePlan p;
  build_reduce(&p, args);
  std::vector<float> variances(size_t(p.n_out)), means(size_t(p.n_out));
  for (int d = 0; d < p.n_kept; d++) p.index_stride[d] = p.out_stride[d];
  p.in = reinterpret_cast<const char*>(data.data() + s.offset);
  p.out = reinterpret_cast<char*>(variances.data());
  p.index = reinterpret_cast<char*>(means.data());
  p.workspace = nullptr;
  p.term = kReduceCentred;
  p.divisor = double(p.length - 1);
  run(cuda::reduce_sum, cuda::reduce_sum_workspace, p);
  int64_t kept[3], red[3];
  for (int d = 0; d < 3; d++) {
    red[d] = s.reduced >> d & 1 ? s.size[d] : 1;
    kept[d] = s.reduced >> d & 1 ? 1 : s.size[d];
  }
  for (int64_t o = 0; o < p.n_out; o++) {
    const int64_t k[3] = {o / (kept[1] * kept[2]), o / kept[2] % kept[1], o % kept[2]};
    double mean = 0;
    double squares = 0;
    for (int pass = 0; pass < 2; pass++)
      for (int64_t i = 0; i < p.length; i++) {
        const int64_t r[3] = {i / (red[1] * red[2]), i / red[2] % red[1], i % red[2]};
        int64_t at = s.offset;
        for (int d = 0; d < 3; d++) at += (k[d] + r[d]) * s.stride[d];
        const double x = data[size_t(at)];
        if (pass == 0) mean += x / double(p.length);
        else squares += (x - mean) * (x - mean);
      }
    const float variance = float(squares / p.divisor);
    const bool near = fabs(variances[size_t(o)] - variance) <= 1.2e-7 * variance &&
                      fabs(means[size_t(o)] - mean) <= 1.2e-7 * fabs(mean);
    if (near) continue;
    printf("%s, order %d: variance %g and mean %g, not %g and %g\n", s.name, int(order),
           double(variances[size_t(o)]), double(means[size_t(o)]), double(variance), mean);
    g_failed = 1;
    return;
  }
}

// The terms of reduce_sum, of nan and of small whole numbers, which floats add exactly.
void test_terms(const Shape& s, uint64_t order) {
  struct Case {
    const char* name;
    ReduceTerm term;
    double order;
  };
  constexpr Case kCases[] = {
      {"sum without nan", kReduceNumbers, 1}, {"norm of 0", kReduceNonzero, 1},
      {"norm of 1", kReduceMagnitudes, 1},    {"norm of 2", kReduceSquares, 1},
      {"norm of 3", kReducePowers, 3},        {"norm of inf", kReduceLargest, 1},
      {"norm of -inf", kReduceSmallest, 1},   {"logsumexp", kReduceExponentials, 1},
  };
  emu::set_order(order);
  if (s.size[0] * s.size[1] * s.size[2] == 0) return;
  int64_t bytes[3];
  const auto whole = [](uint32_t bits) { return float(int(bits >> 24) % 8 - 3); };
  std::vector<float> data = elements_of(s, bytes, whole);
  ReduceArgs args = {3, s.size, bytes, s.reduced, TT_F32, TT_F32, nullptr, nullptr, false};
  ReducePlan p;
  build_reduce(&p, args);
  std::vector<float> out(size_t(p.n_out));
  p.in = reinterpret_cast<const char*>(data.data() + s.offset);
  p.out = reinterpret_cast<char*>(out.data());
  p.index = nullptr;
  p.workspace = nullptr;
  int64_t kept[3], red[3];
  for (int d = 0; d < 3; d++) {
    red[d] = s.reduced >> d & 1 ? s.size[d] : 1;
    kept[d] = s.reduced >> d & 1 ? 1 : s.size[d];
  }
  for (const Case& c : kCases) {
    // the second output of three begins with nan, the others do not have any
    const bool with_nan = p.n_out == 3 && c.term != kReduceNonzero;
    float* const first = data.data() + s.offset + (with_nan ? s.stride[1] : 0);
    const float kept_first = *first;
    if (with_nan) *first = NAN;
    p.term = c.term;
    p.order = c.order;
    p.root = c.term == kReduceSquares;
    run(cuda::reduce_sum, cuda::reduce_sum_workspace, p);
    for (int64_t o = 0; o < p.n_out; o++) {
      const int64_t k[3] = {o / (kept[1] * kept[2]), o / kept[2] % kept[1], o % kept[2]};
      double sum = 0;
      double high = 0;
      double low = INFINITY;
      for (int64_t i = 0; i < p.length; i++) {
        const int64_t r[3] = {i / (red[1] * red[2]), i / red[2] % red[1], i % red[2]};
        int64_t at = s.offset;
        for (int d = 0; d < 3; d++) at += (k[d] + r[d]) * s.stride[d];
        const double x = data[size_t(at)];
        high = high < fabs(x) ? fabs(x) : high;
        low = low > fabs(x) ? fabs(x) : low;
        switch (c.term) {
          case kReduceNumbers: sum += isnan(x) ? 0 : x; break;
          case kReduceNonzero: sum += x != 0; break;
          case kReduceSquares: sum += x * x; break;
          case kReducePowers: sum += fabs(x * x * x); break;
          case kReduceExponentials: sum += exp(x); break;
          default: sum += fabs(x);
        }
      }
      double want = sum;
      if (c.term == kReduceSquares) want = sqrt(sum);
      if (c.term == kReducePowers) want = cbrt(sum);
      if (c.term == kReduceExponentials) want = log(sum);
      if (c.term == kReduceLargest && !isnan(sum)) want = high;
      if (c.term == kReduceSmallest && !isnan(sum)) want = low;
      const double got = out[size_t(o)];
      if (isnan(want) ? isnan(got) : fabs(got - want) <= 3e-7 * fabs(want)) continue;
      printf("%s, %s, order %d: %g, not %g\n", s.name, c.name, int(order), got, want);
      g_failed = 1;
      return;
    }
    *first = kept_first;
  }
}
// logsumexp of what a device has no plain sum for: infinities, and tops that are far apart.
void test_exponentials(uint64_t order) {
  emu::set_order(order);
  const float inf = INFINITY;
  const float kRows[][4] = {{inf, 200, -inf, 0},
                            {-inf, -inf, -inf, -inf},
                            {3e38f, -3e38f, 0, 1},
                            {NAN, inf, -inf, 0},
                            {-1000, -1000, -1000, -1000}};
  const float kWant[] = {inf, -inf, 3e38f, NAN, float(-1000 + log(4 * 300.0))};
  constexpr int64_t kRow = 1200;
  for (int k = 0; k < 5; k++) {
    std::vector<float> data(kRow);
    for (int64_t i = 0; i < kRow; i++) data[size_t(i)] = kRows[k][i * 4 / kRow];
    constexpr int64_t kSize[] = {kRow}, kStride[] = {4};
    ReduceArgs args = {1, kSize, kStride, 1, TT_F32, TT_F32, nullptr, nullptr, false};
    ReducePlan p;
    build_reduce(&p, args);
    float out = 0;
    p.in = reinterpret_cast<const char*>(data.data());
    p.out = reinterpret_cast<char*>(&out);
    p.index = nullptr;
    p.workspace = nullptr;
    p.term = kReduceExponentials;
    run(cuda::reduce_sum, cuda::reduce_sum_workspace, p);
    if (isnan(kWant[k]) ? isnan(out) : out == kWant[k]) continue;
    printf("logsumexp of row %d, order %d: %g, not %g\n", k, int(order), double(out),
           double(kWant[k]));
    g_failed = 1;
  }
}

// A run of complex numbers that begins between two places where one may begin: the view of an array
// of floats from its second element on. No 16 bytes of it are aligned.
void test_unaligned_numbers(uint64_t order) {
  emu::set_order(order);
  constexpr int64_t kSize[] = {1001}, kStride[] = {8};
  alignas(16) float data[2 * 1001 + 1];
  for (int i = 0; i < 2 * 1001 + 1; i++) data[i] = float(i % 7);
  double re = 0, im = 0;
  for (int i = 0; i < 1001; i++) {
    re += data[2 * i + 1];
    im += data[2 * i + 2];
  }
  ReduceArgs args = {1, kSize, kStride, 1, TT_C64, TT_C64, nullptr, nullptr, false};
  ReducePlan p;
  build_reduce(&p, args);
  float sum[2] = {};
  p.in = reinterpret_cast<const char*>(data + 1);
  p.out = reinterpret_cast<char*>(sum);
  p.index = nullptr;
  p.workspace = nullptr;
  run(cuda::reduce_sum, cuda::reduce_sum_workspace, p);
  if (double(sum[0]) == re && double(sum[1]) == im) return;
  printf("unaligned numbers, order %d: wrong\n", int(order));
  g_failed = 1;
}

// Sequences that are runs of memory have the kernel of rows, neighbouring outputs that of columns.
void test_kernels_chosen() {
  constexpr int64_t kSize[] = {512, 512}, kStride[] = {2048, 4};
  for (uint64_t reduced : {1, 2, 3}) {
    ReduceArgs args = {2, kSize, kStride, reduced, TT_F32, TT_F32, nullptr, nullptr, false};
    ReducePlan p;
    build_reduce(&p, args);
    p.in = nullptr;
    const ReduceShape shape = reduce_shape(p);
    const bool columns = reduced == 1;
    if (shape.runs != columns && shape.aligned == columns) continue;
    printf("reduced dimensions %d: the wrong kernel\n", int(reduced));
    g_failed = 1;
  }
}

// Rows of floats by where their first extreme is: at `first` and again later, or a nan there.
struct ExtremeRow {
  const char* name;
  double others, extreme;  // of maxima; minima have them with the other sign
  int first;
};
constexpr int kExtremeRow = 2051;
constexpr ExtremeRow kExtremeRows[] = {
    {"everywhere", -INFINITY, -INFINITY, 0},  // from an aligned place on, where offset is 0
    {"at the start", 1, 2, 0},
    {"in a pack", -3, 0.5, 402},
    {"in another thread", 1, 2, 1101},
    {"at the end", -2, -1, kExtremeRow - 1},
    {"infinite", 1, INFINITY, 403},
    {"nan", 1, NAN, 405},
    {"nan among infinities", INFINITY, NAN, 406},
};

// `rows` rows of which each is kExtremeRows[row % 8]; several rows may be one in memory.
void test_extremes(int32_t dtype, double sign, int64_t offset, int64_t rows, uint64_t order) {
  emu::set_order(order);
  constexpr int64_t kRows = int64_t(sizeof kExtremeRows / sizeof *kExtremeRows);
  const int64_t item = item_size(dtype);
  std::vector<double> memory(size_t(kRows * kExtremeRow + offset));
  char* const data = reinterpret_cast<char*>(memory.data()) + offset * item;
  for (int64_t i = 0; i < kRows * kExtremeRow; i++) {
    const ExtremeRow& row = kExtremeRows[i / kExtremeRow];
    const int at = int(i % kExtremeRow);
    const bool here = at == row.first || (at > row.first && at % 5 == 2);
    store_element(data + i * item, dtype, sign * (here ? row.extreme : row.others));
  }
  const int64_t size[] = {rows / kRows, kRows, kExtremeRow};
  const int64_t stride[] = {0, kExtremeRow * item, item};
  ReduceArgs args = {3, size, stride, 4, dtype, dtype, nullptr, nullptr, true};
  ReducePlan p;
  build_reduce(&p, args);
  std::vector<double> values(static_cast<size_t>(rows));
  std::vector<int64_t> positions(static_cast<size_t>(rows));
  p.in = data;
  p.out = reinterpret_cast<char*>(values.data());
  p.index = reinterpret_cast<char*>(positions.data());
  p.workspace = nullptr;
  if (sign > 0) run(cuda::reduce_max_index, cuda::reduce_max_index_workspace, p);
  else run(cuda::reduce_min_index, cuda::reduce_min_index_workspace, p);
  for (int64_t r = 0; r < rows; r++) {
    const ExtremeRow& row = kExtremeRows[r % kRows];
    const double got = load_element<double>(p.out + r * item, dtype);
    const double want = sign * row.extreme;
    const bool same = got == want || (isnan(got) && isnan(want));
    if (same && positions[size_t(r)] == row.first) continue;
    printf("%s of dtype %d, sign %g, order %d: %g at %lld\n", row.name, dtype, sign, int(order),
           got, static_cast<long long>(positions[size_t(r)]));
    g_failed = 1;
  }
}

}  // namespace

// ThreadSanitizer sees a race in any order, and each thread of a kernel takes it a millisecond.
#if EMU_TSAN
constexpr bool kFew = true;
constexpr uint64_t kOrders[] = {0};
#else
constexpr bool kFew = false;
constexpr uint64_t kOrders[] = {0, 1, 7};
#endif

int main() {
  for (const Shape& s : kShapes)
    for (uint64_t order : kOrders) {
      if (kFew && s.size[0] * s.size[1] * s.size[2] > 12000) continue;
      test_shape(s, order);
      test_moments(s, order);
      test_terms(s, order);
    }
  for (uint64_t order : kOrders) {
    test_unaligned_numbers(order);
    test_exponentials(order);
    for (int32_t dtype : {TT_F32, TT_BF16, TT_F64})
      for (double sign : {1, -1})
        for (int64_t offset : {0, 1}) {
          if (kFew && (dtype != TT_F32 || sign < 0 || offset == 0)) continue;
          test_extremes(dtype, sign, offset, 8, order);
        }
  }
  test_kernels_chosen();
  if (!kFew) test_extremes(TT_F64, -1, 0, 2048, 0);  // blocks of half as many threads
  printf(g_failed ? "FAILED\n" : "ok\n");
  return g_failed;
}
