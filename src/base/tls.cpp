#include "base/tls.h"

namespace TT_NS {

thread_local constinit Tls tls __attribute__((tls_model("initial-exec"))) = {};

}  // namespace TT_NS
