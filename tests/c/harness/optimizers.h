/* Every class of optimizers, for tests that train with each. */
#ifndef TT_TEST_OPTIMIZERS_H
#define TT_TEST_OPTIMIZERS_H

#include "harness.h"

typedef tt_status (*Construct)(tt_tensor* const* params, int64_t n, tt_optimizer** out);

static tt_status sgd(tt_tensor* const* params, int64_t n, tt_optimizer** out) {
  const tt_optim_sgd_opts o = {.set = TT_OPTIM_SGD_LR, .lr = 0.05};
  return tt_optim_sgd(c, params, n, &o, out);
}
/* Its first step differs from the others. */
static tt_status momentum(tt_tensor* const* params, int64_t n, tt_optimizer** out) {
  const tt_optim_sgd_opts o = {.set = TT_OPTIM_SGD_LR | TT_OPTIM_SGD_MOMENTUM |
                                      TT_OPTIM_SGD_DAMPENING | TT_OPTIM_SGD_WEIGHT_DECAY,
                               .lr = 0.05,
                               .momentum = 0.9,
                               .dampening = 0.5,
                               .weight_decay = 0.01};
  return tt_optim_sgd(c, params, n, &o, out);
}
static tt_status adam(tt_tensor* const* params, int64_t n, tt_optimizer** out) {
  const tt_optim_adam_opts o = {.set = TT_OPTIM_ADAM_AMSGRAD, .amsgrad = 1};
  return tt_optim_adam(c, params, n, &o, out);
}
#define WITH_DEFAULTS(name, construct)                                             \
  static tt_status name(tt_tensor* const* params, int64_t n, tt_optimizer** out) { \
    return construct(c, params, n, NULL, out);                                     \
  }
WITH_DEFAULTS(adamw, tt_optim_adamw)
WITH_DEFAULTS(rmsprop, tt_optim_rmsprop)
WITH_DEFAULTS(adagrad, tt_optim_adagrad)
WITH_DEFAULTS(adadelta, tt_optim_adadelta)
WITH_DEFAULTS(adamax, tt_optim_adamax)
WITH_DEFAULTS(nadam, tt_optim_nadam)
WITH_DEFAULTS(radam, tt_optim_radam)
WITH_DEFAULTS(asgd, tt_optim_asgd)
WITH_DEFAULTS(rprop, tt_optim_rprop)
WITH_DEFAULTS(lion, tt_optim_lion)
WITH_DEFAULTS(adafactor, tt_optim_adafactor)
#undef WITH_DEFAULTS
/* Trains the first parameter alone: the others need not be matrices. */
static tt_status muon(tt_tensor* const* params, int64_t n, tt_optimizer** out) {
  const tt_optim_muon_opts o = {.set = TT_OPTIM_MUON_LR, .lr = 0.05};
  return n ? tt_optim_muon(c, params, 1, &o, out) : TT_INVALID_ARG;
}
static const struct {
  const char* name;
  Construct construct;
} kOptimizers[] = {{"SGD", sgd},           {"momentum", momentum},   {"Adam", adam},
                   {"AdamW", adamw},       {"RMSprop", rmsprop},     {"Adagrad", adagrad},
                   {"Adadelta", adadelta}, {"Adamax", adamax},       {"NAdam", nadam},
                   {"RAdam", radam},       {"ASGD", asgd},           {"Rprop", rprop},
                   {"Lion", lion},         {"Adafactor", adafactor}, {"Muon", muon}};
enum { kNumOptimizers = sizeof kOptimizers / sizeof kOptimizers[0] };

#endif
