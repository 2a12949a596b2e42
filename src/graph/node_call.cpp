#include "graph/node_call.h"

namespace TT_NS {

// The tensors of a are owned_[first], ….
void NodeCall::box(const IrArg& a, int64_t first) {
  Value v;
  v.kind = a.kind;
  switch (a.kind) {
    case Value::kNone: break;
    case Value::kTensor: v.tensor = owned_[first].get(); break;
    case Value::kTensorList: {
      lists_.push_back({});
      auto& list = lists_.back();
      for (const int32_t i : a.values) list.push_back(i < 0 ? nullptr : owned_[first++].get());
      v.n = list.size();
      v.tensors = list.data();
      break;
    }
    case Value::kScalar: v.scalar = &a.scalar; break;
    case Value::kInt:
    case Value::kBool:
    case Value::kDevice: v.i = a.i; break;
    case Value::kFloat: v.f = a.f; break;
    case Value::kInts:
      v.n = a.ints.size();
      v.ints = a.ints.data();
      break;
    case Value::kStr:
      v.n = a.text.size();
      v.str = a.text.c_str();
      break;
    case Value::kGenerator: v.generator = a.generator.get(); break;
    case Value::kIndices: {
      indices_.push_back(SmallVec<tt_index, 4>(a.index.span()));
      auto& list = indices_.back();
      for (tt_index& at : list)
        if (at.kind == TT_IDX_TENSOR)
          at.tensor = reinterpret_cast<const tt_tensor*>(owned_[first++].get());
      v.n = list.size();
      v.indices = list.data();
      break;
    }
    case Value::kRng: v.rng = &rngs_.back(); break;
    case Value::kObject: v.object = a.object.get(); break;
  }
  values_.push_back(v);
}

bool takes_no_tensors(const IrNode& n) {
  bool lone = !n.op->is_custom() && !n.op->schema->random;
  for_each_value(n, [&](int32_t) { lone = false; });
  for (const IrArg& a : n.args) lone = lone && a.kind != Value::kRng && !a.generator && !a.object;
  return lone;
}
TensorList results_without_tensors(const IrNode& n) {
  NodeCall call;
  call.set(
      n, [](int32_t) { return TensorRef(); }, [](const IrArg&) { return Rng{}; });
  TensorList outs;
  const MaskGuard plain(~kBackendKeys | bit(kKeyCapture));
  call.run(*n.op, outs);
  return outs;
}

}  // namespace TT_NS
