/* Inference of a small network on a microcontroller: the result is compared with plain C. */
#include "board.h"
#include "mlp.h"
#include "tt.h"

#include <math.h>

static float x[ROWS * IN], w1[HIDDEN * IN], b1[HIDDEN], w2[OUT * HIDDEN], b2[OUT];
static float y[ROWS * OUT];

/* The largest difference from plain C, in units of 1e-6. */
static long difference(void) {
  float largest = 0;
  for (int r = 0; r < ROWS; r++) {
    float h[HIDDEN];
    for (int i = 0; i < HIDDEN; i++) {
      float s = b1[i];
      for (int k = 0; k < IN; k++) s += x[r * IN + k] * w1[i * IN + k];
      h[i] = s > 0 ? s : 0;
    }
    for (int i = 0; i < OUT; i++) {
      float s = b2[i];
      for (int k = 0; k < HIDDEN; k++) s += h[k] * w2[i * HIDDEN + k];
      largest = fmaxf(largest, fabsf(s - y[r * OUT + i]));
    }
  }
  return (long)(largest * 1e6f);
}

static tt_status infer(tt_ctx* c) {
  tt_tensor *tx, *t1, *s1, *t2, *s2, *h, *a, *out;
  tt_status s = tt_scope_push(c);
  if (!s) s = tt_tensor_from_data(c, x, TT_F32, kShapeX, 2, &tx);
  if (!s) s = tt_tensor_from_data(c, w1, TT_F32, kShape1, 2, &t1);
  if (!s) s = tt_tensor_from_data(c, b1, TT_F32, &kHidden, 1, &s1);
  if (!s) s = tt_tensor_from_data(c, w2, TT_F32, kShape2, 2, &t2);
  if (!s) s = tt_tensor_from_data(c, b2, TT_F32, &kOut, 1, &s2);
  if (!s) s = tt_linear(c, tx, t1, s1, &h);
  if (!s) s = tt_relu(c, h, &a);
  if (!s) s = tt_linear(c, a, t2, s2, &out);
  if (!s) s = tt_tensor_read(c, out, y, sizeof y);
  if (!s) s = tt_scope_pop(c, NULL, 0);
  return s;
}

/* Whether a dtype that the build lacks (TT_DTYPES) is a status with a message, and not a tensor. */
static int lacks_dtypes_well(tt_ctx* c) {
  const double two = 2;
  tt_tensor* t;
  const tt_status s = tt_tensor_from_data(c, &two, TT_F64, NULL, 0, &t);
  if (s) board_print(tt_ctx_error(c)->message);
  board_print("\n");
  tt_tensor_release(t);
  return s == TT_OK || (s == TT_NOT_IMPLEMENTED && !t);
}

/* Whether a wrong shape is a status with a message, as on every other target. */
static int fails_well(tt_ctx* c) {
  tt_tensor *a, *b, *out;
  const int64_t two = 2, three = 3;
  if (tt_tensor_from_data(c, x, TT_F32, &two, 1, &a)) return 0;
  if (tt_tensor_from_data(c, x, TT_F32, &three, 1, &b)) return 0;
  const tt_status s = tt_add(c, a, b, &out);
  tt_tensor_release(a);
  tt_tensor_release(b);
  if (s) board_print(tt_ctx_error(c)->message);
  board_print("\n");
  return s != TT_OK && !out;
}

int main(void) {
  tt_ctx* c;
  mlp_fill(x, ROWS * IN, 1.0f, 1);
  mlp_fill(w1, HIDDEN * IN, 0.5f, 2);
  mlp_fill(b1, HIDDEN, 0.5f, 3);
  mlp_fill(w2, OUT * HIDDEN, 0.5f, 4);
  mlp_fill(b2, OUT, 0.5f, 5);
  if (tt_ctx_new(NULL, &c)) return 1;
  if (infer(c)) {
    board_print(tt_ctx_error(c)->message);
    return 2;
  }
  if (!fails_well(c) || !lacks_dtypes_well(c)) return 3;
  tt_ctx_release(c);
  board_print("difference ");
  board_print_int(difference());
  board_print(" e-6, heap ");
  board_print_int(board_heap());
  board_print(", stack ");
  board_print_int(board_stack());
  board_print("\n");
  return difference() > 5;
}
