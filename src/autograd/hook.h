// Hooks: host callbacks on gradients, kept as a list in the order of registration.
#pragma once

#include "autograd/node.h"

namespace TT_NS {

// out: set to a new tensor (owned by the caller) to replace the gradient, or left NULL. Non-zero: fails the backward.
using GradHookFn = tt_status (*)(void* user, tt_ctx* ctx, const tt_tensor* grad, tt_tensor** out);
using NodeHookFn = tt_status (*)(void* user, tt_ctx* ctx, tt_tensor* const* grads, int64_t n, tt_tensor** out);
using AccumulateHookFn = tt_status (*)(void* user, tt_ctx* ctx, const tt_tensor* leaf);

struct Hook {
  enum Kind : int32_t { kTensor, kNodePre, kNodePost, kAccumulate } kind;
  uint32_t nr;  // (kTensor on a node) which output
  int64_t id;   // unique on its owner
  AnyFn fn;
  void* user;
  void (*drop)(void*);
  Hook* next;
};

// Appends; `drop` runs exactly once, also when this fails. Returns the id.
int64_t add_hook(Hook** list, Hook::Kind kind, uint32_t nr, AnyFn fn, void* user, void (*drop)(void*));
bool remove_hook(Hook** list, int64_t id) noexcept;
void drop_hooks(Hook** list) noexcept;

// The list that a tensor's hooks live in: its own (leaf) or its node's.
Hook** tensor_hooks(const Tensor& t, uint32_t* nr);

// Fails unless a hook's replacement has the shape and dtype of what it replaces.
void check_replacement(const Tensor& got, Ints sizes, Dtype dtype);
// Each replaces grad(s) by what the hooks return. A hook may add and remove hooks, itself too.
void run_tensor_hooks(Hook* const& list, uint32_t nr, TensorRef& grad);
void run_node_hooks(Hook* const& list, Hook::Kind kind, TensorRef* grads, int64_t n);
void run_accumulate_hooks(Hook* const& list, const Tensor& leaf);

}  // namespace TT_NS
