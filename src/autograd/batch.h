// Batched tensors: one tensor per sample, inside vmap (modes/vmap.h). A batched tensor has the
// shape of one sample and the key Vmap; its metadata holds the tensor of all samples, along
// dimension 0, which may be a batched tensor of an outer vmap itself. Gradients belong to that
// tensor.
#pragma once

#include "autograd/meta.h"
#include "dispatch/key.h"

namespace TT_NS {

// A running vmap. Those of a ctx form a list, from the innermost out.
struct VmapLevel {
  VmapLevel* outer;
  int64_t id;    // unique in the process; larger than those of outer ones
  int64_t size;  // number of samples
  int32_t randomness;
};

inline bool is_batched(const Tensor& t) { return t.keys & bit(kKeyVmap); }
inline bool is_batched(const Tensor* t) { return t && is_batched(*t); }
// Returns the samples along dimension 0 of `all` as a batched tensor of a level.
TensorRef new_batched(const Tensor& all, const VmapLevel& level);
// Returns the tensor of all samples if t is batched at a level, else an empty reference.
TensorRef batch_at(const Tensor& t, const VmapLevel& level);
// The same for t, repeated for every sample if it is not batched at that level.
TensorRef whole_batch(const Tensor& t, const VmapLevel& level);
// Returns the level that a batched tensor belongs to; fails if that vmap has ended.
const VmapLevel& level_of(const Tensor& t);

// For gradients, which are computed for the samples of all running vmaps at once. Returns t without
// any level; repeats it for the samples of those where it is not batched.
TensorRef without_levels(const Tensor& t);
// Undoes without_levels.
TensorRef with_levels(TensorRef t);

}  // namespace TT_NS
