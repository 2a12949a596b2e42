// Implementation of elementwise operators: dtype rule, broadcast, allocation, plan, kernel. The
// generator writes one ElementSpec per operator.
#pragma once

#include "core/ctx.h"
#include "dispatch/op_info.h"
#include "dispatch/value.h"
#include "cpu/sleef.h"

#include <initializer_list>

namespace TT_NS {

enum class DtypeRule : uint8_t {
  kPromote,  // result_type of the operands
  kFloat,    // the same, but integers become float32
  kBool,     // operands are promoted, the result is bool
  kSame,     // dtype of the only operand
  kLogical,  // operands are truth values, the result is bool
  kFirst,    // dtype of the first operand
  kModulus,  // dtype of the only operand; real if that is complex
};
enum class Compute : uint8_t {
  kWiden,    // bool u8 i8 i16 -> i32, f16 bf16 -> f32
  kStored,   // the kernel only moves values
  kLogical,  // bool
  kBitwise,  // bool and u8 unchanged, i8 i16 -> i32
};

// The dtype of a result, like torch.result_type: tensors with dimensions determine it; 0-dim
// tensors, then numbers, count only if their category is higher.
struct ResultType {
  Dtype dim = Dtype::kNone;
  Dtype zero = Dtype::kNone;
  Dtype number = Dtype::kNone;
  void add(const Tensor& t);
  void add(const Scalar& s);
  Dtype get() const;
};

struct ElementSpec {
  const Kernel* kernel;
  DtypeRule rule;
  Compute compute;
  bool no_complex;      // complex operands are rejected
  bool promote_params;  // the functor's scalars are promoted, too
  bool factor;          // the functor's scalar multiplies operands, whose dtype must represent it
  uint8_t masks;        // bit i: input i is a bool mask, excluded from promotion
  uint8_t no_bool;      // status of a call with a bool operand; 0: bools are accepted
  bool no_integers;     // operands that are integers or bool are rejected
  const char* names;    // of the operands, then of the functor's scalars, each NUL-terminated
  bool bounds = false;  // the functor's scalars bound integers; one beyond the dtype does not bind
  bool row_major = false;  // the result is contiguous, whatever the order of the operands
  // Writes to an operand whose elements share addresses: self, the other operand, the functor's
  // scalar. NULL: such a write is refused.
  void (*write_shared)(Tensor&, const Tensor&, const Scalar&) = nullptr;
};

// A tensor, or a number that promotes by category only.
struct Operand {
  const Tensor* t;
  const Scalar* s;
  Operand(const Tensor& x) : t(&x), s(nullptr) {}
  Operand(const Tensor* x) : t(x), s(nullptr) {}
  Operand(const Scalar& x) : t(nullptr), s(&x) {}
};
using Operands = std::initializer_list<Operand>;
// A scalar of the functor; absent ones have kind 0.
struct Param {
  tt_scalar v{};
  constexpr Param() = default;
  Param(const Scalar& s) : v(s) {}
  Param(const Scalar* s) {
    if (s) v = *s;
  }
  Param(Opt<double> s) {
    if (s) v = Scalar(*s);
  }
};
inline constexpr Param kNoParam;

TensorRef element_op(const ElementSpec& spec, Operands ins, const Param& p0 = kNoParam,
                     const Param& p1 = kNoParam);
void element_inplace(const ElementSpec& spec, Tensor& self, Operands ins,
                     const Param& p0 = kNoParam, const Param& p1 = kNoParam);
void element_into(const ElementSpec& spec, Tensor& dst, Operands ins, const Param& p0 = kNoParam,
                  const Param& p1 = kNoParam);
// element_op for two tensors, with a fast path for dense operands of equal shape and dtype.
TensorRef element_binary(const ElementSpec& spec, const Tensor& a, const Tensor& b,
                         const Param& p0 = kNoParam);

// Fails unless some value of self's dtype is within the bounds of clamp.
void check_bounds(const Tensor& self, const Scalar* min, const Scalar* max);
void check_bounds(Dtype d, const Scalar* min, const Scalar* max);
// masked_fill_ of a tensor whose elements share addresses (ops/index/put.cpp).
void fill_shared(Tensor& self, const Tensor& mask, const Scalar& value);

// Fails unless the numbers of threshold have values in self's dtype.
void check_threshold(const Tensor& self, const Scalar& threshold, const Scalar& value);
// Fails unless lambd is a width: not negative.
void check_lambda(double lambd);
// Fails for an alpha by which celu would divide by 0.
void check_alpha(double alpha);
// Fails for orders of polynomials that are negative, or whose recurrence would take minutes.
void check_polynomial_order(int64_t order);

// Called before an operator whose kernel uses SLEEF where it computes in float64.
inline void want_vectors(Operands ins) {
  for (const Operand& o : ins) {
    const bool in_double =
        o.t->dtype == Dtype::kF64 || (category(o.t->dtype) < 2 && default_float() == Dtype::kF64);
    if (in_double && o.t->is_cpu()) sleef_open();
  }
}

// torch.result_type of the operands that are not masks.
Dtype result_type(Operands ins, uint8_t masks = 0);
Dtype widen(Dtype d);  // the compute dtype of arithmetic

// dst[...] = src, broadcast and converted; both must be on one device.
void copy_elements(Tensor& dst, const Tensor& src);
void fill_elements(Tensor& dst, const Scalar& value);
// The same two functions for devices of the application (ext/backend.cpp), set when the first such
// device is registered.
struct ExtElements {
  void (*copy)(Tensor& dst, const Tensor& src);
  void (*fill)(Tensor& dst, const Scalar& value);
};
extern ExtElements ext_elements;
void fill_arange(Tensor& dst, const Scalar& start, const Scalar& step);  // 1-D, CPU

}  // namespace TT_NS
