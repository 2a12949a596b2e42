// conv: gathered products with a packed weight; conv_pad.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored \
    "-Wmaybe-uninitialized"  // gcc 12: of its own AVX-512 intrinsics (bug 105593)
#endif
#include "kernels/cpu/conv/scatter.h"
#include "kernels/cpu/simd/transpose.h"

TT_ISA_BEGIN

// The taps of one dimension that the pixels of a phase see: first, first + step, …; each adds its
// own shift to source coordinates.
struct PhaseDim {
  int64_t start, count, step;  // of the result pixels
  int64_t scale;  // source coordinate of the j-th of them = j * scale + shift of the tap
  // The shift of tap k; false: the phase does not see it.
  static TT_INLINE bool shift(const ConvPlan& p, int d, int64_t start, int64_t k, int64_t* out) {
    if (p.mode == kConvForward) {
      *out = k * p.s.dil[d] - p.gather.pad[d];
      return true;
    }
    const int64_t at = start + p.gather.pad[d] - k * p.s.dil[d];
    *out = at / p.s.stride[d];
    return at % p.s.stride[d] == 0;
  }
};

// Terms [from, to) of a tap for columns [j, min(j + kConvNr, end)) of a group.
template <class T> void pack_columns(const ConvPlan& p, int64_t group, int64_t j, int64_t end,
                                     const int64_t* tap, int64_t from, int64_t to, T* out) {
  const bool forward = p.mode == kConvForward;
  const int64_t col_step = forward ? p.w_co : p.w_ci;
  const int64_t row_step = forward ? p.w_ci : p.w_co;
  const T* w = reinterpret_cast<const T*>(p.weight) + group * p.s.co * p.w_co + j * col_step +
               from * row_step;
  for (int d = 0; d < kConvDims; d++) w += tap[d] * p.w_k[d];
  pack_panel(w, col_step, row_step, int(end - j < kConvNr<T> ? end - j : kConvNr<T>), kConvNr<T>,
             to - from, out);
}

template <size_t kBytes> struct BitsOf;
template <> struct BitsOf<4> { using type = uint32_t; };
template <> struct BitsOf<8> { using type = uint64_t; };

