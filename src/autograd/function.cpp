#include "autograd/function.h"

#include "autograd/batch.h"
#include "autograd/callback_outs.h"
#include "autograd/dual.h"
#include "autograd/saved.h"
#include "base/finalizer.h"
#include "core/callback.h"
#include "ops/gen/ops.h"

#include <string.h>

namespace TT_NS {

// The callback that may read the saved tensors of a call: its backward, or its jvp.
struct SavedReader {
  Node* node = nullptr;                 // whose backward runs
  const TensorList* inputs = nullptr;   // of the jvp that runs, without the tangents that it gets
  const TensorList* results = nullptr;  // as well
};

// The object behind a tt_function handle; the running call and the node hold a reference. Its name
// follows it in memory.
struct Function {
  uint32_t tag;
  RefCount refs;
  FunctionDef def;
  OwnedNodeType node_type;
  SmallVec<Saved, 4> saved;
  SmallVec<bool, 4> saved_samples;  // of each: whether it is one tensor per sample
  SmallVec<VmapLevel, 1> levels;    // the vmaps around the call if an input is batched, inner first
  SmallVec<const ForwardLevel*, 1> plain;  // results and saved tensors lose their tangents
  bool in_forward;
  SavedReader reader;
  size_t bytes;
  static void destroy(Function* f) noexcept {
    f->tag = 0;
    const FunctionDef def = f->def;
    size_t bytes = f->bytes;
    f->~Function();
    drop_and_free(f, bytes, def.drop, def.user);
  }
};

namespace {

Function& function_of(const NodeType* type) {
  return *reinterpret_cast<Function*>(reinterpret_cast<char*>(const_cast<NodeType*>(type)) -
                                      offsetof(Function, node_type));
}
tt_function* handle_of(Function& f) { return reinterpret_cast<tt_function*>(&f); }

// While it exists, the vmaps of a call run: those that have ended run again, for its backward.
class LevelsOf {
 public:
  explicit LevelsOf(Function& f) : outer_(ctx().vmap) {
    if (f.levels.empty()) return;
    levels_.reserve(f.levels.size());
    for (int64_t i = f.levels.size(); i-- > 0;) {
      levels_.push_back(f.levels[i]);
      levels_.back().outer = levels_.size() < 2 ? nullptr : &levels_[levels_.size() - 2];
    }
    ctx().vmap = &levels_.back();
  }
  ~LevelsOf() { ctx().vmap = outer_; }
  LevelsOf(const LevelsOf&) = delete;

 private:
  VmapLevel* const outer_;
  SmallVec<VmapLevel, 1> levels_;
};

TensorRef batched(Function& f, TensorRef t) {
  return t && !f.levels.empty() ? with_levels(std::move(t)) : t;
}
TensorRef whole(Function& f, TensorRef t) {
  return t && !f.levels.empty() ? without_levels(*t) : t;
}
TensorRef without_tangents(Function& f, TensorRef t) {
  for (const ForwardLevel* level : f.plain) t = primal_of(*t, level);
  return t;
}

// While it exists, a callback may read the saved tensors; it may run another backward of the call.
class ReaderGuard {
 public:
  ReaderGuard(Function& f, const SavedReader& reader) : f_(f), outer_(f.reader) {
    f.reader = reader;
  }
  ~ReaderGuard() { f_.reader = outer_; }
  ReaderGuard(const ReaderGuard&) = delete;

