// Files of Windows: descriptors of its C runtime over paths in UTF-8.
#include "base/arith.h"
#include "base/os_file.h"
#include "base/os_windows.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdint.h>
#include <sys/stat.h>

namespace TT_NS {

namespace {

constexpr int64_t kMaxBytes = int64_t(1) << 30;  // bytes per call

int error_of(DWORD error) {
  switch (error) {
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION: return EACCES;
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND: return ENOENT;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: return EEXIST;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: return ENOSPC;
    case ERROR_NOT_ENOUGH_MEMORY: return ENOMEM;
    default: return EIO;
  }
}

HANDLE handle_of(int file) { return reinterpret_cast<HANDLE>(_get_osfhandle(file)); }

}  // namespace

int os_file_open(const char* path) noexcept {
  const WidePath wide(path);
  if (wide.error) return -wide.error;
  const DWORD attributes = GetFileAttributesW(wide.text);
  if (attributes == INVALID_FILE_ATTRIBUTES) return -error_of(GetLastError());
  if (attributes & FILE_ATTRIBUTE_DIRECTORY) return -EISDIR;
  const int file = _wopen(wide.text, _O_RDONLY | _O_BINARY | _O_NOINHERIT);
  if (file < 0) return -errno;
  if (GetFileType(handle_of(file)) == FILE_TYPE_DISK) return file;
  _close(file);
  return -EINVAL;
}

int os_file_create(const char* path) noexcept {
  const WidePath wide(path);
  if (wide.error) return -wide.error;
  const int flags = _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT;
  const int file = _wopen(wide.text, flags, _S_IREAD | _S_IWRITE);
  return file < 0 ? -errno : file;
}

// By the handle's access: _O_APPEND is known to _write alone, and os_file_write calls WriteFile.
int os_file_append(const char* path) noexcept {
  const WidePath wide(path);
  if (wide.error) return -wide.error;
  const DWORD others = FILE_SHARE_READ | FILE_SHARE_WRITE;
  HANDLE handle = CreateFileW(wide.text, FILE_APPEND_DATA | SYNCHRONIZE, others, nullptr,
                              OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return -error_of(GetLastError());
  const int file = _open_osfhandle(reinterpret_cast<intptr_t>(handle), _O_WRONLY | _O_BINARY);
  if (file >= 0) return file;
  CloseHandle(handle);
  return -EMFILE;
}

void os_file_close(int file) noexcept { _close(file); }

int64_t os_file_size(int file) noexcept {
  LARGE_INTEGER size;
  return GetFileSizeEx(handle_of(file), &size) ? size.QuadPart : -error_of(GetLastError());
}

int64_t os_file_read(int file, void* out, int64_t bytes, int64_t offset) noexcept {
  int64_t done = 0;
  while (done < bytes) {
    OVERLAPPED at = {};
    at.Offset = DWORD(uint64_t(offset + done));
    at.OffsetHigh = DWORD(uint64_t(offset + done) >> 32);
    const DWORD want = DWORD(min(bytes - done, kMaxBytes));
    DWORD got = 0;
    if (!ReadFile(handle_of(file), static_cast<char*>(out) + done, want, &got, &at)) {
      if (GetLastError() == ERROR_HANDLE_EOF) break;
      return -error_of(GetLastError());
    }
    if (got == 0) break;
    done += got;
  }
  return done;
}

void* os_file_map(int file, int64_t bytes) noexcept {
  if (bytes > TT_MAX_BYTES) return nullptr;
  HANDLE mapping = CreateFileMappingW(handle_of(file), nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (!mapping) return nullptr;
  void* map = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, size_t(bytes));
  CloseHandle(mapping);
  return map;
}

void os_file_unmap(void* map, int64_t) noexcept { UnmapViewOfFile(map); }

int os_file_write(int file, const void* data, int64_t bytes) noexcept {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    DWORD put = 0;
    if (!WriteFile(handle_of(file), p, DWORD(min(bytes, kMaxBytes)), &put, nullptr))
      return -error_of(GetLastError());
    p += put;
    bytes -= put;
  }
  return 0;
}

int os_file_sync(int file) noexcept {
  return FlushFileBuffers(handle_of(file)) ? 0 : -error_of(GetLastError());
}

int os_file_replace(const char* from, const char* to) noexcept {
  const WidePath source(from);
  const WidePath target(to);
  if (source.error) return -source.error;
  if (target.error) return -target.error;
  const DWORD flags = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
  return MoveFileExW(source.text, target.text, flags) ? 0 : -error_of(GetLastError());
}

void os_file_remove(const char* path) noexcept {
  const WidePath wide(path);
  if (!wide.error) DeleteFileW(wide.text);
}

}  // namespace TT_NS