// A block of result pixels of one phase and group, and the taps at hand.
template <class T> struct GatherUnit {
  const ConvPlan& p;
  ConvSource<T, kConvRows> source;
  const PhaseDim* dim;
  const int64_t cols, depth, total_cols;  // of a group; of a result pixel
  const int64_t group, pixels;            // pixels of the phase
  int64_t j0, j1;                         // columns
  char* panels;                           // by_cols: where this unit packs
  int64_t row0, row1;                     // by_cols: its pixels
  int64_t n_rows = 0;
  T* out[kConvRows + kConvSlack];
  const T* table[kConvTaps * kConvRows + kConvSlack];
  uint32_t live[kConvRows / kConvMr<T>];  // taps of each tile that are not all padding
  int64_t tap[kConvTaps][kConvDims], shift[kConvTaps][kConvDims];
  int64_t n_taps = 0;
  bool first = true;
  alignas(64) T tile[kConvMr<T> * kConvNr<T>];
  alignas(64) T start[kConvNr<T>];
  alignas(64) T sums[(kConvPlaneBytes / sizeof(T) +
                      kLanes<T>)*kConvCols];  // planes: the unit's columns of its pixels

  GatherUnit(const ConvPlan& plan, const PhaseDim* dims, int64_t of_group, int64_t n_pixels)
      : p(plan),
        source(p.gather, p.src, p.zeros, of_group),
        dim(dims),
        cols(p.mode == kConvForward ? p.s.co : p.s.ci),
        depth(p.mode == kConvForward ? p.s.ci : p.s.co),
        total_cols(cols * p.s.groups),
        group(of_group),
        pixels(n_pixels),
        j0(0),
        j1(cols),
        row0(0),
        row1(n_pixels) {}

  // Makes the pixels [begin, end) of the phase the rows at hand.
  void place(int64_t begin, int64_t end) {
    const int64_t grid[kConvDims] = {dim[0].count, dim[1].count, dim[2].count};
    const int64_t* full = p.mode == kConvForward ? p.s.y : p.s.x;
    n_rows = end - begin;
    source.clear(dim[2].scale);
    ConvWalk at;
    at.start(grid, begin, p.by_rows ? p.s.n : 0);
    for (int64_t i = 0, n; i < n_rows; i += n, at.advance(n)) {
      int64_t pixel = at.image, c[kConvDims];
      for (int d = 0; d < kConvDims; d++) {
        pixel = pixel * full[d] + dim[d].start + at.at[d] * dim[d].step;
        c[d] = at.at[d] * dim[d].scale;
      }
      n = at.row(n_rows - i);
      T* to = p.planes ? sums + i * kConvCols - j0
                       : reinterpret_cast<T*>(p.dst) + pixel * total_cols + group * cols;
      const int64_t step = p.planes ? kConvCols : dim[2].step * total_cols;
      fill_addresses(out + i, to, step, n);
      source.set(i, n, at.image, c[0], c[1], c[2]);
    }
  }

  // Columns [j, j + kConvNr), rows [r, r + h).
  void tile_at(int64_t r, int h, int64_t j, int64_t from, int64_t to, const T* const* b) {
    constexpr int kL = kLanes<T>;
    constexpr int kMr = kConvMr<T>;
    constexpr int kNr = kConvNr<T>;
    const int64_t w = cols - j < kNr ? cols - j : kNr;
    const bool whole = w == kNr || w == kL || p.planes;
    const bool low = h <= kMr / 2;
    const int rows = low ? kMr / 2 : kMr;
    T* to_rows[kMr];
    for (int i = 0; i < rows; i++) to_rows[i] = whole && i < h ? out[r + i] + j : tile + i * kNr;
    const GatherTile<T> t = {table + r,
                             kConvRows,
                             b,
                             n_taps,
                             from,
                             to,
                             to_rows,
                             first || !whole ? start : nullptr,
                             live[r / kMr],
                             j == j0 ? rows * p.gather.pixel : 0};
    if (w > kL) low ? gather_tile<T, kMr / 2, 2>(t) : gather_tile<T, kMr, 2>(t);
    else low ? gather_tile<T, kMr / 2, 1>(t) : gather_tile<T, kMr, 1>(t);
    if (whole) return;
    const Part<T> lo(int(w < kL ? w : kL));
    const Part<T> hi(int(w > kL ? w - kL : 0));
    for (int i = 0; i < h; i++) {
      T* o = out[r + i] + j;
      T* s = tile + i * kNr;
      store(o, first ? load(s) : Vec<T>(load(s) + load(o, lo)), lo);
      if (w > kL) store(o + kL, first ? load(s + kL) : Vec<T>(load(s + kL) + load(o + kL, hi)), hi);
    }
  }

  // Adds terms [from, to) of the taps at hand to the rows at hand.
  void add(int64_t from, int64_t to) {
    constexpr int kNr = kConvNr<T>;
    constexpr int kMr = kConvMr<T>;
    const T* bias = reinterpret_cast<const T*>(p.bias);
    const int64_t terms = p.by_cols ? n_taps * (to - from) : p.s.taps() * depth;
    const T* base = reinterpret_cast<const T*>(
        p.by_cols ? panels
                  : p.packed + group * ((cols + kConvCols - 1) / kConvCols * kConvCols) * terms *
                                   int64_t(sizeof(T)));
    for (int64_t j = j0; j < j1; j += kNr) {
      const T* b[kConvTaps];
      for (int64_t t = 0; t < n_taps; t++) {
        const int64_t number =
            (tap[t][0] * p.gather.taps[1] + tap[t][1]) * p.gather.taps[2] + tap[t][2];
        b[t] = base + (p.by_cols ? j - j0 : j) * terms +
               (p.by_cols ? t * (to - from) : number * p.gather.run + from) * kNr;
      }
      for (int64_t i = 0; i < kNr; i++)
        start[i] = first && bias && j + i < cols ? bias[group * cols + j + i] : T(0);
      for (int64_t r = 0; r < n_rows; r += kMr)
        tile_at(r, int(n_rows - r < kMr ? n_rows - r : kMr), j, from, to, b);
    }
  }
  void fill_table() {
    constexpr int kMr = kConvMr<T>;
    const int64_t tiles = (n_rows + kMr - 1) / kMr;
    for (int64_t i = 0; i < tiles; i++) live[i] = 0;
    for (int64_t t = 0; t < n_taps; t++) {
      const T** row = table + t * kConvRows;
      const bool all = source.addresses(tiles * kMr, shift[t], row) == n_rows;
      for (int64_t i = 0; i < tiles; i++) {
        bool any = all;
        for (int64_t k = 0; !any && k < kMr; k++) any = row[i * kMr + k] != source.zeros;
        live[i] |= uint32_t(any) << t;
      }
    }
  }

  // by_cols: packs terms [from, to) of the taps at hand, then adds them to all pixels.
  void add_to_all(int64_t from, int64_t to) {
    T* to_panel = reinterpret_cast<T*>(panels);
    for (int64_t j = j0; j < j1; j += kConvNr<T>)
      for (int64_t t = 0; t < n_taps; t++, to_panel += (to - from) * kConvNr<T>)
        pack_columns<T>(p, group, j, j1, tap[t], from, to, to_panel);
    for (int64_t m = row0; m < row1; m += p.block_rows) {
      place(m, m + p.block_rows < row1 ? m + p.block_rows : row1);
      fill_table();
      add(from, to);
    }
  }
  // depthwise: vectors of groups; each has its own weight per tap.
  void add_depthwise() {
    constexpr int kL = kLanes<T>;
    const int64_t n = p.s.groups;
    const T* w = reinterpret_cast<const T*>(p.packed);
    const T* bias = reinterpret_cast<const T*>(p.bias);
    for (int64_t g = 0; g < n; g += kL) {
      const Part<T> part(int(n - g < kL ? n - g : kL));
      Vec<T> weights[kConvTaps];
      for (int64_t t = 0; t < n_taps; t++)
        weights[t] =
            load(w + ((tap[t][0] * p.s.k[1] + tap[t][1]) * p.s.k[2] + tap[t][2]) * n + g, part);
      const Vec<T> from = first && bias ? load(bias + g, part) : Vec<T>{};
      for (int64_t i = 0; i < n_rows; i++) {
        Vec<T> sum = first ? from : load(out[i] + g, part);
        if (n - g >= kL) {
          for (int64_t t = 0; t < n_taps; t++)
            sum = fma(load(table[t * kConvRows + i] + g), weights[t], sum);
          store(out[i] + g, sum);
          continue;
        }
        for (int64_t t = 0; t < n_taps; t++)
          sum = fma(load(table[t * kConvRows + i] + g, part), weights[t], sum);
        store(out[i] + g, sum, part);
      }
    }
  }
  void flush() {
    if (n_taps == 0 && !first) return;
    const int64_t run = p.gather.run;
    if (!p.by_cols) fill_table();
    if (p.depthwise) {
      add_depthwise();
      n_taps = 0;
      first = false;
      return;
    }
    int64_t from = 0;
    do {
      const int64_t to = n_taps > 1 || run - from <= kConvDepth ? run : from + kConvDepth / 2;
      p.by_cols ? add_to_all(from, to) : add(from, to);
      from = to;
      first = false;
    } while (from < run);
    n_taps = 0;
  }

  // planes: moves the sums of the pixels [begin, begin + n_rows) to their planes.
  void finish(int64_t begin) {
    constexpr int kL = kLanes<T>;
    using Bits = typename BitsOf<sizeof(T)>::type;
    alignas(64) T piece[kL * kL];
    const int64_t plane = pixels / p.s.n;
    for (int64_t i = 0, n; i < n_rows; i += n) {
      const int64_t at = (begin + i) % plane;
      const int64_t image = (begin + i) / plane;
      n = n_rows - i < plane - at ? n_rows - i : plane - at;
      if (n > kL) n = kL;
      for (int64_t j = j0; j < j1; j += kL) {
        const char* from = reinterpret_cast<const char*>(sums + i * kConvCols + j - j0);
        T* to =
            reinterpret_cast<T*>(p.dst) + ((image * p.s.groups + group) * cols + j) * plane + at;
        const bool whole = n == kL && j + kL <= j1;
        transpose_tile<Bits, kL>(reinterpret_cast<char*>(whole ? to : piece),
                                 (whole ? plane : kL) * int64_t(sizeof(T)), from,
                                 kConvCols * sizeof(T));
        for (int64_t k = 0; !whole && k < kL && j + k < j1; k++)
          store(to + k * plane, load(piece + k * kL), Part<T>(int(n)));
      }
    }
  }

  // All taps that the phase sees.
  void run() {
    int64_t k[kConvDims], o[kConvDims];
    const int64_t* taps = p.gather.taps;
    for (k[0] = 0; k[0] < taps[0]; k[0]++) {
      if (!PhaseDim::shift(p, 0, dim[0].start, k[0], &o[0])) continue;
      for (k[1] = 0; k[1] < taps[1]; k[1]++) {
        if (!PhaseDim::shift(p, 1, dim[1].start, k[1], &o[1])) continue;
        for (k[2] = 0; k[2] < taps[2]; k[2]++) {
          if (!PhaseDim::shift(p, 2, dim[2].start, k[2], &o[2])) continue;
          for (int d = 0; d < kConvDims; d++) {
            tap[n_taps][d] = k[d];
            shift[n_taps][d] = o[d];
          }
          if (++n_taps == kConvTaps || (n_taps + 1) * p.gather.run > kConvDepth) flush();
        }
      }
    }
    flush();
  }
};

