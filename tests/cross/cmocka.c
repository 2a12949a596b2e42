#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include "cmocka.h"

jmp_buf cross_leave;

/* After a status of a child or another thread there is no test to return to. */
void cross_fail(const char* file, int line) {
  print_error("%s:%d: the check failed\n", file, line);
  fflush(NULL);
  longjmp(cross_leave, 1);
}

void _assert_int_equal(uint64_t a, uint64_t b, const char* file, int line) {
  if (a == b) return;
  print_error("%lld != %lld\n", (long long)a, (long long)b);
  cross_fail(file, line);
}

void cross_strings(const char* a, const char* b, const char* file, int line) {
  if (strcmp(a, b) == 0) return;
  print_error("\"%s\" != \"%s\"\n", a, b);
  cross_fail(file, line);
}

/* Returns 0, 1 for a failure or 2 for a test that is left out. */
static int run_one(const struct CMUnitTest* t) {
  void* state = t->initial_state;
  const int left = setjmp(cross_leave);
  if (left) return left;
  if (t->setup_func && t->setup_func(&state)) return 1;
  t->test_func(&state);
  if (t->teardown_func && t->teardown_func(&state)) return 1;
  return 0;
}

int cross_run(const struct CMUnitTest* tests, size_t n, CMFixtureFunction setup,
              CMFixtureFunction teardown) {
  static const char* const kWords[] = {"ok", "FAILED", "left out"};
  void* state = NULL;
  int failed = 0;
  if (setup && setup(&state)) return 1;
  for (size_t i = 0; i < n; i++) {
    const int result = run_one(&tests[i]);
    printf("%s: %s\n", tests[i].name, kWords[result]);
    fflush(stdout);
    failed += result == 1;
  }
  if (teardown && teardown(&state)) return 1;
  return failed;
}
