/* Samples of norms and scans. Included by samples.c. */

static void build_prod_scan(const Build* b) {
  int k;
  for (k = 0; k < 9; k++) {
    Sample s = one(b, k == 4 || k == 5 ? "zeros" : "scan", k < 6,
                   k == 2   ? signed_(NULL, 0)
                   : k == 3 ? signed_(S_(0, 2))
                   : k == 4 ? make(TT_F64, SHAPE(2, 4), DATA(0.5, 0, 1.5, -1, 2, 0.7, -0.3, 0))
                   : k == 5 ? make(TT_F64, SHAPE(5), DATA(0, 1.5, 0, -1, 0.7))
                   : k == 6 ? signed_(S_(40, 9))
                   : k == 7 ? signed_(S_(700, 701))
                   : k == 8 ? signed_(S_(3, 90, 4001))
                            : signed_(S_(2, 3, 2)));
    put(&s, "dim",
        int_value(k == 0 || k == 4 || k == 6 || k == 8 ? 1
                  : k == 1                             ? -3
                  : k == 2 || k == 7                   ? -1
                                                       : 0));
    s.big = k >= 7;
    emit(b, &s);
  }
}

static void build_norm(const Build* b) {
  static const double kOrders[] = {2, 1, INFINITY, -INFINITY, 0, 0.5, 1.5, 3, -1.25};
  size_t i;
  int k;
  for (i = 0; i < sizeof kOrders / sizeof *kOrders; i++) {
    for (k = 0; k < 6; k++) {
      const int empty =
          k == 4 && (kOrders[i] < 0 || kOrders[i] == INFINITY); /* there it has no value */
      Sample s = one(b, "norm", k < 5,
                     k == 2   ? signed_(NULL, 0)
                     : k == 3 ? signed_(S_(5))
                     : k == 4 ? signed_(S_(3, 0))
                     : k == 5 ? signed_(S_(40, 131))
                              : signed_(S_(2, 3, 2)));
      put(&s, "p", float_value(kOrders[i]));
      if (k == 1 || k == 5) {
        put(&s, "dim", ints_value(S_(-1)));
        put(&s, "keepdim", bool_value(k == 1));
      }
      if (k == 0) put(&s, "dim", ints_value(S_(0, 2)));
      if (!empty) emit(b, &s);
    }
  }
  for (k = 0; k < 2; k++) {
    Sample s = one(b, "special values", 0, filled(S_(36), special_value));
    put(&s, "p", float_value(k ? INFINITY : 2));
    s.special = 1;
    emit(b, &s);
    s = one(b, "big", 0, signed_(S_(700, 701)));
    if (k) put(&s, "dim", ints_value(S_(0)));
    s.big = 1;
    emit(b, &s);
  }
}

static void build_nuclear_norm(const Build* b) {
  int k;
  for (k = 0; k < 12; k++) {
    Sample s = one(b,
                   k == 7   ? "zeros"
                   : k == 8 ? "equal singular values"
                            : "nuclear norm",
                   k < 6 || k == 8,
                   k == 0    ? signed_(S_(3, 3))
                   : k == 1  ? signed_(S_(2, 4))
                   : k == 2  ? signed_(S_(4, 2))
                   : k == 3  ? signed_(S_(3, 2, 2))
                   : k == 4  ? signed_(S_(2, 1, 3, 2))
                   : k == 5  ? signed_(S_(0, 3))
                   : k == 6  ? signed_(S_(2, 3, 0))
                   : k == 7  ? make(TT_F64, SHAPE(2, 3), DATA(0, 0, 0, 0, 0, 0))
                   : k == 8  ? make(TT_F64, SHAPE(3, 2), DATA(0, 2, -2, 0, 0, 0))
                   : k == 9  ? filled(S_(2, 3, 6), special_value)
                   : k == 10 ? signed_(S_(2, 41, 67))
                             : signed_(S_(4000, 3, 5)));
    if (k >= 3 && k != 5 && k != 7 && k != 8)
      put(&s, "dim",
          k == 4   ? ints_value(S_(2, 0))
          : k == 3 ? ints_value(S_(-1, 0))
                   : ints_value(S_(1, 2)));
    if (k == 4) put(&s, "keepdim", bool_value(1));
    s.special = k == 9;
    s.big = k == 11;
    emit(b, &s);
  }
}

#define FOLD_FAMILIES \
  {"prod_scan", build_prod_scan}, {"norm", build_norm}, {"nuclear_norm", build_nuclear_norm},
