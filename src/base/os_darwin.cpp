// macOS and iOS, beside os_posix.cpp. Built by zig's clang with Apple's headers and never run: no
// Apple machine was at hand.
#include "base/amx.h"
#include "base/arm.h"
#include "base/os.h"

#include <mach/mach.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/sysctl.h>
#include <time.h>

extern "C" {
#include <mach/thread_state.h>  // has no linkage of its own
}

// What a thread-local object with a destructor becomes; libSystem has it, no header declares it.
extern "C" void _tlv_atexit(void (*fn)(void*), void* value);

namespace TT_NS {

// CLOCK_MONOTONIC counts microseconds there, and the time that the machine sleeps.
int64_t os_now_ns() noexcept { return int64_t(clock_gettime_nsec_np(CLOCK_UPTIME_RAW)); }

void os_advise_huge(void*, size_t) noexcept {}

bool os_request_amx() noexcept { return false; }
uint32_t os_arm_features() noexcept {
  const auto has = [](const char* name) {
    int yes = 0;
    size_t bytes = sizeof yes;
    return sysctlbyname(name, &yes, &bytes, nullptr, 0) == 0 && yes;
  };
  uint32_t features = 0;
  if (has("hw.optional.arm.FEAT_DotProd")) features |= kArmByteDots;
  if (has("hw.optional.arm.FEAT_I8MM")) features |= kArmByteMatrices;
  if (has("hw.optional.arm.FEAT_BF16")) features |= kArmBf16Matrices;
  return features;
}

bool os_random(void* out, size_t bytes) noexcept {
  arc4random_buf(out, bytes);
  return true;
}

// There is no membarrier. A thread whose registers are read has been stopped for it: the processor
// that ran it has passed a barrier.
void os_barrier_all() noexcept {
  thread_act_array_t threads;
  mach_msg_type_number_t n;
  if (task_threads(mach_task_self(), &threads, &n) != KERN_SUCCESS) return;
  for (mach_msg_type_number_t i = 0; i < n; i++) {
    uintptr_t stack;
    uintptr_t registers[128];
    size_t count = 128;
    thread_get_register_pointer_values(threads[i], &stack, &count, registers);
    mach_port_deallocate(mach_task_self(), threads[i]);
  }
  vm_deallocate(mach_task_self(), vm_address_t(threads), n * sizeof(thread_act_t));
}

namespace {

struct AtExit {
  void (*fn)(void*);  // NULL: not registered
  void* value;
};
constinit thread_local AtExit at_exit = {};

void run_at_exit(void* p) {
  const AtExit last = *static_cast<AtExit*>(p);
  *static_cast<AtExit*>(p) = {};  // what runs may register again
  last.fn(last.value);
}

}  // namespace

// Not by a key of pthreads: dyld frees thread-local storage by keys that it made earlier, which
// come first, and `value` is in that storage.
bool os_at_thread_exit(void (*fn)(void*), void* value) noexcept {
  const bool is_registered = at_exit.fn;
  at_exit = {fn, value};
  if (!is_registered) _tlv_atexit(run_at_exit, &at_exit);
  return true;
}

namespace {

// Waits on addresses have no public call before macOS 14.4. A word's waiters sleep in one of a few
// queues; each wake-up wakes the whole queue, since waits may end without a reason.
struct Queue {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
};
constexpr size_t kQueues = 64;
constinit Queue queues[kQueues];

Queue& queue_of(const uint32_t* word) {
  return queues[(reinterpret_cast<uintptr_t>(word) >> 6) % kQueues];
}

}  // namespace

void os_wait(uint32_t* word, uint32_t expected) noexcept {
  Queue& q = queue_of(word);
  pthread_mutex_lock(&q.lock);
  if (atomic_load(word, kSeqCst) == expected) pthread_cond_wait(&q.changed, &q.lock);
  pthread_mutex_unlock(&q.lock);
}

void os_wake(uint32_t* word, int32_t) noexcept {
  Queue& q = queue_of(word);
  pthread_mutex_lock(&q.lock);
  pthread_cond_broadcast(&q.changed);
  pthread_mutex_unlock(&q.lock);
}

const uint32_t* os_process_word() noexcept {
  static const uint32_t always = 1;
  return &always;
}

}  // namespace TT_NS
