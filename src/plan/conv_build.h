// Builds the plans of conv_plan.h. Builders set all fields but the pointers and the weight's
// strides.
#pragma once

#include "plan/conv_plan.h"
#include "plan/pieces.h"

namespace TT_NS {

inline int64_t conv_pixels(const ConvShape& s, const int64_t* grid) {
  return s.n * grid[0] * grid[1] * grid[2];
}

// Returns the number of units of `unit` multiplications each that make a task of about 2^21.
inline int64_t conv_grain(double unit) {
  return unit >= (1 << 21) ? 1 : int64_t((1 << 21) / (unit + 1)) + 1;
}

// Returns the padded width of x's rows if copying them merges the taps of a row into one run; 0 if
// rows are read in place.
inline int64_t conv_merged_width(const ConvShape& s) {
  if (s.groups != 1 || s.ci >= 16 || s.k[2] == 1 || s.dil[2] != 1) return 0;
  const int64_t width = (s.y[2] - 1) * s.stride[2] + s.k[2];
  return s.y[2] > 0 && width <= 2 * s.x[2] + 64 ? width : 0;
}

inline ConvGather conv_gather_x(const ConvShape& s, int64_t merged_width) {
  ConvGather g;
  for (int d = 0; d < kConvDims; d++) {
    g.size[d] = s.x[d];
    g.taps[d] = s.k[d];
    g.pad[d] = s.pad[d];
  }
  g.run = s.ci;
  g.group = s.ci;
  g.pixel = s.groups * s.ci;
  g.row = s.x[2] * g.pixel;
  if (!merged_width) return g;
  g.size[2] = merged_width;
  g.taps[2] = 1;
  g.pad[2] = 0;
  g.run = s.k[2] * s.ci;
  g.row = merged_width * g.pixel;
  return g;
}

inline ConvGather conv_gather_y(const ConvShape& s) {
  ConvGather g;
  for (int d = 0; d < kConvDims; d++) {
    g.size[d] = s.y[d];
    g.taps[d] = s.k[d];
    g.pad[d] = s.pad[d];
  }
  g.run = s.co;
  g.group = s.co;
  g.pixel = s.groups * s.co;
  g.row = s.y[2] * g.pixel;
  return g;
}

// ---- conv ----

inline bool conv_depthwise(const ConvShape& s) { return s.groups > 1 && s.ci == 1 && s.co == 1; }

constexpr int64_t kConvDepthwiseRoom = 4096;  // elements that a block reads, about
constexpr int64_t kConvDepthwiseStride = 4;   // at most
constexpr int64_t kConvDepthwiseReach = 64;   // rows or columns from the first tap to the last

constexpr int64_t kConvDepthwiseWidth = 16;  // of rows that fill vectors, at least

// Whether kConvDepthwisePlanes computes the result of a plan, or the gradient of its weight. Rooms
// of large strides or windows would be mostly empty or larger than a cache. Short rows would leave
// lanes idle; to bring channels last takes less time.
inline bool conv_takes_depthwise_planes(const ConvShape& s, ConvMode mode) {
  if (!conv_depthwise(s) || s.x[0] != 1 || s.k[0] != 1 || s.pad[0] != 0) return false;
  if (s.taps() > kConvDepthwiseTaps || s.taps() == 0) return false;
  const int64_t width = mode == kConvForward ? s.y[2] : s.x[2];
  if (width < kConvDepthwiseWidth && s.groups >= kConvDepthwiseWidth) return false;
  for (int d = 1; d < kConvDims; d++) {
    if (s.stride[d] > kConvDepthwiseStride || s.dil[d] > kConvDepthwiseReach) return false;
    const int64_t reach = s.dil[d] * (s.k[d] - 1);
    if (reach > kConvDepthwiseReach || (mode == kConvData && reach < s.pad[d])) return false;
  }
  return true;
}
inline ConvDepthwiseShape conv_depthwise_shape(const ConvShape& s, ConvMode mode) {
  const bool data = mode == kConvData;
  ConvDepthwiseShape b = {};
  for (int d = 0; d < 2; d++) {
    const int e = d + 1;  // the plan has the last two of three dimensions
    b.x[d] = data ? s.y[e] : s.x[e];
    b.y[d] = data ? s.x[e] : s.y[e];
    b.k[d] = s.k[e];
    b.dil[d] = s.dil[e];
    b.stride[d] = data ? 1 : s.stride[e];
    b.gap[d] = data ? s.stride[e] : 1;
    b.lead[d] = data ? s.dil[e] * (s.k[e] - 1) - s.pad[e] : s.pad[e];
  }
  const int64_t above = b.dil[0] * (b.k[0] - 1) / b.stride[0];
  b.pitch = b.y[1] + b.dil[1] * (b.k[1] - 1) / b.stride[1];
  b.depth = conv_depth(s, mode);
  const int64_t row = b.depth * b.stride[0] * b.stride[1] * max<int64_t>(b.pitch, 1);
  const int64_t fit = kConvDepthwiseRoom * (b.depth > 1 ? 2 : 1) / row - above;
  // At least as many rows as a block shares with the next one.
  b.rows = min(max(fit, above + 1), max<int64_t>(b.y[0], 1));
  b.blocks = ceil_div(b.y[0], b.rows);
  b.height = b.rows + above;
  return b;
}

// Whether kConvGroupPlanes computes the result of a plan, in the chains of the other paths. Those
// leave lanes idle beyond the columns of a group, this one beyond short rows. With strides, sums
// for x have terms that are 0.
inline bool conv_takes_group_planes(const ConvShape& s, ConvMode mode) {
  const int64_t cols = conv_cols(s, mode);
  const int64_t width = mode == kConvForward ? s.y[2] : s.x[2];
  if (s.groups == 1 || conv_depthwise(s) || width < 12) return false;
  if (cols == 1 || cols > (s.stride[2] == 1 ? 16 : 8) || conv_depth(s, mode) > 32) return false;
  if (s.x[0] != 1 || s.k[0] != 1 || s.pad[0] != 0 || s.taps() == 0) return false;
  if (s.taps() > kConvTaps) return false;
  // Several chains of a phase would begin at other taps.
  const bool strided = s.stride[1] * s.stride[2] > 1;
  const bool one_chain = s.taps() * conv_depth(s, mode) <= kConvChain;
  if (mode == kConvData && strided && !one_chain) return false;
  for (int d = 1; d < kConvDims; d++) {
    const int64_t reach = s.dil[d] * (s.k[d] - 1);
    if (s.stride[d] > 2 || reach > 8 || (mode == kConvData && reach < s.pad[d])) return false;
  }
  return true;
}
// Whether the weight's gradient is computed in the same way.
inline bool conv_takes_group_plane_weight(const ConvShape& s) {
  return s.co <= 16 && conv_takes_group_planes(s, kConvForward);
}
inline int64_t conv_depthwise_room_bytes(const ConvDepthwiseShape& b) {
  return b.room_items() * int64_t(sizeof(float));
}
// In the room, the sums of a group's weight, which are of whole tiles, follow these bytes.
inline int64_t conv_group_plane_sum_bytes(const ConvShape& s) {
  const int64_t taps = round_up(s.taps(), kConvGroupPlaneTaps);
  return s.ci * taps * round_up(s.co, kConvGroupPlaneCols) * 64;
}

// Returns whether each unit packs its own columns. A weight that few pixels use is then read once
// and stays in the cache of its unit.
inline bool conv_takes_columns(const ConvShape& s, ConvMode mode, int64_t phase_pixels) {
  const int64_t cols = conv_cols(s, mode);
  const double weight = double(s.groups * cols) * double(s.taps() * conv_depth(s, mode));
  // Units pack tap by tap; merged rows have several taps in a run.
  if (mode == kConvForward && conv_merged_width(s)) return false;
  // With more pixels, packing the weight once for all units is cheaper.
  if (phase_pixels > 2048) return false;
  // A small packed weight fits the L2 cache.
  if (weight <= (1 << 18)) return false;
  // Fewer units would leave threads idle.
  return s.groups * ceil_div(cols, kConvCols) >= 4;
}

// phases: number of phases; phase_pixels: pixels of the largest one. channels_first: dst may have
// channels first.
inline ConvPath pick_conv_path(const ConvShape& s, ConvMode mode, int64_t phases,
                               int64_t phase_pixels, bool channels_first) {
  // Up to 8 columns would leave most of a tile's vectors idle; the columns of all taps together
  // fill them.
  if (mode == kConvData && s.ci <= 8 && conv_merged_width(s)) return kConvScatter;
  // With one term per tap and column, there is no matrix product within a group.
  if (conv_depthwise(s)) return kConvDepthwise;
  if (conv_takes_columns(s, mode, phase_pixels)) return kConvColumns;
  // The pixels of a single phase are contiguous in a plane; those of several phases are not.
  if (channels_first && phases == 1) return kConvPlanes;
  return kConvPixels;
}

// Rows are multiples of 14, the height of the tallest tile. There are up to 8 blocks for threads to
// share, as long as each has 56 pixels.
inline ConvBlocks conv_blocks(int64_t pixels) {
  ConvBlocks b;
  b.count = ceil_div(pixels, kConvRows);
  if (b.count < 8 && pixels >= 112) b.count = min<int64_t>(pixels / 56, 8);
  b.rows = b.count ? round_up(ceil_div(pixels, b.count), 14) : 0;
  return b;
}
// Large blocks of planes consist of whole vectors.
inline ConvBlocks conv_plane_blocks(int64_t pixels, int64_t item_size) {
  ConvBlocks b = conv_blocks(pixels);
  if (b.rows <= 112) return b;
  b.rows = kConvPlaneBytes / item_size;
  b.count = ceil_div(pixels, b.rows);
  return b;
}

// Multiples of 32, the height of two tiles.
inline ConvBlocks conv_tile_blocks(int64_t pixels) {
  ConvBlocks b;
  b.count = ceil_div(pixels, kConvTilesRows);
  if (b.count < 8 && pixels >= 128) b.count = min<int64_t>(pixels / 64, 8);
  b.rows = b.count ? round_up(ceil_div(pixels, b.count), int64_t(32)) : 0;
  return b;
}
// Returns whether tiles of AMX pay, as for products: with a whole one of each operand. terms: of a
// sum of the result.
inline bool conv_fills_tiles(int64_t rows, int64_t cols, int64_t terms) {
  return rows >= 16 && cols >= 16 && terms >= kConvTilesStep;
}

// Bytes of a room of copied lines; blocks of rows may read beyond the last pixel.
inline int64_t conv_line_room(const ConvPlan& p, const ConvTileLines& l) {
  const bool forward = p.mode == kConvForward;
  const int64_t images = forward ? p.s.stride[1] * p.s.stride[2] : 1;
  return (images * l.height * l.pitch + 32) * p.gather.run * 2;
}
// Whether lines of the source can be copied for such windows; sets reach, the distance from the
// first to the last pixel that a window sees, in strides.
inline bool conv_line_reach(const ConvShape& s, int64_t* reach) {
  if (s.x[0] != 1 || s.k[0] != 1 || s.pad[0] != 0 || s.taps() > kConvTilesLineTaps) return false;
  for (int d = 1; d < kConvDims; d++) {
    if (s.stride[d] > kConvTilesMaxStride || s.dil[d] > 64) return false;
    reach[d] = s.dil[d] * (s.k[d] - 1) / s.stride[d];
  }
  return true;
}
// The blocks of lines of a plan whose phases have grid[1] x grid[2] pixels; lines is 0 where
// windows are copied: if channels are no whole steps of tiles, or padding would be a large part.
inline ConvTileLines conv_tile_lines(const ConvPlan& p, const int64_t* grid) {
  const ConvShape& s = p.s;
  const ConvTileLines none = {};
  if (p.gather.run == 0 || p.gather.run % kConvTilesStep || p.gather.taps[2] != s.k[2]) return none;
  int64_t reach[kConvDims];
  if (grid[1] * grid[2] == 0 || !conv_line_reach(s, reach)) return none;
  ConvTileLines l;
  const int64_t wide = ceil_div(grid[2], kConvTilesRows);
  l.columns = ceil_div(grid[2], wide);
  l.pitch = l.columns + reach[2];
  const int64_t fit = clamp<int64_t>((kConvTilesRows + reach[2]) / l.pitch, 1, grid[1]);
  l.line_blocks = ceil_div(grid[1], fit);
  l.lines = ceil_div(grid[1], l.line_blocks);
  l.blocks = l.line_blocks * wide;
  l.height = l.lines + reach[1];
  const int64_t rows = round_up((l.lines - 1) * l.pitch + l.columns, int64_t(16));
  if (rows * 5 > l.lines * l.columns * 8 || conv_line_room(p, l) > kConvTilesLineRoom) return none;
  return l;
}
inline int64_t conv_tiles_room(const ConvPlan& p) {
  if (p.path != kConvTiles) return 0;
  return p.tiles.lines.lines ? conv_line_room(p, p.tiles.lines) : kConvTilesRoom;
}

// ---- f32 by tiles of AMX ----

// Sets which pixels taps read, beside those of the result, in dimension d.
inline void set_piece_taps(ConvPieces* b, const ConvShape& s, ConvMode mode, int d) {
  const bool forward = mode == kConvForward;
  const int64_t stride = s.stride[d];
  const int64_t starts = forward ? 1 : min(stride, s.x[d]);
  bool any = false;
  b->scale[d] = forward ? stride : 1;
  b->min_tap[d] = b->max_tap[d] = 0;
  for (int64_t k = 0; k < s.k[d]; k++)
    for (int64_t start = 0; start < starts; start++) {
      const int64_t at = forward ? k * s.dil[d] - s.pad[d] : start + s.pad[d] - k * s.dil[d];
      if (!forward && at % stride != 0) continue;
      const int64_t tap = conv_piece_offset(at, stride);
      b->min_tap[d] = any ? min(b->min_tap[d], tap) : tap;
      b->max_tap[d] = any ? max(b->max_tap[d], tap) : tap;
      any = true;
    }
}
// Tiles of 16 lines of n rows of `cols` pixels.
inline int64_t piece_tiles(const ConvPieces& b, int64_t n) {
  return ceil_div((n - 1) * b.pitch + b.cols, int64_t(16));
}
// Sets which pixels a unit computes: `grid` of a phase. source: pixels of its rows.
inline void set_piece_area(ConvPieces* b, int64_t images, const int64_t* grid, int64_t source,
                           int64_t width) {
  // The room holds whole blocks of 32 lines.
  const int64_t most = min(kConvPieceSumBytes / (width * 4), kConvPieceLines) / 32 * 32;
  const int64_t reach = grid[2] + max<int64_t>(b->max_tap[2], 0);
  b->lead = max<int64_t>(-b->min_tap[2], 0);
  b->pitch = max(reach, min(ceil_div(source, b->scale[2]), reach) + b->lead);
  b->cols = grid[2];
  b->col_blocks = 1;
  if (b->pitch > most) {
    b->col_blocks = ceil_div(grid[2], most / 2);
    b->cols = ceil_div(grid[2], b->col_blocks);
    b->lead = -b->min_tap[2];
    b->pitch = b->cols + b->max_tap[2] - b->min_tap[2];
  }
  // The rows that leave the fewest lines of tiles without results.
  b->rows = 1;
  int64_t least = INT64_MAX;
  for (int64_t n = 1; n <= grid[1] && piece_tiles(*b, n) * 16 <= most; n++) {
    const int64_t rest = grid[1] % n;
    const int64_t tiles = grid[1] / n * piece_tiles(*b, n) + (rest ? piece_tiles(*b, rest) : 0);
    if (tiles > least) continue;
    least = tiles;
    b->rows = n;
  }
  b->row_blocks = ceil_div(grid[1], b->rows);
  b->images = 1;
  const int64_t lines = (b->rows - 1) * b->pitch + b->cols;
  if (b->row_blocks * b->col_blocks == 1)
    b->images = clamp<int64_t>(most / round_up(lines, int64_t(16)), 1, images);
  b->image_blocks = ceil_div(images, b->images);
  b->images = ceil_div(images, b->image_blocks);
  b->depths = grid[0];
}
// `grid`: of the largest phase.
inline void build_conv_pieces(ConvPieces* b, const ConvShape& s, ConvMode mode,
                              const int64_t* grid) {
  const int64_t width = min(round_up(conv_cols(s, mode), kConvCols), kConvTilesCols);
  for (int d = 0; d < kConvDims; d++) set_piece_taps(b, s, mode, d);
  set_piece_area(b, s.n, grid, mode == kConvForward ? s.x[2] : s.y[2], width);
  const int64_t rows = b->rows + b->max_tap[1] - b->min_tap[1];
  const int64_t pixels = b->lead + rows * b->pitch + max<int64_t>(b->max_tap[2], 0);
  b->planes = s.k[0] * b->scale[1] * b->scale[2];
  b->lines = round_up(pixels * b->images + kConvCols, int64_t(8));
  const int64_t channels = ceil_div(conv_depth(s, mode), kConvTilesStep);
  const int64_t step_bytes = b->planes * b->lines * kConvPieceLineBytes;
  const int64_t passes = ceil_div(channels, max<int64_t>(kConvPiecePassBytes / step_bytes, 1));
  b->pass = ceil_div(channels, passes);
  b->steps = s.taps() * channels;
  b->panel_blocks = ceil_div(conv_cols(s, mode), kConvTilesCols);
}
inline int64_t conv_pieces_room_bytes(const ConvPieces& b) {
  const int64_t lines = b.pass * b.planes * b.lines * kConvPieceLineBytes;
  // Vectors, which replace tiles where numbers have no pieces, pack terms there.
  return max(lines + kConvPieceSumBytes, kConvDepth * kConvCols * 4);
}
// Lines that tiles compute, with those that are no results.
inline int64_t piece_lines(const ConvPieces& b) {
  const int64_t unit = round_up(((b.rows - 1) * b.pitch + b.cols) * b.images, int64_t(16));
  return b.image_blocks * b.depths * b.row_blocks * b.col_blocks * unit;
}
constexpr double kConvPiecePixels = 128;  // with fewer, packing the weight takes too long
constexpr double kConvPieceShare = 0.6;   // of a tile's terms and results that there are, at least
// Whether these tiles compute a result faster than vectors: measured
// (docs/benchmarks/xeon-amx.md).
inline bool conv_takes_pieces(const ConvShape& s, ConvMode mode) {
  const bool forward = mode == kConvForward;
  const int64_t depth = conv_depth(s, mode);
  const int64_t cols = conv_cols(s, mode);
  const int64_t* full = forward ? s.y : s.x;
  if (depth < 16 || cols < 16 || s.taps() == 0 || s.taps() > kConvPieceTaps) return false;
  if (forward && conv_merged_width(s)) return false;
  int64_t grid[kConvDims];
  for (int d = 0; d < kConvDims; d++) {
    if (s.stride[d] > kConvPiecePlanes || s.pad[d] > kConvPieceLines) return false;
    if (s.k[d] > 1 && s.dil[d] * (s.k[d] - 1) > kConvPieceLines) return false;
    grid[d] = forward ? s.y[d] : ceil_div(s.x[d], s.stride[d]);
    if (grid[d] == 0) return false;
  }
  const double pixels = double(conv_pixels(s, full));
  if (pixels < kConvPiecePixels) return false;
  if (pixels * double(s.taps() * depth) * double(cols) < (1 << 20)) return false;
  ConvPieces b = {};
  build_conv_pieces(&b, s, mode, grid);
  if (b.planes > kConvPiecePlanes) return false;
  if (b.planes * b.lines * kConvPieceLineBytes > kConvPiecePassBytes) return false;
  double lines = double(piece_lines(b));
  for (int d = 0; d < kConvDims && !forward; d++) lines *= double(s.stride[d]);
  const double spent = lines * double(round_up(depth, kConvTilesStep) * round_up(cols, 16));
  return pixels * double(depth * cols) >= kConvPieceShare * spent;
}

constexpr int64_t kConvDirectPixels = 16;  // of a row of y, at least: a vector
constexpr int64_t kConvDirectRows = 4;     // of a unit

// Returns whether y from x may take vectors of pixels in place of columns. The sums have the order
// of the other paths: one chain of k1 taps, each a run of k2 * ci terms.
inline bool conv_takes_pixels(const ConvShape& s) {
  // More columns fill vectors.
  if (s.groups != 1 || s.co > 8 || s.y[2] < kConvDirectPixels || s.n * s.y[1] == 0) return false;
  if (s.x[0] != 1 || s.k[0] != 1 || s.stride[2] != 1 || !conv_merged_width(s)) return false;
  for (int d = 0; d < kConvDims; d++)
    if (s.pad[d] != 0) return false;
  const int64_t run = s.k[2] * s.ci;
  return s.k[1] <= kConvTaps && s.k[1] * (run + 1) <= kConvChain;
}

// Sets the units of both stages, by path; phase_pixels as for pick_conv_path(), grid: those of an
// image, at most.
inline void build_conv_units(ConvPlan* p, int64_t phases, int64_t phase_pixels,
                             const int64_t* grid) {
  const ConvShape& s = p->s;
  const int64_t col_blocks = s.groups * ceil_div(conv_cols(s, p->mode), kConvCols);
  int64_t* units = p->run.units;
  switch (p->path) {
    case kConvPixels:
      p->pixels.blocks = conv_blocks(phase_pixels);
      units[0] = col_blocks;
      units[1] = phases * p->pixels.blocks.count * s.groups;
      return;
    case kConvPlanes:
      p->planes.blocks = conv_plane_blocks(phase_pixels, kItemSize[p->dtype]);
      units[0] = col_blocks;
      units[1] = p->planes.blocks.count * col_blocks;
      return;
    case kConvColumns:
      p->columns.parts = phases * col_blocks < 16 ? 4 : 1;
      units[0] = 0;
      units[1] = phases * col_blocks * p->columns.parts;
      return;
    case kConvDepthwise:
      p->depthwise.blocks = conv_blocks(phase_pixels);
      units[0] = 1;
      units[1] = phases * p->depthwise.blocks.count;
      return;
    case kConvDepthwisePlanes:
    case kConvGroupPlanes:
      p->depthwise.planes = conv_depthwise_shape(s, p->mode);
      units[0] = 1;
      units[1] = s.n * s.groups * p->depthwise.planes.blocks;
      return;
    case kConvScatter:
      units[0] = 1;
      units[1] = s.n;
      return;
    case kConvDirect:
      p->pixels.blocks = {ceil_div(s.y[1], kConvDirectRows), kConvDirectRows};
      units[0] = 1;
      units[1] = s.n * p->pixels.blocks.count;
      return;
    case kConvTiles:
      p->tiles.blocks = conv_tile_blocks(phase_pixels);
      p->tiles.col_blocks = ceil_div(conv_cols(s, p->mode), kConvTilesCols);
      p->tiles.steps = p->gather.taps[0] * p->gather.taps[1] * p->gather.taps[2] *
                       ceil_div(p->gather.run, kConvTilesStep);
      units[0] = col_blocks;
      units[1] = phases * p->tiles.blocks.count * s.groups * p->tiles.col_blocks;
      p->tiles.lines = conv_tile_lines(*p, grid);
      if (p->tiles.lines.lines)
        units[1] = phases * s.groups * p->tiles.col_blocks * s.n * p->tiles.lines.blocks;
      return;
    case kConvPieces: {
      const ConvPieces& b = p->pieces;
      units[0] = col_blocks;
      units[1] = phases * b.image_blocks * b.depths * b.row_blocks * b.col_blocks * s.groups *
                 b.panel_blocks;
      return;
    }
  }
}

// Units of one column block that run in a row on a thread share its packed columns.
inline void join_conv_columns(ConvPlan* p, int64_t threads) {
  if (p->path != kConvColumns) return;
  const int64_t joined = max<int64_t>(p->columns.parts / threads, 1);
  if (p->columns.parts % joined == 0) p->run.grain[1] = round_up(p->run.grain[1], joined);
}

// channels_first: dst may have channels first, and does if the path is kConvPlanes or
// pieces.channels_first is set.
// forced: the path, unless it is kConvPixels.
inline void build_conv(ConvPlan* p, const ConvShape& s, int32_t dtype, ConvMode mode,
                       bool channels_first, ConvPath forced = kConvPixels) {
  p->s = s;
  p->dtype = dtype;
  p->math = 0;
  p->mode = mode;
  p->channels_first = false;
  const int64_t* grid = mode == kConvForward ? s.y : s.x;
  const int64_t cols = conv_cols(s, mode);
  const int64_t depth = conv_depth(s, mode);
  int64_t phases = 1;
  int64_t phase_pixels = s.n;
  int64_t phase_grid[kConvDims];
  for (int d = 0; d < kConvDims; d++) {
    const int64_t steps = mode == kConvForward ? 1 : s.stride[d];
    p->phases[d] = max<int64_t>(min(steps, grid[d]), 1);
    phase_grid[d] = ceil_div(grid[d], p->phases[d]);
    phases *= p->phases[d];
    phase_pixels *= phase_grid[d];
  }
  p->path = pick_conv_path(s, mode, phases, phase_pixels, channels_first);
  if (forced != kConvPixels) p->path = forced;
  const bool reads_y = mode == kConvData && p->path != kConvScatter;
  p->gather = reads_y ? conv_gather_y(s) : conv_gather_x(s, conv_merged_width(s));
  // Rows of a tile then reach the padding above and below an image together.
  p->across_images = (p->path == kConvPixels || p->path == kConvColumns) && s.n > 1 &&
                     s.pad[1] > 0 && grid[1] <= 32;
  if (p->path == kConvPieces) {
    build_conv_pieces(&p->pieces, s, mode, phase_grid);
    p->pieces.channels_first = channels_first && phases == 1 && p->pieces.images == 1;
  }
  build_conv_units(p, phases, phase_pixels, phase_grid);
  if (cols == 0 || conv_pixels(s, grid) == 0) p->run.units[0] = p->run.units[1] = 0;
  const double weight = double(s.groups * cols) * double(s.taps() * depth);
  const double work = weight * double(phase_pixels);
  p->run.grain[0] = conv_grain(double(s.taps()) * double(depth) * kConvCols * 8);
  p->run.grain[1] = conv_grain(work / double(p->run.units[1] + 1) + 1);
  p->run.n = 2;
  p->run.stage = 0;
}
inline int64_t conv_packed_bytes(const ConvPlan& p, int64_t item_size) {
  const int64_t cols = conv_cols(p.s, p.mode);
  const int64_t terms = p.s.taps() * conv_depth(p.s, p.mode);
  switch (p.path) {
    case kConvColumns: return 0;
    case kConvDepthwise:
    case kConvDepthwisePlanes: return p.s.taps() * p.s.groups * item_size;
    case kConvGroupPlanes: return p.s.groups * round_up(cols, 4) * terms * item_size;
    case kConvScatter: return round_up(p.s.taps() * p.s.ci, kConvCols) * p.s.co * item_size;
    case kConvTiles: return p.run.units[0] * p.tiles.steps * kConvTilesStep * kConvCols * item_size;
    case kConvPieces: {
      const int64_t panel = p.pieces.steps * kConvCols * kConvPieceLineBytes;
      return p.run.units[0] * (panel + int64_t(sizeof(PieceRange)));
    }
    default: return round_up(p.s.groups * round_up(cols, kConvCols) * terms * item_size, 64);
  }
}
inline int64_t conv_columns_room(const ConvPlan& p, int64_t item_size) {
  if (p.path != kConvColumns) return 0;
  const int64_t terms = p.s.taps() * conv_depth(p.s, p.mode);
  return (conv_has_phases(p) ? kConvDepth : terms) * kConvCols * item_size;
}
inline int64_t conv_image_bytes(const ConvPlan& p, int64_t item_size) {
  if (p.path != kConvScatter) return 0;
  return p.s.n * p.s.x[0] * p.s.x[1] * p.gather.row * item_size;
}
inline int64_t conv_zero_items(const ConvPlan& p) {
  if (p.path == kConvDirect || p.path == kConvDepthwisePlanes) return 0;
  if (p.path == kConvGroupPlanes) return 0;
  if (p.path == kConvDepthwise) return p.s.groups;
  return p.path == kConvScatter ? p.s.co : p.gather.run;
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

// ---- conv_weight ----

inline void build_conv_weight(ConvWeightPlan* p, const ConvShape& s, int32_t dtype,
                              int64_t item_size, int64_t merged_width,
                              bool depthwise_planes = false) {
  p->s = s;
  p->dtype = dtype;
  p->math = 0;
  p->gather = conv_gather_x(s, merged_width);
  p->depthwise = conv_depthwise(s);
  p->depthwise_planes = depthwise_planes;
  p->channels_first = false;
  p->tiles = false;
  p->lines = {};
  const int64_t pixels = conv_pixels(s, s.y);
  const int64_t cols = round_up(s.co, kConvCols);
  // Splits are added at the end: at most 8 with 8 MiB in total, of at least two chunks of pixels
  // each.
  const int64_t items = s.groups * s.taps() * s.ci * (p->depthwise ? 1 : cols);
  const int64_t fit = (int64_t(8) << 20) / (items * item_size + 1);
  p->splits = clamp<int64_t>(min(fit, pixels / (2 * kConvChunk)), 1, 8);
  // Few splits leave threads idle, which then share the taps and columns.
  const int64_t taps = p->gather.taps[0] * p->gather.taps[1] * p->gather.taps[2];
  const bool by_pixels = p->splits >= 4;
  p->tap_blocks = by_pixels ? 1 : max<int64_t>(taps, 1);
  p->col_blocks = by_pixels ? 1 : max<int64_t>(ceil_div(cols, 128), 1);
  const bool any = s.groups * s.taps() * s.ci * s.co > 0;
  const int64_t units = p->splits * s.groups * p->tap_blocks * p->col_blocks;
  p->run.units[0] = p->depthwise ? p->splits : units;
  p->run.units[1] = p->depthwise ? 1 : s.groups * (cols / kConvCols);
  if (!any) p->run.units[0] = p->run.units[1] = 0;
  p->run.grain[0] = conv_grain(double(pixels * s.co) * double(s.ci * s.taps()) *
                               double(p->depthwise ? s.groups : 1) /
                               double(p->splits * p->tap_blocks * p->col_blocks));
  p->run.grain[1] = conv_grain(double(s.taps() * s.ci) * double(kConvCols * p->splits * 4));
  p->run.n = 2;
  p->run.stage = 0;
  if (!depthwise_planes) return;
  p->planes = conv_depthwise_shape(s, kConvForward);
  p->run.units[0] = s.groups;
  p->run.units[1] = 0;
  p->run.n = 1;
}
// Lets tiles make the sums of a plan. Where lines are copied, a unit has all taps: y is turned and
// src is copied once for them.
inline void build_conv_weight_tiles(ConvWeightPlan* p) {
  const ConvShape& s = p->s;
  p->tiles = true;
  int64_t reach[kConvDims];
  if (s.ci % kConvTilesStep || p->gather.taps[2] != s.k[2] || !conv_line_reach(s, reach)) return;
  const int64_t images = s.stride[1] * s.stride[2];
  const int64_t pitch = s.y[2] + reach[2];
  if (pitch > kConvWeightLineRows / 2 || pitch * 5 > s.y[2] * 8) return;
  if (images * (reach[1] + 1) * pitch > kConvWeightLineCopy / 2) return;
  p->lines.lines = 1;
  p->lines.height = 1 + reach[1];
  p->lines.pitch = pitch;
  p->tap_blocks = min(ceil_div(int64_t(8), p->splits), s.ci / kConvTilesStep);
  p->col_blocks = 1;
  const int64_t units = p->splits * s.groups * p->tap_blocks;
  const double work = double(conv_pixels(s, s.y) * s.co) * double(s.ci * s.taps());
  p->run.units[0] = units;
  p->run.grain[0] = conv_grain(work * double(s.groups) / double(units));
}
inline int64_t conv_weight_tiles_room(const ConvWeightPlan& p) {
  if (!p.lines.lines) return kConvWeightTilesRoom;
  const int64_t of_y = min(round_up(p.s.co, kConvCols), kConvTilesCols) * kConvWeightLineRows * 2;
  const int64_t pairs = kConvWeightLineCopy + 2 * kConvTilesStep;
  return max(kConvWeightTilesRoom, of_y + pairs * kConvTilesStep * 4);
}
inline int64_t conv_sums_bytes(const ConvWeightPlan& p, int64_t item_size) {
  if (p.depthwise_planes) return 0;
  if (p.depthwise) return p.splits * p.s.taps() * p.s.groups * item_size;
  const int64_t rows = p.splits * p.s.groups * p.s.taps() * p.s.ci;
  return round_up(rows * round_up(p.s.co, kConvCols) * item_size, 64);
}

// ---- interleaved images ----

// y from x; for kConvData x from y, a convolution by the flipped window.
inline ConvInterleavedShape conv_interleaved_shape(const ConvShape& s, ConvMode mode) {
  const bool data = mode == kConvData;
  ConvInterleavedShape b = {};
  b.n = s.n;
  b.ci = conv_depth(s, mode);
  b.co = conv_cols(s, mode);
  b.dil = s.dil[1];
  for (int d = 0; d < 2; d++) {
    const int e = d + 1;  // the plan has the last two of three dimensions
    b.x[d] = data ? s.y[e] : s.x[e];
    b.y[d] = data ? s.x[e] : s.y[e];
    b.k[d] = s.k[e];
    b.stride[d] = s.stride[e];
    const int64_t reach = s.dil[e] * (s.k[e] - 1);
    const int64_t need = (b.y[d] - 1) * b.stride[d] + reach + 1;
    b.lead[d] = data ? reach - s.pad[e] : s.pad[e];
    b.full[d] = data ? b.x[d] : max(b.lead[d] + b.x[d], need);
  }
  return b;
}
// Returns whether to interleave images: if channels are too few to fill vectors, but images are
// not.
inline bool conv_interleaves(const ConvShape& s, ConvMode mode) {
  // More channels fill vectors on their own.
  if (s.groups != 1 || s.ci < 1 || s.ci > 16 || s.co > 24) return false;
  // The kernels support two dimensions, and read a row of a window as one run.
  if (s.x[0] != 1 || s.k[0] != 1 || s.pad[0] != 0 || s.dil[2] != 1) return false;
  // At most one idle lane per four images.
  const int64_t idle = round_up(s.n, kConvLanes) - s.n;
  if (idle * 4 > s.n) return false;
  // x from y is such a convolution only with stride 1 and a border that is not negative.
  for (int d = 1; d < kConvDims && mode == kConvData; d++)
    if (s.stride[d] != 1 || s.pad[d] > s.dil[d] * (s.k[d] - 1)) return false;
  // Sums of a row of a window are on the stack.
  const ConvInterleavedShape b = conv_interleaved_shape(s, mode);
  if (b.run() > kConvInterleavedRun) return false;
  // A wide border costs more than it saves.
  return b.full[0] <= 2 * b.x[0] + 64 && b.full[1] <= 2 * b.x[1] + 64;
}
// The number of elements past the end that the last window of a tile may read.
constexpr int64_t kConvOverread = 4 * kConvLanes;
inline int64_t conv_interleaved_items(int64_t n, int64_t channels, const int64_t* full) {
  return round_up(n, kConvLanes) * full[0] * full[1] * channels + kConvOverread;
}
// Interleaves an image and its border; NULL lead and full mean no border.
inline void build_conv_interleave(ConvInterleavePlan* p, int64_t n, int64_t channels,
                                  const int64_t* size, const int64_t* lead, const int64_t* full) {
  p->n = n;
  p->channels = channels;
  for (int d = 0; d < 2; d++) {
    p->size[d] = size[d];
    p->lead[d] = lead ? lead[d] : 0;
    p->full[d] = full ? full[d] : size[d];
  }
  p->from_interleaved = 0;
  p->run.units[0] = ceil_div(n, kConvLanes) * channels;
  p->run.units[1] = 0;
  p->run.grain[0] = conv_grain(double(p->full[0] * p->full[1] * kConvLanes) * 8);
  p->run.grain[1] = 1;
  p->run.n = 1;
  p->run.stage = 0;
}
inline void build_conv_interleaved(ConvInterleavedPlan* p, const ConvInterleavedShape& s) {
  p->s = s;
  p->to_interleaved = 0;
  p->run.units[0] = p->run.grain[0] = 1;
  p->run.units[1] = s.blocks() * ceil_div(s.y[0] * s.y[1], kConvLanes);
  p->run.grain[1] = conv_grain(double(kConvLanes * kConvLanes) * double(s.co * s.k[0] * s.run()));
  p->run.n = 2;
  p->run.stage = 0;
}
inline void build_conv_interleaved_weight(ConvInterleavedWeightPlan* p,
                                          const ConvInterleavedShape& s, char* bias) {
  p->s = s;
  const int64_t tiles = s.col_tiles() * s.k[0];
  const int64_t blocks = s.blocks();
  p->splits = 1;
  while (p->splits * 2 <= blocks && p->splits * tiles < 16) p->splits *= 2;
  // The rows of x and y that are read together fit the L2 cache. Fewer, which the L1 cache holds,
  // take longer: each tile reads and writes its sums for them.
  const int64_t row_bytes = (s.y[1] * kConvInterleavedCols + s.full[1] * s.ci) * kConvLanes * 4;
  const int64_t cache_bytes = int64_t(256) << 10;
  p->rows = row_bytes < cache_bytes ? cache_bytes / row_bytes : 1;
  p->bias = bias;
  p->run.units[0] = p->splits * tiles + (bias ? s.col_tiles() : 0);
  p->run.units[1] = 1;
  p->run.grain[0] = conv_grain(double(s.n * s.y[0] * s.y[1]) * double(s.co * s.run()) /
                               double(p->splits * tiles));
  p->run.grain[1] = 1;
  p->run.n = 2;
  p->run.stage = 0;
}

}  // namespace TT_NS
