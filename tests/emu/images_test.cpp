// Pooling, resizing and sampling of images: each backward is the transpose of its forward, which
// the op table compares with references:  sum(forward(x) * g) = sum(x * backward(g)).
#include "check.h"
#include "plan/grid_plan.h"
#include "plan/pool_build.h"
#include "plan/resize_build.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

using Values = std::vector<double>;

Values values_of(int64_t n, Numbers& numbers) {
  Values v;
  for (int64_t i = 0; i < n; i++) v.push_back(numbers.whole(-50, 50) / 4.0);
  return v;
}
char* bytes_of(Values& v) { return reinterpret_cast<char*>(v.data()); }
double product(const Values& x, const Values& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); i++) sum += x[i] * y[i];
  return sum;
}
void check_transpose(const char* name, double forward, double backward, int i) {
  const double error = forward - backward;
  check(error < 1e-9 && error > -1e-9, name, i);
}

// Images (2, 3, 9, 10), windows 3 x 2 with a stride of 2.
void test_pool(bool channels_last, bool is_max) {
  Numbers numbers;
  PoolPlan p = {};
  p.dtype = TT_F64;
  p.channels_last = channels_last;
  p.n = 2;
  p.c = 3;
  const int64_t in[2] = {9, 10}, out[2] = {4, 5}, kernel[2] = {3, 2}, dilation[2] = {2, 1};
  for (int d = 0; d < 2; d++) {
    p.in[d] = in[d];
    p.out[d] = out[d];
    p.kernel[d] = kernel[d];
    p.stride[d] = 2;
    p.pad[d] = d == 0;
    p.dilation[d] = dilation[d];
  }
  build_pool_backward(&p, is_max);
  Values x = values_of(2 * 3 * 90, numbers), g = values_of(2 * 3 * 20, numbers);
  Values y(g.size()), dx(x.size());
  const char* name = is_max ? "pool_max" : "pool_average";
  p.x = bytes_of(x);
  in_orders(name, y, [&] {
    p.y = bytes_of(y);
    run(name, is_max ? cuda::pool_max : cuda::pool_average, nullptr, &p);
  });
  p.g = bytes_of(g);
  in_orders(name, dx, [&] {
    p.y = bytes_of(dx);
    if (is_max) run(name, cuda::pool_max_backward, cuda::pool_max_backward_workspace, &p);
    else run(name, cuda::pool_average_backward, nullptr, &p);
  });
  check_transpose(name, product(y, g), product(x, dx), channels_last);
}

// Square windows of f32 over images (2, 3, rows, columns), compared with the definition; whole
// numbers make sums exact.
void test_windows(bool channels_last, bool is_max, int64_t rows, int64_t columns, int64_t kernel,
                  int64_t stride, int64_t pad) {
  Numbers numbers;
  PoolPlan p = {};
  p.dtype = TT_F32;
  p.channels_last = channels_last;
  p.n = 2;
  p.c = 3;
  p.in[0] = rows;
  p.in[1] = columns;
  p.divisor = 4;
  for (int d = 0; d < 2; d++) {
    p.out[d] = (p.in[d] + 2 * pad - kernel) / stride + 1;
    p.kernel[d] = kernel;
    p.stride[d] = stride;
    p.pad[d] = pad;
    p.dilation[d] = 1;
  }
  build_pool_backward(&p, is_max);
  const int64_t across = channels_last ? 3 : 1;
  std::vector<float> x, g, y(size_t(p.results)), dx(size_t(6 * rows * columns));
  for (size_t i = 0; i < dx.size(); i++) x.push_back(float(numbers.whole(-3, 3)));
  for (size_t i = 0; i < y.size(); i++) g.push_back(float(numbers.whole(-50, 50)));
  x[7] = float(__builtin_nan(""));
  std::vector<float> right_y(y.size()), right_dx(dx.size());
  for (int64_t i = 0; i < p.results; i++) {
    const int64_t c = i % across, s = i / across % p.out[1], r = i / across / p.out[1] % p.out[0];
    const int64_t image = i / across / p.out[1] / p.out[0];
    size_t best = dx.size();
    float sum = 0;
    for (int64_t k = 0; k < kernel * kernel; k++) {
      const int64_t row = r * stride - pad + k / kernel, column = s * stride - pad + k % kernel;
      if (row < 0 || column < 0 || row >= rows || column >= columns) continue;
      const size_t at = size_t(((image * rows + row) * columns + column) * across + c);
      if (best == dx.size() || x[at] > x[best] || x[at] != x[at]) best = at;
      sum += x[at];
      if (!is_max) right_dx[at] += g[size_t(i)] / 4;
    }
    right_y[size_t(i)] = is_max ? x[best] : sum / 4;
    if (is_max) right_dx[best] += g[size_t(i)];
  }
  p.x = reinterpret_cast<char*>(x.data());
  in_orders("windows", y, [&] {
    p.y = reinterpret_cast<char*>(y.data());
    run("windows", is_max ? cuda::pool_max : cuda::pool_average, nullptr, &p);
  });
  p.g = reinterpret_cast<char*>(g.data());
  in_orders("windows", dx, [&] {
    p.y = reinterpret_cast<char*>(dx.data());
    if (is_max) run("windows", cuda::pool_max_backward, cuda::pool_max_backward_workspace, &p);
    else run("windows", cuda::pool_average_backward, nullptr, &p);
  });
  for (size_t i = 0; i < y.size(); i++)
    check(y[i] == right_y[i] || (y[i] != y[i] && right_y[i] != right_y[i]), "windows", int(i));
  for (size_t i = 0; i < dx.size(); i++) check(dx[i] == right_dx[i], "gradient of windows", int(i));
}

