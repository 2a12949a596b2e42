// The form of captured steps in files.
#include "optim/grad_scaler.h"

#include "base/text/format.h"
#include "core/shape.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kMaxSteps = int64_t(1) << 53;

// The number of a group's values in files: classes with kernels have at most 8.
int file_values(const OptimClass& cls) { return cls.matrix ? kMaxValues : 8; }
// The number of its values for schedulers. kSwaLr follows them if the group has it.
constexpr int kFileExtras = kMaxMomentum + 1;
static_assert(kSwaLr == kFileExtras && kNumExtras == kSwaLr + 1);

enum StepArg { kParams, kGrads, kStates, kCounter };  // of optim_step
enum ScheduleArg { kScheduler };                      // of schedule_step

bool is_step(const IrNode& n) { return &*n.op == &op_optim_step.info; }
bool is_schedule(const IrNode& n) { return &*n.op == &op_schedule_step.info; }
StepCounter& counter_of(const IrNode& n) {
  return static_cast<StepCounter&>(*n.args[kCounter].object);
}
// The argument through which a node reaches its GradScaler; NULL: it has none.
const ScaledStep* scaled_of(const IrNode& n) {
  if (is_step(n)) return static_cast<ScaledStep*>(counter_of(n).gate.get());
  for (const IrArg& a : n.args)
    if (a.object && is_scaled_step(*a.object)) return static_cast<ScaledStep*>(a.object.get());
  return nullptr;
}
IrArg* scaler_arg(IrNode& n) {
  const OpInfo* const ops[] = {&op_scaler_scale.info, &op_scaler_unscale.info,
                               &op_scaler_update.info};
  for (const OpInfo* op : ops) {
    if (&*n.op != op) continue;
    for (IrArg& a : n.args)
      if (a.kind == Value::kObject) return &a;
  }
  return nullptr;
}
Scheduler& scheduler_of(const IrNode& n) {
  return *static_cast<ScheduledStep&>(*n.args[kScheduler].object).scheduler;
}

// ---- writing ----

class Writer {
 public:
  Writer(const Graph& g, Text& out) : g_(g), out_(out) {}
  void run();

 private:
  struct Used {
    Optimizer* optimizer;
    SmallVec<int64_t, 4> params;  // those that the graph updates, in order
  };
  Used& used(Optimizer& o);
  int64_t position_of(const Optimizer& o) const;
  void collect(Scheduler& s);
  void check_step(const IrNode& n) const;
  void optimizer(const Used& u);
  void scheduler(const Scheduler& s);
  void scaler(const GradScaler& s);
  void step(const IrNode& n);
  void scaled(const ScaledStep& s);
  void number(double v) {
    char digits[32];
    out_.add(" ").add({digits, format_hex(digits, v)});
  }
  Text& word(int64_t v) { return out_.add(" ").add(v); }
  int64_t position_of(const Scheduler& s) const;
  int64_t position_of(const GradScaler& s) const;  // or their number

  const Graph& g_;
  Text& out_;
  SmallVec<Used, 1> used_;
  SmallVec<Scheduler*, 2> schedulers_;  // parts before those that have them
  SmallVec<GradScaler*, 1> scalers_;
};

Writer::Used& Writer::used(Optimizer& o) {
  for (Used& u : used_)
    if (u.optimizer == &o) return u;
  used_.push_back({&o, {}});
  return used_.back();
}
int64_t Writer::position_of(const Optimizer& o) const {
  int64_t i = 0;
  while (used_[i].optimizer != &o) i++;
  return i;
}
int64_t Writer::position_of(const Scheduler& s) const {
  int64_t i = 0;
  while (schedulers_[i] != &s) i++;
  return i;
}

int64_t Writer::position_of(const GradScaler& s) const {
  int64_t i = 0;
  while (i < scalers_.size() && scalers_[i] != &s) i++;
  return i;
}

// Nested at most as deep as the constructors allow.
void Writer::collect(Scheduler& s) {
  for (const Scheduler* known : schedulers_)
    if (known == &s) return;
  if (calls_application(s))
    fail(TT_NOT_IMPLEMENTED, "a step of {} calls the application: it cannot be saved", s.cls->name);
  const Span<const char> name(s.cls->name, int64_t(strlen(s.cls->name)));
  if (!find_schedule(name) && !find_composition(name))
    fail(TT_NOT_IMPLEMENTED, "files have no form for a step of {}", s.cls->name);
  for (const SchedulerRef& part : s.parts) collect(*part);
  used(*s.optimizer);
  schedulers_.push_back(&s);
}

