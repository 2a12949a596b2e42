// Plans of the kernels that address memory through index tensors. POD, also device code.
#pragma once

#include "plan/elementwise_plan.h"
#include "plan/stages.h"

namespace TT_NS {

constexpr int64_t kNoSkip = INT64_MIN;

// How index_combine changes an element of a: nan stays in extremes, and sums of 16-bit numbers are
// rounded one by one. Of bool, products and minima are "and", maxima "or".
enum IndexCombine : int32_t { kCombineProduct = 0, kCombineMax = 1, kCombineMin = 2 };

// For every position of a nest, with i = the index there, pairs the element of a at position *
// a_stride + i * a_step with the element of b at position * b_stride. A get writes b, a put writes
// a, in the nest's order, dimension 0 fastest.
// Negative i mean i + index_size; indices that have changed since they were checked and are out of
// range count as 0.
// Units are pieces of `piece` along dimension `split`. A put splits only a dimension of a (a_stride
// != 0), so that no two units write the same element; otherwise it is one unit, or units are ranges
// of i: each traverses all positions and writes the rows (dimension 0 has one index) or elements in
// its range.
struct IndexPlan {
  Stages run;
  int32_t dtype;        // of a and b
  int32_t index_dtype;  // i32 or i64
  int32_t ndim;         // >= 1; 0 positions: no units
  int32_t split;
  int32_t combine;  // IndexCombine, of index_combine
  int64_t piece;
  int64_t range;  // size of a unit's range of i (in bytes if index_size is 0); 0: units are pieces
  char* a;
  char* b;
  const char* index;
  int64_t a_step;      // bytes
  int64_t index_size;  // 0: the indices are byte offsets (index_offsets)
  // Set to 1 if an index is not in [0, index_size), by units of pieces of the CPU; NULL: not needed
  int32_t* outside;
  // dimension 0 is the innermost; bytes; the rest left uninitialised
  int64_t size[kMaxPlanDims];
  int64_t a_stride[kMaxPlanDims], b_stride[kMaxPlanDims], index_stride[kMaxPlanDims];
};

// Searches a nest of indices for one that is neither in [low, size) nor `allowed`, and can convert
// them into byte offsets. Units are chunks of kIndexChunk positions in logical order.
struct IndexCheckPlan {
  Stages run;
  int32_t index_dtype;
  int32_t ndim;
  int64_t n;
  const char* index;
  int64_t size;        // of the indexed dimension
  int64_t low;         // -size; class targets: 0
  int64_t allowed;     // an index that may be out of range (ignore_index); kNoSkip: none
  int64_t* first_bad;  // initially INT64_MAX; receives the smallest position of a bad index
  int64_t*
      offsets;   // index_offsets: n contiguous sums of index * step, i < 0 standing for i + size
  int64_t step;  // bytes
  bool add;      // adds to the present offsets
  int64_t dim_size[kMaxPlanDims], stride[kMaxPlanDims];  // dimension 0 is the innermost; bytes
};
constexpr int64_t kIndexChunk = 16384;
constexpr int64_t kIndexTask = 65536;  // an IndexPlan of fewer positions is one unit
// Size of a in bytes from which single elements are divided into ranges: a sum must wait for its
// element, a put need not.
constexpr int64_t kIndexRangeOfSums = 8 << 20;
constexpr int64_t kIndexRangeOfPuts = 32 << 20;

// Sums, means or maxima of the table rows of each bag. Units: bags. Sums have the order of the
// indices, in float32 for 16-bit numbers; maxima keep nan; a bag without rows is 0. Indices that
// have changed since they were checked and are out of range count as 0.
enum BagReduce : int32_t { kBagSum = 0, kBagMean = 1, kBagMax = 2 };
struct BagPlan {
  Stages run;
  int32_t dtype, index_dtype;
  int32_t reduce;   // BagReduce
  int64_t n;        // indices
  int64_t per_bag;  // indices of a bag, if start is NULL
  int64_t rows, width;
  int64_t row_stride;  // of the table, in bytes; a row is contiguous
  int64_t skipped;     // row that is left out; -1: none
  const char* table;
  const char* index;     // [n]
  const int64_t* start;  // [bags + 1]
  const char* factor;    // [n] of dtype, for sums; NULL: 1
  char* out;             // [bags][width]
};

// Positions of the nonzero elements of a contiguous array. Count: stage 0 counts chunks of
// kNonzeroChunk elements, stage 1 (one unit) turns the counts into starts and stores their sum in
// *total. Write: units are the chunks. If a chunk has changed since it was counted, it stops at the
// start of the next one, or fills up with position 0.
struct NonzeroPlan {
  Stages run;
  int32_t dtype;
  int32_t ndim;
  int64_t n;
  const char* x;
  int64_t* starts;  // ceil(n / kNonzeroChunk)
  int64_t* total;
  int64_t* out;  // coordinate d of hit i at out[i * row_stride + d * dim_stride]; ndim 0: its flat
                 // position
  int64_t row_stride, dim_stride;
  int64_t size[kMaxPlanDims];  // dimension 0 is the outermost here
};
constexpr int64_t kNonzeroChunk = 16384;

}  // namespace TT_NS
