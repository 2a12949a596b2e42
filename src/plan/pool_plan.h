// Plans of the pooling kernels: windows over the last two dimensions of images. POD, also device
// code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

// Tiles of images: units [images][n_rows][n_columns].
struct PoolTiles {
  int64_t rows, n_rows, columns, n_columns;
};

// Images x [n][c][in 0][in 1], results y [n][c][out 0][out 1]; with channels_last c is innermost.
//   pool_max: y = the maximum of each window; nan wins
//   pool_max_index: and its index in its plane; the first of equal maxima, the last nan
//   pool_max_backward: dx = for each element the sum of g over the windows whose maximum it is
//   pool_average: y = the sum of each window divided by its divisor
//   pool_average_backward: its gradient
//
// Stage 0: [tiles of y][n_parts], of planes, or with channels_last of n images. If there are only a
// few large windows, each is split into n_parts: stage 0 writes the results of the parts to `parts`
// ([n_parts][results] values of the compute dtype, then as many indices), and stage 1, [tiles of
// y], joins them.
// Stage 2, of the backwards: [tiles of dx], of planes, or with channels_last of [n][tiles of
// kPoolTile channels]. The backward of maxima reads them from `index` if stages 0 and 1 have
// written it, and otherwise searches them again.
struct PoolPlan {
  Stages run;
  int32_t dtype;  // pool_max: f16 bf16 f32 f64; pool_average: also i64; pool_max_index: f32 f64
                  // i64; backwards: f32 f64, and f16 bf16 where pool_backward_converts()
  int32_t channels_last;
  int32_t adaptive;  // window o is [floor(o in / out), ceil((o + 1) in / out)); else o stride - pad
                     // + k dilation, k < kernel
  int32_t count_pad;   // average: the divisor counts padding
  int32_t halving;     // all windows are 2 x 2, side by side, without padding
  int32_t part_dim;    // the dimension that is split into parts: 0 or 1
  int32_t one_by_one;  // planes are read window by window, even if several fit into kPoolSpan
  int64_t n, c, in[2], out[2], results;
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  int64_t divisor;  // average: 0 = the number of elements
  PoolTiles y_tiles;
  PoolTiles dx_tiles;     // with even numbers of rows and columns
  int64_t n_parts, part;  // number of parts of a window, and elements of a part along part_dim
  const char* x;
  const char* g;
  char* y;         // or dx
  int64_t* index;  // in y's layout; 0 for empty windows, in a backward -1
  char* parts;     // pool_parts_bytes(plan)
};
// pool_max_interleaved and its backward: windows of 2 x 2, side by side, of images x whose layout
// is that of ConvInterleavedShape, without a border; n is a multiple of kConvLanes. float32. Units:
// [n / kConvLanes][out 0] with y_interleaved, else [n / kConvLanes][c]. Plans alone have them
// (src/graph/plan/image_layouts.h).
struct PoolInterleavedPlan {
  Stages run;
  int32_t y_interleaved;  // y, or g, has that layout, too; else (n, c, out 0, out 1)
  int32_t relu;           // y is relu of the maxima, g its gradient
  int64_t n, c, in[2], out[2];
  const char* x;
  const char* g;
  char* y;  // or dx, in the layout of x
};

constexpr int64_t kPoolTile = 64;
constexpr int64_t kPoolSpan = 2048;  // input columns that are read at a time

}  // namespace TT_NS
