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

/* ---- of several tensors, elementwise with broadcasting ---- */

typedef double (*TermLoss)(const Inputs* in, const double* x);

static int mean_of_terms(const Inputs* in, Array* out, const char* const* names, int n,
                         TermLoss loss) {
  Array operands[3];
  for (int k = 0; k < n; k++) operands[k] = *tensor(in, names[k]);
  *out = broadcast_zeros(operands, n);
  for (int64_t i = 0; i < out->n; i++) {
    int64_t index[kMaxDims];
    double x[3];
    index_of(out, i, index);
    for (int k = 0; k < n; k++) x[k] = broadcast_value(&operands[k], index, out->ndim);
    out->data[i] = loss(in, x);
  }
  reduce_losses(in, out, (double)out->n);
  return 1;
}
static const char* const kPairNames[] = {"input", "target"};
static const char* const kRankingNames[] = {"input1", "input2", "target"};

static double poisson(const Inputs* in, const double* x) {
  double loss = exp(x[0]) - x[1] * x[0];
  if (!int_arg(in, "log_input", 1)) loss = x[0] - x[1] * log(x[0] + number_arg(in, "eps", 1e-8));
  if (flag_arg(in, "full") && x[1] > 1)
    loss += x[1] * log(x[1]) - x[1] + 0.5 * log(2 * 3.141592653589793 * x[1]);
  return loss;
}
static int ref_poisson_nll_loss(const Inputs* in, Array* out) {
  return mean_of_terms(in, out, kPairNames, 2, poisson);
}
static double hinge(const Inputs* in, const double* x) {
  const double margin = fmax(0, number_arg(in, "margin", 1) - x[0]);
  return (x[1] == -1 ? 0 : x[0]) + (x[1] == 1 ? 0 : margin);
}
static int ref_hinge_embedding_loss(const Inputs* in, Array* out) {
  return mean_of_terms(in, out, kPairNames, 2, hinge);
}
static double ranking(const Inputs* in, const double* x) {
  return fmax(0, number_arg(in, "margin", 0) - x[2] * (x[0] - x[1]));
}
static int ref_margin_ranking_loss(const Inputs* in, Array* out) {
  return mean_of_terms(in, out, kRankingNames, 3, ranking);
}
static double soft_margin(const Inputs* in, const double* x) {
  (void)in;
  return log(1 + exp(-x[1] * x[0]));
}
static int ref_soft_margin_loss(const Inputs* in, Array* out) {
  return mean_of_terms(in, out, kPairNames, 2, soft_margin);
}
static int ref_gaussian_nll_loss(const Inputs* in, Array* out) {
  const Array pair[2] = {*tensor(in, "input"), *tensor(in, "target")};
  Array var = *tensor(in, "var");
  const double eps = number_arg(in, "eps", 1e-6);
  if (var.ndim == pair[0].ndim - 1 && var.ndim) var.shape[var.ndim++] = 1;
  *out = broadcast_zeros(pair, 2);
  for (int64_t i = 0; i < out->n; i++) {
    int64_t index[kMaxDims];
    index_of(out, i, index);
    const double v = fmax(eps, broadcast_value(&var, index, out->ndim));
    const double error =
        broadcast_value(&pair[0], index, out->ndim) - broadcast_value(&pair[1], index, out->ndim);
    out->data[i] = 0.5 * (log(v) + error * error / v);
    if (flag_arg(in, "full")) out->data[i] += 0.5 * log(2 * 3.141592653589793);
  }
  reduce_losses(in, out, (double)out->n);
  return 1;
}

/* ---- of vectors ---- */

