// What Linux, macOS and the BSDs share.
#include "base/os.h"
#include "base/os_thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
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
  const size_t page = size_t(sysconf(_SC_PAGESIZE));  // 16 or 64 kB on some 64-bit ARM
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

bool os_maps_pages() noexcept { return true; }

int32_t os_pid() noexcept { return int32_t(getpid()); }

void os_yield() noexcept { sched_yield(); }

void os_sleep(int64_t ns) noexcept {
  const timespec t = {time_t(ns / 1'000'000'000), long(ns % 1'000'000'000)};
  nanosleep(&t, nullptr);
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
