// Shared by operators with index tensors: loop nests over the positions that an index tensor
// addresses, and checks of indices.
#pragma once

#include "ops/impl.h"
#include "plan/index_build.h"

namespace TT_NS {

// Positions, outermost dimension first; strides in bytes. a: the indexed tensor, b: the other one.
struct IndexNest {
  Shape size, a_stride, b_stride, index_stride;
  void add(int64_t n, int64_t a, int64_t b, int64_t index) {
    size.push_back(n);
    a_stride.push_back(a);
    b_stride.push_back(b);
    index_stride.push_back(index);
  }
};

// The indexed dimension: index i is at byte (i < 0 ? i + size : i) * step.
struct IndexedDim {
  int64_t size, step;
};

// Fails with INDEX, naming position, value and range, unless all indices are in [low, size) or
// equal to `allowed`.
void check_indices(const Tensor& index, const char* arg, int64_t low, int64_t size,
                   int64_t allowed = kNoSkip);
// Fails with INVALID_ARG, `text`, position and value unless every element of `holds`, bools for the
// elements of `values`, is true. On a CUDA device as `require`.
void require_each(const Tensor& holds, const Tensor& values, const char* arg, const char* text);
// offsets (int64, contiguous, `shape`) = or += the byte offsets of index, which broadcasts to
// shape; checked as above.
void index_offsets(Tensor& offsets, const Tensor& index, const char* arg, const IndexedDim& dim,
                   bool add);

// b = a[index] (kernel_index_get), a[index] = b (kernel_index_put), a[index] += b
// (kernel_index_accumulate) or by `combine` (kernel_index_combine). Indices are checked, or with
// `unchecked`, their argument's name, fail as in check_indices with low 0: where b or a that is
// written is new, the CPU does so on the way.
void run_index(const Kernel& k, const IndexNest& nest, const Tensor& a, char* a_data,
               const Tensor& b, const Tensor& index, const IndexedDim& dim,
               IndexCombine combine = kCombineProduct, const char* unchecked = nullptr);

// Checks the arguments of scatter, but for the values of index. Returns dim, not negative.
int64_t check_scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);

// Returns the positions of the nonzero elements: (ndim, count) int64, or with `flat` (1, count)
// positions in row-major order.
TensorRef nonzero_positions(const Tensor& t, bool flat);

}  // namespace TT_NS
