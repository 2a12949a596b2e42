/* Pooling of one or a few planes on several threads: with long rows, tall and huge windows,
   values, positions and gradients are right, and bit-equal for every number of threads. */
#include "everywhere.h"
#include "share.h"

/* out: the output size of adaptive pooling, whose kernel is 0 */
typedef struct Case {
  int64_t n, c, in[2], kernel[2], stride[2], pad[2], dilation[2], out[2];
  int ceil;
} Case;
static const Case kLines[] = {
    {1, 1, {1, 200003}, {1, 3}, {1, 3}, {0}, {1, 1}, {0}, 1},
    {1, 1, {1, 150001}, {1, 3}, {1, 1}, {0, 1}, {1, 2}, {0}, 0},
    {1, 2, {1, 100003}, {1, 2}, {1, 2}, {0}, {1, 1}, {0}, 0},
    {1, 1, {1, 200001}, {1, 5000}, {1, 5000}, {0, 9}, {1, 1}, {0}, 1},
    {1, 1, {2, 90001}, {2, 2}, {2, 2}, {0}, {1, 1}, {0}, 0},
    {1, 1, {3, 70001}, {2, 5}, {1, 4}, {1, 2}, {1, 1}, {0}, 1},
    {1, 1, {1, 150001}, {0}, {0}, {0}, {1, 1}, {1, 40001}, 0},
    {1, 1, {1, 120001}, {1, 60}, {1, 25}, {0, 30}, {1, 40}, {0}, 1},
};
static const Case kHuge[] = {
    {1, 1, {500, 601}, {0}, {0}, {0}, {1, 1}, {1, 1}, 0},
    {1, 1, {601, 500}, {601, 500}, {1, 1}, {0}, {1, 1}, {0}, 0},
    {1, 2, {400, 411}, {0}, {0}, {0}, {1, 1}, {2, 1}, 0},
    {1, 1, {401, 500}, {401, 500}, {400, 400}, {99, 50}, {1, 1}, {0}, 1},
    {1, 1, {1, 300001}, {0}, {0}, {0}, {1, 1}, {1, 1}, 0},
    {1, 1, {1, 300001}, {1, 140000}, {1, 150000}, {0, 7}, {1, 2}, {0}, 1},
    {1, 1, {7, 40001}, {0}, {0}, {0}, {1, 1}, {1, 2}, 0},
    {1, 1, {70001, 3}, {0}, {0}, {0}, {1, 1}, {1, 1}, 0},
    {1, 1, {5001, 40}, {0}, {0}, {0}, {1, 1}, {1, 2}, 0},
    {2, 3, {200, 300}, {0}, {0}, {0}, {1, 1}, {1, 1}, 0},
    {1, 1, {300, 2500}, {150, 2500}, {150, 1}, {75, 0}, {2, 1}, {0}, 1},
    {1, 1, {700, 300}, {700, 30}, {1, 1}, {0}, {1, 1}, {0}, 0}, /* they overlap */
    {1, 1, {701, 300}, {700, 200}, {1, 1}, {0}, {1, 1}, {0}, 0},
};
static const Case kTall[] = {
    {1, 1, {500, 200}, {100, 30}, {30, 7}, {0}, {1, 1}, {0}, 0},
    {1, 1, {400, 260}, {40, 3}, {9, 2}, {20, 1}, {3, 5}, {0}, 1},
    {1, 1, {300, 300}, {60, 9}, {13, 1}, {0, 4}, {1, 1}, {0}, 0},
    {1, 1, {420, 260}, {0}, {0}, {0}, {1, 1}, {5, 7}, 0},
    {1, 2, {703, 101}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {0}, 1},
    {1, 1, {640, 130}, {3, 3}, {3, 5}, {1, 0}, {2, 3}, {0}, 1},
    {1, 1, {9000, 12}, {3, 3}, {1, 2}, {1, 1}, {1, 1}, {0}, 0},
    {1, 1, {512, 256}, {2, 2}, {2, 2}, {0}, {1, 1}, {0}, 0},
};
static const Case kSmall[] = {
    {3, 7, {14, 15}, {5, 5}, {1, 1}, {2, 2}, {1, 1}, {0}, 0}, /* planes side by side */
    {2, 9, {19, 21}, {3, 4}, {2, 2}, {1, 2}, {2, 1}, {0}, 1},
    {1, 1, {23, 1474}, {6, 6}, {1, 1}, {0}, {1, 1}, {0}, 0}, /* parts of rows */
    {1, 1, {31, 1501}, {4, 5}, {4, 2}, {0, 2}, {2, 3}, {0}, 1},
};

static Case now;
static int pixels; /* channels last */
static int adaptive(void) { return !now.kernel[0]; }

/* ---- reference, one plane at a time ---- */

/* Window o of dimension d has elements first, first + step … below the return value; *padded
   counts padding, too. */
