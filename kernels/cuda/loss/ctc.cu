// ctc_loss and its backward: a block for each sample, a thread for each state of the target,
// computed in double precision.
//   x, dx: (time, batch, classes); loss, scale: (batch)
//   log_alpha: [batch][time][states] for the longest target; state 2 i + 1 is label i, the others
//   are blanks
//   workspace: [batch][2 states + classes]: log-probabilities of all paths from each state at a
//   time and at the time after it to the end, and of all paths through each class
#include "kernels/cuda/row.h"
#include "kernels/cuda/rows.h"
#include "plan/loss_plan.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ double never() { return -__builtin_inf(); }

// log(exp(a) + exp(b)).
TT_NOINLINE __device__ double log_add(double a, double b) {
  const double high = b > a ? b : a;
  if (high == never()) return high;
  return high + math::log(math::exp(a - high) + math::exp(b - high));
}

// value within [0, high]
__device__ __forceinline__ int64_t within(int64_t value, int64_t high) {
  const int64_t from_0 = value > 0 ? value : 0;
  return from_0 < high ? from_0 : high;
}
__device__ __forceinline__ int64_t length_of(const CtcPlan& p, int64_t sample) {
  return within(within(p.target_lengths[sample], p.max_target), p.n_targets);
}

// A sample, as all threads of its block see it.
struct CtcSample {
  const CtcPlan& p;
  int64_t b, time, states, most_states;
  const int64_t* targets;
  double* log_alpha;

  __device__ __forceinline__ CtcSample(const CtcPlan& plan, int64_t sample)
      : p(plan),
        b(sample),
        time(within(plan.input_lengths[sample], plan.time)),
        states(2 * length_of(plan, sample) + 1),
        most_states(2 * plan.max_target + 1),
        targets(plan.targets +
                within(plan.offsets[sample], plan.n_targets - length_of(plan, sample))),
        log_alpha(plan.log_alpha + sample * plan.time * most_states) {}

  __device__ __forceinline__ int64_t label(int64_t s) const {
    if (s % 2 == 0) return p.blank;
    const int64_t own = targets[s / 2];
    return uint64_t(own) < uint64_t(p.classes) ? own : p.blank;
  }
  // Whether a path may go from state s - 2 to s: it may not skip a blank between equal labels.
  __device__ __forceinline__ bool skips(int64_t s) const {
    return s > 1 && label(s) != label(s - 2);
  }
  __device__ __forceinline__ int64_t place(int64_t t, int64_t c) const {
    return (t * p.batch + b) * p.classes + c;
  }
  __device__ __forceinline__ double read(const char* from, int64_t i) const {
    return load_element<double>(from + i * item_size(p.dtype), p.dtype);
  }
  __device__ __forceinline__ void put(char* to, int64_t i, double v) const {
    store_element(to + i * item_size(p.dtype), p.dtype, v);
  }
  __device__ __forceinline__ double x(int64_t t, int64_t c) const { return read(p.x, place(t, c)); }
  __device__ __forceinline__ double* alpha(int64_t t) const { return log_alpha + t * most_states; }

  // The log-probability of state s at time t, from those of the time before.
  __device__ __forceinline__ double ahead(int64_t t, int64_t s) const {
    if (t == 0) return s < 2 ? x(0, label(s)) : never();
    const double* const before = alpha(t - 1);
    double sum = before[s];
    if (s > 0) sum = log_add(sum, before[s - 1]);
    if (skips(s)) sum = log_add(sum, before[s - 2]);
    return sum + x(t, label(s));
  }
  // The same from the end, from those of the time after.
  __device__ __forceinline__ double back(int64_t t, int64_t s, const double* after) const {
    double sum;
    if (t == time - 1) {
      sum = s + 2 < states ? never() : 0;
    } else {
      sum = after[s];
      if (s + 1 < states) sum = log_add(sum, after[s + 1]);
      if (s + 2 < states && skips(s + 2)) sum = log_add(sum, after[s + 2]);
    }
    return sum + x(t, label(s));
  }
  __device__ __forceinline__ double loss() const {
    if (!time) return states == 1 ? 0 : -never();
    const double* const last = alpha(time - 1);
    if (states == 1) return -last[0];
    return -log_add(last[states - 1], last[states - 2]);
  }
  // Whether s is the first state of its label.
  __device__ __forceinline__ bool is_first(int64_t s) const {
    if (s == 0) return true;
    const int64_t own = label(s);
    for (int64_t k = 0; k < s; k++)
      if (label(k) == own) return false;
    return true;
  }
};

