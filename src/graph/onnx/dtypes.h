// ONNX's numbers of dtypes (TensorProto.DataType).
#pragma once

#include "core/dtype.h"

namespace TT_NS {

struct OnnxDtype {
  Dtype dtype;
  int32_t number;
};
inline constexpr OnnxDtype kOnnxDtypes[] = {
    {Dtype::kF32, 1},  {Dtype::kU8, 2},   {Dtype::kI8, 3},    {Dtype::kU16, 4},  {Dtype::kI16, 5},
    {Dtype::kI32, 6},  {Dtype::kI64, 7},  {Dtype::kBool, 9},  {Dtype::kF16, 10}, {Dtype::kF64, 11},
    {Dtype::kU32, 12}, {Dtype::kU64, 13}, {Dtype::kBF16, 16},
};

// 0: ONNX has no such dtype, or tt does not export it.
inline int32_t onnx_type(Dtype d) {
  for (const OnnxDtype& each : kOnnxDtypes)
    if (each.dtype == d) return each.number;
  return 0;
}
// kNone: tt has no such dtype.
inline Dtype dtype_of_onnx(int64_t number) {
  for (const OnnxDtype& each : kOnnxDtypes)
    if (each.number == number) return each.dtype;
  return Dtype::kNone;
}

}  // namespace TT_NS
