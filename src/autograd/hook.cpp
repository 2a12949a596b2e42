#include "autograd/hook.h"

#include "autograd/host_outs.h"
#include "base/drop.h"
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
    drop_and_free(h, sizeof *h, h->drop, h->user);
    return true;
  }
  return false;
}

void drop_hooks(Hook** list) noexcept {
  while (Hook* h = *list) {
    *list = h->next;
    drop_and_free(h, sizeof *h, h->drop, h->user);
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

void check_replacement(const Tensor& got, Ints sizes, Dtype dtype) {
  if (!same(got.sizes(), sizes) || got.dtype != dtype)
    fail(TT_CALLBACK, "a gradient hook returned {} of shape {}: must be {} of shape {}", fmt(got.dtype), got.sizes(),
         fmt(dtype), sizes);
}

// The next hook of a list that callbacks may change: ids ascend.
static Hook* next_hook(Hook* list, Hook::Kind kind, uint32_t nr, int64_t after) {
  for (Hook* h = list; h; h = h->next)
    if (h->kind == kind && h->nr == nr && h->id > after) return h;
  return nullptr;
}

void run_tensor_hooks(Hook* const& list, uint32_t nr, TensorRef& grad) {
  int64_t last = 0;
  while (Hook* h = next_hook(list, Hook::kTensor, nr, last)) {
    last = h->id;
    HostOuts out(1);
    run_callback("a tensor hook", true, [&](tt_ctx* c) {
      return reinterpret_cast<GradHookFn>(h->fn)(h->user, c, handle(grad.get()), out.data());
    });
    TensorList replaced = out.take("a tensor hook", true);
    if (!replaced[0]) continue;
    check_replacement(*replaced[0], grad->sizes(), grad->dtype);
    grad = std::move(replaced[0]);
  }
}

void run_node_hooks(Hook* const& list, Hook::Kind kind, TensorRef* grads, int64_t n) {
  int64_t last = 0;
  while (Hook* h = next_hook(list, kind, 0, last)) {
    last = h->id;
    SmallVec<tt_tensor*, 8> in;
    for (int64_t i = 0; i < n; i++) in.push_back(handle(grads[i].get()));
    HostOuts out(n);
    run_callback("a node hook", true,
                 [&](tt_ctx* c) { return reinterpret_cast<NodeHookFn>(h->fn)(h->user, c, in.data(), n, out.data()); });
    TensorList replaced = out.take("a node hook", true);
    for (int64_t i = 0; i < n; i++) {
      if (!replaced[i]) continue;
      if (grads[i]) check_replacement(*replaced[i], grads[i]->sizes(), grads[i]->dtype);
      grads[i] = std::move(replaced[i]);
    }
  }
}

void run_accumulate_hooks(Hook* const& list, const Tensor& leaf) {
  int64_t last = 0;
  while (Hook* h = next_hook(list, Hook::kAccumulate, 0, last)) {
    last = h->id;
    run_callback("an accumulate hook", false,
                 [&](tt_ctx* c) { return reinterpret_cast<AccumulateHookFn>(h->fn)(h->user, c, handle(&leaf)); });
  }
}

}  // namespace TT_NS
