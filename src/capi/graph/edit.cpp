// Edits of graphs.
#include "graph/edit.h"

#include "capi/graph/graph.h"
#include "graph/arg_check.h"
#include "graph/resize.h"
#include "graph/rewrite.h"
#include "optim/captured.h"

using namespace TT_NS;

// The caller has checked the handle.
static Graph& editable(tt_graph* h) {
  Graph& g = *graph_of(h);
  if (atomic_load(&g.refs, kAcquire) != 1)
    fail_arg(TT_INVALID_ARG, "g", "something else holds the graph, such as a plan: edit a copy");
  return g;
}

tt_status tt_graph_copy(tt_ctx* h, const tt_graph* handle, tt_graph** out) {
  if (out) *out = nullptr;
  return api_call(h, "graph_copy", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    out_arg(out, "out", 2);
    *out = reinterpret_cast<tt_graph*>(copy_graph(g).leak());
  });
}

// Copies a list to an array of the application; *n gets its length.
template <class T, int N> static void give_list(const SmallVec<T, N>& list, T* to, int64_t cap,
                                                int64_t* n, const char* name) {
  *n = list.size();
  if (*n > (to ? cap : 0))
    fail_arg(TT_BUFFER_TOO_SMALL, name, "{} has room for {}, there are {}", name, to ? cap : 0, *n);
  for (int64_t i = 0; i < *n; i++) to[i] = list[i];
}

tt_status tt_graph_resize(tt_ctx* h, const tt_graph* handle, const tt_graph* other_handle,
                          int64_t size, tt_graph** out) {
  if (out) *out = nullptr;
  return api_call(h, "graph_resize", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    const Graph& other = graph_arg(other_handle, "other", 2);
    out_arg(out, "out", 4);
    const Graph* const both[] = {&g, &other};
    *out = reinterpret_cast<tt_graph*>(resize_graph(both, Ints(&size, 1), is_same_step).leak());
  });
}

tt_status tt_graph_users(tt_ctx* h, const tt_graph* handle, int32_t value, int64_t* nodes,
                         int64_t cap, int64_t* n) {
  if (n) *n = 0;
  return api_call(h, "graph_users", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    if (cap > 0 && !nodes) fail_null("nodes", 3);
    out_arg(n, "n", 5);
    if (value < 0 || value >= g.values.size())
      fail_arg(TT_INVALID_ARG, "value", "value is {}: the graph has {} values", value,
               g.values.size());
    SmallVec<int64_t, 8> users;
    for (int64_t i = 0; i < g.nodes.size(); i++) {
      bool reads = false;
      for_each_value(g.nodes[i], [&](int32_t v) { reads |= v == value; });
      if (reads) users.push_back(i);
    }
    give_list(users, nodes, cap, n, "nodes");
  });
}

// ---- arguments ----

namespace {

bool is_scalar(ArgType t) { return t == ArgType::kScalar || t == ArgType::kOptScalar; }
bool is_float(ArgType t) { return t == ArgType::kFloat || t == ArgType::kOptFloat; }

void set_default(const ArgInfo& info, IrArg& a) {
  Scalar s;
  switch (info.fallback) {
    case ArgDefault::kNone:
      if (info.type == ArgType::kDevice) a.kind = Value::kDevice;
      if (info.type == ArgType::kDevice) a.i = int64_t(TT_CPU) << 8;
      return;
    case ArgDefault::kInt: s = Scalar(info.value.i); break;
    case ArgDefault::kFloat: s = Scalar(info.value.f); break;
    case ArgDefault::kBool: s = Scalar(info.value.i != 0); break;
  }
  a.scalar = s;
  a.i = s.i;
  a.f = s.real();
  a.kind = info.fallback == ArgDefault::kBool ? Value::kBool : Value::kInt;
  if (is_float(info.type)) a.kind = Value::kFloat;
  if (is_scalar(info.type)) a.kind = Value::kScalar;
}

void set_number(const ArgInfo& info, const tt_graph_arg& from, IrArg& a) {
  Scalar s;
  if (from.tag == TT_VAL_SCALAR) s = scalar_arg(&from.scalar, info.name, -1);
  if (from.tag == TT_VAL_INT) s = Scalar(from.i);
  if (from.tag == TT_VAL_FLOAT) s = Scalar(from.f);
  if (from.tag == TT_VAL_BOOL) s = Scalar(from.i != 0);
  a.scalar = s;
  a.i = s.i;
  a.f = s.real();
  if (is_scalar(info.type)) a.kind = Value::kScalar;
  else if (is_float(info.type) && !s.is_complex()) a.kind = Value::kFloat;
  else if (s.is_bool()) a.kind = Value::kBool;
  else a.kind = s.is_int() ? Value::kInt : Value::kScalar;
}

template <class T> Span<const T> items(const T* list, int64_t n, const char* name) {
  if (n < 0 || (n && !list))
    fail_arg(TT_INVALID_ARG, name, "{} has {} items at {}", name, n, list ? "an address" : "NULL");
  return {list, n};
}

IrArg to_arg(const ArgInfo& info, const tt_graph_arg* given) {
  IrArg a;
  if (!given || given->tag == TT_VAL_NONE) {
    set_default(info, a);
    return a;
  }
  const tt_graph_arg& from = *given;
  switch (from.tag) {
    case TT_VAL_TENSOR:
    case TT_VAL_TENSORS:
      a.kind = from.tag == TT_VAL_TENSOR ? Value::kTensor : Value::kTensorList;
      a.values.append(items(from.values, from.n_values, info.name));
      break;
    case TT_VAL_SCALAR:
    case TT_VAL_INT:
    case TT_VAL_FLOAT:
    case TT_VAL_BOOL: set_number(info, from, a); break;
    case TT_VAL_INTS:
      a.kind = Value::kInts;
      a.ints.append(items(from.ints, from.n, info.name));
      break;
    case TT_VAL_STR:
      a.kind = Value::kStr;
      a.text.add(items(from.str, from.n, info.name));
      break;
    case TT_VAL_DEVICE: {
      const Device d = device_arg(&from.device, info.name, -1);
      a.kind = Value::kDevice;
      a.i = (int64_t(d.type) << 8) | uint8_t(d.index);
      break;
    }
    case TT_VAL_INDEX:
      a.kind = Value::kIndices;
      a.index.append(items(from.index, from.n, info.name));
      a.values.append(items(from.values, from.n_values, info.name));
      break;
    default: fail_arg(TT_INVALID_ARG, info.name, "{} has a tag that is none", info.name);
  }
  return a;
}

void check_arg(const Graph& g, const ArgInfo& info, const IrArg& a) {
  if (a.kind == Value::kTensor && a.values.size() != 1)
    fail_arg(TT_INVALID_ARG, info.name, "{} has {} values: a tensor is one", info.name,
             a.values.size());
  for (const int32_t v : a.values)
    if (v < -1 || v >= g.values.size())
      fail_arg(TT_INVALID_ARG, info.name, "{} is value {}: the graph has {} values", info.name, v,
               g.values.size());
  int64_t tensors = 0;
  for (const tt_index& at : a.index) {
    if (at.kind < TT_IDX_INT || at.kind > TT_IDX_TENSOR)
      fail_arg(TT_INVALID_ARG, info.name, "{} has an index of kind {}", info.name, at.kind);
    tensors += at.kind == TT_IDX_TENSOR;
  }
  if (a.kind == Value::kIndices && tensors != a.values.size())
    fail_arg(TT_INVALID_ARG, info.name, "{} has {} tensors and {} values", info.name, tensors,
             a.values.size());
  if (const char* why = why_not(info, a, is_enum_value))
    fail_arg(TT_INVALID_ARG, info.name, "{}: {}", info.name, why);
}

}  // namespace

