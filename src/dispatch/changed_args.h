// The boxed arguments of a call with other tensors in place of some of its own.
#pragma once

#include "dispatch/value.h"

namespace TT_NS {

// Calls f(tensor) for each tensor among the arguments, index tensors included.
template <class F> void for_each_tensor(const Value& v, F f) {
  if (v.kind == Value::kTensor) f(*v.tensor);
  if (v.kind == Value::kTensorList)
    for (int64_t k = 0; k < v.n; k++)
      if (v.tensors[k]) f(*v.tensors[k]);
  if (v.kind == Value::kIndices)
    for (int64_t k = 0; k < v.n; k++)
      if (v.indices[k].kind == TT_IDX_TENSOR)
        f(*reinterpret_cast<const Tensor*>(v.indices[k].tensor));
}

struct ChangedArgs {
  SmallVec<Value, 16> values;
  SmallVec<TensorRef, 8> owned;
  SmallVec<SmallVec<const Tensor*, 8>, 1> lists;
  SmallVec<SmallVec<tt_index, 4>, 1> indices;

  // change(t): the tensor to take instead of t, as a TensorRef; empty: an absent argument.
  template <class F> ChangedArgs(const OpSchema& schema, const Value* args, F change) {
    lists.reserve(schema.n_args);
    indices.reserve(schema.n_args);
    const auto other = [&](const Tensor& t) {
      owned.push_back(change(t));
      return owned.back().get();
    };
    for (int32_t i = 0; i < schema.n_args; i++) {
      Value v = args[i];
      if (v.kind == Value::kTensor) {
        v = to_value(other(*v.tensor));
      } else if (v.kind == Value::kTensorList) {
        lists.push_back({});
        for (int64_t k = 0; k < v.n; k++)
          lists.back().push_back(v.tensors[k] ? other(*v.tensors[k]) : nullptr);
        v.tensors = lists.back().data();
      } else if (v.kind == Value::kIndices) {
        indices.push_back({});
        for (int64_t k = 0; k < v.n; k++) {
          indices.back().push_back(v.indices[k]);
          tt_index& at = indices.back().back();
          if (at.kind == TT_IDX_TENSOR)
            at.tensor = reinterpret_cast<const tt_tensor*>(
                other(*reinterpret_cast<const Tensor*>(at.tensor)));
        }
        v.indices = indices.back().data();
      }
      values.push_back(v);
    }
  }
  const Value* data() const { return values.data(); }
};

}  // namespace TT_NS
