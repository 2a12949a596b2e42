/* Part of samples.c: samples of normalisations of channels, pooling, resizing and padding. */

/* ---- normalisations ---- */

static void build_batch_norm(const Build* b) {
  const int instance = strcmp(b->row->name, "instance_norm") == 0;
  const char* own = instance ? "use_input_stats" : "training";
  int k;
  for (k = 0; k < 9; k++) {
    const int fixed = k == 2 || k == 3;
    const int64_t channels = k == 2 ? 2 : k == 6 ? 17 : k == 7 ? 33 : k == 8 ? 2 : 3;
    Sample s = one(b, fixed ? "running statistics" : "own statistics", k < 6,
                   k == 2               ? signed_(S_(2, 2, 3, 2))
                   : k == 4             ? signed_(S_(0, 3, 2))
                   : k == 5             ? signed_(S_(2, 3, 4))
                   : k == 6             ? signed_(S_(40, 17, 9, 9))
                   : k == 7 && instance ? signed_(S_(50, 33, 70))
                   : k == 7             ? signed_(S_(5000, 33))
                   : k == 8             ? signed_(S_(3, 2, 70, 1001))
                   : instance || k == 1 ? signed_(S_(2, 3, 4))
                                        : signed_(S_(4, 3)));
    if (k != 0 && k != 3 && k != 4) put(&s, "weight", tensor_value(signed_(&channels, 1)));
    if (k == 1 || k == 2 || k > 5) put(&s, "bias", tensor_value(signed_(&channels, 1)));
    if (fixed) {
      put(&s, "running_mean", tensor_value(signed_(&channels, 1)));
      put(&s, "running_var", tensor_value(positive(&channels, 1)));
    }
    put(&s, own, bool_value(!fixed));
    if (k == 3 || k == 5 || instance) put(&s, "eps", float_value(0.1));
    s.big = k > 5;
    emit(b, &s);
  }
}
static void build_group_norm(const Build* b) {
  int k;
  for (k = 0; k < 6; k++) {
    const int64_t channels = k == 2 ? 6 : k == 4 ? 32 : 4;
    Sample s = one(b, "group_norm", k != 4,
                   k == 0   ? signed_(S_(2, 4))
                   : k == 1 ? signed_(S_(2, 4, 3))
                   : k == 2 ? signed_(S_(1, 6, 2, 2))
                   : k == 3 ? signed_(S_(0, 4, 2))
                   : k == 4 ? signed_(S_(9, 32, 14, 14))
                            : signed_(S_(3, 4, 2)));
    put(&s, "num_groups", int_value(k == 2 ? 3 : k == 4 ? 8 : k == 5 ? 1 : 2));
    if (k != 0) put(&s, "weight", tensor_value(signed_(&channels, 1)));
    if (k != 0 && k != 5) put(&s, "bias", tensor_value(signed_(&channels, 1)));
    if (k == 0 || k == 2) put(&s, "eps", float_value(0.1));
    s.big = k == 4;
    emit(b, &s);
  }
}
static void build_rms_norm(const Build* b) {
  const int64_t shape[] = {3, 2};
  int k;
  for (k = 0; k < 5; k++) {
    Sample s = one(b, "rms_norm", k != 3,
                   k == 1   ? signed_(S_(2, 3, 2))
                   : k == 3 ? signed_(S_(300, 400))
                   : k == 4 ? signed_(S_(0, 3))
                            : signed_(S_(2, 3)));
    put(&s, "normalized_shape", k == 3 ? ints_value(S_(400)) : ints_value(shape, k == 1 ? 2 : 1));
    if (k == 1 || k == 2) put(&s, "weight", tensor_value(signed_(shape, k == 1 ? 2 : 1)));
    if (k == 2) put(&s, "eps", float_value(0.1));
    s.big = k == 3;
    emit(b, &s);
  }
}

/* ---- pooling ---- */

static const double kNanAndInf[] = {NAN,       1,         -INFINITY, -INFINITY, 2,
                                    -INFINITY, -INFINITY, INFINITY,  -3,        5};
