// All operating system calls, implemented in os_<system>.cpp; os.cpp has what systems share.
#pragma once

#include "base/platform.h"

namespace TT_NS {

void* os_alloc(size_t bytes, size_t align) noexcept;
void os_free(void* p) noexcept;
// Whether os_map works; without it, all memory comes from os_alloc.
bool os_maps_pages() noexcept;
// Maps zeroed pages, aligned to `align`. Any page-aligned part may be unmapped separately.
void* os_map(size_t bytes, size_t align) noexcept;
void os_unmap(void* p, size_t bytes) noexcept;
void os_advise_huge(void* p, size_t bytes) noexcept;
int32_t os_pid() noexcept;
// A word of the process that is 1, and 0 in its children of fork, where the system can do so.
const uint32_t* os_process_word() noexcept;
int64_t os_now_ns() noexcept;  // monotonic
// A counter of the processor with an unspecified, constant rate, faster to read than os_now_ns;
// os_now_ns where there is none.
TT_INLINE int64_t os_ticks() noexcept {
#if TT_HAS_CPU_TICKS
  return cpu_ticks();
#else
  return os_now_ns();
#endif
}
// Reads the system's entropy source, without blocking and without a file. Returns false if it has
// nothing to give.
bool os_random(void* out, size_t bytes) noexcept;
// The same; falls back to a mix of clock, process id and an address.
uint64_t os_random_seed() noexcept;
void os_yield() noexcept;
void os_sleep(int64_t ns) noexcept;
// Returns when every other thread of the process has passed a full memory barrier.
void os_barrier_all() noexcept;
void os_wait(
    uint32_t* word,
    uint32_t expected) noexcept;  // sleeps while *word == expected (spurious wake-ups happen)
void os_wake(uint32_t* word, int32_t n) noexcept;
// Starts a thread with all signals blocked. Returns 0 or an errno; `t` holds its handle for
// os_join.
struct OsThread {
  uint64_t handle;
};
int os_thread_start(OsThread* t, void (*fn)(void*), void* arg) noexcept;
void os_thread_join(OsThread* t) noexcept;
// Calls fn(value) at the exit of each thread that has called os_at_thread_exit with a non-NULL
// value. fn must be the same in all calls. Returns false on failure.
bool os_at_thread_exit(void (*fn)(void*), void* value) noexcept;
// Opens a shared library by one of its sonames (NULL-terminated list), or finds a symbol; NULL if
// absent.
void* os_dlopen(const char* const* names) noexcept;
void* os_dlsym(void* lib, const char* name) noexcept;
const char* os_dlerror() noexcept;  // why this thread's last os_dlopen failed

// 3-state futex lock (Drepper, "Futexes are tricky", mutex 2), trivially destructible.
struct Mutex {
  uint32_t word = 0;  // 0 free, 1 held, 2 held and possibly waited for
  TT_INLINE void lock() noexcept {
    if (!try_lock()) lock_slow();
  }
  TT_INLINE bool try_lock() noexcept {
    uint32_t free = 0;
    return atomic_compare_exchange(&word, &free, 1, kAcquire, kRelaxed);
  }
  TT_INLINE void unlock() noexcept {
    if (atomic_exchange(&word, 0, kRelease) == 2) os_wake(&word, 1);
  }

 private:
  void lock_slow() noexcept;
};
struct Lock {
  explicit Lock(Mutex& m) : m_(m) { m_.lock(); }
  ~Lock() { m_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  Mutex& m_;
};

}  // namespace TT_NS
