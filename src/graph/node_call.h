// NodeCall: the boxed arguments of a node, for a call of its implementation.
#pragma once

#include "core/ctx.h"
#include "graph/ir.h"

namespace TT_NS {

class NodeCall {
 public:
  NodeCall() = default;
  NodeCall(const NodeCall&) = delete;
  // tensor(value) makes a tensor for a value, rng(arg) the numbers of an argument of kind kRng.
  template <class TensorOf, class RngOf> void set(const IrNode& n, TensorOf tensor, RngOf rng) {
    math_ = n.cuda_math;
    lists_.reserve(n.args.size());
    indices_.reserve(n.args.size());
    rngs_.reserve(n.args.size());
    for (const IrArg& a : n.args) {
      const int64_t first = owned_.size();
      for_each_value(a, [&](int32_t v) {
        owned_.push_back(tensor(v));
        keys_ |= owned_.back()->keys & kBackendKeys;
      });
      if (a.kind == Value::kRng) rngs_.push_back(rng(a));
      box(a, first);
    }
  }
  const Value* values() const { return values_.data(); }
  // Appends the results to outs. more: keys beside those of the arguments.
  void run(const OpInfo& op, TensorList& outs, KeySet more = 0) {
    const CudaMathScope as_recorded(math_);
    op.call_boxed({(keys_ ? keys_ : bit(kKeyCpu)) | more, &op}, values_.data(), outs);
  }

 private:
  void box(const IrArg& a, int64_t first);

  SmallVec<Value, 16> values_;
  SmallVec<TensorRef, 8> owned_;
  SmallVec<SmallVec<const Tensor*, 8>, 1> lists_;
  SmallVec<SmallVec<tt_index, 4>, 1> indices_;
  SmallVec<Rng, 1> rngs_;
  KeySet keys_ = 0;
  uint16_t math_ = 0;
};

// Whether the results of n follow from its arguments alone, and none of these is a tensor.
bool takes_no_tensors(const IrNode& n);
// Computes the results of such a node, which is not captured.
TensorList results_without_tensors(const IrNode& n);

}  // namespace TT_NS
