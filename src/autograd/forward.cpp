#include "autograd/forward.h"

#include "autograd/batch.h"
#include "autograd/forward_call.h"
#include "autograd/saved.h"
#include "dispatch/changed_args.h"
#include "ops/gen/ops.h"

#include <string.h>

namespace TT_NS {

namespace {

bool is_into(const OpSchema& s) {
  constexpr const char* kSuffix = "_into";
  const size_t n = strlen(s.name);
  return n > strlen(kSuffix) && !strcmp(s.name + n - strlen(kSuffix), kSuffix);
}

[[noreturn]] TT_COLD void fail_into_tangent(const OpSchema& s) {
  fail_arg(TT_AUTOGRAD, "dst",
           "an _into call computes no tangent, and an argument of {} has one: use the form that "
           "returns its result",
           s.call);
}

// Calls the operator on tensors whose transforms have ended.
void call_plain(Call c, const Value* args, TensorList& outs) {
  const OpSchema& schema = *c.op->schema;
  const ChangedArgs plain(schema, args, [&](const Tensor& t) { return primal_of(t, nullptr); });
  KeySet keys = c.keys & kHostKeys;
  for (int32_t i = 0; i < schema.n_args; i++)
    for_each_tensor(plain.values[i], [&](const Tensor& t) { keys |= t.keys; });
  keys = (keys | ctx().include) & ~ctx().exclude & ~bit(kKeyForward) & c.op->mask;
  c.op->call_boxed({keys, c.op}, plain.data(), outs);
}

void forward_slot(Call c, const Value* args, TensorList& outs) {
  const OpSchema& schema = *c.op->schema;
  ForwardLevel* level = nullptr;
  bool dual = false;
  bool batched = false;  // a batched tensor holds dual ones
  for (int32_t i = 0; i < schema.n_args; i++)
    for_each_tensor(args[i], [&](const Tensor& t) {
      batched = batched || is_batched(t);
      if (!is_dual(t) && (!t.base || !adopt_tangent(t))) return;
      dual = true;
      ForwardLevel* own = forward_level_of(t);
      if (own && (!level || own->id > level->id)) level = own;
    });
  if (batched || !dual) return c.op->call_boxed({c.keys & ~bit(kKeyForward), c.op}, args, outs);
  if (!level) return call_plain(c, args, outs);
  if (is_into(schema)) fail_into_tangent(schema);
  if (schema.kind == OpKind::kComposite) {
    const KeySet keys = c.keys & (kHostKeys | bit(kKeyAutocast));
    return c.op->call_boxed({keys, c.op}, args, outs);
  }
  call_dual(c, args, *level, outs);
}

ForwardLevelRef new_level(bool recording) {
  static int64_t last = 0;
  const int64_t id = atomic_add_fetch(&last, 1, kRelaxed);
  const bool nested = ctx().include & bit(kKeyForward);
  return ForwardLevelRef::adopt(new (mem_alloc(sizeof(ForwardLevel)))
                                    ForwardLevel{1, id, recording, nested, false});
}

class RunningLevel {
 public:
  RunningLevel() : masks_(0), level_(new_level(recording())) { ctx().include |= bit(kKeyForward); }
  ~RunningLevel() { level_->ended = true; }
  RunningLevel(const RunningLevel&) = delete;
  ForwardLevel& operator*() const { return *level_; }

