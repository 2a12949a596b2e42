// Writes convolutions, pooling and resizing of images.
#include "graph/c/exporter.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kMaxResized = 1 << 24;  // floats number the elements of a row

}  // namespace

int64_t add_strides(int64_t* out, const IrValue& v) {
  const bool flat = v.ndim() == 3;
  int64_t n = 0;
  for (int64_t i = 0; i < v.ndim(); i++) {
    if (flat && i == 2) out[n++] = 0;
    out[n++] = v.strides[i];
  }
  return n;
}

// Adds the last two arguments of the functions of convolutions: sizes, then strides, paddings and
// dilations.
void CExporter::add_conv_sizes(Text& call, bool transposed) {
  const IrValue& x = value(tensor("input"));
  const IrValue& w = value(tensor("weight"));
  const IrValue& y = value(node().outs[0]);
  const int64_t given = x.ndim() - 2;
  const int64_t groups = integer("groups");
  const int64_t spatial = max(given, int64_t(2));
  const int64_t missing = spatial - given;
  const int64_t in = transposed ? w.sizes[0] / groups : w.sizes[1];
  const int64_t out = transposed ? w.sizes[1] : w.sizes[0] / groups;
  SmallVec<int64_t, 13> sizes{x.sizes[0], groups, in, out};
  SmallVec<int64_t, 9> how;
  for (const IrValue* v : {&x, &w, &y})
    for (int64_t d = 0; d < spatial; d++)
      sizes.push_back(d < missing ? 1 : v->sizes[2 + d - missing]);
  for (const char* name : {"stride", "padding", "dilation"}) {
    const int64_t absent = strcmp(name, "padding") ? 1 : 0;
    for (int64_t d = 0; d < spatial; d++)
      how.push_back(d < missing ? absent : item(name, d - missing, absent));
  }
  add_list(call, sizes);
  call.add(", ");
  add_list(call, how);
}

void CExporter::emit_conv() {
  const bool transposed = integer("transposed");
  const IrValue& x = value(tensor("input"));
  const int64_t spatial = x.ndim() - 2;
  if (spatial < 1 || spatial > 3) refuse("other than one to three spatial dims");
  const char* plane = transposed ? "transposed_conv2d" : "conv2d";
  const char* volume = transposed ? "transposed_conv3d" : "conv3d";
  const char* function = spatial == 3 ? volume : plane;
  use(function);
  int64_t xs[5], ys[5];
  const int64_t n = add_strides(xs, x);
  add_strides(ys, value(node().outs[0]));
  Text call;
  call.add("  ").add(function).add("(");
  add_address(call, tensor("input"));
  call.add(", ");
  add_list(call, {xs, n});
  call.add(", ");
  add_address(call, tensor("weight"), true);
  call.add(", ");
  add_address(call, tensor("bias"), true);
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ");
  add_list(call, {ys, n});
  call.add(", ");
  add_conv_sizes(call, transposed);
  call.add(");\n");
  body_.add(call.span());
}

// Begins a call of a pooling function: up to its operands and their sizes.
void CExporter::begin_pool(const char* function) {
  use(function);
  const IrValue& x = value(tensor("self"));
  const IrValue& y = value(node().outs[0]);
  const int64_t n = x.ndim();
  if (n != 3 && n != 4) refuse("an input that is not 3-d or 4-d");
  int64_t xs[4] = {};  // an image without a batch is a batch of one
  int64_t ys[4] = {};
  for (int64_t d = 0; d < n; d++) xs[4 - n + d] = x.strides[d];
  for (int64_t d = 0; d < n; d++) ys[4 - n + d] = y.strides[d];
  const int64_t images = n == 4 ? x.sizes[0] : 1;
  const int64_t sizes[] = {images,         x.sizes[n - 3], x.sizes[n - 2],
                           x.sizes[n - 1], y.sizes[n - 2], y.sizes[n - 1]};
  body_.add("  ").add(function).add("(");
  add_address(body_, tensor("self"));
  body_.add(", ");
  add_list(body_, {xs, 4});
  body_.add(", ");
  add_address(body_, node().outs[0]);
  body_.add(", ");
  add_list(body_, {ys, 4});
  body_.add(", ");
  add_list(body_, {sizes, 6});
}

