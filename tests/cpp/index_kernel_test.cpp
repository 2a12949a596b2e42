// Kernels that go through index tensors, against loops over coordinates.
#include "kernel_harness.h"
#include "plan/factory_build.h"
#include "plan/index_build.h"

#include <functional>
#include <string>

DECLARE_KERNEL(index_get)
DECLARE_KERNEL(index_put)
DECLARE_KERNEL(index_accumulate)
DECLARE_KERNEL(index_check)
DECLARE_KERNEL(index_offsets)
DECLARE_KERNEL_OF_AVX2(nonzero_count)
DECLARE_KERNEL_OF_AVX2(nonzero_write)
DECLARE_KERNEL(fill_arange)

using namespace kernel_test;

namespace {

using Sizes = std::vector<int64_t>;

int64_t product(const Sizes& v) {
  int64_t n = 1;
  for (int64_t x : v) n *= x;
  return n;
}

// gather, scatter: a and index have the same rank; index may be smaller outside `dim`.
struct Scattered {
  Sizes a_size, size;
  int dim;
  Sizes a_stride, b_stride, index_stride;  // in elements
};

Scattered scattered(Sizes a_size, Sizes size, int dim) {
  return {a_size,
          size,
          dim,
          contiguous_strides(a_size, 1),
          contiguous_strides(size, 1),
          contiguous_strides(size, 1)};
}

void fill_index(Buffer* index, int64_t n, uint32_t seed) {
  std::mt19937 g(seed);
  index->fill([&](int64_t) { return double(int64_t(g() % uint64_t(2 * n)) - n); });
}

IndexPlan plan_of(const Scattered& s, int32_t dtype, int32_t index_dtype, bool put) {
  Sizes a = s.a_stride, b = s.b_stride, x = s.index_stride;
  const int64_t step = a[size_t(s.dim)] * kItemSize[dtype];
  a[size_t(s.dim)] = 0;
  for (int64_t& v : a) v *= kItemSize[dtype];
  for (int64_t& v : b) v *= kItemSize[dtype];
  for (int64_t& v : x) v *= kItemSize[index_dtype];
  IndexPlan p;
  build_index(&p, {int32_t(a.size()), s.size.data(), a.data(), b.data(), x.data(), step,
                   s.a_size[size_t(s.dim)], dtype, index_dtype, put});
  return p;
}

// f(place in a, place in b) for every position in logical order.
void each(const Scattered& s, Buffer& index, const std::function<void(int64_t, int64_t)>& f) {
  for (int64_t e = 0; e < product(s.size); e++) {
    int64_t rest = e, a = 0, b = 0, x = 0;
    for (size_t d = s.size.size(); d-- > 0; rest /= s.size[d]) {
      const int64_t i = rest % s.size[d];
      b += i * s.b_stride[d];
      x += i * s.index_stride[d];
      if (int(d) != s.dim) a += i * s.a_stride[d];
    }
    int64_t i = int64_t(index.real(x));
    if (i < 0) i += s.a_size[size_t(s.dim)];
    f(a + i * s.a_stride[size_t(s.dim)], b);
  }
}

std::vector<Scattered> cases() {
  std::vector<Scattered> c = {
      scattered({7}, {5}, 0),
      scattered({10}, {300000}, 0),
      scattered({6, 5}, {4, 5}, 0),
      scattered({6, 5}, {6, 9}, 1),
      scattered({6, 5}, {3, 2}, 1),
      scattered({3, 4, 5}, {3, 6, 5}, 1),
      scattered({3, 4, 5}, {2, 4, 3}, 2),
      scattered({300, 300}, {300, 300}, 0),
      scattered({300, 300}, {300, 300}, 1),
      scattered({1, 1}, {1, 1}, 0),
      scattered({4, 3}, {0, 3}, 0),
  };
  Scattered t = scattered({6, 5}, {4, 5}, 0);  // everything transposed
  t.a_stride = {1, 6};
  t.b_stride = {1, 4};
  t.index_stride = {1, 4};
  c.push_back(t);
  // index_select: the index is the same along a row.
  Scattered rows = scattered({50, 33}, {70, 33}, 0);
  rows.index_stride = {1, 0};
  c.push_back(rows);
  Scattered columns = scattered({33, 50}, {33, 70}, 1);
  columns.index_stride = {0, 1};
  c.push_back(columns);
  Scattered embedding = scattered({100, 700}, {300, 700}, 0);
  embedding.index_stride = {1, 0};
  c.push_back(embedding);
  // An expanded source of a get, an expanded value of a put.
  Scattered zero = scattered({5, 3}, {8, 3}, 0);
  zero.index_stride = {1, 0};
  zero.b_stride = {0, 1};
  c.push_back(zero);
  return c;
}

class IndexTest : public testing::TestWithParam<int32_t> {};

TEST_P(IndexTest, GetPutAccumulate) {
  const int32_t dtype = GetParam();
  for (const Scattered& s : cases())
    for (int32_t index_dtype : {TT_I64, TT_I32}) {
      const int64_t n_a = product(s.a_size);
      const int64_t n_b = product(s.size);
      const int64_t dim = s.a_size[size_t(s.dim)];
      if (n_b > 50000 && dtype != TT_F32 && dtype != TT_I64) continue;
      const bool expanded = s.b_stride[0] == 0;
      Buffer a(dtype, n_a);
      Buffer b(dtype, n_b);
      Buffer index(index_dtype, n_b);
      fill_random(&a, 1);
      fill_random(&b, 2);
      fill_index(&index, dim, 3);
      Buffer first_put(dtype, n_a);
      Buffer first_sum(dtype, n_a);
      for (int isa = 0; isa <= best_isa(); isa++)
        for (int64_t piece : {0, 1, 2}) {
          const std::string text = std::string(dtype_text(dtype)) + " isa " + std::to_string(isa);
          if (!expanded) {
            Buffer got(dtype, n_b);
            IndexPlan p = plan_of(s, dtype, index_dtype, false);
            p.a = a.data();
            p.b = got.data();
            p.index = index.data();
            ASSERT_EQ(run_split(KERNEL_ROW(index_get).isa[isa], &p, piece), 0);
            each(s, index, [&](int64_t pa, int64_t pb) { ASSERT_EQ(a[pa], got[pb]) << text; });
            ASSERT_EQ(*got.at(n_b), 0x5a);
          }
          IndexPlan p = plan_of(s, dtype, index_dtype, true);
          Buffer put(dtype, n_a);
          Buffer sum(dtype, n_a);
          std::memcpy(put.data(), a.data(), size_t(n_a * kItemSize[dtype]));
          std::memcpy(sum.data(), a.data(), size_t(n_a * kItemSize[dtype]));
          p.a = put.data();
          p.b = b.data();
          p.index = index.data();
          ASSERT_EQ(run_split(KERNEL_ROW(index_put).isa[isa], &p, piece), 0);
          p.a = sum.data();
          ASSERT_EQ(run_split(KERNEL_ROW(index_accumulate).isa[isa], &p, piece), 0);
          if (isa == 0 && piece == 0) {
            first_put = put;
            first_sum = sum;
            std::memcpy(first_put.data(), put.data(), size_t(n_a * kItemSize[dtype]));
            std::memcpy(first_sum.data(), sum.data(), size_t(n_a * kItemSize[dtype]));
            std::vector<Value> want_put(static_cast<size_t>(n_a));
            std::vector<Value> want_sum(static_cast<size_t>(n_a));
            std::vector<double> magnitude(static_cast<size_t>(n_a));
            for (int64_t i = 0; i < n_a; i++) {
              want_put[size_t(i)] = want_sum[size_t(i)] = a[i];
              magnitude[size_t(i)] = std::abs(a[i]);
            }
            each(s, index, [&](int64_t pa, int64_t pb) {
              want_put[size_t(pa)] = b[pb];
              want_sum[size_t(pa)] += b[pb];
              magnitude[size_t(pa)] += std::abs(b[pb]);
            });
            for (int64_t i = 0; i < n_a; i++) {
              ASSERT_EQ(put[i], want_put[size_t(i)]) << text << " put at " << i;
              Value w = want_sum[size_t(i)];
              if (dtype == TT_BOOL) w = double(w != 0.0);
              if (!is_float(dtype)) {
                Buffer wrapped(dtype, 1);
                const int64_t integer = int64_t(w.real());
                if (dtype == TT_BOOL) wrapped.put(0, w);
                else std::memcpy(wrapped.data(), &integer, size_t(kItemSize[dtype]));
                ASSERT_EQ(sum[i], wrapped[0]) << text << " sum at " << i;
              } else {
                const double terms = dtype == TT_F16 || dtype == TT_BF16 ? 30 : 300;
                ASSERT_LE(std::abs(sum[i] - w), terms * epsilon(dtype) * magnitude[size_t(i)])
                    << text << " sum at " << i;
              }
            }
          }
          ASSERT_TRUE(put.same_bytes(first_put)) << text << " piece " << piece;
          ASSERT_TRUE(sum.same_bytes(first_sum)) << text << " piece " << piece;
        }
      if (HasFatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, IndexTest, testing::Range(int32_t(TT_BOOL), int32_t(TT_C128) + 1),
                         [](const testing::TestParamInfo<int32_t>& i) {
                           return dtype_text(i.param);
                         });

TEST(Index, LargeNestsAreSplit) {
  Scattered s = scattered({300, 300}, {300, 300}, 0);
  EXPECT_GT(plan_of(s, TT_F32, TT_I64, false).run.units[0], 1);
  EXPECT_GT(plan_of(s, TT_F32, TT_I64, true).run.units[0], 1);
  EXPECT_EQ(plan_of(scattered({10}, {300000}, 0), TT_F32, TT_I64, true).run.units[0], 1);
}

// An index may change after it was checked: an invalid one counts as 0 in every loop.
TEST(Index, AnIndexOutOfRangeReadsTheFirstElement) {
  for (const Scattered& s : cases())
    for (int32_t index_dtype : {TT_I64, TT_I32}) {
      const int64_t n_a = product(s.a_size);
      const int64_t n_b = product(s.size);
      const int64_t dim = s.a_size[size_t(s.dim)];
      const double far[] = {double(dim), double(-dim - 1), 1 << 30, -(1 << 30)};
      Buffer a(TT_F32, n_a);
      Buffer b(TT_F32, n_b);
      Buffer index(index_dtype, n_b);
      Buffer inside(index_dtype, n_b);
      fill_random(&a, 1);
      fill_random(&b, 2);
      fill_index(&inside, dim, 3);
      for (int64_t i = 0; i < n_b; i++) {
        index.put(i, i % 5 == 3 ? far[i / 5 % 4] : inside.real(i));
        if (i % 5 == 3) inside.put(i, 0);
      }
      const KernelRow kernels[] = {KERNEL_ROW(index_get), KERNEL_ROW(index_put),
                                   KERNEL_ROW(index_accumulate)};
      for (int isa = 0; isa <= best_isa(); isa++)
        for (const KernelRow& row : kernels) {
          const bool put = &row != kernels;
          if (!put && s.b_stride[0] == 0) continue;
          Buffer target[2] = {Buffer(TT_F32, put ? n_a : n_b), Buffer(TT_F32, put ? n_a : n_b)};
          for (int k = 0; k < 2; k++) {
            IndexPlan p = plan_of(s, TT_F32, index_dtype, put);
            if (put) std::memcpy(target[k].data(), a.data(), size_t(n_a) * 4);
            p.a = put ? target[k].data() : a.data();
            p.b = put ? b.data() : target[k].data();
            p.index = k ? inside.data() : index.data();
            ASSERT_EQ(run_split(row.isa[isa], &p, 0), 0);
          }
          ASSERT_TRUE(target[0].same_bytes(target[1]));
        }
    }
}

TEST(Index, CheckReportsTheFirstBadIndex) {
  for (int32_t dtype : {TT_I64, TT_I32})
    for (int64_t n : {1, 1000, 70000})
      for (int isa = 0; isa <= best_isa(); isa++)
        for (int64_t piece : {0, 1}) {
          Buffer index(dtype, n);
          index.fill([](int64_t i) { return double(i % 2 ? -7 : 6); });
          const int64_t size[] = {n};
          const int64_t stride[] = {kItemSize[dtype]};
          int64_t bad = INT64_MAX;
          IndexCheckPlan p;
          build_index_check(&p, 1, size, stride, dtype, 7);
          p.index = index.data();
          p.first_bad = &bad;
          run_split(KERNEL_ROW(index_check).isa[isa], &p, piece);
          EXPECT_EQ(bad, INT64_MAX);
          index.put(n - 1, 7);
          run_split(KERNEL_ROW(index_check).isa[isa], &p, piece);
          EXPECT_EQ(bad, n - 1);
          EXPECT_EQ(index_at(&p, bad), 7);
          index.put(n / 2, -8);
          run_split(KERNEL_ROW(index_check).isa[isa], &p, piece);
          EXPECT_EQ(bad, n / 2);
          EXPECT_EQ(index_at(&p, bad), -8);
        }
  // Class targets: negative ones are refused, except ignore_index.
  for (int64_t value : {-1, -100, 4, 5}) {
    int64_t bad = INT64_MAX;
    const int64_t size[] = {1};
    const int64_t stride[] = {8};
    IndexCheckPlan p;
    build_index_check(&p, 1, size, stride, TT_I64, 5);
    p.low = 0;
    p.allowed = -100;
    p.index = reinterpret_cast<const char*>(&value);
    p.first_bad = &bad;
    run_split(KERNEL_ROW(index_check).isa[0], &p, 0);
    EXPECT_EQ(bad, value == 4 || value == -100 ? INT64_MAX : 0);
  }
  // A dimension of size 0 admits no index, and extreme values do not wrap around.
  for (int64_t value :
       {int64_t(0), std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    int64_t bad = INT64_MAX;
    const int64_t size[] = {1};
    const int64_t stride[] = {8};
    IndexCheckPlan p;
    build_index_check(&p, 1, size, stride, TT_I64, value ? 5 : 0);
    p.index = reinterpret_cast<const char*>(&value);
    p.first_bad = &bad;
    run_split(KERNEL_ROW(index_check).isa[0], &p, 0);
    EXPECT_EQ(bad, 0);
  }
}

// a[i, :, j] of a (4, 3, 5) array with i (6, 1) and j (7): offsets of the broadcast indices, then
// one get.
TEST(Index, SeveralIndexTensors) {
  Buffer a(TT_F32, 60);
  Buffer i(TT_I64, 6);
  Buffer j(TT_I32, 7);
  Buffer out(TT_F32, 6 * 7 * 3);
  fill_random(&a, 1);
  fill_index(&i, 4, 2);
  fill_index(&j, 5, 3);
  for (int isa = 0; isa <= best_isa(); isa++)
    for (int64_t piece : {0, 1}) {
      std::vector<int64_t> offsets(42);
      int64_t bad = INT64_MAX;
      const int64_t size[] = {6, 7};
      const int64_t si[] = {8, 0};
      const int64_t sj[] = {0, 4};
      IndexCheckPlan p;
      build_index_check(&p, 2, size, si, TT_I64, 4);
      p.index = i.data();
      p.first_bad = &bad;
      p.offsets = offsets.data();
      p.step = 15 * 4;
      run_split(KERNEL_ROW(index_offsets).isa[isa], &p, piece);
      build_index_check(&p, 2, size, sj, TT_I32, 5);
      p.index = j.data();
      p.first_bad = &bad;
      p.offsets = offsets.data();
      p.step = 4;
      p.add = true;
      run_split(KERNEL_ROW(index_offsets).isa[isa], &p, piece);
      EXPECT_EQ(bad, INT64_MAX);
      const int64_t nest[] = {6, 7, 3};
      const int64_t sa[] = {0, 0, 20};
      const int64_t sb[] = {84, 12, 4};
      const int64_t sx[] = {56, 8, 0};
      IndexPlan get;
      build_index(&get, {3, nest, sa, sb, sx, 1, 0, TT_F32, TT_I64, false});
      get.a = a.data();
      get.b = out.data();
      get.index = reinterpret_cast<const char*>(offsets.data());
      run_split(KERNEL_ROW(index_get).isa[isa], &get, piece);
      for (int64_t x = 0; x < 6; x++)
        for (int64_t y = 0; y < 7; y++)
          for (int64_t z = 0; z < 3; z++) {
            const int64_t ii = (int64_t(i.real(x)) + 4) % 4;
            const int64_t jj = (int64_t(j.real(y)) + 5) % 5;
            EXPECT_EQ(out.real((x * 7 + y) * 3 + z), a.real(ii * 15 + z * 5 + jj));
          }
    }
}

TEST(Index, Nonzero) {
  for (int32_t dtype = TT_BOOL; dtype <= TT_C128; dtype++)
    for (int isa = 0; isa <= best_isa(); isa++) {
      const int64_t size[] = {50, 70, 20};
      Buffer x(dtype, 70000);
      x.fill([](int64_t i) -> Value {
        if (i % 11 == 3 || i > 69990) return 1.0;
        return i % 5 ? 0.0 : -0.0;
      });
      if (dtype == TT_F32) x.put(0, std::nan(""));
      if (is_complex(dtype)) x.put(1, Value(0, 2));
      NonzeroPlan p;
      build_nonzero(&p, dtype, 3, size);
      std::vector<int64_t> starts(size_t(nonzero_chunks(p.n)));
      int64_t total = -1;
      p.x = x.data();
      p.starts = starts.data();
      p.total = &total;
      run_split(KERNEL_ROW(nonzero_count).isa[isa], &p, 1);
      std::vector<int64_t> want;
      for (int64_t i = 0; i < x.n; i++)
        if (x[i] != 0.0) want.push_back(i);
      ASSERT_EQ(total, int64_t(want.size()));
      std::vector<int64_t> out(size_t(total) * 3);
      build_nonzero_write(&p);
      p.out = out.data();
      run_split(KERNEL_ROW(nonzero_write).isa[isa], &p, 1);
      for (size_t i = 0; i < want.size(); i++)
        ASSERT_EQ((out[3 * i] * 70 + out[3 * i + 1]) * 20 + out[3 * i + 2], want[i]);
      p.ndim = 0;
      p.row_stride = 1;
      run_split(KERNEL_ROW(nonzero_write).isa[isa], &p, 0);
      for (size_t i = 0; i < want.size(); i++) ASSERT_EQ(out[i], want[i]);
    }
  NonzeroPlan p;
  const int64_t size[] = {0};
  build_nonzero(&p, TT_BOOL, 1, size);
  int64_t total = -1;
  p.x = nullptr;
  p.starts = nullptr;
  p.total = &total;
  run_split(KERNEL_ROW(nonzero_count).isa[0], &p, 0);
  EXPECT_EQ(total, 0);
}

// Elements that become zero or nonzero after they were counted: as many positions are written as
// were counted.
TEST(Index, NonzeroOfAMaskThatChangedMeanwhile) {
  const int64_t n = 40000;
  const int64_t size[] = {n / 40, 40};
  for (int isa = 0; isa <= best_isa(); isa++)
    for (bool more : {false, true})
      for (int64_t flat : {0, 1}) {
        Buffer x(TT_F32, n);
        x.fill([](int64_t i) { return i % 3 == 0 ? 1.0 : 0.0; });
        NonzeroPlan p;
        build_nonzero(&p, TT_F32, 2, size);
        std::vector<int64_t> starts(size_t(nonzero_chunks(n)));
        int64_t total = -1;
        p.x = x.data();
        p.starts = starts.data();
        p.total = &total;
        run_split(KERNEL_ROW(nonzero_count).isa[isa], &p, 1);
        x.fill([&](int64_t i) { return more || i % 6 == 0 ? 1.0 : 0.0; });
        build_nonzero_write(&p);
        Buffer out(TT_I64, flat ? total : 2 * total);
        p.out = reinterpret_cast<int64_t*>(out.data());
        if (flat) {
          p.ndim = 0;
          p.row_stride = 1;
        }
        run_split(KERNEL_ROW(nonzero_write).isa[isa], &p, 1);
        ASSERT_EQ(*out.at(out.n), 0x5a);
        for (int64_t i = 0; i < total; i++) {
          const int64_t at =
              flat ? int64_t(out.real(i)) : int64_t(out.real(2 * i) * 40 + out.real(2 * i + 1));
          ASSERT_TRUE(at >= 0 && at < n && (at == 0 || more || at % 6 == 0));
        }
      }
}

TEST(Index, Arange) {
  for (int32_t dtype = TT_BOOL; dtype <= TT_C128; dtype++)
    for (int isa = 0; isa <= best_isa(); isa++) {
      Buffer out(dtype, 100000);
      ArangePlan p;
      build_arange(&p, dtype, out.n, out.data(), -3, 2, -3, 0.25);
      run_split(KERNEL_ROW(fill_arange).isa[isa], &p, 1);
      Buffer want(dtype, 1);
      for (int64_t i = 0; i < out.n; i++) {
        const int64_t integer = -3 + 2 * i;
        if (dtype == TT_BOOL) want.put(0, 1);
        else if (is_float(dtype)) want.put(0, -3 + 0.25 * double(i));
        else std::memcpy(want.data(), &integer, size_t(kItemSize[dtype]));
        ASSERT_EQ(out[i], want[0]) << dtype_text(dtype) << " " << i;
      }
      ASSERT_EQ(*out.at(out.n), 0x5a);
    }
}

}  // namespace
