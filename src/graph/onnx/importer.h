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

struct OnnxAttr {
  Name name = name_of("");
  float f = 0;
  int64_t i = 0;
  Span<const char> s, tensor, graph;
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

  bool elementwise();
  bool product();
  bool image();
  struct Recurrent;
  bool layer();
  void resize();
  void depth_and_space();
  Shape resized_to(int64_t n) const;
  bool recurrent();
  Recurrent read_recurrent() const;
  void check_recurrent(Recurrent& n) const;
  void place_lengths(Recurrent& n) const;
  TensorTriple direction(const Recurrent& n, int64_t d) const;
  TensorRef unrolled_gru(const Recurrent& n, const Tensor& gates, const Tensor& h0,
                         const Tensor& again, bool reverse) const;
  static TensorRef at_steps(const Tensor& t, const Tensor& steps);
  TensorRef gates_of(int64_t i, int64_t direction, int64_t part, int64_t parts, Ints order) const;
  bool reduction();
  bool arrangement();
  bool indexing();
  bool constant();
  Shape axes_of(int64_t i, int64_t ndim) const;
  Shape pads_of(int64_t n, Ints kernel) const;
  void pool(bool largest);
  TensorRef padded(const Tensor& x, const Shape& pads, double v) const;
  void slice();
  void split();
  void gather();
  TensorRef positions(const Tensor& index, int64_t size) const;
  TensorRef row_numbers(const Tensor& data, const Tensor& index) const;
  void scatter_elements();
  void rows_of_many();
  void one_hot();

  const Span<const char> bytes_;
  const int64_t dynamic_;
  OnnxFiles* const files_;
  int64_t opset_ = 0, at_ = 0, depth_ = 0;
  int64_t computed_ = 0;  // elements of constants that nodes have made
  bool running_ = false;
  Name type_;
  SmallVec<Name, 4> inputs_, outputs_;
  SmallVec<OnnxAttr, 4> attrs_;
  int64_t n_given_ = 0;
  SmallVec<ModelTensor, 16> items_;
  NameMap map_;
};

}  // namespace TT_NS
