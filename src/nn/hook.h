// Hooks of modules: callbacks of the application before and after forward, and on the gradients of
// a module's inputs and results.
#pragma once

#include "autograd/callback_outs.h"
#include "autograd/node.h"
#include "core/callback.h"
#include "nn/module.h"

namespace TT_NS {

using ModulePreHook = tt_status (*)(void* user, tt_ctx* ctx, tt_module* m,
                                    const tt_tensor* const* inputs, int64_t n,
                                    tt_tensor** replacements);
using ModulePostHook = tt_status (*)(void* user, tt_ctx* ctx, tt_module* m,
                                     const tt_tensor* const* inputs, int64_t n_inputs,
                                     const tt_tensor* const* outs, int64_t n_outs,
                                     tt_tensor** replacements);
enum ModuleHookKind : int32_t {
  kForwardPreHook,
  kForwardHook,
  kBackwardPreHook,
  kBackwardHook,
  kBatchNormHook,  // of tt itself
};

// Replaces the normalisation by the batch of this process. Running statistics are updated; NULL:
// there are none, or this is evaluation.
struct BatchNormCall {
  Tensor *running_mean, *running_var;
  const Tensor *weight, *bias;
  double momentum, eps;
};
using BatchNormHook = TensorRef (*)(void* user, const Tensor& input, const BatchNormCall& call);

inline tt_module* handle(Module& m) { return reinterpret_cast<tt_module*>(&m); }
inline const tt_tensor* const* handles(TensorSpan s) {
  return reinterpret_cast<const tt_tensor* const*>(s.ptr);
}

// The tensors that hooks see and may replace (some may be absent), and plain pointers to them.
struct Values {
  TensorList own;
  SmallVec<const Tensor*, 4> ptr;
  explicit Values(TensorSpan s) {
    for (const Tensor* t : s) {
      own.push_back(TensorRef::share(t));
      ptr.push_back(t);
    }
  }
  explicit Values(TensorList&& l) : own(std::move(l)) {
    for (const TensorRef& t : own) ptr.push_back(t.get());
  }
  TensorSpan span() const { return {ptr.data(), ptr.size()}; }
  bool any() const {
    for (const Tensor* t : ptr)
      if (t) return true;
    return false;
  }
  void take(TensorList&& l) {
    ptr.clear();
    own = std::move(l);
    for (const TensorRef& t : own) ptr.push_back(t.get());
  }
  void set(int64_t i, TensorRef&& t) {
    own[i] = std::move(t);
    ptr[i] = own[i].get();
  }
  // Replaces the tensors for which there is a replacement.
  void replace(TensorList&& l) {
    for (int64_t i = 0; i < l.size(); i++)
      if (l[i]) set(i, std::move(l[i]));
  }
};

// A recorded call of a module with backward hooks. Inputs and results each pass through a node; a
// third node below that of the inputs gets the gradients of both and runs the hooks. (Nodes own the
// module, but no gradients.)
struct WatchedCall {
  NodeRef inputs;  // empty: no input needs a gradient
  int64_t n_inputs = 0;
  bool on = false;
};
WatchedCall watch_inputs(Module& m, Values& inputs);
void watch_results(Module& m, const WatchedCall& call, Values& results);

}  // namespace TT_NS
