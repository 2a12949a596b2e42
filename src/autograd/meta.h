// What only differentiable tensors have: gradient, hooks, the wish for a gradient. Threads may
// share it.
#pragma once

#include "autograd/hook_list.h"
#include "core/tensor.h"

namespace TT_NS {

struct Node;
struct Engine;

// The gradient of a non-leaf: the tensor reads it, its node writes it. Cleared when the tensor
// goes.
struct RetainedGrad {
  RefCount refs;
  bool wanted;  // the tensor is alive
  TensorRef grad;
  static void destroy(RetainedGrad*) noexcept;
};

constexpr int64_t kNeverConsumed = INT64_MAX / 4;

// What set_data may change of a tensor.
struct Geometry {
  Shape sizes, strides;
  Dtype dtype;
  Device device;
};

// Per-tensor data that only differentiable tensors need.
struct AutogradMeta : TensorMeta {
  TensorRef grad;  // under shared_lock: see grad_of
  Ref<RetainedGrad>
      retained;       // under shared_lock; holds the gradient of a non-leaf in grad's place
  TensorRef pending;  // gradient on its way to this leaf, for the engine in `owner`
  Engine* owner;      // engine run that has claimed `pending`
  int64_t min_topo;   // smallest topo of a node that consumed this leaf; kNeverConsumed: none
  HookList hooks;     // of a leaf; a non-leaf's live on its node
  TensorRef
      former_base;  // of a view that others had when it became a leaf: they may still be reading it
  Mutex adding;     // held by the thread `adder` while it adds to grad
  uintptr_t adder;
  bool in_heap;
  int32_t geometry;          // number of a leaf's present geometry
  int32_t geometries;        // numbers given so far, after 0
  Geometry* first_geometry;  // owned; that of number 0, once there are others
};
AutogradMeta& autograd_meta(const Tensor& t);  // made on first use
inline AutogradMeta* find_meta(const Tensor& t) {
  return static_cast<AutogradMeta*>(__atomic_load_n(&t.meta, __ATOMIC_ACQUIRE));
}

// t.grad; empty: none. Any thread may replace it meanwhile.
TensorRef grad_of(const Tensor& t);
void set_grad(const Tensor& t, TensorRef grad);
// The same for many, under one lock: `locked` is proof of it, and nothing may be allocated or freed
// meanwhile.
Tensor* borrow_grad(const Lock& locked, const Tensor& t);
TensorRef take_grad(const Lock& locked, const Tensor& t);  // t has none then
// The gradient of t, which no leaf is, is kept from now on.
void retain_grad(const Tensor& t);
// The gradient that t retains will come from `to`, which takes its node's place.
void move_retained(const Lock& locked, const Tensor& t, Node& to, uint32_t nr) noexcept;
// What can fail of set_requires_grad, which repeats it; changes nothing.
void prepare_requires_grad(Tensor& t, bool on);
// set_data for a leaf: a graph that has saved it in another geometry refuses to run backward.
void replace_data(Tensor& leaf, const Tensor& src);
void prepare_replace(const Tensor& leaf);  // replace_data of equal rank does not fail then
inline int32_t number_of_geometry(const Tensor& t) {
  const AutogradMeta* m = find_meta(t);
  return m ? m->geometry : 0;
}
void set_requires_grad(Tensor& t, bool on);  // fails on non-leaves and non-differentiable dtypes

}  // namespace TT_NS
