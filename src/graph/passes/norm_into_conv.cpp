#include "graph/passes/passes.h"

#include "graph/args.h"
#include "ops/gen/ops.h"

namespace TT_NS {

namespace {

enum ConvArg { kConvInput, kConvWeight, kConvBias, kConvTransposed = 6, kConvGroups = 8 };
enum NormArg { kNormInput, kNormWeight, kNormBias, kNormMean, kNormVar, kNormTraining, kNormEps };

class NormFolding {
 public:
  explicit NormFolding(Graph& g);
  void run();

 private:
  bool fits(const IrNode& norm) const;
  TensorRef constant(const IrArg& a) const;
  bool is_constant(const IrArg& a) const;
  int32_t add_constant(TensorRef t);
  void fold(const IrNode& norm);

  Graph& g_;
  SmallVec<bool, 16> written_;
  SmallVec<int32_t, 16> reads_;  // of each storage, by arguments and outputs
};

NormFolding::NormFolding(Graph& g) : g_(g), written_(written_storages(g)) {
  reads_.resize(g.storages.size());
  for_each_read(g, 0, [&](int32_t v) { reads_[g.values[v].storage]++; });
}

bool NormFolding::is_constant(const IrArg& a) const {
  return a.kind == Value::kNone ||
         (a.kind == Value::kTensor &&
          g_.storages[g_.values[a.values[0]].storage].role == IrRole::kConstant);
}

// The results of the convolution are read by the normalization only, and all that both add and
// multiply is known.
bool NormFolding::fits(const IrNode& norm) const {
  if (norm.op != &op_native_batch_norm.info || norm.args[kNormTraining].i) return false;
  const int32_t stats = norm.outs[1];
  if (stats >= 0 && reads_[g_.values[stats].storage]) return false;
  const IrValue& x = g_.values[norm.args[kNormInput].values[0]];
  const IrValue& y = g_.values[norm.outs[0]];
  if (x.node < 0 || x.out != 0 || reads_[x.storage] != 1 || written_[x.storage] ||
      !same(x.sizes, y.sizes) || !same(x.strides, y.strides) || x.dtype != y.dtype)
    return false;
  const IrNode& conv = g_.nodes[x.node];
  if (conv.op != &op_convolution.info || is_view_out(g_, conv, 0)) return false;
  if (conv.args[kConvTransposed].i) return false;
  bool known = is_constant(conv.args[kConvWeight]) && is_constant(conv.args[kConvBias]);
  for (const int32_t k : {kNormWeight, kNormBias, kNormMean, kNormVar})
    known = known && is_constant(norm.args[k]);
  return known && norm.args[kNormMean].kind == Value::kTensor;
}

TensorRef NormFolding::constant(const IrArg& a) const {
  if (a.kind == Value::kNone) return {};
  return constant_of(g_, a.values[0]);
}

int32_t NormFolding::add_constant(TensorRef t) {
  written_.push_back(false);
  reads_.push_back(1);
  return TT_NS::add_constant(g_, std::move(t));
}

// factor = weight / sqrt(var + eps); the convolution's weights are multiplied by it in double, its
// bias becomes (bias - mean) * factor + the bias of the normalization.
void NormFolding::fold(const IrNode& norm) {
  const int32_t x = norm.args[kNormInput].values[0];
  const int32_t y = norm.outs[0];
  const int32_t at = g_.values[x].node;
  const auto wide = [&](const IrArg& a) {
    const TensorRef t = constant(a);
    return t ? op::to_dtype(*t, Dtype::kF64) : TensorRef();
  };
  const IrNode& conv = g_.nodes[at];
  const TensorRef old_weight = constant(conv.args[kConvWeight]);
  const Dtype dtype = old_weight->dtype;
  const MaskGuard plain(~kBackendKeys | bit(kKeyCapture));
  TensorRef factor = op::rsqrt(*op::add(*wide(norm.args[kNormVar]), norm.args[kNormEps].f));
  if (const TensorRef w = wide(norm.args[kNormWeight])) factor = op::mul(*factor, *w);
  TensorRef bias = op::neg(*wide(norm.args[kNormMean]));
  if (const TensorRef b = wide(conv.args[kConvBias])) bias = op::add(*bias, *b);
  bias = op::mul(*bias, *factor);
  if (const TensorRef b = wide(norm.args[kNormBias])) bias = op::add(*bias, *b);
  Shape shape;
  for (int64_t d = 0; d < old_weight->ndim; d++) shape.push_back(d ? 1 : factor->numel);
  TensorRef weight = op::mul(*op::to_dtype(*old_weight, Dtype::kF64), *op::reshape(*factor, shape));
  const int32_t new_weight = add_constant(op::to_dtype(*weight, dtype));
  const int32_t new_bias = add_constant(op::to_dtype(*bias, dtype));
  g_.nodes[at].args[kConvWeight] = tensor_arg(new_weight);
  g_.nodes[at].args[kConvBias] = tensor_arg(new_bias);
  // Every view of the normalization's result becomes one of the convolution's.
  SmallVec<int32_t, 16> stand_in;
  const IrValue made = g_.values[x];
  for (int32_t v = g_.storages[g_.values[y].storage].last_value; v >= 0;
       v = g_.values[v].previous) {
    const IrValue old = g_.values[v];
    const uint32_t version = made.version + (old.version - g_.values[y].version);
    stand_in.resize(g_.values.size() + 1, -1);
    const int32_t node = old.node == g_.values[y].node ? at : old.node;
    stand_in[v] =
        g_.value(made.storage, version, old.dtype, old.offset - g_.values[y].offset + made.offset,
                 old.sizes, old.strides, node, node == at ? -1 : old.out);
  }
  reads_[made.storage] = reads_[g_.values[y].storage];
  written_[made.storage] = written_[g_.values[y].storage];
  const auto replace = [&](int32_t& v) {
    if (v >= 0 && v < stand_in.size() && stand_in[v] >= 0) v = stand_in[v];
  };
  for_each_read(g_, at + 1, replace);
  for (int64_t i = at + 1; i < g_.nodes.size(); i++)
    for (int32_t& v : g_.nodes[i].outs) replace(v);
}

void NormFolding::run() {
  SmallVec<bool, 16> keep;
  for (int64_t i = 0; i < g_.nodes.size(); i++) {
    keep.push_back(!fits(g_.nodes[i]));
    if (!keep[i]) fold(g_.nodes[i]);
  }
  remove_nodes(g_, keep);
}

}  // namespace

void fold_norms_into_convs(Graph& g) {
  if (ctx().graph) fail(TT_INVALID_ARG, "a graph cannot be folded while another is captured");
  NormFolding(g).run();
}

}  // namespace TT_NS