// Adds the positions of maxima, the second result.
void CExporter::add_places() {
  const int32_t v = node().outs[1];
  const int64_t n = value(v).ndim();
  int64_t strides[4] = {};
  for (int64_t d = 0; d < n; d++) strides[4 - n + d] = value(v).strides[d];
  body_.add(", ");
  add_address(body_, v, false, Dtype::kI64);
  body_.add(", ");
  add_list(body_, {strides, 4});
}
bool CExporter::has_places() const { return node().outs.size() > 1 && node().outs[1] >= 0; }

void CExporter::emit_pool(bool largest) {
  const char* maxima = has_places() ? "max_pool2d_with_indices" : "max_pool2d";
  const char* function = largest ? maxima : "avg_pool2d";
  int64_t how[8];
  for (int64_t i = 0; i < 2; i++) {
    how[i] = item("kernel_size", i, 1);
    how[2 + i] = item("stride", i, how[i]);
    how[4 + i] = item("padding", i, 0);
    how[6 + i] = largest ? item("dilation", i, 1) : 1;
  }
  begin_pool(function);
  if (has_places()) add_places();
  body_.add(", ");
  add_list(body_, {how, 8});
  if (!largest) {
    body_.add(", ").add(integer("count_include_pad")).add(", ");
    body_.add(has_arg("divisor_override") ? integer("divisor_override") : 0);
  }
  body_.add(");\n");
}

void CExporter::emit_adaptive_pool(bool largest) {
  if (largest && !has_places()) refuse("has no positions");
  begin_pool(largest ? "adaptive_max_pool2d" : "adaptive_avg_pool2d");
  if (largest) add_places();
  body_.add(");\n");
}

// ---- windows as columns ----

