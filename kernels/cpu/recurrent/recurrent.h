// Shared by the kernels of recurrent layers. A unit of work is a block of hidden units: the product
// of all rows of the state with the block's panel of the weight goes, kRecurrentRows rows at a
// time, to a tile on the stack, which the activations read at once.
//
//            one gate   next gate          The tile of a forward step. The panel is padded with
//           +----------+----------+--      zeros, so that a gate has whole vectors.
//     rows  | lanes    | lanes    | …
//           +----------+----------+--
#pragma once

#include "kernels/cpu/math/math.h"
#include "kernels/cpu/simd/vec.h"
#include "plan/matmul_plan.h"
#include "plan/recurrent_plan.h"

TT_ENTRY_BEGIN
int32_t matmul_small(const void* plan, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END

TT_ISA_BEGIN

template <class T> TT_INLINE const T* as_values(const char* p) {
  return reinterpret_cast<const T*>(p);
}
template <class T> TT_INLINE T* as_values(char* p) { return reinterpret_cast<T*>(p); }

// tile (rows, columns) = a (rows, depth) panel (depth, columns); all are contiguous.
template <class T> TT_INLINE void recurrent_multiply(T* tile, const T* a, const T* panel,
                                                     int64_t rows, int64_t depth, int64_t columns) {
  MatmulPlan p;
  p.m = rows;
  p.n = columns;
  p.k = depth;
  p.a = reinterpret_cast<const char*>(a);
  p.b = reinterpret_cast<const char*>(panel);
  p.c = reinterpret_cast<char*>(tile);
  p.d = nullptr;
  p.a_row = depth;
  p.a_col = 1;
  p.b_row = columns;
  p.b_col = 1;
  p.c_row = columns;
  p.c_col = 1;
  p.d_row = p.d_col = 0;
  p.dtype = sizeof(T) == 8 ? TT_F64 : TT_F32;
  p.path = kMatmulSmall;
  p.scaled = false;
  p.n_batch = 0;
  p.batch = 1;
  p.workspace = nullptr;
  p.n_units = matmul_ceil(columns, kMatmulSmallCols);
  if (rows > 0) matmul_small(&p, 0, p.n_units);
}

// x = f(x) for n values; n is a multiple of a vector's lanes.
template <class T> TT_INLINE void sigmoid_run(T* x, int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) x[i] = math::sigmoid(x[i]);
}
template <class T> TT_INLINE void tanh_run(T* x, int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) x[i] = math::tanh(x[i]);
}
#if TT_VECTOR_MATH
TT_INLINE void sigmoid_run(float* x, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) store(x + i, Vec<float>(math::sigmoid(load(x + i))));
}
TT_INLINE void tanh_run(float* x, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) store(x + i, Vec<float>(math::tanh(load(x + i))));
}
#endif

template <class T> TT_INLINE void add_run(T* x, const T* y, int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) x[i] += y[i];
}
template <class T> TT_INLINE void copy_run(T* x, const T* y, int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) x[i] = y[i];
}

// Row i of the state before a step.
template <class T> TT_INLINE const T* row_before(const RecurrentRows& r, int64_t i, int64_t width) {
  return as_values<T>(i < r.rows ? r.before : r.first) + i * width;
}

TT_ISA_END
