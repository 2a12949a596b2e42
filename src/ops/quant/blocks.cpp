// Tensors packed in blocks of numbers with a scale, in the formats of GGML, as uint8 bytes.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "base/amx.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "plan/quant_build.h"

namespace TT_NS::impl {

// Fails unless size, of the last dim of arg, is of whole blocks.
static void check_whole(const Tensor& t, const char* arg, int64_t unit) {
  if (!t.ndim || t.size(-1) % unit)
    fail_arg(TT_SHAPE, arg, "{} is {}: the last size must be a multiple of {}", arg, t.sizes(),
             unit);
}
static void check_packed(const Tensor& t, const char* arg) {
  if (t.dtype != Dtype::kU8) fail_arg(TT_DTYPE, arg, "{} is {}: must be uint8", arg, fmt(t.dtype));
}
static int64_t rows_of(const Tensor& t) {
  int64_t rows = 1;
  for (const int64_t size : t.sizes().slice(0, t.ndim - 1)) rows *= size;
  return rows;
}

TensorRef quantize_blockwise(Call, const Tensor& input, int64_t format) {
  MaskGuard no_grad(bit(kKeyAutograd));
  if (!is_float(input.dtype))
    fail_arg(TT_DTYPE, "input", "input is {}: must be floating", fmt(input.dtype));
  if (!is_plain_block(int32_t(format)))
    fail_arg(TT_INVALID_ARG, "format",
             "format is {}: must be q8_0 (0) or q4_0 (1), as the others are unpacked only", format);
  check_whole(input, "input", kBlockItems);
  const int64_t k = input.size(-1);
  Shape shape(input.sizes());
  shape[shape.size() - 1] = packed_bytes(int32_t(format), k);
  TensorRef out = new_tensor(shape, Dtype::kU8, input.device);
  if (!out->numel) return out;
  TensorRef x = cast_input(input, Dtype::kF32);
  BlockPlan plan;
  build_blocks(&plan, int32_t(format), 1, rows_of(input), k, 1);
  plan.input = x->as<float>();
  plan.packed = out->data;
  launch_stages(kernel_block_quantize, input.device, &plan.run);
  return out;
}

TensorRef dequantize_blockwise(Call, const Tensor& input, int64_t format) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_packed(input, "input");
  const BlockLayout block = block_layout(int32_t(format));
  check_whole(input, "input", block.bytes);
  Shape shape(input.sizes());
  int64_t& k = shape[shape.size() - 1];
  k = k / block.bytes * block.items;
  checked_numel(shape, Dtype::kF32, "result");
  TensorRef out = new_tensor(shape, Dtype::kF32, input.device);
  if (!out->numel) return out;
  TensorRef packed = dense_input(input);
  BlockPlan plan;
  build_blocks(&plan, int32_t(format), 1, rows_of(input), k, 1);
  plan.packed = packed->data;
  plan.out = out->as<float>();
  launch_stages(kernel_block_dequantize, input.device, &plan.run);
  return out;
}

static void check_linear(const Tensor& input, const Tensor& weight, const Tensor* bias,
                         int32_t format) {
  if (!is_float(input.dtype))
    fail_arg(TT_DTYPE, "input", "input is {}: must be floating", fmt(input.dtype));
  check_same_device(input, "input", weight, "weight");
  check_packed(weight, "weight");
  check_ndim(weight, 2, "weight");
  check_whole(input, "input", block_layout(format).items);
  const int64_t row = packed_bytes(format, input.size(-1));
  if (weight.size(1) != row)
    fail_arg(TT_SHAPE, "weight",
             "input is {}, weight is {}: weight.shape[1] must be {}, the bytes of {} numbers",
             input.sizes(), weight.sizes(), row, input.size(-1));
  if (!bias) return;
  check_same_device(input, "input", *bias, "bias");
  if (!is_float(bias->dtype))
    fail_arg(TT_DTYPE, "bias", "bias is {}: must be floating", fmt(bias->dtype));
  if (bias->ndim != 1 || bias->numel != weight.size(0))
    fail_arg(TT_SHAPE, "bias", "bias is {}: must be ({})", bias->sizes(), weight.size(0));
}

// The product with the unpacked matrix.
static TensorRef unpacked_linear(const Tensor& input, const Tensor& weight, const Tensor* bias,
                                 int64_t format) {
  const Dtype dtype = input.dtype == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
  TensorRef x = cast_input(input, dtype);
  TensorRef w = cast_input(*op::dequantize_blockwise(weight, format), dtype);
  TensorRef shift = bias ? cast_input(*bias, dtype) : TensorRef();
  return cast_input(*op::linear_rows(*x, *w, shift.get()), input.dtype);
}

// The instruction sets whose kernels may multiply digits, as BlockPlan::dots: of q4_0, whose
// integers have but four bits, those with dot products of bytes and AVX2 itself, else AVX-512.
static int32_t digit_dots(int32_t format) {
  if (format != kBlockQ4_0) return int32_t(has_int8_products(kIsaAvx512)) << kIsaAvx512;
  int32_t bits = 0;
  for (const Isa isa : {kIsaBaseline, kIsaAvx2, kIsaAvx512})
    bits |= int32_t(has_int8_products(isa)) << isa;
#if TT_X86_64
  if (best_isa() >= kIsaAvx2) bits |= 1 << kIsaAvx2;
#endif
  return bits;
}

// Whether block_linear may multiply rows of input by tiles, which add up one span at least.
static bool takes_tiles(const Tensor& input) {
  return input.device.type == TT_CPU && input.size(-1) > 0 && ctx().isa == kIsaAvx512 &&
         has_amx_products();
}

TensorRef blockwise_linear(Call, const Tensor& input, const Tensor& weight, const Tensor* bias,
                           int64_t format) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_linear(input, weight, bias, int32_t(format));
  const int64_t m = rows_of(input);
  const bool tiles = m > kBlockRows && takes_tiles(input);
  if ((m > kBlockRows && !tiles) || input.dtype == Dtype::kF64)
    return unpacked_linear(input, weight, bias, format);
  Shape shape(input.sizes());
  const int64_t n = weight.size(0);
  shape[shape.size() - 1] = n;
  checked_numel(shape, Dtype::kF32, "result");
  TensorRef x = cast_input(input, Dtype::kF32);
  TensorRef shift = bias ? cast_input(*bias, Dtype::kF32) : TensorRef();
  TensorRef out = new_tensor(shape, Dtype::kF32, input.device);
  if (!out->numel) return cast_input(*out, input.dtype);
  TensorRef packed = dense_input(weight);
  BlockPlan plan;
  build_blocks(&plan, int32_t(format), m, n, input.size(-1), kBlockColumns);
  plan.input = x->as<float>();
  plan.packed = packed->data;
  plan.bias = shift ? shift->as<float>() : nullptr;
  plan.out = out->as<float>();
  plan.dots = digit_dots(plan.format);
  const int64_t bytes = tiles ? build_tiles(&plan, pool_threads(ctx().rt->pool)) : 0;
  const Workspace pieces(bytes, input.device);
  if (tiles) place_tiles(&plan, pieces.data());
  const bool split = input.device.type == TT_CPU && digits_pay(plan, ctx().isa);
  const Workspace digits(split ? digit_bytes(plan.k) : 0, input.device);
  if (split) split_first(&plan, reinterpret_cast<int8_t*>(digits.data()));
  launch_stages(kernel_block_linear, input.device, &plan.run);
  return cast_input(*out, input.dtype);
}

}  // namespace TT_NS::impl
