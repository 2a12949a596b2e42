// Products, convolutions, pooling, resizing, softmax, norms, losses by class, attention.
#include "graph/onnx/exporter.h"
#include "ops/gen/ops.h"
#include "plan/resize_build.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kMaxResizeWeights = 1 << 24;

int64_t item(Ints list, int64_t i, int64_t missing) {
  if (list.n == 0) return missing;
  return list[list.n == 1 ? 0 : i];
}
// One value for each spatial dimension.
Shape per_dim(Ints list, int64_t n, int64_t missing) {
  Shape out;
  for (int64_t i = 0; i < n; i++) out.push_back(item(list, i, missing));
  return out;
}
Shape twice(const Shape& s) {
  Shape out(s.span());
  out.append(s.span());
  return out;
}

}  // namespace

// ---- products ----

bool OnnxExporter::emit_product() {
  if (is("linear_rows")) {
    const int64_t order[] = {1, 0};
    const ModelValue w = node("Transpose", {tensor("weight")}, value("weight").dtype,
                              AttrWriter().ints("perm", Ints(order)));
    ModelValue y = node("MatMul", {tensor("input"), w}, w.dtype);
    if (has("bias")) y = node("Add", {y, tensor("bias")}, w.dtype);
    give(y);
    return true;
  }
  if (is("mm") || is("int_mm") || is("bmm") || is("matmul_stack") || is("mv") || is("dot")) {
    const char* second = "tensor";
    for (const char* name : {"vec", "mat2", "other"})
      if (has(name)) second = name;
    if (!has(second) || !has("self")) return false;
    const Dtype own = value("self").dtype;
    const Dtype d = is_float(own) ? own : promote(own, Dtype::kI32);  // ONNX has no narrow ones
    give(node("MatMul", {cast(tensor("self"), d), cast(tensor(second), d)}, d));
    return true;
  }
  if (is("addmm") || is("baddbmm")) {
    const bool batches = is("baddbmm");
    const char* one = batches ? "batch1" : "mat1";
    const char* two = batches ? "batch2" : "mat2";
    const Dtype d = value(one).dtype;
    ModelValue y = node("MatMul", {tensor(one), tensor(two)}, d);
    if (real("alpha") != 1) y = node("Mul", {y, number(real("alpha"), d)}, d);
    if (real("beta") != 0) {
      ModelValue x = tensor("self");
      if (real("beta") != 1) x = node("Mul", {x, number(real("beta"), d)}, d);
      y = node("Add", {y, x}, d);
    }
    give(y);
    return true;
  }
  return false;
}

// ---- images ----

bool OnnxExporter::emit_conv() {
  if (!is("convolution")) return false;
  const int64_t n = value("weight").ndim() - 2;
  AttrWriter a;
  Shape kernel;
  for (int64_t i = 0; i < n; i++) kernel.push_back(value("weight").sizes[2 + i]);
  a.ints("kernel_shape", kernel);
  a.ints("strides", per_dim(arg("stride").ints, n, 1));
  a.ints("pads", twice(per_dim(arg("padding").ints, n, 0)));
  a.ints("dilations", per_dim(arg("dilation").ints, n, 1));
  a.integer("group", integer("groups"));
  const bool transposed = integer("transposed") != 0;
  if (transposed) a.ints("output_padding", per_dim(arg("output_padding").ints, n, 0));
  give(node(transposed ? "ConvTranspose" : "Conv",
            {tensor("input"), tensor("weight"), tensor("bias")}, value("input").dtype, a));
  return true;
}

bool OnnxExporter::is_used(int32_t value) const {
  bool used = false;
  for (const IrNode& n : g_.nodes) for_each_value(n, [&](int32_t v) { used |= v == value; });
  for (const int32_t v : g_.outputs) used |= v == value;
  return used;
}
void OnnxExporter::check_places_unused() const {
  if (at().outs.size() < 2 || at().outs[1] < 0) return;
  if (is_used(at().outs[1])) refuse("positions of the maxima");
}

