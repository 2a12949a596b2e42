// Plans of the pooling kernels: windows over the last two dimensions of images. POD, also device
// code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

// Tiles of images: units [images][n_rows][n_columns].
struct PoolTiles {
  int64_t rows, n_rows, columns, n_columns;
};

// Images x [n][c][in 0][in 1], results y [n][c][out 0][out 1]; with channels_last c lies innermost.
//   pool_max: y = the largest element of each window, nan wins
//   pool_max_index: the same, and where it lies in its plane: the first one, the last nan
//   pool_max_backward: dx = at each element the sum of the gradients g of the windows that took it
//   pool_average: y = the sum of each window by its divisor; pool_average_backward: the gradient of
//   that
// Images of units are planes, with channels_last n; of the units over dx they are then [n][tiles of
// kPoolTile channels]. Stage 0: the windows of tiles of y, units [tiles][n_parts]. The parts of
// windows of which there are few but large ones go to `parts`, [n_parts][results] values of the
// computed type, and behind them as many places; stage 1 joins them, units [tiles]. The backwards:
// stage 2, tiles of dx; where maxima are not in `index` already, as of planes that are not cut, it
// looks for them, and there is no stage 0.
struct PoolPlan {
  Stages run;
  int32_t dtype;  // pool_max: f16 bf16 f32 f64; pool_average: also i64; pool_max_index: f32 f64
                  // i64; backwards: f32 f64
  int32_t channels_last;
  int32_t adaptive;  // window o is [floor(o in / out), ceil((o + 1) in / out)); else o stride - pad
                     // + k dilation, k < kernel
  int32_t count_pad;  // average: the divisor counts padding
  int32_t quarters;   // all windows are 2 x 2, side by side, without padding
  int32_t part_dim;   // 0 1, of parts
  int32_t apart;      // planes are read window by window, even where several lie within kPoolSpan
  int64_t n, c, in[2], out[2], results;
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  int64_t divisor;        // average: 0 = the number of elements
  PoolTiles tiles;        // of y
  PoolTiles spots;        // of dx, an even number of rows and columns
  int64_t n_parts, part;  // of each window, each of `part` of its elements along part_dim
  const char* x;
  const char* g;
  char* y;         // or dx
  int64_t* index;  // of y's geometry; where a window is empty 0, for the backward -1
  char* parts;     // pool_parts_bytes(plan)
};
constexpr int64_t kPoolTile = 64;
constexpr int64_t kPoolSpan = 2048;  // input columns at a time

}  // namespace TT_NS
