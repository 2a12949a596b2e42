// The hot path: keys of the arguments -> slot -> typed call. No lock, hash, string or allocation.
#pragma once

#include "dispatch/value.h"

#include <bit>

namespace TT_NS {

TT_INLINE int top_bit(KeySet keys) { return 31 - std::countl_zero(keys | 1); }
// The slot that serves the highest of the keys.
TT_INLINE int slot_of(KeySet keys) { return top_bit(keys) >> 3; }

// Keys that an argument contributes.
TT_INLINE KeySet keys_of(const Tensor& t) { return t.keys; }
TT_INLINE KeySet keys_of(const Tensor* t) { return t ? t->keys : 0; }
TT_INLINE KeySet keys_of(Tensor* t) { return t ? t->keys : 0; }
inline KeySet keys_of(TensorSpan s) {
  KeySet k = 0;
  for (const Tensor* t : s) k |= keys_of(t);
  return k;
}
inline KeySet keys_of(Indices s) {
  KeySet k = 0;
  for (const tt_index& i : s)
    k |= i.kind == TT_IDX_TENSOR ? reinterpret_cast<const Tensor*>(i.tensor)->keys : 0;
  return k;
}
TT_INLINE KeySet keys_of(Device d) { return backend_key(d); }
TT_INLINE KeySet keys_of(const Opt<Device>& d) { return d.has ? backend_key(d.value) : 0; }
TT_INLINE KeySet keys_of(Dtype d) { return dtype_key(d); }
template <class T> TT_INLINE KeySet keys_of(const T&) { return 0; }

// Calls an operator with the keys of its arguments (for factories, of the `device` argument).
template <class R, class... A, class... B>
TT_INLINE R dispatch(const Op<R(A...)>& op, B&&... args) {
  const Ctx& c = ctx();
  const KeySet keys = ((keys_of(args) | ...) | c.include) & ~c.exclude & op.info.mask;
  return op.slot[slot_of(keys)]({keys, &op.info}, static_cast<A>(args)...);
}
// Calls the next lower slot: a wrapper passes on the remaining keys of its own call.
template <class R, class... A, class... B>
TT_INLINE R redispatch(const Op<R(A...)>& op, KeySet keys, B&&... args) {
  return op.slot[slot_of(keys)]({keys, &op.info}, static_cast<A>(args)...);
}

// ---- boxed calls: one handler per functionality key, for every operator ----
using Fallback = void (*)(Call c, const Value* args, TensorList& outs);
struct Fallbacks {
  Fallback of[kNumKeys];
};
extern Fallbacks fallbacks;  // constinit; a mode sets its entry when it is first used

[[noreturn]] TT_COLD void fail_no_modes();
// Sets the handler of a mode, which is in use from now on.
inline void use_mode(Key key, Fallback handler) {
  if constexpr (!kModes) fail_no_modes();
  atomic_store(&fallbacks.of[key], handler, kRelaxed);
}
// Another thread may use the mode first, too, while this one reads.
inline Fallback fallback_of(int key) { return atomic_load(&fallbacks.of[key], kRelaxed); }

[[noreturn]] TT_COLD void fail_missing(Call c);

// A slot that no call reaches but by a mistake.
template <class R, class... A> R missing_slot(Call c, A...) { fail_missing(c); }

template <class R> TT_NOINLINE R call_fallback(Call c, const Value* args) {
  TensorList outs;
  fallback_of(top_bit(c.keys))(c, args, outs);
  return TakeResults<R>::get(outs);
}
// A slot of keys that have boxed handlers: boxes the arguments for the key's fallback.
template <class R, class... A> R boxed_slot(Call c, A... args) {
  const Value boxed[sizeof...(A) + 1] = {to_value(args)..., Value()};
  return call_fallback<R>(c, boxed);
}

template <class R, class... A, size_t... I>
void call_unboxed_impl(Call c, const Value* args, TensorList& outs, std::index_sequence<I...>) {
  const auto& op = *reinterpret_cast<const Op<R(A...)>*>(c.op);  // info is the first member
  const auto f = op.slot[slot_of(c.keys)];
  if constexpr (std::is_void_v<R>) {
    f(c, Unbox<A>::get(args[I])...);
  } else if constexpr (kTensorsIn<R> > 0) {  // constructed in place
    new (static_cast<void*>(outs.room_for(kTensorsIn<R>))) R(f(c, Unbox<A>::get(args[I])...));
    outs.extended(kTensorsIn<R>);
  } else {
    for (TensorRef& t : f(c, Unbox<A>::get(args[I])...)) outs.push_back(std::move(t));
  }
}
template <class R, class... A> void call_unboxed(Call c, const Value* args, TensorList& outs) {
  call_unboxed_impl<R, A...>(c, args, outs, std::index_sequence_for<A...>());
}

// OpInfo::call_boxed of a build without modes.
void no_boxed_call(Call c, const Value* args, TensorList& outs);

// Builds an operator without an autograd wrapper.
template <class R, class... A>
constexpr Op<R(A...)> make_op(const OpSchema* schema, std::type_identity_t<R (*)(Call, A...)> impl,
                              std::nullptr_t) {
  using Fn = R (*)(Call, A...);
  Op<R(A...)> op = {{kTagOp, kBackendKeys, schema, &no_boxed_call}, {}};
  op.slot[kSlotImpl] = impl;
  op.slot[kSlotBoxed] = op.slot[kSlotAutograd] = Fn(&missing_slot<R, A...>);
  if constexpr (kModes) {
    op.info.call_boxed = &call_unboxed<R, A...>;
    op.info.mask |= kModeKeys;
    op.slot[kSlotBoxed] = op.slot[kSlotMode] = &boxed_slot<R, A...>;
  }
  if (schema->autocast.cpu == Autocast::kNone && schema->autocast.cuda == Autocast::kNone)
    op.info.mask &= ~bit(kKeyAutocast);
  return op;
}
// With an autograd wrapper. An overload, since UBSan's build cannot compare the address of another
// file's function with NULL in a constant expression.
template <class R, class... A>
constexpr Op<R(A...)> make_op(const OpSchema* schema, std::type_identity_t<R (*)(Call, A...)> impl,
                              std::type_identity_t<R (*)(Call, A...)> autograd) {
  Op<R(A...)> op = make_op<R, A...>(schema, impl, nullptr);
  op.slot[kSlotAutograd] = autograd;
  op.info.mask |= bit(kKeyAutograd);
  return op;
}

}  // namespace TT_NS
