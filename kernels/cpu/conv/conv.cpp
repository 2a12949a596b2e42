// conv: matmul with an implicit left operand; conv_pad.
//
//                taps × channels of src          columns
//              ┌───────────────────────┐       ┌────────┐       ┌────────┐
//       pixels │ the windows of src,   │   ×   │ packed │   =   │  dst   │ + bias
//      of dst  │ read by indirection   │       │ weight │       │        │
//              └───────────────────────┘       └────────┘       └────────┘
//
// path       a unit computes                       weight               result
// ---------  ------------------------------------  -------------------  ---------------------------
// pixels     a block of pixels, all columns        packed in stage 0    in place
// planes     a block of pixels, kConvCols columns  packed in stage 0    transposed into planes
// columns    kConvCols columns, many pixels        packed by each unit  in place
// depthwise  a block of pixels, all groups         [taps][groups]       in place
//            a block of rows (depthwise_planes.h)  [groups][taps]       in place, channels first
// scatter    an image (scatter.h)                  packed in stage 0    added to a padded image
// groups     rows of pixels (group_planes.h, AVX-512)  packed in stage 0   in place, channels first
// direct     rows of pixels (direct.h, AVX-512)    packed in stage 0    in place, channels first
// tiles      a block of pixels, many columns       packed in stage 0    in place, bf16
//            (bf16_amx.cpp)
// pieces     rows of pixels, many columns          packed in stage 0    in place, f32
//            (f32_amx.cpp)
#include "base/platform.h"

TT_IGNORE_UNINITIALIZED
#include "kernels/cpu/conv/conv_tile.h"
#include "kernels/cpu/conv/depthwise_planes.h"
#if TT_VEC_BYTES == 64
#include "kernels/cpu/conv/bf16_amx.h"
#include "kernels/cpu/conv/direct.h"
#include "kernels/cpu/conv/f32_amx.h"
#include "kernels/cpu/conv/group_planes.h"
#endif
#include "kernels/cpu/conv/pack_weight.h"
#include "kernels/cpu/conv/scatter.h"
#include "kernels/cpu/simd/room.h"
#include "kernels/cpu/simd/transpose.h"

TT_ISA_BEGIN

// The panels of a packed weight for the current terms of a tile. columns: from the tile's first one
// on.
template <class T> ConvPanels<T> panels_of(const ConvTile<T>& tile, const T* columns) {
  const ConvPlan& p = tile.p;
  const int64_t* taps = p.gather.taps;
  ConvPanels<T> panels;
  panels.next = p.s.taps() * tile.depth * kConvNr<T>;
  for (int64_t t = 0; t < tile.n_taps; t++) {
    const int64_t* k = tile.tap[t];
    const int64_t number = (k[0] * taps[1] + k[1]) * taps[2] + k[2];
    panels.first[t] = columns + (number * p.gather.run + tile.from) * kConvNr<T>;
  }
  return panels;
}
template <class T> ConvPanels<T> packed_panels(const ConvTile<T>& tile) {
  const int64_t column = tile.group * round_up(tile.cols, kConvCols) + tile.col_begin;
  const int64_t terms = tile.p.s.taps() * tile.depth;  // of a column
  return panels_of(tile, reinterpret_cast<const T*>(tile.p.packed) + column * terms);
}
// Adds all terms to the current rows, with the weight packed in stage 0.
template <class T> void add_packed(ConvTile<T>* tile) {
  while (tile->next_terms()) {
    if (tile->from == 0) tile->fill_indirection();
    tile->add(packed_panels(*tile));
  }
}

template <class T> struct PixelPath {
  static void pack(const ConvPlan& p, int64_t begin, int64_t end) { pack_panels<T>(p, begin, end); }

  static void unit(const ConvPlan& p, int64_t u) {
    const ConvBlocks& blocks = p.pixels.blocks;
    const Phase phase(p, u / p.s.groups / blocks.count);
    const int64_t begin = u / p.s.groups % blocks.count * blocks.rows;
    if (begin >= phase.pixels) return;
    ConvTile<T> tile(p, phase, u % p.s.groups);
    tile.set_rows(begin, min(begin + blocks.rows, phase.pixels));
    add_packed(&tile);
  }
};

template <size_t kBytes> struct BitsOf;
template <> struct BitsOf<4> { using type = uint32_t; };
template <> struct BitsOf<8> { using type = uint64_t; };

