// The form of a graph in files: one record a line, words separated by spaces.
//
//   ttg 1
//   storage input 24 0 1 "x"          role, bytes, version, writable, name
//   value 0 0 float32 0 [2,3] [3,1] -1 -1   storage, version, dtype, offset, sizes, strides, node,
//                                     out
//   scope -1 "linear"                 outer, name
//   generator 7 0                     seed, offset
//   draw 5 0 -1                       counters, node, generator (-1: that of the ctx)
//   node relu 1 -1 0 [2] self=%0      operator, results, scope, reads, outs, arguments
//   inputs [0]
//   outputs [2]
//
// An argument is its name, "=" and: none · %3 or %-1 a value · %[3,-1] values · b1 a bool · i5 an
// integer · f0x1p+0 a float · sb1, si5, sf0x1p+0, sc0x1p+0,0x0p+0 scalars · [1,2] integers ·
// "text" · g0 a generator · d1:0 a device · r0+4 numbers of draw 0 behind 4 counters ·
// x[…] a mixed index, each item kind:has:start:stop:step, then @ and the values of its tensors · o
// an object, whose form is a text of its own.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

constexpr int64_t kGraphFormVersion = 1;

// What a reader knows of operators.
struct OpFinder {
  const OpInfo* (*find)(const void* user, const char* name);  // NULL: there is none
  bool (*is_enum)(uint8_t enumeration, int64_t value);        // a value of the enumeration
  const void* user;
};

// How the objects of internal operators are written and read, by the layer that has them.
struct ObjectForms {
  void (*write)(const Graph& g, Text& out);
  // Gives the nodes of g their objects. Everything is checked; fails with FORMAT.
  void (*read)(const char* path, const char* text, Graph& g);
};
bool has_objects(const Graph& g) noexcept;

// Fails with NOT_IMPLEMENTED for a graph on other devices than the CPU.
void write_graph(const Graph& g, Text& out);
// Reads a graph from zero-terminated text, which it modifies. The storages have no tensors yet.
// Fails with FORMAT, naming path and line: every position and size is checked, and every argument
// fits its schema.
Ref<Graph> read_graph(const char* path, char* text, const OpFinder& ops);
// The dtype of this name; kNone if there is none.
Dtype dtype_of_name(Span<const char> name) noexcept;

}  // namespace TT_NS
