/* Runs net.ttg with the operators of net_ops.c. */
#include "tt.h"

#include <math.h>

extern const tt_op* const net_ops[];
extern const long net_n_ops;

int main(void) {
  const float values[] = {0, 1, 2, 3};
  const int64_t shape[] = {4};
  float sum = 0;
  tt_ctx* c;
  tt_graph* g;
  tt_plan* p;
  tt_tensor *x, *in, *out;
  if (tt_ctx_new(NULL, &c) || tt_graph_load_with(c, "net.ttg", net_ops, net_n_ops, &g) ||
      tt_plan_new(c, g, NULL, &p) || tt_plan_slot(c, p, 0, 0, &in) ||
      tt_plan_slot(c, p, 1, 0, &out) || tt_tensor_from_data(c, values, TT_F32, shape, 1, &x) ||
      tt_copy_(c, in, x) || tt_plan_run(c, p) || tt_tensor_read(c, out, &sum, 4))
    return 1;
  return fabsf(sum - (tanhf(1) + tanhf(2) + tanhf(3))) > 1e-5f;
}
