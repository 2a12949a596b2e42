#include "dispatch/call.h"

namespace TT_NS {

// Handler of an unused key: passes the call on to the next lower slot.
static void pass_on(Call c, const Value* args, TensorList& outs) {
  c.keys &= (KeySet(1) << top_bit(c.keys)) - 1;
  c.op->call_boxed(c, args, outs);
}

// Replaced when a runtime registers a device (ext/backend.h).
static void no_backend(Call c, const Value*, TensorList&) { fail_missing(c); }

// ops/wide_unsigned.cpp
void wide_unsigned_slot(Call c, const Value* args, TensorList& outs);

static consteval Fallbacks first_fallbacks() {
  Fallbacks f = {};
  for (Fallback& handler : f.of) handler = pass_on;
  f.of[kKeyExt] = no_backend;
  f.of[kKeyWideUnsigned] = wide_unsigned_slot;
  return f;
}
constinit Fallbacks fallbacks = first_fallbacks();

void fail_no_modes() {
  fail(TT_NOT_IMPLEMENTED,
       "this build of tt has no modes and calls no operator by its name: its "
       "profile is minimal");
}
void no_boxed_call(Call, const Value*, TensorList&) { fail_no_modes(); }

void fail_missing(Call c) {
  fail(TT_NOT_IMPLEMENTED, "operator {} has no kernel for the {} backend", c.op->name(),
       top_bit(c.keys) == kKeyExt ? "EXT" : "requested");
}

}  // namespace TT_NS
