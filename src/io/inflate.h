// DEFLATE (RFC 1951), the compression of zip and gzip.
#pragma once

#include "base/span.h"

#include <stdint.h>

namespace TT_NS {

// The largest ratio of expansion: 2 bits can encode at most 258 bytes.
constexpr int64_t kMaxInflation = 1032;

struct Inflated {
  const char* error;  // nullptr: the stream is valid and fills `out`
  int64_t used;       // bytes of the stream, or those before the error
};
// Decompresses a stream of out.n bytes. Whatever `in` is, only the spans are read and written.
Inflated inflate(Span<const char> in, Span<char> out) noexcept;

}  // namespace TT_NS
