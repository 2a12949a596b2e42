// Module: a node of a tree of layers. It has parameters, buffers and children under names, and a
// type that computes.
#pragma once

#include "autograd/hook_list.h"
#include "base/pointer_map.h"
#include "base/text.h"
#include "core/state_dict.h"
#include "dispatch/call.h"

struct tt_module;

namespace TT_NS {

struct Module;
using ModuleRef = Ref<Module>;

struct ModuleType {
  const char* name;  // "Linear"
  int32_t min_inputs, max_inputs;
  TensorList (*forward)(Module&, TensorSpan inputs);  // NULL: a container that cannot be called
  void (*describe)(const Module&,
                   Text&);         // the arguments, as they stand in a printed tree; may be NULL
  Module* (*copy)(const Module&);  // another one of the same arguments, without slots and children
  void (*destroy)(Module*) noexcept;  // the object and its block
  bool sequential;                    // forward: the children in turn
};

struct Module {
  // A parameter or a buffer; its tensor may be absent (a layer without bias). A type's own slots
  // stand first, in a fixed order.
  struct Slot {
    Text name;
    TensorRef tensor;
    bool is_buffer, persistent;
  };
  struct Child {
    Text name;
    ModuleRef module;
  };
  uint32_t tag = 0;
  RefCount refs = 1;
  const ModuleType* type;
  bool training = true;
  bool frozen = false;  // never changes again: threads may use it at the same time
  SmallVec<Slot, 2> slots;
  SmallVec<Child, 1> children;                   // append_child adds to them
  NamedPositions<SmallVec<Child, 1>> positions;  // of children
  int32_t parents = 0;                           // how many children of modules this is (atomic)
  HookList hooks;                                // of ModuleHookKind
  int32_t kept = 0;                              // by so many KeptModules
  TensorList taken_away;                         // while it was
  Module* next_dead = nullptr;

  explicit Module(const ModuleType* t);
  const Tensor& slot(int64_t i) const {
    if (TT_UNLIKELY(!slots[i].tensor)) fail_no_tensor(i);
    return *slots[i].tensor;
  }
  [[noreturn]] TT_COLD void fail_no_tensor(int64_t i) const;
  const Tensor* slot_opt(int64_t i) const { return slots[i].tensor.get(); }
  static void destroy(Module*) noexcept;  // of the whole tree below it, without recursion
};

// Keeps a module and every tensor that it has meanwhile: layers hold on to parameters from one
// operator to the next, and a trace, a poll or a device of the host may take those away amid.
class ModuleKeepAlive {
 public:
  explicit ModuleKeepAlive(Module& m) : module_(ModuleRef::share(&m)) {
    __atomic_fetch_add(&m.kept, 1, __ATOMIC_RELAXED);
  }
  ~ModuleKeepAlive() {
    if (__atomic_sub_fetch(&module_->kept, 1, __ATOMIC_RELAXED)) return;
    if (module_->frozen) return;  // nothing is taken away, and other threads are here
    const TensorList gone = std::move(module_->taken_away);  // what they drop may call the host
  }
  ModuleKeepAlive(const ModuleKeepAlive&) = delete;

 private:
  ModuleRef module_;
};

// A module whose arguments are an A.
template <class A> struct ModuleOf : Module {
  A args;
  ModuleOf(const ModuleType* t, const A& a) : Module(t), args(a) {}
};
template <class A> const A& args_of(const Module& m) {
  return static_cast<const ModuleOf<A>&>(m).args;
}

template <class A> TT_COLD ModuleRef new_module(const ModuleType* type, const A& args) {
  using M = ModuleOf<A>;
  void* block = mem_alloc(sizeof(M));
  try {
    return ModuleRef::adopt(new (block) M(type, args));
  } catch (...) {
    mem_free(block, sizeof(M));
    throw;
  }
}
template <class A> TT_COLD Module* copy_module(const Module& m) {
  return new_module(m.type, args_of<A>(m)).leak();
}
template <class A> TT_COLD void destroy_module(Module* m) noexcept {
  auto* self = static_cast<ModuleOf<A>*>(m);
  self->~ModuleOf<A>();
  mem_free(self, sizeof *self);
}

// Names are not empty, hold no dot, and are one of a kind in their module. A name that the module
// has keeps its place.
void set_parameter(Module& m, const char* name,
                   const Tensor* t);  // leaves only; NULL: declared, but absent
void set_buffer(Module& m, const char* name, const Tensor* t, bool persistent);
void set_child(Module& m, const char* name, Module& child);  // fails if m is child, or below it

// Without checks.
void append_child(Module& m, const Text& name, Module& child);

// All modules of the tree, each once, in depth-first order. The list stays as it is while callbacks
// change the tree, and keeps them.
SmallVec<ModuleRef, 8> modules_of(Module& root);
// Each parameter of the tree once.
TensorList parameters_of(Module& root);

// In depth-first order, each module before its children, without recursion. A shared module comes
// once per path, or, with `once`, by its first path alone.
class ModuleWalk {
 public:
  explicit ModuleWalk(Module& root, bool once = false);
  bool next();  // to the next module; false: there is none
  Module* module = nullptr;
  Text prefix;        // "" or "a.b."
  int64_t depth = 0;  // the root has 0

 private:
  struct Frame {
    Module* module;
    int64_t next_child, prefix_size;
  };
  SmallVec<Frame, 8> frames_;
  PointerMap seen_;
  const bool once_;
  bool started_ = false;
};

// The module below m at a path like "a.0.b" ("": m); NULL if there is none. The last name of `path`
// is left out if `leaf` is given, which then gets that name.
Module* find_module(Module& m, const char* path, const char** leaf = nullptr);

enum class Named { kState, kParameters, kBuffers };
// Tensors with their dotted names: the state dict (parameters, then persistent buffers, then
// children; shared tensors under each name), or each parameter or buffer once.
StateDictRef named_tensors(Module& m, Named which);

// Copies values into the module's tensors of the same names. All is checked before anything is
// written; strict: missing and unexpected names fail.
void load_state_dict(Module& m, const StateDict& from, bool strict);

// Ends all changes of the tree: evaluation mode, and whatever would change a module fails from now
// on. Fails if there are hooks.
void freeze(Module& m);
void check_not_frozen(const Module& m);

void set_training(Module& m, bool on);
void set_requires_grad_all(Module& m, bool on);
void zero_grad_all(Module& m);  // gradients become absent
// Floating and complex tensors get the dtype (kNone: keep), all get the device; handles stay valid.
void convert(Module& m, Dtype dtype, Opt<Device> device);
ModuleRef deep_copy(Module& m);
Text describe_tree(Module& m);

// Hooks before it (pre; may replace the inputs), the type's forward, hooks after it (may replace
// the results).
TensorList forward(Module& m, TensorSpan inputs);

}  // namespace TT_NS
