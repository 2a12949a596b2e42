/* Part of refs.c: references of normalisations of channels, pooling, resizing and padding. */

/* ---- normalisations ---- */

/* Of the elements of x for which group[i] is the same. */
static void normalise(const Arr* x, Arr* out, const int64_t* group, int64_t n_groups, double eps) {
  double* sum = scratch((size_t)(n_groups + 1) * sizeof *sum);
  double* squares = scratch((size_t)(n_groups + 1) * sizeof *sum);
  double* count = scratch((size_t)(n_groups + 1) * sizeof *sum);
  int64_t i;
  for (i = 0; i < x->n; i++) {
    sum[group[i]] += x->v[i];
    count[group[i]]++;
  }
  for (i = 0; i < x->n; i++) {
    const double d = x->v[i] - sum[group[i]] / count[group[i]];
    squares[group[i]] += d * d;
  }
  for (i = 0; i < x->n; i++)
    out->v[i] = (x->v[i] - sum[group[i]] / count[group[i]]) /
                sqrt(squares[group[i]] / count[group[i]] + eps);
}
static int64_t channel_of(const Arr* x, int64_t i) {
  int64_t inner = 1;
  int d;
  for (d = 2; d < x->ndim; d++) inner *= x->shape[d];
  return i / inner % x->shape[1];
}
static void scale_channels(const Inputs* in, const Arr* x, Arr* out) {
  const Arr* w = tensor(in, "weight");
  const Arr* b = tensor(in, "bias");
  int64_t i;
  for (i = 0; i < x->n; i++)
    out->v[i] = out->v[i] * (w ? w->v[channel_of(x, i)] : 1) + (b ? b->v[channel_of(x, i)] : 0);
}
static int by_channel(const Inputs* in, Arr* out, int own, int images) {
  const Arr* x = tensor(in, "input");
  const double eps = number_arg(in, "eps", 1e-5);
  int64_t i, *group = scratch((size_t)(x->n + 1) * sizeof *group);
  *out = array(x->shape, x->ndim);
  if (own) {
    for (i = 0; i < x->n; i++)
      group[i] = channel_of(x, i) + (images ? i / (x->n / x->shape[0]) * x->shape[1] : 0);
    normalise(x, out, group, x->shape[1] * (images ? x->shape[0] : 1), eps);
  } else {
    const Arr* m = tensor(in, "running_mean");
    const Arr* v = tensor(in, "running_var");
    for (i = 0; i < x->n; i++)
      out->v[i] = (x->v[i] - m->v[channel_of(x, i)]) / sqrt(v->v[channel_of(x, i)] + eps);
  }
  scale_channels(in, x, out);
  return 1;
}
static int r_batch_norm(const Inputs* in, Arr* out) {
  return by_channel(in, out, (int)int_arg(in, "training", 0), 0);
}
static int r_instance_norm(const Inputs* in, Arr* out) {
  return by_channel(in, out, (int)int_arg(in, "use_input_stats", 1), 1);
}
static int r_group_norm(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "input");
  const int64_t groups = int_arg(in, "num_groups", 1);
  int64_t i, *group = scratch((size_t)(x->n + 1) * sizeof *group);
  *out = array(x->shape, x->ndim);
  for (i = 0; i < x->n; i++) group[i] = i / (x->n / (x->shape[0] * groups));
  normalise(x, out, group, x->shape[0] * groups, number_arg(in, "eps", 1e-5));
  scale_channels(in, x, out);
  return 1;
}
static int r_rms_norm(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "input");
  const Arr* w = tensor(in, "weight");
  const tt_value* shape = given(in, "normalized_shape");
  const double eps = number_arg(
      in, "eps", tt_tensor_dtype(in->sample->args[0].tensor) == TT_F64 ? DBL_EPSILON : FLT_EPSILON);
  int64_t size = 1, i, k;
  for (i = 0; i < shape->n; i++) size *= shape->ints[i];
  *out = array(x->shape, x->ndim);
  for (i = 0; i < x->n; i += size) {
    double squares = 0;
    for (k = 0; k < size; k++) squares += x->v[i + k] * x->v[i + k];
    for (k = 0; k < size; k++)
      out->v[i + k] = x->v[i + k] / sqrt(squares / (double)size + eps) * (w ? w->v[k] : 1);
  }
  return 1;
}

