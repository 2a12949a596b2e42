// Operators that the application registers with a runtime: a schema parsed at run time, and
// callbacks for values and gradients.
#pragma once

#include "core/ctx.h"
#include "dispatch/op_info.h"

namespace TT_NS {

struct CustomOpDef {
  const char* schema;
  void* user;
  tt_status (*compute)(void* user, tt_ctx* ctx, const tt_value* args, int64_t n_args,
                       tt_tensor** outs, int64_t n_outs);
  tt_status (*backward)(void* user, tt_ctx* ctx, tt_tensor* const* grads, int64_t n_outs,
                        const tt_value* args, int64_t n_args, tt_tensor* const* results,
                        tt_tensor** input_grads, int64_t n_inputs);
  void (*drop)(void* user);
};

// Adds the operator to the runtime's list; def.drop runs exactly once, also on failure. The name
// must be new: `builtin` looks up the library's operators.
void register_custom_op(Runtime* rt, const CustomOpDef& def,
                        const OpInfo* (*builtin)(const char* name));
const OpInfo* find_custom_op(Runtime* rt, const char* name) noexcept;

}  // namespace TT_NS
