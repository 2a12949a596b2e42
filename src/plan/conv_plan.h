// Plans of convolutions. POD, also device code.
//
//   y(n, o, group, co) = sum over taps k and channels ci of
//                        x(n, o * stride - pad + k * dil, group, ci) * w(group, co, ci, k)
//
// Arrays are dense and row-major, channels last:
//   x       [n][x0][x1][x2][groups][ci]
//   y       [n][y0][y1][y2][groups][co]
//   weight  any strides; co counts through all groups: element (group * co + column, ci, k)
// or, in plans for a device (channels_first), [n][groups][ci][x0][x1][x2] and so on.
// The plans of interleaved images, further below, have layouts of their own.
#pragma once

#include "base/arith.h"
#include "plan/cuda_math.h"
#include "plan/rooms.h"
#include "plan/stages.h"

namespace TT_NS {

constexpr int kConvDims = 3;  // spatial dimensions; missing ones lead and have size 1

// Sizes of a convolution; ci and co are the channels of one group.
struct ConvShape {
  int64_t n, groups, ci, co;
  int64_t x[kConvDims], y[kConvDims], k[kConvDims];
  int64_t stride[kConvDims], pad[kConvDims], dil[kConvDims];
  TT_INLINE int64_t taps() const { return k[0] * k[1] * k[2]; }
};

// The result is called dst in plans; its channels are the columns of the packed weight.
enum ConvMode : int32_t {
  kConvForward,  // y from x
  kConvData,     // x (a gradient, or the result of a transposed convolution) from y
};
// Number of channels of a group of the result; number of channels that each tap sums over.
TT_INLINE int64_t conv_cols(const ConvShape& s, ConvMode mode) {
  return mode == kConvForward ? s.co : s.ci;
}
TT_INLINE int64_t conv_depth(const ConvShape& s, ConvMode mode) {
  return mode == kConvForward ? s.ci : s.co;
}

// How the windows of a source are read: a tap is a run of `run` contiguous elements. If rows are
// copied with their padding (conv_merged_width), the taps of the last dimension and their channels
// are a single run, and taps[2] is 1.
struct ConvGather {
  int64_t size[kConvDims];  // of the source
  int64_t taps[kConvDims];
  int64_t pad[kConvDims];
  int64_t run;                // elements of a tap
  int64_t row, pixel, group;  // elements between rows, pixels and groups of the source
};

// Maximum number of result pixels in a block: a multiple of the height of every micro-tile.
constexpr int64_t kConvRows = 252;
constexpr int64_t kConvPlaneBytes = 896;    // of a column's block in kConvPlanes: whole vectors
constexpr int64_t kConvTaps = 12;           // taps added in one pass
constexpr int64_t kConvDepth = 768;         // terms of a column added in one pass
constexpr int64_t kConvCols = 32;           // columns are packed in multiples of this
constexpr int64_t kConvChain = 130;         // terms of a chain of several taps
constexpr int64_t kConvDepthwiseTaps = 64;  // of kConvDepthwisePlanes, at most
// Of a tile of the weight's gradient of kConvGroupPlanes: each sum is a vector of 64 bytes.
constexpr int64_t kConvGroupPlaneTaps = 3;
constexpr int64_t kConvGroupPlaneCols = 8;
constexpr int64_t kConvChunk = 256;  // pixels that a tile of the weight's gradient adds
// Pixels and taps of kConvDepthwise whose addresses are kept at a time: all of 7 x 7.
constexpr int64_t kConvDepthwiseRows = 56;
constexpr int64_t kConvDepthwiseTileTaps = kConvTaps * kConvRows / kConvDepthwiseRows;
// Bytes of rooms: the sums of a unit of kConvPlanes, and a vector behind each column; a chunk of
// two vectors per pixel.
constexpr int64_t kConvPlaneRoom = (kConvPlaneBytes + 64) * kConvCols;
constexpr int64_t kConvEdgeRoom = kConvChunk * 128;
// Tiles of AMX: terms or pixels of a tile, rows and columns of a unit; bytes of rooms: its sums and
// 32 windows of at most kConvDepth terms; its columns of y and 32 channels of x for a chunk.
constexpr int64_t kConvTilesStep = 32;
constexpr int64_t kConvTilesRows = 224;
constexpr int64_t kConvTilesCols = 256;
constexpr int64_t kConvTilesRoom = kConvTilesRows * kConvTilesCols * 4 + 32 * 864 * 2;
constexpr int64_t kConvTilesLineRoom = 1 << 19;  // of copied lines, at most
constexpr int64_t kConvTilesLineTaps = 64;       // at most
constexpr int64_t kConvTilesMaxStride = 4;       // of copied lines
constexpr int64_t kConvWeightLineRows = 512;     // of tiles that are multiplied at a time
constexpr int64_t kConvWeightLineCopy = 2048;    // pixels of the source that they read, at most
constexpr int64_t kConvWeightTilesRoom = (kConvTilesCols + 32) * kConvChunk * 2;
// kConvPieces: lines of results of a unit, taps and planes, at most; bytes of a line; of the lines
// of a pass and of sums, which the second-level cache holds beside the weight of a chain.
constexpr int64_t kConvPieceLines = 512;
constexpr int64_t kConvPieceTaps = 128;
constexpr int64_t kConvPiecePlanes = 32;
constexpr int64_t kConvPieceLineBytes = 192;
constexpr int64_t kConvPiecePassBytes = 448 << 10;
constexpr int64_t kConvPieceSumBytes = 256 << 10;

// The algorithm of a convolution, chosen by pick_conv_path(); kernels/cpu/conv/conv.cpp has a
// struct per path. A phase is the set of result pixels whose windows see the same taps: all pixels
// for kConvForward, up to the product of the strides phases for kConvData.
enum ConvPath : int32_t {
  kConvPixels,     // a unit computes all columns of a group for a block of pixels
  kConvPlanes,     // the result has channels first: a unit transposes the columns of a block
  kConvColumns,    // few pixels, large weight: a unit packs its columns and computes all pixels
  kConvDepthwise,  // groups of one channel: vectors run across groups
  kConvDepthwisePlanes,  // the same with channels first, f32: vectors of pixels of a plane
  kConvGroupPlanes,      // groups of few channels in the same way (group_planes.h, AVX-512)
  kConvScatter,  // x with few channels from y: products of y's pixels are added into an image
  kConvDirect,   // few columns, channels first: vectors of pixels, read where they are
  kConvTiles,    // bf16 by tiles of AMX; the bias is f32
  kConvPieces,   // f32 by tiles of AMX, as sums of bf16
};

// Pixels of a phase, split into `count` blocks of `rows`, at most kConvRows each.
struct ConvBlocks {
  int64_t count, rows;
};
// Stage 0: [groups][column blocks]. Stage 1: [phases][pixel blocks][groups].
struct ConvPixels {
  ConvBlocks blocks;
};
// Stage 0: [groups][column blocks]. Stage 1: [pixel blocks][groups][column blocks]. One phase.
struct ConvPlanes {
  ConvBlocks blocks;
  Rooms rooms;  // kConvPlaneRoom
};
// No stage 0. Stage 1: [phases][groups][column blocks][parts].
struct ConvColumns {
  int64_t parts;  // units that share the pixels of a column block
  Rooms rooms;    // conv_columns_room(): the columns of a block, of one pass in plans of phases
};
// One plane of kConvDepthwisePlanes and kConvGroupPlanes: y from x; for kConvData x from y, whose
// rows and columns are `gap` apart, by the flipped window. Blocks of `rows` rows of the result,
// [blocks] of them, read rows of the source from a room: [depth][stride0][stride1][height][pitch].
struct ConvDepthwiseShape {
  int64_t x[2], y[2], k[2], stride[2], dil[2], gap[2];
  int64_t lead[2];  // padding before the source
  int64_t rows, blocks, height, pitch;
  int64_t depth;  // channels of a group of the source
  TT_INLINE int64_t plane_items() const { return height * pitch; }
  TT_INLINE int64_t channel_items() const { return stride[0] * stride[1] * plane_items(); }
  // With room for the vectors that begin in it.
  TT_INLINE int64_t room_items() const { return round_up(depth * channel_items() + 64, 16); }
};
// Stage 0: one unit. Stage 1: [phases][pixel blocks]. packed is [taps][groups].
// kConvDepthwisePlanes: stage 1 [n][groups][blocks], packed is [groups][taps]; kConvGroupPlanes:
// [groups][tiles of 4 columns][taps][depth][4].
struct ConvDepthwise {
  ConvBlocks blocks;
  ConvDepthwiseShape planes;
  Rooms rooms;  // conv_depthwise_room_bytes()
};
// kConvDirect has `pixels`, too, with rows of y in place of pixels: stage 0 is one unit, stage 1
// [images][blocks]; src has channels first, and packed is [tiles of kConvInterleavedCols, 2 or 1
// columns][k1][k2][ci][columns of the tile].

// Blocks of a phase of kConvTiles whose lines of the source are copied with their padding; tiles
// read the copy at a tap's offset. With strides of the source, it is an image for each remainder of
// a line and a column: [stride1][stride2][height lines][pitch pixels][channels of a group].
struct ConvTileLines {
  int64_t lines, columns;       // of a block; 0: windows are copied one by one
  int64_t line_blocks, blocks;  // of columns; of an image
  int64_t height, pitch;
};
// Stage 0: [groups][columns / 32]. Stage 1: [phases][pixel blocks][groups][column blocks], or
// [phases][groups][column blocks][images][blocks of lines]. packed is [groups][panels of 32
// columns][steps][16 pairs of terms][32 columns]; terms are those of the phases, one after the
// other. The weight is [co][taps][ci] in memory.
struct ConvTiles {
  ConvBlocks blocks;
  ConvTileLines lines;
  int64_t col_blocks;  // of kConvTilesCols
  int64_t steps;       // of a panel, at most
  Rooms rooms;         // conv_tiles_room()
};
// kConvPieces: packed pixels of the source are lines of 192 bytes for each 32 channels, pixels of a
// row one after the other. In dimension d a tap reads pixel j + a of the plane of all pixels
// scale[d] * i + r of the source, where j counts the pixels of the result: its tile of 16 pixels is
// 16 lines of the plane, wherever they begin. Between rows there are as many zeros as padding
// needs, which are results that are left out; images of a unit are interleaved, pixel by pixel.
//
// Stage 0: [groups][panels of 32 columns]. Stage 1: [phases][blocks of images][depths][blocks of
// rows][blocks of columns of pixels][groups][blocks of kConvTilesCols columns]. packed is
// [groups][panels][2 tiles][steps][3 pieces][16 pairs of terms][16 columns], then a PieceRange for
// each panel; steps are [phases][passes][taps][32 terms].
struct ConvPieces {
  int64_t images, rows, cols;  // images, rows and columns of the pixels of a unit
  int64_t image_blocks, depths, row_blocks, col_blocks, panel_blocks;
  int64_t scale[kConvDims];
  int64_t min_tap[kConvDims], max_tap[kConvDims];  // of all a
  int64_t lead, pitch;                             // pixels before a plane; of a row of it
  int64_t planes, lines;                           // of a pass; lines of a plane
  int64_t pass;                                    // steps of channels that are packed at a time
  bool channels_first;  // of the result; ConvPlanes::rooms are for vectors then
  int64_t steps;        // of a panel
  Rooms rooms;          // conv_pieces_room_bytes(): lines of a pass, then sums
};
// The pixel of a plane that a tap reads: `at` by the stride, rounded down.
TT_INLINE int64_t conv_piece_offset(int64_t at, int64_t stride) {
  return at >= 0 ? at / stride : -ceil_div(-at, stride);
}
// Stage 0: one unit. Stage 1: images.
struct ConvScatter {
  char* images;  // conv_image_bytes(): [n][x0][x1] rows with their padding
};

// conv: dst = products of src with the weight, plus bias. Stage 0 packs the weight; a column block
// is kConvCols columns.
struct ConvPlan {
  Stages run;
  ConvShape s;
  ConvGather gather;
  int32_t dtype;  // f32 f64 i64; bf16 if path is kConvTiles
  ConvMode mode;
  ConvPath path;
  bool channels_first;    // src and dst have channels first; devices only
  uint16_t math;          // bits of CudaMath
  int32_t across_images;  // pixels are traversed as [rows][images][columns], not image by image
  int64_t phases[kConvDims];
  ConvPixels pixels;  // only the member of `path` is set
  ConvPlanes planes;
  ConvColumns columns;
  ConvDepthwise depthwise;
  ConvScatter scatter;
  ConvTiles tiles;
  ConvPieces pieces;
  const char* src;
  const char* weight;
  int64_t w_co, w_ci, w_k[kConvDims];  // element strides of the weight
  const char* bias;                    // per column, all groups; NULL: 0
  char* dst;
  char* packed;       // conv_packed_bytes(): [group][columns, rounded up][taps][channels of src] in
                      // panels
  const char* zeros;  // source of padding: conv_zero_items() elements
};

// Whether pixels of the result differ in the taps that their windows see.
TT_INLINE bool conv_has_phases(const ConvPlan& p) {
  return p.phases[0] * p.phases[1] * p.phases[2] > 1;
}

// conv_pad copies x with its last dimension padded, [n * x0 * x1][width][channels]. Units: rows.
struct ConvPadPlan {
  Stages run;
  int32_t item_size;
  int64_t rows, from, width, pad, pixel_bytes;
  const char* src;
  char* dst;
};

// conv_weight: dweight(group, co, ci, k) = sum over the pixels of y of y * x. The pixels are
// divided into `splits`, each with its own sums.
// Stage 0: [splits][groups][tap blocks][column blocks] computes the sums of a split. Stage 1:
// [groups][blocks of kConvCols columns] adds the splits in order.
// depthwise (groups of one channel): stage 0 [splits], stage 1 one unit; depthwise_planes (also
// groups of few channels): stage 0 [groups], no stage 1.
struct ConvWeightPlan {
  Stages run;
  ConvShape s;
  ConvGather gather;
  int32_t dtype;
  int64_t splits, tap_blocks, col_blocks;
  bool depthwise;
  bool depthwise_planes;  // src and y have channels first, as those of kConvDepthwisePlanes or, if
                          // not depthwise, of kConvGroupPlanes
  ConvDepthwiseShape planes;
  bool channels_first;  // src and y have channels first; devices only
  bool tiles;           // src and y are bf16, for tiles of AMX; dtype is f32
  // Of tiles: if lines is not 0, lines of src are copied, all taps are of one unit, and tap blocks
  // are blocks of 32 channels. Blocks of lines are not those of the plan.
  ConvTileLines lines;
  uint16_t math;  // bits of CudaMath
  Rooms rooms;    // kConvEdgeRoom, conv_weight_tiles_room() if tiles; none if depthwise; of
                  // planes conv_depthwise_room_bytes(), of groups of several channels
                  // conv_group_plane_sum_bytes(), too
  const char* src;
  const char* y;
  char* dst;
  int64_t w_co, w_ci, w_k[kConvDims];
  char* sums;         // [splits][groups][taps * ci][co rounded up to kConvCols]; depthwise:
                      // [splits][taps][groups]
  const char* zeros;  // source of padding: gather.run elements, depthwise: groups
};

// ---- interleaved images: few channels; a vector holds one pixel of kConvLanes images ----

constexpr int64_t kConvLanes = 16;           // interleaved images
constexpr int64_t kConvInterleavedCols = 6;  // channels of y per tile
constexpr int64_t kConvInterleavedRun = 96;  // maximum elements of a row of a window

// y(n, co, o) = sum over k and ci of x(n, ci, o * stride - pad + k * dil) * w(co, ci, k), with
// channels before pixels. x is read in the interleaved layout:
//   [blocks of kConvLanes images][full0 rows][full1 columns][ci][kConvLanes]
// In kConvForward it has a border of zeros: `lead` rows and columns of it come before the image,
// the rest of `full` after it. In kConvData it has none (`full` is `x`): a window that begins
// `lead` before the image is cut.
struct ConvInterleavedShape {
  int64_t n, ci, co;
  int64_t x[2], y[2], k[2], stride[2], lead[2], full[2];
  int64_t dil;  // of rows; 1 for columns
  TT_INLINE int64_t blocks() const { return ceil_div(n, kConvLanes); }
  TT_INLINE int64_t run() const { return k[1] * ci; }
  TT_INLINE int64_t col_tiles() const { return ceil_div(co, kConvInterleavedCols); }
};

// conv_interleave: converts src (n, channels, rows, columns) to the interleaved layout. Units:
// [blocks][channels].
struct ConvInterleavePlan {
  Stages run;
  int64_t n, channels;
  int64_t size[2], lead[2], full[2];
  int32_t from_interleaved;  // src has the interleaved layout already, without a border
  const char* src;
  char* dst;
};

// conv_interleaved computes y. Stage 0 packs the weight, one unit. Stage 1: [blocks][pixels /
// kConvLanes].
struct ConvInterleavedPlan {
  Stages run;
  ConvInterleavedShape s;
  const char* src;  // interleaved
  const char* weight;
  int64_t w_co, w_ci, w_k[2];
  const char* bias;  // per channel of y; NULL: 0
  char* dst;         // (n, co, rows, columns), or in the interleaved layout without a border
  int32_t to_interleaved;
  char* packed;  // [tiles of at most kConvInterleavedCols channels of y][k0][k1][ci][channels of
                 // the tile]
};

// conv_interleaved_weight computes the weight's gradient, and that of the bias unless it is NULL.
// Stage 0: [splits][tiles of channels of y][k0], sums of a split of the blocks, then [tiles of
// channels of y], the bias. Stage 1, one unit: adds the splits in order.
struct ConvInterleavedWeightPlan {
  Stages run;
  ConvInterleavedShape s;
  int64_t splits;
  int64_t rows;     // rows of y added at a time
  const char* src;  // x, interleaved
  const char* y;    // interleaved, without a border
  char* dst;
  int64_t w_co, w_ci, w_k[2];
  char* sums;  // [splits][co][k0][k1][ci]
  char* bias;  // [co]
};

}  // namespace TT_NS