template <class T> struct PlanePath {
  static constexpr int kL = kLanes<T>;
  const ConvPlan& p;
  const Phase phase;
  ConvTile<T> tile;
  const Room room;
  T* const sums;  // [rows][kConvCols]

  PlanePath(const ConvPlan& plan, int64_t group, int64_t col_block)
      : p(plan),
        phase(plan, 0),
        tile(plan, phase, group),
        room(plan.planes.rooms),
        sums(room.as<T>()) {
    tile.col_begin = col_block * kConvCols;
    tile.col_end = min(tile.col_begin + kConvCols, tile.cols);
    tile.aside = sums;
  }

  static void pack(const ConvPlan& p, int64_t begin, int64_t end) { pack_panels<T>(p, begin, end); }

  static void unit(const ConvPlan& p, int64_t u) {
    const ConvBlocks& blocks = p.planes.blocks;
    const int64_t col_blocks = ceil_div(conv_cols(p.s, p.mode), kConvCols);
    const int64_t begin = u / col_blocks / p.s.groups * blocks.rows;
    PlanePath path(p, u / col_blocks % p.s.groups, u % col_blocks);
    if (begin >= path.phase.pixels) return;
    path.tile.set_rows(begin, min(begin + blocks.rows, path.phase.pixels));
    add_packed(&path.tile);
    path.transpose_sums(begin);
  }

  // Writes the sums, which begin with pixel `begin`, to the planes of their columns.
  void transpose_sums(int64_t begin) {
    using Bits = typename BitsOf<sizeof(T)>::type;
    alignas(64) T piece[kL * kL];
    const int64_t plane = phase.pixels / p.s.n;
    const int64_t first_col = tile.group * tile.cols;
    for (int64_t i = 0, n; i < tile.n_rows; i += n) {
      const int64_t at = (begin + i) % plane;
      const int64_t image = (begin + i) / plane;
      n = min<int64_t>(min(tile.n_rows - i, plane - at), kL);
      for (int64_t j = tile.col_begin; j < tile.col_end; j += kL) {
        const T* from = sums + i * kConvCols + j - tile.col_begin;
        T* to = reinterpret_cast<T*>(p.dst) +
                (image * p.s.groups * tile.cols + first_col + j) * plane + at;
        const bool whole = n == kL && j + kL <= tile.col_end;
        transpose_tile<Bits, kL>(reinterpret_cast<char*>(whole ? to : piece),
                                 (whole ? plane : kL) * int64_t(sizeof(T)),
                                 reinterpret_cast<const char*>(from), kConvCols * sizeof(T));
        for (int64_t k = 0; !whole && k < kL && j + k < tile.col_end; k++)
          store(to + k * plane, load(piece + k * kL), Part<T>(int(n)));
      }
    }
  }
};

template <class T> struct ColumnPath {
  static void run(const ConvPlan& p, int64_t begin, int64_t end) {
    for (int64_t u = begin, next; u < end; u = next) {
      next = min(round_up(u + 1, p.columns.parts), end);
      units(p, u, next);
    }
  }

  // Units [u, end) of one column block: its columns are packed once for all of them.
  static void units(const ConvPlan& p, int64_t u, int64_t end) {
    const int64_t parts = p.columns.parts;
    const int64_t col_blocks = ceil_div(conv_cols(p.s, p.mode), kConvCols);
    const int64_t block = u / parts % (p.s.groups * col_blocks);
    const Phase phase(p, u / parts / (p.s.groups * col_blocks));
    ConvTile<T> tile(p, phase, block / col_blocks);
    tile.col_begin = block % col_blocks * kConvCols;
    tile.col_end = min(tile.col_begin + kConvCols, tile.cols);
    const int64_t rows = ceil_div(phase.pixels, parts * 14) * 14;
    const int64_t from = u % parts;
    const int64_t to = from + end - u;
    const Room room(p.columns.rooms);
    T* const panels = room.as<T>();
    const bool whole = !conv_has_phases(p);
    if (whole) pack_block(p, tile.group, tile.col_begin, panels);
    while (tile.next_terms()) {
      const ConvPanels<T> packed = whole ? panels_of(tile, panels) : pack_current(tile, panels);
      for (int64_t part = from; part < to; part++)
        add_part(&tile, packed, part * rows, min((part + 1) * rows, phase.pixels));
    }
  }

  static void add_part(ConvTile<T>* tile, const ConvPanels<T>& packed, int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; m += kConvRows) {
      tile->set_rows(m, min(m + kConvRows, end));
      tile->fill_indirection();
      tile->add(packed);
    }
  }

  // Packs the current terms: [panels][taps][terms][kConvNr].
  static ConvPanels<T> pack_current(const ConvTile<T>& tile, T* out) {
    const int64_t tap_items = (tile.to - tile.from) * kConvNr<T>;
    ConvPanels<T> panels;
    panels.next = tile.n_taps * tap_items;
    for (int64_t t = 0; t < tile.n_taps; t++) panels.first[t] = out + t * tap_items;
    for (int64_t j = tile.col_begin; j < tile.col_end; j += kConvNr<T>)
      for (int64_t t = 0; t < tile.n_taps; t++) {
        pack_columns<T>(tile.p, tile.group, j, tile.col_end, tile.tap[t], tile.from, tile.to, out);
        out += tap_items;
      }
    return panels;
  }
};

