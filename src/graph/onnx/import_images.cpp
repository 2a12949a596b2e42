#include "base/arith.h"
#include "graph/onnx/importer.h"
#include "ops/gen/ops.h"

#include <math.h>

namespace TT_NS {

// begin of each of n dims, then end of each. kernel: sizes of the window.
Shape OnnxImporter::pads_of(int64_t n, Ints kernel) const {
  const bool upper = text_is("auto_pad", "SAME_UPPER", false);
  const bool none = text_is("auto_pad", "NOTSET", true) || text_is("auto_pad", "VALID", false);
  if (upper || text_is("auto_pad", "SAME_LOWER", false)) {
    const Shape strides = numbers(-1, "strides");
    const Shape dilations = numbers(-1, "dilations");
    Shape pads;
    pads.resize(2 * n);
    for (int64_t i = 0; i < n && i < kernel.n; i++) {
      const int64_t size = in(0).size(i + 2);
      const int64_t step = i < strides.size() ? strides[i] : 1;
      const int64_t spread = i < dilations.size() ? dilations[i] : 1;
      if (step < 1 || spread < 1 || kernel[i] < 1 || kernel[i] > kMaxMade || spread > kMaxMade ||
          step > kMaxMade)
        refuse("a window of another size");
      const int64_t covered = (ceil_div(size, step) - 1) * step + (kernel[i] - 1) * spread + 1;
      const int64_t total = max(covered - size, int64_t(0));
      const int64_t less = total / 2;
      pads[i] = upper ? less : total - less;
      pads[n + i] = total - pads[i];
    }
    return pads;
  }
  if (!none) refuse("auto_pad");
  Shape pads = numbers(-1, "pads");
  if (pads.empty()) pads.resize(2 * n);
  if (pads.size() != 2 * n) refuse("pads of other dimensions");
  return pads;
}
TensorRef OnnxImporter::padded(const Tensor& x, const Shape& pads, double v) const {
  const int64_t n = pads.size() / 2;
  Shape list;
  for (int64_t i = n - 1; i >= 0; i--) {
    list.push_back(pads[i]);
    list.push_back(pads[n + i]);
  }
  return op::constant_pad_nd(x, list, Scalar(v));
}

// Conv and ConvTranspose.
TensorRef OnnxImporter::convolution(const Tensor& input, const Tensor& w,
                                    const Tensor* bias) const {
  const bool transposed = is(type_, "ConvTranspose");
  const int64_t n = input.ndim - 2;
  if (n < 1 || n > 3) refuse("an input without one to three spatial dimensions");
  if (attr("output_shape")) refuse("output_shape");
  if (transposed &&
      (text_is("auto_pad", "SAME_UPPER", false) || text_is("auto_pad", "SAME_LOWER", false)))
    refuse("auto_pad");
  const Ints window = w.sizes();
  const Shape pads = pads_of(n, window.slice(min(window.n, int64_t(2)), window.n));
  bool even = true;
  for (int64_t i = 0; i < n; i++) even = even && pads[i] == pads[n + i];
  TensorRef x = TensorRef::share(&input);
  if (!even && transposed) refuse("pads that differ at the ends");
  if (!even) x = padded(*x, pads, 0);
  Shape padding;
  for (int64_t i = 0; i < n; i++) padding.push_back(even ? pads[i] : 0);
  Shape strides = numbers(-1, "strides");
  Shape dilations = numbers(-1, "dilations");
  Shape more = numbers(-1, "output_padding");
  if (strides.empty()) strides.resize(n, 1);
  if (dilations.empty()) dilations.resize(n, 1);
  if (more.empty()) more.resize(n);
  return op::convolution(*x, w, bias, strides, padding, dilations, transposed, more,
                         integer("group", 1));
}

// GlobalAveragePool and GlobalMaxPool.
TensorRef OnnxImporter::pooled_whole() const {
  Shape dims;
  for (int64_t d = 2; d < in(0).ndim; d++) dims.push_back(d);
  if (dims.empty()) refuse("an input without spatial dimensions");
  const bool mean = is(type_, "GlobalAveragePool");
  return mean ? op::mean_dim(in(0), dims, true) : op::amax(in(0), dims, true);
}

TensorRef OnnxImporter::batch_norm() const {
  if (integer("training_mode", 0)) refuse("training");
  in(3);
  in(4);
  return op::batch_norm(in(0), item(inputs_[3]).t.get(), item(inputs_[4]).t.get(), opt(1), opt(2),
                        false, 0.1, real("epsilon", 1e-5f));
}

TensorRef OnnxImporter::layer_norm() const {
  const int64_t d = dim(integer("axis", -1), in(0).ndim);
  if (outputs_.size() > 1 && (outputs_[1].n || (outputs_.size() > 2 && outputs_[2].n)))
    refuse("mean or deviation as a result");
  const Shape shape(in(0).sizes().slice(d, in(0).ndim));
  return op::layer_norm(in(0), shape, opt(1), opt(2), real("epsilon", 1e-5f));
}

bool OnnxImporter::image() {
  static constexpr OneResult kImages[] = {
      {"AveragePool", [](Node& n) { return n.mean_pooled(n.in(0)); }},
      {"BatchNormalization", [](Node& n) { return n.batch_norm(); }},
      {"Conv", [](Node& n) { return n.convolution(n.in(0), n.in(1), n.opt(2)); }},
      {"ConvTranspose", [](Node& n) { return n.convolution(n.in(0), n.in(1), n.opt(2)); }},
      {"GlobalAveragePool", [](Node& n) { return n.pooled_whole(); }},
      {"GlobalMaxPool", [](Node& n) { return n.pooled_whole(); }},
      {"LayerNormalization", [](Node& n) { return n.layer_norm(); }},
  };
  if (is(type_, "MaxPool")) {
    max_pool();
    return true;
  }
  return give_one(kImages);
}

void OnnxImporter::max_pool() {
  const int64_t n = in(0).ndim - 2;
  if (n < 1 || n > 3) refuse("an input without one to three spatial dimensions");
  const bool indexed = outputs_.size() > 1 && outputs_[1].n;
  if (indexed && n != 2) refuse("positions of the maxima, but of images");
  const Shape kernel = numbers(-1, "kernel_shape");
  const Shape pads = pads_of(n, kernel);
  Shape strides = numbers(-1, "strides"), padding;
  while (strides.size() < n) strides.push_back(1);
  const bool ceil = integer("ceil_mode", 0);
  const Shape dilations = numbers(-1, "dilations");
  bool even = true;
  for (int64_t i = 0; i < n; i++) even = even && pads[i] == pads[n + i];
  TensorRef x = TensorRef::share(&in(0));
  if (!even) {
    if (indexed || ceil || !is_float(x->dtype)) refuse("pads that differ at the ends");
    x = padded(*x, pads, -double(INFINITY));
  }
  for (int64_t i = 0; i < n; i++) padding.push_back(even ? pads[i] : 0);
  if (indexed) {
    if (integer("storage_order", 0)) refuse("positions by columns");
    TensorPair made = op::max_pool2d_with_indices(*x, kernel, strides, padding, dilations, ceil);
    const int64_t planes = x->size(0) * x->size(1);
    const int64_t by_plane[] = {x->size(0), x->size(1), 1, 1};
    const TensorRef first =
        op::arange(Scalar(0), Scalar(planes), Scalar(1), Dtype::kI64, Opt<Device>(kCpuDevice));
    const TensorRef offset =
        op::mul(*op::reshape(*first, Ints(by_plane)), Scalar(x->size(2) * x->size(3)));
    give(std::move(made.first));
    return give(op::add(*made.second, *offset));
  }
  if (n == 1) return give(op::max_pool1d(*x, kernel, strides, padding, dilations, ceil));
  if (n == 2) return give(op::max_pool2d(*x, kernel, strides, padding, dilations, ceil));
  give(op::max_pool3d(*x, kernel, strides, padding, dilations, ceil));
}

TensorRef OnnxImporter::mean_pooled(const Tensor& input) const {
  const int64_t n = input.ndim - 2;
  if (n < 1 || n > 3) refuse("an input without one to three spatial dimensions");
  const Shape kernel = numbers(-1, "kernel_shape");
  const Shape pads = pads_of(n, kernel);
  Shape strides = numbers(-1, "strides"), padding;
  while (strides.size() < n) strides.push_back(1);
  const bool ceil = integer("ceil_mode", 0);
  const bool counts = integer("count_include_pad", 0);
  for (const int64_t d : numbers(-1, "dilations"))
    if (d != 1) refuse("dilations");
  bool even = true;
  for (int64_t i = 0; i < n; i++) even = even && pads[i] == pads[n + i];
  TensorRef x = TensorRef::share(&input);
  if (!even) {
    if (ceil || !is_float(x->dtype) || !counts) refuse("pads that differ at the ends");
    x = padded(*x, pads, 0);
  }
  for (int64_t i = 0; i < n; i++) padding.push_back(even ? pads[i] : 0);
  if (n == 1) return op::avg_pool1d(*x, kernel, strides, padding, ceil, counts);
  if (n == 2) return op::avg_pool2d(*x, kernel, strides, padding, ceil, counts);
  return op::avg_pool3d(*x, kernel, strides, padding, ceil, counts);
}

// The sizes of all dims that a Resize node gives.
Shape OnnxImporter::resized_to(int64_t n) const {
  const int64_t of_scales = opset_ < 11 ? 1 : 2;
  if (attr("axes")) refuse("axes");
  if (has(3)) {
    if (!text_is("keep_aspect_ratio_policy", "stretch", true)) refuse("a ratio that is kept");
    Shape sizes = numbers(3);
    if (sizes.size() != n) refuse("sizes of other dimensions");
    return sizes;
  }
  const Tensor& scales = in(of_scales);
  if (!item(inputs_[of_scales]).known || scales.ndim != 1 || scales.numel != n ||
      !scales.contiguous())
    refuse("scales that depend on inputs");
  Shape sizes;
  for (int64_t d = 0; d < n; d++) {
    const auto scale =
        float(load_scalar(scales.data + d * scales.item_size(), scales.dtype).real());
    const float size = float(in(0).size(d)) * scale;  // rounded, as 5 * 0.4
    if (!(size >= 1 && size <= float(kMaxMade)) || size != float(int64_t(size)))
      refuse("scales that give no whole sizes");
    sizes.push_back(int64_t(size));
  }
  return sizes;
}

// Copies the nearest pixel, dimension by dimension.
TensorRef OnnxImporter::resize_nearest(const Shape& sizes) const {
  const bool old = opset_ < 11;
  const char* const how = "coordinate_transformation_mode";
  const bool corners = text_is(how, "align_corners", false);
  const bool half = text_is(how, "half_pixel", !old) || text_is(how, "pytorch_half_pixel", false);
  if (!corners && !half && !text_is(how, "asymmetric", old)) refuse(how);
  const bool floors = text_is("nearest_mode", "floor", old);
  const bool ceils = text_is("nearest_mode", "ceil", false);
  const bool up = text_is("nearest_mode", "round_prefer_ceil", false);
  TensorRef y = TensorRef::share(&in(0));
  for (int64_t d = 2; d < sizes.size(); d++) {
    const int64_t from = in(0).size(d);
    const int64_t to = sizes[d];
    if (to == from) continue;
    const double step = double(from) / double(to);
    const double of_corners = to > 1 ? double(from - 1) / double(to - 1) : 0;
    SmallVec<int64_t, 16> rows;
    for (int64_t i = 0; i < to; i++) {
      double at = double(i) * step;
      if (half) at = (double(i) + 0.5) * step - 0.5;
      if (corners) at = double(i) * of_corners;
      double place = -::floor(0.5 - at);  // round_prefer_floor
      if (floors) place = ::floor(at);
      if (ceils) place = -::floor(-at);
      if (up) place = ::floor(at + 0.5);
      rows.push_back(clamp(int64_t(place), int64_t(0), from - 1));
    }
    y = op::index_select(*y, d, *integers({rows.data(), rows.size()}));
  }
  return y;
}

TensorRef OnnxImporter::resize() const {
  const Tensor& x = in(0);
  const int64_t n = x.ndim;
  const Shape sizes = resized_to(n);
  if (n < 3 || sizes[0] != x.size(0) || sizes[1] != x.size(1))
    refuse("a change of other dimensions than the spatial ones");
  if (integer("antialias", 0)) refuse("antialias");
  for (int64_t d = 2; d < n; d++)
    if (sizes[d] < 1 || sizes[d] > kMaxMade || x.size(d) < 1) refuse("a size of 0");
  if (text_is("mode", "nearest", true)) return resize_nearest(sizes);
  const char* const how = "coordinate_transformation_mode";
  const bool corners = text_is(how, "align_corners", false);
  const bool as_pytorch = text_is(how, "pytorch_half_pixel", false);
  const bool half = as_pytorch || text_is(how, "half_pixel", opset_ >= 11);
  const bool cubic = text_is("mode", "cubic", false);
  if (!cubic && !text_is("mode", "linear", false)) refuse("its mode");
  if ((!corners && !half) || integer("exclude_outside", 0)) refuse(how);
  if (cubic && (n != 4 || real("cubic_coeff_a", -0.75) != -0.75)) refuse("its cubic weights");
  if (n > 5) refuse("more than three spatial dimensions");
  for (int64_t d = 2; d < n && as_pytorch; d++)
    if (sizes[d] == 1 && x.size(d) != 1) refuse("a size of 1");
  static constexpr int64_t kLinear[] = {1, 2, 6}, kCubic = 5;  // of enum Interpolation
  return op::interpolate(x, sizes.span().slice(2, n), {}, cubic ? kCubic : kLinear[n - 3],
                         Opt<bool>(corners));
}

TensorRef OnnxImporter::depth_and_space() const {
  const Tensor& x = in(0);
  const int64_t b = integer("blocksize", 0);
  if (x.ndim != 4 || b < 1 || b > kMaxMade) refuse("its block size, or an input that is no image");
  const int64_t n = x.size(0);
  const int64_t c = x.size(1);
  const int64_t h = x.size(2);
  const int64_t w = x.size(3);
  const auto arranged = [&](Ints sizes, Ints order, Ints result) {
    return op::reshape(*op::permute(*op::reshape(x, sizes), order), result);
  };
  if (is(type_, "SpaceToDepth")) {
    const int64_t sizes[] = {n, c, h / b, b, w / b, b};
    const int64_t order[] = {0, 3, 5, 1, 2, 4};
    const int64_t result[] = {n, c * b * b, h / b, w / b};
    return arranged(Ints(sizes), Ints(order), Ints(result));
  }
  const int64_t parts = c / (b * b);
  const int64_t result[] = {n, parts, h * b, w * b};
  if (text_is("mode", "CRD", false)) {
    const int64_t sizes[] = {n, parts, b, b, h, w};
    const int64_t order[] = {0, 1, 4, 2, 5, 3};
    return arranged(Ints(sizes), Ints(order), Ints(result));
  }
  const int64_t sizes[] = {n, b, b, parts, h, w};
  const int64_t order[] = {0, 3, 4, 1, 5, 2};
  return arranged(Ints(sizes), Ints(order), Ints(result));
}

TensorRef OnnxImporter::group_norm() const {
  if (in(0).ndim < 2 || !has(1) || in(1).numel != in(0).size(1)) refuse("weights of groups");
  return op::group_norm(in(0), integer("num_groups", 1), opt(1), opt(2), real("epsilon", 1e-5f));
}

TensorRef OnnxImporter::local_response_norm() const {
  const int64_t size = integer("size", 1);
  if (size % 2 == 0) refuse("an even size");
  return op::local_response_norm(in(0), size, real("alpha", 1e-4f), real("beta", 0.75f),
                                 real("bias", 1));
}

TensorRef OnnxImporter::selu() const {
  if (attr("alpha") || attr("gamma")) refuse("other numbers than the usual ones");
  return op::selu(in(0));
}

TensorRef OnnxImporter::shrink() const {
  const double bias = real("bias", 0);
  const double lambd = real("lambd", 0.5);
  if (bias != 0 && bias != lambd) refuse("a bias that is neither 0 nor lambd");
  return bias == 0 ? op::hardshrink(in(0), lambd) : op::softshrink(in(0), lambd);
}

TensorRef OnnxImporter::einsum() const {
  const OnnxAttr* a = attr("equation");
  SmallVec<const Tensor*, 4> list;
  for (int64_t i = 0; i < inputs_.size(); i++) list.push_back(&in(i));
  if (!a || list.empty()) refuse("no equation");
  return op::einsum(a->s, {list.data(), list.size()});
}

TensorRef OnnxImporter::grid_sample() const {
  const bool cubic = text_is("mode", "bicubic", false) || text_is("mode", "cubic", false);
  int64_t mode = cubic ? 2 : 0;
  if (text_is("mode", "nearest", false)) mode = 1;
  int64_t padding = text_is("padding_mode", "border", false);
  if (text_is("padding_mode", "reflection", false)) padding = 2;
  const Opt<bool> corners(integer("align_corners", 0) != 0);
  return op::grid_sample(in(0), in(1), mode, padding, corners);
}

bool OnnxImporter::layer() {
  static constexpr OneResult kLayers[] = {
      {"DepthToSpace", [](Node& n) { return n.depth_and_space(); }},
      {"Einsum", [](Node& n) { return n.einsum(); }},
      {"GridSample", [](Node& n) { return n.grid_sample(); }},
      {"GroupNormalization", [](Node& n) { return n.group_norm(); }},
      {"InstanceNormalization",
       [](Node& n) {
         return op::instance_norm(n.in(0), nullptr, nullptr, n.opt(1), n.opt(2), true, 0.1,
                                  n.real("epsilon", 1e-5f));
       }},
      {"LRN", [](Node& n) { return n.local_response_norm(); }},
      {"Resize", [](Node& n) { return n.resize(); }},
      {"Selu", [](Node& n) { return n.selu(); }},
      {"Shrink", [](Node& n) { return n.shrink(); }},
      {"SpaceToDepth", [](Node& n) { return n.depth_and_space(); }},
      {"ThresholdedRelu",
       [](Node& n) { return op::threshold(n.in(0), Scalar(n.real("alpha", 1)), Scalar(0.0)); }},
  };
  return give_one(kLayers);
}

}  // namespace TT_NS
