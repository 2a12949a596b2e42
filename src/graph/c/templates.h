// The C99 functions that an exported model calls, one for each kind of operator that is not
// elementwise. A model contains those that it uses. Strides count elements. In a function that
// exists for several dtypes, $8 is the dtype's name, $T the type in C, $N(x) whether x is nan.
#pragma once

#include <stdint.h>

namespace TT_NS {

struct CTemplate {
  const char* name;
  const char* text;
};

constexpr CTemplate kCTemplates[] = {
    {"linear", R"(
/* y: (rows, n), x: (rows, k), w: (n, k), b: (n) or NULL */
static void linear(const float *x, const float *w, const float *b, float *y, long rows, long k,
                   long n) {
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < n; j++) {
      const float *a = x + i * k, *c = w + j * k;
      float sum = b ? b[j] : 0.0f;
      for (long l = 0; l < k; l++) sum += a[l] * c[l];
      y[i * n + j] = sum;
    }
}
)"},
    {"matmul", R"(
/* y: (m, n) = beta z + alpha x w; x: (m, k), w: (k, n), z: (m, n) or NULL, each with its strides */
static void matmul(const float *x, long xm, long xk, const float *w, long wk, long wn,
                   const float *z, long zm, long zn, float beta, float alpha, float *y, long ym,
                   long yn, long m, long k, long n) {
  for (long i = 0; i < m; i++)
    for (long j = 0; j < n; j++) {
      float sum = 0.0f;
      for (long l = 0; l < k; l++) sum += x[i * xm + l * xk] * w[l * wk + j * wn];
      y[i * ym + j * yn] = (z ? beta * z[i * zm + j * zn] : 0.0f) + alpha * sum;
    }
}
)"},
    {"conv2d", R"(
/* sizes: n, groups, channels in and out of a group, height and width of x, of w, of y;
   how: stride, padding, dilation, each of height and width; xs, ys: strides of n, c, h, w */
static void conv2d(const float *x, const long *xs, const float *w, const float *b, float *y,
                   const long *ys, const long *sizes, const long *how) {
  const long groups = sizes[1], in = sizes[2], out = sizes[3], h = sizes[4], wide = sizes[5];
  const long kh = sizes[6], kw = sizes[7], oh = sizes[8], ow = sizes[9];
  for (long i = 0; i < sizes[0]; i++)
    for (long o = 0; o < groups * out; o++)
      for (long r = 0; r < oh; r++)
        for (long s = 0; s < ow; s++) {
          const long top = r * how[0] - how[2], left = s * how[1] - how[3];
          long first = 0, last = kw; /* the columns of the window that are inside x */
          while (first < kw && left + first * how[5] < 0) first++;
          while (last > first && left + (last - 1) * how[5] >= wide) last--;
          float sum = b ? b[o] : 0.0f;
          for (long c = 0; c < in; c++)
            for (long u = 0; u < kh; u++) {
              const long row = top + u * how[4];
              if (row < 0 || row >= h) continue;
              const long from = i * xs[0] + (o / out * in + c) * xs[1] + row * xs[2];
              const float *taps = w + ((o * in + c) * kh + u) * kw;
              for (long v = first; v < last; v++)
                sum += x[from + (left + v * how[5]) * xs[3]] * taps[v];
            }
          y[i * ys[0] + o * ys[1] + r * ys[2] + s * ys[3]] = sum;
        }
}
)"},
    {"transposed_conv2d", R"(
/* as conv2d, backwards: each element of x adds w, (groups in, out, kh, kw), to a window of y */
static void transposed_conv2d(const float *x, const long *xs, const float *w, const float *b,
                              float *y, const long *ys, const long *sizes, const long *how) {
  const long groups = sizes[1], in = sizes[2], out = sizes[3], h = sizes[4], wide = sizes[5];
  const long kh = sizes[6], kw = sizes[7], oh = sizes[8], ow = sizes[9];
  for (long i = 0; i < sizes[0]; i++)
    for (long o = 0; o < groups * out; o++)
      for (long r = 0; r < oh; r++)
        for (long s = 0; s < ow; s++) {
          float sum = b ? b[o] : 0.0f;
          for (long u = 0; u < kh; u++) {
            const long top = r + how[2] - u * how[4];
            if (top < 0 || top % how[0] || top / how[0] >= h) continue;
            for (long v = 0; v < kw; v++) {
              const long left = s + how[3] - v * how[5];
              if (left < 0 || left % how[1] || left / how[1] >= wide) continue;
              for (long c = o / out * in; c < (o / out + 1) * in; c++)
                sum += x[i * xs[0] + c * xs[1] + top / how[0] * xs[2] + left / how[1] * xs[3]] *
                       w[((c * out + o % out) * kh + u) * kw + v];
            }
          }
          y[i * ys[0] + o * ys[1] + r * ys[2] + s * ys[3]] = sum;
        }
}
)"},
    {"conv3d", R"(
/* as conv2d, of three spatial dims: sizes are n, groups, channels in and out of a group, then
   depth, height and width of x, of w, of y; how has three strides, three paddings, … */
static void conv3d(const float *x, const long *xs, const float *w, const float *b, float *y,
                   const long *ys, const long *sizes, const long *how) {
  const long groups = sizes[1], in = sizes[2], out = sizes[3];
  const long *const xn = sizes + 4, *const wn = sizes + 7, *const yn = sizes + 10;
  for (long i = 0; i < sizes[0]; i++)
    for (long o = 0; o < groups * out; o++)
      for (long p = 0; p < yn[0] * yn[1] * yn[2]; p++) {
        const long at[3] = {p / yn[2] / yn[1], p / yn[2] % yn[1], p % yn[2]};
        float sum = b ? b[o] : 0.0f;
        for (long t = 0; t < in * wn[0] * wn[1] * wn[2]; t++) {
          const long tap[3] = {t / wn[2] / wn[1] % wn[0], t / wn[2] % wn[1], t % wn[2]};
          long from = i * xs[0] + (o / out * in + t / wn[2] / wn[1] / wn[0]) * xs[1], d;
          for (d = 0; d < 3; d++) {
            const long q = at[d] * how[d] - how[3 + d] + tap[d] * how[6 + d];
            if (q < 0 || q >= xn[d]) break;
            from += q * xs[2 + d];
          }
          if (d == 3) sum += x[from] * w[o * in * wn[0] * wn[1] * wn[2] + t];
        }
        y[i * ys[0] + o * ys[1] + at[0] * ys[2] + at[1] * ys[3] + at[2] * ys[4]] = sum;
      }
}
)"},
    {"transposed_conv3d", R"(
/* as conv3d, backwards: each element of x adds w, (groups in, out, kd, kh, kw), to a box of y */
static void transposed_conv3d(const float *x, const long *xs, const float *w, const float *b,
                              float *y, const long *ys, const long *sizes, const long *how) {
  const long groups = sizes[1], in = sizes[2], out = sizes[3];
  const long *const xn = sizes + 4, *const wn = sizes + 7, *const yn = sizes + 10;
  const long taps = wn[0] * wn[1] * wn[2];
  for (long i = 0; i < sizes[0]; i++)
    for (long o = 0; o < groups * out; o++)
      for (long p = 0; p < yn[0] * yn[1] * yn[2]; p++) {
        const long at[3] = {p / yn[2] / yn[1], p / yn[2] % yn[1], p % yn[2]};
        float sum = b ? b[o] : 0.0f;
        for (long t = 0; t < taps; t++) {
          const long tap[3] = {t / wn[2] / wn[1], t / wn[2] % wn[1], t % wn[2]};
          long from = i * xs[0], d;
          for (d = 0; d < 3; d++) {
            const long q = at[d] + how[3 + d] - tap[d] * how[6 + d];
            if (q < 0 || q % how[d] || q / how[d] >= xn[d]) break;
            from += q / how[d] * xs[2 + d];
          }
          for (long c = o / out * in; d == 3 && c < (o / out + 1) * in; c++)
            sum += x[from + c * xs[1]] * w[(c * out + o % out) * taps + t];
        }
        y[i * ys[0] + o * ys[1] + at[0] * ys[2] + at[1] * ys[3] + at[2] * ys[4]] = sum;
      }
}
)"},
    {"max_pool2d", R"(
/* sizes: n, c, height and width of x and of y; how: window, stride, padding, dilation */
static void max_pool2d(const float *x, const long *xs, float *y, const long *ys, const long *sizes,
                       const long *how) {
  for (long i = 0; i < sizes[0]; i++)
    for (long c = 0; c < sizes[1]; c++)
      for (long r = 0; r < sizes[4]; r++)
        for (long s = 0; s < sizes[5]; s++) {
          float best = -INFINITY;
          for (long u = 0; u < how[0]; u++)
            for (long v = 0; v < how[1]; v++) {
              const long row = r * how[2] - how[4] + u * how[6];
              const long column = s * how[3] - how[5] + v * how[7];
              if (row < 0 || row >= sizes[2] || column < 0 || column >= sizes[3]) continue;
              const float a = x[i * xs[0] + c * xs[1] + row * xs[2] + column * xs[3]];
              if (a > best || a != a) best = a;
            }
          y[i * ys[0] + c * ys[1] + r * ys[2] + s * ys[3]] = best;
        }
}
)"},
    {"max_pool2d_with_indices", R"(
/* as max_pool2d, with the positions of the maxima, row * width + column, at y's strides ps */
static void max_pool2d_with_indices(const float *x, const long *xs, float *y, const long *ys,
                                    const long *sizes, int64_t *places, const long *ps,
                                    const long *how) {
  for (long i = 0; i < sizes[0]; i++)
    for (long c = 0; c < sizes[1]; c++)
      for (long r = 0; r < sizes[4]; r++)
        for (long s = 0; s < sizes[5]; s++) {
          float best = -INFINITY;
          int64_t place = -1;
          for (long u = 0; u < how[0]; u++)
            for (long v = 0; v < how[1]; v++) {
              const long row = r * how[2] - how[4] + u * how[6];
              const long column = s * how[3] - how[5] + v * how[7];
              if (row < 0 || row >= sizes[2] || column < 0 || column >= sizes[3]) continue;
              const float a = x[i * xs[0] + c * xs[1] + row * xs[2] + column * xs[3]];
              if (!(a > best || a != a || place < 0)) continue;
              best = a;
              place = (int64_t)row * sizes[3] + column;
            }
          y[i * ys[0] + c * ys[1] + r * ys[2] + s * ys[3]] = best;
          places[i * ps[0] + c * ps[1] + r * ps[2] + s * ps[3]] = place;
        }
}
)"},
    {"adaptive_max_pool2d", R"(
/* as max_pool2d_with_indices, of the windows of adaptive_avg_pool2d */
static void adaptive_max_pool2d(const float *x, const long *xs, float *y, const long *ys,
                                const long *sizes, int64_t *places, const long *ps) {
  const long h = sizes[2], w = sizes[3], oh = sizes[4], ow = sizes[5];
  for (long i = 0; i < sizes[0]; i++)
    for (long c = 0; c < sizes[1]; c++)
      for (long r = 0; r < oh; r++)
        for (long s = 0; s < ow; s++) {
          const long top = r * h / oh, bottom = ((r + 1) * h + oh - 1) / oh;
          const long left = s * w / ow, right = ((s + 1) * w + ow - 1) / ow;
          float best = -INFINITY;
          int64_t place = -1;
          for (long u = top; u < bottom; u++)
            for (long v = left; v < right; v++) {
              const float a = x[i * xs[0] + c * xs[1] + u * xs[2] + v * xs[3]];
              if (!(a > best || a != a || place < 0)) continue;
              best = a;
              place = (int64_t)u * w + v;
            }
          y[i * ys[0] + c * ys[1] + r * ys[2] + s * ys[3]] = best;
          places[i * ps[0] + c * ps[1] + r * ps[2] + s * ps[3]] = place;
        }
}
)"},
    {"avg_pool2d", R"(
/* as max_pool2d, without dilation; divisor 0: the elements of the window, those of the padding
   among them if padded */
static void avg_pool2d(const float *x, const long *xs, float *y, const long *ys, const long *sizes,
                       const long *how, int padded, long divisor) {
  for (long i = 0; i < sizes[0]; i++)
    for (long c = 0; c < sizes[1]; c++)
      for (long r = 0; r < sizes[4]; r++)
        for (long s = 0; s < sizes[5]; s++) {
          const long top = r * how[2] - how[4], left = s * how[3] - how[5];
          const long bottom = top + how[0] < sizes[2] + how[4] ? top + how[0] : sizes[2] + how[4];
          const long right = left + how[1] < sizes[3] + how[5] ? left + how[1] : sizes[3] + how[5];
          long inside = 0;
          float sum = 0.0f;
          for (long u = top; u < bottom; u++)
            for (long v = left; v < right; v++) {
              if (u < 0 || u >= sizes[2] || v < 0 || v >= sizes[3]) continue;
              sum += x[i * xs[0] + c * xs[1] + u * xs[2] + v * xs[3]];
              inside++;
            }
          if (padded) inside = (bottom - top) * (right - left);
          y[i * ys[0] + c * ys[1] + r * ys[2] + s * ys[3]] =
              sum / (float)(divisor ? divisor : inside);
        }
}
)"},
    {"adaptive_avg_pool2d", R"(
/* window r of oh covers the rows floor(r h / oh) to ceil((r + 1) h / oh) */
static void adaptive_avg_pool2d(const float *x, const long *xs, float *y, const long *ys,
                                const long *sizes) {
  const long h = sizes[2], w = sizes[3], oh = sizes[4], ow = sizes[5];
  for (long i = 0; i < sizes[0]; i++)
    for (long c = 0; c < sizes[1]; c++)
      for (long r = 0; r < oh; r++)
        for (long s = 0; s < ow; s++) {
          const long top = r * h / oh, bottom = ((r + 1) * h + oh - 1) / oh;
          const long left = s * w / ow, right = ((s + 1) * w + ow - 1) / ow;
          float sum = 0.0f;
          for (long u = top; u < bottom; u++)
            for (long v = left; v < right; v++)
              sum += x[i * xs[0] + c * xs[1] + u * xs[2] + v * xs[3]];
          y[i * ys[0] + c * ys[1] + r * ys[2] + s * ys[3]] =
              sum / (float)((bottom - top) * (right - left));
        }
}
)"},
    {"resize", R"(
/* sizes: n, c, height and width of x and of y; rows, columns: for each row and column of y its
   window in x, as its begin, its length and up to taps[0] and taps[1] weights */
static void resize(const float *x, const long *xs, float *y, const long *ys, const long *sizes,
                   const float *rows, const float *columns, const long *taps) {
  for (long i = 0; i < sizes[0]; i++)
    for (long c = 0; c < sizes[1]; c++)
      for (long r = 0; r < sizes[4]; r++)
        for (long s = 0; s < sizes[5]; s++) {
          const float *row = rows + r * (taps[0] + 2), *column = columns + s * (taps[1] + 2);
          float sum = 0.0f;
          for (long u = 0; u < (long)row[1]; u++) {
            const float *a = x + i * xs[0] + c * xs[1] + ((long)row[0] + u) * xs[2];
            float line = 0.0f;
            for (long v = 0; v < (long)column[1]; v++)
              line += a[((long)column[0] + v) * xs[3]] * column[2 + v];
            sum += line * row[2 + u];
          }
          y[i * ys[0] + c * ys[1] + r * ys[2] + s * ys[3]] = sum;
        }
}
)"},
    {"softmax", R"(
/* x, y: (outer, n, inner) */
static void softmax(const float *x, float *y, long outer, long n, long inner) {
  for (long i = 0; i < outer; i++)
    for (long j = 0; j < inner; j++) {
      const float *a = x + i * n * inner + j;
      float *out = y + i * n * inner + j, high = -INFINITY, sum = 0.0f;
      for (long k = 0; k < n; k++) high = a[k * inner] > high ? a[k * inner] : high;
      for (long k = 0; k < n; k++) sum += out[k * inner] = expf(a[k * inner] - high);
      for (long k = 0; k < n; k++) out[k * inner] /= sum;
    }
}
)"},
    {"log_softmax", R"(
/* x, y: (outer, n, inner) */
static void log_softmax(const float *x, float *y, long outer, long n, long inner) {
  for (long i = 0; i < outer; i++)
    for (long j = 0; j < inner; j++) {
      const float *a = x + i * n * inner + j;
      float *out = y + i * n * inner + j, high = -INFINITY, sum = 0.0f;
      for (long k = 0; k < n; k++) high = a[k * inner] > high ? a[k * inner] : high;
      for (long k = 0; k < n; k++) sum += expf(a[k * inner] - high);
      sum = logf(sum);
      for (long k = 0; k < n; k++) out[k * inner] = a[k * inner] - high - sum;
    }
}
)"},
    {"layer_norm", R"(
/* x, y: (rows, n); w, b: (n) or NULL; mean, rstd: (rows) or NULL */
static void layer_norm(const float *x, const float *w, const float *b, float *y, float *mean,
                       float *rstd, long rows, long n, float eps) {
  for (long i = 0; i < rows; i++) {
    const float *a = x + i * n;
    float sum = 0.0f, squares = 0.0f;
    for (long j = 0; j < n; j++) sum += a[j];
    const float m = sum / (float)n;
    for (long j = 0; j < n; j++) squares += (a[j] - m) * (a[j] - m);
    const float r = 1.0f / sqrtf(squares / (float)n + eps);
    for (long j = 0; j < n; j++)
      y[i * n + j] = (a[j] - m) * r * (w ? w[j] : 1.0f) + (b ? b[j] : 0.0f);
    if (mean) mean[i] = m;
    if (rstd) rstd[i] = r;
  }
}
)"},
    {"rms_norm", R"(
/* x, y: (rows, n); w: (n) or NULL; rstd: (rows) or NULL */
static void rms_norm(const float *x, const float *w, float *y, float *rstd, long rows, long n,
                     float eps) {
  for (long i = 0; i < rows; i++) {
    const float *a = x + i * n;
    float squares = 0.0f;
    for (long j = 0; j < n; j++) squares += a[j] * a[j];
    const float r = 1.0f / sqrtf(squares / (float)n + eps);
    for (long j = 0; j < n; j++) y[i * n + j] = a[j] * r * (w ? w[j] : 1.0f);
    if (rstd) rstd[i] = r;
  }
}
)"},
    {"row_distances", R"(
/* x1: (batch, n, m), x2: (batch, r, m); y: (batch, n, r), of pairs (batch, n (n - 1) / 2) */
static void row_distances(const float *x1, const float *x2, float *y, long batch, long n, long r,
                          long m, double p, int pairs) {
  for (long i = 0; i < batch * n; i++) {
    const float *b = x2 + i / n * r * m;
    for (long j = pairs ? i % n + 1 : 0; j < r; j++) {
      double sum = 0.0;
      for (long k = 0; k < m; k++) {
        const double d = fabsf(x1[i * m + k] - b[j * m + k]);
        if (p == 1.0) sum += d;
        else if (p == 2.0) sum += d * d;
        else if (isinf(p)) sum = d > sum ? d : sum;
        else sum += p == 0.0 ? (double)(d != 0.0) : pow(d, p);
      }
      if (p != 0.0 && !isinf(p)) sum = p == 2.0 ? sqrt(sum) : pow(sum, 1.0 / p);
      *y++ = (float)sum;
    }
  }
}
)"},
    {"group_norm", R"(
/* x, y: (images, groups, channels, inner); w, b: (groups, channels) or NULL; mean, rstd: (images,
   groups) or NULL */
static void group_norm(const float *x, const float *w, const float *b, float *y, float *mean,
                       float *rstd, long images, long groups, long channels, long inner,
                       float eps) {
  const long n = channels * inner;
  for (long i = 0; i < images * groups; i++) {
    const float *a = x + i * n;
    const long first = i % groups * channels;
    float sum = 0.0f, squares = 0.0f;
    for (long j = 0; j < n; j++) sum += a[j];
    const float m = sum / (float)n;
    for (long j = 0; j < n; j++) squares += (a[j] - m) * (a[j] - m);
    const float r = 1.0f / sqrtf(squares / (float)n + eps);
    for (long j = 0; j < n; j++) {
      const long c = first + j / inner;
      y[i * n + j] = (a[j] - m) * r * (w ? w[c] : 1.0f) + (b ? b[c] : 0.0f);
    }
    if (mean) mean[i] = m;
    if (rstd) rstd[i] = r;
  }
}
)"},
    {"batch_norm", R"(
/* x, y: (n, c, inner) with strides of n, c and inner; mean, var, w, b: (c) */
static void batch_norm(const float *x, const long *xs, const float *mean, const float *var,
                       const float *w, const float *b, float *y, const long *ys, long n, long c,
                       long inner, float eps) {
  for (long j = 0; j < c; j++) {
    const float scale = (w ? w[j] : 1.0f) / sqrtf(var[j] + eps);
    const float shift = (b ? b[j] : 0.0f) - mean[j] * scale;
    for (long i = 0; i < n; i++)
      for (long k = 0; k < inner; k++)
        y[i * ys[0] + j * ys[1] + k * ys[2]] = x[i * xs[0] + j * xs[1] + k * xs[2]] * scale + shift;
  }
}
)"},
    {"attention", R"(
/* y = softmax(scale q k^T + mask) v of one head. q: (m, d), k: (l, d), v: (l, e), y: (m, e), each
   with its strides; mask, or keeps, which is 0 for keys without weight: (m, l) with strides ms, or
   NULL. scores: room for l numbers; lse: (m) or NULL */
static void attention(const float *q, const long *qs, const float *k, const long *ks,
                      const float *v, const long *vs, const float *mask,
                      const unsigned char *keeps, const long *ms, float *y, const long *ys,
                      float *lse, float *scores, long m, long l, long d, long e, int causal,
                      float scale) {
  for (long r = 0; r < m; r++) {
    const long keys = causal && r + 1 < l ? r + 1 : l;
    float high = -INFINITY, sum = 0.0f;
    int some = 0;
    for (long c = 0; c < keys; c++) {
      float s = 0.0f;
      for (long j = 0; j < d; j++) s += q[r * qs[0] + j * qs[1]] * k[c * ks[0] + j * ks[1]];
      s = s * scale + (mask ? mask[r * ms[0] + c * ms[1]] : 0.0f);
      if (keeps && !keeps[r * ms[0] + c * ms[1]]) s = -INFINITY;
      scores[c] = s;
      high = s > high ? s : high;
      some |= s != -INFINITY;
    }
    for (long c = 0; c < keys && some; c++) sum += scores[c] = expf(scores[c] - high);
    for (long j = 0; j < e; j++) {
      float mean = 0.0f;
      for (long c = 0; c < keys && some; c++) mean += scores[c] / sum * v[c * vs[0] + j * vs[1]];
      y[r * ys[0] + j * ys[1]] = mean;
    }
    if (lse) lse[r] = high + logf(sum);
  }
}
)"},
    {"recurrent", R"(
static float recurrent_gate(float x) { return 1.0f / (1.0f + expf(-x)); }
/* One layer in one direction. mode: 0 relu, 1 tanh, 2 LSTM (gates i f g o), 3 GRU (r z n).
   x: products of the input of all steps, step t has batch[t] rows of n = gates * hidden numbers;
   w: (n, state); b: (n) or NULL; wr: (state, hidden) or NULL; h, c: the state, which a step
   overwrites; y, cells: the states after each row; room: n + hidden numbers */
static void recurrent(const float *x, const float *w, const float *b, const float *wr, float *h,
                      float *c, float *y, float *cells, float *room, const long *batch, long steps,
                      long hidden, long state, int mode, int reverse) {
  static const long gates[4] = {1, 1, 4, 3};
  const long n = gates[mode] * hidden;
  float *const next = room + n;
  long at = 0;
  for (long t = 0; reverse && t < steps; t++) at += batch[t];
  for (long k = 0; k < steps; k++) {
    const long t = reverse ? steps - 1 - k : k;
    if (reverse) at -= batch[t];
    for (long i = 0; i < batch[t]; i++) {
      const float *a = x + (at + i) * n;
      float *const before = h + i * state;
      for (long j = 0; j < n; j++) {
        float sum = b ? b[j] : 0.0f;
        for (long l = 0; l < state; l++) sum += before[l] * w[j * state + l];
        room[j] = sum;
      }
      for (long j = 0; j < hidden; j++) {
        const float first = a[j] + room[j];
        if (mode == 2) {
          const float keep = recurrent_gate(a[hidden + j] + room[hidden + j]);
          const float fresh = tanhf(a[2 * hidden + j] + room[2 * hidden + j]);
          const float cell = keep * c[i * hidden + j] + recurrent_gate(first) * fresh;
          c[i * hidden + j] = cell;
          cells[(at + i) * hidden + j] = cell;
          next[j] = recurrent_gate(a[3 * hidden + j] + room[3 * hidden + j]) * tanhf(cell);
        } else if (mode == 3) {
          const float z = recurrent_gate(a[hidden + j] + room[hidden + j]);
          const float reset = recurrent_gate(first) * room[2 * hidden + j];
          next[j] = (1.0f - z) * tanhf(a[2 * hidden + j] + reset) + z * before[j];
        } else if (mode == 1) {
          next[j] = tanhf(first);
        } else {
          next[j] = first < 0 ? 0 : first;
        }
      }
      for (long j = 0; j < state; j++) {
        float sum = 0.0f;
        for (long l = 0; wr && l < hidden; l++) sum += next[l] * wr[j * hidden + l];
        before[j] = wr ? sum : next[j];
        y[(at + i) * state + j] = before[j];
      }
    }
    if (!reverse) at += batch[t];
  }
}
)"},
    {"bag_reduce", R"(
/* y: (bags, width), the sums (mode 0), means (1) or maxima (2) of rows of a table; index: (n);
   bag i is index[start[i]] to index[start[i + 1]], without starts n / bags of them; factor: (n), of
   each row, or NULL; the row `skipped` is left out */
static void bag_reduce_$8(const float *table, const $T *index, const int64_t *start,
                          const float *factor, float *y, long rows, long width, long n, long bags,
                          long skipped, int mode) {
  for (long i = 0; i < bags; i++) {
    const long end = start ? (long)start[i + 1] : (i + 1) * (n / bags);
    long taken = 0;
    for (long j = 0; j < width; j++) y[i * width + j] = 0.0f;
    for (long k = start ? (long)start[i] : i * (n / bags); k < end; k++) {
      if (k < 0 || k >= n) continue;
      long row = (long)index[k];
      if (row == skipped) continue;
      if (row < 0) row = 0;
      if (row >= rows) row = rows - 1;
      for (long j = 0; j < width; j++) {
        float *const out = y + i * width + j, a = table[row * width + j];
        if (mode < 2) *out += factor ? a * factor[k] : a;
        else if (!taken || (!(a <= *out) && *out == *out)) *out = a;
      }
      taken++;
    }
    for (long j = 0; mode == 1 && taken > 1 && j < width; j++) y[i * width + j] /= (float)taken;
  }
}
)"},
    {"grid_take", R"(
/* The elements around a position in one of n elements, -1 outside, and their weights */
typedef struct {
  int n;
  long index[4];
  float weight[4];
} grid_taps;
static float grid_inside(float at, long n, int padding, int align) {
  if (padding == 0) return at;
  if (padding == 2) {
    const float low = align ? 0.0f : -0.5f;
    const float span = align ? (float)(n - 1) : (float)n;
    if (span == 0.0f) return 0.0f;
    const float from_low = fabsf(at - low), flips = floorf(from_low / span);
    const float rest = from_low - flips * span;
    at = 2.0f * floorf(flips / 2.0f) == flips ? rest + low : span - rest + low;
  }
  if (!(at > 0.0f)) return 0.0f; /* nan, too */
  return at < (float)(n - 1) ? at : (float)(n - 1);
}
static long grid_index(float at, long n) {
  return at >= 0.0f && at <= (float)(n - 1) ? (long)at : -1;
}
static float grid_near(float d) { return (1.25f * d - 2.25f) * d * d + 1.0f; }
static float grid_far(float d) { return ((-0.75f * d + 3.75f) * d - 6.0f) * d + 3.0f; }
static grid_taps grid_axis(float number, long n, int mode, int padding, int align) {
  grid_taps taps = {1, {0}, {1.0f}};
  const float factor = (float)(align ? n - 1 : n) / 2.0f;
  const float at = (number + 1.0f) * factor - (align ? 0.0f : 0.5f);
  const float inside = mode == 2 ? at : grid_inside(at, n, padding, align);
  const float limit = mode == 2 && padding ? INFINITY : 2147483648.0f;
  const float usable = fabsf(inside) < limit ? inside : -100.0f;
  const float low = floorf(usable), rest = usable - low;
  const float odd = inside - inside; /* nan at a position that is not finite */
  if (mode == 1) {
    taps.index[0] = grid_index(nearbyintf(usable), n);
  } else if (mode == 0) {
    taps.n = 2;
    taps.weight[0] = 1.0f - rest + odd;
    taps.weight[1] = rest + odd;
    for (int k = 0; k < 2; k++) taps.index[k] = grid_index(low + (float)k, n);
  } else {
    taps.n = 4;
    taps.weight[0] = grid_far(rest + 1.0f) + odd;
    taps.weight[1] = grid_near(rest);
    taps.weight[2] = grid_near(1.0f - rest);
    taps.weight[3] = grid_far(2.0f - rest);
    for (int k = 0; k < 4; k++)
      taps.index[k] = grid_index(grid_inside(low + (float)(k - 1), n, padding, align), n);
  }
  return taps;
}
/* x: (n, c, depth, height, width), grid: (n, points, dims), y: (n, c, points); sizes: n, c, depth,
   height, width, points; mode: 0 linear, 1 nearest, 2 cubic; padding: 0 zeros, 1 the border, 2
   reflected */
static void grid_take(const float *x, const float *grid, float *y, const long *sizes, int dims,
                      int mode, int padding, int align) {
  const long *const in = sizes + 2;
  for (long i = 0; i < sizes[0] * sizes[5]; i++) {
    grid_taps axis[3] = {{1, {0}, {1.0f}}, {1, {0}, {1.0f}}, {1, {0}, {1.0f}}};
    for (int d = 3 - dims; d < 3; d++)
      axis[d] = grid_axis(grid[i * dims + 2 - d], in[d], mode, padding, align);
    for (long c = 0; c < sizes[1]; c++) {
      const long image = i / sizes[5] * sizes[1] + c;
      float sum = 0.0f;
      for (int t = 0; t < axis[0].n * axis[1].n * axis[2].n; t++) {
        const int tap[3] = {t / axis[2].n / axis[1].n, t / axis[2].n % axis[1].n, t % axis[2].n};
        float weight = 1.0f, a = 0.0f;
        long from = 0, d;
        for (d = 0; d < 3 && axis[d].index[tap[d]] >= 0; d++)
          from = from * in[d] + axis[d].index[tap[d]];
        for (int e = 0; e < 3; e++) weight *= axis[e].weight[tap[e]];
        if (d == 3) a = x[image * in[0] * in[1] * in[2] + from];
        sum += a * weight;
      }
      y[image * sizes[5] + i % sizes[5]] = sum;
    }
  }
}
)"},
    {"place_in", R"(
/* position i of n, counted from the end if it is negative; the nearest, if there is none */
static long place_in(int64_t i, long n) {
  if (i < 0) i += n;
  if (i < 0) return 0;
  return i < n ? (long)i : n - 1;
}
)"},
    {"row_before", R"(
/* whether a is before b in order; nan is the largest */
static int row_before_$8($T a, $T b, int descending) {
  if (descending) return a > b || (($N(a)) && !($N(b)));
  return a < b || (($N(b)) && !($N(a)));
}
)"},
    {"order_of_row", R"(
/* order: the positions of the n elements of a row in order, equal ones as they are; room: (n) */
static void order_of_row_$8(const $T *x, long step, int64_t *order, int64_t *room, long n,
                            int descending) {
  for (long i = 0; i < n; i++) order[i] = i;
  for (long width = 1; width < n; width *= 2) {
    for (long i = 0; i < n; i += 2 * width) {
      const long middle = n - i > width ? i + width : n;
      const long end = n - middle > width ? middle + width : n;
      long a = i, b = middle;
      for (long k = i; k < end; k++) {
        const int second =
            a == middle ||
            (b < end && row_before_$8(x[order[b] * step], x[order[a] * step], descending));
        room[k] = second ? order[b++] : order[a++];
      }
    }
    for (long i = 0; i < n; i++) order[i] = room[i];
  }
}
)"},
    {"least_of_row", R"(
/* order: the positions of the first m of the n elements of a row in order */
static void least_of_row_$8(const $T *x, long step, int64_t *order, long m, long n,
                            int descending) {
  for (long i = 0; i < n; i++) {
    long k = i < m ? i : m;
    while (k > 0 && row_before_$8(x[i * step], x[order[k - 1] * step], descending)) {
      if (k < m) order[k] = order[k - 1];
      k--;
    }
    if (k < m) order[k] = i;
  }
}
)"},
    {"quantized_linear", R"(
/* y: (rows, n) = the sum of (x - zero) w, times scale and ws, plus b; x: (rows, k), w: (n, k),
   b: (n) or NULL; by_row, by_column: 1 if each has a scale, else 0. Sums wrap around */
static void quantized_linear_$8(const $8_t *x, const float *scale, const int32_t *zero,
                                  long by_row, const int8_t *w, const float *ws, long by_column,
                                  const float *b, float *y, long rows, long k, long n) {
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < n; j++) {
      const uint32_t z = (uint32_t)zero[i * by_row];
      uint32_t sum = 0;
      for (long l = 0; l < k; l++) sum += ((uint32_t)x[i * k + l] - z) * (uint32_t)w[j * k + l];
      y[i * n + j] = (float)(int32_t)sum * (scale[i * by_row] * ws[j * by_column]) +
                     (b ? b[j] : 0.0f);
    }
}
)"},
    {"quantized_conv2d", R"(
/* as conv2d, of (x - zero) times scale; ws: one, or by_channel of each channel of y */
static void quantized_conv2d_$8(const $8_t *x, const long *xs, float scale, int32_t zero,
                                  const int8_t *w, const float *ws, long by_channel,
                                  const float *b, float *y, const long *ys, const long *sizes,
                                  const long *how) {
  const long groups = sizes[1], in = sizes[2], out = sizes[3], h = sizes[4], wide = sizes[5];
  const long kh = sizes[6], kw = sizes[7], oh = sizes[8], ow = sizes[9];
  for (long i = 0; i < sizes[0]; i++)
    for (long o = 0; o < groups * out; o++)
      for (long r = 0; r < oh; r++)
        for (long s = 0; s < ow; s++) {
          const long top = r * how[0] - how[2], left = s * how[1] - how[3];
          long first = 0, last = kw; /* the columns of the window that are inside x */
          while (first < kw && left + first * how[5] < 0) first++;
          while (last > first && left + (last - 1) * how[5] >= wide) last--;
          uint32_t sum = 0;
          for (long c = 0; c < in; c++)
            for (long u = 0; u < kh; u++) {
              const long row = top + u * how[4];
              if (row < 0 || row >= h) continue;
              const long from = i * xs[0] + (o / out * in + c) * xs[1] + row * xs[2];
              const int8_t *taps = w + ((o * in + c) * kh + u) * kw;
              for (long v = first; v < last; v++)
                sum += ((uint32_t)x[from + (left + v * how[5]) * xs[3]] - (uint32_t)zero) *
                       (uint32_t)taps[v];
            }
          y[i * ys[0] + o * ys[1] + r * ys[2] + s * ys[3]] =
              (float)(int32_t)sum * (scale * ws[o * by_channel]) + (b ? b[o] : 0.0f);
        }
}
)"},
    {"block_scale", R"(
/* A float16. */
static float block_scale(const uint8_t *x) {
  const int bits = x[0] | x[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
  float scale = ldexpf((float)fraction, -24);
  if (exponent) scale = ldexpf((float)(1024 + fraction), exponent - 25);
  if (exponent == 31) scale = fraction ? NAN : INFINITY;
  return bits >> 15 ? -scale : scale;
}
)"},
    {"block_number", R"(
/* A block: a float16 scale, then 32 int8 (34 bytes) or 16 bytes of two numbers (18 bytes). */
static float block_number(const uint8_t *block, long i, long bytes) {
  if (bytes == 34) return (float)(block[2 + i] < 128 ? block[2 + i] : block[2 + i] - 256);
  return (float)((i < 16 ? block[2 + i] & 15 : block[2 + i - 16] >> 4) - 8);
}
)"},
    {"dequantize_blockwise", R"(
/* y: 32 numbers of each of n blocks */
static void dequantize_blockwise(const uint8_t *x, float *y, long n, long bytes) {
  for (long b = 0; b < n; b++)
    for (long i = 0; i < 32; i++)
      y[b * 32 + i] = block_scale(x + b * bytes) * block_number(x + b * bytes, i, bytes);
}
)"},
    {"quantize_blockwise", R"(
static int half_bits(float x) {
  const int sign = signbit(x) ? 32768 : 0;
  int exponent, bits = 31744; /* of infinity */
  if (isnan(x)) return sign | 32256;
  const float size = fabsf(x), part = frexpf(size, &exponent);
  if (exponent < -13 || size == 0) bits = (int)lrintf(ldexpf(size, 24));
  else if (exponent < 17) bits = ((exponent + 13) << 10) + (int)lrintf(ldexpf(part, 11));
  return sign | (bits < 31744 ? bits : 31744);
}
/* y: n blocks of 32 numbers; the scale is that of the largest, rounded when it is stored */
static void quantize_blockwise(const float *x, uint8_t *y, long n, long bytes) {
  for (; n > 0; n--, x += 32, y += bytes) {
    float most = 0.0f;
    for (long i = 0; i < 32 && !isnan(most); i++)
      if (!(fabsf(x[i]) <= fabsf(most))) most = x[i];
    const float scale = bytes == 34 ? fabsf(most) / 127 : most / -8;
    const float inverse = scale != 0 && isfinite(scale) ? 1 / scale : 0;
    const int half = half_bits(scale), usable = inverse != 0 && isfinite(inverse);
    y[0] = (uint8_t)(half & 255);
    y[1] = (uint8_t)(half >> 8);
    for (long i = 0; i < bytes - 2; i++) {
      if (bytes == 34) {
        const float steps = usable ? x[i] * inverse : 0.0f;
        y[2 + i] = (uint8_t)(int)roundf(steps);
      } else {
        const float low = usable ? x[i] * inverse : 0.0f;
        const float high = usable ? x[i + 16] * inverse : 0.0f;
        const int a = (int)(low + 8.5f), b = (int)(high + 8.5f);
        y[2 + i] = (uint8_t)((a < 15 ? a : 15) | (b < 15 ? b : 15) << 4);
      }
    }
  }
}
)"},
    {"blockwise_linear", R"(
/* as linear; w: (n, blocks of k / 32) */
static void blockwise_linear(const float *x, const uint8_t *w, const float *b, float *y, long rows,
                             long k, long n, long bytes) {
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < n; j++) {
      float sum = b ? b[j] : 0.0f;
      for (long l = 0; l < k / 32; l++) {
        const uint8_t *const block = w + (j * (k / 32) + l) * bytes;
        float part = 0.0f;
        for (long e = 0; e < 32; e++)
          part += x[i * k + l * 32 + e] * block_number(block, e, bytes);
        sum += part * block_scale(block);
      }
      y[i * n + j] = sum;
    }
}
)"},
    {"block_nibble", R"(
/* 4 bits of 32 numbers in 16 bytes */
static int block_nibble(const uint8_t *x, long i) { return x[i % 16] >> i / 16 * 4 & 15; }
)"},
    {"block_bits", R"(
/* Numbers of `bits` bits: 32 bytes hold 256 / bits of them, number i in byte i % 32 */
static int block_bits(const uint8_t *x, long i, int bits) {
  const long per_run = 256 / bits;
  return x[i / per_run * 32 + i % 32] >> i % per_run / 32 * bits & ((1 << bits) - 1);
}
)"},
    {"block_factor", R"(
/* Factor i of 8, of 6 bits each; with second the factors of shifts */
static float block_factor(const uint8_t *x, long i, int second) {
  const int first = x[i % 4 + 4 * second];
  if (i < 4) return (float)(first & 63);
  return (float)((x[8 + i % 4] >> 4 * second & 15) | first >> 6 << 4);
}
)"},
    {"iq4_entry", R"(
static float iq4_entry(int i) {
  static const signed char entries[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
  return entries[i];
}
)"},
    {"q4_1_number", R"(
static float q4_1_number(const uint8_t *b, long i) {
  return (float)block_nibble(b + 4, i) * block_scale(b) + block_scale(b + 2);
}
)"},
    {"q5_0_number", R"(
static float q5_0_number(const uint8_t *b, long i) {
  const int fifth = b[2 + i / 8] >> i % 8 & 1;
  return (float)((block_nibble(b + 6, i) | fifth << 4) - 16) * block_scale(b);
}
)"},
    {"q5_1_number", R"(
static float q5_1_number(const uint8_t *b, long i) {
  const int fifth = b[4 + i / 8] >> i % 8 & 1;
  return (float)(block_nibble(b + 8, i) | fifth << 4) * block_scale(b) + block_scale(b + 2);
}
)"},
    {"q2_k_number", R"(
static float q2_k_number(const uint8_t *b, long i) {
  const float scale = (float)(b[i / 16] & 15) * block_scale(b + 80);
  return (float)block_bits(b + 16, i, 2) * scale - (float)(b[i / 16] >> 4) * block_scale(b + 82);
}
)"},
    {"q3_k_number", R"(
static float q3_k_number(const uint8_t *b, long i) {
  const long g = i / 16;
  const int low = b[96 + g % 8] >> g / 8 * 4 & 15, high = b[104 + g % 4] >> g / 4 * 2 & 3;
  const int q = (block_bits(b + 32, i, 2) | block_bits(b, i, 1) << 2) - 4;
  return (float)q * ((float)((low | high << 4) - 32) * block_scale(b + 108));
}
)"},
    {"q4_k_number", R"(
static float q4_k_number(const uint8_t *b, long i) {
  const float scale = block_factor(b + 4, i / 32, 0) * block_scale(b);
  const float shift = block_factor(b + 4, i / 32, 1) * block_scale(b + 2);
  return (float)block_bits(b + 16, i, 4) * scale - shift;
}
)"},
    {"q5_k_number", R"(
static float q5_k_number(const uint8_t *b, long i) {
  const float scale = block_factor(b + 4, i / 32, 0) * block_scale(b);
  const float shift = block_factor(b + 4, i / 32, 1) * block_scale(b + 2);
  return (float)(block_bits(b + 48, i, 4) | block_bits(b + 16, i, 1) << 4) * scale - shift;
}
)"},
    {"q6_k_number", R"(
static float q6_k_number(const uint8_t *b, long i) {
  const int low = b[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15, scale = b[192 + i / 16];
  const int q = (low | block_bits(b + 128, i, 2) << 4) - 32;
  return (float)q * ((float)(scale < 128 ? scale : scale - 256) * block_scale(b + 208));
}
)"},
    {"iq4_nl_number", R"(
static float iq4_nl_number(const uint8_t *b, long i) {
  return iq4_entry(block_nibble(b + 2, i)) * block_scale(b);
}
)"},
    {"iq4_xs_number", R"(
static float iq4_xs_number(const uint8_t *b, long i) {
  const long g = i / 32;
  const int low = b[4 + g / 2] >> g % 2 * 4 & 15, high = (b[2] | b[3] << 8) >> 2 * g & 3;
  const float scale = (float)((low | high << 4) - 32) * block_scale(b);
  return iq4_entry(block_nibble(b + 8 + 16 * g, i % 32)) * scale;
}
)"},
    {"mxfp4_number", R"(
static float mxfp4_number(const uint8_t *b, long i) {
  static const signed char twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  return ldexpf(twice[block_nibble(b + 1, i)], b[0] - 128);
}
)"},
    {"unpack_blocks", R"(
/* y: the numbers of n blocks, by the function of the format */
static void unpack_blocks(const uint8_t *x, float *y, long n, long items, long bytes,
                          float (*number)(const uint8_t *, long)) {
  for (long b = 0; b < n; b++)
    for (long i = 0; i < items; i++) y[b * items + i] = number(x + b * bytes, i);
}
)"},
    {"unpacked_linear", R"(
/* as linear; w: (n, blocks of k / items) */
static void unpacked_linear(const float *x, const uint8_t *w, const float *b, float *y, long rows,
                            long k, long n, long items, long bytes,
                            float (*number)(const uint8_t *, long)) {
  for (long j = 0; j < n; j++) {
    for (long i = 0; i < rows; i++) y[i * n + j] = b ? b[j] : 0.0f;
    for (long l = 0; l < k; l++) {
      const float v = number(w + (j * (k / items) + l / items) * bytes, l % items);
      for (long i = 0; i < rows; i++) y[i * n + j] += x[i * k + l] * v;
    }
  }
}
)"},
};
constexpr int64_t kNumCTemplates = sizeof(kCTemplates) / sizeof(kCTemplates[0]);

}  // namespace TT_NS
