// Plans of the pooling kernels: windows over the last two dimensions of images. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

// Images x [n][c][in 0][in 1], results y [n][c][out 0][out 1]; with channels_last c lies innermost.
//   pool_max: y = the largest element of each window, nan wins
//   pool_max_index: the same, and where it lies in its plane: the first one, the last nan
//   pool_max_backward: dx = at each element the sum of the gradients g of the windows that took it
//   pool_average: y = the sum of each window by its divisor; pool_average_backward: the gradient of that
// Units: pool_max, pool_max_index, pool_average: [planes][n_tiles], tiles of `rows` rows of y; the backwards:
// [planes][n_tiles], tiles of `rows` (an even number) rows of dx; with channels_last planes are [n][tiles of kPoolTile
// channels].
struct PoolPlan {
  Stages run;
  int32_t dtype;  // pool_max: f16 bf16 f32 f64; pool_average: also i64; pool_max_index: f32 f64 i64; backwards: f32 f64
  int32_t channels_last;
  int32_t adaptive;   // window o is [floor(o in / out), ceil((o + 1) in / out)); else o stride - pad + k dilation, k <
                      // kernel
  int32_t count_pad;  // average: the divisor counts padding
  int64_t n, c, in[2], out[2];
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  int64_t divisor;  // average: 0 = the number of elements
  int64_t rows, n_tiles;
  const char* x;
  const char* g;
  char* y;         // or dx
  int64_t* index;  // of y's geometry
};
constexpr int64_t kPoolTile = 64;

}  // namespace TT_NS
