// Tensors on a host's device as CPU tensors of the same geometry: what a backend declines runs on
// these.
#pragma once

#include "dispatch/call.h"

namespace TT_NS {

class ExtMirrors {
 public:
  // Copies what the arguments cover of each storage: tensors that share memory do so here too.
  // Devices become the CPU.
  explicit ExtMirrors(const OpSchema& schema, const Value* args);
  // Of tensors without a call: cover all, fetch once, then take each on_cpu. Tensors that are not on
  // such a device are passed over, and stand for themselves.
  ExtMirrors() {}
  void cover(const Tensor& t, bool written);
  void fetch();
  const Tensor* on_cpu(const Tensor* t);
  ExtMirrors(const ExtMirrors&) = delete;
  const Value* args() const { return values_.data(); }
  uint64_t keys() const;  // that the new arguments contribute

  // The result on device `to`; one that is an argument, or lies in its memory, is so there too.
  TensorRef home(TensorRef result, Device to) const;
  // Copies the memory that was written back and counts the writes.
  void write_back() const;

 private:
  struct Mirror {
    const Tensor* original;  // one of the tensors over the storage
    const char *lo, *hi;     // the part that is copied
    bool written;            // by the schema, whatever the version says
    TensorRef bytes;
  };
  struct Pair {
    const Tensor* original;
    TensorRef copy;
  };
  const Mirror& mirror_of(const Tensor& t) const;
  void convert(const Value& v);

  SmallVec<Value, 8> values_;
  SmallVec<Mirror, 4> mirrors_;
  SmallVec<Pair, 8> pairs_;
  SmallVec<const Tensor*, 8> list_;  // items of tensor lists; reserved before any is pointed to
  SmallVec<tt_index, 4> indices_;    // likewise
};

// Calls f(const Tensor&, const ArgInfo&) for every tensor among the arguments.
template <class F> void each_tensor(const OpSchema& s, const Value* args, F f) {
  for (int32_t i = 0; i < s.n_args; i++) {
    const Value& v = args[i];
    if (v.kind == Value::kTensor) f(*v.tensor, s.args[i]);
    for (int64_t k = 0; v.kind == Value::kTensorList && k < v.n; k++)
      if (v.tensors[k]) f(*v.tensors[k], s.args[i]);
    for (int64_t k = 0; v.kind == Value::kIndices && k < v.n; k++)
      if (v.indices[k].kind == TT_IDX_TENSOR)
        f(*reinterpret_cast<const Tensor*>(v.indices[k].tensor), s.args[i]);
  }
}

}  // namespace TT_NS