// A loaded step would go on with the memory of the graph.
void Writer::check_step(const IrNode& n) const {
  const StepCounter& c = counter_of(n);
  int64_t next = 0;
  for (int64_t i = 0; i < c.params.size(); i++) {
    const CountedParam& p = c.params[i];
    const ParamSlot& slot = c.optimizer->params[p.param];
    bool same_memory = slot.param->data == p.data;
    for (int k = 0; k < kOptimStates; k++) {
      if (!(p.states >> k & 1)) continue;
      const IrValue& v = g_.values[n.args[kStates].values[next++]];
      const Tensor* held = g_.storages[v.storage].tensor.get();
      same_memory &= held && slot.state[k] && slot.state[k]->storage == held->storage;
    }
    if (!same_memory) fail_other_memory(p.param);
  }
}

void Writer::optimizer(const Used& u) {
  const Optimizer& o = *u.optimizer;
  out_.add("optimizer ").add(o.cls->name);
  word(u.params.size());
  word(o.groups.size());
  out_.add("\n");
  int64_t next = 0;
  for (const ParamGroup& g : o.groups) {
    out_.add("group");
    word(next);
    while (next < u.params.size() && u.params[next] < g.end) next++;
    word(next);
    for (int k = 0; k < file_values(*o.cls); k++) number(g.value[k]);
    for (int k = 0; k < kFileExtras; k++) number(g.extra[k]);
    if (g.extra[kSwaLr] == g.extra[kSwaLr]) number(g.extra[kSwaLr]);
    out_.add("\n");
  }
  for (const int64_t i : u.params) {
    const ParamSlot& slot = o.params[i];
    out_.add("param");
    number(slot.step);
    for (const double v : slot.number) number(v);
    out_.add("\n");
  }
}

void Writer::scheduler(const Scheduler& s) {
  out_.add("scheduler");
  word(position_of(*s.optimizer));
  out_.add(" ").add(s.cls->name);
  word(s.last_epoch);
  word(s.step_count);
  for (const double v : s.real) number(v);
  for (const int64_t v : s.count) word(v);
  word(s.base_lrs.size());
  for (const double v : s.base_lrs) number(v);
  for (const double v : s.last_lr) number(v);
  word(s.milestones.size());
  for (const int64_t m : s.milestones) word(m);
  word(s.parts.size());
  for (const SchedulerRef& part : s.parts) word(position_of(*part));
  out_.add("\n");
}

void Writer::step(const IrNode& n) {
  const StepCounter& c = counter_of(n);
  const Used& u = used(*c.optimizer);
  out_.add("step");
  word(position_of(*c.optimizer));
  word(c.params.size());
  for (const CountedParam& p : c.params) {
    int64_t at = 0;
    while (u.params[at] != p.param) at++;
    word(at);
  }
  if (const ScaledStep* gate = scaled_of(n)) word(position_of(*gate->scaler));
  out_.add("\n");
}

void Writer::scaler(const GradScaler& s) {
  out_.add("scaler");
  number(double(s.scale));
  number(s.growth_factor);
  number(s.backoff_factor);
  word(s.growth_interval);
  word(s.growth_tracker);
  out_.add("\n");
}
void Writer::scaled(const ScaledStep& s) {
  out_.add("scaled");
  word(position_of(*s.scaler));
  word(s.optimizer ? position_of(*s.optimizer) : -1);
  out_.add("\n");
}

void Writer::run() {
  for (const IrNode& n : g_.nodes) {
    if (is_schedule(n)) collect(scheduler_of(n));
    if (const ScaledStep* s = scaled_of(n)) {
      if (position_of(*s->scaler) == scalers_.size()) scalers_.push_back(s->scaler.get());
      if (s->optimizer) used(*s->optimizer);
    }
    if (!is_step(n)) continue;
    check_step(n);
    Used& u = used(*counter_of(n).optimizer);
    for (const CountedParam& p : counter_of(n).params) {
      int64_t at = 0;
      while (at < u.params.size() && u.params[at] < p.param) at++;
      if (at == u.params.size() || u.params[at] != p.param) u.params.insert(at, p.param);
    }
  }
  for (const Used& u : used_) optimizer(u);
  for (const Scheduler* s : schedulers_) scheduler(*s);
  for (const GradScaler* s : scalers_) scaler(*s);
  for (const IrNode& n : g_.nodes) {
    if (is_step(n)) step(n);
    else if (const ScaledStep* s = scaled_of(n)) scaled(*s);
    if (is_schedule(n)) out_.add("schedule ").add(position_of(scheduler_of(n))).add("\n");
  }
}

