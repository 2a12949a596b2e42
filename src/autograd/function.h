// A differentiable function defined by two callbacks of the application.
#pragma once

#include "autograd/saved.h"

struct tt_function;

namespace TT_NS {

// Copied. drop runs exactly once, when neither the call nor a recorded node needs the function.
struct FunctionDef {
  const char* name;
  void* user;
  tt_status (*forward)(void* user, tt_ctx* ctx, tt_function* f, const tt_tensor* const* inputs,
                       int64_t n_inputs, tt_tensor** outs, int64_t n_outs);
  tt_status (*backward)(void* user, tt_ctx* ctx, tt_function* f, tt_tensor* const* grads,
                        int64_t n_outs, tt_tensor** input_grads, int64_t n_inputs);
  void (*drop)(void* user);
  // May be NULL, both.
  tt_status (*jvp)(void* user, tt_ctx* ctx, tt_function* f, tt_tensor* const* tangents,
                   int64_t n_inputs, tt_tensor** out_tangents, int64_t n_outs) = nullptr;
  tt_status (*vmap)(void* user, tt_ctx* ctx, tt_function* f, int64_t size,
                    tt_tensor* const* samples, int64_t n_inputs, tt_tensor* const* shared,
                    tt_tensor** outs, int64_t n_outs) = nullptr;
};

// Runs forward without recording; records a node if an input needs a gradient.
TensorList apply_function(const FunctionDef& def, TensorSpan inputs, int64_t n_outs);

struct Function;
// Called in forward: saves tensors for backward and jvp (NULL items stay NULL).
void function_save(Function& f, TensorSpan tensors);
// Called in backward or jvp: returns the i-th of them with its history; empty if NULL was saved.
TensorRef function_saved(Function& f, int64_t i);

// The function whose call is recorded by n; NULL if n records an operator.
Function* recorded_function(const Node& n);
const FunctionDef& def_of(const Function& f);
Span<const Saved> saved_by(const Function& f);

}  // namespace TT_NS
