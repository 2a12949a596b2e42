// What a node saved for its gradient, under the names of the operator's arguments and results.
#pragma once

#include "autograd/node.h"
#include "base/text/text.h"

namespace TT_NS {

// What generated nodes have as members, one text after the other, each with a zero: the kind and
// the name of each member, separated by commas, as in "tself,tother". NodeType::members numbers
// them; only programs that describe nodes contain them.
extern const char node_members[];

// The kinds of members.
enum class SavedKind : char {
  kTensor = 't',
  kTensors = 'l',
  kInts = 's',
  kOptInts = 'S',
  kShapes = 'h',
  kScalar = 'n',
  kOptScalar = 'N',
  kInt = 'i',
  kOptInt = 'I',
  kFloat = 'f',
  kOptFloat = 'F',
  kBool = 'b',
  kDtype = 'd',
  kDevice = 'v',
  kRng = 'r',
};

// Writes a node as the JSON that tt_node_describe defines (tt.h).
void print_node(Node& n, Text& out);
// Returns tensor i of those that print_node counts, empty if it is absent. Fails with AUTOGRAD if
// the graph was freed, the tensor overwritten, or a backward of another thread holds the node.
TensorRef saved_tensor(Node& n, int64_t i);

}  // namespace TT_NS
