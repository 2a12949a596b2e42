// Mirrors tensors on a device of the application as CPU tensors of the same geometry, for operators
// that a backend declines.
#pragma once

#include "dispatch/call.h"

namespace TT_NS {

class ExtMirrors {
 public:
  // Copies the range of each storage that the arguments cover, so that tensors that share memory
  // still do. Device arguments become the CPU.
  explicit ExtMirrors(const OpSchema& schema, const Value* args);
  // For tensors without a call: cover all, fetch once, then take each on_cpu. Tensors on other
  // devices are their own mirrors.
  ExtMirrors() {}
  void cover(const Tensor& t, bool written);
  void fetch();
  const Tensor* on_cpu(const Tensor* t);
  ExtMirrors(const ExtMirrors&) = delete;
  const Value* args() const { return values_.data(); }
  KeySet keys() const;  // keys that the new arguments contribute

  // Returns the result on device `to`. A result that is an argument or shares its memory does so
  // there, too.
  TensorRef home(TensorRef result, Device to) const;
  // Copies written memory back and updates versions.
  void write_back() const;

 private:
  struct Mirror {
    const Tensor* original;  // one of the tensors over the storage
    const char *lo, *hi;     // the copied part
    bool written;            // according to the schema, whatever the version
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
  // items of tensor lists; reserved in advance, since pointers to them are taken
  SmallVec<const Tensor*, 8> list_;
  SmallVec<tt_index, 4> indices_;  // likewise
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
