// Clips gradients: one pass computes the norm, another scales if necessary.
#include "autograd/node.h"
#include "core/graph_hooks.h"
#include "ext/mirror.h"
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "ops/undo.h"
#include "optim/grad_scaler.h"

#include <string.h>

namespace TT_NS {

static TensorList gradients(TensorSpan params) {
  TensorList grads;
  grads.reserve(params.n);
  for (const Tensor* p : params) note_grad(*p, false);
  Lock lock(shared_lock);
  for (const Tensor* p : params)
    if (Tensor* g = borrow_grad(lock, *p)) grads.push_back(TensorRef::share(g));
  return grads;
}

// Work in units, of which a gradient has a whole number, and in elements.
struct Amount {
  int64_t units = 0;
  int64_t elements = 0;
};

class Clip {
 public:
  Clip(Span<const TensorRef> grads, double max_norm, double norm_type) : grads_(grads) {
    plan_.max_norm = max_norm;
    plan_.norm_type = norm_type;
  }
  TensorRef norm();
  void scale();
  void scale_by(const Tensor& total);
  bool unscale();
  void unscale_by(Object& calls);

 private:
  void check();
  Amount add_gradients();
  void prepare_scale(const Amount& all);
  void launch_unscale();
  void write(const Kernel& kernel);
  int64_t add(SmallVec<ClipItem, 8>& items, const Tensor& t, int64_t units);

