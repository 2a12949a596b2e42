#include "graph/arg_check.h"

#include "core/shape.h"

namespace TT_NS {

static bool is_one_of(Value::Kind kind, std::initializer_list<Value::Kind> list) {
  for (const Value::Kind k : list)
    if (k == kind) return true;
  return false;
}
static bool fits_type(ArgType type, Value::Kind kind) {
  using V = Value;
  switch (type) {
    case ArgType::kTensor: return kind == V::kTensor;
    case ArgType::kOptTensor: return is_one_of(kind, {V::kTensor, V::kNone});
    case ArgType::kTensorList:
    case ArgType::kOptTensorList: return kind == V::kTensorList;
    case ArgType::kScalar: return kind == V::kScalar;
    case ArgType::kOptScalar: return is_one_of(kind, {V::kScalar, V::kNone});
    case ArgType::kFloat: return kind == V::kFloat;
    case ArgType::kOptFloat: return is_one_of(kind, {V::kFloat, V::kNone});
    case ArgType::kBool: return kind == V::kBool;
    case ArgType::kOptBool: return is_one_of(kind, {V::kBool, V::kNone});
    case ArgType::kDims:
    case ArgType::kOptDims:
    case ArgType::kSize:
    case ArgType::kShape: return is_one_of(kind, {V::kInts, V::kNone});
    case ArgType::kIndices: return kind == V::kIndices;
    case ArgType::kDevice: return is_one_of(kind, {V::kDevice, V::kNone});
    case ArgType::kGenerator: return is_one_of(kind, {V::kGenerator, V::kNone});
    case ArgType::kStr: return is_one_of(kind, {V::kStr, V::kNone});
    case ArgType::kRng: return kind == V::kRng;
    case ArgType::kObject: return kind == V::kObject;
    case ArgType::kInt:
    case ArgType::kDim:
    case ArgType::kEnum: return kind == V::kInt;
    default: return is_one_of(kind, {V::kInt, V::kNone});
  }
}
const char* why_not(const ArgInfo& info, const IrArg& a, IsEnum is_enum) noexcept {
  if (!fits_type(info.type, a.kind))
    return "an argument has a kind that its operator does not take";
  if (a.kind == Value::kTensor && a.values[0] < 0) return "a tensor is missing";
  if (info.type == ArgType::kTensorList)
    for (const int32_t v : a.values)
      if (v < 0) return "a tensor is missing";
  if (info.type == ArgType::kDtype && a.kind == Value::kInt) {
    if (a.i < TT_BOOL || a.i > TT_U64) return "unknown dtype";
    if (!is_built(int32_t(a.i))) return "a dtype that this build of tt has not";
  }
  if (info.type == ArgType::kEnum && !is_enum(info.enumeration, a.i))
    return "an argument is no value of its enumeration";
  if (a.ints.size() > kMaxDims) return "a list of more than 64 integers";
  return nullptr;
}

}  // namespace TT_NS
