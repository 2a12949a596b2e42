/* Part of refs.c: references of activations and of losses of pairs of elements. */

/* ---- activations ---- */

#define UNUSED_BM (void)b, (void)m
static double f_hardtanh(const Inputs* in, double a, double b, double m) {
  const double lo = number_arg(in, "min_val", -1);
  const double hi = number_arg(in, "max_val", 1);
  UNUSED_BM;
  return a < lo ? lo : a > hi ? hi : a;
}
static double f_relu6(const Inputs* in, double a, double b, double m) {
  (void)in;
  UNUSED_BM;
  return a < 0 ? 0 : a > 6 ? 6 : a;
}
static double f_leaky_relu(const Inputs* in, double a, double b, double m) {
  UNUSED_BM;
  return a > 0 ? a : a * number_arg(in, "negative_slope", 0.01);
}
static double f_elu(const Inputs* in, double a, double b, double m) {
  UNUSED_BM;
  return a > 0 ? a : number_arg(in, "alpha", 1) * expm1(a);
}
/* In long double: the tail magnifies what its argument rounds off. */
static double f_gelu(const Inputs* in, double a, double b, double m) {
  const long double x = a;
  UNUSED_BM;
  if (int_arg(in, "approximate", 0))
    return (double)(x / (1 + expl(-2 * sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x))));
  return (double)(x * 0.5L * erfcl(-x / sqrtl(2)));
}
static double f_softsign(const Inputs* in, double a, double b, double m) {
  (void)in;
  UNUSED_BM;
  return a / (1 + fabs(a));
}
static double f_silu(const Inputs* in, double a, double b, double m) {
  (void)in;
  UNUSED_BM;
  return a / (1 + exp(-a));
}
static double softplus(double a) { return a > 0 ? a + log1p(exp(-a)) : log1p(exp(a)); }
static double f_mish(const Inputs* in, double a, double b, double m) {
  (void)in;
  UNUSED_BM;
  return a * tanh(softplus(a));
}
static double f_softplus(const Inputs* in, double a, double b, double m) {
  const double beta = number_arg(in, "beta", 1);
  UNUSED_BM;
  return a * beta > number_arg(in, "threshold", 20) ? a : softplus(a * beta) / beta;
}
static double f_logsigmoid(const Inputs* in, double a, double b, double m) {
  (void)in;
  UNUSED_BM;
  return -softplus(-a);
}
static double f_hardsigmoid(const Inputs* in, double a, double b, double m) {
  (void)in;
  UNUSED_BM;
  return a <= -3 ? 0 : a >= 3 ? 1 : (a + 3) / 6;
}
static double f_hardswish(const Inputs* in, double a, double b, double m) {
  return a * f_hardsigmoid(in, a, b, m);
}

