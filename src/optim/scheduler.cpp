#include "optim/scheduler.h"

#include "base/finalizer.h"
#include "base/text/format.h"
#include "core/graph_hooks.h"
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "optim/captured.h"

#include <string.h>

namespace TT_NS {

void Scheduler::destroy(Scheduler* s) noexcept {
  s->tag = 0;
  const auto lambda = s->lambda;
  s->~Scheduler();
  drop_and_free(s, sizeof *s, lambda.drop, lambda.user);
}

SchedulerRef new_scheduler(const SchedulerClass& cls, Optimizer& o) {
  auto* s = new (mem_alloc(sizeof(Scheduler))) Scheduler{};
  s->tag = kTagScheduler;
  s->refs = 1;
  s->cls = &cls;
  s->optimizer = OptimizerRef::share(&o);
  return SchedulerRef::adopt(s);
}

void start_scheduler(Scheduler& s, int64_t last_epoch) {
  Optimizer& o = *s.optimizer;
  if (last_epoch < -1 || last_epoch == INT64_MAX)
    fail_arg(TT_INVALID_ARG, "last_epoch", "last_epoch is {}: must be at least -1", last_epoch);
  const int64_t n = o.groups.size();
  const bool given = s.base_lrs.size() != 0;
  s.base_lrs.reserve(n);
  s.last_lr.reserve(n);
  for (int64_t g = 0; g < n; g++) {
    double base = o.groups[g].extra[kInitialLr];
    if (base != base && last_epoch >= 0)
      fail_arg(TT_INDEX, "last_epoch", "last_epoch is {}, but group {} has no initial_lr",
               last_epoch, g);
    if (base != base) base = group_value(o, g, "lr");
    if (!given) s.base_lrs.push_back(base);
    s.last_lr.push_back(base);
  }
  s.last_epoch = last_epoch;
  s.initial = true;
  scheduler_step(s);
  s.initial = false;
  for (int64_t g = 0; g < n; g++) {
    double& initial = o.groups[g].extra[kInitialLr];
    if (initial != initial) initial = s.base_lrs[g];
  }
}

static void record_rates(Scheduler& s) noexcept {
  for (int64_t g = 0; g < s.last_lr.size(); g++)
    s.last_lr[g] = *find_value(*s.optimizer, s.optimizer->groups[g], "lr");
}

// Groups that were added since the last step begin with the rates that they have. A lambda of the
// application knows the groups that there were.
static void take_new_groups(Scheduler& s) {
  for (SchedulerRef& part : s.parts) take_new_groups(*part.get());
  const int64_t n = s.optimizer->groups.size();
  if (s.lambda.fn || s.last_lr.size() >= n) return;
  const bool has_parts = s.parts.size() != 0;
  s.base_lrs.reserve(n);
  s.last_lr.reserve(n);
  for (int64_t g = s.last_lr.size(); g < n; g++) {
    const double lr = group_value(*s.optimizer, g, "lr");
    s.last_lr.push_back(lr);
    if (!has_parts) s.base_lrs.push_back(lr);
  }
}

// All rates are computed before one is set.
static void update(Scheduler& s, int64_t epoch, bool closed) {
  Optimizer& o = *s.optimizer;
  const int64_t n = s.base_lrs.size();
  if (o.groups.size() != n)
    fail(TT_INVALID_ARG, "the optimizer has {} groups: it had {} when the scheduler was made",
         o.groups.size(), n);
  const auto rate = closed && s.cls->closed ? s.cls->closed : s.cls->next;
  SmallVec<Rate, 8> rates;
  for (int64_t g = 0; g < n; g++)
    rates.push_back(rate(s, epoch, g, group_value(o, g, "lr"), s.base_lrs[g]));
  for (int64_t g = 0; g < n; g++) {
    *find_value(o, o.groups[g], "lr") = s.last_lr[g] = rates[g].lr;
    if (rates[g].momentum == rates[g].momentum)
      *find_value(o, o.groups[g], o.cls->momentum) = rates[g].momentum;
  }
  s.last_epoch = epoch;
}

// ---- schedulers of schedulers ----

static constinit const SchedulerClass kSequential = {"SequentialLR", nullptr, nullptr};
static constinit const SchedulerClass kChained = {"ChainedScheduler", nullptr, nullptr};

static bool names(const SchedulerClass& cls, Span<const char> name) {
  return strlen(cls.name) == size_t(name.n) && memcmp(cls.name, name.ptr, size_t(name.n)) == 0;
}
const SchedulerClass* find_composition(Span<const char> name) {
  if (names(kSequential, name)) return &kSequential;
  return names(kChained, name) ? &kChained : nullptr;
}
Composition composition_of(const Scheduler& s) {
  if (s.cls == &kSequential) return Composition::kSequential;
  return s.cls == &kChained ? Composition::kChained : Composition::kNone;
}

static Scheduler& part_at(Scheduler& s, int64_t epoch, bool* begins) {
  int64_t i = 0;  // bisect_right
  for (int64_t m : s.milestones) i += m <= epoch;
  *begins = i > 0 && s.milestones[i - 1] == epoch;
  return *s.parts[i].get();
}

static void step_sequential(Scheduler& s) {
  bool begins = false;
  Scheduler& part = part_at(s, s.last_epoch + 1, &begins);
  if (begins) scheduler_step_to(part, 0);
  else scheduler_step(part);
  s.last_epoch++;
  record_rates(s);
}

// What a step of several schedulers writes: a part that fails undoes those before it.
class StepUndo {
 public:
  explicit StepUndo(Scheduler& s) : s_(s) {
    keep(s);
    for (ParamGroup& g : s.optimizer->groups)
      for (const char* name : kNames)
        if (const double* value = value_of(g, name)) values_.push_back(*value);
  }
  void undo() noexcept {
    int64_t i = 0;
    put_back(s_);
    for (ParamGroup& g : s_.optimizer->groups)
      for (const char* name : kNames)
        if (double* value = value_of(g, name); value && i < values_.size()) *value = values_[i++];
  }

