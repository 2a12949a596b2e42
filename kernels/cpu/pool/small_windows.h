// The backward of pool_max for small windows of planes: no gradient is added through an index.
// Small planes are side by side in one long row, each between columns of padding. Column i of this
// row is element [i % stride][i / stride] of a line, so that the elements of adjacent windows at
// one tap are adjacent.
//
//   x            rows of the planes
//     | enter    each row once; padding is -inf
//   lines        [span of a window][line]
//     | fold     the rows of a window
//   best, row    [line]: the largest element of each column, and its row in the window
//     | join     the columns of a window
//   tap          [pitch], per window: row * kernel + column of its maximum
//     | add      the gradient of each window to the element at its tap, in the order of the windows
//   sums         [span of a window][line]
//     | leave    each row once
//   dx
#pragma once

#include "kernels/cpu/pool/pool.h"

TT_ISA_BEGIN

// Whether stage 2 of a plan has windows of this kind.
TT_INLINE bool has_small_windows(const PoolPlan& p) {
  const int64_t high = (p.kernel[0] - 1) * p.dilation[0];
  const int64_t wide = (p.kernel[1] - 1) * p.dilation[1];
  const bool small = (high < 16) & (wide < 16) & (p.kernel[0] * p.kernel[1] <= 64);
  return small & (p.stride[1] <= 2) & !p.adaptive & !p.halving & !p.channels_last & !p.index &
         (p.dtype == TT_F32) & (p.run.stage == 2);
}

struct SmallWindows {
  using V = Vec<float>;
  using Rows = Vec<int32_t>;
  static constexpr int64_t L = kLanes<float>;
  static constexpr int64_t kRoom = 2048;      // elements of `lines`
  static constexpr int64_t kLine = 1024;      // elements of a line
  static constexpr int64_t kMaxSpan = 16;     // rows or columns that a window spans
  static constexpr int32_t kNoRow = 1 << 20;  // the row of padding

  const PoolPlan& p;
  int64_t span[2];                          // of a window
  int64_t room;                             // the largest pitch
  int64_t phase[kMaxSpan], away[kMaxSpan];  // of column k of window 0: element [phase][away]

  // The current group: planes from tile.image on, or columns of one plane.
  PoolTile tile;
  int64_t planes;
  int64_t width;         // columns of a plane
  int64_t origin;        // the column of x that is column 0 of a line
  int64_t first, count;  // windows [first, first + count) of each row of windows
  int64_t pitch, line;

  alignas(64) float lines[kRoom];
  alignas(64) float sums[kRoom];
  alignas(64) float best[kLine + kMaxSpan + L];
  alignas(64) int32_t row[kLine + kMaxSpan + L];
  alignas(64) int32_t first_row[kLine];  // 0, or kNoRow where each line has padding
  alignas(64) int32_t tap[kMaxSpan + kLine];
  alignas(64) float grad[kMaxSpan + kLine];

  explicit SmallWindows(const PoolPlan& plan) : p(plan) {
    for (int d = 0; d < 2; d++) span[d] = (p.kernel[d] - 1) * p.dilation[d] + 1;
    const int64_t step = p.stride[1];
    room = min(kRoom / span[0], kLine) / step / L * L;
    for (int64_t k = 0; k < p.kernel[1]; k++) {
      phase[k] = k * p.dilation[1] % step;
      away[k] = k * p.dilation[1] / step;
    }
  }
  // Columns of dx whose windows are sure to fit.
  TT_INLINE int64_t columns() const { return (room - 2) * p.stride[1] - 2 * span[1]; }

