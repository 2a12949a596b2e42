#include "nn/module.h"

#include "base/pointer_map.h"

#include <string.h>

namespace TT_NS {

static void count_parent(Module& child, int32_t change) noexcept {
  atomic_fetch_add(&child.parents, change, kRelaxed);
}

Module::Module(const ModuleType* t) noexcept : tag(kTagModule), type(t) {}

static size_t layer_bytes(const ModuleType& type) {
  return sizeof(Module) + size_t(type.args_bytes);
}

ModuleRef new_layer(const ModuleType* type, const void* args) {
  char* block = static_cast<char*>(mem_alloc(layer_bytes(*type)));
  char* own_args = block + sizeof(Module);
  try {
    if (type->copy_args) type->copy_args(own_args, args);
    else memcpy(own_args, args, size_t(type->args_bytes));
  } catch (...) {
    mem_free(block, layer_bytes(*type));
    throw;
  }
  return ModuleRef::adopt(new (block) Module(type));
}
Module* copy_layer(const Module& m) {
  return new_layer(m.type, reinterpret_cast<const char*>(&m) + sizeof(Module)).leak();
}
void destroy_layer(Module* m) noexcept {
  const ModuleType& type = *m->type;
  if (type.destroy_args) type.destroy_args(reinterpret_cast<char*>(m) + sizeof(Module));
  m->~Module();
  mem_free(m, layer_bytes(type));
}

void Module::destroy(Module* m) noexcept {
  m->next_dead = nullptr;
  for (Module* dead = m; dead;) {
    Module* x = dead;
    dead = x->next_dead;
    for (Child& c : x->children) {
      Module* child = c.module.leak();
      count_parent(*child, -1);
      if (ref_dec(&child->refs)) {
        child->next_dead = dead;
        dead = child;
      }
    }
    x->hooks.clear();  // before the objects that hooks may use are freed
    x->tag = 0;
    x->type->destroy(x);
  }
}

namespace {

void check_name(const char* name) {
  if (!*name) fail_arg(TT_INVALID_ARG, "name", "name is empty");
  if (strchr(name, '.'))
    fail_arg(TT_INVALID_ARG, "name", "name is \"{}\": must not contain a dot", name);
}

Module::Slot* find_slot(Module& m, const char* name) {
  for (Module::Slot& s : m.slots)
    if (s.name.is(name)) return &s;
  return nullptr;
}
Module::Child* find_child(Module& m, const char* name) {
  const int64_t i = m.positions.find(m.children, name_of(name));
  return i < 0 ? nullptr : &m.children[i];
}

void set_slot(Module& m, const char* name, const Tensor* t, bool is_buffer, bool persistent) {
  check_not_frozen(m);
  check_name(name);
  if (find_child(m, name))
    fail_arg(TT_INVALID_ARG, "name", "{} already has a child \"{}\"", m.type->name, name);
  if (Module::Slot* s = find_slot(m, name)) {
    if (s->is_buffer != is_buffer && s->tensor)
      fail_arg(TT_INVALID_ARG, "name", "\"{}\" is already a {} of {}", name,
               s->is_buffer ? "buffer" : "parameter", m.type->name);
    if (m.kept) m.removed_tensors.push_back(s->tensor);
    s->tensor = TensorRef::share(t);
    s->is_buffer = is_buffer;
    s->persistent = persistent;
    return;
  }
  m.slots.push_back({Text(name), TensorRef::share(t), is_buffer, persistent});
}

bool reaches(Module& from, const Module& to) {
  if (&from == &to) return true;
  if (!atomic_load(&to.parents, kRelaxed)) return false;
  PointerMap seen;
  SmallVec<Module*, 16> todo;
  for (todo.push_back(&from); !todo.empty();) {
    Module* m = todo.back();
    todo.pop_back();
    if (m == &to) return true;
    for (Module::Child& c : m->children)
      if (seen.add(c.module.get())) todo.push_back(c.module.get());
  }
  return false;
}

}  // namespace

void Module::fail_no_tensor(int64_t i) const {
  fail_arg(TT_INVALID_ARG, "module", "{} has no {}: it was removed, and forward needs it",
           type->name, slots[i].name.c_str());
}

void check_not_frozen(const Module& m) {
  if (m.frozen) fail_arg(TT_INVALID_ARG, "m", "{} is frozen: only a copy can change", m.type->name);
}

void set_parameter(Module& m, const char* name, const Tensor* t) {
  if (t && (t->grad_fn || t->base))
    fail_arg(TT_AUTOGRAD, "tensor",
             "tensor is the result of an operator: parameters must be leaves");
  set_slot(m, name, t, false, true);
}
void set_buffer(Module& m, const char* name, const Tensor* t, bool persistent) {
  set_slot(m, name, t, true, persistent);
}

void set_child(Module& m, const char* name, Module& child) {
  check_not_frozen(m);
  check_name(name);
  if (find_slot(m, name))
    fail_arg(TT_INVALID_ARG, "name", "{} already has a tensor \"{}\"", m.type->name, name);
  if (reaches(child, m))
    fail_arg(TT_INVALID_ARG, "child",
             "child is the module itself or one of its ancestors: cycles are not allowed");
  if (Module::Child* c = find_child(m, name)) {
    const ModuleRef before = std::exchange(c->module, ModuleRef::share(&child));
    count_parent(child, 1);
    count_parent(*before, -1);
    return;
  }
  append_child(m, Text(name), child);
}

void append_child(Module& m, const Text& name, Module& child) {
  m.positions.append(m.children, Module::Child{name, ModuleRef::share(&child)});
  count_parent(child, 1);
}

// ---- walking ----

SmallVec<ModuleRef, 8> modules_of(Module& root) {
  struct Frame {
    Module* module;
    int64_t next_child;
  };
  SmallVec<ModuleRef, 8> all;
  SmallVec<Frame, 8> frames;
  PointerMap seen;
  const auto enter = [&](Module& m) {
    if (!seen.add(&m)) return;
    all.push_back(ModuleRef::share(&m));
    frames.push_back({&m, 0});
  };
  for (enter(root); !frames.empty();) {
    Frame& f = frames.back();
    if (f.next_child == f.module->children.size()) {
      frames.pop_back();
    } else {
      enter(*f.module->children[f.next_child++].module);
    }
  }
  return all;
}

TensorList parameters_of(Module& root) {
  TensorList list;
  PointerMap seen;
  for (const ModuleRef& m : modules_of(root))
    for (const Module::Slot& s : m->slots)
      if (s.tensor && !s.is_buffer && seen.add(s.tensor.get())) list.push_back(s.tensor);
  return list;
}

ModuleWalk::ModuleWalk(Module& root, bool once) : once_(once) {
  frames_.push_back({&root, 0, 0});
  if (once) seen_.add(&root);
}

bool ModuleWalk::next() {
  if (!started_) {
    started_ = true;
    module = frames_[0].module;
    return true;
  }
  while (!frames_.empty()) {
    Frame& f = frames_.back();
    prefix.cut(f.prefix_size);
    if (f.next_child == f.module->children.size()) {
      frames_.pop_back();
      continue;
    }
    const Module::Child& c = f.module->children[f.next_child++];
    if (once_ && !seen_.add(c.module.get())) continue;
    prefix.add(c.name.c_str()).add(".");
    module = c.module.get();
    frames_.push_back({module, 0, prefix.size()});
    depth = frames_.size() - 1;
    return true;
  }
  return false;
}

Module* find_module(Module& m, const char* path, const char** leaf) {
  Module* at = &m;
  for (const char* p = path;;) {
    const char* dot = strchr(p, '.');
    if (!dot && leaf) {
      *leaf = p;
      return at;
    }
    if (!*p && p == path) return at;
    const int64_t n = dot ? int64_t(dot - p) : int64_t(strlen(p));
    const int64_t i = at->positions.find(at->children, {p, n});
    Module* found = i < 0 ? nullptr : at->children[i].module.get();
    if (!found || !dot) return found;
    at = found;
    p = dot + 1;
  }
}

StateDictRef named_tensors(Module& m, Named which) {
  StateDictRef out = new_state_dict();
  PointerMap seen;
  Text name;
  for (ModuleWalk w(m, which != Named::kState); w.next();) {
    for (int pass = 0; pass < 2; pass++) {  // parameters, then buffers
      for (const Module::Slot& s : w.module->slots) {
        if (!s.tensor || s.is_buffer != (pass == 1)) continue;
        if (which == Named::kState
                ? s.is_buffer && !s.persistent
                : (which == Named::kBuffers) != s.is_buffer || !seen.add(s.tensor.get()))
          continue;
        name.cut(0);
        name.add(w.prefix.span()).add(s.name.span());
        out->append(name.c_str(), s.tensor);
      }
    }
  }
  return out;
}

}  // namespace TT_NS
