// UTF-8, and strings of JSON, which are made of it.
#pragma once

#include "base/text/text.h"

namespace TT_NS {

// Returns the number of bytes of the first character if they are valid UTF-8, else 0.
int utf8_bytes(const char* p, const char* end);

// Adds a string with its quotes; bytes that are not UTF-8 become question marks.
void add_json_string(Text& out, const char* s);

}  // namespace TT_NS
