// row_distances: a thread takes a pair of rows; its backward a thread takes an element of x1. Both
// sum in double.
#include "kernels/cuda/nest.h"
#include "kernels/cuda/rows.h"
#include "kernels/functors/math.h"
#include "plan/reduce_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

// The place of the pair (i, j), i < j, of n rows.
__device__ __forceinline__ int64_t place_of(int64_t i, int64_t j, int64_t n) {
  return i * (2 * n - i - 1) / 2 + j - i - 1;
}

template <class T> __global__ void __launch_bounds__(kThreads)
    distances(const __grid_constant__ DistancePlan p) {
  for (int64_t item = first_item(); item < p.batch * p.n * p.r; item += item_step()) {
    const int64_t row = quotient(item, p.r);
    const int64_t j = item - row * p.r;
    const int64_t batch = quotient(row, p.n);
    const int64_t i = row - batch * p.n;
    if (p.pairs && j <= i) continue;
    const T* x1 = reinterpret_cast<const T*>(p.x1) + row * p.m;
    const T* x2 = reinterpret_cast<const T*>(p.x2) + (batch * p.r + j) * p.m;
    double sum = 0;
    for (int64_t k = 0; k < p.m; k++) {
      const double d = math::fabs(double(T(x1[k] - x2[k])));
      if (p.p == 1) sum += d;
      else if (p.p == 2) sum += d * d;
      else if (p.p == 0) sum += d == d ? double(d != 0) : d;
      else if (p.p == kInf) sum = d > sum || (p.pairs && d != d) ? d : sum;
      else sum += math::pow(d, p.p);
    }
    if (p.p == 2) sum = math::sqrt(sum);
    else if (p.p != 0 && p.p != 1 && p.p != kInf) sum = math::pow(sum, 1 / p.p);
    const int64_t pairs = p.n * (p.n - 1) / 2;
    reinterpret_cast<T*>(p.y)[p.pairs ? batch * pairs + place_of(i, j, p.n) : item] = T(sum);
  }
}

// The slope of a distance y along one of its differences d.
__device__ __forceinline__ double slope_of(double d, double y, double order) {
  const double sign = double(d > 0) - double(d < 0);
  if (order == 1) return sign;
  if (y == 0) return 0;
  if (order == 2) return d / y;
  if (order == kInf) return math::fabs(d) == y ? sign : 0;
  return d == 0 ? 0 : sign * math::pow(math::fabs(d) / y, order - 1);
}
template <class T> __global__ void __launch_bounds__(kThreads)
    distance_slopes(const __grid_constant__ DistancePlan p) {
  for (int64_t item = first_item(); item < p.batch * p.n * p.m; item += item_step()) {
    const int64_t row = quotient(item, p.m);
    const int64_t k = item - row * p.m;
    const int64_t batch = quotient(row, p.n);
    const int64_t i = row - batch * p.n;
    const T x = reinterpret_cast<const T*>(p.x1)[item];
    const T* x2 = reinterpret_cast<const T*>(p.x2) + batch * p.r * p.m + k;
    const int64_t pairs = p.n * (p.n - 1) / 2;
    double sum = 0;
    for (int64_t j = 0; p.p != 0 && j < p.r; j++) {
      if (p.pairs && i == j) continue;
      int64_t at = row * p.r + j;
      if (p.pairs) at = batch * pairs + (i < j ? place_of(i, j, p.n) : place_of(j, i, p.n));
      const double y = double(reinterpret_cast<const T*>(p.y)[at]);
      const double g = double(reinterpret_cast<const T*>(p.grad)[at]);
      sum += g * slope_of(double(T(x - x2[j * p.m])), y, p.p);
    }
    reinterpret_cast<T*>(p.dx)[item] = T(sum);
  }
}

}  // namespace

namespace cuda {

int32_t row_distances(const void* plan, void* stream, void*) {
  const DistancePlan& p = *static_cast<const DistancePlan*>(plan);
  const int64_t items = p.batch * p.n * p.r;
  if (items == 0) return TT_OK;
  auto kernel = p.dtype == TT_F64 ? distances<double> : distances<float>;
  return device::launch(kernel, grid_of(items, kThreads), kThreads, 0, stream, p);
}
int32_t row_distances_backward(const void* plan, void* stream, void*) {
  const DistancePlan& p = *static_cast<const DistancePlan*>(plan);
  const int64_t items = p.batch * p.n * p.m;
  if (items == 0) return TT_OK;
  auto kernel = p.dtype == TT_F64 ? distance_slopes<double> : distance_slopes<float>;
  return device::launch(kernel, grid_of(items, kThreads), kThreads, 0, stream, p);
}

}  // namespace cuda
}  // namespace TT_NS
