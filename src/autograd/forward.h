// Forward mode: tangents are computed beside the values, operator by operator. The boxed handler of
// the key Forward calls an operator on the primals of its dual arguments, and computes the tangents
// of its results by its ForwardRule, which the generator derives from the formulas of the gradient.
// What has no rule is differentiated twice, alone.
#pragma once

#include "autograd/dual.h"
#include "autograd/transform.h"
#include "dispatch/value.h"

namespace TT_NS {

// How the tangents of an operator's results are computed.
enum class ForwardRule : uint8_t {
  kNone,       // there are none, or they are 0
  kTwice,      // by the gradient of the gradient
  kSymmetric,  // by the formula of its gradient, since the Jacobian matrix is its own transpose
  kProduct,    // by the operator itself, once per dual factor
  kFormula,    // by a formula of its own
  kInstead,    // by those of other operators, which compute the result
};
// What the derivative by an argument depends on.
enum class ForwardRole : uint8_t {
  kNone,     // there is none, or it is 0
  kAddend,   // on no argument that may have a tangent; of a number: the operator adds it
  kFactor,   // on other arguments, not on this one
  kOther,    // on this argument, too
  kRefused,  // unknown
};

// A formula of a declaration (forward_ad). tangents: one per differentiable argument, NULL if it
// is 0. Appends one tangent per differentiable result to `found`; empty: it is 0. Of kInstead only
// the arguments are given, and what is appended is the result.
using ForwardFormula = void (*)(const Value* args, const TensorList& results, TensorSpan tangents,
                                TensorList& found);
struct ForwardRow {
  const char* op;
  ForwardRule rule;
  uint64_t roles;  // 4 bits per argument
  ForwardFormula formula;
};
inline ForwardRole role_of(const ForwardRow& row, int32_t arg) {
  return ForwardRole(row.roles >> 4 * arg & 15);
}
extern const ForwardRow forward_rows[];  // sorted by name
extern const int64_t num_forward_rows;

// A level of dual tensors of the application, on this ctx. All fail with AUTOGRAD where the level
// is missing, or open already.
void push_dual_level();
void pop_dual_level();  // its dual tensors lose their tangents
// Returns a dual tensor over the memory of t, at the open level.
TensorRef make_dual(const Tensor& t, const Tensor& tangent);
struct PrimalAndTangent {
  TensorRef primal, tangent;
};
// Returns t without its tangent at the open level, and the tangent; empty if there is none.
PrimalAndTangent unpack_dual(const Tensor& t);

}  // namespace TT_NS
