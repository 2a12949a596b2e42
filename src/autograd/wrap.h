// Helpers of generated autograd wrappers, in addition to node.h and saved.h.
#pragma once

#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS {

[[noreturn]] TT_COLD void fail_into_grad();
[[noreturn]] TT_COLD void fail_no_formula(const char* arg);

// The schema of an operator whose calls are recorded as nodes.
struct RecordedSchema : OpSchema {
  const NodeType* node;
};
inline const NodeType* node_of(Call c) {
  return static_cast<const RecordedSchema*>(c.op->schema)->node;
}
// The operator of a call.
template <class R, class... A> TT_INLINE const Op<R(A...)>& op_of(Call c) {
  return *reinterpret_cast<const Op<R(A...)>*>(c.op);  // info is the first member
}

inline bool may_need_grad(const Tensor& t) { return needs_grad(t); }
inline bool may_need_grad(const Tensor* t) { return needs_grad(t); }
inline bool may_need_grad(Tensor* t) { return needs_grad(t); }
inline bool may_need_grad(TensorSpan s) { return needs_grad(s); }
template <class T> bool may_need_grad(const T&) { return false; }
// The Autograd slot of every _into variant: its results can have no history.
template <class... A> void into_autograd(Call c, A... args) {
  if ((may_need_grad(static_cast<const A&>(args)) || ...)) fail_into_grad();
  redispatch(op_of<void, A...>(c), c.keys & kBelowAutograd, static_cast<A>(args)...);
}

// For an in-place operator whose result has no gradient: returns the node of prepare_inplace, with
// zeros as the gradient of self; empty if self needs none.
NodeRef prepare_overwrite(Tensor& self);

// Copies an input that an in-place operator is about to overwrite, for a formula that reads it.
inline TensorRef overwritten(const Tensor& t) { return op::clone(t); }

inline ShapeList shapes_of(TensorSpan s) {
  ShapeList l;
  for (const Tensor* t : s) l.push_back(Shape(t->sizes()));
  return l;
}

// An optional scalar kept by a node.
struct SavedScalar {
  bool has = false;
  Scalar value;
  SavedScalar() = default;
  explicit SavedScalar(const Scalar* s) : has(s), value(s ? *s : Scalar()) {}
  operator const Scalar*() const { return has ? &value : nullptr; }
};
// Optional integers.
struct SavedInts {
  bool has = false;
  Shape value;
  SavedInts() = default;
  explicit SavedInts(Opt<Ints> o) : has(o.has), value(o.value) {}
  operator Opt<Ints>() const { return has ? Opt<Ints>(Ints(value)) : Opt<Ints>(); }
};
// A mixed index with the tensors in it.
class SavedIndices {
 public:
  SavedIndices() = default;
  explicit SavedIndices(Indices s) {
    for (const tt_index& i : s) {
      items_.push_back(i);
      tensors_.push_back(i.kind == TT_IDX_TENSOR
                             ? TensorRef::share(reinterpret_cast<const Tensor*>(i.tensor))
                             : TensorRef());
    }
  }
  operator Indices() const { return {items_.data(), items_.size()}; }

 private:
  SmallVec<tt_index, 4> items_;
  SmallVec<TensorRef, 4> tensors_;
};
// All gradients of a node with several outputs.
class GradList {
 public:
  GradList(TensorRef* g, int64_t n) {
    for (int64_t i = 0; i < n; i++) p_.push_back(g[i].get());
  }
  operator TensorSpan() const { return {p_.data(), p_.size()}; }

 private:
  SmallVec<const Tensor*, 8> p_;
};

}  // namespace TT_NS
