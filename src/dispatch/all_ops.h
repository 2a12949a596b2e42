// The list of all operators: one archive member, reached only from tt_op_find, tt_manifest and backend registration.
#pragma once

#include "dispatch/op_info.h"

namespace TT_NS {

extern OpInfo* const all_ops[];  // sorted by name
extern const int64_t num_all_ops;
extern const char manifest_text[];

}  // namespace TT_NS
