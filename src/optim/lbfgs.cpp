// LBFGS: the limited-memory BFGS method, of PyTorch's steps, by operators on one vector.
#include "autograd/node.h"
#include "base/text/format.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "ops/undo.h"
#include "optim/line_search.h"
#include "optim/rules.h"

#include <math.h>
#include <string.h>

namespace TT_NS {
namespace {

enum Number { kFuncEvals, kIterations, kLength, kPrevLoss, kHessianDiag, kNumNumbers };
constexpr const char* kNumberNames[] = {"func_evals", "n_iter", "t", "prev_loss", "H_diag"};
enum Vector { kDirection, kPrevGradient, kNumVectors };
constexpr const char* kVectorNames[] = {"d", "prev_flat_grad"};
constexpr int64_t kLongest = int64_t(1) << 20;  // of the lists

struct LbfgsState : SolverState {
  double number[kNumNumbers] = {0, 0, 0, 0, 1};
  TensorRef vector[kNumVectors];
  // of the last updates: changes of the gradient, steps, and 1 / (change · step)
  SmallVec<TensorRef, 1> changes, steps;
  SmallVec<double, 1> inverses;
};
void free_state(SolverState* s) noexcept {
  auto* state = static_cast<LbfgsState*>(s);
  state->~LbfgsState();
  mem_free(state, sizeof *state);
}
const LbfgsState* state_of(const Optimizer& o) {
  return static_cast<const LbfgsState*>(o.solved.get());
}
// Returns a state of one's own, which may be changed until others see it.
LbfgsState* copy_of(const LbfgsState* from) {
  void* block = mem_alloc(sizeof(LbfgsState));
  LbfgsState* s;
  try {
    s = from ? new (block) LbfgsState(*from) : new (block) LbfgsState;
  } catch (...) {
    mem_free(block, sizeof(LbfgsState));
    throw;
  }
  s->refs = 1;
  s->free = free_state;
  return s;
}

// ---- the state by name ----

bool part_at(const SolverState& s, int64_t i, StatePart* part) {
  const auto& state = static_cast<const LbfgsState&>(s);
  if (i < kNumNumbers) {
    *part = {kNumberNames[i], -1, nullptr, state.number[i]};
    return true;
  }
  i -= kNumNumbers;
  if (i < state.inverses.size()) {
    *part = {"ro", i, nullptr, state.inverses[i]};
    return true;
  }
  i -= state.inverses.size();
  if (i < kNumVectors) {
    *part = {kVectorNames[i], -1, &state.vector[i], 0};
    return true;
  }
  i -= kNumVectors;
  if (i < state.changes.size()) {
    *part = {"old_dirs", i, &state.changes[i], 0};
    return true;
  }
  i -= state.changes.size();
  if (i >= state.steps.size()) return false;
  *part = {"old_stps", i, &state.steps[i], 0};
  return true;
}

constexpr int64_t kPartName = 48;  // maximum bytes of the name of a part, "d" or "old_dirs.3"

void visit(const SolverState& s, bool (*see)(void* with, const char* name, const StatePart& part),
           void* with) {
  StatePart part;
  char name[kPartName];
  for (int64_t i = 0; part_at(s, i, &part); i++) {
    if (part.tensor && !*part.tensor) continue;
    const FmtArg args[] = {part.name, part.index};
    format_to(name, kPartName, part.index < 0 ? "{}" : "{}.{}", {args, part.index < 0 ? 1 : 2});
    if (see(with, name, part)) return;
  }
}

TensorRef state(const SolverState& s, const char* name) {
  struct Search {
    const char* name;
    TensorRef found;
  } search = {name, {}};
  const auto see = [](void* with, const char* of, const StatePart& part) {
    auto& wanted = *static_cast<Search*>(with);
    if (strcmp(of, wanted.name) != 0) return false;
    wanted.found = part.tensor ? *part.tensor : new_scalar(Scalar(part.number), Dtype::kF64);
    return true;
  };
  visit(s, see, &search);
  return std::move(search.found);
}

void check_group(const Optimizer& o, TensorSpan params) {
  if (!o.groups.empty())
    fail_arg(TT_INVALID_ARG, "params",
             "{} has one group of parameters: it takes all of them as one vector", o.cls->name);
  for (int64_t i = 0; i < params.n; i++)
    if (is_complex(params[i]->dtype))
      fail_arg(TT_DTYPE, "params", "params[{}] is {}: {} takes no complex parameters", i,
               fmt(params[i]->dtype), o.cls->name);
}

[[noreturn]] void fail_step() {
  fail_arg(TT_INVALID_ARG, "opt", "LBFGS evaluates the loss in its steps: they need a closure");
}

// Number, dtype and device of all parameters as one vector.
struct Flat {
  int64_t n = 0;
  Dtype dtype = Dtype::kNone;
  Device device;
};
Flat flat_of(const Optimizer& o) {
  Flat f;
  for (int64_t i = 0; i < o.params.size(); i++) {
    const Tensor& p = *o.params[i].param;
    f.n += p.numel;
    f.dtype = i ? promote(f.dtype, p.dtype) : p.dtype;
    f.device = o.params[0].param->device;
  }
  return f;
}

double number_in(const Tensor& value, const char* name) {
  if (value.numel != 1)
    fail_arg(TT_SHAPE, "value", "{} has shape {}: must have one element", name, value.sizes());
  return read_scalar(value).real();
}
TensorRef vector_in(const Optimizer& o, const Tensor& value, const char* name) {
  const Flat f = flat_of(o);
  if (value.ndim != 1 || value.numel != f.n)
    fail_arg(TT_SHAPE, "value", "{} has shape {}: must have all {} elements of the parameters",
             name, value.sizes(), f.n);
  if (!can_cast(value.dtype, f.dtype))
    fail_arg(TT_DTYPE, "value", "{} is {}, the parameters are {}: must convert to it", name,
             fmt(value.dtype), fmt(f.dtype));
  TensorRef own = new_tensor(value.sizes(), f.dtype, f.device);
  op::copy_(*own, value);
  return own;
}

// Parses "old_dirs.12" with head "old_dirs.": returns 12, or -1.
int64_t index_in(const char* name, const char* head) {
  const size_t n = strlen(head);
  if (strncmp(name, head, n) != 0 || !name[n]) return -1;
  int64_t i = 0;
  for (name += n; *name; name++) {
    if (*name < '0' || *name > '9' || i >= kLongest) return -1;
    i = 10 * i + (*name - '0');
  }
  return i < kLongest ? i : -1;
}
template <class List, class T> void set_item(List& list, int64_t i, bool keep, T value, T absent) {
  if (!keep) return list.resize(min(i, list.size()), absent);
  if (i >= list.size()) list.resize(i + 1, absent);
  list[i] = std::move(value);
}

bool set_part(const Optimizer& o, LbfgsState& s, const char* name, const Tensor* value) {
  for (int k = 0; k < kNumNumbers; k++) {
    if (strcmp(name, kNumberNames[k]) != 0) continue;
    const double number = value ? number_in(*value, name) : 0;
    if (k <= kIterations && !(number >= 0 && number <= 0x1p53))
      fail_arg(TT_INVALID_ARG, "value", "{} is {}: must be a non-negative integer", name, number);
    s.number[k] = number;
    return true;
  }
  for (int k = 0; k < kNumVectors; k++) {
    if (strcmp(name, kVectorNames[k]) != 0) continue;
    s.vector[k] = value ? vector_in(o, *value, name) : TensorRef();
    return true;
  }
  const int64_t change = index_in(name, "old_dirs.");
  const int64_t step = index_in(name, "old_stps.");
  const int64_t inverse = index_in(name, "ro.");
  if (inverse >= 0) {
    const double number = value ? number_in(*value, name) : 0;
    set_item(s.inverses, inverse, value != nullptr, number, kNan);
    return true;
  }
  if (change < 0 && step < 0) return false;
  TensorRef vector = value ? vector_in(o, *value, name) : TensorRef();
  set_item(change >= 0 ? s.changes : s.steps, max(change, step), value != nullptr,
           std::move(vector), TensorRef());
  return true;
}
void set(Optimizer& o, int64_t param, const char* name, const Tensor* value) {
  if (param != 0)
    fail_arg(TT_INVALID_ARG, "param", "param is {}: {} keeps its state at parameter 0", param,
             o.cls->name);
  const MaskGuard quiet(bit(kKeyAutograd));
  Ref<SolverState> next = Ref<SolverState>::adopt(copy_of(state_of(o)));
  if (!set_part(o, static_cast<LbfgsState&>(*next), name, value))
    fail_arg(TT_INVALID_ARG, "name", "{} keeps no state \"{}\"", o.cls->name, name);
  o.solved = std::move(next);
}

// ---- a step ----

double scalar_of(const TensorRef& t) { return read_scalar(*t).real(); }
double dot(const Tensor& a, const Tensor& b) { return scalar_of(op::dot(a, b)); }
double largest(const Tensor& t) { return scalar_of(op::max(*op::abs(t))); }

int64_t count_of(double v, const char* name, double least) {
  if (!(v >= least && v <= 0x1p53))
    fail_arg(TT_INVALID_ARG, name, "{} is {}: must be an integer, at least {}", name, v, least);
  return int64_t(v);
}

// The values of the group.
struct Settings {
  double lr, tolerance_grad, tolerance_change;
  int64_t max_iter, max_eval, history_size;
  bool search, maximize;
};
Settings settings_of(const double* v) {
  constexpr auto& t = kLBFGSValues;
  Settings s;
  s.lr = v[at(t, "lr")];
  s.tolerance_grad = v[at(t, "tolerance_grad")];
  s.tolerance_change = v[at(t, "tolerance_change")];
  s.max_iter = count_of(v[at(t, "max_iter")], "max_iter", 0);
  s.max_eval = count_of(v[at(t, "max_eval")], "max_eval", 0);
  s.history_size = count_of(v[at(t, "history_size")], "history_size", 1);
  s.search = v[at(t, "line_search_fn")] != 0;
  s.maximize = v[at(t, "maximize")] != 0;
  return s;
}

class LbfgsStep {
 public:
  LbfgsStep(Optimizer& o, const Evaluation& evaluate)
      : o_(o), evaluate_(evaluate), set_(settings_of(o.groups[0].value)), flat_(flat_of(o)) {}
  TensorRef run();

