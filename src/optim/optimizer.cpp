#include "optim/optimizer.h"

#include "autograd/node.h"
#include "base/text/format.h"
#include "core/graph_hooks.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "ops/undo.h"

#include <algorithm>
#include <string.h>

namespace TT_NS {

void Optimizer::destroy(Optimizer* o) noexcept {
  o->tag = 0;
  o->~Optimizer();
  mem_retire(o, sizeof *o);
}

// ---- parameters ----

static void check_param(const Tensor& t, int64_t i) {
  if (requires_grad(t) && !(t.flags & kRequiresGrad))
    fail_arg(TT_INVALID_ARG, "params",
             "params[{}] is the result of an operator: only leaves can be optimized", i);
  if (!is_differentiable(t.dtype))
    fail_arg(TT_DTYPE, "params", "params[{}] is {}: must be floating or complex", i, fmt(t.dtype));
}

static void check_distinct(const Optimizer& o, TensorSpan params) {
  SmallVec<const Tensor*, 16> all;
  all.reserve(o.params.size() + params.n);
  for (const ParamSlot& s : o.params) all.push_back(s.param.get());
  all.append(params);
  std::sort(all.begin(), all.end());
  for (int64_t i = 1; i < all.size(); i++)
    if (all[i] == all[i - 1])
      fail_arg(TT_INVALID_ARG, "params",
               "a parameter appears twice: each may appear once, in one group");
}

// Makes a tensor of the parameter's shape, dtype and, if it is dense, layout.
static TensorRef state_like(const Tensor& p) {
  return p.dense() ? new_strided(p.sizes(), p.strides(), p.dtype, p.device)
                   : new_tensor(p.sizes(), p.dtype, p.device);
}

void add_param_group(Optimizer& o, TensorSpan params) {
  for (int64_t i = 0; i < params.n; i++) check_param(*params[i], i);
  if (o.cls->solver) o.cls->solver->check(o, params);
  if (o.cls->matrix)
    for (int64_t i = 0; i < params.n; i++) o.cls->matrix->check(o, *params[i], i);
  check_distinct(o, params);
  SmallVec<ParamSlot, 4> fresh;
  fresh.reserve(params.n);
  for (const Tensor* p : params) {
    ParamSlot s;
    s.param = TensorRef::share(p);
    if (o.first_state == o.first_state) {
      MaskGuard quiet(bit(kKeyAutograd));
      s.state[0] = state_like(*p);
      // for complex numbers both parts, like PyTorch
      op::fill_(*s.state[0], is_complex(p->dtype) ? Scalar::complex(o.first_state, o.first_state)
                                                  : o.first_state);
      s.step = 0;
    }
    fresh.push_back(std::move(s));
  }
  o.params.reserve(o.params.size() + params.n);
  o.items.reserve(o.params.size() + params.n);
  ParamGroup g = {o.params.size(), o.params.size() + params.n, {}, {}};
  for (int k = 0; k < kMaxValues; k++) g.value[k] = o.standard[k];
  for (double& x : g.extra) x = kNan;
  o.groups.push_back(g);  // nothing fails after this
  for (ParamSlot& s : fresh) o.params.push_back(std::move(s));
}

static void drop_grads(Optimizer& o) {
  if (TT_UNLIKELY(ctx().graph))
    for (const ParamSlot& s : o.params) note_grad(*s.param, true);
  constexpr int kAtOnce = 16;
  for (int64_t i = 0; i < o.params.size();) {
    SmallVec<TensorRef, kAtOnce> gone;  // freed after the lock
    Lock lock(shared_lock);
    for (; i < o.params.size() && gone.size() < kAtOnce; i++)
      gone.push_back(take_grad(lock, *o.params[i].param));
  }
}

// Everything that can fail comes first: detaching gradients, and the check that they are writable.
static void fill_grads(Optimizer& o) {
  struct Filled {
    TensorRef param;  // empty: its gradient is ready
    TensorRef grad;
  };
  MaskGuard quiet(bit(kKeyAutograd));
  SmallVec<Filled, 8> list;
  for (const ParamSlot& s : o.params) {
    TensorRef grad = grad_of(*s.param);
    if (!grad) continue;
    check_writable(*grad, "grad");
    if (grad->grad_fn) {
      list.push_back({s.param, new_alias(*grad)});
    } else {
      list.push_back({{}, std::move(grad)});
    }
  }
  for (const Filled& f : list)
    if (f.grad->device.type == TT_EXT) remember_values(*f.grad);
  CommitGuard whole;
  for (const Filled& f : list) {
    op::fill_(*f.grad, Scalar(0.0));
    if (f.param) set_grad(*f.param, f.grad);
  }
}

void zero_grad(Optimizer& o, bool set_to_none) {
  if (set_to_none) drop_grads(o);
  else fill_grads(o);
}

// ---- values ----

static constexpr const char* kExtraNames[kNumExtras] = {"initial_lr",    "max_lr",       "min_lr",
                                                        "base_momentum", "max_momentum", "swa_lr"};

double* find_value(const Optimizer& o, ParamGroup& g, const char* name) {
  for (int64_t i = 0; i < o.cls->values.n; i++)
    if (strcmp(o.cls->values[i].name, name) == 0) return &g.value[i];
  for (int i = 0; i < kNumExtras; i++)
    if (strcmp(kExtraNames[i], name) == 0) return &g.extra[i];
  return nullptr;
}

ParamGroup& group_at(Optimizer& o, int64_t group) {
  if (group < 0 || group >= o.groups.size())
    fail_arg(TT_INDEX, "group", "group is {}: the optimizer has {} groups", group, o.groups.size());
  return o.groups[group];
}
static double& value_at(Optimizer& o, int64_t group, const char* name) {
  ParamGroup& g = group_at(o, group);
  double* v = find_value(o, g, name);
  if (!v) fail_arg(TT_INVALID_ARG, "name", "{} has no value \"{}\"", o.cls->name, name);
  return *v;
}
double group_value(Optimizer& o, int64_t group, const char* name) {
  const double v = value_at(o, group, name);
  ParamGroup& g = o.groups[group];
  if (v != v && find_value(o, g, name) >= g.extra)
    fail_arg(TT_INDEX, "name", "group {} has no \"{}\" yet", group, name);
  return v;
}
void set_group_value(Optimizer& o, int64_t group, const char* name, double value) {
  value_at(o, group, name) = value;
}

// ---- state ----

static ParamSlot& slot_at(Optimizer& o, int64_t param) {
  if (param < 0 || param >= o.params.size())
    fail_arg(TT_INDEX, "param", "param is {}: the optimizer has {} parameters", param,
             o.params.size());
  return o.params[param];
}
static int state_index(const Optimizer& o, const char* name) {
  for (int k = 0; k < kOptimStates; k++)
    if (o.cls->states[k] && strcmp(o.cls->states[k], name) == 0) return k;
  fail_arg(TT_INVALID_ARG, "name", "{} keeps no state \"{}\"", o.cls->name, name);
}
static bool is_step(const Optimizer& o, const char* name) {
  return o.cls->counts_steps && strcmp(name, "step") == 0;
}
// Returns the index of a number that the class keeps for each parameter, or -1.
static int number_index(const Optimizer& o, const char* name) {
  for (int k = 0; k < kOptimNumbers; k++)
    if (o.cls->numbers[k] && strcmp(o.cls->numbers[k], name) == 0) return k;
  return -1;
}
static TensorRef number_tensor(double v) { return new_scalar(Scalar(v), Dtype::kF32); }

// Calls f(name, part) for each part of a solver's state until it returns true.
template <class F> static void each_part(const Optimizer& o, F f) {
  if (!o.solved) return;
  o.cls->solver->visit(
      *o.solved,
      [](void* with, const char* name, const StatePart& part) {
        return (*static_cast<F*>(with))(name, part);
      },
      &f);
}

Shape state_sizes(const OptimClass& cls, const Tensor& param, int k) {
  return cls.matrix ? cls.matrix->state_sizes(param, k) : Shape(param.sizes());
}

TensorRef param_state(Optimizer& o, int64_t param, const char* name) {
  ParamSlot& s = slot_at(o, param);
  if (o.cls->solver)
    return param == 0 && o.solved ? o.cls->solver->state(*o.solved, name) : TensorRef();
  if (is_step(o, name)) return s.step < 0 ? TensorRef() : number_tensor(s.step);
  const int n = number_index(o, name);
  if (n >= 0) return s.number[n] != s.number[n] ? TensorRef() : number_tensor(s.number[n]);
  return s.state[state_index(o, name)];
}

static void check_step(double step) {
  if (!(step >= 0 && step <= 0x1p53))
    fail_arg(TT_INVALID_ARG, "value", "step is {}: must be a non-negative integer", step);
}

void set_param_state(Optimizer& o, int64_t param, const char* name, const Tensor* value) {
  const TensorRef held = slot_at(o, param).param;
  if (o.cls->solver) return o.cls->solver->set(o, param, name, value);
  const Tensor& p = *held;
  const int n = number_index(o, name);
  if (is_step(o, name) || n >= 0) {
    if (value && value->numel != 1)
      fail_arg(TT_SHAPE, "value", "{} has shape {}: must have one element", name, value->sizes());
    const double absent = n < 0 ? -1 : kNan;
    const double number = value ? read_scalar(*value).real() : absent;
    if (value && n < 0) check_step(number);
    (n < 0 ? o.params[param].step : o.params[param].number[n]) = number;
    return;
  }
  const int k = state_index(o, name);
  if (!value) return o.params[param].state[k].reset();
  const Shape sizes = state_sizes(*o.cls, p, k);
  if (!same(value->sizes(), sizes))
    fail_arg(TT_SHAPE, "value", "{} is {}, its parameter is {}: must be {}", name, value->sizes(),
             p.sizes(), Ints(sizes));
  if (!can_cast(value->dtype, p.dtype))
    fail_arg(TT_DTYPE, "value", "{} is {}, its parameter is {}: must convert to it", name,
             fmt(value->dtype), fmt(p.dtype));
  MaskGuard quiet(bit(kKeyAutograd));
  TensorRef own = same(sizes, p.sizes()) ? state_like(p) : new_tensor(sizes, p.dtype, p.device);
  op::copy_(*own, value->device == p.device ? TensorRef::share(value)
                                            : op::to(*value, Dtype::kNone, p.device));
  o.params[param].state[k] = std::move(own);  // callbacks may have added parameters meanwhile
  o.params[param].fresh &= ~(1u << k);
}

// ---- the state as lists ----

template <class... A>
static void write_name(char* name, int64_t cap, const char* text, const A&... a) {
  const FmtArg args[] = {FmtArg(a)...};
  const int64_t n = format_to(name, cap, text, {args, int64_t(sizeof...(A))});
  if (n >= cap)
    fail_arg(TT_BUFFER_TOO_SMALL, "name", "the name has {} bytes, name has room for {}", n + 1,
             cap);
}

// Calls f(param, name, tensor) for each tensor of the state until it returns true.
template <class F> static void each_tensor(const Optimizer& o, F f) {
  for (int64_t i = 0; i < o.params.size(); i++)
    for (int k = 0; k < kOptimStates; k++)
      if (o.params[i].state[k] && f(i, o.cls->states[k], o.params[i].state[k])) return;
  each_part(o, [&](const char* name, const StatePart& part) {
    return part.tensor && f(0, name, *part.tensor);
  });
}
// Calls f(group or param, name, value) for each number until it returns true.
template <class F> static void each_number(const Optimizer& o, F f) {
  bool done = false;
  each_part(o, [&](const char* name, const StatePart& part) {
    done = !part.tensor && f("state.{}.{}", 0, name, part.number);
    return done;
  });
  if (done) return;
  for (int64_t i = 0; i < o.params.size(); i++) {
    const ParamSlot& s = o.params[i];
    if (s.step >= 0 && f("state.{}.{}", i, "step", s.step)) return;
    for (int k = 0; k < kOptimNumbers; k++)
      if (s.number[k] == s.number[k] && f("state.{}.{}", i, o.cls->numbers[k], s.number[k])) return;
  }
  for (int64_t j = 0; j < o.groups.size(); j++) {
    const ParamGroup& g = o.groups[j];
    for (int64_t k = 0; k < o.cls->values.n; k++)
      if (f("param_groups.{}.{}", j, o.cls->values[k].name, g.value[k])) return;
    for (int k = 0; k < kNumExtras; k++)
      if (g.extra[k] == g.extra[k] && f("param_groups.{}.{}", j, kExtraNames[k], g.extra[k]))
        return;
  }
}

int64_t num_tensors(const Optimizer& o) {
  int64_t n = 0;
  each_tensor(o, [&](int64_t, const char*, const TensorRef&) {
    n++;
    return false;
  });
  return n;
}
int64_t num_numbers(const Optimizer& o) {
  int64_t n = 0;
  each_number(o, [&](const char*, int64_t, const char*, double) {
    n++;
    return false;
  });
  return n;
}

[[noreturn]] static void fail_index(int64_t i, int64_t n) {
  fail_arg(TT_INDEX, "i", "i is {}: there are {}", i, n);
}

TensorRef tensor_at(const Optimizer& o, int64_t i, char* name, int64_t cap) {
  TensorRef found;
  int64_t left = i < 0 ? INT64_MAX : i;
  each_tensor(o, [&](int64_t param, const char* state, const TensorRef& t) {
    if (left-- != 0) return false;
    write_name(name, cap, "state.{}.{}", param, state);
    found = t;
    return true;
  });
  if (!found) fail_index(i, num_tensors(o));
  return found;
}
double number_at(const Optimizer& o, int64_t i, char* name, int64_t cap) {
  double found = 0;
  int64_t left = i < 0 ? INT64_MAX : i;
  each_number(o, [&](const char* text, int64_t of, const char* value_name, double value) {
    if (left-- != 0) return false;
    write_name(name, cap, text, of, value_name);
    found = value;
    return true;
  });
  if (left >= 0) fail_index(i, num_numbers(o));
  return found;
}

// Parses "state.12.exp_avg" with head "state.": returns 12, *rest is "exp_avg".
static int64_t parse_name(const char* name, const char* head, const char** rest) {
  const size_t n = strlen(head);
  if (strncmp(name, head, n)) return -1;
  int64_t i = 0;
  int64_t digits = 0;
  for (name += n; *name >= '0' && *name <= '9' && digits < 15; name++, digits++)
    i = 10 * i + (*name - '0');
  if (!digits || *name != '.') return -1;
  *rest = name + 1;
  return i;
}
[[noreturn]] static void fail_name(const char* name) {
  fail_arg(TT_INVALID_ARG, "name", "\"{}\" is not part of an optimizer's state", name);
}

void load_tensor(Optimizer& o, const char* name, const Tensor& value) {
  const char* part = nullptr;
  const int64_t i = parse_name(name, "state.", &part);
  if (i < 0) fail_name(name);
  set_param_state(o, i, part, &value);
}
void load_number(Optimizer& o, const char* name, double value) {
  const char* part = nullptr;
  int64_t i = parse_name(name, "state.", &part);
  if (i >= 0 && o.cls->solver) {
    slot_at(o, i);
    const TensorRef number = new_scalar(Scalar(value), Dtype::kF64);
    return o.cls->solver->set(o, i, part, number.get());
  }
  if (i >= 0 && is_step(o, part)) {
    ParamSlot& s = slot_at(o, i);
    check_step(value);
    s.step = value;
    return;
  }
  if (i >= 0 && number_index(o, part) >= 0) {
    slot_at(o, i).number[number_index(o, part)] = value;
    return;
  }
  i = parse_name(name, "param_groups.", &part);
  if (i < 0) fail_name(name);
  set_group_value(o, i, part, value);
}

}  // namespace TT_NS
