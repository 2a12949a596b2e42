// Sorting for the implementations of other families.
#pragma once

#include "ops/impl.h"
#include "plan/sort_plan.h"

namespace TT_NS {

// Returns the first k elements of each row along dim in order, and their indices. Without
// want_values the first result is NULL.
TensorPair sorted_rows(const Tensor& self, int64_t dim, int64_t k, bool descending,
                       bool want_values);

// Returns what `kind` selects of each row along dim, and its indices, in the shape of self with
// size m, or without ranks 1, at dim. ranks: (m), or for dim the last one (the rest of self's
// shape, m).
TensorPair selected_rows(const Tensor& self, int64_t dim, SelectKind kind, const Tensor* ranks);

}  // namespace TT_NS
