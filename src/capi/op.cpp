// Operators by name: every built-in variant and the runtime's custom operators, called with tagged
// values.
#include "base/finalizer.h"
#include "capi/api.h"
#include "dispatch/all_ops.h"
#include "dispatch/call.h"
#include "ext/custom_op.h"
#include "ops/gen/ops.h"
#include "tt.h"

#include <string.h>

using namespace TT_NS;

// ---- lookup ----

// Internal operators have no name outside, but for the elementwise ones whose functions are chosen
// by a number (bessel, orthogonal_polynomial): bindings name these functions. They also call
// check_holds, which a capture records.
static bool has_name(const OpSchema& s) {
  if (!s.internal || &s == op_check_holds.info.schema) return true;
  return s.kind == OpKind::kElementwise && s.n_args > 1 && s.args[1].type == ArgType::kInt;
}
static const OpInfo* find_builtin(const char* name) {
  int64_t lo = 0;
  int64_t hi = num_all_ops;
  while (lo < hi) {
    int64_t mid = (lo + hi) / 2;
    int order = strcmp(all_ops[mid]->name(), name);
    if (order == 0) return has_name(*all_ops[mid]->schema) ? all_ops[mid] : nullptr;
    if (order < 0) lo = mid + 1;
    else hi = mid;
  }
  return nullptr;
}

tt_status tt_op_find(tt_ctx* h, const char* name, const tt_op** out) {
  if (out) *out = nullptr;
  return api_call(h, "op_find", [&](Ctx& c) {
    out_arg(out, "out", 2);
    if (!name) fail_arg(TT_INVALID_ARG, "name", "name is NULL: must be an operator's name");
    const OpInfo* op = find_builtin(name);
    if (!op) op = find_custom_op(c.rt, name);
    if (!op) fail_arg(TT_NOT_IMPLEMENTED, "name", "there is no operator \"{}\"", name);
    *out = reinterpret_cast<const tt_op*>(op);
  });
}

static const OpInfo* live_op(const tt_op* h) {
  auto* op = reinterpret_cast<const OpInfo*>(h);
  return op && op->tag == kTagOp ? op : nullptr;
}
const char* tt_op_name(const tt_op* h) {
  const OpInfo* op = live_op(h);
  return op ? op->name() : nullptr;
}
const char* tt_op_schema(const tt_op* h) {
  const OpInfo* op = live_op(h);
  return op ? schema_text(*op) : nullptr;
}

// ---- arguments ----