template <class T> void gather_units(const ConvPlan& p, int64_t begin, int64_t end) {
  const bool forward = p.mode == kConvForward;
  const int64_t* full = forward ? p.s.y : p.s.x;
  for (int64_t u = begin; u < end; u++) {
    const int64_t cols = forward ? p.s.co : p.s.ci;
    const int64_t col_blocks = (cols + kConvCols - 1) / kConvCols;
    const int64_t inner = p.by_cols || p.depthwise ? 1
                          : p.planes               ? p.s.groups * col_blocks
                                                   : p.s.groups;
    const int64_t block = u / p.row_parts / inner % p.blocks;
    int64_t at = u / p.row_parts / inner / p.blocks;
    PhaseDim dim[kConvDims];
    int64_t pixels = p.s.n;
    for (int d = kConvDims - 1; d >= 0; d--) {
      const int64_t start = at % p.phases[d];
      const int64_t step = forward ? 1 : p.s.stride[d];
      at /= p.phases[d];
      dim[d] = {start, start < full[d] ? (full[d] - start - 1) / step + 1 : 0, step,
                forward ? p.s.stride[d] : 1};
      pixels *= dim[d].count;
    }
    const int64_t part = p.by_cols ? block : u % inner;  // by_cols, planes: [groups][column blocks]
    GatherUnit<T> unit(p, dim, p.by_cols || p.planes ? part / col_blocks : part, pixels);
    if (p.by_cols || p.planes) {
      unit.j0 = part % col_blocks * kConvCols;
      unit.j1 = unit.j0 + kConvCols < cols ? unit.j0 + kConvCols : cols;
    }
    const int64_t from = p.by_cols ? 0 : block * p.block_rows;
    if (p.by_cols) {
      const int64_t rows = (pixels + p.row_parts * 14 - 1) / (p.row_parts * 14) * 14;
      unit.row0 = u % p.row_parts * rows;
      unit.row1 = unit.row0 + rows < pixels ? unit.row0 + rows : pixels;
    }
    if (p.by_cols) unit.panels = p.packed + u * kConvDepth * kConvCols * int64_t(sizeof(T));
    else if (from < pixels)
      unit.place(from, from + p.block_rows < pixels ? from + p.block_rows : pixels);
    else continue;
    unit.run();
    if (p.planes) unit.finish(from);
  }
}

