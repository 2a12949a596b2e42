// Resizing by sums over windows (plan/resize_windows.h), one dimension after the other:
//
//   x     rows of the window, [in 1][pixel]
//           | combine_rows: sums of rows, as vectors
//   line  [kResizeLead + in 1 + kResizeLead][pixel], its ends repeated
//           | resize_line: sums of pixels
//   y     [out 1][pixel]
//
// or, if y is higher than x or of bytes, lines are copies of rows of x, their resized columns are
// held while rows of y read them, and rows are combined last; columns of bytes are in bytes.h. A
// pixel is an element, or with channels last all channels.
#pragma once

#include "kernels/cpu/resize/bytes.h"
#include "kernels/cpu/simd/room.h"
#include "kernels/cpu/simd/row_primitives.h"
#include "plan/resize_build.h"

TT_ISA_BEGIN

// ---- the table ----

template <class W> TT_NOINLINE void fill_windows(const ResizePlan& p, int d) {
  const ResizeTable<W> table(p, p.table, d);
  const ResizeAxis a = resize_axis(p, d);
  double largest = 0;
  for (int64_t o = 0; sizeof(W) == 4 && p.dtype == TT_U8 && o < p.out[d]; o++)
    largest = max(largest, largest_resize_weight(a, o));
  *table.shift = resize_shift(largest);
  for (int64_t o = 0; o < p.out[d]; o++) fill_resize_result(table, a, o, *table.shift);
}

// ---- sums ----

// y[i] = the sum of weight[k] row[k][i]
template <class T> TT_NOINLINE void combine_rows(T* TT_RESTRICT y, const T* const* row,
                                                 const T* weight, int64_t count, int64_t n,
                                                 int32_t) {
  constexpr int L = kLanes<T>;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    Vec<T> sum[4] = {};
    for (int64_t k = 0; k < count; k++) {
      const Vec<T> w = splat(weight[k]);
      const T* const x = row[k] + i;
      for (int v = 0; v < 4; v++) sum[v] = vfma(load(x + v * L), w, sum[v]);
    }
    for (int v = 0; v < 4; v++) store(y + i + v * L, sum[v]);
  }
  for (; i < n; i++) {
    T sum = 0;
    for (int64_t k = 0; k < count; k++) sum = vfma(row[k][i], weight[k], sum);
    y[i] = sum;
  }
}
// n: a constant where the block is whole
TT_INLINE void combine_bytes(uint8_t* TT_RESTRICT y, const uint8_t* const* row, int64_t at,
                             const int32_t* weight, int64_t count, int64_t n, int32_t shift) {
  alignas(64) int32_t sum[kSumBlock];
  for (int64_t j = 0; j < n; j++) sum[j] = 1 << (shift - 1);
  for (int64_t k = 0; k < count; k++) {
    const uint8_t* const x = row[k] + at;
    const int32_t w = weight[k];
    TT_VECTORIZE
    for (int64_t j = 0; j < n; j++) sum[j] += int32_t(x[j]) * w;
  }
  TT_VECTORIZE
  for (int64_t j = 0; j < n; j++)
    y[at + j] = uint8_t(clamp(sum[j] >> shift, int32_t(0), int32_t(255)));
}
TT_NOINLINE void combine_rows(uint8_t* y, const uint8_t* const* row, const int32_t* weight,
                              int64_t count, int64_t n, int32_t shift) {
  int64_t i = 0;
  for (; i + kSumBlock <= n; i += kSumBlock)
    combine_bytes(y, row, i, weight, count, kSumBlock, shift);
  if (i < n) combine_bytes(y, row, i, weight, count, n - i, shift);
}

