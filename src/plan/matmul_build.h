// Builds a MatmulPlan from sizes and strides.
#pragma once

#include "plan/matmul_plan.h"

namespace TT_NS {

// A stack of matrices: the last two of ndim >= 2 dimensions are rows and columns. Strides count
// elements.
struct MatmulOperand {
  const void* ptr;
  int32_t ndim;
  const int64_t* size;
  const int64_t* stride;
};

inline MatmulScalar matmul_scalar(const tt_scalar& s) {
  if (s.kind == TT_SCALAR_FLOAT || s.kind == TT_SCALAR_COMPLEX)
    return {s.re, s.kind == TT_SCALAR_COMPLEX ? s.im : 0.0, int64_t(s.re)};
  return {double(s.i), 0.0, s.i};
}

constexpr MatmulScalar kMatmulOne = {1.0, 0.0, 1};

namespace matmul_detail {

// Stride in bytes of batch dimension i (0 = innermost) of an operand, 0 if it is broadcast or has
// no elements (its strides may be no number of bytes).
inline int64_t batch_stride(const MatmulOperand& x, int32_t i, int64_t itemsize) {
  const int32_t at = x.ndim - 3 - i;
  if (at < 0 || x.size[at] == 1) return 0;
  for (int32_t d = 0; d < x.ndim; d++)
    if (x.size[d] == 0) return 0;
  return x.stride[at] * itemsize;
}

// Returns whether dim `outer` continues `inner` without a gap, for every operand.
inline bool runs_on(const MatmulBatchDim& outer, const MatmulBatchDim& inner) {
  return outer.a == inner.a * inner.size && outer.b == inner.b * inner.size &&
         outer.c == inner.c * inner.size && outer.d == inner.d * inner.size;
}

inline void add_batch(MatmulPlan* p, const MatmulBatchDim& dim) {
  p->batch *= dim.size;
  if (dim.size == 1) return;
  if (p->n_batch > 0 && runs_on(dim, p->batch_dim[p->n_batch - 1]))
    p->batch_dim[p->n_batch - 1].size *= dim.size;
  else p->batch_dim[p->n_batch++] = dim;
}

// Turns a batch that shares b and continues the rows of a, c and d into more rows.
inline void fold_batch_into_rows(MatmulPlan* p, int64_t itemsize) {
  while (p->n_batch > 0) {
    const MatmulBatchDim& dim = p->batch_dim[0];
    const int64_t step = p->m * itemsize;
    if (dim.b != 0) return;
    if (p->m > 1) {
      if (dim.a != p->a_row * step || dim.c != p->c_row * step ||
          (p->d && dim.d != p->d_row * step))
        return;
    } else {
      p->a_row = dim.a / itemsize;
      p->c_row = dim.c / itemsize;
      p->d_row = dim.d / itemsize;
    }
    p->m *= dim.size;
    p->batch /= dim.size;
    p->n_batch--;
    for (int32_t i = 0; i < p->n_batch; i++) p->batch_dim[i] = p->batch_dim[i + 1];
  }
}

template <class T> inline void exchange(T& x, T& y) {
  const T t = x;
  x = y;
  y = t;
}

// Transposes the matmul: c^T = b^T·a^T.
inline void transpose_plan(MatmulPlan* p) {
  exchange(p->m, p->n);
  exchange(p->a, p->b);
  exchange(p->a_row, p->b_col);
  exchange(p->a_col, p->b_row);
  exchange(p->c_row, p->c_col);
  exchange(p->d_row, p->d_col);
  for (int32_t i = 0; i < p->n_batch; i++) exchange(p->batch_dim[i].a, p->batch_dim[i].b);
}

// Microcontrollers have the packed path alone: the others are as much code again.
constexpr bool kDirectPaths = !TT_MINIMAL;

inline bool is_small(const MatmulPlan& p) {
  if (!kDirectPaths) return false;
  if (p.dtype != TT_F32 && p.dtype != TT_F64) return false;
  if (p.m > kMatmulSmallMax || p.n > kMatmulSmallMax || p.c_col != 1) return false;
  if (p.k > (p.b_col == 1 ? kMatmulSmallMax : kMatmulSmallDepth)) return false;
  if (p.dtype == TT_F32 && p.k > kMatmulSmallChain && p.m * p.n > kMatmulSmallTwoChains)
    return false;
  // Rows a page apart share cache sets: a panel of them does not stay in the L1 cache.
  return p.k <= 64 || p.a_row * kItemSize[p.dtype] % 4096 != 0;
}

// Dot products of so few terms that adding their lanes takes longer than to pack b.
inline bool is_short(const MatmulPlan& p) {
  return p.m > 1 && p.k <= 4 * p.m && (p.k <= 16 || p.n >= 16) && is_small(p);
}

// Largest m of the rows path of f16 or bf16. Packed products of bf16 take half the instructions, so
// they are faster where the caches hold b.
inline int64_t most_half_rows(const MatmulPlan& p) {
  if (p.dtype == TT_F16) return kMatmulHalfRows;
  if (p.n * p.k < 512 * 512) return kMatmulHalfRows / 4;
  return matmul_rows_by_dot(p) ? kMatmulHalfRows : kMatmulHalfRows / 2;
}

inline bool is_rows(const MatmulPlan& p) {
  if (!kDirectPaths) return false;
  const bool half = matmul_is_half(p.dtype);
  if (!half && p.dtype != TT_F32 && p.dtype != TT_F64) return false;
  if (matmul_rows_by_dot(p)) {
    return p.m <= (half ? most_half_rows(p) : kMatmulDotRowsMax) && p.a_col == 1 && !is_short(p);
  }
  return p.m <= (half ? most_half_rows(p) : kMatmulRowsMax) && p.b_col == 1 && p.n * p.k > 64 * 64;
}

// Many rows but few columns: transposed, the matmul takes the rows path and reads a once, in
// order.
inline bool is_thin(const MatmulPlan& p) {
  return kDirectPaths && p.n <= 4 && p.m > p.n && (p.n == 1 || p.m > kMatmulRowsMax) &&
         (p.a_col == 1 || p.a_row == 1);
}

}  // namespace matmul_detail

// Chooses orientation, path and units. m, n, k, pointers, strides, dtype, scalars and batch are
// set.
inline void matmul_choose(MatmulPlan* p) {
  using namespace matmul_detail;
  if (p->m == 1) p->a_row = p->c_row = 0;
  if (p->n == 1) p->b_col = p->c_col = 1;
  if (p->k == 1) p->a_col = 1;
  if (p->k == 0) p->a_row = p->a_col = p->b_row = p->b_col = 0;  // the factors may have no memory
  if (is_thin(*p) || (p->c_col != 1 && p->c_row == 1 && p->n > 1)) {
    transpose_plan(p);
    if (p->m == 1) p->a_row = p->c_row = 0;
  }
  p->path = kMatmulPacked;
  if (is_rows(*p)) p->path = kMatmulRows;
  else if (is_small(*p)) p->path = kMatmulSmall;
  if (p->path == kMatmulSmall) p->n_units = p->batch * matmul_ceil(p->n, kMatmulSmallCols);
  if (p->path == kMatmulRows) p->n_units = p->batch * matmul_ceil(p->n, matmul_rows_unit(*p));
  p->workspace = nullptr;
}

// c has the sizes of the result; a and b broadcast over its leading dimensions, d over all. d or
// its ptr may be NULL.
inline void matmul_build(MatmulPlan* p, int32_t dtype, const MatmulOperand& a,
                         const MatmulOperand& b, const MatmulOperand* d, const MatmulOperand& c,
                         const MatmulScalar& alpha, const MatmulScalar& beta) {
  const int32_t nd = c.ndim;
  const int64_t itemsize = kItemSize[dtype];
  p->m = c.size[nd - 2];
  p->n = c.size[nd - 1];
  p->k = a.size[a.ndim - 1];
  p->a = static_cast<const char*>(a.ptr);
  p->b = static_cast<const char*>(b.ptr);
  p->c = static_cast<char*>(const_cast<void*>(c.ptr));
  p->a_row = a.stride[a.ndim - 2];
  p->a_col = a.stride[a.ndim - 1];
  p->b_row = b.stride[b.ndim - 2];
  p->b_col = b.stride[b.ndim - 1];
  p->c_row = c.stride[nd - 2];
  p->c_col = c.stride[nd - 1];
  p->d = nullptr;
  p->d_row = p->d_col = 0;
  if (d && d->ptr && (beta.re != 0 || beta.im != 0 || beta.i != 0)) {
    p->d = static_cast<const char*>(d->ptr);
    if (d->ndim >= 1 && d->size[d->ndim - 1] != 1) p->d_col = d->stride[d->ndim - 1];
    if (d->ndim >= 2 && d->size[d->ndim - 2] != 1) p->d_row = d->stride[d->ndim - 2];
  }
  p->dtype = dtype;
  p->math = 0;
  p->alpha = alpha;
  p->beta = beta;
  p->scaled = alpha.re != 1 || alpha.im != 0 || alpha.i != 1;
  p->batch = 1;
  p->n_batch = 0;
  for (int32_t i = 0; i < nd - 2; i++)
    matmul_detail::add_batch(p, {c.size[nd - 3 - i], matmul_detail::batch_stride(a, i, itemsize),
                                 matmul_detail::batch_stride(b, i, itemsize),
                                 matmul_detail::batch_stride(c, i, itemsize),
                                 p->d ? matmul_detail::batch_stride(*d, i, itemsize) : 0});
  if (p->n_batch > 0 && p->batch > 0) matmul_detail::fold_batch_into_rows(p, itemsize);
  matmul_choose(p);
}

// The common case: one matmul of a (m, k) and b (k, n) with any strides, into contiguous c.
inline void matmul_build_2d(MatmulPlan* p, int32_t dtype, int64_t m, int64_t n, int64_t k,
                            const void* a, int64_t a_row, int64_t a_col, const void* b,
                            int64_t b_row, int64_t b_col, void* c) {
  p->m = m;
  p->n = n;
  p->k = k;
  p->a = static_cast<const char*>(a);
  p->b = static_cast<const char*>(b);
  p->c = static_cast<char*>(c);
  p->a_row = a_row;
  p->a_col = a_col;
  p->b_row = b_row;
  p->b_col = b_col;
  p->c_row = n;
  p->c_col = 1;
  p->d = nullptr;
  p->d_row = p->d_col = 0;
  p->dtype = dtype;
  p->math = 0;
  p->alpha = kMatmulOne;
  p->beta = {0, 0, 0};
  p->scaled = false;
  p->batch = 1;
  p->n_batch = 0;
  matmul_choose(p);
}

}  // namespace TT_NS
