// Writes softmax, normalizations, attention, concatenation, embeddings and recurrent layers.
#include "graph/c/exporter.h"
#include "plan/recurrent_plan.h"

#include <string.h>

namespace TT_NS {

void CExporter::emit_softmax(const char* function) {
  use(function);
  const IrValue& x = value(tensor("self"));
  int64_t dim = integer("dim");
  if (dim < 0) dim += x.ndim();
  int64_t outer = 1;
  int64_t inner = 1;
  for (int64_t i = 0; i < dim; i++) outer *= x.sizes[i];
  for (int64_t i = dim + 1; i < x.ndim(); i++) inner *= x.sizes[i];
  Text call;
  call.add("  ").add(function).add("(");
  add_address(call, tensor("self"), true);
  call.add(", ");
  add_result(call, node().outs[0]);
  call.add(", ").add(outer).add(", ").add(x.ndim() ? x.sizes[dim] : 1).add(", ").add(inner);
  end_call(call);
}

void CExporter::emit_layer_norm() {
  use("layer_norm");
  const IrValue& x = value(tensor("input"));
  int64_t n = 1;
  for (const int64_t size : arg("normalized_shape").ints) n *= size;
  Text call;
  call.add("  layer_norm(");
  add_address(call, tensor("input"), true);
  call.add(", ");
  add_address(call, tensor("weight"), true);
  call.add(", ");
  add_address(call, tensor("bias"), true);
  for (int64_t i = 0; i < 3; i++) {
    call.add(", ");
    add_result(call, node().outs[i]);
  }
  call.add(", ").add(n ? x.numel() / n : 0).add(", ").add(n).add(", ");
  add_float(call, number("eps"));
  end_call(call);
}

void CExporter::emit_row_distances() {
  use("row_distances");
  const IrValue& x1 = value(tensor("x1"));
  const IrValue& x2 = value(tensor("x2"));
  if (x1.dtype != Dtype::kF32) refuse("is exported for float32");
  Text call;
  call.add("  row_distances(");
  for (const char* name : {"x1", "x2"}) {
    add_address(call, tensor(name), true);
    call.add(", ");
  }
  add_result(call, node().outs[0]);
  for (const int64_t n : {x1.sizes[0], x1.sizes[1], x2.sizes[1], x1.sizes[2]})
    call.add(", ").add(n);
  call.add(", ");
  add_float(call, number("p"));
  call.add(", ").add(integer("pairs"));
  end_call(call);
}

void CExporter::emit_rms_norm() {
  use("rms_norm");
  const IrValue& x = value(tensor("input"));
  int64_t n = 1;
  for (const int64_t size : arg("normalized_shape").ints) n *= size;
  Text call;
  call.add("  rms_norm(");
  for (const char* name : {"input", "weight"}) {
    add_address(call, tensor(name), true);
    call.add(", ");
  }
  for (int64_t i = 0; i < 2; i++) {
    add_result(call, node().outs[i]);
    call.add(", ");
  }
  call.add(n ? x.numel() / n : 0).add(", ").add(n).add(", ");
  add_float(call, number("eps"));
  end_call(call);
}

void CExporter::emit_group_norm() {
  const IrValue& x = value(tensor("input"));
  add_groups(x.sizes[0], integer("num_groups"), 3);
}

// Writes a call of group_norm that has `images` images and `groups` groups in each; the first n of
// its three results are stored.
void CExporter::add_groups(int64_t images, int64_t groups, int64_t n) {
  use("group_norm");
  const IrValue& x = value(tensor("input"));
  int64_t inner = 1;
  for (int64_t i = 2; i < x.ndim(); i++) inner *= x.sizes[i];
  Text call;
  call.add("  group_norm(");
  for (const char* name : {"input", "weight", "bias"}) {
    add_address(call, tensor(name), true);
    call.add(", ");
  }
  for (int64_t i = 0; i < 3; i++) {
    add_result(call, i < n ? node().outs[i] : -1);
    call.add(", ");
  }
  call.add(images).add(", ").add(groups).add(", ").add(x.sizes[1] / groups).add(", ");
  call.add(inner).add(", ");
  add_float(call, number("eps"));
  end_call(call);
}

void CExporter::emit_batch_norm() {
  const IrValue& image = value(tensor("input"));
  // instance_norm calls it so: each channel of one image is a group.
  if (!has_arg("running_mean") && image.sizes[0] == 1) return add_groups(1, image.sizes[1], 1);
  if (integer("training")) refuse("training: export the model in eval mode");
  use("batch_norm");
  const IrValue& x = value(tensor("input"));
  const IrValue& y = value(node().outs[0]);
  int64_t inner = 1;
  for (int64_t i = 2; i < x.ndim(); i++) inner *= x.sizes[i];
  const auto strides = [&](const IrValue& v, int64_t* out) {
    out[0] = v.strides[0];
    out[1] = v.strides[1];
    out[2] = v.ndim() > 2 ? v.strides[v.ndim() - 1] : 0;
    for (int64_t i = v.ndim() - 2; i >= 2; i--)
      if (v.strides[i] != v.strides[i + 1] * v.sizes[i + 1]) refuse("an input with gaps");
  };
  int64_t xs[3], ys[3];
  strides(x, xs);
  strides(y, ys);
  Text call;
  call.add("  batch_norm(");
  add_address(call, tensor("input"));
  call.add(", ");
  add_list(call, {xs, 3});
  for (const char* name : {"running_mean", "running_var", "weight", "bias"}) {
    call.add(", ");
    add_address(call, tensor(name), true);
  }
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ");
  add_list(call, {ys, 3});
  call.add(", ").add(x.sizes[0]).add(", ").add(x.sizes[1]).add(", ").add(inner).add(", ");
  add_float(call, number("eps"));
  call.add(");\n");
  body_.add(call.span());
}

// Writes a call for each head of each batch.
void CExporter::emit_attention() {
  if (number("dropout_p") != 0) refuse("dropout: export the model in eval mode");
  use("attention");
  const IrValue& q = value(tensor("query"));
  const IrValue& k = value(tensor("key"));
  const IrValue& y = value(node().outs[0]);
  const int64_t d = q.ndim() - 2;
  if (q.dtype != Dtype::kF32) refuse("is exported for float32");
  const int64_t scores = node_scratch(k.sizes[d] * 4);
  const int64_t shared = k.sizes[d - 1] ? q.sizes[d - 1] / k.sizes[d - 1] : 1;
  const auto matrix = [&](int32_t v, const char* between = ", ") {  // its address and its strides
    const IrValue& t = value(v);
    const bool has_fewer_heads = t.sizes[d - 1] != y.sizes[d - 1];
    add_pointer(body_, v);
    for (int64_t i = 0; i < d; i++) {
      if (t.sizes[i] == 1) continue;
      body_.add(" + i").add(i);
      if (i == d - 1 && has_fewer_heads) body_.add(" / ").add(shared);
      body_.add(" * ").add(t.strides[i]);
    }
    body_.add(between);
    const bool one_row = t.sizes[d] == 1;
    const int64_t strides[] = {one_row ? 0 : t.strides[d], t.strides[d + 1]};
    add_list(body_, strides);
    body_.add(", ");
  };
  open_loops(Ints{y.sizes.data(), d});
  body_.add("attention(");
  for (const char* name : {"query", "key", "value"}) matrix(tensor(name));
  const int32_t mask = tensor("mask");
  const bool keeps = mask >= 0 && value(mask).dtype == Dtype::kBool;
  if (mask >= 0 && !keeps && value(mask).dtype != Dtype::kF32) refuse("a mask of another dtype");
  if (mask < 0) {
    body_.add("NULL, NULL, NULL, ");
  } else {
    body_.add(keeps ? "NULL, " : "");
    matrix(mask, keeps ? ", " : ", NULL, ");
  }
  matrix(node().outs[0]);
  if (node().outs[1] >= 0) {
    const IrValue& lse = value(node().outs[1]);
    add_pointer(body_, node().outs[1]);
    body_.add(" + ");
    add_index(body_, Ints{lse.sizes.data(), d}, Ints{lse.strides.data(), d}, d);
  } else {
    body_.add("NULL");
  }
  body_.add(", (float *)(scratch + ").add(scores).add("), ");
  for (const int64_t n : {q.sizes[d], k.sizes[d], q.sizes[d + 1], y.sizes[d + 1]})
    body_.add(n).add(", ");
  body_.add(integer("causal")).add(", ");
  add_float(body_, number("scale"));
  body_.add(");\n");
  close_loops(d);
}

void CExporter::emit_cat() {
  const IrValue& y = value(node().outs[0]);
  int64_t dim = integer("dim");
  int64_t offset = 0;
  if (dim < 0) dim += y.ndim();
  for (const int32_t v : arg("tensors").values) {
    if (value(v).ndim() != y.ndim()) continue;  // an empty vector beside other shapes
    emit_copy(v, node().outs[0], value(v).sizes, 0, offset, y.strides);
    offset += value(v).sizes[dim] * y.strides[dim];
  }
}

// Writes the rows of a table that the indices name.
void CExporter::emit_rows(const char* table, const char* indices) {
  const IrValue& t = value(tensor(table));
  const IrValue& index = value(tensor(indices));
  const IrValue& y = value(node().outs[0]);
  if (!is_contiguous(y) || !is_contiguous(t)) refuse("a table or a result that is not contiguous");
  if (!is_contiguous(index)) refuse("indices that are not contiguous");
  const int64_t n = index.numel();
  const int64_t row = t.sizes[0] ? t.numel() / t.sizes[0] : 0;
  body_.add("  for (long i = 0; i < ").add(n).add("; i++) {\n    long row = (long)");
  add_pointer(body_, tensor(indices));
  body_.add("[i];\n    row = row < 0 ? 0 : row >= ").add(t.sizes[0]).add(" ? ");
  body_.add(t.sizes[0] - 1).add(" : row; /* an index out of range reads the nearest row */\n");
  body_.add("    for (long j = 0; j < ").add(row).add("; j++) ");
  add_pointer(body_, node().outs[0]);
  body_.add("[i * ").add(row).add(" + j] = ");
  add_pointer(body_, tensor(table));
  body_.add("[row * ").add(row).add(" + j];\n  }\n");
}

// Sums, means or maxima of rows of a table, in bags.
void CExporter::emit_bags() {
  const IrValue& table = value(tensor("weight"));
  const IrValue& index = value(tensor("indices"));
  if (!c_type(index.dtype)) refuse("indices of another dtype");
  use("bag_reduce", index.dtype);
  Text call;
  call.add("  bag_reduce_").add(name_in_functions(index.dtype)).add("(");
  add_address(call, tensor("weight"), true);
  call.add(", ");
  add_address(call, tensor("indices"), true, index.dtype);
  call.add(", ");
  add_address(call, tensor("starts"), true, Dtype::kI64);
  call.add(", ");
  add_address(call, tensor("per_sample_weights"), true);
  call.add(", ");
  add_result(call, node().outs[0]);
  for (const int64_t n : {table.sizes[0], table.sizes[1], index.numel(), integer("bags"),
                          integer("skipped"), integer("mode")})
    call.add(", ").add(n);
  end_call(call);
}

// ---- recurrent layers ----

// Adds a copy of a state, which the steps overwrite.
void CExporter::add_state(Text& call, int32_t from) {
  if (from < 0) call.add("NULL");
  else add_dense_copy(call, from, Dtype::kF32);
}

void CExporter::emit_recurrent() {
  const IrArg& batch = arg("batch_sizes");
  const IrValue& w = value(tensor("w_hh"));
  const int64_t mode = integer("mode");
  const int64_t gates = recurrent_gates(int32_t(mode));
  const int64_t hidden = w.sizes[0] / gates;
  if (places_[value(node().outs[2]).storage].first >= 0) refuse("is exported without gradients");
  use("recurrent");
  Text call;
  call.add("  recurrent(");
  add_address(call, tensor("gates"), true);
  for (const char* name : {"w_hh", "b_hh", "w_hr"}) {
    call.add(", ");
    add_address(call, tensor(name), true);
  }
  call.add(", ");
  add_state(call, tensor("h0"));
  call.add(", ");
  add_state(call, tensor("c0"));
  call.add(", ");
  add_address(call, node().outs[0]);
  call.add(", ");
  add_address(call, mode == kLstm ? node().outs[1] : -1);
  call.add(", (float *)(scratch + ").add(node_scratch((gates + 1) * hidden * 4)).add("), ");
  add_list(call, {batch.ints.data(), batch.ints.size()});
  call.add(", ").add(batch.ints.size()).add(", ").add(hidden).add(", ").add(w.sizes[1]);
  call.add(", ").add(mode).add(", ").add(integer("reverse")).add(");\n");
  body_.add(call.span());
}

}  // namespace TT_NS