void OnnxExporter::emit_windows(bool max) {
  const ModelValue x = tensor("self");
  const bool lone = value("self").ndim() == 3;
  AttrWriter a;
  const Shape kernel = per_dim(arg("kernel_size").ints, 2, 1);
  a.ints("kernel_shape", kernel);
  Shape strides;
  for (int64_t i = 0; i < 2; i++) strides.push_back(item(arg("stride").ints, i, kernel[i]));
  a.ints("strides", strides);
  a.ints("pads", twice(per_dim(arg("padding").ints, 2, 0)));
  a.integer("ceil_mode", integer("ceil_mode"));
  if (max) a.ints("dilations", per_dim(arg("dilation").ints, 2, 1));
  else a.integer("count_include_pad", integer("count_include_pad"));
  const bool divides = !max && has("divisor_override");
  if (divides && (integer("ceil_mode") || !integer("count_include_pad")))
    refuse("divisor_override for windows of several sizes");
  Shape sizes(value("self").sizes.span());
  if (lone) sizes.insert(0, 1);
  const ModelValue images = lone ? reshape(x, sizes) : x;
  ModelValue y = max ? max_pooled(images, a) : node("AveragePool", {images}, x.dtype, a);
  if (lone) y = reshape(y, out_value().sizes);
  if (divides) {
    const double factor = double(kernel[0] * kernel[1]) / real("divisor_override");
    y = node("Mul", {y, number(factor, y.dtype)}, y.dtype);
  }
  give(y);
}
void OnnxExporter::emit_adaptive_windows(bool max) {
  const IrValue& x = value("self");
  const IrValue& y = out_value();
  Shape kernel;
  bool even = x.ndim() == 4;
  for (int64_t i = 2; i >= 1; i--) {
    const int64_t in = x.sizes[x.ndim() - i];
    const int64_t out = y.sizes[y.ndim() - i];
    if (out == 0) refuse("no windows");
    even = even && in % out == 0;
    kernel.push_back(in / out);
  }
  if (!even && !max) {
    emit_window_means();
    return;
  }
  if (!even) refuse("windows of several sizes, or an image without a batch");
  AttrWriter a;
  a.ints("kernel_shape", kernel).ints("strides", kernel);
  if (max) give(max_pooled(tensor("self"), a));
  else give(node("AveragePool", {tensor("self")}, x.dtype, a));
}
bool OnnxExporter::emit_pool() {
  if (is("max_pool2d") || is("max_pool2d_with_indices")) emit_windows(true);
  else if (is("avg_pool2d")) emit_windows(false);
  else if (is("adaptive_max_pool2d")) emit_adaptive_windows(true);
  else if (is("adaptive_avg_pool2d")) emit_adaptive_windows(false);
  else return false;
  return true;
}

// MaxPool. Places are in a plane, in ONNX in all of them.
ModelValue OnnxExporter::max_pooled(ModelValue x, const AttrWriter& a) {
  if (at().outs.size() < 2 || at().outs[1] < 0) return node("MaxPool", {x}, x.dtype, a);
  const Shape& sizes = value("self").sizes;
  const int64_t area = sizes[sizes.size() - 1] * sizes[sizes.size() - 2];
  const ModelValue outs[2] = {{new_tensor().id, x.dtype}, {new_tensor().id, Dtype::kI64}};
  node_to("MaxPool", {x}, Span<const ModelValue>(outs, 2), a);
  const ModelValue place = node("Mod", {outs[1], number(double(area), Dtype::kI64)}, Dtype::kI64);
  give(reshape(place, out_value(1).sizes), 1);
  return outs[0];
}

