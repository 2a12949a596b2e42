/* Preloaded, it makes Linux refuse AMX's tiles to a program: an alternate signal stack that is
   smaller than a signal's frame with them. */
#include <signal.h>
#include <stddef.h>

__attribute__((constructor)) static void refuse_tiles(void) {
  static char memory[8192];
  const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
  sigaltstack(&stack, NULL);
}