  static TT_INLINE void copy(float* to, const float* from, int64_t n) {
    for (; n > L; n -= L, to += L, from += L) {
      TT_KEEP_ORDER;  // no call of memcpy
      store(to, load(from));
    }
    store(to, load(from, Part<float>(int(n))), Part<float>(int(n)));
  }
  // Element i of a line.
  TT_INLINE float* at(float* a_line, int64_t i) const {
    return p.stride[1] == 1 ? a_line + i : a_line + i % 2 * pitch + i / 2;
  }
  // Copies n columns of x to a line, the first one to column i.
  TT_INLINE void deal(float* to, const float* x, int64_t i, int64_t n) const {
    float* even = at(to, i);
    if (p.stride[1] == 1) return copy(even, x, n);
    float* odd = at(to, i + 1);
    const int64_t m = n / 2;
    if (n % 2) even[m] = x[n - 1];
    if (m < L) return deal_few(even, odd, x, m);
    for (int64_t j = 0;; j = min(j + L, m - L)) {
      const V low = load(x + 2 * j);
      const V high = load(x + 2 * j + L);
      store(even + j, every_second<0, float, L>(low, high));
      store(odd + j, every_second<1, float, L>(low, high));
      if (j + L >= m) return;
    }
  }
  static TT_NOINLINE void deal_few(float* even, float* odd, const float* x, int64_t m) {
    for (int64_t j = 0; j < m; j++) {
      TT_SCALAR_LOOP;
      even[j] = x[2 * j];
      odd[j] = x[2 * j + 1];
    }
  }
  // Copies n columns of a line to dx, from column i on.
  TT_INLINE void collect(float* to, float* from, int64_t i, int64_t n) const {
    const float* even = at(from, i);
    if (p.stride[1] == 1) return copy(to, even, n);
    const float* odd = at(from, i + 1);
    const int64_t m = n / 2;
    if (n % 2) to[n - 1] = even[m];
    if (m < L) return collect_few(to, even, odd, m);
    for (int64_t j = 0;; j = min(j + L, m - L)) {
      const V low = load(even + j);
      const V high = load(odd + j);
      store(to + 2 * j, interleave<0, float, L>(low, high));
      store(to + 2 * j + L, interleave<1, float, L>(low, high));
      if (j + L >= m) return;
    }
  }
  static TT_NOINLINE void collect_few(float* to, const float* even, const float* odd, int64_t m) {
    for (int64_t j = 0; j < m; j++) {
      TT_SCALAR_LOOP;
      to[2 * j] = even[j];
      to[2 * j + 1] = odd[j];
    }
  }

  TT_INLINE int64_t slot(int64_t r) const { return r % span[0] * line; }
  TT_INLINE const float* plane_row(const char* x, int64_t m, int64_t r) const {
    return reinterpret_cast<const float*>(x) + ((tile.image + m) * p.in[0] + r) * p.in[1];
  }
  TT_NOINLINE void enter(int64_t r) {
    float* to = lines + slot(r);
    const int64_t n = end() - begin();
    for (int64_t m = 0; m < planes && n > 0; m++)
      deal(to, plane_row(p.x, m, r) + begin(), m * width + begin() - origin, n);
    float* sum = sums + slot(r);
    for (int64_t i = 0; i < line; i += L) store(sum + i, V{});
  }
  TT_NOINLINE void leave(int64_t r) {
    if ((r < tile.from) | (r >= tile.to)) return;
    for (int64_t m = 0; m < planes; m++) {
      float* to = const_cast<float*>(plane_row(p.y, m, r)) + tile.left;
      collect(to, sums + slot(r), m * width + tile.left - origin, tile.right - tile.left);
    }
  }

  // The largest element of each column of `rows` rows from r on, and its row.
  TT_NOINLINE void fold(int64_t r, int64_t rows) {
    const float* from[kMaxSpan];
    for (int64_t k = 0; k < rows; k++) from[k] = lines + slot(r + k * p.dilation[0]);
    for (int64_t i = 0; i < line; i += L) {
      V top = load(from[0] + i);
      Rows at = load(first_row + i);
      for (int64_t k = 1; k < rows; k++) {
        const V v = load(from[k] + i);
        const auto wins = (v > top) | (v != v);
        top = chosen(wins, v, top);
        at = chosen(wins, splat(int32_t(k)), at);
      }
      store(best + i, top);
      store(row + i, at);
    }
  }
  // The taps of all windows. `top`: the row of a window that is row 0 of fold().
  TT_NOINLINE void join(int64_t top) {
    const int64_t n = p.kernel[1];
    for (int64_t j = 0; j < pitch; j += L) {
      V most = load(best + j);
      Rows high = load(row + j);
      Rows across = {};
      for (int64_t k = 1; k < n; k++) {
        const int64_t at = phase[k] * pitch + away[k] + j;
        const V v = load(best + at);
        const Rows r = load(row + at);
        const auto wins =
            (v > most) | ((v == most) & (r < high)) | ((v != v) & ((most == most) | (r >= high)));
        most = chosen(wins, v, most);
        high = chosen(wins, r, high);
        across = chosen(wins, splat(int32_t(k)), across);
      }
      store(tap + kMaxSpan + j, (high + splat(int32_t(top))) * splat(int32_t(n)) + across);
    }
  }
  // Adds the gradients of the windows whose maximum is in row k of the window to the sums there.
  TT_NOINLINE void add(float* to, int64_t k) {
    const int64_t n = p.kernel[1];
    for (int64_t part = 0; part < p.stride[1]; part++) {
      int64_t its[kMaxSpan];
      int64_t m = 0;
      for (int64_t c = n - 1; c >= 0; c--)
        if (phase[c] == part) its[m++] = c;
      float* d = to + part * pitch;
      for (int64_t i = 0; m && i < pitch; i += L) {
        V sum = load(d + i);
        for (int64_t c = 0; c < m; c++) {
          const int64_t at = kMaxSpan - away[its[c]] + i;
          const auto is_here = load(tap + at) == splat(int32_t(k * n + its[c]));
          sum += chosen(is_here, load(grad + at), V{});
        }
        store(d + i, sum);
      }
    }
  }

