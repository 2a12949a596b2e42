// Second derivatives of normalizations.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "autograd/formulas/forward.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

// ---- layer_norm ----
// Over each row: xhat = (x - mean) * rstd, h = grad * weight and
// P(v) = v - mean(v) - xhat * mean(v * xhat), which is symmetric. The first derivatives are
//   dinput = rstd * P(h), dweight = sum(grad * xhat) and dbias = sum(grad), both over the rows.
// rms_norm does not centre its rows: the means of x and, in P, of v are left out.

namespace {
struct NormalizedRows {
  Shape dims;  // the normalized ones
  bool centred = true;
  TensorRef rstd, xhat;

  NormalizedRows(const Tensor& x, Shape over, double eps, bool centred = true)
      : dims(std::move(over)), centred(centred) {
    TensorRef distance = centred ? x - mean(x) : TensorRef::share(&x);
    rstd = op::pow(mean(distance * distance) + eps, -0.5);
    xhat = distance * rstd;
  }
  NormalizedRows(TensorRef scale, TensorRef x) : rstd(std::move(scale)), xhat(std::move(x)) {}
  TensorRef mean(const Tensor& v) const { return op::mean_dim(v, dims, true); }
  TensorRef project(const Tensor& v) const {
    TensorRef along = xhat * mean(v * xhat);
    return centred ? v - mean(v) - along : v - along;
  }
  // The mean of u * v, centred if rows are centred.
  TensorRef covariance(const Tensor& u, const Tensor& v) const {
    TensorRef all = mean(u * v);
    return centred ? all - mean(u) * mean(v) : std::move(all);
  }
};
// Returns the sum of two gradients, either of which may be empty.
TensorRef sum_of(TensorRef a, TensorRef b) {
  if (!a) return b;
  return b ? a + b : std::move(a);
}
TensorRef times(const Tensor& a, const Tensor* b) { return b ? a * *b : TensorRef::share(&a); }
}  // namespace

// g holds the gradients u, a, b of dinput, dweight and dbias, so that
// L = <u, dinput> + <a, dweight> + <b, dbias>. With p = mean(u * xhat) and q = mean(h * xhat), the
// gradient of <u, rstd * P(h)> with respect to x is
//   -rstd^2 * (xhat * (mean(u * h) - mean(u) * mean(h) - p * q) + P(q * u + p * h)).
static TensorTriple double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                    const NormalizedRows& row, const Tensor* weight, Needs needs) {
  const Tensor* u = g[0];
  const Tensor* a = g[1];
  const Tensor* b = g[2];
  TensorTriple out;
  TensorRef pu = u ? row.rstd * row.project(*u) : TensorRef();
  if (needs[0]) {
    if (u) out.first = times(*pu, weight);
    if (a) out.first = sum_of(std::move(out.first), row.xhat * *a);
    if (b) out.first = sum_of(std::move(out.first), op::expand(*b, input.sizes()));
  }
  if (needs[1]) {
    if (u) {
      TensorRef h = times(grad, weight);
      TensorRef p = row.mean(*u * row.xhat);
      TensorRef q = row.mean(h * row.xhat);
      TensorRef s = row.covariance(*u, h) - p * q;
      TensorRef inner = row.xhat * s + row.project(q * *u + p * h);
      out.second = -(row.rstd * row.rstd * inner);
    }
    if (a) out.second = sum_of(std::move(out.second), row.rstd * row.project(grad * *a));
  }
  if (needs[2] && u) out.third = grad * pu;
  return out;
}

// Converts 16-bit inputs to float32, since rstd^2 overflows float16. NULL stays NULL.
struct Wide {
  bool on;
  TensorRef operator()(const Tensor* t) const {
    return t && on ? op::to(*t, Dtype::kF32) : TensorRef::share(t);
  }
};

