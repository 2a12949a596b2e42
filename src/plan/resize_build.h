// Builds the plans of resize_plan.h.
#pragma once

#include "base/arith.h"
#include "plan/resize_windows.h"
#include "plan/rows.h"

namespace TT_NS {

// Returns the number of input elements per result element. factor: out / in given by the caller, or
// 0 to use the sizes. single: computed in float, as PyTorch does.
inline double resize_scale(int64_t in, int64_t out, double factor, bool align, bool single) {
  if (align) {
    if (out < 2) return 0;
    return single ? double(float(in - 1) / float(out - 1)) : double(in - 1) / double(out - 1);
  }
  if (factor > 0) return min(1 / factor, 0x1p31);
  return single ? double(float(in) / float(out)) : double(in) / double(out);
}

inline int64_t resize_table_bytes(const ResizePlan* p) {
  if (resize_has_windows(*p)) return resize_axis_bytes(*p, 0) + resize_axis_bytes(*p, 1);
  return (p->out[0] + p->out[1]) * kResizeItem;
}

// Rows of bytes whose columns are resized at once.
constexpr int64_t kResizeGroup = 16;
// Rows that hold resized columns: as many as the rows of y read; none if rows are resized first,
// which costs less where y is lower than x. Bytes are rounded after their columns, and are held in
// groups of rows.
TT_INLINE int64_t resize_held_rows(const ResizePlan& p) {
  const int64_t taps = resize_taps(resize_axis(p, 0));
  if (p.dtype == TT_U8) return round_up(taps + kResizeGroup - 1, kResizeGroup);
  return p.out[0] <= p.in[0] ? 0 : taps;
}
// Results of a row of bytes that are computed together, and the pixels of x that they read at most.
TT_INLINE int64_t resize_byte_block(int64_t pixel) { return max<int64_t>(256 / pixel, 1); }
TT_INLINE int64_t resize_byte_span(const ResizePlan& p) {
  const int64_t pixel = p.channels_last ? p.c : 1;
  const double apart = double(resize_byte_block(pixel)) * p.scale[1];
  const int64_t taps = resize_taps(resize_axis(p, 1));
  return apart < double(p.in[1]) ? min(p.in[1], int64_t(apart) + taps + 2) : p.in[1];
}
// Those pixels of a group, as int32 and as bytes.
TT_INLINE int64_t resize_column_bytes(const ResizePlan& p) {
  return 5 * round_up(resize_byte_span(p) * (p.channels_last ? p.c : 1), 8) * kResizeGroup;
}
// Elements behind and before a line of x: its ends are repeated there, and vectors end there.
constexpr int64_t kResizeLead = 4;
constexpr int64_t kResizeSlack = 64;
TT_INLINE int64_t resize_line_bytes(const ResizePlan& p, int64_t pixel) {
  if (p.dtype == TT_U8) return resize_column_bytes(p);
  return ((p.in[1] + 2 * kResizeLead) * pixel + kResizeSlack) * kItemSize[p.dtype];
}
// A line of x with its ends, or of bytes the columns of a group; the held rows; and for each tap a
// pointer and the number of its row. Of resize_backward only a line.
inline int64_t resize_room_bytes(const ResizePlan* p, bool backward) {
  if (!resize_has_windows(*p)) return 0;
  const int64_t item = kItemSize[p->dtype];
  const int64_t channels = p->channels_last ? p->c : 1;
  const int64_t pixel = backward ? min(channels, kResizeTile) : channels;
  const int64_t line = resize_line_bytes(*p, pixel);
  if (backward) return round_up(line, 64);
  const int64_t held = resize_held_rows(*p) * p->out[1] * pixel * item;
  return round_up(line, 64) + round_up(held, 64) + 16 * resize_taps(resize_axis(*p, 0));
}

// *p has dtype … scale already. Sets units, and pointers to NULL.
inline void build_resize(ResizePlan* p, bool backward) {
  p->x = nullptr;
  p->y = p->table = nullptr;
  const int64_t planes = p->channels_last ? p->n : p->n * p->c;
  const int64_t pixel_items = p->channels_last ? p->c : 1;
  int64_t row = (p->in[1] + p->out[1]) * pixel_items;
  if (resize_has_windows(*p)) row *= resize_taps(resize_axis(*p, 0));
  constexpr int64_t kFewestByteRows = 64;  // the groups of a tile are its own
  p->rows = row_grain(row);
  if (p->dtype == TT_U8) p->rows = max(p->rows, kFewestByteRows);
  p->rows = min(p->rows, p->out[0]);
  p->n_tiles = ceil_div(p->out[0], p->rows);
  p->run.n = 2;
  p->run.stage = 0;
  p->run.units[0] = 1;
  p->run.grain[0] = 1;
  if (!backward) {
    p->run.units[1] = planes * p->n_tiles;
    p->run.grain[1] = row_grain(p->rows * row);
    return;
  }
  p->run.units[1] = p->n * (p->channels_last ? ceil_div(p->c, kResizeTile) : p->c);
  p->run.grain[1] = row_grain(p->out[0] * p->out[1] * (p->channels_last ? kResizeTile : 1));
}

}  // namespace TT_NS
