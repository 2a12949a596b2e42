#include "autograd/anomaly.h"
#include "autograd/dual.h"
#include "autograd/engine.h"
#include "autograd/hook.h"
#include "autograd/saved_values.h"
#include "base/finalizer.h"
#include "capi/api.h"
#include "tt.h"

using namespace TT_NS;

// The history of a dual tensor is that of its primal.
static Tensor& history_arg(tt_tensor* self) {
  Tensor& t = mutable_arg(self, "self", 1);
  return is_dual(t) ? with_history_of(t) : t;
}

static bool any_has_parts(TensorSpan tensors) {
  bool found = false;
  for (const Tensor* t : tensors) found = found || (t && has_parts(*t));
  return found;
}
static void check_no_parts(const BackwardArgs& a) {
  if (any_has_parts(a.outputs) || any_has_parts(a.grads))
    fail(TT_AUTOGRAD,
         "a tensor is one sample of a vmap, or has a tangent, which .grad would lose: use grad");
}

tt_status tt_requires_grad_(tt_ctx* h, tt_tensor* self, int32_t on) {
  return api_call(h, "requires_grad_",
                  [&](Ctx&) { set_requires_grad(history_arg(self), on != 0); });
}

tt_status tt_retain_grad(tt_ctx* h, tt_tensor* self) {
  return api_call(h, "retain_grad", [&](Ctx&) { retain_grad(history_arg(self)); });
}

tt_status tt_tensor_grad(tt_ctx* h, const tt_tensor* self, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "tensor_grad", [&](Ctx& c) {
    out_arg(out, "out", 2);
    TensorRef grad = grad_of(with_history_of(tensor_arg(self, "self", 1)));
    if (grad) give(c, out, std::move(grad));
  });
}

tt_status tt_tensor_set_grad(tt_ctx* h, tt_tensor* self, const tt_tensor* grad) {
  return api_call(h, "tensor_set_grad", [&](Ctx&) {
    Tensor& t = history_arg(self);
    const Tensor* g = optional_arg(grad, "grad", 2);
    if (!g) return set_grad(t, {});
    if (!same(g->sizes(), t.sizes()))
      fail_arg(TT_SHAPE, "grad", "grad is {}, self is {}: must be equal", g->sizes(), t.sizes());
    if (g->dtype != t.dtype)
      fail_arg(TT_DTYPE, "grad", "grad is {}, self is {}: must be equal", fmt(g->dtype),
               fmt(t.dtype));
    if (!(g->device == t.device))
      fail_arg(TT_DEVICE, "grad", "grad is on {}, self on {}: must be on one device",
               fmt(g->device), fmt(t.device));
    if (g == &t) fail_arg(TT_INVALID_ARG, "grad", "grad is self: must be another tensor");
    set_grad(t, TensorRef::share(g));
  });
}

static BackwardArgs backward_args(const tt_backward_opts* opts) {
  check_opts(opts, 4);
  BackwardArgs a;
  a.create_graph = opts_has(opts, 2) && opts->create_graph;
  a.retain_graph = opts_has(opts, 1) ? opts->retain_graph != 0 : a.create_graph;
  if (!opts_has(opts, 3)) return a;
  a.inputs = tensors_arg(opts->inputs, opts->n_inputs, "inputs", 2, false);
  if (!a.inputs.n)
    fail_arg(TT_INVALID_ARG, "inputs", "inputs is empty: omit it to accumulate into all leaves");
  return a;
}

tt_status tt_backward(tt_ctx* h, const tt_tensor* self, const tt_backward_opts* opts) {
  return api_call(h, "backward", [&](Ctx&) {
    BackwardArgs a = backward_args(opts);
    const Tensor* output = &tensor_arg(self, "self", 1);
    const Tensor* gradient =
        opts_has(opts, 0) ? optional_arg(opts->gradient, "gradient", 2) : nullptr;
    a.outputs = {&output, 1};
    a.grads = {&gradient, 1};
    check_no_parts(a);
    run_backward(a);
  });
}

tt_status tt_backward_all(tt_ctx* h, const tt_tensor* const* tensors,
                          const tt_tensor* const* gradients, int64_t n,
                          const tt_backward_opts* opts) {
  return api_call(h, "backward", [&](Ctx&) {
    BackwardArgs a = backward_args(opts);
    if (opts_has(opts, 0))
      fail_arg(TT_INVALID_ARG, "opts", "opts.gradient is for a single tensor: use gradients");
    a.outputs = tensors_arg(tensors, n, "tensors", 1, false);
    if (gradients) a.grads = tensors_arg(gradients, n, "gradients", 2, true);
    check_no_parts(a);
    if (n) run_backward(a);
  });
}

