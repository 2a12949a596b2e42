#include "graph/quantize.h"

#include "graph/args.h"
#include "graph/edit.h"
#include "graph/passes/passes.h"
#include "graph/plan/plan.h"
#include "ops/gen/ops.h"

#include <math.h>

namespace TT_NS {

namespace {

constexpr int64_t kLow = 0, kHigh = 255;  // the integers of activations
constexpr int64_t kBins = 2048;
constexpr int64_t kCuts = 100;  // candidates for each end of a range
constexpr float kLeastScale = 0x1p-23f;
enum ConvArg { kInput, kWeight, kBias, kStride, kPadding, kDilation, kTransposed, kGroups = 8 };

struct Range {
  float low = 0, high = 0;  // includes 0
  float scale() const { return max((high - low) / float(kHigh - kLow), kLeastScale); }
  int64_t zero() const { return clamp(int64_t(rintf(-low / scale())), kLow, kHigh); }
};

// A node to quantise: its position in the graph, and what its input was in the samples.
struct Site {
  int64_t node = 0;
  Range range;
  SmallVec<int64_t, 1> bins;  // counts of numbers between low and high
};

// ---- which nodes ----

class Quantizer {
 public:
  Quantizer(const Graph& g, const QuantizeOptions& o) : g_(copy_graph(g)), options_(o) {}
  Ref<Graph> run(TensorSpan samples);

 private:
  bool fits(const IrNode& n) const;
  bool is_linear(const IrNode& n) const { return n.op == &op_linear_rows.info; }
  bool is_observed(const Site& s) const {
    return !(options_.per_row && is_linear(g_->nodes[s.node]));
  }
  void find_sites();
  void observe(TensorSpan samples);
  void observe_batch(Plan& plan, TensorSpan batch, bool bins);
  void shrink_ranges();
  TensorRef weight_of(const IrNode& n) const;
  template <class... Args> int32_t insert(const OpInfo& op, Args... args);
  int32_t insert_rows(int32_t x, TensorRef w, TensorRef scales, const IrArg& bias);
  void quantize(const Site& site);

