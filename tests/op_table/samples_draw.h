/* Samples of random operators; op_table_test.c knows what they draw. Included by samples.c. */

static double quarter(int64_t i) {
  (void)i;
  return 0.25;
}
static double two(int64_t i) {
  (void)i;
  return 2;
}

static void drawn(const Build* b, int64_t n, int k) {
  const Row* r = b->row;
  Sample s = blank(b, k == 0 ? "small" : k == 1 ? "many" : "big", k == 0 && has_arg(r, "self"));
  int i;
  for (i = 0; i < r->n_args; i++) {
    const RowArg* a = &r->args[i];
    const int tensor = strncmp(a->type, "Tensor", 6) == 0;
    const int ints = strcmp(r->samples, "randint") == 0;
    if (!strcmp(a->name, "size")) s.args[i] = ints_value(&n, 1);
    if (!strcmp(a->name, "self")) s.args[i] = tensor_value(signed_(&n, 1));
    if (!strcmp(a->name, "mean"))
      s.args[i] = tensor ? tensor_value(filled(&n, 1, quarter)) : float_value(0.25);
    if (!strcmp(a->name, "std"))
      s.args[i] = tensor ? tensor_value(filled(&n, 1, two)) : float_value(2);
    if (!strcmp(a->name, "lambd")) s.args[i] = float_value(0.5);
    if (!strcmp(a->name, "low")) s.args[i] = ints ? int_value(-3) : float_value(-1);
    if (!strcmp(a->name, "high")) s.args[i] = ints ? int_value(10) : float_value(3);
  }
  s.big = k == 2;
  emit(b, &s);
}
static void build_drawn(const Build* b) {
  drawn(b, 7, 0);
  drawn(b, 20000, 1);
  drawn(b, 400001, 2);
}

#define DRAW_FAMILIES {"randint", build_drawn}, {"normal", build_drawn},
