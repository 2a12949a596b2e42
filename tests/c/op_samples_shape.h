/* Part of op_samples.c: samples of views, rearrangements, matrix shorthands, creation and indexing beyond the first operators. */

/* ---- views and rearrangements ---- */

static void build_flatten(const Build* b) {
  static const int64_t kFrom[] = {0, 1, -2, 0}, kTo[] = {-1, 2, -2, 1};
  int k;
  for (k = 0; k < 6; k++) {
    Sample s = one(b, k == 4 ? "0-dim" : "flatten", 1,
                   k == 4   ? signed_(NULL, 0)
                   : k == 5 ? signed_(S_(0, 3))
                            : signed_(S_(2, 3, 2)));
    if (k < 4) put(&s, "start_dim", int_value(kFrom[k])), put(&s, "end_dim", int_value(kTo[k]));
    emit(b, &s);
  }
}
static void build_unflatten(const Build* b) {
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = one(b, "unflatten", 1, k == 3 ? signed_(S_(4, 0)) : signed_(S_(2, 6)));
    put(&s, "dim", int_value(k == 1 ? -1 : k == 2 ? 0 : 1));
    put(&s, "sizes",
        k == 0   ? ints_value(S_(2, 3))
        : k == 1 ? ints_value(S_(3, -1, 1))
        : k == 2 ? ints_value(S_(-1))
                 : ints_value(S_(2, 0)));
    emit(b, &s);
  }
}
static void build_unbind(const Build* b) {
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = one(b, "unbind", 1, k == 2 ? signed_(S_(3)) : k == 3 ? signed_(S_(2, 0)) : signed_(S_(2, 3)));
    if (k == 1) put(&s, "dim", int_value(-1));
    emit(b, &s);
  }
}
static void build_chunk(const Build* b) {
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = one(b, "chunk", 1, k == 3 ? signed_(S_(0, 2)) : signed_(S_(5, 4)));
    put(&s, "chunks", int_value(k == 2 ? 7 : k == 1 ? 1 : 3));
    if (k == 1 || k == 2) put(&s, "dim", int_value(-1));
    emit(b, &s);
  }
}
static void build_narrow(const Build* b) {
  static const int64_t kDim[] = {0, -1, 1, 0}, kStart[] = {1, -2, 4, 0}, kLength[] = {2, 2, 0, 3};
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = one(b, "narrow", 1, signed_(S_(3, 4)));
    put(&s, "dim", int_value(kDim[k])), put(&s, "start", int_value(kStart[k])), put(&s, "length", int_value(kLength[k]));
    emit(b, &s);
  }
}
static void build_diagonal(const Build* b) {
  static const int64_t kOffset[] = {0, 1, -1, 2, -9, 0};
  int k;
  for (k = 0; k < 6; k++) {
    Sample s = one(b, "diagonal", 1, k == 5 ? signed_(S_(0, 3)) : k >= 2 ? signed_(S_(2, 3, 4)) : signed_(S_(3, 4)));
    if (k) put(&s, "offset", int_value(kOffset[k]));
    if (k == 2) put(&s, "dim1", int_value(-1)), put(&s, "dim2", int_value(0));
    if (k == 3) put(&s, "dim1", int_value(0)), put(&s, "dim2", int_value(2));
    emit(b, &s);
  }
}
static void build_flip(const Build* b) {
  int k;
  for (k = 0; k < 6; k++) {
    Sample s = one(b, "flip", k < 5,
                   k == 3   ? signed_(S_(2, 0, 3))
                   : k == 4 ? signed_(NULL, 0)
                   : k == 5 ? signed_(S_(37, 131))
                            : signed_(S_(2, 3, 2)));
    put(&s, "dims",
        k == 0   ? ints_value(S_(0))
        : k == 1 ? ints_value(S_(-1, 0))
        : k == 2 ? ints_value(NULL, 0)
        : k == 3 ? ints_value(S_(0, 2))
        : k == 4 ? ints_value(NULL, 0)
                 : ints_value(S_(0, 1)));
    emit(b, &s);
  }
}
static void build_roll(const Build* b) {
  int k;
  for (k = 0; k < 7; k++) {
    Sample s = one(b, "roll", 1, k == 5 ? signed_(S_(0, 2)) : k == 6 ? signed_(NULL, 0) : signed_(S_(3, 2, 2)));
    put(&s, "shifts",
        k == 1   ? ints_value(S_(1, -5))
        : k == 3 ? ints_value(S_(2, 2))
        : k == 4 ? ints_value(S_(-7))
                 : ints_value(S_(4)));
    put(&s, "dims",
        k == 0   ? ints_value(S_(0))
        : k == 1 ? ints_value(S_(-1, 0))
        : k == 3 ? ints_value(S_(0, 0))
        : k == 5 ? ints_value(S_(1))
                 : ints_value(NULL, 0));
    emit(b, &s);
  }
}
static void build_repeat(const Build* b) {
  const int tile = has_arg(b->row, "dims");
  int k;
  for (k = 0; k < 6; k++) {
    Sample s = one(b, "repeat", 1, k == 3 ? signed_(NULL, 0) : k == 4 ? signed_(S_(0, 2)) : signed_(S_(2, 1, 3)));
    put(&s, tile ? "dims" : "repeats",
        k == 0   ? ints_value(S_(2, 3, 1))
        : k == 1 ? ints_value(S_(2, 1, 1, 2))
        : k == 2 ? ints_value(S_(1, 0, 2))
        : k == 3 ? ints_value(S_(2, 2))
        : k == 4 ? ints_value(S_(3, 2))
        : tile   ? ints_value(S_(2))
                 : ints_value(S_(1, 1, 1)));
    emit(b, &s);
  }
}

