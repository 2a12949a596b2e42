// Sorting for the implementations of other families.
#pragma once

#include "ops/impl.h"

namespace TT_NS {

// Returns the first k elements of each row along dim in order, and their indices. Without
// want_values the first result is NULL.
TensorPair sorted_rows(const Tensor& self, int64_t dim, int64_t k, bool descending,
                       bool want_values);

}  // namespace TT_NS