 private:
  Function& f_;
  const SavedReader outer_;
};

void destroy_function_saved(Node& n) noexcept { function_of(n.type).saved.clear(); }
void release_type(const NodeType* type) noexcept {
  Ref<Function>::adopt(&function_of(type)).reset();
}

void function_backward(Node& n, TensorRef* grads, TensorRef* out) {
  check_not_released(n);
  Function& f = function_of(n.type);
  const LevelsOf levels(f);
  TensorList owned;
  SmallVec<tt_tensor*, 4> incoming;
  owned.reserve(n.n_outs);
  for (int64_t i = 0; i < n.n_outs; i++) {
    owned.push_back(batched(f, TensorRef(grads[i])));
    incoming.push_back(reinterpret_cast<tt_tensor*>(owned.back().get()));
  }
  CallbackName what("backward", f.def.name);
  CallbackOuts outs(n.n_edges);
  {
    const ReaderGuard reading(f, {.node = &n});
    run_callback(what.text, true, [&](tt_ctx* c) {
      return f.def.backward(f.def.user, c, handle_of(f), incoming.data(), n.n_outs, outs.data(),
                            n.n_edges);
    });
  }
  TensorList list = outs.take(what.text, true);
  for (int64_t i = 0; i < n.n_edges; i++) out[i] = whole(f, std::move(list[i]));
}

Ref<Function> make_function(const FunctionDef& def) {
  const size_t name_bytes = strlen(def.name) + 1;
  const size_t bytes = sizeof(Function) + name_bytes;
  void* block = heap_alloc(tls.heap, bytes);
  if (!block) {
    run_drop(def.drop, def.user);
    fail_oom(int64_t(bytes));
  }
  auto* f = new (block) Function{kTagFunction, 1, def, {}, {}, {}, {}, {}, false, {}, bytes};
  char* name = reinterpret_cast<char*>(f + 1);
  memcpy(name, def.name, name_bytes);
  f->def.name = name;
  f->node_type = {.type = {.name = name,
                           .apply = function_backward,
                           .destroy_saved = destroy_function_saved,
                           .saved_bytes = 0,
                           .takes_undefined = true,
                           .owned = true},
                  .release = release_type};
  return Ref<Function>::adopt(f);
}

const tt_tensor* const* handles(TensorSpan tensors) {
  return reinterpret_cast<const tt_tensor* const*>(tensors.ptr);
}
tt_tensor* const* items(TensorSpan tensors) {
  return const_cast<tt_tensor* const*>(handles(tensors));
}

TensorList run_forward(Function& f, TensorSpan inputs, int64_t n_outs) {
  CallbackName what("forward", f.def.name);
  CallbackOuts outs(n_outs);
  const LevelsOf levels(f);
  TensorList given;
  for (const Tensor* t : inputs) given.push_back(batched(f, TensorRef::share(t)));
  const Borrowed span(given);
  const TensorSpan all = span;
  MaskGuard no_grad(bit(kKeyAutograd));
  struct Running {
    Function& f;
    explicit Running(Function& fn) : f(fn) { f.in_forward = true; }
    ~Running() { f.in_forward = false; }
  } running(f);
  run_callback(what.text, true, [&](tt_ctx* c) {
    return f.def.forward(f.def.user, c, handle_of(f), handles(all), all.n, outs.data(), n_outs);
  });
  TensorList results = outs.take(what.text, false);
  for (TensorRef& r : results) r = without_tangents(f, whole(f, std::move(r)));
  return results;
}

bool contains(TensorSpan tensors, const Tensor& t) {
  for (const Tensor* other : tensors)
    if (other == &t) return true;
  return false;
}

// An input that forward returns: a new tensor in its memory, which gets the history of the call.
TensorRef alias_of_input(const Tensor& input) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  return op::detach(input);
}

TensorList apply_plain(Function& f, TensorSpan inputs, int64_t n_outs) {
  if ((ctx().exclude & bit(kKeyAutograd)) || !needs_grad(inputs))
    return run_forward(f, inputs, n_outs);
  NodeRef node = new_node(&f.node_type.type, inputs.n, n_outs);
  ref_inc(&f.refs);
  Node& n = as_node(node);
  n.released = false;
  for (int64_t i = 0; i < inputs.n; i++)
    if (needs_grad(inputs[i])) n.set_edge(i, *inputs[i]);
  TensorList results = run_forward(f, inputs, n_outs);
  // Without saved tensors, backward may run again, as the nodes of operators that save none.
  if (f.saved.empty()) f.node_type.type.destroy_saved = destroy_parts<0, 0>;
  for (int64_t i = 0; i < n_outs; i++) {
    const bool is_input = contains(inputs, *results[i]);
    // The history of the input would not see what is written to a result in its memory.
    const bool of_input = is_input || (results[i]->flags & kUntrackedView) != 0;
    results[i] = is_input ? alias_of_input(*results[i]) : fresh_result(std::move(results[i]), {});
    if (of_input) results[i]->flags |= kForeignView;
    if (!is_differentiable(results[i]->dtype)) continue;
    for (Saved& s : f.saved)
      if (!is_input && s.holds(*results[i])) s.save_output(*results[i], uint32_t(i));
    set_history(node, *results[i], uint32_t(i));
  }
  return results;
}

// The application's tangents of the outputs, without those that they have at the level themselves.
TensorList own_tangents(Function& f, TensorSpan tangents, int64_t n_outs, const ForwardLevel& level,
                        const SavedReader& reader) {
  CallbackName what("jvp", f.def.name);
  CallbackOuts outs(n_outs);
  const LevelsOf levels(f);
  TensorList given;
  for (const Tensor* t : tangents)
    given.push_back(t ? batched(f, TensorRef::share(t)) : TensorRef());
  const Borrowed span(given);
  const TensorSpan all = span;
  const MaskGuard masks(level.recording ? 0 : bit(kKeyAutograd));
  const ReaderGuard reading(f, reader);
  run_callback(what.text, true, [&](tt_ctx* c) {
    if (level.nested) ctx().include |= bit(kKeyForward);
    return f.def.jvp(f.def.user, c, handle_of(f), items(all), all.n, outs.data(), n_outs);
  });
  TensorList found = outs.take(what.text, true);
  for (TensorRef& t : found)
    if (t) t = primal_of(*whole(f, std::move(t)), &level);
  return found;
}

void check_tangent(const Function& f, const Tensor& tangent, const Tensor& of, int64_t i) {
  if (same(tangent.sizes(), of.sizes()) && tangent.dtype == of.dtype) return;
  fail(TT_CALLBACK,
       "jvp of {} returned a tangent of shape {} and {} for result {} of shape {} and {}",
       f.def.name, tangent.sizes(), fmt(tangent.dtype), i, of.sizes(), fmt(of.dtype));
}

// A call of a function whose inputs may have tangents.
struct WholeCall {
  Function& f;
  int64_t n_outs;
  static TensorList run(void* self, TensorSpan inputs) {
    const auto& c = *static_cast<WholeCall*>(self);
    return c.apply(inputs);
  }
  TensorList apply(TensorSpan inputs) const {
    ForwardLevel* const level = kModes ? innermost_level(inputs) : nullptr;
    if (!level) return apply_plain(f, inputs, n_outs);
    f.plain.push_back(level);
    if (f.def.jvp) return with_own_tangents(inputs, *level);
    WholeCall inner = *this;
    const auto call_plain = atomic_load(&call_with_tangents, kRelaxed);
    return call_plain({&WholeCall::run, &inner}, inputs, *level);
  }
  TensorList with_own_tangents(TensorSpan inputs, ForwardLevel& level) const {
    TensorList primals, tangents;
    for (const Tensor* t : inputs) {
      primals.push_back(primal_of(*t, &level));
      tangents.push_back(tangent_of(*t, level));
    }
    TensorList results = apply(Borrowed(primals));
    const SavedReader reader = {.inputs = &primals, .results = &results};
    const TensorList found = own_tangents(f, Borrowed(tangents), n_outs, level, reader);
    for (int64_t i = 0; i < n_outs; i++) {
      if (!found[i] || !is_differentiable(results[i]->dtype)) continue;
      check_tangent(f, *found[i], *results[i], i);
      results[i] = new_dual(*results[i], found[i], true, level);
    }
    return results;
  }
};

// Calls the application's function of all samples of the innermost vmap of the inputs.
TensorList apply_to_samples(Function& f, TensorSpan inputs, int64_t n_outs) {
  const VmapLevel* level = nullptr;
  for (const Tensor* t : inputs)
    if (is_batched(t) && (!level || level_of(*t).id > level->id)) level = &level_of(*t);
  TensorList samples, shared;
  for (const Tensor* t : inputs) {
    samples.push_back(batch_at(*t, *level));
    shared.push_back(samples.back() ? TensorRef() : TensorRef::share(t));
  }
  CallbackName what("vmap", f.def.name);
  CallbackOuts outs(n_outs);
  const Borrowed of_samples(samples);
  const Borrowed of_all(shared);
  const TensorSpan own = of_samples;
  run_callback(what.text, true, [&](tt_ctx* c) {
    return f.def.vmap(f.def.user, c, handle_of(f), level->size, items(own), own.n, items(of_all),
                      outs.data(), n_outs);
  });
  TensorList results = outs.take(what.text, false);
  for (int64_t i = 0; i < n_outs; i++) {
    const Tensor& r = *results[i];
    if (!r.ndim || r.size(0) != level->size)
      fail(TT_CALLBACK, "vmap of {} returned a result {} of shape {}: must begin with {} samples",
           f.def.name, i, r.sizes(), level->size);
    results[i] = new_batched(r, *level);
  }
  return results;
}

// Calls the function for all samples of the running vmaps at once.
TensorList apply_batched(Function& f, TensorSpan inputs, int64_t n_outs) {
  VmapLevel* const running = ctx().vmap;
  for (const VmapLevel* l = running; l; l = l->outer) f.levels.push_back(*l);
  TensorList all;
  for (const Tensor* t : inputs) all.push_back(without_levels(*t));
  struct WithoutVmap {
    VmapLevel* const levels = ctx().vmap;
    WithoutVmap() { ctx().vmap = nullptr; }
    ~WithoutVmap() { ctx().vmap = levels; }
  };
  TensorList results;
  {
    const WithoutVmap outside;
    results = WholeCall{f, n_outs}.apply(Borrowed(all));
  }
  for (TensorRef& r : results) r = with_levels(std::move(r));
  return results;
}

}  // namespace