// The elements of each window as a column, or their sums: the loops are those of a batch, channels,
// rows and columns of a window, rows and columns of windows.
void CExporter::emit_columns(bool sums) {
  const int32_t out = node().outs[0];
  const IrValue& image = value(sums ? out : tensor("self"));
  const IrValue& columns = value(sums ? tensor("self") : out);
  const int64_t n = image.ndim();
  int64_t kernel[2], dilation[2], padding[2], stride[2], size[2], count[2];
  for (int64_t d = 0; d < 2; d++) {
    kernel[d] = item("kernel_size", d, 1);
    dilation[d] = item("dilation", d, 1);
    padding[d] = item("padding", d, 0);
    stride[d] = item("stride", d, 1);
    size[d] = image.sizes[n - 2 + d];
    count[d] = (size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
  const int64_t sizes[] = {
      n == 4 ? image.sizes[0] : 1, image.sizes[n - 3], kernel[0], kernel[1], count[0], count[1]};
  if (sums) emit_fill(Scalar(0));
  open_loops(sizes);
  for (int64_t d = 0; d < 2; d++) {
    body_.add("const long s").add(d).add(" = i").add(4 + d).add(" * ").add(stride[d]).add(" + i");
    body_.add(2 + d).add(" * ").add(dilation[d]).add(" - ").add(padding[d]).add(";\n    ");
  }
  Text inside, pixel, element;
  inside.add("s0 >= 0 && s0 < ").add(size[0]).add(" && s1 >= 0 && s1 < ").add(size[1]);
  add_pointer(pixel, sums ? out : tensor("self"));
  pixel.add("[i0 * ").add(n == 4 ? image.strides[0] : 0).add(" + i1 * ").add(image.strides[n - 3]);
  pixel.add(" + s0 * ").add(image.strides[n - 2]).add(" + s1 * ").add(image.strides[n - 1]);
  pixel.add("]");
  const int64_t last = columns.ndim() - 1;
  add_pointer(element, sums ? tensor("self") : out);
  element.add("[i0 * ").add(n == 4 ? columns.strides[0] : 0).add(" + ((i1 * ").add(kernel[0]);
  element.add(" + i2) * ").add(kernel[1]).add(" + i3) * ").add(columns.strides[last - 1]);
  element.add(" + (i4 * ").add(count[1]).add(" + i5) * ").add(columns.strides[last]).add("]");
  if (sums) {
    body_.add("if (").add(inside.span()).add(")\n      ");
    store_by(pixel, image.dtype, element, '+');
  } else {
    Text source("(");
    source.add(inside.span()).add(" ? ").add(pixel.span()).add(" : 0)");
    store_by(element, columns.dtype, source, '=');
  }
  close_loops(6);
}

// ---- resizing ----

void CExporter::emit_grid() {
  const IrValue& x = value(tensor("self"));
  const IrValue& grid = value(tensor("grid"));
  for (const int64_t order : arg("order").ints)
    if (order) refuse("a derivative");
  use("grid_take");
  const int64_t dims = x.ndim() - 2;
  const int64_t points = x.sizes[0] ? grid.numel() / dims / x.sizes[0] : 0;
  const int64_t sizes[] = {x.sizes[0],
                           x.sizes[1],
                           dims == 3 ? x.sizes[2] : 1,
                           x.sizes[x.ndim() - 2],
                           x.sizes[x.ndim() - 1],
                           points};
  Text call;
  call.add("  grid_take(");
  add_address(call, tensor("self"), true);
  call.add(", ");
  add_address(call, tensor("grid"), true);
  call.add(", ");
  add_result(call, node().outs[0]);
  call.add(", ");
  add_list(call, sizes);
  for (const int64_t how : {dims, integer("mode"), integer("padding"), integer("align")})
    call.add(", ").add(how);
  end_call(call);
}

static int64_t taps_of(const ResizeAxis& a) { return is_nearest(a.mode) ? 1 : resize_taps(a); }

// Returns dimension d of the image that the node resizes.
ResizeAxis CExporter::axis(int d) const {
  const int64_t in = value(tensor("self")).sizes[2 + d];
  const int64_t out = value(node().outs[0]).sizes[2 + d];
  const bool align = integer("align") != 0;
  const bool single = is_nearest(integer("mode"));
  const double scale = resize_scale(in, out, number(d ? "scale_w" : "scale_h"), align, single);
  return merged_axis(integer("mode"), align, in, out, scale);
}

// Declares an array of the windows of dimension d.
void CExporter::add_windows(int d, const char* name) {
  const ResizeAxis a = axis(d);
  if (a.in > kMaxResized || a.out > kMaxResized) refuse("an image of this size");
  const int64_t taps = taps_of(a);
  body_.add("  static const float ").add(name).add("[] = {\n");
  for (int64_t o = 0; o < a.out; o++) {
    if (is_nearest(a.mode)) {
      body_.add("    ").add(int64_t(nearest_element<float>(a, o))).add(", 1, 1.0f,\n");
      continue;
    }
    const ResizeWindow w = resize_window(a, o);
    const double total = resize_total(a, w);
    body_.add("    ").add(w.first).add(", ").add(w.count);
    for (int64_t k = 0; k < taps; k++) {
      body_.add(", ");
      add_float(body_, k < w.count ? resize_weight(a, w, k) / total : 0);
    }
    body_.add(",\n");
  }
  body_.add("  };\n");
}

void CExporter::emit_resize() {
  if (value(tensor("self")).dtype != Dtype::kF32) refuse("is exported for float32");
  body_.add("  {\n");
  add_windows(0, "rows");
  add_windows(1, "columns");
  begin_pool("resize");
  body_.add(", rows, columns, ");
  const int64_t taps[] = {taps_of(axis(0)), taps_of(axis(1))};
  add_list(body_, {taps, 2});
  body_.add(");\n  }\n");
}

}  // namespace TT_NS
