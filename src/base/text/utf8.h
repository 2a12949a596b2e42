// UTF-8, and strings of JSON, which are made of it.
#pragma once

#include "base/text/text.h"

namespace TT_NS {

// Returns the number of bytes of the first character if they are valid UTF-8, else 0.
int utf8_bytes(const char* p, const char* end);

// Adds a string with its quotes; each byte that is not UTF-8 becomes `for_bad`.
void add_json_string(Text& out, Span<const char> s, const char* for_bad = "?");

}  // namespace TT_NS
