// Captured graphs.
#include "capi/graph/graph.h"
#include "graph/capture.h"
#include "graph/passes/passes.h"
#include "graph/plan/plan.h"

#include <string.h>

using namespace TT_NS;

static_assert(TT_GRAPH_INPUT == int32_t(IrRole::kInput));
static_assert(TT_GRAPH_MADE == int32_t(IrRole::kMade));

template <class List>
static auto& item_arg(const List& list, int64_t i, const char* arg, const char* what) {
  if (i < 0 || i >= list.size())
    fail_arg(TT_INVALID_ARG, arg, "{} is {}: the graph has {} {}", arg, i, list.size(), what);
  return list[i];
}

tt_status tt_capture_begin(tt_ctx* h, const tt_tensor* const* inputs, int64_t n,
                           const tt_capture_opts* opts) {
  return api_call(h, "capture_begin", [&](Ctx&) {
    const TensorSpan list = tensors_arg(inputs, n, "inputs", 1, false);
    check_opts(opts, 2);
    CaptureOptions o;
    o.allow_reads = opts_has(opts, 0) && opts->allow_reads;
    o.deferred = opts_has(opts, 1) && opts->deferred;
    begin_capture(list, o);
  });
}
tt_status tt_capture_end(tt_ctx* h, const tt_tensor* const* outputs, int64_t n, tt_graph** out) {
  if (out) *out = nullptr;
  return api_call(h, "capture_end", [&](Ctx& c) {
    struct End {
      Ctx& c;
      ~End() { drop_capture(c); }
    } end{c};
    const TensorSpan list = tensors_arg(outputs, n, "outputs", 1, false);
    out_arg(out, "out", 3);
    *out = reinterpret_cast<tt_graph*>(end_capture(list).leak());
  });
}
tt_status tt_capture_drop(tt_ctx* h) {
  return api_call(h, "capture_drop", [](Ctx& c) { drop_capture(c); });
}

// ---- reading ----

tt_status tt_graph_get_info(tt_ctx* h, const tt_graph* handle, tt_graph_info* out) {
  if (out) *out = tt_graph_info{};
  return api_call(h, "graph_get_info", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    out_arg(out, "out", 2);
    *out = {.n_nodes = g.nodes.size(),
            .n_values = g.values.size(),
            .n_storages = g.storages.size(),
            .n_inputs = g.inputs.size(),
            .n_outputs = g.outputs.size(),
            .inputs = g.inputs.data(),
            .outputs = g.outputs.data()};
  });
}

tt_status tt_graph_get_node(tt_ctx* h, const tt_graph* handle, int64_t i, tt_graph_node* out) {
  if (out) *out = tt_graph_node{};
  return api_call(h, "graph_get_node", [&](Ctx&) {
    out_arg(out, "out", 3);
    const Graph& g = graph_arg(handle);
    const IrNode& n = item_arg(g.nodes, i, "i", "nodes");
    *out = {.op = reinterpret_cast<const tt_op*>(n.op.get()),
            .name = n.op->name(),
            .schema = schema_text(*n.op),
            .n_args = n.args.size(),
            .n_outs = n.outs.size(),
            .n_results = n.n_results,
            .outs = n.outs.data(),
            .scope = n.scope < 0 ? nullptr : g.scopes[n.scope].name.c_str()};
  });
}

// TT_VAL_… by Value::Kind.
static constexpr int32_t kTags[] = {
    TT_VAL_NONE,   TT_VAL_TENSOR, TT_VAL_TENSORS,    TT_VAL_SCALAR, TT_VAL_INT,
    TT_VAL_FLOAT,  TT_VAL_BOOL,   TT_VAL_INTS,       TT_VAL_STR,    TT_VAL_GENERATOR,
    TT_VAL_DEVICE, TT_VAL_INDEX,  TT_VAL_GRAPH_DRAW, TT_VAL_NONE};
static_assert(kTags[Value::kRng] == TT_VAL_GRAPH_DRAW);

static tt_graph_arg described(const IrArg& a, const char* name) {
  tt_graph_arg out{};
  out.name = name;
  out.tag = kTags[a.kind];
  out.n_values = a.values.size();
  out.values = a.values.data();
  out.i = a.kind == Value::kRng ? a.draw : a.i;
  out.f = a.f;
  out.scalar = a.scalar;
  if (a.kind == Value::kDevice) out.device = {int8_t(a.i >> 8), int8_t(a.i & 0xff)};
  if (a.kind == Value::kInts) out.n = a.ints.size();
  if (a.kind == Value::kStr) out.n = a.text.size();
  if (a.kind == Value::kIndices) out.n = a.index.size();
  out.ints = a.ints.data();
  out.str = a.text.c_str();
  out.index = a.index.data();
  return out;
}
tt_status tt_graph_get_arg(tt_ctx* h, const tt_graph* handle, int64_t node, int64_t i,
                           tt_graph_arg* out) {
  if (out) *out = tt_graph_arg{};
  return api_call(h, "graph_get_arg", [&](Ctx&) {
    out_arg(out, "out", 4);
    const IrNode& n = item_arg(graph_arg(handle).nodes, node, "node", "nodes");
    const IrArg& a = item_arg(n.args, i, "i", "arguments of this node");
    *out = described(a, n.op->schema->args[i].name);
  });
}

tt_status tt_graph_get_value(tt_ctx* h, const tt_graph* handle, int64_t i, tt_graph_value* out) {
  if (out) *out = tt_graph_value{};
  return api_call(h, "graph_get_value", [&](Ctx&) {
    out_arg(out, "out", 3);
    const IrValue& v = item_arg(graph_arg(handle).values, i, "i", "values");
    *out = {.storage = v.storage,
            .version = v.version,
            .node = v.node,
            .out = v.out,
            .offset = v.offset,
            .ndim = v.ndim(),
            .sizes = v.sizes.data(),
            .strides = v.strides.data(),
            .dtype = tt_dtype(v.dtype),
            .pad = 0};
  });
}

