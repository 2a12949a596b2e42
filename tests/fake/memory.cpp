#include "memory.h"

#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <mutex>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sys/mman.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace fake {

namespace {

constexpr size_t kReserved = size_t(1) << (sizeof(size_t) == 8 ? 34 : 28);
constexpr size_t kPage = 4096;
constexpr unsigned char kPoison = 0xff, kCanary = 0xa5;

struct Block {
  size_t bytes, room;  // the size asked for; with the canary behind it, whole pages
  int32_t device;
};

struct Memory {
  std::mutex lock;
  char* base = nullptr;
  size_t used = 0;  // pages below this were allocated at least once
  int open = 0;
  std::map<char*, Block> blocks;
  std::multimap<size_t, char*> free_blocks;
  int64_t live[TT_FAKE_DEVICES] = {};
  int64_t capacity[TT_FAKE_DEVICES] = {int64_t(1) << 31, int64_t(1) << 31};
};
Memory& memory() {
  static Memory* m = new Memory;  // never destroyed: tensors may be freed after static destructors
  return *m;
}

[[noreturn]] void die(const char* what) {
  fprintf(stderr, "fake device: %s\n", what);
  abort();
}

#ifdef _WIN32

void* reserved_pages() { return VirtualAlloc(nullptr, kReserved, MEM_RESERVE, PAGE_NOACCESS); }
bool set_access(char* p, size_t bytes, bool accessible) {
  DWORD before;
  if (!accessible) return VirtualProtect(p, bytes, PAGE_NOACCESS, &before);
  return VirtualAlloc(p, bytes, MEM_COMMIT, PAGE_READWRITE);
}
void drop_contents(void* p, size_t bytes) { VirtualAlloc(p, bytes, MEM_RESET, PAGE_READWRITE); }

#elif defined(__SANITIZE_ADDRESS__)

// AddressSanitizer finds accesses to poisoned memory. Changing the protection of pages takes a
// hundred times as long in its processes as in others.
void* reserved_pages() {
  void* p = mmap(nullptr, kReserved, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}
bool set_access(char* p, size_t bytes, bool accessible) {
  if (accessible) ASAN_UNPOISON_MEMORY_REGION(p, bytes);
  else ASAN_POISON_MEMORY_REGION(p, bytes);
  return true;
}
void drop_contents(void* p, size_t bytes) { madvise(p, bytes, MADV_DONTNEED); }

#else

void* reserved_pages() {
  void* p = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}
bool set_access(char* p, size_t bytes, bool accessible) {
  return mprotect(p, bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}
void drop_contents(void* p, size_t bytes) { madvise(p, bytes, MADV_DONTNEED); }

#endif

void protect(Memory& m, size_t from, bool accessible) {
  if (m.used > from && !set_access(m.base + from, m.used - from, accessible))
    die("the access to pages cannot be changed");
}

bool reserve(Memory& m) {
  if (!m.base) m.base = static_cast<char*>(reserved_pages());
  return m.base;
}

}  // namespace

Access::Access() {
  Memory& m = memory();
  std::lock_guard<std::mutex> l(m.lock);
  if (m.open++ == 0) protect(m, 0, true);
}
Access::~Access() {
  Memory& m = memory();
  std::lock_guard<std::mutex> l(m.lock);
  if (--m.open == 0) protect(m, 0, false);
}

void* take(int32_t device, size_t bytes) {
  Access access;
  Memory& m = memory();
  std::lock_guard<std::mutex> l(m.lock);
  if (!reserve(m) || m.live[device] + int64_t(bytes) > m.capacity[device]) return nullptr;
  const size_t room = (bytes + 64 + kPage - 1) / kPage * kPage;
  char* p;
  auto found = m.free_blocks.find(room);
  if (found != m.free_blocks.end()) {
    p = found->second;
    m.free_blocks.erase(found);
  } else {
    if (m.used + room > kReserved) return nullptr;
    p = m.base + m.used;
    const size_t from = m.used;
    m.used += room;
    protect(m, from, true);
  }
  memset(p, kPoison, bytes);
  memset(p + bytes, kCanary, room - bytes);
  m.blocks[p] = {bytes, room, device};
  m.live[device] += int64_t(bytes);
  return p;
}

void give(int32_t device, void* p) {
  Access access;
  Memory& m = memory();
  std::lock_guard<std::mutex> l(m.lock);
  auto found = m.blocks.find(static_cast<char*>(p));
  if (found == m.blocks.end()) die("raw_free of what raw_alloc has not returned");
  const Block b = found->second;
  if (b.device != device) die("raw_free on another device than raw_alloc");
  for (size_t i = b.bytes; i < b.room; i++)
    if (static_cast<unsigned char*>(p)[i] != kCanary) die("something wrote behind a block");
  drop_contents(p, b.room);
  m.blocks.erase(found);
  m.free_blocks.insert({b.room, static_cast<char*>(p)});
  m.live[device] -= int64_t(b.bytes);
}

bool is_device_pointer(const void* p) {
  Memory& m = memory();
  return p >= m.base && p < m.base + kReserved;
}
int64_t live(int32_t device) {
  Memory& m = memory();
  std::lock_guard<std::mutex> l(m.lock);
  return m.live[device];
}
int64_t capacity(int32_t device) {
  Memory& m = memory();
  std::lock_guard<std::mutex> l(m.lock);
  return m.capacity[device];
}
void set_capacity(int32_t device, int64_t bytes) {
  Memory& m = memory();
  std::lock_guard<std::mutex> l(m.lock);
  m.capacity[device] = bytes;
}

}  // namespace fake
