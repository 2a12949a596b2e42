#include "autograd/function.h"

#include "base/finalizer.h"
#include "capi/api.h"
#include "tt.h"

using namespace TT_NS;

// Programs built before functions had rules for tangents and vmap know no fields behind drop.
constexpr size_t kLeastBytes = offsetof(tt_function_def, jvp);

static FunctionDef definition_of(const tt_function_def& def) {
  FunctionDef f = {def.name ? def.name : "function", def.user, def.forward, def.backward, def.drop};
  if (def.struct_size >= offsetof(tt_function_def, vmap)) f.jvp = def.jvp;
  if (def.struct_size >= sizeof def) f.vmap = def.vmap;
  return f;
}

tt_status tt_function_apply(tt_ctx* h, const tt_function_def* def, const tt_tensor* const* inputs,
                            int64_t n_inputs, tt_tensor** outs, int64_t n_outs) {
  for (int64_t i = 0; outs && i < n_outs; i++) outs[i] = nullptr;
  bool passed_on = false;
  tt_status status = api_call(h, "function_apply", [&](Ctx& c) {
    if (!def) fail_arg(TT_INVALID_ARG, "def", "def is NULL");
    if (def->struct_size < kLeastBytes)
      fail_arg(TT_ABI, "def", "def.struct_size is {}: must be at least {}", def->struct_size,
               kLeastBytes);
    if (!def->forward || !def->backward)
      fail_arg(TT_INVALID_ARG, "def", "def.{} is NULL: must be a function",
               def->forward ? "backward" : "forward");
    TensorSpan in = tensors_arg(inputs, n_inputs, "inputs", 2, false);
    if (n_outs < 1) fail_arg(TT_INVALID_ARG, "n_outs", "n_outs is {}: must be at least 1", n_outs);
    if (n_outs > UINT16_MAX)
      fail_arg(TT_INVALID_ARG, "n_outs", "n_outs is {}: must be at most {}", n_outs, UINT16_MAX);
    out_arg(outs, "outs", 4);
    passed_on = true;
    int64_t n = n_outs;
    give_list(c, outs, n_outs, &n, apply_function(definition_of(*def), in, n_outs));
  });
  if (!passed_on && def && def->struct_size >= kLeastBytes) run_drop(def->drop, def->user);
  return status;
}

static Function& function_arg(tt_function* h) {
  if (!h || *reinterpret_cast<const uint32_t*>(h) != kTagFunction)
    fail_handle(h, "f", 1, "function");
  return *reinterpret_cast<Function*>(h);
}

tt_status tt_function_save(tt_ctx* h, tt_function* f, const tt_tensor* const* tensors, int64_t n) {
  return api_call(h, "function_save", [&](Ctx&) {
    function_save(function_arg(f), tensors_arg(tensors, n, "tensors", 2, true));
  });
}

tt_status tt_function_saved(tt_ctx* h, tt_function* f, int64_t i, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "function_saved", [&](Ctx& c) {
    out_arg(out, "out", 3);
    if (TensorRef t = function_saved(function_arg(f), i)) give(c, out, std::move(t));
  });
}