static int ref_cosine_embedding_loss(const Inputs* in, Array* out) {
  const Array* a = tensor(in, "input1");
  const Array* b = tensor(in, "input2");
  const Array* target = tensor(in, "target");
  const int64_t size = a->shape[a->ndim - 1];
  *out = zeros_like(target);
  for (int64_t i = 0; i < out->n; i++) {
    double dot = 0;
    double squares[2] = {1e-12, 1e-12};
    for (int64_t k = i * size; k < (i + 1) * size; k++) {
      dot += a->data[k] * b->data[k];
      squares[0] += a->data[k] * a->data[k];
      squares[1] += b->data[k] * b->data[k];
    }
    const double cosine = dot / sqrt(squares[0] * squares[1]);
    const double apart = fmax(0, cosine - number_arg(in, "margin", 0));
    if (target->data[i] == 1) out->data[i] = 1 - cosine;
    if (target->data[i] == -1) out->data[i] = apart;
  }
  reduce_losses(in, out, (double)out->n);
  return 1;
}
static double vector_distance(const double* a, const double* b, int64_t size, double p,
                              double eps) {
  double sum = 0;
  for (int64_t k = 0; k < size; k++) sum += pow(fabs(a[k] - b[k] + eps), p);
  return pow(sum, 1 / p);
}
static int ref_triplet_margin_loss(const Inputs* in, Array* out) {
  const Array* a = tensor(in, "anchor");
  const Array* near = tensor(in, "positive");
  const Array* far = tensor(in, "negative");
  const int64_t size = a->shape[a->ndim - 1];
  const double p = number_arg(in, "p", 2);
  const double eps = number_arg(in, "eps", 1e-6);
  *out = new_array(a->shape, a->ndim - 1);
  for (int64_t i = 0; i < out->n; i++) {
    const int64_t at = i * size;
    const double to_near = vector_distance(a->data + at, near->data + at, size, p, eps);
    double to_far = vector_distance(a->data + at, far->data + at, size, p, eps);
    if (flag_arg(in, "swap"))
      to_far = fmin(to_far, vector_distance(near->data + at, far->data + at, size, p, eps));
    out->data[i] = fmax(0, number_arg(in, "margin", 1) + to_near - to_far);
  }
  reduce_losses(in, out, (double)out->n);
  return 1;
}

/* ---- of rows of scores ---- */

static int ref_multi_margin_loss(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const Array* target = tensor(in, "target");
  const Array* weight = tensor(in, "weight");
  const int64_t classes = x->shape[x->ndim - 1];
  *out = zeros_like(target);
  for (int64_t i = 0; i < out->n; i++) {
    const double* scores = x->data + i * classes;
    const int64_t own = (int64_t)target->data[i];
    for (int64_t c = 0; c < classes; c++) {
      const double term = fmax(0, number_arg(in, "margin", 1) - scores[own] + scores[c]);
      if (c != own) out->data[i] += pow(term, number_arg(in, "p", 1)) * weight_at(weight, own);
    }
    out->data[i] /= (double)classes;
  }
  reduce_losses(in, out, (double)out->n);
  return 1;
}
static int is_label(const double* labels, int64_t n, int64_t c) {
  for (int64_t j = 0; j < n && labels[j] >= 0; j++)
    if ((int64_t)labels[j] == c) return 1;
  return 0;
}
static int ref_multilabel_margin_loss(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const Array* target = tensor(in, "target");
  const int64_t classes = x->shape[x->ndim - 1];
  *out = new_array(x->shape, x->ndim - 1);
  for (int64_t i = 0; i < out->n; i++) {
    const double* scores = x->data + i * classes;
    const double* labels = target->data + i * classes;
    for (int64_t j = 0; j < classes && labels[j] >= 0; j++)
      for (int64_t c = 0; c < classes; c++)
        if (!is_label(labels, classes, c))
          out->data[i] += fmax(0, 1 - scores[(int64_t)labels[j]] + scores[c]);
    out->data[i] /= (double)classes;
  }
  reduce_losses(in, out, (double)out->n);
  return 1;
}
static int ref_multilabel_soft_margin_loss(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const Array* target = tensor(in, "target");
  const Array* weight = tensor(in, "weight");
  const int64_t classes = x->shape[x->ndim - 1];
  *out = new_array(x->shape, x->ndim - 1);
  for (int64_t i = 0; i < x->n; i++) {
    const double y = target->data[i];
    const double loss = (1 - y) * softplus(x->data[i]) + y * softplus(-x->data[i]);
    out->data[i / classes] += loss * weight_at(weight, i % classes) / (double)classes;
  }
  reduce_losses(in, out, (double)out->n);
  return 1;
}
static int ref_linear_cross_entropy(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const Array* weight = tensor(in, "linear_weight");
  const Array* bias = tensor(in, "linear_bias");
  const int64_t size = weight->shape[weight->ndim - 1];
  const int64_t features = weight->n / size;
  int64_t shape[kMaxDims];
  int ndim = 0;
  if (x->ndim == 2) shape[ndim++] = x->shape[0];
  for (int d = 0; d < weight->ndim - 1; d++) shape[ndim++] = weight->shape[d];
  Array scores = new_array(shape, ndim);
  for (int64_t i = 0; i < scores.n; i++) {
    scores.data[i] = bias_at(bias, i % features);
    for (int64_t k = 0; k < size; k++)
      scores.data[i] += x->data[i / features * size + k] * weight->data[i % features * size + k];
  }
  scores = softmax_of(&scores, ndim > 1, 1);
  return class_losses(in, out, &scores);
}

