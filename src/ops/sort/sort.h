// Sorting for the implementations of other families.
#pragma once

#include "ops/impl.h"
#include "plan/sort_plan.h"

namespace TT_NS {

// The number of elements of a row along dim. A 0-dim tensor is a row of one.
inline int64_t size_along(const Tensor& t, int64_t dim) { return t.ndim ? t.size(dim) : 1; }

// Returns the first k elements of each row along dim in order, and their indices. Without
// want_values the first result is NULL.
TensorPair sorted_rows(const Tensor& self, int64_t dim, int64_t k, bool descending,
                       bool want_values);

// Returns the elements of each row along dim that `kind` selects, and their indices: self's shape
// with size m at dim, or 1 without ranks. ranks: (m), or if dim is the last dimension (…, m) with
// ranks of each row.
TensorPair selected_rows(const Tensor& self, int64_t dim, SelectKind kind, const Tensor* ranks);

}  // namespace TT_NS
