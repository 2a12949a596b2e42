/* References of pooling. A line is an image of one row: dimension 0 is that of the rows. */

typedef struct Pooling {
  int64_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
  int adaptive;
} Pooling;

static int64_t image_arg(const Inputs* in, const char* name, int d, int line, int64_t otherwise) {
  if (line && d == 0) return otherwise;
  return spatial_arg(in, name, line ? 0 : d, otherwise);
}
/* How many windows begin inside the image or the padding before it. */
static int64_t count_windows(const Pooling* p, int d, int ceil_mode) {
  const int64_t reach = p->dilation[d] * (p->kernel[d] - 1) + 1;
  const double room = (double)(p->in[d] + 2 * p->padding[d] - reach) / (double)p->stride[d];
  const int64_t windows = 1 + (int64_t)(ceil_mode ? ceil(room) : floor(room));
  return (windows - 1) * p->stride[d] >= p->in[d] + p->padding[d] ? windows - 1 : windows;
}
static Pooling read_pooling(const Inputs* in, const Array* x, int line) {
  Pooling p = {.adaptive = has(in, "output_size")};
  for (int d = 0; d < 2; d++) {
    p.in[d] = line && d == 0 ? 1 : x->shape[x->ndim - 2 + d];
    if (p.adaptive) {
      p.out[d] = image_arg(in, "output_size", d, line, 1);
      continue;
    }
    p.kernel[d] = image_arg(in, "kernel_size", d, line, 1);
    p.stride[d] = image_arg(in, "stride", d, line, p.kernel[d]);
    p.padding[d] = image_arg(in, "padding", d, line, 0);
    p.dilation[d] = image_arg(in, "dilation", d, line, 1);
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
static Window pool_window(const Pooling* p, const double* image, int64_t o0, int64_t o1,
                          int counts_padding) {
  Window w = {.largest = -INFINITY, .position = -1};
  for (int64_t a = 0; window_position(p, 0, o0, a) != kEndOfWindow; a++)
    for (int64_t b = 0; window_position(p, 1, o1, b) != kEndOfWindow; b++) {
      const int64_t row = window_position(p, 0, o0, a);
      const int64_t column = window_position(p, 1, o1, b);
      if (row == kInPadding || column == kInPadding) {
        w.count += counts_padding && is_in_declared_padding(p, 0, o0, a) &&
                   is_in_declared_padding(p, 1, o1, b);
        continue;
      }
      const int64_t at = row * p->in[1] + column;
      w.sum += image[at];
      w.count++;
      if (image[at] > w.largest || isnan(image[at]) || w.position < 0) {
        w.largest = image[at];
        w.position = (double)at;
      }
    }
  return w;
}
static int pool(const Inputs* in, Array* outs, int largest) {
  const Array* x = tensor(in, "self");
  const int line = strstr(in->sample->row->name, "1d") != NULL;
  const int counts_padding = int_arg(in, "count_include_pad", 1) != 0;
  const double divisor = number_arg(in, "divisor_override", 0);
  const Pooling p = read_pooling(in, x, line);
  int64_t shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  if (!line) shape[x->ndim - 2] = p.out[0];
  shape[x->ndim - 1] = p.out[1];
  outs[0] = new_array(shape, x->ndim);
  outs[1] = new_array(shape, x->ndim);
  for (int64_t i = 0; i < outs[0].n; i++) {
    const int64_t o1 = i % p.out[1];
    const int64_t o0 = i / p.out[1] % p.out[0];
    const int64_t image = i / p.out[1] / p.out[0];
    const double* elements = x->data + image * p.in[0] * p.in[1];
    const Window w = pool_window(&p, elements, o0, o1, counts_padding);
    const double mean = w.sum / (divisor != 0 ? divisor : w.count);
    outs[0].data[i] = largest ? w.largest : mean;
    outs[1].data[i] = w.position;
  }
  return in->sample->row->n_outs;
}
static int ref_max_pool(const Inputs* in, Array* outs) { return pool(in, outs, 1); }
static int ref_avg_pool(const Inputs* in, Array* outs) { return pool(in, outs, 0); }

static const Reference kPool[] = {
    {"max_pool1d", .whole = ref_max_pool, .exact = 1},
    {"max_pool2d", .whole = ref_max_pool, .exact = 1},
    {"adaptive_max_pool1d", .whole = ref_max_pool, .exact = 1},
    {"adaptive_max_pool2d", .whole = ref_max_pool, .exact = 1},
    {"avg_pool1d", .whole = ref_avg_pool},
    {"avg_pool2d", .whole = ref_avg_pool},
    {"adaptive_avg_pool1d", .whole = ref_avg_pool},
    {"adaptive_avg_pool2d", .whole = ref_avg_pool},
};
