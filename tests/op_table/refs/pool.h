/* References of pooling over one, two or three dimensions. All are computed as three: leading ones
   have size 1. */

enum { kSpatial = 3 };
typedef struct Pooling {
  int64_t in[kSpatial], out[kSpatial], kernel[kSpatial], stride[kSpatial], padding[kSpatial],
      dilation[kSpatial];
  int adaptive;
  int dims;
} Pooling;

/* From the operator's name: max_pool2d has two. */
static int pooled_dims(const Inputs* in) {
  const char* name = in->sample->row->name;
  for (int dims = 1; dims < kSpatial; dims++) {
    const char digits[] = {(char)('0' + dims), 'd', '\0'};
    if (strstr(name, digits)) return dims;
  }
  return kSpatial;
}
/* The argument of dimension d; `otherwise` for a leading one. */
static int64_t image_arg(const Inputs* in, const char* name, int d, int64_t otherwise) {
  const int own = d - (kSpatial - pooled_dims(in));
  return own < 0 ? otherwise : spatial_arg(in, name, own, otherwise);
}
/* How many windows begin inside the image or the padding before it. */
static int64_t count_windows(const Pooling* p, int d, int ceil_mode) {
  const int64_t reach = p->dilation[d] * (p->kernel[d] - 1) + 1;
  const double room = (double)(p->in[d] + 2 * p->padding[d] - reach) / (double)p->stride[d];
  const int64_t windows = 1 + (int64_t)(ceil_mode ? ceil(room) : floor(room));
  return (windows - 1) * p->stride[d] >= p->in[d] + p->padding[d] ? windows - 1 : windows;
}
static Pooling read_pooling(const Inputs* in, const Array* x) {
  Pooling p = {.adaptive = has(in, "output_size"), .dims = pooled_dims(in)};
  for (int d = 0; d < kSpatial; d++) {
    const int leading = d < kSpatial - p.dims;
    p.in[d] = leading ? 1 : x->shape[x->ndim - kSpatial + d];
    if (p.adaptive) {
      p.out[d] = image_arg(in, "output_size", d, 1);
      continue;
    }
    p.kernel[d] = image_arg(in, "kernel_size", d, 1);
    p.stride[d] = image_arg(in, "stride", d, p.kernel[d]);
    p.padding[d] = image_arg(in, "padding", d, 0);
    p.dilation[d] = image_arg(in, "dilation", d, 1);
    p.out[d] = count_windows(&p, d, flag_arg(in, "ceil_mode"));
  }
  return p;
}

enum { kInPadding = -1, kEndOfWindow = -2 };
/* Position k of window o along dimension d. */
static int64_t window_position(const Pooling* p, int d, int64_t o, int64_t k) {
  if (p->adaptive) {
    const double begin = (double)(o * p->in[d]) / (double)p->out[d];
    const double end = (double)((o + 1) * p->in[d]) / (double)p->out[d];
    const int64_t at = (int64_t)floor(begin) + k;
    return at < (int64_t)ceil(end) ? at : kEndOfWindow;
  }
  const int64_t at = o * p->stride[d] - p->padding[d] + k * p->dilation[d];
  if (k >= p->kernel[d]) return kEndOfWindow;
  return at < 0 || at >= p->in[d] ? kInPadding : at;
}

typedef struct Window {
  double largest;
  double position; /* of the largest, in the image */
  double sum;
  double count; /* of the elements, with the padding where that counts */
} Window;

/* The padding behind the image ends before that of ceil_mode. */
static int is_in_declared_padding(const Pooling* p, int d, int64_t o, int64_t k) {
  return o * p->stride[d] - p->padding[d] + k < p->in[d] + p->padding[d];
}
static void add_element(Window* w, double element, int64_t at) {
  w->sum += element;
  w->count++;
  if (element > w->largest || isnan(element) || w->position < 0) {
    w->largest = element;
    w->position = (double)at;
  }
}
/* Element k of the window at o. */
static void visit(const Pooling* p, const double* image, const int64_t* o, const int64_t* k,
                  int counts_padding, Window* w) {
  int64_t at = 0;
  int padding = 0;
  int counts = counts_padding;
  for (int d = 0; d < kSpatial; d++) {
    const int64_t own = window_position(p, d, o[d], k[d]);
    padding |= own == kInPadding;
    counts &= is_in_declared_padding(p, d, o[d], k[d]);
    at = at * p->in[d] + own;
  }
  if (padding) w->count += counts;
  else add_element(w, image[at], at);
}
static Window pool_window(const Pooling* p, const double* image, const int64_t* o,
                          int counts_padding) {
  Window w = {.largest = -INFINITY, .position = -1};
  int64_t k[kSpatial];
  for (k[0] = 0; window_position(p, 0, o[0], k[0]) != kEndOfWindow; k[0]++)
    for (k[1] = 0; window_position(p, 1, o[1], k[1]) != kEndOfWindow; k[1]++)
      for (k[2] = 0; window_position(p, 2, o[2], k[2]) != kEndOfWindow; k[2]++)
        visit(p, image, o, k, counts_padding, &w);
  return w;
}

