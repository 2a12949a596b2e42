/* References of cumulative sums and products. */

static Array scanned(const Inputs* in, double (*combine)(double, double)) {
  const Array* x = tensor(in, "self");
  const int64_t d = dim_arg(in, "dim", 0, x->ndim);
  int64_t index[kMaxDims];
  Array out = copy_of(x);
  for (int64_t i = 0; x->ndim && i < x->n; i++) {
    index_of(x, i, index);
    if (index[d] == 0) continue;
    index[d]--;
    out.data[i] = combine(out.data[i], out.data[ravel(&out, index)]);
  }
  return out;
}
static double plus(double a, double b) { return a + b; }
static int ref_cumsum(const Inputs* in, Array* out) {
  *out = scanned(in, plus);
  return 1;
}
static int ref_cumprod(const Inputs* in, Array* out) {
  *out = scanned(in, ref_mul);
  return 1;
}

static const Reference kScan[] = {
    {"cumsum", .whole = ref_cumsum},
    {"cumprod", .whole = ref_cumprod},
};
