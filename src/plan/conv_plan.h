// ConvPlan: the three products of a convolution, over channels-last arrays. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

constexpr int kConvDims = 3;  // spatial dimensions; missing ones lead and have size 1

// y(n, o, group, co) = sum over taps k and ci of x(n, o * stride - pad + k * dil, group, ci) *
// w(group, co, ci, k). x and y are row-major with the channels last; channels count those of one
// group.
struct ConvShape {
  int64_t n, groups, ci, co;
  int64_t x[kConvDims], y[kConvDims], k[kConvDims];
  int64_t stride[kConvDims], pad[kConvDims], dil[kConvDims];
  TT_INLINE int64_t taps() const { return k[0] * k[1] * k[2]; }
};

enum ConvMode : int32_t {
  kConvForward = 0,  // y, gathered from x
  kConvData = 1,     // x (a gradient, or the result of a transposed convolution), gathered from y
  kConvScatter = 2,  // the same for few channels: all products of a pixel of y, added to the image
                     // where they belong
};

// Where the elements of a window that share a tap lie. Merged: input rows have been copied with
// their padding, so that the last dimension's taps and the channels are one run; its taps then
// count as channels.
struct ConvGather {
  int64_t size[kConvDims];  // of the source, as far as it is read
  int64_t taps[kConvDims];
  int64_t pad[kConvDims];
  int64_t run;                // elements of a tap
  int64_t row, pixel, group;  // elements between rows, pixels and groups of the source
};

constexpr int64_t kConvRows =
    252;  // result pixels of a block, at most: a multiple of every micro-tile's height
constexpr int64_t kConvPlaneBytes =
    896;  // the same in bytes of a column, if it is planes that are written: whole vectors
constexpr int64_t kConvTaps = 12;    // taps whose addresses are worked out at once
constexpr int64_t kConvDepth = 768;  // terms that a unit adds before it goes to the next columns
constexpr int64_t kConvCols = 32;    // columns are packed in multiples of this
constexpr int64_t kConvChunk = 256;  // pixels that a tile of the weight's gradient adds at a time

// conv: dst = products of src with the packed weight, plus bias. A phase is the set of result
// pixels that see the same taps: one forward, at most the product of the strides for kConvData.
// Stage 0 packs the weight: [groups][column blocks of kConvCols]. Stage 1: [phases][blocks of
// rows][groups]. by_cols, for large weights and few pixels: no stage 0; stage 1:
// [phases][groups][column blocks], each of which packs its part of the weight piece by piece.
// planes: dst has its channels before its pixels; stage 1: [blocks][groups][column blocks].
// kConvScatter: stage 1: images. depthwise: stage 0: 1 unit; stage 1: [phases][blocks of rows].
struct ConvPlan {
  Stages run;
  ConvShape s;
  ConvGather gather;
  int32_t dtype;  // f32 f64 i64
  int32_t mode;
  int64_t phases[kConvDims], blocks, block_rows;
  int64_t row_parts;  // by_cols: units that share the pixels of a block of columns
  bool by_cols, planes;
  bool by_rows;    // pixels are walked row by row through all images, not image by image
  bool depthwise;  // groups of one channel each way: packed is [taps][groups], zeros `groups` zeros
  const char* src;
  const char* weight;
  int64_t w_co, w_ci, w_k[kConvDims];  // element strides of the weight
  const char* bias;                    // per column, all groups; NULL: 0
  char* dst;
  char* packed;       // [group][columns, rounded up][taps][channels of src] in panels; by_cols:
                      // kConvDepth * kConvCols a unit
  char* images;       // kConvScatter: gradients with padded rows
  const char* zeros;  // gather.run zeros
};

// conv_pad: the last dimension of x with its padding, [n * x0 * x1][width][channels]. Units: rows.
struct ConvPadPlan {
  Stages run;
  int32_t item_size;
  int64_t rows, from, width, pad, pixel_bytes;
  const char* src;
  char* dst;
};

// conv_weight: dweight(group, co, ci, k) = sum over pixels of y and x.
// Stage 0: [splits][groups][tap blocks][column blocks] partial sums over pieces of the pixels;
// stage 1: [groups][column blocks of kConvCols] adds the pieces in order.
struct ConvWeightPlan {
  Stages run;
  ConvShape s;
  ConvGather gather;
  int32_t dtype;
  int64_t splits, tap_blocks, col_blocks;
  bool depthwise;  // groups of one channel each way: units [splits], then 1; sums
                   // [splits][taps][groups]; `groups` zeros
  const char* src;
  const char* y;
  char* dst;
  int64_t w_co, w_ci, w_k[kConvDims];
  char* sums;         // [splits][groups][taps * ci][co rounded up to kConvCols]
  const char* zeros;  // gather.run zeros
};

constexpr int64_t kConvLanes = 16;     // images side by side
constexpr int64_t kConvBatchCols = 6;  // channels of y at a time
constexpr int64_t kConvBatchRun = 96;  // elements of a window's row, at most

// A convolution of images side by side, for few channels: y(n, co, o) = sum over k and ci of x(n,
// ci, o * stride - pad
// + k * dil) * w(co, ci, k), all channels before pixels. It reads x as "spread": [blocks of
// kConvLanes images][rows] [columns][channels][kConvLanes], with a border of zeros, `lead` before
// and the rest of `full` behind.
struct ConvBatchShape {
  int64_t n, ci, co;
  int64_t x[2], y[2], k[2], stride[2], lead[2], full[2];
  int64_t dil;  // of rows; that of columns is 1
  TT_INLINE int64_t blocks() const { return (n + kConvLanes - 1) / kConvLanes; }
  TT_INLINE int64_t run() const { return k[1] * ci; }
  TT_INLINE int64_t col_tiles() const { return (co + kConvBatchCols - 1) / kConvBatchCols; }
};

// conv_spread: (n, channels, rows, columns) as spread. Units: [blocks][channels].
struct ConvSpreadPlan {
  Stages run;
  int64_t n, channels;
  int64_t size[2], lead[2], full[2];
  const char* src;
  char* dst;
};

// conv_batch: y. Stage 0 packs the weight: 1 unit. Stage 1: [blocks][kConvLanes pixels].
struct ConvBatchPlan {
  Stages run;
  ConvBatchShape s;
  const char* src;  // spread
  const char* weight;
  int64_t w_co, w_ci, w_k[2];
  const char* bias;  // per channel of y; NULL: 0
  char* dst;
  char*
      packed;  // [tiles of at most kConvBatchCols channels of y][k0][k1][ci][channels of the tile]
};

// conv_batch_weight: the weight's gradient. Stage 0: [splits][tiles of channels of y][k0]: sums
// over the splits' blocks; stage 1, 1 unit: adds them in order.
struct ConvBatchWeightPlan {
  Stages run;
  ConvBatchShape s;
  int64_t splits, rows;  // rows of y that are added at a time
  const char* src;       // x, spread
  const char* y;         // spread, without a border
  char* dst;
  int64_t w_co, w_ci, w_k[2];
  char* sums;  // [splits][co][k0][k1][ci]
};

}  // namespace TT_NS
