// Gradient formulas with loops or conditions, written in differentiable operators so that any order
// of derivative works. The generator reads the function names of this file.
#pragma once

#include "autograd/saved.h"

namespace TT_NS {

using ShapeList = SmallVec<Shape, 4>;

namespace formula {

TensorRef scaled(const Tensor& g, const Scalar& k);  // g * k; g itself if k is 1
// Gradient of an operator that selects one element per slice of dim.
TensorRef pick_backward(const Tensor& g, Ints size, int64_t dim, const Tensor& index, bool keepdim);
// The elements equal to y share the gradient; nan equals nan.
TensorRef equal_elements_backward(const Tensor& g, const Tensor& self, const Tensor& y);
// The product of all elements before each one along dim, in log2(n) steps.
TensorRef products_before(const Tensor& x, int64_t dim);

// ---- activation ----
TensorRef silu_second(const Tensor& g, const Tensor& x);
// Returns out, recorded as a function of x whose derivative is 0, as PyTorch's backward is.
TensorRef tied(const Tensor& out, const Tensor& x);
TensorRef mish_second(const Tensor& g, const Tensor& x);
TensorRef softplus_second(const Tensor& g, const Tensor& x, double beta, double threshold);
TensorRef gelu_exact_second(const Tensor& g, const Tensor& x);
TensorRef gelu_tanh_second(const Tensor& g, const Tensor& x);
TensorRef celu_second(const Tensor& g, const Tensor& x, double alpha);
TensorRef softsign_backward(const Tensor& g, const Tensor& x);

// ---- arith ----
TensorRef pow_backward_self(const Tensor& g, const Tensor& self, const Tensor& exponent);
TensorRef pow_backward_exponent(const Tensor& g, const Tensor& self, const Tensor& exponent,
                                const Tensor& y);
TensorRef pow_scalar_backward(const Tensor& g, const Tensor& self, const Scalar& exponent);
TensorRef pow_base_backward(const Tensor& g, const Scalar& self, const Tensor& exponent,
                            const Tensor& y);
// Ties share the gradient.
TensorRef maximum_backward(const Tensor& g, const Tensor& self, const Tensor& other);
TensorRef minimum_backward(const Tensor& g, const Tensor& self, const Tensor& other);
TensorRef maximum_backward(const Tensor& g, const Tensor& self, const Scalar& bound);
TensorRef minimum_backward(const Tensor& g, const Tensor& self, const Scalar& bound);
TensorRef clamp_share(const Tensor& g, const Tensor& self, const Tensor& min, const Tensor& max,
                      int64_t which);
TensorRef clamp_backward(const Tensor& g, const Tensor& self, const Scalar* min, const Scalar* max);
TensorRef atan2_backward(const Tensor& g, const Tensor& self, const Tensor& other,
                         const Tensor& across);
TensorRef copysign_backward(const Tensor& g, const Tensor& self, const Tensor& y);

// ---- arrange ----
TensorRef roll_backward(const Tensor& g, Ints shifts, Ints dims);
TensorList cat_backward(const Tensor& g, const ShapeList& shapes, int64_t dim, Needs needs);
TensorRef constant_unpad(const Tensor& g, Ints pad);

// ---- attention ----
// By the kernel or, if the gradient itself is recorded, composed of differentiable operators.
TensorTriple attention_grads(const Tensor& g, const Tensor& query, const Tensor& key,
                             const Tensor& value, const Tensor* mask, const Tensor& out,
                             const Tensor& lse, double dropout_p, bool causal, double scale,
                             const Rng& rng);
TensorRef attention_mask_grad(const Tensor& g, const Tensor& query, const Tensor& key,
                              const Tensor& value, const Tensor* mask, double dropout_p,
                              bool causal, double scale, const Rng& rng);

// ---- conv ----
// The gradients of convolution_backward's results with respect to grad, input and weight.
TensorTriple convolution_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                         const Tensor& weight, Ints stride, Ints padding,
                                         Ints dilation, bool transposed, Ints output_padding,
                                         int64_t groups, Needs needs);

// ---- copy ----
// g itself if it is there: to_device would record the gradient as a function of itself.
TensorRef on_device(const Tensor& g, Device device);

// ---- fft ----
TensorRef fft_c2c_backward(const Tensor& g, int64_t dim, bool inverse, double scale);
TensorRef fft_r2c_backward(const Tensor& g, Ints size, int64_t dim, bool inverse, double scale);
TensorRef fft_c2r_backward(const Tensor& g, int64_t dim, int64_t n, bool inverse, double scale);

// ---- fold ----
TensorRef im2col_backward(const Tensor& g, Ints self_sizes, Ints kernel_size, Ints dilation,
                          Ints padding, Ints stride);

// ---- grid ----
// The gradient of grid_take(x, grid, …) by grid; of grid_put with g and x exchanged.
TensorRef grid_slopes(const Tensor& g, const Tensor& x, const Tensor& grid, int64_t mode,
                      int64_t padding, bool align, Ints order);

// ---- index ----
TensorRef scatter_add_src_backward(const Tensor& g, int64_t dim, const Tensor& index,
                                   Ints src_sizes);
TensorRef index_put_self_backward(const Tensor& g, TensorSpan indices, bool accumulate);
TensorRef embedding_backward(const Tensor& g, const Tensor& indices, Ints weight_sizes,
                             Opt<int64_t> padding_idx, bool scale_by_freq);

// The gradients of weight and per_sample_weights.
TensorPair bag_reduce_backward(const Tensor& g, const Tensor& weight, const Tensor& indices,
                               const Tensor* starts, int64_t mode, const Tensor* factors,
                               bool by_freq, int64_t skipped, const Tensor& y, Needs needs);

// The gradients of self and src.
TensorPair scatter_multiply_backward(const Tensor& g, const Tensor& self, int64_t dim,
                                     const Tensor& index, const Tensor& src, const Tensor& y);
TensorPair scatter_extreme_backward(const Tensor& g, const Tensor& self, int64_t dim,
                                    const Tensor& index, const Tensor& src, const Tensor& y,
                                    bool include_self);

// ---- linalg ----
TensorRef nuclear_norm_backward(TensorSpan g, const Tensor& self, const Tensor& polar);
TensorRef svd_backward(TensorSpan g, const Tensor& u, const Tensor& s, const Tensor& vh);
TensorRef eigh_backward(TensorSpan g, const Tensor& values, const Tensor& vectors);
TensorRef eig_backward(TensorSpan g, const Tensor& values, const Tensor& vectors, Dtype dtype);
TensorRef det_backward(const Tensor& g, const Tensor& self, const Tensor& det, const Tensor& lu,
                       const Tensor& pivots);
TensorRef slogdet_backward(TensorSpan g, const Tensor& self, const Tensor& sign, const Tensor& lu,
                           const Tensor& pivots);
TensorPair solve_backward(const Tensor& g, const Tensor& self, const Tensor& result,
                          const Tensor& lu, const Tensor& pivots, Needs needs);
TensorRef lu_solve_backward(const Tensor& g, const Tensor& lu, const Tensor& pivots, bool adjoint);
TensorRef inv_backward(const Tensor& g, const Tensor& inverse);
TensorRef qr_backward(TensorSpan g, const Tensor& q, const Tensor& r, int64_t mode);
TensorRef pinv_backward(const Tensor& g, const Tensor& pinv, const Tensor& self);
TensorRef lu_factor_backward(const Tensor& g, const Tensor& lu, const Tensor& pivots);
TensorRef cholesky_backward(const Tensor& g, const Tensor& factor, bool upper);
TensorPair cholesky_solve_backward(const Tensor& g, const Tensor& factor, const Tensor& result,
                                   bool upper, Needs needs);
TensorRef cholesky_inverse_backward(const Tensor& g, const Tensor& factor, const Tensor& inverse,
                                    bool upper);
TensorPair solve_triangular_backward(const Tensor& g, const Tensor& self, const Tensor& result,
                                     bool upper, bool left, bool unit, Needs needs);

// ---- loss ----
// x[target] of each row of classes; any finite value where the target is ignored.
TensorRef class_scores(const Tensor& x, const Tensor& target, int64_t ignore_index);
// The gradients of cross_entropy_backward's result with respect to grad and input.
TensorRef cross_entropy_backward_grad(const Tensor& g, const Tensor& input, const Tensor& target,
                                      const Tensor& row_weight, int64_t ignore_index);
TensorRef cross_entropy_backward_input(const Tensor& g, const Tensor& grad, const Tensor& input,
                                       const Tensor& row_weight);
TensorRef within(const Tensor& g, const Tensor& x, double limit);  // g where |x| < limit, else 0
TensorRef bernoulli_entropy_target(const Tensor& g, const Tensor& x);
TensorRef bernoulli_entropy_second(const Tensor& g, const Tensor& x, const Tensor& y);
TensorRef bernoulli_entropy_mixed(const Tensor& g, const Tensor& x);

// Fails: the gradients of ctc_loss cannot be differentiated.
TensorRef ctc_second_derivative(const Tensor& g);

// ---- matmul ----
// Gradients of stacked products: an operand without a stack gets one product over all rows, not a
// sum of rounded ones.
TensorRef matmul_self_backward(const Tensor& g, const Tensor& other, Ints self_sizes);
TensorRef matmul_other_backward(const Tensor& g, const Tensor& self, Ints other_sizes);
TensorRef linear_weight_backward(const Tensor& g, const Tensor& input);

// ---- norm ----
// The gradients of layer_norm_backward's results with respect to grad, input and weight.
TensorTriple layer_norm_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                        Ints normalized_shape, const Tensor* weight, double eps,
                                        Needs needs);
