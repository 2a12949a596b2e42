/* einsum: errors in the equation, and the position that the message names. Values:
   op_table_test.c. */
#include "harness.h"

static void bad_equations_name_the_position(void** state) {
  const struct {
    const char *equation, *text;
  } kCases[] = {{"i1->i", "position 1: labels are letters"},
                {"ij-i", "position 2: '-' must be followed by '>'"},
                {"ij->ii", "position 5: the label appears twice"},
                {"ij->k", "position 4: the result's label is in no term"},
                {"i..j", "position 1: an ellipsis has three"},
                {"i...j...", "position 5: a second ellipsis"},
                {"ij->i,j", "position 5: labels are letters"},
                {"ij->->", "position 4: labels are letters"},
                {"ij,jk", "position 2: more terms than"},
                {".", "position 0: an ellipsis has three dots"}};
  tt_tensor* x = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* y = x;
  size_t i;
  (void)state;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    FAILS(tt_einsum(c, kCases[i].equation, LIST(x), &y), TT_INVALID_ARG, kCases[i].text);
    assert_null(y);
  }
  FAILS(tt_einsum(c, "ij", LIST(x, x), &y), TT_INVALID_ARG, "position 2: fewer terms");
  FAILS(tt_einsum(c, "", NULL, 0, &y), TT_INVALID_ARG, "operands is empty");
  FAILS(tt_einsum(c, NULL, LIST(x), &y), TT_INVALID_ARG, "equation");
}

static void operands_must_match_their_terms(void** state) {
  tt_tensor *x = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6)), *y;
  (void)state;
  FAILS(tt_einsum(c, "ijk", LIST(x), &y), TT_SHAPE,
        "operand 0 is [2,3], but its term has 3 labels");
  FAILS(tt_einsum(c, "ij...k", LIST(x), &y), TT_SHAPE, "3 labels and an ellipsis");
  FAILS(tt_einsum(c, "ii", LIST(x), &y), TT_SHAPE, "a repeated label has sizes 2 and 3");
  FAILS(tt_einsum(c, "ij,jk", LIST(x, x), &y), TT_SHAPE, "operand 1 has size 2");
}

static void a_long_equation_is_refused(void** state) {
  char text[2001];
  tt_tensor *x = numbers(TT_F32, DATA(1)), *y;
  (void)state;
  memset(text, 'i', sizeof text - 1);
  text[sizeof text - 1] = 0;
  FAILS(tt_einsum(c, text, LIST(x), &y), TT_INVALID_ARG, "equation");
}

static void one_operand_gives_a_view(void** state) {
  tt_tensor *x = make(TT_F32, SHAPE(2, 2), DATA(1, 2, 3, 4)), *y;
  (void)state;
  OK(tt_einsum(c, "ii->i", LIST(x), &y));
  OK(tt_zero_(c, y));
  VALUES(x, 0, 2, 3, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(bad_equations_name_the_position), SCOPED(operands_must_match_their_terms),
      SCOPED(a_long_equation_is_refused), SCOPED(one_operand_gives_a_view)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