  Ref<Graph> g_;
  const QuantizeOptions options_;
  SmallVec<Site, 4> sites_;
  int64_t at_ = 0;  // where nodes are inserted
};

bool Quantizer::fits(const IrNode& n) const {
  const bool conv = n.op == &op_convolution.info;
  if (!conv && !is_linear(n)) return false;
  if (conv && n.args[kTransposed].i) return false;
  const IrValue& x = g_->values[n.args[kInput].values[0]];
  const IrValue& w = g_->values[n.args[kWeight].values[0]];
  const bool constant = g_->storages[w.storage].role == IrRole::kConstant;
  return constant && x.dtype == Dtype::kF32 && w.dtype == Dtype::kF32 && x.numel() && w.numel() &&
         (conv ? x.ndim() == 4 && w.ndim() == 4 : x.ndim() >= 1 && w.ndim() == 2);
}

void Quantizer::find_sites() {
  for (int64_t i = 0; i < g_->nodes.size(); i++) {
    if (!fits(g_->nodes[i])) continue;
    Site s;
    s.node = i;
    sites_.push_back(std::move(s));
  }
}

// ---- observers ----

void widen(Range& r, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (x[i] - x[i] != 0) fail(TT_INVALID_ARG, "samples lead to {}, which has no integer", x[i]);
    r.low = min(r.low, x[i]);
    r.high = max(r.high, x[i]);
  }
}

void count(Site& s, const float* x, int64_t n) {
  const float width = s.range.high - s.range.low;
  for (int64_t i = 0; i < n && width > 0; i++) {
    const auto bin = int64_t((x[i] - s.range.low) / width * float(kBins));
    s.bins[clamp(bin, int64_t(0), kBins - 1)]++;
  }
}

// The squared errors of the counted numbers if the integers cover `grid`.
double squared_error(const Site& s, const Range& grid) {
  const double width = double(s.range.high - s.range.low) / kBins;
  const double scale = grid.scale();
  const auto zero = double(grid.zero());
  double sum = 0;
  for (int64_t b = 0; b < kBins; b++) {
    if (!s.bins[b]) continue;
    const double x = double(s.range.low) + (double(b) + 0.5) * width;
    const double q = clamp(rint(x / scale) + zero, double(kLow), double(kHigh));
    const double error = (q - zero) * scale - x;
    sum += double(s.bins[b]) * error * error;
  }
  return sum;
}

// Moves the upper end, then the lower one, to where the error is smallest.
void Quantizer::shrink_ranges() {
  for (Site& s : sites_) {
    if (s.bins.empty()) continue;
    Range best = s.range;
    double least = squared_error(s, best);
    for (const bool upper : {true, false}) {
      const Range begin = best;
      for (int64_t cut = 1; cut < kCuts; cut++) {
        Range r = begin;
        const float share = 1 - float(cut) / float(kCuts);
        (upper ? r.high : r.low) *= share;
        if (!(r.high > r.low)) break;
        const double error = squared_error(s, r);
        if (error >= least) continue;
        least = error;
        best = r;
      }
    }
    s.range = best;
  }
}

void Quantizer::observe_batch(Plan& plan, TensorSpan batch, bool bins) {
  for (int64_t i = 0; i < batch.n; i++) {
    const TensorRef slot = plan_slot(plan, false, i);
    if (!same(slot->sizes(), batch[i]->sizes()) || slot->dtype != batch[i]->dtype)
      fail_arg(TT_SHAPE, "samples", "a sample of input {} is {} {}: must be {} {}", i,
               fmt(batch[i]->dtype), batch[i]->sizes(), fmt(slot->dtype), slot->sizes());
    op::copy_(*slot, *batch[i]);
  }
  run_plan(plan, -1);
  int64_t k = 0;
  for (Site& s : sites_) {
    if (!is_observed(s)) continue;
    const TensorRef slot = plan_slot(plan, true, k++);
    const TensorRef x = op::contiguous(*slot);
    const auto* data = x->as<float>();
    if (bins) count(s, data, x->numel);
    else widen(s.range, data, x->numel);
  }
}

// Runs a graph whose outputs are copies of the inputs of the sites.
void Quantizer::observe(TensorSpan samples) {
  const int64_t n_inputs = g_->inputs.size();
  int64_t n_observed = 0;
  for (const Site& s : sites_) n_observed += is_observed(s);
  if (!n_observed) return;
  if (!n_inputs || samples.n < n_inputs || samples.n % n_inputs)
    fail_arg(TT_INVALID_ARG, "n", "n is {}: must be a positive multiple of the {} inputs",
             samples.n, n_inputs);
  Ref<Graph> watched = copy_graph(*g_);
  SmallVec<int32_t, 4> outputs;
  outputs.resize(n_observed);
  int64_t k = n_observed;
  for (int64_t i = sites_.size() - 1; i >= 0; i--) {
    if (!is_observed(sites_[i])) continue;
    const int64_t at = sites_[i].node;
    const int32_t x = watched->nodes[at].args[kInput].values[0];
    SmallVec<int32_t, 4> outs;
    insert_node(*watched.get(), at, op_clone.info, {tensor_arg(x), int_arg(TT_CONTIGUOUS)}, outs);
    outputs[--k] = outs[0];
  }
  set_outputs(*watched.get(), outputs);
  remove_dead_code(*watched.get());
  const Ref<Plan> plan = new_plan(watched, nullptr, 0);
  const bool histogram = options_.histogram;
  for (const bool bins : {false, true}) {
    if (bins && !histogram) break;
    for (Site& s : sites_)
      if (bins && is_observed(s)) s.bins.resize(kBins);
    for (int64_t i = 0; i < samples.n; i += n_inputs)
      observe_batch(*plan.get(), samples.slice(i, i + n_inputs), bins);
  }
  shrink_ranges();
}

// ---- rewriting ----

TensorRef Quantizer::weight_of(const IrNode& n) const {
  return op::contiguous(*constant_of(*g_, n.args[kWeight].values[0]));
}

template <class... Args> int32_t Quantizer::insert(const OpInfo& op, Args... args) {
  const int64_t before = g_->nodes.size();
  SmallVec<int32_t, 4> outs;
  insert_node(*g_, at_, op, {args...}, outs);
  at_ += g_->nodes.size() - before;
  return outs[0];
}

// linear of x, whose rows are quantised by their own ranges.
int32_t Quantizer::insert_rows(int32_t x, TensorRef w, TensorRef scales, const IrArg& bias) {
  const int64_t columns = 1;
  const int64_t k = w->size(1);
  const int64_t matrix[2] = {g_->values[x].numel() / k, k};
  Shape shape = g_->values[x].sizes;
  shape[shape.size() - 1] = w->size(0);
  const bool flat = shape.size() == 2;
  const int32_t rows = flat ? x : insert(op_reshape.info, tensor_arg(x), ints_arg(matrix));
  const int32_t least =
      insert(op_amin.info, tensor_arg(rows), ints_arg({&columns, 1}), bool_arg(false));
  const int32_t most =
      insert(op_amax.info, tensor_arg(rows), ints_arg({&columns, 1}), bool_arg(false));
  const int32_t low = insert(op_clamp.info, tensor_arg(least), IrArg(), scalar_arg(0.0));
  const int32_t high = insert(op_clamp.info, tensor_arg(most), scalar_arg(0.0), IrArg());
  const int32_t width = insert(op_sub.info, tensor_arg(high), tensor_arg(low), scalar_arg(1.0));
  const int32_t steps =
      insert(op_mul_scalar.info, tensor_arg(width), scalar_arg(1.0 / (kHigh - kLow)));
  const int32_t scale =
      insert(op_clamp.info, tensor_arg(steps), scalar_arg(double(kLeastScale)), IrArg());
  const int32_t inverse = insert(op_reciprocal.info, tensor_arg(scale));
  const int32_t below = insert(op_mul.info, tensor_arg(low), tensor_arg(inverse));
  const int32_t whole = insert(op_round.info, tensor_arg(below), int_arg(0));
  const int32_t zero = insert(op_neg.info, tensor_arg(whole));
  const int32_t zeros = insert(op_to_dtype.info, tensor_arg(zero), int_arg(int64_t(Dtype::kI32)));
  const int32_t q =
      insert(op_quantize_per_channel.info, tensor_arg(rows), tensor_arg(scale), tensor_arg(zeros),
             int_arg(0), int_arg(kLow), int_arg(kHigh), int_arg(int64_t(Dtype::kU8)));
  const int32_t weight = add_constant(*g_, std::move(w));
  const int32_t by_column = add_constant(*g_, std::move(scales));
  const int32_t y = insert(op_quantized_linear.info, tensor_arg(q), tensor_arg(scale),
                           tensor_arg(zeros), tensor_arg(weight), tensor_arg(by_column), bias);
  return flat ? y : insert(op_reshape.info, tensor_arg(y), ints_arg(shape));
}

// Weights get integers in [-127, 127] and a scale for each output.
void Quantizer::quantize(const Site& site) {
  const IrNode n = g_->nodes[site.node];
  const int32_t x = n.args[kInput].values[0];
  const int32_t old = n.outs[0];
  const TensorRef w = weight_of(n);
  const int64_t channels[1] = {w->size(0)};
  const int64_t row = w->numel / channels[0];
  TensorRef scales = new_tensor(channels, Dtype::kF32, kCpuDevice);
  for (int64_t i = 0; i < channels[0]; i++) {
    float largest = 0;
    for (int64_t j = 0; j < row; j++) largest = max(largest, fabsf(w->as<float>()[i * row + j]));
    scales->as<float>()[i] = max(largest / 127, kLeastScale);
  }
  const TensorRef zeros = op::zeros(channels, Dtype::kI32);
  at_ = site.node;
  TensorRef weight = op::quantize_per_channel(*w, *scales, *zeros, 0, -127, 127, Dtype::kI8);
  int32_t y;
  if (is_linear(n) && options_.per_row) {
    y = insert_rows(x, std::move(weight), std::move(scales), n.args[kBias]);
  } else {
    const auto scale = double(site.range.scale());
    const int64_t zero = site.range.zero();
    const int32_t q =
        insert(op_quantize_per_tensor.info, tensor_arg(x), float_arg(scale), int_arg(zero),
               int_arg(kLow), int_arg(kHigh), int_arg(int64_t(Dtype::kU8)));
    const int32_t integers = add_constant(*g_, std::move(weight));
    const int32_t steps = add_constant(*g_, std::move(scales));
    if (is_linear(n)) {
      const int64_t one[1] = {1};
      const int32_t s = add_constant(*g_, op::full(one, Scalar(scale), Dtype::kF32));
      const int32_t z = add_constant(*g_, op::full(one, Scalar(zero), Dtype::kI32));
      y = insert(op_quantized_linear.info, tensor_arg(q), tensor_arg(s), tensor_arg(z),
                 tensor_arg(integers), tensor_arg(steps), n.args[kBias]);
    } else {
      y = insert(op_quantized_conv2d.info, tensor_arg(q), float_arg(scale), int_arg(zero),
                 tensor_arg(integers), tensor_arg(steps), n.args[kBias], n.args[kStride],
                 n.args[kPadding], n.args[kDilation], n.args[kGroups]);
    }
  }
  replace_uses(*g_, old, y);
}

Ref<Graph> Quantizer::run(TensorSpan samples) {
  verify_graph(*g_);
  find_sites();
  observe(samples);
  const MaskGuard plain(~kBackendKeys | bit(kKeyCapture));
  for (int64_t i = sites_.size() - 1; i >= 0; i--) quantize(sites_[i]);
  remove_dead_code(*g_);
  verify_graph(*g_);
  return std::move(g_);
}

}  // namespace

Ref<Graph> quantized(const Graph& g, TensorSpan samples, const QuantizeOptions& options) {
  if (ctx().graph) fail(TT_INVALID_ARG, "a graph cannot be quantised while another is captured");
  return Quantizer(g, options).run(samples);
}

}  // namespace TT_NS
