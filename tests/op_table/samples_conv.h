/* Part of samples.c: samples of convolutions. */

/* What a sample of nd spatial dimensions is made of; 0 in a parameter: not given. */
typedef struct ConvCase {
  int64_t n, c, o, size, k, stride, padding, dilation, groups, output_padding;
  int bias, unbatched, per_dim, smooth, big;
} ConvCase;

static void conv_list(Sample* s, const char* name, int64_t v, int nd, int per_dim) {
  const int64_t list[3] = {v, v > 1 ? v - 1 : v, v};
  if (v && has_arg(s->row, name)) put(s, name, ints_value(list, per_dim ? nd : 1));
}
static tt_value str_value(const char* text) {
  tt_value v = {0};
  v.tag = TT_VAL_STR;
  v.str = text;
  v.n = (int64_t)strlen(text);
  return v;
}
static void conv_sample(const Build* b, const ConvCase* k, int transposed) {
  const int nd = b->row->name[transposed ? 14 : 4] - '0'; /* conv1d, conv_transpose1d */
  const int named = strcmp(b->row->args[row_arg(b->row, "padding")].type, "Str") == 0;
  const int64_t groups = k->groups ? k->groups : 1;
  const int64_t x[5] = {k->n, k->c, k->size, k->size + 1, k->size - 1};
  const int64_t w[5] = {transposed ? k->c : k->o, (transposed ? k->o : k->c) / groups, k->k, k->k,
                        k->k > 1 ? k->k - 1 : 1};
  Sample s = one(b,
                 k->big         ? "large"
                 : k->groups    ? "groups"
                 : k->unbatched ? "unbatched"
                                : "convolution",
                 k->smooth, signed_(x + k->unbatched, nd + 2 - k->unbatched));
  put(&s, "weight", tensor_value(signed_(w, nd + 2)));
  if (k->bias) put(&s, "bias", tensor_value(signed_(&k->o, 1)));
  conv_list(&s, "stride", k->stride, nd, k->per_dim);
  conv_list(&s, "dilation", k->dilation, nd, k->per_dim);
  if (named) put(&s, "padding", str_value(k->stride < 2 ? "same" : "valid"));
  else conv_list(&s, "padding", k->padding, nd, k->per_dim);
  conv_list(&s, "output_padding", k->output_padding, nd, 0);
  if (k->groups) put(&s, "groups", int_value(k->groups));
  s.big = k->big;
  emit(b, &s);
}

static void build_conv(const Build* b) {
  static const ConvCase kCases[] = {
      {.n = 2, .c = 3, .o = 2, .size = 4, .k = 3, .bias = 1, .smooth = 1},
      {.n = 1, .c = 2, .o = 3, .size = 5, .k = 3, .stride = 2, .padding = 1, .smooth = 1},
      {.n = 1,
       .c = 1,
       .o = 2,
       .size = 5,
       .k = 2,
       .stride = 3,
       .padding = 2,
       .dilation = 2,
       .per_dim = 1,
       .bias = 1,
       .smooth = 1},
      {.n = 1, .c = 4, .o = 6, .size = 4, .k = 2, .groups = 2, .bias = 1, .smooth = 1},
      {.n = 1, .c = 3, .o = 3, .size = 4, .k = 3, .groups = 3, .padding = 1, .smooth = 1},
      {.n = 1, .c = 2, .o = 2, .size = 4, .k = 1, .unbatched = 1, .bias = 1, .smooth = 1},
      {.n = 0, .c = 2, .o = 2, .size = 4, .k = 2, .bias = 1, .smooth = 1},
      {.n = 2, .c = 17, .o = 35, .size = 5, .k = 2, .padding = 1, .bias = 1},
      {.n = 1, .c = 33, .o = 16, .size = 6, .k = 3, .dilation = 2, .padding = 2, .bias = 1},
      {.n = 40, .c = 3, .o = 18, .size = 20, .k = 3, .padding = 1, .bias = 1, .big = 1},
      {.n = 4, .c = 24, .o = 40, .size = 13, .k = 3, .stride = 2, .padding = 1, .big = 1},
  };
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) conv_sample(b, &kCases[i], 0);
}
static void build_conv_padding(const Build* b) {
  static const ConvCase kCases[] = {
      {.n = 1, .c = 2, .o = 2, .size = 4, .k = 3, .bias = 1, .smooth = 1},
      {.n = 1, .c = 2, .o = 3, .size = 5, .k = 2, .dilation = 3, .smooth = 1},
      {.n = 1, .c = 2, .o = 2, .size = 6, .k = 3, .stride = 2, .groups = 2, .smooth = 1},
      {.n = 1, .c = 2, .o = 2, .size = 4, .k = 2, .unbatched = 1, .smooth = 1},
  };
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) conv_sample(b, &kCases[i], 0);
}
static void build_conv_transpose(const Build* b) {
  static const ConvCase kCases[] = {
      {.n = 2, .c = 3, .o = 2, .size = 3, .k = 3, .bias = 1, .smooth = 1},
      {.n = 1,
       .c = 2,
       .o = 3,
       .size = 3,
       .k = 3,
       .stride = 2,
       .padding = 1,
       .output_padding = 1,
       .bias = 1,
       .smooth = 1},
      {.n = 1,
       .c = 2,
       .o = 2,
       .size = 3,
       .k = 2,
       .stride = 3,
       .dilation = 2,
       .per_dim = 1,
       .smooth = 1},
      {.n = 1, .c = 4, .o = 2, .size = 3, .k = 2, .groups = 2, .bias = 1, .smooth = 1},
      {.n = 1,
       .c = 2,
       .o = 2,
       .size = 3,
       .k = 1,
       .stride = 2,
       .unbatched = 1,
       .bias = 1,
       .smooth = 1},
      {.n = 0, .c = 2, .o = 2, .size = 3, .k = 2, .bias = 1, .smooth = 1},
      {.n = 1, .c = 35, .o = 17, .size = 4, .k = 3, .stride = 2, .padding = 1},
      {.n = 8,
       .c = 16,
       .o = 20,
       .size = 11,
       .k = 3,
       .stride = 2,
       .padding = 1,
       .bias = 1,
       .big = 1},
  };
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) conv_sample(b, &kCases[i], 1);
}

#define CONV_FAMILIES                                         \
  {"conv", build_conv}, {"conv_padding", build_conv_padding}, \
      {"conv_transpose", build_conv_transpose},
