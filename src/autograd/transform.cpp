#include "autograd/transform.h"

#include "autograd/batch.h"
#include "autograd/callback_outs.h"
#include "autograd/dual.h"
#include "autograd/engine.h"
#include "autograd/saved.h"
#include "base/pointer_map.h"
#include "core/callback.h"
#include "ops/gen/ops.h"

namespace TT_NS {

TensorList call_function(ApplicationFn fn, void* user, TensorSpan inputs) {
  constexpr const char* kWhat = "the function";
  CallbackOuts outs(kMaxFunctionOuts);
  int64_t n = 1;
  const KeySet transforms = ctx().include & (bit(kKeyForward) | bit(kKeyVmap));
  run_callback(kWhat, true, [&](tt_ctx* c) {
    ctx().include |= transforms;
    return fn(user, c, reinterpret_cast<const tt_tensor* const*>(inputs.ptr), inputs.n, outs.data(),
              kMaxFunctionOuts, &n);
  });
  if (n < 0 || n > kMaxFunctionOuts)
    fail(TT_CALLBACK, "the function set n_outs to {}: must be 0 to {}", n, kMaxFunctionOuts);
  TensorList list = outs.take(kWhat, true);
  list.resize(n);
  for (int64_t i = 0; i < n; i++)
    if (!list[i]) fail(TT_CALLBACK, "the function succeeded but left result {} NULL", i);
  return list;
}

namespace {

// One call of a function whose inputs are tracked. It leaves no history outside, unless the
// function uses a tensor that is tracked outside: then the results are recorded there, too.
class Tracked {
 public:
  Tracked(const TensorFunction& f, TensorSpan inputs);
  // The gradients of outputs (without levels) with respect to the inputs; empty for those that they
  // do not depend on, and for those without a gradient.
  TensorList gradients(TensorSpan outputs, TensorSpan grads, bool create_graph);
  // Whether the caller's graph must have what is computed from the results.
  bool recorded_outside();

  TensorList given;    // what the function gets
  TensorList results;  // what it returns
  TensorList leaves;   // the tracked tensors, without levels; empty: no gradient
  TensorList whole;    // the results without levels; empty: they do not depend on tracked tensors

 private:
  TensorRef tracked(const Tensor& t, TensorRef& leaf) const;
  bool depends_on_others(const Tensor& output);