// Products with a matrix of shares for each dimension.
void OnnxExporter::emit_window_means() {
  const IrValue &x = value("self"), &y = out_value();
  const Dtype d = x.dtype == Dtype::kF64 ? x.dtype : Dtype::kF32;
  ModelValue shares[2];
  for (int64_t i = 0; i < 2; i++) {
    const int64_t in = fixed_size("self", x.ndim() - 2 + i);
    const int64_t out = y.sizes[y.ndim() - 2 + i];
    if (in > kMaxResizeWeights / out) refuse("an image of this size");
    Bytes table;
    const int64_t sizes[] = {i ? in : out, i ? out : in};
    table.resize(in * out * item_size(d), 0);
    for (int64_t o = 0; o < out; o++) {
      const int64_t first = o * in / out;
      const int64_t end = ceil_div((o + 1) * in, out);
      for (int64_t k = first; k < end; k++)
        store_scalar(table.data() + (i ? k * out + o : o * in + k) * item_size(d), d,
                     Scalar(1.0 / double(end - first)));
    }
    shares[i] = initializer(d, Ints(sizes), table.data(), table.size());
  }
  const ModelValue lines = node("MatMul", {cast(tensor("self"), d), shares[1]}, d);
  give(node("MatMul", {shares[0], lines}, d));
}

// The weights of dimension d of an image as a matrix [out][in].
ModelValue OnnxExporter::resize_weights(int d) {
  const Dtype dtype = value("self").dtype;
  const int64_t in = value("self").sizes[2 + d];
  const int64_t out = out_value().sizes[2 + d];
  const bool align = integer("align") != 0;
  const double scale = resize_scale(in, out, real(d ? "scale_w" : "scale_h"), align, false);
  const ResizeAxis a = merged_axis(integer("mode"), align, in, out, scale);
  const int64_t sizes[] = {out, in};
  if (in > kMaxResizeWeights / out) refuse("an image of this size");
  Bytes table;
  table.resize(out * in * item_size(dtype), 0);
  for (int64_t o = 0; o < out; o++) {
    const ResizeWindow w = resize_window(a, o);
    const double total = resize_total(a, w);
    for (int64_t k = 0; k < w.count; k++) {
      const double weight = resize_weight(a, w, k) / total;
      const int64_t at = o * in + w.first + k;
      const float single = float(weight);
      if (dtype == Dtype::kF64) memcpy(table.data() + at * 8, &weight, 8);
      else memcpy(table.data() + at * 4, &single, 4);
    }
  }
  return initializer(dtype, Ints(sizes), table.data(), table.size());
}

// One node for whole factors, of images of any size, otherwise tables of places.
void OnnxExporter::emit_nearest() {
  const Dtype dtype = value("self").dtype;
  ModelValue y = tensor("self");
  SmallVec<int64_t, 16> places[2];
  float factors[4] = {1, 1, 1, 1};
  bool whole = dtype == Dtype::kF32;
  for (int d = 0; d < 2; d++) {
    const int64_t in = value("self").sizes[2 + d];
    const int64_t out = out_value().sizes[2 + d];
    const double scale =
        resize_scale(in, out, real(d ? "scale_w" : "scale_h"), false, dtype != Dtype::kF64);
    const ResizeAxis a = merged_axis(integer("mode"), false, in, out, scale);
    const int64_t factor = max<int64_t>(out / in, 1);
    whole = whole && out == factor * in;
    factors[2 + d] = float(factor);
    for (int64_t o = 0; o < out; o++) {
      const bool doubles = dtype == Dtype::kF64;
      places[d].push_back(doubles ? nearest_element<double>(a, o) : nearest_element<float>(a, o));
      whole = whole && places[d].back() == o / factor;
    }
  }
  if (whole) {
    const int64_t n = 4;
    const ModelValue scales = initializer(Dtype::kF32, Ints(&n, 1), factors, sizeof factors);
    return give(node("Resize", {y, ModelValue(), scales}, dtype,
                     AttrWriter()
                         .text("mode", "nearest")
                         .text("coordinate_transformation_mode", "asymmetric")
                         .text("nearest_mode", "floor")));
  }
  for (int d = 0; d < 2; d++) {
    const Ints list = places[d].span();
    const ModelValue table = initializer(Dtype::kI64, Ints(&list.n, 1), list.ptr, list.n * 8);
    y = along(2 + d, "Gather", {y, table}, dtype);
  }
  give(y);
}

