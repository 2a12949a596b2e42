/* References of sampling: the weight of every element of each dimension at each position. */

typedef struct GridAxis {
  int64_t size;
  int mode, padding, align;
} GridAxis;

static double grid_reflect(const GridAxis* g, double at) {
  const double low = g->align ? 0 : -0.5;
  const double high = g->align ? (double)(g->size - 1) : (double)g->size - 0.5;
  if (low == high) return 0;
  while (at < low || at > high) at = at < low ? 2 * low - at : 2 * high - at;
  return at;
}
/* Where the padding puts a position. */
static double grid_pad(const GridAxis* g, double at) {
  if (g->padding == TT_GRIDPADDING_ZEROS) return at;
  if (g->padding == TT_GRIDPADDING_REFLECTION) at = grid_reflect(g, at);
  return fmin(fmax(at, 0), (double)(g->size - 1));
}
/* The weight of element i at a position in [-1, 1]. */
static double grid_weight(const GridAxis* g, double position, int64_t i) {
  const double n = (double)g->size;
  const double at = g->align ? (position + 1) / 2 * (n - 1) : ((position + 1) * n - 1) / 2;
  if (g->mode == TT_GRIDMODE_NEAREST) return rint(grid_pad(g, at)) == (double)i;
  if (g->mode == TT_GRIDMODE_BILINEAR) return fmax(0, 1 - fabs(grid_pad(g, at) - (double)i));
  double weight = 0;
  for (int64_t k = (int64_t)floor(at) - 1; k < (int64_t)floor(at) + 3; k++)
    if (grid_pad(g, (double)k) == (double)i) weight += cubic_weight(at - (double)k);
  return weight;
}
static int ref_grid_sample(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const Array* grid = tensor(in, "grid");
  const int dims = x->ndim - 2;
  int64_t shape[kMaxDims];
  memcpy(shape, grid->shape, sizeof shape);
  shape[1] = x->shape[1];
  for (int d = 0; d < dims; d++) shape[2 + d] = grid->shape[1 + d];
  *out = new_array(shape, x->ndim);
  const int64_t positions = inner_size(out, 1);
  const int64_t elements = inner_size(x, 1);
  for (int64_t i = 0; i < out->n; i++) {
    const int64_t plane = i / positions;
    const int64_t at = plane / x->shape[1] * positions + i % positions;
    for (int64_t k = 0; k < elements; k++) {
      double weight = 1;
      int64_t rest = k;
      for (int d = dims - 1; d >= 0; d--) {
        const GridAxis g = {
            .size = x->shape[2 + d],
            .mode = (int)int_arg(in, "mode", TT_GRIDMODE_BILINEAR),
            .padding = (int)int_arg(in, "padding_mode", TT_GRIDPADDING_ZEROS),
            .align = flag_arg(in, "align_corners"),
        };
        weight *= grid_weight(&g, grid->data[at * dims + dims - 1 - d], rest % g.size);
        rest /= g.size;
      }
      out->data[i] += weight * x->data[plane * elements + k];
    }
  }
  return 1;
}
static int ref_affine_grid(const Inputs* in, Array* out) {
  const Array* theta = tensor(in, "theta");
  const tt_value* size = given(in, "size");
  const int dims = (int)theta->shape[1];
  int64_t shape[kMaxDims];
  shape[0] = size->ints[0];
  for (int d = 0; d < dims; d++) shape[1 + d] = size->ints[2 + d];
  shape[1 + dims] = dims;
  *out = new_array(shape, dims + 2);
  for (int64_t i = 0; i < out->n; i++) {
    int64_t index[kMaxDims];
    index_of(out, i, index);
    const double* row = theta->data + (index[0] * dims + index[dims + 1]) * (dims + 1);
    out->data[i] = row[dims];
    for (int d = 0; d < dims; d++) {
      const double n = (double)shape[1 + d];
      const double step = flag_arg(in, "align_corners") ? n - 1 : n;
      const double at = n > 1 ? (2 * (double)index[1 + d] - n + 1) / step : 0;
      out->data[i] += row[dims - 1 - d] * at;
    }
  }
  return 1;
}

static const Reference kGrid[] = {
    {"grid_sample", .whole = ref_grid_sample},
    {"affine_grid", .whole = ref_affine_grid},
};