 private:
  const MaskGuard masks_;
  const ForwardLevelRef level_;
};

void check_tangent(const Tensor& t, const Tensor& of, const char* arg, int64_t i) {
  if (!same(t.sizes(), of.sizes()))
    fail_arg(TT_SHAPE, arg, "tangent {} is {}: must have its input's shape {}", i, t.sizes(),
             of.sizes());
  if (t.dtype != of.dtype)
    fail_arg(TT_DTYPE, arg, "tangent {} is {}: must have its input's dtype {}", i, fmt(t.dtype),
             fmt(of.dtype));
}

// A result or a product as the caller gets it.
TensorRef given_back(const TensorRef& t) {
  return is_recorded(*t) && recording() ? t : without_history(*t);
}

// The products that f does not depend on become zeros.
void fill_products(ResultsAndProducts& both) {
  for (int64_t i = 0; i < both.results.size(); i++)
    if (!both.products[i] && is_differentiable(both.results[i]->dtype))
      both.products[i] = op::zeros_like(*both.results[i]);
}

TensorList call_plain_function(const TensorFunction& f, TensorSpan inputs, ForwardLevel& level) {
  TensorList primals, tangents;
  for (const Tensor* t : inputs) {
    primals.push_back(primal_of(*t, &level));
    tangents.push_back(tangent_of(*t, level));
  }
  const BelowLevel below(level);
  const ResultsAndProducts both = jvp_by_gradients(f, Borrowed(primals), Borrowed(tangents));
  TensorList results;
  for (int64_t i = 0; i < both.results.size(); i++)
    results.push_back(both.products[i] ? new_dual(*both.results[i], both.products[i], true, level)
                                       : both.results[i]);
  return results;
}

void use_forward_mode() {
  use_mode(kKeyForward, &forward_slot);
  atomic_store(&call_with_tangents, &call_plain_function, kRelaxed);
  atomic_store(&find_gradients_of_parts, &gradients_of_parts, kRelaxed);
}

TensorRef dual_input(const Tensor& x, const Tensor& tangent, ForwardLevel& level) {
  const TensorRef primal = own_primal(*without_levels(x));
  return with_levels(new_dual(*primal, without_levels(tangent), true, level));
}

// The level that the application has opened.
struct OpenLevel : CtxPart {
  ForwardLevelRef level;
};

OpenLevel* open_level() { return static_cast<OpenLevel*>(ctx().dual_level); }

void close_level(CtxPart* part) noexcept {
  auto* open = static_cast<OpenLevel*>(part);
  open->level->ended = true;
  open->~OpenLevel();
  mem_free(open, sizeof *open);
}

}  // namespace

ResultsAndProducts jvp(const TensorFunction& f, TensorSpan inputs, TensorSpan tangents) {
  for (int64_t i = 0; i < inputs.n; i++)
    if (tangents[i]) check_tangent(*tangents[i], *inputs[i], "tangents", i);
  ResultsAndProducts both;
  if constexpr (!kModes) {
    both = jvp_by_gradients(f, inputs, tangents);
    fill_products(both);
    return both;
  }
  use_forward_mode();
  TensorList primals, products;
  {
    const RunningLevel running;
    ForwardLevel& level = *running;
    TensorList given;
    for (int64_t i = 0; i < inputs.n; i++) {
      const Tensor& x = *inputs[i];
      const bool dual = tangents[i] && is_differentiable(x.dtype);
      given.push_back(dual ? dual_input(x, *tangents[i], level) : TensorRef::share(&x));
    }
    for (const TensorRef& r : f.call(f.self, Borrowed(given))) {
      const TensorRef all = is_differentiable(r->dtype) ? without_levels(*r) : r;
      adopt_tangent(*all);
      const TensorRef tangent = tangent_of(*all, level);
      primals.push_back(tangent ? primal_of(*all, &level) : r);
      products.push_back(tangent);
    }
  }
  for (int64_t i = 0; i < primals.size(); i++) {
    const TensorRef r = given_back(primals[i]);
    both.results.push_back(products[i] ? with_levels(r) : r);
    both.products.push_back(products[i] ? with_levels(given_back(products[i])) : TensorRef());
  }
  fill_products(both);
  return both;
}

// ---- dual tensors of the application ----

void push_dual_level() {
  if constexpr (!kModes) fail(TT_NOT_IMPLEMENTED, "this build of tt has no forward mode");
  if (open_level()) fail(TT_AUTOGRAD, "a level of dual tensors is open: levels do not nest");
  use_forward_mode();
  ForwardLevelRef level = new_level(true);
  ctx().dual_level = new (mem_alloc(sizeof(OpenLevel))) OpenLevel{{close_level}, std::move(level)};
  ctx().include |= bit(kKeyForward);
}

void pop_dual_level() {
  OpenLevel* const open = open_level();
  if (!open) fail(TT_AUTOGRAD, "no level of dual tensors is open");
  if (!open->level->nested) ctx().include &= ~bit(kKeyForward);
  ctx().dual_level = nullptr;
  close_level(open);
}

TensorRef make_dual(const Tensor& t, const Tensor& tangent) {
  OpenLevel* const open = open_level();
  if (!open) fail(TT_AUTOGRAD, "no level of dual tensors is open");
  if (!is_differentiable(t.dtype))
    fail_arg(TT_DTYPE, "primal", "primal is {}: must be floating or complex", fmt(t.dtype));
  check_tangent(tangent, t, "tangent", 0);
  if (!(tangent.device == t.device))
    fail_arg(TT_DEVICE, "tangent", "tangent is on {}, primal on {}: must be on one device",
             fmt(tangent.device), fmt(t.device));
  const TensorRef all = without_levels(t);
  const TensorRef direction = without_levels(tangent);
  const Tensor* const both[] = {all.get(), direction.get()};
  const ForwardLevel* const inner = innermost_level({both, 2});
  if (inner && inner->id >= open->level->id) {
    const char* const name = tangent_of(*all, *inner) ? "primal" : "tangent";
    fail_arg(TT_AUTOGRAD, name,
             "{} has a tangent already, of this level or of a transform inside it", name);
  }
  return dual_input(t, tangent, *open->level);
}

PrimalAndTangent unpack_dual(const Tensor& t) {
  const TensorRef all = is_differentiable(t.dtype) ? without_levels(t) : TensorRef::share(&t);
  adopt_tangent(*all);
  const OpenLevel* const open = open_level();
  const TensorRef tangent = open ? tangent_of(*all, *open->level) : TensorRef();
  if (!tangent) return {TensorRef::share(&t), {}};
  return {with_levels(primal_of(*all, open->level.get())), with_levels(tangent)};
}

}  // namespace TT_NS
