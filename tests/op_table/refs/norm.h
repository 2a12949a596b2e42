/* References of normalisations. */

/* ---- over the last dimensions: layer_norm, rms_norm ---- */

static int64_t normalized_size(const Inputs* in) {
  const tt_value* shape = given(in, "normalized_shape");
  int64_t size = 1;
  for (int64_t i = 0; i < shape->n; i++) size *= shape->ints[i];
  return size;
}
static double weight_at(const Array* weight, int64_t k) { return weight ? weight->data[k] : 1; }
static double bias_at(const Array* bias, int64_t k) { return bias ? bias->data[k] : 0; }

static int ref_layer_norm(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const Array* weight = tensor(in, "weight");
  const Array* bias = tensor(in, "bias");
  const double eps = number_arg(in, "eps", 1e-5);
  const int64_t size = normalized_size(in);
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i += size) {
    const double* row = x->data + i;
    double mean = 0;
    double variance = 0;
    for (int64_t k = 0; k < size; k++) mean += row[k];
    mean /= (double)size;
    for (int64_t k = 0; k < size; k++) variance += (row[k] - mean) * (row[k] - mean);
    variance /= (double)size;
    for (int64_t k = 0; k < size; k++) {
      const double normal = (row[k] - mean) / sqrt(variance + eps);
      out->data[i + k] = normal * weight_at(weight, k) + bias_at(bias, k);
    }
  }
  return 1;
}
static int ref_rms_norm(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const Array* weight = tensor(in, "weight");
  const double epsilon_of_dtype = dtype_of(in, "input") == TT_F64 ? DBL_EPSILON : FLT_EPSILON;
  const double eps = number_arg(in, "eps", epsilon_of_dtype);
  const int64_t size = normalized_size(in);
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i += size) {
    const double* row = x->data + i;
    double squares = 0;
    for (int64_t k = 0; k < size; k++) squares += row[k] * row[k];
    for (int64_t k = 0; k < size; k++)
      out->data[i + k] = row[k] / sqrt(squares / (double)size + eps) * weight_at(weight, k);
  }
  return 1;
}

/* ---- over groups of elements: batch_norm, instance_norm, group_norm ---- */

/* Normalizes the elements of x that have the same group[i]. */
static Array normalized(const Array* x, const int64_t* group, int64_t n_groups, double eps) {
  Array sum = new_array(&n_groups, 1);
  Array squares = new_array(&n_groups, 1);
  Array count = new_array(&n_groups, 1);
  Array out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    sum.data[group[i]] += x->data[i];
    count.data[group[i]]++;
  }
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t g = group[i];
    const double distance = x->data[i] - sum.data[g] / count.data[g];
    squares.data[g] += distance * distance;
  }
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t g = group[i];
    const double distance = x->data[i] - sum.data[g] / count.data[g];
    out.data[i] = distance / sqrt(squares.data[g] / count.data[g] + eps);
  }
  return out;
}
static int64_t channel_of(const Array* x, int64_t i) { return i / inner_size(x, 1) % x->shape[1]; }
static void scale_channels(const Inputs* in, const Array* x, Array* out) {
  const Array* weight = tensor(in, "weight");
  const Array* bias = tensor(in, "bias");
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t c = channel_of(x, i);
    out->data[i] = out->data[i] * weight_at(weight, c) + bias_at(bias, c);
  }
}
/* With the statistics of the input: of each channel, or of each channel of each image. */
static Array by_own_statistics(const Array* x, double eps, int each_image) {
  const int64_t channels = x->shape[1];
  int64_t* group = new_indices(x->n);
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t image = i / (x->n / x->shape[0]);
    group[i] = channel_of(x, i) + (each_image ? image * channels : 0);
  }
  return normalized(x, group, each_image ? x->shape[0] * channels : channels, eps);
}
static Array by_running_statistics(const Inputs* in, const Array* x, double eps) {
  const Array* mean = tensor(in, "running_mean");
  const Array* variance = tensor(in, "running_var");
  Array out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t c = channel_of(x, i);
    out.data[i] = (x->data[i] - mean->data[c]) / sqrt(variance->data[c] + eps);
  }
  return out;
}
static int normalize_channels(const Inputs* in, Array* out, int own_statistics, int each_image) {
  const Array* x = tensor(in, "input");
  const double eps = number_arg(in, "eps", 1e-5);
  if (own_statistics) *out = by_own_statistics(x, eps, each_image);
  else *out = by_running_statistics(in, x, eps);
  scale_channels(in, x, out);
  return 1;
}
static int ref_batch_norm(const Inputs* in, Array* out) {
  return normalize_channels(in, out, flag_arg(in, "training"), 0);
}
static int ref_instance_norm(const Inputs* in, Array* out) {
  return normalize_channels(in, out, int_arg(in, "use_input_stats", 1) != 0, 1);
}
static int ref_group_norm(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const int64_t n_groups = x->shape[0] * int_arg(in, "num_groups", 1);
  int64_t* group = new_indices(x->n);
  for (int64_t i = 0; i < x->n; i++) group[i] = i / (x->n / n_groups);
  *out = normalized(x, group, n_groups, number_arg(in, "eps", 1e-5));
  scale_channels(in, x, out);
  return 1;
}

static int ref_local_response_norm(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const int64_t size = int_arg(in, "size", 1);
  const int64_t inner = inner_size(x, 1);
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t channel = i / inner % x->shape[1];
    double squares = 0;
    for (int64_t c = channel - size / 2; c < channel - size / 2 + size; c++) {
      if (c < 0 || c >= x->shape[1]) continue;
      const double value = x->data[i + (c - channel) * inner];
      squares += value * value;
    }
    squares /= (double)size;
    if (dtype_of(in, "input") == TT_I64) squares = trunc(squares);
    out->data[i] =
        x->data[i] / pow(number_arg(in, "k", 1) + number_arg(in, "alpha", 1e-4) * squares,
                         number_arg(in, "beta", 0.75));
  }
  return 1;
}

static const Reference kNorm[] = {
    {"local_response_norm", .whole = ref_local_response_norm},
    {"layer_norm", .whole = ref_layer_norm},
    {"rms_norm", .whole = ref_rms_norm},
    {"batch_norm", .whole = ref_batch_norm},
    {"instance_norm", .whole = ref_instance_norm},
    {"group_norm", .whole = ref_group_norm},
};
