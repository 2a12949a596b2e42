#include "autograd/hook.h"

#include "core/callback.h"

namespace TT_NS {

static tt_tensor* handle(const Tensor* t) { return reinterpret_cast<tt_tensor*>(const_cast<Tensor*>(t)); }

int64_t add_hook(Hook** list, Hook::Kind kind, uint32_t nr, AnyFn fn, void* user, void (*drop)(void*)) {
  auto* h = static_cast<Hook*>(heap_alloc(tls.heap, sizeof(Hook)));
  if (!h) {
    if (drop) drop(user);
    fail_oom(sizeof(Hook));
  }
  int64_t id = 1;
  while (*list) {
    if ((*list)->id >= id) id = (*list)->id + 1;
    list = &(*list)->next;
  }
  *h = Hook{kind, nr, id, fn, user, drop, nullptr};
  *list = h;
  return id;
}

bool remove_hook(Hook** list, int64_t id) noexcept {
  for (; *list; list = &(*list)->next) {
    if ((*list)->id != id) continue;
    Hook* h = *list;
    *list = h->next;
    if (h->drop) h->drop(h->user);
    mem_free(h, sizeof *h);
    return true;
  }
  return false;
}

void drop_hooks(Hook** list) noexcept {
  while (Hook* h = *list) {
    *list = h->next;
    if (h->drop) h->drop(h->user);
    mem_free(h, sizeof *h);
  }
}

Hook** tensor_hooks(const Tensor& t, uint32_t* nr) {
  Edge e = gradient_edge(t);
  if (!e) fail_arg(TT_AUTOGRAD, "self", "self does not require a gradient: a hook on it would never run");
  *nr = e.nr;
  Hook** list = e.is_leaf() ? &autograd_meta(t).hooks : &e.node()->hooks;
  release_edge(e);
  return list;
}

static void check_replacement(const Tensor& got, const Tensor& want) {
  if (!same(got.sizes(), want.sizes()) || got.dtype != want.dtype)
    fail(TT_CALLBACK, "a gradient hook returned {} of shape {}: must be {} of shape {}", fmt(got.dtype), got.sizes(), fmt(want.dtype),
         want.sizes());
}

void run_tensor_hooks(Hook* list, uint32_t nr, TensorRef& grad) {
  for (Hook* h = list; h; h = h->next) {
    if (h->kind != Hook::kTensor || h->nr != nr) continue;
    tt_tensor* out = nullptr;
    run_callback("a tensor hook", true, [&](tt_ctx* c) { return reinterpret_cast<GradHookFn>(h->fn)(h->user, c, handle(grad.get()), &out); });
    if (!out) continue;
    TensorRef replaced = TensorRef::adopt(reinterpret_cast<Tensor*>(out));
    if (replaced->tag != kTagTensor) fail(TT_CALLBACK, "a tensor hook returned a handle that is not a tensor");
    check_replacement(*replaced, *grad);
    grad = std::move(replaced);
  }
}

void run_node_hooks(Hook* list, Hook::Kind kind, TensorRef* grads, int64_t n) {
  for (Hook* h = list; h; h = h->next) {
    if (h->kind != kind) continue;
    SmallVec<tt_tensor*, 8> in, out;
    for (int64_t i = 0; i < n; i++) in.push_back(handle(grads[i].get()));
    out.resize(n, nullptr);
    run_callback("a node hook", true, [&](tt_ctx* c) { return reinterpret_cast<NodeHookFn>(h->fn)(h->user, c, in.data(), n, out.data()); });
    for (int64_t i = 0; i < n; i++)
      if (out[i]) grads[i] = TensorRef::adopt(reinterpret_cast<Tensor*>(out[i]));
  }
}

void run_accumulate_hooks(Hook* list, const Tensor& leaf) {
  for (Hook* h = list; h; h = h->next)
    if (h->kind == Hook::kAccumulate)
      run_callback("an accumulate hook", false, [&](tt_ctx* c) { return reinterpret_cast<AccumulateHookFn>(h->fn)(h->user, c, handle(&leaf)); });
}

}  // namespace TT_NS