TensorList apply_function(const FunctionDef& def, TensorSpan inputs, int64_t n_outs) {
  const Ref<Function> f = make_function(def);
  bool any = false;
  for (const Tensor* t : inputs) any = any || is_batched(t);
  if (!any) return WholeCall{*f, n_outs}.apply(inputs);
  return def.vmap ? apply_to_samples(*f, inputs, n_outs) : apply_batched(*f, inputs, n_outs);
}

void function_save(Function& f, TensorSpan tensors) {
  if (!f.in_forward) fail(TT_INVALID_ARG, "tensors can be saved only while forward runs");
  f.saved.reserve(f.saved.size() + tensors.n);
  for (const Tensor* t : tensors) {
    f.saved.push_back(Saved());
    f.saved_samples.push_back(t && is_batched(*t));
    if (t)
      f.saved.back().save(
          *without_tangents(f, is_batched(t) ? without_levels(*t) : TensorRef::share(t)));
  }
}

// A result or an input that was saved, with the history and the tangents that it has for jvp; other
// tensors have none.
static TensorRef saved_for_jvp(const Function& f, const Saved& saved) {
  for (const TensorList* list : {f.reader.results, f.reader.inputs})
    for (const TensorRef& t : *list) {
      if (!saved.holds(*t)) continue;
      saved.check_unchanged(f.def.name);
      return t;
    }
  return saved.get_unlinked(f.def.name);
}

TensorRef function_saved(Function& f, int64_t i) {
  const SavedReader& reader = f.reader;
  if (!reader.node && !reader.results)
    fail(TT_INVALID_ARG, "saved tensors can be read only while backward or jvp runs");
  if (i < 0 || i >= f.saved.size())
    fail_arg(TT_INDEX, "i", "i is {}: {} tensors were saved", i, f.saved.size());
  const Saved& saved = f.saved[i];
  TensorRef found = reader.node ? saved.get_opt(*reader.node) : saved_for_jvp(f, saved);
  return f.saved_samples[i] ? batched(f, std::move(found)) : found;
}

Function* recorded_function(const Node& n) {
  return n.type->apply == function_backward ? &function_of(n.type) : nullptr;
}
const FunctionDef& def_of(const Function& f) { return f.def; }
Span<const Saved> saved_by(const Function& f) { return {f.saved.data(), f.saved.size()}; }

}  // namespace TT_NS
