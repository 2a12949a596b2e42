// Shifts of bits, and tensors that integers stand for.
#include "graph/onnx/exporter.h"

#include <string.h>

namespace TT_NS {

// ---- shifts ----

// Products with powers of 2, and quotients that are rounded down.
void OnnxExporter::emit_shift() {
  const Dtype d = out_value().dtype;
  const Dtype wide = Dtype::kI64;
  const bool left = strncmp(op(), "bitwise_left", 12) == 0;
  const bool is_tensor = arg("other").kind == Value::kTensor;
  const ModelValue x = cast(tensor("self"), wide);
  const ModelValue by = is_tensor ? cast(tensor("other"), wide) : number(real("other"), wide);
  const int64_t width = 8 * item_size(d) - !left;  // a shift to the right leaves the sign
  const ModelValue over = compared("Or", compared("Less", by, number(0, wide)),
                                   compared("GreaterOrEqual", by, number(double(width), wide)));
  const ModelValue safe = node("Where", {over, number(0, wide), by}, wide);
  const ModelValue power = node("Pow", {number(2, wide), safe}, wide);
  if (left)
    return give(node("Where", {over, number(0, wide), node("Mul", {x, power}, wide)}, wide));
  if (d == Dtype::kU64) refuse("uint64");
  const ModelValue rest = node("Mod", {x, power}, wide);
  const ModelValue quotient = node("Div", {node("Sub", {x, rest}, wide), power}, wide);
  const ModelValue sign = node(
      "Where", {compared("Less", x, number(0, wide)), number(-1, wide), number(0, wide)}, wide);
  give(node("Where", {over, sign, quotient}, wide));
}

// ---- quantisation ----

void OnnxExporter::emit_fake_quantize() {
  const Dtype d = out_value().dtype;
  const Dtype wide = d == Dtype::kF64 ? d : Dtype::kF32;
  const ModelValue scale = cast(tensor("scale"), wide);
  const ModelValue zero = cast(tensor("zero_point"), wide);
  const ModelValue x = cast(tensor("input"), wide);
  ModelValue q = node("Add", {node("Round", {node("Div", {x, scale}, wide)}, wide), zero}, wide);
  q = node("Min", {q, number(real("quant_max"), wide)}, wide);
  q = node("Max", {q, number(real("quant_min"), wide)}, wide);
  give(node("Mul", {node("Sub", {q, zero}, wide), scale}, wide));
}

// The scale or the zero point of a tensor or of its channels, to be broadcast.
ModelValue OnnxExporter::quantization(const char* name) {
  const Dtype d = Dtype::kF32;
  const bool by_channel = find_arg("scales") != nullptr;
  Text list(name);
  if (by_channel) list.add("s");
  const char* const own = list.c_str();
  if (!by_channel) return number(real(own), d);
  if (!has(own)) return number(0, d);
  Shape sizes;
  sizes.resize(value("input").ndim(), 1);
  sizes[wrap_dim(integer("axis"), sizes.size())] = value(own).numel();
  return reshape(cast(tensor(own), d), sizes);
}
void OnnxExporter::emit_quantize() {
  const Dtype d = Dtype::kF32;
  const ModelValue parts = node("Div", {cast(tensor("input"), d), quantization("scale")}, d);
  ModelValue q = node("Add", {node("Round", {parts}, d), quantization("zero_point")}, d);
  q = node("Min", {q, number(real("quant_max"), d)}, d);
  give(node("Max", {q, number(real("quant_min"), d)}, d));
}
void OnnxExporter::emit_dequantize() {
  const Dtype d = Dtype::kF32;
  const ModelValue q = node("Sub", {cast(tensor("input"), d), quantization("zero_point")}, d);
  give(node("Mul", {q, quantization("scale")}, d));
}

bool OnnxExporter::emit_integers() {
  static constexpr Emitter kTable[] = {
      {"bitwise_left_shift", &OnnxExporter::emit_shift},
      {"bitwise_left_shift_scalar", &OnnxExporter::emit_shift},
      {"bitwise_right_shift", &OnnxExporter::emit_shift},
      {"bitwise_right_shift_scalar", &OnnxExporter::emit_shift},
      {"quantize_per_tensor", &OnnxExporter::emit_quantize},
      {"quantize_per_channel", &OnnxExporter::emit_quantize},
      {"dequantize_per_tensor", &OnnxExporter::emit_dequantize},
      {"dequantize_per_channel", &OnnxExporter::emit_dequantize},
      {"fake_quantize", &OnnxExporter::emit_fake_quantize},
  };
  return emit_by(kTable);
}

}  // namespace TT_NS
