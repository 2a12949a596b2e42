// Files of tensors in the safetensors format.
#pragma once

#include "base/ref.h"
#include "core/tensor.h"
#include "io/header.h"

namespace TT_NS {

// A file in memory, read-only; tensors over it keep it.
struct FileMap {
  RefCount refs;
  char* bytes;
  int64_t size;
  static void destroy(FileMap*) noexcept;
};

// An open file: its header is checked and kept, the tensors are read when they are asked for.
struct TensorFile {
  uint32_t tag;
  RefCount refs;
  int file;
  int64_t data;  // where the tensors' bytes begin
  char* text;    // of the header
  int64_t text_bytes;
  char* path;  // zero-terminated, of path_bytes bytes
  int64_t path_bytes;
  FileHeader header;
  Ref<FileMap> map;  // empty: tensors are read
  static void destroy(TensorFile*) noexcept;
};

// Fails with IO or FORMAT.
Ref<TensorFile> open_tensors(const char* path, bool mapped);
// Tensor i of the file, on the CPU: a copy, or over the mapped file if its bytes are aligned there.
TensorRef read_tensor(const TensorFile& f, int64_t i);

// Writes tensors under their names: into a new file beside path, which then takes path's place in
// one step.
void save_tensors(const char* path, Span<const char* const> names,
                  Span<const Tensor* const> tensors, Span<const char* const> metadata);

}  // namespace TT_NS
