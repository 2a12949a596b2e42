// Values that a node saves for its formula. Every saved tensor carries its version.
#pragma once

#include "autograd/node.h"

namespace TT_NS {

class Saved {
 public:
  // A tensor may later be written in place and get a history that leads back to this node. A
  // writable tensor is therefore saved as a new tensor over the same memory, so that no graph owns
  // itself.
  void save(const Tensor& t) {
    if (t.flags & kRequiresGrad) return save_leaf(t);
    t_ = snapshot(t);
    version_ = t.tracked_version();
  }
  void save(const Tensor* t) {
    if (t) save(*t);
  }
  // Saves an output of the node itself without its grad_fn (else the node would own itself), and
  // re-links it on use.
  void save_output(const Tensor& out, uint32_t nr);
  // For an in-place operator, after save_output.
  void written(const Tensor& out) {
    version_ = out.tracked_version();
    if (TT_UNLIKELY(packed())) save_output(out, uint32_t(output_nr_));
  }
  bool defined() const { return bool(t_); }
  // Returns whether it has t's memory and geometry.
  bool holds(const Tensor& t) const {
    if (TT_UNLIKELY(packed())) return packed_from(t);
    return t_ && t_->storage == t.storage && t_->data == t.data && same_geometry(*t_, t);
  }
  // Returns the tensor; fails with AUTOGRAD if it was overwritten since, or the graph was freed.
  TensorRef get(Node& n) const;
  TensorRef get_opt(Node& n) const { return t_ || n.released ? get(n) : TensorRef(); }
  // The same outside the node, without a link to it. name: of the operator.
  TensorRef get_unlinked(const char* name) const;
  // Fails with AUTOGRAD if the tensor was overwritten since it was saved.
  void check_unchanged(const char* name) const;

 private:
  // Whether hooks of the application hold the values (saved_hooks.h); t_ stands for them.
  bool packed() const { return t_ && (t_->flags & kPackedTensor); }
  bool packed_from(const Tensor& t) const;
  void save_leaf(const Tensor& t);
  static TensorRef snapshot(const Tensor& t);  // t's current memory, geometry and history

  TensorRef t_;
  uint32_t version_ = 0;
  int32_t output_nr_ = -1;  // >= 0: an output of the node; else ~number of a leaf's geometry
};

// A NodeType::destroy_saved, for all structs that begin with kTensors members of type Saved, then
// kShapes of type Shape, and whose other members have no destructor.
template <int kTensors, int kShapes> void destroy_parts(Node& n) noexcept {
  auto* tensors = static_cast<Saved*>(n.saved());
  for (int i = 0; i < kTensors; i++) tensors[i].~Saved();
  if constexpr (kShapes > 0) {
    constexpr size_t kOffset = round_up(kTensors * sizeof(Saved), alignof(Shape));
    auto* shapes = reinterpret_cast<Shape*>(static_cast<char*>(n.saved()) + kOffset);
    for (int i = 0; i < kShapes; i++) shapes[i].~Shape();
  }
}

class SavedList {
 public:
  void save(TensorSpan s) {
    for (const Tensor* t : s) {
      items_.push_back(Saved());
      items_.back().save(t);
    }
  }
  void get(Node& n, TensorList& out) const {
    for (const Saved& s : items_) out.push_back(s.get_opt(n));
  }
  int64_t size() const { return items_.size(); }
  const Saved& operator[](int64_t i) const { return items_[i]; }

 private:
  SmallVec<Saved, 4> items_;
};

// Borrowed view of a list of owned tensors.
class Borrowed {
 public:
  explicit Borrowed(const TensorList& l) {
    for (const TensorRef& t : l) p_.push_back(t.get());
  }
  operator TensorSpan() const { return {p_.data(), p_.size()}; }

 private:
  SmallVec<const Tensor*, 8> p_;
};

// needs[i]: input i of the running node needs its gradient.
class Needs {
 public:
  explicit Needs(Node& n) : node_(&n) {}
  // Outside a node: input i does if bit i is set.
  explicit Needs(uint32_t mask) : mask_(mask) {}
  bool operator[](int64_t i) const { return node_ ? node_->needs(i) : mask_ >> i & 1; }

 private:
  Node* node_ = nullptr;
  uint32_t mask_ = 0;
};

[[noreturn]] TT_COLD void fail_graph_freed(Node& n);
inline void check_not_released(Node& n) {
  if (TT_UNLIKELY(n.released)) fail_graph_freed(n);
}

}  // namespace TT_NS
