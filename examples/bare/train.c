/* Training of a small network on a microcontroller: SGD with momentum on rows that fit in RAM. */
#include "board.h"
#include "mlp.h"
#include "tt.h"

enum { STEPS = 50, PARAMS = 4 };

static float x[ROWS * IN], w1[HIDDEN * IN], b1[HIDDEN], w2[OUT * HIDDEN], b2[OUT];
static int64_t y[ROWS];

static tt_status parameter(tt_ctx* c, const float* data, const int64_t* shape, int ndim,
                           tt_tensor** out) {
  const tt_status s = tt_tensor_from_data(c, data, TT_F32, shape, ndim, out);
  return s ? s : tt_requires_grad_(c, *out, 1);
}

static tt_status step(tt_ctx* c, tt_optimizer* sgd, tt_tensor** p, double* loss) {
  tt_tensor *tx, *ty, *h, *a, *out, *l;
  tt_status s = tt_scope_push(c);
  if (!s) s = tt_tensor_from_data(c, x, TT_F32, kShapeX, 2, &tx);
  if (!s) s = tt_tensor_from_data(c, y, TT_I64, &kRows, 1, &ty);
  if (!s) s = tt_linear(c, tx, p[0], p[1], &h);
  if (!s) s = tt_relu(c, h, &a);
  if (!s) s = tt_linear(c, a, p[2], p[3], &out);
  if (!s) s = tt_cross_entropy(c, out, ty, NULL, &l);
  if (!s) s = tt_optim_zero_grad(c, sgd, 1);
  if (!s) s = tt_backward(c, l, NULL);
  if (!s) s = tt_optim_step(c, sgd);
  if (!s) s = tt_item_f64(c, l, loss);
  if (!s) s = tt_scope_pop(c, NULL, 0);
  return s;
}

static tt_status train(tt_ctx* c, double* first, double* last) {
  tt_tensor* p[PARAMS] = {0};
  tt_optimizer* sgd = NULL;
  tt_optim_sgd_opts opts = {0};
  opts.set = TT_OPTIM_SGD_LR | TT_OPTIM_SGD_MOMENTUM;
  opts.lr = 0.1;
  opts.momentum = 0.9;
  tt_status s = parameter(c, w1, kShape1, 2, &p[0]);
  if (!s) s = parameter(c, b1, &kHidden, 1, &p[1]);
  if (!s) s = parameter(c, w2, kShape2, 2, &p[2]);
  if (!s) s = parameter(c, b2, &kOut, 1, &p[3]);
  if (!s) s = tt_optim_sgd(c, p, PARAMS, &opts, &sgd);
  for (int i = 0; !s && i < STEPS; i++) {
    s = step(c, sgd, p, last);
    if (i == 0) *first = *last;
  }
  if (sgd) tt_optim_release(sgd);
  for (int i = 0; i < PARAMS; i++)
    if (p[i]) tt_tensor_release(p[i]);
  return s;
}

int main(void) {
  tt_ctx* c;
  double first = 0, last = 0;
  mlp_fill(x, ROWS * IN, 1.0f, 1);
  mlp_fill(w1, HIDDEN * IN, 0.3f, 2);
  mlp_fill(w2, OUT * HIDDEN, 0.3f, 4);
  for (int i = 0; i < ROWS; i++) y[i] = i % OUT;
  if (tt_ctx_new(NULL, &c)) return 1;
  if (train(c, &first, &last)) {
    board_print(tt_ctx_error(c)->message);
    return 2;
  }
  tt_ctx_release(c);
  board_print("loss e-3: ");
  board_print_int((long)(first * 1000));
  board_print(" -> ");
  board_print_int((long)(last * 1000));
  board_print(", heap ");
  board_print_int(board_heap());
  board_print(", stack ");
  board_print_int(board_stack());
  board_print("\n");
  return !(last < 0.1 * first);
}
