// Node: one recorded operator. A pooled block: header, outputs, edges, saved values of the formula.
#pragma once

#include "autograd/meta.h"
#include "dispatch/call.h"

namespace TT_NS {

// Target of a gradient: an output of a node, or a leaf (owned either way). Empty: none.
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

// One output of a node: the required properties of its gradient, and the gradient on its way.
struct NodeOut {
  Dtype dtype;
  Device device;
  uint8_t ndim;
  bool defined;
  uint32_t pad_;
  union {
    int64_t inline_sizes[kInlineDims];
    int64_t* heap_sizes;
  };
  TensorRef pending;
  RetainedGrad* retained;  // owned; changed under shared_lock
  Ints sizes() const { return {ndim <= kInlineDims ? inline_sizes : heap_sizes, ndim}; }
};

struct NodeType {
  const char* name;  // of the forward operator
  // grads: one per output, undefined ones empty. Writes one gradient per edge that needs one.
  void (*apply)(Node& n, TensorRef* grads, TensorRef* out);
  void (*destroy_saved)(Node& n) noexcept;
  uint32_t saved_bytes;
  bool takes_undefined = false;  // apply receives undefined gradients as such, not as zeros
  bool owned = false;            // an OwnedNodeType
  uint16_t members = 0;          // 1 + number of the text in node_members (saved_values.h); 0: none
  bool runs_hooks = false;       // apply calls hooks of a module
};
// A type created at run time, which its nodes keep alive.
struct OwnedNodeType {
  NodeType type;                              // first: nodes point to it
  void (*release)(const NodeType*) noexcept;  // called when a node of this type is freed
};

struct Node : GraphNode {
  const NodeType* type;
  int64_t topo;  // above that of its inputs and of nodes created before; leaves have 0
  uint16_t n_outs;
  uint16_t n_edges;
  bool released;  // saved tensors have been released
  // These belong to the claimant: a backward while gradients wait here, or the thread that runs the
  // node. That thread may re-enter it from a callback.
  bool in_heap;
  bool doomed;        // released; the saved area is destroyed when the outermost run ends
  bool part_of_node;  // part of a copy_slices node, which releases it
  uint16_t running;
  uint16_t unwanted;  // bit i: the running backward does not want the gradient of edge i < 16
  uint32_t captured;  // (atomic) number of backwards that capture gradients of its outputs
  union {
    uintptr_t claim;  // (atomic) 0, an Engine*, the id of a running thread, or kReading
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
  bool needs(int64_t i) { return edges()[i] && (i >= 16 || !(unwanted >> i & 1)); }
  // Shares the gradient edge of t; the edge stays empty if t needs no gradient.
  void set_edge(int64_t i, const Tensor& t);
  void set_edge(int64_t i, const Tensor* t) {
    if (t) set_edge(i, *t);
  }
};
using NodeRef = Ref<GraphNode>;
inline Node& as_node(const NodeRef& r) { return *static_cast<Node*>(r.get()); }

// Edges are empty; the saved area is zeroed and constructed by the caller.
NodeRef new_node(const NodeType* type, int64_t n_edges, int64_t n_outs);
template <class S> void destroy_saved(Node& n) noexcept { n.saved_as<S>().~S(); }

// Claims a node for a backward, or for this thread if `by` is NULL. Fails if another backward or
// thread has claimed it.
void claim_node(Node& n, const Engine* by);
void give_up_claim(Node& n) noexcept;
// Ends a run of a node; with the outermost one, a doomed node's saved area is destroyed.
void end_run(Node& n) noexcept;
// Marks a claimed node as running on this thread.
class NodeRun {
 public:
  explicit NodeRun(Node& n) noexcept;
  ~NodeRun();
  NodeRun(const NodeRun&) = delete;

 private:
  Node& n_;
};

// Returns whether gradients must flow to t now.
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
// Returns an owned edge to the target of t's gradient; rebuilds the node of a stale view first.
Edge gradient_edge(const Tensor& t);

Edge edge_to(const NodeRef& node, uint32_t nr);  // owned
// Parts of set_history, for nodes between others. describe_output records the properties of an
// output's gradient; the other updates min_topo of the leaves below the node.
void describe_output(Node& n, uint32_t nr, const Tensor& t);
void describe_output(Node& n, uint32_t nr, const NodeOut& o);
void update_min_topo(Node& n);
// Makes t output nr of the node, after describe_output. Does nothing if t is not differentiable.
void link_output(const NodeRef& node, Tensor& t, uint32_t nr) noexcept;
// Makes `out` output nr of the node. Fails only with OOM, for more than 5 dims, before any change.
// A node's only output takes over the caller's reference, which spares two atomic counts a call.
void set_history(const NodeRef& node, const Tensor& out, uint32_t nr);
void set_history(NodeRef&& node, const Tensor& out, uint32_t nr);

bool requires_grad(const Tensor& t);

// ---- in place ----
// Called first. Refuses a view that was made without recording, of a tensor that requires a
// gradient: the history of that tensor would miss the write.
[[noreturn]] TT_COLD void fail_untracked_view();
TT_INLINE void check_tracked(const Tensor& self) {
  if (TT_UNLIKELY(self.flags & kUntrackedView)) fail_untracked_view();
}
// Called before the computation. Refuses leaves that require a gradient, and views that a call
// returned with others; wraps the node for a view's base.
NodeRef prepare_inplace(Tensor& self, const NodeRef& node);
// Called after the computation.
void commit_inplace(Tensor& self, NodeRef&& prepared) noexcept;

}  // namespace TT_NS
