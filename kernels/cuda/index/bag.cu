// bag_reduce: sums, means or maxima of rows of a table. A thread reduces one column of a bag, in
// the order of its indices: neighbours read neighbouring elements of a row.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/nest.h"
#include "kernels/cuda/rows.h"
#include "plan/index_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;
constexpr int kAtOnce = 4;  // rows that a thread reads before it adds the first one

struct BagArguments {
  int64_t n, bags, per_bag, rows, width, row_stride, skipped;
  const char* table;
  const char* index;
  const int64_t* start;
  const char* factor;
  char* out;
  int32_t dtype, reduce;
  bool narrow;  // indices are i32

  __device__ __forceinline__ int64_t row_of(int64_t i) const {
    const int64_t row = narrow ? reinterpret_cast<const int32_t*>(index)[i]
                               : reinterpret_cast<const int64_t*>(index)[i];
    return uint64_t(row) < uint64_t(rows) ? row : 0;
  }
  __device__ __forceinline__ int64_t begin_of(int64_t bag) const {
    if (!start) return bag * per_bag;
    const int64_t at = start[bag];
    if (at < 0) return 0;
    return at < n ? at : n;
  }
};

// T is double for f64, float for the other floats.
template <class T> __device__ __forceinline__ T read(const char* p, int32_t dtype) {
  if constexpr (sizeof(T) == 4) {
    if (dtype == TT_F16) return widen(*reinterpret_cast<const F16*>(p));
    if (dtype == TT_BF16) return widen(*reinterpret_cast<const BF16*>(p));
  }
  return *reinterpret_cast<const T*>(p);
}

template <class T> __global__ void __launch_bounds__(kThreads)
    reduce_bags(const __grid_constant__ BagArguments p) {
  const int64_t size = item_size(p.dtype);
  for (int64_t t = first_item(); t < p.bags * p.width; t += item_step()) {
    const int64_t bag = quotient(t, p.width);
    const int64_t column = t - bag * p.width;
    const int64_t end = p.begin_of(bag + 1);
    int64_t taken = 0;
    T sum = 0;
    for (int64_t first = p.begin_of(bag); first < end; first += kAtOnce) {
      int64_t row[kAtOnce];
      T x[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; j++) row[j] = first + j < end ? p.row_of(first + j) : p.skipped;
#pragma unroll
      for (int j = 0; j < kAtOnce; j++) {
        const bool counts = first + j < end && row[j] != p.skipped;
        const char* const from = p.table + (counts ? row[j] : 0) * p.row_stride + column * size;
        x[j] = read<T>(from, p.dtype);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; j++) {
        if (first + j >= end || row[j] == p.skipped) continue;
        taken++;
        if (p.reduce != kBagMax) {
          sum += p.factor ? x[j] * read<T>(p.factor + (first + j) * size, p.dtype) : x[j];
        } else if (taken == 1 || (!(x[j] <= sum) && sum == sum)) {
          sum = x[j];
        }
      }
    }
    if (p.reduce == kBagMean && taken > 1) sum = sum / T(taken);
    store_element<T>(p.out + t * size, p.dtype, sum);
  }
}

}  // namespace

namespace cuda {

int32_t bag_reduce(const void* plan, void* stream, void*) {
  const BagPlan& p = *static_cast<const BagPlan*>(plan);
  BagArguments a;
  a.n = p.n;
  a.bags = p.run.units[0];
  a.per_bag = p.per_bag;
  a.rows = p.rows;
  a.width = p.width;
  a.row_stride = p.row_stride;
  a.skipped = p.skipped;
  a.table = p.table;
  a.index = p.index;
  a.start = p.start;
  a.factor = p.factor;
  a.out = p.out;
  a.dtype = p.dtype;
  a.reduce = p.reduce;
  a.narrow = p.index_dtype == TT_I32;
  if (a.bags * a.width == 0) return TT_OK;
  const unsigned grid = grid_of(a.bags * a.width, kThreads);
  return p.dtype == TT_F64 ? device::launch(reduce_bags<double>, grid, kThreads, 0, stream, a)
                           : device::launch(reduce_bags<float>, grid, kThreads, 0, stream, a);
}

}  // namespace cuda
}  // namespace TT_NS
