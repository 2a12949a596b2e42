// Operators on uint16, uint32 and uint64. Kernels move and convert these dtypes and compute nothing
// in them, so their tensors have a dispatch key whose handler replaces them by tensors of other
// dtypes, as the operator's schema says, or refuses the call.
#include "ops/elementwise.h"
#include "ops/impl.h"

#include <string.h>

namespace TT_NS {

static_assert(kWideUnsignedKey == bit(kKeyWideUnsigned));

void wide_unsigned_slot(Call c, const Value* args, TensorList& outs);

namespace {

constexpr uint64_t kTopBit = uint64_t(1) << 63;

TensorRef cast(const Tensor& t, Dtype d) {
  TensorRef to = new_ordered_like(t, d, t.device);
  if (t.device.type != TT_META) copy_elements(*to, t);
  return to;
}
TensorRef reinterpret(const Tensor& t, Dtype d) {
  return new_alias(t, t.sizes(), t.strides(), t.data, d);
}

// The arguments of one call, and what becomes of its results.
class Replaced {
 public:
  Replaced(const OpSchema& schema, const Value* args);
  const Value* args() const { return args_.data(); }
  void finish(TensorList& outs);

 private:
  // A copy of an argument that the operator writes into.
  struct Written {
    const Tensor* tensor;
    int64_t copy;  // index in owned_
  };

  [[noreturn]] TT_COLD void refuse(const char* arg, Dtype d) const;
  void find();
  void choose(Dtype common);
  void replace(int32_t i);
  TensorRef replacement(const Tensor& t, const char* arg) const;
  void replace_number(Value& v, const char* arg);
  void check_bound(const Scalar& bound, const char* arg) const;
  void flip(Tensor& t) const;
  TensorRef restored(Tensor& t) const;

