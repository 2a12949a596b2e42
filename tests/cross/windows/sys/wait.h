/* Windows has no fork and no named pipes: a test that calls them is left out there. */
#ifndef TT_CROSS_WAIT_H
#define TT_CROSS_WAIT_H

#include <setjmp.h>
#include <stdio.h>
#include <sys/types.h>

extern jmp_buf cross_leave;
static inline int leave_test(const char* missing) {
  printf("Windows has no %s: ", missing);
  longjmp(cross_leave, 2);
}
static inline pid_t fork(void) { return leave_test("fork"); }
#define LEAVE_WITHOUT_FORK() leave_test("fork")
static inline int mkfifo(const char* path, int mode) {
  return leave_test("named pipes in folders") + (path != NULL) + mode;
}

/* without fork never called */
enum { SIGKILL = 9 };
#define WIFSIGNALED(status) ((status) != 0)
#define WIFEXITED(status) ((status) == 0)
#define WEXITSTATUS(status) (status)
static inline pid_t waitpid(pid_t child, int* status, int options) {
  return (void)child, (void)options, *status = -1;
}
static inline int kill(pid_t child, int number) { return (void)child, (void)number, -1; }

#endif
