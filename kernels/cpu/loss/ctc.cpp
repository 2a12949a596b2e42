// ctc_loss and its backward: one sample per unit, computed in double precision.
//   x, dx: (time, batch, classes); loss, scale: (batch)
//   log_alpha: [batch][time][states] for the longest target; state 2 i + 1 is label i, the others
//   are blanks
//   log_beta:  [states], the log-probability of all paths from each state at time t to the end
//   of_class:  [classes], the log-probability of all paths through each class at time t

#include "kernels/cpu/simd/row_primitives.h"
#include "plan/loss_plan.h"

TT_ISA_BEGIN

constexpr double kNever = -__builtin_inf();

// log(exp(a) + exp(b)).
TT_INLINE double log_add(double a, double b) {
  const double high = b > a ? b : a;
  if (high == kNever) return kNever;
  return high + math::log(math::exp(a - high) + math::exp(b - high));
}

// Numbers of the plan's dtype, float or double.
TT_INLINE double read_number(const char* from, int64_t i, int32_t dtype) {
  if (is_dtype(dtype, TT_F64)) return reinterpret_cast<const double*>(from)[i];
  return double(reinterpret_cast<const float*>(from)[i]);
}
TT_INLINE void write_number(char* to, int64_t i, double v, int32_t dtype) {
  if (is_dtype(dtype, TT_F64)) reinterpret_cast<double*>(to)[i] = v;
  else reinterpret_cast<float*>(to)[i] = float(v);
}

struct CtcSample {
  const CtcPlan& p;
  int64_t b, time, states;
  const int64_t* targets;
  double* log_alpha;

  CtcSample(const CtcPlan& plan, int64_t sample)
      : p(plan),
        b(sample),
        time(plan.input_lengths[sample]),
        states(2 * plan.target_lengths[sample] + 1),
        targets(plan.targets + plan.offsets[sample]),
        log_alpha(plan.log_alpha + sample * plan.time * (2 * plan.max_target + 1)) {}

  int64_t label(int64_t s) const { return s % 2 ? targets[s / 2] : p.blank; }
  // Whether a path may go from state s - 2 to s: it may not skip a blank between equal labels.
  bool skips(int64_t s) const { return s > 1 && label(s) != label(s - 2); }
  int64_t place(int64_t t, int64_t c) const { return (t * p.batch + b) * p.classes + c; }
  double x(int64_t t, int64_t c) const { return read_number(p.x, place(t, c), p.dtype); }
  double* alpha(int64_t t) const { return log_alpha + t * (2 * p.max_target + 1); }
  void put(char* to, int64_t i, double v) const { write_number(to, i, v, p.dtype); }

  void forward() const {
    for (int64_t s = 0; time && s < states; s++) alpha(0)[s] = s < 2 ? x(0, label(s)) : kNever;
    for (int64_t t = 1; t < time; t++) {
      const double* before = alpha(t - 1);
      double* now = alpha(t);
      for (int64_t s = 0; s < states; s++) {
        double sum = before[s];
        if (s > 0) sum = log_add(sum, before[s - 1]);
        if (skips(s)) sum = log_add(sum, before[s - 2]);
        now[s] = sum + x(t, label(s));
      }
    }
    put(p.loss, b, loss());
  }
  double loss() const {
    if (!time) return states == 1 ? 0 : -kNever;
    const double* last = alpha(time - 1);
    if (states == 1) return -last[0];
    return -log_add(last[states - 1], last[states - 2]);
  }

  // From time t + 1 to t, in place: state s reads states s, s + 1 and s + 2.
  void step_back(double* beta, int64_t t) const {
    const bool last = t == time - 1;
    for (int64_t s = 0; s < states; s++) {
      double sum = beta[s];
      if (last) {
        sum = s + 2 < states ? kNever : 0;
      } else {
        if (s + 1 < states) sum = log_add(sum, beta[s + 1]);
        if (s + 2 < states && skips(s + 2)) sum = log_add(sum, beta[s + 2]);
      }
      beta[s] = sum + x(t, label(s));
    }
  }
  void backward() const {
    double* beta = p.scratch + b * (2 * p.max_target + 1 + p.classes);
    double* of_class = beta + 2 * p.max_target + 1;
    const double total = read_number(p.loss, b, p.dtype);
    const double scale = read_number(p.scale, b, p.dtype);
    const int64_t used = p.zero_infinity && total == -kNever ? 0 : time;
    for (int64_t t = used; t < p.time; t++)
      for (int64_t c = 0; c < p.classes; c++) put(p.dx, place(t, c), 0);
    for (int64_t t = used - 1; t >= 0; t--) {
      step_back(beta, t);
      for (int64_t c = 0; c < p.classes; c++) of_class[c] = kNever;
      for (int64_t s = 0; s < states; s++) {
        double* sum = of_class + label(s);
        *sum = log_add(*sum, alpha(t)[s] + beta[s]);
      }
      for (int64_t c = 0; c < p.classes; c++) {
        const double log_p = x(t, c);
        const double given = math::exp(of_class[c] + total - log_p);
        put(p.dx, place(t, c), (math::exp(log_p) - given) * scale);
      }
    }
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(ctc_loss)(const void* plan, int64_t begin, int64_t end) noexcept {
  const CtcPlan& p = *static_cast<const CtcPlan*>(plan);
  for (int64_t b = begin; b < end; b++) CtcSample(p, b).forward();
  return TT_OK;
}

TT_KERNEL(ctc_loss_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const CtcPlan& p = *static_cast<const CtcPlan*>(plan);
  for (int64_t b = begin; b < end; b++) CtcSample(p, b).backward();
  return TT_OK;
}

TT_ENTRY_END