static TensorTriple rows_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                         Ints normalized_shape, const Tensor* weight, double eps,
                                         bool centred, Needs needs) {
  const Wide wide{input.item_size() == 2};
  TensorRef x = wide(&input);
  TensorRef u = wide(g[0]);
  TensorRef a = wide(g[1]);
  TensorRef b = centred ? wide(g[2]) : TensorRef();
  TensorRef w = wide(weight);
  Shape last;
  for (int64_t d = input.ndim - normalized_shape.n; d < input.ndim; d++) last.push_back(d);
  const Tensor* const gs[3] = {u.get(), a.get(), b.get()};
  return double_backward(gs, *wide(&grad), *x, NormalizedRows(*x, std::move(last), eps, centred),
                         w.get(), needs);
}
TensorTriple layer_norm_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                        Ints normalized_shape, const Tensor* weight, double eps,
                                        Needs needs) {
  return rows_double_backward(g, grad, input, normalized_shape, weight, eps, true, needs);
}
TensorTriple rms_norm_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                      Ints normalized_shape, const Tensor* weight, double eps,
                                      Needs needs) {
  return rows_double_backward(g, grad, input, normalized_shape, weight, eps, false, needs);
}

// ---- group_norm ----
// As [images][groups][channels][positions], a row has the last two dimensions.

namespace {
struct GroupShapes {
  int64_t image[4], parameter[3];

  GroupShapes(const Tensor& input, int64_t groups) {
    const int64_t channels = input.size(1);
    const int64_t positions = numel_of(input.sizes().slice(2, input.ndim));
    const int64_t all[4] = {input.size(0), groups, channels / groups, positions};
    for (int i = 0; i < 4; i++) image[i] = all[i];
    for (int i = 0; i < 2; i++) parameter[i] = all[i + 1];
    parameter[2] = 1;
  }
};
}  // namespace

TensorTriple group_norm_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                        int64_t num_groups, const Tensor* weight, double eps,
                                        Needs needs) {
  const Wide wide{input.item_size() == 2};
  const GroupShapes shapes(input, num_groups);
  auto shaped = [&](const Tensor* t, Ints shape) {
    return t ? op::reshape(wide(t), shape) : TensorRef();
  };
  TensorRef x = shaped(&input, shapes.image);
  TensorRef u = shaped(g[0], shapes.image);
  TensorRef a = shaped(g[1], shapes.parameter);
  TensorRef b = shaped(g[2], shapes.parameter);
  TensorRef w = shaped(weight, shapes.parameter);
  TensorRef wide_grad = shaped(&grad, shapes.image);
  const int64_t last[2] = {2, 3};
  const Tensor* const gs[3] = {u.get(), a.get(), b.get()};
  TensorTriple out = double_backward(gs, *wide_grad, *x, NormalizedRows(*x, Shape(Ints(last)), eps),
                                     w.get(), needs);
  for (TensorRef* t : {&out.first, &out.second})
    if (*t) *t = op::reshape(**t, input.sizes());
  const int64_t others[2] = {0, 3};
  const int64_t channels = input.size(1);
  if (out.third) out.third = op::reshape(*op::sum_dim(*out.third, others), Ints(&channels, 1));
  return out;
}

// ---- batch_norm ----
// A row is a channel: all dimensions but dimension 1. Outside training mean and rstd are constants.

static NormalizedRows running_rows(const Tensor& x, const Tensor& stats, const Shape& column) {
  return NormalizedRows(op::reshape(op::select(stats, 0, 1), column),
                        (x - op::reshape(op::select(stats, 0, 0), column)) *
                            op::reshape(op::select(stats, 0, 1), column));
}
static TensorTriple running_double_backward(TensorSpan g, const Tensor& grad,
                                            const NormalizedRows& row, const Tensor* weight,
                                            Needs needs) {
  const Tensor* u = g[0];
  const Tensor* a = g[1];
  const Tensor* b = g[2];
  TensorTriple out;
  TensorRef pu = u ? *u * row.rstd : TensorRef();
  if (needs[0]) {
    if (u) out.first = times(*pu, weight);
    if (a) out.first = sum_of(std::move(out.first), row.xhat * *a);
    if (b) out.first = sum_of(std::move(out.first), op::expand(*b, grad.sizes()));
  }
  if (needs[1] && a) out.second = grad * *a * row.rstd;
  if (needs[2] && u) out.third = grad * pu;
  return out;
}

