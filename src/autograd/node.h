// Node: one recorded operator. A pooled block: header, outputs, edges, then what the formula saved.
#pragma once

#include "dispatch/call.h"

namespace TT_NS {

struct Node;
struct Engine;
struct Hook;

// Per-tensor data that only differentiable tensors need.
struct AutogradMeta : TensorMeta {
  Tensor* self;
  TensorRef grad;
  TensorRef pending;  // gradient on its way to this leaf, for the engine in `owner`
  Engine* owner;      // engine run that has claimed `pending`
  int64_t min_topo;   // smallest topo of a node that consumes this leaf
  Hook* hooks;        // of a leaf; a non-leaf's live on its node
  bool retains_grad;
  int64_t in_heap;
};
AutogradMeta& autograd_meta(const Tensor& t);  // made on first use
inline AutogradMeta* find_meta(const Tensor& t) { return static_cast<AutogradMeta*>(t.meta); }

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
  Tensor* retain_for;  // tensor whose grad is kept (not owned; it unlinks itself)
  Ints sizes() const { return {ndim <= kInlineDims ? inline_sizes : more, ndim}; }
};

struct NodeType {
  const char* name;  // the forward operator's
  // grads: one per output, undefined ones empty; writes one gradient per edge that needs one.
  void (*apply)(Node& n, TensorRef* grads, TensorRef* out);
  void (*destroy_saved)(Node& n) noexcept;
  uint32_t saved_bytes;
  bool takes_undefined;                                 // apply wants to see undefined gradients instead of zeros
  void (*release)(const NodeType*) noexcept = nullptr;  // (types made at run time) a node of this type is gone
};

struct Node : GraphNode {
  const NodeType* type;
  int64_t topo;  // 1 + the largest of its inputs'; leaves have 0
  uint16_t n_outs;
  uint16_t n_edges;
  bool released;  // saved tensors are gone
  bool in_heap;
  bool captured;  // tt_grad wants gradients of its outputs
  Engine* owner;  // engine run that holds pending gradients of this node
  Hook* hooks;
  Node* next_free;
  NodeOut* outs() { return reinterpret_cast<NodeOut*>(this + 1); }
  Edge* edges() { return reinterpret_cast<Edge*>(outs() + n_outs); }
  void* saved() { return edges() + n_edges; }
  template <class S> S& saved_as() { return *static_cast<S*>(saved()); }
  size_t bytes() { return sizeof(Node) + n_outs * sizeof(NodeOut) + n_edges * sizeof(Edge) + type->saved_bytes; }
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

// True if gradients should flow to t now.
bool needs_grad_slow(const Tensor& t);
TT_INLINE bool needs_grad(const Tensor& t) { return (t.keys & bit(kKeyAutograd)) && needs_grad_slow(t); }
inline bool needs_grad(const Tensor* t) { return t && needs_grad(*t); }
inline bool needs_grad(TensorSpan s) {
  for (const Tensor* t : s)
    if (needs_grad(t)) return true;
  return false;
}
// Owned edge to where t's gradient goes; rebuilds the node of a stale view first.
Edge gradient_edge(const Tensor& t);

Edge edge_to(const NodeRef& node, uint32_t nr);  // owned
// The parts of set_history, for nodes between others: what the gradient of an output looks like; leaves below the node
// learn how late their gradient is complete.
void describe_output(Node& n, uint32_t nr, const Tensor& t);
void describe_output(Node& n, uint32_t nr, const NodeOut& o);
void tell_leaves(Node& n);
// Makes `out` output nr of the node. Fails with OOM only for more than 5 dims, before it changes anything.
void set_history(const NodeRef& node, const Tensor& out, uint32_t nr);

bool requires_grad(const Tensor& t);
void set_requires_grad(Tensor& t, bool on);  // fails on non-leaves and non-differentiable dtypes

// ---- in place ----
// Called before the computation: refuses leaves that need a gradient; wraps the node for a view's base.
NodeRef prepare_inplace(Tensor& self, const NodeRef& node);
// Called after it: noexcept.
void commit_inplace(Tensor& self, NodeRef&& prepared) noexcept;

}  // namespace TT_NS
