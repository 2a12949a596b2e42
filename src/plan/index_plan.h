// Plans of the kernels that address memory through index tensors. POD, also device code.
#pragma once

#include "plan/elementwise_plan.h"
#include "plan/stages.h"

namespace TT_NS {

constexpr int64_t kNoSkip = INT64_MIN;

// For every position of a nest, with i = the index there (i < 0 stands for i + index_size, and what
// has left that range since it was checked for 0): the place a + position * a_stride + i * a_step
// meets the place b + position * b_stride. Getting writes b, putting writes a, in the nest's order,
// dimension 0 fastest. Units are pieces of `piece` along dimension `split`; putting splits only a
// dimension of a (a_stride != 0), so that no two units write the same place, and else is one unit
// or has ranges of i for units: each goes through all positions and writes the rows (dimension 0
// has one index) or elements in its range.
struct IndexPlan {
  Stages run;
  int32_t dtype;        // of a and b
  int32_t index_dtype;  // i32 or i64
  int32_t ndim;         // >= 1; 0 positions: no units
  int32_t split;
  int64_t piece;
  int64_t range;  // of i, of a unit (bytes if index_size is 0); 0: units are pieces
  char* a;
  char* b;
  const char* index;
  int64_t a_step;      // bytes
  int64_t index_size;  // 0: the indices are bytes already (index_offsets)
  // dimension 0 is the innermost; bytes; the rest left uninitialised
  int64_t size[kMaxPlanDims];
  int64_t a_stride[kMaxPlanDims], b_stride[kMaxPlanDims], index_stride[kMaxPlanDims];
};

// Indices over a nest: looks for one that is neither in [low, size) nor `allowed`, and can turn
// them into byte offsets. Units are chunks of kIndexChunk positions in logical order.
struct IndexCheckPlan {
  Stages run;
  int32_t index_dtype;
  int32_t ndim;
  int64_t n;
  const char* index;
  int64_t size;        // of the dimension that is indexed
  int64_t low;         // -size; class targets: 0
  int64_t allowed;     // an index that may be outside (ignore_index); kNoSkip
  int64_t* first_bad;  // starts as INT64_MAX; the smallest position of a bad index is left there
  int64_t*
      offsets;   // index_offsets: n contiguous sums of index * step, i < 0 standing for i + size
  int64_t step;  // bytes
  bool add;      // onto what is there
  int64_t dim_size[kMaxPlanDims], stride[kMaxPlanDims];  // dimension 0 is the innermost; bytes
};
constexpr int64_t kIndexChunk = 16384;
constexpr int64_t kIndexTask = 65536;  // positions: an IndexPlan of fewer is one unit
// Bytes of a from which on single elements take ranges: a sum waits for its place, what is put does
// not.
constexpr int64_t kIndexRangeOfSums = 8 << 20;
constexpr int64_t kIndexRangeOfPuts = 32 << 20;

// Positions of the elements of a contiguous array that are not zero. Count: stage 0 counts chunks
// of kNonzeroChunk elements, stage 1 (one unit) turns the counts into starts and leaves their sum
// in *total. Write: units are the chunks. One that has changed since stops where the next begins,
// or fills up with position 0.
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
