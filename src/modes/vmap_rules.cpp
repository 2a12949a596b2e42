#include "modes/vmap_call.h"

namespace TT_NS {

BatchRule find_batch_rule(const char*) { return nullptr; }

}  // namespace TT_NS
