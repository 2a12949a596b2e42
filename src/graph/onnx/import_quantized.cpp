// Numbers as 8-bit integers with scales and zero points, and products of such integers, which are
// exact: they are computed with floating numbers that hold every sum.
#include "graph/onnx/importer.h"
#include "graph/onnx/tensor_message.h"
#include "ops/gen/ops.h"

namespace TT_NS {

// Input i, the scale or the zero point of all elements or of each index of an axis, for elements
// that it broadcasts to.
TensorRef OnnxImporter::along_axis(int64_t i) const {
  if (in(i).ndim > 1 || integer("block_size", 0)) refuse("blocks with scales of their own");
  return per_position(in(i), in(0).ndim, integer("axis", 1));
}
// The dtype of the result where the node does not name it is `inferred`.
Dtype OnnxImporter::output_dtype(Dtype inferred) const {
  const int64_t named = integer("output_dtype", 0);
  return named ? model_dtype(named) : inferred;
}
TensorRef clamped_to(const Tensor& x, Dtype to) {
  const bool is_signed = to == Dtype::kI8 || to == Dtype::kI16;
  if (!is_signed && to != Dtype::kU8 && to != Dtype::kU16)
    fail(TT_NOT_IMPLEMENTED, "a model quantizes to {}: must be integers of 8 or 16 bits", fmt(to));
  const int64_t range = int64_t(1) << 8 * item_size(to);
  const int64_t least = is_signed ? -range / 2 : 0;
  const Scalar low(least);
  const Scalar high(least + range - 1);
  return op::to_dtype(*op::clamp(x, &low, &high), to);
}
TensorRef OnnxImporter::quantize() const {
  const Dtype to = has(2) ? in(2).dtype : output_dtype(Dtype::kU8);
  TensorRef y = op::round(*op::div_true(in(0), *along_axis(1)));
  if (has(2)) y = op::add(*y, *op::to_dtype(*along_axis(2), y->dtype));
  return clamped_to(*y, to);
}
TensorRef OnnxImporter::dequantize() const {
  const Dtype to = in(1).dtype;
  TensorRef y = op::to_dtype(in(0), to);
  if (has(2)) y = op::sub(*y, *op::to_dtype(*along_axis(2), to));
  y = op::mul(*y, *along_axis(1));
  return op::to_dtype(*y, output_dtype(to));
}

// Quantizes to uint8 by a scale and a zero point that follow from the extremes of x and 0.
OnnxImporter::ByRange OnnxImporter::quantized_by_range(const Tensor& x) const {
  const Scalar zero(0);
  const Scalar most(255);
  if (x.dtype != Dtype::kF32) refuse("a dtype other than float32");
  TensorRef low = op::clamp_max(*op::amin(x), zero);
  TensorRef high = op::clamp_min(*op::amax(x), zero);
  TensorRef range = op::sub(*high, *low);
  TensorRef scale = op::masked_fill(*op::div(*range, most), *op::eq(*range, zero), 1);
  TensorRef exact = op::rsub(*op::div_true(*low, *scale), zero);
  TensorRef point = op::round(*op::clamp(*exact, &zero, &most));
  TensorRef y = op::add(*op::round(*op::div_true(x, *scale)), *point);
  return {op::clamp(*y, &zero, &most), std::move(scale), std::move(point)};
}
void OnnxImporter::quantize_by_range() {
  ByRange x = quantized_by_range(in(0));
  give(op::to_dtype(*x.numbers, Dtype::kU8));
  give(std::move(x.scale));
  give(op::to_dtype(*x.point, Dtype::kU8));
}

Dtype exact_dtype(int64_t terms) {
  constexpr int64_t kTerms = (1 << 24) / (255 * 255);
  return terms <= kTerms ? Dtype::kF32 : Dtype::kF64;
}

// Input i without its zero point, which is input `zero`: one, or one for each position along dim.
TensorRef OnnxImporter::centred(int64_t i, int64_t zero, int64_t along, Dtype dtype) const {
  if (item_size(in(i).dtype) != 1) refuse("an operand of no 8-bit integers");
  TensorRef x = op::to_dtype(in(i), dtype);
  if (!has(zero)) return x;
  return op::sub(*x, *op::to_dtype(*per_position(in(zero), in(i).ndim, along), dtype));
}
// t in a shape that broadcasts along one of ndim dimensions.
TensorRef OnnxImporter::per_position(const Tensor& t, int64_t ndim, int64_t along) const {
  if (t.ndim > 1) refuse("zero points or scales that are no vector");
  if (t.numel == 1) return op::reshape(t, {});
  if (!ndim) refuse("several scales or zero points of one number");
  Shape shape;
  shape.resize(ndim, 1);
  shape[dim(along, ndim)] = t.numel;
  return op::reshape(t, shape);
}

// The sums of the products of two operands, whose zero points are the inputs x_zero and w_zero.
TensorRef OnnxImporter::exact_convolution(int64_t w, int64_t x_zero, int64_t w_zero) const {
  constexpr int64_t kMany = 1 << 20;
  int64_t terms = 1;
  for (int64_t d = 1; d < in(w).ndim; d++) terms = min(terms * min(in(w).size(d), kMany), kMany);
  const Dtype exact = exact_dtype(terms);
  return convolution(*centred(0, x_zero, 0, exact), *centred(w, w_zero, 0, exact), nullptr);
}
TensorRef OnnxImporter::exact_matmul(int64_t b, int64_t a_zero, int64_t b_zero) const {
  const Dtype exact = exact_dtype(in(0).ndim ? in(0).size(-1) : 1);
  return op::matmul(*centred(0, a_zero, -2, exact), *centred(b, b_zero, -1, exact));
}

// Sums times the scales of both operands, over that of the result, of which input 6 is the scale
// and 7 the zero point.
TensorRef OnnxImporter::requantized(const Tensor& sums, int64_t along) const {
  const Dtype to = in(7).dtype;
  TensorRef factor =
      op::mul(*per_position(in(1), sums.ndim, -2), *per_position(in(4), sums.ndim, along));
  factor = op::div_true(*factor, *op::reshape(in(6), {}));
  TensorRef y = op::round(*op::mul(*op::to_dtype(sums, factor->dtype), *factor));
  y = op::add(*y, *op::to_dtype(*op::reshape(in(7), {}), y->dtype));
  return clamped_to(*y, to);
}
TensorRef OnnxImporter::quantized_convolution() const {
  TensorRef sums = exact_convolution(3, 2, 5);
  if (has(8)) {
    const TensorRef bias = per_position(in(8), sums->ndim, 1);
    // Such sums may need more bits than float32 has.
    sums = op::add(*op::to_dtype(*sums, Dtype::kF64), *op::to_dtype(*bias, Dtype::kF64));
  }
  return requantized(*sums, 1);
}

bool OnnxImporter::quantized() {
  static constexpr OneResult kReaders[] = {
      {"ConvInteger",
       [](Node& n) { return op::to_dtype(*n.exact_convolution(1, 2, 3), Dtype::kI32); }},
      {"DequantizeLinear", [](Node& n) { return n.dequantize(); }},
      {"MatMulInteger",
       [](Node& n) { return op::to_dtype(*n.exact_matmul(1, 2, 3), Dtype::kI32); }},
      {"QLinearConv", [](Node& n) { return n.quantized_convolution(); }},
      {"QLinearMatMul", [](Node& n) { return n.requantized(*n.exact_matmul(3, 2, 5), -1); }},
      {"QuantizeLinear", [](Node& n) { return n.quantize(); }},
  };
  if (give_one(Span<const OneResult>(kReaders))) return true;
  if (!is(type_, "DynamicQuantizeLinear")) return false;
  quantize_by_range();
  return true;
}

}  // namespace TT_NS