__global__ void __launch_bounds__(kThreads) ctc_losses(const __grid_constant__ CtcPlan p) {
  const CtcSample sample(p, blockIdx.x);
  for (int64_t t = 0; t < sample.time; t++) {
    for (int64_t s = threadIdx.x; s < sample.states; s += kThreads)
      sample.alpha(t)[s] = sample.ahead(t, s);
    __syncthreads();
  }
  if (threadIdx.x == 0) sample.put(p.loss, sample.b, sample.loss());
}

__global__ void __launch_bounds__(kThreads)
    ctc_gradients(const __grid_constant__ CtcPlan p, double* workspace) {
  const CtcSample sample(p, blockIdx.x);
  double* beta = workspace + int64_t(blockIdx.x) * (2 * sample.most_states + p.classes);
  double* after = beta + sample.most_states;
  double* const of_class = after + sample.most_states;
  const double total = sample.read(p.loss, sample.b);
  const double scale = sample.read(p.scale, sample.b);
  const int64_t used = p.zero_infinity && total == -never() ? 0 : sample.time;
  for (int64_t i = used * p.classes + threadIdx.x; i < p.time * p.classes; i += kThreads)
    sample.put(p.dx, sample.place(i / p.classes, i % p.classes), 0);
  for (int64_t t = used - 1; t >= 0; t--) {
    for (int64_t s = threadIdx.x; s < sample.states; s += kThreads)
      beta[s] = sample.back(t, s, after);
    for (int64_t c = threadIdx.x; c < p.classes; c += kThreads) of_class[c] = never();
    __syncthreads();
    for (int64_t s = threadIdx.x; s < sample.states; s += kThreads) {
      if (!sample.is_first(s)) continue;
      const int64_t own = sample.label(s);
      double sum = never();
      for (int64_t k = s; k < sample.states; k++)
        if (sample.label(k) == own) sum = log_add(sum, sample.alpha(t)[k] + beta[k]);
      of_class[own] = sum;
    }
    __syncthreads();
    for (int64_t c = threadIdx.x; c < p.classes; c += kThreads) {
      const double log_p = sample.x(t, c);
      const double given = math::exp(of_class[c] + total - log_p);
      sample.put(p.dx, sample.place(t, c), (math::exp(log_p) - given) * scale);
    }
    double* const swap = beta;
    beta = after;
    after = swap;
  }
}

}  // namespace

namespace cuda {

int32_t ctc_loss(const void* plan, void* stream, void*) {
  const CtcPlan& p = *static_cast<const CtcPlan*>(plan);
  if (p.batch == 0) return TT_OK;
  return device::launch(ctc_losses, unsigned(p.batch), kThreads, 0, stream, p);
}

int32_t ctc_loss_backward(const void* plan, void* stream, void* workspace) {
  const CtcPlan& p = *static_cast<const CtcPlan*>(plan);
  if (p.batch == 0) return TT_OK;
  return device::launch(ctc_gradients, unsigned(p.batch), kThreads, 0, stream, p,
                        static_cast<double*>(workspace));
}
size_t ctc_loss_backward_workspace(const void* plan) {
  const CtcPlan& p = *static_cast<const CtcPlan*>(plan);
  return size_t(p.batch * (2 * (2 * p.max_target + 1) + p.classes) * 8);
}

}  // namespace cuda
}  // namespace TT_NS
