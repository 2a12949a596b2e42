// Calling a module: hooks before, the type's forward, hooks after. Sequences are run on a stack of their own.
#include "nn/hook.h"

namespace TT_NS {

int64_t add_module_hook(Module& m, ModuleHook::Kind kind, ModulePreHook pre, ModulePostHook post, void* user,
                        void (*drop)(void*)) {
  auto* h = static_cast<ModuleHook*>(heap_alloc(tls.heap, sizeof(ModuleHook)));
  if (!h) {
    if (drop) drop(user);
    fail_oom(sizeof(ModuleHook));
  }
  ModuleHook** at = &m.hooks;
  int64_t id = 1;
  for (; *at; at = &(*at)->next)
    if ((*at)->id >= id) id = (*at)->id + 1;
  *at = new (h) ModuleHook{kind, id, pre, post, user, drop, nullptr, 0, false};
  return id;
}

void unlink_hook(Module& m, ModuleHook* h) noexcept {
  for (ModuleHook** at = &m.hooks; *at; at = &(*at)->next) {
    if (*at != h) continue;
    *at = h->next;
    drop_and_free(h, sizeof *h, h->drop, h->user);
    return;
  }
}

bool remove_module_hook(Module& m, int64_t id) noexcept {
  for (ModuleHook* h = m.hooks; h; h = h->next) {
    if (h->id != id || h->removed) continue;
    h->removed = true;
    if (!h->running) unlink_hook(m, h);
    return true;
  }
  return false;
}

namespace {

void run_pre_hooks(Module& m, Values& v) {
  for_each_hook(m, ModuleHook::kForwardPre, [&](ModuleHook& h) {
    CallbackName what("forward pre-hook", m.type->name);
    HostOuts outs(v.own.size());
    run_callback(what.text, true,
                 [&](tt_ctx* c) { return h.pre(h.user, c, handle(m), handles(v.span()), v.own.size(), outs.data()); });
    v.replace(outs.take(what.text, true));
  });
}

void run_post_hooks(Module& m, TensorSpan inputs, Values& v) {
  for_each_hook(m, ModuleHook::kForward, [&](ModuleHook& h) {
    CallbackName what("forward hook", m.type->name);
    HostOuts outs(v.own.size());
    run_callback(what.text, true, [&](tt_ctx* c) {
      return h.post(h.user, c, handle(m), handles(inputs), inputs.n, handles(v.span()), v.own.size(), outs.data());
    });
    v.replace(outs.take(what.text, true));
  });
}

void check_call(const Module& m, TensorSpan inputs) {
  const ModuleType& t = *m.type;
  if (!t.forward && !t.sequential) fail_arg(TT_NOT_IMPLEMENTED, "m", "{} cannot be called: call its children", t.name);
  if (inputs.n < t.min_inputs || inputs.n > t.max_inputs)
    fail_arg(TT_INVALID_ARG, "inputs", "{} inputs for {}: must be {} to {}", inputs.n, t.name, t.min_inputs,
             t.max_inputs);
  for (int64_t i = 0; i < t.min_inputs; i++)
    if (!inputs[i]) fail_arg(TT_BAD_HANDLE, "inputs", "inputs[{}] is NULL: {} needs it", i, t.name);
}

// A sequence in progress, or a module whose hooks wait for its results.
struct Frame {
  ModuleRef module;
  int64_t next;
  TensorList inputs;  // kept for the hooks after it
  WatchedCall watched;
};

}  // namespace

TensorList forward(Module& root, TensorSpan inputs) {
  check_call(root, inputs);
  if (!root.hooks && !root.type->sequential) return root.type->forward(root, inputs);
  Values v(inputs);
  SmallVec<Frame, 4> frames;
  ModuleRef entering = ModuleRef::share(&root);
  for (;;) {
    if (entering) {
      Module& m = *entering;
      run_pre_hooks(m, v);
      check_call(m, v.span());
      WatchedCall watched = m.hooks ? watch_inputs(m, v) : WatchedCall();
      frames.push_back({std::move(entering), 0, m.hooks ? v.own : TensorList(), std::move(watched)});
      if (!m.type->sequential) v.take(m.type->forward(m, v.span()));
    }
    Frame& f = frames.back();
    Module& m = *f.module;
    if (m.type->sequential && f.next < m.children.size()) {
      entering = m.children[f.next++].module;
      continue;
    }
    if (m.hooks) run_post_hooks(m, Values(std::move(f.inputs)).span(), v);
    if (f.watched.on) watch_results(m, f.watched, v);
    frames.pop_back();
    if (frames.empty()) return std::move(v.own);
  }
}

}  // namespace TT_NS
