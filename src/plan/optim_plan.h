// OptimPlan: one step of an optimizer over many tensors. POD; device code first copies the items,
// which are in CPU memory.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

enum OptimRule : int32_t {
  // of the kernel optim_step
  kOptimSgd,
  kOptimAdam,
  kOptimRmsprop,
  kOptimAdagrad,
  // of the kernel optim_rare_step
  kOptimAdadelta,
  kOptimAdamax,
  kOptimNadam,
  kOptimRadam,
  kOptimAsgd,
  kOptimRprop,
  kOptimLion
};
enum OptimFlags : uint32_t { kOptimMaximize = 1, kOptimNesterov = 2, kOptimRectified = 4 };

constexpr int kOptimStates = 3;
constexpr int64_t kOptimUnit = 16384;  // elements of a unit; the last of a tensor may hold fewer

// The factors of a step, by rule. g is the gradient, negated if kOptimMaximize, plus weight_decay *
// p if weight_decay is not 0.

// State: momentum buffer b (NULL: no momentum). In the first step b = g.
//   b = momentum b + gradient_share g
//   p -= lr (kOptimNesterov ? g + momentum b : b)
struct SgdFactors {
  double lr;
  double momentum;
  double gradient_share;  // 1 - dampening
  double weight_decay;
};

// State: m, v, maximum of v (NULL: not used).
//   p *= shrink
//   m += m_share (g - m)
//   v = beta2 v + v_share g g
//   p -= step_size m / (sqrt(v) root_scale + eps)
struct AdamFactors {
  double step_size;  // lr / (1 - beta1^step)
  double m_share;    // 1 - beta1
  double beta2;
  double v_share;     // 1 - beta2
  double root_scale;  // 1 / sqrt(1 - beta2^step)
  double eps;
  double weight_decay;
  double shrink;  // 1 - lr weight_decay if that is decoupled, else 1
};

// State: s, mean (NULL: not centered), momentum buffer b (NULL: none).
//   s = alpha s + square_share g g
//   u = g / (sqrt(s - mean mean) + eps)
//   b = momentum b + u
//   p -= lr b
struct RmspropFactors {
  double lr;
  double alpha;
  double square_share;  // 1 - alpha
  double eps;
  double weight_decay;
  double momentum;
};

// State: sum.
//   sum += g g
//   p -= lr g / (sqrt(sum) + eps)
struct AdagradFactors {
  double lr;  // divided by 1 + lr_decay (step - 1)
  double eps;
  double weight_decay;
};

// State: s, a.
//   s = rho s + square_share g g
//   d = sqrt(a + eps) / sqrt(s + eps) g
//   a = rho a + square_share d d
//   p -= lr d
struct AdadeltaFactors {
  double lr;
  double rho;
  double square_share;  // 1 - rho
  double eps;
  double weight_decay;
};

// State: m, u.
//   m += m_share (g - m)
//   u = max(beta2 u, |g| + eps); nan if either is
//   p -= step_size m / u
struct AdamaxFactors {
  double step_size;  // lr / (1 - beta1^step)
  double m_share;    // 1 - beta1
  double beta2;
  double eps;
  double weight_decay;
};

// State: m, v, which change as Adam's.
//   p *= shrink
//   p -= (g_size g + m_size m) / (sqrt(v) root_scale + eps)
struct NadamFactors {
  double g_size;   // lr (1 - mu) / (1 - product of mu up to this step)
  double m_size;   // lr mu' / (1 - that product times mu'), where mu' is that of the next step
  double m_share;  // 1 - beta1
  double beta2;
  double root_scale;  // 1 / sqrt(1 - beta2^step)
  double eps;
  double weight_decay;
  double shrink;  // as Adam's
};

// State: m, v, which change as Adam's.
//   p *= shrink
//   p -= step_size m / (kOptimRectified ? sqrt(v) + eps : 1)
struct RadamFactors {
  double step_size;  // lr / (1 - beta1^step), times rectification and bias correction if rectified
  double m_share;    // 1 - beta1
  double beta2;
  double eps;
  double weight_decay;
  double shrink;  // as Adam's
};