 private:
  void check_state() const;
  void check_params() const;
  TensorRef gradient() const;
  TensorRef evaluate();
  void move(double length);
  void turn();
  void first_direction();
  bool iterate(int64_t iteration);
  void walk(double length, double slope, bool last);
  void search(double length, double slope);
  static Probe probe_at(void* with, double length);

  Optimizer& o_;
  const Evaluation& evaluate_;
  const Settings set_;
  const Flat flat_;
  LbfgsState* s_ = nullptr;  // of the end of the step
  double loss_ = 0;
  TensorRef gradient_;
  int64_t evaluations_ = 0;
  TensorList begin_;  // of a line search: the parameters there
};

// A state that was loaded in part cannot be continued.
void LbfgsStep::check_state() const {
  const int64_t n = s_->changes.size();
  bool whole = s_->steps.size() == n && s_->inverses.size() == n;
  const auto fits = [&](const TensorRef& t) {
    return t && t->numel == flat_.n && t->dtype == flat_.dtype && t->device == flat_.device;
  };
  for (int64_t i = 0; whole && i < n; i++)
    whole = fits(s_->changes[i]) && fits(s_->steps[i]) && s_->inverses[i] == s_->inverses[i];
  if (s_->number[kIterations] > 0)
    for (const TensorRef& t : s_->vector) whole = whole && fits(t);
  if (!whole)
    fail(TT_INVALID_ARG, "the state of LBFGS does not fit its {} elements: load the state again",
         flat_.n);
}

// Closures may change the parameters, too.
void LbfgsStep::check_params() const {
  const Flat now = flat_of(o_);
  if (now.n != flat_.n || now.dtype != flat_.dtype || !(now.device == flat_.device))
    fail(TT_INVALID_ARG, "the closure has changed shape, dtype or device of the parameters");
  for (int64_t i = 0; i < o_.params.size(); i++) {
    const Tensor& p = *o_.params[i].param;
    if (requires_grad(p) && !(p.flags & kRequiresGrad))
      fail(TT_AUTOGRAD,
           "parameter {} has become the result of an operator: only leaves can be optimized", i);
    if (!is_differentiable(p.dtype) || is_complex(p.dtype))
      fail(TT_DTYPE, "parameter {} is {}: must be floating", i, fmt(p.dtype));
    check_writable(p, "params");
  }
}

// Returns the gradients of all parameters as one vector, negated to maximize.
TensorRef LbfgsStep::gradient() const {
  TensorList parts;
  SmallVec<const Tensor*, 8> list;
  parts.reserve(o_.params.size());
  for (int64_t i = 0; i < o_.params.size(); i++) {
    const Tensor& p = *o_.params[i].param;
    const TensorRef g = grad_of(p);
    if (g && !same(g->sizes(), p.sizes()))
      fail(TT_SHAPE, "parameter {} is {}, its gradient {}: must be equal", i, p.sizes(),
           g->sizes());
    const int64_t n[] = {p.numel};
    parts.push_back(g ? op::reshape(*g, n) : op::zeros(n, p.dtype, p.device));
    list.push_back(parts.back().get());
  }
  TensorRef flat = op::cat(list);
  if (flat->numel != flat_.n || flat->dtype != flat_.dtype)
    fail(TT_DTYPE, "the gradients are {}, the parameters {}: must be equal", fmt(flat->dtype),
         fmt(flat_.dtype));
  return set_.maximize ? op::neg(*flat) : flat;
}

// Calls the closure, and sets loss_ and gradient_.
TensorRef LbfgsStep::evaluate() {
  evaluations_++;
  s_->number[kFuncEvals]++;
  TensorRef result = evaluate_();
  if (result->numel != 1)
    fail(TT_SHAPE, "the loss of the closure has shape {}: must have one element", result->sizes());
  const double value = read_scalar(*result).real();
  loss_ = set_.maximize ? -value : value;
  check_params();
  gradient_ = gradient();
  return result;
}

// Adds length * direction to the parameters.
void LbfgsStep::move(double length) {
  int64_t start = 0;
  for (const ParamSlot& slot : o_.params) {
    Tensor& p = *slot.param;
    const TensorRef part = op::narrow(*s_->vector[kDirection], 0, start, p.numel);
    op::add_(p, *op::view(*part, p.sizes()), Scalar(length));
    start += p.numel;
  }
}

void LbfgsStep::first_direction() {
  s_->vector[kDirection] = op::neg(*gradient_);
  s_->number[kHessianDiag] = 1;
  s_->changes.clear();
  s_->steps.clear();
  s_->inverses.clear();
}

// Adds the last step to the history, and sets the direction to minus the estimated inverse of the
// Hessian times the gradient.
void LbfgsStep::turn() {
  const TensorRef change = op::sub(*gradient_, *s_->vector[kPrevGradient]);
  const TensorRef step = op::mul(*s_->vector[kDirection], Scalar(s_->number[kLength]));
  const double curvature = dot(*change, *step);
  if (curvature > 1e-10) {
    while (s_->changes.size() >= set_.history_size) {
      s_->changes.erase(0);
      s_->steps.erase(0);
      s_->inverses.erase(0);
    }
    s_->changes.push_back(change);
    s_->steps.push_back(step);
    s_->inverses.push_back(1 / curvature);
    s_->number[kHessianDiag] = curvature / dot(*change, *change);
  }
  const int64_t n = s_->changes.size();
  SmallVec<double, 8> shares;
  shares.resize(n, 0.0);
  TensorRef d = op::neg(*gradient_);
  for (int64_t i = n - 1; i >= 0; i--) {
    shares[i] = dot(*s_->steps[i], *d) * s_->inverses[i];
    op::add_(*d, *s_->changes[i], Scalar(-shares[i]));
  }
  op::mul_(*d, Scalar(s_->number[kHessianDiag]));
  for (int64_t i = 0; i < n; i++) {
    const double back = dot(*s_->changes[i], *d) * s_->inverses[i];
    op::add_(*d, *s_->steps[i], Scalar(shares[i] - back));
  }
  s_->vector[kDirection] = std::move(d);
}

Probe LbfgsStep::probe_at(void* with, double length) {
  auto& step = *static_cast<LbfgsStep*>(with);
  step.move(length);
  step.evaluate();
  for (int64_t i = 0; i < step.o_.params.size(); i++)
    op::copy_(*step.o_.params[i].param, *step.begin_[i]);
  const double slope = dot(*step.gradient_, *step.s_->vector[kDirection]);
  return {length, step.loss_, slope, step.gradient_};
}

void LbfgsStep::search(double length, double slope) {
  begin_.clear();
  for (const ParamSlot& slot : o_.params) begin_.push_back(op::clone(*slot.param));
  const double largest_step = largest(*s_->vector[kDirection]);
  const Line line = {probe_at, this, {0, loss_, slope, gradient_}, largest_step};
  const Probe found = strong_wolfe(line, length);
  loss_ = found.loss;
  gradient_ = found.gradient;
  s_->number[kLength] = found.length;
  move(found.length);
}

// Moves the parameters along the direction; the last iteration does not look where it comes.
void LbfgsStep::walk(double length, double slope, bool last) {
  if (set_.search) return search(length, slope);
  move(length);
  if (!last) evaluate();
}

// Returns whether another iteration should follow.
bool LbfgsStep::iterate(int64_t iteration) {
  double length = set_.lr;
  if (++s_->number[kIterations] == 1) {
    first_direction();
    const double inverse = 1 / scalar_of(op::sum(*op::abs(*gradient_)));
    if (inverse < 1) length = inverse * set_.lr;
  } else {
    turn();
  }
  const TensorRef direction = s_->vector[kDirection];
  const double before = loss_;
  s_->vector[kPrevGradient] = gradient_;
  s_->number[kPrevLoss] = loss_;
  s_->number[kLength] = length;
  const double slope = dot(*gradient_, *direction);
  if (slope > -set_.tolerance_change) return false;
  const bool last = iteration == set_.max_iter;
  walk(length, slope, last);
  if (last || evaluations_ >= set_.max_eval) return false;
  if (largest(*gradient_) <= set_.tolerance_grad) return false;
  if (largest(*direction) * fabs(s_->number[kLength]) <= set_.tolerance_change) return false;
  return !(fabs(loss_ - before) < set_.tolerance_change);
}

TensorRef LbfgsStep::run() {
  Ref<SolverState> next = Ref<SolverState>::adopt(copy_of(state_of(o_)));
  s_ = static_cast<LbfgsState*>(next.get());
  check_params();
  check_state();
  for (const ParamSlot& slot : o_.params) remember_values(*slot.param);
  TensorRef loss = evaluate();
  if (flat_.n > 0 && !(largest(*gradient_) <= set_.tolerance_grad))
    for (int64_t i = 1; i <= set_.max_iter && iterate(i); i++) {}
  o_.solved = std::move(next);
  return loss;
}

TensorRef step(Optimizer& o, const Evaluation& evaluate) {
  if (o.groups.empty()) return evaluate();
  return LbfgsStep(o, evaluate).run();
}

constinit const Solver kSolver = {
    .step = step,
    .check = check_group,
    .fail_step = fail_step,
    .visit = visit,
    .state = state,
    .set = set,
};
constinit const OptimClass kLbfgs = {
    .name = "LBFGS",
    .rule = {},
    .kernel = nullptr,
    .values = kLBFGSValues,
    .states = {},
    .counts_steps = false,
    .momentum = nullptr,
    .factors = nullptr,
    .solver = &kSolver,
};

}  // namespace

OptimizerRef construct(const LBFGSArgs& a) {
  at_least_0(a.lr, "lr");
  count_of(double(a.max_iter), "max_iter", 0);
  count_of(double(a.history_size), "history_size", 1);
  LBFGSArgs whole = a;
  if (!a.max_eval) whole.max_eval = a.max_iter / 4 * 5 + a.max_iter % 4 * 5 / 4;
  count_of(double(*whole.max_eval), "max_eval", 0);
  return make(kLbfgs, whole);
}

}  // namespace TT_NS
