// What the rules of vmap share (vmap_rules.cpp), and those of layers (vmap_layer_rules.cpp).
#pragma once

#include "modes/vmap_call.h"
#include "ops/gen/ops.h"

namespace TT_NS::batch_rules {

inline const Tensor& tensor(const BatchCall& b, int32_t i) { return *b.args[i].tensor; }
inline const Tensor* optional(const BatchCall& b, int32_t i) {
  return b.args[i].kind == Value::kTensor ? b.args[i].tensor : nullptr;
}
inline bool batched(const BatchCall& b, int32_t i) { return b.is_batched_here(b.args[i]); }
// Whether a tensor among arguments [from, n) is batched.
inline bool any_batched(const BatchCall& b, int32_t from) {
  for (int32_t i = from; i < b.n_args(); i++) {
    if (batched(b, i)) return true;
    if (b.args[i].kind != Value::kTensorList) continue;
    for (int64_t k = 0; k < b.args[i].n; k++)
      if (b.args[i].tensors[k] && batch_at(*b.args[i].tensors[k], b.level)) return true;
  }
  return false;
}
inline TensorRef all_of(const BatchCall& b, int32_t i) {
  return whole_batch(tensor(b, i), b.level);
}
// The same without strides of 0: kernels read the statistics of a forward pass as dense rows.
inline TensorRef dense_of(const BatchCall& b, int32_t i) { return op::contiguous(*all_of(b, i)); }
inline Ints ints(const BatchCall& b, int32_t i) { return {b.args[i].ints, b.args[i].n}; }
// Gives a result that is batched already, or the same for all samples.
inline bool give(const BatchCall& b, TensorRef result) {
  b.outs.push_back(std::move(result));
  return true;
}
inline bool give_all(const BatchCall& b, const TensorRef& all) {
  return give(b, new_batched(*all, b.level));
}

// The arguments of a call, to be replaced by others.
struct OwnArgs {
  SmallVec<Value, 16> values;
  explicit OwnArgs(const BatchCall& b) {
    for (int32_t i = 0; i < b.n_args(); i++) values.push_back(b.args[i]);
  }
};

// For operators that keep a leading dimension of their first tensor as it is.
bool leading(const BatchCall& b);
// For operators whose tensors have batches of matrices, which must be equal.
bool all_whole(const BatchCall& b);

// ---- vmap_layer_rules.cpp ----

// For operators on images, or on matrices of columns, whose first argument alone has samples.
bool image(const BatchCall& b);
bool columns(const BatchCall& b);
// For operators all of whose tensors have a first dimension, with which samples are merged.
bool merged(const BatchCall& b);
// The same for gradients of images, which may be without a batch.
bool images(const BatchCall& b);
bool convolution(const BatchCall& b);
bool convolution_backward(const BatchCall& b);
bool batch_norm(const BatchCall& b);
bool layer_norm(const BatchCall& b);
bool layer_norm_backward(const BatchCall& b);
bool rms_norm(const BatchCall& b);
bool group_norm(const BatchCall& b);
bool group_norm_backward(const BatchCall& b);
bool recurrent_layer(const BatchCall& b);
bool recurrent_layer_backward(const BatchCall& b);
bool nll_loss(const BatchCall& b);
bool cross_entropy(const BatchCall& b);
bool ctc_loss(const BatchCall& b);
bool ctc_loss_backward(const BatchCall& b);
bool embedding(const BatchCall& b);
bool bag_reduce(const BatchCall& b);

}  // namespace TT_NS::batch_rules
