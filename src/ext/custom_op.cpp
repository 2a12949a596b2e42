#include "ext/custom_op.h"

#include "autograd/callback_outs.h"
#include "base/finalizer.h"
#include "core/callback.h"
#include "dispatch/op_ref.h"
#include "ext/custom_schema.h"
#include "ext/tagged_value.h"

#include <string.h>

namespace TT_NS {

// One block: this header, the arguments, the text of the schema, the names. The runtime, each node
// of backward and each node of a graph hold a reference.
struct CustomOp {
  OwnedOp owned;  // first: the others know the operator by it
  CustomOp* next;
  CustomOpDef def;
  OpSchema schema;
  OwnedNodeType node_type;
  uint32_t differentiable;
  size_t bytes;
  ArgInfo* args() { return reinterpret_cast<ArgInfo*>(this + 1); }
  static void end(OwnedOp* owned) noexcept {
    auto* op = reinterpret_cast<CustomOp*>(owned);
    owned->info.tag = 0;
    drop_and_free(op, op->bytes, op->def.drop, op->def.user);
  }
};
static CustomOp& op_of(const NodeType* type) {
  return *reinterpret_cast<CustomOp*>(reinterpret_cast<char*>(const_cast<NodeType*>(type)) -
                                      offsetof(CustomOp, node_type));
}

namespace {

using TensorPointers = SmallVec<const Tensor*, 8>;

// Returns every tensor argument, items of lists separately, NULL for absent ones. The i-th has the
// i-th gradient.
TensorPointers tensor_args(const OpSchema& s, const Value* args) {
  TensorPointers flat;
  for (int32_t i = 0; i < s.n_args; i++) {
    if (s.args[i].type <= ArgType::kOptTensor)
      flat.push_back(args[i].kind ? args[i].tensor : nullptr);
    if (s.args[i].type == ArgType::kTensorList || s.args[i].type == ArgType::kOptTensorList)
      flat.append({args[i].tensors, args[i].n});
  }
  return flat;
}

TensorList compute(CustomOp& op, const Value* args) {
  TaggedValues values;
  for (int32_t i = 0; i < op.schema.n_args; i++) values.push_back(to_tagged(args[i]));
  CallbackName what("compute", op.schema.name);
  CallbackOuts outs(op.schema.n_outs);
  MaskGuard no_grad(bit(kKeyAutograd));
  run_callback(what.text, true, [&](tt_ctx* c) {
    return op.def.compute(op.def.user, c, values.data(), values.size(), outs.data(),
                          op.schema.n_outs);
  });
  return outs.take(what.text, false);
}

struct CustomSaved {
  SavedArgs args;
  SmallVec<Saved, 2> results;
};

void custom_backward(Node& n, TensorRef* grads, TensorRef* out) {
  check_not_released(n);
  CustomOp& op = op_of(n.type);
  auto& s = n.saved_as<CustomSaved>();
  TaggedValues values;
  TensorList keep;
  s.args.get(n, values, keep);
  SmallVec<tt_tensor*, 4> results, incoming;
  for (const Saved& r : s.results) {
    keep.push_back(r.get(n));
    results.push_back(reinterpret_cast<tt_tensor*>(keep.back().get()));
  }
  for (int64_t i = 0; i < n.n_outs; i++)
    incoming.push_back(reinterpret_cast<tt_tensor*>(grads[i].get()));
  CallbackName what("backward", op.schema.name);
  CallbackOuts outs(n.n_edges);
  run_callback(what.text, true, [&](tt_ctx* c) {
    return op.def.backward(op.def.user, c, incoming.data(), n.n_outs, values.data(), values.size(),
                           results.data(), outs.data(), n.n_edges);
  });
  TensorList list = outs.take(what.text, true);
  for (int64_t i = 0; i < n.n_edges; i++) out[i] = std::move(list[i]);
}

// The results of the slots below autograd's.
TensorList compute_below(Call c, CustomOp& op, const Value* args) {
  if (!(c.keys & bit(kKeyCapture))) return compute(op, args);
  TensorList outs;
  fallback_of(kKeyCapture)({c.keys & kBelowAutograd, c.op}, args, outs);
  return outs;
}

void release_type(const NodeType* type) noexcept {
  Ref<OwnedOp>::adopt(&op_of(type).owned).reset();
}

void record(Call c, CustomOp& op, const Value* args, TensorSpan inputs, TensorList& outs) {
  NodeRef node = new_node(&op.node_type.type, inputs.n, op.schema.n_outs);
  ref_inc(&op.owned.refs);
  Node& n = as_node(node);
  auto& s = *new (n.saved()) CustomSaved;
  n.released = false;
  s.args.save({args, op.schema.n_args});
  for (int64_t i = 0; i < inputs.n; i++)
    if (needs_grad(inputs[i])) n.set_edge(i, *inputs[i]);
  TensorList results = compute_below(c, op, args);
  for (int64_t i = 0; i < results.size(); i++) {
    TensorRef t = fresh_result(std::move(results[i]), inputs);
    const bool linked = (op.differentiable >> i & 1) && is_differentiable(t->dtype);
    s.results.push_back(Saved());
    if (linked) {
      s.results.back().save_output(*t, uint32_t(i));
      set_history(node, *t, uint32_t(i));
    } else {
      s.results.back().save(*t);
    }
    outs.push_back(std::move(t));
  }
}

// OpInfo::call_boxed of all custom operators, which have no typed slots.
void call_custom(Call c, const Value* args, TensorList& outs) {
  const int key = top_bit(c.keys);
  if (key > kKeyAutograd || key == kKeyCapture) return fallback_of(key)(c, args, outs);
  auto& op = *reinterpret_cast<CustomOp*>(const_cast<OpInfo*>(c.op));
  TensorPointers inputs = tensor_args(op.schema, args);
  bool recording = key == kKeyAutograd && op.def.backward && op.schema.n_outs > 0;
  if (recording) recording = needs_grad(TensorSpan(inputs));
  if (recording) return record(c, op, args, inputs, outs);
  for (TensorRef& t : compute_below(c, op, args))
    outs.push_back(key == kKeyAutograd ? fresh_result(std::move(t), inputs) : std::move(t));
}

// ---- registration ----

struct DropOnce {
  const CustomOpDef* def;
  ~DropOnce() {
    if (def) run_drop(def->drop, def->user);
  }
};

CustomOp* make_custom_op(const CustomOpDef& def) {
  DropOnce drop{&def};
  const size_t text_bytes = strlen(def.schema) + 1;
  const size_t args_bytes = size_t(max_schema_args(def.schema)) * sizeof(ArgInfo);
  const size_t bytes = sizeof(CustomOp) + args_bytes + 2 * text_bytes;
  auto* op = static_cast<CustomOp*>(mem_alloc(bytes));
  memset(static_cast<void*>(op), 0, bytes);
  op->owned.refs = 1;
  op->owned.end = CustomOp::end;
  op->def = def;
  op->bytes = bytes;
  drop.def = nullptr;
  auto ref = Ref<OwnedOp>::adopt(&op->owned);
  char* text = reinterpret_cast<char*>(op->args()) + args_bytes;
  memcpy(text, def.schema, text_bytes);
  ParsedSchema parsed{text + text_bytes, op->args(), nullptr, 0, 0, 0};
  parse_schema(text, parsed);
  op->differentiable = parsed.differentiable;
  op->owned.text = text;
  op->schema = {.name = parsed.name,
                .call = parsed.name,
                .args = op->args(),
                .n_args = uint8_t(parsed.n_args),
                .n_outs = int8_t(parsed.n_outs),
                .differentiable = def.backward != nullptr,
                .leaf = true,
                .custom = true,
                .wide_unsigned = WideUnsigned::kMoves};  // the application looks at dtypes
  op->owned.info = {.tag = kTagOp,
                    .mask = kBackendKeys | bit(kKeyAutograd) | kModeKeys,
                    .schema = &op->schema,
                    .call_boxed = call_custom};
  op->node_type = {.type = {.name = parsed.name,
                            .apply = custom_backward,
                            .destroy_saved = destroy_saved<CustomSaved>,
                            .saved_bytes = sizeof(CustomSaved),
                            .takes_undefined = false,
                            .owned = true},
                   .release = release_type};
  ref.leak();
  return op;
}

CustomOp* find_locked(Runtime* rt, const char* name) noexcept {
  for (CustomOp* op = rt->custom_ops; op; op = op->next)
    if (!strcmp(op->schema.name, name)) return op;
  return nullptr;
}

void destroy_list(CustomOp* op) noexcept {
  while (op) {
    CustomOp* next = op->next;
    Ref<OwnedOp>::adopt(&op->owned).reset();
    op = next;
  }
}

}  // namespace

void register_custom_op(Runtime* rt, const CustomOpDef& def,
                        const OpInfo* (*builtin)(const char* name)) {
  CustomOp* const op = make_custom_op(def);
  auto ref = Ref<OwnedOp>::adopt(&op->owned);
  atomic_store(&destroy_custom_ops, &destroy_list, kRelaxed);
  Lock lock(*rt->mutex);
  if (builtin(op->schema.name) || find_locked(rt, op->schema.name))
    fail_arg(TT_INVALID_ARG, "schema", "the operator \"{}\" already exists", op->schema.name);
  op->next = rt->custom_ops;
  rt->custom_ops = op;
  ref.leak();
}

const OpInfo* find_custom_op(Runtime* rt, const char* name) noexcept {
  Lock lock(*rt->mutex);
  CustomOp* op = find_locked(rt, name);
  return op ? &op->owned.info : nullptr;
}

}  // namespace TT_NS
