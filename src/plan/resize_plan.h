// Plans of the kernels that resize images. POD, also device code.
#pragma once

#include "plan/rooms.h"
#include "plan/stages.h"

namespace TT_NS {

// The elements of x that result o of a dimension reads; s is the scale in / out.
enum ResizeMode : int32_t {
  kResizeNearest,        // floor(o s); exactly o if out == in, floor(o / 2) if out == 2 in
  kResizeNearestExact,   // floor((o + 1/2) s)
  kResizeLinear,         // the two around max(0, (o + 1/2) s - 1/2), or around o s if align
  kResizeNearestScaled,  // floor(o s)
  // sums over the windows of resize_windows.h
  kResizeCubic,         // four around (o + 1/2) s - 1/2, or around o s if align
  kResizeSmoothLinear,  // antialiased: all within max(s, 1) of (o + 1/2) s
  kResizeSmoothCubic,   // all within 2 max(s, 1)
};

// resize: x [n][c][in 0][in 1] -> y [n][c][out 0][out 1]; with channels_last c is innermost.
// resize_backward: its transpose, from g (out) to y (in).
// Stage 0, one unit, fills `table`: the elements and weights of both dimensions. Stage 1 of resize:
// [planes][n_tiles], tiles of `rows` rows of y; of resize_backward: [planes], with channels_last
// [n][tiles of kResizeTile channels].
// Bytes are resized over windows in the linear mode, too, and rounded after their columns and after
// their rows. Windows are applied in rooms of resize_room_bytes().
struct ResizePlan {
  Stages run;
  // resize: f16 bf16 f32 f64; resize_backward: f32 f64; over windows f32 f64, and u8 of resize
  int32_t dtype;
  int32_t channels_last, mode, align;
  int64_t n, c, in[2], out[2];
  double scale[2];
  int64_t rows, n_tiles;
  const char* x;  // or g
  char* y;
  char* table;  // resize_table_bytes(plan)
  Rooms rooms;
};
TT_FN bool resize_has_windows(const ResizePlan& p) {
  return p.mode >= kResizeCubic || p.dtype == TT_U8;
}
constexpr int64_t kResizeTile = 64;
// Bytes per result in the table: two int32 indices, and the weight of the second.
constexpr int64_t kResizeItem = 16;

}  // namespace TT_NS
