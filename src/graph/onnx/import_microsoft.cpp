// Operators of the domain com.microsoft, which onnxruntime's optimizer and quantization write.
#include "base/arith.h"
#include "graph/onnx/importer.h"
#include "ops/gen/ops.h"

namespace TT_NS {

namespace {

constexpr int64_t kTanh = 1;  // gelu's approximation
constexpr double kQuickGelu = 1.702;

// The dimension before the last to the front of the batch's, where the batch begins with rows.
TensorRef rows_behind_batch(const Tensor& x) {
  const int64_t from[] = {0};
  const int64_t to[] = {x.ndim - 2};
  return op::movedim(x, Ints(from), Ints(to));
}

}  // namespace

// ---- products and what follows them ----

TensorRef OnnxImporter::fused_matmul() const {
  TensorRef x[2] = {TensorRef::share(&in(0)), TensorRef::share(&in(1))};
  const char* const batches[] = {"transBatchA", "transBatchB"};
  const char* const transposes[] = {"transA", "transB"};
  for (int i = 0; i < 2; i++) {
    if (x[i]->ndim < 2) continue;
    if (integer(batches[i], 0)) x[i] = rows_behind_batch(*x[i]);
    if (integer(transposes[i], 0)) x[i] = op::transpose(*x[i], -2, -1);
  }
  TensorRef y = op::matmul(*x[0], *x[1]);
  const double alpha = real("alpha", 1);
  return alpha == 1 ? std::move(y) : op::mul(*y, Scalar(alpha));
}

// The activation that the node names; FusedGemm has its numbers as attributes, FusedConv as a list.
TensorRef OnnxImporter::activated(TensorRef y) const {
  const OnnxAttr* name = attr("activation");
  if (!name || !name->s.n) return y;
  const OnnxAttr* list = attr("activation_params");
  const auto parameter = [&](int64_t i, const char* of_gemm, double missing) {
    if (list && i < list->reals.size()) return double(list->reals[i]);
    return real(of_gemm, missing);
  };
  if (is(name->s, "Relu")) return op::relu(*y);
  if (is(name->s, "Tanh")) return op::tanh(*y);
  if (is(name->s, "Sigmoid")) return op::sigmoid(*y);
  if (is(name->s, "LeakyRelu")) return op::leaky_relu(*y, parameter(0, "activation_alpha", 0.01f));
  const double a = parameter(0, "activation_alpha", 0.2f);
  const double b = parameter(1, "activation_beta", 0.5);
  if (is(name->s, "Clip")) {
    const Scalar low(a);
    const Scalar high(b);
    return op::clamp(*y, &low, &high);
  }
  if (!is(name->s, "HardSigmoid")) refuse("its activation");
  const Scalar zero(0), one(1);
  return op::clamp(*op::add(*op::mul(*y, Scalar(a)), Scalar(b)), &zero, &one);
}

// Input 3 is added before the activation.
TensorRef OnnxImporter::fused_convolution() const {
  TensorRef y = convolution(in(0), in(1), opt(2));
  if (has(3)) y = op::add(*y, in(3));
  return activated(std::move(y));
}

TensorRef OnnxImporter::biased_gelu(int64_t approximate) const {
  return op::gelu(has(1) ? *op::add(in(0), in(1)) : in(0), approximate);
}

namespace {

constexpr int64_t kByte = 8;  // bits

// Number i of those of a few bits each that follow each other, the lowest first.
float packed_number(const char* from, int64_t i, int64_t bits) {
  const int64_t at = i * bits;
  return float(uint8_t(from[at / kByte]) >> at % kByte & ((1 << bits) - 1));
}
float number_at(const Tensor& t, int64_t i) {
  return float(load_scalar(t.data + i * t.item_size(), t.dtype).real());
}

}  // namespace

// A matrix whose rows are blocks of numbers of a few bits, each block with a scale and a zero
// point, which is packed alike or a number. Computed here: kernels are left out meanwhile.
TensorRef OnnxImporter::unpacked_weight() const {
  for (int64_t i = 1; i < 4; i++)
    if (has(i) && (!item(inputs_[i]).known || !in(i).contiguous()))
      refuse("weights that depend on inputs");
  if (has(4)) refuse("a permutation of groups");
  const int64_t bits = integer("bits", 4);
  const int64_t block = integer("block_size", 0);
  const int64_t columns = integer("K", 0);
  const int64_t rows = integer("N", 0);
  if ((bits != 2 && bits != 4 && bits != 8) || block < 16 || block > kMaxMade || block % kByte ||
      columns < 1 || columns > kMaxMade || rows < 1)
    refuse("bits, blocks or sizes");
  const int64_t blocks = ceil_div(columns, block);
  const int64_t block_bytes = block * bits / kByte;
  const int64_t zero_bytes = ceil_div(blocks * bits, kByte);
  const bool packs_zeros = has(3) && in(3).dtype == Dtype::kU8;
  const Tensor& packed = in(1);
  if (packed.dtype != Dtype::kU8 || rows > packed.numel ||
      packed.numel != rows * blocks * block_bytes || in(2).numel != rows * blocks ||
      (has(3) && in(3).numel != rows * (packs_zeros ? zero_bytes : blocks)))
    fail(TT_FORMAT, "not an ONNX model: node {} has weights of other sizes", at_);
  const int64_t sizes[] = {rows, columns};
  TensorRef weight = new_tensor(Ints(sizes), Dtype::kF32, kCpuDevice);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t b = 0; b < blocks; b++) {
      const char* const from = packed.data + (r * blocks + b) * block_bytes;
      float* const to = weight->as<float>() + r * columns + b * block;
      const float scale = number_at(in(2), r * blocks + b);
      float zero = float(1 << (bits - 1));
      if (packs_zeros) zero = packed_number(in(3).data + r * zero_bytes, b, bits);
      else if (has(3)) zero = number_at(in(3), r * blocks + b);
      const int64_t n = min(block, columns - b * block);
      for (int64_t i = 0; i < n; i++) to[i] = (packed_number(from, i, bits) - zero) * scale;
    }
  return weight;
}