/* ---- pooling: dimension d of 2; a line is an image of one row ---- */

typedef struct Pooling {
  int64_t in[2], out[2], kernel[2], stride[2], pad[2], dilation[2];
  int adaptive;
} Pooling;

static int64_t list_arg(const Inputs* in, const char* name, int d, int line, int64_t otherwise) {
  const tt_value* v = has(in, name) ? given(in, name) : NULL;
  if (!v || v->n == 0) return otherwise;
  if (line) return d == 0 ? otherwise : v->ints[0];
  return v->ints[v->n == 1 ? 0 : d];
}
static Pooling pooling(const Inputs* in, const Arr* x, int line) {
  Pooling p;
  int d;
  p.adaptive = has(in, "output_size");
  for (d = 0; d < 2; d++) {
    const int row = line && d == 0;
    p.in[d] = row ? 1 : x->shape[x->ndim - 2 + d];
    if (p.adaptive) {
      p.out[d] = list_arg(in, "output_size", d, line, 1);
      continue;
    }
    p.kernel[d] = list_arg(in, "kernel_size", d, line, 1);
    p.stride[d] = list_arg(in, "stride", d, line, p.kernel[d]);
    p.pad[d] = list_arg(in, "padding", d, line, 0);
    p.dilation[d] = list_arg(in, "dilation", d, line, 1);
    {
      const double room = (double)(p.in[d] + 2 * p.pad[d] - p.dilation[d] * (p.kernel[d] - 1) - 1) /
                          (double)p.stride[d];
      p.out[d] = 1 + (int64_t)(int_arg(in, "ceil_mode", 0) ? ceil(room) : floor(room));
      if ((p.out[d] - 1) * p.stride[d] >= p.in[d] + p.pad[d]) p.out[d]--;
    }
  }
  return p;
}
/* Positions of window o: the k-th, or -1 in the padding; -2 past the end. */
static int64_t window_position(const Pooling* p, int d, int64_t o, int64_t k) {
  int64_t at;
  if (p->adaptive) {
    at = (int64_t)floor((double)(o * p->in[d]) / (double)p->out[d]) + k;
    return at < (int64_t)ceil((double)((o + 1) * p->in[d]) / (double)p->out[d]) ? at : -2;
  }
  at = o * p->stride[d] - p->pad[d] + k * p->dilation[d];
  return k >= p->kernel[d] ? -2 : at < 0 || at >= p->in[d] ? -1 : at;
}
static int pool_windows(const Inputs* in, Arr* out, int max) {
  const Arr* x = tensor(in, "self");
  const int line = strstr(in->sample->row->name, "1d") != NULL;
  const int counts_pad = (int)int_arg(in, "count_include_pad", 1);
  const Pooling p = pooling(in, x, line);
  const int64_t plane = p.in[0] * p.in[1];
  const int64_t divisor = int_arg(in, "divisor_override", 0);
  int64_t shape[kMaxDims], i, a, b;
  memcpy(shape, x->shape, sizeof shape);
  if (!line) shape[x->ndim - 2] = p.out[0];
  shape[x->ndim - 1] = p.out[1];
  out[0] = array(shape, x->ndim);
  out[1] = array(shape, x->ndim);
  for (i = 0; i < out->n; i++) {
    const int64_t o1 = i % p.out[1];
    const int64_t o0 = i / p.out[1] % p.out[0];
    const int64_t start = i / p.out[1] / p.out[0] * plane;
    double best = -INFINITY, at = -1, sum = 0, n = 0;
    for (a = 0; window_position(&p, 0, o0, a) != -2; a++)
      for (b = 0; window_position(&p, 1, o1, b) != -2; b++) {
        const int64_t r = window_position(&p, 0, o0, a);
        const int64_t c = window_position(&p, 1, o1, b);
        const int64_t row = o0 * p.stride[0] - p.pad[0] + a;
        const int64_t column = o1 * p.stride[1] - p.pad[1] + b;
        if (!max && !p.adaptive && (row >= p.in[0] + p.pad[0] || column >= p.in[1] + p.pad[1]))
          continue;
        if (r < 0 || c < 0) {
          n += counts_pad;
          continue;
        }
        const double v = x->v[start + r * p.in[1] + c];
        sum += v;
        n++;
        if (v > best || isnan(v) || at < 0) {
          best = v;
          at = (double)(r * p.in[1] + c);
        }
      }
    out[0].v[i] = max ? best : sum / (divisor ? (double)divisor : n);
    out[1].v[i] = at;
  }
  return max && in->sample->row->n_outs == 2 ? 2 : 1;
}
static int r_max_pool(const Inputs* in, Arr* out) { return pool_windows(in, out, 1); }
static int r_avg_pool(const Inputs* in, Arr* out) { return pool_windows(in, out, 0); }

