// Elementwise front ends: dtype rule, broadcast, allocate, plan, kernel. One spec per operator,
// generated.
#pragma once

#include "core/ctx.h"
#include "dispatch/op_info.h"
#include "cpu/sleef.h"

#include <initializer_list>

namespace TT_NS {

enum class DtypeRule : uint8_t {
  kPromote,  // result_type of the operands
  kFloat,    // the same, integers become float32
  kBool,     // operands promoted, result bool
  kSame,     // of the one operand
  kLogical,  // operands as truth values, result bool
  kFirst,    // of the first operand
  kModulus,  // of the one operand; real if that is complex
};
enum class Compute : uint8_t {
  kWiden,    // bool u8 i8 i16 -> i32, f16 bf16 -> f32
  kStored,   // the kernel only moves values
  kLogical,  // bool
  kBitwise,  // bool and u8 as they are, i8 i16 -> i32
};

struct ElementSpec {
  const Kernel* kernel;
  DtypeRule rule;
  Compute compute;
  bool no_complex;      // complex operands are refused
  bool promote_params;  // the functor's scalars take part in promotion
  bool factor;      // the functor's scalar multiplies operands: of a kind and size that their dtype
                    // has, bool only for bools
  uint8_t masks;    // bit i: input i is a bool mask, outside promotion
  uint8_t no_bool;  // status of a call with a bool operand; 0: bools are taken
  const char* names;  // of the operands, then of the functor's scalars, each ended by a zero
};

// A tensor, or a number that is weak in promotion.
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
};
inline constexpr Param kNoParam;

TensorRef element_op(const ElementSpec& spec, Operands ins, const Param& p0 = kNoParam,
                     const Param& p1 = kNoParam);
void element_inplace(const ElementSpec& spec, Tensor& self, Operands ins,
                     const Param& p0 = kNoParam, const Param& p1 = kNoParam);
void element_into(const ElementSpec& spec, Tensor& dst, Operands ins, const Param& p0 = kNoParam,
                  const Param& p1 = kNoParam);
// element_op for two tensors, with the short way for equal dense operands in front.
TensorRef element_binary(const ElementSpec& spec, const Tensor& a, const Tensor& b,
                         const Param& p0 = kNoParam);

// Bounds of clamp leave room for a value of self's dtype.
void check_bounds(const Tensor& self, const Scalar* min, const Scalar* max);

// Before an operator whose kernel takes its function in double from SLEEF.
inline void want_vectors(const Tensor& t) {
  if (t.dtype == Dtype::kF64 && t.is_cpu()) sleef_open();
}

// torch.result_type of the operands that are not masks.
Dtype result_type(Operands ins, uint8_t masks = 0);
Dtype widen(Dtype d);  // the compute dtype of arithmetic

// dst[...] = src, broadcast and converted; both on one device (or META).
void copy_elements(Tensor& dst, const Tensor& src);
void fill_elements(Tensor& dst, const Scalar& value);
// What these two do on a device of the host (ext/backend.cpp); set with the first of them, like
// op_of_views.
struct ExtElements {
  void (*copy)(Tensor& dst, const Tensor& src);
  void (*fill)(Tensor& dst, const Scalar& value);
};
extern ExtElements ext_elements;
void fill_arange(Tensor& dst, const Scalar& start, const Scalar& step);  // 1-D, CPU

}  // namespace TT_NS
