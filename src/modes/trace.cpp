#include "modes/trace.h"

#include "core/callback.h"
#include "dispatch/call.h"

namespace TT_NS {

namespace {

struct DispatchTrace : CtxPart {
  TraceFn fn;
  void* user;
  int32_t depth;
  bool reporting;  // fn is running
};

DispatchTrace* of(Ctx& c) { return static_cast<DispatchTrace*>(c.trace); }

const char* name_of(Key key) {
  switch (key) {
    case kKeyCpu: return "cpu";
    case kKeyCuda: return "cuda";
    case kKeyMeta: return "meta";
    case kKeyExt: return "ext";
    case kKeyStream: return "stream";
    case kKeyCapture: return "capture";
    case kKeyAutograd: return "autograd";
    case kKeyAutocast: return "autocast";
    case kKeyWideUnsigned: return "wide_unsigned";
    case kKeyVmap: return "vmap";
    case kKeyForward: return "forward";
    case kKeyTrace: return "trace";
    case kKeyProfile: return "profile";
    case kKeyCheckpoint: return "checkpoint";
    case kNumKeys: break;
  }
  return "unknown";
}

// Calls fn once per slot: each functionality key passes the call on to the next lower one, the last
// to a backend.
void report(DispatchTrace& t, KeySet keys, const char* op) {
  t.reporting = true;
  struct Done {
    DispatchTrace& t;
    ~Done() { t.reporting = false; }
  } done{t};
  for (KeySet left = keys;;) {
    const int key = top_bit(left);
    run_callback("the trace callback", true, [&](tt_ctx*) {
      if (t.fn) t.fn(t.user, op, name_of(Key(key)), t.depth);
      return tt_status(TT_OK);
    });
    if (key < kKeyCapture) return;
    left &= (KeySet(1) << key) - 1;
  }
}

void trace_slot(Call c, const Value* args, TensorList& outs) {
  DispatchTrace* t = of(ctx());
  c.keys &= ~bit(kKeyTrace);
  if (!t || !t->fn || t->reporting) return c.op->call_boxed(c, args, outs);
  report(*t, c.keys, c.op->name());
  struct Deeper {
    DispatchTrace& t;
    explicit Deeper(DispatchTrace& trace) : t(trace) { t.depth++; }
    ~Deeper() { t.depth--; }
  } deeper(*t);
  c.op->call_boxed(c, args, outs);
}

void destroy(CtxPart* part) noexcept {
  mem_free(static_cast<DispatchTrace*>(part), sizeof(DispatchTrace));
}

}  // namespace

void set_trace(Ctx& c, TraceFn fn, void* user) {
  DispatchTrace* t = of(c);
  if (!t && !fn) return;
  if (!t) {
    t = static_cast<DispatchTrace*>(mem_alloc(sizeof(DispatchTrace)));
    *t = DispatchTrace{{destroy}, nullptr, nullptr, 0, false};
    c.trace = t;
  }
  t->fn = fn;
  t->user = user;
  use_mode(kKeyTrace, &trace_slot);
  c.include = fn ? c.include | bit(kKeyTrace) : c.include & ~bit(kKeyTrace);
}

}  // namespace TT_NS
