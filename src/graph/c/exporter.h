// The class that writes a graph as C99: exporter.cpp has its frame, emit_*.cpp the operators.
#pragma once

#include "core/shape.h"
#include "graph/c/export.h"
#include "plan/resize_build.h"

namespace TT_NS {

// A storage: the place in the arena, while it is in use, of one that nodes make.
struct StoragePlace {
  int64_t offset = -1;
  int64_t bytes = 0;
  int32_t first = -1;  // node that uses it
  int32_t last = -1;
  bool is_named = false;  // in the source: of other constants only the geometry is used
};

// Returns the type of elements in C; NULL: no exported function takes the dtype.
const char* c_type(Dtype d);
// Returns the dtype's name in those of functions.
const char* name_in_functions(Dtype d);
bool is_contiguous(const IrValue& v);
// Returns the product of all sizes but the last one.
int64_t rows_of(const IrValue& v);
// Writes the strides of n, c, h and w to out and returns their number; an image of one spatial
// dimension has an h of 1 and a stride of 0, of three a d before h.
int64_t add_strides(int64_t* out, const IrValue& v);

class CExporter {
 public:
  CExporter(const Graph& g, const char* name, bool blob) : g_(g), name_(name), blob_(blob) {}
  void write(CFiles& files);

 private:
  const IrValue& value(int32_t v) const { return g_.values[v]; }
  const IrNode& node() const { return g_.nodes[at_]; }
  const char* op() const { return node().op->name(); }
  bool is(const char* name) const { return strcmp(op(), name) == 0; }
  const IrArg& arg(const char* name) const;
  int32_t tensor(const char* name) const;  // its value, -1 if it is absent
  bool node_has(const char* name) const;   // whether the operator has such an argument
  bool has_arg(const char* name) const;    // and whether the call gives it
  double number(const char* name) const;
  int64_t integer(const char* name) const;
  // Item i of a list with one item per spatial dim, or one for all; `missing` if it is empty.
  int64_t item(const char* name, int64_t i, int64_t missing) const;
  int64_t dim_of(const char* name) const;  // the argument dim, a dimension of tensor `name`

  void check();
  // Finds from which node to which each storage is in use, and the outputs that are computed in
  // place.
  void find_lives();
  void place_constants();
  void place_made();
  int64_t node_scratch(int64_t bytes);
  struct Emitter {
    const char* op;
    void (*emit)(CExporter& e);
  };
  const Emitter* find_emitter() const;  // emitters.cpp; NULL: there is none
  void emit_node();
  bool emit_elementwise();
  const char* text_of(const struct CExpression& e) const;
  bool clamps_by_nan(const CExpression& e) const;
  void declare_element(const char* name, int32_t v, const char* type, int64_t n_loops);
  void declare_number(const ArgInfo& info, const IrArg& a, bool as_real, const char* whole_type);
  bool is_number(const IrValue& x) const;
  bool has_float64() const;
  bool serves_float64() const;
  bool has_real_result() const;
  const char* real_type() const;
  void emit_copy(int32_t from, int32_t to, Ints sizes, int64_t from_offset, int64_t to_offset,
                 Ints to_strides);
  void emit_copy(int32_t from, int32_t to);
  void emit_pad();
  int64_t pad_before(int64_t dim) const;
  void emit_border();
  void add_border_source(int64_t d);
  void add_circular_source(int64_t d);
  SmallVec<bool, 8> folded_dims(const IrValue& x) const;
  int64_t open_dims(const IrValue& x, Span<const bool> folded, bool which);
  void add_fold_result(Text& out, const IrValue& x, Span<const bool> folded, bool is_running);
  void emit_fold(const char* name, bool is_running = false);
  // Elements of a tensor, `step` apart, from the address `first` on.
  struct Row {
    Text first;
    int64_t step = 0;
  };
  Row row_of(int32_t v, const IrValue& x, int64_t dim);
  Row whole_row(int32_t v);
  int64_t open_rows(const IrValue& x, int64_t dim);
  void declare_row(const char* name, const Row& row, Dtype dtype);
  void emit_position(const char* beats, bool is_running = false);
  int64_t begin_order(int64_t dim, bool whole, int64_t m, bool descending);
  void store_ordered(const char* at, int64_t dim, bool only_positions);
  void emit_sort(bool only_positions);
  void emit_kth();
  void emit_mode();
  void emit_median(bool skips_nan);
  void emit_select_ranks();
  void emit_searchsorted();
  void emit_isin();
  // Which dims of a tensor `indices` has positions for.
  struct Places {
    Shape rest;         // the others
    int64_t n = 0;      // how many
    int64_t ndim = 0;   // of the positions together
    int64_t begin = 0;  // where these dims are in self[indices]
    bool adjacent = true;
  };
  Places places_of(const IrValue& self);
  void declare_place(const IrValue& self, int64_t dim, int32_t index, int64_t n_loops);
  void declare_places(const IrValue& self, const Places& p);
  void add_place(Text& out, int32_t v);
  void add_along(Text& out, int32_t index, bool by_rows, int64_t dim, int64_t n_loops);
  void store_by(const Text& place, Dtype dtype, const Text& source, char by);
  void begin_changes();
  void emit_index();
  bool emit_masked_put();
  void emit_index_put();
  void add_scattered(Text& out, const IrValue& y, int64_t n);
  void emit_scatter(char by);
  void emit_one_hot();
  void emit_move();
  void emit_turn();
  void emit_part();
  bool emit_table();
  void emit_fill(const Scalar& v);
  void emit_linear();
  void emit_matmul();
  void emit_conv();
  void add_conv_sizes(Text& call, bool transposed);
  void emit_recurrent();
  void add_state(Text& call, int32_t from);
  void emit_quantize(bool back);
  void emit_fake_quantize();
  void add_grid(const char* scale, const char* zero, int64_t axis, bool inverse);
  void emit_quantized_linear();
  void emit_quantized_conv();
  void emit_int_mm();
  void begin_blocks_call(Text& call, const char* plain, const char* by_number);
  void end_blocks_call(Text& call);
  void emit_quantize_blocks();
  void emit_dequantize_blocks();
  void emit_blockwise_linear();
  void add_per_item(Text& call, const char* name, Dtype dtype);
  void begin_pool(const char* function);
  void emit_pool(bool max);
  void emit_adaptive_pool(bool largest);
  ResizeAxis axis(int d) const;
  void emit_resize();
  void emit_columns(bool sums);
  void emit_grid();
  void add_windows(int d, const char* name);
  void add_places();
  bool has_places() const;
  void emit_softmax(const char* function);
  void emit_layer_norm();
  void emit_row_distances();
  void emit_rms_norm();
  void emit_group_norm();
  void add_groups(int64_t images, int64_t groups, int64_t n);
  void emit_batch_norm();
  void emit_attention();
  void emit_cat();
  void emit_rows(const char* table, const char* indices);
  void emit_bags();
  void emit_gather(int64_t dim, const char* indices, bool by_rows = false);
  bool emit_division();
  bool emit_shift();
  bool only_views() const;

