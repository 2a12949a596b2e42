// Sorts of rows that are too long for one block, the first results of such rows; equal elements,
// nan and zeros of both signs.
#include <algorithm>
#include <cmath>

#include "check.h"
#include "plan/sort_build.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

struct Case {
  const char* name;
  int64_t outer, n, inner, k;
  bool descending;
};
constexpr Case kCases[] = {
    {"short rows", 3, 70, 2, 70, false},
    {"rows of two items a lane", 9, 40, 1, 5, true},
    {"one element", 2, 1, 1, 1, true},
    {"a whole block", 1, 300, 1, 300, true},
    {"the first of long rows", 2, 2500, 1, 9, true},
    {"the first of a long row", 1, 3000, 1, 700, false},
    {"the first of a row in shared memory", 3, 1030, 2, 40, true},
    {"the first of chunks of long rows", 1, 18000, 2, 20, true},
    {"rows by one block", 2, 2100, 2, 2100, false},
    {"a long row by radix", 1, 9000, 1, 9000, false},
    {"some of long rows by radix", 2, 8100, 1, 1100, true},
};

template <class T> bool before(T x, T y) {
  const bool nan_x = x != x;
  const bool nan_y = y != y;
  return nan_x || nan_y ? !nan_x && nan_y : x < y;
}

template <class T> void test_case(const Case& t, int32_t dtype, T nan) {
  Numbers numbers;
  std::vector<T> x(size_t(t.outer * t.n * t.inner));
  for (T& v : x) {
    const int number = numbers.whole(-40, 40);
    v = number == 13 ? nan : T(number);
    if (number == 14) v = T(-0.0);
  }
  const size_t results = size_t(t.outer * t.k * t.inner);
  std::vector<T> values(results);
  std::vector<int64_t> indices(results);
  SortPlan p;
  build_sort(&p, dtype, t.outer, t.n, t.inner, t.k, t.descending);
  p.path = kSortRows;
  p.in = reinterpret_cast<const char*>(x.data());
  p.values = reinterpret_cast<char*>(values.data());
  p.indices = indices.data();
  in_orders(
      t.name, indices, [&] { run(t.name, cuda::sort_rows, cuda::sort_rows_workspace, &p); },
      EMU_TSAN || t.n > 100000);
  for (int64_t row = 0; row < t.outer * t.inner; row++) {
    const auto at = [&](int64_t i, int64_t length) {
      return size_t((row / t.inner * length + i) * t.inner + row % t.inner);
    };
    std::vector<int64_t> order;
    for (int64_t i = 0; i < t.n; i++) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      const T u = x[at(i, t.n)];
      const T v = x[at(j, t.n)];
      return t.descending ? before(v, u) : before(u, v);
    });
    for (int64_t i = 0; i < t.k; i++) {
      const size_t place = at(i, t.k);
      const bool right = indices[place] == order[size_t(i)] &&
                         memcmp(&values[place], &x[at(order[size_t(i)], t.n)], sizeof(T)) == 0;
      check(right, t.name, int(i));
      if (!right) return;
    }
  }
}

}  // namespace

int main() {
  if (!EMU_TSAN)
    test_case<int8_t>({"pieces of several chunks", 1, 133000, 1, 133000, false}, TT_I8, 99);
  for (const Case& t : kCases) {
    const bool one_pass = EMU_TSAN && t.n > 4096;
    if (!one_pass) test_case<float>(t, TT_F32, NAN);
    else if (t.outer == 1 && t.inner == 1) test_case<int8_t>(t, TT_I8, 99);
    if (EMU_TSAN || (t.n > 8000 && t.k > 1000)) continue;
    test_case<double>(t, TT_F64, NAN);
    test_case<int8_t>(t, TT_I8, 99);
    if (t.k < 1000) test_case<int64_t>(t, TT_I64, 99);
  }
  return finished();
}
