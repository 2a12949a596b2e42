// macOS and iOS, beside os_posix.cpp. Written from the documentation and never run: no Apple
// machine was at hand.
#include "base/amx.h"
#include "base/arm.h"
#include "base/os.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/sysctl.h>
#include <time.h>

namespace TT_NS {

void os_advise_huge(void*, size_t) noexcept {}

bool os_request_amx() noexcept { return false; }
// All of Apple's 64-bit processors have dot products; Intel's are not asked.
uint32_t os_arm_features() noexcept {
  const auto has = [](const char* name) {
    int yes = 0;
    size_t bytes = sizeof yes;
    return sysctlbyname(name, &yes, &bytes, nullptr, 0) == 0 && yes;
  };
  return kArmByteDots | (has("hw.optional.arm.FEAT_I8MM") ? kArmByteMatrices : 0u) |
         (has("hw.optional.arm.FEAT_BF16") ? kArmBf16Matrices : 0u);
}

bool os_random(void* out, size_t bytes) noexcept {
  arc4random_buf(out, bytes);
  return true;
}

void os_barrier_all() noexcept {
  // There is no membarrier: store buffers drain much faster than this.
  const timespec t = {0, 1000000};
  nanosleep(&t, nullptr);
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
