#include "autograd/callback_outs.h"

#include "autograd/node.h"
#include "ops/gen/ops.h"

namespace TT_NS {

CallbackOuts::~CallbackOuts() {
  for (tt_tensor* h : handles_) {
    auto* t = reinterpret_cast<Tensor*>(h);
    if (!t || t->tag != kTagTensor) continue;
    count_handle(t, -1);
    TensorRef::adopt(t).reset();
  }
}

TensorList CallbackOuts::take(const char* what, bool optional) {
  TensorList list;
  for (int64_t i = 0; i < handles_.size(); i++) {
    auto* t = reinterpret_cast<Tensor*>(handles_[i]);
    if (!t && !optional) fail(TT_CALLBACK, "{} succeeded but left result {} NULL", what, i);
    if (t && t->tag != kTagTensor)
      fail(TT_CALLBACK, "{} set result {} to a handle that is not a tensor", what, i);
  }
  list.reserve(handles_.size());
  for (tt_tensor*& h : handles_) {
    if (h) count_handle(reinterpret_cast<Tensor*>(h), -1);
    list.push_back(TensorRef::adopt(reinterpret_cast<Tensor*>(h)));
    h = nullptr;
  }
  return list;
}

CallbackName::CallbackName(const char* which, const char* of) {
  const FmtArg args[] = {which, of};
  format_to(text, sizeof text, "the {} callback of {}", args);
}

TensorRef fresh_result(TensorRef out, TensorSpan inputs) {
  for (const Tensor* t : inputs) {
    if (t != out.get()) continue;
    MaskGuard no_grad(bit(kKeyAutograd));
    return op::clone(*out);
  }
  const bool own = out->refs == 1 && !out->grad_fn && !out->base && !(out->flags & kRequiresGrad);
  if (own) return out;  // otherwise other threads may be reading it
  return new_alias(*out, out->sizes(), out->strides());
}

}  // namespace TT_NS
