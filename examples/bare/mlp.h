/* A network of 16, 32 and 4 units and its data, which need no library. */
#ifndef MLP_H
#define MLP_H

#include <stdint.h>

enum { ROWS = 32, IN = 16, HIDDEN = 32, OUT = 4 };

static inline float mlp_random(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) * (2.0f / 16777216.0f) - 1.0f;
}
static inline void mlp_fill(float* to, int n, float scale, uint32_t seed) {
  for (int i = 0; i < n; i++) to[i] = scale * mlp_random(&seed);
}
static const int64_t kShapeX[2] = {ROWS, IN}, kShape1[2] = {HIDDEN, IN}, kShape2[2] = {OUT, HIDDEN};
static const int64_t kHidden = HIDDEN, kOut = OUT, kRows = ROWS;

#endif
