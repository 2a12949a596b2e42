#include "base/os.h"
#include "base/os_thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace TT_NS {

void* os_alloc(size_t bytes, size_t align) noexcept {
  void* p = nullptr;
  if (align <= alignof(max_align_t)) return malloc(bytes);
  return posix_memalign(&p, align, bytes) == 0 ? p : nullptr;
}

void os_free(void* p) noexcept { free(p); }

void* os_map(size_t bytes, size_t align) noexcept {
  const size_t page = 4096;
  const size_t extra = align > page ? align : 0;
  if (bytes + extra < bytes) return nullptr;
  void* m =
      mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED) return nullptr;
  if (!extra) return m;
  const uintptr_t at = reinterpret_cast<uintptr_t>(m);
  const uintptr_t aligned = (at + align - 1) & ~(uintptr_t(align) - 1);
  const uintptr_t end = (aligned + bytes + page - 1) & ~uintptr_t(page - 1);
  const uintptr_t map_end = (at + bytes + extra + page - 1) & ~uintptr_t(page - 1);
  if (aligned > at) munmap(m, aligned - at);
  if (map_end > end) munmap(reinterpret_cast<void*>(end), map_end - end);
  return reinterpret_cast<void*>(aligned);
}

void os_unmap(void* p, size_t bytes) noexcept { munmap(p, bytes); }

void os_advise_huge(void* p, size_t bytes) noexcept { madvise(p, bytes, MADV_HUGEPAGE); }

int32_t os_pid() noexcept { return int32_t(getpid()); }

int64_t os_now_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

bool os_random(void* out, size_t bytes) noexcept {
  const int saved = errno;
  unsigned char* p = static_cast<unsigned char*>(out);
  while (bytes) {
    const ssize_t got = getrandom(p, bytes, GRND_NONBLOCK);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    p += got;
    bytes -= size_t(got);
  }
  errno = saved;
  return bytes == 0;
}

uint64_t os_random_seed() noexcept {
  uint64_t seed;
  if (os_random(&seed, sizeof seed)) return seed;
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  const uint64_t time = uint64_t(t.tv_sec) * 1000000000 + uint64_t(t.tv_nsec);
  const uint64_t process = uint64_t(os_pid()) << 32;
  const uint64_t stack = uint64_t(reinterpret_cast<uintptr_t>(&t)) << 16;
  return time ^ process ^ stack;
}

void os_yield() noexcept { sched_yield(); }

void os_barrier_all() noexcept {
  const long no_cpu = 0;
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, no_cpu) == 0) return;
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, no_cpu) == 0 &&
      syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, no_cpu) == 0)
    return;
  // For kernels without membarrier: store buffers drain much faster than this.
  const timespec t = {0, 1000000};
  nanosleep(&t, nullptr);
}

// Preserves errno, which a futex call may set without any error of the caller.
static void futex(uint32_t* word, int op, uint32_t value) noexcept {
  const int saved = errno;
  syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
  errno = saved;
}

void os_wait(uint32_t* word, uint32_t expected) noexcept { futex(word, FUTEX_WAIT, expected); }

void os_wake(uint32_t* word, int32_t n) noexcept { futex(word, FUTEX_WAKE, uint32_t(n)); }

void Mutex::lock_slow() noexcept {
  // A short spin covers the usual critical sections of other cores (list operations).
  for (int i = 0; i < 100; i++) {
    if (__atomic_load_n(&word, __ATOMIC_RELAXED) == 0 && try_lock()) return;
    cpu_pause();
  }
  while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE) != 0) os_wait(&word, 2);
}

namespace {

struct Start {
  void (*fn)(void*);
  void* arg;
};

void* thread_main(void* p) {
  const Start s = *static_cast<Start*>(p);
  free(p);
  s.fn(s.arg);
  return nullptr;
}

}  // namespace

int os_thread_start(OsThread* t, void (*fn)(void*), void* arg) noexcept {
  Start* s = static_cast<Start*>(malloc(sizeof(Start)));
  if (!s) return ENOMEM;
  *s = {fn, arg};
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t id;
  const int err = pthread_create(&id, nullptr, thread_main, s);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (err) free(s);
  else t->handle = uint64_t(id);
  return err;
}

void os_thread_join(OsThread* t) noexcept { pthread_join(pthread_t(t->handle), nullptr); }
void os_thread_detach(OsThread* t) noexcept { pthread_detach(pthread_t(t->handle)); }

namespace {

constinit Mutex exit_lock;
constinit bool exit_key_made = false;
constinit pthread_key_t exit_key = 0;

}  // namespace

bool os_at_thread_exit(void (*fn)(void*), void* value) noexcept {
  {
    Lock l(exit_lock);
    if (!exit_key_made && pthread_key_create(&exit_key, fn) != 0) return false;
    exit_key_made = true;
  }
  return pthread_setspecific(exit_key, value) == 0;
}

void* os_dlopen(const char* const* names) noexcept {
  for (; *names; names++)
    if (void* lib = dlopen(*names, RTLD_NOW | RTLD_LOCAL)) return lib;
  return nullptr;
}

void* os_dlsym(void* lib, const char* name) noexcept { return dlsym(lib, name); }

const char* os_dlerror() noexcept {
  const char* text = dlerror();
  return text ? text : "unknown reason";
}

}  // namespace TT_NS
