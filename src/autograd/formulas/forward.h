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

// ---- loss ----
// The sums over the classes for which each element of a loss stands.
TensorRef class_sums(const Tensor& x, const Tensor& loss);

// ---- norm ----
// tangents: of input, weight and bias.
TensorRef layer_norm_forward(TensorSpan tangents, const Tensor& input, Ints normalized_shape,
                             const Tensor& mean, const Tensor& rstd, const Tensor* weight,
                             double eps);
TensorRef batch_norm_forward(TensorSpan tangents, const Tensor& input, const Tensor* weight,
                             const Tensor* running_mean, const Tensor* running_var,
                             const Tensor& stats, bool training, double eps);

// ---- softmax ----
TensorRef log_softmax_forward(const Tensor& t, const Tensor& y, int64_t dim);

}  // namespace TT_NS::formula
