// Files of graphs. Nothing here names the list of all operators (load.cpp does), so a static
// program that passes its own list has no other operator.
#include "io/graph_file.h"

#include "capi/graph/graph.h"
#include "graph/onnx/export.h"
#include "graph/resize.h"
#include "io/files.h"
#include "optim/captured.h"

#include <string.h>

using namespace TT_NS;

tt_status tt_graph_save(tt_ctx* h, const tt_graph* handle, const char* path) {
  return api_call(h, "graph_save", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    save_graph(str_arg(path, "path", 2).ptr, g, step_forms);
  });
}

static void write_onnx(Span<const Graph* const> graphs, Span<const char* const> dims,
                       const char* path) {
  Bytes model;
  export_onnx(graphs, dims, model);
  NewFile file(path);
  file.write(model.data(), model.size());
  file.commit();
}

tt_status tt_graph_export_onnx_dynamic(tt_ctx* h, const tt_graph* handle,
                                       const tt_graph* other_handle, const char* dim,
                                       const char* path) {
  return api_call(h, "graph_export_onnx_dynamic", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    const Graph& other = graph_arg(other_handle, "other", 2);
    const Str name = str_arg(dim, "dim", 3);
    str_arg(path, "path", 4);
    if (!name.n) fail_arg(TT_INVALID_ARG, "dim", "dim is empty: must be a name");
    const Graph* const both[] = {&g, &other};
    write_onnx(both, {&dim, 1}, path);
  });
}

tt_status tt_graph_export_onnx_dims(tt_ctx* h, const tt_graph* handle,
                                    const tt_graph* const* others, int64_t n_others,
                                    const char* const* dims, int64_t n, const char* path) {
  return api_call(h, "graph_export_onnx_dims", [&](Ctx&) {
    SmallVec<const Graph*, 8> graphs;
    graphs.push_back(&graph_arg(handle));
    if (n < 1 || n > Growth::kMaxDims)
      fail_arg(TT_INVALID_ARG, "n", "n is {}: must be 1 to {}", n, Growth::kMaxDims);
    if (n_others != (int64_t(1) << n) - 1)
      fail_arg(TT_INVALID_ARG, "n_others", "n_others is {}: must be {} for {} dimensions", n_others,
               (int64_t(1) << n) - 1, n);
    if (!others) fail_null("others", 2);
    if (!dims) fail_null("dims", 4);
    for (int64_t i = 0; i < n; i++)
      if (!str_arg(dims[i], "dims", 4).n)
        fail_arg(TT_INVALID_ARG, "dims", "name {} of dims is empty: must be a name", i);
    str_arg(path, "path", 6);
    for (int64_t i = 0; i < n_others; i++) graphs.push_back(&graph_arg(others[i], "others", 2));
    write_onnx(graphs, {dims, n}, path);
  });
}

tt_status tt_graph_export_onnx(tt_ctx* h, const tt_graph* handle, const char* path) {
  return api_call(h, "graph_export_onnx", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    str_arg(path, "path", 2);
    const Graph* const one = &g;
    write_onnx({&one, 1}, {}, path);
  });
}

namespace {

struct OpList {
  const tt_op* const* ops;
  int64_t n;
};
const OpInfo* find_in_list(const void* user, const char* name) {
  const auto& list = *static_cast<const OpList*>(user);
  for (int64_t i = 0; i < list.n; i++) {
    const auto* op = reinterpret_cast<const OpInfo*>(list.ops[i]);
    if (strcmp(op->name(), name) == 0) return op;
  }
  return nullptr;
}

}  // namespace

tt_status tt_graph_load_with(tt_ctx* h, const char* path, const tt_op* const* ops, int64_t n,
                             tt_graph** out) {
  if (out) *out = nullptr;
  return api_call(h, "graph_load_with", [&](Ctx&) {
    str_arg(path, "path", 1);
    if (n < 0 || (n && !ops))
      fail_arg(TT_INVALID_ARG, "ops", "ops is {}, its length is {}", ops ? "a list" : "NULL", n);
    for (int64_t i = 0; i < n; i++) {
      const auto* op = reinterpret_cast<const OpInfo*>(ops[i]);
      if (!op || op->tag != kTagOp) fail_handle(op, "ops", 2, "operator");
    }
    out_arg(out, "out", 4);
    const OpList list{ops, n};
    const OpFinder finder = {find_in_list, is_enum_value, &list};
    *out = reinterpret_cast<tt_graph*>(load_graph(path, finder, nullptr).leak());
  });
}

// ---- the list of operators of a static program ----

#define TT_TEXT_OF(name) #name
#define TT_TEXT(name) TT_TEXT_OF(name)

// The symbol of TT_NS::op_<name> (Itanium C++ ABI, 5.1.3).
static void add_symbol(Text& out, const OpInfo& op) {
  constexpr const char* kNamespace = TT_TEXT(TT_NS);
  out.add("_ZN").add(int64_t(strlen(kNamespace))).add(kNamespace);
  out.add(int64_t(strlen(op.name()) + 3)).add("op_").add(op.name()).add("E");
}

tt_status tt_graph_emit_ops(tt_ctx* h, const tt_graph* handle, const char* path, const char* name) {
  return api_call(h, "graph_emit_ops", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    str_arg(path, "path", 2);
    if (!is_c_name(str_arg(name, "name", 3).ptr))
      fail_arg(TT_INVALID_ARG, "name", "'{}' is not a C identifier", name);
    SmallVec<const OpInfo*, 16> ops;
    for (const IrNode& n : g.nodes) {
      bool known = false;
      for (const OpInfo* op : ops) known |= op == n.op;
      if (!known) ops.push_back(n.op);
    }
    Text text("/* The operators of a graph, for tt_graph_load_with. Written by tt ");
    text.add(tt_version()).add(". */\n#include \"tt.h\"\n\n");
    for (const OpInfo* op : ops) {
      text.add("extern const tt_op ");
      add_symbol(text, *op);
      text.add(";\n");
    }
    text.add("extern const tt_op *const ").add(name).add("_ops[];\nextern const long ");
    text.add(name).add("_n_ops;\nconst tt_op *const ").add(name).add("_ops[] = {\n");
    for (const OpInfo* op : ops) {
      text.add("  &");
      add_symbol(text, *op);
      text.add(",\n");
    }
    text.add("  0};\nconst long ").add(name).add("_n_ops = ").add(ops.size()).add(";\n");
    NewFile file(path);
    file.write(text.c_str(), text.size());
    file.commit();
  });
}