void write_steps(const Graph& g, Text& out) { Writer(g, out).run(); }

// ---- reading ----

// Trusts nothing: positions, counts and classes are checked here, memory in bind_step.
class Reader {
 public:
  Reader(const char* path, const char* text, Graph& g)
      : path_(path), p_(text), end_(text + strlen(text)), g_(g) {}
  void run();

 private:
  [[noreturn]] void bad(const char* why) const {
    fail_arg(TT_FORMAT, "path", "\"{}\": line {} of the steps: {}", path_, line_, why);
  }
  bool at(const char* word);
  Span<const char> word();
  int64_t integer(int64_t low, int64_t high);
  double number();
  void end_of_line();

  void optimizer();
  void group(Optimizer& o);
  void scheduler();
  void parts(Scheduler& s);
  void scaler();
  void step(IrNode& n);
  void scaled(IrArg& arg);
  void bind_step(const IrNode& n, StepCounter& c);
  TensorRef tensor_of(int32_t value) const;
  void bind(TensorRef& place, TensorRef t) const;
  void check_state(const OptimClass& cls, const Tensor& param, int k, const Tensor& state) const;
  void check_bound() const;

  const char* path_;
  const char* p_;
  const char* const end_;
  Graph& g_;
  int64_t line_ = 1;
  SmallVec<OptimizerRef, 1> optimizers_;
  SmallVec<SchedulerRef, 2> schedulers_;
  SmallVec<Ref<GradScaler>, 1> scalers_;
  SmallVec<bool, 2> is_part_;  // of another scheduler
};

bool Reader::at(const char* word) {
  const size_t n = strlen(word);
  if (strncmp(p_, word, n) != 0 || p_[n] != ' ') return false;
  p_ += n;
  return true;
}
Span<const char> Reader::word() {
  if (*p_ != ' ') bad("a word is missing");
  const char* const begin = ++p_;
  while (*p_ && *p_ != ' ' && *p_ != '\n') p_++;
  return {begin, p_ - begin};
}
int64_t Reader::integer(int64_t low, int64_t high) {
  const Span<const char> digits = word();
  const bool negative = digits.n && digits[0] == '-';
  int64_t v = 0;
  if (digits.n == negative) bad("expected an integer");
  for (int64_t i = negative; i < digits.n; i++) {
    const char c = digits[i];
    if (c < '0' || c > '9') bad("expected an integer");
    if (mul_overflow(v, 10, &v) || add_overflow(v, negative ? '0' - c : c - '0', &v))
      bad("an integer is too large");
  }
  if (v < low || v > high) bad("a position or count is out of range");
  return v;
}
double Reader::number() {
  double v;
  if (!parse_hex(word(), &v)) bad("malformed number");
  return v;
}
void Reader::end_of_line() {
  if (*p_ != '\n') bad("text after the end of a record");
  p_++;
  line_++;
}

void Reader::group(Optimizer& o) {
  if (!at("group")) bad("a group is missing");
  ParamGroup g = {};
  const int64_t before = o.groups.empty() ? 0 : o.groups.back().end;
  g.begin = integer(before, before);
  g.end = integer(before, o.params.size());
  for (int k = 0; k < file_values(*o.cls); k++) g.value[k] = number();
  for (double& v : g.extra) v = kNan;
  for (int k = 0; k < kFileExtras; k++) g.extra[k] = number();
  if (*p_ == ' ') g.extra[kSwaLr] = number();
  end_of_line();
  o.groups.push_back(g);
}

