// Handles of graphs.
#pragma once

#include "capi/api.h"
#include "graph/ir.h"

namespace TT_NS {

inline Graph* graph_of(const tt_graph* h) {
  auto* g = reinterpret_cast<Graph*>(const_cast<tt_graph*>(h));
  return g && g->tag == kTagGraph ? g : nullptr;
}
inline const Graph& graph_arg(const tt_graph* h, const char* name = "g", int position = 1) {
  if (!graph_of(h)) fail_handle(h, name, position, "graph");
  return *graph_of(h);
}
// Whether s is an identifier of C.
inline bool is_c_name(const char* s) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (!is_letter(*s)) return false;
  for (; *s; s++)
    if (!is_letter(*s) && !(*s >= '0' && *s <= '9')) return false;
  return true;
}
// For OpFinder::is_enum.
inline bool is_enum_value(uint8_t enumeration, int64_t v) {
  return v >= 0 && v < enumerations[enumeration].n;
}

}  // namespace TT_NS