TensorRef OnnxImporter::matmul_of_bits() const {
  TensorRef weight = unpacked_weight();
  if (in(0).dtype != Dtype::kF32) weight = op::to_dtype(*weight, in(0).dtype);
  return op::linear(in(0), *weight, opt(5));
}

// ---- 8-bit integers ----

// The floating numbers that input i stands for, of which the next inputs are scale and zero point.
TensorRef OnnxImporter::real_numbers(int64_t i) const {
  TensorRef y = op::to_dtype(in(i), Dtype::kF32);
  if (has(i + 2)) y = op::sub(*y, *op::to_dtype(*per_position(in(i + 2), 0, 0), Dtype::kF32));
  return op::mul(*y, *per_position(in(i + 1), 0, 0));
}
// Numbers as integers with the scale and the zero point that are inputs i and i + 1.
TensorRef OnnxImporter::as_integers(const Tensor& x, int64_t i) const {
  const Dtype to = has(i + 1) ? in(i + 1).dtype : Dtype::kU8;
  TensorRef y = op::round(*op::div_true(x, *per_position(in(i), 0, 0)));
  if (has(i + 1)) y = op::add(*y, *op::to_dtype(*per_position(in(i + 1), 0, 0), y->dtype));
  return clamped_to(*y, to);
}

TensorRef OnnxImporter::joined_integers() const {
  TensorList parts;
  SmallVec<const Tensor*, 8> list;
  for (int64_t i = 2; i + 1 < inputs_.size(); i += 3) {
    parts.push_back(real_numbers(i));
    list.push_back(parts.back().get());
  }
  if (list.empty()) refuse("nothing to join");
  const TensorRef y = op::cat(list, dim(integer("axis", 0), parts[0]->ndim));
  return as_integers(*y, 0);
}

TensorRef OnnxImporter::mean_of_integers(bool whole) const {
  if (integer("channels_last", 0)) refuse("channels in the last dimension");
  const TensorRef x = real_numbers(0);
  if (!whole) return as_integers(*mean_pooled(*x), 3);
  Shape dims;
  for (int64_t d = 2; d < x->ndim; d++) dims.push_back(d);
  if (dims.empty()) refuse("an input without spatial dimensions");
  return as_integers(*op::mean_dim(*x, dims, true), 3);
}

TensorRef OnnxImporter::softmax_of_integers() const {
  const TensorRef x = real_numbers(0);
  const int64_t d = dim(integer("axis", -1), x->ndim);
  return as_integers(*softmax_from(*x, d, integer("opset", 13), false), 3);
}

// Sums of products times both scales, of which inputs `a` and `b` are, plus a bias.
TensorRef OnnxImporter::scaled_sums(const Tensor& sums, int64_t a, int64_t b, int64_t bias) const {
  const TensorRef scale = op::mul(*per_position(in(a), 0, 0), *per_position(in(b), sums.ndim, -1));
  TensorRef y = op::mul(*op::to_dtype(sums, scale->dtype), *scale);
  return has(bias) ? op::add(*y, in(bias)) : std::move(y);
}

TensorRef OnnxImporter::exact_projection() const {
  return scaled_sums(*exact_matmul(1, 6, 7), 3, 4, 2);
}

