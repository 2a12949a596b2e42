// Shape arithmetic on plain int64 spans.
#pragma once

#include "base/small_vec.h"
#include "core/dtype.h"

namespace TT_NS {

constexpr int kMaxDims = 64;
using Shape = SmallVec<int64_t, 8>;

// The largest stride kept for a dimension of size 1, so that it is a valid number of bytes for
// every dtype.
constexpr int64_t kMaxIdleStride = int64_t(1) << 56;
// Returns strides, with those of dimensions of size 0 or 1 limited to kMaxIdleStride.
Shape usable_strides(Ints sizes, Ints strides);

// Product of sizes; fails on negative sizes, more than 64 dims, or an overflow of the byte count.
int64_t checked_numel(Ints sizes, Dtype dtype, const char* arg);
int64_t numel_of(Ints sizes);  // of the shape of an existing tensor
inline void contiguous_strides(Ints sizes, int64_t* strides) {
  int64_t step = 1;
  for (int64_t d = sizes.n - 1; d >= 0; d--) {
    strides[d] = step;
    step *= max<int64_t>(sizes[d], 1);
  }
}
// For sizes [N, C, spatial…]: channels innermost, N outermost. As in PyTorch, sizes may be 0.
Shape channels_last_strides(Ints sizes);
// Maps -n … n-1 to 0 … n-1 (0-dim tensors accept -1 and 0); fails with INDEX.
int64_t wrap_dim(int64_t dim, int64_t ndim, const char* arg = "dim");
// Returns a set of dims as a bit mask; duplicates fail. An empty list means all dims if
// `empty_is_all`.
uint64_t dim_mask(Ints dims, int64_t ndim, bool empty_is_all, const char* arg = "dim");
Shape broadcast_shapes(Ints a, Ints b, const char* a_name, const char* b_name);
bool broadcastable_to(Ints from, Ints to);
// Replaces one -1 so that the product is numel; fails otherwise.
Shape infer_size(Ints sizes, int64_t numel, const char* arg);
// Returns whether infer_size(sizes, numel) equals sizes.
inline bool is_size_of(Ints sizes, int64_t numel) {
  int64_t n = 1;
  bool zero = false;
  if (sizes.n > kMaxDims) return false;
  for (int64_t size : sizes) {
    if (size < 0 || mul_overflow(n, size ? size : 1, &n)) return false;
    zero |= size == 0;
  }
  return (zero ? 0 : n) == numel;
}
// Computes strides that view a tensor (sizes, strides) as `to` without a copy; false if there are
// none.
bool view_strides(Ints sizes, Ints strides, Ints to, int64_t* out);
bool is_contiguous(Ints sizes, Ints strides);
// Returns whether the elements have distinct addresses without gaps: some permutation is
// contiguous.
bool is_dense(Ints sizes, Ints strides);
// Returns dense strides for a result whose dimensions are ordered in memory like those of its
// operands, as in PyTorch: the first one decides, the next ones where it broadcasts. An operand has
// a stride per dimension of the result, 0 where it broadcasts.
Shape strides_like(Ints sizes, Span<const Shape> operands);
// The same for one operand of the result's sizes.
Shape strides_like(Ints sizes, Ints strides);
// Returns whether two indices may share an address: exact if strides sorted by size nest, else
// conservative.
bool may_overlap_self(Ints sizes, Ints strides);
// The dimension along which a geometry that overlaps itself is cut, so that few slices must be cut
// further: one whose stride is 0, else the smallest one whose slices do not overlap themselves,
// else the smallest one.
int64_t dim_to_slice(Ints sizes, Ints strides);

}  // namespace TT_NS
