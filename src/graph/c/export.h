// A captured graph as C99 source: no allocation, no library but libm.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

struct CFiles {
  Text source, header;
  SmallVec<char, 1> blob;
};

// Writes the source and the header of a function `name` that computes the outputs of g from its
// inputs in float32 (integers and bools pass through). What g reads from outside is written as
// constants, or into a blob that the function takes. Fails with NOT_IMPLEMENTED, which names the
// operator, where C has no counterpart: an operator without a template, a dtype, a write to memory
// from outside. name must be an identifier.
void export_c(const Graph& g, const char* name, bool blob, CFiles& files);

// The C expression of an elementwise operator, or of its variant in place or `_into`, over its
// arguments by name; NULL: it has none.
const char* c_expression_of(const char* op) noexcept;

}  // namespace TT_NS
