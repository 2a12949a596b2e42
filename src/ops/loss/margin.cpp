// Losses with a margin, and the likelihoods of Poisson and normal distributions. Each composes
// differentiable operators.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"
#include "ops/loss/dtype.h"

namespace TT_NS::impl {

// ---- shared ----

// The dtype of operands that may be integers, whose losses are float32.
static LossDtype real_loss(Operands operands, const char* arg) {
  const Dtype common = result_type(operands);
  if (is_complex(common))
    fail_arg(TT_NOT_IMPLEMENTED, arg, "{} is {}: must be real", arg, fmt(common));
  return LossDtype(is_float(common) ? common : Dtype::kF32);
}
static TensorRef at_least_zero(const Tensor& t) {
  const Scalar zero(0);
  return op::clamp(t, &zero);
}
// 0 also where t is nan, as in PyTorch.
static TensorRef positive_part(const Tensor& t) {
  return op::masked_fill(t, *op::logical_not(*op::gt(t, Scalar(0))), Scalar(0));
}
static int64_t classes_of(const Tensor& input) { return input.ndim ? input.size(-1) : 1; }

// ---- likelihoods ----

// Stirling's approximation of log(target!), 0 where target <= 1.
static TensorRef log_factorial(const Tensor& target) {
  constexpr double kTwoPi = 6.283185307179586;
  TensorRef leading = op::sub(*op::mul(target, *op::log(target)), target);
  TensorRef rest = op::mul(*op::log(*op::mul(target, Scalar(kTwoPi))), Scalar(0.5));
  return op::masked_fill(*op::add(*leading, *rest), *op::le(target, Scalar(1)), Scalar(0));
}
TensorRef poisson_nll_loss(Call, const Tensor& input, const Tensor& target, bool log_input,
                           bool full, double eps, int64_t reduction) {
  const LossDtype d = real_loss({input, target}, "input");
  TensorRef x = d.cast(input);
  TensorRef y = d.cast(target);
  TensorRef loss = log_input ? op::sub(*op::exp(*x), *op::mul(*y, *x))
                             : op::sub(*x, *op::mul(*y, *op::log(*op::add(*x, Scalar(eps)))));
  if (full) loss = op::add(*loss, *log_factorial(*y));
  return d.reduced(std::move(loss), reduction);
}

// Returns var in a shape that broadcasts to input: it is a number, has the shape of input, lacks
// the last dimension, or has one dimension of size 1 instead.
static TensorRef shaped_var(const Tensor& var, const Tensor& input) {
  if (var.ndim == 0 || same(var.sizes(), input.sizes())) return TensorRef::share(&var);
  if (input.ndim && same(var.sizes(), input.sizes().slice(0, input.ndim - 1)))
    return op::unsqueeze(var, -1);
  int64_t different = 0;
  if (var.ndim == input.ndim)
    for (int64_t k = 0; k < var.ndim; k++)
      if (var.size(k) != input.size(k)) different += var.size(k) == 1 ? 1 : 2;
  if (different != 1)
    fail_arg(TT_SHAPE, "var",
             "var is {}, input is {}: must have the shape of input, lack its last dimension, or "
             "have size 1 in one dimension",
             var.sizes(), input.sizes());
  return TensorRef::share(&var);
}
static void check_not_negative(const Tensor& var) {
  if (var.numel == 0 || var.device.type == TT_META) return;
  MaskGuard no_grad(bit(kKeyAutograd));
  constexpr const char* kNegative = "var has negative elements: variances must be at least 0";
  TensorRef negative = op::any(*op::lt(var, Scalar(0)));
  if (checks_later(var))
    return require(*op::logical_not(*negative), TT_INVALID_ARG, "var", kNegative);
  if (read_scalar(*negative).i) fail_arg(TT_INVALID_ARG, "var", "{}", kNegative);
}
// max(var, eps), with the gradient of var.
static TensorRef bounded_var(const Tensor& var, double eps) {
  const Scalar least(eps);
  TensorRef value = op::detach(var);
  return op::add(var, *op::sub(*op::clamp(*value, &least), *value));
}
TensorRef gaussian_nll_loss(Call, const Tensor& input, const Tensor& target, const Tensor& var,
                            bool full, double eps, int64_t reduction) {
  constexpr double kHalfLogTwoPi = 0.9189385332046727;
  if (!(eps > 0)) fail_arg(TT_INVALID_ARG, "eps", "eps is {}: must be greater than 0", eps);
  const LossDtype d = floating_loss(input, target);
  TensorRef shaped = shaped_var(var, input);
  check_not_negative(var);
  TensorRef v = bounded_var(*d.cast(*shaped), eps);
  TensorRef error = op::square(*op::sub(*d.cast(input), *d.cast(target)));
  TensorRef loss = op::mul(*op::add(*op::log(*v), *op::div_true(*error, *v)), Scalar(0.5));
  if (full) loss = op::add(*loss, Scalar(kHalfLogTwoPi));
  return d.reduced(std::move(loss), reduction);
}

// ---- targets of 1 and -1 ----

// Terms for targets that are not -1 and for those that are not 1; 0 elsewhere.
static TensorRef by_sign(const Tensor& target, const Tensor& positive, const Tensor& negative) {
  TensorRef p = op::masked_fill(positive, *op::eq(target, Scalar(-1)), Scalar(0));
  TensorRef n = op::masked_fill(negative, *op::eq(target, Scalar(1)), Scalar(0));
  return op::add(*p, *n);
}

TensorRef hinge_embedding_loss(Call, const Tensor& input, const Tensor& target, double margin,
                               int64_t reduction) {
  const LossDtype d = floating_loss(input, target);
  const Shape shape = broadcast_shapes(input.sizes(), target.sizes(), "input", "target");
  TensorRef x = op::expand(*d.cast(input), shape);
  return d.reduced(by_sign(target, *x, *at_least_zero(*op::rsub(*x, Scalar(margin)))), reduction);
}

TensorRef cosine_embedding_loss(Call, const Tensor& input1, const Tensor& input2,
                                const Tensor& target, double margin, int64_t reduction) {
  constexpr double kEpsilon = 1e-12;  // of squared lengths
  if (target.ndim > 1 || input1.ndim != target.ndim + 1 || input2.ndim != target.ndim + 1)
    fail_arg(
        TT_SHAPE, "target",
        "target is {}, input1 is {}, input2 is {}: must be (N), (N, D), (N, D) or (), (D), (D)",
        target.sizes(), input1.sizes(), input2.sizes());
  const LossDtype d = real_loss({input1, input2, target}, "input1");
  TensorRef a = d.cast(input1);
  TensorRef b = d.cast(input2);
  const int64_t last[1] = {-1};
  auto dot = [&](const Tensor& x, const Tensor& y) { return op::sum_dim(*op::mul(x, y), last); };
  auto square = [&](const Tensor& x) { return op::add(*dot(x, x), Scalar(kEpsilon)); };
  TensorRef cosine = op::div_true(*dot(*a, *b), *op::sqrt(*op::mul(*square(*a), *square(*b))));
  const Shape shape = broadcast_shapes(cosine->sizes(), target.sizes(), "input1", "target");
  cosine = op::expand(*cosine, shape);
  TensorRef same_side =
      op::masked_fill(*op::rsub(*cosine, Scalar(1)), *op::ne(target, Scalar(1)), Scalar(0));
  TensorRef apart = op::masked_fill(*at_least_zero(*op::sub(*cosine, Scalar(margin))),
                                    *op::ne(target, Scalar(-1)), Scalar(0));
  return d.reduced(op::add(*same_side, *apart), reduction);
}

TensorRef margin_ranking_loss(Call, const Tensor& input1, const Tensor& input2,
                              const Tensor& target, double margin, int64_t reduction) {
  if (input1.ndim != input2.ndim || input1.ndim != target.ndim)
    fail_arg(TT_SHAPE, "target",
             "input1 is {}, input2 is {}, target is {}: must have equal numbers of dimensions",
             input1.sizes(), input2.sizes(), target.sizes());
  const LossDtype d = real_loss({input1, input2, target}, "input1");
  const bool integers = category(result_type({input1, input2, target})) < 2;
  auto operand = [&](const Tensor& t) {  // as in PyTorch, integers wrap around
    return integers && t.dtype != Dtype::kBool ? TensorRef::share(&t) : d.cast(t);
  };
  TensorRef difference = op::sub(*operand(input2), *operand(input1));
  TensorRef loss = op::add(*d.cast(*op::mul(*operand(target), *difference)), Scalar(margin));
  return d.reduced(at_least_zero(*loss), reduction);
}

TensorRef log1p_exp(Call, const Tensor& self) {
  MaskGuard no_grad(bit(kKeyAutograd));
  return op::log1p(*op::exp(self));
}
TensorRef soft_margin_loss(Call, const Tensor& input, const Tensor& target, int64_t reduction) {
  const LossDtype d = floating_loss(input, target);
  TensorRef product = op::mul(*op::neg(*d.cast(target)), *d.cast(input));
  return d.reduced(op::log1p_exp(*product), reduction);
}

// ---- triplets ----

TensorRef triplet_margin_loss(Call, const Tensor& anchor, const Tensor& positive,
                              const Tensor& negative, double margin, double p, double eps,
                              bool swap, int64_t reduction) {
  if (anchor.ndim != positive.ndim || anchor.ndim != negative.ndim)
    fail_arg(TT_SHAPE, "anchor",
             "anchor is {}, positive is {}, negative is {}: must have equal numbers of dimensions",
             anchor.sizes(), positive.sizes(), negative.sizes());
  if (!(margin > 0))
    fail_arg(TT_INVALID_ARG, "margin", "margin is {}: must be greater than 0", margin);
  const Dtype common = result_type({anchor, positive, negative});
  const LossDtype d(is_differentiable(common) ? common : Dtype::kF32);
  auto operand = [&](const Tensor& t) {  // as in PyTorch, differences of integers wrap around
    return category(common) == 1 && t.dtype == common ? TensorRef::share(&t) : d.cast(t);
  };
  TensorRef a = operand(anchor);
  TensorRef near = operand(positive);
  TensorRef far = operand(negative);
  TensorRef to_near = op::pairwise_distance(*a, *near, p, eps);
  TensorRef to_far = op::pairwise_distance(*a, *far, p, eps);
  if (swap) to_far = op::minimum(*to_far, *op::pairwise_distance(*near, *far, p, eps));
  const LossDtype distance(real_of(d.out));
  TensorRef loss = op::add(*op::sub(*to_near, *to_far), Scalar(margin));
  return distance.reduced(at_least_zero(*loss), reduction);
}

// ---- margins between classes ----

static void check_scores(const Tensor& input) {
  if (!is_float(input.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}: must be floating", fmt(input.dtype));
  if (input.ndim > 2 || classes_of(input) == 0)
    fail_arg(TT_SHAPE, "input", "input is {}: must be (C) or (N, C), where C is not 0",
             input.sizes());
}
static void check_class_weight(const Tensor* weight, const Tensor& input) {
  if (weight && (weight->ndim != 1 || weight->numel != classes_of(input)))
    fail_arg(TT_SHAPE, "weight", "weight is {}: must be [{}], one factor per class",
             weight->sizes(), classes_of(input));
}

TensorRef multi_margin_loss(Call, const Tensor& input, const Tensor& target, int64_t p,
                            double margin, const Tensor* weight, int64_t reduction) {
  check_scores(input);
  check_class_weight(weight, input);
  if (p != 1 && p != 2) fail_arg(TT_INVALID_ARG, "p", "p is {}: must be 1 or 2", p);
  const int64_t classes = classes_of(input);
  const int64_t rows = input.ndim == 2 ? input.size(0) : 1;
  if (target.ndim > 1 || target.numel != rows)
    fail_arg(TT_SHAPE, "target", "target is {}, input is {}: must have {} elements", target.sizes(),
             input.sizes(), rows);
  if (target.dtype != Dtype::kI64)
    fail_arg(TT_DTYPE, "target", "target is {}: must be int64", fmt(target.dtype));
  const LossDtype d(input.dtype);
  const int64_t matrix[2] = {rows, classes};
  const int64_t column[2] = {rows, 1};
  TensorRef x = op::reshape(*d.cast(input), matrix);
  TensorRef index = op::reshape(target, column);
  TensorRef own = op::gather(*x, 1, *index);
  TensorRef terms = positive_part(*op::add(*op::sub(*x, *own), Scalar(margin)));
  if (p == 2) terms = op::square(*terms);
  if (weight) {
    const int64_t flat[1] = {rows};
    TensorRef factor = op::index_select(*d.cast(*weight), 0, *op::reshape(target, flat));
    terms = op::mul(*terms, *op::reshape(*factor, column));
  }
  const int64_t last[1] = {1};
  TensorRef loss = op::sum_dim(*op::scatter_fill(*terms, 1, *index, Scalar(0)), last);
  loss = op::div(*loss, Scalar(classes));
  return d.reduced(op::reshape(*loss, target.sizes()), reduction);
}

// The classes of a row of targets end before the first negative one.
TensorRef multilabel_margin_loss(Call, const Tensor& input, const Tensor& target,
                                 int64_t reduction) {
  check_scores(input);
  if (!same(input.sizes(), target.sizes()))
    fail_arg(TT_SHAPE, "target", "target is {}, input is {}: must be equal", target.sizes(),
             input.sizes());
  if (target.dtype != Dtype::kI64)
    fail_arg(TT_DTYPE, "target", "target is {}: must be int64", fmt(target.dtype));
  const int64_t classes = classes_of(input);
  check_indices(target, "target", -1, classes);
  const LossDtype d(input.dtype);
  const int64_t matrix[2] = {input.ndim == 2 ? input.size(0) : 1, classes};
  TensorRef x = op::reshape(*d.cast(input), matrix);
  TensorRef t = op::reshape(target, matrix);
  TensorRef given = op::eq(*op::cumsum(*op::lt(*t, Scalar(0)), 1), Scalar(0));
  TensorRef index = op::masked_fill(*t, *op::logical_not(*given), Scalar(0));
  TensorRef hits = op::scatter_add(*op::zeros(matrix, Dtype::kI64, input.device), 1, *index,
                                   *op::to_dtype(*given, Dtype::kI64));
  TensorRef other = op::eq(*hits, Scalar(0));
  // [row][class of the target][other class]
  TensorRef own = op::unsqueeze(*op::gather(*x, 1, *index), 2);
  TensorRef terms = positive_part(*op::add(*op::sub(*op::unsqueeze(*x, 1), *own), Scalar(1)));
  TensorRef counts = op::logical_and(*op::unsqueeze(*given, 2), *op::unsqueeze(*other, 1));
  terms = op::masked_fill(*terms, *op::logical_not(*counts), Scalar(0));
  const int64_t both[2] = {1, 2};
  TensorRef loss = op::div(*op::sum_dim(*terms, both), Scalar(classes));
  if (input.ndim < 2) loss = op::reshape(*loss, {});
  return d.reduced(std::move(loss), reduction);
}

TensorRef multilabel_soft_margin_loss(Call, const Tensor& input, const Tensor& target,
                                      const Tensor* weight, int64_t reduction) {
  if (input.ndim == 0)
    fail_arg(TT_SHAPE, "input", "input is 0-dim: must have a dimension of classes");
  const LossDtype d = floating_loss(input, target);
  TensorRef x = d.cast(input);
  TensorRef y = d.cast(target);
  TensorRef hit = op::mul(*y, *op::logsigmoid(*x));
  TensorRef miss = op::mul(*op::rsub(*y, Scalar(1)), *op::logsigmoid(*op::neg(*x)));
  TensorRef loss = d.weighted(op::neg(*op::add(*hit, *miss)), weight);
  const int64_t last[1] = {-1};
  return d.reduced(op::mean_dim(*loss, last), reduction);
}

// ---- a linear layer and its cross entropy ----

// weight is (C, …, K), where K is the last size of input: scores are (N, C, …).
TensorRef linear_cross_entropy(Call, const Tensor& input, const Tensor& linear_weight,
                               const Tensor& target, const Tensor* linear_bias,
                               const Tensor* weight, Opt<int64_t> ignore_index, int64_t reduction,
                               double label_smoothing) {
  const int64_t k = linear_weight.ndim - 1;
  if (k < 1 || input.ndim < 1 || input.ndim > 2 || input.size(-1) != linear_weight.size(k))
    fail_arg(TT_SHAPE, "linear_weight",
             "linear_weight is {}, input is {}: must be (C, …, K) and (N, K) or (K)",
             linear_weight.sizes(), input.sizes());
  const Ints scores = linear_weight.sizes().slice(0, k);
  if (linear_bias && !same(linear_bias->sizes(), scores))
    fail_arg(TT_SHAPE, "linear_bias", "linear_bias is {}: must be {}", linear_bias->sizes(),
             scores);
  if (k > 1 && input.ndim == 1)
    fail_arg(TT_SHAPE, "input",
             "input is {}, linear_weight is {}: needs a batch for several losses", input.sizes(),
             linear_weight.sizes());
  const int64_t rows[2] = {numel_of(scores), linear_weight.size(k)};
  const int64_t flat[1] = {rows[0]};
  TensorRef bias = linear_bias ? op::reshape(*linear_bias, flat) : TensorRef();
  TensorRef logits = op::linear(input, *op::reshape(linear_weight, rows), bias.get());
  Shape shape(input.sizes().slice(0, input.ndim - 1));
  shape.append(scores);
  const bool probabilities = same(target.sizes(), shape);
  if (probabilities && ignore_index.has)
    fail_arg(TT_INVALID_ARG, "ignore_index", "ignore_index is given, target has probabilities");
  if (is_float(target.dtype) && !probabilities)
    fail_arg(TT_SHAPE, "target", "target is {}: probabilities must be {}", target.sizes(),
             Ints(shape));
  return op::cross_entropy(*op::reshape(*logits, shape), target, weight, ignore_index.or_else(-100),
                           reduction, label_smoothing);
}

}  // namespace TT_NS::impl
