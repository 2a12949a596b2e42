// Hooks on the gradients of a module's inputs and results.
#include "autograd/hook.h"
#include "autograd/saved.h"
#include "ops/gen/ops.h"
#include "nn/hook.h"

namespace TT_NS {
namespace {

struct Watched {
  ModuleRef module;
  int64_t n_inputs;
};

Values values_of(TensorRef* grads, int64_t n) {
  TensorList list;
  for (int64_t i = 0; i < n; i++) list.push_back(grads[i]);
  return Values(std::move(list));
}

// outs describes the gradients; NULL, or an undefined output: there is none to replace.
void replace_grads(Values& grads, TensorList&& by, const NodeOut* outs, const char* what) {
  for (int64_t i = 0; i < by.size(); i++) {
    if (!by[i]) continue;
    if (!outs || !outs[i].defined)
      fail(TT_CALLBACK, "{} replaced gradient {}, but there is no such gradient", what, i);
    check_replacement(*by[i], outs[i].sizes(), outs[i].dtype);
  }
  grads.replace(std::move(by));
}

void run_pre_hooks(Module& m, Values& grad_results, const NodeOut* outs) {
  for_each_hook(m.hooks, kBackwardPreHook, 0, [&](Hook& h) {
    CallbackName what("full backward pre-hook", m.type->name);
    const int64_t n = grad_results.own.size();
    CallbackOuts replaced(n);
    run_callback(what.text, true, [&](tt_ctx* c) {
      return reinterpret_cast<ModulePreHook>(h.fn)(
          h.user, c, handle(m), handles(grad_results.span()), n, replaced.data());
    });
    replace_grads(grad_results, replaced.take(what.text, true), outs, what.text);
  });
}

void run_hooks(Module& m, Values& grad_inputs, const NodeOut* outs, const Values& grad_results) {
  for_each_hook(m.hooks, kBackwardHook, 0, [&](Hook& h) {
    CallbackName what("full backward hook", m.type->name);
    const int64_t n = grad_inputs.own.size();
    CallbackOuts replaced(n);
    run_callback(what.text, true, [&](tt_ctx* c) {
      return reinterpret_cast<ModulePostHook>(h.fn)(
          h.user, c, handle(m), handles(grad_results.span()), grad_results.own.size(),
          handles(grad_inputs.span()), n, replaced.data());
    });
    replace_grads(grad_inputs, replaced.take(what.text, true), outs, what.text);
  });
}

// Node of the inputs as the module sees them: passes gradients on to the node below, which also
// waits for those of the results.
void pass_on(Node& n, TensorRef* grads, TensorRef* out) {
  for (int64_t i = 0; i < n.n_edges; i++) out[i] = std::move(grads[i]);
}
void nothing_saved(Node&) noexcept {}

// grads: of the inputs, then of the results. If all of the results are missing, this backward did
// not come through the module.
void inputs_backward(Node& n, TensorRef* grads, TensorRef* out) {
  const ModuleRef module = n.saved_as<Watched>().module;
  const int64_t n_inputs = n.n_edges;
  Values grad_results = values_of(grads + n_inputs, n.n_outs - n_inputs);
  if (!grad_results.any()) return pass_on(n, grads, out);
  for (int64_t i = 0; i < n_inputs; i++) {
    const NodeOut& o = n.outs()[i];
    if (!grads[i] && o.defined) grads[i] = op::zeros(o.sizes(), o.dtype, o.device);
  }
  Values grad_inputs = values_of(grads, n_inputs);
  run_hooks(*module, grad_inputs, n.outs(), grad_results);
  for (int64_t i = 0; i < n_inputs; i++) out[i] = std::move(grad_inputs.own[i]);
}

// Edges: of the results, then, if it exists, to the node of the inputs.
void results_backward(Node& n, TensorRef* grads, TensorRef* out) {
  const ModuleRef module = n.saved_as<Watched>().module;
  Values grad_results = values_of(grads, n.n_outs);
  run_pre_hooks(*module, grad_results, n.outs());
  if (n.n_edges == n.n_outs) {
    TensorList none;
    none.resize(n.saved_as<Watched>().n_inputs);
    Values grad_inputs(std::move(none));
    run_hooks(*module, grad_inputs, nullptr, grad_results);
  }
  for (int64_t i = 0; i < n.n_edges; i++) out[i] = grad_results.own[i % n.n_outs];
}

constexpr NodeType kPass = {"module_inputs", pass_on, nothing_saved, 0, true};
constexpr NodeType kInputs = {.name = "module_backward_hooks",
                              .apply = inputs_backward,
                              .destroy_saved = destroy_saved<Watched>,
                              .saved_bytes = sizeof(Watched),
                              .takes_undefined = true,
                              .runs_hooks = true};
constexpr NodeType kResults = {.name = "module_results",
                               .apply = results_backward,
                               .destroy_saved = destroy_saved<Watched>,
                               .saved_bytes = sizeof(Watched),
                               .takes_undefined = true,
                               .runs_hooks = true};

NodeRef watched_node(const NodeType* type, Module& m, int64_t n_inputs, int64_t n_edges,
                     int64_t n_outs) {
  NodeRef node = new_node(type, n_edges, n_outs);
  new (as_node(node).saved()) Watched{ModuleRef::share(&m), n_inputs};
  as_node(node).released = false;
  return node;
}

// Replaces tensors that need a gradient by copies, which the module or a callback may write to,
// with the node as their history.
void pass_through(const NodeRef& node, Values& v) {
  for (int64_t i = 0; i < v.own.size(); i++) {
    if (!as_node(node).needs(i)) continue;
    MaskGuard no_grad(bit(kKeyAutograd));
    TensorRef passed = op::clone(*v.own[i]);
    set_history(node, *passed, uint32_t(i));
    v.set(i, std::move(passed));
  }
}

// Inserts a node that runs the hooks between the node of the inputs and the nodes below it, at the
// topo left free for it.
NodeRef insert_hooks(Module& m, const WatchedCall& call, const Values& results) {
  Node& above = as_node(call.inputs);
  NodeRef node =
      watched_node(&kInputs, m, call.n_inputs, call.n_inputs, call.n_inputs + results.own.size());
  Node& n = as_node(node);
  n.topo = above.topo - 1;
  for (int64_t i = 0; i < call.n_inputs; i++)
    if (above.outs()[i].defined) describe_output(n, uint32_t(i), above.outs()[i]);
  for (int64_t i = 0; i < results.own.size(); i++)
    if (results.ptr[i]) describe_output(n, uint32_t(call.n_inputs + i), *results.ptr[i]);
  {
    claim_node(above, nullptr);  // the application may have passed the inputs to another thread
    const NodeRun run(above);
    Lock lock(shared_lock);
    for (int64_t i = 0; i < call.n_inputs; i++) {
      if (!above.needs(i)) continue;
      n.edges()[i] = above.edges()[i];
      above.edges()[i] = edge_to(node, uint32_t(i));
    }
  }
  update_min_topo(n);
  return node;
}

bool has_backward_hooks(const Module& m) {
  return m.hooks.has(kBackwardPreHook) || m.hooks.has(kBackwardHook);
}

}  // namespace

WatchedCall watch_inputs(Module& m, Values& inputs) {
  WatchedCall call;
  if (!has_backward_hooks(m) || (ctx().exclude & bit(kKeyAutograd))) return call;
  call.on = true;
  call.n_inputs = inputs.own.size();
  if (!needs_grad(inputs.span())) return call;
  call.inputs = new_node(&kPass, call.n_inputs, call.n_inputs);
  Node& n = as_node(call.inputs);
  n.released = false;
  for (int64_t i = 0; i < call.n_inputs; i++) {
    if (needs_grad(inputs.ptr[i])) {
      n.set_edge(i, inputs.ptr[i]);
    } else if (inputs.ptr[i]) {
      describe_output(n, uint32_t(i), *inputs.ptr[i]);
    }
  }
  n.topo++;
  pass_through(call.inputs, inputs);
  return call;
}

void watch_results(Module& m, const WatchedCall& call, Values& results) {
  if (!needs_grad(results.span())) return;
  const int64_t n = results.own.size();
  NodeRef node = watched_node(&kResults, m, call.n_inputs, call.inputs ? 2 * n : n, n);
  for (int64_t i = 0; i < n; i++)
    if (needs_grad(results.ptr[i])) as_node(node).set_edge(i, results.ptr[i]);
  if (call.inputs) {
    NodeRef below = insert_hooks(m, call, results);
    for (int64_t i = 0; i < n; i++)
      if (as_node(node).needs(i))
        as_node(node).edges()[n + i] = edge_to(below, uint32_t(call.n_inputs + i));
    if (as_node(node).topo <= as_node(below).topo) as_node(node).topo = as_node(below).topo + 1;
  }
  pass_through(node, results);
}

}  // namespace TT_NS
