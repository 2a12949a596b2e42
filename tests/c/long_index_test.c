/* Many rows written through indices on several threads, tt's own and a host's: each row's sum adds up in the order of
   the positions, whoever writes it.
 */
#include "everywhere.h"

enum { kRows = 5000, kWidth = 20, kPlaces = 300 };

static tt_tensor* places(tt_ctx* x, int64_t size) { /* of both signs */
  int64_t v[kRows], n = kRows, i;
  tt_tensor* out;
  for (i = 0, seed = 7; i < kRows; i++) v[i] = (int64_t)(draw() % (uint32_t)(2 * size)) - size;
  DO(tt_tensor_from_data(x, v, TT_I64, &n, 1, &out));
  return out;
}

/* sums (places, width) of floats are those of a loop over the rows; skip: a place that is left out. */
static void check_sums(const tt_tensor* rows, const tt_tensor* index, const tt_tensor* sums, int64_t skip) {
  const int64_t* at = tt_tensor_data(index);
  const float *x = tt_tensor_data(rows), *got = tt_tensor_data(sums);
  float* want = calloc(kPlaces * kWidth, sizeof *want);
  int64_t i, j;
  for (i = 0; i < kRows; i++)
    for (j = 0; j < kWidth && at[i] != skip; j++) want[at[i] * kWidth + j] += x[i * kWidth + j];
  for (i = 0; i < kPlaces * kWidth; i++) assert_true(got[i] == want[i]);
  free(want);
}

static void write_rows(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  tt_tensor *index, *zeros, *added, *copied, *box, *put, *pair[2];
  const tt_tensor* indices[2];
  DO(tt_abs(x, places(x, kPlaces - 1), &index));
  DO(tt_zeros(x, SHAPE(kPlaces, kWidth), NULL, &zeros));
  DO(tt_index_add(x, zeros, 0, index, t, &added));
  check_sums(t, index, added, INT64_MIN);
  DO(tt_index_copy(x, zeros, 0, index, t, &copied));
  DO(tt_zeros(x, SHAPE(kPlaces / 20, 20, kWidth), NULL, &box));
  pair[0] = places(x, kPlaces / 20), pair[1] = places(x, 20);
  indices[0] = pair[0], indices[1] = pair[1];
  DO(tt_index_put(x, box, indices, 2, t, 1, &put));
  keep(b, added), keep(b, copied), keep(b, put);
}
static void test_rows(void** state) {
  (void)state;
  same_everywhere(write_rows, filled(SHAPE(kRows, kWidth), TT_F32, wide));
}

static void look_up(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const tt_embedding_opts padding = {.set = TT_EMBEDDING_PADDING_IDX, .padding_idx = 5};
  tt_tensor *index, *signs, *weight, *found, *grad;
  DO(tt_abs(x, places(x, kPlaces - 1), &index));
  DO(tt_zeros(x, SHAPE(kPlaces, kWidth), NULL, &weight));
  DO(tt_requires_grad_(x, weight, 1));
  DO(tt_embedding(x, weight, index, &padding, &found));
  DO(tt_clone(x, t, NULL, &signs));
  DO(tt_backward(x, found, &(tt_backward_opts){.set = TT_BACKWARD_GRADIENT, .gradient = signs}));
  DO(tt_tensor_grad(x, weight, &grad));
  check_sums(t, index, grad, 5);
  keep(b, grad);
}
static void test_embedding(void** state) {
  (void)state;
  same_everywhere(look_up, filled(SHAPE(kRows, kWidth), TT_F32, wide));
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_rows), SCOPED(test_embedding)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
