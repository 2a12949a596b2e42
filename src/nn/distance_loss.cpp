#include "nn/distance_loss.h"

#include "base/finalizer.h"
#include "nn/layer.h"
#include "ops/gen/ops.h"

namespace TT_NS {

namespace {

// Copies of the module share it.
struct Distance {
  RefCount refs;
  DistanceFunction f;
  static void destroy(Distance* d) noexcept {
    const DistanceFunction f = d->f;
    drop_and_free(d, max(sizeof *d, kDropBytes), f.drop, f.user);
  }
  TensorRef operator()(const Tensor& a, const Tensor& b) const;
};
struct Args {
  Ref<Distance> distance;
  double margin;
  bool swap;
  int64_t reduction;
};

TensorRef Distance::operator()(const Tensor& a, const Tensor& b) const {
  if (!f.fn) return op::pairwise_distance(a, b);
  const Tensor* const pair[2] = {&a, &b};
  TensorList found = call_function(f.fn, f.user, {pair, 2});
  if (found.size() != 1)
    fail(TT_CALLBACK, "the distance function returned {} results: must return one", found.size());
  return std::move(found[0]);
}

TensorList run(Module& m, TensorSpan in) {
  const LayerName named("TripletMarginWithDistanceLoss");
  const Args& a = args_of<Args>(m);
  const Ref<Distance> kept = a.distance;
  const Distance& distance = *kept;
  const Tensor& anchor = *in[0];
  const Tensor& positive = *in[1];
  const Tensor& negative = *in[2];
  if (anchor.ndim != positive.ndim || anchor.ndim != negative.ndim)
    fail_arg(TT_SHAPE, "input",
             "anchor is {}, positive {}, negative {}: must have the same number of dimensions",
             anchor.sizes(), positive.sizes(), negative.sizes());
  const TensorRef near = distance(anchor, positive);
  TensorRef far = distance(anchor, negative);
  if (a.swap) far = op::minimum(*far, *distance(positive, negative));
  const TensorRef over = op::add(*op::sub(*near, *far), Scalar(a.margin));
  TensorRef loss = op::clamp_min(*over, Scalar(0.0));
  if (a.reduction == 0) return one(std::move(loss));
  return one(a.reduction == 1 ? op::mean(*loss) : op::sum(*loss));
}

TT_COLD void describe(const Module& m, Text& t) {
  const Args& a = args_of<Args>(m);
  put(t, "margin", a.margin);
  put(t, "swap", a.swap);
}

constinit const ModuleType kType =
    layer_type<Args>("TripletMarginWithDistanceLoss", 3, 3, run, describe);

}  // namespace

ModuleRef triplet_margin_with_distance_loss(const DistanceFunction& f, double margin, bool swap,
                                            int64_t reduction) {
  void* block = heap_alloc(tls.heap, max(sizeof(Distance), kDropBytes));
  if (!block) {
    run_drop(f.drop, f.user);
    fail_oom(sizeof(Distance));
  }
  const auto distance = Ref<Distance>::adopt(new (block) Distance{1, f});
  const Args args = {distance, margin, swap, reduction};
  return new_layer(&kType, &args);
}

}  // namespace TT_NS