// Products with the weights of both dimensions.
bool OnnxExporter::emit_resize() {
  if (!is("upsample2d")) return false;
  const Dtype dtype = value("self").dtype;
  if (dtype != Dtype::kF32 && dtype != Dtype::kF64) refuse("a dtype other than float32, float64");
  if (is_nearest(integer("mode"))) {
    emit_nearest();
    return true;
  }
  const int64_t order[] = {1, 0};
  const ModelValue columns =
      node("Transpose", {resize_weights(1)}, dtype, AttrWriter().ints("perm", Ints(order)));
  const ModelValue lines = node("MatMul", {tensor("self"), columns}, dtype);
  give(node("MatMul", {resize_weights(0), lines}, dtype));
  return true;
}

// ---- rows ----

void OnnxExporter::emit_softmax() {
  const bool log = is("log_softmax") || is("native_log_softmax");
  const Dtype d = out_value().dtype;
  if (out_value().ndim() == 0) refuse("a number");
  give(along(integer("dim"), log ? "LogSoftmax" : "Softmax", {cast(tensor("self"), d)}, d));
}

void OnnxExporter::emit_layer_norm() {
  const Dtype d = value("input").dtype;
  const Ints shape = arg("normalized_shape").ints;
  ModelValue scale = tensor("weight");
  if (scale.id < 0) scale = node("Expand", {number(1, d), constant(shape)}, d);
  give(node("LayerNormalization", {tensor("input"), scale, tensor("bias")}, d,
            AttrWriter().integer("axis", -shape.n).real("epsilon", real("eps"))));
}

void OnnxExporter::emit_rms_norm() {
  const Dtype d = value("input").dtype;
  const Dtype wide = d == Dtype::kF64 ? d : Dtype::kF32;
  const ModelValue x = cast(tensor("input"), wide);
  Shape axes;
  for (int64_t i = -arg("normalized_shape").ints.size(); i < 0; i++) axes.push_back(i);
  const ModelValue squares = node("ReduceMean", {node("Mul", {x, x}, wide), constant(axes)}, wide,
                                  AttrWriter().integer("keepdims", 1));
  const ModelValue rms =
      node("Sqrt", {node("Add", {squares, number(real("eps"), wide)}, wide)}, wide);
  ModelValue y = node("Div", {x, rms}, wide);
  if (has("weight")) y = node("Mul", {y, cast(tensor("weight"), wide)}, wide);
  give(cast(y, d));
}

void OnnxExporter::emit_group_norm() {
  const IrValue& x = value("input");
  const Dtype d = x.dtype;
  if (x.numel() == 0) refuse("an input without elements");
  // -1: the first size follows from the others, also where the number of images is dynamic.
  const int64_t rows[2] = {-1, x.numel() / (x.sizes[0] * integer("num_groups"))};
  Shape image(x.sizes);
  image[0] = -1;
  const ModelValue scale = node("Expand", {number(1, d), constant(Ints(&rows[1], 1))}, d);
  ModelValue y = node("LayerNormalization", {reshape(tensor("input"), rows), scale, ModelValue()},
                      d, AttrWriter().integer("axis", -1).real("epsilon", real("eps")));
  y = reshape(y, image);
  Shape column;
  column.resize(x.ndim() - 1, 1);
  column[0] = x.sizes[1];
  if (has("weight")) y = node("Mul", {y, reshape(cast(tensor("weight"), d), column)}, d);
  if (has("bias")) y = node("Add", {y, reshape(cast(tensor("bias"), d), column)}, d);
  give(y);
}

