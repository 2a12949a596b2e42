/* What the C tests use of POSIX, for Windows, where it has another name. Included before every
   source of a test. */
#ifndef TT_CROSS_POSIX_H
#define TT_CROSS_POSIX_H

#include <direct.h>
#include <io.h>
#include <malloc.h>
#include <string.h>

static inline int posix_memalign(void** p, size_t align, size_t size) {
  *p = _aligned_malloc(size, align);
  return *p ? 0 : 12; /* ENOMEM */
}
static inline void* aligned_alloc(size_t align, size_t size) {
  return _aligned_malloc(size, align);
}
#define free_aligned _aligned_free

static inline void* memmem(const void* in, size_t n, const void* of, size_t m) {
  for (size_t i = 0; m <= n && i <= n - m; i++)
    if (memcmp((const char*)in + i, of, m) == 0) return (char*)in + i;
  return (void*)0;
}

/* What the process has is not asked: tests look at tt's memory alone. */
enum { _SC_PAGESIZE = 0 };
static inline long sysconf(int name) { return name; }

/* ./dev cross has a limit of time for each program. */
static inline unsigned alarm(unsigned seconds) { return seconds * 0; }
#define SIGALRM SIGTERM

/* Memory that no one has: <windows.h> has too many names for a test. */
__declspec(dllimport) void* __stdcall VirtualAlloc(void*, size_t, unsigned long, unsigned long);
__declspec(dllimport) int __stdcall VirtualFree(void*, size_t, unsigned long);
enum { PROT_NONE = 1, PROT_READ = 4, PROT_WRITE = 4 }; /* PAGE_NOACCESS, PAGE_READWRITE */
enum { MAP_PRIVATE = 0, MAP_ANONYMOUS = 0, MAP_NORESERVE = 0 };
#define EXT_SPAN ((size_t)1 << 28) /* is committed here */
static inline void* mmap(void* at, size_t bytes, int access, int flags, int file, long offset) {
  (void)flags, (void)file, (void)offset;
  return VirtualAlloc(at, bytes, access == PROT_NONE ? 0x2000 : 0x3000, (unsigned long)access);
}
static inline int munmap(void* at, size_t bytes) {
  (void)bytes;
  return !VirtualFree(at, 0, 0x8000);
}

static inline char* mkdtemp(char* name) {
  return _mktemp(name) && _mkdir(name) == 0 ? name : (char*)0;
}

#endif