  const OpSchema& schema_;
  const WideUnsigned rule_;
  Dtype given_ = Dtype::kNone;  // uint16, uint32 or uint64
  Dtype as_ = Dtype::kNone;     // the dtype of the replacements
  bool same_bits_ = false;      // they share the memory
  bool flips_ = false;  // their highest bit is flipped, so that int64 has the order of uint64
  bool back_ = false;   // the first result becomes given_
  SmallVec<Value, 16> args_;
  SmallVec<Scalar, 4> numbers_;
  SmallVec<TensorRef, 8> owned_;
  SmallVec<Written, 2> written_;
};

void Replaced::refuse(const char* arg, Dtype d) const {
  fail_arg(TT_NOT_IMPLEMENTED, arg,
           "{} is {}: {} does not compute in it; convert it to a signed or floating dtype first",
           arg, fmt(d), schema_.call);
}

Replaced::Replaced(const OpSchema& schema, const Value* args)
    : schema_(schema), rule_(schema.wide_unsigned) {
  for (int32_t i = 0; i < schema.n_args; i++) args_.push_back(args[i]);
  numbers_.reserve(schema.n_args);
  find();
  for (int32_t i = 0; i < schema.n_args; i++) replace(i);
}

// Finds the dtype and the common one of all tensors and numbers, and refuses what cannot be served.
void Replaced::find() {
  ResultType common;
  for (int32_t i = 0; i < schema_.n_args; i++) {
    Value& v = args_[i];
    const ArgInfo& arg = schema_.args[i];
    if (v.kind == Value::kScalar) common.add(*v.scalar);
    if (arg.type == ArgType::kDtype && v.kind && is_wide_unsigned(Dtype(v.i))) {
      if (rule_ != WideUnsigned::kInteger) refuse(arg.name, Dtype(v.i));
      given_ = Dtype(v.i);
      v.i = int64_t(Dtype::kI64);
    }
    for (int64_t k = 0; v.kind == Value::kTensorList && k < v.n; k++)
      if (v.tensors[k] && is_wide_unsigned(v.tensors[k]->dtype))
        refuse(arg.name, v.tensors[k]->dtype);
    if (v.kind != Value::kTensor) continue;
    const Dtype d = v.tensor->dtype;
    if (is_wide_unsigned(d)) {
      if (rule_ == WideUnsigned::kNone) refuse(arg.name, d);
      if (given_ == Dtype::kNone) given_ = d;
    }
    // a destination does not take part in promotion
    if (!arg.mutates || i == 0) common.add(*v.tensor);
  }
  choose(common.get());
  if (rule_ != WideUnsigned::kMixed || as_ != given_) return;
  for (int32_t i = 0; i < schema_.n_args; i++)
    if (args_[i].kind == Value::kTensor && is_wide_unsigned(args_[i].tensor->dtype))
      refuse(schema_.args[i].name, given_);
}

void Replaced::choose(Dtype common) {
  as_ = common;
  if (is_float(common) || rule_ == WideUnsigned::kMixed) return;
  if (rule_ == WideUnsigned::kFloat) {
    as_ = default_float();
    return;
  }
  if (common != Dtype::kNone && !is_wide_unsigned(common)) return;
  same_bits_ = rule_ == WideUnsigned::kBits;
  as_ = same_bits_ ? signed_of(given_) : Dtype::kI64;
  const bool ordered = rule_ == WideUnsigned::kOrder || rule_ == WideUnsigned::kRank;
  flips_ = ordered && given_ == Dtype::kU64;
  back_ = rule_ != WideUnsigned::kRank && rule_ != WideUnsigned::kInt64;
}

void Replaced::replace(int32_t i) {
  Value& v = args_[i];
  const ArgInfo& arg = schema_.args[i];
  if (v.kind == Value::kScalar) return replace_number(v, arg.name);
  if (v.kind != Value::kTensor) return;
  const Tensor& t = *v.tensor;
  const bool converted = same_bits_ || flips_;  // the others must agree with it
  if (!is_wide_unsigned(t.dtype) && (!converted || arg.mutates)) return;
  if (arg.mutates && is_float(as_))
    fail_arg(TT_DTYPE, arg.name, "{} is {}: the result's dtype {} cannot be cast to it in place",
             arg.name, fmt(t.dtype), fmt(as_));
  if (arg.mutates) check_writable(t, arg.name);
  owned_.push_back(replacement(t, arg.name));
  if (arg.mutates && !same_bits_) written_.push_back({&t, owned_.size() - 1});
  v.tensor = owned_.back().get();
}

TensorRef Replaced::replacement(const Tensor& t, const char* arg) const {
  if (same_bits_ && t.dtype == given_) return reinterpret(t, as_);
  if (!t.is_cpu() && t.device.type != TT_META)
    fail_arg(TT_NOT_IMPLEMENTED, arg, "{} is {} on {}: {} converts it on the CPU only", arg,
             fmt(t.dtype), fmt(t.device), schema_.call);
  if (same_bits_) return reinterpret(*cast(t, given_), as_);
  TensorRef to = cast(t, as_);
  if (flips_) flip(*to);
  return to;
}

// Refuses the bounds that the clamp of other dtypes refuses.
void Replaced::check_bound(const Scalar& bound, const char* arg) const {
  if (!strcmp(arg, "min")) check_bounds(given_, &bound, nullptr);
  if (!strcmp(arg, "max")) check_bounds(given_, nullptr, &bound);
}

// Integers get the bits that the elements have.
void Replaced::replace_number(Value& v, const char* arg) {
  if (rule_ == WideUnsigned::kOrder && category(as_) == 1) check_bound(*v.scalar, arg);
  if (v.scalar->category() > 1 || !(same_bits_ || flips_)) return;
  int64_t i = v.scalar->i;
  if (flips_) i = i < 0 ? INT64_MIN : int64_t(uint64_t(i) ^ kTopBit);
  else if (as_ == Dtype::kI16) i = int16_t(i);
  else if (as_ == Dtype::kI32) i = int32_t(i);
  numbers_.push_back(Scalar(i));
  v.scalar = &numbers_.back();
}

void Replaced::flip(Tensor& t) const {
  const int64_t n = t.is_cpu() ? t.numel : 0;
  for (int64_t i = 0; i < n; i++) t.as<uint64_t>()[i] ^= kTopBit;
}

TensorRef Replaced::restored(Tensor& t) const {
  if (same_bits_) return reinterpret(t, given_);
  if (flips_) flip(t);
  return cast(t, given_);
}

void Replaced::finish(TensorList& outs) {
  if (back_ && outs.size() > 0 && outs[0]->dtype == as_) outs[0] = restored(*outs[0]);
  for (const Written& w : written_) {
    Tensor& copy = *owned_[w.copy];
    if (flips_) flip(copy);
    if (copy.is_cpu()) copy_elements(const_cast<Tensor&>(*w.tensor), copy);
    const_cast<Tensor*>(w.tensor)->bump_version();
  }
}

}  // namespace

void wide_unsigned_slot(Call c, const Value* args, TensorList& outs) {
  c.keys &= ~bit(kKeyWideUnsigned);
  const OpSchema& schema = *c.op->schema;
  if (schema.wide_unsigned == WideUnsigned::kMoves) return c.op->call_boxed(c, args, outs);
  Replaced call(schema, args);
  if (c.keys & bit(kKeyCapture))
    fail_arg(TT_NOT_IMPLEMENTED, schema.args[0].name,
             "{} of uint16, uint32 or uint64 cannot be captured", schema.call);
  c.op->call_boxed(c, call.args(), outs);
  call.finish(outs);
}

}  // namespace TT_NS
