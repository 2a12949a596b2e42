// Gets, puts and sums by index of shapes that the op table's samples are too small for: items that
// are sorted by radix, runs of equal indices over several pieces, elements that are moved together.
#include "check.h"
#include "kernels/cuda/convert.h"
#include "plan/index_build.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

// a is (targets, width), b and the index are (items, width) and (items); rows are moved.
struct Case {
  const char* name;
  int64_t targets, width, items;
  int64_t equal;  // the first items have index -1
};
constexpr Case kCases[] = {
    {"few rows", 7, 6, 20, 3},
    {"rows of one element", 50, 1, 300, 100},
    {"a long run of one index", 9, 33, 600, 560},
    {"packs of elements", 40, 24, 120, 70},
    {"sorted by radix", 300, 2, 4200, 40},
};

template <class T> struct Data {
  std::vector<T> a, b;
  std::vector<int64_t> index;
};
template <class T> Data<T> data_of(const Case& t) {
  Numbers numbers;
  Data<T> d;
  for (int64_t i = 0; i < t.targets * t.width; i++) d.a.push_back(T(numbers.whole(-9, 9)));
  for (int64_t i = 0; i < t.items * t.width; i++) d.b.push_back(T(numbers.whole(-9, 9)));
  for (int64_t i = 0; i < t.items; i++)
    d.index.push_back(i < t.equal ? -1 : numbers.whole(0, int(t.targets) - 1));
  return d;
}

template <class T> IndexPlan plan_of(const Case& t, int32_t dtype, bool put) {
  const int64_t item = sizeof(T);
  const int64_t size[2] = {t.items, t.width};
  const int64_t a_stride[2] = {0, item}, b_stride[2] = {t.width * item, item};
  const int64_t index_stride[2] = {8, 0};
  IndexPlan p;
  build_index(&p, {.ndim = 2,
                   .size = size,
                   .a_stride = a_stride,
                   .b_stride = b_stride,
                   .index_stride = index_stride,
                   .a_step = t.width * item,
                   .index_size = t.targets,
                   .dtype = dtype,
                   .index_dtype = TT_I64,
                   .put = put});
  return p;
}

template <class T> void test_case(const Case& t, int32_t dtype) {
  const Data<T> d = data_of<T>(t);
  const auto target = [&](int64_t i) {
    const int64_t at = d.index[size_t(i)];
    return size_t(at < 0 ? at + t.targets : at) * size_t(t.width);
  };
  std::vector<T> put = d.a, sums = d.a, got = d.b;
  std::vector<T> combined[3] = {d.a, d.a, d.a};  // by IndexCombine
  for (int64_t i = 0; i < t.items; i++)
    for (size_t k = 0; k < size_t(t.width); k++) {
      const size_t at = size_t(i * t.width) + k;
      put[target(i) + k] = d.b[at];
      sums[target(i) + k] = T(sums[target(i) + k] + d.b[at]);
      T& product = combined[kCombineProduct][target(i) + k];
      T& top = combined[kCombineMax][target(i) + k];
      T& bottom = combined[kCombineMin][target(i) + k];
      product = T(product * d.b[at]);
      top = d.b[at] > top ? d.b[at] : top;
      bottom = d.b[at] < bottom ? d.b[at] : bottom;
      got[at] = d.a[target(i) + k];
    }
  std::vector<T> a, b = d.b;
  const auto run_on = [&](Row row, Bytes bytes, IndexPlan p) {
    a = d.a;
    p.a = reinterpret_cast<char*>(a.data());
    p.b = reinterpret_cast<char*>(b.data());
    p.index = reinterpret_cast<const char*>(d.index.data());
    run(t.name, row, bytes, &p);
  };
  const IndexPlan writes = plan_of<T>(t, dtype, true);
  in_orders(t.name, a, [&] { run_on(cuda::index_put, cuda::index_put_workspace, writes); });
  check(a == put, t.name, 1);
  a.resize(d.a.size());
  in_orders(t.name, a,
            [&] { run_on(cuda::index_accumulate, cuda::index_accumulate_workspace, writes); });
  check(a == sums, t.name, 2);
  for (const IndexCombine combine : {kCombineProduct, kCombineMax, kCombineMin}) {
    const bool rounds = dtype == TT_F32 && combine == kCombineProduct && t.items > 20;
    if (rounds) continue;
    IndexPlan plan = writes;
    plan.combine = combine;
    in_orders(t.name, a, [&] { run_on(cuda::index_combine, cuda::index_combine_workspace, plan); });
    check(a == combined[combine], t.name, 4 + combine);
  }
  in_orders(t.name, b, [&] { run_on(cuda::index_get, nullptr, plan_of<T>(t, dtype, false)); });
  check(b == got, t.name, 3);
}

