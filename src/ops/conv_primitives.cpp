// The primitives of convolutions: layouts, dtypes and plans.
#include "ops/conv_primitives.h"

#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"

namespace TT_NS {

static TensorRef new_last(Ints sizes, Dtype d, Device device) {
  return new_strided(sizes, channels_last_strides(sizes), d, device);
}
// t with its channels last, in dtype d.
static TensorRef with_channels_last(const Tensor& t, Dtype d) {
  if (t.dtype == d && (t.numel == 0 || strides_match(t, channels_last_strides(t.sizes()))))
    return TensorRef::share(&t);
  TensorRef out = new_last(t.sizes(), d, t.device);
  copy_elements(*out, t);
  return out;
}
// A result whose channels lie last, as the caller is to get it.
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
static TensorRef in_dtype(const Tensor& t, Dtype d) {
  return t.dtype == d ? TensorRef::share(&t) : cast_input(t, d);
}

static TensorRef zero_run(int64_t n, const Conv& c) {
  TensorRef zeros = new_tensor(Ints(&n, 1), c.compute, c.device);
  if (zeros->numel) fill_elements(*zeros, 0);
  return zeros;
}
template <class Plan> static void set_weight_strides(Plan* p, const Tensor& w) {
  p->w_co = w.stride(0);
  p->w_ci = w.stride(1);
  for (int d = 0; d < kConvDims; d++)
    p->w_k[d] = d < kConvDims + 2 - w.ndim ? 0 : w.stride(d - kConvDims + w.ndim);
}

// x's rows with their padding.
static TensorRef padded_rows(const Conv& c, const Tensor& x, int64_t width) {
  const int64_t sizes[3] = {c.s.n * c.s.x[0] * c.s.x[1], width, c.s.ci};
  TensorRef out = new_tensor(sizes, c.compute, c.device);
  ConvPadPlan plan;
  build_conv_pad(&plan, c.s, width, x.item_size());
  plan.src = x.data;
  plan.dst = out->data;
  if (out->numel) launch_stages(kernel_conv_pad, c.device, &plan.run);
  return out;
}

// y from x, or x from y: channels last, or first if that is wanted and costs nothing.
static TensorRef gather_product(const Conv& c, ConvMode mode, const Tensor& source,
                                const Tensor& weight, const Tensor* bias) {
  TensorRef src = with_channels_last(source, c.compute);
  TensorRef w = in_dtype(weight, c.compute);
  TensorRef b = bias ? cast_input(*bias, c.compute) : TensorRef();
  const Shape& sizes = mode == kConvForward ? c.y : c.x;
  const int64_t width = mode == kConvData ? 0 : conv_merged_width(c.s);
  ConvPlan plan;
  build_conv(&plan, c.s, int32_t(c.compute), mode, width, !c.last && !c.complex);
  TensorRef out =
      plan.planes ? new_tensor(sizes, c.compute, c.device) : new_last(sizes, c.compute, c.device);
  if (out->numel == 0) return out;
  if (width && mode == kConvForward) src = padded_rows(c, *src, width);
  TensorRef zeros = zero_run(plan.depthwise         ? c.s.groups
                             : mode == kConvForward ? plan.gather.run
                                                    : c.s.co,
                             c);
  Workspace packed(conv_packed_bytes(plan, out->item_size()), c.device);
  Workspace images(conv_image_bytes(plan, out->item_size()), c.device);
  set_weight_strides(&plan, *w);
  plan.src = src->data;
  plan.weight = w->data;
  plan.bias = b ? b->data : nullptr;
  plan.dst = out->data;
  plan.packed = packed.data();
  plan.images = images.data();
  plan.zeros = zeros->data;
  launch_stages(kernel_conv, c.device, &plan.run);
  return out;
}

// The weight's gradient from x and y's, in the weight's format.
static TensorRef weight_product(const Conv& c, const Tensor& input, const Tensor& grad) {
  TensorRef x = with_channels_last(input, c.compute);
  TensorRef y = with_channels_last(grad, c.compute);
  TensorRef out =
      c.weight_last ? new_last(c.w, c.compute, c.device) : new_tensor(c.w, c.compute, c.device);
  if (out->numel == 0) return out;
  const int64_t width = conv_merged_width(c.s);
  ConvWeightPlan plan;
  build_conv_weight(&plan, c.s, int32_t(c.compute), out->item_size(), width);
  if (width) x = padded_rows(c, *x, width);
  TensorRef zeros = zero_run(plan.depthwise ? c.s.groups : plan.gather.run, c);
  Workspace sums(conv_sums_bytes(plan, out->item_size()), c.device);
  set_weight_strides(&plan, *out);
  plan.src = x->data;
  plan.y = y->data;
  plan.dst = out->data;
  plan.sums = sums.data();
  plan.zeros = zeros->data;
  launch_stages(kernel_conv_weight, c.device, &plan.run);
  return out;
}

// ---- windows of one pixel: products of matrices ----

static bool in_order(const Conv& c, const Tensor& t) {
  return c.last ? strides_match(t, channels_last_strides(t.sizes())) : t.contiguous();
}
// Pixels whose channels lie together and a weight that stays in the second-level cache: the
// convolution's own kernel reads the pixels where they are, which a product would pack first (1.2
// times the time on one thread and two).
constexpr int64_t kLightWeight = 1 << 18;  // bytes
static bool reads_in_place(const Conv& c, const Tensor& weight) {
  return c.last && weight.numel * weight.item_size() <= kLightWeight;
}
// a and, unless it is the weight, b lie as the results will.
static bool is_pointwise(const Conv& c, const Tensor& a, const Tensor& b, bool weight) {
  const ConvShape& s = c.s;
  bool ones = s.groups == 1 && !c.complex && a.dtype == c.compute && c.compute != Dtype::kI64 &&
              a.numel && b.numel;
  for (int d = 0; d < kConvDims; d++)
    ones = ones && s.k[d] == 1 && s.stride[d] == 1 && s.pad[d] == 0;
  return ones && s.x[0] * s.x[1] * s.x[2] >= 64 && b.dtype == c.compute && in_order(c, a) &&
         (weight || in_order(c, b));
}
// (n, channels, pixels) of a tensor whose channels lie first; (n * pixels, channels) of one whose
// channels lie last.
static TensorRef as_planes(const Tensor& t) {
  const int64_t sizes[3] = {t.size(0), t.size(1), t.numel / (t.size(0) * t.size(1))};
  return new_alias(t, sizes, {});
}
static TensorRef as_pixels(const Tensor& t) {
  const int64_t sizes[2] = {t.numel / t.size(1), t.size(1)};
  const int64_t strides[2] = {t.size(1), 1};
  return new_alias(t, sizes, strides);
}
static TensorRef as_matrix(const Tensor& w, bool turned) {
  const int64_t sizes[2] = {w.size(turned), w.size(!turned)};
  const int64_t strides[2] = {w.stride(turned), w.stride(!turned)};
  return new_alias(w, sizes, strides);
}
static TensorRef pointwise(const Conv& c, bool forward, const Tensor& source, const Tensor& weight,
                           const Tensor* bias) {
  const Shape& sizes = forward ? c.y : c.x;
  TensorRef w = as_matrix(weight, forward == c.last);
  if (c.last) {
    TensorRef x = as_pixels(source);
    return new_alias(bias ? *op::addmm(*new_alias(*bias), *x, *w) : *op::matmul_stack(*x, *w),
                     sizes, channels_last_strides(sizes));
  }
  TensorRef x = as_planes(source);
  if (!bias) return new_alias(*op::matmul_stack(*w, *x), sizes, {});
  const int64_t stack[3] = {x->size(0), w->size(0), w->size(1)};
  const int64_t step[3] = {0, w->stride(0), w->stride(1)};
  const int64_t column[2] = {bias->numel, 1};
  const int64_t along[2] = {bias->stride(0), 0};
  return new_alias(*op::baddbmm(*new_alias(*bias, column, along), *new_alias(*w, stack, step), *x),
                   sizes, {});
}
static TensorRef pointwise_weight(const Conv& c, const Tensor& input, const Tensor& grad) {
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
  return new_alias(
      *op::sum_dim(*op::matmul_stack(*y, *new_alias(*x, sizes, strides)), Ints(&batch, 1)), c.w,
      {});
}

// ---- few channels: images side by side ----

static bool takes_batch(const Conv& c, bool data) {
  return !c.last && !c.weight_last && !c.complex && c.compute == Dtype::kF32 &&
         conv_batch_serves(c.s, data);
}
// Images of this size as spread; lead and full as NULL: without a border.
static TensorRef spread_images(const Conv& c, const Tensor& t, const int64_t* size,
                               const int64_t* lead, const int64_t* full) {
  TensorRef src = TensorRef::share(&t);
  if (t.dtype != c.compute || !t.contiguous()) {
    src = new_tensor(t.sizes(), c.compute, c.device);
    copy_elements(*src, t);
  }
  ConvSpreadPlan plan;
  build_conv_spread(&plan, t.size(0), t.size(1), size, lead, full);
  const int64_t items = conv_spread_items(plan.n, plan.channels, plan.full);
  TensorRef out = new_tensor(Ints(&items, 1), c.compute, c.device);
  plan.src = src->data;
  plan.dst = out->data;
  launch_stages(kernel_conv_spread, c.device, &plan.run);
  return out;
}
template <class Plan> static void set_flat_strides(Plan* p, const Tensor& w) {
  p->w_co = w.stride(0);
  p->w_ci = w.stride(1);
  p->w_k[0] = w.ndim == 3 ? 0 : w.stride(w.ndim - 2);
  p->w_k[1] = w.stride(w.ndim - 1);
}
// y from x; data: x from y, by the weight turned round.
static TensorRef batch_product(const Conv& c, bool data, const Tensor& source, const Tensor& weight,
                               const Tensor* bias) {
  TensorRef w = in_dtype(weight, c.compute);
  TensorRef b = bias ? cast_input(*bias, c.compute) : TensorRef();
  TensorRef out = new_tensor(data ? c.x : c.y, c.compute, c.device);
  if (out->numel == 0) return out;
  ConvBatchPlan plan;
  build_conv_batch(&plan, conv_batch_shape(c.s, data));
  TensorRef src = spread_images(c, source, plan.s.x, plan.s.lead, plan.s.full);
  Workspace packed(w->numel * w->item_size(), c.device);
  set_flat_strides(&plan, *w);
  char* corner = w->data;
  for (int d = 0; d < 2 && data; d++) {
    corner = advance(corner, (plan.s.k[d] - 1) * plan.w_k[d] * w->item_size());
    plan.w_k[d] = -plan.w_k[d];
  }
  if (data) std::swap(plan.w_co, plan.w_ci);
  plan.src = src->data;
  plan.weight = corner;
  plan.bias = b ? b->data : nullptr;
  plan.dst = out->data;
  plan.packed = packed.data();
  launch_stages(kernel_conv_batch, c.device, &plan.run);
  return out;
}
static TensorRef batch_weight_product(const Conv& c, const Tensor& input, const Tensor& grad) {
  TensorRef out = new_tensor(c.w, c.compute, c.device);
  ConvBatchWeightPlan plan;
  build_conv_batch_weight(&plan, conv_batch_shape(c.s, false));
  TensorRef x = spread_images(c, input, plan.s.x, plan.s.lead, plan.s.full);
  TensorRef y = spread_images(c, grad, plan.s.y, nullptr, nullptr);
  Workspace sums(plan.splits * out->numel * out->item_size(), c.device);
  set_flat_strides(&plan, *out);
  plan.src = x->data;
  plan.y = y->data;
  plan.dst = out->data;
  plan.sums = sums.data();
  launch_stages(kernel_conv_batch_weight, c.device, &plan.run);
  return out;
}

enum class Want { kY, kX, kWeight };
// y from x and the weight; x from y and the weight; the weight from x and y.
static TensorRef product(const Conv& c, Want want, const Tensor& a, const Tensor& b,
                         const Tensor* bias) {
  if (want == Want::kWeight) {
    if (is_pointwise(c, a, b, false)) return pointwise_weight(c, a, b);
    return takes_batch(c, false) && a.numel && b.numel ? batch_weight_product(c, a, b)
                                                       : weight_product(c, a, b);
  }
  if (is_pointwise(c, a, b, true) && !reads_in_place(c, b))
    return pointwise(c, want == Want::kY, a, b, bias);
  if (takes_batch(c, want == Want::kX)) return batch_product(c, want == Want::kX, a, b, bias);
  return gather_product(c, want == Want::kY ? kConvForward : conv_data_mode(c.s), a, b, bias);
}

// The real (0) or imaginary (1) parts of a complex tensor, in place.
static TensorRef part(const Tensor& t, int i) {
  const Dtype d = t.dtype == Dtype::kC128 ? Dtype::kF64 : Dtype::kF32;
  Shape strides(t.strides());
  for (int64_t k = 0; k < t.ndim; k++) strides[k] *= 2;
  return new_alias(t, t.sizes(), strides, advance(t.data, i * item_size(d)), d);
}
static TensorRef complex_product(const Conv& c, Want want, const Tensor& a, const Tensor& b,
                                 Dtype d) {
  TensorRef ar = part(a, 0);
  TensorRef ai = part(a, 1);
  TensorRef br = part(b, 0);
  TensorRef bi = part(b, 1);
  TensorRef re =
      op::sub(*product(c, want, *ar, *br, nullptr), *product(c, want, *ai, *bi, nullptr));
  TensorRef im =
      op::add(*product(c, want, *ar, *bi, nullptr), *product(c, want, *ai, *br, nullptr));
  TensorRef out = new_strided(re->sizes(), re->strides(), d, c.device);
  TensorRef out_re = part(*out, 0);
  TensorRef out_im = part(*out, 1);
  copy_elements(*out_re, *re);
  copy_elements(*out_im, *im);
  return out;
}

static TensorRef any_product(const Conv& c, Want want, Dtype d, const Tensor& a, const Tensor& b,
                             const Tensor* bias) {
  const bool last = want == Want::kWeight ? c.weight_last : c.last;
  if (!c.complex) {
    TensorRef out = product(c, want, a, b, bias);
    if (want == Want::kWeight) return in_dtype(*out, d);
    return in_format(std::move(out), last, d);
  }
  TensorRef out = complex_product(c, want, a, b, d);
  if (bias) {
    Shape shape(out->sizes());
    for (int64_t k = 0; k < out->ndim; k++) shape[k] = k == 1 ? out->size(1) : 1;
    Shape strides(shape);
    for (int64_t k = 0; k < out->ndim; k++) strides[k] = k == 1 ? bias->stride(0) : 0;
    out = op::add(*out, *new_alias(*bias, shape, strides));
  }
  return want == Want::kWeight ? std::move(out) : in_format(std::move(out), last, d);
}

namespace impl {

TensorRef convolution(Call, const Tensor& input, const Tensor& weight, const Tensor* bias,
                      Ints stride, Ints padding, Ints dilation, bool transposed,
                      Ints output_padding, int64_t groups) {
  const Conv c = check_conv(input, weight, bias,
                            {stride, padding, dilation, transposed, output_padding, groups});
  return any_product(c, transposed ? Want::kX : Want::kY, input.dtype, input, weight, bias);
}

TensorTriple convolution_backward(Call, const Tensor& grad, const Tensor& input,
                                  const Tensor& weight, Ints stride, Ints padding, Ints dilation,
                                  bool transposed, Ints output_padding, int64_t groups,
                                  bool want_input, bool want_weight, bool want_bias) {
  const Conv c = check_conv(input, weight, nullptr,
                            {stride, padding, dilation, transposed, output_padding, groups});
  const Dtype d = input.dtype;
  const bool share = want_input && want_weight && !c.complex &&
                     !is_pointwise(c, grad, input, false) && !takes_batch(c, false) &&
                     !takes_batch(c, true);  // one conversion serves both
  TensorRef g = share ? with_channels_last(grad, c.compute) : TensorRef::share(&grad);
  TensorTriple out;
  if (want_input)
    out.first = any_product(c, transposed ? Want::kY : Want::kX, d, *g, weight, nullptr);
  if (want_weight)
    out.second =
        any_product(c, Want::kWeight, d, transposed ? *g : input, transposed ? input : *g, nullptr);
  if (want_bias) {
    Shape dims;
    for (int64_t d = 0; d < grad.ndim; d++)
      if (d != 1) dims.push_back(d);
    out.third = op::sum_dim(*new_alias(grad), dims);
  }
  return out;
}

}  // namespace impl
}  // namespace TT_NS
