/* Recognises digits on a Cortex-M without an operating system, in 8-bit integers, by source that tt
   has written. */
#include "../bare/board.h"
#include "digits.h"
#include "images.h"

#include <stdint.h>

enum { CLASSES = 10, TICK_MASK = 0xffffff };

/* SysTick counts down with the processor's clock, 24 bits. */
static volatile uint32_t* const systick = (uint32_t*)0xe000e010;

static int best_of(const float* y) {
  int best = 0;
  for (int k = 1; k < CLASSES; k++)
    if (y[k] > y[best]) best = k;
  return best;
}

static float distance(float a, float b) { return a > b ? a - b : b - a; }

int main(void) {
  long right = 0, wrong_scores = 0, ticks = 0;
  systick[1] = TICK_MASK;
  systick[2] = 0;
  systick[0] = 5;
  for (int i = 0; i < IMAGES; i++) {
    float y[CLASSES];
    const uint32_t begin = systick[2];
    digits(images[i], y);
    ticks += (long)((begin - systick[2]) & TICK_MASK);
    right += best_of(y) == labels[i];
    for (int k = 0; k < CLASSES; k++) wrong_scores += distance(y[k], scores[i][k]) > 1e-3f;
  }
  board_print("images ");
  board_print_int(IMAGES);
  board_print(" right ");
  board_print_int(right);
  board_print(" scores that differ from tt's ");
  board_print_int(wrong_scores);
  board_print(" ticks ");
  board_print_int(ticks / IMAGES);
  board_print(" arena ");
  board_print_int(digits_ARENA_BYTES);
  board_print(" stack ");
  board_print_int(board_stack());
  board_print("\n");
  return right < IMAGES - 1 || wrong_scores;
}
