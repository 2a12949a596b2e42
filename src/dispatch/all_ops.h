// The list of all operators: one archive member, referenced only by tt_op_find, tt_manifest and
// backend registration.
#pragma once

#include "dispatch/op_info.h"

namespace TT_NS {

extern OpInfo* const all_ops[];  // sorted by name
extern const int64_t num_all_ops;

// Of a member of its own, which names no operator: the manifest, packed as codegen/cxx/manifest.py
// says. It is unpacked into manifest_text on first use, and the schemas into schema_lines.
extern const char manifest_packed[];
extern const int64_t manifest_size;  // of manifest_packed
extern char manifest_text[];
extern char schema_lines[];  // each with a 0 at its end, and a 0 behind the last

}  // namespace TT_NS
