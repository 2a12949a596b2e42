#include "autograd/wrap.h"

namespace TT_NS {

void fail_into_grad() {
  fail_arg(TT_AUTOGRAD, "dst",
           "an _into call records no gradient: neither dst nor, while gradients are recorded, an "
           "input may require one");
}
void fail_no_formula(const char* arg) {
  fail_arg(TT_NOT_IMPLEMENTED, arg,
           "{} requires a gradient, but this operator has no formula for it: detach it first", arg);
}

}  // namespace TT_NS
