// State that only differentiable tensors have: gradient, hooks, requires_grad. Thread-safe.
#pragma once

#include "autograd/hook_list.h"
#include "core/tensor.h"

namespace TT_NS {

struct Node;
struct Engine;

// The gradient of a non-leaf, read by the tensor and written by its node. Cleared when the tensor
// is freed.
struct RetainedGrad {
  RefCount refs;
  bool wanted;  // the tensor is alive
  TensorRef grad;
  static void destroy(RetainedGrad*) noexcept;
};

constexpr int64_t kNeverConsumed = INT64_MAX / 4;

// The properties of a tensor that set_data may change.
struct Geometry {
  Shape sizes, strides;
  Dtype dtype;
  Device device;
};

// A saved tensor in the form that hooks of the application have given it (saved_hooks.h).
struct PackedTensor {
  void (*destroy_fn)(PackedTensor*) noexcept;
};

// Per-tensor data, allocated for differentiable tensors on first use.
struct AutogradMeta : TensorMeta {
  TensorRef grad;              // under shared_lock; see grad_of
  Ref<RetainedGrad> retained;  // under shared_lock; the gradient of a non-leaf, instead of grad
  TensorRef place;             // of a leaf: where its gradient is written; see set_grad_place
  TensorRef pending;           // gradient on its way to this leaf, of the engine `owner`
  Engine* owner;               // the engine run that has claimed `pending`
  int64_t min_topo;  // smallest topo of a node that consumed this leaf; kNeverConsumed if none
  HookList hooks;    // of a leaf; hooks of a non-leaf are stored on its node
  // The base that a view had when it became a leaf: other threads may still be reading it.
  TensorRef former_base;
  Mutex adding;  // held by the thread `adder` while it adds to grad
  uintptr_t adder;
  bool in_heap;
  bool is_former_base;       // a leaf may have this tensor as its former_base
  int32_t geometry;          // number of a leaf's current geometry
  int32_t geometries;        // last number assigned; the first is 0
  Geometry* first_geometry;  // owned; geometry 0, once there are others
  TensorRef batch;           // of a batched tensor (batch.h): all samples, along dimension 0
  int64_t level;         // id of the vmap of a batched tensor, of the transform that tracks a leaf
  PackedTensor* packed;  // owned; of the placeholder of a packed tensor (saved_hooks.h)
};
AutogradMeta& autograd_meta(const Tensor& t);  // made on first use
inline AutogradMeta* find_meta(const Tensor& t) {
  return static_cast<AutogradMeta*>(atomic_load(&t.meta, kAcquire));
}

// Returns t.grad, or an empty reference. Any thread may replace it at any time.
TensorRef grad_of(const Tensor& t);
void set_grad(const Tensor& t, TensorRef grad);
// The same for many tensors under one lock, which `locked` proves. Nothing may be allocated or
// freed meanwhile.
Tensor* borrow_grad(const Lock& locked, const Tensor& t);
TensorRef take_grad(const Lock& locked, const Tensor& t);  // leaves t without a gradient
// From now on the gradients of the leaf are written into `place`, of its shape, strides, dtype and
// device, which becomes its gradient when a backward finds none; not with create_graph. Empty: a
// gradient is stored where it was computed.
void set_grad_place(const Tensor& leaf, TensorRef place);
// Makes the non-leaf t retain its gradient from now on.
void retain_grad(const Tensor& t);
// The retained gradient of t now comes from `to`, which replaces its node.
void move_retained(const Lock& locked, const Tensor& t, Node& to, uint32_t nr) noexcept;
// Performs everything in set_requires_grad that can fail, and changes nothing else.
void prepare_requires_grad(Tensor& t, bool on);
// set_data for a leaf: a graph that saved it in another geometry fails in backward.
void replace_data(Tensor& leaf, const Tensor& src);
void prepare_replace(const Tensor& leaf);  // afterwards replace_data of equal rank cannot fail
inline int32_t number_of_geometry(const Tensor& t) {
  const AutogradMeta* m = find_meta(t);
  return m ? m->geometry : 0;
}
void set_requires_grad(Tensor& t, bool on);  // fails on non-leaves and non-differentiable dtypes

}  // namespace TT_NS