  Span<const TensorRef> grads_;
  ExtMirrors mirrors_;                // of gradients on a device of the application
  SmallVec<const Tensor*, 8> where_;  // the gradients, or their mirrors
  Device place_;                      // device of these
  ClipPlan plan_ = {};
  TensorRef total_;
  TensorList copies_;  // dense copies of gradients that are not dense
  SmallVec<ClipItem, 8> items_;
  TensorRef stored_;  // items_, for the plan
};

static int64_t grain_of(const Amount& all) {
  const int64_t grain = all.elements ? kParallelGrain * all.units / all.elements : 1;
  return grain < 1 ? 1 : grain;
}

// The items in memory of their own, which outlasts the call for those that record its launches.
static TensorRef stored(Span<const ClipItem> items) {
  const int64_t bytes = items.n * int64_t(sizeof(ClipItem));
  TensorRef t = new_tensor(Ints(&bytes, 1), Dtype::kU8, kCpuDevice);
  memcpy(t->data, items.ptr, size_t(bytes));
  note_host_write(*t);
  return t;
}
static const ClipItem* items_in(const Tensor& t) {
  return reinterpret_cast<const ClipItem*>(t.data);
}

int64_t Clip::add(SmallVec<ClipItem, 8>& items, const Tensor& t, int64_t units) {
  const int64_t n = t.numel * (is_complex(t.dtype) ? 2 : 1);
  items.push_back({t.data, n, units, int32_t(real_of(t.dtype)), 0});
  return units + optim_units(n);
}

// Checks the gradients and determines their device.
void Clip::check() {
  for (const TensorRef& g : grads_) {
    if (!(g->device == grads_[0]->device))
      fail_arg(TT_DEVICE, "params", "gradients are on {} and {}: must be on one device",
               fmt(grads_[0]->device), fmt(g->device));
    if (!is_differentiable(g->dtype))
      fail_arg(TT_DTYPE, "params", "a gradient is {}: must be floating or complex", fmt(g->dtype));
    check_writable(*g, "params");
    mirrors_.cover(*g, true);
  }
  mirrors_.fetch();
  where_.reserve(grads_.n);
  for (const TensorRef& g : grads_) where_.push_back(mirrors_.on_cpu(g.get()));
  place_ = where_[0]->device;
}

TensorRef Clip::norm() {
  check();
  Dtype dtype = real_of(grads_[0]->dtype);
  SmallVec<ClipItem, 8> read;
  TensorList values;  // operands of the norm, if they are not the gradients themselves
  Amount all;
  for (const Tensor* g : where_) {
    dtype = promote(dtype, real_of(g->dtype));
    copies_.push_back(g->dense() ? TensorRef() : dense_input(*g));
    const Tensor& held = copies_.back() ? *copies_.back() : *g;
    const bool by_modulus = is_complex(g->dtype) && plan_.norm_type != 2;
    values.push_back(by_modulus ? op::abs(held) : TensorRef());
    all.units = add(read, by_modulus ? *values.back() : held, all.units);
    add(items_, held, items_.empty() ? 0 : items_.back().first_unit + optim_units(items_.back().n));
    all.elements += items_.back().n;
  }
  Workspace partial(all.units * 8, place_);
  total_ = new_tensor(Ints(), dtype, place_);
  plan_.total_dtype = int32_t(dtype);
  plan_.total = total_->data;
  plan_.n_items = read.size();
  const TensorRef kept = stored(read);
  plan_.items = items_in(*kept);
  plan_.n_partial = all.units;
  plan_.partial = reinterpret_cast<double*>(partial.data());
  plan_.run = {{all.units, 1}, {grain_of(all), 1}, 2, 0};
  launch_stages(kernel_clip_norm, place_, &plan_.run);
  const ClipItem& last = items_.back();
  prepare_scale({last.first_unit + optim_units(last.n), all.elements});
  return total_;
}

void Clip::prepare_scale(const Amount& all) {
  plan_.n_items = items_.size();
  stored_ = stored(items_);
  plan_.items = items_in(*stored_);
  plan_.run = {{all.units, 0}, {grain_of(all), 1}, 1, 0};
}

// Makes an item of each gradient; those with gaps are copied.
Amount Clip::add_gradients() {
  Amount all;
  for (const Tensor* g : where_) {
    copies_.push_back(g->dense() ? TensorRef() : dense_input(*g));
    all.units = add(items_, copies_.back() ? *copies_.back() : *g, all.units);
    all.elements += items_.back().n;
  }
  return all;
}

// Scales by a norm that has been computed.
void Clip::scale_by(const Tensor& total) {
  check();
  const Amount all = add_gradients();
  plan_.total_dtype = int32_t(total.dtype);
  plan_.total = total.data;
  prepare_scale(all);
  scale();
}

void Clip::scale() { write(kernel_clip_scale); }

// Runs a kernel that writes the gradients: all or none.
void Clip::write(const Kernel& kernel) {
  const CommitGuard whole;
  launch_stages(kernel, place_, &plan_.run);
  for (int64_t i = 0; i < grads_.n; i++)
    if (copies_[i]) copy_elements(const_cast<Tensor&>(*where_[i]), *copies_[i]);
  mirrors_.write_back();
  for (const TensorRef& g : grads_) g->bump_version();
}

// Gradients on one device; the total is 1 if a partial is, else 0.
void Clip::launch_unscale() {
  const Amount all = add_gradients();
  const Workspace partial(all.units * 8, place_);
  plan_.total_dtype = TT_F32;
  plan_.total = total_->data;
  plan_.n_items = items_.size();
  stored_ = stored(items_);
  plan_.items = items_in(*stored_);
  plan_.n_partial = all.units;
  plan_.partial = reinterpret_cast<double*>(partial.data());
  plan_.run = {{all.units, 1}, {grain_of(all), 1}, 2, 0};
  write(kernel_clip_unscale);
}

// The factor is max_norm.
bool Clip::unscale() {
  check();
  total_ = new_tensor(Ints(), Dtype::kF32, place_);
  launch_unscale();
  return read_scalar(*total_).real() != 0;
}

// Calls on the host set the factor, and see the total.
void Clip::unscale_by(Object& calls) {
  check();
  if (place_.type != TT_CPU)
    fail(TT_NOT_IMPLEMENTED, "gradients are on {}: a graph unscales those of the CPU", fmt(place_));
  const int64_t n = sizeof(UnscaleNumbers);
  total_ = new_tensor(Ints(&n, 1), Dtype::kU8, place_);
  auto* const numbers = reinterpret_cast<UnscaleNumbers*>(total_->data);
  plan_.factor = &numbers->factor;
  const auto& scaler = static_cast<const ScaledStep&>(calls);
  run_on_host(calls, scaler.begin_unscale, *total_);
  launch_unscale();
  run_on_host(calls, scaler.end_unscale, *total_);
}

bool unscale_grads(TensorSpan params, double factor, ScaledStep* recorded) {
  const MaskGuard quiet(bit(kKeyAutograd));
  const TensorList grads = gradients(params);
  if (grads.empty()) return false;
  poll_if_watched(true);
  if (TT_UNLIKELY(recorded != nullptr)) {
    SmallVec<const Tensor*, 8> list;
    for (const TensorRef& g : grads) list.push_back(g.get());
    op::scaler_unscale(list, *recorded);
    return recorded->found_inf;
  }
  return Clip(grads, factor, 2).unscale();
}

static TensorList shared(TensorSpan list) {
  TensorList out;
  for (const Tensor* t : list) out.push_back(TensorRef::share(t));
  return out;
}
TensorRef impl::clip_norm(Call, TensorSpan grads, double norm_type) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  const TensorList list = shared(grads);
  return Clip(list, 0, norm_type).norm();
}
void impl::clip_scale(Call, TensorSpan grads, const Tensor& total, double max_norm) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  const TensorList list = shared(grads);
  Clip(list, max_norm, 0).scale_by(total);
}