static int64_t window_of(int d, int64_t o, int64_t out, int64_t* first, int64_t* padded) {
  const int64_t n = now.in[d];
  const int64_t reach = (now.kernel[d] - 1) * now.dilation[d] + 1;
  int64_t begin, end;
  if (adaptive()) {
    begin = o * n / out;
    end = ((o + 1) * n + out - 1) / out;
    *first = begin;
    *padded = end - begin;
    return end;
  }
  begin = o * now.stride[d] - now.pad[d];
  end = begin + reach;
  *padded = (end < n + now.pad[d] ? end : n + now.pad[d]) - begin;
  while (begin < 0) begin += now.dilation[d];
  *first = begin;
  return end < n ? end : n;
}
typedef struct Planes {
  const int64_t* out;
  const double *x, *y, *index, *g;
  double *dx, *sizes;
} Planes;
static void check_window(const Planes* p, int64_t o, int max, double eps) {
  int64_t from[2], to[2], padded[2], step[2], i, j, at = -1;
  double sum = 0, size = 0;
  int d;
  for (d = 0; d < 2; d++) {
    to[d] = window_of(d, d ? o % p->out[1] : o / p->out[1], p->out[d], &from[d], &padded[d]);
    step[d] = adaptive() ? 1 : now.dilation[d];
  }
  for (i = from[0]; i < to[0]; i += step[0])
    for (j = from[1]; j < to[1]; j += step[1]) {
      const double v = p->x[i * now.in[1] + j];
      if (at < 0 || v > p->x[at] || isnan(v)) at = i * now.in[1] + j;
      sum += v;
      size += fabs(v);
    }
  if (max) {
    if (at < 0) assert_true(p->y[o] == -INFINITY);
    else {
      assert_true(p->y[o] == p->x[at] || (isnan(p->y[o]) && isnan(p->x[at])));
      if (p->index) assert_true(p->index[o] == (double)at);
      if (p->g) {
        p->dx[at] += p->g[o];
        p->sizes[at] += fabs(p->g[o]);
      }
    }
    return;
  }
  check_near(p->y[o], sum / (double)(padded[0] * padded[1]),
             eps * 16 * size / (double)(padded[0] * padded[1]));
  for (i = from[0]; p->g && i < to[0]; i++)
    for (j = from[1]; j < to[1]; j++) {
      const double share = p->g[o] / (double)(padded[0] * padded[1]);
      p->dx[i * now.in[1] + j] += share;
      p->sizes[i * now.in[1] + j] += fabs(share);
    }
}
static void check_pooling(const tt_tensor* x, const tt_tensor* y, const tt_tensor* index,
                          const tt_tensor* g, const tt_tensor* dx, int max) {
  const int64_t size = now.in[0] * now.in[1];
  const int64_t* out = tt_tensor_shape(y) + 2;
  const int64_t results = out[0] * out[1];
  double* vx = values_of(x);
  double* vy = values_of(y);
  double* vi = index ? values_of(index) : NULL;
  double* vg = g ? values_of(g) : NULL;
  double* vd = dx ? values_of(dx) : NULL;
  double* want = malloc((size_t)(2 * size) * sizeof *want);
  int64_t k, i;
  const double eps = epsilon(tt_tensor_dtype(x));
  for (k = 0; k < now.n * now.c; k++) {
    const Planes p = {out,
                      vx + k * size,
                      vy + k * results,
                      vi ? vi + k * results : NULL,
                      vg ? vg + k * results : NULL,
                      want,
                      want + size};
    memset(want, 0, (size_t)(2 * size) * sizeof *want);
    for (i = 0; i < results; i++) check_window(&p, i, max, eps);
    for (i = 0; vd && i < size; i++)
      check_near(vd[k * size + i], want[i], eps * 16 * want[size + i]);
  }
  free(vx);
  free(vy);
  free(vi);
  free(vg);
  free(vd);
  free(want);
}

/* ---- the computations ---- */

