// Tensors that a callback of the host makes: owned from the moment it sets them.
#pragma once

#include "dispatch/call.h"

namespace TT_NS {

class HostOuts {
 public:
  explicit HostOuts(int64_t n) { handles_.resize(n, nullptr); }
  ~HostOuts();
  HostOuts(const HostOuts&) = delete;
  tt_tensor** data() { return handles_.data(); }
  // All of them, after a call that succeeded. Fails with CALLBACK on what is no tensor; NULL only
  // if `optional`.
  TensorList take(const char* what, bool optional);

 private:
  SmallVec<tt_tensor*, 8> handles_;
};

// "the backward callback of f", for error texts.
struct CallbackName {
  char text[160];
  CallbackName(const char* which, const char* of);
};

// A result that may get a history of its own: a copy if it is one of the inputs, an alias of the
// same memory if it has a history already, else itself.
TensorRef fresh_result(TensorRef out, TensorSpan inputs);

}  // namespace TT_NS
