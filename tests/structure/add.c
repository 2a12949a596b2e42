/* The smallest application: adds two tensors. Linked statically by test_static_link.py. */
#include "tt.h"

int main(void) {
  const float data[4] = {1, 2, 3, 4};
  const int64_t shape[2] = {2, 2};
  float sum[4] = {0, 0, 0, 0};
  tt_ctx* c;
  tt_tensor *a, *b;
  int i;
  if (tt_ctx_new(NULL, &c)) return 1;
  if (tt_tensor_from_data(c, data, TT_F32, shape, 2, &a)) return 2;
  if (tt_add(c, a, a, &b)) return 3;
  if (tt_tensor_read(c, b, sum, sizeof sum)) return 4;
  tt_tensor_release(a);
  tt_tensor_release(b);
  tt_ctx_release(c);
  for (i = 0; i < 4; i++) {
    if (sum[i] != 2 * data[i]) return 5;
  }
  return 0;
}
