#include "autograd/saved_hooks.h"

#include "autograd/callback_outs.h"
#include "autograd/saved.h"
#include "base/finalizer.h"
#include "core/callback.h"

namespace TT_NS {

namespace {

// A pair of hooks; its scope and every packed tensor hold a reference.
struct SavedHooks {
  RefCount refs;
  SavedHooksDef def;
  static void destroy(SavedHooks* h) noexcept {
    const SavedHooksDef def = h->def;
    drop_and_free(h, sizeof *h, def.drop, def.user);
  }
};

struct Packed : PackedTensor {
  Ref<SavedHooks> hooks;
  void* packed;
  Edge edge;  // owned
  Shape sizes, strides;
  Dtype dtype;
  const Storage* storage;  // identity only
  const char* data;
};

struct HookStack : CtxPart {
  SmallVec<Ref<SavedHooks>, 2> hooks;
};

HookStack* of(Ctx& c) { return static_cast<HookStack*>(c.saved_hooks); }

void destroy_stack(CtxPart* part) noexcept {
  auto* s = static_cast<HookStack*>(part);
  s->~HookStack();
  mem_free(s, sizeof *s);
}

void destroy_packed(PackedTensor* tensor) noexcept {
  auto* p = static_cast<Packed*>(tensor);
  if (p->packed) run_drop(p->hooks->def.drop_packed, p->packed);
  release_edge(p->edge);
  p->~Packed();
  mem_free(p, sizeof *p);
}

const Packed& packed_of(const Tensor& placeholder) {
  return *static_cast<const Packed*>(find_meta(placeholder)->packed);
}

// An edge until it is handed over.
struct OwnedEdge {
  Edge edge;
  ~OwnedEdge() { release_edge(edge); }
};

template <class F> void call_hook(const SavedHooks& hooks, const char* what, F f) {
  if (hooks.def.is_own) f(nullptr);
  else run_callback(what, true, f);
}

TensorRef pack(const Tensor& t, Edge edge) {
  OwnedEdge owned{edge};
  const Ref<SavedHooks> hooks = of(ctx())->hooks.back();
  const int64_t no_elements[1] = {0};
  TensorRef placeholder = new_tensor(no_elements, t.dtype, kCpuDevice);
  AutogradMeta& meta = autograd_meta(*placeholder);
  const TensorRef plain = new_alias(t);
  auto* p = new (mem_alloc(sizeof(Packed)))
      Packed{{destroy_packed},   hooks,   nullptr,   owned.edge, Shape(t.sizes()),
             Shape(t.strides()), t.dtype, t.storage, t.data};
  owned.edge = Edge();
  meta.packed = p;
  placeholder->flags |= kPackedTensor;
  const MaskGuard no_grad(bit(kKeyAutograd));
  call_hook(*hooks, "the pack hook", [&](tt_ctx* c) {
    const SavedHooksDef& def = hooks->def;
    return def.pack(def.user, c, reinterpret_cast<const tt_tensor*>(plain.get()), &p->packed);
  });
  return placeholder;
}

// Passes the gradient of an unpacked tensor on to the tensor that was packed.
void unpacked_apply(Node&, TensorRef* grads, TensorRef* out) { out[0] = std::move(grads[0]); }
void nothing_saved(Node&) noexcept {}
constinit const NodeType kUnpackedType = {
    .name = "unpacked",
    .apply = unpacked_apply,
    .destroy_saved = nothing_saved,
    .saved_bytes = 0,
    .takes_undefined = false,
};

TensorRef unpack(const Tensor& placeholder, Edge own) {
  const Packed& p = packed_of(placeholder);
  CallbackOuts outs(1);
  {
    const MaskGuard no_grad(bit(kKeyAutograd));
    call_hook(*p.hooks, "the unpack hook", [&](tt_ctx* c) {
      const SavedHooksDef& def = p.hooks->def;
      return def.unpack(def.user, c, p.packed, outs.data());
    });
  }
  TensorRef found = std::move(outs.take("the unpack hook", false)[0]);
  if (found->dtype != p.dtype || !same(found->sizes(), p.sizes))
    fail(TT_CALLBACK, "the unpack hook returned {} of shape {}: must be {} of shape {}",
         fmt(found->dtype), found->sizes(), fmt(p.dtype), Ints(p.sizes));
  const Edge& edge = own ? own : p.edge;
  if (!edge || (ctx().exclude & bit(kKeyAutograd)) || !is_differentiable(p.dtype)) return found;
  TensorRef linked = new_alias(*found);
  NodeRef node = new_node(&kUnpackedType, 1, 1);
  Node& n = as_node(node);
  n.released = false;
  n.edges()[0] = share_edge(edge);
  n.topo = (edge.is_leaf() ? 0 : edge.node()->topo) + 1;
  set_history(node, *linked, 0);
  return linked;
}

bool is_from(const Tensor& placeholder, const Tensor& t) {
  const Packed& p = packed_of(placeholder);
  return p.storage == t.storage && p.data == t.data && same(p.sizes, t.sizes()) &&
         same(p.strides, t.strides());
}

}  // namespace

void push_saved_hooks(const SavedHooksDef& def) {
  Ctx& c = ctx();
  auto* block = static_cast<SavedHooks*>(heap_alloc(tls.heap, sizeof(SavedHooks)));
  if (!block) {
    run_drop(def.drop, def.user);
    fail_oom(sizeof(SavedHooks));
  }
  auto hooks = Ref<SavedHooks>::adopt(new (block) SavedHooks{1, def});
  if (!c.saved_hooks)
    c.saved_hooks = new (mem_alloc(sizeof(HookStack))) HookStack{{destroy_stack}, {}};
  saved_hook_functions = {pack, unpack, is_from};
  try {
    of(c)->hooks.push_back(std::move(hooks));
  } catch (...) {
    if (of(c)->hooks.empty()) pop_saved_hooks();
    throw;
  }
}

const SavedHooksDef* innermost_saved_hooks() {
  HookStack* s = of(ctx());
  return s ? &s->hooks.back()->def : nullptr;
}

void pop_saved_hooks() {
  Ctx& c = ctx();
  HookStack* s = of(c);
  if (!s) fail(TT_INVALID_ARG, "no hooks on saved tensors are active on this ctx");
  if (s->hooks.size() > 1) return s->hooks.pop_back();
  c.saved_hooks = nullptr;
  destroy_stack(s);
}

}  // namespace TT_NS
