// The windows of resizing: the elements of x that each result of a dimension reads, and their
// weights, computed in double precision. Also device code.
#pragma once

#include "base/arith.h"
#include "plan/resize_plan.h"

namespace TT_NS {

// As in base/arith.h, whose functions are not device code.
TT_FN int64_t bounded(int64_t x, int64_t low, int64_t high) {
  if (x < low) return low;
  return x > high ? high : x;
}
TT_FN double bounded(double x, double low, double high) {
  if (x < low) return low;
  return x > high ? high : x;
}
TT_FN int64_t whole_lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

TT_FN bool is_antialiased(int32_t mode) { return mode >= kResizeSmoothLinear; }
TT_FN bool is_cubic(int32_t mode) { return mode == kResizeCubic || mode == kResizeSmoothCubic; }

// One dimension. merged: elements beyond the ends of x have no places of their own in a window;
// their weights are added to that of the end. copies: results are copies, where a dimension keeps
// its size, but for floats in the bicubic mode.
struct ResizeAxis {
  int32_t mode, align;
  bool merged, copies;
  int64_t in, out;
  double scale;  // in / out
};
TT_FN ResizeAxis resize_axis(const ResizePlan& p, int d) {
  const bool bytes = p.dtype == TT_U8;
  const bool copies = p.in[d] == p.out[d] && (bytes || p.mode != kResizeCubic);
  return {p.mode, p.align, bytes, copies, p.in[d], p.out[d], p.scale[d]};
}
// The axis of a float image whose windows are merged, for exporters.
TT_FN ResizeAxis merged_axis(int64_t mode, bool align, int64_t in, int64_t out, double scale) {
  return {int32_t(mode), align, true, in == out && mode != kResizeCubic, in, out, scale};
}

TT_FN bool is_nearest(int64_t mode) { return mode < kResizeCubic && mode != kResizeLinear; }
// floor(x), at most n - 1, for x >= 0.
TT_FN int32_t floor_index(double x, int64_t n) {
  const double at = double(float(x));
  return at < double(n) ? int32_t(at) : int32_t(n - 1);
}
// The element that result o copies, in the nearest modes. It is computed in T, as in PyTorch.
template <class T> TT_FN int32_t nearest_element(const ResizeAxis& a, int64_t o) {
  if (a.mode == kResizeNearest && a.out == a.in) return int32_t(o);
  if (a.mode == kResizeNearest && a.out == 2 * a.in) return int32_t(o / 2);
  const T position = a.mode == kResizeNearestExact ? T(o) + T(0.5) : T(o);
  return floor_index(double(T(a.scale) * position), a.in);
}

// A result reads elements [first, first + count); those before the first one and behind the last
// one are the elements at the ends.
struct ResizeWindow {
  int64_t first, count;
  double position;  // of the result, in elements
};

// Elements on each side of a position that the filter reaches.
TT_FN double resize_reach(const ResizeAxis& a) {
  const double reach = is_cubic(a.mode) ? 2 : 1;
  return a.scale > 1 ? reach * a.scale : reach;
}
// The largest count of a window.
TT_FN int64_t resize_taps(const ResizeAxis& a) {
  if (!is_antialiased(a.mode)) return is_cubic(a.mode) ? 4 : 2;
  const double most = 2 * (resize_reach(a) + 1) + 1;
  return most < double(a.in) ? int64_t(most) : a.in;
}

// The window of antialiasing is that of PIL.
TT_FN ResizeWindow antialiased_window(const ResizeAxis& a, int64_t o) {
  const double in = double(a.in);
  const double reach = resize_reach(a);
  ResizeWindow w;
  w.position = a.scale * (double(o) + 0.5);
  w.first = int64_t(bounded(w.position - reach + 0.5, 0.0, in));
  w.count = int64_t(bounded(w.position + reach + 0.5, 0.0, in)) - w.first;
  return w;
}
TT_FN ResizeWindow resize_window(const ResizeAxis& a, int64_t o) {
  if (a.copies) return {o, 1, double(o)};
  if (is_antialiased(a.mode)) return antialiased_window(a, o);
  double at = a.align ? a.scale * double(o) : a.scale * (double(o) + 0.5) - 0.5;
  at = bounded(at, is_cubic(a.mode) ? -0.5 : 0.0, double(a.in));
  const int64_t low = int64_t(at + 1) - 1;  // rounded down
  ResizeWindow w = {low, 2, at};
  if (is_cubic(a.mode)) w = {low - 1, 4, at};
  if (!a.merged) return w;
  const int64_t end = bounded(w.first + w.count, 0, a.in);
  w.first = bounded(w.first, 0, a.in - 1);
  w.count = end > w.first ? end - w.first : 1;
  return w;
}

// Keys' kernel, -3/4 of PyTorch's bicubic mode or -1/2 of PIL's antialiasing.
TT_FN double keys_weight(double distance, double a) {
  const double x = distance < 0 ? -distance : distance;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}
TT_FN double triangle_weight(double distance) {
  const double x = distance < 0 ? -distance : distance;
  return x < 1 ? 1 - x : 0;
}
// The weight of element i, which may be beyond the ends.
TT_FN double weight_at(const ResizeAxis& a, const ResizeWindow& w, int64_t i) {
  if (is_antialiased(a.mode)) {
    const double distance = (double(i) - w.position + 0.5) / (a.scale > 1 ? a.scale : 1);
    return is_cubic(a.mode) ? keys_weight(distance, -0.5) : triangle_weight(distance);
  }
  const double distance = w.position - double(i);
  return is_cubic(a.mode) ? keys_weight(distance, -0.75) : triangle_weight(distance);
}
// The weight of element k of the window; those of antialiasing are not normalised yet.
TT_FN double resize_weight(const ResizeAxis& a, const ResizeWindow& w, int64_t k) {
  if (a.copies) return 1;
  const int64_t i = w.first + k;
  double weight = weight_at(a, w, i);
  if (!a.merged || is_antialiased(a.mode)) return weight;
  for (int64_t beyond = 1; beyond <= 3; beyond++) {
    if (i == 0) weight += weight_at(a, w, -beyond);
    if (i == a.in - 1) weight += weight_at(a, w, i + beyond);
  }
  return weight;
}
// What the weights of a window are divided by.
TT_FN double resize_total(const ResizeAxis& a, const ResizeWindow& w) {
  if (!is_antialiased(a.mode) || a.copies) return 1;
  double total = 0;
  for (int64_t k = 0; k < w.count; k++) total += resize_weight(a, w, k);
  return total == 0 ? 1 : total;
}

// Weights of bytes are 16-bit integers times the smallest power of two with which they fit, as in
// PyTorch. Returns the exponent of that power.
TT_FN int32_t resize_shift(double largest) {
  int32_t bits = 0;
  double unit = 1;
  while (bits < 22 && double(int64_t(2 * unit * largest + 0.5)) < 0x1p15) {
    unit *= 2;
    bits++;
  }
  return bits;
}
TT_FN int32_t resize_rounded(double weight, int32_t shift) {
  const double scaled = weight * double(int64_t(1) << shift);
  return int32_t(scaled + (scaled < 0 ? -0.5 : 0.5));
}

// The table of a dimension, in memory of resize_axis_bytes(). W: float, double, or int32_t of
// bytes. Weights of one window are adjacent, those of cubic columns one row of results apart.
constexpr int64_t kResizeHead = 64;
TT_FN int64_t resize_axis_bytes(const ResizePlan& p, int d) {
  const int64_t item = p.dtype == TT_F64 ? 8 : 4;
  const int64_t weights = p.out[d] * resize_taps(resize_axis(p, d)) * item;
  return kResizeHead + whole_lines(p.out[d] * 8) + whole_lines(weights);
}
template <class W> struct ResizeTable {
  int32_t* shift;  // of weights of bytes
  int32_t* first;
  int32_t* count;
  W* weight;
  int64_t result_step, tap_step;

  TT_FN ResizeTable(const ResizePlan& p, char* memory, int d) {
    if (d) memory += resize_axis_bytes(p, 0);
    shift = reinterpret_cast<int32_t*>(memory);
    first = reinterpret_cast<int32_t*>(memory + kResizeHead);
    count = first + p.out[d];
    weight = reinterpret_cast<W*>(memory + kResizeHead + whole_lines(p.out[d] * 8));
    const bool rows_of_taps = d == 1 && p.mode == kResizeCubic;
    result_step = rows_of_taps ? 1 : resize_taps(resize_axis(p, d));
    tap_step = rows_of_taps ? p.out[d] : 1;
  }
  TT_FN W& at(int64_t o, int64_t k) const { return weight[o * result_step + k * tap_step]; }
};
// Fills the row of result o; `shift` matters for bytes.
TT_FN float resize_stored(float, double weight, int32_t) { return float(weight); }
TT_FN double resize_stored(double, double weight, int32_t) { return weight; }
TT_FN int32_t resize_stored(int32_t, double weight, int32_t shift) {
  return resize_rounded(weight, shift);
}
template <class W> TT_FN void fill_resize_result(const ResizeTable<W>& table, const ResizeAxis& a,
                                                 int64_t o, int32_t shift) {
  const ResizeWindow w = resize_window(a, o);
  const double total = resize_total(a, w);
  table.first[o] = int32_t(w.first);
  table.count[o] = int32_t(w.count);
  for (int64_t k = 0; k < w.count; k++)
    table.at(o, k) = resize_stored(W(), resize_weight(a, w, k) / total, shift);
}
// The largest weight of result o.
TT_FN double largest_resize_weight(const ResizeAxis& a, int64_t o) {
  const ResizeWindow w = resize_window(a, o);
  const double total = resize_total(a, w);
  double largest = 0;
  for (int64_t k = 0; k < w.count; k++) {
    const double weight = resize_weight(a, w, k) / total;
    if (weight > largest) largest = weight;
  }
  return largest;
}

}  // namespace TT_NS
