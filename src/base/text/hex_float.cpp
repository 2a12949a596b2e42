// Doubles as hexadecimal text and back, exactly.
#include "base/text/format.h"

#include <string.h>

namespace TT_NS {

int format_hex(char* out, double v) noexcept {
  uint64_t bits;
  memcpy(&bits, &v, 8);
  const int e = int(bits >> 52 & 2047);
  const uint64_t m = bits & ((uint64_t(1) << 52) - 1);
  if (e == 2047 || (e == 0 && m == 0)) {
    const char* text = e ? "-inf" : "-0x0.0p+0";
    if (m) text = "nan";
    const int skip = !m && !(bits >> 63);
    const int n = int(strlen(text)) - skip;
    memcpy(out, text + skip, size_t(n));
    return n;
  }
  int n = 0;
  if (bits >> 63) out[n++] = '-';
  memcpy(out + n, e ? "0x1." : "0x0.", 4);
  n += 4;
  for (int k = 48; k >= 0; k -= 4) out[n++] = "0123456789abcdef"[m >> k & 15];
  out[n++] = 'p';
  const int power = e ? e - 1023 : -1022;
  if (power >= 0) out[n++] = '+';
  return n + format_int(out + n, power);
}

bool parse_hex(Span<const char> t, double* out) noexcept {
  const char* p = t.ptr;
  const char* end = t.end();
  const bool negative = p < end && *p == '-';
  p += negative || (p < end && *p == '+');
  const auto is = [&](const char* word) {
    return size_t(end - p) == strlen(word) && memcmp(p, word, size_t(end - p)) == 0;
  };
  double v = is("inf") ? kInf : 0;
  if (is("nan")) v = kNan;
  if (v == 0) {
    uint64_t m = 0;
    int64_t e = 0;
    int64_t power = 0;
    int digits = 0;
    bool point = false;
    if (end - p < 3 || p[0] != '0' || (p[1] | 32) != 'x') return false;
    for (p += 2; p < end; p++) {
      const char c = *p | 32;
      int d = -1;
      if (*p >= '0' && *p <= '9') d = *p - '0';
      else if (c >= 'a' && c <= 'f') d = c - 'a' + 10;
      if (*p == '.' && !point) {
        point = true;
        continue;
      }
      if (d < 0) break;
      m = m << 4 | uint64_t(d);
      e -= point ? 4 : 0;
      digits++;
      if (m >> 53) return false;
    }
    if (digits == 0 || p == end || (*p | 32) != 'p') return false;
    p++;
    const bool down = p < end && *p == '-';
    p += down || (p < end && *p == '+');
    if (p == end) return false;
    for (; p < end; p++) {
      if (*p < '0' || *p > '9' || power > 9999) return false;
      power = 10 * power + (*p - '0');
    }
    e += down ? -power : power;
    for (; m && !(m & 1); e++) m >>= 1;
    for (v = double(m); v != 0 && e > 0 && v < kInf; e--) v *= 2;
    for (; v != 0 && e < 0; e++) v /= 2;
  }
  *out = negative ? -v : v;
  return true;
}

}  // namespace TT_NS
