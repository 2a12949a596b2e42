// Groups of real matrices: as many at once as a vector of doubles has lanes, one in each. Every
// matrix gets the bits that it gets by itself.
#pragma once

#include "kernels/cpu/linalg/dense.h"
#include "kernels/cpu/simd/room.h"
#include "kernels/cpu/simd/transpose.h"

TT_ISA_BEGIN

#if TT_VEC_BYTES > 16
constexpr int64_t L = kLanes<double>;
using F = Vec<double>;  // a number of each matrix
using Mask = decltype(F{} < F{});

TT_INLINE F size_of(F x) { return vmax(x, -x); }
TT_INLINE F larger_or_nan(F x, F y) { return chosen((y > x) | (y != y), y, x); }
TT_INLINE bool any_of(Mask m) { return sign_bits(m) != 0; }

// Reads L arrays of `count` doubles that follow each other; writes them back.
TT_INLINE void read_group(F* room, const double* from, int64_t count) {
  transpose<uint64_t>(reinterpret_cast<char*>(room), int64_t(sizeof(F)),
                      reinterpret_cast<const char*>(from), count * 8, count, L);
}
TT_INLINE void write_group(double* to, const F* room, int64_t count) {
  transpose<uint64_t>(reinterpret_cast<char*>(to), count * 8, reinterpret_cast<const char*>(room),
                      int64_t(sizeof(F)), L, count);
}

// y -= a * x
TT_INLINE void subtract_numbers(F* TT_RESTRICT y, const F* TT_RESTRICT x, int64_t n, F a) {
  for (int64_t i = 0; i < n; i++) y[i] = y[i] - a * x[i];
}

// Calls f(first, width) for n columns, `width` at a time; f keeps a number of each in registers.
template <int kWidth = 8, class Run> TT_INLINE void each_columns(int64_t n, const Run& f) {
  int64_t at = 0;
  for (; at + kWidth <= n; at += kWidth) f.template operator()<kWidth>(at);
  if constexpr (kWidth > 1) {
    const int64_t rest = n - at;
    each_columns<kWidth / 2>(
        rest, [&]<int kRest>(int64_t i) TT_INLINE_BODY { f.template operator()<kRest>(at + i); });
  }
}

// Row i of b, of k columns, less the sum of a[j] times row j over j in [from, to).
TT_INLINE void subtract_rows(F* b, int64_t i, const F* a, int64_t from, int64_t to, int64_t k) {
  if (k == 1) {
    F sum = {};
    for (int64_t j = from; j < to; j++) sum = sum + a[j] * b[j];
    b[i] = b[i] - sum;
    return;
  }
  each_columns(k, [&]<int kWidth>(int64_t at) TT_INLINE_BODY {
    F sums[kWidth];
    for (int c = 0; c < kWidth; c++) sums[c] = b[i * k + at + c];
    for (int64_t j = from; j < to; j++)
      for (int c = 0; c < kWidth; c++) sums[c] = sums[c] - a[j] * b[j * k + at + c];
    for (int c = 0; c < kWidth; c++) b[i * k + at + c] = sums[c];
  });
}

// Computes the first matrices of [begin, end) in groups, by Group::run(plan, first, room), which
// returns false, before it writes, for a group that is to be computed one by one. Returns the next.
template <class Group, class One>
TT_NOINLINE int64_t run_groups(const MatrixPlan& p, int64_t begin, int64_t end) {
  const int64_t next = end - (end - begin) % L;
  if (!p.rooms.bytes || next == begin) return begin;
  const Room room(p.rooms);
  for (int64_t i = begin; i < next; i += L)
    if (!Group::run(p, i, room.as<F>())) each_matrix<One>(&p, i, i + L);
  return next;
}
#else
template <class Group, class One> int64_t run_groups(const MatrixPlan&, int64_t begin, int64_t) {
  return begin;
}
#endif

template <class Group, class One>
TT_INLINE int32_t in_groups(const void* plan, int64_t begin, int64_t end) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  return each_matrix<One>(plan, run_groups<Group, One>(p, begin, end), end);
}

TT_ISA_END
