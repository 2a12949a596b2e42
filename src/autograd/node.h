// Node: one recorded operator. A pooled block: header, outputs, edges, then what the formula saved.
#pragma once

#include "autograd/meta.h"
#include "dispatch/call.h"

namespace TT_NS {

// Where a gradient goes: an output of a node, or a leaf (owned either way); empty: nowhere.
struct Edge {
  uintptr_t target = 0;  // Node*, or Tensor* | 1
  uint32_t nr = 0;
  bool is_leaf() const { return target & 1; }
  Node* node() const { return reinterpret_cast<Node*>(target); }
  Tensor* leaf() const { return reinterpret_cast<Tensor*>(target & ~uintptr_t(1)); }
  explicit operator bool() const { return target != 0; }
};
void release_edge(Edge& e) noexcept;
Edge share_edge(const Edge& e);

// One output of a node: what its gradient must look like, and the gradient on its way.
struct NodeOut {
  Dtype dtype;
  Device device;
  uint8_t ndim;
  bool defined;
  uint32_t pad_;
  union {
    int64_t inline_sizes[kInlineDims];
    int64_t* more;
  };
  TensorRef pending;
  RetainedGrad* retained;  // owned; changed under shared_lock
  Ints sizes() const { return {ndim <= kInlineDims ? inline_sizes : more, ndim}; }
};

struct NodeType {
  const char* name;  // the forward operator's
  // grads: one per output, undefined ones empty; writes one gradient per edge that needs one.
  void (*apply)(Node& n, TensorRef* grads, TensorRef* out);
  void (*destroy_saved)(Node& n) noexcept;
  uint32_t saved_bytes;
  bool takes_undefined;  // apply wants to see undefined gradients instead of zeros
  void (*release)(const NodeType*) noexcept =
      nullptr;  // (types made at run time) a node of this type is gone
};

struct Node : GraphNode {
  const NodeType* type;
  int64_t topo;  // 1 + the largest of its inputs'; leaves have 0
  uint16_t n_outs;
  uint16_t n_edges;
  bool released;  // saved tensors are gone
  // Of whoever has claimed the node: a backward, while gradients wait here, or a thread that runs
  // it. That thread may run it once more, from a callback.
  bool in_heap;
  bool doomed;        // released, and the saved area goes when the outermost run ends
  bool part_of_node;  // of a copy_slices node, which releases it
  uint16_t running;
  uint16_t captured;  // (atomic) how many backwards want gradients of its outputs
  union {
    uintptr_t claim;  // (atomic) 0, an Engine*, or the mark of a running thread
    Node* next_free;
  };
  HookList hooks;
  NodeOut* outs() { return reinterpret_cast<NodeOut*>(this + 1); }
  Edge* edges() { return reinterpret_cast<Edge*>(outs() + n_outs); }
  void* saved() { return edges() + n_edges; }
  template <class S> S& saved_as() { return *static_cast<S*>(saved()); }
  size_t bytes() {
    return sizeof(Node) + n_outs * sizeof(NodeOut) + n_edges * sizeof(Edge) + type->saved_bytes;
  }
  bool needs(int64_t i) { return bool(edges()[i]); }
  // Shares the gradient edge of t (nothing if t needs no gradient).
  void set_edge(int64_t i, const Tensor& t);
  void set_edge(int64_t i, const Tensor* t) {
    if (t) set_edge(i, *t);
  }
};
using NodeRef = Ref<GraphNode>;
inline Node& as_node(const NodeRef& r) { return *static_cast<Node*>(r.get()); }

// Edges empty; saved area zeroed, to be constructed by the caller.
NodeRef new_node(const NodeType* type, int64_t n_edges, int64_t n_outs);
template <class S> void destroy_saved(Node& n) noexcept { n.saved_as<S>().~S(); }

// Claims a node for a backward; NULL: for this thread. Fails if another backward has it, or another
// thread runs it.
void claim_node(Node& n, const Engine* by);
void give_up_claim(Node& n) noexcept;
// A claimed node runs on this thread while this lives.
class NodeRun {
 public:
  explicit NodeRun(Node& n) noexcept;
  ~NodeRun();
  NodeRun(const NodeRun&) = delete;

 private:
  Node& n_;
};

// True if gradients should flow to t now.
bool needs_grad_slow(const Tensor& t);
TT_INLINE bool needs_grad(const Tensor& t) {
  return (t.keys & bit(kKeyAutograd)) && needs_grad_slow(t);
}
inline bool needs_grad(const Tensor* t) { return t && needs_grad(*t); }
inline bool needs_grad(TensorSpan s) {
  for (const Tensor* t : s)
    if (needs_grad(t)) return true;
  return false;
}
// Owned edge to where t's gradient goes; rebuilds the node of a stale view first.
Edge gradient_edge(const Tensor& t);

Edge edge_to(const NodeRef& node, uint32_t nr);  // owned
// The parts of set_history, for nodes between others: what the gradient of an output looks like;
// leaves below the node learn how late their gradient is complete.
void describe_output(Node& n, uint32_t nr, const Tensor& t);
void describe_output(Node& n, uint32_t nr, const NodeOut& o);
void tell_leaves(Node& n);
// Makes t output nr of the node, which describe_output has described. Does nothing if t is not
// differentiable.
void link_output(const NodeRef& node, Tensor& t, uint32_t nr) noexcept;
// Makes `out` output nr of the node. Fails with OOM only for more than 5 dims, before it changes
// anything.
void set_history(const NodeRef& node, const Tensor& out, uint32_t nr);

bool requires_grad(const Tensor& t);

// ---- in place ----
// Called before the computation: refuses leaves that need a gradient; wraps the node for a view's
// base.
NodeRef prepare_inplace(Tensor& self, const NodeRef& node);
// Called after it: noexcept.
void commit_inplace(Tensor& self, NodeRef&& prepared) noexcept;

}  // namespace TT_NS
