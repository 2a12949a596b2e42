// The schedules, computed as in PyTorch: from the current rate (so that they can be chained), and
// in closed form.
#include "core/callback.h"
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
  const double high = g.extra[kMaxLr];
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
      &kStep, &kMultiStep, &kConstant, &kLinear, &kPolynomial, &kCosine, &kExponential, &kOneCycle};
  for (const SchedulerClass* cls : kAll)
    if (strlen(cls->name) == size_t(name.n) && memcmp(cls->name, name.ptr, size_t(name.n)) == 0)
      return cls;
  return nullptr;
}

bool is_valid(const Scheduler& s) {
  const SchedulerClass* cls = s.cls;
  const bool divides = cls == &kStep || cls == &kCosine || cls == &kOneCycle;
  if (divides && (s.count[0] < 1 || s.count[0] > kMaxCount)) return false;
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

SchedulerRef construct(const OneCycleLRArgs& a) {
  Optimizer& o = a.optimizer;
  check_between(a.pct_start, 0, 1, "pct_start");
  if (a.anneal_strategy < 0 || a.anneal_strategy > 1)
    fail_arg(TT_INVALID_ARG, "anneal_strategy", "anneal_strategy is {}: there is no such value",
             a.anneal_strategy);
  check_per_group(a.max_lr, o, "max_lr");
  if (a.cycle_momentum) {
    if (!o.cls->momentum)
      fail_arg(TT_INVALID_ARG, "cycle_momentum", "{} has no momentum to cycle", o.cls->name);
    check_per_group(a.base_momentum, o, "base_momentum");
    check_per_group(a.max_momentum, o, "max_momentum");
  }
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
  try {
    return start(std::move(s), a.last_epoch);
  } catch (...) {
    for (int64_t i = 0; i < o.groups.size(); i++) o.groups[i] = before[i];
    throw;
  }
}

SchedulerRef construct(const SequentialLRArgs& a) {
  return make_sequential(a.optimizer, a.schedulers, a.milestones, a.last_epoch);
}
SchedulerRef construct(const ChainedSchedulerArgs& a) { return make_chained(a.schedulers); }

}  // namespace TT_NS
