// Converts numbers to text without printf, locale or std::to_chars. All functions return the length
// and write no terminating zero.
#pragma once

#include "base/span.h"

namespace TT_NS {

constexpr int kMaxDigits = 100;  // largest `digits` below; more are cut to it

int format_int(char* out, int64_t v) noexcept;    // at most 20 bytes
int format_uint(char* out, uint64_t v) noexcept;  // at most 20 bytes

// Writes the fewest digits that read back as v (as float if as_f32), in the form of Python's repr:
// 0.1, 2.0, 1e-05, 1e+16, inf, -inf, nan. At most 26 bytes.
int format_double(char* out, double v, bool as_f32) noexcept;
// Writes `digits` digits after the point, correctly rounded (ties to even): 3.1416. At most 312 +
// digits bytes.
int format_fixed(char* out, double v, int digits) noexcept;
// Writes one digit, a point, `digits` digits and an exponent of at least two digits: 3.1416e+00. At
// most 9 + digits bytes.
int format_sci(char* out, double v, int digits) noexcept;

// Writes all bits of v, as Python's float.hex and C's %a do: 0x1.8000000000000p+1, -inf, nan. At
// most 24 bytes.
int format_hex(char* out, double v) noexcept;
// Parses such a text. Returns false if it is malformed or has more digits than a double.
bool parse_hex(Span<const char> text, double* out) noexcept;

}  // namespace TT_NS
