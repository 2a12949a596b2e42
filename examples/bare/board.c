/* What a program needs on mps2-an500: vectors, the reset handler, and malloc's memory. Output and
   exit are semihosting calls, which qemu serves. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"

extern char data_begin[], data_end[], data_image[], bss_begin[], bss_end[], end[], stack_limit[],
    stack_top[];
extern void (*__init_array_start[])(void);
extern void (*__init_array_end[])(void);
int main(void);

enum { SYS_WRITE0 = 4, SYS_EXIT = 24, PAINT = 0x5a };

static int semihost(int operation, const void* argument) {
  register int r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void board_print(const char* text) { semihost(SYS_WRITE0, text); }

void board_print_int(long n) {
  char text[12];
  char* at = text + sizeof text - 1;
  unsigned long rest = n < 0 ? 0ul - (unsigned long)n : (unsigned long)n;
  *at = 0;
  do {
    *--at = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (n < 0) *--at = '-';
  board_print(at);
}

__attribute__((noreturn)) void _exit(int status) {
  const uintptr_t kApplicationExit = 0x20026, kError = 0x20023;
  semihost(SYS_EXIT, (const void*)(status ? kError : kApplicationExit));
  for (;;) {}
}

/* What newlib asks of a system. There is no clock: seeds are the application's. */
void* __dso_handle;
int _getpid(void) { return 1; }
int _kill(int process, int signal) {
  (void)process;
  (void)signal;
  _exit(1);
}
int _gettimeofday(void* time, void* zone) {
  (void)time;
  (void)zone;
  return -1;
}

static char* heap_end = end;

void* _sbrk(ptrdiff_t bytes) {
  char* const begin = heap_end;
  if (bytes > stack_limit - begin) return (void*)-1;
  heap_end += bytes;
  return begin;
}

long board_heap(void) { return (long)(heap_end - end); }

long board_stack(void) {
  const char* at = stack_limit;
  while (*at == PAINT) at++;
  return (long)(stack_top - at);
}

void reset(void) {
  char* const frame = __builtin_frame_address(0);
  *(volatile uint32_t*)0xe000ed88 |= 0xf << 20; /* the FPU */
  memcpy(data_begin, data_image, (size_t)(data_end - data_begin));
  memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
  memset(stack_limit, PAINT, (size_t)(frame - 256 - stack_limit));
  for (void (**f)(void) = __init_array_start; f < __init_array_end; f++) (*f)();
  _exit(main());
}

static void fault(void) {
  board_print("fault\n");
  _exit(1);
}

__attribute__((section(".vectors"), used)) static void* const vectors[16] = {
    stack_top, (void*)reset, (void*)fault, (void*)fault, (void*)fault, (void*)fault, (void*)fault};
