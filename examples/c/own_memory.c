#include "own_memory.h"

#include <stdlib.h>
#include <string.h>

static int class_of(int64_t bytes) {
  int k = 6;
  while (((int64_t)1 << k) < bytes) k++;
  return k;
}

int own_memory_open(own_memory* m) {
  memset(m, 0, sizeof *m);
  m->bytes = malloc(MEMORY);
  return m->bytes != NULL;
}
void own_memory_close(own_memory* m) {
  free(m->bytes);
  m->bytes = NULL;
}

void* own_memory_take(own_memory* m, int64_t bytes) {
  const int k = class_of(bytes);
  void* p;
  if (k >= CLASSES) return NULL;
  p = m->free_list[k];
  if (p) {
    memcpy(&m->free_list[k], p, sizeof p);
  } else {
    if (m->used + ((int64_t)1 << k) > MEMORY) return NULL;
    p = m->bytes + m->used;
    m->used += (int64_t)1 << k;
  }
  m->in_use += bytes;
  if (m->in_use > m->peak) m->peak = m->in_use;
  return p;
}
void own_memory_give(own_memory* m, void* p, int64_t bytes) {
  const int k = class_of(bytes);
  memcpy(p, &m->free_list[k], sizeof p);
  m->free_list[k] = p;
  m->in_use -= bytes;
}
