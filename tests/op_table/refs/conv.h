/* Part of refs.c: convolutions by their definition. */

typedef struct ConvArgs {
  int nd, unbatched;
  int64_t groups, x[3], y[3], k[3], stride[3], pad[3], dil[3],
      more[3];     /* x: the large side, y: the small one */
  int64_t n, c, o; /* batch; channels of input and result */
} ConvArgs;

static int64_t conv_entry(const Inputs* in, const char* name, int d, int64_t otherwise) {
  const tt_value* v = has(in, name) ? given(in, name) : NULL;
  return !v || !v->n ? otherwise : v->ints[v->n == 1 ? 0 : d];
}
static ConvArgs conv_args(const Inputs* in, int transposed) {
  const Arr* x = tensor(in, "input");
  const Arr* w = tensor(in, "weight");
  const tt_value* padding = given(in, "padding");
  ConvArgs a = {.nd = w->ndim - 2, .groups = int_arg(in, "groups", 1)};
  int d;
  a.unbatched = x->ndim == a.nd + 1;
  a.n = a.unbatched ? 1 : x->shape[0];
  a.c = x->shape[!a.unbatched];
  a.o = transposed ? w->shape[1] * a.groups : w->shape[0];
  for (d = 0; d < 3; d++) a.x[d] = a.y[d] = a.k[d] = a.stride[d] = a.dil[d] = 1;
  for (d = 0; d < a.nd; d++) {
    const int64_t size = x->shape[d + 1 + !a.unbatched];
    a.k[d] = w->shape[d + 2];
    a.stride[d] = conv_entry(in, "stride", d, 1);
    a.dil[d] = conv_entry(in, "dilation", d, 1);
    if (padding && padding->tag == TT_VAL_STR) {
      const int same = padding->n == 4;
      a.pad[d] = same ? a.dil[d] * (a.k[d] - 1) / 2 : 0;
      a.more[d] = same ? a.dil[d] * (a.k[d] - 1) % 2 : 0;
    } else {
      a.pad[d] = conv_entry(in, "padding", d, 0);
      a.more[d] = conv_entry(in, "output_padding", d, 0);
    }
    if (transposed) {
      a.y[d] = size;
      a.x[d] = (size - 1) * a.stride[d] - 2 * a.pad[d] + a.dil[d] * (a.k[d] - 1) + a.more[d] + 1;
    } else {
      a.x[d] = size;
      a.y[d] = (size + 2 * a.pad[d] + a.more[d] - a.dil[d] * (a.k[d] - 1) - 1) / a.stride[d] + 1;
    }
  }
  return a;
}

/* Every product of an element of the small side, a tap and an element of the large side, once. */
static void conv_terms(const Inputs* in, const ConvArgs* a, int transposed, Arr* out) {
  const Arr* x = tensor(in, "input");
  const Arr* w = tensor(in, "weight");
  const int64_t xs = a->x[0] * a->x[1] * a->x[2];
  const int64_t ys = a->y[0] * a->y[1] * a->y[2];
  const int64_t ks = a->k[0] * a->k[1] * a->k[2];
  const int64_t big = (transposed ? a->o : a->c) / a->groups;
  const int64_t small = (transposed ? a->c : a->o) / a->groups;
  int64_t n, g, s, l, j, t;
  for (n = 0; n < a->n; n++)
    for (g = 0; g < a->groups; g++)
      for (s = 0; s < small; s++)
        for (l = 0; l < big; l++)
          for (j = 0; j < ys; j++)
            for (t = 0; t < ks; t++) {
              int64_t pos[3], tap[3], at = 0, big_at, small_at;
              int d, inside = 1;
              unravel(j, a->y, 3, pos);
              unravel(t, a->k, 3, tap);
              for (d = 0; d < 3; d++) {
                const int64_t p = pos[d] * a->stride[d] - a->pad[d] + tap[d] * a->dil[d];
                inside &= p >= 0 && p < a->x[d];
                at = at * a->x[d] + p;
              }
              if (!inside) continue;
              big_at = ((n * a->groups + g) * big + l) * xs + at;
              small_at = ((n * a->groups + g) * small + s) * ys + j;
              if (transposed)
                out->v[big_at] += x->v[small_at] * w->v[((g * small + s) * big + l) * ks + t];
              else out->v[small_at] += x->v[big_at] * w->v[((g * small + s) * big + l) * ks + t];
            }
}
static int convolve(const Inputs* in, Arr* out, int transposed) {
  const ConvArgs a = conv_args(in, transposed);
  const Arr* bias = tensor(in, "bias");
  int64_t shape[kMaxDims] = {a.n, a.o};
  int64_t inner = 1;
  int64_t i;
  int d;
  for (d = 0; d < a.nd; d++) inner *= shape[d + 2] = (transposed ? a.x : a.y)[d];
  *out = array(shape + a.unbatched, a.nd + 2 - a.unbatched);
  for (i = 0; bias && i < out->n; i++) out->v[i] = bias->v[i / inner % a.o];
  conv_terms(in, &a, transposed, out);
  return 1;
}
static int r_conv(const Inputs* in, Arr* out) { return convolve(in, out, 0); }
static int r_conv_transpose(const Inputs* in, Arr* out) { return convolve(in, out, 1); }

#define CONV_REFS                                                                                 \
  {"conv1d", 0, r_conv, 0}, {"conv2d", 0, r_conv, 0}, {"conv3d", 0, r_conv, 0},                   \
      {"conv_transpose1d", 0, r_conv_transpose, 0}, {"conv_transpose2d", 0, r_conv_transpose, 0}, \
      {"conv_transpose3d", 0, r_conv_transpose, 0},
