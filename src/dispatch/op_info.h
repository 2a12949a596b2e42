// OpInfo: one operator variant. A constinit object in a section of its own; typed calls name the
// object.
#pragma once

#include "dispatch/key.h"

namespace TT_NS {

struct Value;
struct OpInfo;
using AnyFn = void (*)();

// Handed to every slot: the keys still to be served (the current one is the top bit) and the
// operator.
struct Call {
  uint64_t keys;
  const OpInfo* op;
};

// Schema types (src/ops/decl/README.md): what a host passes and how bindings treat it.
enum class ArgType : uint8_t {
  kTensor,
  kOptTensor,
  kTensorList,
  kOptTensorList,
  kScalar,
  kOptScalar,
  kFloat,
  kOptFloat,
  kInt,
  kOptInt,
  kBool,
  kOptBool,
  kDim,
  kOptDim,
  kDims,
  kOptDims,
  kIndex,
  kSize,
  kShape,
  kIndices,
  kDtype,
  kDevice,
  kMemoryFormat,
  kGenerator,
  kStr,
  kEnum,
  kRng
};
// What a missing argument stands for. kNone: an absent value, or the type's own default (dtype,
// device, generator).
enum class ArgDefault : uint8_t { kNone, kInt, kFloat, kBool };
union ArgValue {
  int64_t i;
  double f;  // (kFloat)
};
struct ArgInfo {
  const char* name;
  ArgType type;
  bool mutates;
  bool has_default;
  uint8_t enumeration = 0;  // (kEnum) which one; capi checks what hosts pass
  ArgDefault fallback = ArgDefault::kNone;
  ArgValue value{};  // of the fallback
};
struct OpSchema {
  const char* name;  // "add", "add_scalar", "add_into"
  const char* call;  // its name in C and in error texts: "add" for "add_scalar" too
  const char* text;  // the schema line of the declaration
  const ArgInfo* args;
  int32_t n_args;
  int32_t n_outs;  // -1: a list
  bool differentiable;
  bool random;
  bool internal = false;  // a building block of other operators: hosts cannot name it
  bool structural =
      false;  // its implementation launches no kernel: views, allocation, calls of other operators
};

struct OpInfo {
  uint32_t tag;
  uint32_t n_slots;
  uint64_t mask;  // keys that have a meaning for this operator
  const OpSchema* schema;
  // Calls the typed slot of c.keys' top bit with unboxed arguments; results are appended to outs.
  void (*call_boxed)(Call c, const Value* args, TensorList& outs);
  const char* name() const { return schema->name; }
};

// The typed object: `constinit Op<TensorRef(const Tensor&, const Tensor&)> op_mul = {…}`.
template <class Sig> struct Op;
template <class R, class... A> struct Op<R(A...)> {
  using Fn = R (*)(Call, A...);
  OpInfo info;
  Fn slot[kNumKeys];
};

}  // namespace TT_NS
