// Shared by the kernels of recurrent layers. A unit of work is a block of hidden units: the product
// of all rows of the state with the block's panel of the weight. kRecurrentRows rows at a time are
// multiplied into a tile on the stack, to which the activations are applied at once.
//
//            one gate   next gate          The tile of a forward step. The panel is padded with
//           +----------+----------+--      zeros, so that a gate has whole vectors.
//     rows  | lanes    | lanes    | …
//           +----------+----------+--
#pragma once

#include "kernels/cpu/math/math.h"
#include "kernels/cpu/matmul/small.h"
#include "kernels/cpu/simd/vec.h"
#include "plan/recurrent_plan.h"

TT_ISA_BEGIN

template <class T> TT_INLINE const T* as_values(const char* p) {
  return reinterpret_cast<const T*>(p);
}
template <class T> TT_INLINE T* as_values(char* p) { return reinterpret_cast<T*>(p); }

// tile (rows, columns) = a (rows, depth) panel (depth, columns); all are contiguous.
template <class T> TT_INLINE void recurrent_multiply(T* tile, const T* a, const T* panel,
                                                     int64_t rows, int64_t depth, int64_t columns) {
  if (rows > 0) multiply_small(tile, a, depth, 1, panel, rows, columns, depth, false, columns);
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
