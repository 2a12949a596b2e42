// search_sorted: binary search.
#include "kernels/cpu/sort/sort.h"

#include "plan/sort_plan.h"

TT_ISA_BEGIN

// How many of n elements stand before the value, as std::lower_bound and upper_bound find it.
template <class T> TT_INLINE bool stands_before(T x, T value, bool right) {
  return !((x > value) | ((x == value) & !right));
}
// Others may write the sorter meanwhile: what has left its range since it was checked stands for 0.
template <class T>
TT_INLINE int64_t place_of(const T* sorted, const int64_t* sorter, int64_t n, T value, bool right) {
  const int64_t size = n;
  int64_t start = 0;
  while (n > 0) {
    const int64_t half = n / 2;
    int64_t at = start + half;
    if (sorter) {
      at = __atomic_load_n(sorter + at, __ATOMIC_RELAXED);
      at = uint64_t(at) < uint64_t(size) ? at : 0;
    }
    const bool behind = stands_before(sorted[at], value, right);
    start = behind ? start + half + 1 : start;
    n = behind ? n - half - 1 : half;
  }
  return start;
}

// The same of several values at once, so that the loads of one are not waited for by the others.
constexpr int64_t kLanes = 16;
template <class T> TT_NOINLINE void places_of(const T* sorted, int64_t n, const T* values,
                                              bool right, int64_t* start) {
  int64_t left[kLanes];
  for (int64_t j = 0; j < kLanes; j++) {
    start[j] = 0;
    left[j] = n;
  }
  for (int64_t most = n; most > 0; most /= 2)
    for (int64_t j = 0; j < kLanes; j++) {
      const int64_t half = left[j] / 2;
      const int64_t at = start[j] + half;
      const T x = sorted[at < n ? at : n - 1];
      const int64_t behind =
          -int64_t(stands_before(x, values[j], right) & (left[j] > 0));  // all bits or none
      start[j] += (half + 1) & behind;
      left[j] = ((left[j] - half - 1) & behind) | (half & ~behind);
    }
}

TT_INLINE void store_places(const SearchPlan& p, int64_t i, const int64_t* at, int64_t n) {
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
    places_of(all, p.n, values + i, p.right, at);
    store_places(p, i, at, kLanes);
  }
  for (; i < last; i++) {
    const int64_t from = p.step ? i / p.row * p.step : 0;
    at[0] = place_of(all + from, p.sorter ? p.sorter + from : nullptr, p.n, values[i], p.right);
    store_places(p, i, at, 1);
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
