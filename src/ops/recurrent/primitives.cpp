// The primitives of recurrent networks: one layer in one direction over all steps, and its
// gradient.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/device_kernels.h"
#include "ops/impl.h"
#include "plan/recurrent_build.h"

namespace TT_NS::impl {

// ---- weights as panels ----

// Appends zeros to dimension dim up to a multiple of n.
static TensorRef padded(const Tensor& t, int64_t dim, int64_t n) {
  const int64_t missing = round_up(t.size(dim), n) - t.size(dim);
  if (!missing) return TensorRef::share(&t);
  Shape pad;
  for (int64_t d = t.ndim - 1; d >= dim; d--) {
    pad.push_back(0);
    pad.push_back(d == dim ? missing : 0);
  }
  return op::constant_pad_nd(t, pad, Scalar(0));
}

// A weight as it is in panels. Tensor cores read `pair` positions of the depth at once, and the
// depth is padded for them.
struct PanelForm {
  Dtype dtype;
  int64_t pair, depth_unit;
};
// Kernels of a device multiply halves by tensor cores.
static PanelForm panel_form(const Tensor& w, Dtype computed) {
  if (w.dtype == computed || !has_device_kernels(w.device)) return {computed, 1, 1};
  return {w.dtype, kRecurrentPair, kRecurrentDepthUnit};
}

// Panels of `columns` rows of w (n, depth): [block][depth][columns], or, in pairs,
// [block][depth / pair][columns][pair].
static TensorRef panels_of_rows(const Tensor& given, const PanelForm& f, int64_t columns) {
  const TensorRef w = cast_input(given, f.dtype);
  const TensorRef whole = padded(*padded(*w, 1, f.depth_unit), 0, columns);
  const int64_t blocks[4] = {whole->size(0) / columns, columns, whole->size(1) / f.pair, f.pair};
  const int64_t order[4] = {0, 2, 1, 3};
  return dense_input(*op::permute(*op::reshape(*whole, blocks), order));
}
// The same for `columns` columns of w (depth, n).
static TensorRef panels_of_columns(const Tensor& given, const PanelForm& f, int64_t columns) {
  const TensorRef w = cast_input(given, f.dtype);
  const TensorRef whole = padded(*padded(*w, 0, f.depth_unit), 1, columns);
  const int64_t blocks[4] = {whole->size(0) / f.pair, f.pair, whole->size(1) / columns, columns};
  const int64_t order[4] = {2, 0, 3, 1};
  return dense_input(*op::permute(*op::reshape(*whole, blocks), order));
}
// The same for the rows of all gates of `lanes` hidden units, whose columns are [gate][lane].
static TensorRef panels_of_gates(const Tensor& given, const PanelForm& f, int64_t gates,
                                 int64_t lanes) {
  const TensorRef w = cast_input(given, f.dtype);
  const int64_t by_gate[3] = {gates, w->size(0) / gates, w->size(1)};
  const TensorRef deep = padded(*op::reshape(*w, by_gate), 2, f.depth_unit);
  const TensorRef whole = padded(*deep, 1, lanes);
  const int64_t blocks[5] = {gates, whole->size(1) / lanes, lanes, whole->size(2) / f.pair, f.pair};
  const int64_t order[5] = {1, 3, 0, 2, 4};
  return dense_input(*op::permute(*op::reshape(*whole, blocks), order));
}

// ---- the layer ----

static Dtype compute_dtype(const Tensor& t) { return t.item_size() == 2 ? Dtype::kF32 : t.dtype; }
static TensorRef narrow_to(TensorRef t, Dtype dtype) {
  return t->dtype == dtype ? std::move(t) : op::to_dtype(*t, dtype);
}

static void check_matrix(const Tensor* t, const char* name, Dtype dtype, int64_t rows,
                         int64_t columns) {
  const int64_t want[2] = {rows, columns};
  if (t && t->dtype != dtype)
    fail_arg(TT_DTYPE, name, "{} is {}, gates is {}: must have the same dtype", name, fmt(t->dtype),
             fmt(dtype));
  if (t && !same(t->sizes(), Ints(want)))
    fail_arg(TT_SHAPE, name, "{} is {}: must be {}", name, t->sizes(), Ints(want));
}

static void check_batch_sizes(Ints sizes, int64_t total) {
  int64_t left = total;
  for (int64_t t = 0; t < sizes.n && left >= 0; t++) {
    if (sizes[t] < 0 || (t && sizes[t] > sizes[t - 1]))
      fail_arg(TT_INVALID_ARG, "batch_sizes",
               "batch_sizes[{}] is {}: must not be negative or increase", t, sizes[t]);
    left -= sizes[t];
  }
  if (!sizes.n || left != 0)
    fail_arg(TT_INVALID_ARG, "batch_sizes", "batch_sizes {}: must add up to the {} rows", sizes,
             total);
}

// Arrays of the compute dtype, row-major, and the fields of the plan that all steps share.
struct RecurrentLayer {
  RecurrentPlan plan;
  int64_t total, gates, saved;
  TensorRef h0, c0;

