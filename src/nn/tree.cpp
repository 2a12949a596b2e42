// Operations on a whole tree: loading, training mode, moves, copies, printing.
#include "autograd/node.h"
#include "base/pointer_map.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "ops/undo.h"
#include "nn/lazy.h"

namespace TT_NS {

namespace {

// "a.weight, a.bias and 3 more"
void list_names(Text& to, const StateDict& names) {
  constexpr int64_t kShown = 8;
  for (int64_t i = 0; i < names.entries.size() && i < kShown; i++)
    to.add(i ? ", " : "").add(names.entries[i].name.c_str());
  if (names.entries.size() > kShown)
    to.add(" and ").add(names.entries.size() - kShown).add(" more");
}

void check_names(const StateDict& own, const StateDict& from) {
  StateDictRef missing = new_state_dict();
  StateDictRef unexpected = new_state_dict();
  for (int64_t i = 0; i < own.entries.size(); i++)
    if (from.find(own.entries[i].name.c_str(), i) < 0)
      missing->append(own.entries[i].name.c_str(), {});
  for (int64_t i = 0; i < from.entries.size(); i++)
    if (own.find(from.entries[i].name.c_str(), i) < 0)
      unexpected->append(from.entries[i].name.c_str(), {});
  if (missing->entries.empty() && unexpected->entries.empty()) return;
  Text text("");
  if (!missing->entries.empty()) list_names(text.add("missing: "), *missing);
  if (!unexpected->entries.empty())
    list_names(text.add(missing->entries.empty() ? "unexpected: " : "; unexpected: "), *unexpected);
  fail_arg(TT_INVALID_ARG, "state", "the names do not match: {}", text.c_str());
}

}  // namespace

static void check_tree_not_frozen(Module& m) {
  for (const ModuleRef& x : modules_of(m)) check_not_frozen(*x);
}

void freeze(Module& m) {
  const auto all = modules_of(m);
  for (const ModuleRef& x : all)
    if (!x->hooks.empty())
      fail_arg(TT_INVALID_ARG, "m", "{} has hooks: remove them before it is frozen", x->type->name);
  for (const ModuleRef& x : all) {
    if (x->frozen) continue;  // other threads may read it
    x->training = false;
    x->frozen = true;
  }
}

void load_state_dict(Module& m, const StateDict& from, bool strict) {
  check_tree_not_frozen(m);
  StateDictRef own = named_tensors(m, Named::kState);
  if (strict) check_names(*own, from);
  LazyLoads lazy_layers(m, *own, from);
  struct Copy {
    Tensor* to;  // owned by `own`
    TensorRef values;
  };
  SmallVec<Copy, 8> copies;
  PointerMap targets;  // their storages
  for (StateDict::Entry& e : own->entries) targets.add(e.tensor->storage);
  MaskGuard no_grad(bit(kKeyAutograd));
  for (int64_t i = 0; i < own->entries.size(); i++) {
    StateDict::Entry& e = own->entries[i];
    const int64_t k = from.find(e.name.c_str(), i);
    if (k < 0) continue;
    Tensor& to = *e.tensor;
    const TensorRef held = from.entries[k].tensor;
    const Tensor& values = *held;
    if (!same(to.sizes(), values.sizes()))
      fail_arg(TT_SHAPE, "state", "{} is {} in the state, {} in the module: must be equal",
               e.name.c_str(), values.sizes(), to.sizes());
    if (!to.storage->writable)
      fail_arg(TT_INVALID_ARG, "module", "{} is in read-only memory", e.name.c_str());
    check_writable(to, "module");
    TensorRef fresh = op::to(values, to.dtype, to.device);
    const bool written = fresh.get() != &to && targets.find(fresh->storage) >= 0;
    if (written) fresh = op::clone(*fresh);  // before another copy changes it
    copies.push_back({&to, std::move(fresh)});
  }
  for (Copy& c : copies)
    if (c.to->device.type == TT_EXT) remember_values(*c.to);
  CommitGuard whole;
  for (Copy& c : copies) op::copy_(*c.to, *c.values);
  lazy_layers.commit();
}

void average(Module& m, Module& model, double share, bool use_buffers) {
  if (!(share >= 0 && share <= 1))
    fail_arg(TT_INVALID_ARG, "share", "share is {}: must be in [0, 1]", share);
  const StateDictRef own = named_tensors(m, Named::kState);
  const StateDictRef from = named_tensors(model, Named::kState);
  const StateDictRef buffers = named_tensors(model, Named::kBuffers);
  const StateDictRef next = new_state_dict();
  const MaskGuard no_grad(bit(kKeyAutograd));
  for (int64_t i = 0; i < from->entries.size(); i++) {
    const char* name = from->entries[i].name.c_str();
    const TensorRef now = from->entries[i].tensor;
    const int64_t k = own->find(name, i);
    const bool is_copied = !use_buffers && buffers->find(name, i) >= 0;
    const Tensor* before = k < 0 ? nullptr : own->entries[k].tensor.get();
    if (!before || is_copied || !is_differentiable(before->dtype) ||
        !same(before->sizes(), now->sizes())) {
      next->append(name, now);  // loading refuses what does not fit
      continue;
    }
    const TensorRef end = op::to(*now, before->dtype, before->device);
    next->append(name, op::lerp(*before, *end, Scalar(share)));
  }
  load_state_dict(m, *next, true);
}

void set_training(Module& m, bool on) {
  check_tree_not_frozen(m);
  for (const ModuleRef& x : modules_of(m)) x->training = on;
}

void set_requires_grad_all(Module& m, bool on) {
  check_tree_not_frozen(m);
  const TensorList list = parameters_of(m);
  for (const TensorRef& t : list)
    if (is_differentiable(t->dtype)) prepare_requires_grad(*t, on);
  for (const TensorRef& t : list)
    if (is_differentiable(t->dtype)) set_requires_grad(*t, on);
}

void zero_grad_all(Module& m) {
  for (const TensorRef& t : parameters_of(m)) set_grad(*t, {});
}

// The new data of a tensor; the slots of a view or a result, which cannot take it, get another
// tensor.
struct Move {
  TensorRef from, data, grad;
};

void convert(Module& m, Dtype dtype, Opt<Device> device) {
  check_tree_not_frozen(m);
  if (dtype != Dtype::kNone && !is_differentiable(dtype))
    fail_arg(TT_DTYPE, "dtype", "dtype is {}: must be floating or complex", fmt(dtype));
  SmallVec<Move, 8> moves;
  PointerMap place;
  for (const ModuleRef& x : modules_of(m)) {
    for (Module::Slot& s : x->slots) {
      bool added = false;
      if (s.tensor) place.find_or_add(s.tensor.get(), moves.size(), &added);
      if (added) moves.push_back({s.tensor, {}, {}});
      if (added && x->kept) x->removed_tensors.push_back(s.tensor);
    }
  }
  MaskGuard no_grad(bit(kKeyAutograd));
  for (Move& x : moves) {  // callbacks may change the tree meanwhile: tensors that they put there
                           // stay unchanged
    const Tensor& t = *x.from;
    const Dtype d = is_differentiable(t.dtype) ? dtype : Dtype::kNone;
    x.data = op::to(t, d, device);
    if (const TensorRef grad = grad_of(t)) x.grad = op::to(*grad, d, device);
    prepare_replace(t);
  }
  const auto modules = modules_of(m);  // nothing fails from here on
  for (const ModuleRef& x : modules)
    for (Module::Slot& s : x->slots)
      if (const int64_t i = s.tensor ? place.find(s.tensor.get()) : -1; i >= 0)
        if (s.tensor->base || s.tensor->grad_fn) s.tensor = moves[i].data;
  for (Move& x : moves) {
    Tensor& t = *x.from;
    if (t.base || t.grad_fn) continue;
    if (x.data.get() != &t) replace_data(t, *x.data);
    if (x.grad) set_grad(t, std::move(x.grad));
  }
}

ModuleRef deep_copy(Module& root) {
  SmallVec<ModuleRef, 8> copies, originals;
  // sources are kept alive: addresses identify tensors that have been copied
  TensorList tensors, sources;
  PointerMap modules, copied;
  auto copy_of = [&](Module& m) -> int64_t {
    bool added;
    const int64_t i = modules.find_or_add(&m, copies.size(), &added);
    if (!added) return i;
    if (!m.type->copy) fail_arg(TT_NOT_IMPLEMENTED, "m", "{} has no copy callback", m.type->name);
    originals.push_back(ModuleRef::share(&m));
    copies.push_back(ModuleRef::adopt(m.type->copy(m)));
    return i;
  };
  MaskGuard no_grad(bit(kKeyAutograd));
  copy_of(root);
  for (int64_t i = 0; i < originals.size(); i++) {
    const auto slots = originals[i]->slots;  // current slots: callbacks may change them meanwhile
    const auto children = originals[i]->children;
    copies[i]->training = originals[i]->training;
    copies[i]->lazy = originals[i]->lazy;
    for (const Module::Slot& s : slots) {
      TensorRef t;
      if (s.tensor) {
        bool added;
        const int64_t k = copied.find_or_add(s.tensor.get(), tensors.size(), &added);
        if (added) {
          sources.push_back(s.tensor);
          tensors.push_back(op::clone(*s.tensor));
          if (s.tensor->flags & kRequiresGrad) set_requires_grad(*tensors.back(), true);
        }
        t = tensors[k];
      }
      copies[i]->slots.push_back({s.name, std::move(t), s.is_buffer, s.persistent});
    }
    for (const Module::Child& c : children) {
      const int64_t k = copy_of(*c.module);
      append_child(*copies[i], c.name, *copies[k]);
    }
  }
  return copies[0];
}

// As PyTorch prints it: "Sequential(\n  (0): Linear(in_features=2, …)\n)".
Text describe_tree(Module& root) {
  Text out;
  int64_t open = -1;  // depth of the innermost module whose closing bracket is missing
  auto indent = [&](int64_t n) {
    out.add("\n");
    for (int64_t i = 0; i < n; i++) out.add("  ");
  };
  auto close_down_to = [&](int64_t depth) {
    for (; open >= depth; open--) {
      indent(open);
      out.add(")");
    }
  };
  for (ModuleWalk w(root); w.next();) {
    close_down_to(w.depth);
    if (w.depth) {
      indent(w.depth);
      const char* p = w.prefix.c_str();
      int64_t end = w.prefix.size() - 1;
      int64_t begin = end;
      while (begin && p[begin - 1] != '.') begin--;
      out.add("(").add({p + begin, end - begin}).add("): ");
    }
    const Module& m = *w.module;
    out.add(m.lazy ? "Lazy" : "").add(m.type->name).add("(");
    if (m.type->describe) m.type->describe(m, out);
    if (m.children.empty()) out.add(")");
    else open = w.depth;
  }
  close_down_to(0);
  return out;
}

}  // namespace TT_NS