static double nan_and_inf(int64_t i) { return kNanAndInf[i % 10]; }
static void pool_options(Sample* s, const int64_t* kernel, int n, const int64_t* stride,
                         const int64_t* pad, const int64_t* dilation, int ceil_mode) {
  put(s, "kernel_size", ints_value(kernel, n));
  if (stride) put(s, "stride", ints_value(stride, n));
  if (pad) put(s, "padding", ints_value(pad, n));
  if (dilation && has_arg(s->row, "dilation")) put(s, "dilation", ints_value(dilation, n));
  if (ceil_mode) put(s, "ceil_mode", bool_value(1));
}
static void build_pool2d(const Build* b) {
  static const int64_t k1[] = {2};
  static const int64_t k22[] = {2, 2};
  static const int64_t k32[] = {3, 2};
  static const int64_t k33[] = {3, 3};
  static const int64_t k57[] = {5, 7};
  static const int64_t s21[] = {2, 1};
  static const int64_t s22[] = {2, 2};
  static const int64_t s11[] = {1, 1};
  static const int64_t s34[] = {3, 4};
  static const int64_t p11[] = {1, 1};
  static const int64_t p10[] = {1, 0};
  static const int64_t p23[] = {2, 3};
  static const int64_t d12[] = {1, 2};
  static const int64_t d21[] = {2, 1};
  static const int64_t k11[] = {1, 1};
  static const int64_t k3000[] = {2, 2300};
  static const int64_t s700[] = {1, 700};
  const int average = !has_arg(b->row, "dilation");
  int k;
  for (k = 0; k < 15; k++) {
    Sample s = one(b, "windows", k < 10,
                   k == 0    ? signed_(S_(2, 4, 4))
                   : k == 1  ? signed_(S_(1, 2, 4, 6))
                   : k == 2  ? signed_(S_(2, 1, 5, 5))
                   : k == 3  ? signed_(S_(1, 2, 4, 5))
                   : k == 4  ? signed_(S_(1, 1, 6, 7))
                   : k == 5  ? signed_(S_(0, 2, 4, 4))
                   : k == 6  ? signed_(S_(1, 2, 7, 3))
                   : k == 7  ? signed_(S_(2, 2, 3, 3))
                   : k == 8  ? signed_(S_(1, 1, 5, 9))
                   : k == 9  ? signed_(S_(1, 3, 4, 4))
                   : k == 10 ? filled(S_(2, 5, 8), nan_and_inf)
                   : k == 11 ? signed_(S_(3, 5, 67, 130))
                   : k == 12 ? signed_(S_(2, 70, 65, 66))
                   : k == 13 ? signed_(S_(2, 9, 5000))
                             : signed_(S_(2, 1, 3, 4000)));
    switch (k) {
      case 0: pool_options(&s, k1, 1, NULL, NULL, NULL, 0); break;
      case 1: pool_options(&s, k22, 2, NULL, NULL, NULL, 0); break;
      case 2: pool_options(&s, k33, 2, s22, p11, NULL, 0); break;
      case 3: pool_options(&s, k32, 2, s21, p11, d12, 0); break;
      case 4: pool_options(&s, k33, 2, s34, p11, NULL, 1); break;
      case 5: pool_options(&s, k22, 2, NULL, NULL, NULL, 0); break;
      case 6: pool_options(&s, k32, 2, s11, p10, d21, 1); break;
      case 7: pool_options(&s, k11, 2, s22, NULL, NULL, 1); break;
      case 8: pool_options(&s, k57, 2, s22, p23, NULL, 0); break;
      case 9: pool_options(&s, k33, 2, s11, p11, NULL, 0); break;
      case 10: pool_options(&s, k22, 2, s22, average ? NULL : p11, NULL, 1); break;
      case 11: pool_options(&s, k33, 2, s22, p11, NULL, 0); break;
      case 12: pool_options(&s, k22, 2, s22, NULL, NULL, 0); break;
      case 13: pool_options(&s, k32, 2, s21, p11, NULL, 0); break;
      default: pool_options(&s, k3000, 2, s700, NULL, NULL, 0);
    }
    if (average && (k == 2 || k == 8 || k == 4)) put(&s, "count_include_pad", bool_value(0));
    if (average && (k == 3 || k == 9)) put(&s, "divisor_override", int_value(k == 3 ? -5 : 7));
    s.special = k == 10;
    s.big = k == 11 || k == 12;
    if (k >= 13) s.smooth = 0;
    emit(b, &s);
  }
}
static void build_pool1d(const Build* b) {
  static const int64_t one1[] = {1};
  static const int64_t two[] = {2};
  static const int64_t three[] = {3};
  int k;
  for (k = 0; k < 5; k++) {
    Sample s = one(b, "windows of a line", 1,
                   k == 0   ? signed_(S_(2, 7))
                   : k == 1 ? signed_(S_(2, 3, 6))
                   : k == 2 ? signed_(S_(1, 2, 7))
                   : k == 3 ? signed_(S_(0, 2, 4))
                            : signed_(S_(1, 2, 8)));
    switch (k) {
      case 1: pool_options(&s, three, 1, two, one1, NULL, 0); break;
      case 2: pool_options(&s, three, 1, two, one1, two, 1); break;
      case 4: pool_options(&s, three, 1, three, NULL, NULL, 1); break;
      default: pool_options(&s, two, 1, NULL, NULL, NULL, 0);
    }
    if (k == 2 && has_arg(b->row, "count_include_pad")) put(&s, "count_include_pad", bool_value(0));
    emit(b, &s);
  }
}
static void build_adaptive_pool(const Build* b) {
  const int line = strstr(b->row->name, "1d") != NULL;
  int k;
  for (k = 0; k < 6; k++) {
    static const int64_t kSizes[][2] = {{1, 1}, {3, 2}, {2, 7}, {0, 2}, {5, 3}, {7, 6}};
    Sample s = one(b, "adaptive", k < 5,
                   line     ? (k == 0   ? signed_(S_(2, 7))
                               : k == 5 ? signed_(S_(30, 40, 131))
                                        : signed_(S_(2, 1, 5)))
                   : k == 0 ? signed_(S_(2, 3, 4))
                   : k == 1 ? signed_(S_(1, 2, 5, 5))
                   : k == 2 ? signed_(S_(2, 1, 3, 4))
                   : k == 3 ? signed_(S_(1, 2, 3, 4))
                   : k == 4 ? signed_(S_(0, 2, 3, 4))
                            : signed_(S_(3, 50, 41, 43)));
    put(&s, "output_size", ints_value(kSizes[k] + (line && k), line || k == 0 ? 1 : 2));
    s.big = k == 5;
    emit(b, &s);
  }
}

