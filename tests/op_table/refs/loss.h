/* References of losses. */

/* The sum, or the mean by a divisor, of the losses in *out; nothing changes without a reduction. */
static void reduce_losses(const Inputs* in, Array* out, double divisor) {
  const int64_t reduction = int_arg(in, "reduction", TT_REDUCTION_MEAN);
  double total = 0;
  if (reduction == TT_REDUCTION_NONE) return;
  for (int64_t i = 0; i < out->n; i++) total += out->data[i];
  *out = zero_dim(reduction == TT_REDUCTION_SUM ? total : total / divisor);
}

/* ---- of pairs of elements ---- */

typedef double (*PairLoss)(const Inputs* in, double x, double y);

static double l1(const Inputs* in, double x, double y) {
  (void)in;
  return fabs(x - y);
}
static double squared_error(const Inputs* in, double x, double y) {
  (void)in;
  return (x - y) * (x - y);
}
static double smooth_l1(const Inputs* in, double x, double y) {
  const double distance = fabs(x - y);
  const double beta = number_arg(in, "beta", 1);
  return distance < beta ? distance * distance / 2 / beta : distance - beta / 2;
}
static double huber(const Inputs* in, double x, double y) {
  const double distance = fabs(x - y);
  const double delta = number_arg(in, "delta", 1);
  return distance <= delta ? distance * distance / 2 : delta * (distance - delta / 2);
}
static double binary_cross_entropy(const Inputs* in, double x, double y) {
  (void)in;
  return -y * fmax(log(x), -100) - (1 - y) * fmax(log1p(-x), -100);
}
static double kl_divergence(const Inputs* in, double x, double y) {
  if (flag_arg(in, "log_target")) return exp(y) * (y - x);
  return y == 0 ? 0 : y * (log(y) - x);
}

/* The losses of all pairs, times the weight if there is one. Returns the sum of the weights. */
static double pair_losses(const Inputs* in, Array* out, PairLoss loss) {
  const Array pair[2] = {*tensor(in, "input"), *tensor(in, "target")};
  const Array* weight = tensor(in, "weight");
  double weights = 0;
  *out = broadcast_zeros(pair, 2);
  for (int64_t i = 0; i < out->n; i++) {
    int64_t index[kMaxDims];
    index_of(out, i, index);
    const double x = broadcast_value(&pair[0], index, out->ndim);
    const double y = broadcast_value(&pair[1], index, out->ndim);
    const double factor = weight ? broadcast_value(weight, index, out->ndim) : 1;
    out->data[i] = loss(in, x, y) * factor;
    weights += factor;
  }
  return weights;
}
static int mean_of_pairs(const Inputs* in, Array* out, PairLoss loss) {
  pair_losses(in, out, loss);
  reduce_losses(in, out, (double)out->n);
  return 1;
}
static int ref_l1_loss(const Inputs* in, Array* out) { return mean_of_pairs(in, out, l1); }
static int ref_smooth_l1_loss(const Inputs* in, Array* out) {
  return mean_of_pairs(in, out, smooth_l1);
}
static int ref_huber_loss(const Inputs* in, Array* out) { return mean_of_pairs(in, out, huber); }
static int ref_binary_cross_entropy(const Inputs* in, Array* out) {
  return mean_of_pairs(in, out, binary_cross_entropy);
}
static int ref_mse_loss(const Inputs* in, Array* out) {
  const double weights = pair_losses(in, out, squared_error);
  reduce_losses(in, out, weights);
  return 1;
}
static int ref_kl_div(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const int by_batch = int_arg(in, "reduction", 0) == TT_KLREDUCTION_BATCHMEAN;
  pair_losses(in, out, kl_divergence);
  reduce_losses(in, out, (double)(by_batch ? x->shape[0] : out->n));
  return 1;
}
static int ref_binary_cross_entropy_with_logits(const Inputs* in, Array* out) {
  const Array pair[2] = {*tensor(in, "input"), *tensor(in, "target")};
  const Array* weight = tensor(in, "weight");
  const Array* pos_weight = tensor(in, "pos_weight");
  *out = broadcast_zeros(pair, 2);
  for (int64_t i = 0; i < out->n; i++) {
    int64_t index[kMaxDims];
    index_of(out, i, index);
    const double x = broadcast_value(&pair[0], index, out->ndim);
    const double y = broadcast_value(&pair[1], index, out->ndim);
    const double positive = pos_weight ? broadcast_value(pos_weight, index, out->ndim) : 1;
    out->data[i] = (1 - y) * softplus(x) + positive * y * softplus(-x);
    if (weight) out->data[i] *= broadcast_value(weight, index, out->ndim);
  }
  reduce_losses(in, out, (double)out->n);
  return 1;
}

