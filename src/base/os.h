// All calls of the operating system, implemented in os_<system>.cpp.
#pragma once

#include "base/platform.h"

namespace TT_NS {

void* os_alloc(size_t bytes, size_t align) noexcept;
void os_free(void* p) noexcept;
void os_advise_huge(void* p, size_t bytes) noexcept;
int32_t os_pid() noexcept;
int64_t os_now_ns() noexcept;  // monotonic
bool os_random(void* out, size_t bytes) noexcept;  // from the system's entropy source
void os_yield() noexcept;
void os_wait(uint32_t* word, uint32_t expected) noexcept;  // sleeps while *word == expected (spurious wake-ups happen)
void os_wake(uint32_t* word, int32_t n) noexcept;
// Starts a thread with all signals blocked; 0 or an errno. `t` holds its handle for os_join.
struct OsThread { uint64_t handle; };
int os_thread_start(OsThread* t, void (*fn)(void*), void* arg) noexcept;
void os_thread_join(OsThread* t) noexcept;
// fn(value) runs on exit of each thread that has called os_at_thread_exit with a non-NULL value.
bool os_at_thread_exit(void (*fn)(void*), void* value) noexcept;
// Opens a shared library by its soname list (NULL-terminated) / finds a symbol; NULL if absent.
void* os_dlopen(const char* const* names) noexcept;
void* os_dlsym(void* lib, const char* name) noexcept;

struct Mutex {  // 3-state futex lock, trivially destructible
  uint32_t word = 0;
  void lock() noexcept;
  void unlock() noexcept;
};
struct Lock {
  explicit Lock(Mutex& m) : m_(m) { m_.lock(); }
  ~Lock() { m_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  Mutex& m_;
};

}  // namespace TT_NS
