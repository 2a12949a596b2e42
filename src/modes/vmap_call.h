// One operator call whose arguments are batched, for vmap.cpp and the rules.
#pragma once

#include "autograd/batch.h"
#include "dispatch/call.h"

namespace TT_NS {

struct BatchCall {
  const Call& c;
  const Value* args;
  const VmapLevel& level;  // the innermost of the arguments
  TensorList& outs;        // batched

  const OpSchema& schema() const { return *c.op->schema; }
  int32_t n_args() const { return schema().n_args; }
  // Argument i for all samples; empty if it is the same for all of them.
  TensorRef batch(int32_t i) const { return batch_at(*args[i].tensor, level); }
  bool is_batched_here(const Value& v) const {
    return v.kind == Value::kTensor && batch_at(*v.tensor, level);
  }
};

// Calls the operator on other arguments, through all of their keys.
void call_operator(const BatchCall& b, const Value* args, TensorList& outs);
// The same, and makes its results batched.
void call_and_wrap(const BatchCall& b, const Value* args);
// Makes tensors of all samples results of the call.
void wrap_results(const BatchCall& b, TensorList&& all);

// Calls the operator for each sample.
void call_for_each(const BatchCall& b);
// Calls an operator that broadcasts its tensors, elements or matrices.
void call_aligned(const BatchCall& b);

// A rule calls the operator and returns true, or returns false without having done anything.
using BatchRule = bool (*)(const BatchCall& b);
BatchRule find_batch_rule(const char* op);

}  // namespace TT_NS
