/* Rows and single elements written through indices on several threads: sums add up in the order
   of the positions, and of several values the last one stays, whichever thread writes it. */
#include "everywhere.h"

enum { kRows = 5000, kWidth = 20, kPlaces = 300 };

static tt_tensor* places(tt_ctx* x, int64_t size) { /* of both signs */
  int64_t v[kRows], n = kRows, i;
  tt_tensor* out;
  for (i = 0, seed = 7; i < kRows; i++) v[i] = (int64_t)(draw() % (uint32_t)(2 * size)) - size;
  DO(tt_tensor_from_data(x, v, TT_I64, &n, 1, &out));
  return out;
}

/* sums: (places, width) floats, compared with a loop over the rows; skip: a place that is left
   out. */
static void check_sums(const tt_tensor* rows, const tt_tensor* index, const tt_tensor* sums,
                       int64_t skip) {
  const int64_t* at = tt_tensor_data(index);
  const float* x = tt_tensor_data(rows);
  const float* got = tt_tensor_data(sums);
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
  pair[0] = places(x, kPlaces / 20);
  pair[1] = places(x, 20);
  indices[0] = pair[0];
  indices[1] = pair[1];
  DO(tt_index_put(x, box, indices, 2, t, 1, &put));
  keep(b, added);
  keep(b, copied);
  keep(b, put);
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

/* Single elements of a target so large that threads write ranges of it. */
enum { kElements = 600000, kApart = 16, kWrites = 70003 };

/* Half of the indices point to a few places; `below` is subtracted from every second one. */
static tt_tensor* element_places(tt_ctx* x, tt_dtype d, int64_t below) {
  const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = d};
  int64_t* v = malloc(kWrites * sizeof *v);
  const int64_t n = kWrites;
  int64_t i;
  tt_tensor* out;
  for (i = 0, seed = 9; i < kWrites; i++) {
    const int64_t size = draw() % 2 ? kPlaces : kElements;
    v[i] =
        (int64_t)((((uint64_t)draw() << 12) ^ draw()) % (uint64_t)size) - (draw() % 2 ? below : 0);
  }
  DO(tt_tensor_from_data(x, v, TT_I64, &n, 1, &out));
  free(v);
  DO(tt_to(x, out, &to, &out));
  return out;
}
static void check_elements(tt_ctx* x, const tt_tensor* values, const tt_tensor* got, int add) {
  const tt_tensor* index = element_places(x, TT_I64, 0);
  const int64_t* at = tt_tensor_data(index);
  const float* v = tt_tensor_data(values);
  const float* g = tt_tensor_data(got);
  float* want = calloc(kElements, sizeof *want);
  int64_t i;
  for (i = 0; i < kWrites; i++) {
    float* to = &want[at[i]];
    *to = add ? *to + v[i] : v[i];
  }
  assert_memory_equal(g, want, kElements * sizeof *want);
  free(want);
}

static tt_tensor* zeros_apart(tt_ctx* x) {
  tt_tensor *all, *out;
  DO(tt_zeros(x, SHAPE(kElements, kApart), NULL, &all));
  DO(tt_select(x, all, 1, 3, &out));
  return out;
}
/* Every second value of a row of two. */
static tt_tensor* twice(tt_ctx* x, const tt_tensor* t) {
  tt_tensor* out;
  DO(tt_unsqueeze(x, t, 1, &out));
  DO(tt_expand(x, out, SHAPE(kWrites, 2), &out));
  DO(tt_contiguous(x, out, &out));
  DO(tt_select(x, out, 1, 1, &out));
  return out;
}
static void write_elements(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  tt_tensor* i64 = element_places(x, TT_I64, 0);
  tt_tensor* i32 = element_places(x, TT_I32, 0);
  tt_tensor* out[5];
  tt_tensor* result;
  const tt_tensor* indices[] = {twice(x, element_places(x, TT_I64, kElements))};
  int i;
  for (i = 0; i < 5; i++) out[i] = zeros_apart(x);
  DO(tt_index_add_(x, out[0], 0, i64, t));
  DO(tt_index_add_(x, out[1], 0, i32, twice(x, t)));
  DO(tt_index_put_(x, out[2], indices, 1, twice(x, t), 1));
  DO(tt_index_copy_(x, out[3], 0, i64, t));
  DO(tt_index_put_(x, out[4], indices, 1, twice(x, t), 0));
  for (i = 0; i < 5; i++) {
    DO(tt_contiguous(x, out[i], &result));
    check_elements(x, t, result, i < 3);
    keep(b, result);
  }
}
static void test_elements(void** state) {
  (void)state;
  same_everywhere(write_elements, filled(SHAPE(kWrites), TT_F32, wide));
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_rows), SCOPED(test_embedding),
                                     SCOPED(test_elements)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
