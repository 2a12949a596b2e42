// The class that writes a graph as an ONNX model: exporter.cpp has its frame, export_*.cpp the
// operators.
#pragma once

#include "core/shape.h"
#include "graph/onnx/export.h"
#include "graph/onnx/proto.h"
#include "graph/resize.h"

#include <initializer_list>

namespace TT_NS {

// Attributes of a node (AttributeProto).
class AttrWriter {
 public:
  AttrWriter& integer(const char* name, int64_t v) {
    Proto a;
    a.text(1, name);
    a.integer(3, v);
    a.integer(20, 2);
    all_.message(5, a);
    return *this;
  }
  AttrWriter& real(const char* name, double v) {
    Proto a;
    a.text(1, name);
    a.real(2, float(v));
    a.integer(20, 1);
    all_.message(5, a);
    return *this;
  }
  AttrWriter& text(const char* name, const char* v) {
    Proto a;
    a.text(1, name);
    a.text(4, v);
    a.integer(20, 3);
    all_.message(5, a);
    return *this;
  }
  AttrWriter& texts(const char* name, Span<const char* const> v) {
    Proto a;
    a.text(1, name);
    for (const char* s : v) a.text(9, s);
    a.integer(20, 8);
    all_.message(5, a);
    return *this;
  }
  AttrWriter& ints(const char* name, Ints v) {
    Proto a;
    a.text(1, name);
    for (const int64_t i : v) a.integer(8, i);
    a.integer(20, 7);
    all_.message(5, a);
    return *this;
  }
  const Proto& all() const { return all_; }

 private:
  Proto all_;
};

// A tensor of the model: its number, and its dtype there.
struct ModelValue {
  int32_t id = -1;  // -1: absent
  Dtype dtype = Dtype::kNone;
};

// What an export has written besides names: lists of sizes and positions, which may grow with
// dynamic dimensions, and everything else, which must not.
struct ExportTrace {
  struct Item {
    Shape list;
    uint64_t rest = 0;
  };
  SmallVec<Item, 16> items;
};

using OnnxPositions = SmallVec<int64_t, 16>;
inline constexpr int64_t kMaxIndexTable = 1 << 22;  // positions that are written as a table

class OnnxExporter {
 public:
  // growth: of `graphs`; NULL: sizes are those of the first.
  OnnxExporter(Span<const Graph* const> graphs, const Growth* growth, Span<const char* const> dims)
      : g_(*graphs[0]), graphs_(graphs), growth_(growth), dim_names_(dims) {}
  void write(Bytes& out);
  // What write() would write.
  ExportTrace trace;

  // ---- nodes of the model ----
  // The tensors that a node reads: a list in braces, or an array.
  struct Inputs : Span<const ModelValue> {
    Inputs(std::initializer_list<ModelValue> list) : Span(list.begin(), int64_t(list.size())) {}
    Inputs(Span<const ModelValue> list) : Span(list) {}
  };
  ModelValue node(const char* type, Inputs in, Dtype dtype, const AttrWriter& attrs);
  ModelValue node(const char* type, Inputs in, Dtype dtype);
  // A node with the attribute axis.
  ModelValue along(int64_t axis, const char* type, Inputs in, Dtype dtype);
  void node_to(const char* type, Inputs in, Span<const ModelValue> outs, const AttrWriter& attrs);
  ModelValue cast(ModelValue x, Dtype to);
  ModelValue number(double v, Dtype dtype);
  ModelValue scalar(const Scalar& v, Dtype dtype);
  ModelValue number_of(const char* name, Dtype dtype);  // an argument
  ModelValue constant(Ints v, int64_t ndim = 1);
  ModelValue reshape(ModelValue x, Ints sizes) {
    return node("Reshape", {x, constant(sizes)}, x.dtype, AttrWriter().integer("allowzero", 1));
  }
  [[noreturn]] void refuse(const char* why) const;