  RecurrentLayer(int64_t mode, const Tensor& initial_h, const Tensor* initial_c, const Tensor& w_hh,
                 const Tensor* w_hr, int64_t rows, Ints batch_sizes) {
    if (mode < kRnnRelu || mode > kGru || (mode == kLstm) != (initial_c != nullptr))
      fail_arg(TT_INVALID_ARG, "mode", "mode is {}: must be 0 to 3, 2 with c0", mode);
    if (!is_float(w_hh.dtype) || w_hh.ndim != 2)
      fail_arg(TT_DTYPE, "w_hh", "w_hh is {} {}: must be a floating matrix", fmt(w_hh.dtype),
               w_hh.sizes());
    total = rows;
    plan.mode = int32_t(mode);
    gates = recurrent_gates(plan.mode);
    saved = recurrent_saved(plan.mode);
    plan.hidden = w_hh.size(0) / gates;
    plan.state = w_hh.size(1);
    plan.projects = w_hr != nullptr;
    check_batch_sizes(batch_sizes, total);
    check_matrix(&w_hh, "w_hh", w_hh.dtype, gates * plan.hidden, w_hr ? plan.state : plan.hidden);
    check_matrix(w_hr, "w_hr", w_hh.dtype, plan.state, plan.hidden);
    check_matrix(&initial_h, "h0", w_hh.dtype, batch_sizes[0], plan.state);
    check_matrix(initial_c, "c0", w_hh.dtype, batch_sizes[0], plan.hidden);
    const Dtype d = compute_dtype(w_hh);
    plan.dtype = int32_t(d);
    plan.projection = plan.bias = nullptr;
    plan.middle = plan.output = plan.cells = plan.saved = nullptr;
    plan.gates = plan.later = plan.grad = plan.grad_cells = plan.output_read = nullptr;
    plan.dgates = plan.dhidden = plan.carry = nullptr;
    plan.later_rows = 0;
    h0 = cast_input(initial_h, d);
    if (initial_c) c0 = cast_input(*initial_c, d);
  }

