#include "nn/functional_call.h"

#include <string.h>

namespace TT_NS {

namespace {

Module::Slot* find_slot(Module& m, const char* name) noexcept {
  for (Module::Slot& s : m.slots)
    if (strcmp(s.name.c_str(), name) == 0) return &s;
  return nullptr;
}

// Returns the slot of a dotted name below root, its module and its name there.
Module::Slot& slot_named(Module& root, const char* path, Module** owner = nullptr,
                         const char** name = nullptr) {
  const char* leaf = nullptr;
  Module* m = find_module(root, path, &leaf);
  Module::Slot* s = m ? find_slot(*m, leaf) : nullptr;
  if (!s) fail_arg(TT_INVALID_ARG, "with", "the module has no parameter or buffer {}", path);
  check_not_frozen(*m);
  if (m->lazy)
    fail_arg(TT_INVALID_ARG, "m", "Lazy{} has no parameters yet: call the module once before",
             m->type->name);
  if (owner) *owner = m;
  if (name) *name = leaf;
  return *s;
}

// Slots with other tensors, until the end of a call. Callbacks may remove slots meanwhile.
class Replaced {
 public:
  Replaced(Module& root, const StateDict& with);
  ~Replaced() {
    for (int64_t i = former_.size(); i-- > 0;) {
      Former& f = former_[i];
      if (Module::Slot* s = find_slot(*f.module, f.name.c_str())) std::swap(s->tensor, f.tensor);
    }
  }
  Replaced(const Replaced&) = delete;

 private:
  struct Former {
    ModuleRef module;
    Text name;
    TensorRef tensor;
  };
  SmallVec<Former, 8> former_;
};

Replaced::Replaced(Module& root, const StateDict& with) {
  former_.reserve(with.entries.size());
  for (const StateDict::Entry& e : with.entries) {  // everything that can fail
    Module* m = nullptr;
    const char* leaf = nullptr;
    slot_named(root, e.name.c_str(), &m, &leaf);
    Text name;
    name.add(leaf);
    former_.push_back({ModuleRef::share(m), std::move(name), e.tensor});
  }
  for (Former& f : former_) std::swap(find_slot(*f.module, f.name.c_str())->tensor, f.tensor);
}

}  // namespace

void exchange_tensors(Module& m, StateDict& with) {
  SmallVec<Module::Slot*, 8> slots;
  slots.reserve(with.entries.size());
  for (const StateDict::Entry& e : with.entries) slots.push_back(&slot_named(m, e.name.c_str()));
  for (int64_t i = 0; i < slots.size(); i++) std::swap(slots[i]->tensor, with.entries[i].tensor);
}

TensorList functional_call(Module& m, const StateDict& with, TensorSpan inputs) {
  const ModuleKeepAlive kept(m);
  const Replaced replaced(m, with);
  return forward(m, inputs);
}

}  // namespace TT_NS