// The gradients of rms_norm_backward's results with respect to grad, input and weight.
TensorTriple rms_norm_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                      Ints normalized_shape, const Tensor* weight, double eps,
                                      Needs needs);
// The gradients of group_norm_backward's results with respect to grad, input and weight.
TensorTriple group_norm_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                        int64_t num_groups, const Tensor* weight, double eps,
                                        Needs needs);
// The gradients of batch_norm_backward's results with respect to grad, input and weight.
TensorTriple batch_norm_double_backward(TensorSpan g, const Tensor& grad, const Tensor& input,
                                        const Tensor* weight, const Tensor& stats, bool training,
                                        double eps, Needs needs);

// ---- pool ----
// The elements of x at indices into its last two dimensions.
TensorRef pool_take(const Tensor& x, const Tensor& indices);

// ---- random ----
double dropout_scale(double p);  // factor of the elements that dropout keeps

// ---- recurrent ----
struct RecurrentGrads {
  TensorRef first, second, third, fourth, fifth, sixth;  // of gates, h0, c0, w_hh, b_hh, w_hr
};
// By the kernels or, if the gradient itself is recorded, composed of differentiable operators.
RecurrentGrads recurrent_layer_grads(TensorSpan g, const Tensor& gates, const Tensor& h0,
                                     const Tensor* c0, const Tensor& w_hh, const Tensor* b_hh,
                                     const Tensor* w_hr, Ints batch_sizes, int64_t mode,
                                     bool reverse, const Tensor& output, const Tensor& cells,
                                     const Tensor& saved, Needs needs);

