/* Part of samples.c: samples of views, rearrangements, matrix shorthands, creation and indexing
 * beyond the first operators. */

/* ---- views and rearrangements ---- */

static void build_flatten(const Build* b) {
  static const int64_t kFrom[] = {0, 1, -2, 0};
  static const int64_t kTo[] = {-1, 2, -2, 1};
  int k;
  for (k = 0; k < 6; k++) {
    Sample s = one(b, k == 4 ? "0-dim" : "flatten", 1,
                   k == 4   ? signed_(NULL, 0)
                   : k == 5 ? signed_(S_(0, 3))
                            : signed_(S_(2, 3, 2)));
    if (k < 4) {
      put(&s, "start_dim", int_value(kFrom[k]));
      put(&s, "end_dim", int_value(kTo[k]));
    }
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
    Sample s = one(b, "unbind", 1,
                   k == 2   ? signed_(S_(3))
                   : k == 3 ? signed_(S_(2, 0))
                            : signed_(S_(2, 3)));
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
  static const int64_t kDim[] = {0, -1, 1, 0};
  static const int64_t kStart[] = {1, -2, 4, 0};
  static const int64_t kLength[] = {2, 2, 0, 3};
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = one(b, "narrow", 1, signed_(S_(3, 4)));
    put(&s, "dim", int_value(kDim[k]));
    put(&s, "start", int_value(kStart[k]));
    put(&s, "length", int_value(kLength[k]));
    emit(b, &s);
  }
}
static void build_diagonal(const Build* b) {
  static const int64_t kOffset[] = {0, 1, -1, 2, -9, 0};
  int k;
  for (k = 0; k < 6; k++) {
    Sample s = one(b, "diagonal", 1,
                   k == 5   ? signed_(S_(0, 3))
                   : k >= 2 ? signed_(S_(2, 3, 4))
                            : signed_(S_(3, 4)));
    if (k) put(&s, "offset", int_value(kOffset[k]));
    if (k == 2) {
      put(&s, "dim1", int_value(-1));
      put(&s, "dim2", int_value(0));
    }
    if (k == 3) {
      put(&s, "dim1", int_value(0));
      put(&s, "dim2", int_value(2));
    }
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
    Sample s = one(b, "roll", 1,
                   k == 5   ? signed_(S_(0, 2))
                   : k == 6 ? signed_(NULL, 0)
                            : signed_(S_(3, 2, 2)));
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
    Sample s = one(b, "repeat", 1,
                   k == 3   ? signed_(NULL, 0)
                   : k == 4 ? signed_(S_(0, 2))
                            : signed_(S_(2, 1, 3)));
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
  const int mm = !strcmp(name, "mm");
  const int bmm = !strcmp(name, "bmm");
  const int mv = !strcmp(name, "mv");
  int k;
  for (k = 0; k < 5; k++) {
    const int64_t m = k == 1 ? 0 : k == 3 ? 35 : k == 4 ? 190 : 2;
    const int64_t p = k == 2 ? 0 : k == 3 ? 66 : k == 4 ? 210 : 3;
    const int64_t n = k == 3 ? 41 : k == 4 ? 230 : 2;
    if (mm) product(b, k < 3, k == 4, signed_(S_(m, p)), signed_(S_(p, n)));
    if (bmm)
      product(b, k < 3, k == 4, signed_(S_(k == 4 ? 3 : 2, m, p)),
              signed_(S_(k == 4 ? 3 : 2, p, n)));
    if (mv) product(b, k < 3, k == 4, signed_(S_(m, p)), signed_(S_(p)));
    if (name[0] == 'd') product(b, k < 3, k == 4, signed_(S_(p)), signed_(S_(p)));
    if (name[0] == 'o') product(b, k < 3, k == 4, signed_(S_(m)), signed_(S_(n)));
  }
}
static void build_baddbmm(const Build* b) {
  int k;
  for (k = 0; k < 5; k++) {
    Sample s = blank(b, "baddbmm", k < 4);
    const int64_t m = k == 4 ? 35 : k == 3 ? 0 : 2;
    const int64_t n = k == 4 ? 41 : 2;
    const int64_t p = k == 4 ? 66 : 3;
    s.args[0] = tensor_value(k == 1   ? signed_(S_(2, 1, n))
                             : k == 2 ? signed_(NULL, 0)
                                      : signed_(S_(2, m, n)));
    s.args[1] = tensor_value(signed_(S_(2, m, p)));
    s.args[2] = tensor_value(signed_(S_(2, p, n)));
    if (k == 1) {
      put(&s, "beta", scalar_value(0.5));
      put(&s, "alpha", scalar_value(-2));
    }
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
    tt_value list = {0};
    tt_value text = {0};
    int k;
    list.tag = TT_VAL_TENSORS;
    list.n = kCases[i].n;
    for (k = 0; k < kCases[i].n; k++) s.items[k] = signed_(kCases[i].shape[k], kCases[i].ndim[k]);
    text.tag = TT_VAL_STR;
    text.str = kCases[i].equation;
    text.n = (int64_t)strlen(kCases[i].equation);
    put(&s, "equation", text);
    put(&s, "operands", list);
    emit(b, &s);
  }
}

/* ---- creation ---- */

static void build_eye(const Build* b) {
  static const int64_t kRows[] = {3, 2, 4, 0};
  static const int64_t kColumns[] = {0, 4, 1, 2};
  static const tt_dtype kOf[] = {TT_F32, TT_I64, TT_BF16, TT_BOOL};
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = blank(b, "eye", 0);
    put(&s, "n", int_value(kRows[k]));
    if (k) {
      put(&s, "m", int_value(kColumns[k]));
      put(&s, "dtype", int_value(kOf[k]));
    }
    emit(b, &s);
  }
}
static void build_linspace(const Build* b) {
  static const double kStart[] = {0, -1, 5, 2, 3, 0};
  static const double kEnd[] = {1, 1, -7, 2, 9, 50};
  static const int64_t kSteps[] = {5, 8, 67, 1, 0, 50};
  static const tt_dtype kOf[] = {TT_F32, TT_F64, TT_F16, TT_F32, TT_F32, TT_I64};
  int k;
  for (k = 0; k < 6; k++) {
    Sample s = blank(b, "linspace", 0);
    put(&s, "start", scalar_value(kStart[k]));
    put(&s, "end", scalar_value(kEnd[k]));
    put(&s, "steps", int_value(kSteps[k]));
    if (k) put(&s, "dtype", int_value(kOf[k]));
    emit(b, &s);
  }
}
static void build_one_hot(const Build* b) {
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = blank(b, "one_hot", 0);
    s.args[0] = tensor_value(k == 1   ? indices(NULL, 0, 3)
                             : k == 2 ? indices(S_(2, 0), 3)
                                      : indices(S_(2, 3), 4));
    if (k != 3) put(&s, "num_classes", int_value(5));
    emit(b, &s);
  }
}
static void build_triangle(const Build* b) {
  static const int64_t kDiagonal[] = {0, 1, -1, 9, -9, 0};
  int k;
  for (k = 0; k < 6; k++) {
    Sample s = one(b, "triangle", 1,
                   k == 2   ? signed_(S_(2, 3, 2))
                   : k == 5 ? signed_(S_(2, 0, 3))
                            : signed_(S_(3, 4)));
    if (k) put(&s, "diagonal", int_value(kDiagonal[k]));
    emit(b, &s);
  }
  {
    Sample s = one(b, "special values", 0, filled(S_(6, 6), special_value));
    s.special = 1;
    emit(b, &s);
  }
}