  // Adds an argument of a call: the address of a value, NULL if it is absent.
  void add_address(Text& out, int32_t v, bool contiguous = false, Dtype dtype = Dtype::kF32);
  void add_dense_copy(Text& out, int32_t v, Dtype dtype);
  void add_dense_index(Text& out, const IrValue& v, int64_t n_loops);
  void add_result(Text& out, int32_t v);
  void end_call(const Text& call);
  void add_pointer(Text& out, int32_t v, int64_t more_offset = 0);
  void add_at(Text& out, int32_t v, int64_t n_loops);
  void add_list(Text& out, Span<const int64_t> list);
  void add_float(Text& out, double v, Dtype dtype = Dtype::kF32);
  void add_whole(Text& out, int64_t v);
  void add_real(Text& out, const IrArg& a, Dtype dtype = Dtype::kF32);
  void add_element(Text& out, Dtype dtype, const char* data);
  void add_constant(Text& out, int32_t storage);
  void add_constants(CFiles& files);
  void add_shapes(Text& out, const char* name, Span<const int32_t> values);
  void copy_outputs();
  void write_header(Text& header);
  void write_source(CFiles& files);
  void add_parameters(Text& out, bool types, bool some);
  void add_signature(Text& out, bool arena);
  void use(const char* name, Dtype dtype = Dtype::kNone);
  void begin_bytes_call(Text& call, const char* name, Dtype dtype);
  void add_templates(Text& out);
  void open_loop(int64_t i, int64_t n);
  void open_loops(Ints sizes);
  void close_loops(int64_t n);
  void add_index(Text& out, Ints sizes, Ints strides, int64_t n_loops);
  [[noreturn]] void refuse(const char* why);

  const Graph& g_;
  const char* name_;
  const bool blob_;
  int64_t blob_bytes_ = 0;
  int32_t at_ = 0;
  SmallVec<StoragePlace, 8> places_;
  SmallVec<int32_t, 8> out_of_;    // storage -> the output that is computed in place, or -1
  SmallVec<int32_t, 8> input_of_;  // storage -> the input that it is, or -1
  SmallVec<uint32_t, 16> used_;    // of each template the dtypes, as bits
  int64_t arena_ = 0;
  int64_t scratch_ = 0;
  int64_t max_scratch_ = 0;
  struct Result {
    int32_t value;
    int64_t offset;  // in scratch memory
  };
  SmallVec<Result, 4> results_;  // of the call that is written, which have gaps
  Text body_;
};

}  // namespace TT_NS