// Columns [o, end) of y, one at a time; pixels are elements.
template <class T> TT_INLINE void resize_elements(T* y, const T* line, const ResizeTable<T>& t,
                                                  int64_t o, int64_t end) {
  for (; o < end; o++) {
    const T* const x = line + t.first[o];
    const T* const weight = &t.at(o, 0);
    T sum[2] = {};
    int64_t k = 0;
    for (; k + 2 <= t.count[o]; k += 2) {
      sum[0] = vfma(x[k], weight[k * t.tap_step], sum[0]);
      sum[1] = vfma(x[k + 1], weight[(k + 1) * t.tap_step], sum[1]);
    }
    if (k < t.count[o]) sum[0] = vfma(x[k], weight[k * t.tap_step], sum[0]);
    y[o] = sum[0] + sum[1];
  }
}
template <class T>
TT_NOINLINE void resize_line(T* y, const T* line, const ResizeTable<T>& t, int64_t out) {
  resize_elements(y, line, t, 0, out);
}
#if TT_VEC_BYTES > 16
// Resizes a line whose results are of four elements each, by permutations of two of its vectors.
TT_NOINLINE void resize_line(float* y, const float* line, const ResizeTable<float>& t,
                             int64_t out) {
  constexpr int L = kLanes<float>;
  static_assert(2 * L + 3 <= kResizeSlack);
  if (t.result_step != 1) return resize_elements(y, line, t, 0, out);
  int64_t o = 0;
  for (; o + L <= out; o += L) {
    const int32_t first = t.first[o];
    if (t.first[o + L - 1] - first >= 2 * L) {
      resize_elements(y, line, t, o, o + L);
      continue;
    }
    const Vec<int32_t> lanes = load(t.first + o) - splat(first);
    Vec<float> sum = {};
    for (int k = 0; k < 4; k++) {
      const float* const x = line + first + k;
      sum = vfma(permute(load(x), load(x + L), lanes), load(&t.at(o, k)), sum);
    }
    store(y + o, sum);
  }
  resize_elements(y, line, t, o, out);
}
#endif

// Pixels of several elements.
template <class T>
TT_INLINE void resize_pixel(T* y, const T* x, const ResizeTable<T>& t, int64_t o, int64_t pixel) {
  constexpr int L = kLanes<T>;
  int64_t c = 0;
  for (; c + L <= pixel; c += L) {
    Vec<T> sum = {};
    for (int64_t k = 0; k < t.count[o]; k++)
      sum = vfma(load(x + k * pixel + c), splat(t.at(o, k)), sum);
    store(y + c, sum);
  }
  for (; c < pixel; c++) {
    T sum = 0;
    for (int64_t k = 0; k < t.count[o]; k++) sum = vfma(x[k * pixel + c], t.at(o, k), sum);
    y[c] = sum;
  }
}
template <class T> TT_NOINLINE void resize_pixels(T* y, const T* line, const ResizeTable<T>& t,
                                                  int64_t out, int64_t pixel) {
  for (int64_t o = 0; o < out; o++)
    resize_pixel(y + o * pixel, line + t.first[o] * pixel, t, o, pixel);
}

// ---- rows ----

