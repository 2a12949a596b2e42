#include "autograd/forward_call.h"

#include "autograd/engine.h"
#include "autograd/saved.h"
#include "dispatch/changed_args.h"
#include "ops/gen/ops.h"

#include <string.h>

namespace TT_NS {

namespace {

// Operators of the application have a gradient by all of their arguments.
constexpr ForwardRow kCustomOp = {nullptr, ForwardRule::kTwice,
                                  ~uint64_t(0) / 15 * uint64_t(ForwardRole::kOther), nullptr};
constexpr ForwardRow kNoRow = {nullptr, ForwardRule::kNone, 0, nullptr};

const ForwardRow* find_row(const char* op, size_t length) {
  int64_t low = 0;
  int64_t high = num_forward_rows;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const char* name = forward_rows[middle].op;
    int order = strncmp(name, op, length);
    if (!order) order = name[length] ? 1 : 0;
    if (!order) return &forward_rows[middle];
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return nullptr;
}

// In place, an operator has the roles of the one that returns its result.
ForwardRow row_of(const OpInfo& op) {
  if (op.is_custom()) return kCustomOp;
  const char* name = op.schema->name;
  const size_t length = strlen(name);
  if (const ForwardRow* row = find_row(name, length)) return *row;
  if (op.schema->n_outs || name[length - 1] != '_') return kNoRow;
  const ForwardRow* row = find_row(name, length - 1);
  if (!row) return kNoRow;
  ForwardRow found = *row;
  if (found.formula) found.rule = ForwardRule::kTwice;
  return found;
}

// Whether autograd records, while it exists.
struct RecordingGuard : MaskGuard {
  explicit RecordingGuard(bool on) : MaskGuard(on ? 0 : bit(kKeyAutograd)) {
    if (on) ctx().exclude &= ~bit(kKeyAutograd);
  }
};

// An argument, or an item of a list, that has a tangent and a derivative.
struct Operand {
  int32_t arg;
  const Tensor* header;
  TensorRef primal, tangent;
};

// A term of the product rule.
struct ProductTerm {
  const Operand* varied;  // the factor whose tangent replaces it; nullptr: no factor is dual
  bool is_first, is_only;
  bool has_zero = false;  // without a dual factor, the first factor is 0
};

// A call of an operator at the level of the innermost of its dual arguments.
class DualCall {
 public:
  DualCall(Call c, const Value* args, ForwardLevel& level, TensorList& outs);
  void run();

 private:
  const OpSchema& schema() const { return *c_.op->schema; }
  ForwardRole role(int32_t arg) const { return role_of(row_, arg); }
  const ArgInfo& info(int32_t i) const { return schema().args[i]; }
  int64_t edge_of(int32_t arg) const;
  const Operand* operand_of(const Tensor& t) const;
  const Operand* operand_at(int32_t arg, const Tensor& t) const;
  Tensor& self() const { return const_cast<Tensor&>(*args_[0].tensor); }
  bool records() const;
  ForwardRule rule() const;
  bool is_nested() const;
  void find_operands();
  TensorList call(const Value* args) const;

  TensorRef in_term(ProductTerm& term, int32_t i, const Tensor& t, const Operand* o);
  TensorList call_term(ProductTerm& term);
  TensorList by_product(const Value* plain, TensorList& results);
  TensorList by_symmetry(const Value* plain, TensorList& results);
  TensorList by_formula(const Value* plain, TensorList& results);
  TensorList by_gradients(const Value* plain, TensorList& results);
  TensorList on_copies(TensorSpan operands) const;
  void give(TensorList&& results, TensorList&& tangents);
  TensorRef dual_result(const TensorRef& result, TensorRef tangent) const;
  void write_self(const TensorRef& value, const TensorRef& tangent);

