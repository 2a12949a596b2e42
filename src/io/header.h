// The header of a safetensors file (huggingface/safetensors, "Format"): 8 bytes of length, then one
// JSON object that maps a tensor's name to its dtype, shape and place in the bytes behind the
// header, and "__metadata__" to strings.
#pragma once

#include "base/small_vec.h"
#include "core/dtype.h"

namespace TT_NS {

constexpr int64_t kMaxHeaderBytes = 100'000'000;  // as the format's reference implementation

struct FileTensor {
  const char* name;  // zero-terminated UTF-8, inside the header's text
  Dtype dtype;
  uint8_t ndim;
  int64_t shape;       // index of the first size in FileHeader::sizes
  int64_t begin, end;  // bytes behind the header
};
struct FileText {
  const char *key, *value;
};

struct FileHeader {
  SmallVec<FileTensor, 1> tensors;  // in the order of the file
  SmallVec<int64_t, 1> sizes;
  SmallVec<FileText, 1> metadata;
  SmallVec<int64_t, 1> by_name;  // indices of tensors, sorted
};

// Reads the text of a header, which it changes: strings are unescaped where they stand. data_bytes:
// what follows the header in the file. Fails with FORMAT, naming path, the byte and the reason, if
// anything in it is not as the format wants it: the tensors must have different names and cover
// data_bytes without holes and overlaps.
void parse_header(const char* path, char* text, int64_t bytes, int64_t data_bytes, FileHeader* out);
// The index of a name; -1 if there is none.
int64_t find_tensor(const FileHeader& h, const char* name);

const char* file_dtype(Dtype d);  // NULL: files cannot hold it

}  // namespace TT_NS
