// conv: gathered products with a packed weight; conv_pad.
#include "conv_tile.h"

TT_ISA_BEGIN

template <class T>
struct GatherTile {
  const T* const* rows;  // [taps][pitch]: kMr addresses of each tap
  int64_t pitch;
  const T* const* b;     // [taps] panels
  int64_t taps, from, to;  // terms [from, to) of each tap
  T* const* out;         // kMr rows
  const T* start;        // one row that the sums start with; NULL: the sums are added to out
};

// out (kMr rows, kVecs vectors) = start + or += sum over taps and terms of rows · b.
template <class T, int kMr, int kVecs>
TT_NOINLINE void gather_tile(const GatherTile<T>& t) {
  constexpr int kL = kLanes<T>;
  Vec<T> acc[kMr][kVecs];
  TT_UNROLL
  for (int v = 0; v < kVecs; v++) {
    const Vec<T> s = t.start ? load(t.start + v * kL) : Vec<T>{};
    TT_UNROLL
    for (int i = 0; i < kMr; i++) acc[i][v] = s;
  }
  const T* const* rows = t.rows;
  for (int64_t tap = 0; tap < t.taps; tap++, rows += t.pitch) {
    const T* b = t.b[tap] + t.from * kConvNr<T>;
    const T* a[kMr];
    TT_UNROLL
    for (int i = 0; i < kMr; i++) a[i] = rows[i];
    for (int64_t k = t.from; k < t.to; k++, b += kConvNr<T>) {
      Vec<T> y[kVecs];
      TT_UNROLL
      for (int v = 0; v < kVecs; v++) y[v] = load(b + v * kL);
      TT_UNROLL
      for (int i = 0; i < kMr; i++) {
        const Vec<T> x = splat(a[i][k]);
        TT_UNROLL
        for (int v = 0; v < kVecs; v++) acc[i][v] = fma(x, y[v], acc[i][v]);
      }
    }
  }
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) {
      T* to = t.out[i] + v * kL;
      store(to, t.start ? acc[i][v] : Vec<T>(load(to) + acc[i][v]));
    }
  }
}

// The taps of one dimension that the pixels of a phase see: first, first + step, …; each adds its own shift to source coordinates.
struct PhaseDim {
  int64_t start, count, step;  // of the result pixels
  int64_t scale;               // source coordinate of the j-th of them = j * scale + shift of the tap
  // The shift of tap k; false: the phase does not see it.
  static TT_INLINE bool shift(const ConvPlan& p, int d, int64_t start, int64_t k, int64_t* out) {
    if (p.mode == kConvForward) return *out = k * p.s.dil[d] - p.gather.pad[d], true;
    const int64_t at = start + p.gather.pad[d] - k * p.s.dil[d];
    *out = at / p.s.stride[d];
    return at % p.s.stride[d] == 0;
  }
};

template <class T>
struct GatherUnit {
  const ConvPlan& p;
  ConvSource<T, kConvRows> source;
  const int64_t cols, depth, total_cols;  // of a group; of a result pixel
  const T* packed;
  int64_t group, n_rows;
  T* out[kConvRows];
  const T* table[kConvTaps * kConvRows];
  int64_t tap_at[kConvTaps];  // number of each tap among all
  int64_t n_taps = 0;
  bool first = true;
  alignas(64) T tile[kConvMr<T> * kConvNr<T>];
  alignas(64) T start[kConvNr<T>];

  GatherUnit(const ConvPlan& plan, int64_t of_group)
      : p(plan),
        source(p.gather, p.src, p.zeros, of_group),
        cols(p.mode == kConvForward ? p.s.co : p.s.ci),
        depth(p.mode == kConvForward ? p.s.ci : p.s.co),
        total_cols(cols * p.s.groups),
        packed(reinterpret_cast<const T*>(p.packed) + of_group * ((cols + kConvCols - 1) / kConvCols * kConvCols) * p.s.taps() * depth),
        group(of_group) {}