/* ---- of sequences: the probability of a target, by its definition as a sum over all paths ---- */

typedef struct Sequence {
  const Array* x; /* (T, N, C) */
  int64_t batch, sample, classes, time, labels, blank;
  const double* target;
} Sequence;

/* The probability of the classes from time t on, if `found` labels have been seen and `last` was
   the class before. */
static double path_probability(const Sequence* s, int64_t t, int64_t found, int64_t last) {
  if (t == s->time) return found == s->labels;
  double total = 0;
  for (int64_t c = 0; c < s->classes; c++) {
    const int is_new = c != s->blank && c != last;
    if (is_new && (found == s->labels || (int64_t)s->target[found] != c)) continue;
    const double p = exp(s->x->data[(t * s->batch + s->sample) * s->classes + c]);
    total += p * path_probability(s, t + 1, found + is_new, c);
  }
  return total;
}
static int ref_ctc_loss(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "log_probs");
  const Array* targets = tensor(in, "targets");
  const Array* times = tensor(in, "input_lengths");
  const Array* lengths = tensor(in, "target_lengths");
  Sequence s = {
      .x = x,
      .batch = x->ndim == 3 ? x->shape[1] : 1,
      .classes = x->shape[x->ndim - 1],
      .blank = int_arg(in, "blank", 0),
  };
  int64_t from = 0;
  *out = zeros_like(lengths);
  for (s.sample = 0; s.sample < s.batch; s.sample++) {
    s.time = (int64_t)times->data[s.sample];
    s.labels = (int64_t)lengths->data[s.sample];
    s.target = targets->data + from;
    from += targets->ndim == 2 ? targets->shape[1] : s.labels;
    double loss = -log(path_probability(&s, 0, 0, -1));
    if (isinf(loss) && flag_arg(in, "zero_infinity")) loss = 0;
    if (int_arg(in, "reduction", TT_REDUCTION_MEAN) == TT_REDUCTION_MEAN)
      loss /= fmax(1, (double)s.labels);
    out->data[s.sample] = loss;
  }
  reduce_losses(in, out, (double)out->n);
  return 1;
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
    {"poisson_nll_loss", .whole = ref_poisson_nll_loss},
    {"gaussian_nll_loss", .whole = ref_gaussian_nll_loss},
    {"hinge_embedding_loss", .whole = ref_hinge_embedding_loss},
    {"cosine_embedding_loss", .whole = ref_cosine_embedding_loss},
    {"margin_ranking_loss", .whole = ref_margin_ranking_loss},
    {"soft_margin_loss", .whole = ref_soft_margin_loss},
    {"triplet_margin_loss", .whole = ref_triplet_margin_loss},
    {"multi_margin_loss", .whole = ref_multi_margin_loss},
    {"multilabel_margin_loss", .whole = ref_multilabel_margin_loss},
    {"multilabel_soft_margin_loss", .whole = ref_multilabel_soft_margin_loss},
    {"linear_cross_entropy", .whole = ref_linear_cross_entropy},
    {"ctc_loss", .whole = ref_ctc_loss},
};
