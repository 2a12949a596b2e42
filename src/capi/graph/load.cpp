// Loading of graphs whose operators may be any of the library's.
#include "capi/graph/graph.h"
#include "dispatch/all_ops.h"
#include "ext/custom_op.h"
#include "io/graph_file.h"
#include "optim/captured.h"

#include <string.h>

using namespace TT_NS;

// Internal operators, too: graphs consist of them.
static const OpInfo* find_any(const void* runtime, const char* name) {
  int64_t low = 0;
  int64_t high = num_all_ops;
  while (low < high) {
    const int64_t mid = (low + high) / 2;
    const int order = strcmp(all_ops[mid]->name(), name);
    if (order == 0) return all_ops[mid];
    if (order < 0) low = mid + 1;
    else high = mid;
  }
  return find_custom_op(static_cast<Runtime*>(const_cast<void*>(runtime)), name);
}

tt_status tt_graph_load(tt_ctx* h, const char* path, tt_graph** out) {
  if (out) *out = nullptr;
  return api_call(h, "graph_load", [&](Ctx& c) {
    str_arg(path, "path", 1);
    out_arg(out, "out", 2);
    const OpFinder finder = {find_any, is_enum_value, c.rt};
    *out = reinterpret_cast<tt_graph*>(load_graph(path, finder, &step_forms).leak());
  });
}
