#include "ops/elementwise.h"

#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "plan/elementwise_build.h"

#include <string.h>

namespace TT_NS {

Dtype widen(Dtype d) {
  if (d <= Dtype::kI16) return Dtype::kI32;
  return d == Dtype::kF16 || d == Dtype::kBF16 ? Dtype::kF32 : d;
}

// ---- dtypes ----

static Dtype combine(Dtype higher, Dtype lower) {
  if (higher == Dtype::kNone || lower == Dtype::kNone)
    return higher == Dtype::kNone ? lower : higher;
  if (is_float(higher) && is_complex(lower)) return complex_of(higher);
  return category(lower) > category(higher) ? promote(higher, lower) : higher;
}

void ResultType::add(const Tensor& t) {
  Dtype& d = t.ndim ? dim : zero;
  d = promote(d, t.dtype);
}
void ResultType::add(const Scalar& s) { number = promote(number, s.natural_dtype()); }
Dtype ResultType::get() const { return combine(combine(dim, zero), number); }

Dtype result_type(Operands ins, uint8_t masks) {
  ResultType type;
  int i = 0;
  for (const Operand& o : ins) {
    if (masks >> i++ & 1) continue;
    if (o.s) type.add(*o.s);
    else type.add(*o.t);
  }
  return type.get();
}

static Dtype compute_dtype(const ElementSpec& spec, Dtype common) {
  switch (spec.compute) {
    case Compute::kWiden: return widen(common);
    case Compute::kStored: return common;
    case Compute::kLogical: return Dtype::kBool;
    case Compute::kBitwise: return common <= Dtype::kU8 ? common : widen(common);
  }
  return common;
}

// Returns the declared name of operand i; for n operands and i >= n, of scalar i - n of the
// functor.
static const char* arg_name(const ElementSpec& spec, int64_t i) {
  const char* name = spec.names;
  for (; i > 0; i--) name += strlen(name) + 1;
  return name;
}
// Returns the name of the first operand or scalar with a bad dtype; if there is none, of the first
// operand.
template <class F> static const char* find_arg(const ElementSpec& spec, Operands ins,
                                               const Param& p0, const Param& p1, F bad) {
  int i = 0;
  for (const Operand& o : ins) {
    if (bad(o.t ? o.t->dtype : o.s->natural_dtype())) return arg_name(spec, i);
    i++;
  }
  for (const Param* p : {&p0, &p1}) {
    if (p->v.kind && bad(Scalar(p->v).natural_dtype())) return arg_name(spec, i);
    i++;
  }
  return arg_name(spec, 0);
}

struct Types {
  Dtype common, compute, out;
};
// Checks a number that multiplies operands of dtype d. That of a product of two operands may be of
// any kind, as PyTorch's: it is converted to d.
static void check_factor(const Scalar& s, Dtype d, const char* arg, bool of_product) {
  if (s.is_bool() && d != Dtype::kBool && !of_product)
    fail_arg(TT_DTYPE, arg, "{} is {}: a bool is allowed for bool operands only, these are {}", arg,
             s.i != 0, fmt(d));
  if (s.is_complex() && !is_complex(d))
    fail_arg(TT_DTYPE, arg, "{} is complex: must be real for {} operands", arg, fmt(d));
  if (s.is_float() && category(d) < 2 && !of_product)
    fail_arg(TT_DTYPE, arg, "{} is {}: must be an integer for {} operands", arg, s.real(), fmt(d));
  check_fits(s, d, arg);
}

// Whether int32 cannot hold a number, so that integers of at most 32 bits meet it in 64.
static TT_INLINE bool exceeds_32_bits(const tt_scalar& s) {
  if (s.kind <= TT_SCALAR_INT) return s.i != int32_t(s.i);
  return s.kind == TT_SCALAR_FLOAT && !(s.re > -0x1p31 && s.re < 0x1p31);
}
static bool have_wide_number(Operands ins, const Param& p0, const Param& p1) {
  bool wide = exceeds_32_bits(p0.v) || exceeds_32_bits(p1.v);
  for (const Operand& o : ins) wide |= o.s && exceeds_32_bits(*o.s);
  return wide;
}

static bool is_bool(const Operand& o) {
  return o.t ? o.t->dtype == Dtype::kBool : o.s->kind == TT_SCALAR_BOOL;
}
// Whether a number that takes part in promotion must fit the dtype: within() limits integers that
// are bounds, and a floating exponent may become inf.
static bool is_checked(const ElementSpec& spec, const Scalar& s, Dtype common) {
  if (spec.bounds) return category(common) != 1;
  return !s.is_float() || category(common) < 2;
}
static Types types_of(const ElementSpec& spec, Operands ins, const Param& p0, const Param& p1) {
  Dtype common =
      spec.rule == DtypeRule::kFirst ? ins.begin()->t->dtype : result_type(ins, spec.masks);
  if (spec.promote_params) {
    for (const Param* p : {&p0, &p1})
      if (p->v.kind) common = combine(common, Scalar(p->v).natural_dtype());
    for (const Param* p : {&p0, &p1})
      if (p->v.kind && is_checked(spec, p->v, common))
        check_fits(p->v, is_float(common) ? common : compute_dtype(spec, common),
                   arg_name(spec, int64_t(ins.size()) + (p == &p1)));
  }
  if (spec.rule == DtypeRule::kFloat && category(common) < 2) common = default_float();
  if (spec.rule == DtypeRule::kFirst)
    for (const Param* p : {&p0, &p1})
      if (p->v.kind) check_fits(p->v, common, arg_name(spec, int64_t(ins.size()) + (p == &p1)));
  const bool product = ins.size() == 3;  // addcmul, addcdiv
  if (spec.factor) check_factor(p0.v, common, arg_name(spec, int64_t(ins.size())), product);
  const bool beside_numbers = product || spec.compute == Compute::kBitwise;
  if (spec.no_bool && (!beside_numbers || common == Dtype::kBool))
    for (const Operand& o : ins)
      if (is_bool(o)) {
        const char* name = arg_name(spec, &o - ins.begin());
        fail_arg(spec.no_bool, name, "{} is bool: convert it to a number first", name);
      }
  if (spec.no_integers && category(common) < 2) {
    const char* name = arg_name(spec, 0);
    fail_arg(TT_NOT_IMPLEMENTED, name, "{} is {}: must be floating", name, fmt(common));
  }
  if (spec.no_complex && is_complex(common)) {
    const char* name = find_arg(spec, ins, p0, p1, [](Dtype d) { return is_complex(d); });
    fail_arg(TT_NOT_IMPLEMENTED, name, "{} is {}: complex numbers are not supported", name,
             fmt(common));
  }
  if (spec.compute == Compute::kBitwise && category(common) > 1) {
    const char* name = find_arg(spec, ins, p0, p1, [](Dtype d) { return category(d) > 1; });
    fail_arg(TT_NOT_IMPLEMENTED, name, "{} is {}: must be an integer or bool", name, fmt(common));
  }
  bool to_bool = spec.rule == DtypeRule::kBool || spec.rule == DtypeRule::kLogical;
  const Dtype out = spec.rule == DtypeRule::kModulus ? real_of(common) : common;
  Dtype compute = compute_dtype(spec, common);
  if (compute == Dtype::kI32 && have_wide_number(ins, p0, p1)) compute = Dtype::kI64;
  return {common, compute, to_bool ? Dtype::kBool : out};
}

// A bound outside the range of d does not bind: the end of the range is the same.
static Scalar within(const Scalar& bound, Dtype d) {
  if (!bound.is_int() || category(d) != 1) return bound;
  const int64_t highest = INT64_MAX >> (64 - 8 * item_size(d));
  return clamp(bound.i, -highest - 1, highest);
}

void check_bounds(const Tensor& self, const Scalar* min, const Scalar* max) {
  if (!min && !max)
    fail_arg(TT_INVALID_ARG, "min", "min and max are both none: at least one is needed");
  check_bounds(self.dtype, min, max);
}

void check_bounds(Dtype d, const Scalar* min, const Scalar* max) {
  if (category(d) != 1) return;
  const int bits = int(item_size(d)) * 8;
  const bool is_signed = d != Dtype::kU8 && !is_wide_unsigned(d);
  const int value_bits = TT_NS::min(bits - is_signed, 63);  // no bound is larger than int64
  const int64_t max_value = int64_t(UINT64_MAX >> (64 - value_bits));
  const int64_t min_value = is_signed ? -max_value - 1 : 0;
  if (min && min->is_int() && min->i > max_value)
    fail_arg(TT_INVALID_ARG, "min", "min is {}: {} has no values that large", min->i, fmt(d));
  if (max && max->is_int() && max->i < min_value)
    fail_arg(TT_INVALID_ARG, "max", "max is {}: {} has no values that small", max->i, fmt(d));
}

void check_threshold(const Tensor& self, const Scalar& threshold, const Scalar& value) {
  // Halves are compared as float32.
  const bool half = is_float(self.dtype) && item_size(self.dtype) < 4;
  const Dtype d = half ? Dtype::kF32 : self.dtype;
  check_fits(threshold, d, "threshold");
  check_fits(value, d, "value");
}
void check_lambda(double lambd) {
  if (!(lambd >= 0)) fail_arg(TT_INVALID_ARG, "lambd", "lambd is {}: must not be negative", lambd);
}
void check_alpha(double alpha) {
  if (alpha == 0) fail_arg(TT_INVALID_ARG, "alpha", "alpha is 0: must not be 0");
}
void check_polynomial_order(int64_t order) {
  constexpr int64_t kLargest = int64_t(1) << 24;  // the recurrence takes `order` steps
  if (order < 0 || order > kLargest)
    fail_arg(TT_INVALID_ARG, "order", "order is {}: must be 0 to {}", order, kLargest);
}

// ---- shapes ----

static Ints sizes_of(const Operand& o) { return o.t ? o.t->sizes() : Ints(); }

static Shape result_shape(const ElementSpec& spec, Operands ins) {
  Shape shape;
  int i = 0;
  int first = -1;
  for (const Operand& o : ins) {
    if (o.t && first < 0) {
      shape = Shape(o.t->sizes());
      first = i;
    } else if (o.t && !same(shape, o.t->sizes())) {
      shape = broadcast_shapes(shape, o.t->sizes(), arg_name(spec, first), arg_name(spec, i));
    }
    i++;
  }
  return shape;
}

static Device result_device(const ElementSpec& spec, Operands ins) {
  const Operand* decides = nullptr;
  for (const Operand& o : ins) {
    if (!o.t) continue;
    if (!decides ||
        (decides->t->ndim == 0 && decides->t->is_cpu() && !(decides->t->device == o.t->device))) {
      decides = &o;
    } else if (!(o.t->device == decides->t->device) && !(o.t->ndim == 0 && o.t->is_cpu())) {
      check_same_device(*decides->t, arg_name(spec, decides - ins.begin()), *o.t,
                        arg_name(spec, &o - ins.begin()));
    }
  }
  return decides ? decides->t->device : kCpuDevice;
}

// Orders the result's dimensions in memory like those of the operands, as PyTorch does.
static TensorRef new_result(const ElementSpec& spec, Operands ins, Ints shape, Dtype dtype,
                            Device device) {
  bool row_major = true;
  for (const Operand& o : ins) row_major &= !o.t || o.t->contiguous();
  if (row_major || spec.row_major) return new_tensor(shape, dtype, device);
  Shape strides[kMaxOperands];
  int64_t n = 0;
  for (const Operand& o : ins) {
    if (!o.t) continue;
    if (n == 0 && same(o.t->sizes(), shape)) {
      if (o.t->contiguous()) return new_tensor(shape, dtype, device);
      if (o.t->dense()) return new_strided(shape, o.t->strides(), dtype, device);
    }
    Shape& wide = strides[n++];
    wide.resize(shape.n, 0);
    const int64_t missing = shape.n - o.t->ndim;
    for (int64_t d = 0; d < o.t->ndim; d++)
      if (o.t->size(d) != 1 || shape[missing + d] == 1) wide[missing + d] = o.t->stride(d);
  }
  return new_strided(shape, strides_like(shape, Span<const Shape>(strides, n)), dtype, device);
}

// ---- plan and run ----

// Integers that meet 16-bit floating numbers are rounded to their dtype first, as in PyTorch. Those
// of 8 bits have exact values there.
static bool is_rounded_first(const Tensor& t, Dtype common) {
  return item_size(common) == 2 && is_float(common) && is_integral(t.dtype) && t.item_size() > 1;
}

// The dtype of a number beside integers is theirs if that can hold it, so that operands have one.
static Dtype number_dtype(const Types& types, const Scalar& s) {
  const bool integers = category(types.common) == 1 && s.is_int();
  const bool wraps = types.common == Dtype::kU8 && s.i < 0;
  return integers && !wraps && fits(s, types.common) ? types.common : types.compute;
}

static void run(const ElementSpec& spec, const Types& types, Tensor& out, Operands ins,
                const Param& p0, const Param& p1) {
  if (out.numel == 0) return;
  ElementPlan plan;
  plan.param[0] = spec.bounds ? within(p0.v, types.compute) : p0.v;
  plan.param[1] = spec.bounds ? within(p1.v, types.compute) : p1.v;
  bool on_cpu = out.device.type == TT_CPU;
  ElementOperand ops[kMaxOperands];
  TensorRef rounded[kMaxOperands];
  int32_t n = 0;
  uint32_t bools =
      out.dtype == Dtype::kBool && types.out == Dtype::kBool && types.common != Dtype::kBool
          ? kBoolOut
          : 0;
  if (spec.rule == DtypeRule::kBool || spec.rule == DtypeRule::kLogical) bools |= kBoolOut;
  ops[n++] = {out.data, out.sizes_ptr(), out.strides_ptr(), out.ndim, int32_t(out.dtype)};
  for (const Operand& o : ins) {
    bool mask = spec.masks >> (n - 1) & 1;
    if (mask) {
      bools |= 1u << n;
      if (o.t && o.t->dtype != Dtype::kBool)
        fail_arg(TT_DTYPE, arg_name(spec, n - 1), "{} is {}: must be bool", arg_name(spec, n - 1),
                 fmt(o.t->dtype));
    }
    bool number = o.s || (!on_cpu && o.t->is_cpu());
    if (!number) {
      const Tensor* t = o.t;
      if (!mask && is_rounded_first(*t, types.common)) {
        rounded[n] = new_ordered_like(*t, types.common, t->device);
        copy_elements(*rounded[n], *t);
        t = rounded[n].get();
      }
      ops[n] = {t->data, t->sizes_ptr(), t->strides_ptr(), t->ndim, int32_t(t->dtype)};
    } else {
      Scalar s = o.s ? *o.s : read_scalar(*o.t);
      const Dtype as = number_dtype(types, s);
      store_scalar(plan.scalar[n], as, s);
      ops[n] = {on_cpu ? plan.scalar[n] : nullptr, nullptr, nullptr, 0, int32_t(as)};
    }
    n++;
  }
  build_element_plan(plan, ops, n, int32_t(types.compute),
                     bools & 1 && spec.rule != DtypeRule::kPromote ? bools : bools & ~1u);
  launch(*spec.kernel, out.device, &plan, plan.n);
}

// ---- fast path: numbers, and dense operands of equal geometry that need no conversion ----

// same_geometry for few dims, without calls.
static TT_INLINE bool same_dims(const Tensor& a, const Tensor& b) {
  if (a.ndim != b.ndim) return false;
  const int64_t* an = a.sizes_ptr();
  const int64_t* bn = b.sizes_ptr();
  const int64_t* as = a.strides_ptr();
  const int64_t* bs = b.strides_ptr();
  int64_t differ = 0;
  for (int d = 0; d < a.ndim; d++) differ |= (an[d] ^ bn[d]) | (as[d] ^ bs[d]);
  return differ == 0;
}

// Returns d if the operator computes operands of d without conversion, else kNone.
static TT_INLINE Dtype unconverted_dtype(const ElementSpec& spec, Dtype d) {
  constexpr uint32_t kNative = 1u << int(Dtype::kF32) | 1u << int(Dtype::kF64) |
                               1u << int(Dtype::kC64) | 1u << int(Dtype::kC128) |
                               1u << int(Dtype::kI32) | 1u << int(Dtype::kI64);
  const bool native = kNative >> int(d) & 1;
  const bool changes = (spec.rule == DtypeRule::kFloat && d < Dtype::kF32) ||
                       (spec.rule == DtypeRule::kModulus && is_complex(d)) ||
                       (spec.no_integers && d < Dtype::kF32);
  return !native || changes || (spec.no_complex && is_complex(d)) ? Dtype::kNone : d;
}
static TT_INLINE bool is_plain(const ElementSpec& spec) {
  return !spec.masks && !spec.promote_params && spec.compute == Compute::kWiden;
}

// Returns false for a scalar that cannot have dtype d.
static TT_INLINE bool is_plain(const Param& p, Dtype d) {
  if ((p.v.kind & ~TT_SCALAR_INT) == 0 && p.v.i == int32_t(p.v.i)) return true;
  return p.v.kind > TT_SCALAR_INT && p.v.kind <= category(d) + 1;
}
// Returns the dtype of such operands, or kNone.
static TT_INLINE Dtype plain_dtype(const ElementSpec& spec, Operands ins, const Param& p0,
                                   const Param& p1) {
  if (ins.size() == 0 || !is_plain(spec)) return Dtype::kNone;
  const Tensor* first = nullptr;
  for (const Operand& o : ins) {
    if (!o.t) continue;
    if (!first) {
      first = o.t;
      const bool gives_order = spec.row_major ? first->contiguous() : first->dense();
      if (!gives_order || first->numel == 0) return Dtype::kNone;
    } else if (o.t->dtype != first->dtype || !(o.t->device == first->device) ||
               !same_dims(*o.t, *first)) {
      return Dtype::kNone;
    }
  }
  const Dtype d = unconverted_dtype(spec, first->dtype);
  for (const Operand& o : ins) {
    if (!o.s) continue;
    if (o.s->category() > category(d) || (spec.no_bool && o.s->is_bool())) return Dtype::kNone;
    if (d == Dtype::kI32 && exceeds_32_bits(*o.s)) return Dtype::kNone;
  }
  if (d == Dtype::kI32 && (exceeds_32_bits(p0.v) || exceeds_32_bits(p1.v))) return Dtype::kNone;
  return is_plain(p0, d) || !spec.factor ? d : Dtype::kNone;
}

static TT_INLINE void run_plain(const ElementSpec& spec, Dtype d, Tensor& out, Operands ins,
                                const Param& p0, const Param& p1) {
  ElementPlan plan;
  plan.n = out.numel;
  plan.n_operands = int32_t(ins.size()) + 1;
  plan.compute = int32_t(d);
  plan.dense = true;
  plan.ndim = 0;
  memset(plan.scalar_in, 0, sizeof plan.scalar_in);
  plan.dtype[0] = int32_t(out.dtype);
  plan.ptr[0] = out.data;
  int k = 1;
  for (const Operand& o : ins) {
    plan.dtype[k] = int32_t(d);
    char* const number = out.is_cpu() ? plan.scalar[k] : nullptr;
    plan.ptr[k] = o.t ? o.t->data : number;
    if (o.s) {
      store_scalar(plan.scalar[k], d, *o.s);
      plan.scalar_in[k] = true;
    }
    k++;
  }
  plan.param[0] = p0.v;
  plan.param[1] = p1.v;
  launch(*spec.kernel, out.device, &plan, plan.n);
}

static const Tensor& first_tensor(Operands ins) {
  const Operand* o = ins.begin();
  while (!o->t) o++;
  return *o->t;
}

static TensorRef element_any(const ElementSpec& spec, Operands ins, const Param& p0,
                             const Param& p1) {
  Types types = types_of(spec, ins, p0, p1);
  Device device = result_device(spec, ins);
  TensorRef out = new_result(spec, ins, result_shape(spec, ins), types.out, device);
  run(spec, types, *out, ins, p0, p1);
  return out;
}

TensorRef element_op(const ElementSpec& spec, Operands ins, const Param& p0, const Param& p1) {
  Dtype d = plain_dtype(spec, ins, p0, p1);
  if (d == Dtype::kNone) return element_any(spec, ins, p0, p1);
  TensorRef out = new_like(first_tensor(ins), spec.rule == DtypeRule::kBool ? Dtype::kBool : d);
  run_plain(spec, d, *out, ins, p0, p1);
  return out;
}

TensorRef element_binary(const ElementSpec& spec, const Tensor& a, const Tensor& b,
                         const Param& p0) {
  const bool alike = a.dtype == b.dtype && a.dense() && a.device == b.device && a.numel != 0 &&
                     same_dims(a, b) && is_plain(spec);
  const Dtype d = alike ? unconverted_dtype(spec, a.dtype) : Dtype::kNone;
  if (d == Dtype::kNone || !(is_plain(p0, d) || !spec.factor))
    return element_any(spec, {a, b}, p0, kNoParam);
  TensorRef out = new_like(a, spec.rule == DtypeRule::kBool ? Dtype::kBool : d);
  ElementPlan plan;
  plan.n = out->numel;
  plan.n_operands = 3;
  plan.compute = int32_t(d);
  plan.dense = true;
  plan.ndim = 0;
  memset(plan.scalar_in, 0, sizeof plan.scalar_in);
  plan.dtype[0] = int32_t(out->dtype);
  plan.dtype[1] = plan.dtype[2] = int32_t(d);
  plan.ptr[0] = out->data;
  plan.ptr[1] = a.data;
  plan.ptr[2] = b.data;
  plan.param[0] = p0.v;
  plan.param[1].kind = 0;
  launch(*spec.kernel, a.device, &plan, plan.n);
  return out;
}

// ---- in place and into ----

static void check_overlap(const ElementSpec& spec, const Tensor& dst, Operands ins) {
  for (const Operand& o : ins) {
    if (!o.t || o.t == &dst || !may_share_memory(dst, *o.t)) continue;
    if (o.t->data == dst.data && same_geometry(dst, *o.t) && o.t->dtype == dst.dtype) continue;
    if (o.t->contiguous() && dst.contiguous() && o.t->data == dst.data && o.t->dtype == dst.dtype &&
        o.t->numel == dst.numel)
      continue;
    const char* name = arg_name(spec, &o - ins.begin());
    fail_arg(TT_INVALID_ARG, name,
             "{} shares memory with the tensor that is written: clone "
             "it first",
             name);
  }
}

// Returns true if no operand overlaps dst, except with exactly the same elements.
static bool is_overlap_safe(const Tensor& dst, Operands ins) {
  if (!dst.storage->writable || !dst.dense()) return false;
  const char* end = dst.data + dst.numel * dst.item_size();
  for (const Operand& o : ins)
    if (o.t && o.t->data != dst.data && o.t->data < end &&
        dst.data < o.t->data + o.t->numel * o.t->item_size())
      return false;
  return true;
}

void element_inplace(const ElementSpec& spec, Tensor& self, Operands ins, const Param& p0,
                     const Param& p1) {
  if (Dtype d = plain_dtype(spec, ins, p0, p1); d == self.dtype && spec.rule != DtypeRule::kBool &&
                                                is_overlap_safe(self, ins) &&
                                                ins.begin()->t == &self) {
    run_plain(spec, d, self, ins, p0, p1);
    return self.bump_version();
  }
  Types types = types_of(spec, ins, p0, p1);
  Device device = result_device(spec, ins);
  if (!(device == self.device))
    fail_arg(TT_DEVICE, "self", "self is on {}, the result on {}: must be on one device",
             fmt(self.device), fmt(device));
  if (!can_cast(types.out, self.dtype))
    fail_arg(TT_DTYPE, "self", "self is {}: the result's dtype {} cannot be cast to it in place",
             fmt(self.dtype), fmt(types.out));
  if (spec.rule == DtypeRule::kModulus && is_complex(self.dtype))
    fail_arg(TT_DTYPE, "self", "self is {}: the result is real and cannot be written in place",
             fmt(self.dtype));
  int i = 0;
  for (const Operand& o : ins) {
    if (!broadcastable_to(sizes_of(o), self.sizes()))
      fail_arg(TT_SHAPE, "self", "self is {}, {} is {}: the result must have the shape of self",
               self.sizes(), arg_name(spec, i), sizes_of(o));
    i++;
  }
  if (spec.write_shared && shares_elements(self))
    return spec.write_shared(self, *ins.begin()[1].t, p0.v);
  check_writable(self, "self");
  check_overlap(spec, self, ins);
  run(spec, types, self, ins, p0, p1);
  self.bump_version();
}

void element_into(const ElementSpec& spec, Tensor& dst, Operands ins, const Param& p0,
                  const Param& p1) {
  if (Dtype d = plain_dtype(spec, ins, p0, p1);
      d == dst.dtype && spec.rule != DtypeRule::kBool && same_geometry(dst, first_tensor(ins)) &&
      dst.device == first_tensor(ins).device && is_overlap_safe(dst, ins)) {
    run_plain(spec, d, dst, ins, p0, p1);
    return dst.bump_version();
  }
  Types types = types_of(spec, ins, p0, p1);
  Device device = result_device(spec, ins);
  Shape shape = result_shape(spec, ins);
  if (!same(dst.sizes(), shape))
    fail_arg(TT_SHAPE, "dst", "dst is {}, the result is {}: must be equal", dst.sizes(),
             Ints(shape));
  if (dst.dtype != types.out)
    fail_arg(TT_DTYPE, "dst", "dst is {}, the result is {}: must be equal", fmt(dst.dtype),
             fmt(types.out));
  if (!(dst.device == device))
    fail_arg(TT_DEVICE, "dst", "dst is on {}, the inputs on {}: must be on one device",
             fmt(dst.device), fmt(device));
  check_writable(dst, "dst");
  check_overlap(spec, dst, ins);
  run(spec, types, dst, ins, p0, p1);
  dst.bump_version();
}

// ---- copies ----

constinit ExtElements ext_elements = {nullptr, nullptr};

void copy_elements(Tensor& dst, const Tensor& src) {
  if (dst.numel == 0) return;
  if (TT_UNLIKELY(dst.device.type == TT_EXT)) return ext_elements.copy(dst, src);
  ElementPlan plan;
  plan.param[0].kind = plan.param[1].kind = 0;
  const ElementOperand ops[2] = {
      {dst.data, dst.sizes_ptr(), dst.strides_ptr(), dst.ndim, int32_t(dst.dtype)},
      {src.data, src.sizes_ptr(), src.strides_ptr(), src.ndim, int32_t(src.dtype)}};
  build_element_plan(plan, ops, 2, int32_t(dst.dtype), kBoolNone);
  launch(kernel_copy, dst.device, &plan, plan.n);
}

void fill_elements(Tensor& dst, const Scalar& value) {
  if (dst.numel == 0) return;
  if (TT_UNLIKELY(dst.device.type == TT_EXT)) return ext_elements.fill(dst, value);
  ElementPlan plan;
  plan.param[0] = value;
  plan.param[1].kind = 0;
  const ElementOperand ops[1] = {
      {dst.data, dst.sizes_ptr(), dst.strides_ptr(), dst.ndim, int32_t(dst.dtype)}};
  build_element_plan(plan, ops, 1, int32_t(dst.dtype), kBoolNone);
  launch(kernel_fill, dst.device, &plan, plan.n);
}

}  // namespace TT_NS
