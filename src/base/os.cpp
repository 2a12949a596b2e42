// What every system has in common: built from the calls of os.h.
#include "base/os.h"
#include "base/os_file.h"

#include <errno.h>
#include <time.h>

namespace TT_NS {

uint64_t os_random_seed() noexcept {
  uint64_t seed;
  if (os_random(&seed, sizeof seed)) return seed;
  const uint64_t clock = uint64_t(os_now_ns());
  const uint64_t date = uint64_t(time(nullptr)) << 30;
  const uint64_t process = uint64_t(os_pid()) << 32;
  const uint64_t stack = uint64_t(reinterpret_cast<uintptr_t>(&seed)) << 16;
  return clock ^ date ^ process ^ stack;
}

void Mutex::lock_slow() noexcept {
  // A short spin covers the usual critical sections of other cores (list operations).
  for (int i = 0; i < 100; i++) {
    if (atomic_load(&word, kRelaxed) == 0 && try_lock()) return;
    cpu_pause();
  }
  while (atomic_exchange(&word, 2, kAcquire) != 0) os_wait(&word, 2);
}

const char* os_error_text(int error) noexcept {
  switch (error) {
    case EACCES: return "permission denied";
#ifdef EDQUOT
    case EDQUOT: return "disk quota exceeded";
#endif
    case EEXIST: return "the file already exists";
    case EFBIG: return "file too large";
    case EILSEQ: return "the path is not UTF-8";
    case EINVAL: return "not a regular file";
    case EIO: return "input/output error";
    case EISDIR: return "a directory";
#ifdef ELOOP
    case ELOOP: return "too many symbolic links";
#endif
    case EMFILE: return "too many open files";
    case ENAMETOOLONG: return "file name too long";
    case ENFILE: return "too many open files in the system";
    case ENOENT: return "no such file or directory";
    case ENOSPC: return "no space left on the device";
    case ENOSYS: return "no files on this system";
    case ENOTDIR: return "a component of the path is not a directory";
    case EPERM: return "operation not permitted";
    case EROFS: return "read-only file system";
    default: return "unknown system error";
  }
}

}  // namespace TT_NS