typedef enum PoolKind { kLargest, kMean, kPowerRoot } PoolKind;

static int pool(const Inputs* in, Array* outs, const Array* x, PoolKind kind) {
  const int counts_padding = int_arg(in, "count_include_pad", 1) != 0;
  const double divisor = number_arg(in, "divisor_override", 0);
  const double power = number_arg(in, "norm_type", 1);
  const Pooling p = read_pooling(in, x);
  int64_t shape[kMaxDims];
  int64_t elements = 1;
  double window_elements = 1;
  memcpy(shape, x->shape, sizeof shape);
  for (int d = 0; d < kSpatial; d++) {
    if (d >= kSpatial - p.dims) shape[x->ndim - kSpatial + d] = p.out[d];
    elements *= p.in[d];
    window_elements *= (double)p.kernel[d];
  }
  outs[0] = new_array(shape, x->ndim);
  outs[1] = new_array(shape, x->ndim);
  for (int64_t i = 0; i < outs[0].n; i++) {
    int64_t o[kSpatial];
    int64_t image = i;
    for (int d = kSpatial - 1; d >= 0; d--) {
      o[d] = image % p.out[d];
      image /= p.out[d];
    }
    const Window w = pool_window(&p, x->data + image * elements, o, counts_padding);
    const double mean = w.sum / (divisor != 0 ? divisor : w.count);
    if (kind == kLargest) outs[0].data[i] = w.largest;
    else if (kind == kMean) outs[0].data[i] = mean;
    else outs[0].data[i] = pow(mean * window_elements, 1 / power);
    outs[1].data[i] = w.position;
  }
  return in->sample->row->n_outs;
}
static int ref_max_pool(const Inputs* in, Array* outs) {
  return pool(in, outs, tensor(in, "self"), kLargest);
}
static int ref_avg_pool(const Inputs* in, Array* outs) {
  return pool(in, outs, tensor(in, "self"), kMean);
}
static int ref_lp_pool(const Inputs* in, Array* outs) {
  Array powers = copy_of(tensor(in, "input"));
  const double power = number_arg(in, "norm_type", 2);
  if (isinf(power)) { /* the largest magnitude of a window, or the smallest */
    const double sign = power > 0 ? 1 : -1;
    for (int64_t i = 0; i < powers.n; i++) powers.data[i] = sign * fabs(powers.data[i]);
    const int n_outs = pool(in, outs, &powers, kLargest);
    for (int64_t i = 0; i < outs[0].n; i++) outs[0].data[i] *= sign;
    return n_outs;
  }
  for (int64_t i = 0; i < powers.n; i++) powers.data[i] = pow(powers.data[i], power);
  return pool(in, outs, &powers, kPowerRoot);
}

