// Sorting without allocation.
#pragma once

#include "base/span.h"

#include <utility>

namespace TT_NS {

// Sorts indices by less(a, b), in place and without recursion (heapsort).
template <class Less> void sort_indices(Span<int64_t> v, const Less& less) {
  const auto sift = [&](int64_t at, int64_t n) {
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
      if (child + 1 < n && less(v.ptr[child], v.ptr[child + 1])) child++;
      if (!less(v.ptr[at], v.ptr[child])) return;
      std::swap(v.ptr[at], v.ptr[child]);
    }
  };
  for (int64_t i = v.n / 2; i-- > 0;) sift(i, v.n);
  for (int64_t n = v.n; n-- > 1;) {
    std::swap(v.ptr[0], v.ptr[n]);
    sift(0, n);
  }
}

}  // namespace TT_NS