static int r_glu(const Inputs* in, Arr* out) {
  const Arr* x = tensor(in, "input");
  const int64_t d = wrap(int_arg(in, "dim", -1), x->ndim);
  int64_t shape[kMaxDims], i, idx[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[d] /= 2;
  *out = array(shape, x->ndim);
  for (i = 0; i < out->n; i++) {
    double a;
    unravel(i, shape, x->ndim, idx);
    a = x->v[ravel(x, idx)];
    idx[d] += shape[d];
    out->v[i] = a / (1 + exp(-x->v[ravel(x, idx)]));
  }
  return 1;
}

/* ---- losses ---- */

typedef double (*PairLoss)(const Inputs* in, double x, double y);

static double p_l1(const Inputs* in, double x, double y) {
  (void)in;
  return fabs(x - y);
}
static double p_mse(const Inputs* in, double x, double y) {
  (void)in;
  return (x - y) * (x - y);
}
static double p_smooth_l1(const Inputs* in, double x, double y) {
  const double d = fabs(x - y);
  const double beta = number_arg(in, "beta", 1);
  return d < beta ? d * d / 2 / beta : d - beta / 2;
}
static double p_huber(const Inputs* in, double x, double y) {
  const double d = fabs(x - y);
  const double delta = number_arg(in, "delta", 1);
  return d <= delta ? d * d / 2 : delta * (d - delta / 2);
}
static double p_bce(const Inputs* in, double x, double y) {
  (void)in;
  return -y * fmax(log(x), -100) - (1 - y) * fmax(log1p(-x), -100);
}
static double p_kl_div(const Inputs* in, double x, double y) {
  if (int_arg(in, "log_target", 0)) return exp(y) * (y - x);
  return y == 0 ? 0 : y * (log(y) - x);
}

/* mean_of_weights: the mean divides by the sum of the weights, not by their number. */
static int pair_loss(const Inputs* in, Arr* out, PairLoss f, int mean_of_weights) {
  const Arr* x = tensor(in, "input");
  const Arr* w = has(in, "weight") ? tensor(in, "weight") : NULL;
  const Arr* pos = has(in, "pos_weight") ? tensor(in, "pos_weight") : NULL;
  const int logits = !f;
  const int reduction = (int)int_arg(in, "reduction", TT_REDUCTION_MEAN);
  Arr both[2] = {*x, *tensor(in, "target")};
  double total = 0, weights = 0;
  int64_t i, idx[kMaxDims];
  *out = broadcast_shape(both, 2);
  for (i = 0; i < out->n; i++) {
    double a, y, factor;
    unravel(i, out->shape, out->ndim, idx);
    a = x->v[broadcast_at(x, idx, out->ndim)];
    y = both[1].v[broadcast_at(&both[1], idx, out->ndim)];
    factor = w ? w->v[broadcast_at(w, idx, out->ndim)] : 1;
    if (logits)
      out->v[i] = (1 - y) * softplus(a) +
                  (pos ? pos->v[broadcast_at(pos, idx, out->ndim)] : 1) * y * softplus(-a);
    else out->v[i] = f(in, a, y);
    out->v[i] *= factor;
    total += out->v[i];
    weights += mean_of_weights ? factor : 1;
  }
  if (reduction == TT_REDUCTION_NONE) return 1;
  if (reduction == 3) weights = (double)x->shape[0];
  *out = zero_dim(reduction == TT_REDUCTION_SUM ? total : total / weights);
  return 1;
}
static int r_l1_loss(const Inputs* in, Arr* out) { return pair_loss(in, out, p_l1, 0); }
static int r_mse_loss(const Inputs* in, Arr* out) { return pair_loss(in, out, p_mse, 1); }
static int r_smooth_l1_loss(const Inputs* in, Arr* out) {
  return pair_loss(in, out, p_smooth_l1, 0);
}
static int r_huber_loss(const Inputs* in, Arr* out) { return pair_loss(in, out, p_huber, 0); }
static int r_bce(const Inputs* in, Arr* out) { return pair_loss(in, out, p_bce, 0); }
static int r_bce_logits(const Inputs* in, Arr* out) { return pair_loss(in, out, NULL, 0); }
static int r_kl_div(const Inputs* in, Arr* out) { return pair_loss(in, out, p_kl_div, 0); }

/* ---- binary ---- */

static double f_fmod(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return fmod(a, b);
}
static double f_remainder(const Inputs* in, double a, double b, double m) {
  const double r = fmod(a, b);
  (void)in;
  (void)m;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static double f_floor_divide(const Inputs* in, double a, double b, double m) {
  const double r = fmod(a, b);
  const double q = a / b;
  (void)in;
  (void)m;
  if (b == 0 || isnan(r)) return b == 0 ? q : NAN;
  if (r != 0 && (r < 0) != (b < 0)) return floor((a - r) / b - 1 + 0.5);
  return (a - r) / b == 0 ? copysign(0, q) : floor((a - r) / b + 0.5);
}
static double f_atan2(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return atan2(a, b);
}
static double f_logical_and(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return a != 0 && b != 0;
}
static double f_logical_or(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return a != 0 || b != 0;
}
static double f_logical_xor(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return (a != 0) != (b != 0);
}
static double f_logical_not(const Inputs* in, double a, double b, double m) {
  (void)in;
  UNUSED_BM;
  return a == 0;
}

/* ---- bits ---- */

static tt_dtype bits_dtype(const Inputs* in) { return tt_tensor_dtype(in->sample->args[0].tensor); }
static double f_bitwise_and(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return (double)((int64_t)a & (int64_t)b);
}
static double f_bitwise_or(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return (double)((int64_t)a | (int64_t)b);
}
static double f_bitwise_xor(const Inputs* in, double a, double b, double m) {
  (void)in;
  (void)m;
  return (double)((int64_t)a ^ (int64_t)b);
}
static double f_bitwise_not(const Inputs* in, double a, double b, double m) {
  const tt_dtype d = bits_dtype(in);
  UNUSED_BM;
  return d == TT_BOOL ? a == 0 : d == TT_U8 ? 255 - a : (double)~(int64_t)a;
}
static double f_left_shift(const Inputs* in, double a, double b, double m) {
  const tt_dtype d = bits_dtype(in);
  const int64_t width = 8 * tt_dtype_size(d);
  const double r = ldexp(a, (int)b);
  (void)m;
  return b < 0 || b >= (double)width ? 0 : d == TT_U8 ? fmod(r, 256) : r;
}
static double f_right_shift(const Inputs* in, double a, double b, double m) {
  const int64_t width = 8 * tt_dtype_size(bits_dtype(in));
  (void)m;
  return b < 0 || b >= (double)width ? (a < 0 ? -1 : 0) : floor(ldexp(a, -(int)b));
}

#define ACT_REFS                                                                                \
  {"fmod", f_fmod, 0, 1}, {"remainder", f_remainder, 0, 1},                                     \
      {"floor_divide", f_floor_divide, 0, 1}, {"atan2", f_atan2, 0, 0},                         \
      {"logical_and", f_logical_and, 0, 1}, {"logical_or", f_logical_or, 0, 1},                 \
      {"logical_xor", f_logical_xor, 0, 1}, {"logical_not", f_logical_not, 0, 1},               \
      {"bitwise_and", f_bitwise_and, 0, 1}, {"bitwise_or", f_bitwise_or, 0, 1},                 \
      {"bitwise_xor", f_bitwise_xor, 0, 1}, {"bitwise_not", f_bitwise_not, 0, 1},               \
      {"bitwise_left_shift", f_left_shift, 0, 1}, {"bitwise_right_shift", f_right_shift, 0, 1}, \
      ACT_REFS_FLOAT
#define ACT_REFS_FLOAT                                                                          \
  {"hardtanh", f_hardtanh, 0, 1}, {"relu6", f_relu6, 0, 1}, {"leaky_relu", f_leaky_relu, 0, 1}, \
      {"elu", f_elu, 0, 0}, {"gelu", f_gelu, 0, 0}, {"silu", f_silu, 0, 0},                     \
      {"softsign", f_softsign, 0, 0}, {"mish", f_mish, 0, 0}, {"softplus", f_softplus, 0, 0},   \
      {"logsigmoid", f_logsigmoid, 0, 0}, {"hardsigmoid", f_hardsigmoid, 0, 1},                 \
      {"hardswish", f_hardswish, 0, 1}, {"glu", 0, r_glu, 0}, {"l1_loss", 0, r_l1_loss, 0},     \
      {"mse_loss", 0, r_mse_loss, 0}, {"smooth_l1_loss", 0, r_smooth_l1_loss, 0},               \
      {"huber_loss", 0, r_huber_loss, 0}, {"binary_cross_entropy", 0, r_bce, 0},                \
      {"binary_cross_entropy_with_logits", 0, r_bce_logits, 0}, {                               \
    "kl_div", 0, r_kl_div, 0                                                                    \
  }
