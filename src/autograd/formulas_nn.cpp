// Gradients of joins, normalisations and losses.
#include "autograd/formulas.h"

#include "ops/gen/ops.h"

namespace TT_NS::formula {

double dropout_scale(double p) { return p == 1 ? 0 : 1 / (1 - p); }

static TensorRef row_sum(const Tensor& t, int64_t dim) {
  return op::sum_dim(t, Ints(&dim, 1), true);
}

// softmax_backward = y (grad - sum(grad y)).
TensorRef softmax_backward_y(const Tensor& g, const Tensor& grad, const Tensor& y, int64_t dim) {
  TensorRef along_g = row_sum(*op::mul(g, y), dim);
  TensorRef along_grad = row_sum(*op::mul(grad, y), dim);
  return op::sub(*op::mul(g, *op::sub(grad, *along_grad)), *op::mul(grad, *along_g));
}

// log_softmax_backward = grad - exp(y) sum(grad).
TensorRef log_softmax_backward_grad(const Tensor& g, const Tensor& y, int64_t dim) {
  return op::sub(g, *row_sum(*op::mul(g, *op::exp(y)), dim));
}
TensorRef log_softmax_backward_y(const Tensor& g, const Tensor& grad, const Tensor& y,
                                 int64_t dim) {
  return op::neg(*op::mul(*op::mul(g, *op::exp(y)), *row_sum(grad, dim)));
}

// ---- losses of classes: x is (C), (N, C) or (N, C, d1, …), target has x's shape without C ----

static int64_t class_dim(const Tensor& x) { return x.ndim == 1 ? 0 : 1; }

TensorRef class_scores(const Tensor& x, const Tensor& target, int64_t ignore_index) {
  const int64_t dim = class_dim(x);
  TensorRef index = op::masked_fill(target, *op::eq(target, Scalar(ignore_index)), Scalar(0));
  return squeeze_dim(*op::gather(x, dim, *op::unsqueeze(*index, dim)), dim);
}

// Differences of near numbers are taken in float32; the engine rounds the gradient once.
static TensorRef widened(const Tensor& t) {
  return t.dtype == Dtype::kF16 || t.dtype == Dtype::kBF16 ? op::to_dtype(t, Dtype::kF32)
                                                           : TensorRef::share(&t);
}

// cross_entropy_backward = (softmax(input) - onehot(target)) grad row_weight.
TensorRef cross_entropy_backward_grad(const Tensor& g, const Tensor& input, const Tensor& target,
                                      const Tensor& row_weight, int64_t ignore_index) {
  const int64_t dim = class_dim(input);
  TensorRef wide = widened(g);
  TensorRef expected =
      op::sum_dim(*op::mul(*wide, *op::softmax(widened(input), dim)), Ints(&dim, 1));
  return op::mul(*op::sub(*expected, *class_scores(wide, target, ignore_index)), row_weight);
}
TensorRef cross_entropy_backward_input(const Tensor& g, const Tensor& grad, const Tensor& input,
                                       const Tensor& row_weight) {
  const int64_t dim = class_dim(input);
  TensorRef scaled = op::mul(widened(g), *op::unsqueeze(*op::mul(widened(grad), row_weight), dim));
  return op::softmax_backward(*scaled, *op::softmax(widened(input), dim), dim);
}

TensorList cat_backward(const Tensor& g, const ShapeList& shapes, int64_t dim, Needs needs) {
  TensorList out;
  out.resize(shapes.size());
  int64_t d = wrap_dim(dim, g.ndim);
  int64_t at = 0;
  for (int64_t i = 0; i < shapes.size(); i++) {
    const Shape& s = shapes[i];
    if (s.size() == 1 && s[0] == 0) {  // joined nothing
      if (needs[i]) out[i] = op::zeros(s, g.dtype, g.device);
      continue;
    }
    if (needs[i]) out[i] = op::slice(g, d, at, at + s[d]);
    at += s[d];
  }
  return out;
}

// ---- layer_norm ----
// Over a row of n: xhat = (x - mean) rstd, h = grad weight, P(v) = v - mean(v) - xhat mean(v xhat);
// P is symmetric. dinput = rstd P(h), dweight = sum(grad xhat), dbias = sum(grad) over the rows.

namespace {
struct Normalised {
  Shape dims;  // the normalised ones
  TensorRef rstd, xhat;