  // Panel of columns [j, j + kConvNr), rows [r, r + h).
  void tile_at(int64_t r, int h, int64_t j, int64_t from, int64_t to, const T* const* b) {
    constexpr int kL = kLanes<T>, kMr = kConvMr<T>, kNr = kConvNr<T>;
    const int64_t w = cols - j < kNr ? cols - j : kNr;
    const bool whole = w == kNr || w == kL;
    const bool short_ = h <= kMr / 2;
    const int rows = short_ ? kMr / 2 : kMr;
    T* to_rows[kMr];
    for (int i = 0; i < rows; i++) to_rows[i] = whole && i < h ? out[r + i] + j : tile + i * kNr;
    const GatherTile<T> t = {table + r, kConvRows, b, n_taps, from, to, to_rows, first || !whole ? start : nullptr};
    if (w > kL)
      short_ ? gather_tile<T, kMr / 2, 2>(t) : gather_tile<T, kMr, 2>(t);
    else
      short_ ? gather_tile<T, kMr / 2, 1>(t) : gather_tile<T, kMr, 1>(t);
    if (whole) return;
    const Part<T> lo(int(w < kL ? w : kL)), hi(int(w > kL ? w - kL : 0));
    for (int i = 0; i < h; i++) {
      T *o = out[r + i] + j, *s = tile + i * kNr;
      store(o, first ? load(s) : Vec<T>(load(s) + load(o, lo)), lo);
      if (w > kL) store(o + kL, first ? load(s + kL) : Vec<T>(load(s + kL) + load(o + kL, hi)), hi);
    }
  }

  void set_start(int64_t j) {
    const T* bias = reinterpret_cast<const T*>(p.bias);
    for (int64_t i = 0; i < kConvNr<T>; i++)
      start[i] = first && bias && j + i < cols ? bias[group * cols + j + i] : T(0);
  }

  // Adds terms [from, to) of the taps at hand to all columns.
  void add(int64_t from, int64_t to) {
    const T* b[kConvTaps];
    for (int64_t j = 0; j < cols; j += kConvNr<T>) {
      const int64_t terms = p.s.taps() * depth, merged = p.gather.run;
      for (int64_t t = 0; t < n_taps; t++) b[t] = packed + j * terms + tap_at[t] * merged * kConvNr<T>;
      set_start(j);
      for (int64_t r = 0; r < n_rows; r += kConvMr<T>)
        tile_at(r, int(n_rows - r < kConvMr<T> ? n_rows - r : kConvMr<T>), j, from, to, b);
    }
    first = false;
  }
  void flush() {
    if (n_taps == 0 && !first) return;
    const int64_t run = p.gather.run;
    int64_t from = 0;
    do {
      const int64_t to = n_taps > 1 || run - from <= kConvDepth ? run : from + kConvDepth / 2;
      add(from, to);
      from = to;
    } while (from < run);
    n_taps = 0;
  }

  // The pixels [begin, end) of the phase, then all its taps.
  void run(const PhaseDim* dim, int64_t begin, int64_t end) {
    const int64_t grid[kConvDims] = {dim[0].count, dim[1].count, dim[2].count};
    const int64_t* full = p.mode == kConvForward ? p.s.y : p.s.x;
    n_rows = end - begin;
    ConvWalk at;
    at.start(grid, begin);
    for (int64_t i = 0; i < n_rows; i++, at.next()) {
      int64_t pixel = at.image, c[kConvDims];
      for (int d = 0; d < kConvDims; d++) {
        pixel = pixel * full[d] + dim[d].start + at.at[d] * dim[d].step;
        c[d] = at.at[d] * dim[d].scale;
      }
      out[i] = reinterpret_cast<T*>(p.dst) + pixel * total_cols + group * cols;
      source.set(i, at.image, c[0], c[1], c[2]);
    }
    const int64_t padded = (n_rows + kConvMr<T> - 1) / kConvMr<T> * kConvMr<T>;
    source.fill(n_rows, padded);
    int64_t k[kConvDims], o[kConvDims];
    const int64_t* taps = p.gather.taps;
    for (k[0] = 0; k[0] < taps[0]; k[0]++) {
      if (!PhaseDim::shift(p, 0, dim[0].start, k[0], &o[0])) continue;
      for (k[1] = 0; k[1] < taps[1]; k[1]++) {
        if (!PhaseDim::shift(p, 1, dim[1].start, k[1], &o[1])) continue;
        for (k[2] = 0; k[2] < taps[2]; k[2]++) {
          if (!PhaseDim::shift(p, 2, dim[2].start, k[2], &o[2])) continue;
          source.addresses(padded, o, table + n_taps * kConvRows);
          tap_at[n_taps++] = (k[0] * taps[1] + k[1]) * taps[2] + k[2];
          if (n_taps == kConvTaps || (n_taps + 1) * p.gather.run > kConvDepth) flush();
        }
      }
    }
    flush();
  }
};

