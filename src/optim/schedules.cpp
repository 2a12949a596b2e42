// The schedules, computed as in PyTorch: from the current rate (so that they can be chained), and
// in closed form.
#include "core/callback.h"
#include "ops/gen/ops.h"
#include "optim/captured.h"
#include "optim/gen/classes.h"

#include <math.h>
#include <string.h>

namespace TT_NS {

SchedulerRef make_sequential(Optimizer& o, Span<Scheduler* const> parts, Ints milestones,
                             int64_t last_epoch);
SchedulerRef make_chained(Span<Scheduler* const> parts);

constexpr int64_t kMaxCount = int64_t(1) << 53;
constexpr double kPi = 3.14159265358979323846;

static Rate only_lr(double lr) { return {lr, kNan}; }

// ---- step, multi-step, exponential ----

static Rate step_next(Scheduler& s, int64_t e, int64_t, double lr, double) {
  return only_lr(e == 0 || e % s.count[0] ? lr : lr * s.real[0]);
}
static Rate step_closed(Scheduler& s, int64_t e, int64_t, double, double base) {
  return only_lr(base * pow(s.real[0], double(e / s.count[0])));
}
static constinit const SchedulerClass kStep = {"StepLR", step_next, step_closed};

static Rate multi_next(Scheduler& s, int64_t e, int64_t, double lr, double) {
  int64_t n = 0;
  for (int64_t m : s.milestones) n += m == e;
  return only_lr(n ? lr * pow(s.real[0], double(n)) : lr);
}
static Rate multi_closed(Scheduler& s, int64_t e, int64_t, double, double base) {
  int64_t n = 0;
  for (int64_t m : s.milestones) n += m <= e;
  return only_lr(base * pow(s.real[0], double(n)));
}
static constinit const SchedulerClass kMultiStep = {"MultiStepLR", multi_next, multi_closed};

static Rate exponential_next(Scheduler& s, int64_t, int64_t, double lr, double) {
  return only_lr(s.initial ? lr : lr * s.real[0]);
}
static Rate exponential_closed(Scheduler& s, int64_t e, int64_t, double, double base) {
  return only_lr(base * pow(s.real[0], double(e)));
}
static constinit const SchedulerClass kExponential = {"ExponentialLR", exponential_next,
                                                      exponential_closed};

// ---- constant, linear, polynomial: for the first total_iters steps ----

static Rate constant_next(Scheduler& s, int64_t e, int64_t, double lr, double) {
  if (e == 0) return only_lr(lr * s.real[0]);
  return only_lr(e == s.count[0] ? lr * (1 / s.real[0]) : lr);
}
static Rate constant_closed(Scheduler& s, int64_t e, int64_t, double, double base) {
  return only_lr(base * (e >= s.count[0] ? 1 : s.real[0]));
}
static constinit const SchedulerClass kConstant = {"ConstantLR", constant_next, constant_closed};

static Rate linear_next(Scheduler& s, int64_t e, int64_t, double lr, double) {
  const double start = s.real[0];
  const double rise = s.real[1] - start;
  const double total = double(s.count[0]);
  if (e == 0) return only_lr(lr * start);
  if (s.initial || e > s.count[0]) return only_lr(lr);
  return only_lr(lr * (1 + rise / (total * start + double(e - 1) * rise)));
}
static Rate linear_closed(Scheduler& s, int64_t e, int64_t, double, double base) {
  const int64_t done = min(e, s.count[0]);
  return only_lr(base * (s.real[0] + (s.real[1] - s.real[0]) * double(done) / double(s.count[0])));
}
static constinit const SchedulerClass kLinear = {"LinearLR", linear_next, linear_closed};

static Rate polynomial_next(Scheduler& s, int64_t e, int64_t, double lr, double) {
  if (s.initial || e > s.count[0]) return only_lr(lr);
  const double total = double(s.count[0]);
  return only_lr(lr * pow((1 - double(e) / total) / (1 - double(e - 1) / total), s.real[0]));
}
static Rate polynomial_closed(Scheduler& s, int64_t e, int64_t, double, double base) {
  const int64_t done = min(e, s.count[0]);
  return only_lr(base * pow(1 - double(done) / double(s.count[0]), s.real[0]));
}
static constinit const SchedulerClass kPolynomial = {"PolynomialLR", polynomial_next,
                                                     polynomial_closed};

// ---- cosine ----

static Rate cosine_closed(Scheduler& s, int64_t e, int64_t, double, double base) {
  return only_lr(s.real[0] +
                 (base - s.real[0]) * (1 + cos(double(e) * kPi / double(s.count[0]))) / 2);
}
static Rate cosine_next(Scheduler& s, int64_t e, int64_t g, double lr, double base) {
  const double low = s.real[0];
  const double half = double(s.count[0]);
  if (s.initial) return only_lr(lr);
  if (s.step_count == 1 && e > 0) return cosine_closed(s, e, g, lr, base);
  if ((e - 1 - s.count[0]) % (2 * s.count[0]) == 0)
    return only_lr(lr + (base - low) * (1 - cos(kPi / half)) / 2);
  return only_lr(
      (1 + cos(kPi * double(e) / half)) / (1 + cos(kPi * double(e - 1) / half)) * (lr - low) + low);
}
static constinit const SchedulerClass kCosine = {"CosineAnnealingLR", cosine_next, cosine_closed};

// ---- cosine with restarts: real = eta_min; count = T_0, T_mult ----

static Rate restarts_next(Scheduler& s, int64_t e, int64_t, double, double base) {
  const double factor = double(s.count[1]);
  double length = double(s.count[0]);  // of the running period
  double done = double(e);             // steps of it
  if (factor == 1) {
    done = double(e % s.count[0]);
  } else {
    while (done >= length) {
      done -= length;
      length *= factor;
    }
  }
  return only_lr(s.real[0] + (base - s.real[0]) * (1 + cos(kPi * done / length)) / 2);
}
static constinit const SchedulerClass kRestarts = {"CosineAnnealingWarmRestarts", restarts_next,
                                                   restarts_next};

// Returns a number that the constructor has set in the group.
static double limit_of(const Scheduler& s, int64_t group, GroupExtra of) {
  const double v = s.optimizer->groups[group].extra[of];
  if (v != v)
    fail(TT_INVALID_ARG, "group {} has no limits of its rate: {} was made without it", group,
         s.cls->name);
  return v;
}

// ---- cycles: real = gamma, step_size_up, step_size_down; count = mode, cycle_momentum ----

static Rate cyclic_next(Scheduler& s, int64_t e, int64_t group, double, double base) {
  const double total = s.real[1] + s.real[2];
  const double share = s.real[1] / total;  // of a cycle in which the rate rises
  const double cycle = floor(1 + double(e) / total);
  const double at = 1 + double(e) / total - cycle;
  double height = at <= share ? at / share : (at - 1) / (share - 1);
  if (s.count[0] == kCyclicModeTriangular2) height /= pow(2, cycle - 1);
  if (s.count[0] == kCyclicModeExpRange) height *= pow(s.real[0], double(e));
  double momentum = kNan;
  if (s.count[1]) {
    const double heavy = limit_of(s, group, kMaxMomentum);
    momentum = heavy - (heavy - limit_of(s, group, kBaseMomentum)) * height;
  }
  return {base + (limit_of(s, group, kMaxLr) - base) * height, momentum};
}
static constinit const SchedulerClass kCyclic = {"CyclicLR", cyclic_next, nullptr};

// ---- to a fixed rate: count = anneal_epochs, anneal_strategy ----

// Returns the share of the annealing that is done after a step.
static double annealed(const Scheduler& s, int64_t step) {
  const double t = double(step) / double(TT_NS::max(int64_t(1), s.count[0]));
  const double done = TT_NS::min(1.0, TT_NS::max(0.0, t));
  return s.count[1] == kAnnealLinear ? done : (1 - cos(kPi * done)) / 2;
}
static Rate swa_next(Scheduler& s, int64_t, int64_t group, double lr, double) {
  const int64_t step = TT_NS::max(s.step_count - 1, int64_t(s.count[0] == 0));
  const double before = annealed(s, step - 1);
  const double now = annealed(s, step);
  const double last = limit_of(s, group, kSwaLr);
  const double first = before == 1 ? last : (lr - before * last) / (1 - before);
  return only_lr(last * now + first * (1 - now));
}
static constinit const SchedulerClass kSwa = {"SWALR", swa_next, nullptr};

// ---- by a metric: real = factor, threshold, eps; count = patience, cooldown ----

enum { kHigherIsBetter = 1, kAbsoluteThreshold = 2 };  // Plateau::flags

static constinit const SchedulerClass kPlateau = {
    .name = "ReduceLROnPlateau", .next = nullptr, .closed = nullptr, .by_metric = true};

static bool is_better(const Scheduler& s, double metric) {
  const double sign = s.plateau.flags & kHigherIsBetter ? 1 : -1;
  const double best = s.plateau.best;
  const double bound = s.plateau.flags & kAbsoluteThreshold ? best + sign * s.real[1]
                                                            : best * (1 + sign * s.real[1]);
  return sign > 0 ? metric > bound : metric < bound;
}
static void reduce_rates(Scheduler& s) {
  Optimizer& o = *s.optimizer;
  const auto& lowest = s.plateau.min_lrs;
  if (lowest.size() != 1 && lowest.size() != o.groups.size())
    fail(TT_INVALID_ARG, "the optimizer has {} groups, min_lr was given for {}", o.groups.size(),
         lowest.size());
  for (int64_t g = 0; g < o.groups.size(); g++) {
    double& lr = *find_value(o, o.groups[g], "lr");
    const double next = TT_NS::max(lr * s.real[0], lowest[lowest.size() == 1 ? 0 : g]);
    if (lr - next > s.real[2]) lr = next;
  }
}
void scheduler_step_metric(Scheduler& s, double metric) {
  if (!s.cls->by_metric) fail(TT_INVALID_ARG, "{} takes no metric: use step", s.cls->name);
  const Optimizer& o = *s.optimizer;
  Plateau next = s.plateau;
  next.bad_epochs++;
  if (is_better(s, metric)) {
    next.best = metric;
    next.bad_epochs = 0;
  }
  if (next.cooldown > 0) {
    next.cooldown--;
    next.bad_epochs = 0;
  }
  s.last_lr.resize(o.groups.size(), 0);
  if (next.bad_epochs > s.count[0]) {
    reduce_rates(s);
    next.cooldown = s.count[1];
    next.bad_epochs = 0;
  }
  s.plateau = std::move(next);
  for (int64_t g = 0; g < o.groups.size(); g++) s.last_lr[g] = group_value(*s.optimizer, g, "lr");
  s.last_epoch++;
}

// ---- one cycle: real = pct_start; count = total_steps, flags ----

enum { kLinearAnneal = 1, kCycleMomentum = 2, kThreePhase = 4 };

static double anneal(int64_t flags, double from, double to, double pct) {
  return flags & kLinearAnneal ? (to - from) * pct + from
                               : to + (from - to) / 2 * (cos(kPi * pct) + 1);
}
static Rate one_cycle_next(Scheduler& s, int64_t e, int64_t group, double, double) {
  const ParamGroup& g = s.optimizer->groups[group];
  const int64_t flags = s.count[1];
  const double total = double(s.count[0]);
  const double at = double(e);
  const double rise = s.real[0] * total - 1;
  const double fall = 2 * s.real[0] * total - 2;
  const double last = total - 1;
  if (e > s.count[0])
    fail_arg(TT_INVALID_ARG, "last_epoch", "step {} is past the end of a cycle of {} steps", e,
             s.count[0]);
  const double low = g.extra[kInitialLr];
  const double high = limit_of(s, group, kMaxLr);
  const double end = g.extra[kMinLr];
  const double light = g.extra[kBaseMomentum];
  const double heavy = g.extra[kMaxMomentum];
  struct Phase {
    double begin, end, lr[2], momentum[2];
  };
  Phase p;
  if (at <= rise) p = {0, rise, {low, high}, {heavy, light}};
  else if (!(flags & kThreePhase)) p = {rise, last, {high, end}, {light, heavy}};
  else if (at <= fall) p = {rise, fall, {high, low}, {light, heavy}};
  else p = {fall, last, {low, end}, {heavy, heavy}};
  if (p.end == p.begin)
    fail(TT_INVALID_ARG, "total_steps is {}, pct_start is {}: a phase of the cycle has no steps",
         s.count[0], s.real[0]);
  const double pct = (at - p.begin) / (p.end - p.begin);
  return {anneal(flags, p.lr[0], p.lr[1], pct),
          flags & kCycleMomentum ? anneal(flags, p.momentum[0], p.momentum[1], pct) : kNan};
}
static constinit const SchedulerClass kOneCycle = {"OneCycleLR", one_cycle_next, nullptr};

// ---- by callback ----

static double factor_of(Scheduler& s, int64_t epoch, int64_t group) {
  double factor = 0;
  run_callback("the callback of the learning rate", true,
               [&](tt_ctx* c) { return s.lambda.fn(s.lambda.user, c, epoch, group, &factor); });
  return factor;
}
static Rate lambda_next(Scheduler& s, int64_t e, int64_t g, double, double base) {
  return only_lr(base * factor_of(s, e, g));
}
static Rate multiplicative_next(Scheduler& s, int64_t e, int64_t g, double lr, double) {
  return only_lr(s.initial ? lr : lr * factor_of(s, e, g));
}
static constinit const SchedulerClass kLambda = {"LambdaLR", lambda_next, nullptr};
static constinit const SchedulerClass kMultiplicative = {"MultiplicativeLR", multiplicative_next,
                                                         nullptr};

// On failure, the caller drops the callback.
SchedulerRef make_lambda(Optimizer& o, const LrLambda& lambda, bool multiplicative,
                         int64_t last_epoch) {
  SchedulerRef s = new_scheduler(multiplicative ? kMultiplicative : kLambda, o);
  s->lambda = lambda;
  s->lambda.drop = nullptr;
  start_scheduler(*s.get(), last_epoch);
  s->lambda.drop = lambda.drop;
  return s;
}

// ---- by name ----

const SchedulerClass* find_schedule(Span<const char> name) {
  static constexpr const SchedulerClass* kAll[] = {
      &kStep,        &kMultiStep, &kConstant, &kLinear, &kPolynomial, &kCosine,
      &kExponential, &kOneCycle,  &kRestarts, &kCyclic, &kSwa};
  for (const SchedulerClass* cls : kAll)
    if (strlen(cls->name) == size_t(name.n) && memcmp(cls->name, name.ptr, size_t(name.n)) == 0)
      return cls;
  return nullptr;
}

static bool is_count(int64_t n) { return n >= 1 && n <= kMaxCount; }
bool is_valid(const Scheduler& s) {
  const SchedulerClass* cls = s.cls;
  const bool divides = cls == &kStep || cls == &kCosine || cls == &kOneCycle;
  if (divides && !is_count(s.count[0])) return false;
  if (cls == &kRestarts) return is_count(s.count[0]) && is_count(s.count[1]);
  if (cls == &kCyclic) {
    const bool cycles = s.real[1] >= 1 && s.real[2] >= 0;
    return cycles && (s.count[1] == 0 || (s.count[1] == 1 && s.optimizer->cls->momentum));
  }
  if (cls != &kOneCycle) return true;
  if (s.count[1] < 0 || s.count[1] > (kLinearAnneal | kCycleMomentum | kThreePhase)) return false;
  return !(s.count[1] & kCycleMomentum) || s.optimizer->cls->momentum;
}

// ---- constructors ----

static SchedulerRef start(SchedulerRef&& s, int64_t last_epoch) {
  start_scheduler(*s.get(), last_epoch);
  return std::move(s);
}
static SchedulerRef make(const SchedulerClass& cls, Optimizer& o, double real0, double real1,
                         int64_t count0) {
  SchedulerRef s = new_scheduler(cls, o);
  s->real[0] = real0;
  s->real[1] = real1;
  s->count[0] = count0;
  return s;
}
static void check_positive(int64_t n, const char* arg) {
  if (n < 1 || n > kMaxCount) fail_arg(TT_INVALID_ARG, arg, "{} is {}: must be positive", arg, n);
}
static void check_between(double v, double low, double high, const char* arg) {
  if (!(v >= low && v <= high))
    fail_arg(TT_INVALID_ARG, arg, "{} is {}: must be between {} and {}", arg, v, low, high);
}

SchedulerRef construct(const StepLRArgs& a) {
  check_positive(a.step_size, "step_size");
  return start(make(kStep, a.optimizer, a.gamma, 0, a.step_size), a.last_epoch);
}
SchedulerRef construct(const MultiStepLRArgs& a) {
  SchedulerRef s = make(kMultiStep, a.optimizer, a.gamma, 0, 0);
  s->milestones.append(a.milestones);
  return start(std::move(s), a.last_epoch);
}
SchedulerRef construct(const ConstantLRArgs& a) {
  check_between(a.factor, 0, 1, "factor");
  return start(make(kConstant, a.optimizer, a.factor, 0, a.total_iters), a.last_epoch);
}
SchedulerRef construct(const LinearLRArgs& a) {
  check_between(a.start_factor, 0, 1, "start_factor");
  if (a.start_factor == 0)
    fail_arg(TT_INVALID_ARG, "start_factor", "start_factor is 0: must be positive");
  check_between(a.end_factor, 0, 1, "end_factor");
  return start(make(kLinear, a.optimizer, a.start_factor, a.end_factor, a.total_iters),
               a.last_epoch);
}
SchedulerRef construct(const ExponentialLRArgs& a) {
  return start(make(kExponential, a.optimizer, a.gamma, 0, 0), a.last_epoch);
}
SchedulerRef construct(const PolynomialLRArgs& a) {
  return start(make(kPolynomial, a.optimizer, a.power, 0, a.total_iters), a.last_epoch);
}
SchedulerRef construct(const CosineAnnealingLRArgs& a) {
  check_positive(a.T_max, "T_max");
  return start(make(kCosine, a.optimizer, a.eta_min, 0, a.T_max), a.last_epoch);
}

static double of_group(Span<const double> v, int64_t g) { return v[v.n == 1 ? 0 : g]; }
static void check_per_group(Span<const double> v, const Optimizer& o, const char* arg) {
  if (v.n != 1 && v.n != o.groups.size())
    fail_arg(TT_INVALID_ARG, arg,
             "{} has {} numbers: must have one, or one for each of the {} groups", arg, v.n,
             o.groups.size());
  for (const double number : v)
    if (number != number) fail_arg(TT_INVALID_ARG, arg, "{} is nan: must be a number", arg);
}
static int64_t total_steps(const OneCycleLRArgs& a) {
  if (a.total_steps) {
    check_positive(*a.total_steps, "total_steps");
    return *a.total_steps;
  }
  if (!a.epochs || !a.steps_per_epoch)
    fail_arg(TT_INVALID_ARG, "total_steps",
             "total_steps is not given: must be given, or both epochs and steps_per_epoch");
  check_positive(*a.epochs, "epochs");
  check_positive(*a.steps_per_epoch, "steps_per_epoch");
  if (*a.epochs > (int64_t(1) << 53) / *a.steps_per_epoch)
    fail_arg(TT_INVALID_ARG, "epochs", "epochs ({}) * steps_per_epoch ({}) overflows", *a.epochs,
             *a.steps_per_epoch);
  return *a.epochs * *a.steps_per_epoch;
}

static void check_momentum(const Optimizer& o, Span<const double> base, Span<const double> most) {
  if (!o.cls->momentum)
    fail_arg(TT_INVALID_ARG, "cycle_momentum", "{} has no momentum to cycle", o.cls->name);
  check_per_group(base, o, "base_momentum");
  check_per_group(most, o, "max_momentum");
}
// Starts a scheduler that has written numbers of the groups; if it fails, puts them back.
static SchedulerRef start_or_restore(SchedulerRef&& s, int64_t last_epoch,
                                     const SmallVec<ParamGroup, 1>& before) {
  Optimizer& o = *s->optimizer;
  try {
    return start(std::move(s), last_epoch);
  } catch (...) {
    for (int64_t i = 0; i < o.groups.size(); i++) o.groups[i] = before[i];
    throw;
  }
}

SchedulerRef construct(const OneCycleLRArgs& a) {
  Optimizer& o = a.optimizer;
  check_between(a.pct_start, 0, 1, "pct_start");
  if (a.anneal_strategy < 0 || a.anneal_strategy > 1)
    fail_arg(TT_INVALID_ARG, "anneal_strategy", "anneal_strategy is {}: there is no such value",
             a.anneal_strategy);
  check_per_group(a.max_lr, o, "max_lr");
  if (a.cycle_momentum) check_momentum(o, a.base_momentum, a.max_momentum);
  SchedulerRef s = make(kOneCycle, o, a.pct_start, 0, total_steps(a));
  s->count[1] = 0;
  if (a.anneal_strategy) s->count[1] |= kLinearAnneal;
  if (a.cycle_momentum) s->count[1] |= kCycleMomentum;
  if (a.three_phase) s->count[1] |= kThreePhase;
  SmallVec<ParamGroup, 1> before(o.groups.span());
  if (a.last_epoch == -1)
    for (int64_t i = 0; i < o.groups.size(); i++) {
      ParamGroup& g = o.groups[i];
      g.extra[kMaxLr] = of_group(a.max_lr, i);
      g.extra[kInitialLr] = g.extra[kMaxLr] / a.div_factor;
      g.extra[kMinLr] = g.extra[kInitialLr] / a.final_div_factor;
      if (a.cycle_momentum) {
        g.extra[kMaxMomentum] = of_group(a.max_momentum, i);
        g.extra[kBaseMomentum] = of_group(a.base_momentum, i);
      }
    }
  return start_or_restore(std::move(s), a.last_epoch, before);
}

SchedulerRef construct(const CosineAnnealingWarmRestartsArgs& a) {
  check_positive(a.T_0, "T_0");
  check_positive(a.T_mult, "T_mult");
  SchedulerRef s = make(kRestarts, a.optimizer, a.eta_min, 0, a.T_0);
  s->count[1] = a.T_mult;
  return start(std::move(s), a.last_epoch);
}

SchedulerRef construct(const CyclicLRArgs& a) {
  Optimizer& o = a.optimizer;
  check_per_group(a.base_lr, o, "base_lr");
  check_per_group(a.max_lr, o, "max_lr");
  if (a.cycle_momentum) check_momentum(o, a.base_momentum, a.max_momentum);
  check_positive(a.step_size_up, "step_size_up");
  const int64_t down = a.step_size_down ? *a.step_size_down : a.step_size_up;
  if (down < 0 || down > kMaxCount)
    fail_arg(TT_INVALID_ARG, "step_size_down", "step_size_down is {}: must be at least 0", down);
  SchedulerRef s = make(kCyclic, o, a.gamma, double(a.step_size_up), a.mode);
  s->real[2] = double(down);
  s->count[1] = a.cycle_momentum;
  for (int64_t i = 0; i < o.groups.size(); i++) s->base_lrs.push_back(of_group(a.base_lr, i));
  SmallVec<ParamGroup, 1> before(o.groups.span());
  for (int64_t i = 0; i < o.groups.size(); i++) {
    ParamGroup& g = o.groups[i];
    g.extra[kMaxLr] = of_group(a.max_lr, i);
    if (a.last_epoch == -1) *find_value(o, g, "lr") = s->base_lrs[i];
    if (!a.cycle_momentum) continue;
    g.extra[kMaxMomentum] = of_group(a.max_momentum, i);
    g.extra[kBaseMomentum] = of_group(a.base_momentum, i);
  }
  return start_or_restore(std::move(s), a.last_epoch, before);
}

SchedulerRef construct(const SWALRArgs& a) {
  Optimizer& o = a.optimizer;
  check_per_group(a.swa_lr, o, "swa_lr");
  if (a.anneal_epochs < 0 || a.anneal_epochs > kMaxCount)
    fail_arg(TT_INVALID_ARG, "anneal_epochs", "anneal_epochs is {}: must be at least 0",
             a.anneal_epochs);
  SchedulerRef s = make(kSwa, o, 0, 0, a.anneal_epochs);
  s->count[1] = a.anneal_strategy;
  SmallVec<ParamGroup, 1> before(o.groups.span());
  for (int64_t i = 0; i < o.groups.size(); i++) o.groups[i].extra[kSwaLr] = of_group(a.swa_lr, i);
  return start_or_restore(std::move(s), a.last_epoch, before);
}

SchedulerRef construct(const ReduceLROnPlateauArgs& a) {
  const Optimizer& o = a.optimizer;
  if (!(a.factor < 1))
    fail_arg(TT_INVALID_ARG, "factor", "factor is {}: must be less than 1", a.factor);
  check_per_group(a.min_lr, o, "min_lr");
  SchedulerRef s = make(kPlateau, a.optimizer, a.factor, a.threshold, a.patience);
  s->real[2] = a.eps;
  s->count[1] = a.cooldown;
  s->plateau.best = a.mode == kPlateauModeMax ? -kInf : kInf;
  s->plateau.flags = (a.mode == kPlateauModeMax ? kHigherIsBetter : 0) |
                     (a.threshold_mode == kThresholdModeAbs ? kAbsoluteThreshold : 0);
  s->plateau.min_lrs.append(a.min_lr);
  for (const ParamGroup& g : o.groups)
    s->last_lr.push_back(*find_value(o, const_cast<ParamGroup&>(g), "lr"));
  return s;
}

SchedulerRef construct(const SequentialLRArgs& a) {
  return make_sequential(a.optimizer, a.schedulers, a.milestones, a.last_epoch);
}
SchedulerRef construct(const ChainedSchedulerArgs& a) { return make_chained(a.schedulers); }

}  // namespace TT_NS
