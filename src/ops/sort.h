// Sorting for the implementations of other families.
#pragma once

#include "ops/impl.h"

namespace TT_NS {

// The first k elements of each row of dimension dim in order, and their indices. Without
// want_values the first is NULL.
TensorPair sorted_rows(const Tensor& self, int64_t dim, int64_t k, bool descending,
                       bool want_values);

}  // namespace TT_NS
