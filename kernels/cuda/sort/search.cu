// search_sorted: binary search, a thread for each value.
#include "kernels/cuda/convert.h"
#include "kernels/cuda/nest.h"
#include "kernels/cuda/rows.h"
#include "plan/sort_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

// Whether x precedes the insertion point of value; nan is largest.
template <class T> __device__ __forceinline__ bool precedes(T x, T value, bool right) {
  return !(x > value || (x == value && !right));
}

template <class T> __global__ void __launch_bounds__(kThreads)
    search(const __grid_constant__ SearchPlan p) {
  for (int64_t i = first_item(); i < p.total; i += item_step()) {
    const int64_t row = p.step ? quotient(i, p.row) * p.step : 0;
    const T* sorted = reinterpret_cast<const T*>(p.sorted) + row;
    const T value = reinterpret_cast<const T*>(p.values)[i];
    int64_t start = 0;
    for (int64_t n = p.n; n > 0;) {
      const int64_t half = n / 2;
      int64_t at = start + half;
      if (p.sorter) {
        at = p.sorter[row + at];
        if (uint64_t(at) >= uint64_t(p.n)) at = 0;
      }
      const bool behind = precedes(sorted[at], value, p.right);
      start = behind ? start + half + 1 : start;
      n = behind ? n - half - 1 : half;
    }
    if (p.narrow) reinterpret_cast<int32_t*>(p.out)[i] = int32_t(start);
    else reinterpret_cast<int64_t*>(p.out)[i] = start;
  }
}

}  // namespace

namespace cuda {

int32_t search_sorted(const void* plan, void* stream, void*) {
  const SearchPlan& p = *static_cast<const SearchPlan*>(plan);
  if (p.total == 0) return TT_OK;
  auto kernel = search<int64_t>;
  if (p.dtype == TT_F32) kernel = search<float>;
  if (p.dtype == TT_F64) kernel = search<double>;
  return device::launch(kernel, grid_of(p.total, kThreads), kThreads, 0, stream, p);
}

}  // namespace cuda
}  // namespace TT_NS
