// Positions of grid_sample along one dimension: the elements around them and their weights, or the
// weights' derivatives by the number in the grid.
#pragma once

#include "kernels/functors/math.h"
#include "plan/grid_plan.h"

TT_FUNCTORS_BEGIN

constexpr int kAxisTaps = 4;

// A position along one dimension, in elements, and its derivative by the number in the grid.
template <class T> struct Position { T at, slope; };

// Up to four elements along one dimension, -1 outside, and their weights.
template <class T> struct AxisTaps {
  int n;
  int64_t index[kAxisTaps];
  T weight[kAxisTaps];
};

template <class T> TT_FN Position<T> clipped(Position<T> p, int64_t size) {
  const T last = T(size - 1);
  if (!(p.at > 0)) return {0, 0};  // nan, too
  if (p.at >= last) return {last, 0};
  return p;
}
template <class T> TT_FN Position<T> reflected(Position<T> p, int64_t size, bool align) {
  const T low = align ? T(0) : T(-0.5);
  const T span = align ? T(size - 1) : T(size);
  if (span == 0) return {0, 0};
  T distance = p.at - low;
  if (distance < 0) {
    distance = -distance;
    p.slope = -p.slope;
  }
  const T flips = math::floor(distance / span);
  const T rest = distance - flips * span;
  const bool odd = T(2) * math::floor(flips / 2) != flips;
  if (!odd) return {rest + low, p.slope};
  return {span - rest + low, -p.slope};
}
template <class T> TT_FN Position<T> padded(Position<T> p, const GridPlan& plan, int64_t size) {
  if (plan.padding == kGridZeros) return p;
  if (plan.padding == kGridReflection) p = reflected(p, size, plan.align);
  return clipped(p, size);
}
// Replaces nan and what an index cannot hold by a position outside. Where padding moves the
// elements around a position inside, any finite one is kept: limit is infinite then.
template <class T> TT_FN Position<T> representable(Position<T> p, double limit = 0x1p31) {
  const bool good = math::fabs(double(p.at)) < limit;
  return good ? p : Position<T>{T(-100), 0};
}
// 0, or nan at a position that is not finite: what it adds to the weights of elements.
template <class T> TT_FN T undefined(T at) { return at - at; }
template <class T> TT_FN int64_t index_of(T at, int64_t size) {
  return at >= 0 && at <= T(size - 1) ? int64_t(at) : -1;
}
template <class T> TT_FN T power(T x, int n) {
  T y = 1;
  for (int i = 0; i < n; i++) y *= x;
  return y;
}

// The k-th derivatives of Keys' kernel with a = -3/4 at distances d in [0, 1] and in [1, 2].
template <class T> TT_FN T cubic_near(T d, int k) {
  const T a = T(-0.75);
  if (k == 0) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (k == 1) return (3 * (a + 2) * d - 2 * (a + 3)) * d;
  if (k == 2) return 6 * (a + 2) * d - 2 * (a + 3);
  return k == 3 ? 6 * (a + 2) : T(0);
}
template <class T> TT_FN T cubic_far(T d, int k) {
  const T a = T(-0.75);
  if (k == 0) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  if (k == 1) return (3 * a * d - 10 * a) * d + 8 * a;
  if (k == 2) return 6 * a * d - 10 * a;
  return k == 3 ? 6 * a : T(0);
}

template <class T> TT_FN void nearest_taps(Position<T> p, const GridPlan& plan, int64_t size,
                                           int order, AxisTaps<T>* taps) {
  const Position<T> at = representable(padded(p, plan, size));
  const double rounded = double(at.at) + 0x1.8p52 - 0x1.8p52;  // halves to even
  taps->n = 1;
  taps->index[0] = index_of(T(rounded), size);
  taps->weight[0] = order ? T(0) : T(1);
}
template <class T> TT_FN void linear_taps(Position<T> p, const GridPlan& plan, int64_t size,
                                          int order, AxisTaps<T>* taps) {
  const Position<T> inside = padded(p, plan, size);
  const Position<T> at = representable(inside);
  const T low = math::floor(at.at);
  const T rest = at.at - low;
  const T slope = order == 1 ? at.slope : T(0);
  const T odd = order ? T(0) : undefined(inside.at);
  taps->n = 2;
  for (int k = 0; k < 2; k++) taps->index[k] = index_of(low + T(k), size);
  taps->weight[0] = order ? -slope : 1 - rest + odd;
  taps->weight[1] = order ? slope : rest + odd;
}
template <class T> TT_FN void cubic_taps(Position<T> p, const GridPlan& plan, int64_t size,
                                         int order, AxisTaps<T>* taps) {
  const Position<T> at = representable(p, plan.padding == kGridZeros ? 0x1p31 : kInf);
  const T low = math::floor(at.at);
  const T rest = at.at - low;
  const T scale = power(at.slope, order);
  const T mirrored = order % 2 ? -scale : scale;  // distances to later elements decrease
  const T odd = order ? T(0) : undefined(p.at);
  taps->n = 4;
  taps->weight[0] = cubic_far(rest + 1, order) * scale + odd;
  taps->weight[1] = cubic_near(rest, order) * scale;
  taps->weight[2] = cubic_near(1 - rest, order) * mirrored;
  taps->weight[3] = cubic_far(2 - rest, order) * mirrored;
  for (int k = 0; k < 4; k++)
    taps->index[k] = index_of(padded(Position<T>{low + T(k - 1), 0}, plan, size).at, size);
}

// The position along dimension d of a number in the grid.
template <class T> TT_FN Position<T> position_of(const GridPlan& plan, T number, int d) {
  const int64_t size = plan.in[d];
  const T factor = (plan.align ? T(size - 1) : T(size)) / 2;
  return {(number + 1) * factor - (plan.align ? T(0) : T(0.5)), factor};
}

// Sets axis[kGridDims] to the taps of a point, whose numbers of the last dimension come first.
template <class T>
TT_FN void point_taps(const GridPlan& plan, const T* numbers, AxisTaps<T>* axis) {
  for (int d = 0; d < kGridDims; d++) {
    AxisTaps<T>* const taps = &axis[d];
    if (d < kGridDims - plan.dims) {
      taps->n = 1;
      taps->index[0] = 0;
      taps->weight[0] = 1;
      continue;
    }
    const int64_t size = plan.in[d];
    const Position<T> p = position_of(plan, numbers[kGridDims - 1 - d], d);
    if (plan.mode == kGridNearest) nearest_taps(p, plan, size, plan.order[d], taps);
    else if (plan.mode == kGridLinear) linear_taps(p, plan, size, plan.order[d], taps);
    else cubic_taps(p, plan, size, plan.order[d], taps);
  }
}

TT_FUNCTORS_END
