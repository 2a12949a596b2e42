// Plans of the kernels that sample images at given positions. POD, also for device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

enum GridMode : int32_t { kGridLinear, kGridNearest, kGridCubic };
enum GridPadding : int32_t { kGridZeros, kGridBorder, kGridReflection };
constexpr int32_t kGridDims = 3;

// Images x [n][c][in 0][in 1][in 2], positions grid [n][points][dims], results y [n][c][points].
// With two dimensions in[0] is 1. The last number of a position belongs to in[3 - dims], the
// outermost dimension of an image. The weight of an element is the product of its weights along
// each dimension. order[d] = k replaces the weight along dimension d by its k-th derivative with
// respect to the position. Of float32, a plane of an image has at most INT32_MAX elements.
//   grid_take: y = the weighted sum of the elements around each position
//   grid_put: its transpose: x = the sum over all positions of their weight times y
//   grid_slopes: the gradient of the positions, where y is that of grid_take of order 0
// Units of grid_take: [n][n_tiles of `tile` points][n_blocks of kGridChannels channels]; of
// grid_put: [n][n_blocks]; of grid_slopes: [n][n_tiles].
struct GridPlan {
  Stages run;
  int32_t dtype;  // f32 f64
  int32_t mode, padding, align;
  int32_t dims;  // 2 or 3
  int32_t order[kGridDims];
  int64_t n, c, in[kGridDims], points;
  int64_t tile, n_tiles, n_blocks;
  char* x;
  const char* grid;
  char* y;
  char* slopes;  // [n][points][dims]
};
constexpr int64_t kGridChannels = 16;

}  // namespace TT_NS
