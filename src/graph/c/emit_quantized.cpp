// Writes conversions to and from 8-bit integers and blocks, and products of them.
#include "graph/c/exporter.h"
#include "plan/quant_plan.h"

namespace TT_NS {

// Declares s and z, the scale and the zero point of the element in the open loops.
void CExporter::add_grid(const char* scale, const char* zero, int64_t axis, bool inverse) {
  const auto number_at = [&](const char* name) {
    const int32_t v = tensor(name);
    add_pointer(body_, v);
    body_.add("[");
    if (axis >= 0 && value(v).numel() > 1)
      body_.add("i").add(axis).add(" * ").add(value(v).strides[0]);
    else body_.add("0");
    body_.add("]");
  };
  body_.add("const float s = ");
  if (arg(scale).kind != Value::kTensor) {
    const float s = float(number(scale));
    add_float(body_, double(inverse ? 1.0f / s : s));
  } else {
    body_.add(inverse ? "1.0f / (float)" : "(float)");
    number_at(scale);
  }
  body_.add(", z = (float)");
  if (arg(zero).kind == Value::kTensor) number_at(zero);
  else body_.add(has_arg(zero) ? integer(zero) : 0);
  body_.add(";\n    ");
}

void CExporter::emit_quantize(bool back) {
  const bool channels = is("quantize_per_channel") || is("dequantize_per_channel");
  const IrValue& x = value(tensor("input"));
  const IrValue& y = value(node().outs[0]);
  if (!back && x.dtype != Dtype::kF32) refuse("is exported for float32");
  if (!c_type(x.dtype) || !c_type(y.dtype)) refuse("an argument of another dtype");
  int64_t axis = channels ? integer("axis") : -1;
  if (channels && axis < 0) axis += x.ndim();
  open_loops(y.sizes);
  if (channels) add_grid("scales", "zero_points", axis, !back);
  else add_grid("scale", "zero_point", axis, !back);
  const auto element = [&](const IrValue& v, int32_t number) {
    add_pointer(body_, number);
    body_.add("[");
    add_index(body_, v.sizes, v.strides, v.ndim());
    body_.add("]");
  };
  if (back) {
    element(y, node().outs[0]);
    body_.add(" = ((float)");
    element(x, tensor("input"));
    body_.add(" - z) * s;\n");
  } else {
    body_.add("const float v = rintf(");
    element(x, tensor("input"));
    const int64_t low = integer("quant_min");
    const int64_t high = integer("quant_max");
    body_.add(" * s) + z;\n    const float u = v > ").add(low).add(" ? v : ").add(low);
    body_.add(";\n    ");
    element(y, node().outs[0]);
    body_.add(" = (").add(c_type(y.dtype)).add(")(u < ").add(high).add(" ? u : ").add(high);
    body_.add(");\n");
  }
  close_loops(y.ndim());
}

// Writes fake_quantize, whose scale and zero point are broadcast.
void CExporter::emit_fake_quantize() {
  const IrValue& x = value(tensor("input"));
  const IrValue& y = value(node().outs[0]);
  const auto element = [&](const char* name) {
    const IrValue& v = value(tensor(name));
    add_pointer(body_, tensor(name));
    body_.add("[");
    add_index(body_, v.sizes, v.strides, y.ndim());
    body_.add("]");
  };
  if (x.dtype != Dtype::kF32) refuse("is exported for float32");
  open_loops(y.sizes);
  body_.add("const float s = (float)");
  element("scale");
  body_.add(", z = (float)");
  element("zero_point");
  body_.add(", v = rintf(");
  element("input");
  const int64_t low = integer("quant_min");
  const int64_t high = integer("quant_max");
  body_.add(" * (1.0f / s)) + z, u = v < ").add(low).add(" ? ").add(low).add(" : v;\n    ");
  add_pointer(body_, node().outs[0]);
  body_.add("[");
  add_index(body_, y.sizes, y.strides, y.ndim());
  body_.add("] = ((u > ").add(high).add(" ? ").add(high).add(" : u) - z) * s;\n");
  close_loops(y.ndim());
}

// Adds a pointer to the scales or zero points, as an array without gaps.
void CExporter::add_per_item(Text& call, const char* name, Dtype dtype) {
  const IrValue& v = value(tensor(name));
  if (v.dtype == dtype && is_contiguous(v)) add_pointer(call, tensor(name));
  else add_dense_copy(call, tensor(name), dtype);
}

void CExporter::emit_quantized_linear() {
  const IrValue& x = value(tensor("input"));
  const IrValue& w = value(tensor("weight"));
  const auto step = [&](const char* name) { return int64_t(value(tensor(name)).numel() != 1); };
  if (step("input_scale") != step("input_zero_point"))
    refuse("one scale for several zero points, or several for one");
  Text call;
  begin_bytes_call(call, "quantized_linear", x.dtype);
  add_address(call, tensor("input"), true, x.dtype);
  call.add(", ");
  add_per_item(call, "input_scale", Dtype::kF32);
  call.add(", ");
  add_per_item(call, "input_zero_point", Dtype::kI32);
  call.add(", ").add(step("input_scale")).add(", ");
  add_address(call, tensor("weight"), true, Dtype::kI8);
  call.add(", ");
  add_per_item(call, "weight_scale", Dtype::kF32);
  call.add(", ").add(step("weight_scale")).add(", ");
  add_address(call, tensor("bias"), true);
  call.add(", ");
  add_address(call, node().outs[0]);
  const int64_t k = w.sizes[1];
  call.add(", ").add(rows_of(x)).add(", ").add(k).add(", ").add(w.sizes[0]);
  call.add(");\n");
  body_.add(call.span());
}

void CExporter::emit_quantized_conv() {
  const IrValue& x = value(tensor("input"));
  int64_t xs[4], ys[4];
  add_strides(xs, x);
  add_strides(ys, value(node().outs[0]));
  Text call;
  begin_bytes_call(call, "quantized_conv2d", x.dtype);
  add_pointer(call, tensor("input"));
  call.add(", ");
  add_list(call, {xs, 4});
  call.add(", ");
  add_float(call, number("input_scale"));
  call.add(", ").add(integer("input_zero_point")).add(", ");
  add_address(call, tensor("weight"), true, Dtype::kI8);
  call.add(", ");
  add_per_item(call, "weight_scale", Dtype::kF32);
  call.add(", ").add(int64_t(value(tensor("weight_scale")).numel() != 1)).add(", ");
  add_address(call, tensor("bias"), true);
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ");
  add_list(call, {ys, 4});
  call.add(", ");
  add_conv_sizes(call, false);
  call.add(");\n");
  body_.add(call.span());
}

namespace {

// The function of a format that gives one number, and those that it calls.
struct BlockFunctions {
  const char* number;
  const char* called[3];
};
// From kBlockQ4_1 on; q8_0 and q4_0 have loops of their own.
constexpr BlockFunctions kBlockFunctions[] = {
    {"q4_1_number", {"block_scale", "block_nibble"}},
    {"q5_0_number", {"block_scale", "block_nibble"}},
    {"q5_1_number", {"block_scale", "block_nibble"}},
    {"q2_k_number", {"block_scale", "block_bits"}},
    {"q3_k_number", {"block_scale", "block_bits"}},
    {"q4_k_number", {"block_scale", "block_bits", "block_factor"}},
    {"q5_k_number", {"block_scale", "block_bits", "block_factor"}},
    {"q6_k_number", {"block_scale", "block_bits"}},
    {"iq4_nl_number", {"block_scale", "block_nibble", "iq4_entry"}},
    {"iq4_xs_number", {"block_scale", "block_nibble", "iq4_entry"}},
    {"mxfp4_number", {"block_nibble"}},
};
static_assert(sizeof kBlockFunctions / sizeof *kBlockFunctions == kBlockMxfp4 - kBlockQ4_1 + 1);

}  // namespace

// Begins a call of the function `plain`, or of `by_number` for formats without loops of their own.
void CExporter::begin_blocks_call(Text& call, const char* plain, const char* by_number) {
  const bool is_plain = is_plain_block(int32_t(integer("format")));
  if (is_plain) {
    use("block_scale");
    use("block_number");
  }
  const char* const name = is_plain ? plain : by_number;
  use(name);
  call.add("  ").add(name).add("(");
}
// Ends it with the layout of a block.
void CExporter::end_blocks_call(Text& call) {
  const auto format = int32_t(integer("format"));
  const BlockLayout of = block_layout(format);
  if (is_plain_block(format)) {
    call.add(", ").add(of.bytes).add(");\n");
  } else {
    const BlockFunctions& f = kBlockFunctions[format - kBlockQ4_1];
    for (const char* name : f.called)
      if (name) use(name);
    use(f.number);
    call.add(", ").add(of.items).add(", ").add(of.bytes);
    call.add(", ").add(f.number).add(");\n");
  }
  body_.add(call.span());
}

void CExporter::emit_quantize_blocks() {
  use("quantize_blockwise");
  const IrValue& y = value(node().outs[0]);
  if (!is_contiguous(y)) refuse("a result that is not contiguous");
  Text call;
  call.add("  quantize_blockwise(");
  add_address(call, tensor("input"), true);
  call.add(", ");
  add_address(call, node().outs[0], false, Dtype::kU8);
  call.add(", ").add(value(tensor("input")).numel() / kBlockItems);
  end_blocks_call(call);
}

void CExporter::emit_dequantize_blocks() {
  const IrValue& y = value(node().outs[0]);
  if (!is_contiguous(y)) refuse("a result that is not contiguous");
  Text call;
  begin_blocks_call(call, "dequantize_blockwise", "unpack_blocks");
  add_address(call, tensor("input"), true, Dtype::kU8);
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ").add(y.numel() / block_layout(int32_t(integer("format"))).items);
  end_blocks_call(call);
}

void CExporter::emit_blockwise_linear() {
  const IrValue& x = value(tensor("input"));
  const IrValue& w = value(tensor("weight"));
  const int64_t k = x.sizes[x.ndim() - 1];
  Text call;
  begin_blocks_call(call, "blockwise_linear", "unpacked_linear");
  add_address(call, tensor("input"), true);
  call.add(", ");
  add_address(call, tensor("weight"), true, Dtype::kU8);
  call.add(", ");
  add_address(call, tensor("bias"), true);
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ").add(rows_of(x)).add(", ").add(k).add(", ").add(w.sizes[0]);
  end_blocks_call(call);
}

}  // namespace TT_NS
