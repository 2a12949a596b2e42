// Elementwise reductions of memory, for every dtype.
#pragma once

#include "core/dtype.h"

namespace TT_NS {

enum class ReduceOp : int32_t {
  kSum = 1,
  kMean,
  kMin,
  kMax,
  kProduct,
  kBitAnd,
  kBitOr,
  kBitXor,
};

const char* reduce_op_name(ReduceOp op) noexcept;
// Fails with DTYPE: means need floating or complex numbers, min and max real ones, bit operations
// integers or bool.
void check_reduce(ReduceOp op, Dtype dtype);
// into[i] = op(from[i], into[i]); a mean adds.
void reduce_into(ReduceOp op, Dtype dtype, void* into, const void* from, int64_t n) noexcept;
// into[i] = (from[i] + into[i]) / divisor: the last addition of a mean, and its division.
void mean_into(Dtype dtype, void* into, const void* from, int64_t n, int64_t divisor) noexcept;
// Divides by the number of summands, which makes a mean of a sum.
void divide_by(Dtype dtype, void* data, int64_t n, int64_t divisor) noexcept;

}  // namespace TT_NS
