// search_sorted: binary search.
//   sorted: (…, n) or (n), values: (…, row), out: as values, int64 or int32
//   sorter: NULL, or the order that sorts `sorted`, of its shape
#include "kernels/cpu/sort/sort.h"

#include "plan/sort_plan.h"

TT_ISA_BEGIN

// Returns whether x precedes the insertion point of value: left of equal elements, or right.
template <class T> TT_INLINE bool precedes(T x, T value, bool right) {
  return !((x > value) | ((x == value) & !right));
}
// The insertion point of value, as std::lower_bound or std::upper_bound. Another thread may write
// to the sorter after its range was checked: an index outside it counts as 0.
template <class T> TT_INLINE int64_t insertion_point(const T* sorted, const int64_t* sorter,
                                                     int64_t n, T value, bool right) {
  const int64_t size = n;
  int64_t start = 0;
  while (n > 0) {
    const int64_t half = n / 2;
    int64_t at = start + half;
    if (sorter) {
      at = atomic_load(sorter + at, kRelaxed);
      at = uint64_t(at) < uint64_t(size) ? at : 0;
    }
    const bool behind = precedes(sorted[at], value, right);
    start = behind ? start + half + 1 : start;
    n = behind ? n - half - 1 : half;
  }
  return start;
}

// The same for kLanes values at once, so that their cache misses overlap.
constexpr int64_t kLanes = 16;
template <class T> TT_NOINLINE void insertion_points(const T* sorted, int64_t n, const T* values,
                                                     bool right, int64_t* start) {
  int64_t left[kLanes];
  for (int64_t j = 0; j < kLanes; j++) {
    start[j] = 0;
    left[j] = n;
  }
  for (int64_t width = n; width > 0; width /= 2)
    for (int64_t j = 0; j < kLanes; j++) {
      const int64_t half = left[j] / 2;
      const int64_t at = start[j] + half;
      const T x = sorted[at < n ? at : n - 1];
      const int is_behind = precedes(x, values[j], right) & (left[j] > 0);
      const int64_t behind = -int64_t(is_behind);  // a mask: all bits or none
      start[j] += (half + 1) & behind;
      left[j] = ((left[j] - half - 1) & behind) | (half & ~behind);
    }
}

TT_INLINE void store_points(const SearchPlan& p, int64_t i, const int64_t* at, int64_t n) {
  for (int64_t j = 0; j < n; j++)
    if (p.narrow) reinterpret_cast<int32_t*>(p.out)[i + j] = int32_t(at[j]);
    else reinterpret_cast<int64_t*>(p.out)[i + j] = at[j];
}

template <class T> TT_NOINLINE int32_t search(const SearchPlan& p, int64_t begin, int64_t end) {
  const int64_t last = min(end * kSearchBlock, p.total);
  const T* values = reinterpret_cast<const T*>(p.values);
  const T* all = reinterpret_cast<const T*>(p.sorted);
  int64_t at[kLanes], i = begin * kSearchBlock;
  for (; !p.step && !p.sorter && i + kLanes <= last; i += kLanes) {
    insertion_points(all, p.n, values + i, p.right, at);
    store_points(p, i, at, kLanes);
  }
  for (; i < last; i++) {
    const int64_t from = p.step ? i / p.row * p.step : 0;
    at[0] =
        insertion_point(all + from, p.sorter ? p.sorter + from : nullptr, p.n, values[i], p.right);
    store_points(p, i, at, 1);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(search_sorted)(const void* plan, int64_t begin, int64_t end) noexcept {
  const SearchPlan& p = *static_cast<const SearchPlan*>(plan);
  if (p.dtype == TT_F32) return search<float>(p, begin, end);
  return p.dtype == TT_F64 ? search<double>(p, begin, end) : search<int64_t>(p, begin, end);
}

TT_ENTRY_END
