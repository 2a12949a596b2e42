#include "graph/ir.h"

namespace TT_NS {

namespace {

constexpr const char* kDtypeNames[kNumDtypes] = {
    "none",    "bool",     "uint8",   "int8",    "int16",     "int32",     "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};

void add_ints(Text& out, Ints list) {
  out.add("[");
  for (int64_t i = 0; i < list.n; i++) out.add(i ? "," : "").add(list[i]);
  out.add("]");
}

void add_type(Text& out, const IrValue& v) {
  out.add(kDtypeNames[int(v.dtype)]);
  add_ints(out, v.sizes);
}

void add_value(Text& out, int32_t v) {
  if (v < 0) out.add("None");
  else out.add("%").add(int64_t(v));
}

void add_values(Text& out, Span<const int32_t> list) {
  out.add("[");
  for (int64_t i = 0; i < list.n; i++) {
    out.add(i ? ", " : "");
    add_value(out, list[i]);
  }
  out.add("]");
}

void add_scalar(Text& out, const Scalar& s) {
  if (s.is_complex()) {
    const FmtArg parts[] = {s.real(), s.imag()};
    char text[64];
    out.add({text, format_to(text, sizeof text, "({}, {})", parts)});
  } else if (s.is_bool()) {
    out.add(s.i ? "True" : "False");
  } else if (s.is_int()) {
    out.add(s.i);
  } else {
    out.add_double(s.real());
  }
}

void add_arg(Text& out, const IrArg& a, ArgType type) {
  switch (a.kind) {
    case Value::kNone: out.add("None"); return;
    case Value::kTensor: return add_value(out, a.values[0]);
    case Value::kTensorList: return add_values(out, a.values);
    case Value::kScalar: return add_scalar(out, a.scalar);
    case Value::kInt:
      if (type == ArgType::kDtype && a.i > 0 && a.i < kNumDtypes) out.add(kDtypeNames[a.i]);
      else out.add(a.i);
      return;
    case Value::kFloat: out.add_double(a.f); return;
    case Value::kBool: out.add(a.i ? "True" : "False"); return;
    case Value::kInts: return add_ints(out, a.ints);
    case Value::kStr: out.add("\"").add(a.text.span()).add("\""); return;
    case Value::kGenerator: out.add("generator"); return;
    case Value::kDevice: {
      const FmtArg device[] = {fmt(Device{int8_t(a.i >> 8), int8_t(a.i & 0xff)})};
      char text[32];
      out.add({text, format_to(text, sizeof text, "{}", device)});
      return;
    }
    case Value::kIndices: {
      out.add("index").add(a.index.size());
      return add_values(out, a.values);
    }
    case Value::kRng: out.add("draw").add(int64_t(a.draw)); return;
    case Value::kObject: out.add("object"); return;
  }
}

void add_call(Text& out, const IrNode& n) {
  const OpSchema& s = *n.op->schema;
  out.add(s.name).add("(");
  for (int64_t i = 0; i < n.args.size(); i++) {
    out.add(i ? ", " : "").add(s.args[i].name).add("=");
    add_arg(out, n.args[i], s.args[i].type);
  }
  out.add(")");
}

void add_scope(Text& out, const Graph& g, int32_t scope) {
  if (scope < 0) return;
  SmallVec<int32_t, 8> path;
  for (int32_t s = scope; s >= 0; s = g.scopes[s].outer) path.push_back(s);
  for (int64_t i = path.size(); i-- > 0;) out.add(g.scopes[path[i]].name.span()).add(i ? "/" : "");
}

// Whether the value is no node's: one from outside, and none that an edit has removed.
bool is_from_outside(const Graph& g, const IrValue& v) {
  return v.node < 0 && g.storages[v.storage].role != IrRole::kMade;
}

}  // namespace

void print_graph(const Graph& g, Text& out) {
  for (int64_t i = 0; i < g.values.size(); i++) {
    const IrValue& v = g.values[i];
    if (!is_from_outside(g, v)) continue;
    const IrStorage& s = g.storages[v.storage];
    add_value(out, int32_t(i));
    out.add(" ");
    add_type(out, v);
    out.add(" = ").add(role_name(s.role)).add(" ").add(int64_t(v.storage));
    if (!s.name.empty()) out.add(" ").add(s.name.span());
    out.add("\n");
  }
  for (const IrNode& n : g.nodes) {
    for (int64_t k = 0; k < n.outs.size(); k++) {
      out.add(k ? ", " : "");
      add_value(out, n.outs[k]);
      if (n.outs[k] < 0) continue;
      out.add(" ");
      add_type(out, g.values[n.outs[k]]);
      if (is_view_out(g, n, k)) out.add(" view");
      if (k >= n.n_results) out.add(" written");
    }
    out.add(n.outs.empty() ? "" : " = ");
    add_call(out, n);
    if (n.scope >= 0) {
      out.add("  # ");
      add_scope(out, g, n.scope);
    }
    out.add("\n");
  }
  out.add("return ");
  add_values(out, g.outputs);
  out.add("\n");
}

// Adds the node that an edge from v begins at: what computes it, or the value itself.
static void add_dot_source(Text& out, const Graph& g, int32_t v) {
  const int32_t from = g.values[v].node;
  if (from < 0) out.add("  v").add(v);
  else out.add("  n").add(from);
}

void print_graph_dot(const Graph& g, Text& out) {
  out.add("digraph graph_of_tt {\n  node [shape=box, fontname=monospace];\n");
  for (int64_t i = 0; i < g.values.size(); i++) {
    const IrValue& v = g.values[i];
    if (!is_from_outside(g, v)) continue;
    out.add("  v").add(i).add(" [shape=ellipse, label=\"");
    out.add(role_name(g.storages[v.storage].role)).add("\\n");
    add_type(out, v);
    out.add("\"];\n");
  }
  for (int64_t i = 0; i < g.nodes.size(); i++) {
    const IrNode& n = g.nodes[i];
    out.add("  n").add(i).add(" [label=\"").add(n.op->name());
    for (const int32_t v : n.outs) {
      if (v < 0) continue;
      out.add("\\n");
      add_type(out, g.values[v]);
    }
    out.add("\"];\n");
    for_each_value(n, [&](int32_t v) {
      add_dot_source(out, g, v);
      out.add(" -> n").add(i).add(";\n");
    });
  }
  for (int64_t i = 0; i < g.outputs.size(); i++) {
    const int32_t v = g.outputs[i];
    out.add("  o").add(i).add(" [shape=ellipse, label=\"output ").add(i).add("\"];\n");
    add_dot_source(out, g, v);
    out.add(" -> o").add(i).add(";\n");
  }
  out.add("}\n");
}

}  // namespace TT_NS
