// Helpers for gradients of random operators.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

double dropout_scale(double p) { return p == 1 ? 0 : 1 / (1 - p); }

}  // namespace TT_NS::formula