void Reader::optimizer() {
  const Span<const char> name = word();
  const OptimClass* cls = find_common_class(name);
  if (!cls) cls = find_rare_class(name);
  if (!cls) cls = find_matrix_class(name);
  if (!cls) bad("there is no such optimizer");
  // Each parameter and group has a line, so that a short file makes no long lists.
  const int64_t params = integer(0, end_ - p_);
  const int64_t groups = integer(1, end_ - p_);
  end_of_line();
  auto* o = new (mem_alloc(sizeof(Optimizer))) Optimizer{};
  o->tag = kTagOptimizer;
  o->refs = 1;
  o->cls = cls;
  o->first_state = kNan;
  optimizers_.push_back(OptimizerRef::adopt(o));
  for (int64_t i = 0; i < cls->values.n; i++) o->standard[i] = cls->values[i].standard;
  o->params.resize(params);
  o->items.reserve(params);
  for (int64_t i = 0; i < groups; i++) group(*o);
  if (o->groups.back().end != params) bad("groups have not all parameters");
  for (ParamSlot& slot : o->params) {
    if (!at("param")) bad("a parameter is missing");
    slot.step = number();
    for (double& v : slot.number) v = number();
    end_of_line();
  }
}

void Reader::parts(Scheduler& s) {
  const int64_t n = integer(0, schedulers_.size());
  const Composition kind = composition_of(s);
  if ((kind == Composition::kNone) != (n == 0)) bad("a scheduler has a wrong number of parts");
  if (kind == Composition::kSequential && s.milestones.size() != n - 1)
    bad("a scheduler has a wrong number of milestones");
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = integer(0, schedulers_.size() - 1);
    const Scheduler& part = *schedulers_[at];
    if (is_part_[at] || part.optimizer.get() != s.optimizer.get() ||
        part.depth >= kMaxSchedulerDepth)
      bad("a scheduler has a part that it cannot have");
    is_part_[at] = true;
    s.depth = max(s.depth, part.depth + 1);
    s.parts.push_back(schedulers_[at]);
  }
}

void Reader::scheduler() {
  Optimizer& o = *optimizers_[integer(0, optimizers_.size() - 1)];
  const Span<const char> name = word();
  const SchedulerClass* cls = find_schedule(name);
  if (!cls) cls = find_composition(name);
  if (!cls) bad("there is no such scheduler");
  const SchedulerRef s = new_scheduler(*cls, o);
  s->last_epoch = integer(-1, kMaxSteps);
  s->step_count = integer(-1, kMaxSteps);
  for (double& v : s->real) v = number();
  for (int64_t& v : s->count) v = integer(INT64_MIN, INT64_MAX);
  const int64_t groups = o.groups.size();
  const int64_t rates = composition_of(*s) == Composition::kNone ? groups : 0;
  for (int64_t i = integer(rates, rates); i > 0; i--) s->base_lrs.push_back(number());
  for (int64_t i = 0; i < groups; i++) s->last_lr.push_back(number());
  for (int64_t i = integer(0, end_ - p_); i > 0; i--)
    s->milestones.push_back(integer(INT64_MIN, INT64_MAX));
  parts(*s);
  end_of_line();
  if (!is_valid(*s)) bad("a scheduler has numbers that its constructor refuses");
  schedulers_.push_back(s);
  is_part_.push_back(false);
}

TensorRef Reader::tensor_of(int32_t value) const {
  const IrValue& v = g_.values[value];
  const TensorRef& all = g_.storages[v.storage].tensor;
  if (!all) bad("a parameter or state is made by the graph");
  return new_alias(*all, v.sizes, v.strides, all->storage->data + v.offset, v.dtype);
}
// Steps of one optimizer see the same parameters.
void Reader::bind(TensorRef& place, TensorRef t) const {
  if (place && (place->data != t->data || place->dtype != t->dtype ||
                !same(place->sizes(), t->sizes()) || !same(place->strides(), t->strides())))
    bad("two steps disagree about a parameter or state");
  place = std::move(t);
}
void Reader::check_state(const OptimClass& cls, const Tensor& param, int k,
                         const Tensor& state) const {
  const Shape sizes = state_sizes(cls, param, k);
  const bool alike = same(state.sizes(), sizes) && state.dtype == param.dtype;
  if (!alike || !(param.dense() && same(sizes, param.sizes())
                      ? same(state.strides(), param.strides())
                      : is_contiguous(state.sizes(), state.strides())))
    bad("a state does not fit its parameter");
}

