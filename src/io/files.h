// Reads parts of files, and writes files atomically. All functions fail with IO, naming the path.
#pragma once

#include "base/text/text.h"

namespace TT_NS {

[[noreturn]] TT_COLD void fail_io(const char* path, const char* what, int64_t status);
// Reads exactly `bytes` bytes.
void read_all(int file, const char* path, void* out, int64_t bytes, int64_t offset);
// Fails with INVALID_ARG, naming arg[i], unless text is UTF-8.
void check_utf8(Span<const char> text, const char* arg, int64_t i);

// A new file beside `path`, removed unless it has replaced path.
class NewFile {
 public:
  explicit NewFile(const char* path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  void write(const void* data, int64_t bytes);
  void commit();  // after a crash, path is the old file or this one

 private:
  void close();
  const char* path_;
  Text name_;
  int file_ = -1;
  bool done_ = false;
};

}  // namespace TT_NS
