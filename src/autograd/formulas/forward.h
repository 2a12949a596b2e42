// Formulas of forward mode: tangents of results. They are written in differentiable operators, and
// read no result without a gradient but as an argument of an operator whose own gradient knows
// where it comes from. The generator reads the function names of this file.
#pragma once

#include "autograd/saved.h"

namespace TT_NS::formula {

// The sum along a dimension; x itself if it has none.
TensorRef sum_along(const Tensor& x, int64_t dim, bool keepdim);
// The elements at indices along dim, as an operator that selects one element per slice takes them.
TensorRef picked(const Tensor& t, int64_t dim, const Tensor& index, bool keepdim);

// ---- attention ----
// tangents: of query, key, value and mask.
TensorRef attention_forward(TensorSpan tangents, const Tensor& query, const Tensor& key,
                            const Tensor& value, const Tensor* mask, double dropout_p, bool causal,
                            double scale, const Rng& rng);

// ---- conv ----
// tangents: of grad, input and weight.
TensorList convolution_backward_forward(TensorSpan tangents, const Tensor& grad,
                                        const Tensor& input, const Tensor& weight, Ints stride,
                                        Ints padding, Ints dilation, bool transposed,
                                        Ints output_padding, int64_t groups, bool want_input,
                                        bool want_weight, bool want_bias);

// ---- index ----
// tangents: of weight and per_sample_weights.
TensorRef bag_reduce_forward(TensorSpan tangents, const Tensor& weight, const Tensor& indices,
                             const Tensor* starts, int64_t bags, int64_t mode,
                             const Tensor* factors, int64_t skipped, const Tensor& y);
// tangents: of self and src.
TensorRef scatter_multiply_forward(TensorSpan tangents, const Tensor& self, int64_t dim,
                                   const Tensor& index, const Tensor& src, const Tensor& y);
TensorRef scatter_extreme_forward(TensorSpan tangents, const Tensor& self, int64_t dim,
                                  const Tensor& index, const Tensor& src, const Tensor& y,
                                  bool include_self);

// ---- linalg ----
// Several tangents are those of the arguments, or of the results.
TensorList nuclear_norm_forward(const Tensor& t, const Tensor& self, const Tensor& polar);
TensorList svd_forward(const Tensor& t, const Tensor& u, const Tensor& s, const Tensor& vh);
TensorList eigh_forward(const Tensor& t, const Tensor& values, const Tensor& vectors);
TensorList eig_forward(const Tensor& t, const Tensor& values, const Tensor& vectors);
TensorRef det_forward(const Tensor& t, const Tensor& self, const Tensor& det, const Tensor& lu,
                      const Tensor& pivots);
TensorList slogdet_forward(const Tensor& t, const Tensor& self, const Tensor& sign);
TensorRef solve_forward(TensorSpan tangents, const Tensor& self, const Tensor& result,
                        const Tensor& lu, const Tensor& pivots);
TensorList qr_forward(const Tensor& t, const Tensor& q, const Tensor& r, int64_t mode);
TensorRef pinv_forward(const Tensor& t, const Tensor& pinv, const Tensor& self);
TensorRef lu_factor_forward(const Tensor& t, const Tensor& lu, const Tensor& pivots);
TensorRef cholesky_forward(const Tensor& t, const Tensor& factor, bool upper);
TensorRef cholesky_solve_forward(TensorSpan tangents, const Tensor& factor, const Tensor& result,
                                 bool upper);
TensorRef cholesky_inverse_forward(const Tensor& t, const Tensor& factor, const Tensor& inverse,
                                   bool upper);
TensorRef solve_triangular_forward(TensorSpan tangents, const Tensor& self, const Tensor& result,
                                   bool upper, bool left, bool unit);

// ---- loss ----
// Sums over classes, one for each element of the loss.
TensorRef class_sums(const Tensor& x, const Tensor& loss);

// ---- norm ----
// tangents: of input, weight and bias.
TensorRef layer_norm_forward(TensorSpan tangents, const Tensor& input, Ints normalized_shape,
                             const Tensor& mean, const Tensor& rstd, const Tensor* weight,
                             double eps);
TensorRef rms_norm_forward(TensorSpan tangents, const Tensor& input, Ints normalized_shape,
                           const Tensor* weight, const Tensor& rstd, double eps);
TensorRef group_norm_forward(TensorSpan tangents, const Tensor& input, int64_t num_groups,
                             const Tensor* weight, const Tensor& mean, const Tensor& rstd,
                             double eps);
TensorRef batch_norm_forward(TensorSpan tangents, const Tensor& input, const Tensor* weight,
                             const Tensor* running_mean, const Tensor* running_var,
                             const Tensor& stats, bool training, double eps);

// The tangents of the gradients of norms; tangents: of grad, input and weight.
TensorList layer_norm_backward_forward(TensorSpan tangents, const Tensor& grad, const Tensor& input,
                                       Ints normalized_shape, const Tensor& mean,
                                       const Tensor& rstd, const Tensor* weight, double eps,
                                       bool want_input, bool want_weight, bool want_bias);
TensorList rms_norm_backward_forward(TensorSpan tangents, const Tensor& grad, const Tensor& input,
                                     Ints normalized_shape, const Tensor* weight,
                                     const Tensor& rstd, double eps, bool want_input,
                                     bool want_weight);
TensorList group_norm_backward_forward(TensorSpan tangents, const Tensor& grad, const Tensor& input,
                                       int64_t num_groups, const Tensor* weight, const Tensor& mean,
                                       const Tensor& rstd, double eps, bool want_input,
                                       bool want_weight, bool want_bias);
TensorList batch_norm_backward_forward(TensorSpan tangents, const Tensor& grad, const Tensor& input,
                                       const Tensor* weight, const Tensor& stats, bool training,
                                       double eps, bool want_input, bool want_weight,
                                       bool want_bias);

// ---- recurrent ----
// tangents: of gates, h0, c0, w_hh, b_hh and w_hr. Returns those of output and, of lstm, of cells.
TensorList recurrent_layer_forward(TensorSpan tangents, const Tensor& gates, const Tensor& h0,
                                   const Tensor* c0, const Tensor& w_hh, const Tensor* b_hh,
                                   const Tensor* w_hr, Ints batch_sizes, int64_t mode, bool reverse,
                                   const Tensor& output, const Tensor& cells);

// ---- scan ----
TensorRef cumprod_forward(const Tensor& t, const Tensor& self, const Tensor& y, int64_t dim);
TensorRef logcumsumexp_forward(const Tensor& t, const Tensor& self, const Tensor& y, int64_t dim);

// ---- softmax ----
TensorRef log_softmax_forward(const Tensor& t, const Tensor& y, int64_t dim);

}  // namespace TT_NS::formula
