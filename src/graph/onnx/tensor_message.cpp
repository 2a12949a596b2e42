#include "graph/onnx/tensor_message.h"

#include "core/shape.h"
#include "graph/onnx/dtypes.h"

#include <string.h>

namespace TT_NS {

namespace {

// A number without sign; fails unless it is one.
int64_t number_of(Name text) {
  int64_t v = 0;
  if (!text.n || text.n > 18) fail_model("a place in a file is no number");
  for (int64_t i = 0; i < text.n; i++) {
    if (text[i] < '0' || text[i] > '9') fail_model("a place in a file is no number");
    v = v * 10 + (text[i] - '0');
  }
  return v;
}

}  // namespace

void fail_model(const char* what) { fail(TT_FORMAT, "not an ONNX model: {}", what); }

Dtype model_dtype(int64_t type) {
  const Dtype d = dtype_of_onnx(type);
  if (d == Dtype::kNone) fail(TT_NOT_IMPLEMENTED, "ONNX's dtype {} has no counterpart", type);
  return d;
}

TensorMessage::TensorMessage(Span<const char> bytes) {
  ProtoField f;
  for (ProtoMessage m(bytes); m.next(f);) {
    switch (f.number) {
      case 1: add_integers(sizes_, f); break;
      case 2: type_ = f.integer(); break;
      case 4: add_reals(reals_, f); break;
      case 5:
      case 7:
      case 11: add_integers(integers_, f); break;
      case 8: name = f.bytes; break;
      case 9:
      case 10:  // packed doubles
        raw_ = f.bytes;
        has_raw_ = true;
        break;
      case 13: read_entry(f.bytes); break;
      case 14: outside_ = f.integer() == 1; break;
      default: break;
    }
  }
}

void TensorMessage::read_entry(Span<const char> entry) {
  Name key = name_of("");
  Name value = name_of("");
  ProtoField f;
  for (ProtoMessage m(entry); m.next(f);) {
    if (f.number == 1) key = f.bytes;
    if (f.number == 2) value = f.bytes;
  }
  if (is(key, "location")) file_ = value;
  if (is(key, "offset")) offset_ = number_of(value);
  if (is(key, "length")) length_ = number_of(value);
}

// Fails unless the file has the bytes. A path must stay in the folder of the model.
void TensorMessage::check_file(OnnxFiles& files, int64_t bytes) const {
  if (length_ >= 0 && length_ != bytes) fail_model("a tensor has not the bytes of its shape");
  bool plain = file_.n > 0 && file_.n < 512 && file_[0] != '/';
  for (int64_t i = 0; i < file_.n && plain; i++) {
    const bool dots = file_[i] == '.' && i + 1 < file_.n && file_[i + 1] == '.';
    const bool begins = i == 0 || file_[i - 1] == '/';
    plain = uint8_t(file_[i]) >= ' ' && file_[i] != '\\' && file_[i] != ':' && !(dots && begins);
  }
  if (!plain)
    fail_model("the path of a file of tensors must be relative and stay in the model's folder");
  const int64_t size = files.open(files, file_);
  if (offset_ > size || bytes > size - offset_) fail_model("a file of tensors is too short");
}

TensorRef TensorMessage::tensor(OnnxFiles* files) const {
  const Dtype dtype = model_dtype(type_);
  if (sizes_.size() > kMaxOnnxDims) fail_model("a tensor has too many dimensions");
  for (const int64_t size : sizes_)
    if (size < 0) fail_model("a tensor has a negative size");
  const int64_t numel = checked_numel(sizes_, dtype, "a tensor of the model");
  if (outside_) {
    if (!files) fail(TT_NOT_IMPLEMENTED, "an attribute's tensor in another file than the model");
    check_file(*files, numel * item_size(dtype));
    TensorRef t = new_tensor(sizes_, dtype, kCpuDevice);
    if (numel) files->read(*files, offset_, t->data, numel * item_size(dtype));
    for (int64_t i = 0; dtype == Dtype::kBool && i < numel; i++) t->data[i] = t->data[i] != 0;
    return t;
  }
  int64_t given = dtype == Dtype::kF32 ? reals_.size() : integers_.size();
  if (dtype == Dtype::kF64) given = 0;
  const bool whole = has_raw_ ? raw_.n == numel * item_size(dtype) : given == numel;
  if (!whole) fail_model("a tensor has not the elements of its shape");
  TensorRef t = new_tensor(sizes_, dtype, kCpuDevice);
  store(*t);
  for (int64_t i = 0; dtype == Dtype::kBool && i < numel; i++) t->data[i] = t->data[i] != 0;
  return t;
}

void TensorMessage::store(Tensor& t) const {
  if (t.numel == 0) return;
  if (has_raw_) {
    memcpy(t.data, raw_.ptr, size_t(raw_.n));
    return;
  }
  const bool bits = t.dtype == Dtype::kF16 || t.dtype == Dtype::kBF16;
  for (int64_t i = 0; i < t.numel; i++) {
    char* to = t.data + i * t.item_size();
    if (bits) memcpy(to, &integers_[i], 2);
    else if (t.dtype == Dtype::kF32) memcpy(to, &reals_[i], 4);
    else store_scalar(to, t.dtype, Scalar(integers_[i]));
  }
}

}  // namespace TT_NS