void Reader::bind_step(const IrNode& n, StepCounter& c) {
  Optimizer& o = *c.optimizer;
  const auto& params = n.args[kParams].values;
  const auto& states = n.args[kStates].values;
  if (n.args[kGrads].values.size() != params.size()) bad("a step has not one gradient for each");
  c.n_params = o.params.size();
  int64_t next = 0;
  for (int64_t i = 0; i < params.size(); i++) {
    CountedParam& p = c.params[i];
    ParamSlot& slot = o.params[p.param];
    bind(slot.param, tensor_of(params[i]));
    const Tensor& t = *slot.param;
    if (!is_differentiable(t.dtype)) bad("a parameter is not floating or complex");
    const IrValue& grad = g_.values[n.args[kGrads].values[i]];
    if (grad.dtype != t.dtype || !same(grad.sizes, t.sizes())) bad("a gradient does not fit");
    while (p.param >= o.groups[p.group].end) p.group++;
    OptimItem item = {};
    if (o.cls->matrix) {
      try {
        o.cls->matrix->check(o, t, i);
      } catch (...) {
        bad("a parameter does not fit its optimizer");
      }
    }
    p.states = states_of(*o.cls, o.groups[p.group].value, slot, &item);
    p.data = t.data;
    for (int k = 0; k < kOptimStates; k++) {
      if (!(p.states >> k & 1)) continue;
      if (next == states.size()) bad("a step has not one state for each");
      bind(slot.state[k], tensor_of(states[next++]));
      check_state(*o.cls, t, k, *slot.state[k]);
      p.state[k] = slot.state[k]->data;
    }
  }
  if (next != states.size()) bad("a step has more states than its optimizer");
}

void Reader::step(IrNode& n) {
  const Ref<StepCounter> c = new_counter(*optimizers_[integer(0, optimizers_.size() - 1)]);
  const int64_t count = n.args[kParams].values.size();
  if (!count) bad("a step has no parameters");
  int64_t before = -1;
  for (int64_t i = integer(count, count); i > 0; i--) {
    before = integer(before + 1, c->optimizer->params.size() - 1);
    c->params.push_back({0, before, nullptr, 0, 0, {}});
  }
  if (*p_ == ' ') {
    GradScaler& s = *scalers_[integer(0, scalers_.size() - 1)];
    c->gate = Ref<StepGate>::share(new_scaled_step(s, c->optimizer.get()).get());
  }
  end_of_line();
  bind_step(n, *c);
  n.args[kCounter].object = Ref<Object>::share(c.get());
}

void Reader::scaler() {
  const double scale = number();
  const double growth = number();
  const double backoff = number();
  if (!(growth > 1 && backoff < 1)) bad("a scaler has factors that its constructor refuses");
  const int64_t interval = integer(INT64_MIN, INT64_MAX);
  scalers_.push_back(new_grad_scaler(true, scale, growth, backoff, interval));
  scalers_.back()->growth_tracker = integer(0, kMaxSteps);
  end_of_line();
}
void Reader::scaled(IrArg& arg) {
  GradScaler& s = *scalers_[integer(0, scalers_.size() - 1)];
  const int64_t at = integer(-1, optimizers_.size() - 1);
  end_of_line();
  Optimizer* const of = at < 0 ? nullptr : optimizers_[at].get();
  arg.object = Ref<Object>::share(new_scaled_step(s, of).get());
}

void Reader::check_bound() const {
  for (const OptimizerRef& o : optimizers_)
    for (const ParamSlot& slot : o->params)
      if (!slot.param) bad("a parameter is in no step");
}

void Reader::run() {
  while (at("optimizer")) optimizer();
  while (at("scheduler")) scheduler();
  while (at("scaler")) scaler();
  for (IrNode& n : g_.nodes) {
    if (IrArg* arg = scaler_arg(n)) {
      if (!at("scaled")) bad("what a scaler does is missing");
      scaled(*arg);
    }
    if (is_step(n)) {
      if (!at("step")) bad("a step is missing");
      step(n);
    } else if (is_schedule(n)) {
      if (!at("schedule")) bad("a step of a scheduler is missing");
      Scheduler& s = *schedulers_[integer(0, schedulers_.size() - 1)];
      end_of_line();
      n.args[kScheduler].object = Ref<Object>::share(new_scheduled_step(s).get());
    }
  }
  if (*p_) bad("unknown record");
  check_bound();
}

void read_steps(const char* path, const char* text, Graph& g) { Reader(path, text, g).run(); }

}  // namespace

constinit const ObjectForms step_forms = {write_steps, read_steps};

}  // namespace TT_NS
