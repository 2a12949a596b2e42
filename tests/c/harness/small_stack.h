/* The stack of threads that prove that nothing recurses. */
#ifndef SMALL_STACK_H
#define SMALL_STACK_H

#include <stddef.h>
#include <unistd.h>

/* 64 kB, or the least that the system accepts: 128 kB on 64-bit ARM. */
static inline size_t small_stack(void) {
  const size_t wanted = 64 << 10;
#ifdef _SC_THREAD_STACK_MIN
  const long least = sysconf(_SC_THREAD_STACK_MIN);
  if (least > (long)wanted) return (size_t)least;
#endif
  return wanted;
}

#endif
