#include "ext/tagged_value.h"

#include <string.h>

namespace TT_NS {

static tt_tensor* handle(const Tensor* t) {
  return reinterpret_cast<tt_tensor*>(const_cast<Tensor*>(t));
}

tt_value to_tagged(const Value& v) {
  tt_value h;
  memset(&h, 0, sizeof h);
  h.n = v.n;
  switch (v.kind) {
    case Value::kNone: break;
    case Value::kTensor:
      h.tag = TT_VAL_TENSOR;
      h.tensor = handle(v.tensor);
      break;
    case Value::kTensorList:
      h.tag = TT_VAL_TENSORS;
      h.tensors = reinterpret_cast<tt_tensor* const*>(const_cast<Tensor* const*>(v.tensors));
      break;
    case Value::kScalar:
      h.tag = TT_VAL_SCALAR;
      h.scalar = *v.scalar;
      break;
    case Value::kInt:
      h.tag = TT_VAL_INT;
      h.i = v.i;
      break;
    case Value::kFloat:
      h.tag = TT_VAL_FLOAT;
      h.f = v.f;
      break;
    case Value::kBool:
      h.tag = TT_VAL_BOOL;
      h.i = v.i != 0;
      break;
    case Value::kInts:
      h.tag = TT_VAL_INTS;
      h.ints = v.ints;
      break;
    case Value::kStr:
      h.tag = TT_VAL_STR;
      h.str = v.str;
      break;
    case Value::kGenerator:
      h.tag = TT_VAL_GENERATOR;
      h.generator = reinterpret_cast<tt_generator*>(v.generator);
      break;
    case Value::kDevice: {
      Device d = Unbox<Device>::get(v);
      h.tag = TT_VAL_DEVICE;
      h.device = {d.type, d.index};
      break;
    }
    case Value::kIndices:
      h.tag = TT_VAL_INDEX;
      h.index = v.indices;
      break;
    case Value::kRng: fail(TT_INTERNAL, "random state has no form in the C ABI");
    case Value::kObject: fail(TT_INTERNAL, "an internal object has no form in the C ABI");
  }
  return h;
}

void SavedArgs::save(Span<const Value> args) {
  for (const Value& v : args) {
    Item item;
    item.value = to_tagged(v);
    auto keep = [&](const Tensor* t) {
      tensors_.push_back(Saved());
      tensors_.back().save(t);
      item.tensors++;
    };
    if (v.kind == Value::kTensor) keep(v.tensor);
    for (int64_t i = 0; v.kind == Value::kTensorList && i < v.n; i++) keep(v.tensors[i]);
    if (v.kind == Value::kInts) item.ints.append({v.ints, v.n});
    if (v.kind == Value::kStr) item.text.append({v.str, v.n});
    if (v.kind == Value::kGenerator) item.generator = Ref<Generator>::share(v.generator);
    for (int64_t i = 0; v.kind == Value::kIndices && i < v.n; i++) {
      item.index.push_back(v.indices[i]);
      if (v.indices[i].kind == TT_IDX_TENSOR)
        keep(reinterpret_cast<const Tensor*>(v.indices[i].tensor));
    }
    items_.push_back(std::move(item));
  }
}

void SavedArgs::get(Node& n, TaggedValues& out, TensorList& keep) const {
  int64_t next = 0;
  auto take = [&] {
    keep.push_back(tensors_[next++].get_opt(n));
    return handle(keep.back().get());
  };
  for (Item& item : items_) {
    tt_value v = item.value;
    item.list.clear();
    if (v.tag == TT_VAL_TENSOR) v.tensor = take();
    for (int64_t i = 0; v.tag == TT_VAL_TENSORS && i < v.n; i++) item.list.push_back(take());
    for (tt_index& i : item.index)
      if (i.kind == TT_IDX_TENSOR) i.tensor = take();
    v.tensors = item.list.data();
    v.ints = item.ints.data();
    v.str = item.text.data();
    v.index = item.index.data();
    out.push_back(v);
  }
}

}  // namespace TT_NS
