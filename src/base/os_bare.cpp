// No operating system: one thread, no files, no libraries, memory from malloc, and no clock unless
// the application defines tt_bare_now_ns and tt_bare_random.
#include "base/amx.h"
#include "base/arm.h"
#include "base/os.h"
#include "base/os_file.h"
#include "base/os_thread.h"

#include <errno.h>
#include <stdlib.h>

extern "C" TT_WEAK int64_t tt_bare_now_ns() { return 0; }
extern "C" TT_WEAK int tt_bare_random(void*, size_t) { return 0; }

namespace TT_NS {

namespace {

// malloc's own pointer is in the word before an aligned block.
void* aligned(size_t bytes, size_t align) noexcept {
  if (align < alignof(max_align_t)) align = alignof(max_align_t);
  const size_t extra = align + sizeof(void*);
  if (bytes + extra < bytes) return nullptr;
  void* p = malloc(bytes + extra);
  if (!p) return nullptr;
  const uintptr_t first = reinterpret_cast<uintptr_t>(p) + sizeof(void*);
  const uintptr_t at = (first + align - 1) & ~(uintptr_t(align) - 1);
  reinterpret_cast<void**>(at)[-1] = p;
  return reinterpret_cast<void*>(at);
}

}  // namespace

void* os_alloc(size_t bytes, size_t align) noexcept { return aligned(bytes, align); }
void os_free(void* p) noexcept {
  if (p) free(static_cast<void**>(p)[-1]);
}
bool os_maps_pages() noexcept { return false; }
void* os_map(size_t, size_t) noexcept { return nullptr; }
void os_unmap(void*, size_t) noexcept {}
void os_advise_huge(void*, size_t) noexcept {}

bool os_request_amx() noexcept { return false; }
uint32_t os_arm_features() noexcept { return 0; }

int32_t os_pid() noexcept { return 1; }
int64_t os_now_ns() noexcept { return tt_bare_now_ns(); }
bool os_random(void* out, size_t bytes) noexcept { return tt_bare_random(out, bytes) != 0; }

// There is one thread: nothing waits, and nothing but this thread ends.
void os_yield() noexcept {}
void os_sleep(int64_t) noexcept {}
void os_barrier_all() noexcept {}
void os_wait(uint32_t*, uint32_t) noexcept {}
void os_wake(uint32_t*, int32_t) noexcept {}
int os_thread_start(OsThread*, void (*)(void*), void*) noexcept { return ENOSYS; }
void os_thread_join(OsThread*) noexcept {}
void os_thread_detach(OsThread*) noexcept {}
bool os_at_thread_exit(void (*)(void*), void*) noexcept { return true; }

void* os_dlopen(const char* const*) noexcept { return nullptr; }
void* os_dlsym(void*, const char*) noexcept { return nullptr; }
const char* os_dlerror() noexcept { return "this system has no shared libraries"; }

int os_file_open(const char*) noexcept { return -ENOSYS; }
int os_file_create(const char*) noexcept { return -ENOSYS; }
int os_file_append(const char*) noexcept { return -ENOSYS; }
void os_file_close(int) noexcept {}
int64_t os_file_size(int) noexcept { return -ENOSYS; }
int64_t os_file_read(int, void*, int64_t, int64_t) noexcept { return -ENOSYS; }
void* os_file_map(int, int64_t) noexcept { return nullptr; }
void os_file_unmap(void*, int64_t) noexcept {}
int os_file_write(int, const void*, int64_t) noexcept { return -ENOSYS; }
int os_file_sync(int) noexcept { return -ENOSYS; }
int os_file_replace(const char*, const char*) noexcept { return -ENOSYS; }
void os_file_remove(const char*) noexcept {}

const uint32_t* os_process_word() noexcept {
  static const uint32_t always = 1;
  return &always;
}

}  // namespace TT_NS
