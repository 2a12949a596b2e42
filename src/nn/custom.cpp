#include "nn/custom.h"

#include "autograd/callback_outs.h"
#include "base/finalizer.h"
#include "core/callback.h"
#include "modes/checkpoint.h"

namespace TT_NS {

namespace {

// Has its own type, for the name.
struct CustomModule : Module {
  ModuleType own;
  CustomModuleDef def;
  Text name;
  explicit CustomModule(const CustomModuleDef& d);
};
const CustomModule& custom(const Module& m) { return static_cast<const CustomModule&>(m); }

TensorList custom_forward(Module& m, TensorSpan inputs) {
  const CustomModuleDef& def = custom(m).def;
  ModuleRef alive = ModuleRef::share(&m);
  CallbackName what("forward", m.type->name);
  CallbackOuts outs(kMaxCustomOuts);
  int64_t n = 1;
  const KeySet checkpoint = ctx().include & bit(kKeyCheckpoint);
  run_callback(what.text, true, [&](tt_ctx* c) {
    ctx().include |= checkpoint;
    return def.forward(def.user, c, reinterpret_cast<tt_module*>(&m),
                       reinterpret_cast<const tt_tensor* const*>(inputs.ptr), inputs.n, outs.data(),
                       kMaxCustomOuts, &n);
  });
  if (n < 0 || n > kMaxCustomOuts)
    fail(TT_CALLBACK, "{} set n_outs to {}: must be 0 to {}", what.text, n, kMaxCustomOuts);
  TensorList list = outs.take(what.text, true);
  list.resize(n);
  for (int64_t i = 0; i < n; i++)
    if (!list[i]) fail(TT_CALLBACK, "{} succeeded but left result {} NULL", what.text, i);
  return list;
}

Module* custom_copy(const Module& m) {
  CustomModuleDef def = custom(m).def;
  CallbackName what("copy", m.type->name);
  void* user = nullptr;
  run_callback(what.text, true, [&](tt_ctx* c) { return def.copy(def.user, c, &user); });
  def.user = user;
  return new_custom_module(def).leak();
}

void custom_destroy(Module* m) noexcept {
  auto* self = static_cast<CustomModule*>(m);
  const CustomModuleDef def = self->def;
  self->~CustomModule();
  drop_and_free(self, sizeof *self, def.drop, def.user);
}

CustomModule::CustomModule(const CustomModuleDef& d) : Module(nullptr), own{}, def(d) {
  own.max_inputs = INT32_MAX;
  own.forward = custom_forward;
  own.copy = d.copy ? custom_copy : nullptr;
  own.destroy = custom_destroy;
  type = &own;
}

}  // namespace

ModuleRef new_custom_module(const CustomModuleDef& def) {
  void* block = heap_alloc(tls.heap, sizeof(CustomModule));
  if (!block) {
    run_drop(def.drop, def.user);
    fail_oom(sizeof(CustomModule));
  }
  auto* m = new (block) CustomModule(def);
  ModuleRef ref = ModuleRef::adopt(m);
  m->own.name = "module";
  m->name.add(def.name);
  m->own.name = m->name.c_str();
  m->def.name = m->own.name;
  return ref;
}

}  // namespace TT_NS
