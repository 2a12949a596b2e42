// OpInfo: one operator variant, a constinit object in its own section. Typed calls name the object.
#pragma once

#include "dispatch/key.h"

namespace TT_NS {

struct Value;
struct OpInfo;
using AnyFn = void (*)();

// Passed to every slot: the operator, and the keys still to be served (the top bit is the current
// one).
struct Call {
  KeySet keys;
  const OpInfo* op;
};

// Schema types (src/ops/decl/README.md): what an application passes and how bindings treat it.
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
  kRng,
  kObject
};
// Default of a missing argument. kNone: an absent value, or the default of the type (dtype, device,
// generator).
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
  uint8_t enumeration = 0;  // (kEnum) which one; capi checks the values that applications pass
  ArgDefault fallback = ArgDefault::kNone;
  ArgValue value{};  // the default
};
// What autocast does with the floating arguments of an operator: nothing, or a cast to its dtype,
// to float32, or to the widest of them.
enum class Autocast : uint8_t { kNone, kLower, kFp32, kPromote };
struct AutocastPolicy {
  Autocast cpu = Autocast::kNone;
  Autocast cuda = Autocast::kNone;
};
// What an operator does with uint16, uint32 and uint64, which no kernel computes in
// (ops/wide_unsigned.cpp).
enum class WideUnsigned : uint8_t {
  kNone,     // refuses them
  kMoves,    // its implementation moves and converts values only, or is made of other operators
  kMixed,    // elementwise: with floating operands, in their dtype; refuses them alone
  kFloat,    // elementwise: in a floating dtype
  kBits,     // elementwise: as signed integers of their size, whose bits are the same
  kOrder,    // as int64 in their order; the first result is one of them
  kRank,     // the same, but the results are int64 or bool
  kInt64,    // as int64
  kInteger,  // as int64, then converted back
};
// What an operator computes, for modes and graph passes that treat operators alike.
enum class OpKind : uint8_t {
  kOther,
  kElementwise,
  kReduce,  // over dimensions
  // Along the last dimension, or one given, of each row: softmax, norms, losses, scans.
  kRow,
  kProduct,  // of matrices
  kConv,
  kIndex,  // reads or writes at positions that a tensor holds
  kCopy,   // moves values, perhaps converted
  kView,
  kRandom,
  kComposite,  // made of other operators, whose gradients are its gradient
};
// Whether the results share memory with the first argument: no; all of them; it depends on the
// arguments.
enum class Alias : uint8_t { kNone, kView, kMaybe };
struct OpSchema {
  const char* name;  // "add", "add_scalar", "add_into"
  const char* call;  // its name in C and in error messages: "add" also for "add_scalar"
  const ArgInfo* args;
  // Returns the floating-point operations of a call from its arguments and results; may be NULL.
  double (*flops)(const Value* args, const TensorList& outs) = nullptr;
  uint8_t n_args;
  int8_t n_outs;  // -1: a list
  bool differentiable : 1 = false;
  bool random : 1 = false;
  bool internal : 1 = false;    // a building block of other operators, not exposed to applications
  bool structural : 1 = false;  // its implementation launches no kernel: views, composites
  bool leaf : 1 = false;    // its implementation makes no calls that a mode below autograd must see
  bool custom : 1 = false;  // registered by the application: an OwnedOp, which has no slots
  OpKind kind = OpKind::kOther;
  Alias alias = Alias::kNone;
  WideUnsigned wide_unsigned = WideUnsigned::kNone;
  AutocastPolicy autocast = {};
};

static_assert(sizeof(void*) != 8 || sizeof(OpSchema) == 40);

// The schema of an operator, without what only modes and graphs read where a build has none.
consteval OpSchema schema_of(OpSchema s) {
  if (kModes) return s;
  s.flops = nullptr;
  if (s.internal) {
    s.args = nullptr;
    s.n_args = 0;
  }
  return s;
}

struct OpInfo {
  uint32_t tag;
  KeySet mask;  // keys that matter to this operator
  const OpSchema* schema;
  // Calls the slot of c.keys' top bit with unboxed arguments; appends the results to outs.
  void (*call_boxed)(Call c, const Value* args, TensorList& outs);
  const char* name() const { return schema->name; }
  bool is_custom() const { return schema->custom; }
};

// Typed operator: `constinit Op<TensorRef(const Tensor&, const Tensor&)> op_mul = {…}`. A build
// without modes has no slot for them.
template <class Sig> struct Op;
template <class R, class... A> struct Op<R(A...)> {
  using Fn = R (*)(Call, A...);
  OpInfo info;
  Fn slot[kModes ? kNumSlots : kSlotMode];
};

}  // namespace TT_NS
