/* Reference of attention. */

/* x as (batch, heads, rows, width). */
static Array with_four_dims(const Array* x) {
  Array out = *x;
  out.ndim = 4;
  out.shape[0] = x->ndim > 2 ? x->shape[0] : 1;
  out.shape[1] = x->ndim == 4 ? x->shape[1] : 1;
  out.shape[2] = x->shape[x->ndim - 2];
  out.shape[3] = x->shape[x->ndim - 1];
  return out;
}
/* What the mask makes of a score at (batch, head, query, key). The mask of three dimensions has no
   heads. */
static double masked_score(const Inputs* in, double score, const int64_t* index) {
  const Array* mask = tensor(in, "attn_mask");
  const int has_heads = tensor(in, "query")->ndim != 3;
  if (flag_arg(in, "is_causal") && index[3] > index[2]) return -INFINITY;
  if (!mask) return score;
  const double value =
      has_heads ? broadcast_value(mask, index, 4) : broadcast_value(mask, index + 1, 3);
  if (dtype_of(in, "attn_mask") != TT_BOOL) return score + value;
  return value != 0 ? score : -INFINITY;
}
/* Turns scores into weights whose sum is 1; all are 0 where no key is seen. */
static void normalize_weights(double* weights, int64_t n) {
  double top = -INFINITY;
  double sum = 0;
  for (int64_t k = 0; k < n; k++) top = fmax(top, weights[k]);
  for (int64_t k = 0; k < n; k++) {
    weights[k] = top == -INFINITY ? 0 : exp(weights[k] - top);
    sum += weights[k];
  }
  for (int64_t k = 0; k < n && sum > 0; k++) weights[k] /= sum;
}
static int ref_attention(const Inputs* in, Array* out) {
  const Array query = with_four_dims(tensor(in, "query"));
  const Array key = with_four_dims(tensor(in, "key"));
  const Array value = with_four_dims(tensor(in, "value"));
  const int64_t n_keys = key.shape[2];
  const int64_t width = query.shape[3];
  const int64_t out_width = value.shape[3];
  const int64_t heads_per_key = query.shape[1] / key.shape[1];
  const double scale = number_arg(in, "scale", 1 / sqrt((double)width));
  double* weights = scratch((size_t)n_keys * sizeof *weights);
  Array shape = *tensor(in, "query");
  shape.shape[shape.ndim - 1] = out_width;
  *out = zeros_like(&shape);
  for (int64_t row = 0; row < query.n / width; row++) {
    int64_t index[4]; /* batch, head, query, key */
    unravel(row, query.shape, 3, index);
    const int64_t key_head = index[0] * key.shape[1] + index[1] / heads_per_key;
    const double* keys = key.data + key_head * n_keys * width;
    const double* values = value.data + key_head * n_keys * out_width;
    for (index[3] = 0; index[3] < n_keys; index[3]++) {
      double score = 0;
      for (int64_t d = 0; d < width; d++)
        score += query.data[row * width + d] * keys[index[3] * width + d];
      weights[index[3]] = masked_score(in, score * scale, index);
    }
    normalize_weights(weights, n_keys);
    for (int64_t k = 0; k < n_keys; k++)
      for (int64_t d = 0; d < out_width; d++)
        out->data[row * out_width + d] += weights[k] * values[k * out_width + d];
  }
  return 1;
}

static const Reference kAttention[] = {
    {"scaled_dot_product_attention", .whole = ref_attention},
};