template <class T>
void gather_units(const ConvPlan& p, int64_t begin, int64_t end) {
  const bool forward = p.mode == kConvForward;
  const int64_t* full = forward ? p.s.y : p.s.x;
  for (int64_t u = begin; u < end; u++) {
    int64_t at = u / p.s.groups / p.blocks;
    const int64_t group = u % p.s.groups, block = u / p.s.groups % p.blocks;
    PhaseDim dim[kConvDims];
    int64_t pixels = p.s.n;
    for (int d = kConvDims - 1; d >= 0; d--) {
      const int64_t start = at % p.phases[d], step = forward ? 1 : p.s.stride[d];
      at /= p.phases[d];
      dim[d] = {start, (full[d] - start + step - 1) / step, step, forward ? p.s.stride[d] : 1};
      pixels *= dim[d].count;
    }
    const int64_t from = block * kConvRows, to = from + kConvRows < pixels ? from + kConvRows : pixels;
    if (from >= to) continue;
    GatherUnit<T> unit(p, group);
    unit.run(dim, from, to);
  }
}

// Stage 0: the panels of kConvCols columns of a group.
template <class T>
void pack_units_of(const ConvPlan& p, int64_t begin, int64_t end) {
  const bool forward = p.mode == kConvForward;
  const int64_t cols = forward ? p.s.co : p.s.ci, depth = forward ? p.s.ci : p.s.co, taps = p.s.taps();
  const int64_t col_step = forward ? p.w_co : p.w_ci, row_step = forward ? p.w_ci : p.w_co;
  const int64_t col_blocks = (cols + kConvCols - 1) / kConvCols;
  for (int64_t u = begin; u < end; u++) {
    const int64_t g = u / col_blocks, j0 = u % col_blocks * kConvCols;
    const T* w = reinterpret_cast<const T*>(p.weight) + g * p.s.co * p.w_co;
    T* out = reinterpret_cast<T*>(p.packed) + (g * col_blocks * kConvCols + j0) * taps * depth;
    for (int64_t j = j0; j < cols && j < j0 + kConvCols; j += kConvNr<T>, out += kConvNr<T> * taps * depth) {
      const int width = int(cols - j < kConvNr<T> ? cols - j : kConvNr<T>);
      T* to = out;
      for (int64_t k0 = 0; k0 < p.s.k[0]; k0++)
        for (int64_t k1 = 0; k1 < p.s.k[1]; k1++)
          for (int64_t k2 = 0; k2 < p.s.k[2]; k2++, to += depth * kConvNr<T>)
            pack_panel(w + j * col_step + k0 * p.w_k[0] + k1 * p.w_k[1] + k2 * p.w_k[2], col_step, row_step, width, kConvNr<T>, depth, to);
    }
  }
}

template <class T>
int32_t conv_of(const ConvPlan& p, int64_t begin, int64_t end) {
  p.run.stage == 0 ? pack_units_of<T>(p, begin, end) : gather_units<T>(p, begin, end);
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(conv)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvPlan& p = *static_cast<const ConvPlan*>(plan);
  if (p.dtype == TT_F32) return conv_of<float>(p, begin, end);
  if (p.dtype == TT_F64) return conv_of<double>(p, begin, end);
  return conv_of<int64_t>(p, begin, end);
}

TT_KERNEL(conv_pad)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ConvPadPlan& p = *static_cast<const ConvPadPlan*>(plan);
  const int64_t width = p.width * p.pixel_bytes, left = (p.pad < p.width ? p.pad : p.width) * p.pixel_bytes;
  const int64_t inner = p.from * p.pixel_bytes < width - left ? p.from * p.pixel_bytes : width - left;
  for (int64_t r = begin; r < end; r++) {
    char* to = p.dst + r * width;
    __builtin_memset(to, 0, size_t(left));
    __builtin_memcpy(to + left, p.src + r * p.from * p.pixel_bytes, size_t(inner));
    __builtin_memset(to + left + inner, 0, size_t(width - left - inner));
  }
  return TT_OK;
}

TT_ENTRY_END
