/* The part of cmocka that tt's tests use, for targets that have no package of it: a failed check
   prints where it is and leaves the test by longjmp. Included after setjmp.h and stdio.h. */
#ifndef TT_CROSS_CMOCKA_H
#define TT_CROSS_CMOCKA_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*CMFixtureFunction)(void** state);
typedef void (*CMUnitTestFunction)(void** state);
struct CMUnitTest {
  const char* name;
  CMUnitTestFunction test_func;
  CMFixtureFunction setup_func, teardown_func;
  void* initial_state;
};
#define cmocka_unit_test_setup_teardown(f, setup, teardown) \
  { #f, f, setup, teardown, NULL }
#define cmocka_unit_test(f) \
  { #f, f, NULL, NULL, NULL }

/* Defined by the harness, once per program. */
extern jmp_buf cross_leave;
void cross_fail(const char* file, int line);
int cross_run(const struct CMUnitTest* tests, size_t n, CMFixtureFunction setup,
              CMFixtureFunction teardown);
#define cmocka_run_group_tests(tests, setup, teardown) \
  cross_run((tests), sizeof(tests) / sizeof((tests)[0]), (setup), (teardown))
/* For lists that a program makes: the name of the group is not printed. */
#define _cmocka_run_group_tests(name, tests, n, setup, teardown) \
  cross_run((tests), (n), (setup), (teardown))

#define print_message(...) printf(__VA_ARGS__)
#define print_error(...) fprintf(stderr, __VA_ARGS__)
#define fail() cross_fail(__FILE__, __LINE__)
#define fail_msg(...) (print_error(__VA_ARGS__), print_error("\n"), cross_fail(__FILE__, __LINE__))
#define skip() longjmp(cross_leave, 2)

#define CROSS_CHECK(holds, text)               \
  do {                                         \
    if (!(holds)) {                            \
      print_error("%s does not hold\n", text); \
      cross_fail(__FILE__, __LINE__);          \
    }                                          \
  } while (0)
/* Both values are compared as 64 bits, as cmocka does. */
#define CROSS_INT(a, b, op)                                                               \
  do {                                                                                    \
    const long long cross_a = (long long)(a), cross_b = (long long)(b);                   \
    if (!(cross_a op cross_b)) {                                                          \
      print_error("%s is %lld, %s is %lld: must be %s\n", #a, cross_a, #b, cross_b, #op); \
      cross_fail(__FILE__, __LINE__);                                                     \
    }                                                                                     \
  } while (0)
#define assert_true(x) CROSS_CHECK(x, #x)
#define assert_false(x) CROSS_CHECK(!(x), "!(" #x ")")
#define assert_null(x) CROSS_CHECK((x) == NULL, #x " == NULL")
#define assert_non_null(x) CROSS_CHECK((x) != NULL, #x " != NULL")
#define assert_ptr_equal(a, b) \
  CROSS_CHECK((const void*)(uintptr_t)(a) == (const void*)(uintptr_t)(b), #a " == " #b)
#define assert_ptr_not_equal(a, b) \
  CROSS_CHECK((const void*)(uintptr_t)(a) != (const void*)(uintptr_t)(b), #a " != " #b)
#define assert_int_equal(a, b) CROSS_INT(a, b, ==)
#define assert_int_not_equal(a, b) CROSS_INT(a, b, !=)
#define assert_in_range(x, low, high) CROSS_CHECK((x) >= (low) && (x) <= (high), #x " in range")
#define assert_memory_equal(a, b, n) CROSS_CHECK(memcmp(a, b, n) == 0, #a " == " #b)
#define assert_memory_not_equal(a, b, n) CROSS_CHECK(memcmp(a, b, n) != 0, #a " != " #b)
#define assert_float_equal(a, b, epsilon) \
  CROSS_CHECK((a) - (b) <= (epsilon) && (b) - (a) <= (epsilon), #a " == " #b)
#define assert_string_not_equal(a, b) CROSS_CHECK(strcmp(a, b) != 0, #a " != " #b)
#define assert_string_equal(a, b) cross_strings((a), (b), __FILE__, __LINE__)
#define _fail(file, line) cross_fail((file), (line))
void _assert_int_equal(uint64_t a, uint64_t b, const char* file, int line);
void cross_strings(const char* a, const char* b, const char* file, int line);

#endif