/* ---- resizing and padding ---- */

static void build_interpolate(const Build* b) {
  static const struct {
    int64_t shape[5];
    int ndim, n_size;
    int64_t size[3];
    double factor;
    int mode, align, recompute;
  } kCases[] = {
      {{1, 2, 3, 4}, 4, 2, {5, 3}, 0, TT_INTERPOLATION_NEAREST, 0, 0},
      {{2, 1, 4, 3}, 4, 0, {0}, 1.7, TT_INTERPOLATION_NEAREST, 0, 0},
      {{1, 2, 5}, 3, 1, {7}, 0, TT_INTERPOLATION_NEAREST, 0, 0},
      {{1, 1, 2, 3, 2}, 5, 3, {3, 2, 5}, 0, TT_INTERPOLATION_NEAREST, 0, 0},
      {{1, 2, 3, 5}, 4, 0, {0}, 1.4, TT_INTERPOLATION_NEAREST_EXACT, 0, 0},
      {{1, 2, 5}, 3, 1, {8}, 0, TT_INTERPOLATION_LINEAR, 1, 0},
      {{1, 2, 5}, 3, 0, {0}, 0.6, TT_INTERPOLATION_LINEAR, 0, 0},
      {{1, 2, 3, 4}, 4, 2, {5, 6}, 0, TT_INTERPOLATION_BILINEAR, 0, 0},
      {{2, 1, 4, 3}, 4, 2, {3, 5}, 0, TT_INTERPOLATION_BILINEAR, 1, 0},
      {{1, 1, 4, 5}, 4, 0, {0}, 2, TT_INTERPOLATION_BILINEAR, 0, 0},
      {{1, 1, 4, 5}, 4, 0, {0}, 1.7, TT_INTERPOLATION_BILINEAR, 0, 1},
      {{1, 1, 4, 5}, 4, 0, {0}, 0.45, TT_INTERPOLATION_BILINEAR, 0, 0},
      {{0, 2, 3, 4}, 4, 1, {5}, 0, TT_INTERPOLATION_BILINEAR, 0, 0},
      {{1, 1, 3, 4}, 4, 2, {1, 1}, 0, TT_INTERPOLATION_BILINEAR, 1, 0},
      {{1, 1, 2, 3, 2}, 5, 3, {3, 2, 5}, 0, TT_INTERPOLATION_TRILINEAR, 0, 0},
      {{1, 2, 4, 3}, 4, 2, {5, 4}, 0, TT_INTERPOLATION_BICUBIC, 0, 0},
      {{1, 1, 4, 5}, 4, 0, {0}, 0.7, TT_INTERPOLATION_BICUBIC, 1, 0},
      {{1, 2, 5, 4}, 4, 2, {2, 3}, 0, TT_INTERPOLATION_AREA, 0, 0},
      {{1, 1, 3, 2, 4}, 5, 3, {2, 1, 3}, 0, TT_INTERPOLATION_AREA, 0, 0},
      {{2, 3, 7, 2500}, 4, 2, {9, 3100}, 0, TT_INTERPOLATION_BILINEAR, 0, 0},
      {{2, 3, 9, 4001}, 4, 2, {3, 900}, 0, TT_INTERPOLATION_BILINEAR, 1, 0},
      {{3, 5, 41, 67}, 4, 0, {0}, 2, TT_INTERPOLATION_BILINEAR, 0, 0},
      {{3, 5, 41, 67}, 4, 0, {0}, 2.3, TT_INTERPOLATION_NEAREST, 0, 0},
  };
  int k;
  for (k = 0; k < (int)(sizeof kCases / sizeof *kCases); k++) {
    Sample s = one(b, "interpolate", k < 19, signed_(kCases[k].shape, kCases[k].ndim));
    if (kCases[k].n_size) put(&s, "size", ints_value(kCases[k].size, kCases[k].n_size));
    if (kCases[k].factor > 0) put(&s, "scale_factor", float_value(kCases[k].factor));
    put(&s, "mode", int_value(kCases[k].mode));
    if (kCases[k].align) put(&s, "align_corners", bool_value(1));
    if (kCases[k].recompute) put(&s, "recompute_scale_factor", bool_value(1));
    if (k == 10) put(&s, "scale_h", float_value(1.3));
    s.big = k > 20;
    emit(b, &s);
  }
}
static void build_pad(const Build* b) {
  static const struct {
    int64_t shape[4];
    int ndim, n_pad;
    int64_t pad[6];
    int mode;
  } kCases[] = {
      {{2, 3}, 2, 2, {1, 2}, 0},
      {{2, 3, 4}, 3, 4, {1, -1, 0, 2}, 0},
      {{2, 3}, 2, 4, {-1, 3, -2, 1}, 0},
      {{0, 3}, 2, 2, {1, 1}, 0},
      {{2, 3}, 2, 0, {0}, 0},
      {{1, 2, 3, 4}, 4, 4, {2, 1, 1, 0}, 1},
      {{2, 5}, 2, 2, {3, -1}, 1},
      {{1, 2, 3, 4}, 4, 4, {2, 5, -1, 1}, 2},
      {{2, 3}, 2, 2, {-1, 4}, 2},
      {{1, 2, 3, 4}, 4, 4, {2, 4, 1, 0}, 3},
      {{2, 2, 3}, 3, 2, {3, -1}, 3},
  };
  int k;
  for (k = 0; k < (int)(sizeof kCases / sizeof *kCases); k++) {
    Sample s;
    if (kCases[k].mode && !has_arg(b->row, "mode")) continue;
    s = one(b, "pad", 1, signed_(kCases[k].shape, kCases[k].ndim));
    put(&s, "pad", ints_value(kCases[k].pad, kCases[k].n_pad));
    if (has_arg(b->row, "mode")) put(&s, "mode", int_value(kCases[k].mode));
    if (k < 2) put(&s, "value", scalar_value(k + 1));
    emit(b, &s);
  }
}

#define IMAGE_FAMILIES                                                                   \
  {"batch_norm", build_batch_norm}, {"group_norm", build_group_norm},                    \
      {"rms_norm", build_rms_norm}, {"pool1d", build_pool1d}, {"pool2d", build_pool2d},  \
      {"average_pool1d", build_pool1d}, {"average_pool2d", build_pool2d},                \
      {"adaptive_pool", build_adaptive_pool}, {"adaptive_average", build_adaptive_pool}, \
      {"interpolate", build_interpolate}, {"pad", build_pad},