  Normalised(const Tensor& x, Shape over, double eps) : dims(std::move(over)) {
    TensorRef centred = op::sub(x, *mean(x));
    rstd = op::pow(*op::add(*mean(*op::mul(*centred, *centred)), Scalar(eps)), Scalar(-0.5));
    xhat = op::mul(*centred, *rstd);
  }
  Normalised(TensorRef scale, TensorRef x) : rstd(std::move(scale)), xhat(std::move(x)) {}
  TensorRef mean(const Tensor& v) const { return op::mean_dim(v, dims, true); }
  TensorRef project(const Tensor& v) const {
    return op::sub(*op::sub(v, *mean(v)), *op::mul(*xhat, *mean(*op::mul(v, *xhat))));
  }
};
TensorRef sum_of(TensorRef a, TensorRef b) {
  return !a ? std::move(b) : !b ? std::move(a) : op::add(*a, *b);
}
TensorRef times(const Tensor& a, const Tensor* b) {
  return b ? op::mul(a, *b) : TensorRef::share(&a);
}
}  // namespace

// g: gradients u, a, b of dinput, dweight, dbias, so that L = <u, dinput> + <a, dweight> + <b,
// dbias>. With p = mean(u xhat) and q = mean(h xhat): d<u, rstd P(h)>/dx = -rstd^2 (xhat (mean(u h)
// - mean(u) mean(h) - p q) + P(q u + p h)).
static TensorTriple double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                    const Normalised& row, const Tensor* weight, Needs needs) {
  const Tensor* u = g[0];
  const Tensor* a = g[1];
  const Tensor* b = g[2];
  TensorTriple out;
  TensorRef pu = u ? op::mul(*row.rstd, *row.project(*u)) : TensorRef();
  if (needs[0]) {
    if (u) out.first = times(*pu, weight);
    if (a) out.first = sum_of(std::move(out.first), op::mul(*row.xhat, *a));
    if (b) out.first = sum_of(std::move(out.first), op::expand(*b, input.sizes()));
  }
  if (needs[1]) {
    if (u) {
      TensorRef h = times(grad, weight);
      TensorRef p = row.mean(*op::mul(*u, *row.xhat));
      TensorRef q = row.mean(*op::mul(*h, *row.xhat));
      TensorRef s =
          op::sub(*op::sub(*row.mean(*op::mul(*u, *h)), *op::mul(*row.mean(*u), *row.mean(*h))),
                  *op::mul(*p, *q));
      TensorRef inner = op::add(*op::mul(*row.xhat, *s),
                                *row.project(*op::add(*op::mul(*q, *u), *op::mul(*p, *h))));
      out.second = op::neg(*op::mul(*op::mul(*row.rstd, *row.rstd), *inner));
    }
    if (a)
      out.second =
          sum_of(std::move(out.second), op::mul(*row.rstd, *row.project(*op::mul(grad, *a))));
  }
  if (needs[2] && u) out.third = op::mul(grad, *pu);
  return out;
}

// 16-bit inputs are computed in float32: rstd^2 overflows float16.
struct Wide {
  bool on;
  TensorRef operator()(const Tensor* t) const {
    return !t ? TensorRef() : on ? op::to(*t, Dtype::kF32) : TensorRef::share(t);
  }
};

TensorTriple layer_norm_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                        Ints normalized_shape, const Tensor* weight, double eps,
                                        Needs needs) {
  const Wide wide{input.item_size() == 2};
  TensorRef x = wide(&input);
  TensorRef u = wide(g[0]);
  TensorRef a = wide(g[1]);
  TensorRef b = wide(g[2]);
  TensorRef w = wide(weight);
  Shape last;
  for (int64_t d = input.ndim - normalized_shape.n; d < input.ndim; d++) last.push_back(d);
  const Tensor* const gs[3] = {u.get(), a.get(), b.get()};
  return double_backward(gs, *wide(&grad), *x, Normalised(*x, std::move(last), eps), w.get(),
                         needs);
}

// ---- batch_norm: the same over all dimensions but the channels'; outside training mean and rstd
// are constants ----

static Normalised running_row(const Tensor& x, const Tensor& stats, const Shape& column) {
  return Normalised(op::reshape(*op::select(stats, 0, 1), column),
                    op::mul(*op::sub(x, *op::reshape(*op::select(stats, 0, 0), column)),
                            *op::reshape(*op::select(stats, 0, 1), column)));
}
static TensorTriple fixed_double_backward(TensorSpan g, const Tensor& grad, const Normalised& row,
                                          const Tensor* weight, Needs needs) {
  const Tensor* u = g[0];
  const Tensor* a = g[1];
  const Tensor* b = g[2];
  TensorTriple out;
  TensorRef pu = u ? op::mul(*u, *row.rstd) : TensorRef();
  if (needs[0]) {
    if (u) out.first = times(*pu, weight);
    if (a) out.first = sum_of(std::move(out.first), op::mul(*row.xhat, *a));
    if (b) out.first = sum_of(std::move(out.first), op::expand(*b, grad.sizes()));
  }
  if (needs[1] && a) out.second = op::mul(*op::mul(grad, *a), *row.rstd);
  if (needs[2] && u) out.third = op::mul(grad, *pu);
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
  auto shaped = [&](const Tensor* t) { return t ? op::reshape(*wide(t), column) : TensorRef(); };
  TensorRef x = wide(&input);
  TensorRef u = wide(g[0]);
  TensorRef a = shaped(g[1]);
  TensorRef b = shaped(g[2]);
  TensorRef w = shaped(weight);
  TensorRef wide_grad = wide(&grad);
  const Tensor* const gs[3] = {u.get(), a.get(), b.get()};
  TensorTriple out =
      training
          ? double_backward(gs, *wide_grad, *x, Normalised(*x, others, eps), w.get(), needs)
          : fixed_double_backward(gs, *wide_grad, running_row(*x, stats, column), w.get(), needs);
  if (out.third) out.third = op::sum_dim(*out.third, others);
  return out;
}

// ---- pooling ----

static TensorRef flat_planes(const Tensor& t) { return op::flatten(t, t.ndim - 2, t.ndim - 1); }

TensorRef pool_take(const Tensor& x, const Tensor& indices) {
  return op::reshape(*op::gather(*flat_planes(x), -1, *flat_planes(indices)), indices.sizes());
}
TensorRef constant_unpad(const Tensor& g, Ints pad) {
  Shape back(pad);
  for (int64_t& n : back) n = -n;
  return op::constant_pad_nd(g, back);
}

}  // namespace TT_NS::formula
