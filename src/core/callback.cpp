#include "core/callback.h"

#include <exception>
#include <string.h>

namespace TT_NS {

void CallbackScope::free_scopes(ScopeStack& s) noexcept {
  for (int64_t i = s.n; i-- > 0;)
    if (s.items[i]) Ref<Tensor>::adopt(s.items[i]).reset();
  if (s.items) mem_free(s.items, size_t(s.cap) * sizeof(Tensor*));
  if (s.frames) mem_free(s.frames, size_t(s.cap_frames) * sizeof(int64_t));
  s = ScopeStack{};
}

const char* status_name(tt_status s) noexcept {
  constexpr const char* kNames[] = {"OK",
                                    "INVALID_ARG",
                                    "SHAPE",
                                    "DTYPE",
                                    "DEVICE",
                                    "INDEX",
                                    "OOM",
                                    "IO",
                                    "FORMAT",
                                    "NOT_IMPLEMENTED",
                                    "UNSUPPORTED_OPTION",
                                    "BUFFER_TOO_SMALL",
                                    "BAD_HANDLE",
                                    "AUTOGRAD",
                                    "CANCELLED",
                                    "CALLBACK",
                                    "ABI",
                                    "INTERNAL",
                                    "LINALG",
                                    "DISTRIBUTED"};
  return s >= 0 && s <= TT_DISTRIBUTED ? kNames[s] : "UNKNOWN";
}

void record_text(ErrorRecord& e, tt_status code, const char* text) noexcept {
  const FmtArg args[] = {text};
  if (e.view.code == TT_OK || strcmp(e.message, text) != 0) set_error(&e, code, "", "", "{}", args);
}

tt_status record_exception() noexcept {
  try {
    throw;
  } catch (const std::exception& thrown) {
    record_text(ctx().error, TT_CALLBACK, thrown.what());
  } catch (...) {}
  return TT_CALLBACK;
}

void fail_callback(const char* what, tt_status status) {
  ErrorRecord& e = ctx().error;
  error_to_cause(&e);
  const FmtArg args[] = {what, status, status_name(status)};
  tt_status code = status == TT_CANCELLED ? TT_CANCELLED : TT_CALLBACK;
  set_error(&e, code, tls.op, "", "{} failed with status {} ({})", args);
  fail_again();
}

void poll_occasionally(bool large) {
  constexpr int32_t kSmallKernels = 64;
  Ctx& c = ctx();
  if (!c.cancel && !large && --c.until_poll > 0) return;
  c.until_poll = kSmallKernels;
  poll_application();
}

void poll_application(bool now) {
  constexpr int64_t kPollNs = 50'000'000;
  Ctx& c = ctx();
  auto* token = reinterpret_cast<CancelToken*>(c.cancel);
  if (token && atomic_load(&token->cancelled, kRelaxed))
    fail(TT_CANCELLED, "cancelled by the application");
  if (!c.poll) return;
  const int64_t time = os_now_ns();
  if (!now && time < c.poll->next_ns) return;
  c.poll->next_ns = time + kPollNs;
  Ref<PollCallback> poll = Ref<PollCallback>::share(c.poll);
  call_application("the poll", false, [&](tt_ctx* h) { return poll->fn(poll->user, h); });
}

}  // namespace TT_NS