/* ---- indexing ---- */

static void build_scatter(const Build* b) { /* no position twice, where values replace */
  const int src = has_arg(b->row, "src");
  int k;
  for (k = 0; k < 7; k++) {
    Sample s = one(b, "scatter", 1, k == 3 ? signed_(NULL, 0) : signed_(S_(3, 2)));
    put(&s, "dim", int_value(k == 1 ? -1 : 0));
    put(&s, "index",
        tensor_value(k == 0   ? make(TT_I64, SHAPE(2, 2), DATA(2, 0, 0, 1))
                     : k == 1 ? make(TT_I64, SHAPE(2, 2), DATA(1, 0, 0, 1))
                     : k == 2 ? indices(S_(0, 2), 3)
                     : k == 3 ? indices(NULL, 0, 1)
                     : k == 4 ? make(TT_I64, SHAPE(1, 1), DATA(2))
                              : indices(S_(4, 2), 3)));
    if (src)
      put(&s, "src",
          tensor_value(k == 0   ? signed_(S_(2, 2))
                       : k == 1 ? signed_(S_(3, 4))
                       : k == 2 ? signed_(S_(0, 2))
                       : k == 3 ? signed_(NULL, 0)
                       : k == 4 ? signed_(S_(1, 2))
                                : signed_(S_(4, 2))));
    else put(&s, "value", scalar_value(2));
    if (k >= 5) put(&s, "reduce", int_value(k == 5 ? TT_SCATTER_ADD : TT_SCATTER_MULTIPLY));
    emit(b, &s);
  }
}
static void build_index_copy(const Build* b) {
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = one(b, "index_copy", 1, k == 3 ? signed_(NULL, 0) : signed_(S_(3, 2)));
    put(&s, "dim", int_value(k == 1 ? -1 : 0));
    put(&s, "index",
        tensor_value(k == 0   ? make(TT_I64, SHAPE(2), DATA(2, 0))
                     : k == 1 ? indices(NULL, 0, 2)
                     : k == 2 ? indices(S_(0), 3)
                              : indices(S_(1), 1)));
    put(&s, "source",
        tensor_value(k == 0   ? signed_(S_(2, 2))
                     : k == 1 ? signed_(S_(3, 1))
                     : k == 2 ? signed_(S_(0, 2))
                              : signed_(NULL, 0)));
    emit(b, &s);
  }
}
static void build_index_fill(const Build* b) {
  const int value_tensor = strcmp(b->row->args[3].type, "Tensor") == 0;
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = one(b, "index_fill", 1, k == 3 ? signed_(NULL, 0) : signed_(S_(3, 2)));
    put(&s, "dim", int_value(k == 1 ? -1 : 0));
    put(&s, "index",
        tensor_value(k == 0   ? make(TT_I64, SHAPE(3), DATA(2, 0, -1))
                     : k == 1 ? indices(NULL, 0, 2)
                     : k == 2 ? indices(S_(0), 3)
                              : indices(S_(1), 1)));
    put(&s, "value", value_tensor ? tensor_value(number(TT_F64, 1.5)) : scalar_value(2));
    emit(b, &s);
  }
}
static void build_take_along_dim(const Build* b) {
  int k;
  for (k = 0; k < 5; k++) {
    Sample s = one(b, "take_along_dim", 1, k == 3 ? signed_(S_(1, 2)) : signed_(S_(3, 2)));
    put(&s, "indices",
        tensor_value(k == 0   ? indices(S_(4, 2), 3)
                     : k == 1 ? make(TT_I64, SHAPE(1, 3), DATA(1, -2, -1))
                     : k == 2 ? indices(S_(2, 2), 6)
                     : k == 3 ? indices(S_(4, 3), 2)
                              : indices(S_(0, 1), 3)));
    if (k != 2) put(&s, "dim", int_value(k == 1 ? -1 : k == 3 ? 1 : 0));
    emit(b, &s);
  }
}
static void build_masked_select(const Build* b) {
  const struct {
    tt_tensor *x, *m;
  } kCases[] = {{signed_(S_(2, 3)), mask(S_(2, 3))}, {signed_(S_(2, 3)), mask(S_(3))},
                {signed_(S_(3)), mask(S_(2, 1))},    {signed_(NULL, 0), mask(NULL, 0)},
                {signed_(S_(2, 0)), mask(S_(1))},    {signed_(NULL, 0), mask(S_(4))}};
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    Sample s = one(b, "masked_select", 1, kCases[i].x);
    put(&s, "mask", tensor_value(kCases[i].m));
    emit(b, &s);
  }
}
static void build_nonzero(const Build* b) {
  int k;
  for (k = 0; k < 5; k++) {
    Sample s = one(b, "nonzero", 0,
                   k == 0   ? make(TT_F64, SHAPE(2, 3), DATA(0, 1, 0, 0, -2, 3))
                   : k == 1 ? signed_(NULL, 0)
                   : k == 2 ? number(TT_F64, 0)
                   : k == 3 ? signed_(S_(2, 0, 3))
                            : filled(S_(36, 18), special_value));
    s.special = k == 4;
    emit(b, &s);
  }
}

