/* References of convolutions. A convolution relates a large side to a small one: it reads the
   large one and writes the small one, and a transposed convolution does the opposite. */

typedef struct Conv {
  int transposed, unbatched;
  int ndim; /* spatial dimensions; the others of the arrays below have size 1 */
  int64_t batch, groups, in_channels, out_channels;
  int64_t large[3], small[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t extra[3]; /* more padding behind: "same" with an even kernel, output_padding */
} Conv;

static int64_t spatial_arg(const Inputs* in, const char* name, int d, int64_t otherwise) {
  const tt_value* v = given(in, name);
  if (!v || v->n == 0) return otherwise;
  return v->ints[v->n == 1 ? 0 : d];
}
static void read_padding(const Inputs* in, Conv* c, int d) {
  const tt_value* padding = given(in, "padding");
  if (!padding || padding->tag != TT_VAL_STR) {
    c->padding[d] = spatial_arg(in, "padding", d, 0);
    c->extra[d] = spatial_arg(in, "output_padding", d, 0);
  } else if (strcmp(padding->str, "same") == 0) {
    const int64_t total = c->dilation[d] * (c->kernel[d] - 1);
    c->padding[d] = total / 2;
    c->extra[d] = total % 2;
  }
}
static Conv read_conv(const Inputs* in, int transposed) {
  const Array* x = tensor(in, "input");
  const Array* weight = tensor(in, "weight");
  Conv c = {.transposed = transposed, .ndim = weight->ndim - 2, .groups = int_arg(in, "groups", 1)};
  c.unbatched = x->ndim == c.ndim + 1;
  c.batch = c.unbatched ? 1 : x->shape[0];
  c.in_channels = x->shape[!c.unbatched];
  c.out_channels = transposed ? weight->shape[1] * c.groups : weight->shape[0];
  for (int d = 0; d < 3; d++) {
    c.large[d] = c.small[d] = 1;
    c.kernel[d] = c.stride[d] = c.dilation[d] = 1;
  }
  for (int d = 0; d < c.ndim; d++) {
    const int64_t size = x->shape[d + 1 + !c.unbatched];
    c.kernel[d] = weight->shape[d + 2];
    c.stride[d] = spatial_arg(in, "stride", d, 1);
    c.dilation[d] = spatial_arg(in, "dilation", d, 1);
    read_padding(in, &c, d);
    const int64_t reach = c.dilation[d] * (c.kernel[d] - 1);
    if (transposed) {
      c.small[d] = size;
      c.large[d] = (size - 1) * c.stride[d] - 2 * c.padding[d] + reach + c.extra[d] + 1;
    } else {
      c.large[d] = size;
      c.small[d] = (size + 2 * c.padding[d] + c.extra[d] - reach - 1) / c.stride[d] + 1;
    }
  }
  return c;
}
static int64_t volume(const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/* The element of the large side that a tap sees from an element of the small side; -1 in the
   padding. */
static int64_t large_element(const Conv* c, int64_t small_element, int64_t tap) {
  int64_t position[3];
  int64_t offset[3];
  int64_t at = 0;
  unravel(small_element, c->small, 3, position);
  unravel(tap, c->kernel, 3, offset);
  for (int d = 0; d < 3; d++) {
    const int64_t p = position[d] * c->stride[d] - c->padding[d] + offset[d] * c->dilation[d];
    if (p < 0 || p >= c->large[d]) return -1;
    at = at * c->large[d] + p;
  }
  return at;
}
/* Adds what one plane of each side and their kernel contribute. */
static void convolve_planes(const Conv* c, const double* x, const double* kernel, double* out) {
  const int64_t small_size = volume(c->small);
  const int64_t taps = volume(c->kernel);
  for (int64_t small = 0; small < small_size; small++)
    for (int64_t tap = 0; tap < taps; tap++) {
      const int64_t large = large_element(c, small, tap);
      if (large < 0) continue;
      if (c->transposed) out[large] += x[small] * kernel[tap];
      else out[small] += x[large] * kernel[tap];
    }
}
static int convolve(const Inputs* in, Array* out, int transposed) {
  const Conv c = read_conv(in, transposed);
  const Array* x = tensor(in, "input");
  const Array* weight = tensor(in, "weight");
  const Array* bias = tensor(in, "bias");
  const int64_t* out_size = transposed ? c.large : c.small;
  const int64_t x_plane = volume(transposed ? c.small : c.large);
  const int64_t out_plane = volume(out_size);
  const int64_t in_group = c.in_channels / c.groups;
  const int64_t out_group = c.out_channels / c.groups;
  const int64_t small_group = transposed ? in_group : out_group;
  const int64_t large_group = transposed ? out_group : in_group;
  int64_t shape[kMaxDims] = {c.batch, c.out_channels, out_size[0], out_size[1], out_size[2]};
  *out = new_array(shape + c.unbatched, c.ndim + 2 - c.unbatched);
  for (int64_t i = 0; bias && i < out->n; i++)
    out->data[i] = bias->data[i / out_plane % c.out_channels];
  for (int64_t n = 0; n < c.batch; n++)
    for (int64_t g = 0; g < c.groups; g++)
      for (int64_t small = 0; small < small_group; small++)
        for (int64_t large = 0; large < large_group; large++) {
          const int64_t from = transposed ? small : large;
          const int64_t to = transposed ? large : small;
          const int64_t kernel = (g * small_group + small) * large_group + large;
          convolve_planes(&c, x->data + ((n * c.groups + g) * in_group + from) * x_plane,
                          weight->data + kernel * volume(c.kernel),
                          out->data + ((n * c.groups + g) * out_group + to) * out_plane);
        }
  return 1;
}
static int ref_conv(const Inputs* in, Array* out) { return convolve(in, out, 0); }
static int ref_conv_transpose(const Inputs* in, Array* out) { return convolve(in, out, 1); }

static const Reference kConv[] = {
    {"conv1d", .whole = ref_conv},
    {"conv2d", .whole = ref_conv},
    {"conv3d", .whole = ref_conv},
    {"conv_transpose1d", .whole = ref_conv_transpose},
    {"conv_transpose2d", .whole = ref_conv_transpose},
    {"conv_transpose3d", .whole = ref_conv_transpose},
};
