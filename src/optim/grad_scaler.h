// GradScaler: multiplies losses, so that small gradients do not underflow in float16, and divides
// the gradients before a step. Steps with inf or nan are skipped and lower the scale.
#pragma once

#include "optim/captured.h"

namespace TT_NS {

constexpr uint32_t kTagGradScaler = 0x74740801;  // none of core's (core/tensor.h)

struct GradScaler {
  enum Stage : uint8_t { kReady, kUnscaled, kStepped };
  // An optimizer since the last update.
  struct Seen {
    OptimizerRef optimizer;
    Stage stage;
    bool has_gradients, found_inf;
  };
  uint32_t tag;
  RefCount refs;
  bool enabled;
  float scale;
  double growth_factor, backoff_factor;
  int64_t growth_interval;
  int64_t growth_tracker;   // steps since the scale changed
  bool checked, found_inf;  // by unscale_list since the last update
  SmallVec<Seen, 2> seen;
  static void destroy(GradScaler* s) noexcept;
};

// The numbers that scaler_unscale reads and writes besides gradients.
struct UnscaleNumbers {
  float found_inf, factor;
};
// The argument of a GradScaler's operators, through which runs read and change its scale. Also the
// gate of optim_step.
struct ScaledStep : StepGate {
  Ref<GradScaler> scaler;
  OptimizerRef optimizer;  // empty: of a list of parameters, or of the scaler alone
  HostFn begin_unscale, end_unscale;
  bool found_inf;  // by the last unscale
};
Ref<ScaledStep> new_scaled_step(GradScaler& s, Optimizer* o);

Ref<GradScaler> new_grad_scaler(bool enabled, double scale, double growth_factor,
                                double backoff_factor, int64_t growth_interval);
// scale, growth_factor, backoff_factor, growth_interval, growth_tracker.
void set_scaler_state(GradScaler& s, const double state[5]);
// Returns t multiplied by the scale.
TensorRef scale_loss(GradScaler& s, const Tensor& t);
// While a graph is captured, the functions below call operators, which its runs repeat.
// Divides the gradients by the scale.
void unscale(GradScaler& s, Optimizer& o);
// The same for parameters of an optimizer of the application's own; returns whether a gradient has
// inf or nan.
bool unscale_list(GradScaler& s, TensorSpan params);
// Takes the step unless a gradient has inf or nan; returns whether it did.
bool scaled_step(GradScaler& s, Optimizer& o);
// Ends an iteration: the scale follows from the steps, or is new_scale (0: absent).
void update_scale(GradScaler& s, double new_scale);

}  // namespace TT_NS
