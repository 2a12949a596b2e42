// Calling a module: hooks before, the type's forward, hooks after. Sequences are run on a stack of their own.
#include "autograd/host_outs.h"
#include "base/drop.h"
#include "core/callback.h"
#include "nn/module.h"

namespace TT_NS {

int64_t add_module_hook(Module& m, ModulePreHook pre, ModulePostHook post, void* user, void (*drop)(void*)) {
  auto* h = static_cast<ModuleHook*>(heap_alloc(tls.heap, sizeof(ModuleHook)));
  if (!h) {
    if (drop) drop(user);
    fail_oom(sizeof(ModuleHook));
  }
  ModuleHook** at = &m.hooks;
  int64_t id = 1;
  for (; *at; at = &(*at)->next)
    if ((*at)->id >= id) id = (*at)->id + 1;
  *at = new (h) ModuleHook{id, pre, post, user, drop, nullptr, 0, false};
  return id;
}

static void unlink(Module& m, ModuleHook* h) noexcept {
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
    if (!h->running) unlink(m, h);
    return true;
  }
  return false;
}

namespace {

tt_module* handle(Module& m) { return reinterpret_cast<tt_module*>(&m); }
const tt_tensor* const* handles(TensorSpan s) { return reinterpret_cast<const tt_tensor* const*>(s.ptr); }

// What a call works on: tensors (some may be absent) and the plain pointers to them.
struct Values {
  TensorList own;
  SmallVec<const Tensor*, 4> ptr;
  explicit Values(TensorSpan s) {
    for (const Tensor* t : s) own.push_back(TensorRef::share(t)), ptr.push_back(t);
  }
  explicit Values(TensorList&& l) : own(std::move(l)) {
    for (const TensorRef& t : own) ptr.push_back(t.get());
  }
  TensorSpan span() const { return {ptr.data(), ptr.size()}; }
  void take(TensorList&& l) {
    ptr.clear();
    own = std::move(l);
    for (const TensorRef& t : own) ptr.push_back(t.get());
  }
  // Absent replacements keep what is there.
  void replace(TensorList&& l) {
    for (int64_t i = 0; i < l.size(); i++)
      if (l[i]) own[i] = std::move(l[i]), ptr[i] = own[i].get();
  }
};

template <class F>
void for_each_hook(Module& m, bool pre, F call) {
  for (ModuleHook* h = m.hooks; h;) {
    if (h->removed || (h->pre != nullptr) != pre) {
      h = h->next;
      continue;
    }
    struct Running {
      Module& m;
      ModuleHook* h;
      ModuleHook** next;
      ~Running() {
        *next = h->next;
        if (--h->running == 0 && h->removed) unlink(m, h);
      }
    };
    h->running++;
    Running running{m, h, &h};
    call(*running.h);
  }
}

void run_pre_hooks(Module& m, Values& v) {
  for_each_hook(m, true, [&](ModuleHook& h) {
    CallbackName what("forward pre-hook", m.type->name);
    HostOuts outs(v.own.size());
    run_callback(what.text, true, [&](tt_ctx* c) { return h.pre(h.user, c, handle(m), handles(v.span()), v.own.size(), outs.data()); });
    v.replace(outs.take(what.text, true));
  });
}

void run_post_hooks(Module& m, TensorSpan inputs, Values& v) {
  for_each_hook(m, false, [&](ModuleHook& h) {
    CallbackName what("forward hook", m.type->name);
    HostOuts outs(v.own.size());
    run_callback(what.text, true, [&](tt_ctx* c) { return h.post(h.user, c, handle(m), handles(inputs), inputs.n, handles(v.span()), v.own.size(), outs.data()); });
    v.replace(outs.take(what.text, true));
  });
}

void check_call(const Module& m, TensorSpan inputs) {
  const ModuleType& t = *m.type;
  if (!t.forward && !t.sequential) fail_arg(TT_NOT_IMPLEMENTED, "m", "{} cannot be called: call its children", t.name);
  if (inputs.n < t.min_inputs || inputs.n > t.max_inputs)
    fail_arg(TT_INVALID_ARG, "inputs", "{} inputs for {}: must be {} to {}", inputs.n, t.name, t.min_inputs, t.max_inputs);
  for (int64_t i = 0; i < t.min_inputs; i++)
    if (!inputs[i]) fail_arg(TT_BAD_HANDLE, "inputs", "inputs[{}] is NULL: {} needs it", i, t.name);
}

// A sequence in progress, or a module whose hooks wait for its results.
struct Frame {
  ModuleRef module;
  int64_t next;
  TensorList inputs;  // kept for the hooks after it
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
      frames.push_back({std::move(entering), 0, m.hooks ? v.own : TensorList()});
      if (!m.type->sequential) v.take(m.type->forward(m, v.span()));
    }
    Frame& f = frames.back();
    Module& m = *f.module;
    if (m.type->sequential && f.next < m.children.size()) {
      entering = m.children[f.next++].module;
      continue;
    }
    if (m.hooks) run_post_hooks(m, Values(std::move(f.inputs)).span(), v);
    frames.pop_back();
    if (frames.empty()) return std::move(v.own);
  }
}

}  // namespace TT_NS