void test_resize(int32_t mode, bool channels_last) {
  Numbers numbers;
  ResizePlan p = {};
  p.dtype = TT_F64;
  p.channels_last = channels_last;
  p.mode = mode;
  p.n = 1;
  p.c = 2;
  const int64_t in[2] = {5, 8}, out[2] = {11, 3};
  for (int d = 0; d < 2; d++) {
    p.in[d] = in[d];
    p.out[d] = out[d];
    p.scale[d] = double(in[d]) / double(out[d]);
  }
  Values x = values_of(80, numbers), g = values_of(66, numbers), y(66), dx(80);
  in_orders("resize", y, [&] {
    p.x = bytes_of(x);
    p.y = bytes_of(y);
    run("resize", cuda::resize, cuda::resize_workspace, &p);
  });
  in_orders("resize_backward", dx, [&] {
    p.x = bytes_of(g);
    p.y = bytes_of(dx);
    run("resize_backward", cuda::resize_backward, cuda::resize_backward_workspace, &p);
  });
  check_transpose("resize", product(y, g), product(x, dx), mode);
}

void test_grid(int32_t mode, int32_t padding) {
  Numbers numbers;
  GridPlan p = {};
  p.dtype = TT_F64;
  p.mode = mode;
  p.padding = padding;
  p.dims = 2;
  p.n = 2;
  p.c = 17;  // more than one block of channels
  p.in[0] = 1;
  p.in[1] = 4;
  p.in[2] = 5;
  p.points = 30;
  p.n_blocks = 2;
  Values x = values_of(2 * 17 * 20, numbers), g = values_of(2 * 17 * 30, numbers);
  Values positions, y(g.size()), dx(x.size());
  for (int i = 0; i < 120; i++) positions.push_back(numbers.whole(-12, 12) / 10.0);
  p.grid = bytes_of(positions);
  in_orders("grid_take", y, [&] {
    p.x = bytes_of(x);
    p.y = bytes_of(y);
    run("grid_take", cuda::grid_take, nullptr, &p);
  });
  in_orders("grid_put", dx, [&] {
    for (double& v : dx) v = 0;
    p.x = bytes_of(dx);
    p.y = bytes_of(g);
    run("grid_put", cuda::grid_put, cuda::grid_put_workspace, &p);
  });
  check_transpose("grid", product(y, g), product(x, dx), mode);
}

}  // namespace

int main() {
  for (bool channels_last : {false, true}) {
    test_pool(channels_last, true);
    test_pool(channels_last, false);
    test_resize(kResizeLinear, channels_last);
    test_resize(kResizeCubic, channels_last);
    test_windows(channels_last, true, 5, 6, 2, 2, 0);
    if (EMU_TSAN) continue;
    test_windows(channels_last, false, 5, 6, 2, 2, 0);
    test_windows(channels_last, true, 5, 7, 2, 2, 0);
    test_windows(channels_last, true, 6, 67, 3, 2, 1);
    test_windows(channels_last, false, 6, 67, 3, 2, 1);
  }
  test_windows(false, true, 6, 5, 3, 2, 1);
  test_resize(kResizeNearestExact, false);
  test_resize(kResizeSmoothLinear, false);
  test_resize(kResizeSmoothCubic, true);
  if (EMU_TSAN) return finished();  // the sort of grid_put has too many threads for it
  test_grid(kGridLinear, kGridZeros);
  test_windows(false, true, 37, 66, 3, 1, 1);  // several tiles
  test_grid(kGridCubic, kGridReflection);
  test_grid(kGridNearest, kGridBorder);
  return finished();
}
