// The class that reads an ONNX model: importer.cpp has its frame, import_*.cpp the operators.
#pragma once

#include "base/name_map.h"
#include "core/shape.h"
#include "graph/onnx/import.h"
#include "graph/onnx/proto.h"

#include <string.h>

namespace TT_NS {

// Constants up to this size are computed at once, so that shapes may depend on them.
inline constexpr int64_t kSmallConstant = 1024;
inline constexpr int64_t kMaxMade = 1 << 20;  // elements of a constant that a node makes

// A vector of int64.
TensorRef integers(Ints list);
// Rounded numbers as integers of 8 or 16 bits.
TensorRef clamped_to(const Tensor& x, Dtype to);
// The dtype in which every sum of `terms` products of 8-bit numbers is exact.
Dtype exact_dtype(int64_t terms);

struct OnnxAttr {
  Name name = name_of("");
  float f = 0;
  int64_t i = 0;
  Span<const char> s, tensor, graph;
  SmallVec<float, 2> reals;
  SmallVec<int64_t, 4> ints;
  SmallVec<Name, 2> texts;
};

// A tensor of the model.
struct ModelTensor {
  Name name = name_of("");
  TensorRef t;
  bool known = false;  // depends on constants only
};

class OnnxImporter {
 public:
  OnnxImporter(Span<const char> bytes, int64_t dynamic, OnnxFiles* files)
      : bytes_(bytes), dynamic_(dynamic), files_(files) {}
  ~OnnxImporter();
  OnnxImporter(const OnnxImporter&) = delete;
  Ref<Graph> run();

 private:
  void read_graph(Span<const char> graph);
  void read_input(Span<const char> info, SmallVec<TensorRef, 4>& inputs);
  void read_node(Span<const char> node);
  void read_attr(Span<const char> bytes);
  void read_branch();
  void read_constants(Span<const char> graph);
  void call();
  void add(Name name, TensorRef t, bool known);
  const ModelTensor& item(Name name) const;

  // ---- the node at hand ----
  [[noreturn]] void refuse(const char* why) const;
  const OnnxAttr* attr(const char* name) const;
  int64_t integer(const char* name, int64_t missing) const;
  double real(const char* name, double missing) const;
  bool text_is(const char* name, const char* wanted, bool missing) const;
  bool has(int64_t i) const { return i >= 0 && i < inputs_.size() && inputs_[i].n > 0; }
  const Tensor& in(int64_t i) const;
  const Tensor* opt(int64_t i) const { return has(i) ? &in(i) : nullptr; }
  Shape numbers(int64_t i) const;                    // of a known input
  Shape numbers(int64_t i, const char* name) const;  // of an input, or of an attribute
  double number(int64_t i, double missing) const;
  int64_t whole_number(int64_t i, int64_t missing) const;
  int64_t dim(int64_t d, int64_t ndim) const;
  void give(TensorRef t, bool known = false);
  bool may_compute() const;

  // Reads nodes of one type, which have one result.
  using Node = const OnnxImporter;
  struct OneResult {
    const char* type;
    TensorRef (*read)(Node& node);
  };
  // Gives what the reader of the node's type makes; false if there is none.
  bool give_one(Span<const OneResult> readers, bool known = false);
  // Reads nodes of one type, which have any number of results.
  struct Reader {
    const char* type;
    void (*read)(OnnxImporter& node);
  };
  bool read_one(Span<const Reader> readers);

