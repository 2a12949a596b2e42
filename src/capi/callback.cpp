// What a callback of the application says of its failure.
#include "capi/api.h"
#include "core/callback.h"
#include "tt.h"

using namespace TT_NS;

tt_status tt_ctx_set_error(tt_ctx* h, tt_status code, const char* message) {
  return api_call(h, "ctx_set_error", [&](Ctx& c) {
    str_arg(message, "message", 2);
    record_text(c.error, code == TT_OK ? tt_status(TT_CALLBACK) : code, message);
    fail_again();
  });
}
