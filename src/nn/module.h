// Module: a node in a tree of layers. It has named parameters, buffers and children, and a type
// that computes.
#pragma once

#include "autograd/hook_list.h"
#include "base/pointer_map.h"
#include "base/text/text.h"
#include "core/state_dict.h"
#include "dispatch/call.h"

struct tt_module;

namespace TT_NS {

struct Module;
struct LazyLayer;
using ModuleRef = Ref<Module>;

struct ModuleType {
  const char* name;  // "Linear"
  int32_t min_inputs, max_inputs;
  TensorList (*forward)(Module&, TensorSpan inputs);  // NULL: a container that cannot be called
  // Prints the arguments for tt_module_print; may be NULL.
  void (*describe)(const Module&, Text&);
  Module* (*copy)(const Module&);  // a module with the same arguments, without slots and children
  void (*destroy)(Module*) noexcept;  // frees the object and its block
  bool sequential;                    // forward calls the children in order
  // The arguments of a layer follow the Module in its block. NULL: copied by bytes, not destroyed.
  int32_t args_bytes;
  void (*copy_args)(void* to, const void* from);
  void (*destroy_args)(void*) noexcept;
};

struct Module {
  // A parameter or a buffer; its tensor may be absent (a layer without bias). A type's own slots
  // come first, in a fixed order.
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
  bool frozen = false;              // never changes again: threads may use it at the same time
  bool cumulative = false;          // averages the statistics of all batches (nn/batch_norm.h)
  const LazyLayer* lazy = nullptr;  // the layer waits for its size (nn/lazy.h)
  SmallVec<Slot, 2> slots;
  SmallVec<Child, 1> children;                   // use append_child to add
  NamedPositions<SmallVec<Child, 1>> positions;  // of children
  int32_t parents = 0;         // number of child entries that refer to this module (atomic)
  HookList hooks;              // of ModuleHookKind
  int32_t kept = 0;            // number of ModuleKeepAlives
  TensorList removed_tensors;  // tensors removed meanwhile
  Module* next_dead = nullptr;

  explicit Module(const ModuleType* t) noexcept;
  const Tensor& slot(int64_t i) const {
    if (TT_UNLIKELY(!slots[i].tensor)) fail_no_tensor(i);
    return *slots[i].tensor;
  }
  [[noreturn]] TT_COLD void fail_no_tensor(int64_t i) const;
  const Tensor* slot_opt(int64_t i) const { return slots[i].tensor.get(); }
  static void destroy(Module*) noexcept;  // of the whole tree, without recursion
};

// Keeps a module and all its tensors alive: layers use parameters across operators, while a trace,
// poll or device callback may remove them.
class ModuleKeepAlive {
 public:
  explicit ModuleKeepAlive(Module& m) : module_(ModuleRef::share(&m)) {
    atomic_fetch_add(&m.kept, 1, kRelaxed);
  }
  ~ModuleKeepAlive() {
    if (atomic_sub_fetch(&module_->kept, 1, kRelaxed)) return;
    if (module_->frozen) return;  // nothing is removed, and other threads may be here
    // Destructors may call the application.
    const TensorList gone = std::move(module_->removed_tensors);
  }
  ModuleKeepAlive(const ModuleKeepAlive&) = delete;

 private:
  ModuleRef module_;
};

// ---- layers: modules with arguments of a type A ----
template <class A> A& args_of(Module& m) {
  static_assert(alignof(A) <= alignof(Module));
  return *reinterpret_cast<A*>(reinterpret_cast<char*>(&m) + sizeof(Module));
}
template <class A> const A& args_of(const Module& m) { return args_of<A>(const_cast<Module&>(m)); }

TT_COLD ModuleRef new_layer(const ModuleType* type, const void* args);
TT_COLD Module* copy_layer(const Module& m);
TT_COLD void destroy_layer(Module* m) noexcept;

template <class A> TT_COLD void copy_args(void* to, const void* from) {
  new (to) A(*static_cast<const A*>(from));
}
template <class A> TT_COLD void destroy_args(void* args) noexcept { static_cast<A*>(args)->~A(); }

template <class A>
constexpr ModuleType layer_type(const char* name, int32_t min_inputs, int32_t max_inputs,
                                decltype(ModuleType::forward) forward,
                                decltype(ModuleType::describe) describe, bool sequential = false) {
  ModuleType type = {.name = name,
                     .min_inputs = min_inputs,
                     .max_inputs = max_inputs,
                     .forward = forward,
                     .describe = describe,
                     .copy = copy_layer,
                     .destroy = destroy_layer,
                     .sequential = sequential,
                     .args_bytes = sizeof(A),
                     .copy_args = nullptr,
                     .destroy_args = nullptr};
  if constexpr (!__is_trivially_copyable(A)) {
    type.copy_args = copy_args<A>;
    type.destroy_args = destroy_args<A>;
  }
  return type;
}

// Names are not empty, contain no dot, and are unique in their module. An existing name keeps its
// position. A parameter is a leaf; NULL: it is declared but absent.
void set_parameter(Module& m, const char* name, const Tensor* t);
void set_buffer(Module& m, const char* name, const Tensor* t, bool persistent);
// Fails if m is child or one of its descendants.
void set_child(Module& m, const char* name, Module& child);

// Does not check.
void append_child(Module& m, const Text& name, Module& child);

// Returns all modules of the tree, each once, in depth-first order. The list owns them and is
// unaffected by callbacks that change the tree.
SmallVec<ModuleRef, 8> modules_of(Module& root);
// Returns each parameter of the tree once.
TensorList parameters_of(Module& root);

// Walks in depth-first order, parents first, without recursion. A shared module is visited once per
// path or, with `once`, by its first path only.
class ModuleWalk {
 public:
  explicit ModuleWalk(Module& root, bool once = false);
  bool next();  // moves to the next module; false at the end
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

// Returns the module below m at a path like "a.0.b" ("": m), or NULL. If `leaf` is given, the last
// name of `path` is not followed but stored there.
Module* find_module(Module& m, const char* path, const char** leaf = nullptr);

enum class Named { kState, kParameters, kBuffers };
// Returns tensors with their dotted names: the state dict (parameters, persistent buffers, then
// children; shared tensors under each name), or each parameter or buffer once.
StateDictRef named_tensors(Module& m, Named which);

// Copies values into the module's tensors of the same names. Everything is checked before anything
// is written. strict: missing and unexpected names fail.
void load_state_dict(Module& m, const StateDict& from, bool strict);

// Moves the parameters of m towards those of a model with the same names, by share of the distance.
// Persistent buffers, too, or copies these.
void average(Module& m, Module& model, double share, bool use_buffers);

// Ends all changes of the tree: evaluation mode, and whatever would change a module fails from now
// on. Fails if there are hooks.
void freeze(Module& m);
void check_not_frozen(const Module& m);

void set_training(Module& m, bool on);
void set_requires_grad_all(Module& m, bool on);
void zero_grad_all(Module& m);  // removes the gradients
// Converts floating and complex tensors to dtype (kNone: keep) and moves all to device; handles
// stay valid.
void convert(Module& m, Dtype dtype, Opt<Device> device);
ModuleRef deep_copy(Module& m);
Text describe_tree(Module& m);

// Runs pre-hooks (which may replace the inputs), the type's forward, and hooks (which may replace
// the results).
TensorList forward(Module& m, TensorSpan inputs);
// The first result of a call of `child`.
TensorRef first_of(TensorList results, const Module& child);
// Runs the i-th child with one input, and returns its first result.
TensorRef call_child(const Module& m, int64_t i, const Tensor& x);

}  // namespace TT_NS