  // ---- operators by kinds: false if the node's type is of another kind ----
  bool elementwise();
  TensorRef power() const;
  TensorRef hard_sigmoid() const;
  TensorRef clip() const;
  TensorRef softmax() const;
  TensorRef softmax_from(const Tensor& x, int64_t d, int64_t opset, bool log) const;
  TensorRef swish() const;
  TensorRef mean_of_inputs() const;
  TensorRef rms_norm() const;
  TensorRef folded(TensorRef (*join)(const Tensor&, const Tensor&)) const;
  bool quantized();
  TensorRef along_axis(int64_t i) const;
  Dtype output_dtype(Dtype inferred) const;
  TensorRef quantize() const;
  TensorRef dequantize() const;
  // Floating numbers that are integers, and how they stand for others.
  struct ByRange {
    TensorRef numbers, scale, point;
  };
  ByRange quantized_by_range(const Tensor& x) const;
  void quantize_by_range();
  static TensorRef product_of_ranges(const ByRange& a, const Tensor& b, const Tensor& b_scale);
  TensorRef centred(int64_t i, int64_t zero, int64_t along, Dtype dtype) const;
  TensorRef per_position(const Tensor& t, int64_t ndim, int64_t along) const;
  TensorRef exact_convolution(int64_t w, int64_t x_zero, int64_t w_zero) const;
  TensorRef exact_matmul(int64_t b, int64_t a_zero, int64_t b_zero) const;
  TensorRef requantized(const Tensor& sums, int64_t along) const;
  TensorRef quantized_convolution() const;
  bool attention_layer();
  int64_t heads(const char* name, int64_t total) const;
  TensorRef by_heads(int64_t i, const char* name) const;
  TensorRef bias_of_keys(int64_t i, int64_t batch, int64_t keys) const;
  TensorRef behind_past(int64_t i, TensorRef now) const;
  TensorRef attend(const Tensor& q, const Tensor& k, const Tensor& v, TensorRef bias, bool causal,
                   int64_t past) const;
  void packed_attention(const Tensor& qkv, int64_t mask, int64_t past);
  void multi_head_attention();
  void group_query_attention();
  void attention();
  TensorRef rotated(const Tensor& x, const Tensor& cosine, const Tensor& sine, bool in_pairs) const;
  TensorRef rotary_embedding() const;
  void skip_results(int64_t n);
  TensorRef normalized(const Tensor& x, int64_t weight, int64_t bias, bool centred,
                       double eps) const;
  void skip_norm(bool centred);
  void embedding_norm();
  bool microsoft();
  TensorRef fused_matmul() const;
  TensorRef activated(TensorRef y) const;
  TensorRef fused_convolution() const;
  TensorRef biased_gelu(int64_t approximate) const;
  TensorRef unpacked_weight() const;
  TensorRef matmul_of_bits() const;
  TensorRef real_numbers(int64_t i) const;
  TensorRef as_integers(const Tensor& x, int64_t i) const;
  TensorRef joined_integers() const;
  TensorRef mean_of_integers(bool whole) const;
  TensorRef softmax_of_integers() const;
  TensorRef scaled_sums(const Tensor& sums, int64_t a, int64_t b, int64_t bias) const;
  TensorRef exact_projection() const;
  TensorRef matmul_of_ranges() const;
  TensorRef gemm_of_integers() const;
  bool product();
  TensorRef matmul() const;
  TensorRef gemm() const;
  bool image();
  TensorRef convolution(const Tensor& x, const Tensor& w, const Tensor* bias) const;
  TensorRef pooled_whole() const;
  TensorRef batch_norm() const;
  TensorRef layer_norm() const;
  Shape pads_of(int64_t n, Ints kernel) const;
  TensorRef padded(const Tensor& x, const Shape& pads, double v) const;
  TensorRef mean_pooled(const Tensor& x) const;
  void max_pool();
  bool layer();
  TensorRef resize() const;
  TensorRef resize_nearest(const Shape& sizes) const;
  Shape resized_to(int64_t n) const;
  TensorRef depth_and_space() const;
  TensorRef group_norm() const;
  TensorRef local_response_norm() const;
  TensorRef selu() const;
  TensorRef shrink() const;
  TensorRef einsum() const;
  TensorRef grid_sample() const;
  bool recurrent();
  struct Recurrent;
  Recurrent read_recurrent() const;
  void check_recurrent(Recurrent& n) const;
  void place_lengths(Recurrent& n) const;
  TensorTriple direction(const Recurrent& n, int64_t d) const;
  TensorRef unrolled_gru(const Recurrent& n, const Tensor& gates, const Tensor& h0,
                         const Tensor& again, bool reverse) const;
  TensorPair unrolled_lstm(const Recurrent& n, int64_t direction, const Tensor& x,
                           const Tensor* bias, const Tensor& h0, const Tensor& c0,
                           bool reverse) const;
  static TensorRef at_steps(const Tensor& t, const Tensor& steps);
  TensorRef gates_of(int64_t i, int64_t direction, int64_t part, int64_t parts, Ints order) const;
  bool reduction();
  bool reduce();
  Shape axes_of(int64_t i, int64_t ndim) const;
  TensorRef product_of(Shape axes, bool keep) const;
  TensorRef position_of_extreme() const;
  TensorRef cumulative_sum() const;
  void top_k();
  bool arrangement();
  void identity();
  TensorRef reshape() const;
  TensorRef transpose() const;
  TensorRef flatten() const;
  TensorRef sizes_of_one() const;
  TensorRef expand() const;
  TensorRef concat() const;
  TensorRef pad() const;
  TensorRef triangle() const;
  bool indexing();
  TensorRef slice() const;
  void split();
  TensorRef gather() const;
  TensorRef scatter_elements() const;
  TensorRef rows_of_many() const;
  TensorRef one_hot() const;
  TensorRef positions(const Tensor& index, int64_t size) const;
  TensorRef row_numbers(const Tensor& data, const Tensor& index) const;
  bool constant();
  TensorRef shape_of() const;
  TensorRef count_of() const;
  TensorRef given_value() const;
  TensorRef repeated_value() const;
  TensorRef range() const;
  TensorRef places_of_nonzero() const;

  const Span<const char> bytes_;
  const int64_t dynamic_;
  OnnxFiles* const files_;
  int64_t opset_ = 0;
  int64_t at_ = 0;
  int64_t depth_ = 0;
  int64_t computed_ = 0;  // elements of constants that nodes have made
  bool running_ = false;
  bool is_microsoft_ = false;  // the node at hand is of the domain com.microsoft
  Name type_;
  SmallVec<Name, 4> inputs_, outputs_;
  SmallVec<OnnxAttr, 4> attrs_;
  int64_t n_given_ = 0;
  SmallVec<ModelTensor, 16> items_;
  NameMap map_;
};

}  // namespace TT_NS
