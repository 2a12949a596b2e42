#include "graph/onnx/importer.h"
#include "graph/onnx/tensor_message.h"
#include "ops/gen/ops.h"

namespace TT_NS {

// ---- elementwise operators ----

bool OnnxImporter::elementwise() {
  static constexpr struct {
    const char* onnx;
    TensorRef (*call)(const Tensor&);
  } kUnary[] = {
      {"Abs", op::abs},
      {"Acos", op::acos},
      {"Acosh", op::acosh},
      {"Asin", op::asin},
      {"Asinh", op::asinh},
      {"Atan", op::atan},
      {"Atanh", op::atanh},
      {"Ceil", op::ceil},
      {"Cos", op::cos},
      {"Cosh", op::cosh},
      {"Erf", op::erf},
      {"Exp", op::exp},
      {"Floor", op::floor},
      {"Log", op::log},
      {"Neg", op::neg},
      {"Relu", op::relu},
      {"Reciprocal", op::reciprocal},
      {"Sigmoid", op::sigmoid},
      {"Sign", op::sign},
      {"Sin", op::sin},
      {"Sinh", op::sinh},
      {"Sqrt", op::sqrt},
      {"Tan", op::tan},
      {"Tanh", op::tanh},
      {"Not", op::logical_not},
      {"IsNaN", op::isnan},
      {"IsInf", op::isinf},
      {"Mish", op::mish},
      {"Softsign", op::softsign},
      {"HardSwish", op::hardswish},
      {"BitwiseNot", op::bitwise_not},
  };
  static constexpr struct {
    const char* onnx;
    TensorRef (*call)(const Tensor&, const Tensor&);
  } kBinary[] = {
      {"Mul", op::mul},
      {"And", op::logical_and},
      {"Or", op::logical_or},
      {"Xor", op::logical_xor},
      {"Equal", op::eq},
      {"Greater", op::gt},
      {"GreaterOrEqual", op::ge},
      {"Less", op::lt},
      {"LessOrEqual", op::le},
      {"BitwiseAnd", op::bitwise_and},
      {"BitwiseOr", op::bitwise_or},
      {"BitwiseXor", op::bitwise_xor},
      {"PRelu",
       [](const Tensor& x, const Tensor& slope) {
         return op::where(*op::lt(x, Scalar(0)), *op::mul(x, slope), x);
       }},
  };
  for (const auto& f : kUnary)
    if (is(type_, f.onnx)) return give(f.call(in(0))), true;
  for (const auto& f : kBinary)
    if (is(type_, f.onnx)) return give(f.call(in(0), in(1))), true;
  const auto sum = [](const Tensor& a, const Tensor& b) { return op::add(a, b); };
  const auto all = [&](auto join) {
    TensorRef y = TensorRef::share(&in(0));
    for (int64_t i = 1; i < inputs_.size(); i++) y = join(*y, in(i));
    return y;
  };
  if (is(type_, "Add") || is(type_, "Sum")) return give(all(sum)), true;
  if (is(type_, "Max")) return give(all(op::maximum)), true;
  if (is(type_, "Min")) return give(all(op::minimum)), true;
  if (is(type_, "Sub")) return give(op::sub(in(0), in(1))), true;
  if (is(type_, "Div")) return give(op::div(in(0), in(1), is_float(in(0).dtype) ? 0 : 2)), true;
  if (is(type_, "Pow")) {
    TensorRef y = op::pow(in(0), in(1));
    return give(y->dtype == in(0).dtype ? y : op::to_dtype(*y, in(0).dtype)), true;
  }
  if (is(type_, "Mod"))
    return give(integer("fmod", 0) ? op::fmod(in(0), in(1)) : op::remainder(in(0), in(1))), true;
  if (is(type_, "Where")) return give(op::where(in(0), in(1), in(2))), true;
  if (is(type_, "Round")) return give(op::round(in(0))), true;
  if (is(type_, "Gelu")) return give(op::gelu(in(0), text_is("approximate", "tanh", false))), true;
  if (is(type_, "Elu")) return give(op::elu(in(0), real("alpha", 1))), true;
  if (is(type_, "Celu")) return give(op::celu(in(0), real("alpha", 1))), true;
  if (is(type_, "LeakyRelu")) return give(op::leaky_relu(in(0), real("alpha", 0.01f))), true;
  if (is(type_, "Softplus")) return give(op::softplus(in(0))), true;
  if (is(type_, "HardSigmoid")) {
    const Scalar zero(0), one(1);
    const TensorRef y = op::mul(in(0), Scalar(real("alpha", 0.2f)));
    return give(op::clamp(*op::add(*y, Scalar(real("beta", 0.5))), &zero, &one)), true;
  }
  if (is(type_, "Clip")) {
    const bool old = opset_ < 11;
    const Scalar low(old ? real("min", 0) : number(1, 0)),
        high(old ? real("max", 0) : number(2, 0));
    const bool has_low = old ? attr("min") != nullptr : has(1);
    const bool has_high = old ? attr("max") != nullptr : has(2);
    if (!has_low && !has_high) return give(TensorRef::share(&in(0))), true;
    return give(op::clamp(in(0), has_low ? &low : nullptr, has_high ? &high : nullptr)), true;
  }
  if (is(type_, "Cast")) return give(op::to_dtype(in(0), model_dtype(integer("to", 0)))), true;
  if (is(type_, "Softmax") || is(type_, "LogSoftmax")) {
    const int64_t d = dim(integer("axis", opset_ < 13 ? 1 : -1), in(0).ndim);
    if (opset_ < 13 && d != in(0).ndim - 1) refuse("several axes, before opset 13");
    return give(is(type_, "Softmax") ? op::softmax(in(0), d) : op::log_softmax(in(0), d)), true;
  }
  return false;
}

// ---- products ----

bool OnnxImporter::product() {
  if (is(type_, "MatMul")) {
    // The product with a constant matrix is a linear layer, as tt exports it.
    const bool linear = has(0) && has(1) && item(inputs_[1]).known && in(1).ndim == 2 &&
                        in(0).ndim >= 2 && is_float(in(0).dtype);
    if (linear) {
      const int64_t order[] = {1, 0};
      return give(op::linear(in(0), *op::permute(in(1), Ints(order)))), true;
    }
    return give(op::matmul(in(0), in(1))), true;
  }
  if (is(type_, "Gemm")) {
    const int64_t order[] = {1, 0};
    const double alpha = real("alpha", 1), beta = real("beta", 1);
    if (in(0).ndim != 2 || in(1).ndim != 2) refuse("operands that are no matrices");
    TensorRef a = TensorRef::share(&in(0)), b = TensorRef::share(&in(1));
    if (integer("transA", 0)) a = op::permute(*a, Ints(order));
    if (!integer("transB", 0)) b = op::permute(*b, Ints(order));
    const bool plain = alpha == 1 && beta == 1 && (!has(2) || in(2).ndim == 1);
    if (plain && (!has(2) || in(2).size(0) == b->size(0)))
      return give(op::linear(*a, *b, opt(2))), true;
    TensorRef y = op::linear(*a, *b);
    if (alpha != 1) y = op::mul(*y, Scalar(alpha));
    if (!has(2)) return give(y), true;
    if (beta == 1) return give(op::add(*y, in(2))), true;
    return give(op::add(*y, *op::mul(in(2), Scalar(beta)))), true;
  }
  return false;
}

}  // namespace TT_NS
