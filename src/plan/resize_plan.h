// Plans of the kernels that resize images. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

enum ResizeMode : int32_t {
  kResizeNearest,
  kResizeNearestExact,
  kResizeLinear,
  kResizeNearestScaled
};

// resize: x [n][c][in 0][in 1] -> y [n][c][out 0][out 1]; with channels_last c lies innermost.
// resize_backward: its transpose, from g (out) to y (in). Result o of a dimension reads, with s =
// scale, element
//   nearest: floor(o s), but o if out is in, and floor(o / 2) if it is twice in; nearest scaled:
//   floor(o s); nearest exact: floor((o + 1/2) s) linear: two neighbours of max(0, s (o + 1/2) -
//   1/2), or of s o if align
// Stage 0, one unit, leaves these in `table`; units of stage 1: resize: [planes][n_tiles], tiles of
// `rows` rows of y; resize_backward: [planes], with channels_last [n][tiles of kResizeTile
// channels].
struct ResizePlan {
  Stages run;
  int32_t dtype;  // resize: f16 bf16 f32 f64; resize_backward: f32 f64
  int32_t channels_last, mode, align;
  int64_t n, c, in[2], out[2];
  double scale[2];
  int64_t rows, n_tiles;
  const char* x;  // or g
  char* y;
  char* table;  // resize_table_bytes(plan)
};
constexpr int64_t kResizeTile = 64;
constexpr int64_t kResizeItem =
    16;  // bytes of a result in the table: two int32 indices, the weight of the second

}  // namespace TT_NS
