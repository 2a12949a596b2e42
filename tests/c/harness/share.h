/* Long tests run a part of their cases where TT_TEST_SHARE=N is set, about one of N. `./dev test`
   sets it, since CI has no time for all; `./dev test all`, ctest and the program by itself run
   all. */
#ifndef TT_TEST_SHARE_H
#define TT_TEST_SHARE_H

#include <stdlib.h>

static inline int share(void) {
  const char* text = getenv("TT_TEST_SHARE");
  const int n = text ? atoi(text) : 1;
  return n > 1 ? n : 1;
}

/* Whether the next case is left out. The first runs; which others do is the same in every run, and
   has no period that would leave out one kind of cases of a loop. */
static inline int left_out(void) {
  static unsigned n;
  return (n++ * 2654435769u >> 16) % (unsigned)share() != 0;
}

/* Whether case i is left out in this turn, TT_TEST_TURN: the cases go round, a share in each turn.
   `./dev test` takes the turn from the commit. */
static inline int left_out_in_turn(int i) {
  const char* text = getenv("TT_TEST_TURN");
  const int turn = text ? atoi(text) : 0;
  return (i + turn) % share() != 0;
}

#endif
