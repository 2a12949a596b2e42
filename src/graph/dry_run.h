// DryRun: calls implementations of nodes with kernels left out, to learn the geometry of results.
#pragma once

#include "graph/hooked_ctx.h"
#include "graph/node_call.h"

namespace TT_NS {

class DryRun : GraphHooks {
 public:
  explicit DryRun(const Graph& g);
  ~DryRun();
  DryRun(const DryRun&) = delete;
  // Calls the implementation of a node on memory of its arguments' storages; appends its results,
  // whose elements mean nothing.
  void call(const IrNode& n, TensorList& outs);
  // Keeps the results as the memory of the node's outs. Fails with `code` if they are not those
  // of the graph; sets the sizes of storages that the node makes.
  void take(Graph& g, int32_t node, const TensorList& outs, tt_status code);
  // Frees the memory of a storage after its last use.
  void drop(int32_t storage) { storages_[storage].reset(); }
  // The memory of a value's storage, if it exists.
  const Tensor* memory(int32_t storage) const { return storages_[storage].get(); }

 private:
  struct Observer : WorkObserver {};
  static void on_place(GraphHooks&, Storage& s);
  static void on_read(WorkObserver&, const Tensor& t);

  TensorRef tensor_of(int32_t value);

  const Graph& g_;
  Observer observer_;
  SmallVec<TensorRef, 16> storages_;  // bytes of each storage that is in use

  HookedCtx ctx_;
};

// Checks a graph whose contents nobody vouches for: calls each node, and fails with `code`, naming
// the node, unless its operator takes the arguments and results have the geometry that the graph
// says. Sets the sizes of the storages that nodes make.
void dry_run(Graph& g, tt_status code);

}  // namespace TT_NS
