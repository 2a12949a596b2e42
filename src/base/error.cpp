#include "base/error.h"

#include "base/tls.h"

#include <string.h>

#if TT_OWN_TERMINATE
extern "C" void tt_abort_on_terminate();  // cxx_terminate.cpp, cxx_runtime.cpp
#endif

namespace TT_NS {

namespace {

struct Thrown {};  // thrown by fail(); the message is in the error record

#if TT_OWN_TERMINATE
// A static program takes tt's terminate handler instead of libstdc++'s, since this refers to it.
TT_USED void (*const terminate_handler)() = tt_abort_on_terminate;
#endif

// The offending shapes and dtypes are the first two of each among the arguments of the message.
void note_operands(tt_error* e, Span<const FmtArg> args) {
  int shapes = 0;
  int dtypes = 0;
  for (const FmtArg& a : args) {
    if (a.kind == FmtArg::kShape && shapes < 2) {
      e->ndim[shapes] = int32_t(a.n);
      for (int64_t i = 0; i < a.n && i < 8; i++) e->shape[shapes][i] = a.shape[i];
      shapes++;
    }
    if (a.kind == FmtArg::kDtype && dtypes < 2) e->dtype[dtypes++] = tt_dtype(a.i);
  }
}

}  // namespace

void set_error(ErrorRecord* e, tt_status code, const char* op, const char* arg, const char* fmt,
               Span<const FmtArg> args) noexcept {
  if (!e) return;
  const bool caused = e->view.code == TT_OK && e->view.cause == &e->cause_view;
  if (!op) op = "";
  e->view = {};
  e->view.code = code;
  e->view.arg_index = -1;
  e->view.op = op;
  e->view.arg = arg ? arg : "";
  e->view.message = e->message;
  e->view.ndim[0] = e->view.ndim[1] = -1;
  e->view.cause = caused ? &e->cause_view : nullptr;
  note_operands(&e->view, args);
  const int64_t cap = int64_t(sizeof e->message);
  int64_t n = 0;
  if (*op) {
    const FmtArg name[] = {op};
    n = format_to(e->message, cap, "{}: ", name);
    if (n > cap - 1) n = cap - 1;
  }
  format_to(e->message + n, cap - n, fmt, args);
}

void error_to_cause(ErrorRecord* e) noexcept {
  if (!e || e->view.code == TT_OK) return;
  e->cause_view = e->view;
  e->cause_view.cause = nullptr;
  e->cause_view.message = e->cause_message;
  const FmtArg text[] = {e->view.message};
  format_to(e->cause_message, int64_t(sizeof e->cause_message), "{}", text);
  e->view = {};
  e->view.cause = &e->cause_view;
}

void fail_args(tt_status code, const char* arg, const char* fmt, Span<const FmtArg> args) {
  set_error(tls.error, code, tls.op, arg, fmt, args);
  throw Thrown{};
}

void fail_again() { throw Thrown{}; }

}  // namespace TT_NS
