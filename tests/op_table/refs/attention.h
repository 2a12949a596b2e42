/* Reference of attention. Included by refs.c. */

/* x as (batch, heads, rows, width). */
static Arr four_dims(const Arr* x) {
  Arr r = *x;
  const int64_t rows = x->shape[x->ndim - 2];
  const int64_t width = x->shape[x->ndim - 1];
  r.ndim = 4;
  r.shape[0] = x->ndim > 2 ? x->shape[0] : 1;
  r.shape[1] = x->ndim == 4 ? x->shape[1] : 1;
  r.shape[2] = rows;
  r.shape[3] = width;
  return r;
}

static int r_attention(const Inputs* in, Arr* out) {
  const Arr q = four_dims(tensor(in, "query"));
  const Arr k = four_dims(tensor(in, "key"));
  const Arr v = four_dims(tensor(in, "value"));
  const Arr* mask = tensor(in, "attn_mask");
  const int64_t keys = k.shape[2];
  const int64_t width = q.shape[3];
  const int64_t values = v.shape[3];
  const int truth =
      mask && in->sample->args[row_arg(in->sample->row, "attn_mask")].tensor &&
      tt_tensor_dtype(in->sample->args[row_arg(in->sample->row, "attn_mask")].tensor) == TT_BOOL;
  const double scale = number_arg(in, "scale", 1 / sqrt((double)width));
  double* p = scratch((size_t)(keys + 1) * sizeof *p);
  int64_t shape[kMaxDims], at[4], i, j, d;
  const Arr* x = &in->t[row_arg(in->sample->row, "query")];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 1] = values;
  *out = array(shape, x->ndim);
  for (i = 0; i < q.n / width; i++) {
    int64_t kv;
    double top = -INFINITY, sum = 0;
    unravel(i, q.shape, 3, at);
    kv = at[0] * k.shape[1] + at[1] / (q.shape[1] / k.shape[1]);
    for (j = 0; j < keys; j++) {
      double s = 0;
      for (d = 0; d < width; d++) s += q.v[i * width + d] * k.v[(kv * keys + j) * width + d];
      s *= scale;
      at[3] = j;
      if (mask) {
        const double m =
            mask->v[broadcast_at(mask, x->ndim == 3 ? &at[1] : at, x->ndim == 3 ? 3 : 4)];
        s = truth ? (m != 0 ? s : -INFINITY) : s + m;
      }
      if (int_arg(in, "is_causal", 0) && j > at[2]) s = -INFINITY;
      p[j] = s;
      top = fmax(top, s);
    }
    for (j = 0; j < keys; j++) sum += p[j] = top == -INFINITY ? 0 : exp(p[j] - top);
    for (j = 0; j < keys && sum > 0; j++)
      for (d = 0; d < values; d++)
        out->v[i * values + d] += p[j] / sum * v.v[(kv * keys + j) * values + d];
  }
  return 1;
}

#define ATTENTION_REFS {"scaled_dot_product_attention", 0, r_attention, 0},