// scatter, scatter_add and gather along the rows of a (rows, targets): no two rows share a target.
void test_rows(const char* name, int64_t rows, int64_t targets, int64_t items, int equal) {
  Numbers numbers;
  std::vector<float> before, a, b;
  std::vector<int32_t> index;
  for (int64_t i = 0; i < rows * targets; i++) before.push_back(float(numbers.whole(-9, 9)));
  for (int64_t i = 0; i < rows * items; i++) {
    b.push_back(float(numbers.whole(-9, 9)));
    index.push_back(i % items < equal ? -2 : numbers.whole(-int(targets), int(targets) - 1));
  }
  std::vector<float> want = before, put = before;
  for (int64_t i = 0; i < rows * items; i++) {
    const int64_t at = index[size_t(i)] + (index[size_t(i)] < 0 ? targets : 0);
    want[size_t(i / items * targets + at)] += b[size_t(i)];
    put[size_t(i / items * targets + at)] = b[size_t(i)];
  }
  const int64_t size[2] = {rows, items};
  const int64_t a_stride[2] = {targets * 4, 0}, b_stride[2] = {items * 4, 4};
  const int64_t index_stride[2] = {items * 4, 4};
  IndexPlan p;
  build_index(&p, {.ndim = 2,
                   .size = size,
                   .a_stride = a_stride,
                   .b_stride = b_stride,
                   .index_stride = index_stride,
                   .a_step = 4,
                   .index_size = targets,
                   .dtype = TT_F32,
                   .index_dtype = TT_I32,
                   .put = true});
  p.b = reinterpret_cast<char*>(b.data());
  p.index = reinterpret_cast<const char*>(index.data());
  a.resize(before.size());
  const auto run_on = [&](Row row, Bytes bytes) {
    in_orders(name, a, [&] {
      a = before;
      p.a = reinterpret_cast<char*>(a.data());
      run(name, row, bytes, &p);
    });
  };
  run_on(cuda::index_accumulate, cuda::index_accumulate_workspace);
  check(a == want, name, 0);
  run_on(cuda::index_put, cuda::index_put_workspace);
  check(a == put, name, 1);
  std::vector<float> got(b.size()), taken;
  for (int64_t i = 0; i < rows * items; i++) {
    const int64_t at = index[size_t(i)] + (index[size_t(i)] < 0 ? targets : 0);
    taken.push_back(before[size_t(i / items * targets + at)]);
  }
  p.a = reinterpret_cast<char*>(before.data());
  p.b = reinterpret_cast<char*>(got.data());
  in_orders(name, got, [&] { run(name, cuda::index_get, nullptr, &p); });
  check(got == taken, name, 2);
}

void test_nonzero() {
  const int64_t size[2] = {3, 7001};
  std::vector<float> x(size_t(size[0] * size[1]));
  std::vector<int64_t> want;
  Numbers numbers;
  for (size_t i = 0; i < x.size(); i++) {
    x[i] = float(numbers.whole(-1, 1));
    if (x[i] != 0) want.push_back(int64_t(i));
  }
  NonzeroPlan p;
  build_nonzero(&p, TT_F32, 2, size);
  std::vector<int64_t> starts(size_t(nonzero_chunks(p.n))), out(want.size() * 2);
  int64_t total = 0;
  p.x = reinterpret_cast<const char*>(x.data());
  p.starts = starts.data();
  p.total = &total;
  in_orders("nonzero", out, [&] {
    run("nonzero", cuda::nonzero_count, nullptr, &p);
    check(total == int64_t(want.size()), "nonzero: total", int(total));
    p.out = out.data();
    run("nonzero", cuda::nonzero_write, nullptr, &p);
  });
  for (size_t i = 0; i < want.size(); i++) {
    const bool right = out[2 * i] == want[i] / 7001 && out[2 * i + 1] == want[i] % 7001;
    check(right, "nonzero", int(i));
    if (!right) return;
  }
}

void test_check() {
  std::vector<int32_t> index(3000, 2);
  index[1234] = 5;
  index[2999] = -6;
  index[17] = -1;
  const int64_t size[1] = {3000}, stride[1] = {4};
  IndexCheckPlan p;
  build_index_check(&p, 1, size, stride, TT_I32, 5);
  int64_t bad = INT64_MAX;
  std::vector<int64_t> offsets(3000);
  p.index = reinterpret_cast<const char*>(index.data());
  p.first_bad = &bad;
  p.offsets = offsets.data();
  p.step = 8;
  in_orders("offsets", offsets, [&] { run("offsets", cuda::index_offsets, nullptr, &p); });
  check(bad == 1234, "first index out of range", int(bad));
  check(offsets[0] == 16 && offsets[17] == 32 && offsets[1234] == 0, "offsets", 0);
}

}  // namespace

int main() {
  for (const Case& t : kCases) {
    if (EMU_TSAN && t.items > 300) continue;
    test_case<float>(t, TT_F32);
    if (!EMU_TSAN) test_case<int16_t>(t, TT_I16);
  }
  test_rows("rows", 3, 70, 300, 0);
  test_rows("rows with a long run", 2, 9, 517, 200);
  test_rows("short rows", 5, 1000, 17, 3);
  if (!EMU_TSAN) test_nonzero();
  test_check();
  return finished();
}
