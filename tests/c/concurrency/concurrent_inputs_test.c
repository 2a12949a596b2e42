/* Operators whose inputs another thread writes meanwhile: indices leave their range, masks and
   numbers change after they were counted or compared. Results may be any values, or the status
   INDEX; no memory outside the tensors is accessed. */
#include "harness.h"

#include <pthread.h>
#include <time.h>

enum { kCount = 70000, kPlaces = 64, kWidth = 8, kTargets = 4000, kMilliseconds = 1000 };

/* The arrays that the other thread writes, kCount elements each. */
static struct {
  tt_tensor *index, *narrow, *mask, *value;
  int stop;
} all;
static tt_tensor *table, *rows, *source, *row_source, *logits, *image, *strided, *pivots, *factors;

static void* write_all(void* unused) {
  int64_t* index = tt_tensor_data(all.index);
  int32_t* narrow = tt_tensor_data(all.narrow);
  uint8_t* mask = tt_tensor_data(all.mask);
  float* value = tt_tensor_data(all.value);
  uint32_t round;
  (void)unused;
  for (round = 0; !__atomic_load_n(&all.stop, __ATOMIC_RELAXED); round++) {
    const int bad = round & 1;
    const struct timespec pause = {0, (long)(round * 7919u % 300u) * 1000};
    const float top = (float)(round & 255);
    int64_t i;
    const int64_t modulus = bad ? 2 : 7;
    for (i = 0; i < kCount; i++) {
      const int64_t far = i & 1 ? -((int64_t)1 << 30) : (int64_t)1 << 30;
      __atomic_store_n(&index[i], bad ? far : i % kPlaces, __ATOMIC_RELAXED);
      __atomic_store_n(&narrow[i], (int32_t)(bad ? far : i % kPlaces), __ATOMIC_RELAXED);
      __atomic_store_n(&mask[i], (uint8_t)(bad || i % 3 == 0), __ATOMIC_RELAXED);
      const int64_t run = bad ? i : i / 2; /* of equal numbers */
      float number = i % modulus ? top + (float)run : 0;
      __atomic_store(&value[i], &number, __ATOMIC_RELAXED);
    }
    nanosleep(&pause, NULL);
  }
  return NULL;
}

static int64_t n_good, n_bad;
static void may_fail(tt_status s, const char* call) {
  if (s == TT_OK) n_good++;
  else if (s == TT_INDEX || s == TT_INVALID_ARG) n_bad++;
  else fail_msg("%s: %s", call, tt_ctx_error(c)->message);
}
#define MAY(call) may_fail(call, #call)

static void differentiate(const tt_tensor* y) {
  tt_tensor* sum;
  if (!y) return;
  OK(tt_sum(c, y, NULL, &sum));
  MAY(tt_backward(c, sum, NULL));
}

static void move_single_elements(const tt_tensor* index) {
  tt_tensor* y = NULL;
  int i;
  MAY(tt_gather(c, table, 0, index, &y));
  differentiate(y);
  MAY(tt_take_along_dim(c, table, index, NULL, &y));
  MAY(tt_index_select(c, table, 0, index, &y));
  MAY(tt_scatter(c, table, 0, index, source, NULL, &y));
  MAY(tt_scatter_f64(c, table, 0, index, 1, NULL, &y));
  MAY(tt_scatter_add(c, table, 0, index, source, &y));
  differentiate(y);
  MAY(tt_index_add(c, table, 0, index, source, &y));
  MAY(tt_index_copy(c, table, 0, index, source, &y));
  MAY(tt_index_fill_f64(c, table, 0, index, 1, &y));
  for (i = 0; i < 5; i++) MAY(tt_take(c, strided, index, &y));
}

static void move_rows(const tt_tensor* index) {
  const tt_index pair[] = {{.kind = TT_IDX_TENSOR, .tensor = index},
                           {.kind = TT_IDX_TENSOR, .tensor = index}};
  const tt_tensor* one[] = {index};
  tt_tensor* y = NULL;
  MAY(tt_embedding(c, rows, index, NULL, &y));
  differentiate(y);
  MAY(tt_index_select(c, rows, 0, index, &y));
  MAY(tt_index_add(c, rows, 0, index, row_source, &y));
  MAY(tt_index_put(c, rows, one, 1, row_source, 1, &y));
  MAY(tt_index_put(c, rows, one, 1, row_source, 0, &y));
  MAY(tt_index_get(c, rows, pair, 1, &y));
  MAY(tt_index_get(c, image, pair, 2, &y));
}

static void look_up_classes(const tt_tensor* index) {
  const tt_one_hot_opts classes = {.set = TT_ONE_HOT_NUM_CLASSES, .num_classes = kPlaces};
  const tt_searchsorted_opts by = {.set = TT_SEARCHSORTED_SORTER, .sorter = index};
  tt_tensor *target, *y = NULL;
  OK(tt_narrow(c, index, 0, 0, kTargets, &target));
  MAY(tt_cross_entropy(c, logits, target, NULL, &y));
  differentiate(y);
  y = NULL;
  MAY(tt_nll_loss(c, logits, target, NULL, &y));
  differentiate(y);
  if (index == all.narrow) return;
  MAY(tt_one_hot(c, target, &classes, &y));
  MAY(tt_searchsorted(c, source, row_source, &by, &y));
}

