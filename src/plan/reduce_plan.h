// ReducePlan: reduces a nest of dimensions of one input for each element of a nest of kept ones.
// POD, also device code.
#pragma once

#include "plan/elementwise_plan.h"
#include "plan/stages.h"

namespace TT_NS {

enum ReducePath : int32_t {
  kReduceRows = 0,     // the reduced sequence of one output at a time, 64 lanes along it
  kReduceColumns = 1,  // a tile of kept dimension 0 at a time, lanes across it
};

// What reduce_sum adds in place of the elements x. All but kReduceElements: of float16 to float64.
enum ReduceTerm : int32_t {
  kReduceElements = 0,
  kReduceCentred,       // squared distances from the mean; index: the mean, of out_dtype
  kReduceNumbers,       // x, 0 for nan
  kReduceNonzero,       // 1, 0 where x is 0
  kReduceMagnitudes,    // |x|
  kReduceSquares,       // x^2
  kReducePowers,        // |x|^order; the result is the sum to the power of 1 / order
  kReduceLargest,       // nothing: the result is the largest |x|
  kReduceSmallest,      // the smallest one
  kReduceExponentials,  // e^x; the result is the logarithm of the sum
};

// The reduced elements of an output form a sequence in the order of the reduced nest (dimension 0
// fastest), which is split into `splits` pieces of split_len. If splits > 1, stage 0 writes one
// partial result per piece to `workspace` ([splits][n_out]) and stage 1 combines them by a fixed
// tree; otherwise stage 0 writes the result.
// Units of stage 0: rows path [n_out][splits], columns path [n_out /
// kept_size[0]][n_tiles][splits]; of stage 1: [n_out].
struct ReducePlan {
  Stages run;
  int32_t path;       // ReducePath
  int32_t dtype;      // stored dtype of in
  int32_t out_dtype;  // stored dtype of out
  int32_t n_kept, n_red;
  const char* in;
  char* out;       // NULL: only index is needed
  char* index;     // int64; NULL unless the kernel yields positions in the sequence
  double divisor;  // the sum is divided by it (mean); 1 otherwise
  int32_t term;    // ReduceTerm
  bool by_output;  // units are outputs, whose terms are not split: plans of devices
  bool root;       // the result is a square root: of kReduceCentred, kReduceSquares
  double order;    // of kReducePowers
  int64_t n_out;   // product of kept_size
  int64_t length;  // product of red_size
  int64_t splits, split_len;
  int64_t tile, n_tiles;  // columns path: kept_size[0] in pieces of `tile`
  void* workspace;        // reduce_workspace_bytes(plan)
  // dimension 0 is the innermost; strides in bytes; the rest left uninitialised
  int64_t kept_size[kMaxPlanDims], kept_stride[kMaxPlanDims];
  int64_t out_stride[kMaxPlanDims], index_stride[kMaxPlanDims];
  int64_t red_size[kMaxPlanDims], red_stride[kMaxPlanDims];
};

// Distances between the rows of x1 [batch][n][m] and of x2 [batch][r][m]: the norms of order p of
// their differences.
//   row_distances: y [batch][n][r]. Units: [batch][blocks of kDistanceRows rows of x1][panels of
//   kDistancePanel bytes of a column of x2]
//   row_distances_backward: dx [batch][n][m], the gradient of x1, from grad and y. Units: [batch]
//   [blocks of kDistanceRows rows of x1, of pairs one][panels of kDistancePanel bytes of a row]
// pairs: x2 is x1, and y and grad have a distance for each row and each later one, n (n - 1) / 2 of
// a matrix. dx is then the gradient of both. Without it, order kInf passes over nan.
struct DistancePlan {
  Stages run;
  int32_t dtype;  // f32 f64
  bool pairs;
  double p;
  int64_t batch, n, r, m;
  const char* x1;
  const char* x2;
  char* y;
  const char* grad;
  char* dx;
};
constexpr int64_t kDistanceRows = 128;
constexpr int64_t kDistancePanel = 64;

constexpr int64_t kReduceMaxTile = 4096;   // maximum bytes of a row of a tile that is read in place
constexpr int64_t kReduceLoadTile = 2048;  // maximum bytes of one that is converted or gathered
constexpr int64_t kReduceMaxColumnSplit = 8192;  // maximum rows of a unit of the columns path

}  // namespace TT_NS