// By the statistics of the batch itself, as instance_norm has them.
ModelValue OnnxExporter::normalized_images() {
  const Dtype d = value("input").dtype;
  const ModelValue x = tensor("input");
  Shape axes, column;
  axes.push_back(0);
  for (int64_t i = 2; i < value("input").ndim(); i++) axes.push_back(i);
  column.resize(value("input").ndim() - 1, 1);
  column[0] = value("input").sizes[1];
  const auto mean = [&](ModelValue v) { return node("ReduceMean", {v, constant(axes)}, d); };
  const ModelValue centered = node("Sub", {x, mean(x)}, d);
  const ModelValue variance = mean(node("Mul", {centered, centered}, d));
  const ModelValue deviation =
      node("Sqrt", {node("Add", {variance, number(real("eps"), d)}, d)}, d);
  ModelValue y = node("Div", {centered, deviation}, d);
  if (has("weight")) y = node("Mul", {y, reshape(cast(tensor("weight"), d), column)}, d);
  if (has("bias")) y = node("Add", {y, reshape(cast(tensor("bias"), d), column)}, d);
  return y;
}

void OnnxExporter::emit_batch_norm() {
  if (integer("training") && has("running_mean")) refuse("training: export the model in eval mode");
  if (!has("running_mean")) return give(normalized_images());
  const Dtype d = value("input").dtype;
  const Ints channels(&value("input").sizes[1], 1);
  ModelValue scale = tensor("weight");
  ModelValue bias = tensor("bias");
  if (scale.id < 0) scale = node("Expand", {number(1, d), constant(channels)}, d);
  if (bias.id < 0) bias = node("Expand", {number(0, d), constant(channels)}, d);
  give(node("BatchNormalization",
            {tensor("input"), scale, bias, cast(tensor("running_mean"), d),
             cast(tensor("running_var"), d)},
            d, AttrWriter().real("epsilon", real("eps"))));
}

void OnnxExporter::emit_cumsum() {
  const Dtype d = out_value().dtype;
  const int64_t dim = integer("dim");
  if (value("self").ndim() == 0) refuse("a number");
  give(node("CumSum", {cast(tensor("self"), d), constant(Ints(&dim, 1), 0)}, d));
}

// ---- losses by class ----

void OnnxExporter::emit_class_loss() {
  const IrValue& x = value("input");
  const Dtype d = is_float(x.dtype) && x.dtype != Dtype::kF64 ? Dtype::kF32 : x.dtype;
  const int64_t dim = x.ndim() == 1 ? 0 : 1;
  for (int64_t i = 1; i < at().outs.size(); i++)
    if (at().outs[i] >= 0 && is_used(at().outs[i])) refuse("weights of rows");
  ModelValue logs = cast(tensor("input"), d);
  if (is("native_cross_entropy")) logs = along(dim, "LogSoftmax", {logs}, d);
  const ModelValue target = cast(tensor("target"), Dtype::kI64);
  const ModelValue ignored =
      compared("Equal", target, number(double(integer("ignore_index")), Dtype::kI64));
  const ModelValue labels = node("Where", {ignored, number(0, Dtype::kI64), target}, Dtype::kI64);
  Shape one(x.sizes);
  one[dim] = 1;
  const ModelValue hit = along(dim, "GatherElements", {logs, reshape(labels, one)}, d);
  ModelValue share = number(1, d);
  if (has("weight")) share = along(0, "Gather", {cast(tensor("weight"), d), labels}, d);
  share = node("Where", {ignored, number(0, d), share}, d);
  const ModelValue losses = node(
      "Where", {ignored, number(0, d), reshape(node("Neg", {hit}, d), value("target").sizes)}, d);
  ModelValue loss = node("Mul", {losses, share}, d);
  const int64_t reduction = integer("reduction");
  const AttrWriter drops = AttrWriter().integer("keepdims", 0);
  if (reduction != kReductionNone) loss = node("ReduceSum", {loss}, d, drops);
  if (reduction == kReductionMean)
    loss = node("Div", {loss, node("ReduceSum", {share}, d, drops)}, d);
  give(loss);
}

