#include "nn/averaged_model.h"

#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "ops/undo.h"

namespace TT_NS {

namespace {

struct Args {
  Opt<double> decay;
  bool use_buffers;
};

TensorList run(Module& m, TensorSpan inputs) {
  const ModuleRef own = m.children[0].module;
  return forward(*own, inputs);
}

constinit const ModuleType kType = layer_type<Args>("AveragedModel", 0, INT32_MAX, run, nullptr);

}  // namespace

ModuleRef averaged_model(Module& model, const Opt<double>& decay, bool use_buffers) {
  if (decay && !(*decay >= 0 && *decay <= 1))
    fail_arg(TT_INVALID_ARG, "decay", "decay is {}: must be in [0, 1]", *decay);
  const Args args = {decay, use_buffers};
  ModuleRef m = new_layer(&kType, &args);
  m->slots.push_back({Text("n_averaged"), op::zeros({}, Dtype::kI64, kCpuDevice), true, true});
  set_child(*m, "module", *deep_copy(model));
  return m;
}

void update_parameters(Module& averaged, Module& model) {
  if (averaged.type != &kType)
    fail_arg(TT_INVALID_ARG, "m", "m is a {}: must be an AveragedModel", averaged.type->name);
  check_not_frozen(averaged);
  const ModuleKeepAlive kept(averaged);
  const Args& a = args_of<Args>(averaged);
  Tensor& count = const_cast<Tensor&>(averaged.slot(0));
  if (count.numel != 1)
    fail_arg(TT_INVALID_ARG, "m", "n_averaged is {}: must have one element", count.sizes());
  const double n = read_scalar(count).real();
  double share = a.decay ? 1 - *a.decay : 1 / (n + 1);
  if (n == 0) share = 1;
  const ModuleRef own = averaged.children[0].module;
  average(*own, model, share, a.use_buffers);
  const MaskGuard no_grad(bit(kKeyAutograd));
  op::add_(count, kScalar<1>);
}

}  // namespace TT_NS