// State: the average a.
//   p = p shrink - eta g
//   a += mu (p - a); a = p if mu is 1
struct AsgdFactors {
  double eta;
  double mu;
  double shrink;  // 1 - lambd eta
  double weight_decay;
};

// State: the gradient of the step before h, the step size s, `first` where it is fresh.
//   s = clamp(s (g h > 0 ? plus : g h < 0 ? minus : 1), min_step, max_step)
//   g = 0 where g h < 0
//   p -= sign(g) s
//   h = g
struct RpropFactors {
  double first;
  double minus, plus;
  double min_step, max_step;
};

// State: m.
//   p = p shrink - lr sign(m + near_share (g - m))
//   m += far_share (g - m)
struct LionFactors {
  double lr;
  double near_share;  // 1 - beta1
  double far_share;   // 1 - beta2
  double shrink;      // 1 - lr weight_decay
};

union OptimFactors {
  SgdFactors sgd;
  AdamFactors adam;
  RmspropFactors rmsprop;
  AdagradFactors adagrad;
  AdadeltaFactors adadelta;
  AdamaxFactors adamax;
  NadamFactors nadam;
  RadamFactors radam;
  AsgdFactors asgd;
  RpropFactors rprop;
  LionFactors lion;
};

// One tensor: n elements (a complex number counts as two), in the same order in all arrays.
struct OptimItem {
  char* param;
  const char* grad;
  char* state[kOptimStates];
  int64_t n;
  int64_t first_unit;  // index of its first unit, counted over all items
  int32_t dtype;       // of all arrays: f16 bf16 f32 f64
  uint32_t flags;
  uint32_t fresh;  // bit k: state[k] is not initialised and counts as 0
  uint32_t pad_;
  OptimFactors factors;  // of the plan's rule
};

// Units: pieces of kOptimUnit elements of the items, in their order.
struct OptimPlan {
  Stages run;
  int32_t rule;
  int64_t n_items;
  const OptimItem* items;
};

// Clipping of gradients: n elements each (complex ones count as two), units as above.
struct ClipItem {
  char* grad;
  int64_t n;
  int64_t first_unit;
  int32_t dtype;  // f16 bf16 f32 f64
  int32_t pad_;
};
// clip_norm: stage 0 stores sum |x|^norm_type (for infinity: max |x|) of each unit in partial,
// stage 1 (one unit) the norm in *total. clip_scale: one stage; grad *= min(1, max_norm / (*total +
// 1e-6)). clip_unscale: grad *= *factor, or max_norm if factor is NULL, as it is on devices; *total
// is 1 if an element was not finite, or 0.
struct ClipPlan {
  Stages run;
  int32_t total_dtype;  // f16 bf16 f32 f64
  int64_t n_items;
  const ClipItem* items;
  double norm_type, max_norm;
  int64_t n_partial;
  double* partial;
  char* total;
  const float* factor;
};

constexpr int64_t optim_units(int64_t n) { return ceil_div(n, kOptimUnit); }

// Iterates over units: the item of a unit, and its elements [from, to).
template <class Item> struct ItemWalk {
  const Item* items;
  // index of the last item with first_unit <= unit; an empty item has the first_unit of the next
  int64_t n, at;
  TT_INLINE ItemWalk(const Item* list, int64_t count, int64_t unit) : items(list), n(count), at(0) {
    for (int64_t high = n; high - at > 1;) {
      const int64_t mid = (at + high) / 2;
      (items[mid].first_unit <= unit ? at : high) = mid;
    }
  }
  TT_INLINE const Item& item(int64_t unit, int64_t* from, int64_t* to) {
    while (at + 1 < n && items[at + 1].first_unit <= unit) at++;
    *from = (unit - items[at].first_unit) * kOptimUnit;
    *to = *from + kOptimUnit < items[at].n ? *from + kOptimUnit : items[at].n;
    return items[at];
  }
};

}  // namespace TT_NS