// Stage 0: the panels of kConvCols columns of a group.
template <class T> void pack_units_of(const ConvPlan& p, int64_t begin, int64_t end) {
  const bool forward = p.mode == kConvForward;
  const int64_t cols = forward ? p.s.co : p.s.ci;
  const int64_t depth = forward ? p.s.ci : p.s.co;
  const int64_t taps = p.s.taps();
  const int64_t col_blocks = (cols + kConvCols - 1) / kConvCols;
  for (int64_t u = begin; u < end; u++) {
    const int64_t g = u / col_blocks;
    const int64_t j0 = u % col_blocks * kConvCols;
    T* out = reinterpret_cast<T*>(p.packed) + (g * col_blocks * kConvCols + j0) * taps * depth;
    for (int64_t j = j0; j < cols && j < j0 + kConvCols; j += kConvNr<T>)
      for (int64_t t = 0; t < taps; t++, out += depth * kConvNr<T>) {
        const int64_t tap[kConvDims] = {t / p.s.k[2] / p.s.k[1], t / p.s.k[2] % p.s.k[1],
                                        t % p.s.k[2]};
        pack_columns<T>(p, g, j, cols, tap, 0, depth, out);
      }
  }
}

// The same for groups of one channel: [taps][groups].
template <class T> void pack_depthwise(const ConvPlan& p) {
  T* out = reinterpret_cast<T*>(p.packed);
  for (int64_t t = 0; t < p.s.taps(); t++) {
    const T* w = reinterpret_cast<const T*>(p.weight) + t / p.s.k[2] / p.s.k[1] * p.w_k[0] +
                 t / p.s.k[2] % p.s.k[1] * p.w_k[1] + t % p.s.k[2] * p.w_k[2];
    for (int64_t g = 0; g < p.s.groups; g++) *out++ = w[g * p.w_co];
  }
}

