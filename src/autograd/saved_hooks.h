// Hooks on saved tensors: the application decides in which form a node keeps what its formula
// reads. node.cpp reaches them by pointers, so that programs without hooks do not link them.
#pragma once

#include "autograd/node.h"

namespace TT_NS {

// Callbacks of the application. pack runs when a tensor is saved, without recording, and sets what
// is kept; unpack runs in backward. drop_packed runs once for each thing that is kept, drop once
// when the last one has gone.
struct SavedHooksDef {
  void* user;
  tt_status (*pack)(void* user, tt_ctx* ctx, const tt_tensor* t, void** packed);
  tt_status (*unpack)(void* user, tt_ctx* ctx, void* packed, tt_tensor** out);
  void (*drop_packed)(void* packed);
  void (*drop)(void* user);
  bool is_own = false;  // pack and unpack are tt's: they may throw, and get no ctx
};
// Tensors that are saved on this ctx are packed by def until pop_saved_hooks. Hooks may be nested;
// the innermost pair counts.
void push_saved_hooks(const SavedHooksDef& def);
void pop_saved_hooks();
// The pair of this ctx that counts; NULL: there is none.
const SavedHooksDef* innermost_saved_hooks();

struct SavedHookFunctions {
  // Returns a placeholder for t, whose gradient goes to `edge`, which is taken over.
  TensorRef (*pack)(const Tensor& t, Edge edge);
  // Returns the tensor, linked to the edge, or to `own` if that is set: an output of a node.
  TensorRef (*unpack)(const Tensor& placeholder, Edge own);
  bool (*is_from)(const Tensor& placeholder, const Tensor& t);
};
extern SavedHookFunctions saved_hook_functions;  // set by the first push

}  // namespace TT_NS
