/* Samples of order: sort, topk, unique, and draws by it. Included by samples.c. */

static double few_values(int64_t i) {
  (void)i;
  return floor(5 * uniform()) - 2;
}

/* Shapes around the bounds between insertion and radix, ties, specials. */
static void order_of(const Build* b) {
  const struct {
    const char* what;
    int64_t shape[3];
    int ndim, dim, kind; /* kind 0: distinct, 1: ties, 2: special */
  } kCases[] = {{"matrix", {3, 4}, 2, 1, 0},
                {"first dimension", {4, 3, 2}, 3, 0, 0},
                {"middle", {2, 5, 3}, 3, -2, 0},
                {"0-dim", {0}, 0, 0, 0},
                {"one element", {2, 1}, 2, 1, 0},
                {"ties", {2, 9}, 2, 1, 1},
                {"special values", {36}, 1, 0, 2},
                {"long", {3, 1100}, 2, 1, 0},
                {"long with ties", {700, 3}, 2, 0, 1},
                {"long special", {200}, 1, -1, 2},
                {"empty", {2, 0}, 2, 1, 0},
                {"no rows", {0, 3}, 2, 1, 0}};
  const Row* r = b->row;
  size_t i;
  int way;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++)
    for (way = 0; way < 2; way++) {
      const int64_t n =
          kCases[i].ndim ? kCases[i].shape[(kCases[i].dim + kCases[i].ndim) % kCases[i].ndim] : 1;
      Sample s =
          one(b, kCases[i].what, count(kCases[i].shape, kCases[i].ndim) < 30 && kCases[i].kind == 0,
              filled(kCases[i].shape, kCases[i].ndim,
                     kCases[i].kind == 0   ? signed_value
                     : kCases[i].kind == 1 ? few_values
                                           : special_value));
      put(&s, "dim", int_value(kCases[i].dim));
      if (has_arg(r, "descending")) put(&s, "descending", bool_value(way));
      if (has_arg(r, "largest")) put(&s, "largest", bool_value(!way));
      if (has_arg(r, "k"))
        put(&s, "k", int_value(n > 1000 ? (way ? 64 : 300) : way ? n : (n + 1) / 2));
      s.special = kCases[i].kind == 2;
      emit(b, &s);
    }
}
static void big_order(const Build* b, int64_t rows, int64_t cols, int64_t dim) {
  Sample s = one(b, "big", 0, signed_(S_(rows, cols)));
  put(&s, "dim", int_value(dim));
  if (has_arg(b->row, "k")) put(&s, "k", int_value(100));
  s.big = 1;
  emit(b, &s);
}
static void build_sort(const Build* b) {
  order_of(b);
  big_order(b, 200, 1001, 1);
  big_order(b, 700, 301, 0);
}
static void build_topk(const Build* b) {
  order_of(b);
  big_order(b, 200, 1001, 1);
}