/* ---- statistics ---- */

static void build_statistics(const Build* b) {
  static const int64_t kDims[] = {0, -1, 1, 2};
  int k;
  for (k = 0; k < 7; k++) {
    Sample s = one(b, "statistics", k < 6,
                   k == 4   ? signed_(S_(5))
                   : k == 6 ? signed_(S_(40, 131))
                            : signed_(S_(2, 3, 2)));
    put(&s, "dim",
        k == 0   ? ints_value(kDims, 2)
        : k == 1 ? ints_value(kDims + 2, 1)
        : k == 2 ? ints_value(NULL, 0)
        : k == 3 ? ints_value(kDims + 1, 1)
        : k == 5 ? ints_value(kDims + 1, 2)
                 : ints_value(kDims, 1));
    put(&s, "keepdim", bool_value(k % 2));
    if (has_arg(b->row, "correction") && k % 3 == 2)
      put(&s, "correction", float_value(k == 2 ? 0 : 0.5));
    emit(b, &s);
  }
}

static void build_prod(const Build* b) {
  int k;
  for (k = 0; k < 7; k++) {
    Sample s = one(b,
                   k == 4   ? "one zero"
                   : k == 5 ? "two zeros"
                            : "prod",
                   k < 6,
                   k == 2   ? signed_(NULL, 0)
                   : k == 3 ? signed_(S_(0, 2))
                   : k == 4 ? make(TT_F64, SHAPE(2, 3), DATA(0.5, 0, 1.5, -1, 2, 0.7))
                   : k == 5 ? make(TT_F64, SHAPE(2, 3), DATA(0, 0, 1.5, -1, 0, 0.7))
                   : k == 6 ? signed_(S_(40, 13))
                            : signed_(S_(2, 3, 2)));
    if (has_arg(b->row, "dim")) {
      put(&s, "dim", int_value(k == 1 || k == 2 ? -1 : k == 3 ? 0 : 1));
      put(&s, "keepdim", bool_value(k % 2));
    }
    if (k == 6 && !has_arg(b->row, "dim")) continue;
    emit(b, &s);
  }
}