TensorTriple batch_norm_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                        const Tensor* weight, const Tensor& stats, bool training,
                                        double eps, Needs needs) {
  const Wide wide{input.item_size() == 2};
  Shape column, others;
  column.resize(input.ndim - 1, 1);
  column[0] = input.size(1);
  for (int64_t d = 0; d < input.ndim; d++)
    if (d != 1) others.push_back(d);
  auto shaped = [&](const Tensor* t) { return t ? op::reshape(wide(t), column) : TensorRef(); };
  TensorRef x = wide(&input);
  TensorRef u = wide(g[0]);
  TensorRef a = shaped(g[1]);
  TensorRef b = shaped(g[2]);
  TensorRef w = shaped(weight);
  TensorRef wide_grad = wide(&grad);
  const Tensor* const gs[3] = {u.get(), a.get(), b.get()};
  TensorTriple out =
      training
          ? double_backward(gs, *wide_grad, *x, NormalizedRows(*x, others, eps), w.get(), needs)
          : running_double_backward(gs, *wide_grad, running_rows(*x, stats, column), w.get(),
                                    needs);
  if (out.third) out.third = op::sum_dim(*out.third, others);
  return out;
}

// ---- forward mode ----

// With P(t) = t - mean(t) - xhat * mean(xhat * t) and out = xhat * weight + bias, the tangent of
// xhat is rstd * P(t), which the backward of a norm without weight computes.
TensorRef layer_norm_forward(TensorSpan tangents, const Tensor& input, Ints normalized_shape,
                             const Tensor& mean, const Tensor& rstd, const Tensor* weight,
                             double eps) {
  TensorRef sum;
  if (tangents[0]) {
    sum = op::layer_norm_backward(*tangents[0], input, normalized_shape, mean, rstd, nullptr, eps,
                                  true, false, false)
              .first;
    if (weight) sum = sum * *weight;
  }
  if (tangents[1])
    return sum_of(
        std::move(sum),
        op::native_layer_norm(input, normalized_shape, tangents[1], tangents[2], eps).first);
  return tangents[2] ? sum_of(std::move(sum), op::expand(*tangents[2], input.sizes())) : sum;
}

TensorRef rms_norm_forward(TensorSpan tangents, const Tensor& input, Ints normalized_shape,
                           const Tensor* weight, const Tensor& rstd, double eps) {
  TensorRef sum;
  if (tangents[0]) {
    sum = op::rms_norm_backward(*tangents[0], input, normalized_shape, nullptr, rstd, eps, true,
                                false)
              .first;
    if (weight) sum = sum * *weight;
  }
  if (!tangents[1]) return sum;
  return sum_of(std::move(sum),
                op::native_rms_norm(input, normalized_shape, tangents[1], eps).first);
}

// The weights of channels are vectors, which are multiplied as columns.
static TensorRef column_of(const Tensor& parameter, const Tensor& input) {
  Shape column;
  column.resize(input.ndim - 1, 1);
  column[0] = input.size(1);
  return op::reshape(parameter, column);
}

TensorRef group_norm_forward(TensorSpan tangents, const Tensor& input, int64_t num_groups,
                             const Tensor* weight, const Tensor& mean, const Tensor& rstd,
                             double eps) {
  TensorRef sum;
  if (tangents[0]) {
    sum = op::group_norm_backward(*tangents[0], input, num_groups, nullptr, mean, rstd, eps, true,
                                  false, false)
              .first;
    if (weight) sum = sum * column_of(*weight, input);
  }
  if (tangents[1])
    return sum_of(std::move(sum),
                  op::native_group_norm(input, num_groups, tangents[1], tangents[2], eps).first);
  if (!tangents[2]) return sum;
  return sum_of(std::move(sum), op::expand(*column_of(*tangents[2], input), input.sizes()));
}

// The weight of a channel is a factor of the whole channel.
TensorRef batch_norm_forward(TensorSpan tangents, const Tensor& input, const Tensor* weight,
                             const Tensor* running_mean, const Tensor* running_var,
                             const Tensor& stats, bool training, double eps) {
  TensorRef sum;
  if (tangents[0])
    sum = op::batch_norm_backward(*tangents[0], input, weight, stats, training, eps, true, false,
                                  false)
              .first;
  if (tangents[1]) {
    const Tensor* mean = training ? nullptr : running_mean;
    const Tensor* var = training ? nullptr : running_var;
    return sum_of(
        std::move(sum),
        op::native_batch_norm(input, tangents[1], tangents[2], mean, var, training, eps).first);
  }
  if (!tangents[2]) return sum;
  return sum_of(std::move(sum), op::expand(*column_of(*tangents[2], input), input.sizes()));
}

