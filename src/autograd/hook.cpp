#include "autograd/hook.h"

#include "autograd/callback_outs.h"
#include "core/callback.h"

namespace TT_NS {

static tt_tensor* handle(const Tensor* t) {
  return reinterpret_cast<tt_tensor*>(const_cast<Tensor*>(t));
}

TensorHooks::TensorHooks(const Tensor& t) : edge_(gradient_edge(t)) {
  if (!edge_)
    fail_arg(TT_AUTOGRAD, "self", "self does not require a gradient: a hook on it would never run");
}
HookList& TensorHooks::list() const {
  return edge_.is_leaf() ? autograd_meta(*edge_.leaf()).hooks : edge_.node()->hooks;
}

void check_replacement(const Tensor& got, Ints sizes, Dtype dtype) {
  if (!same(got.sizes(), sizes) || got.dtype != dtype)
    fail(TT_CALLBACK, "a gradient hook returned {} of shape {}: must be {} of shape {}",
         fmt(got.dtype), got.sizes(), fmt(dtype), sizes);
}

void run_tensor_hooks(const HookList& list, uint32_t nr, TensorRef& grad) {
  for_each_hook(list, kTensorHook, nr, [&](Hook& h) {
    CallbackOuts out(1);
    run_callback("a tensor hook", true, [&](tt_ctx* c) {
      return reinterpret_cast<GradHookFn>(h.fn)(h.user, c, handle(grad.get()), out.data());
    });
    TensorList replaced = out.take("a tensor hook", true);
    if (!replaced[0]) return;
    check_replacement(*replaced[0], grad->sizes(), grad->dtype);
    grad = std::move(replaced[0]);
  });
}

void run_node_hooks(Node& node, GradHookKind kind, TensorRef* grads) {
  const int64_t n = kind == kNodePreHook ? node.n_outs : node.n_edges;
  for_each_hook(node.hooks, kind, 0, [&](Hook& h) {
    SmallVec<tt_tensor*, 8> in;
    for (int64_t i = 0; i < n; i++) in.push_back(handle(grads[i].get()));
    CallbackOuts out(n);
    run_callback("a node hook", true, [&](tt_ctx* c) {
      return reinterpret_cast<NodeHookFn>(h.fn)(h.user, c, in.data(), n, out.data());
    });
    TensorList replaced = out.take("a node hook", true);
    for (int64_t i = 0; i < n; i++) {
      if (!replaced[i]) continue;
      if (kind == kNodePreHook) {
        const NodeOut& o = node.outs()[i];
        if (!o.defined)
          fail(TT_CALLBACK, "a node hook returned gradient {} of an input that requires none", i);
        check_replacement(*replaced[i], o.sizes(), o.dtype);
      } else if (grads[i]) {
        check_replacement(*replaced[i], grads[i]->sizes(), grads[i]->dtype);
      }
      grads[i] = std::move(replaced[i]);
    }
  });
}

void run_accumulate_hooks(const HookList& list, const Tensor& leaf) {
  for_each_hook(list, kAccumulateHook, 0, [&](Hook& h) {
    run_callback("an accumulate hook", false, [&](tt_ctx* c) {
      return reinterpret_cast<AccumulateHookFn>(h.fn)(h.user, c, handle(&leaf));
    });
  });
}

}  // namespace TT_NS