static double slow_ramp(int64_t i) {
  return floor(0.1 * (double)(i % 1100));
} /* ties; fits in int8 */
static double ramp_of_5(int64_t i) { return floor(0.6 * (double)(i % 5)); }
static double ramp_of_special(int64_t i) {
  static const double k[] = {-INFINITY, -1, -0.0, 0, 2, INFINITY};
  return k[i];
}
static void build_searchsorted(const Build* b) {
  const struct {
    const char* what;
    tt_tensor *sorted, *x;
    int kind; /* 1: special values, 2: big */
  } kCases[] = {
      {"one row", filled(S_(7), slow_ramp), filled(S_(3, 4), few_values), 0},
      {"ties", filled(S_(5), ramp_of_5), filled(S_(9), few_values), 0},
      {"0-dim", filled(S_(5), ramp_of_5), filled(NULL, 0, few_values), 0},
      {"no boundaries", filled(S_(0), few_values), filled(S_(3), few_values), 0},
      {"no values", filled(S_(5), ramp_of_5), filled(S_(2, 0), few_values), 0},
      {"special values", filled(S_(6), ramp_of_special), filled(S_(36), special_value), 1},
      {"big", filled(S_(1100), slow_ramp), filled(S_(70, 500), signed_value), 2},
      {"rows", filled(S_(2, 3, 5), ramp_of_5), filled(S_(2, 3, 4), few_values), 0},
      {"sorter", make(TT_F64, SHAPE(6), DATA(3, 1, 2, 0, 1, 5)), filled(S_(8), few_values), 0},
      {"rows and sorter", make(TT_F64, SHAPE(2, 3), DATA(3, 1, 2, 0, 7, 5)),
       filled(S_(2, 8), few_values), 0}};
  const int buckets = has_arg(b->row, "boundaries");
  size_t i;
  int way;
  for (i = 0; i < (buckets ? 7 : sizeof kCases / sizeof *kCases); i++)
    for (way = 0; way < 4; way++) {
      Sample s = blank(b, kCases[i].what, 0);
      put(&s, "self", tensor_value(kCases[i].x));
      put(&s, buckets ? "boundaries" : "sorted_sequence", tensor_value(kCases[i].sorted));
      if (way % 2) put(&s, "right", bool_value(1));
      if (way == 2) put(&s, "out_int32", bool_value(1));
      if (way > 1 && !buckets) put(&s, "side", int_value(way == 2 ? 1 : 2));
      if (i == 8) put(&s, "sorter", tensor_value(make(TT_I64, SHAPE(6), DATA(3, 1, 4, 2, 0, 5))));
      if (i == 9)
        put(&s, "sorter", tensor_value(make(TT_I64, SHAPE(2, 3), DATA(1, 2, 0, 0, 2, 1))));
      s.special = kCases[i].kind == 1;
      s.big = kCases[i].kind == 2;
      emit(b, &s);
    }
}

static void build_unique(const Build* b) {
  int k;
  for (k = 0; k < 8; k++) {
    Sample s = one(b, k == 6 ? "special values" : "unique", 0,
                   k == 0   ? filled(S_(3, 4), few_values)
                   : k == 1 ? filled(S_(200), few_values)
                   : k == 2 ? filled(NULL, 0, few_values)
                   : k == 3 ? filled(S_(0, 3), few_values)
                   : k == 4 ? make(TT_F64, SHAPE(4, 2), DATA(2, 1, 1, 5, 2, 1, 1, 3))
                   : k == 5 ? make(TT_F64, SHAPE(2, 3), DATA(1, 0, 1, 2, 0, 2))
                   : k == 6 ? filled(S_(36), special_value)
                            : filled(S_(2, 70, 2), few_values));
    put(&s, "return_inverse", bool_value(k != 1));
    put(&s, "return_counts", bool_value(k != 2));
    if (k == 4) put(&s, "dim", int_value(0));
    if (k == 5 || k == 7) put(&s, "dim", int_value(k == 5 ? -1 : 1));
    s.special = k == 6;
    emit(b, &s);
  }
}

static void build_randperm(const Build* b) {
  const int64_t n[] = {0, 7, 20000, 400001};
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = blank(b, "permutation", 0);
    put(&s, "n", int_value(n[k]));
    s.big = k == 3;
    emit(b, &s);
  }
}

/* Weights 1, 2, 0, 5: op_table_test.c knows them. */
static void build_multinomial(const Build* b) {
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = one(b, "weights", 0,
                   k == 1   ? make(TT_F64, SHAPE(2, 4), DATA(1, 2, 0, 5, 1, 2, 0, 5))
                   : k == 3 ? positive(S_(300, 501))
                            : make(TT_F64, SHAPE(4), DATA(1, 2, 0, 5)));
    put(&s, "num_samples", int_value(k == 0 ? 3 : k == 3 ? 700 : 20000));
    put(&s, "replacement", bool_value(k > 0));
    s.big = k == 3;
    emit(b, &s);
  }
}

#define SORT_FAMILIES                                                          \
  {"sort", build_sort}, {"topk", build_topk}, {"unique", build_unique},        \
      {"searchsorted", build_searchsorted}, {"bucketize", build_searchsorted}, \
      {"randperm", build_randperm}, {"multinomial", build_multinomial},