// The first derivatives are the gradients of L = <grad, out> by input, weight and bias. Their
// tangents are those for the tangent of grad, plus the Hessian matrix of L times the tangents of
// the others. It is symmetric, so that the double backward computes this product, too.
template <class Gradients, class DoubleBackward>
static TensorList gradients_forward(TensorSpan tangents, const Tensor* weight, bool want_input,
                                    bool want_weight, Gradients gradients,
                                    DoubleBackward double_backward) {
  TensorTriple sums;
  if (tangents[0]) sums = gradients(*tangents[0]);
  if (tangents[1] || tangents[2]) {
    const Tensor* const directions[3] = {tangents[1], tangents[2], nullptr};
    const Needs needs(uint32_t(want_input) << 1 | uint32_t(want_weight) << 2);
    TensorTriple products = double_backward(directions, needs);
    sums.first = sum_of(std::move(sums.first), std::move(products.second));
    if (products.third)
      sums.second =
          sum_of(std::move(sums.second), op::sum_to_size(*products.third, weight->sizes()));
  }
  TensorList list;
  for (TensorRef* t : {&sums.first, &sums.second, &sums.third}) list.push_back(std::move(*t));
  return list;
}

TensorList layer_norm_backward_forward(TensorSpan tangents, const Tensor& grad, const Tensor& input,
                                       Ints normalized_shape, const Tensor& mean,
                                       const Tensor& rstd, const Tensor* weight, double eps,
                                       bool want_input, bool want_weight, bool want_bias) {
  const auto gradients = [&](const Tensor& t) {
    return op::layer_norm_backward(t, input, normalized_shape, mean, rstd, weight, eps, want_input,
                                   want_weight, want_bias);
  };
  const auto twice = [&](TensorSpan g, Needs needs) {
    return layer_norm_double_backward(g, grad, input, normalized_shape, weight, eps, needs);
  };
  return gradients_forward(tangents, weight, want_input, want_weight, gradients, twice);
}

TensorList rms_norm_backward_forward(TensorSpan tangents, const Tensor& grad, const Tensor& input,
                                     Ints normalized_shape, const Tensor* weight,
                                     const Tensor& rstd, double eps, bool want_input,
                                     bool want_weight) {
  const auto gradients = [&](const Tensor& t) {
    TensorPair both = op::rms_norm_backward(t, input, normalized_shape, weight, rstd, eps,
                                            want_input, want_weight);
    return TensorTriple{std::move(both.first), std::move(both.second), {}};
  };
  const auto twice = [&](TensorSpan g, Needs needs) {
    return rms_norm_double_backward(g, grad, input, normalized_shape, weight, eps, needs);
  };
  return gradients_forward(tangents, weight, want_input, want_weight, gradients, twice);
}

TensorList group_norm_backward_forward(TensorSpan tangents, const Tensor& grad, const Tensor& input,
                                       int64_t num_groups, const Tensor* weight, const Tensor& mean,
                                       const Tensor& rstd, double eps, bool want_input,
                                       bool want_weight, bool want_bias) {
  const auto gradients = [&](const Tensor& t) {
    return op::group_norm_backward(t, input, num_groups, weight, mean, rstd, eps, want_input,
                                   want_weight, want_bias);
  };
  const auto twice = [&](TensorSpan g, Needs needs) {
    return group_norm_double_backward(g, grad, input, num_groups, weight, eps, needs);
  };
  return gradients_forward(tangents, weight, want_input, want_weight, gradients, twice);
}

TensorList batch_norm_backward_forward(TensorSpan tangents, const Tensor& grad, const Tensor& input,
                                       const Tensor* weight, const Tensor& stats, bool training,
                                       double eps, bool want_input, bool want_weight,
                                       bool want_bias) {
  const auto gradients = [&](const Tensor& t) {
    return op::batch_norm_backward(t, input, weight, stats, training, eps, want_input, want_weight,
                                   want_bias);
  };
  const auto twice = [&](TensorSpan g, Needs needs) {
    return batch_norm_double_backward(g, grad, input, weight, stats, training, eps, needs);
  };
  return gradients_forward(tangents, weight, want_input, want_weight, gradients, twice);
}

}  // namespace TT_NS::formula
