// Dual tensors: a tensor and its tangent, inside a forward-mode transform (forward.h). A dual
// tensor is a header over the memory of its primal, without a history. Primal and tangent may have
// histories of their own, and may be dual tensors of an outer transform.
#pragma once

#include "autograd/meta.h"
#include "autograd/transform.h"
#include "dispatch/key.h"

namespace TT_NS {

// A forward-mode transform. Its dual tensors hold references, since they may outlive it.
struct ForwardLevel {
  RefCount refs;
  int64_t id;      // unique in the process; larger than those of outer ones
  bool recording;  // the caller of the transform records
  bool nested;     // the caller is called by another one
  bool ended;      // its dual tensors have no tangents any more
  static void destroy(ForwardLevel* l) noexcept { mem_free(l, sizeof *l); }
};
using ForwardLevelRef = Ref<ForwardLevel>;

inline bool is_dual(const Tensor& t) { return t.keys & bit(kKeyForward); }
// Returns a dual tensor. The tangent has the shape and dtype of primal; `shared` says that its
// memory belongs to another tensor, too.
TensorRef new_dual(const Tensor& primal, TensorRef tangent, bool shared, ForwardLevel& level);
// The level of a dual tensor; NULL if it has ended, or t is not dual.
ForwardLevel* forward_level_of(const Tensor& t);
// Returns the innermost level of tensors, which may be NULL; NULL if none is dual.
ForwardLevel* innermost_level(TensorSpan tensors);
// Returns t, or its primal if it is a dual tensor of the level or of one that has ended.
TensorRef primal_of(const Tensor& t, const ForwardLevel* level);
// Returns the tangent of t at a level; empty: it is 0.
TensorRef tangent_of(const Tensor& t, const ForwardLevel& level);
// Returns the tensor that has the history of t: t itself, the primal of a dual tensor, or all
// samples of a batched one.
Tensor& innermost_part(const Tensor& t);
inline bool has_parts(const Tensor& t) { return t.keys & (bit(kKeyForward) | bit(kKeyVmap)); }
inline Tensor& with_history_of(const Tensor& t) {
  return kModes && has_parts(t) ? innermost_part(t) : const_cast<Tensor&>(t);
}
// Returns t, or an alias of it that may require a gradient without t; a copy if elements of t share
// memory, which those of its tangent do not.
TensorRef own_primal(const Tensor& t);
// Makes the tangent of a dual tensor one with the strides of its primal and memory of its own,
// which views of the dual tensor may share, and operators in place may write.
Tensor& own_tangent(const Tensor& t);
// Makes t, which an operator is about to write in place, a dual tensor of the level, and the tensor
// of which it is a view. Does nothing to a leaf of autograd, which refuses the write.
void become_dual(const Tensor& t, ForwardLevel& level);
// Makes t a dual tensor if it is a view of one. Returns whether it is a dual tensor.
bool adopt_tangent(const Tensor& t);

// Returns an alias of t without the histories of its parts.
TensorRef without_history(const Tensor& t);
// Returns whether t, or a part of it, requires a gradient.
bool is_recorded(const Tensor& t);

// Calls f, which has its own gradient, on the primals of a level; its results have tangents. Set by
// the first transform, so that programs without one link no rules.
using CallWithTangents = TensorList (*)(const TensorFunction& f, TensorSpan inputs,
                                        ForwardLevel& level);
extern CallWithTangents call_with_tangents;
// Gradients of tensors that have parts (transform.h). Set by the first transform or vmap.
using GradientsOfParts = TensorList (*)(const BackwardArgs& a);
extern GradientsOfParts find_gradients_of_parts;

}  // namespace TT_NS
