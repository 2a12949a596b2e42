/* What the C tests use of POSIX, for Windows, where it has another name. Included before every
   source of a test. */
#ifndef TT_CROSS_POSIX_H
#define TT_CROSS_POSIX_H

#include <direct.h>
#include <io.h>
#include <malloc.h>

static inline int posix_memalign(void** p, size_t align, size_t size) {
  *p = _aligned_malloc(size, align);
  return *p ? 0 : 12; /* ENOMEM */
}
#define free_aligned _aligned_free

static inline char* mkdtemp(char* name) {
  return _mktemp(name) && _mkdir(name) == 0 ? name : (char*)0;
}

#endif
