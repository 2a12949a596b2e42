// Plans that a pointwise kernel cannot take as they are: operands of other dtypes than it computes
// with, more dimensions than it walks, gaps where it takes none. Their operands are copied into the
// workspace, and the result from there to its place.
#pragma once

#include "kernels/cuda/strided.h"
#include "plan/elementwise_plan.h"

namespace TT_NS {

namespace cuda {
int32_t copy(const void* plan, void* stream, void* workspace);
}

namespace {

// The dtypes that a kernel reads and writes: bool or `values`.
struct Natives {
  int32_t values;
  bool flat;  // the kernel takes runs of elements only
  int32_t dtype[kMaxOperands];
};

// Float functors read and write f16 or bf16 where all operands are of that dtype.
inline Natives natives_of(const ElementPlan& p, uint32_t bools, bool moves, bool flat) {
  Natives native;
  native.values = p.compute;
  native.flat = flat;
  if (p.compute == TT_F32 && !moves) {
    int32_t first = 0;
    bool all_equal = true;
    for (int k = 0; k < p.n_operands; k++) {
      if (!p.ptr[k] || (bools >> k & 1)) continue;
      if (!first) first = p.dtype[k];
      all_equal &= p.dtype[k] == first;
    }
    if (all_equal && (first == TT_F16 || first == TT_BF16)) native.values = first;
  }
  for (int k = 0; k < p.n_operands; k++)
    native.dtype[k] = bools >> k & 1 ? int32_t(TT_BOOL) : native.values;
  return native;
}

// Whether each operand is a run of elements or one number, once those of other dtypes are copied.
inline bool in_runs(const ElementPlan& p, const Natives& native) {
  if (p.ndim == 0) return true;
  if (p.ndim > 1) return false;
  for (int k = 0; k < p.n_operands; k++) {
    if (!p.ptr[k] || p.dtype[k] != native.dtype[k] || (k > 0 && p.stride[k][0] == 0)) continue;
    if (p.stride[k][0] != kItemSize[native.dtype[k]]) return false;
  }
  return true;
}
// Operands are copied whole where the kernel cannot walk, else without repetitions.
inline bool must_flatten(const ElementPlan& p, const Natives& native) {
  if (p.dense) return false;
  return p.ndim > kMaxWalkDims || (native.flat && !in_runs(p, native));
}
inline bool is_staged(const ElementPlan& p, const Natives& native, int k) {
  if (p.dense || !p.ptr[k]) return false;
  return must_flatten(p, native) || p.dtype[k] != native.dtype[k];
}
inline int64_t staged_elements(const ElementPlan& p, const Natives& native, int k) {
  if (k == 0 || must_flatten(p, native)) return p.n;
  int64_t n = 1;
  for (int d = 0; d < p.ndim; d++)
    if (p.stride[k][d] != 0) n *= p.size[d];
  return n;
}
inline int64_t staged_bytes(const ElementPlan& p, const Natives& native, int k) {
  return (staged_elements(p, native, k) * kItemSize[native.dtype[k]] + 255) / 256 * 256;
}

inline size_t staging_bytes(const ElementPlan& p, const Natives& native) {
  int64_t bytes = 0;
  if (p.n == 0) return 0;
  for (int k = 0; k < p.n_operands; k++)
    if (is_staged(p, native, k)) bytes += staged_bytes(p, native, k);
  return size_t(bytes);
}

// The plan that the kernel gets: `given`, or *copy. A dense one becomes a walk of one dimension.
inline const ElementPlan& staged(const ElementPlan& given, const Natives& native,
                                 ElementPlan* copy) {
  if (!given.dense && staging_bytes(given, native) == 0) return given;
  const size_t head = offsetof(ElementPlan, size);
  __builtin_memcpy(static_cast<void*>(copy), &given, given.dense ? head : sizeof given);
  if (!given.dense) return *copy;
  copy->ndim = 1;
  copy->size[0] = given.n;
  for (int k = 0; k < given.n_operands; k++)
    copy->stride[k][0] = given.scalar_in[k] || !given.ptr[k] ? 0 : kItemSize[given.dtype[k]];
  return *copy;
}

// A copy from operand k of one plan to operand k of another, element by element.
inline int32_t copy_operand(const ElementPlan& to, const ElementPlan& from, int k, void* stream) {
  ElementPlan p;
  p.n = 1;
  p.n_operands = 2;
  p.dense = false;
  p.compute = to.dtype[k];
  p.ndim = 0;
  for (int i = 0; i < 2; i++) p.param[i].kind = 0;
  for (int i = 0; i < kMaxOperands; i++) p.scalar_in[i] = false;
  for (int d = 0; d < from.ndim; d++) {
    if (to.stride[k][d] == 0 && from.stride[k][d] == 0) continue;
    p.size[p.ndim] = from.size[d];
    p.stride[0][p.ndim] = to.stride[k][d];
    p.stride[1][p.ndim] = from.stride[k][d];
    p.n *= from.size[d];
    p.ndim++;
  }
  if (p.ndim == 0) {
    p.ndim = 1;
    p.size[0] = 1;
    p.stride[0][0] = p.stride[1][0] = 0;
  }
  p.ptr[0] = to.ptr[k];
  p.ptr[1] = from.ptr[k];
  p.dtype[0] = to.dtype[k];
  p.dtype[1] = from.dtype[k];
  return cuda::copy(&p, stream, nullptr);
}

// Places the operands of *copy in the workspace and fills those that are read.
inline int32_t stage_inputs(const ElementPlan& given, const Natives& native, ElementPlan* copy,
                            void* workspace, void* stream) {
  char* free_bytes = static_cast<char*>(workspace);
  const bool flatten = must_flatten(given, native);
  for (int k = 0; k < given.n_operands; k++) {
    if (!is_staged(given, native, k)) continue;
    copy->ptr[k] = free_bytes;
    copy->dtype[k] = native.dtype[k];
    free_bytes += staged_bytes(given, native, k);
    int64_t stride = kItemSize[native.dtype[k]];
    for (int d = 0; d < given.ndim; d++) {
      const bool repeats = k > 0 && !flatten && given.stride[k][d] == 0;
      copy->stride[k][d] = repeats ? 0 : stride;
      if (!repeats) stride *= given.size[d];
    }
    if (k == 0) continue;
    const int32_t status = copy_operand(*copy, given, k, stream);
    if (status != TT_OK) return status;
  }
  if (!flatten) return TT_OK;
  copy->ndim = 1;
  copy->size[0] = given.n;
  for (int k = 0; k < given.n_operands; k++)
    copy->stride[k][0] = given.ptr[k] ? kItemSize[copy->dtype[k]] : 0;
  return TT_OK;
}

inline int32_t unstage_output(const ElementPlan& given, const ElementPlan& copy, void* stream) {
  if (copy.ptr[0] == given.ptr[0]) return TT_OK;
  ElementPlan from = given;
  from.ptr[0] = copy.ptr[0];
  from.dtype[0] = copy.dtype[0];
  int64_t stride = kItemSize[copy.dtype[0]];
  for (int d = 0; d < given.ndim; d++) {
    from.stride[0][d] = stride;
    stride *= given.size[d];
  }
  return copy_operand(given, from, 0, stream);
}

}  // namespace
}  // namespace TT_NS
