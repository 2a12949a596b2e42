#include "autograd/function.h"

#include "autograd/callback_outs.h"
#include "autograd/dual.h"
#include "autograd/saved.h"
#include "base/finalizer.h"
#include "core/callback.h"

#include <string.h>

namespace TT_NS {

// The object behind a tt_function handle; the running call and the node hold a reference. Its name
// follows it in memory.
struct Function {
  uint32_t tag;
  RefCount refs;
  FunctionDef def;
  NodeType node_type;
  SmallVec<Saved, 4> saved;
  bool in_forward;
  const ForwardLevel* plain;  // (in forward) results and saved tensors lose its tangents
  Node* in_backward;          // the node whose backward runs
  size_t bytes;
  static void destroy(Function* f) noexcept {
    f->tag = 0;
    const FunctionDef def = f->def;
    size_t bytes = f->bytes;
    f->~Function();
    drop_and_free(f, bytes, def.drop, def.user);
  }
};

namespace {

Function& function_of(const NodeType* type) {
  return *reinterpret_cast<Function*>(reinterpret_cast<char*>(const_cast<NodeType*>(type)) -
                                      offsetof(Function, node_type));
}
tt_function* handle_of(Function& f) { return reinterpret_cast<tt_function*>(&f); }

void destroy_function_saved(Node& n) noexcept { function_of(n.type).saved.clear(); }
void release_type(const NodeType* type) noexcept {
  Ref<Function>::adopt(&function_of(type)).reset();
}

void function_backward(Node& n, TensorRef* grads, TensorRef* out) {
  check_not_released(n);
  Function& f = function_of(n.type);
  SmallVec<tt_tensor*, 4> incoming;
  for (int64_t i = 0; i < n.n_outs; i++)
    incoming.push_back(reinterpret_cast<tt_tensor*>(grads[i].get()));
  CallbackName what("backward", f.def.name);
  CallbackOuts outs(n.n_edges);
  struct Running {
    Function& f;
    Node* outer;  // a callback may run another backward through this node
    Running(Function& fn, Node* n) : f(fn), outer(fn.in_backward) { f.in_backward = n; }
    ~Running() { f.in_backward = outer; }
  };
  {
    Running running(f, &n);
    run_callback(what.text, true, [&](tt_ctx* c) {
      return f.def.backward(f.def.user, c, handle_of(f), incoming.data(), n.n_outs, outs.data(),
                            n.n_edges);
    });
  }
  TensorList list = outs.take(what.text, true);
  for (int64_t i = 0; i < n.n_edges; i++) out[i] = std::move(list[i]);
}

Ref<Function> make_function(const FunctionDef& def) {
  const size_t name_bytes = strlen(def.name) + 1;
  const size_t bytes = sizeof(Function) + name_bytes;
  void* block = heap_alloc(tls.heap, bytes);
  if (!block) {
    run_drop(def.drop, def.user);
    fail_oom(int64_t(bytes));
  }
  auto* f = new (block) Function{kTagFunction, 1, def, {}, {}, false, nullptr, nullptr, bytes};
  char* name = reinterpret_cast<char*>(f + 1);
  memcpy(name, def.name, name_bytes);
  f->def.name = name;
  f->node_type = {name, function_backward, destroy_function_saved, 0, true, release_type};
  return Ref<Function>::adopt(f);
}

TensorList run_forward(Function& f, TensorSpan inputs, int64_t n_outs) {
  CallbackName what("forward", f.def.name);
  CallbackOuts outs(n_outs);
  MaskGuard no_grad(bit(kKeyAutograd));
  struct Running {
    Function& f;
    explicit Running(Function& fn) : f(fn) { f.in_forward = true; }
    ~Running() { f.in_forward = false; }
  } running(f);
  run_callback(what.text, true, [&](tt_ctx* c) {
    return f.def.forward(f.def.user, c, handle_of(f),
                         reinterpret_cast<const tt_tensor* const*>(inputs.ptr), inputs.n,
                         outs.data(), n_outs);
  });
  TensorList results = outs.take(what.text, false);
  if (f.plain)
    for (TensorRef& r : results) r = primal_of(*r, f.plain);
  return results;
}

}  // namespace

namespace {

TensorList apply_plain(const FunctionDef& def, TensorSpan inputs, int64_t n_outs,
                       const ForwardLevel* plain);

// A call of a function whose inputs have tangents of a level.
struct PlainCall {
  const FunctionDef& def;
  int64_t n_outs;
  const ForwardLevel* level;
  bool called = false;  // from then on apply_function drops the application's data
  static TensorList run(void* self, TensorSpan inputs) {
    auto& c = *static_cast<PlainCall*>(self);
    c.called = true;
    return apply_plain(c.def, inputs, c.n_outs, c.level);
  }
  ~PlainCall() {
    if (!called) run_drop(def.drop, def.user);
  }
};

}  // namespace

TensorList apply_function(const FunctionDef& def, TensorSpan inputs, int64_t n_outs) {
  ForwardLevel* const level = kModes ? innermost_level(inputs) : nullptr;
  if (!level) return apply_plain(def, inputs, n_outs, nullptr);
  PlainCall call{def, n_outs, level};
  const auto call_plain = atomic_load(&call_with_tangents, kRelaxed);
  return call_plain({&PlainCall::run, &call}, inputs, *level);
}

namespace {

TensorList apply_plain(const FunctionDef& def, TensorSpan inputs, int64_t n_outs,
                       const ForwardLevel* plain) {
  Ref<Function> fn = make_function(def);
  Function& f = *fn;
  f.plain = plain;
  if ((ctx().exclude & bit(kKeyAutograd)) || !needs_grad(inputs))
    return run_forward(f, inputs, n_outs);
  NodeRef node = new_node(&f.node_type, inputs.n, n_outs);
  ref_inc(&f.refs);
  Node& n = as_node(node);
  n.released = false;
  for (int64_t i = 0; i < inputs.n; i++)
    if (needs_grad(inputs[i])) n.set_edge(i, *inputs[i]);
  TensorList results = run_forward(f, inputs, n_outs);
  for (int64_t i = 0; i < n_outs; i++) {
    results[i] = fresh_result(std::move(results[i]), inputs);
    if (!is_differentiable(results[i]->dtype)) continue;
    for (Saved& s : f.saved)
      if (s.holds(*results[i])) s.save_output(*results[i], uint32_t(i));
    set_history(node, *results[i], uint32_t(i));
  }
  return results;
}

}  // namespace

void function_save(Function& f, TensorSpan tensors) {
  if (!f.in_forward) fail(TT_INVALID_ARG, "tensors can be saved only while forward runs");
  f.saved.reserve(f.saved.size() + tensors.n);
  for (const Tensor* t : tensors) {
    f.saved.push_back(Saved());
    if (t && f.plain) f.saved.back().save(*primal_of(*t, f.plain));
    else f.saved.back().save(t);
  }
}

TensorRef function_saved(Function& f, int64_t i) {
  if (!f.in_backward) fail(TT_INVALID_ARG, "saved tensors can be read only while backward runs");
  if (i < 0 || i >= f.saved.size())
    fail_arg(TT_INDEX, "i", "i is {}: {} tensors were saved", i, f.saved.size());
  return f.saved[i].get_opt(*f.in_backward);
}

}  // namespace TT_NS
