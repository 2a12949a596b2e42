// A tensor in an ONNX model.
#pragma once

#include "graph/onnx/import.h"
#include "graph/onnx/proto.h"

namespace TT_NS {

inline constexpr int64_t kMaxOnnxDims = 16;

// Fails with NOT_IMPLEMENTED where tt has no such dtype.
Dtype model_dtype(int64_t type);

// A TensorProto: its elements are bytes, floats (float32) or integers (all but doubles).
struct TensorMessage {
  explicit TensorMessage(Span<const char> bytes);
  // files: NULL if the tensor must be in the model.
  TensorRef tensor(OnnxFiles* files = nullptr) const;

  Name name = name_of("");

 private:
  void store(Tensor& t) const;
  void read_entry(Span<const char> entry);
  void check_file(OnnxFiles& files, int64_t bytes) const;

  Shape sizes_;
  int64_t type_ = 0;
  bool outside_ = false;  // the elements are in a file, at [offset, offset + length)
  Name file_ = name_of("");
  int64_t offset_ = 0;
  int64_t length_ = -1;
  bool has_raw_ = false;
  Span<const char> raw_;
  SmallVec<int64_t, 8> integers_;
  SmallVec<float, 8> reals_;
};

}  // namespace TT_NS
