// Groups of real matrices: as many at once as a vector of doubles has lanes, one in each. Every
// matrix gets the bits that it gets by itself.
#pragma once

#include "base/arith.h"
#include "kernels/cpu/linalg/dense.h"
#include "kernels/cpu/simd/room.h"
#include "kernels/cpu/simd/transpose.h"

TT_ISA_BEGIN

// Where a plan that reads float32 matrices has its results.
TT_INLINE float* float_results(const MatrixPlan& p) { return reinterpret_cast<float*>(p.a); }

#if TT_VEC_BYTES > 16
constexpr int64_t L = kLanes<double>;
using F = Vec<double>;  // a number of each matrix
using Mask = decltype(F{} < F{});

TT_INLINE F size_of(F x) { return vmax(x, -x); }
TT_INLINE F larger_or_nan(F x, F y) { return chosen((y > x) | (y != y), y, x); }
TT_INLINE bool any_of(Mask m) { return sign_bits(m) != 0; }

// Reads L arrays of `count` numbers that follow each other; writes them back.
TT_INLINE void read_group(F* room, const double* from, int64_t count) {
  transpose<uint64_t>(reinterpret_cast<char*>(room), int64_t(sizeof(F)),
                      reinterpret_cast<const char*>(from), count * 8, count, L);
}
TT_INLINE void write_group(double* to, const F* room, int64_t count) {
  transpose<uint64_t>(reinterpret_cast<char*>(to), count * 8, reinterpret_cast<const char*>(room),
                      int64_t(sizeof(F)), L, count);
}
inline void read_group(F* room, const float* from, int64_t count) {
  float tile[L * L];
  int64_t at = 0;
  for (; at + L <= count; at += L) {
    transpose_tile<uint32_t, L>(reinterpret_cast<char*>(tile), L * 4,
                                reinterpret_cast<const char*>(from + at), count * 4);
    for (int64_t i = 0; i < L; i++) room[at + i] = load_as_double(tile + i * L);
  }
  for (; at < count; at++) {
    for (int64_t lane = 0; lane < L; lane++) tile[lane] = from[lane * count + at];
    room[at] = load_as_double(tile);
  }
}
inline void write_group(float* to, const F* room, int64_t count) {
  float tile[L * L];
  int64_t at = 0;
  for (; at + L <= count; at += L) {
    for (int64_t i = 0; i < L; i++) store_as_float(tile + i * L, room[at + i]);
    transpose_tile<uint32_t, L>(reinterpret_cast<char*>(to + at), count * 4,
                                reinterpret_cast<const char*>(tile), L * 4);
  }
  for (; at < count; at++) {
    store_as_float(tile, room[at]);
    for (int64_t lane = 0; lane < L; lane++) to[lane * count + at] = tile[lane];
  }
}

// Reads the matrices A of a plan from `first` on; writes them back.
TT_INLINE void read_matrices(F* room, const MatrixPlan& p, int64_t first) {
  const int64_t count = p.m * p.n;
  if (p.floats) read_group(room, p.floats + first * count, count);
  else read_group(room, matrix_of<double>(p.a, first, count), count);
}
TT_INLINE void write_matrices(const MatrixPlan& p, int64_t first, const F* room) {
  const int64_t count = p.m * p.n;
  if (p.floats) write_group(float_results(p) + first * count, room, count);
  else write_group(matrix_of<double>(p.a, first, count), room, count);
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

#endif

inline TT_NOINLINE void convert_floats(double* to, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = double(from[i]);
}
inline TT_NOINLINE void convert_doubles(float* to, const double* from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = float(from[i]);
}

// Computes matrices one by one; float32 ones in double precision, in `room`.
template <class Group, class One>
TT_NOINLINE int32_t run_singly(const MatrixPlan& p, int64_t begin, int64_t end, double* room) {
  if constexpr (!Group::kReadsFloats) return each_matrix<One>(&p, begin, end);
  MatrixPlan one = {};
  one.upper = p.upper;
  one.m = p.m;
  one.n = p.n;
  one.a = room;
  const int64_t count = p.m * p.n;
  for (int64_t i = begin; i < end; i++) {
    if (p.floats) {
      convert_floats(room, p.floats + i * count, count);
      if (p.pivots) one.pivots = p.pivots + i * min(p.m, p.n);
      one.info = p.info + i;
    }
    const int64_t at = p.floats ? 0 : i;
    each_matrix<One>(p.floats ? &one : &p, at, at + 1);
    if (p.floats) convert_doubles(float_results(p) + i * count, room, count);
  }
  return TT_OK;
}

// Computes the matrices of [begin, end), in groups while L are left, by Group::run(plan, first,
// room), which returns false for a group that is to be computed one by one. That group is then as
// it was, but for pivots.
template <class Group, class One>
TT_INLINE int32_t in_groups(const void* plan, int64_t begin, int64_t end) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (!p.rooms.bytes) return run_singly<Group, One>(p, begin, end, nullptr);
  const Room room(p.rooms);
  int64_t i = begin;
#if TT_VEC_BYTES > 16
  for (; i + L <= end; i += L)
    if (!Group::run(p, i, room.as<F>())) run_singly<Group, One>(p, i, i + L, room.as<double>());
#endif
  return run_singly<Group, One>(p, i, end, room.as<double>());
}

TT_ISA_END