tt_status tt_graph_get_storage(tt_ctx* h, const tt_graph* handle, int64_t i,
                               tt_graph_storage* out) {
  if (out) *out = tt_graph_storage{};
  return api_call(h, "graph_get_storage", [&](Ctx&) {
    out_arg(out, "out", 3);
    const IrStorage& s = item_arg(graph_arg(handle).storages, i, "i", "storages");
    *out = {.role = int32_t(s.role),
            .pad = 0,
            .bytes = s.bytes,
            .device = {s.device.type, s.device.index},
            .tensor = handle_of(s.tensor.get())};
  });
}

// ---- text ----

static tt_status write_text(tt_ctx* h, const char* call, const tt_graph* handle, char* buffer,
                            int64_t cap, int64_t* n, void (*print)(const Graph&, Text&)) {
  return text_call(h, call, buffer, cap, n, [&](Text& text) { print(graph_arg(handle), text); });
}
tt_status tt_graph_print(tt_ctx* h, const tt_graph* g, char* buffer, int64_t cap, int64_t* n) {
  return write_text(h, "graph_print", g, buffer, cap, n, print_graph);
}
tt_status tt_graph_dot(tt_ctx* h, const tt_graph* g, char* buffer, int64_t cap, int64_t* n) {
  return write_text(h, "graph_dot", g, buffer, cap, n, print_graph_dot);
}

void tt_graph_retain(tt_graph* h) {
  if (Graph* g = graph_of(h)) ref_inc_external(&g->refs);
}
void tt_graph_release(tt_graph* h) {
  if (Graph* g = graph_of(h)) Ref<Graph>::adopt(g).reset();
}

// ---- optimizing ----

static_assert(TT_PASS_DCE == kPassDce && TT_PASS_CSE == kPassCse);
static_assert(TT_PASS_FOLD == kPassFold && TT_PASS_NORM == kPassNormIntoConv);
static_assert(TT_PASS_POOL == kPassPoolBeforeRelu && TT_PASS_SLICES == kPassJoinSlices);
static_assert(TT_PASS_EPILOGUES == kPassEpilogues);

tt_status tt_graph_optimize(tt_ctx* h, const tt_graph* handle, const tt_graph_optimize_opts* opts,
                            tt_graph** out) {
  if (out) *out = nullptr;
  return api_call(h, "graph_optimize", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    check_opts(opts, 1);
    out_arg(out, "out", 3);
    const uint64_t passes = opts_has(opts, 0) ? opts->passes : kExactPasses;
    if (passes & ~kAllPasses)
      fail_arg(TT_INVALID_ARG, "passes", "passes is {}: has bits that name no pass", passes);
    *out = reinterpret_cast<tt_graph*>(optimized(g, passes).leak());
  });
}

// ---- plans ----

static Plan* plan_of(const tt_plan* h) {
  auto* p = reinterpret_cast<Plan*>(const_cast<tt_plan*>(h));
  return p && p->tag == kTagPlan ? p : nullptr;
}
static Plan& plan_arg(const tt_plan* h) {
  if (!plan_of(h)) fail_handle(h, "p", 1, "plan");
  return *plan_of(h);
}

tt_status tt_graph_arena_bytes(tt_ctx* h, const tt_graph* handle, int64_t* out) {
  if (out) *out = 0;
  return api_call(h, "graph_arena_bytes", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    out_arg(out, "out", 2);
    *out = needed_arena(Ref<Graph>::share(&g));
  });
}
tt_status tt_plan_new(tt_ctx* h, const tt_graph* handle, const tt_plan_opts* opts, tt_plan** out) {
  if (out) *out = nullptr;
  return api_call(h, "plan_new", [&](Ctx&) {
    const Graph& g = graph_arg(handle);
    check_opts(opts, 2);
    out_arg(out, "out", 3);
    void* arena = opts_has(opts, 0) ? opts->arena : nullptr;
    const int64_t bytes = opts_has(opts, 1) ? opts->arena_bytes : 0;
    *out = reinterpret_cast<tt_plan*>(new_plan(Ref<Graph>::share(&g), arena, bytes).leak());
  });
}
tt_status tt_plan_slot(tt_ctx* h, tt_plan* handle, int32_t output, int64_t i, tt_tensor** out) {
  clear_out(out);
  return api_call(h, "plan_slot", [&](Ctx& c) {
    Plan& p = plan_arg(handle);
    out_arg(out, "out", 4);
    give(c, out, plan_slot(p, output != 0, i));
  });
}
tt_status tt_plan_run(tt_ctx* h, tt_plan* p) {
  return api_call(h, "plan_run", [&](Ctx&) { run_plan(plan_arg(p), -1); });
}
tt_status tt_plan_run_for(tt_ctx* h, tt_plan* handle, int64_t ns, int32_t* done) {
  if (done) *done = 0;
  return api_call(h, "plan_run_for", [&](Ctx&) {
    Plan& p = plan_arg(handle);
    out_arg(done, "done", 3);
    *done = run_plan(p, ns < 0 ? 0 : ns);
  });
}
void tt_plan_retain(tt_plan* h) {
  if (Plan* p = plan_of(h)) ref_inc_external(&p->refs);
}
void tt_plan_release(tt_plan* h) {
  if (Plan* p = plan_of(h)) Ref<Plan>::adopt(p).reset();
}