// ---- reduce ----
TensorRef sum_dim_backward(const Tensor& g, Ints size, Ints dim, bool keepdim);
TensorRef mean_backward(const Tensor& g, Ints size);
TensorRef mean_dim_backward(const Tensor& g, Ints size, Ints dim, bool keepdim);
// The elements equal to y, the maximum or minimum over several dimensions, share the gradient.
TensorRef extreme_dims_backward(const Tensor& g, const Tensor& self, const Tensor& y, Ints dim,
                                bool keepdim);
TensorRef var_backward(const Tensor& g, const Tensor& self, Ints dim, double correction,
                       bool keepdim);
TensorRef std_backward(const Tensor& g, const Tensor& y, const Tensor& self, Ints dim,
                       double correction, bool keepdim);
TensorRef logsumexp_backward(const Tensor& g, const Tensor& self, const Tensor& y, Ints dim,
                             bool keepdim);
TensorRef prod_dim_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t dim,
                            bool keepdim);
TensorRef prod_backward(const Tensor& g, const Tensor& self, const Tensor& y);
// At 0 the gradient is a subgradient, PyTorch's: 0 for p > 1.
TensorRef norm_backward(const Tensor& g, const Tensor& self, const Tensor& y, double p, Ints dim,
                        bool keepdim);
