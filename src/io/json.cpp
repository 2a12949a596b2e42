#include "io/json.h"

#include "base/text/utf8.h"

namespace TT_NS {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = char(c | 32);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static char* put_utf8(char* to, uint32_t c) {
  if (c < 0x80) {
    *to = char(c);
    return to + 1;
  }
  if (c < 0x800) {
    to[0] = char(0xc0 | c >> 6);
    to[1] = char(0x80 | (c & 63));
    return to + 2;
  }
  if (c < 0x10000) {
    to[0] = char(0xe0 | c >> 12);
    to[1] = char(0x80 | (c >> 6 & 63));
    to[2] = char(0x80 | (c & 63));
    return to + 3;
  }
  to[0] = char(0xf0 | c >> 18);
  to[1] = char(0x80 | (c >> 12 & 63));
  to[2] = char(0x80 | (c >> 6 & 63));
  to[3] = char(0x80 | (c & 63));
  return to + 4;
}

void JsonReader::bad(const char* at, const char* why) const {
  fail_arg(from_.code, from_.arg, "\"{}\", byte {}: {}", from_.name,
           from_.begin + int64_t(at - text_), why);
}

char JsonReader::peek() {
  while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\t' || *p_ == '\r')) p_++;
  return p_ < end_ ? *p_ : 0;
}

void JsonReader::expect(char c, const char* why) {
  if (peek() != c) bad(p_, p_ == end_ ? "the text ends too early" : why);
  p_++;
}

uint32_t JsonReader::hex4() {
  uint32_t v = 0;
  for (int i = 0; i < 4; i++, p_++) {
    const int d = p_ < end_ ? hex_digit(*p_) : -1;
    if (d < 0) bad(p_, "\\u needs four hexadecimal digits");
    v = v << 4 | uint32_t(d);
  }
  return v;
}

// Called after a backslash.
uint32_t JsonReader::escaped() {
  const char* at = p_;
  switch (p_ < end_ ? *p_++ : 0) {
    case '"': return '"';
    case '\\': return '\\';
    case '/': return '/';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'u': break;
    default: bad(at, "unknown escape in a string");
  }
  uint32_t c = hex4();
  if (c >= 0xd800 && c < 0xdc00 && end_ - p_ >= 6 && p_[0] == '\\' && p_[1] == 'u') {
    char* behind = p_;
    p_ += 2;
    const uint32_t low = hex4();
    if (low >= 0xdc00 && low <= 0xdfff) return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    p_ = behind;
  }
  if (!from_.any_text && (c == 0 || (c >= 0xd800 && c < 0xe000)))
    bad(at, c ? "unpaired surrogate" : "zero character in a string");
  return c;
}

// The unescaped text is never longer, so it overwrites the escaped one.
Span<const char> JsonReader::string() {
  expect('"', "expected a string");
  char* start = p_;
  char* to = p_;
  while (p_ < end_ && *p_ != '"') {
    if (uint8_t(*p_) < 0x20) bad(p_, "control character in a string");
    if (*p_ == '\\') {
      p_++;
      to = put_utf8(to, escaped());
      continue;
    }
    const int n = utf8_bytes(p_, end_);
    if (!n) bad(p_, "the text is not UTF-8");
    for (int i = 0; i < n; i++) *to++ = *p_++;
  }
  if (p_ == end_) bad(start - 1, "unterminated string");
  p_++;
  *to = 0;  // at most at the position of the closing quote
  return {start, to - start};
}

}  // namespace TT_NS