// Products with integers b, which are exact in b's dtype, times the scales of both.
TensorRef OnnxImporter::product_of_ranges(const ByRange& a, const Tensor& b,
                                          const Tensor& b_scale) {
  const TensorRef x = op::to_dtype(*op::sub(*a.numbers, *a.point), b.dtype);
  const TensorRef sums = op::matmul(*x, b);
  const TensorRef scale = op::mul(*a.scale, b_scale);
  return op::mul(*op::to_dtype(*sums, scale->dtype), *scale);
}

TensorRef OnnxImporter::matmul_of_ranges() const {
  const Dtype exact = exact_dtype(in(0).ndim ? in(0).size(-1) : 1);
  const TensorRef b_scale = per_position(in(2), 1, -1);
  TensorRef y = product_of_ranges(quantized_by_range(in(0)), *centred(1, 3, -1, exact), *b_scale);
  return has(4) ? op::add(*y, in(4)) : std::move(y);
}

TensorRef OnnxImporter::gemm_of_integers() const {
  if (in(0).ndim != 2 || in(3).ndim != 2) refuse("operands that are no matrices");
  const bool turns[] = {integer("transA", 0) != 0, integer("transB", 0) != 0};
  const Dtype exact = exact_dtype(in(0).size(turns[0] ? 0 : 1));
  TensorRef a = centred(0, 2, 0, exact);
  TensorRef b = centred(3, 5, turns[1] ? 0 : 1, exact);
  if (turns[0]) a = op::transpose(*a, 0, 1);
  if (turns[1]) b = op::transpose(*b, 0, 1);
  TensorRef y = op::to_dtype(*op::matmul(*a, *b), Dtype::kF64);
  if (has(6)) y = op::add(*y, *op::to_dtype(in(6), Dtype::kF64));
  y = op::to_dtype(*y, Dtype::kF32);
  TensorRef scale = op::mul(*per_position(in(1), 0, 0), *per_position(in(4), 2, -1));
  if (real("alpha", 1) != 1) scale = op::mul(*scale, Scalar(real("alpha", 1)));
  y = op::mul(*y, *scale);
  return has(7) ? as_integers(*y, 7) : std::move(y);
}

bool OnnxImporter::microsoft() {
  static constexpr OneResult kReaders[] = {
      {"BiasGelu", [](Node& n) { return n.biased_gelu(0); }},
      {"DequantizeLinear", [](Node& n) { return n.dequantize(); }},
      {"DynamicQuantizeMatMul", [](Node& n) { return n.matmul_of_ranges(); }},
      {"FastGelu", [](Node& n) { return n.biased_gelu(kTanh); }},
      {"FusedConv", [](Node& n) { return n.fused_convolution(); }},
      {"FusedGemm", [](Node& n) { return n.activated(n.gemm()); }},
      {"FusedMatMul", [](Node& n) { return n.fused_matmul(); }},
      {"Gelu", [](Node& n) { return op::gelu(n.in(0)); }},
      {"MatMulIntegerToFloat",
       [](Node& n) { return n.scaled_sums(*n.exact_matmul(1, 4, 5), 2, 3, 6); }},
      {"MatMulNBits", [](Node& n) { return n.matmul_of_bits(); }},
      {"QGemm", [](Node& n) { return n.gemm_of_integers(); }},
      {"QLinearAdd",
       [](Node& n) { return n.as_integers(*op::add(*n.real_numbers(0), *n.real_numbers(3)), 6); }},
      {"QLinearAveragePool", [](Node& n) { return n.mean_of_integers(false); }},
      {"QLinearConcat", [](Node& n) { return n.joined_integers(); }},
      {"QLinearGlobalAveragePool", [](Node& n) { return n.mean_of_integers(true); }},
      {"QLinearLeakyRelu",
       [](Node& n) {
         const double slope = n.real("alpha", 0.01f);
         return n.as_integers(*op::leaky_relu(*n.real_numbers(0), slope), 3);
       }},
      {"QLinearMul",
       [](Node& n) { return n.as_integers(*op::mul(*n.real_numbers(0), *n.real_numbers(3)), 6); }},
      {"QLinearSigmoid",
       [](Node& n) { return n.as_integers(*op::sigmoid(*n.real_numbers(0)), 3); }},
      {"QLinearSoftmax", [](Node& n) { return n.softmax_of_integers(); }},
      {"QLinearWhere",
       [](Node& n) {
         return n.as_integers(*op::where(n.in(0), *n.real_numbers(1), *n.real_numbers(4)), 7);
       }},
      {"QuantizeLinear", [](Node& n) { return n.quantize(); }},
      {"QuickGelu",
       [](Node& n) {
         const TensorRef x = op::mul(n.in(0), Scalar(n.real("alpha", kQuickGelu)));
         return op::mul(n.in(0), *op::sigmoid(*x));
       }},
      {"TransposeMatMul", [](Node& n) { return n.fused_matmul(); }},
  };
  return give_one(kReaders) || attention_layer() || recurrent();
}

}  // namespace TT_NS