/* ---- products ---- */

static void build_shorthand(const Build* b) { /* mm bmm mv dot outer */
  const char* name = b->row->name;
  const int mm = !strcmp(name, "mm"), bmm = !strcmp(name, "bmm"), mv = !strcmp(name, "mv");
  int k;
  for (k = 0; k < 5; k++) {
    const int64_t m = k == 1 ? 0 : k == 3 ? 35 : k == 4 ? 190 : 2, p = k == 2 ? 0 : k == 3 ? 66 : k == 4 ? 210 : 3,
                  n = k == 3 ? 41 : k == 4 ? 230 : 2;
    if (mm) product(b, k < 3, k == 4, signed_(S_(m, p)), signed_(S_(p, n)));
    if (bmm) product(b, k < 3, k == 4, signed_(S_(k == 4 ? 3 : 2, m, p)), signed_(S_(k == 4 ? 3 : 2, p, n)));
    if (mv) product(b, k < 3, k == 4, signed_(S_(m, p)), signed_(S_(p)));
    if (name[0] == 'd') product(b, k < 3, k == 4, signed_(S_(p)), signed_(S_(p)));
    if (name[0] == 'o') product(b, k < 3, k == 4, signed_(S_(m)), signed_(S_(n)));
  }
}
static void build_baddbmm(const Build* b) {
  int k;
  for (k = 0; k < 5; k++) {
    Sample s = blank(b, "baddbmm", k < 4);
    const int64_t m = k == 4 ? 35 : k == 3 ? 0 : 2, n = k == 4 ? 41 : 2, p = k == 4 ? 66 : 3;
    s.args[0] = tensor_value(k == 1 ? signed_(S_(2, 1, n)) : k == 2 ? signed_(NULL, 0) : signed_(S_(2, m, n)));
    s.args[1] = tensor_value(signed_(S_(2, m, p))), s.args[2] = tensor_value(signed_(S_(2, p, n)));
    if (k == 1) put(&s, "beta", scalar_value(0.5)), put(&s, "alpha", scalar_value(-2));
    if (k == 2) put(&s, "beta", scalar_value(0));
    emit(b, &s);
  }
}
static void build_einsum(const Build* b) {
  static const struct {
    const char* equation;
    int n;
    int64_t shape[3][4];
    int ndim[3];
  } kCases[] = {{"i->", 1, {{3}}, {1}},
                {"ij -> ji", 1, {{2, 3}}, {2}},
                {"ii->i", 1, {{3, 3}}, {2}},
                {"iji", 1, {{2, 3, 2}}, {3}},
                {"aBb", 1, {{2, 3, 2}}, {3}},
                {"...", 1, {{2, 3}}, {2}},
                {"i...->...", 1, {{2, 3}}, {2}},
                {"...i->i", 1, {{2, 2, 3}}, {3}},
                {"->", 1, {{0}}, {0}},
                {"i,j->ij", 2, {{2}, {3}}, {1, 1}},
                {"ij,jk", 2, {{2, 3}, {3, 2}}, {2, 2}},
                {"bij,bjk->ikb", 2, {{2, 2, 3}, {2, 3, 2}}, {3, 3}},
                {"ij,ij->", 2, {{2, 3}, {2, 3}}, {2, 2}},
                {"ijk,ik->j", 2, {{1, 2, 3}, {1, 3}}, {3, 2}},
                {"ij,jk->ik", 2, {{2, 1}, {3, 2}}, {2, 2}},
                {"...ij,...jk->...ik", 2, {{2, 1, 2, 2}, {2, 2, 2}}, {4, 3}},
                {"ij,k->", 2, {{2, 3}, {2}}, {2, 1}},
                {"ij,jk->ik", 2, {{2, 0}, {0, 3}}, {2, 2}},
                {"ij,jk,kl->il", 3, {{2, 3}, {3, 2}, {2, 2}}, {2, 2, 2}},
                {"ik,jk,i->jk", 3, {{2, 3}, {2, 3}, {2}}, {2, 2, 1}},
                {"ab,bc->ca", 2, {{37, 41}, {41, 33}}, {2, 2}}};
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    Sample s = blank(b, kCases[i].equation, i + 1 < sizeof kCases / sizeof *kCases);
    tt_value list = {0}, text = {0};
    int k;
    list.tag = TT_VAL_TENSORS, list.n = kCases[i].n;
    for (k = 0; k < kCases[i].n; k++) s.items[k] = signed_(kCases[i].shape[k], kCases[i].ndim[k]);
    text.tag = TT_VAL_STR, text.str = kCases[i].equation, text.n = (int64_t)strlen(kCases[i].equation);
    put(&s, "equation", text), put(&s, "operands", list);
    emit(b, &s);
  }
}

#define SHAPE_FAMILIES                                                                                               \
  {"flatten", build_flatten}, {"unflatten", build_unflatten}, {"unbind", build_unbind}, {"chunk", build_chunk},      \
      {"narrow", build_narrow}, {"diagonal", build_diagonal}, {"flip", build_flip}, {"roll", build_roll},            \
      {"repeat", build_repeat}, {"shorthand", build_shorthand}, {"baddbmm", build_baddbmm}, {"einsum", build_einsum},
