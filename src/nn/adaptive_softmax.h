// What an AdaptiveLogSoftmaxWithLoss computes beside its loss, for input (N, in_features).
#pragma once

#include "nn/module.h"

namespace TT_NS {

TensorRef adaptive_log_prob(Module& m, const Tensor& input);  // (N, n_classes)
TensorRef adaptive_predict(Module& m, const Tensor& input);   // (N), the most probable classes

}  // namespace TT_NS