namespace {

// Storage that the boxed value of one argument may point to.
struct Slot {
  Value value;
  Scalar scalar;
  int64_t one;  // a list of one integer
};

[[noreturn]] TT_COLD void fail_tag(const ArgInfo& a, int32_t tag, const char* want) {
  constexpr const char* kTags[] = {"absent",      "a tensor",           "a list of tensors",
                                   "a scalar",    "an integer",         "a float",
                                   "a bool",      "a list of integers", "a string",
                                   "a generator", "a device",           "a mixed index"};
  fail_arg(TT_INVALID_ARG, a.name, "{} is {}: must be {}", a.name,
           tag >= 0 && tag <= TT_VAL_INDEX ? kTags[tag] : "of an unknown kind", want);
}

void set_default(Slot& s, const ArgInfo& a) {
  const ArgValue d = a.value;
  const bool scalar = a.type == ArgType::kScalar || a.type == ArgType::kOptScalar;
  switch (a.fallback) {
    case ArgDefault::kNone: s.value = Value(); return;
    case ArgDefault::kInt:
      s.scalar = Scalar(d.i);
      s.value = to_value(d.i);
      break;
    case ArgDefault::kFloat:
      s.scalar = Scalar(d.f);
      s.value = to_value(d.f);
      break;
    case ArgDefault::kBool:
      s.scalar = Scalar(d.i != 0);
      s.value = to_value(d.i != 0);
      break;
  }
  if (scalar) s.value = to_value(s.scalar);
  if (a.type == ArgType::kFloat || a.type == ArgType::kOptFloat)
    s.value = to_value(s.scalar.real());
}

bool is_optional(ArgType t) {
  return t == ArgType::kOptTensor || t == ArgType::kOptScalar || t == ArgType::kOptFloat ||
         t == ArgType::kOptInt || t == ArgType::kOptBool || t == ArgType::kOptDim ||
         t == ArgType::kOptDims || t == ArgType::kGenerator;
}

void set_scalar(Slot& s, const ArgInfo& a, const tt_value& v, int32_t index) {
  switch (v.tag) {
    case TT_VAL_SCALAR: s.scalar = scalar_arg(&v.scalar, a.name, index); break;
    case TT_VAL_INT: s.scalar = Scalar(v.i); break;
    case TT_VAL_FLOAT: s.scalar = Scalar(v.f); break;
    case TT_VAL_BOOL: s.scalar = Scalar(v.i != 0); break;
    default: fail_tag(a, v.tag, "a number");
  }
  s.value = to_value(s.scalar);
}

void set_float(Slot& s, const ArgInfo& a, const tt_value& v, int32_t index) {
  if (v.tag == TT_VAL_SCALAR && scalar_arg(&v.scalar, a.name, index).is_complex())
    fail_tag(a, v.tag, "a real number");
  if (v.tag == TT_VAL_FLOAT) s.value = to_value(v.f);
  else if (v.tag == TT_VAL_INT) s.value = to_value(double(v.i));
  else if (v.tag == TT_VAL_SCALAR) s.value = to_value(scalar_arg(&v.scalar, a.name, index).real());
  else fail_tag(a, v.tag, "a number");
}

void need(const ArgInfo& a, const tt_value& v, int32_t tag, const char* want) {
  if (v.tag != tag) fail_tag(a, v.tag, want);
}

void set_ints(Slot& s, const ArgInfo& a, const tt_value& v, int32_t index) {
  if (v.tag != TT_VAL_INT) need(a, v, TT_VAL_INTS, "a list of integers");
  s.one = v.i;
  s.value = to_value(v.tag == TT_VAL_INT ? Ints(&s.one, 1) : ints_arg(v.ints, v.n, a.name, index));
}

void set_str(Slot& s, const ArgInfo& a, const tt_value& v) {
  need(a, v, TT_VAL_STR, "a string");
  if (v.n < 0 || (v.n && !v.str))
    fail_arg(TT_INVALID_ARG, a.name, "{} has {} bytes at {}", a.name, v.n,
             v.str ? "its address" : "NULL");
  s.value = to_value(Str(v.str, v.n));
}

// Returns a bool, integer or float scalar as such.
tt_value plain_number(tt_value v) {
  if (v.tag != TT_VAL_SCALAR) return v;
  switch (v.scalar.kind) {
    case TT_SCALAR_BOOL:
      v.tag = TT_VAL_BOOL;
      v.i = v.scalar.i;
      break;
    case TT_SCALAR_INT:
      v.tag = TT_VAL_INT;
      v.i = v.scalar.i;
      break;
    case TT_SCALAR_FLOAT:
      v.tag = TT_VAL_FLOAT;
      v.f = v.scalar.re;
      break;
  }
  return v;
}

void set_value(Slot& s, const ArgInfo& a, const tt_value& v, int32_t i) {
  switch (a.type) {
    case ArgType::kTensor:
      need(a, v, TT_VAL_TENSOR, "a tensor");
      s.value = to_value(tensor_arg(v.tensor, a.name, i));
      return;
    case ArgType::kOptTensor:
      need(a, v, TT_VAL_TENSOR, "a tensor");
      s.value = to_value(optional_arg(v.tensor, a.name, i));
      return;
    case ArgType::kTensorList:
    case ArgType::kOptTensorList:
      need(a, v, TT_VAL_TENSORS, "a list of tensors");
      s.value = to_value(tensors_arg(v.tensors, v.n, a.name, i, a.type == ArgType::kOptTensorList));
      return;
    case ArgType::kScalar:
    case ArgType::kOptScalar: return set_scalar(s, a, v, i);
    case ArgType::kFloat:
    case ArgType::kOptFloat: return set_float(s, a, v, i);
    case ArgType::kBool:
    case ArgType::kOptBool:
      need(a, v, TT_VAL_BOOL, "a bool");
      s.value = to_value(v.i != 0);
      return;
    case ArgType::kDims:
    case ArgType::kOptDims:
    case ArgType::kSize:
    case ArgType::kShape: return set_ints(s, a, v, i);
    case ArgType::kIndices:
      need(a, v, TT_VAL_INDEX, "a mixed index");
      s.value = to_value(indices_arg(v.index, v.n, a.name, i));
      return;
    case ArgType::kDtype:
      need(a, v, TT_VAL_INT, "a dtype, as an integer");
      s.value = to_value(dtype_arg(v.i >= 0 && v.i <= TT_U64 ? tt_dtype(v.i) : -1, a.name, i));
      return;
    case ArgType::kDevice:
      need(a, v, TT_VAL_DEVICE, "a device");
      s.value = to_value(device_arg(&v.device, a.name, i));
      return;
    case ArgType::kGenerator:
      need(a, v, TT_VAL_GENERATOR, "a generator");
      s.value = to_value(generator_arg(v.generator, a.name, i));
      return;
    case ArgType::kStr: return set_str(s, a, v);
    case ArgType::kEnum:
      need(a, v, TT_VAL_INT, "an integer");
      s.value = to_value(enum_arg(v.i, a.name, i, a.enumeration));
      return;
    case ArgType::kObject:
      fail_arg(TT_INTERNAL, a.name, "{} is internal, applications cannot pass it", a.name);
    case ArgType::kRng:
      fail_arg(TT_INTERNAL, a.name, "{} is random state, which applications cannot pass", a.name);
    default:  // kInt, kDim, kIndex, kMemoryFormat and their optional forms
      need(a, v, TT_VAL_INT, "an integer");
      s.value = to_value(v.i);
  }
}

KeySet keys_of_value(const Value& v) {
  switch (v.kind) {
    case Value::kTensor: return keys_of(v.tensor);
    case Value::kTensorList: return keys_of(TensorSpan(v.tensors, v.n));
    case Value::kDevice: return keys_of(Unbox<Device>::get(v));
    case Value::kIndices: return keys_of(Indices(v.indices, v.n));
    default: return 0;
  }
}

using Slots = SmallVec<Slot, 8>;
using Values = SmallVec<Value, 8>;

// Boxes the arguments, with defaults for missing ones. Returns the keys that they contribute.
KeySet box_args(const OpSchema& schema, const tt_value* args, int64_t n_args, Slots& slots,
                Values& values) {
  KeySet keys = 0;
  slots.resize(schema.n_args);
  for (int32_t i = 0; i < schema.n_args; i++) {
    const ArgInfo& a = schema.args[i];
    if (i < n_args && args[i].tag != TT_VAL_NONE) {
      set_value(slots[i], a, plain_number(args[i]), i);
    } else if (a.has_default || is_optional(a.type)) {
      set_default(slots[i], a);
    } else {
      fail_arg(TT_INVALID_ARG, a.name, "{} is missing: it has no default", a.name);
    }
    values.push_back(slots[i].value);
    keys |= keys_of_value(slots[i].value);
  }
  return keys;
}

// Called before the operator: an in-place operator must not run if its result does not fit.
void check_room(const OpSchema& schema, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  if (!n_outs) fail_null("n_outs", 6);
  if (schema.n_outs <= 0 || (cap >= schema.n_outs && outs)) return;
  *n_outs = schema.n_outs;
  fail_arg(TT_BUFFER_TOO_SMALL, "outs", "outs has room for {} tensors, the result has {}",
           outs ? cap : 0, schema.n_outs);
}

}  // namespace