template <class E, class W> class WindowRows {
  static constexpr bool kBytes = sizeof(E) == 1;

 public:
  explicit WindowRows(const ResizePlan& p)
      : p_(p),
        pixel_(p.channels_last ? p.c : 1),
        taps_(resize_taps(resize_axis(p, 0))),
        held_rows_(resize_held_rows(p)),
        rows_(p, p.table, 0),
        columns_(p, p.table, 1),
        room_(p.rooms) {
    const int64_t item = int64_t(sizeof(E));
    const int64_t line = resize_line_bytes(p, pixel_);
    char* at = room_.as<char>();
    line_ = reinterpret_cast<E*>(at) + kResizeLead * pixel_;
    for (int64_t i = 0; !kBytes && i < kResizeSlack; i++)
      line_[(p.in[1] + kResizeLead) * pixel_ + i] = E(0);
    at += round_up(line, 64);
    held_ = reinterpret_cast<E*>(at);
    at += round_up(held_rows_ * p.out[1] * pixel_ * item, 64);
    row_ = reinterpret_cast<const E**>(at);
    number_ = reinterpret_cast<int64_t*>(at + 8 * taps_);
  }

  // A tile of rows of a plane.
  void unit(int64_t u) {
    const int64_t plane = u / p_.n_tiles;
    const int64_t from = u % p_.n_tiles * p_.rows;
    const int64_t to = min(from + p_.rows, p_.out[0]);
    x_ = reinterpret_cast<const E*>(p_.x) + plane * p_.in[0] * p_.in[1] * pixel_;
    E* y = reinterpret_cast<E*>(p_.y) + (plane * p_.out[0] + from) * p_.out[1] * pixel_;
    for (int64_t k = 0; k < taps_; k++) number_[k] = -1;
    for (int64_t o = from; o < to; o++, y += p_.out[1] * pixel_) {
      for (int64_t k = 0; k < rows_.count[o]; k++)
        row_[k] = row_of(clamp<int64_t>(rows_.first[o] + k, 0, p_.in[0] - 1));
      if (held_rows_) combine(y, o, p_.out[1]);
      else if constexpr (!kBytes) {
        combine(line_, o, p_.in[1]);
        resize(y);
      }
    }
  }

 private:
  void combine(E* to, int64_t o, int64_t width) const {
    combine_rows(to, row_, &rows_.at(o, 0), rows_.count[o], width * pixel_, *rows_.shift);
  }
  // Resizes the line.
  void resize(E* to) {
    const int64_t n = kResizeLead * pixel_;
    E* const end = line_ + p_.in[1] * pixel_;
    for (int64_t i = 0; i < n; i++) {
      line_[i - n] = line_[i % pixel_];
      end[i] = end[i % pixel_ - pixel_];
    }
    if (pixel_ == 1) resize_line(to, line_, columns_, p_.out[1]);
    else resize_pixels(to, line_, columns_, p_.out[1], pixel_);
  }
  // Row `number` of x, with resized columns if those are held.
  const E* row_of(int64_t number) {
    if constexpr (kBytes) return byte_row_of(number);
    else return number_row_of(number);
  }
  const E* byte_row_of(int64_t number) {
    const int64_t group = number / kResizeGroup;
    const int64_t place = group % (held_rows_ / kResizeGroup);
    const int64_t width = p_.out[1] * pixel_;
    E* const held = held_ + place * kResizeGroup * width;
    if (number_[place] != group) {
      number_[place] = group;
      const int64_t first = group * kResizeGroup;
      ByteColumns(p_, room_.as<char>())
          .resize(held, x_ + first * p_.in[1] * pixel_, min(p_.in[0] - first, kResizeGroup));
    }
    return held + number % kResizeGroup * width;
  }
  const E* number_row_of(int64_t number) {
    const int64_t width = p_.in[1] * pixel_;
    const E* const x = x_ + number * width;
    if (!held_rows_) return x;
    const int64_t place = number % held_rows_;
    E* const held = held_ + place * p_.out[1] * pixel_;
    if (number_[place] == number) return held;
    number_[place] = number;
    memcpy(line_, x, size_t(width) * sizeof(E));
    resize(held);
    return held;
  }

  const ResizePlan& p_;
  const int64_t pixel_, taps_, held_rows_;
  const ResizeTable<W> rows_, columns_;
  const Room room_;
  const E* x_ = nullptr;
  E* line_;          // its first pixel
  E* held_;          // [held_rows_][out 1][pixel]
  const E** row_;    // of the current window
  int64_t* number_;  // of the rows that are held; of bytes, of groups
};

// ---- backward ----

// The gradient of n adjacent channels; pixels are `step` elements apart.
template <class T>
TT_NOINLINE void spread_windows(const ResizePlan& p, const T* g, T* dx, int64_t step, int64_t n) {
  const ResizeTable<T> rows(p, p.table, 0);
  const ResizeTable<T> columns(p, p.table, 1);
  const Room room(p.rooms);
  T* const begin = room.as<T>();
  T* const line = begin + kResizeLead * n;
  const int64_t width = p.in[1];
  for (int64_t i = 0; i < p.in[0] * width; i++)
    for (int64_t c = 0; c < n; c++) dx[i * step + c] = 0;
  for (int64_t o = 0; o < p.out[0]; o++) {
    for (int64_t i = 0; i < (width + 2 * kResizeLead) * n; i++) begin[i] = 0;
    for (int64_t j = 0; j < p.out[1]; j++, g += step)
      for (int64_t k = 0; k < columns.count[j]; k++) {
        T* const to = line + (columns.first[j] + k) * n;
        const T w = columns.at(j, k);
        TT_VECTORIZE
        for (int64_t c = 0; c < n; c++) to[c] = vfma(g[c], w, to[c]);
      }
    for (int64_t i = 1; i <= kResizeLead; i++)
      for (int64_t c = 0; c < n; c++) {
        line[c] += line[c - i * n];
        line[(width - 1) * n + c] += line[(width - 1 + i) * n + c];
      }
    for (int64_t k = 0; k < rows.count[o]; k++) {
      const int64_t row = clamp<int64_t>(rows.first[o] + k, 0, p.in[0] - 1);
      T* const to = dx + row * width * step;
      const T w = rows.at(o, k);
      if (step == 1) {
        TT_VECTORIZE
        for (int64_t i = 0; i < width; i++) to[i] = vfma(line[i], w, to[i]);
        continue;
      }
      for (int64_t i = 0; i < width; i++)
        for (int64_t c = 0; c < n; c++)
          to[i * step + c] = vfma(line[i * n + c], w, to[i * step + c]);
    }
  }
}

TT_ISA_END
