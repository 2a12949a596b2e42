// Files of tensors in the safetensors format.
#pragma once

#include "base/ref.h"
#include "core/tensor.h"
#include "io/header.h"

namespace TT_NS {

// A file mapped read-only; tensors over it keep it alive.
struct FileMap {
  RefCount refs;
  char* bytes;
  int64_t size;
  static void destroy(FileMap*) noexcept;
};

// An open file: its header has been checked and is stored; tensors are read on demand.
struct TensorFile {
  uint32_t tag;
  RefCount refs;
  int file;
  int64_t data;  // offset of the tensors' bytes
  char* text;    // of the header
  int64_t text_bytes;
  char* path;  // zero-terminated, of path_bytes bytes
  int64_t path_bytes;
  FileHeader header;
  Ref<FileMap> map;  // empty: tensors are read from the file
  static void destroy(TensorFile*) noexcept;
};

// Opens a file whose header is not read yet. Fails with IO.
Ref<TensorFile> open_file(const char* path);
// Maps the whole file, from which tensors are then read. Fails with IO.
void map_file(TensorFile& f);
// Fails with IO or FORMAT.
Ref<TensorFile> open_tensors(const char* path, bool mapped);
// Returns tensor i of the file on the CPU: a copy, or a view of the mapped file if its bytes are
// aligned.
TensorRef read_tensor(const TensorFile& f, int64_t i);

// Writes named tensors to a new file beside path, which then atomically replaces path.
void save_tensors(const char* path, Span<const char* const> names,
                  Span<const Tensor* const> tensors, Span<const char* const> metadata);

}  // namespace TT_NS
