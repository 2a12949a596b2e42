// What a callback of the application says of its failure.
#include "capi/api.h"
#include "core/callback.h"
#include "tt.h"

using namespace TT_NS;

tt_status tt_ctx_set_error(tt_ctx* h, tt_status code, const char* message) {
  return api_call(h, "ctx_set_error", [&](Ctx& c) {
    str_arg(message, "message", 2);
    if (code < TT_OK || code > TT_DISTRIBUTED)
      fail_arg(TT_INVALID_ARG, "code", "code is {}: must be one of tt_status", code);
    const tt_status given = code == TT_OK ? TT_CALLBACK : code;
    if (c.error.view.code != given)
      c.error.view.code = TT_OK;  // another error, even if of one text
    record_text(c.error, given, message);
    fail_again();
  });
}
