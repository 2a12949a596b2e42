// convolution and convolution_backward: layouts, dtypes and plans. Each operand of y = conv(x, w)
// is computed from the other two on one of these paths:
//   pointwise    windows of one pixel: matrix products
//   interleaved  few channels and many images, f32: kernels/cpu/conv/batch_interleaved.cpp
//   gathered     all others, channels last: kernels/cpu/conv/conv.cpp and weight.cpp
#include "ops/conv/primitives.h"

#include "base/amx.h"
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/device_kernels.h"
#include "ops/elementwise.h"
#include "ops/image.h"

namespace TT_NS {

static TensorRef new_last(Ints sizes, Dtype d, Device device) {
  return new_strided(sizes, channels_last_strides(sizes), d, device);
}
// Returns t with channels last, in dtype d.
static TensorRef with_channels_last(const Tensor& t, Dtype d) {
  if (t.dtype == d && (t.numel == 0 || strides_match(t, channels_last_strides(t.sizes()))))
    return TensorRef::share(&t);
  TensorRef out = new_last(t.sizes(), d, t.device);
  copy_elements(*out, t);
  return out;
}
// Converts a result with channels last to the memory order and dtype of the caller.
static TensorRef in_format(TensorRef t, bool last, Dtype d) {
  Shape rows(t->sizes());
  contiguous_strides(t->sizes(), rows.data());
  const bool same_order = t->numel == 0 || strides_match(*t, rows);
  if (t->dtype == d && last) return t;
  if (t->dtype == d && same_order) return new_alias(*t, t->sizes(), rows);
  TensorRef out = last ? new_last(t->sizes(), d, t->device) : new_tensor(t->sizes(), d, t->device);
  copy_elements(*out, *t);
  return out;
}
// Returns t with channels first, in dtype d.
static TensorRef with_channels_first(const Tensor& t, Dtype d) {
  if (t.dtype == d && t.contiguous()) return TensorRef::share(&t);
  TensorRef out = new_tensor(t.sizes(), d, t.device);
  copy_elements(*out, t);
  return out;
}
static TensorRef in_dtype(const Tensor& t, Dtype d) {
  return t.dtype == d ? TensorRef::share(&t) : cast_input(t, d);
}

// The operand of y = conv(x, w) to compute from the other two.
enum class ConvOperand { kX, kY, kWeight };

// ---- gathered ----

static bool is_half(Dtype d) { return d == Dtype::kBF16 || d == Dtype::kF16; }
// The dtype of operands and results, t's among them. Kernels of a device convert halves as they
// read and write them; sums are in c.compute.
static Dtype stored_dtype(const Conv& c, const Tensor& t) {
  return is_half(t.dtype) && has_device_kernels(c.device) ? t.dtype : c.compute;
}
static bool windows_are_pixels(const ConvShape& s) {
  for (int d = 0; d < kConvDims; d++)
    if (s.k[d] != 1 || s.stride[d] != 1 || s.pad[d] != 0) return false;
  return true;
}
// Whether operands and results of dtype d have channels first, as the caller's do. Tensor cores
// want channels last, but for products of whole images.
static bool reads_planes(const Conv& c, Dtype d) {
  return has_device_kernels(c.device) && !c.last && (!is_half(d) || windows_are_pixels(c.s));
}
static TensorRef in_layout(const Conv& c, const Tensor& t, Dtype d) {
  return reads_planes(c, d) ? with_channels_first(t, d) : with_channels_last(t, d);
}

static TensorRef zero_run(int64_t n, const Conv& c) {
  if (has_device_kernels(c.device)) n = 0;
  TensorRef zeros = new_tensor(Ints(&n, 1), c.compute, c.device);
  if (zeros->numel) fill_elements(*zeros, 0);
  return zeros;
}
// Whether tiles of AMX multiply bf16, which is not converted then. `operand` is what is computed.
static bool takes_tiles(const Conv& c, ConvOperand operand, const Tensor& a, const Tensor& b) {
  if (a.dtype != Dtype::kBF16 || b.dtype != Dtype::kBF16) return false;
  if (c.device.type != TT_CPU || ctx().isa != kIsaAvx512 || !has_amx_products()) return false;
  const ConvShape& s = c.s;
  const int64_t pixels = conv_pixels(s, operand == ConvOperand::kX ? s.x : s.y);
  if (operand == ConvOperand::kWeight) return conv_fills_tiles(s.taps() * s.ci, s.co, pixels);
  const ConvMode mode = operand == ConvOperand::kY ? kConvForward : kConvData;
  return conv_fills_tiles(pixels, conv_cols(s, mode), s.taps() * conv_depth(s, mode));
}
// Whether tiles of AMX multiply f32, as sums of bf16.
static bool takes_pieces(const Conv& c, ConvMode mode, const Tensor& weight) {
  constexpr int64_t kMaxStride = 1 << 26;  // of indices of columns
  return c.device.type == TT_CPU && ctx().isa == kIsaAvx512 && !c.complex &&
         c.compute == Dtype::kF32 && weight.stride(0) <= kMaxStride &&
         weight.stride(1) <= kMaxStride && conv_takes_pieces(c.s, mode) && has_amx_products();
}
// Makes rooms of `bytes` each for the threads of the pool; none for 0 bytes.
static Workspace room_for_threads(Rooms* rooms, int64_t bytes, const Conv& c) {
  const int64_t size = build_rooms(rooms, bytes, bytes ? pool_threads(ctx().rt->pool) : 1);
  Workspace memory(size, c.device);
  rooms->memory = memory.data();
  return memory;
}
template <class Plan> static void set_weight_strides(Plan* p, const Tensor& w) {
  p->w_co = w.stride(0);
  p->w_ci = w.stride(1);
  for (int d = 0; d < kConvDims; d++)
    p->w_k[d] = d < kConvDims + 2 - w.ndim ? 0 : w.stride(d - kConvDims + w.ndim);
}

// Copies x (channels last) with padded rows.
static TensorRef padded_rows(const Conv& c, const Tensor& x, int64_t width) {
  const int64_t sizes[3] = {c.s.n * c.s.x[0] * c.s.x[1], width, c.s.ci};
  TensorRef out = new_tensor(sizes, x.dtype, c.device);
  ConvPadPlan plan;
  build_conv_pad(&plan, c.s, width, x.item_size());
  plan.src = x.data;
  plan.dst = out->data;
  if (out->numel) launch_stages(kernel_conv_pad, c.device, &plan.run);
  return out;
}

#if TT_HAVE_AVX512
constexpr bool kHasDirect = true;
#else
constexpr bool kHasDirect = false;
#endif
// Returns whether y has so few channels that vectors hold pixels. Only AVX-512 has a kernel for
// that; the sums have the same order without it.
static bool is_direct(const Conv& c, ConvMode mode, const Tensor& source) {
  return kHasDirect && mode == kConvForward && c.device.type == TT_CPU && ctx().isa == kIsaAvx512 &&
         !c.last && !c.complex && c.compute == Dtype::kF32 && source.dtype == c.compute &&
         source.contiguous() && conv_takes_pixels(c.s);
}

// Whether groups of few channels are computed in planes. Only AVX-512 has a kernel for that; the
// sums have the same order without it.
static bool takes_group_planes(const Conv& c, ConvMode mode) {
  return kHasDirect && c.device.type == TT_CPU && ctx().isa == kIsaAvx512 && !c.last &&
         !c.complex && c.compute == Dtype::kF32 && conv_takes_group_planes(c.s, mode);
}
// Whether groups of one channel are computed in planes. The sums have the order of those with
// channels last.
static bool takes_depthwise_planes(const Conv& c, ConvMode mode) {
  return c.device.type == TT_CPU && !c.last && !c.complex && c.compute == Dtype::kF32 &&
         conv_takes_depthwise_planes(c.s, mode);
}
// t as gathered_conv() and gathered_weight() read it.
static TensorRef as_source(const Conv& c, ConvMode mode, const Tensor& t, Dtype d) {
  return takes_depthwise_planes(c, mode) ? with_channels_first(t, d) : in_layout(c, t, d);
}

// Whether a source of groups of several channels, which has channels first, is copied group by
// group. With channels last, neighbouring pixels of a group are as far apart as all channels need;
// where this distance is a power of two, they share few sets of a cache.
static bool separates_groups(const Conv& c, const Tensor& t) {
  if (c.device.type != TT_CPU || c.last || c.complex || t.numel == 0) return false;
  if (c.s.groups == 1 || conv_depthwise(c.s)) return false;
  return !strides_match(t, channels_last_strides(t.sizes()));
}
// t as [groups][images][rows][columns][channels of a group], in dtype d.
static TensorRef with_groups_apart(const Conv& c, const Tensor& t, Dtype d) {
  const int64_t groups = c.s.groups;
  const int64_t channels = t.size(1) / groups;
  Shape apart;  // of the copy
  apart.push_back(groups);
  apart.push_back(t.size(0));
  for (int32_t k = 2; k < t.ndim; k++) apart.push_back(t.size(k));
  apart.push_back(channels);
  TensorRef out = new_tensor(apart, d, t.device);
  Shape sizes;  // [images][groups][channels of a group][rows][columns] of both
  Shape from;
  Shape to;
  const auto add = [&](int64_t size, int64_t source, int64_t copy) {
    sizes.push_back(size);
    from.push_back(source);
    to.push_back(copy);
  };
  add(t.size(0), t.stride(0), out->stride(1));
  add(groups, t.stride(1) * channels, out->stride(0));
  add(channels, t.stride(1), 1);
  for (int32_t k = 2; k < t.ndim; k++) add(t.size(k), t.stride(k), out->stride(k));
  const TensorRef copy = new_alias(*out, sizes, to);
  copy_elements(*copy, *new_alias(t, sizes, from));
  return out;
}
static void read_groups_apart(ConvGather* g, int64_t images) {
  g->pixel = g->run;
  g->row = g->size[2] * g->pixel;
  g->group = images * g->size[0] * g->size[1] * g->row;
}

// Computes y from x, or x from y: channels last, or first if the plan supports it.
static TensorRef gathered_conv(const Conv& c, ConvMode mode, const Tensor& source,
                               const Tensor& weight, const Tensor* bias) {
  const ConvOperand operand = mode == kConvForward ? ConvOperand::kY : ConvOperand::kX;
  const bool tiles = takes_tiles(c, operand, source, weight);
  const bool direct = is_direct(c, mode, source);
  const bool groups = !tiles && takes_group_planes(c, mode);
  const bool depthwise = groups || takes_depthwise_planes(c, mode);
  const bool pieces = !tiles && !direct && !depthwise && takes_pieces(c, mode, weight);
  const Dtype d = tiles ? source.dtype : stored_dtype(c, source);
  const bool apart = !direct && !depthwise && !tiles && separates_groups(c, source);
  TensorRef src;
  if (direct) src = TensorRef::share(&source);
  else if (groups) src = with_channels_first(source, d);
  else if (apart) src = with_groups_apart(c, source, d);
  else src = as_source(c, mode, source, d);
  TensorRef w = tiles ? with_channels_last(weight, d) : in_dtype(weight, d);
  TensorRef b = bias ? cast_input(*bias, tiles ? c.compute : d) : TensorRef();
  const Shape& sizes = mode == kConvForward ? c.y : c.x;
  ConvPath forced = direct ? kConvDirect : kConvPixels;
  if (tiles) forced = kConvTiles;
  if (pieces) forced = kConvPieces;
  if (depthwise) forced = groups ? kConvGroupPlanes : kConvDepthwisePlanes;
  ConvPlan plan;
  build_conv(&plan, c.s, int32_t(d), mode, !c.last && !c.complex, forced);
  join_conv_columns(&plan, pool_threads(ctx().rt->pool));
  if (apart) read_groups_apart(&plan.gather, c.s.n);
  plan.math = ctx().cuda_math;
  if (reads_planes(c, d)) {
    plan.channels_first = true;
    plan.path = kConvPlanes;
  }
  const bool turned = plan.path == kConvPlanes || (pieces && plan.pieces.channels_first);
  const bool planes = direct || depthwise || turned;
  TensorRef out = planes ? new_tensor(sizes, d, c.device) : new_last(sizes, d, c.device);
  if (out->numel == 0) return out;
  const bool merges = mode == kConvForward && !direct && !has_device_kernels(c.device);
  const int64_t width = merges ? conv_merged_width(c.s) : 0;
  if (width) src = padded_rows(c, *src, width);
  TensorRef zeros = zero_run(conv_zero_items(plan), c);
  Workspace packed(conv_packed_bytes(plan, out->item_size()), c.device);
  Workspace images(conv_image_bytes(plan, out->item_size()), c.device);
  const Workspace rooms = room_for_threads(&plan.planes.rooms, turned ? kConvPlaneRoom : 0, c);
  const Workspace column_rooms =
      room_for_threads(&plan.columns.rooms, conv_columns_room(plan, out->item_size()), c);
  const Workspace tile_rooms = room_for_threads(&plan.tiles.rooms, conv_tiles_room(plan), c);
  const Workspace piece_rooms =
      room_for_threads(&plan.pieces.rooms, pieces ? conv_pieces_room_bytes(plan.pieces) : 0, c);
  const int64_t plane_room = depthwise ? conv_depthwise_room_bytes(plan.depthwise.planes) : 0;
  const Workspace plane_rooms = room_for_threads(&plan.depthwise.rooms, plane_room, c);
  set_weight_strides(&plan, *w);
  plan.src = src->data;
  plan.weight = w->data;
  plan.bias = b ? b->data : nullptr;
  plan.dst = out->data;
  plan.packed = packed.data();
  plan.scatter.images = images.data();
  plan.zeros = zeros->data;
  launch_stages(kernel_conv, c.device, &plan.run);
  return out;
}

// Computes the weight's gradient from x and y's gradient, in the memory order of the weight.
static TensorRef gathered_weight(const Conv& c, const Tensor& input, const Tensor& grad) {
  const bool tiles = takes_tiles(c, ConvOperand::kWeight, input, grad);
  const Dtype d = stored_dtype(c, grad);
  const bool groups =
      !tiles && takes_group_planes(c, kConvForward) && conv_takes_group_plane_weight(c.s);
  const bool planes = groups || takes_depthwise_planes(c, kConvForward);
  const bool apart = !planes && !tiles && separates_groups(c, input);
  TensorRef x, y;
  if (groups) {
    x = with_channels_first(input, d);
    y = with_channels_first(grad, d);
  } else {
    x = apart ? with_groups_apart(c, input, d)
              : as_source(c, kConvForward, input, tiles ? input.dtype : d);
    y = as_source(c, kConvForward, grad, tiles ? grad.dtype : d);
  }
  const int64_t width = has_device_kernels(c.device) ? 0 : conv_merged_width(c.s);
  ConvWeightPlan plan;
  build_conv_weight(&plan, c.s, int32_t(d), item_size(d), width, planes);
  if (apart) read_groups_apart(&plan.gather, c.s.n);
  plan.math = ctx().cuda_math;
  plan.channels_first = reads_planes(c, d);
  if (tiles && !plan.depthwise) build_conv_weight_tiles(&plan);
  const Dtype stored = plan.lines.lines ? grad.dtype : d;
  TensorRef out =
      c.weight_last ? new_last(c.w, stored, c.device) : new_tensor(c.w, stored, c.device);
  if (out->numel == 0) return out;
  if (width) x = padded_rows(c, *x, width);
  TensorRef zeros = zero_run(plan.depthwise ? c.s.groups : plan.gather.run, c);
  Workspace sums(conv_sums_bytes(plan, item_size(d)), c.device);
  int64_t room = plan.tiles ? conv_weight_tiles_room(plan) : kConvEdgeRoom;
  if (plan.depthwise) room = 0;
  if (planes) room = conv_depthwise_room_bytes(plan.planes);
  if (groups) room += conv_group_plane_sum_bytes(c.s);
  const Workspace rooms = room_for_threads(&plan.rooms, room, c);
  set_weight_strides(&plan, *out);
  plan.src = x->data;
  plan.y = y->data;
  plan.dst = out->data;
  plan.sums = sums.data();
  plan.zeros = zeros->data;
  launch_stages(kernel_conv_weight, c.device, &plan.run);
  return out;
}

// ---- pointwise: windows of one pixel ----

// Returns whether t is dense in the memory order of the result.
static bool in_result_order(const Conv& c, const Tensor& t) {
  return c.last ? strides_match(t, channels_last_strides(t.sizes())) : t.contiguous();
}
// Up to this size a weight stays in the L2 cache, and gathered_conv, which reads channels-last
// pixels in place, beats a matrix product, which would pack them first (1.2 times the time on one
// thread and on two).
constexpr int64_t kLightWeight = 1 << 18;  // bytes
static bool reads_in_place(const Conv& c, const Tensor& weight) {
  if (weight.dtype == Dtype::kBF16 && has_amx_products()) return false;
  return c.last && weight.numel * item_size(c.compute) <= kLightWeight;
}
// Products of bf16 are summed in f32 and rounded once, as convolutions are.
static bool needs_no_conversion(const Conv& c, const Tensor& t) {
  return t.dtype == c.compute || (c.compute == Dtype::kF32 && t.dtype == Dtype::kBF16);
}
// Returns whether matrix products of a and b apply; the order of a weight does not matter.
static bool is_pointwise(const Conv& c, const Tensor& a, const Tensor& b, bool b_is_weight) {
  const ConvShape& s = c.s;
  if (!windows_are_pixels(s) || s.groups != 1) return false;
  // Only real floating tensors that need no conversion.
  if (c.complex || c.compute == Dtype::kI64) return false;
  if (!needs_no_conversion(c, a) || a.dtype != b.dtype) return false;
  if (a.numel == 0 || b.numel == 0 || s.x[0] * s.x[1] * s.x[2] < 64) return false;
  return in_result_order(c, a) && (b_is_weight || in_result_order(c, b));
}
// Returns a channels-first tensor as (n, channels, pixels).
static TensorRef as_planes(const Tensor& t) {
  const int64_t sizes[3] = {t.size(0), t.size(1), t.numel / (t.size(0) * t.size(1))};
  return new_alias(t, sizes, {});
}
// Returns a channels-last tensor as (n * pixels, channels).
static TensorRef as_pixels(const Tensor& t) {
  const int64_t sizes[2] = {t.numel / t.size(1), t.size(1)};
  const int64_t strides[2] = {t.size(1), 1};
  return new_alias(t, sizes, strides);
}
static TensorRef as_matrix(const Tensor& w, bool transposed) {
  const int64_t sizes[2] = {w.size(transposed), w.size(!transposed)};
  const int64_t strides[2] = {w.stride(transposed), w.stride(!transposed)};
  return new_alias(w, sizes, strides);
}
// What is allowed for convolutions holds for the products that they are.
static uint16_t math_of_products() {
  const uint32_t math = ctx().cuda_math & ~uint32_t(kTf32Matmul);
  return uint16_t(math & kTf32Conv ? math | kTf32Matmul : math);
}
static TensorRef pointwise_conv(const Conv& c, ConvMode mode, const Tensor& source,
                                const Tensor& weight, const Tensor* bias) {
  const CudaMathScope scope(math_of_products());
  const bool forward = mode == kConvForward;
  const Shape& sizes = forward ? c.y : c.x;
  TensorRef w = as_matrix(weight, forward == c.last);
  if (c.last) {
    TensorRef x = as_pixels(source);
    TensorRef y = bias ? op::addmm(*new_alias(*bias), *x, *w) : op::matmul_stack(*x, *w);
    return new_alias(*y, sizes, channels_last_strides(sizes));
  }
  TensorRef x = as_planes(source);
  if (!bias) return new_alias(*op::matmul_stack(*w, *x), sizes, {});
  const int64_t stack[3] = {x->size(0), w->size(0), w->size(1)};
  const int64_t stack_strides[3] = {0, w->stride(0), w->stride(1)};
  const int64_t column[2] = {bias->numel, 1};
  const int64_t column_strides[2] = {bias->stride(0), 0};
  TensorRef y = op::baddbmm(*new_alias(*bias, column, column_strides),
                            *new_alias(*w, stack, stack_strides), *x);
  return new_alias(*y, sizes, {});
}
static TensorRef pointwise_weight(const Conv& c, const Tensor& input, const Tensor& grad) {
  const CudaMathScope scope(math_of_products());
  if (c.last) {
    TensorRef y = as_pixels(grad);
    const int64_t sizes[2] = {y->size(1), y->size(0)};
    const int64_t strides[2] = {1, y->size(1)};
    return new_alias(*op::matmul_stack(*new_alias(*y, sizes, strides), *as_pixels(input)), c.w, {});
  }
  TensorRef x = as_planes(input);
  TensorRef y = as_planes(grad);
  const int64_t sizes[3] = {x->size(0), x->size(2), x->size(1)};
  const int64_t strides[3] = {x->stride(0), 1, x->stride(1)};
  const int64_t batch = 0;
  TensorRef per_image = op::matmul_stack(*y, *new_alias(*x, sizes, strides));
  return new_alias(*op::sum_dim(*per_image, Ints(&batch, 1)), c.w, {});
}

// ---- interleaved: few channels, many images ----

// A layout for the vectors of CPUs.
static bool is_interleaved(const Conv& c, ConvMode mode) {
  return c.device.type != TT_CUDA && !c.last && !c.weight_last && !c.complex &&
         c.compute == Dtype::kF32 && conv_interleaves(c.s, mode);
}
// Converts images of this size to the interleaved layout; NULL lead and full mean no border.
static TensorRef interleave(const Conv& c, const Tensor& t, const int64_t* size,
                            const int64_t* lead, const int64_t* full) {
  TensorRef src = TensorRef::share(&t);
  if (t.dtype != c.compute || !t.contiguous()) {
    src = new_tensor(t.sizes(), c.compute, c.device);
    copy_elements(*src, t);
  }
  ConvInterleavePlan plan;
  build_conv_interleave(&plan, t.size(0), t.size(1), size, lead, full);
  const int64_t items = conv_interleaved_items(plan.n, plan.channels, plan.full);
  TensorRef out = new_tensor(Ints(&items, 1), c.compute, c.device);
  plan.src = src->data;
  plan.dst = out->data;
  launch_stages(kernel_conv_interleave, c.device, &plan.run);
  return out;
}
template <class Plan> static void set_flat_strides(Plan* p, const Tensor& w) {
  p->w_co = w.stride(0);
  p->w_ci = w.stride(1);
  p->w_k[0] = w.ndim == 3 ? 0 : w.stride(w.ndim - 2);
  p->w_k[1] = w.stride(w.ndim - 1);
}
// Computes y from x, or x from y by the flipped weight.
static TensorRef interleaved_conv(const Conv& c, ConvMode mode, const Tensor& source,
                                  const Tensor& weight, const Tensor* bias) {
  TensorRef w = in_dtype(weight, c.compute);
  TensorRef b = bias ? cast_input(*bias, c.compute) : TensorRef();
  TensorRef out = new_tensor(mode == kConvForward ? c.y : c.x, c.compute, c.device);
  if (out->numel == 0) return out;
  ConvInterleavedPlan plan;
  build_conv_interleaved(&plan, conv_interleaved_shape(c.s, mode));
  const int64_t* lead = mode == kConvForward ? plan.s.lead : nullptr;
  TensorRef src = interleave(c, source, plan.s.x, lead, plan.s.full);
  Workspace packed(w->numel * w->item_size(), c.device);
  set_flat_strides(&plan, *w);
  char* first_tap = w->data;
  if (mode == kConvData) {
    std::swap(plan.w_co, plan.w_ci);
    for (int d = 0; d < 2; d++) {  // flipped: from the last tap to the first
      first_tap = advance(first_tap, (plan.s.k[d] - 1) * plan.w_k[d] * w->item_size());
      plan.w_k[d] = -plan.w_k[d];
    }
  }
  plan.weight = first_tap;
  plan.src = src->data;
  plan.bias = b ? b->data : nullptr;
  plan.dst = out->data;
  plan.packed = packed.data();
  launch_stages(kernel_conv_interleaved, c.device, &plan.run);
  return out;
}
// bias_grad: the gradient of the bias, or NULL.
static TensorRef interleaved_weight(const Conv& c, const Tensor& input, const Tensor& grad,
                                    Tensor* bias_grad) {
  TensorRef out = new_tensor(c.w, c.compute, c.device);
  ConvInterleavedWeightPlan plan;
  build_conv_interleaved_weight(&plan, conv_interleaved_shape(c.s, kConvForward),
                                bias_grad ? bias_grad->data : nullptr);
  TensorRef x = interleave(c, input, plan.s.x, plan.s.lead, plan.s.full);
  TensorRef y = interleave(c, grad, plan.s.y, nullptr, nullptr);
  Workspace sums(plan.splits * out->numel * out->item_size(), c.device);
  set_flat_strides(&plan, *out);
  plan.src = x->data;
  plan.y = y->data;
  plan.dst = out->data;
  plan.sums = sums.data();
  launch_stages(kernel_conv_interleaved_weight, c.device, &plan.run);
  return out;
}

// ---- the primitives ----

// kY: a = x, b = w. kX: a = y, b = w. kWeight: a = x, b = y. In dtype c.compute. bias_grad: as of
// takes_bias_grad().
static TensorRef compute_real(const Conv& c, ConvOperand operand, const Tensor& a, const Tensor& b,
                              const Tensor* bias, Tensor* bias_grad = nullptr) {
  if (operand == ConvOperand::kWeight) {
    // with channels first, products of single images are added, which bf16 would round
    if (is_pointwise(c, a, b, false) && (c.last || a.dtype == c.compute))
      return pointwise_weight(c, a, b);
    if (is_interleaved(c, kConvForward) && a.numel && b.numel)
      return interleaved_weight(c, a, b, bias_grad);
    return gathered_weight(c, a, b);
  }
  const ConvMode mode = operand == ConvOperand::kY ? kConvForward : kConvData;
  if (is_pointwise(c, a, b, true) && !reads_in_place(c, b))
    return pointwise_conv(c, mode, a, b, bias);
  if (is_interleaved(c, mode)) return interleaved_conv(c, mode, a, b, bias);
  return gathered_conv(c, mode, a, b, bias);
}

// Whether compute_real() of the weight's gradient computes that of the bias, too, from x and y.
static bool takes_bias_grad(const Conv& c, const Tensor& x, const Tensor& y) {
  return y.dtype == Dtype::kF32 && is_interleaved(c, kConvForward) && x.numel && y.numel &&
         !is_pointwise(c, x, y, false);
}

// Views the real (0) or imaginary (1) parts of a complex tensor.
static TensorRef part(const Tensor& t, int i) {
  const Dtype d = t.dtype == Dtype::kC128 ? Dtype::kF64 : Dtype::kF32;
  Shape strides(t.strides());
  for (int64_t k = 0; k < t.ndim; k++) strides[k] *= t.numel ? 2 : 1;
  return new_alias(t, t.sizes(), strides, advance(t.data, i * item_size(d)), d);
}
// Computes (ar + i ai) (br + i bi) by four real convolutions.
static TensorRef compute_complex(const Conv& c, ConvOperand operand, Dtype d, const Tensor& a,
                                 const Tensor& b) {
  TensorRef ar = part(a, 0);
  TensorRef ai = part(a, 1);
  TensorRef br = part(b, 0);
  TensorRef bi = part(b, 1);
  TensorRef re = op::sub(*compute_real(c, operand, *ar, *br, nullptr),
                         *compute_real(c, operand, *ai, *bi, nullptr));
  TensorRef im = op::add(*compute_real(c, operand, *ar, *bi, nullptr),
                         *compute_real(c, operand, *ai, *br, nullptr));
  TensorRef out = new_strided(re->sizes(), re->strides(), d, c.device);
  TensorRef out_re = part(*out, 0);
  TensorRef out_im = part(*out, 1);
  copy_elements(*out_re, *re);
  copy_elements(*out_im, *im);
  return out;
}
// Returns a bias per channel in a shape that broadcasts to t.
static TensorRef per_channel(const Tensor& bias, const Tensor& t) {
  Shape sizes(t.sizes());
  Shape strides(t.sizes());
  for (int64_t k = 0; k < t.ndim; k++) {
    sizes[k] = k == 1 ? t.size(1) : 1;
    strides[k] = k == 1 ? bias.stride(0) : 0;
  }
  return new_alias(bias, sizes, strides);
}

// Computes the operand from a and b (see compute_real()), in dtype d and the memory order of
// results.
static TensorRef compute_operand(const Conv& c, ConvOperand operand, Dtype d, const Tensor& a,
                                 const Tensor& b, const Tensor* bias, Tensor* bias_grad = nullptr) {
  TensorRef out = c.complex ? compute_complex(c, operand, d, a, b)
                            : compute_real(c, operand, a, b, bias, bias_grad);
  if (operand == ConvOperand::kWeight) return in_dtype(*out, d);
  if (c.complex && bias) out = op::add(*out, *per_channel(*bias, *out));
  return in_format(std::move(out), c.last, d);
}

namespace impl {

TensorRef convolution(Call, const Tensor& input, const Tensor& weight, const Tensor* bias,
                      Ints stride, Ints padding, Ints dilation, bool transposed,
                      Ints output_padding, int64_t groups) {
  const Conv c = check_conv(input, weight, bias,
                            {stride, padding, dilation, transposed, output_padding, groups});
  const ConvOperand result = transposed ? ConvOperand::kX : ConvOperand::kY;
  return compute_operand(c, result, input.dtype, input, weight, bias);
}

TensorTriple convolution_backward(Call, const Tensor& grad, const Tensor& input,
                                  const Tensor& weight, Ints stride, Ints padding, Ints dilation,
                                  bool transposed, Ints output_padding, int64_t groups,
                                  bool want_input, bool want_weight, bool want_bias) {
  const Conv c = check_conv(input, weight, nullptr,
                            {stride, padding, dilation, transposed, output_padding, groups});
  const Dtype d = input.dtype;
  // If both gradients are gathered, grad is converted only once.
  const bool gathered = !c.complex && !is_pointwise(c, grad, input, false) &&
                        !is_interleaved(c, kConvForward) && !is_interleaved(c, kConvData);
  const bool convert = want_input && want_weight && gathered;
  const bool tiles = takes_tiles(c, transposed ? ConvOperand::kY : ConvOperand::kX, grad, weight) ||
                     takes_tiles(c, ConvOperand::kWeight, input, grad);
  const Dtype stored = tiles ? grad.dtype : stored_dtype(c, grad);
  const ConvMode of_grad = transposed ? kConvForward : kConvData;
  TensorRef g = TensorRef::share(&grad);
  if (convert && !tiles && takes_group_planes(c, of_grad)) g = with_channels_first(grad, stored);
  else if (convert) g = as_source(c, of_grad, grad, stored);
  const Tensor& x = transposed ? *g : input;
  const Tensor& y = transposed ? input : *g;
  TensorTriple out;
  if (want_input) {
    const ConvOperand of_input = transposed ? ConvOperand::kY : ConvOperand::kX;
    out.first = compute_operand(c, of_input, d, *g, weight, nullptr);
  }
  if (want_weight) {
    if (want_bias && !transposed && takes_bias_grad(c, x, y))
      out.third = new_tensor(Ints(&c.s.co, 1), d, c.device);
    out.second = compute_operand(c, ConvOperand::kWeight, d, x, y, nullptr, out.third.get());
  }
  if (want_bias && !out.third) {
    Shape dims;
    for (int64_t i = 0; i < grad.ndim; i++)
      if (i != 1) dims.push_back(i);
    out.third = op::sum_dim(*new_alias(grad), dims);
  }
  return out;
}

}  // namespace impl
}  // namespace TT_NS