  const Call c_;
  const Value* const args_;
  ForwardLevel& level_;
  TensorList& outs_;
  const bool in_place_;
  const ForwardRow row_;
  SmallVec<Operand, 4> operands_;
};

bool has_derivative(ForwardRole r) { return r != ForwardRole::kNone && r != ForwardRole::kRefused; }
bool is_tensor(const Value& v) { return v.kind == Value::kTensor || v.kind == Value::kTensorList; }

[[noreturn]] TT_COLD void fail_no_tangent(const char* arg) {
  fail_arg(TT_NOT_IMPLEMENTED, arg,
           "{} has a tangent, but this operator has no derivative by it: detach it first", arg);
}

DualCall::DualCall(Call c, const Value* args, ForwardLevel& level, TensorList& outs)
    : c_(c),
      args_(args),
      level_(level),
      outs_(outs),
      in_place_(c.op->schema->n_outs == 0),
      row_(row_of(*c.op)) {}

void DualCall::find_operands() {
  for (int32_t i = 0; i < schema().n_args; i++) {
    if (!is_tensor(args_[i])) continue;
    for_each_tensor(args_[i], [&](const Tensor& t) {
      TensorRef tangent = tangent_of(t, level_);
      if (tangent && role(i) == ForwardRole::kRefused) fail_no_tangent(info(i).name);
      if (tangent && has_derivative(role(i)))
        operands_.push_back({i, &t, primal_of(t, &level_), std::move(tangent)});
    });
  }
}

const Operand* DualCall::operand_of(const Tensor& t) const {
  for (const Operand& o : operands_)
    if (o.header == &t) return &o;
  return nullptr;
}

const Operand* DualCall::operand_at(int32_t arg, const Tensor& t) const {
  for (const Operand& o : operands_)
    if (o.arg == arg && o.header == &t) return &o;
  return nullptr;
}

// The edge of an argument in the node of the operator.
int64_t DualCall::edge_of(int32_t arg) const {
  int64_t edge = 0;
  for (int32_t i = 0; i < arg; i++)
    edge += has_derivative(role(i)) &&
            (info(i).type == ArgType::kTensor || info(i).type == ArgType::kOptTensor);
  return edge;
}

// Whether the caller's graph must have what is computed from the operands.
bool DualCall::records() const {
  if (!recording()) return false;
  bool found = false;
  for (int32_t i = 0; i < schema().n_args; i++)
    for_each_tensor(args_[i], [&](const Tensor& t) { found = found || is_recorded(t); });
  return found;
}

// Calls the operator on other arguments, through all of their keys.
TensorList DualCall::call(const Value* args) const {
  KeySet keys = c_.keys & kHostKeys;
  for (int32_t i = 0; i < schema().n_args; i++)
    for_each_tensor(args[i], [&](const Tensor& t) { keys |= t.keys; });
  keys = (keys | ctx().include) & ~ctx().exclude & c_.op->mask;
  TensorList found;
  c_.op->call_boxed({keys, c_.op}, args, found);
  return found;
}

TensorRef sum_of(TensorRef a, TensorRef b) {
  if (!a) return b;
  return b ? op::add(*a, *b) : std::move(a);
}
void add_to(TensorList& sums, TensorList&& terms) {
  if (sums.empty()) {
    sums = std::move(terms);
    return;
  }
  for (int64_t i = 0; i < sums.size(); i++)
    sums[i] = sum_of(std::move(sums[i]), std::move(terms[i]));
}

// A tangent with the shape and dtype of its tensor.
TensorRef fitted(TensorRef tangent, const Tensor& of) {
  if (is_complex(tangent->dtype) && !is_complex(of.dtype)) tangent = op::real(*tangent);
  if (tangent->dtype != of.dtype) tangent = op::to_dtype(*tangent, of.dtype);
  return same(tangent->sizes(), of.sizes()) ? tangent : op::expand(*tangent, of.sizes());
}

// ---- products ----

TensorRef zeros_as(const Tensor& t) {
  return op::expand(*op::zeros({}, t.dtype, t.device), t.sizes());
}

TensorList terms_of(TensorRef only) {
  TensorList list;
  list.push_back(std::move(only));
  return list;
}

// What the product rule puts in place of tensor t of argument i. o: the operand that t is, if any.
TensorRef DualCall::in_term(ProductTerm& term, int32_t i, const Tensor& t, const Operand* o) {
  const ForwardRole which = role(i);
  if (which == ForwardRole::kAddend) {
    if (term.is_first && o) return o->tangent;
    if (info(i).type == ArgType::kOptTensor) return {};
    return zeros_as(t);
  }
  if (which != ForwardRole::kFactor) return primal_of(t, &level_);
  if (term.varied) return o == term.varied ? o->tangent : primal_of(t, &level_);
  if (term.has_zero) return primal_of(t, &level_);
  term.has_zero = true;
  return zeros_as(t);
}

// Calls the operator for a term. In place, it writes into a copy of self or, for an only term, into
// self's tangent.
TensorList DualCall::call_term(ProductTerm& term) {
  SmallVec<Value, 16> values;
  const Scalar zero(int64_t(0));
  TensorRef target;
  TensorList owned;
  SmallVec<SmallVec<const Tensor*, 8>, 1> lists;
  owned.reserve(8);
  lists.reserve(schema().n_args);
  for (int32_t i = 0; i < schema().n_args; i++) {
    const auto replaced = [&](const Tensor& t) {
      owned.push_back(in_term(term, i, t, operand_at(i, t)));
      return owned.back().get();
    };
    Value v = args_[i];
    if (in_place_ && !i) {
      const bool of_self = role(0) != ForwardRole::kFactor || (term.varied && !term.varied->arg);
      target = term.is_only && of_self
                   ? TensorRef::share(&own_tangent(self()))
                   : op::clone(*in_term(term, 0, self(), operand_at(0, self())));
      v = to_value(*target);
    } else if (v.kind == Value::kTensor) {
      v = to_value(replaced(*v.tensor));
    } else if (v.kind == Value::kTensorList) {
      lists.push_back({});
      for (int64_t k = 0; k < v.n; k++)
        lists.back().push_back(v.tensors[k] ? replaced(*v.tensors[k]) : nullptr);
      v.tensors = lists.back().data();
    } else if (v.kind == Value::kScalar && role(i) == ForwardRole::kAddend) {
      v.scalar = &zero;
    }
    values.push_back(v);
  }
  TensorList outs = call(values.data());
  return in_place_ ? terms_of(std::move(target)) : std::move(outs);
}

// The product rule: the sum of the operator's results with the tangent of one dual factor in place
// of it and 0 in place of the addends. The first term has the tangents of the addends, too.
TensorList DualCall::by_product(const Value* plain, TensorList& results) {
  SmallVec<int32_t, 4> factors;
  for (int32_t k = 0; k < operands_.size(); k++)
    if (role(operands_[k].arg) == ForwardRole::kFactor) factors.push_back(k);
  TensorList sums;
  for (int32_t k = 0; k < max<int64_t>(1, factors.size()); k++) {
    ProductTerm term = {.varied = factors.empty() ? nullptr : &operands_[factors[k]],
                        .is_first = k == 0,
                        .is_only = factors.size() < 2};
    add_to(sums, call_term(term));
  }
  results = call(plain);
  return sums;
}

// ---- symmetric Jacobian matrices ----

// The formula computes conj(J) * g for a gradient g. Of real results of a complex argument J * t is
// the real part of conj(gradient) * t.
TensorRef formula_of_tangent(Node& n, int64_t edge, const Tensor& out, const Operand& o) {
  const UnwantedEdges others(n, uint16_t(~(1u << edge)));  // elementwise: fewer than 16 edges
  const bool complex = is_complex(out.dtype);
  const bool to_real = !complex && is_complex(o.primal->dtype);
  SmallVec<TensorRef, 4> grads, found;
  grads.resize(n.n_outs);
  found.resize(n.n_edges);
  TensorRef t = to_real ? op::ones_like(out) : fitted(o.tangent, out);
  grads[0] = complex ? op::conj(*t) : std::move(t);
  n.type->apply(n, grads.data(), found.data());
  TensorRef result = std::move(found[edge]);
  if (!result) return {};
  if (to_real) return op::real(*op::mul(*op::conj(*result), *o.tangent));
  return fitted(complex ? op::conj(*result) : std::move(result), out);
}

// A result that only this call has loses its history.
void forget_history(Tensor& t) {
  const NodeRef node = NodeRef::adopt(t.grad_fn);
  t.grad_fn = nullptr;
  t.keys &= ~bit(kKeyAutograd);
}

TensorRef private_leaf(const Tensor& t) {
  TensorRef leaf = new_alias(t);
  set_requires_grad(*leaf, true);
  return leaf;
}

TensorList DualCall::by_symmetry(const Value* plain, TensorList& results) {
  const bool recorded = records();
  TensorList leaves;  // of the operands; empty: the caller's graph has it
  TensorRef target;   // a copy of self, in place
  {
    const RecordingGuard on(true);
    SmallVec<Value, 16> values;
    for (int32_t i = 0; i < schema().n_args; i++) values.push_back(plain[i]);
    for (const Operand& o : operands_) {
      leaves.push_back(requires_grad(*o.primal) && recorded ? TensorRef()
                                                            : private_leaf(*o.primal));
      values[o.arg] = to_value(leaves.back() ? *leaves.back() : *o.primal);
    }
    if (in_place_) {
      target = op::clone(*values[0].tensor);
      values[0] = to_value(*target);
    }
    results = call(values.data());
    if (in_place_) results.push_back(target);
  }
  const Tensor& out = *results[0];
  const NodeRef node = NodeRef::share(out.grad_fn);
  for (const TensorRef& leaf : leaves) {
    if (!leaf) continue;
    leaf->flags = uint16_t(leaf->flags & ~kRequiresGrad);
    leaf->keys &= ~bit(kKeyAutograd);
  }
  if (!recorded)
    for (const TensorRef& r : results)
      if (r) forget_history(*r);
  TensorList tangents;
  tangents.resize(results.size());
  if (!node) return tangents;  // the results are no numbers that have a gradient
  Node& n = as_node(node);
  const RecordingGuard masks(recorded);
  for (const Operand& o : operands_)
    tangents[0] = sum_of(std::move(tangents[0]), formula_of_tangent(n, edge_of(o.arg), out, o));
  for (int64_t k = 0; k < leaves.size(); k++)
    if (leaves[k] && recorded && !in_place_) release_edge(n.edges()[edge_of(operands_[k].arg)]);
  return tangents;
}

// ---- formulas ----

TensorList DualCall::by_formula(const Value* plain, TensorList& results) {
  results = call(plain);
  SmallVec<const Tensor*, 8> tangents;
  for (int32_t i = 0; i < schema().n_args; i++) {
    if (!has_derivative(role(i))) continue;
    const Operand* o = is_tensor(args_[i]) ? operand_of(*args_[i].tensor) : nullptr;
    tangents.push_back(o ? o->tangent.get() : nullptr);
  }
  TensorList found;
  row_.formula(plain, results, tangents, found);
  for (int64_t i = 0; i < found.size(); i++)
    if (found[i]) found[i] = fitted(std::move(found[i]), *results[i]);
  found.resize(results.size());
  return found;
}

// ---- the gradient of the gradient ----

// Calls the operator with other tensors in place of the operands.
TensorList DualCall::on_copies(TensorSpan operands) const {
  TensorRef target;
  const ChangedArgs args(schema(), args_, [&](const Tensor& t) {
    const Operand* o = operand_of(t);
    TensorRef other = o ? TensorRef::share(operands[o - operands_.data()]) : primal_of(t, &level_);
    if (in_place_ && !target && &t == args_[0].tensor) {
      other = op::clone(*other);
      target = other;
    }
    return other;
  });
  TensorList results = call(args.data());
  if (in_place_) results.push_back(target);
  return results;
}

TensorList DualCall::by_gradients(const Value*, TensorList& results) {
  struct Function {
    const DualCall* call;
    static TensorList run(void* self, TensorSpan operands) {
      return static_cast<Function*>(self)->call->on_copies(operands);
    }
  } function{this};
  struct WithoutVmap {
    VmapLevel* levels = ctx().vmap;
    WithoutVmap() { ctx().vmap = nullptr; }
    ~WithoutVmap() { ctx().vmap = levels; }
  } whole;
  TensorList primals, tangents;
  for (const Operand& o : operands_) {
    primals.push_back(o.primal);
    tangents.push_back(o.tangent);
  }
  ResultsAndProducts both =
      jvp_by_gradients({&Function::run, &function}, Borrowed(primals), Borrowed(tangents));
  results = std::move(both.results);
  return std::move(both.products);
}

// ---- results ----

bool share_memory(const Tensor& a, const Tensor& b) { return a.storage == b.storage; }

TensorRef DualCall::dual_result(const TensorRef& result, TensorRef tangent) const {
  bool shared = share_memory(*tangent, *result);
  for (const Operand& o : operands_)
    shared = shared || (!share_memory(*result, *o.primal) && share_memory(*tangent, *o.tangent));
  return new_dual(*result, std::move(tangent), shared, level_);
}

void DualCall::write_self(const TensorRef& value, const TensorRef& tangent) {
  if (value) op::copy_(*primal_of(self(), &level_), *value);
  if (!tangent_of(self(), level_)) return;
  Tensor& own = own_tangent(self());
  if (!tangent) return op::zero_(own);
  if (tangent.get() != &own) op::copy_(own, *tangent);
}

void DualCall::give(TensorList&& results, TensorList&& tangents) {
  outs_.reserve(outs_.size() + results.size());
  for (int64_t i = 0; i < results.size(); i++) {
    const bool dual =
        results[i] && i < tangents.size() && tangents[i] && is_differentiable(results[i]->dtype);
    outs_.push_back(dual ? dual_result(results[i], std::move(tangents[i])) : results[i]);
  }
}

// Whether an argument is a dual tensor of an outer transform, too. Nodes save no tangents.
bool DualCall::is_nested() const {
  bool found = false;
  for (int32_t i = 0; i < schema().n_args; i++)
    for_each_tensor(args_[i], [&](const Tensor& t) {
      const TensorRef tangent = tangent_of(t, level_);
      found = found || is_dual(*primal_of(t, &level_)) || (tangent && is_dual(*tangent));
    });
  return found;
}

// A derivative that has no role in products takes the gradient of the gradient.
ForwardRule DualCall::rule() const {
  if (operands_.empty()) return ForwardRule::kNone;
  if (row_.rule == ForwardRule::kSymmetric && is_nested()) return ForwardRule::kTwice;
  if (row_.rule != ForwardRule::kProduct) return row_.rule;
  for (const Operand& o : operands_)
    if (role(o.arg) == ForwardRole::kOther) return ForwardRule::kTwice;
  return ForwardRule::kProduct;
}

void DualCall::run() {
  const BelowLevel below(level_);
  if (in_place_ && row_.rule != ForwardRule::kNone) become_dual(self(), level_);
  if (schema().alias != Alias::kNone)
    for (int32_t i = 0; i < schema().n_args; i++)
      for_each_tensor(args_[i], [&](const Tensor& t) {
        if (tangent_of(t, level_)) own_tangent(t);
      });
  find_operands();
  const ChangedArgs plain(schema(), args_, [&](const Tensor& t) { return primal_of(t, &level_); });
  if (in_place_ && records())  // graphs may save the tangent, which is about to be overwritten
    for (Operand& o : operands_)
      if (!o.arg) o.tangent = op::clone(*o.tangent);
  TensorList results, tangents;
  switch (rule()) {
    case ForwardRule::kNone: results = call(plain.data()); break;
    case ForwardRule::kProduct: tangents = by_product(plain.data(), results); break;
    case ForwardRule::kSymmetric: tangents = by_symmetry(plain.data(), results); break;
    case ForwardRule::kFormula: tangents = by_formula(plain.data(), results); break;
    case ForwardRule::kInstead:  // call_dual() has called it
    case ForwardRule::kTwice: tangents = by_gradients(plain.data(), results); break;
  }
  if (!in_place_) return give(std::move(results), std::move(tangents));
  write_self(results.empty() ? TensorRef() : results[0],
             tangents.empty() ? TensorRef() : tangents[0]);
}

}  // namespace

void call_dual(Call c, const Value* args, ForwardLevel& level, TensorList& outs) {
  const ForwardRow row = row_of(*c.op);
  if (row.rule == ForwardRule::kInstead) return row.formula(args, {}, {}, outs);
  DualCall(c, args, level, outs).run();
}

}  // namespace TT_NS