 private:
  void keep(const Scheduler& s) {
    counts_.push_back(s.last_epoch);
    counts_.push_back(s.step_count);
    rates_.append(s.last_lr);
    for (const SchedulerRef& part : s.parts) keep(*part.get());
  }
  void put_back(Scheduler& s) noexcept {
    s.last_epoch = counts_[count_++];
    s.step_count = counts_[count_++];
    for (double& rate : s.last_lr) rate = rates_[rate_++];
    for (SchedulerRef& part : s.parts) put_back(*part.get());
  }
  double* value_of(ParamGroup& g, const char* name) const {
    const char* own = name ? name : s_.optimizer->cls->momentum;
    return own ? find_value(*s_.optimizer, g, own) : nullptr;
  }

  static constexpr const char* kNames[] = {"lr", nullptr};  // NULL: the momentum
  Scheduler& s_;
  SmallVec<int64_t, 16> counts_;
  SmallVec<double, 16> rates_, values_;
  int64_t count_ = 0;
  int64_t rate_ = 0;
};

static void step_chained(Scheduler& s) {
  StepUndo before(s);
  try {
    for (SchedulerRef& part : s.parts) scheduler_step(*part.get());
  } catch (...) {
    before.undo();
    throw;
  }
  record_rates(s);
}

static void check_takes_no_metric(const Scheduler& s) {
  if (s.cls->by_metric)
    fail(TT_INVALID_ARG, "{} needs a metric in each step: use step_metric", s.cls->name);
}

void scheduler_step(Scheduler& s) {
  if (s.last_epoch == INT64_MAX)
    fail(TT_INVALID_ARG, "{} has reached the largest possible epoch", s.cls->name);
  check_takes_no_metric(s);
  take_new_groups(s);
  if (s.cls == &kSequential) return step_sequential(s);
  if (s.cls == &kChained) return step_chained(s);
  s.step_count++;
  try {
    update(s, s.last_epoch + 1, false);
  } catch (...) {
    s.step_count--;
    throw;
  }
}

void scheduler_step_to(Scheduler& s, int64_t epoch) {
  if (epoch < 0 || epoch == INT64_MAX)
    fail_arg(TT_INVALID_ARG, "epoch", "epoch is {}: must be at least 0", epoch);
  if (s.cls == &kSequential || s.cls == &kChained)
    fail_arg(TT_INVALID_ARG, "epoch", "{} cannot skip epochs: use step", s.cls->name);
  check_takes_no_metric(s);
  take_new_groups(s);
  update(s, epoch, true);
}

// ---- a step as an operator ----

static void destroy_scheduled(Object* object) noexcept {
  auto* const own = static_cast<ScheduledStep*>(object);
  own->~ScheduledStep();
  mem_free(own, sizeof *own);
}

const Scheduler* scheduler_of(const Object& o) {
  if (o.destroy_fn != destroy_scheduled) return nullptr;
  return static_cast<const ScheduledStep&>(o).scheduler.get();
}

Ref<ScheduledStep> new_scheduled_step(Scheduler& s) {
  auto* own = new (mem_alloc(sizeof(ScheduledStep))) ScheduledStep{};
  own->refs = 1;
  own->destroy_fn = destroy_scheduled;
  own->scheduler = SchedulerRef::share(&s);
  return Ref<ScheduledStep>::adopt(own);
}

static bool next_step(Object& object, char*) {
  scheduler_step(*static_cast<ScheduledStep&>(object).scheduler);
  return false;
}
static bool given_step(Object& object, char* data) {
  int64_t epoch;
  memcpy(&epoch, data, sizeof epoch);
  scheduler_step_to(*static_cast<ScheduledStep&>(object).scheduler, epoch);
  return false;
}

void impl::schedule_step(Call, Object& object, int64_t epoch) {
  const int64_t bytes = epoch < 0 ? 0 : int64_t(sizeof epoch);
  const TensorRef stored = new_tensor(Ints(&bytes, 1), Dtype::kU8, kCpuDevice);
  if (epoch < 0) {
    run_on_host(object, next_step, *stored);
    return;
  }
  memcpy(stored->data, &epoch, sizeof epoch);
  note_host_write(*stored);
  run_on_host(object, given_step, *stored);
}

void take_scheduler_step(Scheduler& s) {
  if (TT_LIKELY(!is_captured())) return scheduler_step(s);
  op::schedule_step(*new_scheduled_step(s), -1);
}
void take_scheduler_step_metric(Scheduler& s, double metric) {
  note_uncaptured_step(s.cls->name);
  scheduler_step_metric(s, metric);
}
void take_scheduler_step_to(Scheduler& s, int64_t epoch) {
  if (TT_LIKELY(!is_captured()) || epoch < 0) return scheduler_step_to(s, epoch);
  op::schedule_step(*new_scheduled_step(s), epoch);
}

// ---- construction of schedulers of schedulers ----

static void adopt_parts(Scheduler& s, Span<Scheduler* const> parts) {
  for (int64_t i = 0; i < parts.n; i++) {
    if (parts[i]->optimizer.get() != s.optimizer.get())
      fail_arg(TT_INVALID_ARG, "schedulers", "schedulers[{}] belongs to another optimizer", i);
    if (parts[i]->cls->by_metric)
      fail_arg(TT_INVALID_ARG, "schedulers", "schedulers[{}] is a {}, whose steps need a metric", i,
               parts[i]->cls->name);
    if (parts[i]->depth + 1 > kMaxSchedulerDepth)
      fail_arg(TT_INVALID_ARG, "schedulers", "schedulers[{}] is nested {} levels deep: the maximum",
               i, kMaxSchedulerDepth);
    if (parts[i]->depth >= s.depth) s.depth = parts[i]->depth + 1;
    s.parts.push_back(SchedulerRef::share(parts[i]));
  }
  s.last_lr.resize(s.optimizer->groups.size(), 0);
}

static void shift_epochs(Scheduler& s, int64_t by) noexcept {
  if (s.cls != &kSequential && s.cls != &kChained) s.last_epoch += by;
  for (SchedulerRef& part : s.parts) shift_epochs(*part.get(), by);
}
// Repeats a part's initial step, from the initial rates.
static void start_part(Scheduler& s) {
  const int64_t steps = s.step_count;
  s.step_count = 0;
  s.initial = true;
  try {
    scheduler_step(s);
  } catch (...) {
    s.step_count = steps;
    s.initial = false;
    throw;
  }
  s.initial = false;
}

SchedulerRef make_sequential(Optimizer& o, Span<Scheduler* const> parts, Ints milestones,
                             int64_t last_epoch) {
  if (!parts.n)
    fail_arg(TT_INVALID_ARG, "schedulers", "schedulers is empty: at least one is needed");
  if (milestones.n != parts.n - 1)
    fail_arg(TT_INVALID_ARG, "milestones",
             "there are {} milestones for {} schedulers: must be one fewer", milestones.n, parts.n);
  if (last_epoch < -1 || last_epoch == INT64_MAX)
    fail_arg(TT_INVALID_ARG, "last_epoch", "last_epoch is {}: must be at least -1", last_epoch);
  SchedulerRef s = new_scheduler(kSequential, o);
  s->milestones.append(milestones);
  adopt_parts(*s.get(), parts);
  s->last_epoch = last_epoch + 1;
  for (ParamGroup& g : o.groups) {
    if (g.extra[kInitialLr] != g.extra[kInitialLr])
      fail_arg(TT_INVALID_ARG, "schedulers", "a group was added after the schedulers were made");
  }
  SmallVec<ParamGroup, 1> before(o.groups.span());
  for (ParamGroup& g : o.groups) *find_value(o, g, "lr") = g.extra[kInitialLr];
  for (Scheduler* part : parts) shift_epochs(*part, -1);  // undoes the step of their constructors
  try {
    bool begins = false;
    start_part(part_at(*s.get(), 0, &begins));
  } catch (...) {
    for (Scheduler* part : parts) shift_epochs(*part, 1);
    for (int64_t i = 0; i < before.size(); i++) o.groups[i] = before[i];
    throw;
  }
  record_rates(*s.get());
  return s;
}

SchedulerRef make_chained(Span<Scheduler* const> parts) {
  if (!parts.n)
    fail_arg(TT_INVALID_ARG, "schedulers", "schedulers is empty: at least one is needed");
  SchedulerRef s = new_scheduler(kChained, *parts[0]->optimizer.get());
  adopt_parts(*s.get(), parts);
  record_rates(*s.get());
  return s;
}

// ---- the state as a list ----

// Calls f(prefix length, name, index or -1, number) for each number until it returns true. Nested
// schedulers have the prefix "schedulers.2.".
struct Prefix {
  char text[24 * kMaxSchedulerDepth + 1];
  int64_t n = 0;
};
template <class F> static bool each_number(Scheduler& s, Prefix& prefix, F& f) {
  double epoch = double(s.last_epoch);
  double steps = double(s.step_count);
  if (f(prefix, "last_epoch", -1, epoch) || f(prefix, "_step_count", -1, steps)) return true;
  const bool by_metric = s.cls->by_metric;
  if (by_metric && f(prefix, "best", -1, s.plateau.best)) return true;
  if (by_metric && f(prefix, "num_bad_epochs", -1, double(s.plateau.bad_epochs))) return true;
  if (by_metric && f(prefix, "cooldown_counter", -1, double(s.plateau.cooldown))) return true;
  for (int64_t i = 0; i < s.base_lrs.size(); i++)
    if (f(prefix, "base_lrs", i, s.base_lrs[i])) return true;
  for (int64_t i = 0; i < s.last_lr.size(); i++)
    if (f(prefix, "_last_lr", i, s.last_lr[i])) return true;
  for (int64_t i = 0; i < s.parts.size(); i++) {
    const int64_t n = prefix.n;
    const FmtArg args[] = {i};
    prefix.n += format_to(prefix.text + n, 24, "{}.", args);
    if (each_number(*s.parts[i].get(), prefix, f)) return true;
    prefix.n = n;
  }
  return false;
}
static void write_name(char* name, int64_t cap, const Prefix& p, const char* part, int64_t i) {
  const FmtArg args[] = {Span<const char>(p.text, p.n), part, i};
  const int64_t n = format_to(name, cap, i < 0 ? "{}{}" : "{}{}.{}", args);
  if (n >= cap)
    fail_arg(TT_BUFFER_TOO_SMALL, "name", "the name has {} bytes, name has room for {}", n + 1,
             cap);
}

int64_t num_numbers(const Scheduler& s) {
  Prefix prefix;
  int64_t n = 0;
  auto count = [&](const Prefix&, const char*, int64_t, double) {
    n++;
    return false;
  };
  each_number(const_cast<Scheduler&>(s), prefix, count);
  return n;
}
double number_at(const Scheduler& s, int64_t i, char* name, int64_t cap) {
  Prefix prefix;
  int64_t left = i;
  double found = 0;
  auto take = [&](const Prefix& p, const char* part, int64_t k, double value) {
    if (left-- != 0) return false;
    write_name(name, cap, p, part, k);
    found = value;
    return true;
  };
  if (i < 0 || !each_number(const_cast<Scheduler&>(s), prefix, take))
    fail_arg(TT_INDEX, "i", "i is {}: there are {}", i, num_numbers(s));
  return found;
}

// Returns the nested scheduler that "2.0.last_epoch" names; *name becomes the rest.
static Scheduler& part_named(Scheduler& s, const char** name) {
  Scheduler* at = &s;
  const char* p = *name;
  while (*p >= '0' && *p <= '9') {
    int64_t i = 0;
    for (int d = 0; *p >= '0' && *p <= '9' && d < 15; p++, d++) i = 10 * i + (*p - '0');
    if (*p != '.' || i >= at->parts.size())
      fail_arg(TT_INVALID_ARG, "name", "\"{}\" is not part of the scheduler's state", *name);
    at = at->parts[i].get();
    p++;
  }
  *name = p;
  return *at;
}
// Returns the integer of the state that has this name, NULL if there is none.
static int64_t* count_named(Scheduler& s, const char* name) {
  if (strcmp(name, "last_epoch") == 0) return &s.last_epoch;
  if (strcmp(name, "_step_count") == 0) return &s.step_count;
  if (!s.cls->by_metric) return nullptr;
  if (strcmp(name, "num_bad_epochs") == 0) return &s.plateau.bad_epochs;
  return strcmp(name, "cooldown_counter") == 0 ? &s.plateau.cooldown : nullptr;
}
void load_number(Scheduler& whole, const char* name, double value) {
  const char* rest = name;
  Scheduler& s = part_named(whole, &rest);
  if (s.cls->by_metric && strcmp(rest, "best") == 0) {
    s.plateau.best = value;
    return;
  }
  if (int64_t* const count = count_named(s, rest)) {
    if (!(value >= -1 && value <= 0x1p53))
      fail_arg(TT_INVALID_ARG, "value", "{} is {}: must be in [-1, 2^53]", rest, value);
    *count = int64_t(value);
    return;
  }
  const bool base = strncmp(rest, "base_lrs.", 9) == 0;
  if (base || strncmp(rest, "_last_lr.", 9) == 0) {
    auto& list = base ? s.base_lrs : s.last_lr;
    int64_t i = 0;
    const char* p = rest + 9;
    for (int d = 0; *p >= '0' && *p <= '9' && d < 15; p++, d++) i = 10 * i + (*p - '0');
    if (p != rest + 9 && !*p && i < list.size()) {
      list[i] = value;
      return;
    }
  }
  fail_arg(TT_INVALID_ARG, "name", "\"{}\" is not part of the scheduler's state", name);
}

}  // namespace TT_NS
