/* References of norms and scans. Included by op_refs.c. */

static int r_cumprod(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const int64_t d = wrap(int_arg(in, "dim", 0), x->ndim);
  int64_t i, idx[kMaxDims];
  *out = same_order(x, x->shape, x->ndim);
  for (i = 0; x->ndim && i < x->n; i++) {
    unravel(i, x->shape, x->ndim, idx);
    if (idx[d]-- > 0) out->v[i] *= out->v[ravel(out, idx)];
  }
  return 1;
}

static int r_norm(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "self");
  const unsigned mask = reduced_dims(in, x);
  const double p = number_arg(in, "p", 2);
  int64_t i;
  *out = reduced_shape(x, mask, (int)int_arg(in, "keepdim", 0));
  for (i = 0; i < out->n; i++) out->v[i] = p == -INFINITY ? INFINITY : 0;
  for (i = 0; i < x->n; i++) {
    double *o = &out->v[reduced_at(x, i, mask)], a = fabs(x->v[i]);
    if (isinf(p))
      *o = isnan(a) || isnan(*o) ? NAN : p > 0 ? fmax(*o, a) : fmin(*o, a);
    else
      *o += p == 0 ? a != 0 : pow(a, p);
  }
  for (i = 0; i < out->n; i++)
    if (!isinf(p) && p != 0) out->v[i] = pow(out->v[i], 1 / p);
  return 1;
}

static int r_argmin(const Inputs* in, Arr* outs) {
  Arr both[2];
  Inputs turned = *in;
  Arr x = *tensor(in, "self");
  int64_t i;
  x = same_order(&x, x.shape, x.ndim);
  for (i = 0; i < x.n; i++) x.v[i] = -x.v[i];
  turned.t[row_arg(in->sample->row, "self")] = x;
  extremes(&turned, &both[0], &both[1]);
  return outs[0] = both[1], 1;
}

#define FOLD_REFS {"cumprod", 0, r_cumprod, 0}, {"norm", 0, r_norm, 0}, {"argmin", 0, r_argmin, 1},