tt_status tt_graph_insert(tt_ctx* h, tt_graph* handle, int64_t before, const tt_op* op_handle,
                          const tt_graph_arg* args, int64_t n_args, int32_t* outs, int64_t cap,
                          int64_t* n) {
  if (n) *n = 0;
  return api_call(h, "graph_insert", [&](Ctx&) {
    graph_arg(handle);
    const auto* op = reinterpret_cast<const OpInfo*>(op_handle);
    if (!op || op->tag != kTagOp) fail_handle(op, "op", 3, "operator");
    if (n_args > 0 && !args) fail_null("args", 4);
    if (cap > 0 && !outs) fail_null("outs", 6);
    out_arg(n, "n", 8);
    Graph& g = editable(handle);
    if (before < 0 || before > g.nodes.size())
      fail_arg(TT_INVALID_ARG, "before", "before is {}: the graph has {} nodes", before,
               g.nodes.size());
    const OpSchema& schema = *op->schema;
    if (n_args < 0 || n_args > schema.n_args)
      fail_arg(TT_INVALID_ARG, "args", "there are {} arguments: {} takes at most {}", n_args,
               op->name(), schema.n_args);
    if (schema.n_outs > (outs ? cap : 0))
      fail_arg(TT_BUFFER_TOO_SMALL, "outs", "outs has room for {}, there are {}", outs ? cap : 0,
               schema.n_outs);
    SmallVec<IrArg, 4> list;
    for (int32_t i = 0; i < schema.n_args; i++) {
      list.push_back(to_arg(schema.args[i], i < n_args ? &args[i] : nullptr));
      check_arg(g, schema.args[i], list[i]);
    }
    SmallVec<int32_t, 4> made;
    const Ref<Graph> edited = copy_graph(g);
    insert_node(*edited, before, *op, list, made);
    give_list(made, outs, cap, n, "outs");
    become(g, *edited);
  });
}

tt_status tt_graph_replace_uses(tt_ctx* h, tt_graph* g, int32_t value, int32_t with) {
  return api_call(h, "graph_replace_uses", [&](Ctx&) {
    graph_arg(g);
    replace_uses(editable(g), value, with);
  });
}
tt_status tt_graph_remove(tt_ctx* h, tt_graph* handle, int64_t node) {
  return api_call(h, "graph_remove", [&](Ctx&) {
    graph_arg(handle);
    Graph& g = editable(handle);
    if (node < 0 || node >= g.nodes.size())
      fail_arg(TT_INVALID_ARG, "node", "node is {}: the graph has {} nodes", node, g.nodes.size());
    remove_node(g, node);
  });
}
tt_status tt_graph_set_outputs(tt_ctx* h, tt_graph* handle, const int32_t* outputs, int64_t n) {
  return api_call(h, "graph_set_outputs", [&](Ctx&) {
    graph_arg(handle);
    if (n < 0 || (n && !outputs)) fail_null("outputs", 2);
    set_outputs(editable(handle), {outputs, n});
  });
}
