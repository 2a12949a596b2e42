// Products of operands with a fixed number of dimensions: mm, bmm, mv, dot and outer in terms of
// the general ones; baddbmm. addmm is in matmul.cpp.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::impl {

static void check_inner(const Tensor& a, int64_t n, const Tensor& b, int64_t m,
                        const char* b_name) {
  if (n != m)
    fail_arg(TT_SHAPE, b_name, "self is {}, {} is {}: the inner sizes {} and {} must be equal",
             a.sizes(), b_name, b.sizes(), n, m);
}

TensorRef mm(Call, const Tensor& self, const Tensor& mat2) {
  check_ndim(self, 2, "self");
  check_ndim(mat2, 2, "mat2");
  check_inner(self, self.size(1), mat2, mat2.size(0), "mat2");
  return op::matmul_stack(self, mat2);
}

TensorRef bmm(Call, const Tensor& self, const Tensor& mat2) {
  check_ndim(self, 3, "self");
  check_ndim(mat2, 3, "mat2");
  if (self.size(0) != mat2.size(0))
    fail_arg(TT_SHAPE, "mat2", "self is {}, mat2 is {}: must have equal batch sizes", self.sizes(),
             mat2.sizes());
  check_inner(self, self.size(2), mat2, mat2.size(1), "mat2");
  return op::matmul_stack(self, mat2);
}

TensorRef mv(Call, const Tensor& self, const Tensor& vec) {
  check_ndim(self, 2, "self");
  check_ndim(vec, 1, "vec");
  check_inner(self, self.size(1), vec, vec.size(0), "vec");
  const MaskGuard uncast(self.is_cpu() ? bit(kKeyAutocast) : 0);  // PyTorch casts it on CUDA alone
  return op::matmul(self, vec);
}

TensorRef dot(Call, const Tensor& self, const Tensor& tensor) {
  check_ndim(self, 1, "self");
  check_ndim(tensor, 1, "tensor");
  check_inner(self, self.size(0), tensor, tensor.size(0), "tensor");
  const MaskGuard uncast(bit(kKeyAutocast));  // as in PyTorch
  return op::matmul(self, tensor);
}

TensorRef outer(Call, const Tensor& self, const Tensor& vec2) {
  check_ndim(self, 1, "self");
  check_ndim(vec2, 1, "vec2");
  return op::mul(op::unsqueeze(self, 1), vec2);
}

// input1 times the matrices of each feature, then the products with input2.
static TensorRef bilinear_features(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                                   const Tensor* bias) {
  const int64_t features = weight.size(0);
  const int64_t wide[2] = {input1.size(-1), features * input2.size(-1)};
  const int64_t split[3] = {numel_of(input1.sizes().slice(0, input1.ndim - 1)), features,
                            input2.size(-1)};
  const int64_t order[3] = {1, 0, 2};
  const int64_t last[1] = {2};
  TensorRef matrices = op::reshape(*op::permute(weight, order), wide);
  const int64_t left[2] = {split[0], input1.size(-1)};
  TensorRef products = op::reshape(*op::matmul(*op::reshape(input1, left), *matrices), split);
  const int64_t right[3] = {split[0], 1, input2.size(-1)};
  TensorRef y = op::sum_dim(*op::mul(*products, *op::reshape(input2, right)), last);
  Shape shape(input1.sizes().slice(0, input1.ndim - 1));
  shape.push_back(features);
  y = op::reshape(*y, shape);
  if (bias) y = op::add(*y, *bias);
  return y->dtype == input1.dtype ? std::move(y) : op::to_dtype(*y, input1.dtype);  // integers
}

TensorRef bilinear(Call, const Tensor& input1, const Tensor& input2, const Tensor& weight,
                   const Tensor* bias) {
  check_ndim(weight, 3, "weight");
  if (input1.ndim == 0 || input1.ndim != input2.ndim ||
      !same(input1.sizes().slice(0, input1.ndim - 1), input2.sizes().slice(0, input2.ndim - 1)))
    fail_arg(TT_SHAPE, "input2", "input1 is {}, input2 is {}: all sizes but the last must be equal",
             input1.sizes(), input2.sizes());
  if (input1.size(-1) != weight.size(1) || input2.size(-1) != weight.size(2))
    fail_arg(TT_SHAPE, "weight",
             "weight is {}, input1 is {}, input2 is {}: its last sizes must be theirs",
             weight.sizes(), input1.sizes(), input2.sizes());
  if (bias && (bias->ndim != 1 || bias->numel != weight.size(0)))
    fail_arg(TT_SHAPE, "bias", "bias is {}: must be [{}]", bias->sizes(), weight.size(0));
  for (const Tensor* t : {&input2, &weight, bias})
    if (t && t->dtype != input1.dtype)
      fail_arg(TT_DTYPE, "input1", "input1 is {}, another operand is {}: must be equal",
               fmt(input1.dtype), fmt(t->dtype));
  if (input1.item_size() != 2 || !is_float(input1.dtype))
    return bilinear_features(input1, input2, weight, bias);
  auto wide = [](const Tensor& t) { return op::to_dtype(t, Dtype::kF32); };  // rounded once
  TensorRef b = bias ? wide(*bias) : TensorRef();
  return op::to_dtype(*bilinear_features(*wide(input1), *wide(input2), *wide(weight), b.get()),
                      input1.dtype);
}

}  // namespace TT_NS::impl
