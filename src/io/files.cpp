#include "io/files.h"

#include "base/os.h"
#include "base/os_file.h"
#include "base/text/utf8.h"
#include "io/json.h"

#include <errno.h>

namespace TT_NS {

void fail_io(const char* path, const char* what, int64_t status) {
  fail_arg(TT_IO, "path", "\"{}\": {}: {} (errno {})", path, what, os_error_text(int(-status)),
           -status);
}

void read_all(int file, const char* path, void* out, int64_t bytes, int64_t offset) {
  const int64_t got = os_file_read(file, out, bytes, offset);
  if (got < 0) fail_io(path, "cannot be read", got);
  if (got < bytes)
    fail_arg(TT_IO, "path",
             "\"{}\" has been truncated since it was opened: bytes {} to {} are missing", path,
             offset + got, offset + bytes);
}

void check_utf8(Span<const char> text, const char* arg, int64_t i) {
  for (int64_t at = 0; at < text.n;) {
    const int n = utf8_bytes(text.ptr + at, text.end());
    if (!n) fail_arg(TT_INVALID_ARG, arg, "{}[{}] is not UTF-8 at byte {}", arg, i, at);
    at += n;
  }
}

NewFile::NewFile(const char* path) : path_(path) {
  const uint64_t random = os_random_seed();
  char tail[] = ".tmp-................";
  for (int k = 0; k < 16; k++) tail[5 + k] = "0123456789abcdef"[random >> (4 * k) & 15];
  name_.add(path).add(tail);
  file_ = os_file_create(name_.c_str());
  if (file_ == -ENOENT) fail_io(path, "its folder does not exist", file_);
  if (file_ < 0) fail_io(path, "cannot create a file in its folder", file_);
}
NewFile::~NewFile() {
  close();
  if (!done_) os_file_remove(name_.c_str());
}
void NewFile::write(const void* data, int64_t bytes) {
  if (int status = os_file_write(file_, data, bytes)) fail_io(path_, "cannot be written", status);
}
void NewFile::commit() {
  if (int status = os_file_sync(file_)) fail_io(path_, "cannot be synced to the disk", status);
  close();
  if (int status = os_file_replace(name_.c_str(), path_))
    fail_io(path_, "cannot be replaced", status);
  done_ = true;
}
void NewFile::close() {
  if (file_ >= 0) os_file_close(file_);
  file_ = -1;
}

}  // namespace TT_NS