  // ---- arguments ----
  const IrNode& at() const { return g_.nodes[at_]; }
  const char* op() const { return at().op->name(); }
  bool is(const char* name) const { return strcmp(op(), name) == 0; }
  const IrArg* find_arg(const char* name) const;
  const IrArg& arg(const char* name) const;
  bool has(const char* name) const { return find_arg(name) && arg(name).kind != Value::kNone; }
  double real(const char* name) const;
  int64_t integer(const char* name) const { return int64_t(real(name)); }
  const IrValue& value(const char* name) const { return g_.values[arg(name).values[0]]; }
  const IrValue& out_value(int64_t i = 0) const { return g_.values[at().outs[i]]; }
  ModelValue tensor(const char* name) {
    return has(name) ? of_value(arg(name).values[0]) : ModelValue();
  }
  // The result of this node is x, perhaps of another dtype.
  void give(ModelValue x, int64_t i = 0);

 private:
  // An operator, and the function that writes its nodes.
  struct Emitter {
    const char* op;
    void (OnnxExporter::*emit)();
  };
  // Writes the nodes of this operator, if the table has it.
  bool emit_by(Span<const Emitter> table);
  ModelValue new_tensor() { return {n_tensors_++, Dtype::kNone}; }
  void add_name(Text& out, ModelValue t) const;
  ModelValue initializer(Dtype dtype, Ints sizes, const void* data, int64_t bytes);
  ModelValue of_value(int32_t v);
  ModelValue of_constant(const IrValue& v);
  ModelValue after_writes(const IrValue& v);
  OnnxPositions positions(const IrValue& from, const IrValue& to) const;
  ModelValue initializer_of(const OnnxPositions& list, Ints sizes);
  ModelValue derived(ModelValue base, const IrValue& from, const IrValue& to);
  bool is_last(const IrValue& from, const IrValue& to, int64_t d) const;
  ModelValue as_view(ModelValue base, const IrValue& from, const IrValue& to, bool keeps_order);
  bool emit_views();
  void emit_node();
  bool emit_elementwise();
  bool emit_direct();
  bool emit_product();
  bool emit_conv();
  bool is_used(int32_t v) const;
  void check_places_unused() const;
  ModelValue max_pooled(ModelValue x, const AttrWriter& a);
  void emit_window_means();
  void emit_windows(bool max);
  void emit_adaptive_windows(bool max);
  bool emit_pool();
  ModelValue resize_weights(int d);
  void emit_nearest();
  bool emit_resize();
  bool emit_rows();
  void emit_class_loss();
  void emit_softmax();
  void emit_layer_norm();
  void emit_rms_norm();
  void emit_group_norm();
  void emit_batch_norm();
  ModelValue normalized_images();
  void emit_cumsum();
  ModelValue without_later_keys(ModelValue scores, int64_t queries, int64_t keys);
  bool emit_attention();
  // What the linear layer before a recurrent one multiplies, its gates in ONNX's order.
  struct RecurrentInput {
    ModelValue x, w, bias;
  };
  RecurrentInput recurrent_input(Ints order);
  // Both biases as one tensor; zeros in place of one that is absent, absent if both are.
  ModelValue recurrent_bias(ModelValue b_ih, ModelValue b_hh, Dtype d, int64_t width);
  bool emit_recurrent();
  ModelValue by_gates(int32_t v, Ints order);
  ModelValue last_rows_only(ModelValue rows, int64_t total, bool reverse);
  bool reads_only(int32_t v, int64_t begin, int64_t end) const;
  int32_t gates_of(int32_t v) const;
  void find_gates();
  void emit_position();
  const char* reduction() const;
  bool emit_reduce();
  void emit_filled();
  bool emit_arrange();
  bool emit_generated();
  void emit_row_distances();
  void emit_cat();
  void emit_embedding();
  void emit_index_select();
  void emit_gather();
  void emit_triangle();
  void emit_flip();
  Shape pads() const;
  void emit_pad();
  void emit_border();
  void emit_topk();
  int64_t dim_of(const char* self) const;
  ModelValue transposed(ModelValue x, const Shape& order);
  ModelValue expanded(ModelValue x, Ints sizes);
  struct Places;
  Places places() const;
  ModelValue coordinates(const Places& p);
  bool emit_indexing();
  void emit_extreme();
  void emit_roll();
  void emit_index();
  ModelValue with_view(ModelValue base, ModelValue src, const IrValue& view, Ints sizes,
                       const char* reduction);
  void emit_diagonal();
  void emit_view_put();
  void emit_fold();
  void emit_scatter_reduce();
  void emit_index_put();
  void emit_index_rows();
  void emit_scatter();
  void emit_bags();
  void emit_one_hot();
  void emit_grid();
  // The windows of an image with its border.
  struct Windows {
    int64_t size[2], kernel[2], step[2], dilation[2], pad[2], count[2];
    OnnxPositions table() const;  // of the elements: kernel positions, then windows
  };
  Windows windows(int64_t height, int64_t width) const;
  void emit_windows();
  bool emit_copy();
  // of export_order.cpp, and what others use of it
  ModelValue sliced(ModelValue x, int64_t dim, int64_t begin, int64_t end);
  ModelValue reduced(const char* type, ModelValue x, int64_t dim, bool keeps);
  ModelValue compared(const char* type, ModelValue a, ModelValue b);
  ModelValue nans_of(ModelValue x);
  ModelValue counted(int64_t n, int64_t dim, int64_t ndim);
  int64_t fixed_size(const char* name, int64_t dim) const;
  template <class F> ModelValue running(ModelValue x, int64_t dim, int64_t n, const F& combine);
  struct Ranked {
    ModelValue values, places;
  };
  Ranked ranked(ModelValue x, int64_t dim, int64_t n, ModelValue ranks);
  void emit_cumprod();
  void emit_logcumsumexp();
  void emit_running_extreme();
  void emit_rank();
  void emit_select_ranks();
  void emit_searchsorted();
  void emit_isin();
  void emit_mode();
  bool emit_order();
  // of export_integers.cpp
  void emit_shift();
  ModelValue quantization(const char* name);
  void emit_quantize();
  void emit_dequantize();
  void emit_fake_quantize();
  bool emit_integers();
  void value_info(Proto& to, int field, const char* prefix, int64_t i,
                  const SmallVec<int32_t, 4> Graph::*ends);
  void note(Ints list, uint64_t rest);
  ModelValue grown(Ints list);
  ModelValue sizes_node(const char* type, Inputs in);
  ModelValue range(ModelValue n);
  ModelValue plain(Ints v, int64_t ndim);
  void add_node(const char* type, Inputs in, Span<const ModelValue> outs, const AttrWriter& attrs);
  void find_dynamic_sizes();
  void follow_others();
  void identity(const char* from, const char* to);
  void add_inputs(Proto& graph);
  void add_outputs(Proto& graph);