tt_status tt_grad(tt_ctx* h, const tt_tensor* const* outputs, int64_t n_outputs,
                  const tt_tensor* const* inputs, int64_t n_inputs, const tt_grad_opts* opts,
                  tt_tensor** grads) {
  for (int64_t i = 0; grads && i < n_inputs; i++) grads[i] = nullptr;
  return api_call(h, "grad", [&](Ctx& c) {
    check_opts(opts, 4);
    BackwardArgs a;
    a.outputs = tensors_arg(outputs, n_outputs, "outputs", 1, false);
    a.inputs = tensors_arg(inputs, n_inputs, "inputs", 3, false);
    if (!n_outputs || !n_inputs)
      fail(TT_INVALID_ARG, "there are {} outputs and {} inputs: at least one of each is needed",
           n_outputs, n_inputs);
    out_arg(grads, "grads", 6);
    if (opts_has(opts, 0)) {
      a.grads = tensors_arg(opts->grad_outputs, opts->n_grad_outputs, "grad_outputs", 5, true);
      if (a.grads.n != n_outputs)
        fail_arg(TT_INVALID_ARG, "grad_outputs",
                 "there are {} grad_outputs for {} outputs: must be equal", a.grads.n, n_outputs);
    }
    a.create_graph = opts_has(opts, 2) && opts->create_graph;
    a.retain_graph = opts_has(opts, 1) ? opts->retain_graph != 0 : a.create_graph;
    a.allow_unused = opts_has(opts, 3) && opts->allow_unused;
    a.accumulate = false;
    const bool parts =
        any_has_parts(a.outputs) || any_has_parts(a.grads) || any_has_parts(a.inputs);
    const auto of_parts = atomic_load(&find_gradients_of_parts, kRelaxed);
    TensorList found = parts && of_parts ? of_parts(a) : run_backward(a);
    int64_t n = n_inputs;
    give_list(c, grads, n_inputs, &n, std::move(found));
  });
}

// ---- hooks ----

tt_status tt_register_hook(tt_ctx* h, tt_tensor* self, tt_grad_hook fn, void* user,
                           void (*drop)(void*), int64_t* id) {
  bool passed_on = false;
  tt_status status = api_call(h, "register_hook", [&](Ctx&) {
    out_arg(id, "id", 5);
    if (!fn) fail_null("fn", 2);
    const TensorHooks hooks(history_arg(self));
    passed_on = true;
    *id = hooks.list().add(kTensorHook, hooks.nr(), reinterpret_cast<AnyFn>(fn), user, drop);
  });
  if (!passed_on) run_drop(drop, user);
  return status;
}

tt_status tt_register_accumulate_hook(tt_ctx* h, tt_tensor* leaf, tt_accumulate_hook fn, void* user,
                                      void (*drop)(void*), int64_t* id) {
  bool passed_on = false;
  tt_status status = api_call(h, "register_accumulate_hook", [&](Ctx&) {
    out_arg(id, "id", 5);
    if (!fn) fail_null("fn", 2);
    Tensor& t = with_history_of(mutable_arg(leaf, "leaf", 1));
    if (t.grad_fn || !(t.flags & kRequiresGrad))
      fail_arg(TT_AUTOGRAD, "leaf", "leaf must be a leaf that requires a gradient");
    AutogradMeta& m = autograd_meta(t);
    passed_on = true;
    *id = m.hooks.add(kAccumulateHook, 0, reinterpret_cast<AnyFn>(fn), user, drop);
  });
  if (!passed_on) run_drop(drop, user);
  return status;
}

tt_status tt_remove_hook(tt_ctx* h, tt_tensor* self, int64_t id) {
  return api_call(h, "remove_hook", [&](Ctx&) {
    const TensorHooks hooks(history_arg(self));
    if (!hooks.list().remove(id)) fail_arg(TT_INVALID_ARG, "id", "self has no hook {}", id);
  });
}

// ---- nodes ----

static Node& node_arg(const tt_node* h, const char* arg, int32_t index) {
  auto* n = reinterpret_cast<Node*>(const_cast<tt_node*>(h));
  if (!n || n->tag != kTagNode) fail_handle(h, arg, index, "node");
  return *n;
}
static Node* live_node(const tt_node* h) {
  auto* n = reinterpret_cast<Node*>(const_cast<tt_node*>(h));
  return n && n->tag == kTagNode ? n : nullptr;
}
static tt_node* to_node_handle(Node* n) {
  return n ? reinterpret_cast<tt_node*>(NodeRef::share(n).leak()) : nullptr;
}