template <class T> struct DepthwisePath {
  static constexpr int kL = kLanes<T>;
  static constexpr int kRows = sizeof(T) == 4 ? 7 : 1;  // whose sums are in registers
  // Current rows: as many as all taps of a window of 7 x 7 have room for.
  static constexpr int64_t kPitch = kConvDepthwiseRows;

  static void pack(const ConvPlan& p, int64_t, int64_t) { pack_depthwise<T>(p); }

  static void unit(const ConvPlan& p, int64_t u) {
    const ConvBlocks& blocks = p.depthwise.blocks;
    const Phase phase(p, u / blocks.count);
    const int64_t begin = u % blocks.count * blocks.rows;
    const int64_t end = min(begin + blocks.rows, phase.pixels);
    ConvTile<T> tile(p, phase, 0);
    tile.max_taps = kConvDepthwiseTileTaps;
    while (tile.next_terms()) {
      const T* weights[kConvDepthwiseTileTaps];
      for (int64_t t = 0; t < tile.n_taps; t++) {
        const int64_t* k = tile.tap[t];
        const int64_t number = (k[0] * p.s.k[1] + k[1]) * p.s.k[2] + k[2];
        weights[t] = reinterpret_cast<const T*>(p.packed) + number * p.s.groups;
      }
      for (int64_t m = begin; m < end; m += kPitch) {
        tile.set_rows(m, min(m + kPitch, end));
        for (int64_t t = 0; t < tile.n_taps; t++)
          tile.source.addresses(round_up(tile.n_rows, int64_t(kRows)), tile.shift[t],
                                tile.indirection + t * kPitch);
        add(tile, weights);
      }
    }
  }

  // Adds the current taps to the current rows, kRows at a time: all groups of few taps, a vector of
  // groups of many, whose windows of all groups are larger than the L1 cache.
  static void add(const ConvTile<T>& tile, const T* const* weights) {
    const int64_t n = tile.p.s.groups;
    const int64_t whole = n - n % kL;
    const int64_t step = tile.n_taps > kConvTaps ? kL : whole;
    for (int64_t from = 0; from < whole; from += step)
      for (int64_t i = 0; i < tile.n_rows; i += kRows)
        for (int64_t g = from; g < from + step; g += kL) add_groups(tile, i, weights, g);
    if (whole < n) add_rest(tile, weights, whole, Part<T>(int(n - whole)));
  }

  // Adds a vector of groups from g on to rows [i, i + kRows).
  static TT_INLINE void add_groups(const ConvTile<T>& tile, int64_t i, const T* const* weights,
                                   int64_t g) {
    // Rows that are missing read zeros; they are stored before the last one, in its place.
    T* out[kRows];
    TT_UNROLL
    for (int r = 0; r < kRows; r++) out[r] = tile.out[min(i + r, tile.n_rows - 1)] + g;
    const T* const* row = tile.indirection + i;
    // Prefetches what the following rows read at the last position of a window, and their results.
    const int64_t last_tap = tile.p.mode == kConvForward ? tile.n_taps - 1 : 0;
    const T* const* last = tile.n_taps ? row + last_tap * kPitch : out;
    const int64_t ahead = kRows * tile.phase.dim[2].step * tile.p.s.groups;
    const int64_t ahead_of_source = g + kRows * tile.source.step * tile.p.s.groups;
    TT_UNROLL
    for (int r = 0; r < kRows; r++) {
      TT_PREFETCH(last[r] + ahead_of_source);
      TT_PREFETCH_WRITE(out[r] + ahead);
    }
    Vec<T> sum[kRows][1];
    sum_tile(sum, [&tile, i, weights, g, out](auto unit, auto& sums) TT_INLINE_BODY {
      return group_sums<decltype(unit)>(tile, i, weights, g, out, sums);
    });
    TT_UNROLL
    for (int r = kRows - 1; r >= 0; r--) store(out[r], sum[r][0]);
  }
  template <class Unit>
  static TT_INLINE bool group_sums(const ConvTile<T>& tile, int64_t i, const T* const* weights,
                                   int64_t g, T* const (&out)[kRows], Vec<T> (&sum)[kRows][1]) {
    const T* bias = reinterpret_cast<const T*>(tile.p.bias);
    const Vec<T> start = bias ? load(bias + g) : Vec<T>{};
    TT_UNROLL
    for (int r = 0; r < kRows; r++) sum[r][0] = tile.first ? start : load(out[r]);
    const T* const* row = tile.indirection + i;
    for (int64_t t = 0; t < tile.n_taps; t++, row += kPitch) {
      const Vec<T> weight = load(weights[t] + g);
      TT_UNROLL
      for (int r = 0; r < kRows; r++)
        sum[r][0] = Unit::add_product(load(row[r] + g), weight, sum[r][0]);
    }
    return true;
  }
  // The groups that fill no vector, row by row.
  static TT_NOINLINE void add_rest(const ConvTile<T>& tile, const T* const* weights, int64_t g,
                                   Part<T> part) {
    const T* bias = reinterpret_cast<const T*>(tile.p.bias);
    for (int64_t i = 0; i < tile.n_rows; i++) {
      T* const out = tile.out[i] + g;
      const T* start = out;
      if (tile.first) start = bias ? bias + g : tile.source.zeros;
      const T* const* row = tile.indirection + i;
      Vec<T> sum = load(start, part);
      for (int64_t t = 0; t < tile.n_taps; t++, row += kPitch)
        sum = fma(load(*row + g, part), load(weights[t] + g, part), sum);
      store(out, sum, part);
    }
  }
};