  const Graph& g_;
  const Span<const Graph* const> graphs_;
  const Growth* const growth_;
  const Span<const char* const> dim_names_;
  bool is_trace_ = false;                   // only the trace is wanted
  bool traced_ = false;                     // the others' traces are known
  ExportTrace wanted_[Growth::kMaxTerms];   // of each graph but the first
  ModelValue products_[Growth::kMaxTerms];  // of sizes, as in Growth::Terms: vectors of one element
  bool in_constant_ = false;
  int32_t at_ = 0;
  int32_t n_tensors_ = 0;
  SmallVec<ModelValue, 16> of_;  // of each value
  SmallVec<bool, 16> skip_;      // nodes that the recurrent layers which read them include
  Proto nodes_, initializers_;
};

// Calls f(byte offset) for each element, in order.
template <class F> void each_element(const IrValue& v, F f) {
  const int64_t n = v.numel();
  const int64_t ndim = v.ndim();
  Shape index;
  index.resize(ndim);
  for (int64_t k = 0; k < n; k++) {
    int64_t at = v.offset;
    for (int64_t d = 0; d < ndim; d++) at += index[d] * v.strides[d] * item_size(v.dtype);
    f(at);
    for (int64_t d = ndim - 1; d >= 0 && ++index[d] == v.sizes[d]; d--) index[d] = 0;
  }
}

}  // namespace TT_NS