static void build_cumsum(const Build* b) {
  int k;
  for (k = 0; k < 6; k++) {
    Sample s = one(b, "cumsum", k < 5,
                   k == 2   ? signed_(NULL, 0)
                   : k == 3 ? signed_(S_(0, 2))
                   : k == 4 ? signed_(S_(7))
                   : k == 5 ? signed_(S_(40, 131))
                            : signed_(S_(2, 3, 2)));
    put(&s, "dim", int_value(k == 0 || k == 5 ? 1 : k == 1 ? -3 : k == 2 ? -1 : 0));
    emit(b, &s);
  }
}

#define SHAPE_FAMILIES                                                                            \
  {"flatten", build_flatten}, {"unflatten", build_unflatten}, {"unbind", build_unbind},           \
      {"chunk", build_chunk}, {"narrow", build_narrow}, {"diagonal", build_diagonal},             \
      {"flip", build_flip}, {"roll", build_roll}, {"repeat", build_repeat},                       \
      {"shorthand", build_shorthand}, {"baddbmm", build_baddbmm}, {"einsum", build_einsum},       \
      {"eye", build_eye}, {"linspace", build_linspace}, {"one_hot", build_one_hot},               \
      {"triangle", build_triangle}, {"scatter", build_scatter}, {"index_copy", build_index_copy}, \
      {"index_fill", build_index_fill}, {"take_along_dim", build_take_along_dim},                 \
      {"masked_select", build_masked_select}, {"nonzero", build_nonzero},                         \
      {"statistics", build_statistics}, {"prod", build_prod}, {"cumsum", build_cumsum},