/* ---- resizing: the weights of each dimension, applied one dimension at a time ---- */

static double cubic_tap(double x) {
  const double a = -0.75;
  x = fabs(x);
  return x <= 1  ? (a + 2) * x * x * x - (a + 3) * x * x + 1
         : x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a
                 : 0;
}
/* Weight of element i of n in result o of m. */
static double resize_weight(int mode, int align, double scale, int64_t n, int64_t m, int64_t o,
                            int64_t i) {
  double at = align ? (m > 1 ? (double)(n - 1) / (double)(m - 1) * (double)o : 0)
                    : ((double)o + 0.5) * scale - 0.5;
  double w = 0;
  int64_t k;
  if (mode == TT_INTERPOLATION_NEAREST)
    return fmin(floor((float)((double)o * scale)), (double)(n - 1)) == (double)i;
  if (mode == TT_INTERPOLATION_NEAREST_EXACT)
    return fmin(floor((float)(((double)o + 0.5) * scale)), (double)(n - 1)) == (double)i;
  if (mode == TT_INTERPOLATION_AREA) {
    const int64_t from = o * n / m;
    const int64_t to = ((o + 1) * n + m - 1) / m;
    return i >= from && i < to ? 1 / (double)(to - from) : 0;
  }
  if (mode != TT_INTERPOLATION_BICUBIC) {
    at = fmin(fmax(at, 0), (double)(n - 1));
    return fmax(0, 1 - fabs(at - (double)i));
  }
  for (k = (int64_t)floor(at) - 1; k < (int64_t)floor(at) + 3; k++)
    if ((k < 0 ? 0 : k >= n ? n - 1 : k) == i) w += cubic_tap(at - (double)k);
  return w;
}
static int r_interpolate(const Inputs* in, Arr* out) {
  Arr x = *tensor(in, "input");
  const tt_value* size = given(in, "size");
  const int mode = (int)int_arg(in, "mode", 0);
  const int align = (int)int_arg(in, "align_corners", 0);
  int d;
  for (d = 2; d < x.ndim; d++) {
    const int64_t n = x.shape[d];
    double factor = size ? 0 : number_arg(in, "scale_factor", 0), scale;
    int64_t m, inner = 1, i, k;
    int e;
    if (d == x.ndim - 2) factor = number_arg(in, "scale_h", factor);
    m = size ? size->ints[size->n == 1 ? 0 : d - 2] : (int64_t)floor((double)n * factor);
    scale = factor > 0 && !int_arg(in, "recompute_scale_factor", 0) ? 1 / factor
                                                                    : (double)n / (double)m;
    for (e = d + 1; e < x.ndim; e++) inner *= x.shape[e];
    x.shape[d] = m;
    *out = array(x.shape, x.ndim);
    for (i = 0; i < out->n; i++) {
      const int64_t o = i / inner % m;
      const int64_t start = i / inner / m * n * inner + i % inner;
      int64_t from = 0, to = n; /* far elements have no weight */
      if (mode != TT_INTERPOLATION_AREA) {
        const double at =
            align && m > 1 ? (double)o * (double)(n - 1) / (double)(m - 1) : (double)o * scale;
        from = (int64_t)at - 4 < 0 ? 0 : (int64_t)at - 4;
        to = (int64_t)at + 6 < n ? (int64_t)at + 6 : n;
        if (align && m == 1) {
          from = 0;
          to = n < 6 ? n : 6;
        }
        if (from > n - 2) from = n < 2 ? 0 : n - 2;
      }
      for (k = from; k < to; k++) {
        const double w = resize_weight(mode, align, scale, n, m, o, k);
        if (w != 0) out->v[i] += w * x.v[start + k * inner];
      }
    }
    x = *out;
  }
  return 1;
}