tt_status tt_op_call(tt_ctx* h, const tt_op* handle, const tt_value* args, int64_t n_args,
                     tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  return api_call(h, "op_call", [&](Ctx& c) {
    const OpInfo* op = live_op(handle);
    if (!op) fail_handle(handle, "op", 1, "operator");
    tls.op = op->name();
    const OpSchema& schema = *op->schema;
    if (n_args < 0 || n_args > schema.n_args)
      fail(TT_INVALID_ARG, "there are {} arguments: the operator takes at most {}", n_args,
           schema.n_args);
    if (n_args && !args)
      fail_arg(TT_INVALID_ARG, "args", "args is NULL, its length is {}: must be a list", n_args);
    check_room(schema, outs, cap, n_outs);
    Slots slots;
    Values values;
    const KeySet keys =
        (box_args(schema, args, n_args, slots, values) | c.include) & ~c.exclude & op->mask;
    TensorList results;
    op->call_boxed({keys, op}, values.data(), results);
    give_list(c, outs, cap, n_outs, std::move(results));
  });
}

// ---- custom operators ----

tt_status tt_op_register(tt_ctx* h, const tt_op_def* def) {
  bool passed_on = false;
  tt_status status = api_call(h, "op_register", [&](Ctx& c) {
    if (!def) fail_arg(TT_INVALID_ARG, "def", "def is NULL");
    if (def->struct_size < sizeof(tt_op_def))
      fail_arg(TT_ABI, "def", "def.struct_size is {}: must be at least {}", def->struct_size,
               sizeof(tt_op_def));
    if (!def->schema)
      fail_arg(TT_INVALID_ARG, "schema", "schema is NULL: must be \"name(arg: Type, …) -> Type\"");
    if (!def->compute) fail_arg(TT_INVALID_ARG, "compute", "compute is NULL: must be a function");
    CustomOpDef d{def->schema, def->user, def->compute, def->backward, def->drop};
    passed_on = true;
    register_custom_op(c.rt, d, find_builtin);
  });
  if (!passed_on && def && def->struct_size >= sizeof(tt_op_def)) run_drop(def->drop, def->user);
  return status;
}
