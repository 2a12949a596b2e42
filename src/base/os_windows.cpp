// Windows 8 and newer: kernel32, bcrypt (entropy) and synchronization (waits on addresses).
#include "base/amx.h"
#include "base/arm.h"
#include "base/os.h"
#include "base/os_thread.h"
#include "base/os_windows.h"

#include <bcrypt.h>
#include <errno.h>
#include <fenv.h>
#include <malloc.h>
#include <process.h>
#include <stdlib.h>

namespace TT_NS {

// os_free cannot tell how a block was allocated, so every block is an aligned one.
void* os_alloc(size_t bytes, size_t align) noexcept {
  return _aligned_malloc(bytes ? bytes : 1, align < 16 ? 16 : align);
}

void os_free(void* p) noexcept { _aligned_free(p); }

void* os_map(size_t bytes, size_t align) noexcept {
  const size_t granularity = 65536;  // of addresses that VirtualAlloc returns
  if (align <= granularity)
    return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (bytes + align < bytes) return nullptr;
  void* reserved = VirtualAlloc(nullptr, bytes + align, MEM_RESERVE, PAGE_NOACCESS);
  if (!reserved) return nullptr;
  const uintptr_t aligned = (reinterpret_cast<uintptr_t>(reserved) + align - 1) & ~(align - 1);
  void* p = VirtualAlloc(reinterpret_cast<void*>(aligned), bytes, MEM_COMMIT, PAGE_READWRITE);
  if (!p) VirtualFree(reserved, 0, MEM_RELEASE);
  return p;
}

static constinit Mutex unmap_lock;

// A part of a mapping can only be decommitted; its addresses are released with the last part.
void os_unmap(void* p, size_t bytes) noexcept {
  MEMORY_BASIC_INFORMATION info;
  Lock l(unmap_lock);  // two threads must not both find that they were last
  if (!VirtualFree(p, bytes, MEM_DECOMMIT) || !VirtualQuery(p, &info, sizeof info)) return;
  void* base = info.AllocationBase;
  char* at = static_cast<char*>(base);
  while (VirtualQuery(at, &info, sizeof info) && info.AllocationBase == base) {
    if (info.State == MEM_COMMIT) return;
    at = static_cast<char*>(info.BaseAddress) + info.RegionSize;
  }
  VirtualFree(base, 0, MEM_RELEASE);
}

bool os_maps_pages() noexcept { return true; }
void os_advise_huge(void*, size_t) noexcept {}

bool os_request_amx() noexcept { return false; }
uint32_t os_arm_features() noexcept {
  // PF_ARM_V82_DP_, _I8MM_ and PF_ARM_V86_BF16_INSTRUCTIONS_AVAILABLE of newer headers
  constexpr DWORD kDots = 43;
  constexpr DWORD kByteMatrices = 66;
  constexpr DWORD kBf16Matrices = 68;
  uint32_t features = 0;
  if (IsProcessorFeaturePresent(kDots)) features |= kArmByteDots;
  if (IsProcessorFeaturePresent(kByteMatrices)) features |= kArmByteMatrices;
  if (IsProcessorFeaturePresent(kBf16Matrices)) features |= kArmBf16Matrices;
  return features;
}

int32_t os_pid() noexcept { return int32_t(GetCurrentProcessId()); }

int64_t os_now_ns() noexcept {
  LARGE_INTEGER now, rate;
  QueryPerformanceCounter(&now);
  QueryPerformanceFrequency(&rate);
  const int64_t second = 1000000000;
  const int64_t rest = now.QuadPart % rate.QuadPart;
  return now.QuadPart / rate.QuadPart * second + rest * second / rate.QuadPart;
}

bool os_random(void* out, size_t bytes) noexcept {
  auto* p = static_cast<unsigned char*>(out);
  return BCryptGenRandom(nullptr, p, ULONG(bytes), BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0;
}

void os_yield() noexcept { SwitchToThread(); }
void os_sleep(int64_t ns) noexcept { Sleep(DWORD((ns + 999'999) / 1'000'000)); }

void os_barrier_all() noexcept { FlushProcessWriteBuffers(); }

void os_wait(uint32_t* word, uint32_t expected) noexcept {
  WaitOnAddress(word, &expected, sizeof expected, INFINITE);
}

void os_wake(uint32_t* word, int32_t n) noexcept {
  if (n == 1) WakeByAddressSingle(word);
  else WakeByAddressAll(word);
}

namespace {

struct Start {
  void (*fn)(void*);
  void* arg;
  fenv_t rounding;
};

// A thread begins with x87's precision cut to 53 bits, in which mingw's pow has other results: it
// takes the creator's, as on POSIX, so that results do not depend on who computes them.
unsigned __stdcall thread_main(void* p) {
  const Start s = *static_cast<Start*>(p);
  free(p);
  fesetenv(&s.rounding);
  s.fn(s.arg);
  return 0;
}

HANDLE handle_of(const OsThread* t) { return reinterpret_cast<HANDLE>(uintptr_t(t->handle)); }

}  // namespace

int os_thread_start(OsThread* t, void (*fn)(void*), void* arg) noexcept {
  auto* s = static_cast<Start*>(malloc(sizeof(Start)));
  if (!s) return ENOMEM;
  s->fn = fn;
  s->arg = arg;
  fegetenv(&s->rounding);
  const uintptr_t handle = _beginthreadex(nullptr, 0, thread_main, s, 0, nullptr);
  if (!handle) {
    free(s);
    return errno ? errno : EAGAIN;
  }
  t->handle = uint64_t(handle);
  return 0;
}

void os_thread_join(OsThread* t) noexcept {
  WaitForSingleObject(handle_of(t), INFINITE);
  CloseHandle(handle_of(t));
}

void os_thread_detach(OsThread* t) noexcept { CloseHandle(handle_of(t)); }

namespace {

// One record per thread, in fiber-local storage, which calls back at the exit of a thread.
struct ThreadRecord {
  void* value;  // of os_at_thread_exit
  alignas(16) char state[64];
};
constinit Mutex exit_lock;
constinit DWORD exit_slot = FLS_OUT_OF_INDEXES;  // (atomic)
using AtExit = void (*)(void*);
constinit AtExit at_exit = nullptr;

void __stdcall run_at_exit(void* p) {
  auto* record = static_cast<ThreadRecord*>(p);
  if (!record) return;
  FlsSetValue(exit_slot, record);  // which the system has cleared, for os_thread_state in at_exit
  if (record->value) at_exit(record->value);
  FlsSetValue(exit_slot, nullptr);
  free(record);
}

// Threads call run_at_exit when they end: the library stays even if the application frees it, as it
// does on Linux by -z nodelete.
void keep_loaded() {
  HMODULE library;
  GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                     reinterpret_cast<LPCSTR>(run_at_exit), &library);
}

bool have_slot() {
  if (atomic_load(&exit_slot, kAcquire) != FLS_OUT_OF_INDEXES) return true;
  Lock l(exit_lock);
  if (exit_slot == FLS_OUT_OF_INDEXES) {
    keep_loaded();
    atomic_store(&exit_slot, FlsAlloc(run_at_exit), kRelease);
  }
  return exit_slot != FLS_OUT_OF_INDEXES;
}

// NULL on failure.
ThreadRecord* record_of_thread() {
  if (!have_slot()) return nullptr;
  auto* record = static_cast<ThreadRecord*>(FlsGetValue(exit_slot));
  if (record) return record;
  record = static_cast<ThreadRecord*>(calloc(1, sizeof(ThreadRecord)));
  if (record && FlsSetValue(exit_slot, record)) return record;
  free(record);
  return nullptr;
}

}  // namespace

void* os_thread_state(size_t bytes) noexcept {
  ThreadRecord* record = record_of_thread();
  if (!record || bytes > sizeof record->state) abort();
  return record->state;
}

bool os_at_thread_exit(void (*fn)(void*), void* value) noexcept {
  ThreadRecord* record = record_of_thread();
  if (!record) return false;
  {
    Lock l(exit_lock);
    at_exit = fn;
  }
  record->value = value;
  return true;
}

void* os_dlopen(const char* const* names) noexcept {
  HMODULE library = nullptr;
  DWORD mode;
  SetThreadErrorMode(SEM_FAILCRITICALERRORS, &mode);  // no dialog about a file that is no library
  for (; *names && !library; names++) {
    const WidePath wide(*names);
    if (!wide.error) library = LoadLibraryW(wide.text);
  }
  const DWORD error = GetLastError();
  SetThreadErrorMode(mode, nullptr);
  SetLastError(error);  // for os_dlerror
  return reinterpret_cast<void*>(library);
}

void* os_dlsym(void* lib, const char* name) noexcept {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(lib), name));
}

const char* os_dlerror() noexcept {
  return GetLastError() == ERROR_MOD_NOT_FOUND ? "the library was not found"
                                               : "the library cannot be loaded";
}

const uint32_t* os_process_word() noexcept {
  static const uint32_t always = 1;
  return &always;
}

}  // namespace TT_NS