  const int64_t id_;      // unique in the process; larger than those of transforms around this one
  const bool recording_;  // the caller records
  bool others_ = false;   // an input is tracked by the caller
  const MaskGuard masks_;
};

bool recording() { return !(ctx().exclude & bit(kKeyAutograd)); }

// Returns t as the function gets it; leaf: the part of it that is tracked.
TensorRef Tracked::tracked(const Tensor& t, TensorRef& leaf) const {
  if (ForwardLevel* const level = forward_level_of(t))
    return new_dual(*tracked(*primal_of(t, level), leaf), tangent_of(t, *level), true, *level);
  const bool others = recording_ && requires_grad(t);
  leaf = others ? op::expand(t, t.sizes()) : op::detach(*primal_of(t, nullptr));
  if (!others) {
    set_requires_grad(*leaf, true);
    autograd_meta(*leaf).level = id_;
  }
  return leaf;
}

int64_t new_transform_id() {
  static int64_t last = 0;
  return atomic_add_fetch(&last, 1, kRelaxed);
}

Tracked::Tracked(const TensorFunction& f, TensorSpan inputs)
    : id_(new_transform_id()), recording_(recording()), masks_(0) {
  ctx().exclude &= ~bit(kKeyAutograd);
  for (const Tensor* t : inputs) {
    if (!is_differentiable(t->dtype)) {
      given.push_back(TensorRef::share(t));
      leaves.push_back({});
      continue;
    }
    TensorRef all = without_levels(*t);
    others_ |= recording_ && is_recorded(*all);
    leaves.push_back({});
    given.push_back(with_levels(tracked(*all, leaves.back())));
  }
  results = f.call(f.self, Borrowed(given));
  for (const TensorRef& r : results) {
    TensorRef all = r && is_differentiable(r->dtype) ? without_levels(*r) : TensorRef();
    const bool depends = all && is_recorded(*all);
    whole.push_back(depends ? std::move(all) : TensorRef());
  }
}

// The gradients of outputs, as run_backward computes them. Outputs and their gradients may be dual
// tensors: then the results are. With o + e t for an output and its tangent, and g + e u for its
// gradient, the derivative of g * J by e is the gradient of t for g plus that of o for u.
TensorList gradients_of(TensorSpan inputs, TensorSpan outputs, TensorSpan grads,
                        bool create_graph) {
  SmallVec<const Tensor*, 16> both(outputs);
  both.append(grads);
  ForwardLevel* const level = innermost_level(both);
  SmallVec<const Tensor*, 8> roots, seeds;
  const auto add = [&](const TensorRef& output, const TensorRef& grad) {
    if (!output || !grad || !is_recorded(*output)) return;
    roots.push_back(output.get());
    seeds.push_back(grad.get());
  };
  TensorList owned, found;
  found.resize(inputs.n);
  const auto part = [&](const Tensor* t, bool tangent) {
    owned.push_back(tangent ? tangent_of(*t, *level) : primal_of(*t, level));
    return owned.back();
  };
  for (int64_t i = 0; i < outputs.n; i++) add(part(outputs[i], false), part(grads[i], false));
  if (!level) {
    if (roots.empty() || !inputs.n) return found;
    BackwardArgs a;
    a.outputs = roots;
    a.grads = seeds;
    a.inputs = inputs;
    a.retain_graph = true;
    a.create_graph = create_graph;
    a.allow_unused = true;
    a.accumulate = false;
    return run_backward(a);
  }
  found = gradients_of(inputs, roots, seeds, create_graph);
  roots.clear();
  seeds.clear();
  for (int64_t i = 0; i < outputs.n; i++) {
    add(part(outputs[i], true), part(grads[i], false));
    add(part(outputs[i], false), part(grads[i], true));
  }
  TensorList tangents = gradients_of(inputs, roots, seeds, create_graph);
  for (int64_t i = 0; i < inputs.n; i++) {
    if (!tangents[i]) continue;
    if (!found[i]) found[i] = op::zeros_like(*tangents[i]);
    const bool batched = is_batched(*found[i]) || is_batched(*tangents[i]);
    if (batched) {  // as grads are: batched tensors hold dual ones
      found[i] = without_levels(*found[i]);
      tangents[i] = without_levels(*tangents[i]);
    }
    found[i] = new_dual(*found[i], tangents[i], true, *level);
    if (batched) found[i] = with_levels(std::move(found[i]));
  }
  return found;
}

}  // namespace

TensorList gradients_of_parts(const BackwardArgs& a) {
  bool batched = false;
  for (const TensorSpan list : {a.outputs, a.inputs})
    for (const Tensor* t : list) batched = batched || is_batched(t);
  TensorList owned;
  const auto whole = [&](const Tensor& t) {
    owned.push_back(batched ? without_levels(t) : TensorRef::share(&t));
    return owned.back().get();
  };
  SmallVec<const Tensor*, 8> inputs, outputs, seeds;
  for (int64_t i = 0; i < a.inputs.n; i++) {
    if (batched && !is_batched(a.inputs[i]))
      fail_arg(TT_AUTOGRAD, "inputs",
               "input {} of shape {} is shared by all samples of a vmap: it has no gradient there",
               i, a.inputs[i]->sizes());
    inputs.push_back(&with_history_of(*whole(*a.inputs[i])));
  }
  for (int64_t i = 0; i < a.outputs.n; i++) {
    const Tensor& t = *a.outputs[i];
    const Tensor* seed = a.grads.n ? a.grads[i] : nullptr;
    if (seed ? !same(seed->sizes(), t.sizes()) : t.numel != 1)
      fail_arg(TT_SHAPE, "grads", "output {} is {}: needs a gradient of its shape", i, t.sizes());
    outputs.push_back(whole(t));
    if (!is_recorded(*outputs.back()))
      fail_arg(TT_AUTOGRAD, "outputs",
               "output {} of shape {} does not require a gradient: nothing was recorded", i,
               t.sizes());
    if (!seed) owned.push_back(op::ones_like(with_history_of(*outputs.back())));
    seeds.push_back(seed ? whole(*seed) : owned.back().get());
  }
  TensorList found = gradients_of(inputs, outputs, seeds, a.create_graph);
  for (int64_t i = 0; i < inputs.size(); i++) {
    if (!found[i] && !a.allow_unused)
      fail_arg(TT_AUTOGRAD, "inputs",
               "input {} of shape {} was not used in the outputs: set allow_unused to get none", i,
               a.inputs[i]->sizes());
    if (found[i] && batched) found[i] = with_levels(std::move(found[i]));
  }
  return found;
}

namespace {

TensorList Tracked::gradients(TensorSpan outputs, TensorSpan grads, bool create_graph) {
  SmallVec<const Tensor*, 8> inputs;
  for (const TensorRef& l : leaves)
    if (l) inputs.push_back(l.get());
  TensorList found;
  found.resize(leaves.size());
  if (!outputs.n || inputs.empty()) return found;
  TensorList computed = gradients_of(inputs, outputs, grads, create_graph);
  int64_t next = 0;
  for (int64_t i = 0; i < leaves.size(); i++)
    if (leaves[i]) found[i] = std::move(computed[next++]);
  return found;
}

// Walks the graph below an output for a leaf that neither this transform nor one inside it made.
// The output keeps it alive.
bool Tracked::depends_on_others(const Tensor& output) {
  if (ForwardLevel* const level = forward_level_of(output))
    return depends_on_others(*primal_of(output, level)) ||
           depends_on_others(*tangent_of(output, *level));
  if (!requires_grad(output)) return false;
  PointerMap seen;
  SmallVec<Node*, 64> open;
  const auto visit = [&](const Edge& e) {
    if (!e) return false;
    if (!e.is_leaf()) {
      if (seen.add(e.node())) open.push_back(e.node());
      return false;
    }
    const AutogradMeta* const meta = find_meta(*e.leaf());
    return !meta || meta->level < id_;
  };
  Edge first = gradient_edge(output);
  bool found = visit(first);
  while (!found && !open.empty()) {
    Node& n = *open.back();
    open.pop_back();
    SmallVec<Edge, 8> edges;
    edges.reserve(n.n_edges);
    {
      const Lock lock(shared_lock);
      for (int64_t i = 0; i < n.n_edges; i++) edges.push_back(n.edges()[i]);
    }
    for (const Edge& e : edges) found = found || visit(e);
  }
  release_edge(first);
  return found;
}

bool Tracked::recorded_outside() {
  if (!recording_) return false;
  bool found = others_;
  for (const TensorRef& r : whole) found = found || (r && depends_on_others(*r));
  return found;
}

TensorRef detached(const TensorRef& t) {
  if (!t || !is_differentiable(t->dtype)) return t;
  if (!(ctx().include & bit(kKeyForward))) return op::detach(*t);
  return with_levels(without_history(*without_levels(*t)));  // with its tangents
}

// The results as the caller gets them.
TensorList given_back(const Tracked& t, bool recorded) {
  TensorList list;
  for (const TensorRef& r : t.results) list.push_back(recorded ? r : detached(r));
  return list;
}

void check_function_result(const TensorList& results) {
  if (results.empty() || !is_differentiable(results[0]->dtype))
    fail(TT_INVALID_ARG, "the function must return a floating or complex tensor first");
  if (results[0]->numel != 1)
    fail(TT_SHAPE, "the first result of the function has shape {}: must have one element",
         results[0]->sizes());
}

// A cotangent of a result, checked, without levels.
TensorRef checked_cotangent(const Tensor& v, const Tensor& result, int64_t i) {
  if (!same(v.sizes(), result.sizes()))
    fail_arg(TT_SHAPE, "cotangents", "cotangent {} is {}: must have its result's shape {}", i,
             v.sizes(), result.sizes());
  return without_levels(v);
}

}  // namespace

ResultsAndProducts vjp(const TensorFunction& f, TensorSpan inputs, TensorSpan cotangents) {
  Tracked t(f, inputs);
  if (!cotangents.n) check_function_result(t.results);
  if (cotangents.n > t.results.size())
    fail_arg(TT_INVALID_ARG, "cotangents", "there are {} cotangents for {} results", cotangents.n,
             t.results.size());
  SmallVec<const Tensor*, 8> outputs, grads;
  TensorList seeds;
  bool seeds_recorded = false;
  const int64_t n = cotangents.n ? cotangents.n : 1;
  for (int64_t i = 0; i < n; i++) {
    const Tensor* v = cotangents.n ? cotangents[i] : nullptr;
    if (cotangents.n && !v) continue;
    seeds.push_back(v ? checked_cotangent(*v, *t.results[i], i) : TensorRef());
    if (!t.whole[i]) continue;
    if (!v) seeds.back() = op::ones_like(*t.whole[i]);
    seeds_recorded |= is_recorded(*seeds.back());
    outputs.push_back(t.whole[i].get());
    grads.push_back(seeds.back().get());
  }
  const bool recorded = t.recorded_outside();
  TensorList found = t.gradients(outputs, grads, recorded || seeds_recorded);
  ResultsAndProducts both;
  for (int64_t i = 0; i < found.size(); i++) {
    if (t.leaves[i] && !found[i]) found[i] = op::zeros_like(*t.leaves[i]);
    both.products.push_back(found[i] ? with_levels(std::move(found[i])) : TensorRef());
  }
  both.results = given_back(t, recorded);
  return both;
}

namespace {

// Jacobian x tangents of every result, without levels; empty for results without a gradient. The
// gradient of the inputs is linear in the cotangents w; its own gradient with respect to w, in the
// direction of the tangents, is the product.
TensorList pushed_forward(Tracked& t, Span<const TensorRef> tangents, bool recorded) {
  TensorList weights, products;
  SmallVec<const Tensor*, 8> outputs, grads;
  for (const TensorRef& r : t.whole) {
    weights.push_back({});
    products.push_back({});
    if (!r) continue;
    TensorRef w = op::zeros_like(*r);
    set_requires_grad(*w, true);
    weights.back() = w;
    outputs.push_back(r.get());
    grads.push_back(w.get());
  }
  const TensorList back = t.gradients(outputs, grads, true);
  SmallVec<const Tensor*, 8> roots, seeds, wanted;
  for (int64_t i = 0; i < back.size(); i++) {
    if (!back[i] || !tangents[i] || !is_recorded(*back[i])) continue;
    roots.push_back(back[i].get());
    seeds.push_back(tangents[i].get());
  }
  for (const TensorRef& w : weights)
    if (w) wanted.push_back(w.get());
  if (roots.empty() || wanted.empty()) return products;
  TensorList found = gradients_of(wanted, roots, seeds, recorded);
  int64_t next = 0;
  for (int64_t i = 0; i < weights.size(); i++)
    if (weights[i]) products[i] = std::move(found[next++]);
  return products;
}

}  // namespace

ResultsAndProducts jvp_by_gradients(const TensorFunction& f, TensorSpan inputs,
                                    TensorSpan tangents) {
  Tracked t(f, inputs);
  TensorList seeds;
  bool recorded = false;
  for (const Tensor* v : tangents) {
    seeds.push_back(v ? without_levels(*v) : TensorRef());
    recorded |= v && is_recorded(*seeds.back());
  }
  const bool outside = t.recorded_outside();
  TensorList found = pushed_forward(t, seeds, outside || recorded);
  ResultsAndProducts both;
  for (const TensorRef& product : found) {
    if (!product) both.products.push_back({});
    else both.products.push_back(with_levels(outside || recorded ? product : detached(product)));
  }
  both.results = given_back(t, outside);
  return both;
}

namespace {

// A tensor like t of zeros, but for a 1 as element k.
TensorRef unit_like(const Tensor& t, int64_t k) {
  const TensorRef flat = op::zeros({&t.numel, 1}, t.dtype, t.device);
  op::fill_(*op::select(*flat, 0, k), Scalar(int64_t(1)));
  return op::view(*flat, t.sizes());
}

// The Jacobian matrices of one result, a row at a time.
void add_rows(Tracked& t, int64_t result, TensorSpan inputs, TensorList& matrices) {
  const Tensor& r = *t.results[result];
  SmallVec<TensorList, 2> rows;
  rows.resize(inputs.n);
  if (t.whole[result]) {
    const Tensor* all = t.whole[result].get();
    const bool recorded = t.recorded_outside();
    for (int64_t k = 0; k < r.numel; k++) {
      const TensorRef seed = without_levels(*unit_like(r, k));
      const Tensor* v = seed.get();
      TensorList found = t.gradients({&all, 1}, {&v, 1}, recorded);
      for (int64_t i = 0; i < inputs.n; i++) {
        if (!found[i] && t.leaves[i]) found[i] = op::zeros_like(*t.leaves[i]);
        if (found[i]) rows[i].push_back(with_levels(std::move(found[i])));
      }
    }
  }
  for (int64_t i = 0; i < inputs.n; i++) {
    if (!t.leaves[i]) {
      matrices.push_back({});
      continue;
    }
    Shape sizes(r.sizes());
    sizes.append(inputs[i]->sizes());
    if (rows[i].empty()) {
      matrices.push_back(op::zeros(sizes, inputs[i]->dtype, inputs[i]->device));
    } else {
      matrices.push_back(op::view(*op::stack(Borrowed(rows[i]), 0), sizes));
    }
  }
}

}  // namespace

TensorList jacobian(const TensorFunction& f, TensorSpan inputs) {
  Tracked t(f, inputs);
  TensorList matrices;
  for (int64_t r = 0; r < t.results.size(); r++) {
    if (!is_differentiable(t.results[r]->dtype))
      fail(TT_DTYPE, "result {} of the function is {}: must be floating or complex", r,
           fmt(t.results[r]->dtype));
    add_rows(t, r, inputs, matrices);
  }
  return matrices;
}

TensorList hessian(const TensorFunction& f, TensorSpan inputs) {
  for (int64_t i = 0; i < inputs.n; i++)
    if (!is_differentiable(inputs[i]->dtype))
      fail_arg(TT_DTYPE, "inputs", "inputs[{}] is {}: must be floating or complex", i,
               fmt(inputs[i]->dtype));
  TensorFunction inner = f;
  const TensorFunction gradient = {
      [](void* self, TensorSpan given) {
        return vjp(*static_cast<TensorFunction*>(self), given, {}).products;
      },
      &inner};
  return jacobian(gradient, inputs);
}

}  // namespace TT_NS
