/* Writes net.ttg, the graph of tanh(x) summed, and net_ops.c, the list of its operators. */
#include "tt.h"

int main(void) {
  const int64_t shape[] = {4};
  const float values[] = {0, 1, 2, 3};
  tt_ctx* c;
  tt_tensor *x, *y, *sum;
  tt_graph* g;
  int failed;
  if (tt_ctx_new(NULL, &c)) return 1;
  failed = tt_tensor_from_data(c, values, TT_F32, shape, 1, &x) ||
           tt_capture_begin(c, (const tt_tensor* const[]){x}, 1, NULL) || tt_tanh(c, x, &y) ||
           tt_sum(c, y, NULL, &sum) || tt_capture_end(c, (const tt_tensor* const[]){sum}, 1, &g) ||
           tt_graph_save(c, g, "net.ttg") || tt_graph_emit_ops(c, g, "net_ops.c", "net");
  return failed;
}
