// Tensors returned by callbacks of the application, owned as soon as they are set.
#pragma once

#include "dispatch/call.h"

namespace TT_NS {

class CallbackOuts {
 public:
  explicit CallbackOuts(int64_t n) { handles_.resize(n, nullptr); }
  ~CallbackOuts();
  CallbackOuts(const CallbackOuts&) = delete;
  tt_tensor** data() { return handles_.data(); }
  // Takes all of them after a successful callback. Fails with CALLBACK on anything but tensors;
  // NULL is accepted only if `optional`.
  TensorList take(const char* what, bool optional);

 private:
  SmallVec<tt_tensor*, 8> handles_;
};

// "the backward callback of f", for error messages.
struct CallbackName {
  char text[160];
  CallbackName(const char* which, const char* of);
};

// Makes a result that may get its own history: a copy if it is one of the inputs, an alias of the
// same memory if it already has a history, else the result itself.
TensorRef fresh_result(TensorRef out, TensorSpan inputs);

}  // namespace TT_NS
