/* Part of samples.c: samples of activations and of losses of pairs of elements. */

/* ---- activations ---- */

static void build_activation(const Build* b) {
  static const struct {
    const char* arg;
    double value;
  } kOptions[] = {{"negative_slope", 0.3}, {"alpha", 1.7},    {"beta", 2.5},
                  {"threshold", 3},        {"min_val", -0.6}, {"max_val", 0.9}};
  Sample s;
  size_t i;
  build_unary(b);
  s = one(b, "options", 1, signed_(S_(3, 4)));
  for (i = 0; i < sizeof kOptions / sizeof *kOptions; i++)
    if (has_arg(b->row, kOptions[i].arg)) put(&s, kOptions[i].arg, float_value(kOptions[i].value));
  emit(b, &s);
}
static void build_gelu(const Build* b) {
  int k;
  for (k = 0; k < 10; k++) {
    Sample s = one(b,
                   k < 6   ? "gelu"
                   : k < 8 ? "special values"
                           : "big",
                   k < 6,
                   k < 2   ? signed_(S_(2, 3))
                   : k < 4 ? signed_(NULL, 0)
                   : k < 6 ? signed_(S_(0, 3))
                   : k < 8 ? filled(S_(36), special_value)
                           : signed_(S_(300, 1001)));
    if (k & 1) put(&s, "approximate", int_value(1));
    s.special = k == 6 || k == 7;
    s.big = k >= 8;
    emit(b, &s);
  }
}
static void build_glu(const Build* b) {
  int k;
  for (k = 0; k < 5; k++) {
    Sample s = one(b, "glu", k < 4,
                   k == 0   ? signed_(S_(3, 4))
                   : k == 1 ? signed_(S_(2, 3))
                   : k == 2 ? signed_(S_(2, 2, 3))
                   : k == 3 ? signed_(S_(0, 2))
                            : signed_(S_(300, 1002)));
    if (k == 1) put(&s, "dim", int_value(0));
    if (k == 2) put(&s, "dim", int_value(-2));
    s.big = k == 4;
    emit(b, &s);
  }
}

/* ---- losses ---- */

/* Smooth values away from the bends of the losses: differences of x and y are not near 1 or 0.6. */
static double low_value(int64_t i) { return -0.2 - 0.11 * (double)(i % 4) - 0.02 * uniform(); }
static double high_value(int64_t i) { return 1.1 + 0.3 * (double)(i % 3) + 0.02 * uniform(); }
static double probability(int64_t i) {
  (void)i;
  return 0.05 + 0.9 * uniform();
}
static void pairs(const Build* b, double (*x)(int64_t), double (*y)(int64_t), int broadcasts) {
  int k;
  for (k = 0; k < 10; k++) {
    Sample s = one(b, k == 9 ? "big" : "pairs", k < 9,
                   k == 7   ? filled(NULL, 0, x)
                   : k == 8 ? filled(S_(0, 3), x)
                   : k == 9 ? filled(S_(300, 1001), x)
                            : filled(S_(2, 3), x));
    put(&s, "target",
        tensor_value(k == 7                 ? filled(NULL, 0, y)
                     : k == 8               ? filled(S_(0, 3), y)
                     : k == 9               ? filled(S_(300, 1001), y)
                     : k == 6 && broadcasts ? filled(S_(3), y)
                                            : filled(S_(2, 3), y)));
    put(&s, "reduction", int_value(k == 8 ? 0 : k % 3));
    if (k >= 3 && k < 6 && has_arg(b->row, "weight"))
      put(&s, "weight", tensor_value(positive(S_(2, 3))));
    if (k >= 2 && k < 6 && has_arg(b->row, "pos_weight"))
      put(&s, "pos_weight", tensor_value(positive(S_(3))));
    if (k == 4 && has_arg(b->row, "beta")) put(&s, "beta", float_value(0));
    if (k == 5 && has_arg(b->row, "beta")) put(&s, "beta", float_value(4));
    if (k == 5 && has_arg(b->row, "delta")) put(&s, "delta", float_value(4));
    if (k >= 4 && k < 7 && has_arg(b->row, "log_target")) put(&s, "log_target", bool_value(1));
    s.big = k == 9;
    emit(b, &s);
  }
}
static void build_difference(const Build* b) { pairs(b, high_value, low_value, 1); }
static void build_logits(const Build* b) { pairs(b, signed_value, probability, 0); }
static void build_probability(const Build* b) { pairs(b, probability, probability, 0); }
static void build_kl_div(const Build* b) {
  Sample s;
  pairs(b, low_value, probability, 1);
  s = one(b, "batchmean", 1, filled(S_(2, 3), low_value));
  put(&s, "target", tensor_value(filled(S_(2, 3), probability)));
  put(&s, "reduction", int_value(3));
  emit(b, &s);
}

/* ---- bits ---- */

static const double kBits[] = {0, 1, 2, 3, 5, 7, 85, 100, 127, 12, 31, 8, 64, 63, 33, 6};
static double bits_value(int64_t i) { return kBits[i % 16]; }
static double signed_bits(int64_t i) { return i % 3 == 2 ? -bits_value(i) - 1 : bits_value(i); }
static double bits_other(int64_t i) { return signed_bits(i * 5 + i / 16 + 2); }
static tt_tensor* whole(tt_dtype d, const int64_t* shape, int ndim, double (*value)(int64_t)) {
  const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = d};
  tt_tensor* out;
  OK(tt_to(c, filled(shape, ndim, value), &to, &out));
  return out;
}
static void build_bits(const Build* b) {
  static const tt_dtype kOf[] = {TT_I64, TT_I32, TT_I16, TT_I8, TT_U8, TT_BOOL};
  /* no bools: shifts refuse them, a number beside them is wider */
  const int numbers_only = strstr(b->row->name, "shift") || strstr(b->row->name, "_scalar");
  size_t i;
  int k, two = has_arg(b->row, "other");
  for (i = 0; i < sizeof kOf / sizeof *kOf - (size_t)numbers_only; i++) {
    double (*value)(int64_t) = kOf[i] == TT_U8 ? bits_value : signed_bits;
    for (k = 0; k < 4; k++) {
      Sample s = one(b, tt_dtype_name(kOf[i]), 0,
                     k == 0   ? whole(kOf[i], S_(16, 16), value)
                     : k == 1 ? whole(kOf[i], S_(3, 1), value)
                     : k == 2 ? whole(kOf[i], NULL, 0, value)
                              : whole(kOf[i], S_(0), value));
      if (two && strcmp(b->row->args[1].type, "Scalar") == 0) {
        s.args[1] = scalar_value(5);
        s.args[1].scalar.kind = TT_SCALAR_INT;
        s.args[1].scalar.i = 5;
      }
      if (two && strcmp(b->row->args[1].type, "Tensor") == 0)
        s.args[1] = tensor_value(
            k == 0   ? whole(kOf[i], S_(16, 16), kOf[i] == TT_U8 ? bits_value : bits_other)
            : k == 1 ? whole(kOf[i], S_(4), value)
                     : whole(kOf[i], S_(1), value));
      emit(b, &s);
    }
  }
}

#define ACT_FAMILIES                                                                            \
  {"bits", build_bits}, {"activation", build_activation}, {"gelu", build_gelu},                 \
      {"glu", build_glu}, {"difference_loss", build_difference}, {"logits_loss", build_logits}, \
      {"probability_loss", build_probability}, {                                                \
    "kl_div", build_kl_div                                                                      \
  }