/* ---- of classes: scores are (C), (N, C) or (N, C, d1, ...) ---- */

typedef struct ClassLoss {
  const Array* weight; /* of each class */
  double smoothing;
  int64_t classes;
  int64_t inner; /* the scores of one position are this far apart */
} ClassLoss;

static double loss_of_class(const ClassLoss* l, const double* scores, int64_t target) {
  double loss = -(1 - l->smoothing) * weight_at(l->weight, target) * scores[target * l->inner];
  for (int64_t k = 0; k < l->classes; k++)
    loss -= l->smoothing / (double)l->classes * weight_at(l->weight, k) * scores[k * l->inner];
  return loss;
}
static double loss_of_probabilities(const ClassLoss* l, const double* scores, const double* p) {
  double loss = 0;
  for (int64_t k = 0; k < l->classes; k++) {
    const double smooth = p[k * l->inner] * (1 - l->smoothing) + l->smoothing / (double)l->classes;
    loss -= smooth * scores[k * l->inner] * weight_at(l->weight, k);
  }
  return loss;
}
static int class_losses(const Inputs* in, Array* out, const Array* scores) {
  const Array* target = tensor(in, "target");
  const int axis = scores->ndim > 1;
  const int64_t ignored = int_arg(in, "ignore_index", -100);
  const ClassLoss l = {
      .weight = tensor(in, "weight"),
      .smoothing = number_arg(in, "label_smoothing", 0),
      .classes = scores->shape[axis],
      .inner = inner_size(scores, axis),
  };
  double weights = 0;
  *out = reduced_zeros(scores, 1u << axis, 0);
  for (int64_t i = 0; i < out->n; i++) {
    const int64_t from = i / l.inner * l.classes * l.inner + i % l.inner;
    if (target->ndim == scores->ndim) {
      out->data[i] = loss_of_probabilities(&l, scores->data + from, target->data + from);
      weights += 1;
    } else if ((int64_t)target->data[i] != ignored) {
      out->data[i] = loss_of_class(&l, scores->data + from, (int64_t)target->data[i]);
      weights += weight_at(l.weight, (int64_t)target->data[i]);
    }
  }
  reduce_losses(in, out, weights);
  return 1;
}
static int ref_nll_loss(const Inputs* in, Array* out) {
  return class_losses(in, out, tensor(in, "input"));
}
static int ref_cross_entropy(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const Array scores = softmax_of(x, x->ndim > 1, 1);
  return class_losses(in, out, &scores);
}

static const Reference kLoss[] = {
    {"l1_loss", .whole = ref_l1_loss},
    {"mse_loss", .whole = ref_mse_loss},
    {"smooth_l1_loss", .whole = ref_smooth_l1_loss},
    {"huber_loss", .whole = ref_huber_loss},
    {"binary_cross_entropy", .whole = ref_binary_cross_entropy},
    {"binary_cross_entropy_with_logits", .whole = ref_binary_cross_entropy_with_logits},
    {"kl_div", .whole = ref_kl_div},
    {"nll_loss", .whole = ref_nll_loss},
    {"cross_entropy", .whole = ref_cross_entropy},
};
