// A module whose forward is a callback of the application.
#pragma once

#include "nn/module.h"

namespace TT_NS {

constexpr int64_t kMaxCustomOuts = 16;

struct CustomModuleDef {
  const char* name;
  void* user;
  tt_status (*forward)(void* user, tt_ctx* ctx, tt_module* m, const tt_tensor* const* inputs,
                       int64_t n_inputs, tt_tensor** outs, int64_t cap, int64_t* n_outs);
  // NULL: it cannot be copied.
  tt_status (*copy)(void* user, tt_ctx* ctx, void** new_user);
  void (*drop)(void* user);
};
// drop runs exactly once per user pointer, also on failure.
ModuleRef new_custom_module(const CustomModuleDef& def);

}  // namespace TT_NS
