/* A registered device whose memory only its callbacks can access: its addresses are pages
   without access rights; the bytes are elsewhere, at a fixed distance. */
#ifndef TT_TEST_EXT_BACKEND_H
#define TT_TEST_EXT_BACKEND_H

#include "tt.h"

#include <string.h>
#ifndef _WIN32 /* tests/cross/posix.h */
#include <sys/mman.h>
#endif

#ifndef EXT_SPAN /* several fit in valgrind's address space, and in one of 32 bits */
#define EXT_SPAN ((size_t)1 << (sizeof(size_t) == 8 ? 33 : 28))
#endif

typedef struct ExtMemory {
  char *pages, *bytes; /* the addresses that tt gets, and the memory behind them */
  size_t used;
  void* free_list[40];
  int64_t live, blocks, dropped, copies[4];
  int64_t fail_copy; /* the number of the copy that fails (1: the next); 0: none */
  int64_t room;      /* bytes; 0: no bound */
} ExtMemory;

static inline char* ext_bytes(const ExtMemory* m, const void* p) {
  return m->bytes + ((const char*)p - m->pages);
}
static inline int ext_class(int64_t bytes) {
  int k = 6;
  while (((int64_t)1 << k) < bytes) k++;
  return k;
}
static inline void* ext_alloc(void* user, int64_t bytes) {
  ExtMemory* m = (ExtMemory*)user;
  const int k = ext_class(bytes);
  void* p = m->free_list[k];
  if (m->room && m->live + bytes > m->room) return NULL;
  if (p) {
    memcpy(&m->free_list[k], ext_bytes(m, p), sizeof p);
  } else {
    if (m->used + ((size_t)1 << k) > EXT_SPAN) return NULL;
    p = m->pages + m->used;
    m->used += (size_t)1 << k;
  }
  memset(ext_bytes(m, p), 0xa5, (size_t)bytes);
  m->live += bytes;
  m->blocks++;
  return p;
}
static inline void ext_free(void* user, void* p, int64_t bytes) {
  ExtMemory* m = (ExtMemory*)user;
  const int k = ext_class(bytes);
  memcpy(ext_bytes(m, p), &m->free_list[k], sizeof p);
  m->free_list[k] = p;
  m->live -= bytes;
  m->blocks--;
}
static inline tt_status ext_copy(void* user, tt_ctx* ctx, void* dst, const void* src, int64_t bytes,
                                 int32_t kind) {
  ExtMemory* m = (ExtMemory*)user;
  (void)ctx;
  if (m->fail_copy && --m->fail_copy == 0) return TT_IO;
  m->copies[kind]++;
  memcpy(kind == 2 ? (char*)dst : ext_bytes(m, dst),
         kind == 1 ? (const char*)src : ext_bytes(m, src), (size_t)bytes);
  return TT_OK;
}
/* Unmaps everything. The runtime and all tensors are released before. */
static inline void ext_drop(void* user) {
  ExtMemory* m = (ExtMemory*)user;
  munmap(m->pages, EXT_SPAN);
  munmap(m->bytes, EXT_SPAN);
  m->pages = m->bytes = NULL;
  m->used = 0;
  m->dropped++;
  memset(m->free_list, 0, sizeof m->free_list);
}
static inline tt_backend_def ext_def(ExtMemory* m, const char* name) {
  tt_backend_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.name = name;
  d.user = m;
  d.alloc = ext_alloc;
  d.free = ext_free;
  d.copy = ext_copy;
  d.drop = ext_drop;
  m->pages =
      (char*)mmap(NULL, EXT_SPAN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  m->bytes = (char*)mmap(NULL, EXT_SPAN, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return d;
}

#endif