#if TT_VEC_BYTES == 64
struct PiecePath {
  static void pack(const ConvPlan& p, int64_t begin, int64_t end) {
    conv_f32_amx_pack(p, begin, end);
  }
  static void unit(const ConvPlan& p, int64_t u) {
    ConvPieceArea area = area_of(p, u);
    const Phase phase(p, area.phase);
    const PhaseDim* const dim = phase.dim;
    area.images = min(area.images, p.s.n - area.image);
    area.rows = min(area.rows, dim[1].count - area.row);
    area.width = min(area.width, dim[2].count - area.left);
    if (area.depth >= dim[0].count || area.rows <= 0 || area.width <= 0) return;
    if (conv_f32_amx(p, area)) return;
    if (p.pieces.channels_first) add_planes_by_vectors(p, area);
    else add_by_vectors(p, phase, area);
  }

 private:
  static ConvPieceArea area_of(const ConvPlan& p, int64_t u) {
    const ConvPieces& b = p.pieces;
    const auto take = [&u](int64_t count) {
      const int64_t at = u % count;
      u /= count;
      return at;
    };
    ConvPieceArea area;
    area.col_begin = take(b.panel_blocks) * kConvTilesCols;
    area.col_end = min(area.col_begin + kConvTilesCols, conv_cols(p.s, p.mode));
    area.group = take(p.s.groups);
    area.left = take(b.col_blocks) * b.cols;
    area.row = take(b.row_blocks) * b.rows;
    area.depth = take(b.depths);
    area.image = take(b.image_blocks) * b.images;
    area.phase = u;
    area.images = b.images;
    area.rows = b.rows;
    area.width = b.cols;
    return area;
  }
  static TT_NOINLINE void add_by_vectors(const ConvPlan& p, const Phase& phase,
                                         const ConvPieceArea& area) {
    const Room room(p.pieces.rooms);
    for (int64_t j = area.col_begin; j < area.col_end; j += kConvCols) {
      ConvTile<float> tile(p, phase, area.group);
      tile.col_begin = j;
      tile.col_end = min(j + kConvCols, area.col_end);
      while (tile.next_terms()) {
        const auto packed = ColumnPath<float>::pack_current(tile, room.as<float>());
        for (int64_t i = 0; i < area.images * area.rows; i++) {
          const int64_t begin = first_pixel(phase, area, i);
          ColumnPath<float>::add_part(&tile, packed, begin, begin + area.width);
        }
      }
    }
  }
  // Of row i of an area.
  static int64_t first_pixel(const Phase& phase, const ConvPieceArea& area, int64_t i) {
    const int64_t line = (area.image + i / area.rows) * phase.dim[0].count + area.depth;
    const int64_t row = line * phase.dim[1].count + area.row + i % area.rows;
    return row * phase.dim[2].count + area.left;
  }
  static TT_NOINLINE void add_planes_by_vectors(const ConvPlan& p, const ConvPieceArea& area) {
    constexpr int64_t kMost = kConvPlaneBytes / int64_t(sizeof(float));
    const Room room(p.pieces.rooms);
    for (int64_t j = area.col_begin; j < area.col_end; j += kConvCols)
      for (int64_t i = 0; i < area.rows; i++)
        for (int64_t from = 0; from < area.width; from += kMost) {
          PlanePath<float> path(p, area.group, j / kConvCols);
          const int64_t begin = first_pixel(path.phase, area, i) + from;
          path.tile.set_rows(begin, begin + min(kMost, area.width - from));
          while (path.tile.next_terms()) {
            const auto packed = ColumnPath<float>::pack_current(path.tile, room.as<float>());
            path.tile.fill_indirection();
            path.tile.add(packed);
          }
          path.transpose_sums(begin);
        }
  }
};
#endif

