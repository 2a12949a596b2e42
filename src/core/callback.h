// CallbackScope wraps every call into application code, which may use the ctx. Scopes and masks are
// set aside and restored; the error record of the running call becomes the cause of a failure.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

class CallbackScope {
 public:
  CallbackScope()
      : saved_tls_(tls),
        include_(ctx().include),
        exclude_(ctx().exclude),
        scopes_(ctx().scopes),
        undo_(ctx().undo),
        c_(tls.ctx) {
    c_->include &= kKeptKeys;
    c_->exclude = 0;
    c_->scopes = ScopeStack{};
    c_->undo = nullptr;
  }
  ~CallbackScope() {
    tls.ctx = saved_tls_.ctx;
    tls.heap = saved_tls_.heap;
    tls.error = saved_tls_.error;
    tls.op = saved_tls_.op;
    tls.in_parallel = saved_tls_.in_parallel;
    c_->include = (include_ & ~kLastingKeys) | (c_->include & kLastingKeys);
    c_->exclude = exclude_;
    free_scopes(c_->scopes);
    c_->scopes = scopes_;
    c_->undo = undo_;
  }
  CallbackScope(const CallbackScope&) = delete;
  tt_ctx* ctx_handle() const { return reinterpret_cast<tt_ctx*>(c_); }
  static void free_scopes(ScopeStack& s) noexcept;

 private:
  Tls saved_tls_;
  KeySet include_, exclude_;
  ScopeStack scopes_;
  UndoLog* undo_;
  Ctx* c_;
};

const char* status_name(tt_status s) noexcept;  // such as "SHAPE"
// For a callback that returned `status` != 0: fails with CALLBACK (CANCELLED is kept), with the
// inner error as cause.
[[noreturn]] TT_COLD void fail_callback(const char* what, tt_status status);

// Records why a callback fails, unless that is the text of the tt call that failed in it.
TT_COLD void record_text(ErrorRecord& e, tt_status code, const char* text) noexcept;
// For the handler of an exception that left a callback: records the text of a std::exception, and
// returns CALLBACK.
TT_COLD tt_status record_exception() noexcept;

// Calls f() in a CallbackScope. A C++ exception that leaves it becomes CALLBACK, with its text as
// the cause.
template <class F> void call_application(const char* what, bool keep_masks, F f) {
  tt_status status;
  ctx().error.view.code = TT_OK;
  ctx().error.view.cause = nullptr;
  try {
    KeySet exclude = ctx().exclude;
    CallbackScope scope;
    if (keep_masks) ctx().exclude = exclude;
    status = f(scope.ctx_handle());
  } catch (...) {
    status = record_exception();
  }
  if (status) fail_callback(what, status);
}
// The same, after polling the application.
template <class F> void run_callback(const char* what, bool keep_masks, F f) {
  if (TT_UNLIKELY(ctx().watched & kWatchPoll)) poll_application(true);
  call_application(what, keep_masks, f);
}

// Whether a small kernel can run at once although the ctx is watched: only the application is to be
// polled, and not yet.
inline bool polls_later() {
  Ctx& c = ctx();
  return c.watched == kWatchPoll && !c.cancel && --c.until_poll > 0;
}

}  // namespace TT_NS
