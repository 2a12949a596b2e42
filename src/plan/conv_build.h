// Builds the plans of convolutions.
#pragma once

#include "plan/conv_plan.h"

namespace TT_NS {

inline int64_t conv_round(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
inline int64_t conv_pixels(const ConvShape& s, const int64_t* grid) {
  return s.n * grid[0] * grid[1] * grid[2];
}

// Units worth one task: about 2^21 multiplications.
inline int64_t conv_grain(double unit) {
  return unit >= (1 << 21) ? 1 : int64_t((1 << 21) / (unit + 1)) + 1;
}

// Width of rows copied with their padding; 0: they are better read in place.
inline int64_t conv_merged_width(const ConvShape& s) {
  if (s.groups != 1 || s.ci >= 16 || s.k[2] == 1 || s.dil[2] != 1) return 0;
  const int64_t width = (s.y[2] - 1) * s.stride[2] + s.k[2];
  return s.y[2] > 0 && width <= 2 * s.x[2] + 64 ? width : 0;
}

inline void conv_gather_x(ConvGather* g, const ConvShape& s, int64_t merged_width) {
  for (int d = 0; d < kConvDims; d++) {
    g->size[d] = s.x[d];
    g->taps[d] = s.k[d];
    g->pad[d] = s.pad[d];
  }
  g->run = s.ci;
  g->group = s.ci;
  g->pixel = s.groups * s.ci;
  g->row = s.x[2] * g->pixel;
  if (!merged_width) return;
  g->size[2] = merged_width;
  g->taps[2] = 1;
  g->pad[2] = 0;
  g->run = s.k[2] * s.ci;
  g->row = merged_width * g->pixel;
}

inline void conv_gather_y(ConvGather* g, const ConvShape& s) {
  for (int d = 0; d < kConvDims; d++) {
    g->size[d] = s.y[d];
    g->taps[d] = s.k[d];
    g->pad[d] = s.pad[d];
  }
  g->run = s.co;
  g->group = s.co;
  g->pixel = s.groups * s.co;
  g->row = s.y[2] * g->pixel;
}

inline bool conv_depthwise(const ConvShape& s) { return s.groups > 1 && s.ci == 1 && s.co == 1; }

// How the gradient of x is best found.
inline ConvMode conv_data_mode(const ConvShape& s) {
  return s.ci <= 8 && conv_merged_width(s) ? kConvScatter : kConvData;
}

// Fills all but the pointers and the weight's strides. planes: dst may have its channels first, if
// the plan takes that.
inline void build_conv(ConvPlan* p, const ConvShape& s, int32_t dtype, ConvMode mode,
                       int64_t merged_width, bool planes) {
  p->s = s;
  p->dtype = dtype;
  p->mode = mode;
  const bool forward = mode == kConvForward;
  mode == kConvData ? conv_gather_y(&p->gather, s) : conv_gather_x(&p->gather, s, merged_width);
  const int64_t* grid = forward ? s.y : s.x;
  const int64_t cols = forward ? s.co : s.ci;
  const int64_t depth = forward ? s.ci : s.co;
  const int64_t col_blocks = conv_round(cols, kConvCols) / kConvCols;
  int64_t largest = s.n, phases = 1;
  for (int d = 0; d < kConvDims; d++) {
    p->phases[d] = forward ? 1 : s.stride[d] < grid[d] ? s.stride[d] : grid[d];
    if (p->phases[d] < 1) p->phases[d] = 1;
    phases *= p->phases[d];
    largest *= (grid[d] + p->phases[d] - 1) / p->phases[d];
  }
  p->blocks = (largest + kConvRows - 1) / kConvRows;
  if (p->blocks < 8 && largest >= 112) p->blocks = largest / 56 < 8 ? largest / 56 : 8;
  p->block_rows = p->blocks ? conv_round((largest + p->blocks - 1) / p->blocks, 14) : 0;
  const double weight = double(s.groups * cols) * double(s.taps() * depth);
  const double work = weight * double(largest);
  p->depthwise = conv_depthwise(s);
  p->by_cols = !p->depthwise && mode != kConvScatter && !merged_width && largest <= 2048 &&
               col_blocks * s.groups >= 4 && weight > (1 << 18);
  p->planes = planes && !p->depthwise && !p->by_cols && mode != kConvScatter && phases == 1;
  p->by_rows = !p->planes && mode != kConvScatter && s.n > 1 && s.pad[1] > 0 && grid[1] <= 32;
  const int64_t plane_rows = kConvPlaneBytes / kItemSize[dtype];
  if (p->planes && p->block_rows > 112) {
    p->block_rows = plane_rows;
    p->blocks = (largest + plane_rows - 1) / plane_rows;
  }
  if (p->by_cols) {
    p->block_rows = kConvRows;
    p->blocks = s.groups * col_blocks;
  }
  p->row_parts = p->by_cols && p->blocks * phases < 16 ? 4 : 1;
  const bool any = cols > 0 && conv_pixels(s, grid) > 0;
  p->run.units[0] = !any || p->by_cols                     ? 0
                    : mode == kConvScatter || p->depthwise ? 1
                                                           : s.groups * col_blocks;
  p->run.grain[0] = conv_grain(double(s.taps()) * double(depth) * kConvCols * 8);
  p->run.units[1] = !any ? 0
                    : mode == kConvScatter
                        ? s.n
                        : phases * p->blocks * (p->by_cols || p->depthwise ? 1 : s.groups) *
                              (p->planes ? col_blocks : 1) * p->row_parts;
  p->run.grain[1] = conv_grain(work / double(p->run.units[1] + 1) + 1);
  p->run.n = 2;
  p->run.stage = 0;
}
inline int64_t conv_packed_bytes(const ConvPlan& p, int64_t item_size) {
  if (p.depthwise) return p.s.taps() * p.s.groups * item_size;
  if (p.by_cols) return p.run.units[1] * kConvDepth * kConvCols * item_size;
  if (p.mode == kConvScatter)
    return conv_round(p.s.taps() * p.s.ci, kConvCols) * p.s.co * item_size;
  const int64_t cols = p.mode == kConvForward ? p.s.co : p.s.ci;
  const int64_t depth = p.mode == kConvForward ? p.s.ci : p.s.co;
  return conv_round(p.s.groups * conv_round(cols, kConvCols) * p.s.taps() * depth * item_size, 64);
}
inline int64_t conv_image_bytes(const ConvPlan& p, int64_t item_size) {
  return p.mode == kConvScatter ? p.s.n * p.s.x[0] * p.s.x[1] * p.gather.row * item_size : 0;
}

inline void build_conv_pad(ConvPadPlan* p, const ConvShape& s, int64_t width, int64_t item_size) {
  p->rows = s.n * s.x[0] * s.x[1];
  p->from = s.x[2];
  p->width = width;
  p->pad = s.pad[2];
  p->item_size = int32_t(item_size);
  p->pixel_bytes = s.ci * item_size;
  p->run.units[0] = p->rows;
  p->run.units[1] = 0;
  p->run.grain[0] = conv_grain(double(width * s.ci) * 8);
  p->run.grain[1] = 1;
  p->run.n = 1;
  p->run.stage = 0;
}

// Fills all but the pointers and the weight's strides.
inline void build_conv_weight(ConvWeightPlan* p, const ConvShape& s, int32_t dtype,
                              int64_t item_size, int64_t merged_width) {
  p->s = s;
  p->dtype = dtype;
  conv_gather_x(&p->gather, s, merged_width);
  const int64_t pixels = conv_pixels(s, s.y);
  const int64_t cols = conv_round(s.co, kConvCols);
  p->depthwise = conv_depthwise(s);
  const int64_t bytes = s.groups * s.taps() * s.ci * (p->depthwise ? 1 : cols) * item_size + 1;
  int64_t splits = (int64_t(8) << 20) / bytes;
  if (splits > pixels / (2 * kConvChunk)) splits = pixels / (2 * kConvChunk);
  p->splits = splits < 1 ? 1 : splits > 8 ? 8 : splits;
  const int64_t taps = p->gather.taps[0] * p->gather.taps[1] * p->gather.taps[2];
  p->tap_blocks = p->splits >= 4 || taps < 1 ? 1 : taps;
  p->col_blocks = p->splits >= 4 || cols < 1 ? 1 : (cols + 127) / 128;
  const bool any = s.groups * s.taps() * s.ci * s.co > 0;
  p->run.units[0] = !any           ? 0
                    : p->depthwise ? p->splits
                                   : p->splits * s.groups * p->tap_blocks * p->col_blocks;
  p->run.grain[0] = conv_grain(double(pixels * s.co) * double(s.ci * s.taps()) *
                               double(p->depthwise ? s.groups : 1) /
                               double(p->splits * p->tap_blocks * p->col_blocks));
  p->run.units[1] = !any ? 0 : p->depthwise ? 1 : s.groups * (cols / kConvCols);
  p->run.grain[1] = conv_grain(double(s.taps() * s.ci) * double(kConvCols * p->splits * 4));
  p->run.n = 2;
  p->run.stage = 0;
}
inline int64_t conv_sums_bytes(const ConvWeightPlan& p, int64_t item_size) {
  if (p.depthwise) return p.splits * p.s.taps() * p.s.groups * item_size;
  return conv_round(
      p.splits * p.s.groups * p.s.taps() * p.s.ci * conv_round(p.s.co, kConvCols) * item_size, 64);
}

// The shape of y from x; data: of x from y, which is one too: the window is turned round.
inline ConvBatchShape conv_batch_shape(const ConvShape& s, bool data) {
  ConvBatchShape b = {};
  b.n = s.n;
  b.ci = data ? s.co : s.ci;
  b.co = data ? s.ci : s.co;
  b.dil = s.dil[1];
  for (int d = 0; d < 2; d++) {
    const int e = d + 1;
    b.x[d] = data ? s.y[e] : s.x[e];
    b.y[d] = data ? s.x[e] : s.y[e];
    b.k[d] = s.k[e];
    b.stride[d] = s.stride[e];
    const int64_t reach = s.dil[e] * (s.k[e] - 1);
    const int64_t need = (b.y[d] - 1) * b.stride[d] + reach + 1;
    b.lead[d] = data ? reach - s.pad[e] : s.pad[e];
    b.full[d] = b.lead[d] + b.x[d] > need ? b.lead[d] + b.x[d] : need;
  }
  return b;
}
// Whether images side by side serve: few channels, which would leave most lanes idle, and images
// enough to fill these.
inline bool conv_batch_serves(const ConvShape& s, bool data) {
  const int64_t idle = conv_round(s.n, kConvLanes) - s.n;
  bool serves = s.groups == 1 && s.x[0] == 1 && s.k[0] == 1 && s.pad[0] == 0 && s.dil[2] == 1 &&
                idle * 4 <= s.n;
  for (int d = 1; d < kConvDims && data; d++)
    serves = serves && s.stride[d] == 1 && s.pad[d] <= s.dil[d] * (s.k[d] - 1);
  if (!serves || s.ci < 1 || s.ci > 16 || s.co > 24) return false;
  const ConvBatchShape b = conv_batch_shape(s, data);
  return b.run() <= kConvBatchRun && b.full[0] <= 2 * b.x[0] + 64 && b.full[1] <= 2 * b.x[1] + 64;
}
inline int64_t conv_spread_items(int64_t n, int64_t channels, const int64_t* full) {
  return (conv_round(n, kConvLanes) * full[0] * full[1] * channels) +
         4 * kConvLanes;  // a tile may read on
}
// An image and its border; lead and full as NULL: none.
inline void build_conv_spread(ConvSpreadPlan* p, int64_t n, int64_t channels, const int64_t* size,
                              const int64_t* lead, const int64_t* full) {
  p->n = n;
  p->channels = channels;
  for (int d = 0; d < 2; d++) {
    p->size[d] = size[d];
    p->lead[d] = lead ? lead[d] : 0;
    p->full[d] = full ? full[d] : size[d];
  }
  p->run.units[0] = (n + kConvLanes - 1) / kConvLanes * channels;
  p->run.units[1] = 0;
  p->run.grain[0] = conv_grain(double(p->full[0] * p->full[1] * kConvLanes) * 8);
  p->run.grain[1] = 1;
  p->run.n = 1;
  p->run.stage = 0;
}
inline void build_conv_batch(ConvBatchPlan* p, const ConvBatchShape& s) {
  p->s = s;
  p->run.units[0] = p->run.grain[0] = 1;
  p->run.units[1] = s.blocks() * ((s.y[0] * s.y[1] + kConvLanes - 1) / kConvLanes);
  p->run.grain[1] = conv_grain(double(kConvLanes * kConvLanes) * double(s.co * s.k[0] * s.run()));
  p->run.n = 2;
  p->run.stage = 0;
}
inline void build_conv_batch_weight(ConvBatchWeightPlan* p, const ConvBatchShape& s) {
  p->s = s;
  const int64_t tiles = s.col_tiles() * s.k[0];
  const int64_t blocks = s.blocks();
  p->splits = 1;
  while (p->splits * 2 <= blocks && p->splits * tiles < 16) p->splits *= 2;
  const int64_t row = (s.y[1] * kConvBatchCols + s.full[1] * s.ci) * kConvLanes * 4;
  const int64_t near = int64_t(36) << 10;
  p->rows = row < near ? near / row : 1;  // what a row reads stays in the first-level cache
  p->run.units[0] = p->splits * tiles;
  p->run.units[1] = 1;
  p->run.grain[0] = conv_grain(double(s.n * s.y[0] * s.y[1]) * double(s.co * s.run()) /
                               double(p->splits * tiles));
  p->run.grain[1] = 1;
  p->run.n = 2;
  p->run.stage = 0;
}

}  // namespace TT_NS