static void pick_by_value(void) {
  const tt_index by_mask = {.kind = TT_IDX_TENSOR, .tensor = all.mask};
  const tt_unique_opts unique = {.set = TT_UNIQUE_RETURN_INVERSE | TT_UNIQUE_RETURN_COUNTS,
                                 .return_inverse = 1,
                                 .return_counts = 1};
  const tt_unique_consecutive_opts runs = {
      .set = TT_UNIQUE_CONSECUTIVE_RETURN_INVERSE | TT_UNIQUE_CONSECUTIVE_RETURN_COUNTS,
      .return_inverse = 1,
      .return_counts = 1};
  tt_tensor *plane, *x, *y = NULL, *z, *k, *divisor;
  int i;
  MAY(tt_nonzero(c, all.value, &y));
  MAY(tt_nonzero(c, all.mask, &y));
  MAY(tt_masked_select(c, source, all.mask, &y));
  MAY(tt_index_get(c, source, &by_mask, 1, &y));
  for (i = 0; i < 20; i++)
    MAY(tt_argmax(c, all.value, NULL, &y)); /* it is quick, so a collision is rare */
  MAY(tt_max_dim(c, all.value, 0, NULL, &y, &z));
  MAY(tt_sort(c, all.value, NULL, &y, &z));
  MAY(tt_topk(c, all.value, 5, NULL, &y, &z));
  MAY(tt_unique(c, all.value, &unique, &y, &z, &k));
  for (i = 0; i < 20; i++) MAY(tt_unique_consecutive(c, all.value, &runs, &y, &z, &k));
  MAY(tt_multinomial(c, all.value, 100, 1, NULL, &y));
  MAY(tt_multinomial(c, all.value, 100, 0, NULL, &y));
  MAY(tt_bucketize(c, source, all.value, NULL, &y));
  OK(tt_sub_i64(c, all.narrow, 1, &divisor));
  MAY(tt_remainder(c, all.index, all.narrow, &y));
  MAY(tt_floor_divide(c, all.index, divisor, &y));
  OK(tt_reshape(c, all.value, SHAPE(1, kCount / 200, 200), &plane));
  OK(tt_detach(c, plane, &x));
  OK(tt_requires_grad_(c, x, 1));
  MAY(tt_max_pool2d_with_indices(c, x, SHAPE(3), NULL, &y, &z));
  differentiate(y);
  MAY(tt_max_pool2d(c, x, SHAPE(2), NULL, &y));
  differentiate(y);
}

static void exchange_rows(void) {
  const tt_lu_unpack_opts opts = {.set = TT_LU_UNPACK_UNPACK_DATA, .unpack_data = 0};
  tt_tensor *p, *l, *u;
  int i;
  for (i = 0; i < 1000; i++) MAY(tt_lu_unpack(c, factors, pivots, &opts, &p, &l, &u));
}

static void test_contents_change(void** state) {
  const tt_to_opts narrow = {.set = TT_TO_DTYPE, .dtype = TT_I32};
  const tt_to_opts mask = {.set = TT_TO_DTYPE, .dtype = TT_BOOL};
  struct timespec begin, now;
  tt_tensor* whole;
  pthread_t thread;
  int threads = 1;
  (void)state;
  OK(tt_randint(c, 0, kPlaces, SHAPE(kCount), NULL, &all.index));
  OK(tt_to(c, all.index, &narrow, &all.narrow));
  OK(tt_to(c, all.index, &mask, &all.mask));
  OK(tt_rand(c, SHAPE(kCount), NULL, &all.value));
  OK(tt_rand(c, SHAPE(kCount), NULL, &source));
  OK(tt_rand(c, SHAPE(kCount, kWidth), NULL, &row_source));
  OK(tt_rand(c, SHAPE(kPlaces), NULL, &table));
  OK(tt_rand(c, SHAPE(kPlaces, kWidth), NULL, &rows));
  OK(tt_rand(c, SHAPE(kTargets, kPlaces), NULL, &logits));
  OK(tt_rand(c, SHAPE(kPlaces, kPlaces), NULL, &image));
  OK(tt_rand(c, SHAPE(kPlaces - 1, kPlaces - 1), NULL, &factors));
  OK(tt_zeros(c, SHAPE(kCount / 1000 * 65, 1001), NULL, &whole));
  OK(tt_set_grad_enabled(c, 0, NULL)); /* a view that autograd does not know */
  OK(tt_narrow(c, whole, 1, 0, 1000, &strided));
  OK(tt_narrow(c, all.index, 0, 1, kPlaces - 1, &pivots)); /* no 0 */
  OK(tt_set_grad_enabled(c, 1, NULL));
  OK(tt_requires_grad_(c, table, 1));
  OK(tt_requires_grad_(c, rows, 1));
  OK(tt_requires_grad_(c, logits, 1));
  all.stop = 0;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  assert_int_equal(pthread_create(&thread, NULL, write_all, NULL), 0);
  do {
    OK(tt_scope_push(c));
    OK(tt_set_num_threads(c, threads ^= 3)); /* 2 and 1 alternately */
    move_single_elements(all.index);
    move_single_elements(all.narrow);
    move_rows(all.index);
    move_rows(all.narrow);
    look_up_classes(all.index);
    look_up_classes(all.narrow);
    pick_by_value();
    exchange_rows();
    OK(tt_scope_pop(c, NULL, 0));
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 <
           kMilliseconds);
  __atomic_store_n(&all.stop, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  assert_true(n_good > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_contents_change)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