// The gradient of row_distances(x1, x2, …) = y by x1, of pairs by both; recorded, by arrays of
// differences.
TensorRef row_distances_slopes(const Tensor& g, const Tensor& x1, const Tensor& x2, const Tensor& y,
                               double p, bool pairs);

// ---- scan ----
TensorRef cumsum_backward(const Tensor& g, int64_t dim);
TensorRef cumprod_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t dim);
TensorRef logcumsumexp_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t dim);

// ---- softmax ----
// Derivatives of softmax_backward and log_softmax_backward with respect to their argument y.
TensorRef softmax_backward_y(const Tensor& g, const Tensor& grad, const Tensor& y, int64_t dim);
TensorRef log_softmax_backward_grad(const Tensor& g, const Tensor& y, int64_t dim);
TensorRef log_softmax_backward_y(const Tensor& g, const Tensor& grad, const Tensor& y, int64_t dim);

// ---- special ----
TensorRef polygamma_backward(const Tensor& g, const Tensor& self, int64_t n);
TensorRef i1_backward(const Tensor& g, const Tensor& self, const Tensor& y);
TensorRef i1e_backward(const Tensor& g, const Tensor& self, const Tensor& y);
TensorRef sinc_backward(const Tensor& g, const Tensor& self);
TensorRef xlogy_backward(const Tensor& g, const Tensor& self, const Tensor& other);
TensorRef xlogy_backward(const Tensor& g, const Tensor& self, const Scalar& other);
TensorRef xlog1py_backward(const Tensor& g, const Tensor& self, const Tensor& other);
TensorRef xlog1py_backward(const Tensor& g, const Tensor& self, const Scalar& other);
// which: a BesselFunction, and a Polynomial (plan/special_function.h)
TensorRef bessel_backward(const Tensor& g, const Tensor& self, const Tensor& y, int64_t which);
TensorRef orthogonal_polynomial_backward(const Tensor& g, const Tensor& self, int64_t which,
                                         int64_t n);
TensorRef igamma_slope(const Tensor& a, const Tensor& x);  // the derivative of P(a, x) by x

// ---- unary ----
TensorRef sgn_backward(const Tensor& g, const Tensor& self, const Tensor& y);
TensorRef logit_second(const Tensor& g, const Tensor& x, Opt<double> eps);
TensorRef acosh_backward(const Tensor& g, const Tensor& self);

// ---- view ----
TensorRef permute_backward(const Tensor& g, Ints dims);
TensorRef squeeze_dim(const Tensor& g, int64_t dim);
TensorRef as_strided_backward(const Tensor& g, Ints base_sizes, Ints base_strides,
                              int64_t base_offset, Ints size, Ints stride, Opt<int64_t> offset);
TensorRef unfold_backward(const Tensor& g, Ints self_sizes, int64_t dimension, int64_t size,
                          int64_t step);
TensorRef as_strided_put_self(const Tensor& g, Ints strides, Ints size, Ints stride,
                              int64_t offset);

}  // namespace formula
}  // namespace TT_NS