/* Where window o of a plane begins: at steps of alpha, shifted by a sample. */
static int64_t fractional_begin(int64_t size, int64_t kernel, int64_t out, double sample,
                                int64_t o) {
  if (o == out - 1) return size - kernel;
  const double alpha = (double)(size - kernel) / (double)(out - 1);
  return (int64_t)(((double)o + sample) * alpha) - (int64_t)(sample * alpha);
}
static int ref_fractional_max_pool(const Inputs* in, Array* outs) {
  const Array* x = tensor(in, "input");
  const Array* samples = tensor(in, "random_samples");
  const int dims = pooled_dims(in);
  int64_t shape[kMaxDims];
  int64_t size[kSpatial], kernel[kSpatial], out[kSpatial];
  memcpy(shape, x->shape, sizeof shape);
  for (int d = 0; d < kSpatial; d++) {
    const int own = d - (kSpatial - dims);
    size[d] = own < 0 ? 1 : x->shape[x->ndim - kSpatial + d];
    kernel[d] = image_arg(in, "kernel_size", d, 1);
    out[d] = image_arg(in, "output_size", d, 1);
    if (own >= 0) shape[x->ndim - kSpatial + d] = out[d];
  }
  outs[0] = new_array(shape, x->ndim);
  outs[1] = new_array(shape, x->ndim);
  for (int64_t i = 0; i < outs[0].n; i++) {
    int64_t plane = i;
    int64_t begin[kSpatial];
    for (int d = kSpatial - 1; d >= 0; d--) {
      const int64_t o = plane % out[d];
      plane /= out[d];
      begin[d] = o;
    }
    for (int d = 0; d < kSpatial; d++) {
      const int own = d - (kSpatial - dims);
      /* the samples of an image are in the order columns, rows */
      const int at = dims == 2 ? 1 - own : own;
      const double sample = own < 0 ? 0 : samples->data[plane * dims + at];
      begin[d] = fractional_begin(size[d], kernel[d], out[d], sample, begin[d]);
    }
    const double* elements = x->data + plane * size[0] * size[1] * size[2];
    Window w = {.largest = -INFINITY, .position = -1};
    for (int64_t k = 0; k < kernel[0] * kernel[1] * kernel[2]; k++) {
      const int64_t a = begin[0] + k / kernel[2] / kernel[1];
      const int64_t b = begin[1] + k / kernel[2] % kernel[1];
      const int64_t c = begin[2] + k % kernel[2];
      const int64_t at = (a * size[1] + b) * size[2] + c;
      add_element(&w, elements[at], at);
    }
    outs[0].data[i] = w.largest;
    outs[1].data[i] = w.position;
  }
  return in->sample->row->n_outs;
}

static int ref_max_unpool(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const Array* indices = tensor(in, "indices");
  const int dims = pooled_dims(in);
  const tt_value* given_size = given(in, "output_size");
  int64_t shape[kMaxDims];
  int64_t from = 1;
  int64_t to = 1;
  memcpy(shape, x->shape, sizeof shape);
  for (int d = 0; d < dims; d++) {
    const int at = x->ndim - dims + d;
    const int64_t kernel = spatial_arg(in, "kernel_size", d, 1);
    const int64_t stride = spatial_arg(in, "stride", d, kernel);
    shape[at] = (x->shape[at] - 1) * stride - 2 * spatial_arg(in, "padding", d, 0) + kernel;
    if (given_size) shape[at] = given_size->ints[given_size->n - dims + d];
    from *= x->shape[at];
    to *= shape[at];
  }
  *out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < x->n; i++)
    out->data[i / from * to + (int64_t)indices->data[i]] = x->data[i];
  return 1;
}

static const Reference kPool[] = {
    {"max_pool1d", .whole = ref_max_pool, .exact = 1},
    {"max_pool2d", .whole = ref_max_pool, .exact = 1},
    {"max_pool3d", .whole = ref_max_pool, .exact = 1},
    {"adaptive_max_pool1d", .whole = ref_max_pool, .exact = 1},
    {"adaptive_max_pool2d", .whole = ref_max_pool, .exact = 1},
    {"adaptive_max_pool3d", .whole = ref_max_pool, .exact = 1},
    {"avg_pool1d", .whole = ref_avg_pool},
    {"avg_pool2d", .whole = ref_avg_pool},
    {"avg_pool3d", .whole = ref_avg_pool},
    {"adaptive_avg_pool1d", .whole = ref_avg_pool},
    {"adaptive_avg_pool2d", .whole = ref_avg_pool},
    {"adaptive_avg_pool3d", .whole = ref_avg_pool},
    {"lp_pool1d", .whole = ref_lp_pool},
    {"lp_pool2d", .whole = ref_lp_pool},
    {"lp_pool3d", .whole = ref_lp_pool},
    {"fractional_max_pool2d", .whole = ref_fractional_max_pool},
    {"fractional_max_pool3d", .whole = ref_fractional_max_pool},
    {"max_unpool1d", .whole = ref_max_unpool, .exact = 1},
    {"max_unpool2d", .whole = ref_max_unpool, .exact = 1},
    {"max_unpool3d", .whole = ref_max_unpool, .exact = 1},
};
