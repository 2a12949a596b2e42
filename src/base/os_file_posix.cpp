// Files of Linux, macOS and the BSDs.
#include "base/os_file.h"
#include "base/arith.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace TT_NS {

int os_file_open(const char* path) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not block
  if (file < 0) return -errno;
  struct stat s;
  int bad = 0;
  if (fstat(file, &s)) bad = errno;
  else if (!S_ISREG(s.st_mode)) bad = S_ISDIR(s.st_mode) ? EISDIR : EINVAL;
  if (bad) close(file);
  return bad ? -bad : file;
}

void* os_file_map(int file, int64_t bytes) noexcept {
  if (bytes > TT_MAX_BYTES) return nullptr;
  void* map = mmap(nullptr, size_t(bytes), PROT_READ, MAP_PRIVATE, file, 0);
  return map == MAP_FAILED ? nullptr : map;
}
void os_file_unmap(void* map, int64_t bytes) noexcept { munmap(map, size_t(bytes)); }

int os_file_create(const char* path) noexcept {
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  return file < 0 ? -errno : file;
}

int os_file_append(const char* path) noexcept {
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  return file < 0 ? -errno : file;
}

void os_file_close(int file) noexcept { close(file); }

int64_t os_file_size(int file) noexcept {
  struct stat s;
  return fstat(file, &s) ? -errno : int64_t(s.st_size);
}

int64_t os_file_read(int file, void* out, int64_t bytes, int64_t offset) noexcept {
  constexpr int64_t kMaxBytes = int64_t(1) << 30;  // bytes per call
  int64_t done = 0;
  while (done < bytes) {
    const int64_t want = min(bytes - done, kMaxBytes);
    const ssize_t got = pread(file, static_cast<char*>(out) + done, size_t(want), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    if (got == 0) break;
    done += got;
  }
  return done;
}

int os_file_write(int file, const void* data, int64_t bytes) noexcept {
  constexpr int64_t kMaxBytes = int64_t(1) << 30;
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = write(file, p, size_t(min(bytes, kMaxBytes)));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return -errno;
    p += put;
    bytes -= put;
  }
  return 0;
}

int os_file_sync(int file) noexcept {
#ifdef F_FULLFSYNC  // macOS, whose fsync leaves the bytes in the cache of the disk
  if (fcntl(file, F_FULLFSYNC) == 0) return 0;
#endif
  return fsync(file) ? -errno : 0;
}

static int sync_directory_of(const char* path) noexcept {
  char folder[4096];
  const char* slash = strrchr(path, '/');
  const size_t n = slash ? size_t(slash - path) : 0;
  if (n >= sizeof folder) return -ENAMETOOLONG;
  memcpy(folder, path, n);
  folder[n] = 0;
  const char* parent = n ? folder : "/";
  const int file = open(slash ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return -errno;
  // EINVAL: the file system has nothing to sync.
  const int status = fsync(file) && errno != EINVAL ? -errno : 0;
  close(file);
  return status;
}

int os_file_replace(const char* from, const char* to) noexcept {
  return rename(from, to) ? -errno : sync_directory_of(to);
}

void os_file_remove(const char* path) noexcept { unlink(path); }

}  // namespace TT_NS
