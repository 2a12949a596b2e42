// Hooks on gradients: what the host may call at tensors and nodes while backward runs.
#pragma once

#include "autograd/node.h"

namespace TT_NS {

// out: set to a new tensor (owned by the caller) to replace the gradient, or left NULL. Non-zero:
// fails the backward.
using GradHookFn = tt_status (*)(void* user, tt_ctx* ctx, const tt_tensor* grad, tt_tensor** out);
using NodeHookFn = tt_status (*)(void* user, tt_ctx* ctx, tt_tensor* const* grads, int64_t n,
                                 tt_tensor** out);
using AccumulateHookFn = tt_status (*)(void* user, tt_ctx* ctx, const tt_tensor* leaf);

enum GradHookKind : int32_t { kTensorHook, kNodePreHook, kNodePostHook, kAccumulateHook };

// Where a tensor's hooks live: with itself (leaf) or with its node, which stays while this does.
class TensorHooks {
 public:
  explicit TensorHooks(const Tensor& t);
  ~TensorHooks() { release_edge(edge_); }
  TensorHooks(const TensorHooks&) = delete;
  HookList& list() const;
  uint32_t nr() const { return edge_.nr; }

 private:
  Edge edge_;
};

// Fails unless a hook's replacement has the shape and dtype of what it replaces.
void check_replacement(const Tensor& got, Ints sizes, Dtype dtype);
// Each replaces grad(s) by what the hooks return.
void run_tensor_hooks(const HookList& list, uint32_t nr, TensorRef& grad);
void run_node_hooks(Node& node, GradHookKind kind,
                    TensorRef* grads);  // of its outputs (pre), or inputs
void run_accumulate_hooks(const HookList& list, const Tensor& leaf);

}  // namespace TT_NS