void impl::scaler_unscale(Call, TensorSpan grads, Object& scaler) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  const TensorList list = shared(grads);
  Clip(list, 0, 2).unscale_by(scaler);
}

static void check_finite(const Tensor& total, double norm_type) {
  const double value = read_scalar(total).real();
  if (!(value - value == 0))
    fail_arg(TT_INVALID_ARG, "params", "the total norm of order {} is {}: cannot be clipped",
             norm_type, value);
}

// The same as operators, for modes.
static TensorRef clip_as_operators(const TensorList& grads, double max_norm, double norm_type,
                                   bool error_if_nonfinite) {
  SmallVec<const Tensor*, 8> list;
  for (const TensorRef& g : grads) list.push_back(g.get());
  TensorRef total = op::clip_norm(list, norm_type);
  if (error_if_nonfinite) check_finite(*total, norm_type);
  op::clip_scale(list, *total, max_norm);
  return total;
}

TensorRef clip_grad_norm(TensorSpan params, double max_norm, double norm_type,
                         bool error_if_nonfinite) {
  if (!(norm_type > 0))
    fail_arg(TT_INVALID_ARG, "norm_type", "norm_type is {}: must be positive or infinity",
             norm_type);
  MaskGuard quiet(bit(kKeyAutograd));
  const TensorList grads = gradients(params);
  if (grads.empty()) return new_scalar(Scalar(0.0), Dtype::kF32);
  bool ext = false;
  for (const TensorRef& g : grads) ext |= g->device.type == TT_EXT;
  if (TT_UNLIKELY(modes_see_steps()) && !ext)
    return clip_as_operators(grads, max_norm, norm_type, error_if_nonfinite);
  Clip clip(grads, max_norm, norm_type);
  TensorRef total = clip.norm();
  if (error_if_nonfinite) check_finite(*total, norm_type);
  total = op::to_device(*total, grads[0]->device);
  clip.scale();
  return total;
}

void clip_grad_value(TensorSpan params, double clip_value) {
  MaskGuard quiet(bit(kKeyAutograd));
  const Scalar low(-clip_value);
  const Scalar high(clip_value);
  const TensorList grads = gradients(params);
  for (const TensorRef& g : grads) {
    if (is_complex(g->dtype) || !is_differentiable(g->dtype))
      fail_arg(TT_DTYPE, "params", "a gradient is {}: must be floating", fmt(g->dtype));
    check_writable(*g, "params");
  }
  poll_if_watched(true);
  CommitGuard whole;
  for (const TensorRef& g : grads)
    if (g->device.type == TT_EXT) remember_values(*g);
  for (const TensorRef& g : grads) op::clamp_(*g, &low, &high);
}

}  // namespace TT_NS