static int r_pad(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, has(in, "mode") ? "input" : "self");
  const tt_value* pad = given(in, "pad");
  const int mode = (int)int_arg(in, "mode", 0);
  int64_t before[kMaxDims] = {0}, shape[kMaxDims], idx[kMaxDims], i;
  int d;
  memcpy(shape, x->shape, sizeof shape);
  for (d = 0; d < x->ndim; d++) {
    const int k = 2 * (x->ndim - 1 - d);
    if (k + 1 < pad->n) {
      before[d] = pad->ints[k];
      shape[d] += pad->ints[k] + pad->ints[k + 1];
    }
  }
  *out = array(shape, x->ndim);
  for (i = 0; i < out->n; i++) {
    int inside = 1;
    unravel(i, shape, x->ndim, idx);
    for (d = 0; d < x->ndim; d++) {
      const int64_t n = x->shape[d];
      int64_t at = idx[d] - before[d];
      if (mode == TT_PADDING_REFLECT) at = at < 0 ? -at : at >= n ? 2 * n - 2 - at : at;
      if (mode == TT_PADDING_REPLICATE) at = at < 0 ? 0 : at >= n ? n - 1 : at;
      if (mode == TT_PADDING_CIRCULAR) { /* what is cropped does not go round */
        const int64_t after = shape[d] - n - before[d];
        const int64_t from = before[d] < 0 ? -before[d] : 0;
        const int64_t rest = n - from + (after < 0 ? after : 0);
        at = from + (at - from + 8 * rest) % rest;
      }
      inside &= at >= 0 && at < n;
      idx[d] = at;
    }
    out->v[i] = inside ? x->v[ravel(x, idx)] : number_arg(in, "value", 0);
  }
  return 1;
}

#define IMAGE_REFS                                                                              \
  {"batch_norm", 0, r_batch_norm, 0}, {"instance_norm", 0, r_instance_norm, 0},                 \
      {"group_norm", 0, r_group_norm, 0}, {"rms_norm", 0, r_rms_norm, 0},                       \
      {"max_pool1d", 0, r_max_pool, 1}, {"max_pool2d", 0, r_max_pool, 1},                       \
      {"max_pool1d_with_indices", 0, r_max_pool, 1},                                            \
      {"max_pool2d_with_indices", 0, r_max_pool, 1}, {"adaptive_max_pool1d", 0, r_max_pool, 1}, \
      {"adaptive_max_pool2d", 0, r_max_pool, 1}, {"avg_pool1d", 0, r_avg_pool, 0},              \
      {"avg_pool2d", 0, r_avg_pool, 0}, {"adaptive_avg_pool1d", 0, r_avg_pool, 0},              \
      {"adaptive_avg_pool2d", 0, r_avg_pool, 0}, {"interpolate", 0, r_interpolate, 0},          \
      {"pad", 0, r_pad, 1}, {"constant_pad_nd", 0, r_pad, 1},
