// ctc_loss and its backward: one sample per unit, computed in double precision.
//   x, dx: (time, batch, classes); loss, scale: (batch)
//   log_alpha: [batch][time][states] for the longest target; state 2 i + 1 is label i, the others
//   are blanks
//   log_beta:  [states], the log-probability of all paths from each state at time t to the end
//   of_class:  [classes], the probability of each class at time t, given the targets
// States are computed kCtcBlock at a time, in loops that the compiler vectorises.

#include "kernels/cpu/simd/row_primitives.h"
#include "plan/loss_plan.h"

TT_ISA_BEGIN

constexpr double kNever = -kInf;

// log(exp(a) + exp(b)).
TT_INLINE double log_add(double a, double b) {
  const double high = b > a ? b : a;
  if (high == kNever) return kNever;
  return high + math::log(math::exp(a - high) + math::exp(b - high));
}

constexpr int64_t kCtcBlock = 64;

// What n states are computed from at a time: three neighbours each, of which the third is reached
// only where skip is 0 (else it is -inf), and their own log-probability.
struct CtcStates {
  double from[kCtcBlock + 2], skip[kCtcBlock], own[kCtcBlock];

  // out[s] = log(exp(first[s]) + exp(second[s]) + exp(third[s] + skip[s])) + own[s].
  TT_NOINLINE void add(const double* first, const double* second, const double* third, int64_t n,
                       double* TT_RESTRICT out) const {
    double sum[kCtcBlock];
    double top[kCtcBlock];
    for (int64_t s = 0; s < n; s++) {
      const double a = first[s];
      const double b = second[s];
      const double c = third[s] + skip[s];
      const double of_two = b > a ? b : a;
      const double high = c > of_two ? c : of_two;
      const double shift = high == kNever ? 0 : high;
      sum[s] = math::exp(a - shift) + math::exp(b - shift) + math::exp(c - shift);
      top[s] = shift;
    }
    for (int64_t s = 0; s < n; s++) out[s] = top[s] + math::log(sum[s]) + own[s];
  }
};

// Numbers of the plan's dtype, float or double.
TT_INLINE double read_number(const char* from, int64_t i, int32_t dtype) {
  if (is_dtype(dtype, TT_F64)) return reinterpret_cast<const double*>(from)[i];
  return double(reinterpret_cast<const float*>(from)[i]);
}
TT_INLINE void write_number(char* to, int64_t i, double v, int32_t dtype) {
  if (is_dtype(dtype, TT_F64)) reinterpret_cast<double*>(to)[i] = v;
  else reinterpret_cast<float*>(to)[i] = float(v);
}

TT_INLINE int64_t length_of(const CtcPlan& p, int64_t sample) {
  return clamp<int64_t>(p.target_lengths[sample], 0, min(p.max_target, p.n_targets));
}

struct CtcSample {
  const CtcPlan& p;
  int64_t b, time, states;
  const int64_t* targets;
  double* log_alpha;

  CtcSample(const CtcPlan& plan, int64_t sample)
      : p(plan),
        b(sample),
        time(clamp<int64_t>(plan.input_lengths[sample], 0, plan.time)),
        states(2 * length_of(plan, sample) + 1),
        targets(plan.targets +
                clamp<int64_t>(plan.offsets[sample], 0, plan.n_targets - length_of(plan, sample))),
        log_alpha(plan.log_alpha + sample * plan.time * (2 * plan.max_target + 1)) {}

  int64_t label(int64_t s) const {
    if (s % 2 == 0) return p.blank;
    const int64_t own = targets[s / 2];
    return uint64_t(own) < uint64_t(p.classes) ? own : p.blank;
  }
  // Whether a path may go from state s - 2 to s: it may not skip a blank between equal labels.
  bool skips(int64_t s) const { return s > 1 && label(s) != label(s - 2); }
  int64_t place(int64_t t, int64_t c) const { return (t * p.batch + b) * p.classes + c; }
  double x(int64_t t, int64_t c) const { return read_number(p.x, place(t, c), p.dtype); }
  double* alpha(int64_t t) const { return log_alpha + t * (2 * p.max_target + 1); }
  void put(char* to, int64_t i, double v) const { write_number(to, i, v, p.dtype); }

  void forward() const {
    for (int64_t s = 0; time && s < states; s++) alpha(0)[s] = s < 2 ? x(0, label(s)) : kNever;
    for (int64_t t = 1; t < time; t++)
      for (int64_t s = 0; s < states; s += kCtcBlock) step_on(alpha(t - 1), alpha(t), t, s);
    put(p.loss, b, loss());
  }
  double loss() const {
    if (!time) return states == 1 ? 0 : -kNever;
    const double* last = alpha(time - 1);
    if (states == 1) return -last[0];
    return -log_add(last[states - 1], last[states - 2]);
  }

  // The states of a block from `begin` on at time t: state s reads states s, s - 1 and s - 2.
  void step_on(const double* before, double* now, int64_t t, int64_t begin) const {
    CtcStates block;
    const int64_t n = min(states - begin, kCtcBlock);
    for (int64_t i = 0; i < n + 2; i++)
      block.from[i] = begin + i >= 2 ? before[begin + i - 2] : kNever;
    for (int64_t i = 0; i < n; i++) {
      block.skip[i] = skips(begin + i) ? 0 : kNever;
      block.own[i] = x(t, label(begin + i));
    }
    block.add(block.from + 2, block.from + 1, block.from, n, now + begin);
  }
  // From time t + 1 to t, in place: state s reads states s, s + 1 and s + 2. Then adds the
  // probability of each state to its class.
  void step_back(double* beta, int64_t t, int64_t begin, double total, double* of_class) const {
    CtcStates block;
    const int64_t n = min(states - begin, kCtcBlock);
    const bool last = t == time - 1;
    for (int64_t i = 0; i < n + 2; i++)
      block.from[i] = begin + i < states && !last ? beta[begin + i] : kNever;
    for (int64_t i = 0; i < n; i++) {
      const int64_t s = begin + i;
      block.skip[i] = s + 2 < states && skips(s + 2) ? 0 : kNever;
      block.own[i] = x(t, label(s));
      if (last && s + 2 >= states) block.from[i] = 0;
    }
    if (last) {
      for (int64_t i = 0; i < n; i++) beta[begin + i] = block.from[i] + block.own[i];
    } else {
      block.add(block.from, block.from + 1, block.from + 2, n, beta + begin);
    }
    const double* before = alpha(t) + begin;
    const double* after = beta + begin;
    double share[kCtcBlock];
    for (int64_t i = 0; i < n; i++)
      share[i] = math::exp(before[i] + after[i] - block.own[i] + total);
    for (int64_t i = 0; i < n; i++) of_class[label(begin + i)] += share[i];
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
      for (int64_t c = 0; c < p.classes; c++) of_class[c] = 0;
      for (int64_t s = 0; s < states; s += kCtcBlock) step_back(beta, t, s, total, of_class);
      for (int64_t c = 0; c < p.classes; c++) {
        const double log_p = x(t, c);
        const double undefined = (log_p - log_p) + (total - total);  // nan of infinite ones, else 0
        put(p.dx, place(t, c), (math::exp(log_p) - of_class[c] + undefined) * scale);
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
