// AveragedModel: a copy of a model with averages of its parameters.
#pragma once

#include "nn/module.h"

namespace TT_NS {

// decay: of an exponential moving average; empty: the mean of all models.
ModuleRef averaged_model(Module& model, const Opt<double>& decay, bool use_buffers);
void update_parameters(Module& averaged, Module& model);

}  // namespace TT_NS