template <class T> int32_t conv_of(const ConvPlan& p, int64_t begin, int64_t end) {
  if (p.mode == kConvScatter)
    p.run.stage == 0 ? pack_scatter<T>(p) : scatter_units<T>(p, begin, end);
  else if (p.depthwise && p.run.stage == 0) pack_depthwise<T>(p);
  else p.run.stage == 0 ? pack_units_of<T>(p, begin, end) : gather_units<T>(p, begin, end);
  return TT_OK;
}

TT_ISA_END

#if defined(__AVX2__)  // integers are rare: one build serves them
namespace TT_NS::baseline {
int32_t conv(const void* plan, int64_t begin, int64_t end) noexcept;
}
#endif

TT_ENTRY_BEGIN

TT_KERNEL(conv)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvPlan& p = *static_cast<const ConvPlan*>(plan);
  if (p.dtype == TT_F32) return conv_of<float>(p, begin, end);
  if (p.dtype == TT_F64) return conv_of<double>(p, begin, end);
#if defined(__AVX2__)
  return baseline::conv(plan, begin, end);
#else
  return conv_of<int64_t>(p, begin, end);
#endif
}

TT_KERNEL(conv_pad)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvPadPlan& p = *static_cast<const ConvPadPlan*>(plan);
  const int64_t width = p.width * p.pixel_bytes;
  const int64_t left = (p.pad < p.width ? p.pad : p.width) * p.pixel_bytes;
  const int64_t inner =
      p.from * p.pixel_bytes < width - left ? p.from * p.pixel_bytes : width - left;
  for (int64_t r = begin; r < end; r++) {
    char* to = p.dst + r * width;
    __builtin_memset(to, 0, size_t(left));
    __builtin_memcpy(to + left, p.src + r * p.from * p.pixel_bytes, size_t(inner));
    __builtin_memset(to + left + inner, 0, size_t(width - left - inner));
  }
  return TT_OK;
}

TT_ENTRY_END
