// A graph of two parts, such as a call and its gradients, as two graphs.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

// Divides a graph behind its first n_nodes. The first n_inputs and n_outputs are those of the first
// part. Fails with NOT_IMPLEMENTED if the second part writes what it has not made, draws random
// numbers, or reads what the first part has overwritten.
class GraphDivision {
 public:
  GraphDivision(const Graph& g, int64_t n_nodes, int64_t n_inputs, int64_t n_outputs);
  // Its outputs, then the memories that the second part needs, as bytes.
  Ref<Graph> first() const;
  // Gets the inputs of the first part that it reads, then these memories, then its own inputs.
  Ref<Graph> second() const;
  // Whether the second part reads a storage that it has not made.
  bool reads(int32_t storage) const { return read_[storage]; }
  // Graph::draws of the first part that the second one uses.
  Span<const int32_t> draws() const { return {draws_.data(), draws_.size()}; }

 private:
  void find_makers();
  void read(int32_t value);
  void read(const IrArg& a);
  // What a storage holds behind the first part: whole, and in the form of an input.
  int32_t whole_value(Graph& g, int32_t storage) const;
  int32_t value_behind(Graph& g, int32_t input) const;

  const Graph& g_;
  const int32_t n_first_;
  const int64_t n_inputs_, n_outputs_;
  SmallVec<int32_t, 16> maker_;     // of each storage: the node that makes it; -1: none
  SmallVec<uint32_t, 16> version_;  // behind the first part
  SmallVec<int32_t, 16> writer_;    // the last node of the first part that writes it
  SmallVec<bool, 16> read_;         // by the second part
  SmallVec<int32_t, 8> memories_;   // storages that the first part makes for the second one
  SmallVec<int32_t, 1> draws_;
};

}  // namespace TT_NS