static void pool(tt_ctx* x, const tt_tensor* t, int max, tt_tensor** y, tt_tensor** index) {
  const tt_max_pool2d_with_indices_opts with = {.set = 15,
                                                .stride = now.stride,
                                                .n_stride = 2,
                                                .padding = now.pad,
                                                .n_padding = 2,
                                                .dilation = now.dilation,
                                                .n_dilation = 2,
                                                .ceil_mode = now.ceil};
  const tt_max_pool2d_opts values_only = {.set = 15,
                                          .stride = now.stride,
                                          .n_stride = 2,
                                          .padding = now.pad,
                                          .n_padding = 2,
                                          .dilation = now.dilation,
                                          .n_dilation = 2,
                                          .ceil_mode = now.ceil};
  const tt_avg_pool2d_opts mean = {.set = 7,
                                   .stride = now.stride,
                                   .n_stride = 2,
                                   .padding = now.pad,
                                   .n_padding = 2,
                                   .ceil_mode = now.ceil};
  if (adaptive() && max) DO(tt_adaptive_max_pool2d(x, t, now.out, 2, y, index));
  else if (adaptive()) DO(tt_adaptive_avg_pool2d(x, t, now.out, 2, y));
  else if (!max) DO(tt_avg_pool2d(x, t, now.kernel, 2, &mean, y));
  else if (index) DO(tt_max_pool2d_with_indices(x, t, now.kernel, 2, &with, y, index));
  else DO(tt_max_pool2d(x, t, now.kernel, 2, &values_only, y));
}
static tt_tensor* in_order(tt_ctx* x, const tt_tensor* t) {
  tt_tensor* r;
  if (!pixels) return (tt_tensor*)t;
  DO(tt_permute(x, t, SHAPE(0, 2, 3, 1), &r));
  DO(tt_contiguous(x, r, &r));
  DO(tt_permute(x, r, SHAPE(0, 3, 1, 2), &r));
  return r;
}
static void pool_one(tt_ctx* x, const tt_tensor* t, int max, Bytes* b) {
  const tt_dtype d = tt_tensor_dtype(t);
  const int real = d != TT_I64;
  tt_tensor* from = in_order(x, t);
  tt_tensor* y;
  tt_tensor* index = NULL;
  tt_tensor* values;
  tt_tensor* g = NULL;
  tt_tensor* dx = NULL;
  if (!real && adaptive()) return;
  if (real) {
    DO(tt_clone(x, from, NULL, &from));
    DO(tt_requires_grad_(x, from, 1));
  }
  pool(x, from, max, &y, max ? &index : NULL);
  keep(b, y);
  if (max) keep(b, index);
  if (max && !adaptive()) {
    pool(x, from, max, &values, NULL);
    keep(b, values);
  }
  if (real) {
    const tt_tensor* seed_of;
    tt_grad_opts o = {.set = TT_GRAD_GRAD_OUTPUTS, .grad_outputs = &seed_of, .n_grad_outputs = 1};
    const tt_scalar begin = int_scalar(0);
    const tt_scalar end = int_scalar(tt_tensor_numel(y));
    const tt_arange_opts wide = {.set = TT_ARANGE_DTYPE, .dtype = TT_F64};
    const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = d};
    DO(tt_arange(x, &begin, &end, &wide, &g));
    DO(tt_sin(x, g, &g));
    DO(tt_to(x, g, &to, &g));
    DO(tt_reshape(x, g, tt_tensor_shape(y), 4, &g));
    seed_of = g;
    DO(tt_grad(x, (const tt_tensor**)&y, 1, (const tt_tensor**)&from, 1, &o, &dx));
    keep(b, dx);
  }
  if (alone(x)) check_pooling(t, y, index, g, dx, max);
}
static void pool_both(tt_ctx* x, const tt_tensor* t, Bytes* b) {
  const int64_t wide = now.dilation[0] * now.dilation[1];
  pool_one(x, t, 1, b);
  if (wide == 1 && tt_tensor_dtype(t) != TT_I64) pool_one(x, t, 0, b);
}

static double ties(void) {
  if (draw() % 5000) return few();
  return draw() % 2 ? NAN : -INFINITY;
}
static double plain(void) { return (double)(draw() % 2001 - 1000) / 64; }
static void pool_all(const Case* cases, size_t n) {
  static const tt_dtype kDtypes[] = {TT_F32, TT_F32, TT_F64, TT_F16, TT_BF16, TT_I64};
  static double (*const kFills[])(void) = {plain, ties, plain, plain, plain, few};
  size_t i, d;
  for (i = 0; i < n; i++)
    for (pixels = 0; pixels < 2; pixels++)
      for (d = 0; d < 6; d++) {
        now = cases[i];
        if (pixels && now.c == 1 && d > 1) {
          now.c = 3;
          now.in[0] = (now.in[0] + 1) / 2;
        }
        if (left_out()) continue;
        if (pixels && (d > 2 || (!adaptive() && now.kernel[0] > now.in[0]))) continue;
        same_everywhere(pool_both,
                        filled(SHAPE(now.n, now.c, now.in[0], now.in[1]), kDtypes[d], kFills[d]));
      }
}
static void test_lines(void** state) {
  (void)state;
  pool_all(kLines, sizeof kLines / sizeof *kLines);
}
static void test_huge_windows(void** state) {
  (void)state;
  pool_all(kHuge, sizeof kHuge / sizeof *kHuge);
}
static void test_tall_windows(void** state) {
  (void)state;
  pool_all(kTall, sizeof kTall / sizeof *kTall);
}
static void test_small_windows(void** state) {
  (void)state;
  pool_all(kSmall, sizeof kSmall / sizeof *kSmall);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_lines), SCOPED(test_huge_windows),
                                     SCOPED(test_tall_windows), SCOPED(test_small_windows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