tt_status tt_tensor_grad_fn(tt_ctx* h, const tt_tensor* self, tt_node** out) {
  if (out) *out = nullptr;
  return api_call(h, "tensor_grad_fn", [&](Ctx&) {
    out_arg(out, "out", 2);
    Edge e = gradient_edge(with_history_of(tensor_arg(self, "self", 1)));
    if (e && !e.is_leaf()) *out = to_node_handle(e.node());
    release_edge(e);
  });
}
const char* tt_node_name(const tt_node* h) {
  Node* n = live_node(h);
  return n ? n->type->name : nullptr;
}
int64_t tt_node_num_inputs(const tt_node* h) {
  Node* n = live_node(h);
  return n ? n->n_edges : 0;
}
// The edge of an input; the caller holds shared_lock.
static const Edge& edge_arg(const tt_node* node, int64_t input) {
  Node& n = node_arg(node, "n", 1);
  if (input < 0 || input >= n.n_edges)
    fail_arg(TT_INDEX, "input", "input is {}: the node has {} inputs", input, n.n_edges);
  return n.edges()[input];
}
tt_status tt_node_next(tt_ctx* h, const tt_node* node, int64_t input, tt_node** out) {
  if (out) *out = nullptr;
  return api_call(h, "node_next", [&](Ctx&) {
    out_arg(out, "out", 3);
    Lock lock(shared_lock);
    const Edge& e = edge_arg(node, input);
    if (e && !e.is_leaf()) *out = to_node_handle(e.node());
  });
}
tt_status tt_node_leaf(tt_ctx* h, const tt_node* node, int64_t input, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "node_leaf", [&](Ctx& c) {
    out_arg(out, "out", 3);
    TensorRef leaf;
    {
      Lock lock(shared_lock);
      const Edge& e = edge_arg(node, input);
      if (e.is_leaf()) leaf = TensorRef::share(e.leaf());
    }
    if (leaf) give(c, out, std::move(leaf));
  });
}
tt_status tt_node_describe(tt_ctx* h, const tt_node* node, char* buffer, int64_t cap, int64_t* n) {
  return text_call(h, "node_describe", buffer, cap, n,
                   [&](Text& text) { print_node(node_arg(node, "node", 1), text); });
}
tt_status tt_node_saved(tt_ctx* h, const tt_node* node, int64_t i, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "node_saved", [&](Ctx& c) {
    out_arg(out, "out", 3);
    give(c, out, saved_tensor(node_arg(node, "n", 1), i));
  });
}
tt_status tt_node_register_hook(tt_ctx* h, tt_node* node, int32_t pre, tt_node_hook fn, void* user,
                                void (*drop)(void*), int64_t* id) {
  bool passed_on = false;
  tt_status status = api_call(h, "node_register_hook", [&](Ctx&) {
    out_arg(id, "id", 6);
    if (!fn) fail_null("fn", 3);
    Node& n = node_arg(node, "n", 1);
    passed_on = true;
    *id =
        n.hooks.add(pre ? kNodePreHook : kNodePostHook, 0, reinterpret_cast<AnyFn>(fn), user, drop);
  });
  if (!passed_on) run_drop(drop, user);
  return status;
}
tt_status tt_node_remove_hook(tt_ctx* h, tt_node* node, int64_t id) {
  return api_call(h, "node_remove_hook", [&](Ctx&) {
    if (!node_arg(node, "n", 1).hooks.remove(id))
      fail_arg(TT_INVALID_ARG, "id", "the node has no hook {}", id);
  });
}
void tt_node_retain(tt_node* h) {
  if (Node* n = live_node(h)) ref_inc_external(&n->refs);
}
void tt_node_release(tt_node* h) {
  if (Node* n = live_node(h)) NodeRef::adopt(n).reset();
}

tt_status tt_set_anomaly_enabled(tt_ctx* h, int32_t enabled, int32_t* previous) {
  return api_call(h, "set_anomaly_enabled", [&](Ctx& c) {
    if (previous) *previous = c.anomaly != nullptr;
    c.anomaly = enabled ? check_anomaly : nullptr;
  });
}
int32_t tt_anomaly_enabled(const tt_ctx* h) {
  auto* c = reinterpret_cast<const Ctx*>(h);
  return c && c->tag == kTagCtx && c->anomaly != nullptr;
}
