/* Calls of operators, and samples in other dtypes, layouts and places. */
#include "checks.h"

const char* doing = "";

void lost(const Sample* s, const char* text, double got, double want) {
  print_error("%s, sample \"%s\", %s: %s (%.17g, want %.17g)\n", s->row->name, s->what, doing, text,
              got, want);
  fail();
}
void done(const Sample* s, tt_status status) {
  if (!status) return;
  print_error("%s, sample \"%s\", %s: %s\n", s->row->name, s->what, doing,
              tt_ctx_error(c)->message);
  fail();
}

int is_random(const Row* r) { return row_samples(r)->drawn != NULL; }
int has_values(const Row* r) { return strncmp(r->name, "empty", 5) != 0; }

/* ---- calls ---- */

tt_status call_variant(const Sample* s, const char* suffix, tt_tensor** more, int n_more,
                       tt_tensor** outs, int64_t* n_outs) {
  const int n = s->row->n_args;
  tt_value args[kMaxArgs + kMaxOuts];
  char name[96];
  const tt_op* op;
  snprintf(name, sizeof name, "%s%s", s->row->name, suffix);
  OK(tt_op_find(c, name, &op));
  memcpy(args, s->args, (size_t)n * sizeof *args);
  point_to_items(s, args);
  for (int i = 0; i < n_more; i++) {
    memset(&args[n + i], 0, sizeof *args);
    args[n + i].tag = TT_VAL_TENSOR;
    args[n + i].tensor = more[i];
  }
  if (is_random(s->row)) OK(tt_manual_seed(c, 11));
  return tt_op_call(c, op, args, n + n_more, outs, kMaxOuts, n_outs);
}
tt_status call(const Sample* s, tt_tensor** outs, int* n) {
  const int writes_argument = s->row->n_outs == 0;
  Sample copy = *s;
  int64_t n_outs = 0;
  if (writes_argument) copy.args[0].tensor = clone_of(s->args[0].tensor);
  const tt_status status = call_variant(&copy, "", NULL, 0, outs, &n_outs);
  if (writes_argument) {
    outs[0] = copy.args[0].tensor;
    n_outs = 1;
  }
  *n = (int)n_outs;
  return status;
}
tt_tensor* clone_of(const tt_tensor* t) {
  tt_tensor* out;
  OK(tt_clone(c, t, NULL, &out));
  return out;
}
tt_tensor* cast(const tt_tensor* t, tt_dtype d) {
  const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = d};
  tt_tensor* out;
  OK(tt_to(c, t, &to, &out));
  return out;
}
static tt_tensor* moved(const tt_tensor* t, int type) {
  const tt_to_opts to = {.set = TT_TO_DEVICE, .device = {type, 0}};
  tt_tensor* out;
  OK(tt_to(c, t, &to, &out));
  return out;
}
tt_tensor* on_cpu(const tt_tensor* t) { return moved(t, TT_CPU); }
tt_tensor* as_reals(const tt_tensor* t) {
  const tt_dtype dtype = tt_tensor_dtype(t);
  tt_tensor* out = (tt_tensor*)t;
  if (dtype == TT_C64 || dtype == TT_C128) OK(tt_view_as_real(c, t, &out));
  return out;
}
int is_integer(tt_dtype d) { return d >= TT_BOOL && d <= TT_I64; }

/* ---- a sample in another form ---- */

Sample with_dtype(const Sample* s, tt_dtype d) {
  Sample out = *s;
  tt_tensor** places[kMaxTensors];
  const int n = tensor_places(&out, places);
  for (int i = 0; i < n; i++) {
    if (tt_tensor_dtype(*places[i]) != TT_F64) continue;
    if (is_integer(d)) OK(tt_mul_f64(c, *places[i], 4, places[i])); /* or all become 0 and 1 */
    *places[i] = cast(*places[i], d);
  }
  return out;
}

static tt_tensor* columns_first(const tt_tensor* t) {
  const int ndim = (int)tt_tensor_ndim(t);
  int64_t reversed[kMaxDims];
  tt_tensor* out;
  for (int d = 0; d < ndim; d++) reversed[d] = ndim - 1 - d;
  OK(tt_permute(c, t, reversed, ndim, &out));
  OK(tt_contiguous(c, out, &out));
  OK(tt_permute(c, out, reversed, ndim, &out));
  return out;
}
/* A copy of t in a part of a larger tensor: its size along dimension d, the slice of it. */
static tt_tensor* inside(const tt_tensor* t, int d, int64_t size, const tt_slice_opts* slice) {
  const tt_zeros_opts dtype = {.set = TT_ZEROS_DTYPE, .dtype = tt_tensor_dtype(t)};
  const int64_t ndim = tt_tensor_ndim(t);
  int64_t shape[kMaxDims];
  tt_tensor* larger;
  tt_tensor* part;
  memcpy(shape, tt_tensor_shape(t), (size_t)ndim * sizeof *shape);
  shape[d] = size;
  OK(tt_zeros(c, shape, ndim, &dtype, &larger));
  OK(tt_slice(c, larger, d, slice, &part));
  OK(tt_copy_(c, part, t));
  return part;
}
tt_tensor* laid_out(const tt_tensor* t, Layout layout) {
  const tt_slice_opts every_second = {.set = TT_SLICE_STEP, .step = 2};
  const tt_slice_opts behind = {.set = TT_SLICE_START, .start = 1};
  const int last = (int)tt_tensor_ndim(t) - 1;
  if (last < 0) return (tt_tensor*)t;
  if (layout == kColumnsFirst) return columns_first(t);
  if (layout == kEverySecond) return inside(t, last, 2 * tt_tensor_shape(t)[last], &every_second);
  return inside(t, 0, tt_tensor_shape(t)[0] + 1, &behind);
}
Sample with_layout(const Sample* s, Layout layout) {
  Sample out = *s;
  tt_tensor** places[kMaxTensors];
  const int n = tensor_places(&out, places);
  for (int i = 0; i < n; i++) *places[i] = laid_out(*places[i], layout);
  return out;
}
/* A device argument is the device of a new tensor, unless the sample has tensors, which decide. */
Sample on_device(const Sample* s, int type) {
  Sample out = *s;
  tt_tensor** places[kMaxTensors];
  const int n = tensor_places(&out, places);
  const int is_new = n == 0 || strcmp(s->row->args[0].name, "size") == 0;
  for (int i = 0; i < n; i++) *places[i] = moved(*places[i], type);
  for (int i = 0; is_new && i < s->row->n_args; i++) {
    if (strncmp(s->row->args[i].type, "Device", 6)) continue;
    out.args[i].tag = TT_VAL_DEVICE;
    out.args[i].device.type = type;
    out.args[i].device.index = 0;
  }
  return out;
}
