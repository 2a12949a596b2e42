// Exported operators without options: those of one C signature share a body. An exported function
// appends the operator to its arguments and jumps, so another operator of a known signature costs a
// few bytes.
#pragma once

#include "capi/api.h"
#include "dispatch/call.h"

namespace TT_NS {

// A pointer and its length: two arguments in C, one argument here.
template <class T> struct ListArg {
  T* ptr;
  int64_t n;
};
using TensorsArg = ListArg<const tt_tensor* const>;
using IntsArg = ListArg<const int64_t>;

// Fails since h, argument i of the operator, is not a live tensor.
[[noreturn]] TT_COLD void fail_operand(const OpInfo& op, int32_t i, const void* h);
[[noreturn]] TT_COLD void fail_ints(const OpInfo& op, int32_t i, IntsArg list);

// ---- from_c: converts C's argument i to an argument of type A ----
template <class A> struct To {};

TT_INLINE const Tensor& from_c(To<const Tensor&>, const OpInfo& op, int32_t i, const tt_tensor* h) {
  auto* t = reinterpret_cast<const Tensor*>(h);
  if (TT_UNLIKELY(!t || t->tag != kTagTensor)) fail_operand(op, i, h);
  return *t;
}
TT_INLINE Tensor& from_c(To<Tensor&>, const OpInfo& op, int32_t i, tt_tensor* h) {
  return const_cast<Tensor&>(from_c(To<const Tensor&>(), op, i, h));
}
TT_INLINE const Tensor* from_c(To<const Tensor*>, const OpInfo& op, int32_t i, const tt_tensor* h) {
  return h ? &from_c(To<const Tensor&>(), op, i, h) : nullptr;
}
inline TensorSpan from_c(To<TensorSpan>, const OpInfo& op, int32_t i, TensorsArg list) {
  const ArgInfo& a = op.schema->args[i];
  return tensors_arg(list.ptr, list.n, a.name, i, a.type == ArgType::kOptTensorList);
}
TT_INLINE Ints from_c(To<Ints>, const OpInfo& op, int32_t i, IntsArg list) {
  if (TT_UNLIKELY(uint64_t(list.n) > uint64_t(kMaxDims) || (list.n && !list.ptr)))
    fail_ints(op, i, list);
  return {list.ptr, list.n};
}
inline const Scalar& from_c(To<const Scalar&>, const OpInfo& op, int32_t i, const tt_scalar* s) {
  return scalar_arg(s, op.schema->args[i].name, i);
}
inline const Scalar* from_c(To<const Scalar*>, const OpInfo& op, int32_t i, const tt_scalar* s) {
  return optional_scalar_arg(s, op.schema->args[i].name, i);
}
TT_INLINE Scalar from_c(To<const Scalar&>, const OpInfo&, int32_t, double v) { return Scalar(v); }
TT_INLINE Scalar from_c(To<const Scalar&>, const OpInfo&, int32_t, int64_t v) { return Scalar(v); }
// A default that C cannot pass.
TT_INLINE const Scalar& from_c(To<const Scalar&>, const OpInfo&, int32_t, const Scalar* s) {
  return *s;
}
TT_INLINE double from_c(To<double>, const OpInfo&, int32_t, double v) { return v; }
TT_INLINE int64_t from_c(To<int64_t>, const OpInfo&, int32_t, int64_t v) { return v; }
inline int64_t from_c(To<int64_t>, const OpInfo& op, int32_t i, int32_t v) {
  const ArgInfo& a = op.schema->args[i];
  return enum_arg(v, a.name, i, a.enumeration);
}
TT_INLINE bool from_c(To<bool>, const OpInfo&, int32_t, int32_t v) { return v != 0; }

template <class R, class... A, class... B, size_t... I>
TT_INLINE R call_from_c(const Op<R(A...)>& op, std::index_sequence<I...>, B... b) {
  return dispatch(op, from_c(To<A>(), op.info, int32_t(I), b)...);
}

// ---- bodies ----

// An operator with one result. B: types of C's arguments, defaults included.
template <class... B, class R, class... A>
TT_ONE_BODY tt_status call_for_one(tt_ctx* h, B... b, tt_tensor** out,
                                   const Op<R(A...)>& op) noexcept {
  clear_out(out);
  return api_call_inline(h, op.info.schema->call, [&](Ctx& c) TT_INLINE_BODY {
    if (TT_UNLIKELY(!out)) fail_null("out", sizeof...(A));
    give_inline(c, out, call_from_c(op, std::index_sequence_for<A...>(), b...));
  });
}
// An operator that writes into an argument.
template <class... B, class... A>
TT_ONE_BODY tt_status call_for_none(tt_ctx* h, B... b, const Op<void(A...)>& op) noexcept {
  return api_call_inline(h, op.info.schema->call, [&](Ctx&) TT_INLINE_BODY {
    call_from_c(op, std::index_sequence_for<A...>(), b...);
  });
}

}  // namespace TT_NS
