#include "base/amx.h"
#include "base/arm.h"
#include "base/os.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace TT_NS {

int64_t os_now_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

void os_advise_huge(void* p, size_t bytes) noexcept { madvise(p, bytes, MADV_HUGEPAGE); }

uint32_t os_arm_features() noexcept {
#if defined(__aarch64__)
  // HWCAP_ASIMDDP, HWCAP_SVE, HWCAP2_I8MM and HWCAP2_BF16 of asm/hwcap.h
  constexpr unsigned long kDots = 1ul << 20;
  constexpr unsigned long kByteMatrices = 1ul << 13;
  constexpr unsigned long kBf16Matrices = 1ul << 14;
  constexpr unsigned long kSve = 1ul << 22;
  constexpr int kGetVectorLength = 51;  // PR_SVE_GET_VL
  const unsigned long some = getauxval(AT_HWCAP);
  const unsigned long more = getauxval(AT_HWCAP2);
  uint32_t features = 0;
  if (some & kDots) features |= kArmByteDots;
  if (more & kByteMatrices) features |= kArmByteMatrices;
  if (more & kBf16Matrices) features |= kArmBf16Matrices;
  if (some & kSve && (prctl(kGetVectorLength) & 0xffff) == 32) features |= kArmSve256;
  return features;
#elif TT_HAVE_NEON
  constexpr unsigned long kNeon = 1ul << 12;  // HWCAP_NEON of asm/hwcap.h
  if (getauxval(AT_HWCAP) & kNeon) return kArmNeon;
  return 0;
#else
  return 0;
#endif
}

bool os_request_amx() noexcept {
#if defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM, of asm/prctl.h since 5.16
  constexpr long kTileData = 18;
  const int saved = errno;
  const bool allowed = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  errno = saved;
  return allowed;
#else
  return false;
#endif
}

const uint32_t* os_process_word() noexcept {
  static const uint32_t always = 1;
  static const uint32_t* word = nullptr;
  if (const uint32_t* known = atomic_load(&word, kAcquire)) return known;
  constexpr size_t kPage = 65536;  // at least one page of any system
  void* page = os_map(kPage, kPage);
  const uint32_t* made = &always;
  if (page && madvise(page, kPage, MADV_WIPEONFORK) == 0) {
    *static_cast<uint32_t*>(page) = 1;
    made = static_cast<uint32_t*>(page);
  }
  const uint32_t* none = nullptr;
  if (atomic_compare_exchange(&word, &none, made, kAcqRel, kAcquire)) return made;
  if (page) os_unmap(page, kPage);
  return none;
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

}  // namespace TT_NS
