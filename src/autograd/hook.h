// Hooks on gradients: callbacks of the application at tensors and nodes during backward.
#pragma once

#include "autograd/node.h"

namespace TT_NS {

// Sets *out to a new tensor (owned by the caller) to replace the gradient, or leaves it NULL. A
// nonzero status fails backward.
using GradHookFn = tt_status (*)(void* user, tt_ctx* ctx, const tt_tensor* grad, tt_tensor** out);
using NodeHookFn = tt_status (*)(void* user, tt_ctx* ctx, tt_tensor* const* grads, int64_t n,
                                 tt_tensor** out);
using AccumulateHookFn = tt_status (*)(void* user, tt_ctx* ctx, const tt_tensor* leaf);

enum GradHookKind : int32_t { kTensorHook, kNodePreHook, kNodePostHook, kAccumulateHook };

// The hooks of a tensor: stored in the tensor (leaf) or in its node, which lives as long as this.
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
// Each replaces the gradients by the results of the hooks. grads: of the node's outputs if kind is
// kNodePreHook, else of its inputs.
void run_tensor_hooks(const HookList& list, uint32_t nr, TensorRef& grad);
void run_node_hooks(Node& node, GradHookKind kind, TensorRef* grads);
void run_accumulate_hooks(const HookList& list, const Tensor& leaf);

}  // namespace TT_NS