  // Rows of windows [from, end) of the group.
  void windows(int64_t from, int64_t end) {
    int64_t done = min(tile.from, max<int64_t>(from * p.stride[0] - p.pad[0], 0));
    int64_t ahead = done;
    const int64_t slots = width / p.stride[1];
    for (int64_t o = from; o < end; o++) {
      const int64_t begin = o * p.stride[0] - p.pad[0];
      for (; done < begin; done++) {
        if (done == ahead) enter(ahead++);
        leave(done);
      }
      for (; ahead < min(begin + span[0], p.in[0]); ahead++) enter(ahead);
      const int64_t top = begin < 0 ? ceil_div(-begin, p.dilation[0]) : 0;
      const int64_t low = min(p.kernel[0], ceil_div(p.in[0] - begin, p.dilation[0]));
      if (top >= low) continue;
      for (int64_t m = 0; m < planes; m++) {
        const float* g = reinterpret_cast<const float*>(p.g);
        g += ((tile.image + m) * p.out[0] + o) * p.out[1] + first;
        copy(grad + kMaxSpan + m * slots, g, count);
      }
      fold(begin + top * p.dilation[0], low - top);
      join(top);
      for (int64_t k = top; k < low; k++) add(sums + slot(begin + k * p.dilation[0]), k);
    }
    for (; done < tile.to; done++) {
      if (done == ahead) enter(ahead++);
      leave(done);
    }
  }
  // Computes columns [left, right) of a tile of dx, or of n_planes adjacent planes.
  TT_NOINLINE void group(const PoolTile& t, int64_t left, int64_t right, int64_t n_planes) {
    const int64_t step = p.stride[1];
    const PoolRange over = windows_over(p, 1, left, right);
    tile = t;
    tile.left = left;
    tile.right = right;
    planes = n_planes;
    first = min(over.first, (left + p.pad[1]) / step);
    count = max<int64_t>(over.end - first, 0);
    origin = first * step - p.pad[1];
    width = round_up(max(right - origin, (count - 1) * step + span[1]), step);
    pitch = round_up(planes * (width / step), L);
    line = step * pitch;
    clear();
    const PoolRange rows = windows_over(p, 0, t.from, t.to);
    windows(rows.first, rows.end);
  }
  // Fills the lines of a group with padding.
  TT_INLINE void clear() {
    for (int64_t i = 0; i < span[0] * line; i += L) store(lines + i, splat(-float(kInf)));
    for (int64_t i = 0; i < line; i += L) store(first_row + i, splat(kNoRow));
    for (int64_t i = line; i < line + kMaxSpan + L; i += L) {
      store(best + i, V{});
      store(row + i, Rows{});
    }
    for (int64_t i = 0; i < kMaxSpan + pitch; i += L) {
      store(tap + i, Rows{});
      store(grad + i, V{});
    }
    for (int64_t m = 0; m < planes; m++)
      for (int64_t i = begin(); i < end(); i++) {
        TT_SCALAR_LOOP;
        const int64_t c = m * width + i - origin;
        first_row[c % p.stride[1] * pitch + c / p.stride[1]] = 0;
      }
  }
  // The columns of x that the windows of the group cover.
  TT_INLINE int64_t begin() const { return max<int64_t>(origin, 0); }
  TT_INLINE int64_t end() const {
    return min(p.in[1], origin + (count - 1) * p.stride[1] + span[1]);
  }
  // Units [from, to) of stage 2.
  void units(int64_t from, int64_t to) {
    const int64_t step = p.stride[1];
    const int64_t wide = max(p.in[1] + p.pad[1], (p.out[1] - 1) * step + span[1]);
    const int64_t together = whole(p.dx_tiles) ? room / ceil_div(wide, step) : 0;
    for (int64_t u = from; u < to;) {
      const PoolTile t = pool_tile(p.dx_tiles, p.in, u);
      const int64_t n = clamp<int64_t>(to - u, 1, max<int64_t>(together, 1));
      const int64_t part = together ? p.in[1] : columns();
      for (int64_t left = t.left; left < t.right; left += part)
        group(t, left, min(left + part, t.right), n);
      u += n;
    }
  }
};

TT_ISA_END
