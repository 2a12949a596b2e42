/* The memory of log_backend's device: blocks of powers of two in one piece of MEMORY bytes. */
#ifndef OWN_MEMORY_H
#define OWN_MEMORY_H

#include <stdint.h>

enum { MEMORY = 8 << 20, CLASSES = 24 };
typedef struct own_memory {
  char* bytes;
  int64_t used, in_use, peak;
  void* free_list[CLASSES];
} own_memory;

int own_memory_open(own_memory* m); /* 0: no room */
void own_memory_close(own_memory* m);
void* own_memory_take(own_memory* m, int64_t bytes); /* NULL: no room */
void own_memory_give(own_memory* m, void* p, int64_t bytes);

#endif
