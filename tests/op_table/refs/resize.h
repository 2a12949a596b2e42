/* References of interpolation: the weights of each dimension, applied one dimension at a time. */

typedef struct Resize {
  int mode, align_corners, antialias;
  double scale;    /* input elements per output element */
  int64_t in, out; /* sizes */
} Resize;

static double cubic_weight(double distance) {
  const double a = -0.75;
  const double x = fabs(distance);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}
/* The input elements per output element. */
static double source_scale(const Resize* r) {
  if (!r->align_corners) return r->scale;
  return r->out > 1 ? (double)(r->in - 1) / (double)(r->out - 1) : 0;
}
/* The position of output element o between the input elements. */
static double source_position(const Resize* r, int64_t o) {
  if (!r->align_corners) return ((double)o + 0.5) * r->scale - 0.5;
  return r->out > 1 ? (double)(r->in - 1) / (double)(r->out - 1) * (double)o : 0;
}
static int is_nearest(const Resize* r, double position, int64_t i) {
  return fmin(floor((float)position), (double)(r->in - 1)) == (double)i;
}
static double area_weight(const Resize* r, int64_t o, int64_t i) {
  const int64_t from = o * r->in / r->out;
  const int64_t to = ((o + 1) * r->in + r->out - 1) / r->out;
  return i >= from && i < to ? 1 / (double)(to - from) : 0;
}
static double linear_weight(const Resize* r, int64_t o, int64_t i) {
  const double at = fmin(fmax(source_position(r, o), 0), (double)(r->in - 1));
  return fmax(0, 1 - fabs(at - (double)i));
}
/* Elements outside the input count as those of its ends. */
static double bicubic_weight(const Resize* r, int64_t o, int64_t i) {
  const double at = source_position(r, o);
  double weight = 0;
  for (int64_t k = (int64_t)floor(at) - 1; k < (int64_t)floor(at) + 3; k++) {
    int64_t inside = k < 0 ? 0 : k;
    if (inside >= r->in) inside = r->in - 1;
    if (inside == i) weight += cubic_weight(at - (double)k);
  }
  return weight;
}
/* A filter as wide as the input elements of one output element; not normalised. */
static double smooth_weight(const Resize* r, int64_t o, int64_t i) {
  const double scale = source_scale(r);
  const double x = fabs(((double)i + 0.5 - ((double)o + 0.5) * scale) / fmax(scale, 1));
  if (r->mode == TT_INTERPOLATION_BILINEAR) return fmax(0, 1 - x);
  if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
  return x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0;
}
/* The weight of input element i in output element o. */
static double resize_weight(const Resize* r, int64_t o, int64_t i) {
  if (r->antialias) return smooth_weight(r, o, i);
  switch (r->mode) {
    case TT_INTERPOLATION_NEAREST: return is_nearest(r, (double)o * r->scale, i);
    case TT_INTERPOLATION_NEAREST_EXACT: return is_nearest(r, ((double)o + 0.5) * r->scale, i);
    case TT_INTERPOLATION_AREA: return area_weight(r, o, i);
    case TT_INTERPOLATION_BICUBIC: return bicubic_weight(r, o, i);
    default: return linear_weight(r, o, i);
  }
}
/* The input elements that may have a weight in output element o, to save time: [*from, *to). */
static void source_range(const Resize* r, int64_t o, int64_t* from, int64_t* to) {
  *from = 0;
  *to = r->in;
  if (r->mode == TT_INTERPOLATION_AREA || r->antialias) return;
  if (r->align_corners && r->out == 1) {
    *to = r->in < 6 ? r->in : 6;
  } else {
    const double ratio = r->align_corners ? (double)(r->in - 1) / (double)(r->out - 1) : r->scale;
    const int64_t at = (int64_t)((double)o * ratio);
    if (at > 4) *from = at - 4;
    if (at + 6 < r->in) *to = at + 6;
  }
  if (*from > r->in - 2) *from = r->in < 2 ? 0 : r->in - 2;
}
static Array resize_dimension(const Array* x, int d, const Resize* r) {
  const int64_t inner = inner_size(x, d);
  int64_t shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[d] = r->out;
  Array out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out.n; i++) {
    const int64_t o = i / inner % r->out;
    const double* line = x->data + i / inner / r->out * r->in * inner + i % inner;
    int64_t from;
    int64_t to;
    source_range(r, o, &from, &to);
    double total = 0;
    for (int64_t k = from; k < to; k++) {
      const double weight = resize_weight(r, o, k);
      total += weight;
      if (weight != 0) out.data[i] += weight * line[k * inner];
    }
    if (r->antialias) out.data[i] /= total;
  }
  return out;
}
static Resize read_resize(const Inputs* in, const Array* x, int d) {
  const tt_value* size = given(in, "size");
  Resize r = {
      .mode = (int)int_arg(in, "mode", TT_INTERPOLATION_NEAREST),
      .align_corners = flag_arg(in, "align_corners"),
      .antialias = flag_arg(in, "antialias"),
      .in = x->shape[d],
  };
  double factor = size ? 0 : number_arg(in, "scale_factor", 0);
  if (d == x->ndim - 2) factor = number_arg(in, "scale_h", factor);
  if (size) r.out = size->ints[size->n == 1 ? 0 : d - 2];
  else r.out = (int64_t)floor((double)r.in * factor);
  if (factor > 0 && !flag_arg(in, "recompute_scale_factor")) r.scale = 1 / factor;
  else r.scale = (double)r.in / (double)r.out;
  return r;
}
static int ref_interpolate(const Inputs* in, Array* out) {
  *out = *tensor(in, "input");
  for (int d = 2; d < out->ndim; d++) {
    const Resize r = read_resize(in, out, d);
    *out = resize_dimension(out, d, &r);
  }
  return 1;
}

static const Reference kResize[] = {
    {"interpolate", .whole = ref_interpolate},
};
