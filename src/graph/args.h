// Arguments of nodes that passes and editors make.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

// value < 0: an absent tensor.
inline IrArg tensor_arg(int32_t value) {
  IrArg a;
  if (value < 0) return a;
  a.kind = Value::kTensor;
  a.values.push_back(value);
  return a;
}
inline IrArg int_arg(int64_t i) {
  IrArg a;
  a.kind = Value::kInt;
  a.i = i;
  return a;
}
inline IrArg float_arg(double f) {
  IrArg a;
  a.kind = Value::kFloat;
  a.f = f;
  return a;
}
inline IrArg bool_arg(bool b) {
  IrArg a;
  a.kind = Value::kBool;
  a.i = b;
  return a;
}
inline IrArg scalar_arg(const Scalar& s) {
  IrArg a;
  a.kind = Value::kScalar;
  a.scalar = s;
  return a;
}
inline IrArg ints_arg(Ints list) {
  IrArg a;
  a.kind = Value::kInts;
  a.ints.append(list);
  return a;
}

}  // namespace TT_NS
