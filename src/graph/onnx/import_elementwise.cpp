#include "graph/onnx/importer.h"
#include "graph/onnx/tensor_message.h"
#include "ops/gen/ops.h"

namespace TT_NS {

namespace {

TensorRef sum(const Tensor& a, const Tensor& b) { return op::add(a, b); }

// Operators without attributes, of one input and of two.
constexpr struct {
  const char* type;
  TensorRef (*call)(const Tensor&);
} kUnary[] = {
    {"Abs", op::abs},
    {"Acos", op::acos},
    {"Acosh", op::acosh},
    {"Asin", op::asin},
    {"Asinh", op::asinh},
    {"Atan", op::atan},
    {"Atanh", op::atanh},
    {"BitwiseNot", op::bitwise_not},
    {"Ceil", op::ceil},
    {"Cos", op::cos},
    {"Cosh", op::cosh},
    {"Erf", op::erf},
    {"Exp", op::exp},
    {"Floor", op::floor},
    {"HardSwish", op::hardswish},
    {"IsInf", op::isinf},
    {"IsNaN", op::isnan},
    {"Log", op::log},
    {"Mish", op::mish},
    {"Neg", op::neg},
    {"Not", op::logical_not},
    {"Reciprocal", op::reciprocal},
    {"Relu", op::relu},
    {"Round", [](const Tensor& x) { return op::round(x); }},
    {"Sigmoid", op::sigmoid},
    {"Sign", op::sign},
    {"Sin", op::sin},
    {"Sinh", op::sinh},
    {"Softplus", [](const Tensor& x) { return op::softplus(x); }},
    {"Softsign", op::softsign},
    {"Sqrt", op::sqrt},
    {"Tan", op::tan},
    {"Tanh", op::tanh},
};
constexpr struct {
  const char* type;
  TensorRef (*call)(const Tensor&, const Tensor&);
} kBinary[] = {
    {"And", op::logical_and},
    {"BitwiseAnd", op::bitwise_and},
    {"BitwiseOr", op::bitwise_or},
    {"BitwiseXor", op::bitwise_xor},
    {"Div",
     [](const Tensor& a, const Tensor& b) { return op::div(a, b, is_float(a.dtype) ? 0 : 2); }},
    {"Equal", op::eq},
    {"Greater", op::gt},
    {"GreaterOrEqual", op::ge},
    {"Less", op::lt},
    {"LessOrEqual", op::le},
    {"Mul", op::mul},
    {"Or", op::logical_or},
    {"PRelu",
     [](const Tensor& x, const Tensor& slope) {
       return op::where(*op::lt(x, Scalar(0)), *op::mul(x, slope), x);
     }},
    {"Sub", [](const Tensor& a, const Tensor& b) { return op::sub(a, b); }},
    {"Xor", op::logical_xor},
};

}  // namespace

// ---- elementwise operators ----

TensorRef OnnxImporter::power() const {
  TensorRef y = op::pow(in(0), in(1));
  return y->dtype == in(0).dtype ? y : op::to_dtype(*y, in(0).dtype);
}

TensorRef OnnxImporter::hard_sigmoid() const {
  const Scalar zero(0), one(1);
  const TensorRef y = op::mul(in(0), Scalar(real("alpha", 0.2f)));
  return op::clamp(*op::add(*y, Scalar(real("beta", 0.5))), &zero, &one);
}

TensorRef OnnxImporter::clip() const {
  const bool old = opset_ < 11;  // the bounds are attributes
  const bool has_low = old ? attr("min") != nullptr : has(1);
  const bool has_high = old ? attr("max") != nullptr : has(2);
  if (!has_low && !has_high) return TensorRef::share(&in(0));
  const Scalar low(old ? real("min", 0) : number(1, 0));
  const Scalar high(old ? real("max", 0) : number(2, 0));
  return op::clamp(in(0), has_low ? &low : nullptr, has_high ? &high : nullptr);
}

TensorRef OnnxImporter::softmax() const {
  const int64_t d = dim(integer("axis", opset_ < 13 ? 1 : -1), in(0).ndim);
  return softmax_from(in(0), d, opset_, is(type_, "LogSoftmax"));
}
// Over dimension d, before opset 13 over all dimensions from d on.
TensorRef OnnxImporter::softmax_from(const Tensor& x, int64_t d, int64_t opset, bool log) const {
  if (opset >= 13 || d == x.ndim - 1) return log ? op::log_softmax(x, d) : op::softmax(x, d);
  const TensorRef rows = op::flatten(x, d, -1);
  const TensorRef y = log ? op::log_softmax(*rows, d) : op::softmax(*rows, d);
  return op::reshape(*y, x.sizes());
}

TensorRef OnnxImporter::swish() const {
  const TensorRef x = op::mul(in(0), Scalar(real("alpha", 1)));
  return op::mul(in(0), *op::sigmoid(*x));
}

TensorRef OnnxImporter::mean_of_inputs() const {
  return op::div_true(*folded(sum), Scalar(inputs_.size()));
}

TensorRef OnnxImporter::rms_norm() const {
  const int64_t d = dim(integer("axis", -1), in(0).ndim);
  const Shape shape(in(0).sizes().slice(d, in(0).ndim));
  const TensorRef scale = op::expand(in(1), shape);
  return op::rms_norm(in(0), shape, scale.get(), real("epsilon", 1e-5f));
}

// ---- quantization ----

// Add, Max and so on, of one input or more.
TensorRef OnnxImporter::folded(TensorRef (*join)(const Tensor&, const Tensor&)) const {
  TensorRef y = TensorRef::share(&in(0));
  for (int64_t i = 1; i < inputs_.size(); i++) y = join(*y, in(i));
  return y;
}

bool OnnxImporter::elementwise() {
  static constexpr OneResult kOthers[] = {
      {"Add", [](Node& n) { return n.folded(sum); }},
      {"Cast", [](Node& n) { return op::to_dtype(n.in(0), model_dtype(n.integer("to", 0))); }},
      {"CastLike", [](Node& n) { return op::to_dtype(n.in(0), n.in(1).dtype); }},
      {"Celu", [](Node& n) { return op::celu(n.in(0), n.real("alpha", 1)); }},
      {"Clip", [](Node& n) { return n.clip(); }},
      {"Elu", [](Node& n) { return op::elu(n.in(0), n.real("alpha", 1)); }},
      {"Gelu", [](Node& n) { return op::gelu(n.in(0), n.text_is("approximate", "tanh", false)); }},
      {"HardSigmoid", [](Node& n) { return n.hard_sigmoid(); }},
      {"LeakyRelu", [](Node& n) { return op::leaky_relu(n.in(0), n.real("alpha", 0.01f)); }},
      {"LogSoftmax", [](Node& n) { return n.softmax(); }},
      {"Max", [](Node& n) { return n.folded(op::maximum); }},
      {"Mean", [](Node& n) { return n.mean_of_inputs(); }},
      {"Min", [](Node& n) { return n.folded(op::minimum); }},
      {"Mod",
       [](Node& n) {
         const bool truncates = n.integer("fmod", 0);
         return truncates ? op::fmod(n.in(0), n.in(1)) : op::remainder(n.in(0), n.in(1));
       }},
      {"Pow", [](Node& n) { return n.power(); }},
      {"RMSNormalization", [](Node& n) { return n.rms_norm(); }},
      {"Softmax", [](Node& n) { return n.softmax(); }},
      {"Sum", [](Node& n) { return n.folded(sum); }},
      {"Swish", [](Node& n) { return n.swish(); }},
      {"Where", [](Node& n) { return op::where(n.in(0), n.in(1), n.in(2)); }},
  };
  for (const auto& f : kUnary) {
    if (!is(type_, f.type)) continue;
    give(f.call(in(0)));
    return true;
  }
  for (const auto& f : kBinary) {
    if (!is(type_, f.type)) continue;
    give(f.call(in(0), in(1)));
    return true;
  }
  return give_one(kOthers);
}

// ---- products ----

// The product with a constant matrix is a linear layer, as tt exports it.
TensorRef OnnxImporter::matmul() const {
  const bool linear = has(0) && has(1) && item(inputs_[1]).known && in(1).ndim == 2 &&
                      in(0).ndim >= 2 && is_float(in(0).dtype);
  if (!linear) return op::matmul(in(0), in(1));
  const int64_t order[] = {1, 0};
  return op::linear(in(0), *op::permute(in(1), Ints(order)));
}

// alpha a b + beta c
TensorRef OnnxImporter::gemm() const {
  const int64_t order[] = {1, 0};
  const double alpha = real("alpha", 1);
  const double beta = real("beta", 1);
  if (in(0).ndim != 2 || in(1).ndim != 2) refuse("operands that are no matrices");
  TensorRef a = TensorRef::share(&in(0));
  TensorRef b = TensorRef::share(&in(1));
  if (integer("transA", 0)) a = op::permute(*a, Ints(order));
  if (!integer("transB", 0)) b = op::permute(*b, Ints(order));
  const bool plain = alpha == 1 && beta == 1 && (!has(2) || in(2).ndim == 1);
  if (plain && (!has(2) || in(2).size(0) == b->size(0))) return op::linear(*a, *b, opt(2));
  TensorRef y = op::linear(*a, *b);
  if (alpha != 1) y = op::mul(*y, Scalar(alpha));
  if (!has(2)) return y;
  if (beta == 1) return op::add(*y, in(2));
  return op::add(*y, *op::mul(in(2), Scalar(beta)));
}

bool OnnxImporter::product() {
  static constexpr OneResult kProducts[] = {
      {"Gemm", [](Node& n) { return n.gemm(); }},
      {"MatMul", [](Node& n) { return n.matmul(); }},
  };
  return give_one(kProducts);
}

}  // namespace TT_NS