bool OnnxExporter::emit_rows() {
  static constexpr Emitter kTable[] = {
      {"softmax", &OnnxExporter::emit_softmax},
      {"native_softmax", &OnnxExporter::emit_softmax},
      {"log_softmax", &OnnxExporter::emit_softmax},
      {"native_log_softmax", &OnnxExporter::emit_softmax},
      {"native_layer_norm", &OnnxExporter::emit_layer_norm},
      {"native_rms_norm", &OnnxExporter::emit_rms_norm},
      {"native_group_norm", &OnnxExporter::emit_group_norm},
      {"native_batch_norm", &OnnxExporter::emit_batch_norm},
      {"cumsum", &OnnxExporter::emit_cumsum},
      {"native_nll_loss", &OnnxExporter::emit_class_loss},
      {"native_cross_entropy", &OnnxExporter::emit_class_loss},
  };
  return emit_by(kTable);
}

// Returns scores [.., queries, keys] with -inf where a key comes after its query.
ModelValue OnnxExporter::without_later_keys(ModelValue scores, int64_t queries, int64_t keys) {
  const int64_t sizes[] = {queries, keys};
  ModelValue seen;
  if (growth_) {
    const Dtype f32 = Dtype::kF32;
    const ModelValue ones = node("Expand", {number(1, f32), constant(Ints(sizes))}, f32);
    seen = node("Trilu", {ones}, f32, AttrWriter().integer("upper", 0));
    seen = cast(seen, Dtype::kBool);
  } else {
    Bytes table;
    for (int64_t i = 0; i < queries; i++)
      for (int64_t j = 0; j < keys; j++) table.push_back(j <= i);
    seen = initializer(Dtype::kBool, Ints(sizes), table.data(), table.size());
  }
  return node("Where", {seen, scores, number(-kInf, scores.dtype)}, scores.dtype);
}

bool OnnxExporter::emit_attention() {
  if (!is("native_attention")) return false;
  if (real("dropout_p") != 0) refuse("dropout: export the model in eval mode");
  const IrValue& q = value("query");
  const IrValue& k = value("key");
  const Dtype d = q.dtype;
  const int64_t shared = q.sizes[1] / max<int64_t>(1, k.sizes[1]);  // queries of a key's head
  const auto all_heads = [&](const char* name) {
    if (shared == 1) return tensor(name);
    const Shape& s = value(name).sizes;
    const int64_t one[] = {s[0], s[1], 1, s[2], s[3]};
    const int64_t each[] = {s[0], s[1], shared, s[2], s[3]};
    const int64_t together[] = {s[0], s[1] * shared, s[2], s[3]};
    return reshape(expanded(reshape(tensor(name), Ints(one)), Ints(each)), Ints(together));
  };
  const int64_t order[] = {0, 1, 3, 2};
  const ModelValue keys =
      node("Transpose", {all_heads("key")}, d, AttrWriter().ints("perm", Ints(order)));
  ModelValue scores = node("MatMul", {tensor("query"), keys}, d);
  scores = node("Mul", {scores, number(real("scale"), d)}, d);
  if (has("mask")) {
    ModelValue mask = tensor("mask");
    if (mask.dtype == Dtype::kBool) mask = node("Where", {mask, number(0, d), number(-kInf, d)}, d);
    scores = node("Add", {scores, cast(mask, d)}, d);
  }
  if (integer("causal")) scores = without_later_keys(scores, q.sizes[2], k.sizes[2]);
  ModelValue weights = along(-1, "Softmax", {scores}, d);
  if (has("mask")) {  // rows that see nothing have weights of 0, not nan
    const ModelValue hidden = node("Equal", {scores, number(-kInf, d)}, Dtype::kBool);
    weights = node("Where", {hidden, number(0, d), weights}, d);
  }
  give(node("MatMul", {weights, all_heads("value")}, d));
  return true;
}

}  // namespace TT_NS