template <class Path> void run_path(const ConvPlan& p, int64_t begin, int64_t end) {
  if (p.run.stage == 0) {
    Path::pack(p, begin, end);
    return;
  }
  for (int64_t u = begin; u < end; u++) Path::unit(p, u);
}

template <class T> int32_t conv_of(const ConvPlan& p, int64_t begin, int64_t end) {
  switch (p.path) {
    case kConvPixels: run_path<PixelPath<T>>(p, begin, end); break;
    case kConvPlanes: run_path<PlanePath<T>>(p, begin, end); break;
    case kConvColumns: ColumnPath<T>::run(p, begin, end); break;
    case kConvDepthwise: run_path<DepthwisePath<T>>(p, begin, end); break;
    case kConvDepthwisePlanes:
      if constexpr (kIsSame<T, float>) run_path<DepthwisePlanePath>(p, begin, end);
      break;
    case kConvGroupPlanes:
#if TT_VEC_BYTES == 64
      if constexpr (kIsSame<T, float>) run_path<GroupPlanePath>(p, begin, end);
      break;
#else
      return TT_INTERNAL;
#endif
    case kConvScatter: run_path<ScatterPath<T>>(p, begin, end); break;
    case kConvDirect:
#if TT_VEC_BYTES == 64
      if constexpr (sizeof(T) == 4) run_path<DirectPath>(p, begin, end);
      break;
#else
      return TT_INTERNAL;
#endif
    case kConvPieces:
#if TT_VEC_BYTES == 64
      if constexpr (kIsSame<T, float>) run_path<PiecePath>(p, begin, end);
      break;
#else
      return TT_INTERNAL;
#endif
    case kConvTiles: return TT_INTERNAL;  // has no T
  }
  return TT_OK;
}

TT_ISA_END

#if TT_VEC_BYTES > 16  // integers are rare: one build serves them
namespace TT_NS::baseline {
int32_t conv(const void* plan, int64_t begin, int64_t end) noexcept;
}
#endif

TT_ENTRY_BEGIN

TT_KERNEL(conv)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvPlan& p = *static_cast<const ConvPlan*>(plan);
#if TT_VEC_BYTES == 64
  if (p.path == kConvTiles) return conv_bf16_amx(p, begin, end), TT_OK;
#endif
  if (p.dtype == TT_F32) return conv_of<float>(p, begin, end);
  if (is_dtype(p.dtype, TT_F64)) return conv_of<double>(p, begin, end);
#if TT_VEC_BYTES > 16
  return baseline::conv(plan, begin, end);
#else
  return conv_of<int64_t>(p, begin, end);
#endif
}

TT_KERNEL(conv_pad)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvPadPlan& p = *static_cast<const ConvPadPlan*>(plan);
  const int64_t width = p.width * p.pixel_bytes;
  const int64_t left = min(p.pad, p.width) * p.pixel_bytes;
  const int64_t inner = min(p.from * p.pixel_bytes, width - left);
  for (int64_t r = begin; r < end; r++) {
    char* to = p.dst + r * width;
    memset(to, 0, size_t(left));
    memcpy(to + left, p.src + r * p.from * p.pixel_bytes, size_t(inner));
    memset(to + left + inner, 0, size_t(width - left - inner));
  }
  return TT_OK;
}

TT_ENTRY_END