  Dtype dtype() const { return Dtype(plan.dtype); }
  TensorRef matrix(int64_t rows, int64_t columns, Device device) const {
    const int64_t sizes[2] = {rows, columns};
    checked_numel(sizes, dtype(), "result");
    return new_tensor(sizes, dtype(), device);
  }
  // Row `at` of a matrix of `width` columns; NULL if there is none.
  char* row(const TensorRef& t, int64_t at, int64_t width) const {
    if (!t) return nullptr;
    return t->data + at * width * kItemSize[plan.dtype];
  }
  // The state before a step, given that of all steps.
  RecurrentRows rows_before(const TensorRef& all, const TensorRef& first, RecurrentStep before,
                            int64_t width) const {
    return {row(all, before.at, width), first ? first->data : nullptr, before.rows};
  }
};

TensorTriple recurrent_layer(Call, const Tensor& gates, const Tensor& h0, const Tensor* c0,
                             const Tensor& w_hh, const Tensor* b_hh, const Tensor* w_hr,
                             Ints batch_sizes, int64_t mode, bool reverse) {
  MaskGuard no_grad(bit(kKeyAutograd));
  if (gates.ndim != 2)
    fail_arg(TT_SHAPE, "gates", "gates is {}: must have 2 dimensions", gates.sizes());
  RecurrentLayer layer(mode, h0, c0, w_hh, w_hr, gates.size(0), batch_sizes);
  RecurrentPlan& p = layer.plan;
  check_matrix(&gates, "gates", w_hh.dtype, layer.total, layer.gates * p.hidden);
  const int64_t row[1] = {layer.gates * p.hidden};
  if (b_hh && (b_hh->dtype != w_hh.dtype || !same(b_hh->sizes(), Ints(row))))
    fail_arg(TT_SHAPE, "b_hh", "b_hh is {} {}: must be {} {}", fmt(b_hh->dtype), b_hh->sizes(),
             fmt(w_hh.dtype), Ints(row));
  const Device device = gates.device;
  const Dtype d = layer.dtype();
  const bool lstm = mode == kLstm;
  TensorRef x = cast_input(gates, d);
  TensorRef bias = b_hh ? cast_input(*b_hh, d) : TensorRef();
  const PanelForm form = panel_form(w_hh, d);
  TensorRef weight = panels_of_gates(w_hh, form, layer.gates, recurrent_lanes(p.mode));
  TensorRef projection, middle;
  if (w_hr) projection = panels_of_rows(*w_hr, form, kRecurrentProjectedLanes);
  if (w_hr) middle = layer.matrix(batch_sizes[0], p.hidden, device);
  TensorRef output = layer.matrix(layer.total, p.state, device);
  TensorRef cells = layer.matrix(lstm ? layer.total : 0, p.hidden, device);
  TensorRef saved = layer.matrix(layer.saved ? layer.total : 0, layer.saved * p.hidden, device);
  p.weight = weight->data;
  p.weight_dtype = int32_t(form.dtype);
  if (projection) p.projection = projection->data;
  if (middle) p.middle = middle->data;
  if (bias) p.bias = bias->data;
  RecurrentWalk walk(batch_sizes, layer.total, reverse);
  const int64_t steps = device.type == TT_META || !output->numel ? 0 : batch_sizes.n;
  for (int64_t k = 0; k < steps; k++, walk.next()) {
    const int64_t at = walk.now().at;
    p.rows = walk.now().rows;
    if (!p.rows) continue;
    p.h = layer.rows_before(output, layer.h0, walk.before(), p.state);
    p.c = layer.rows_before(cells, layer.c0, walk.before(), p.hidden);
    p.gates = layer.row(x, at, layer.gates * p.hidden);
    p.output = layer.row(output, at, p.state);
    p.cells = layer.row(cells, at, p.hidden);
    p.saved = layer.row(saved, at, layer.saved * p.hidden);
    recurrent_forward_stages(&p);
    launch_stages(kernel_recurrent_step, device, &p.run);
  }
  return {narrow_to(std::move(output), gates.dtype), narrow_to(std::move(cells), gates.dtype),
          std::move(saved)};
}

TensorTriple recurrent_layer_backward(Call, const Tensor* grad, const Tensor* grad_cells,
                                      const Tensor& h0, const Tensor* c0, const Tensor& w_hh,
                                      const Tensor* w_hr, const Tensor& output, const Tensor& cells,
                                      const Tensor& saved, Ints batch_sizes, int64_t mode,
                                      bool reverse) {
  MaskGuard no_grad(bit(kKeyAutograd));
  RecurrentLayer layer(mode, h0, c0, w_hh, w_hr, output.size(0), batch_sizes);
  RecurrentPlan& p = layer.plan;
  const Device device = output.device;
  const Dtype d = layer.dtype();
  const int64_t width = layer.gates * p.hidden;
  const bool gru = mode == kGru;
  const PanelForm form = panel_form(w_hh, d);
  TensorRef weight = panels_of_columns(w_hh, form, kRecurrentBackwardLanes);
  TensorRef projection;
  if (w_hr) projection = panels_of_columns(*w_hr, form, kRecurrentBackwardLanes);
  TensorRef out = cast_input(output, d);
  TensorRef c = cast_input(cells, d);
  TensorRef kept = dense_input(saved);
  TensorRef g = grad ? cast_input(*grad, d) : TensorRef();
  TensorRef g_cells = grad_cells && mode == kLstm ? cast_input(*grad_cells, d) : TensorRef();
  const int64_t hidden_width = gru ? width : p.state;
  TensorRef dgates = layer.matrix(layer.total, width, device);
  TensorRef dhidden = layer.matrix(gru || w_hr ? layer.total : 0, hidden_width, device);
  const int64_t carried[2] = {layer.saved ? batch_sizes[0] : 0, p.hidden};
  TensorRef carry = op::zeros(carried, d, device);
  p.weight = weight->data;
  p.weight_dtype = int32_t(form.dtype);
  if (projection) p.projection = projection->data;
  p.carry = carry->data;
  // In the opposite order, the step after comes before.
  RecurrentWalk walk(batch_sizes, layer.total, !reverse);
  const int64_t steps = device.type == TT_META || !out->numel ? 0 : batch_sizes.n;
  for (int64_t k = 0; k < steps; k++, walk.next()) {
    const int64_t at = walk.now().at;
    p.rows = walk.now().rows;
    if (!p.rows) continue;
    p.h = layer.rows_before(out, layer.h0, walk.after(), p.state);
    p.c = layer.rows_before(c, layer.c0, walk.after(), p.hidden);
    p.later = layer.row(gru ? dhidden : dgates, walk.before().at, width);
    p.later_rows = walk.before().rows;
    p.grad = layer.row(g, at, p.state);
    p.grad_cells = layer.row(g_cells, at, p.hidden);
    p.output_read = layer.row(out, at, p.state);
    p.cells = layer.row(c, at, p.hidden);
    p.saved = layer.row(kept, at, layer.saved * p.hidden);
    p.dgates = layer.row(dgates, at, width);
    p.dhidden = layer.row(dhidden, at, hidden_width);
    recurrent_backward_stages(&p);
    launch_stages(kernel_recurrent_step_backward, device, &p.run);
  }
  return {narrow_to(std::move(dgates), output.dtype), narrow_to(std::move(dhidden), output.dtype),
          narrow_to(std::move(carry), output.dtype)};
}

}  // namespace TT_NS::impl
