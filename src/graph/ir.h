// The form of a captured graph: a list of calls of operators, in the order in which they ran. Plain
// data that owns all it refers to, whether a capture, a file or a pass made it.
//
//   Graph
//     inputs, outputs   positions in values
//     nodes             calls of operators below autograd: no composites, no gradients to record
//     values            what a node reads or makes: a storage at a version, seen with a geometry
//     storages          the memories: inputs, state, constants, and those that nodes make
//
// Each write into a storage increments its version, so (storage, version) names contents that never
// change. Views are values of one storage with different geometry; a node whose result is a view
// has a result with the storage of its argument.
#pragma once

#include "base/text/text.h"
#include "core/generator.h"
#include "dispatch/op_ref.h"
#include "dispatch/value.h"

namespace TT_NS {

enum class IrRole : uint8_t {
  kInput,     // the caller of a replay gives it
  kState,     // from outside, and a node writes it: parameters, running statistics
  kConstant,  // from outside, only read: parameters at inference, tables
  kMade,      // a node makes it
};

struct IrStorage {
  IrRole role = IrRole::kMade;
  bool writable = true;  // (not kMade) the application lets operators write it
  bool frozen = false;   // (kConstant) plans may copy its numbers, as TT_PASS_FOLD does
  Device device = kCpuDevice;
  int64_t bytes = 0;
  uint32_t version = 0;  // before the first node
  // A tensor with this memory, which keeps it alive; empty for kMade. Its geometry is that of the
  // first use: values have their own, and begin at tensor->storage->data + IrValue::offset.
  TensorRef tensor;
  Text name;                // given by the application; may be empty
  int32_t last_value = -1;  // of this storage: the head of the list by IrValue::previous
};

struct IrValue {
  int32_t storage = -1;
  uint32_t version = 0;
  Dtype dtype = Dtype::kNone;
  int64_t offset = 0;    // bytes from the begin of the storage to the first element
  Shape sizes, strides;  // in elements
  // The node whose call made these contents with this geometry, and which of its outs this is. A
  // node that writes a view changes the other views of the storage, too: their new values have this
  // node and out -1. node is -1 for values from outside.
  int32_t node = -1;
  int32_t out = -1;
  int32_t previous = -1;  // another value of the storage, an older one

  int64_t ndim() const { return sizes.size(); }
  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t size : sizes) n *= size;
    return n;
  }
  bool has_form(uint32_t its_version, Dtype its_dtype, int64_t its_offset, Ints its_sizes,
                Ints its_strides) const {
    return version == its_version && dtype == its_dtype && offset == its_offset &&
           same(sizes, its_sizes) && same(strides, its_strides);
  }
};

// One argument of a call, as the operator's schema names it (IrNode::op->schema->args).
struct IrArg {
  Value::Kind kind = Value::kNone;
  // kTensor: one. kTensorList: one for each item, -1 for an absent one. kIndices: one for each
  // tensor among them, in order.
  SmallVec<int32_t, 1> values;
  int64_t i = 0;                // kInt (dtypes and enums, too), kBool; kDevice: as Value::i
  double f = 0;                 // kFloat
  Scalar scalar;                // kScalar
  SmallVec<int64_t, 2> ints;    // kInts
  Text text;                    // kStr
  SmallVec<tt_index, 1> index;  // kIndices; their tensors are NULL
  Ref<Generator> generator;     // kGenerator
  // kRng: numbers of Graph::draws[draw], `counters_before` counters behind its begin.
  int32_t draw = -1;
  uint64_t counters_before = 0;
  Ref<Object> object;  // kObject
};

struct IrNode {
  OpRef op;
  SmallVec<IrArg, 4> args;    // op->schema->n_args
  SmallVec<int32_t, 2> outs;  // values: the results, -1 for absent ones, then the written arguments
  int32_t n_results = 0;      // how many of outs are results
  int32_t scope = -1;         // the innermost one that it ran in
  bool reads = false;         // its implementation reads elements on the host: what it does depends
                              // on values that a replay does not look at
  uint16_t cuda_math = 0;     // Ctx::cuda_math in the call
};

// A composite operator or a module around nodes: "linear", "layers.0".
struct IrScope {
  Text name;
  int32_t outer = -1;
};

// Random numbers that a composite reserves for its parts. The implementation of a node whose
// schema is `random` reserves its own.
struct IrDraw {
  Ref<Generator> generator;  // empty: that of the ctx
  uint64_t counters = 0;
  int32_t node = 0;  // happens before this node
};

struct Graph {
  uint32_t tag;
  RefCount refs;
  SmallVec<IrNode, 1> nodes;
  SmallVec<IrValue, 1> values;
  SmallVec<IrStorage, 1> storages;
  SmallVec<IrScope, 1> scopes;
  SmallVec<IrDraw, 1> draws;
  SmallVec<int32_t, 4> inputs, outputs;  // values
  static void destroy(Graph*) noexcept;

  // The position of the value of a storage with this version and geometry, or -1.
  int32_t find_value(int32_t storage, uint32_t version, Dtype dtype, int64_t offset, Ints sizes,
                     Ints strides) const;
  // The same; adds it if it is missing.
  int32_t value(int32_t storage, uint32_t version, Dtype dtype, int64_t offset, Ints sizes,
                Ints strides, int32_t node, int32_t out);
  int32_t add_value(int32_t storage, uint32_t version, Dtype dtype, int64_t offset, Ints sizes,
                    Ints strides, int32_t node, int32_t out);
};
Ref<Graph> new_graph();

// Whether the result `out` of a node shares the memory of one of its arguments.
bool is_view_out(const Graph& g, const IrNode& n, int64_t out);
// Calls f(value) for each value that an argument refers to.
template <class F> void for_each_value(const IrArg& a, F f) {
  for (const int32_t v : a.values)
    if (v >= 0) f(v);
}
template <class F> void for_each_value(const IrNode& n, F f) {
  for (const IrArg& a : n.args) for_each_value(a, f);
}

// Fails with `code` and says where, unless g is whole: positions exist, arguments fit schemas,
// each value is made before it is used and lies inside its storage, each read sees the version that
// the last write left, and draws come before the nodes that use them.
void verify_graph(const Graph& g, tt_status code = TT_INTERNAL);

// What the role of a storage, or the kind of an argument, is called.
const char* role_name(IrRole role) noexcept;

// One line for each node, as `%3 float32[2,4] = mul(self=%1, other=%2)`.
void print_graph(const Graph& g, Text& out);
// The language of Graphviz.
void print_graph_dot(const Graph& g, Text& out);

}  // namespace TT_NS
