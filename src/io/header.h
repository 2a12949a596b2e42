// The header of a safetensors file (huggingface/safetensors, "Format"): 8 bytes of length, then a
// JSON object that maps each tensor's name to its dtype, shape and range of the bytes after the
// header, and "__metadata__" to strings.
#pragma once

#include "base/small_vec.h"
#include "core/dtype.h"

namespace TT_NS {

constexpr int64_t kMaxHeaderBytes = 100'000'000;  // limit of the format's reference implementation

struct FileTensor {
  const char* name;  // zero-terminated UTF-8, inside the header's text
  Dtype dtype;
  uint8_t ndim;
  int64_t shape;       // index of the first size in FileHeader::sizes
  int64_t begin, end;  // bytes after the header
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

// Parses the text of a header in place: strings are unescaped. data_bytes is the size of the rest
// of the file. Fails with FORMAT, naming path, byte and reason, if the header is malformed; names
// must differ, and the tensors must cover data_bytes without gaps or overlaps.
void parse_header(const char* path, char* text, int64_t bytes, int64_t data_bytes, FileHeader* out);
// Returns the index of a name, or -1.
int64_t find_tensor(const FileHeader& h, const char* name);

const char* file_dtype(Dtype d);  // NULL: not supported in files

}  // namespace TT_NS
